"""Avro decimals, big-endian two's complement, from and to Arrow's decimal128."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hoodie.errors import SchemaMismatch
from hoodie.formats.avro.bytes import Cells, Cursors, Malformed, Pieces, fail_where, from_numpy, to_numpy
from hoodie.formats.avro.nodes import FixedWidth, Prefixed, fitting


class FixedDecimal(FixedWidth):
    """A decimal as big-endian two's complement of a fixed size."""

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        values, end = cells.fixed(at, self.bytes)
        return _decimals(values, self.arrow, at), end

    def write(self, values: pa.Array, out: Pieces) -> None:
        big = _big_endian(fitting(values, self.arrow))
        if self.bytes > 16:
            sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
            big = np.hstack((np.repeat(sign, self.bytes - 16, axis=1), big))
        elif bool(_redundant(big)[:, : 16 - self.bytes].all()):
            big = big[:, 16 - self.bytes :]
        else:
            raise SchemaMismatch(f"a decimal that does not fit the {self.bytes} bytes of its fixed type")
        out.matrix(big)


class BytesDecimal(Prefixed):
    """A decimal as big-endian two's complement of as few bytes as it needs."""

    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow, self.least = arrow, 2

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        begin, end = cells.spans(at)
        length = end - begin
        fail_where((length < 1) | (length > 16), "a decimal of no bytes, or more than 16", at)
        sign = np.where(cells.bytes_at(begin) >= 0x80, 0xFF, 0).astype(np.uint8)
        big = np.empty((len(at), 16), np.uint8)
        for place in range(16):
            big[:, 15 - place] = np.where(place < length, cells.bytes_at(np.maximum(end - 1 - place, begin)), sign)
        return _decimals(big, self.arrow, at), end

    def write(self, values: pa.Array, out: Pieces) -> None:
        big = _big_endian(fitting(values, self.arrow))
        needed = ~_redundant(big)
        out.varints(np.count_nonzero(needed, axis=1))
        out.matrix(big, needed)


def _decimals(big: NDArray[np.uint8], kind: pa.DataType, at: Cursors) -> pa.Array:
    """decimal128[n] of uint8[n, width], big-endian two's complement."""
    if not len(big):
        return pa.array([], kind)
    width = big.shape[1]
    sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    little = np.repeat(sign, 16, axis=1)
    tail = min(width, 16)
    little[:, :tail] = big[:, ::-1][:, :tail]
    if width > 16:
        fits = (big[:, : width - 16] == sign).all(axis=1) & ((big[:, width - 16] >= 0x80) == (sign[:, 0] > 0))
        fail_where(~fits, "a decimal of more than 16 bytes", at)
    values = from_numpy(little, kind)
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Malformed(f"a decimal that does not fit {kind}", int(at[0])) from error
    return values


def _big_endian(values: pa.Array) -> NDArray[np.uint8]:
    """uint8[n, 16] of decimal128[n]."""
    return to_numpy(values, "V16").view(np.uint8).reshape(-1, 16)[:, ::-1]


def _redundant(big: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """bool[n, 16]: the leading bytes that only repeat the sign of the byte after them. The last byte never does."""
    fill = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    repeats = np.zeros(big.shape, np.bool_)
    repeats[:, :-1] = (big[:, :-1] == fill) & ((big[:, 1:] ^ fill) < 0x80)
    result: NDArray[np.bool_] = np.logical_and.accumulate(repeats, axis=1)
    return result
