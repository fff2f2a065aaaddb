"""Avro's primitive encodings, a column at a time: cursors over bytes for reading, pieces joined row by row for writing.

`Cells` holds the bytes of many rows and reads one value at each of a vector of cursors. `Pieces` collects, for many
rows at once, the pieces that each row's bytes are made of. Neither loops over rows in Python.
"""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Cursors: TypeAlias = NDArray[np.int64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

_PAD = 16  # zero bytes after the data: a cursor that ran out reads zeros, which end every varint
_TOO_LONG = "a varint of more than 10 bytes"
_TOO_FAR = "a value reaches past the end of the data"


class Malformed(ValueError):
    """Bytes that are not what the schema says. `at` counts from the first byte of the cells."""

    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem, at)
        self.problem, self.at = problem, at


def _u64(value: int) -> np.uint64:
    return np.uint64(value)


#: Steps that move the 7-bit groups of a word together: bits that stay, bits that move, by how many.
_SQUEEZE = (
    (_u64(0x007F007F007F007F), _u64(0x7F007F007F007F00), _u64(1)),
    (_u64(0x00003FFF00003FFF), _u64(0x3FFF00003FFF0000), _u64(2)),
    (_u64(0x000000000FFFFFFF), _u64(0x0FFFFFFF00000000), _u64(4)),
)


def fail_where(bad: Flags, problem: str, at: Cursors) -> None:
    """Raise Malformed at the first cursor that is marked bad, if there is one."""
    if bad.any():
        raise Malformed(problem, int(at[int(bad.argmax())]))


class Cells:
    """The bytes of many rows. No read leaves them, whatever the cursors; a wrong value raises Malformed.

    A method takes cursors (int64[n]) and gives values and the cursors after them. Cursors only grow, so a row whose
    last cursor is its end never left the row.
    """

    __slots__ = ("data", "raw", "size", "words")

    def __init__(self, data: bytes | memoryview) -> None:
        self.size = len(data)
        self.data: NDArray[np.uint8] = np.zeros(self.size + _PAD, np.uint8)
        self.data[: self.size] = np.frombuffer(data, np.uint8)
        # Each byte's offset as an (unaligned) word of 8 bytes.
        self.words: NDArray[np.uint64] = np.ndarray((self.size + 1,), "<u8", self.data, strides=(1,))
        self.raw = self.data.data

    def bytes_at(self, at: Cursors) -> NDArray[np.uint8]:
        return self.data.take(at, mode="clip")

    def varints(self, at: Cursors) -> tuple[Ints, Cursors]:
        """Zig-zag varints of up to 10 bytes."""
        first = self.bytes_at(at)
        if not len(first) or first.max() < 0x80:
            small = first.astype(np.int64)
            return (small >> 1) ^ -(small & 1), at + 1
        # All 8 bytes at once: the lowest clear top bit ends the number, then the 7-bit groups are moved together.
        word = self.words[np.minimum(at, self.size)]
        ends = ~word & _u64(0x8080808080808080)
        lowest = ends & (~ends + _u64(1))
        length = (((lowest >> _u64(7)) * _u64(0x0102030405060708)) >> _u64(56)).astype(np.int64)
        word &= (lowest - _u64(1)) & _u64(0x7F7F7F7F7F7F7F7F)
        for keep, move, shift in _SQUEEZE:
            word = (word & keep) | ((word & move) >> shift)
        long = np.flatnonzero(lowest == 0)
        if len(long):
            ninth, tenth = self.bytes_at(at[long] + 8), self.bytes_at(at[long] + 9)
            more = ninth >= 0x80
            fail_where(more & (tenth > 1), _TOO_LONG, at[long])
            word[long] |= (ninth & 0x7F).astype(np.uint64) << _u64(56)
            word[long] |= np.where(more, tenth, 0).astype(np.uint64) << _u64(63)
            length[long] = 9 + more
        value = (word >> _u64(1)).view(np.int64) ^ -(word & _u64(1)).view(np.int64)
        return value, at + length

    def spans(self, at: Cursors) -> tuple[Cursors, Cursors]:
        """Length-prefixed bytes: where each begins and ends."""
        lengths, begin = self.varints(at)
        fail_where((lengths < 0) | (lengths > self.size), "a length is negative or larger than the data", at)
        end = begin + lengths
        fail_where(end > self.size, _TOO_FAR, at)
        return begin, end

    def gather(self, begin: Cursors, end: Cursors) -> pa.Array:
        """binary[n]: the bytes of each span. Spans ascend and do not overlap, as in rows that keep to themselves."""
        n = len(begin)
        if n == 0:
            return pa.array([], pa.binary())
        fail_where(end[:-1] > begin[1:], "a value reaches into the next row", begin[:-1])
        # Spans and the gaps between them make one binary array over the data as it lies; every other element of it
        # is a span, and Arrow copies those out.
        offsets = np.empty(2 * n, np.int32)
        offsets[0::2], offsets[1::2] = begin, end
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        lying = pa.Array.from_buffers(pa.binary(), 2 * n - 1, buffers)
        return lying.take(pa.array(np.arange(0, 2 * n, 2, dtype=np.int32)))

    def fixed(self, at: Cursors, width: int) -> tuple[NDArray[np.uint8], Cursors]:
        """uint8[n, width]: as many bytes at each cursor."""
        end = at + width
        fail_where(end > self.size, _TOO_FAR, at)
        if not len(at):
            return np.empty((0, width), np.uint8), end
        runs = np.ndarray((self.size - width + 1,), f"V{width}", self.data, strides=(1,))
        return runs[at].view(np.uint8).reshape(len(at), width), end

    def varint(self, at: int) -> tuple[int, int]:
        """One varint, for the walks that cannot be shared among rows."""
        value = shift = 0
        while True:
            if at >= self.size:
                raise Malformed(_TOO_FAR, self.size)
            byte = self.raw[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 64:
                    raise Malformed(_TOO_LONG, at - 1)
                return (value >> 1) ^ -(value & 1), at
            shift += 7
            if shift > 63:
                raise Malformed(_TOO_LONG, at - 1)

    def forward(self, at: int, length: int) -> int:
        """The cursor `length` bytes on."""
        if not 0 <= length <= self.size - at:
            raise Malformed("a length is negative or larger than the data", at)
        return at + length


def from_numpy(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """The values, which have the width of `kind`, as an Arrow array without nulls. No copy."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def to_numpy(array: pa.Array, dtype: str) -> NDArray[Any]:
    """The values of a fixed-width array without nulls, read as `dtype`. No copy."""
    width = np.dtype(dtype).itemsize
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * width)


def offsets_of(array: pa.Array) -> NDArray[np.int32]:
    """int32[n + 1]: where each value of a binary array begins in its data buffer."""
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)


def regroup(items: pa.Array, offsets: NDArray[np.integer[Any]]) -> pa.Array:
    """binary[n]: row i is the concatenation of items offsets[i] up to offsets[i + 1]. No copy of the data."""
    joined = offsets_of(items)[offsets]
    data = items.buffers()[2] if len(items) else None
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(joined), data or pa.py_buffer(b"")])


class Pieces:
    """What n rows are made of, piece after piece; `join` makes binary[n] of them."""

    __slots__ = ("_columns", "_parts", "rows")

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._columns: list[tuple[NDArray[np.uint8], Flags | None]] = []  # uint8[n] or [n, w], and which bytes count
        self._parts: list[pa.Array] = []

    def constant(self, byte: int) -> None:
        self._columns.append((np.full(self.rows, byte, np.uint8), None))

    def same(self, value: bytes) -> None:
        """The same bytes in each row."""
        self._columns.append((np.broadcast_to(np.frombuffer(value, np.uint8), (self.rows, len(value))), None))

    def matrix(self, values: NDArray[np.uint8], present: Flags | None = None) -> None:
        """uint8[n] or uint8[n, w], of which only the bytes marked present count."""
        self._columns.append((values, present))

    def varints(self, values: Ints, present: Flags | None = None) -> None:
        """Zig-zag varints; none where a row is not `present`."""
        zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
        most = int(zigzag.max()) if len(zigzag) else 0
        if most < 0x80:
            self._columns.append((zigzag.astype(np.uint8), present))
            return
        shift = 0
        here = present
        while True:
            rest = zigzag >> _u64(shift + 7) if shift < 63 else np.zeros_like(zigzag)
            more = rest != 0
            group = ((zigzag >> _u64(shift)) & _u64(0x7F)).astype(np.uint8) | (more.view(np.uint8) << np.uint8(7))
            self._columns.append((group, here))
            shift += 7
            if most >> shift == 0:
                return
            here = more if present is None else more & present

    def binary(self, values: pa.Array) -> None:
        """binary[n] without nulls."""
        self._flush()
        self._parts.append(values)

    def join(self) -> pa.Array:
        self._flush()
        if not self._parts:
            return regroup(pa.array([], pa.binary()), np.zeros(self.rows + 1, np.int32))
        return self._parts[0] if len(self._parts) == 1 else pc.binary_join_element_wise(*self._parts, b"")

    def join_framed(self) -> pa.Array:
        """As `join`, each row after its length as a big-endian int32."""
        self._flush()
        lengths = np.zeros(self.rows, np.int64)
        for piece in self._parts:
            lengths += np.diff(offsets_of(piece))
        self.matrix(lengths.astype(">i4").view(np.uint8).reshape(-1, 4))
        self._flush()
        return pc.binary_join_element_wise(self._parts[-1], *self._parts[:-1], b"")

    def _flush(self) -> None:
        if not self._columns:
            return
        columns = [(v if v.ndim == 2 else v[:, None], present) for v, present in self._columns]
        cells = columns[0][0] if len(columns) == 1 else np.concatenate([values for values, _ in columns], axis=1)
        if all(present is None for _, present in columns):
            offsets = np.arange(self.rows + 1, dtype=np.int32) * np.int32(cells.shape[1])
            data = np.ascontiguousarray(cells).reshape(-1)
        else:
            counts, at = np.ones(cells.shape, np.bool_), 0
            for values, present in columns:
                if present is not None:
                    counts[:, at : at + values.shape[1]] = present[:, None] if present.ndim == 1 else present
                at += values.shape[1]
            offsets = np.zeros(self.rows + 1, np.int32)
            np.cumsum(np.count_nonzero(counts, axis=1), out=offsets[1:])
            data = cells[counts]
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        self._parts.append(pa.Array.from_buffers(pa.binary(), self.rows, buffers))
        self._columns = []
