"""Writes HFiles as HBase does: byte by byte what Hudi 0.15 writes, with an index of one level.

Source: docs/format/metadata-table.md 3; pinned by tests/vectors/tiny_hfiles.json and tables of real Hudi.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.formats.avro.bytes import offsets_of
from hoodie.formats.hfile.blocks import (
    DATA,
    FILE_INFO,
    HEADER_SIZE,
    META,
    ROOT_INDEX,
    BlockCodec,
    encode_blocks,
    encode_hfile_block,
)
from hoodie.formats.hfile.cells import cell_key, encode_cells
from hoodie.formats.hfile.index import encode_index_entry, separator
from hoodie.formats.hfile.trailer import TRAILER_SIZE, Trailer, encode_file_info, encode_trailer

BLOCK_SIZE = 1024 * 1024
_WAITING = 4 * 1024 * 1024  # bytes of blocks that are encoded at once
_LONGEST_ROW = 2**15 - 1


@dataclass(slots=True)
class _Progress:
    """What has been written so far."""

    write: Callable[[bytes], object]
    codec: BlockCodec
    at: int = 0
    total: int = TRAILER_SIZE  # uncompressed
    previous: int = -1
    first: int = -1
    index: list[bytes] = field(default_factory=list)
    waiting: list[tuple[bytes, bytes]] = field(default_factory=list)  # data blocks with their index keys
    bytes_waiting: int = 0

    def block(self, magic: bytes, payload: bytes, previous: int, counted: bool = True) -> tuple[int, int]:
        """Write a block; offset and size of it."""
        data = encode_hfile_block(magic, payload, self.codec, previous)
        begin = self.at
        self.write(data)
        self.at += len(data)
        self.total += HEADER_SIZE + len(payload) if counted else 0
        return begin, len(data)

    def data_block(self, payload: bytes, key: bytes) -> None:
        self.waiting.append((payload, key))
        self.bytes_waiting += len(payload)
        if self.bytes_waiting >= _WAITING:
            self.flush()

    def flush(self) -> None:
        """Write the data blocks that wait."""
        payloads = [payload for payload, _ in self.waiting]
        blocks = encode_blocks(DATA, payloads, self.codec, self.previous, self.at)
        for data, (payload, key) in zip(blocks, self.waiting, strict=True):
            self.index.append(encode_index_entry(self.at, len(data), key))
            self.first = self.at if self.first < 0 else self.first
            self.previous = self.at
            self.write(data)
            self.at += len(data)
            self.total += HEADER_SIZE + len(payload)
        self.waiting, self.bytes_waiting = [], 0


def encode_hfile(
    rows: pa.Array,
    values: pa.Array,
    info: Mapping[str, bytes],
    metas: Mapping[str, bytes] | None = None,
    codec: BlockCodec = BlockCodec.GZ,
    block_size: int = BLOCK_SIZE,
    created: int = 0,
) -> bytes:
    """An HFile in memory; its cells are sorted. Arguments as of `write_hfile`."""
    rows = rows.view(pa.binary())
    order = pc.array_sort_indices(rows)
    pieces: list[bytes] = []
    batches = [(rows.take(order), values.take(order))]
    write_hfile(pieces.append, batches, info, metas, codec, block_size, created)
    return b"".join(pieces)


def write_hfile(
    write: Callable[[bytes], object],
    batches: Iterable[tuple[pa.Array, pa.Array]],
    info: Mapping[str, bytes],
    metas: Mapping[str, bytes] | None = None,
    codec: BlockCodec = BlockCodec.GZ,
    block_size: int = BLOCK_SIZE,
    created: int = 0,
) -> int:
    """Write an HFile from its begin to its end; how many cells it has.

    write       takes the next bytes
    batches     rows (string or binary[n]) and values (binary[n]), sorted by the bytes of the rows through all batches
    info        file info entries beside those that every file has, such as `schema`
    metas       meta blocks by name
    block_size  a data block is closed when it has so many bytes uncompressed
    created     milliseconds since 1970; 0 as HBase's writer has it
    Raises      InvalidInput on nulls, on rows out of order, or of 32 KiB and more
    """
    out = _Progress(write, codec)
    counts = _write_cells(out, batches, block_size)
    out.flush()
    entries = []
    for name, content in sorted((metas or {}).items()):
        begin, size = out.block(META, content, -1)
        entries.append(encode_index_entry(begin, size, name.encode()))
    load_on_open = out.at
    root = b"".join(out.index)
    out.block(ROOT_INDEX, root, -1, counted=False)
    out.block(ROOT_INDEX, b"".join(entries), load_on_open)
    file_info, _ = out.block(FILE_INFO, encode_file_info({**info, **counts.info(created)}), -1)
    trailer = Trailer(
        file_info=file_info,
        load_on_open=load_on_open,
        index_size=len(root),
        total_size=out.total,
        index_entries=len(out.index),
        meta_entries=len(entries),
        cells=counts.cells,
        first=out.first,
        last=out.previous,
        codec=codec,
    )
    out.write(encode_trailer(trailer))
    return counts.cells


@dataclass(slots=True)
class _Counts:
    """Counts of the cells that were written."""

    cells: int = 0
    keys: int = 0  # bytes
    values: int = 0
    last: bytes | None = None

    def info(self, created: int) -> dict[str, bytes]:
        mean = (self.keys // self.cells, self.values // self.cells) if self.cells else (0, 0)
        entries = {
            "KEY_VALUE_VERSION": struct.pack(">i", 1),
            "MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
            "hfile.AVG_KEY_LEN": struct.pack(">i", mean[0]),
            "hfile.AVG_VALUE_LEN": struct.pack(">i", mean[1]),
            "hfile.CREATE_TIME_TS": struct.pack(">q", created),
        }
        return entries if self.last is None else {**entries, "hfile.LASTKEY": cell_key(self.last)}


def _write_cells(out: _Progress, batches: Iterable[tuple[pa.Array, pa.Array]], block_size: int) -> _Counts:
    """Write the data blocks."""
    counts = _Counts()
    open_block: list[bytes] = []
    size, key = 0, b""
    for rows, values in batches:
        rows = _checked_rows(rows, counts.last)
        values = values.view(pa.binary())
        if values.null_count:
            raise InvalidInput("values of an HFile must not be null")
        if not len(rows):
            continue
        cells = encode_cells(rows, values)
        offsets = offsets_of(cells).astype(np.int64)
        data = memoryview(cells.buffers()[2])
        starts = _first_of_row(rows, counts.last)
        begin = 0
        while begin < len(rows):
            # The block closes before the first cell of another row at which it is full.
            full = int(np.searchsorted(offsets, offsets[begin] + block_size - size, side="left"))
            following = int(np.searchsorted(starts, full))
            close = int(starts[following]) if following < len(starts) else len(rows)
            if not open_block and not size:
                first = rows[begin].as_py()
                key = cell_key(first) if counts.last is None else separator(counts.last, first)
            open_block.append(bytes(data[offsets[begin] : offsets[close]]))
            size += int(offsets[close] - offsets[begin])
            if close > begin:
                counts.last = rows[close - 1].as_py()
            if close < len(rows):
                out.data_block(b"".join(open_block), key)
                open_block, size = [], 0
            begin = close
        counts.cells += len(rows)
        counts.keys += int(offsets_of(rows)[-1] - offsets_of(rows)[0]) + 12 * len(rows)
        counts.values += int(offsets_of(values)[-1] - offsets_of(values)[0])
    if open_block:
        out.data_block(b"".join(open_block), key)
    return counts


def _first_of_row(rows: pa.Array, last: bytes | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The places of cells whose row differs from the one before."""
    differs = np.ones(len(rows), np.bool_)
    differs[0] = rows[0].as_py() != last
    differs[1:] = pc.not_equal(rows.slice(1), rows.slice(0, len(rows) - 1)).to_numpy(zero_copy_only=False)
    return np.flatnonzero(differs).astype(np.int64)


def _checked_rows(rows: pa.Array, last: bytes | None) -> pa.Array:
    """The rows as bytes, seen to be in order."""
    rows = rows.view(pa.binary())
    if rows.null_count:
        raise InvalidInput("rows of an HFile must not be null")
    if not len(rows):
        return rows
    if (longest := int(np.diff(offsets_of(rows)).max())) > _LONGEST_ROW:
        raise InvalidInput(f"a row of {longest} bytes: an HFile takes at most {_LONGEST_ROW}")
    in_order = pc.all(pc.less_equal(rows.slice(0, len(rows) - 1), rows.slice(1))).as_py()
    if in_order is False or (last is not None and rows[0].as_py() < last):
        raise InvalidInput("rows of an HFile must be sorted by their bytes")
    return rows
