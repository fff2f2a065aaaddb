"""CRC-32C, the checksum of HFile blocks, of many chunks at once.

A checksum is linear: that of zeros before some bytes is that of the bytes. So each chunk is cut into lanes of a few
bytes, all lanes go on by one byte in one step, and the lanes of a chunk are put together two by two.

Source: docs/format/metadata-table.md 2.1 and 3.1; pinned by tests/vectors/tiny_hfiles.json.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78  # reflected
_LANES = 128  # of a chunk; a power of two
_LEAST = 4  # bytes that lanes can be cut of
_SPAN = 256  # bytes whose places have tables of their own; of shorter pieces a loop over bytes is faster
_LANES_PAY = 2048  # bytes of all pieces: fewer are taken one by one

_Words = npt.NDArray[np.uint32]


def crc32c_chunks(data: bytes | memoryview, chunk: int) -> list[int]:
    """The CRC-32C of each started chunk of `chunk` bytes."""
    (sums,) = crc32c_chunks_of([data], chunk)
    return sums


def crc32c_chunks_of(many: Sequence[bytes | memoryview], chunk: int) -> list[list[int]]:
    """The CRC-32C of each started chunk of each of some pieces of data. Many at once take little longer than one."""
    pieces = [memoryview(data)[at : at + chunk] for data in many for at in range(0, len(data), chunk)]
    least = _LEAST if sum(map(len, pieces)) >= _LANES_PAY else _LANES_PAY
    long = [piece for piece in pieces if len(piece) >= least]
    sums = iter(_sums(long) if long else ())
    every = iter([next(sums) if len(piece) >= least else _sum(piece) for piece in pieces])
    return [[next(every) for _ in range(0, len(data), chunk)] for data in many]


def _sum(piece: memoryview) -> int:
    """The checksum of one short piece: what each byte comes to, by its distance from the end of its span, and spans put
    together."""
    if len(piece) < _SPAN:
        return _by_bytes(piece)
    padded = np.zeros(_SPAN << (-(-len(piece) // _SPAN) - 1).bit_length(), np.uint8)
    padded[-len(piece) :] = np.frombuffer(piece, np.uint8)
    start = len(padded) - len(piece)
    padded[start : start + _LEAST] ^= 0xFF  # the checksum begins with all ones
    places = padded.reshape(-1, _SPAN) + np.arange(_SPAN) * 256
    return int(_joined(np.bitwise_xor.reduce(_by_place().take(places), axis=1)[None, :], _SPAN)[0] ^ 0xFFFFFFFF)


def _joined(crc: _Words, length: int) -> _Words:
    """Checksums of rows of lanes, a power of two of `length` bytes each."""
    while crc.shape[1] > 1:
        crc = _moved(crc[:, 0::2], length) ^ crc[:, 1::2]
        length *= 2
    return crc[:, 0]


@cache
def _by_place() -> _Words:
    """uint32[_SPAN * 256]: what a byte comes to that so many bytes of its span follow, the first of it first."""
    every = [_table()]
    for _ in range(_SPAN - 1):
        last = every[-1]
        every.append(_table()[last & np.uint32(0xFF)] ^ (last >> np.uint32(8)))
    return np.concatenate(every[::-1])


def _by_bytes(piece: memoryview) -> int:
    table, crc = _numbers(), 0xFFFFFFFF
    for byte in piece:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return int(crc ^ 0xFFFFFFFF)


def _sums(pieces: Sequence[memoryview]) -> list[int]:
    """The checksums of pieces of `_LEAST` bytes and more. Zeros before the bytes do not count, so that all get the
    length of the longest one."""
    lane = -(-max(map(len, pieces)) // _LANES)
    padded = np.zeros((len(pieces), lane * _LANES), np.uint8)
    for row, piece in zip(padded, pieces, strict=True):
        start = len(row) - len(piece)
        row[start:] = np.frombuffer(piece, np.uint8)
        row[start : start + _LEAST] ^= 0xFF  # the checksum begins with all ones
    lanes = np.ascontiguousarray(padded.reshape(len(pieces) * _LANES, lane).T)
    table = _table()
    crc: _Words = np.zeros(len(pieces) * _LANES, np.uint32)
    for column in lanes:
        crc = table[(crc ^ column) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    sums: list[int] = (_joined(crc.reshape(len(pieces), _LANES), lane) ^ np.uint32(0xFFFFFFFF)).tolist()
    return sums


def _moved(crc: _Words, zeros: int) -> _Words:
    """Checksums after so many zero bytes more."""
    tables = _tables_of_zeros(zeros)
    byte = np.uint32(0xFF)
    moved: _Words = (
        tables[0][crc & byte]
        ^ tables[1][(crc >> np.uint32(8)) & byte]
        ^ tables[2][(crc >> np.uint32(16)) & byte]
        ^ tables[3][crc >> np.uint32(24)]
    )
    return moved


@cache
def _numbers() -> list[int]:
    numbers: list[int] = _table().tolist()
    return numbers


@cache
def _table() -> _Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & np.uint32(1), (table >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
    return table.astype(np.uint32)


@cache
def _tables_of_zeros(zeros: int) -> _Words:
    """uint32[4, 256]: what a checksum's byte becomes by so many zero bytes; `_moved` by tables of fewer."""
    every = (np.arange(256, dtype=np.uint32)[None, :] << (np.arange(4, dtype=np.uint32) * 8)[:, None]).astype(np.uint32)
    if zeros == 1:
        one: _Words = (_table()[every & np.uint32(0xFF)] ^ (every >> np.uint32(8))).astype(np.uint32)
        return one
    half: _Words = _moved(_moved(every, zeros // 2), zeros // 2)
    return _moved(half, 1) if zeros % 2 else half
