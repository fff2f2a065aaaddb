"""xxHash with 32 bits over whole columns of text.

Source: the specification of XXH32 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.formats.java.strings import Bytes, chunks_of, raw_strings

_Hashes = npt.NDArray[np.uint32]
_Indices = npt.NDArray[np.int64]

_P1, _P2, _P3, _P4, _P5 = (np.uint32(n) for n in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))
#: Keys hashed together: the arrays of one block stay in a core's cache.
_BLOCK = 16384


def xxh32(texts: pa.Array | pa.ChunkedArray, seed: int = 0) -> _Hashes:
    """The hash of each text's UTF-8 bytes.

    texts    string[n], no nulls
    returns  uint32[n]
    Raises   InvalidInput on a null
    """
    hashes = [np.empty(0, np.uint32)]
    for chunk in chunks_of(texts):
        data, bounds = raw_strings(chunk)
        # Words are read at any byte: three more bytes let the last ones be.
        padded = np.concatenate([data[bounds[0] : bounds[-1]], np.zeros(4, np.uint8)])
        starts, lengths = bounds[:-1] - bounds[0], np.diff(bounds)
        for first in range(0, len(starts), _BLOCK):
            block = slice(first, first + _BLOCK)
            hashes.append(_hash(padded, starts[block], lengths[block], np.uint32(seed)))
    return np.concatenate(hashes)


def _hash(data: Bytes, starts: _Indices, lengths: _Indices, seed: np.uint32) -> _Hashes:
    words = np.ndarray((len(data) - 3,), "<u4", buffer=data.data, strides=(1,))  # a word at each byte
    with np.errstate(over="ignore"):  # arithmetic is modulo 2**32
        hashes = np.full(len(starts), seed + _P5, np.uint32)
        offsets = np.zeros(len(starts), np.int64)
        long = np.flatnonzero(lengths >= 16)
        if len(long):
            hashes[long] = _stripes(words, starts[long], lengths[long], seed)
            offsets[long] = lengths[long] & ~15
        hashes += lengths.astype(np.uint32)
        for _ in range(3):
            rows = np.flatnonzero(lengths - offsets >= 4)
            hashes[rows] = _rotated(hashes[rows] + words[starts[rows] + offsets[rows]] * _P3, 17) * _P4
            offsets[rows] += 4
        for _ in range(3):
            rows = np.flatnonzero(lengths > offsets)
            hashes[rows] = _rotated(hashes[rows] + data[starts[rows] + offsets[rows]].astype(np.uint32) * _P5, 11) * _P1
            offsets[rows] += 1
        hashes ^= hashes >> np.uint32(15)
        hashes *= _P2
        hashes ^= hashes >> np.uint32(13)
        hashes *= _P3
        hashes ^= hashes >> np.uint32(16)
    return hashes


def _stripes(words: _Hashes, starts: _Indices, lengths: _Indices, seed: np.uint32) -> _Hashes:
    """The four lanes over all whole stripes of 16 bytes, folded into one: uint32[n], of texts of 16 bytes or more."""
    lanes = [np.full(len(starts), first, np.uint32) for first in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)]
    for stripe in range(int(lengths.max()) // 16):
        rows = np.flatnonzero(lengths >= 16 * (stripe + 1))
        for number, lane in enumerate(lanes):
            lane[rows] = _rotated(lane[rows] + words[starts[rows] + 16 * stripe + 4 * number] * _P2, 13) * _P1
    first, second, third, fourth = lanes
    return _rotated(first, 1) + _rotated(second, 7) + _rotated(third, 12) + _rotated(fourth, 18)


def _rotated(values: _Hashes, bits: int) -> _Hashes:
    turned: _Hashes = (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
    return turned
