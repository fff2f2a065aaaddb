"""Java's hash codes of strings and of lists of strings, over whole columns.

Source: docs/format/indexing-and-write-path.md 4; pinned by tests/vectors/bucket_index.json.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.formats.java.strings import raw_strings

Hashes = npt.NDArray[np.int32]
_UInts = npt.NDArray[np.uint32]


def string_hashes(keys: pa.Array) -> Hashes:
    """`String.hashCode`: h = 31 * h + unit over the UTF-16 units, in 32 bits.

    keys     string[n], no nulls
    returns  int32[n]
    """
    text, bounds = raw_strings(keys)
    first = bounds[0] if len(bounds) else 0
    text, bounds = text[first : bounds[-1]], bounds - first
    if not len(text) or not (text & 0x80).any():
        return _polynomials(text.astype(np.uint32), bounds)
    # Bytes that begin a character; those of four bytes are two units.
    units = ((text & 0xC0) != 0x80).astype(np.int64) + (text >= 0xF0)
    before = np.concatenate([[0], np.cumsum(units)])
    utf16 = np.frombuffer(text.tobytes().decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass"), "<u2")
    return _polynomials(utf16.astype(np.uint32), before[bounds])


def list_hashes(elements: Hashes, bounds: npt.NDArray[np.int64]) -> Hashes:
    """`List.hashCode`: h = 1, then h = 31 * h + element hash.

    elements  int32[e], hashes of the elements of all lists; a null's is 0
    bounds    int64[n + 1], where each list begins and ends
    """
    lengths = np.diff(bounds)
    powers = _powers(int(lengths.max(initial=0)) + 1)
    return (_polynomials(elements.view(np.uint32), bounds).view(np.uint32) + powers[lengths]).view(np.int32)


def _polynomials(values: _UInts, bounds: npt.NDArray[np.int64]) -> Hashes:
    """Per stretch the sum of value i times 31 to the power of the number of values after it, modulo 2**32."""
    lengths = np.diff(bounds)
    sums = np.zeros(len(lengths), np.uint32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        after = np.repeat(bounds[1:], lengths) - 1 - np.arange(bounds[0], bounds[-1])
        weighted = values[bounds[0] : bounds[-1]] * _powers(int(lengths.max()))[after]
        sums[filled] = np.add.reduceat(weighted, bounds[:-1][filled] - bounds[0], dtype=np.uint32)
    return sums.view(np.int32)


def _powers(count: int) -> _UInts:
    powers: _UInts = np.multiply.accumulate(
        np.concatenate([[1], np.full(count, 31)]).astype(np.uint32), dtype=np.uint32
    )
    return powers
