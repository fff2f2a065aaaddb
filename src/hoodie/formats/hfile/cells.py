"""Cells of an HFile, a row and its value, and the index of the blocks that they lie in.

Source: docs/format/metadata-table.md 2.3, 2.4 and 3.2; pinned by tests/vectors/hfile_cells.json.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFile
from hoodie.formats.avro.bytes import Pieces, offsets_of
from hoodie.formats.hfile.numbers import decode_vlong, encode_vlong

_LENGTHS = struct.Struct(">iih")  # of key, value and row
_ENTRY = struct.Struct(">qi")  # offset and size on disk of a block
#: After the row: no column family, the newest timestamp there is, and the type "put" of a cell, "maximum" of a
#: separator.
KEY_TAIL = b"\0\x7f" + b"\xff" * 7 + b"\x04"
_SEPARATOR_TAIL = KEY_TAIL[:-1] + b"\xff"


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells of one block.

    data    the block's bytes
    rows    the row of each, ascending as unsigned bytes
    starts  int64[n]: where each value begins in `data`
    ends    int64[n]: where it ends
    """

    data: memoryview
    rows: tuple[bytes, ...]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def values(self) -> list[bytes]:
        """The values as bytes."""
        return [bytes(self.data[start:end]) for start, end in zip(self.starts, self.ends, strict=True)]

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """Cells of several blocks, their values in one piece."""
        if len(parts) == 1:
            return parts[0]
        values = [value for part in parts for value in part.values()]
        bounds = np.cumsum([0, *map(len, values)], dtype=np.int64)
        rows = tuple(row for part in parts for row in part.rows)
        return cls(memoryview(b"".join(values)), rows, bounds[:-1], bounds[1:])

    def take(self, places: npt.NDArray[np.int64]) -> Cells:
        """Those at some places, which ascend."""
        rows = tuple(self.rows[place] for place in places.tolist())
        return Cells(self.data, rows, self.starts[places], self.ends[places])


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A block that the index points to, and a row that is not greater than its first, and greater than all before."""

    offset: int
    size: int
    row: bytes


def decode_cells(payload: memoryview, offset: int, path: str) -> Cells:
    """The cells of a data block. offset: of the block in its file, for errors. Raises CorruptFile"""
    # Each cell's lengths say where the next begins, so the only way is step by step.
    rows: list[bytes] = []
    starts: list[int] = []
    ends: list[int] = []
    at, limit, last, unpack = 0, len(payload), b"", _LENGTHS.unpack_from
    while at < limit:
        if limit - at < _LENGTHS.size:
            raise CorruptFile(path, f"{limit - at} bytes after the last cell of a block", offset)
        key, value, length = unpack(payload, at)
        row, start = at + _LENGTHS.size, at + 8 + key
        end = start + value
        if length < 0 or key < length + 2 or value < 0 or end >= limit:
            raise CorruptFile(path, f"a cell with a key of {key} and a value of {value} bytes", offset)
        if payload[end]:
            raise CorruptFile(path, "a cell of a transaction that is not over", offset)
        name = bytes(payload[row : row + length])
        if name < last:
            raise CorruptFile(path, f"row {name!r} comes after {last!r}", offset)
        last = name
        rows.append(name)
        starts.append(start)
        ends.append(end)
        at = end + 1
    return Cells(payload, tuple(rows), np.array(starts, np.int64), np.array(ends, np.int64))


def find_cells(payload: memoryview, rows: Sequence[bytes], offset: int, path: str) -> Cells:
    """Those cells of a data block that have one of some rows: each row is searched for, no other cell is looked at.

    rows    ascending, each once
    Raises  CorruptFile
    """
    first = int.from_bytes(payload[8:10], "big")
    if bytes(payload[10 + first : 10 + first + len(KEY_TAIL)]) != KEY_TAIL:  # cells of another form
        cells = decode_cells(payload, offset, path)
        chosen = frozenset(rows)
        return cells.take(np.array([at for at, row in enumerate(cells.rows) if row in chosen], np.int64))
    data, limit = bytes(payload), len(payload)
    names: list[bytes] = []
    starts: list[int] = []
    ends: list[int] = []
    for row in rows:
        name = struct.pack(">h", len(row)) + row + KEY_TAIL
        lengths = struct.pack(">i", len(name))
        at = data.find(name)
        while at >= 0:
            start = at + len(name)
            end = start + int.from_bytes(data[at - 4 : at], "big", signed=True)
            if at >= 8 and data[at - 8 : at - 4] == lengths and start <= end < limit:
                if data[end]:
                    raise CorruptFile(path, "a cell of a transaction that is not over", offset)
                names.append(row)
                starts.append(start)
                ends.append(end)
            at = data.find(name, start)
    return Cells(payload, tuple(names), np.array(starts, np.int64), np.array(ends, np.int64))


def row_of_key(key: bytes | memoryview, path: str) -> bytes:
    """The row in the key of a cell or of an index entry, in full or (of Hudi's own writer) without the rest."""
    length = int.from_bytes(key[:2], "big") if len(key) >= 2 else -1
    if not 0 <= length <= len(key) - 2:
        raise CorruptFile(path, f"an index key of {len(key)} bytes that says its row has {length}")
    return bytes(key[2 : 2 + length])


def cell_key(row: bytes) -> bytes:
    """The key of a cell."""
    return struct.pack(">h", len(row)) + row + KEY_TAIL


def separator(last: bytes, first: bytes) -> bytes:
    """The index key of a block whose first row is `first`, after one whose last row is `last`: a short row between
    them, which may be none of either."""
    at = next((i for i, (a, b) in enumerate(zip(last, first, strict=False)) if a != b), min(len(last), len(first)))
    if at < len(last) and at < len(first) and last[at] + 1 < first[at]:
        row = last[:at] + bytes([last[at] + 1])
    else:
        row = first[: at + 1]
    return struct.pack(">h", len(row)) + row + _SEPARATOR_TAIL


def decode_root_index(payload: memoryview, count: int, path: str, *, names: bool = False) -> list[IndexEntry]:
    """The entries of a root or meta index.

    count  how many the trailer says there are
    names  keys are bare names, as of meta blocks
    Raises CorruptFile
    """
    entries: list[IndexEntry] = []
    at = 0
    for _ in range(count):
        if at + _ENTRY.size > len(payload):
            raise CorruptFile(path, f"an index of {len(payload)} bytes, which should have {count} entries")
        block, size = _ENTRY.unpack_from(payload, at)
        length, at = decode_vlong(payload, at + _ENTRY.size, path)
        if at + length > len(payload):
            raise CorruptFile(path, f"an index entry with a key of {length} bytes")
        key = payload[at : at + length]
        entries.append(IndexEntry(block, size, bytes(key) if names else row_of_key(key, path)))
        at += length
    return entries if names else _ascending(entries, path)


def index_end(payload: memoryview, count: int, path: str) -> int:
    """How many bytes so many entries of a root index take."""
    at = 0
    for _ in range(count):
        length, at = decode_vlong(payload, at + _ENTRY.size, path)
        at += length
    return at


def decode_inner_index(payload: memoryview, path: str) -> list[IndexEntry]:
    """The entries of a block below the root index. Raises CorruptFile"""
    count = int.from_bytes(payload[:4], "big", signed=True) if len(payload) >= 4 else -1
    base = 4 + 4 * (count + 1)
    if count < 0 or base > len(payload):
        raise CorruptFile(path, f"an index block of {len(payload)} bytes that says it has {count} entries")
    places = np.frombuffer(payload, ">i4", count + 1, 4).astype(np.int64) + base
    if (np.diff(places) < _ENTRY.size).any() or (count and (places[0] != base or places[-1] > len(payload))):
        raise CorruptFile(path, "an index block whose entries lie outside of it")
    entries = []
    for start, end in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        block, size = _ENTRY.unpack_from(payload, start)
        entries.append(IndexEntry(block, size, row_of_key(payload[start + _ENTRY.size : end], path)))
    return _ascending(entries, path)


def encode_index_entry(offset: int, size: int, key: bytes) -> bytes:
    """An entry of a root or meta index."""
    return _ENTRY.pack(offset, size) + encode_vlong(len(key)) + key


def encode_cells(rows: pa.Array, values: pa.Array) -> pa.Array:
    """binary[n]: each cell's bytes.

    rows    binary[n], no nulls, each shorter than 32 KiB
    values  binary[n], no nulls
    """
    pieces = Pieces(len(rows))
    row_lengths = np.diff(offsets_of(rows)).astype(">i4")
    for lengths in (row_lengths + len(KEY_TAIL) + 2, np.diff(offsets_of(values))):
        pieces.matrix(lengths.astype(">i4").view(np.uint8).reshape(-1, 4))
    pieces.matrix(row_lengths.astype(">i2").view(np.uint8).reshape(-1, 2))
    pieces.binary(rows)
    pieces.matrix(np.broadcast_to(np.frombuffer(KEY_TAIL, np.uint8), (len(rows), len(KEY_TAIL))))
    pieces.binary(values)
    pieces.constant(0)
    return pieces.join()


def _ascending(entries: list[IndexEntry], path: str) -> list[IndexEntry]:
    for one, other in itertools.pairwise(entries):
        if other.row < one.row:
            raise CorruptFile(path, f"an index in which {other.row!r} comes after {one.row!r}")
    return entries
