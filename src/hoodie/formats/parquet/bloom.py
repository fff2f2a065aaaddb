"""Bloom filters of base files: sizing, growth, membership and the base64 form in the footer.

Source: Hudi's SimpleBloomFilter, InternalDynamicBloomFilter and BloomFilterUtils; pinned by
tests/vectors/bloom_filters.json and by filters of real tables.
"""

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFile, InvalidOption
from hoodie.formats.java.strings import Bytes
from hoodie.formats.parquet.murmur import (
    BLOCK,
    SHARED,
    Chain,
    Hashes,
    Indices,
    KeyHashes,
    RawKeys,
    blocks,
    raw_keys,
    reduce_to,
)

_HEAD = struct.Struct(">iiBi")  # version, hashes, hash type, bits
_GROWTH = struct.Struct(">iii")  # entries per row, adds to the newest row, rows
_VERSION = -1
_MURMUR = 1
_INT_MAX = 2**31 - 1
# No error rate that a double can hold needs more than 1075; a larger number is damage and would take forever to test.
_MAX_HASHES = 1100
_WEIGHTS = np.uint8(1) << np.arange(8, dtype=np.uint8)


class BloomKind(StrEnum):
    """How a filter grows. The value is the type code in the footer."""

    SIMPLE = "SIMPLE"  # one row, however many keys
    DYNAMIC_V0 = "DYNAMIC_V0"  # a further row for each `entries` keys, up to a bound


@dataclass(frozen=True, slots=True, eq=False)
class BloomFilter:
    """A set of keys that may answer yes in error, never no. Equal when its encoded form is equal.

    hashes   bits set per key ("k")
    bits     bits in use per row ("m")
    entries  keys per row; 0 for SIMPLE, whose form on disk does not tell
    count    adds, duplicates too, since the newest row began; 0 for SIMPLE
    rows     uint8[ceil(bits / 8)] each; bit i is byte i // 8, weight 1 << i % 8
    """

    kind: BloomKind
    hashes: int
    bits: int
    entries: int
    count: int
    rows: tuple[Bytes, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        mine = (self.kind, self.hashes, self.bits, self.entries, self.count, len(self.rows))
        theirs = (other.kind, other.hashes, other.bits, other.entries, other.count, len(other.rows))
        return mine == theirs and all(map(np.array_equal, self.rows, other.rows))

    def __hash__(self) -> int:
        return hash((self.kind, self.hashes, self.bits, self.entries, self.count, len(self.rows)))


def size_for(entries: int, fpp: float) -> tuple[int, int]:
    """Bits and hashes (m, k) of a row that answers yes in error at rate `fpp` once it holds `entries` keys.

    The order of the double operations is Java's: another order gives another m.
    """
    if entries < 1 or not 0 < fpp < 1:
        raise InvalidOption(
            f"a bloom filter of {entries} entries with error rate {fpp}: expected at least 1, and (0, 1)"
        )
    m = min(math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2)))), _INT_MAX)
    return m, math.ceil(math.log(2) * m / entries)


def empty_filter(kind: BloomKind, entries: int, fpp: float) -> BloomFilter:
    """A filter without keys. Raises InvalidOption on a size or rate out of range."""
    bits, hashes = size_for(entries, fpp)
    row = np.zeros((bits + 7) // 8, np.uint8)
    row.flags.writeable = False
    return BloomFilter(kind, hashes, bits, entries if kind is BloomKind.DYNAMIC_V0 else 0, 0, (row,))


def add_keys(filter: BloomFilter, keys: pa.Array | pa.ChunkedArray, max_entries: int) -> BloomFilter:
    """The filter with the keys added, in their order, as Hudi would add them one by one.

    Adding in parts gives the same filter as adding at once.

    keys         string[n], no nulls, none empty
    max_entries  `hoodie.bloom.index.filter.dynamic.max.entries`; SIMPLE ignores it
    Raises       InvalidInput on a null or empty key
    """
    chunks = raw_keys(keys)
    expected = len(keys) * filter.hashes
    rows: list[_OpenRow | Bytes] = list(filter.rows)
    count = filter.count
    for raw in chunks:
        row_count = len(rows)
        if filter.kind is BloomKind.SIMPLE:
            targets: Iterator[tuple[int, slice]] = iter([(0, slice(None))])
        else:
            targets = _targets(len(raw), row_count, count, filter.entries, max_entries)
            row_count, count = _grown(len(raw), row_count, count, filter.entries, max_entries)
        rows += [np.zeros_like(filter.rows[0]) for _ in range(row_count - len(rows))]
        for place, selection in targets:
            row = rows[place]
            if not isinstance(row, _OpenRow):
                row = rows[place] = _OpenRow(row, sparse=expected < filter.bits // 32)
            _insert(row, raw[selection], filter.hashes, filter.bits)
    closed = tuple(row.packed() if isinstance(row, _OpenRow) else row for row in rows)
    return replace(filter, count=count, rows=closed)


def might_contain(filter: BloomFilter, keys: pa.Array | pa.ChunkedArray | KeyHashes) -> npt.NDArray[np.bool_]:
    """Which keys a base file may hold. False is certain, True is a guess.

    keys     string[n], no nulls, none empty; KeyHashes where the same keys are tested against several filters
    returns  bool[n], aligned with keys
    Raises   InvalidInput on a null or empty key
    """
    hashes = keys if isinstance(keys, KeyHashes) else KeyHashes.of(keys)
    present = np.zeros(len(hashes), np.bool_)
    present[survivors(filter, hashes, None)] = True
    return present


def survivors(filter: BloomFilter, keys: KeyHashes, candidates: Indices | None) -> Indices:
    """The candidates that the filter may hold.

    candidates  int64[c], indices into keys; None: all of them
    returns     int64[s], in the order of candidates
    """
    positions = np.arange(len(keys)) if candidates is None else candidates
    if len(filter.rows) == 1:
        return _row_survivors(filter.rows[0], filter, keys, positions)
    present = np.zeros(len(keys), np.bool_)
    for row in filter.rows:
        present[_row_survivors(row, filter, keys, positions[~present[positions]])] = True
    return positions[present[positions]]


def encode(filter: BloomFilter) -> str:
    """The form in the footer: standard base64, padded, without line breaks."""
    head = _HEAD.pack(_VERSION, filter.hashes, _MURMUR, filter.bits)
    if filter.kind is BloomKind.SIMPLE:
        return base64.b64encode(head + filter.rows[0].tobytes()).decode("ascii")
    parts = [head, _GROWTH.pack(filter.entries, filter.count, len(filter.rows))]
    for row in filter.rows:
        parts += [head, row.tobytes()]
    return base64.b64encode(b"".join(parts)).decode("ascii")


@lru_cache(maxsize=4)  # a write looks keys up in the file that it then replaces, and the next one begins with that
def decode(text: str, kind_code: str, path: str) -> BloomFilter:
    """The filter that a footer holds.

    kind_code  `hoodie_bloom_filter_type_code`; "" when the footer has none, which means SIMPLE
    path       the base file, for the error
    Raises     CorruptFile when the text is no filter of that kind
    """
    kind, data = _kind(kind_code, path), _bytes(text, path)
    hashes, bits = _head(data, 0, path)
    size = (bits + 7) // 8
    if kind is BloomKind.SIMPLE:
        _expect_size(data, _HEAD.size + size, path)
        return BloomFilter(kind, hashes, bits, 0, 0, (np.frombuffer(data, np.uint8, size, _HEAD.size),))
    at = _HEAD.size + _GROWTH.size
    if len(data) < at:
        raise CorruptFile(path, f"bloom filter ends after {len(data)} bytes")
    entries, count, row_count = _GROWTH.unpack_from(data, _HEAD.size)
    if entries < 1 or count < 0 or row_count < 1:
        raise CorruptFile(path, f"bloom filter of {row_count} rows with {count} keys in rows of {entries}")
    _expect_size(data, at + row_count * (_HEAD.size + size), path)
    rows = []
    for start in range(at, len(data), _HEAD.size + size):
        if _head(data, start, path) != (hashes, bits):
            raise CorruptFile(path, f"bloom filter has a row unlike the others at byte {start}")
        rows.append(np.frombuffer(data, np.uint8, size, start + _HEAD.size))
    return BloomFilter(kind, hashes, bits, entries, count, tuple(rows))


def _kind(code: str, path: str) -> BloomKind:
    try:
        return BloomKind(code or BloomKind.SIMPLE)
    except ValueError:
        raise CorruptFile(path, f"bloom filter of unknown type {code!r}") from None


def _bytes(text: str, path: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as problem:  # binascii.Error is one
        raise CorruptFile(path, f"bloom filter is not base64: {problem}") from problem


def _head(data: bytes, at: int, path: str) -> tuple[int, int]:
    if len(data) < at + _HEAD.size:
        raise CorruptFile(path, f"bloom filter ends after {len(data)} bytes")
    version, hashes, hash_type, bits = _HEAD.unpack_from(data, at)
    if version != _VERSION or hash_type != _MURMUR:
        advice = "Very old writers used another hash: rewrite the file, or use the SIMPLE index."
        raise CorruptFile(path, f"bloom filter of version {version}, hash type {hash_type}", advice=advice)
    if not 0 < hashes <= _MAX_HASHES or bits < 1:
        raise CorruptFile(path, f"bloom filter of {bits} bits with {hashes} hashes per key")
    return hashes, bits


def _expect_size(data: bytes, size: int, path: str) -> None:
    if len(data) != size:
        raise CorruptFile(path, f"bloom filter has {len(data)} bytes, its head says {size}")


def _free_adds(rows: int, count: int, entries: int, max_entries: int) -> tuple[int, int]:
    """Adds that the newest row still takes, and rows that can still be appended.

    Hudi keeps a flag "reached max" beside what it stores. The count tells as much: it passes `entries` only when the
    flag is up, by one for each add since.
    """
    if count > entries:
        return 0, 0
    # A row is appended while rows * entries < max_entries.
    return entries - count, max(0, -(-max_entries // entries) - rows)


def _grown(adds: int, rows: int, count: int, entries: int, max_entries: int) -> tuple[int, int]:
    """Rows and count after a number of adds."""
    free, room = _free_adds(rows, count, entries, max_entries)
    appended = min(room, -(-max(0, adds - free) // entries))
    if not appended:
        return rows, min(count + adds, _INT_MAX)  # a damaged count may be near the end of its four bytes
    return rows + appended, adds - free - (appended - 1) * entries


def _targets(adds: int, rows: int, count: int, entries: int, max_entries: int) -> Iterator[tuple[int, slice]]:
    """Which row takes which of the adds: pairs of a row and a slice of the adds, each add in one slice."""
    free, room = _free_adds(rows, count, entries, max_entries)
    start, newest = min(free, adds), rows - 1
    if start:
        yield newest, slice(0, start)
    while start < adds and room:
        stop = min(start + entries, adds)
        newest, room = newest + 1, room - 1
        yield newest, slice(start, stop)
        start = stop
    if start == adds:
        return
    # The flag is up: rows take turns. The add that puts the flag up goes to row 0 without advancing the turn, so
    # row 0 gets the first two.
    turn = count - entries - 1
    if turn < 0:
        yield 0, slice(start, start + 1)
        start, turn = start + 1, 0
    total = newest + 1
    for offset in range(min(total, adds - start)):
        yield (turn + offset) % total, slice(start + offset, adds, total)


class _OpenRow:
    """A row being filled: a byte per bit, which is quick to set at many places, or packed when few are set."""

    def __init__(self, packed: Bytes, sparse: bool) -> None:
        self.sparse = sparse
        self.bits = packed.copy() if sparse else np.unpackbits(packed, bitorder="little")

    def set(self, places: Hashes) -> None:
        if self.sparse:
            np.bitwise_or.at(self.bits, places >> 3, _WEIGHTS[places & 7])
        else:
            self.bits[places.astype(np.intp)] = 1  # NumPy indexes twice as fast by its own integer type

    def packed(self) -> Bytes:
        packed: Bytes = self.bits if self.sparse else np.packbits(self.bits, bitorder="little")
        packed.flags.writeable = False
        return packed


def _insert(row: _OpenRow, keys: RawKeys, hashes: int, bits: int) -> None:
    for place, chain in blocks(keys):
        count = place.stop - place.start
        seeds = np.zeros(count, np.uint32)
        at_once = max(1, min(hashes, BLOCK // max(1, count)))  # few keys: many of their hashes fill a block
        chains = np.empty((at_once, count), np.uint32)
        places, scratch = np.empty_like(chains), np.empty_like(chains)
        for first in range(0, hashes, at_once):
            chained = min(at_once, hashes - first)
            for number in range(chained):
                chain.step(seeds)
                chains[number] = seeds
            row.set(reduce_to(chains[:chained], bits, places[:chained], scratch[:chained]))


def _row_survivors(row: Bytes, filter: BloomFilter, keys: KeyHashes, candidates: Indices) -> Indices:
    """As `survivors`, for one row."""
    survivors_of_rows = []
    for start in range(0, len(candidates), BLOCK):
        alive = candidates[start : start + BLOCK]
        for i in range(min(SHARED, filter.hashes)):
            alive = alive[_is_set(row, keys.first[i][alive], filter.bits)]
        if filter.hashes > SHARED and len(alive):
            alive = alive[_passing(row, filter, keys, alive)]
        survivors_of_rows.append(alive)
    return np.concatenate(survivors_of_rows) if survivors_of_rows else candidates


def _passing(row: Bytes, filter: BloomFilter, keys: KeyHashes, alive: Indices) -> npt.NDArray[np.bool_]:
    """Which keys pass the rest of the chain; they are those that the shared hashes did not rule out."""
    chain = Chain(keys.keys[alive])
    places = np.arange(len(alive)) if chain.order is None else chain.order
    seeds = keys.first[SHARED - 1][alive[places]]
    passed = np.ones(len(alive), np.bool_)
    for _ in range(SHARED, filter.hashes):
        chain.step(seeds)
        passed &= _is_set(row, seeds, filter.bits)
        survivors = int(np.count_nonzero(passed))
        # Dead keys are dropped once they are many: dropping costs about as much as one more hash.
        if survivors < len(passed) * 3 // 4:
            chain.keep(passed)
            places, seeds, passed = places[passed], seeds[passed], np.ones(survivors, np.bool_)
        if not survivors:
            break
    result = np.zeros(len(alive), np.bool_)
    result[places[passed]] = True
    return result


def _is_set(row: Bytes, hashes: Hashes, bits: int) -> npt.NDArray[np.bool_]:
    places = reduce_to(hashes, bits, np.empty_like(hashes), np.empty_like(hashes))
    weights: Bytes = row[places >> 3] & _WEIGHTS[places & 7]
    return weights.astype(np.bool_)
