"""Which base files may hold which keys of a batch, and which do: key ranges, bloom filters, exact look-up.

For the files of one partition, or with a global index for all files of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.formats.java.strings import highest_groups, java_order, utf8_order
from hoodie.formats.parquet.bloom import BloomFilter, survivors
from hoodie.formats.parquet.murmur import Indices, KeyHashes

#: Keys that are compared with a file's bounds before all are.
_SAMPLE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStats:
    """What a look-up cost. Counts of pairs (key, base file) unless said otherwise; `+` adds look-ups up.

    candidates = pruned_by_range + pruned_by_filter + checked, and checked = false_positives + hits.
    """

    files: int = 0  # base files of the partitions looked at: the candidates before pruning
    files_pruned_by_range: int = 0  # files whose key range holds no key of the batch
    files_pruned_by_filter: int = 0  # files whose bloom filter rules out all keys that their range lets pass
    files_read: int = 0  # files whose key column was read: the rest
    candidates: int = 0  # pairs that the look-up had to decide on
    pruned_by_range: int = 0
    pruned_by_filter: int = 0
    checked: int = 0  # looked up in the file's key column
    false_positives: int = 0  # checked and not in the file
    hits: int = 0
    seconds: float = 0.0  # wall time of the look-up as a whole, of a part 0

    def __add__(self, other: IndexStats) -> IndexStats:
        return IndexStats(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


def prune_by_range(
    min_keys: Sequence[str | None] | pa.Array, max_keys: Sequence[str | None] | pa.Array, keys: pa.Array
) -> Iterator[tuple[int, Indices]]:
    """The files whose key range holds any of the keys, each with those keys.

    min_keys, max_keys  string[f], the footers' bounds; None in either: the file may hold any key
    keys                string[n], no nulls
    yields              file index and int64[c] indices into keys, c > 0; files in order. Arrays may be views of one
                        another: do not write into them
    Raises              InvalidInput on a null key

    Keys are sorted once; a file costs two binary searches, and memory is bounded by the batch, not by the pairs.
    """
    if not len(keys):
        return
    bounds = [
        pa.array(values, pa.string()) if not isinstance(values, pa.Array) else values for values in (min_keys, max_keys)
    ]
    has_bounds = np.asarray(pc.and_(pc.is_valid(bounds[0]), pc.is_valid(bounds[1])), np.bool_)
    lowest, highest = (bound.filter(pa.array(has_bounds)) for bound in bounds)
    groups = [highest_groups(column) for column in (keys, lowest, highest)]
    ranges = [_Ranges.of(utf8_order(keys), utf8_order(lowest), utf8_order(highest))]
    if any(private for private, _ in groups) and any(supplementary for _, supplementary in groups):
        # Hudi's Avro writer takes the bounds in Java's order, its row writer in that of code points, and the footer
        # does not say which: a key within either of the two ranges is a candidate.
        ranges.append(_Ranges.of(java_order(keys), java_order(lowest), java_order(highest)))
    everything = np.arange(len(keys))
    bounded = np.cumsum(has_bounds) - 1
    for file in range(len(has_bounds)):
        if not has_bounds[file]:
            yield file, everything
            continue
        within = [key_range.keys_of(int(bounded[file])) for key_range in ranges]
        candidates = within[0] if len(within) == 1 else np.union1d(within[0], within[1])
        if len(candidates):
            yield file, candidates


@dataclass(frozen=True, slots=True, eq=False)
class KeySpan:
    """Keys that are compared with the key ranges of files one by one, as these are opened: without sorting them."""

    keys: pa.Array
    low: str
    high: str

    @classmethod
    def of(cls, keys: pa.Array) -> KeySpan | None:
        """keys: string[n], no nulls. None where their order is in doubt (see `prune_by_range`), or there are none."""
        if not len(keys) or any(highest_groups(keys)):
            return None
        ends = pc.min_max(keys)
        return cls(keys, ends["min"].as_py(), ends["max"].as_py())

    def within(self, lowest: str, highest: str) -> Indices | None:
        """The keys that may be within a file's bounds, ascending; None where that is most of them, or in doubt."""
        if any(highest_groups(pa.array([lowest, highest]))):
            return None
        if self.high < lowest or highest < self.low:
            return np.empty(0, np.int64)
        few = self.keys.take(pa.array(np.arange(0, len(self.keys), max(1, len(self.keys) // _SAMPLE))))
        if 2 * len(_keys_within(few, lowest, highest)) > len(few):
            return None
        return _keys_within(self.keys, lowest, highest)


def _keys_within(keys: pa.Array, lowest: str, highest: str) -> Indices:
    within = pc.and_(pc.greater_equal(keys, lowest), pc.less_equal(keys, highest))
    return np.flatnonzero(np.asarray(within))


def prune_by_filter(filter: BloomFilter | None, keys: KeyHashes, candidates: Indices) -> Indices:
    """The candidates that a file's bloom filter does not rule out; all of them when the file has no filter.

    keys        the batch, hashed once for all files
    candidates  int64[c], indices into keys
    returns     int64[s], in the order of candidates
    """
    return candidates if filter is None else survivors(filter, keys, candidates)


#: In place of the position of a key's row in a file: no row has the key; several rows have it.
ABSENT, SEVERAL = -1, -2


def lookup_rows(file_keys: pa.Array | pa.ChunkedArray, keys: pa.Array) -> tuple[Indices, Indices]:
    """The rows of a file that have one of the keys.

    file_keys  string[r], the file's key column, or a part of it
    keys       string[n], no nulls
    returns    int64[h], which of the keys, the first place of one that occurs twice; and int64[h], rows, ascending
    """
    if file_keys.type != keys.type:
        file_keys = file_keys.cast(keys.type)
    # The hash table is made of the keys that are asked for; the file's only stream by.
    at = pc.index_in(file_keys, value_set=keys)
    return np.asarray(at.drop_null()).astype(np.int64), np.flatnonzero(np.asarray(at.is_valid()))


def lookup_positions(rows: tuple[Indices, Indices], keys: pa.Array) -> Indices:
    """Where the keys are in a file.

    rows     of the file that have one of the keys, as of `lookup_rows`
    keys     string[n], no nulls; a key may occur twice
    returns  int64[n], aligned with keys: position among the file's keys, `ABSENT` or `SEVERAL`
    """
    matches, positions = rows[0], np.full(len(keys), ABSENT, np.int64)
    positions[matches] = rows[1]
    positions[np.bincount(matches, minlength=len(keys)) > 1] = SEVERAL
    if len(matches) and len(absent := np.flatnonzero(positions == ABSENT)):
        # A key that occurs twice was found at its first place only.
        first = pc.index_in(keys.take(pa.array(absent)), value_set=keys.take(pa.array(matches)))
        positions[absent[np.asarray(first.is_valid())]] = positions[matches[np.asarray(first.drop_null())]]
    return positions


def lookup_keys(file_keys: pa.Array | pa.ChunkedArray, keys: pa.Array) -> npt.NDArray[np.bool_]:
    """Which of the keys are in a file.

    file_keys  string[r], the file's key column; nulls are ignored
    keys       string[n], no nulls; a key may occur twice
    returns    bool[n], aligned with keys
    """
    hits = np.zeros(len(keys), np.bool_)
    if not len(keys) or not len(file_keys):
        return hits
    if file_keys.type != keys.type:
        file_keys = file_keys.cast(keys.type)
    # The hash table is made of the fewer keys; the others only stream by.
    if len(keys) >= len(file_keys):
        return np.asarray(pc.is_in(keys, value_set=file_keys))
    first = pc.index_in(file_keys, value_set=keys).drop_null()
    hits[np.asarray(first)] = True
    # A key that occurs twice was marked at its first place only.
    result: npt.NDArray[np.bool_] = hits[np.asarray(pc.index_in(keys, value_set=keys))]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Ranges:
    """For each file the keys within its range, as a stretch of the sorted keys."""

    order: Indices
    begin: Indices
    end: Indices

    @classmethod
    def of(cls, keys: pa.Array, lowest: pa.Array, highest: pa.Array) -> _Ranges:
        order = np.asarray(pc.sort_indices(keys)).astype(np.int64)
        ordered = keys.take(pa.array(order))
        return cls(order, _search(ordered, lowest, pc.less), _search(ordered, highest, pc.less_equal))

    def keys_of(self, file: int) -> Indices:
        return self.order[self.begin[file] : self.end[file]]


def _search(ordered: pa.Array, bounds: pa.Array, before: pc.Function) -> Indices:
    """For each bound the number of ordered values that are `before` it: one binary search for all bounds at once."""
    low = np.zeros(len(bounds), np.int64)
    high = np.full(len(bounds), len(ordered), np.int64)
    while (searching := low < high).any():
        middle = (low + high) // 2
        probed = ordered.take(pa.array(np.minimum(middle, len(ordered) - 1)))
        is_before = np.asarray(before(probed, bounds), np.bool_)
        low = np.where(searching & is_before, middle + 1, low)
        high = np.where(searching & ~is_before, middle, high)
    return low
