"""Cells of an HFile: a row and its value each.

Source: docs/format/metadata-table.md 2.3 and 3.2; pinned by tests/vectors/hfile_cells.json.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFile
from hoodie.formats.avro.bytes import Pieces, offsets_of

_LENGTHS = struct.Struct(">iih")  # of key, value and row
#: After the row: no column family, the newest timestamp there is, and the type "put".
KEY_TAIL = b"\0\x7f" + b"\xff" * 7 + b"\x04"


@dataclass(frozen=True, slots=True, eq=False)
class HFileCells:
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
    def joined(cls, parts: Sequence[HFileCells]) -> HFileCells:
        """Cells of several blocks, whose bytes are put together."""
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(part.data) for part in parts)], dtype=np.int64)[:-1]
        starts, ends = (
            np.concatenate([getattr(part, name) + shift for part, shift in zip(parts, shifts, strict=True)])
            for name in ("starts", "ends")
        )
        rows = tuple(chain.from_iterable(part.rows for part in parts))
        return cls(memoryview(b"".join(part.data for part in parts)), rows, starts, ends)

    @classmethod
    def of(cls, pairs: Sequence[tuple[bytes, bytes]]) -> HFileCells:
        """Cells of rows and values."""
        bounds = np.zeros(len(pairs) + 1, np.int64)
        np.cumsum(np.fromiter((len(value) for _, value in pairs), np.int64, len(pairs)), out=bounds[1:])
        data = b"".join([value for _, value in pairs])
        return cls(memoryview(data), tuple([row for row, _ in pairs]), bounds[:-1], bounds[1:])

    def take(self, places: npt.NDArray[np.int64]) -> HFileCells:
        """Those at some places, which ascend."""
        rows = tuple(self.rows[place] for place in places.tolist())
        return HFileCells(self.data, rows, self.starts[places], self.ends[places])


def decode_cells(payload: memoryview, offset: int, path: str) -> HFileCells:
    """The cells of a data block. offset: of the block in its file, for errors. Raises CorruptFile"""
    # Each cell's lengths say where the next begins, so the only way is step by step.
    data, unpack = bytes(payload), _LENGTHS.unpack_from
    names: list[int] = []  # where each row begins, and where it ends
    stops: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    at, limit = 0, len(data)
    try:
        while at < limit:
            key, value, length = unpack(data, at)
            start = at + 8 + key
            end = start + value
            if length < 0 or key < length + 2 or value < 0 or end >= limit:
                raise CorruptFile(path, f"a cell with a key of {key} and a value of {value} bytes", offset)
            names.append(at + 10)
            stops.append(at + 10 + length)
            starts.append(start)
            ends.append(end)
            at = end + 1
    except struct.error as error:
        raise CorruptFile(path, f"{limit - at} bytes after the last cell of a block", offset) from error
    places = np.array(ends, np.int64)
    if np.frombuffer(data, np.uint8)[places].any():
        raise CorruptFile(path, "a cell of a transaction that is not over", offset)
    rows = [data[begin:stop] for begin, stop in zip(names, stops, strict=True)]
    if sorted(rows) != rows:  # cheap of rows that are sorted
        last, name = next(pair for pair in pairwise(rows) if pair[1] < pair[0])
        raise CorruptFile(path, f"row {name!r} comes after {last!r}", offset)
    return HFileCells(payload, tuple(rows), np.array(starts, np.int64), places)


def find_cells(payload: memoryview, rows: Sequence[bytes], offset: int, path: str) -> list[tuple[bytes, bytes]]:
    """Row and value of those cells of a data block that have one of some rows: each row is searched for, no other cell
    is looked at.

    rows    ascending, each once
    Raises  CorruptFile
    """
    first = int.from_bytes(payload[8:10], "big")
    if payload[10 + first : 10 + first + len(KEY_TAIL)] != KEY_TAIL:  # cells of another form
        cells = decode_cells(payload, offset, path)
        chosen = frozenset(rows)
        return [pair for pair in zip(cells.rows, cells.values(), strict=True) if pair[0] in chosen]
    data, limit = bytes(payload), len(payload)
    pairs: list[tuple[bytes, bytes]] = []
    for row in rows:
        name = len(row).to_bytes(2, "big") + row + KEY_TAIL
        length = len(name)
        lengths = length.to_bytes(4, "big")
        at = data.find(name)
        while at >= 0:
            start = at + length
            end = start + int.from_bytes(data[at - 4 : at], "big", signed=True)
            if at >= 8 and data[at - 8 : at - 4] == lengths and start <= end < limit:
                if data[end]:
                    raise CorruptFile(path, "a cell of a transaction that is not over", offset)
                pairs.append((row, data[start:end]))
                if not data.startswith(name, end + 9):  # rows ascend: others of its row would come right behind
                    break
                at = end + 9
            else:
                at = data.find(name, start)
    return pairs


def cell_key(row: bytes) -> bytes:
    """The key of a cell."""
    return struct.pack(">h", len(row)) + row + KEY_TAIL


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
