"""Keys among which others are looked for again and again: a sorted array of their hashes, 12 bytes a key.

Arrow builds a table of all keys for each such look, which for many keys takes longer than the look itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.formats.parquet.murmur import Indices, KeyHashes

Hashes64 = npt.NDArray[np.uint64]

#: So many keys are found by their hashes sooner than by a table that is built anew for each batch of stored rows.
MANY_KEYS = 1 << 17
_MOST_SHORT = 2**32  # keys whose positions fit in 32 bits


class HashedKeys:
    """The hashes of keys, sorted, each with the position of its key."""

    def __init__(self, parts: Sequence[Hashes64]) -> None:
        """parts: uint64[...] hashes of the keys one after another. All in a part are less than all in the next one"""
        count = sum(map(len, parts))
        self._hashes = np.empty(count, np.uint64)
        self._at = np.empty(count, np.uint32 if count <= _MOST_SHORT else np.int64)
        start = 0
        for part in parts:
            order, here = np.argsort(part, kind="stable"), slice(start, start + len(part))
            self._hashes[here], self._at[here] = part[order], order + start
            start += len(part)

    @classmethod
    def of(cls, keys: pa.Array | pa.ChunkedArray) -> HashedKeys:
        """Raises InvalidInput on a null or empty key."""
        return cls([key_hashes(keys)])

    @property
    def different(self) -> int:
        """How many different hashes there are."""
        return len(self._hashes) and 1 + int(np.count_nonzero(np.diff(self._hashes)))

    def find(self, keys: pa.Array | pa.ChunkedArray) -> Indices:
        """int64[...], rising: where these keys are among those that were hashed, and some others of equal hash.

        keys  string[n]; nulls and empty ones are nowhere
        """
        if not len(self._hashes):
            return np.empty(0, np.int64)
        hashes = np.sort(key_hashes(keys.filter(pc.greater(pc.binary_length(keys), 0))))
        hashes = hashes[np.diff(hashes, prepend=~hashes[:1]) != 0]
        starts = np.searchsorted(self._hashes, hashes)
        hit = self._hashes[np.minimum(starts, len(self._hashes) - 1)] == hashes
        starts, ends = starts[hit], np.searchsorted(self._hashes, hashes[hit], side="right")
        counts = ends - starts
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.sort(self._at[np.repeat(starts, counts) + within]).astype(np.int64, copy=False)


def all_different(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Whether no key occurs twice; False also where that is in doubt.

    keys  string[n], nulls and empty ones among them
    """
    if pc.any(pc.equal(pc.fill_null(pc.binary_length(keys), 0), 0)).as_py():
        return False
    hashes = key_hashes(keys)
    order = np.argsort(hashes, kind="stable")
    alike = np.flatnonzero(np.diff(hashes[order]) == 0)
    doubtful = keys.take(pa.array(order[np.union1d(alike, alike + 1)]))
    return bool(pc.count_distinct(doubtful).as_py() == len(doubtful))


def key_hashes(keys: pa.Array | pa.ChunkedArray) -> Hashes64:
    """uint64[n]. Raises InvalidInput on a null or empty key."""
    first = KeyHashes.of(keys).first
    hashes: Hashes64 = (first[0].astype(np.uint64) << np.uint64(32)) | first[1]
    return hashes
