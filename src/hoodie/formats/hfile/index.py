"""The index of an HFile: which data block may hold a row; and what else stands behind the data blocks.

The index of a large file has tens of thousands of entries, of which a look-up asks for some hundred. So it stays as it
is stored: numbers are read of all entries at once, and rows where a search passes.

A writer asks the same files for keys at each commit, and the index of a large file takes longer to decode than some
keys to find. So what was used last is remembered, by its bytes: they are read each time, and what is remembered is
never that of another file.

Source: docs/format/metadata-table.md 2.1, 2.2, 2.4 and 3.2; pinned by tests/vectors/hfile_cells.json, tiny_hfiles.json.
"""

import struct
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile
from hoodie.formats.hfile.blocks import FILE_INFO, HEADER_SIZE, ROOT_INDEX, decode_block
from hoodie.formats.hfile.cells import KEY_TAIL
from hoodie.formats.hfile.numbers import decode_vlong, encode_vlong
from hoodie.formats.hfile.trailer import TRAILER_SIZE, Trailer, decode_file_info

_ENTRY = struct.Struct(">qi")  # offset and size on disk of a block
_SEPARATOR_TAIL = KEY_TAIL[:-1] + b"\xff"
#: What ends the keys of cells and of separators, but for the last byte.
_TAIL = KEY_TAIL[:-1]

_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A block that the index points to, and a row that is not greater than its first, and greater than all before."""

    offset: int
    size: int
    row: bytes


@dataclass(frozen=True, slots=True, eq=False)
class BlockIndex:
    """Entries in the order of their rows.

    data            what the index was read of
    offsets, sizes  of the blocks, int64[n] each
    begins, ends    where the row of each entry lies in `data`, int64[n] each
    heads           the first eight bytes of each row as a number, uint64[n]: ordered as rows that do not begin alike
    """

    data: bytes
    offsets: _Places
    sizes: _Places
    begins: _Places
    ends: _Places
    heads: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, number: int) -> IndexEntry:
        return IndexEntry(int(self.offsets[number]), int(self.sizes[number]), self.row(number))

    def __iter__(self) -> Iterator[IndexEntry]:
        return (self[number] for number in range(len(self)))

    def row(self, number: int) -> bytes:
        """The row key of an entry."""
        return self.data[self.begins[number] : self.ends[number]]

    def last(self, row: bytes) -> int:
        """The last entry whose row is not greater than a row; -1: there is none."""
        return bisect_right(range(len(self)), row, key=self.row) - 1

    def last_of(self, rows: Sequence[bytes]) -> list[int]:
        """`last` of many rows."""
        if len(self) == 1:
            return [0 if row >= self.row(0) else -1 for row in rows]
        heads = np.frombuffer(b"".join([row[:8].ljust(8, b"\0") for row in rows]), ">u8").astype(np.uint64)
        lows = np.searchsorted(self.heads, heads, "left").tolist()
        highs = np.searchsorted(self.heads, heads, "right").tolist()
        return [
            low - 1 if low == high else low + bisect_right(range(low, high), row, key=self.row) - 1
            for row, low, high in zip(rows, lows, highs, strict=True)
        ]

    def outside(self, limit: int) -> IndexEntry | None:
        """An entry whose block does not lie in the first `limit` bytes of a file, or is too small to be one."""
        wrong = (self.sizes < HEADER_SIZE) | (self.offsets < 0) | (self.offsets > limit - self.sizes)
        return self[int(np.argmax(wrong))] if wrong.any() else None


def joined_indexes(parts: Sequence[BlockIndex], path: str) -> BlockIndex:
    """Several indexes as one. Raises CorruptFile where they are out of order"""
    if len(parts) == 1:
        return parts[0]
    shifts = np.cumsum([0, *(len(part.data) for part in parts)])[:-1].tolist()
    offsets, sizes, begins, ends = [
        np.concatenate([np.empty(0, np.int64), *column])
        for column in (
            [part.offsets for part in parts],
            [part.sizes for part in parts],
            [part.begins + shift for part, shift in zip(parts, shifts, strict=True)],
            [part.ends + shift for part, shift in zip(parts, shifts, strict=True)],
        )
    ]
    heads = np.concatenate([np.empty(0, np.uint64), *(part.heads for part in parts)])
    return _ascending(BlockIndex(b"".join(part.data for part in parts), offsets, sizes, begins, ends, heads), path)


def decode_root_index(payload: memoryview, count: int, path: str, *, exact: bool) -> BlockIndex:
    """The entries of a root index.

    count  how many the trailer says there are
    exact  nothing follows them
    Raises CorruptFile
    """
    data = bytes(payload)
    places = _places_by_tails(data, count)
    if places is None:
        places = _places_by_steps(data, count, path)
    begins, keys = places
    end = int(begins[-1])
    if exact and end != len(data):
        raise CorruptFile(path, f"an index of {len(data)} bytes, of which its entries take {end}")
    return _read(data, begins[:-1], keys, begins[1:], path)


def decode_meta_index(payload: memoryview, count: int, path: str) -> dict[str, IndexEntry]:
    """The meta blocks of a file by name. Raises CorruptFile"""
    data = bytes(payload)
    begins, keys = _places_by_steps(data, count, path)
    if begins[-1] != len(data):
        raise CorruptFile(path, f"an index of meta blocks of {len(data)} bytes with more than its entries")
    entries = {}
    for begin, key, end in zip(begins.tolist(), keys.tolist(), begins[1:].tolist(), strict=False):
        offset, size = _ENTRY.unpack_from(data, begin)
        entries[data[key:end].decode("utf-8", "replace")] = IndexEntry(offset, size, data[key:end])
    return entries


def decode_inner_index(payload: memoryview, path: str) -> BlockIndex:
    """The entries of a block below the root index. Raises CorruptFile"""
    data = bytes(payload)
    count = int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else -1
    base = 4 + 4 * (count + 1)
    if count < 0 or base > len(data):
        raise CorruptFile(path, f"an index block of {len(data)} bytes that says it has {count} entries")
    begins = np.frombuffer(data, ">i4", count + 1, 4).astype(np.int64) + base
    if (np.diff(begins) < _ENTRY.size).any() or (count and (begins[0] != base or begins[-1] > len(data))):
        raise CorruptFile(path, "an index block whose entries lie outside of it")
    return _read(data, begins[:-1], begins[:-1] + _ENTRY.size, begins[1:], path)


def encode_index_entry(offset: int, size: int, key: bytes) -> bytes:
    """An entry of a root or meta index."""
    return _ENTRY.pack(offset, size) + encode_vlong(len(key)) + key


def separator(last: bytes, first: bytes) -> bytes:
    """The index key of a block whose first row is `first`, after one whose last row is `last`: a short row between
    them, which may be none of either."""
    at = next((i for i, (a, b) in enumerate(zip(last, first, strict=False)) if a != b), min(len(last), len(first)))
    if at < len(last) and at < len(first) and last[at] + 1 < first[at]:
        row = last[:at] + bytes([last[at] + 1])
    else:
        row = first[: at + 1]
    return struct.pack(">h", len(row)) + row + _SEPARATOR_TAIL


def _places_by_tails(data: bytes, count: int) -> tuple[_Places, _Places] | None:
    """As `_places_by_steps`, by the bytes that end the keys of HBase; None where the keys are others."""
    if len(data) < len(KEY_TAIL) or not count:
        return None
    # It begins with a byte that is nowhere else in it, so that no two of them overlap.
    tails = np.flatnonzero(_words(data, 8) == np.uint64(int.from_bytes(_TAIL[:8], "big")))
    tails = tails[np.frombuffer(data, np.uint8).take(tails + 8, mode="clip") == _TAIL[8]][:count]
    if len(tails) != count:
        return None
    ends = tails + len(KEY_TAIL)
    begins = np.concatenate([np.zeros(1, np.int64), ends])
    if begins[-1] > len(data):
        return None
    raw = np.frombuffer(data, np.uint8)
    lengths_at = begins[:-1] + _ENTRY.size
    if (lengths_at + 3 >= begins[1:]).any():
        return None
    first, second, third = (raw[lengths_at + at].astype(np.int64) for at in range(3))
    one, two = first == 0x8F, first == 0x8E  # how many bytes more the length has
    keys = lengths_at + np.where(one, 2, np.where(two, 3, 1))
    lengths = np.where(one, second, np.where(two, second << 8 | third, first))
    sound = np.array_equal(keys + lengths, ends) and bool((one | two | (first <= 127)).all())
    return (begins, keys) if sound else None


def _places_by_steps(data: bytes, count: int, path: str) -> tuple[_Places, _Places]:
    """Where the entries of a root or meta index begin, with the end of the last: int64[count + 1]; and their keys:
    int64[count]."""
    begins, keys, at = [0], [], 0
    for _ in range(count):
        if at + _ENTRY.size > len(data):
            raise CorruptFile(path, f"an index of {len(data)} bytes, which should have {count} entries")
        length, at = decode_vlong(data, at + _ENTRY.size, path)
        if at + length > len(data):
            raise CorruptFile(path, f"an index entry with a key of {length} bytes")
        keys.append(at)
        at += length
        begins.append(at)
    return np.array(begins, np.int64), np.array(keys, np.int64)


def _read(data: bytes, begins: _Places, keys: _Places, ends: _Places, path: str) -> BlockIndex:
    """Entries at some places. Keys have the rows in full or (of Hudi's own writer) without the rest."""
    if (ends - keys < 2).any():
        raise CorruptFile(path, f"an index key of {int((ends - keys).min())} bytes")
    lengths = _words(data, 2)[keys].astype(np.int64)
    if (over := lengths > ends - keys - 2).any():
        at = int(np.argmax(over))
        raise CorruptFile(path, f"an index key of {ends[at] - keys[at]} bytes that says its row has {lengths[at]}")
    rows, words = keys + 2, _words(data, 8)
    offsets = words[begins].astype(np.uint64).view(np.int64)
    sizes = _words(data, 4)[begins + 8].astype(np.uint32).view(np.int32).astype(np.int64)
    # The first bytes of rows, zeros behind shorter ones.
    behind = (64 - 8 * np.clip(lengths, 1, 8)).astype(np.uint64)
    heads = np.where(lengths > 0, words[rows].astype(np.uint64) >> behind << behind, np.uint64(0))
    return _ascending(BlockIndex(data, offsets, sizes, rows, rows + lengths, heads), path)


def _words(data: bytes, width: int) -> npt.NDArray[Any]:
    """At each byte, and behind the last, the number of so many bytes from there, most significant first: a view of a
    copy, with zeros at its end."""
    return np.ndarray((len(data) + 1,), f">u{width}", data + bytes(8), strides=(1,))


def _ascending(index: BlockIndex, path: str) -> BlockIndex:
    if (index.heads[1:] > index.heads[:-1]).all():
        return index
    bounds = np.empty(2 * len(index), np.int64)
    bounds[0::2], bounds[1::2] = index.begins, index.ends
    pieces = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(index.data)]
    )
    rows = pieces.take(pa.array(np.arange(0, len(bounds) - 1, 2)))
    wrong = pc.less(rows.slice(1), rows.slice(0, len(rows) - 1))
    if pc.any(wrong).as_py():
        at = pc.index(wrong, True).as_py()
        raise CorruptFile(path, f"an index in which {index.row(at + 1)!r} comes after {index.row(at)!r}")
    return index


#: Bytes of what is remembered, as it is stored; decoded it takes about six times as many.
_MOST = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class LoadOnOpen:
    """What a file says of itself.

    info   file info entries by name, such as "schema"
    index  what the root index points to: data blocks, unless the index has several levels
    metas  the meta blocks by name
    """

    info: dict[str, bytes]
    index: BlockIndex
    metas: dict[str, IndexEntry]


def load_on_open(stored: bytes, trailer: Trailer, path: str) -> LoadOnOpen:
    """What a file says of itself.

    stored  the file from the trailer's `load_on_open` to its end
    Raises  CorruptFile; UnsupportedTable on a codec that is not read
    """
    return _memory.get(stored) or _memory.put(stored, _decoded(stored, trailer, path))


def require_inside(index: BlockIndex, trailer: Trailer, path: str) -> None:
    """Raises CorruptFile where an entry points to something that is no block of the file."""
    if entry := index.outside(trailer.load_on_open):
        raise _outside_error(entry, path)


def _decoded(stored: bytes, trailer: Trailer, path: str) -> LoadOnOpen:
    start, codec = trailer.load_on_open, trailer.codec
    view = memoryview(stored)[: len(stored) - TRAILER_SIZE]
    # Gzip's own checksums are enough here, as in data blocks of which few rows are needed.
    head, root = decode_block(view, ROOT_INDEX, codec, start, path, by_gzip=True)
    index = decode_root_index(root, trailer.index_entries, path, exact=trailer.levels == 1)
    _, names = decode_block(view[head.size :], ROOT_INDEX, codec, start + head.size, path, by_gzip=True)
    metas = decode_meta_index(names, trailer.meta_entries, path)
    _, payload = decode_block(view[trailer.file_info - start :], FILE_INFO, codec, trailer.file_info, path)
    info = decode_file_info(payload, path)
    if int.from_bytes(info.get("MAX_MEMSTORE_TS_KEY", b""), "big") > 0:
        raise CorruptFile(path, "an HFile with cells of transactions")
    require_inside(index, trailer, path)
    for entry in metas.values():
        if entry.size < HEADER_SIZE or not 0 <= entry.offset <= start - entry.size:
            raise _outside_error(entry, path)
    if (not len(index)) != (trailer.cells == 0):
        raise CorruptFile(path, f"{trailer.cells} cells in {len(index)} blocks")
    return LoadOnOpen(info, index, metas)


def _outside_error(entry: IndexEntry, path: str) -> CorruptFile:
    return CorruptFile(path, f"an index entry of {entry.size} bytes at {entry.offset}, outside of the blocks")


class _Memory:
    """The newest used, for all threads."""

    def __init__(self) -> None:
        self._decoded: OrderedDict[bytes, LoadOnOpen] = OrderedDict()
        self._bytes = 0
        self._turn = threading.Lock()

    def get(self, stored: bytes) -> LoadOnOpen | None:
        with self._turn:
            if (decoded := self._decoded.get(stored)) is not None:
                self._decoded.move_to_end(stored)
            return decoded

    def put(self, stored: bytes, decoded: LoadOnOpen) -> LoadOnOpen:
        with self._turn:
            if len(stored) <= _MOST and stored not in self._decoded:
                self._decoded[stored] = decoded
                self._bytes += len(stored)
            while self._bytes > _MOST:
                oldest, _ = self._decoded.popitem(last=False)
                self._bytes -= len(oldest)
        return decoded

    def __len__(self) -> int:
        return len(self._decoded)


_memory = _Memory()
