"""The hash chain behind bloom filters: murmur2 of a record key, each hash the seed of the next, many keys at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import InvalidInput
from hoodie.formats.java.strings import Bytes, chunks_of, raw_strings

Hashes = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.int64]

_M = np.uint32(0x5BD1E995)
#: Keys hashed together: the arrays of one block (words, hash, scratch) stay in a core's L2 cache.
BLOCK = 16384
#: Hashes that KeyHashes keeps for all keys: with half the bits set, one key in 16 needs more to be ruled out.
SHARED = 4


@dataclass(frozen=True, slots=True, eq=False)
class RawKeys:
    """Keys as byte ranges of one buffer, so that any selection of them is free of copies of the text.

    data     uint8[...], UTF-8
    starts   int64[n], first byte of each key
    lengths  int64[n], bytes of each key, all > 0
    """

    data: Bytes
    starts: Indices
    lengths: Indices

    @classmethod
    def of(cls, chunk: pa.Array) -> RawKeys:
        """The keys of one string or large_string array. Raises InvalidInput on an empty key."""
        data, offsets = raw_strings(chunk)
        lengths = np.diff(offsets)
        if lengths.size and not lengths.min():
            raise InvalidInput("a record key is empty")
        return cls(data, offsets[:-1], lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, selection: slice | Indices) -> RawKeys:
        return RawKeys(self.data, self.starts[selection], self.lengths[selection])


class Chain:
    """The chain of hashes of one block of keys: `step` turns the seeds of all its keys into their next hashes.

    What does not depend on the seed (mixing of the words and of the tail) is done once. Keys are held in order of
    falling word count, so that the j-th words of all keys that have one lie in front.

    order    int64[n]: place of each held key among the keys given; None when they are held as given
    """

    def __init__(self, keys: RawKeys) -> None:
        count = len(keys)
        shortest, longest = (int(keys.lengths.min()), int(keys.lengths.max())) if count else (1, 1)
        self.order: Indices | None = None
        self._words: list[Hashes]
        self._tail: Hashes | None = None
        self._tail_factor: Hashes | np.uint32 = _M
        self._scratch = np.empty(count, np.uint32)
        if shortest == longest:
            self._length: Hashes | np.uint32 = np.uint32(longest)
            self._words = _equal_words(keys, longest) if longest >= 4 else []
            if longest % 4:
                self._tail = _tails(keys)
            return
        self.order = np.argsort(-(keys.lengths >> 2), kind="stable")
        keys = keys[self.order]
        self._length = keys.lengths.astype(np.uint32)
        self._words = _ragged_words(keys)
        self._tail = _tails(keys)
        # A key of whole words has no tail and is not multiplied for one.
        self._tail_factor = np.where(keys.lengths & 3, _M, np.uint32(1))

    def step(self, seeds: Hashes) -> None:
        """Replace uint32[n] seeds, in held order, by the next hashes, in place."""
        hashes, scratch = seeds, self._scratch
        np.bitwise_xor(hashes, self._length, out=hashes)
        for words in self._words:
            part = hashes if len(words) == len(hashes) else hashes[: len(words)]
            np.multiply(part, _M, out=part)
            np.bitwise_xor(part, words, out=part)
        if self._tail is not None:
            np.bitwise_xor(hashes, self._tail, out=hashes)
            np.multiply(hashes, self._tail_factor, out=hashes)
        np.right_shift(hashes, 13, out=scratch)
        np.bitwise_xor(hashes, scratch, out=hashes)
        np.multiply(hashes, _M, out=hashes)
        np.right_shift(hashes, 15, out=scratch)
        np.bitwise_xor(hashes, scratch, out=hashes)

    def keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        """Drop keys: bool[n], in held order. `order` no longer holds."""
        self.order = None
        self._words = [words[chosen[: len(words)]] for words in self._words]
        self._scratch = self._scratch[: int(np.count_nonzero(chosen))]
        if isinstance(self._length, np.ndarray):
            self._length = self._length[chosen]
        if self._tail is not None:
            self._tail = self._tail[chosen]
        if isinstance(self._tail_factor, np.ndarray):
            self._tail_factor = self._tail_factor[chosen]


def blocks(keys: RawKeys) -> Iterator[tuple[slice, Chain]]:
    """The keys in blocks of a size that is quick to hash, each with its place among them."""
    for start in range(0, len(keys), BLOCK):
        place = slice(start, min(start + BLOCK, len(keys)))
        yield place, Chain(keys[place])


def reduce_to(hashes: Hashes, m: int, out: Hashes, scratch: Hashes) -> Hashes:
    """Bit positions uint32[n] in a filter of m bits: |hash as signed int32| mod m, in `out`."""
    # abs(-2^31) stays -2^31 in int32, which read as unsigned is the 2^31 that Java gets by reducing before abs.
    np.absolute(hashes.view(np.int32), out=out.view(np.int32))
    # NumPy divides by a scalar with SIMD, but takes remainders one by one.
    np.floor_divide(out, np.uint32(m), out=scratch)
    np.multiply(scratch, np.uint32(m), out=scratch)
    np.subtract(out, scratch, out=out)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class KeyHashes:
    """A batch of keys with the first hashes of each, to be tested against many filters of any size.

    The chain of hashes does not depend on a filter's size, so it is shared by all files; only the few keys that the
    first hashes do not rule out are hashed further, per file.

    keys    the n keys
    first   uint32[SHARED, n]
    """

    keys: RawKeys
    first: Hashes

    @classmethod
    def of(cls, keys: pa.Array | pa.ChunkedArray) -> KeyHashes:
        """Raises InvalidInput on a null or empty key."""
        chunks = chunks_of(keys)
        if len(chunks) > 1:
            chunks = [pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in chunks])]
        raw = RawKeys.of(chunks[0] if chunks else pa.array([], pa.string()))
        first = np.empty((SHARED, len(raw)), np.uint32)
        for place, chain in blocks(raw):
            hashes = np.zeros(place.stop - place.start, np.uint32)
            for i in range(SHARED):
                chain.step(hashes)
                if chain.order is None:
                    first[i, place] = hashes
                else:
                    first[i, place][chain.order] = hashes
        return cls(raw, first)

    def __len__(self) -> int:
        return len(self.keys)


def raw_keys(keys: pa.Array | pa.ChunkedArray) -> list[RawKeys]:
    """The keys of each chunk that has some. Raises InvalidInput on a null or empty key."""
    return [RawKeys.of(chunk) for chunk in chunks_of(keys)]


def _mixed(words: Hashes) -> Hashes:
    """Murmur's mixing of a key word, in place; it does not depend on the seed."""
    np.multiply(words, _M, out=words)
    np.bitwise_xor(words, words >> np.uint32(24), out=words)
    np.multiply(words, _M, out=words)
    return words


def _equal_words(keys: RawKeys, length: int) -> list[Hashes]:
    """The words of keys of one length: a list of uint32[n], one array for each word place."""
    count, words = len(keys), length // 4
    first = int(keys.starts[0])
    if count == 1 or bool((np.diff(keys.starts) == length).all()):
        text = keys.data[first : first + count * length].reshape(count, length)[:, : 4 * words]
        # A copy even where the transpose is contiguous: the words are mixed in place.
        columns = np.array(np.ascontiguousarray(text).view("<u4").T, np.uint32, order="C", copy=True)
    else:
        columns = np.stack([_words_at(keys.data, keys.starts + 4 * j) for j in range(words)])
    return list(_mixed(columns))


def _ragged_words(keys: RawKeys) -> list[Hashes]:
    """The words of keys in order of falling word count: the j-th array is as long as there are keys with a word j."""
    counts = keys.lengths >> 2
    having = np.searchsorted(-counts, -np.arange(int(counts[0])), side="left")  # keys with more than j words
    return [_mixed(_words_at(keys.data, keys.starts[:keep] + 4 * j)) for j, keep in enumerate(having)]


def _words_at(data: Bytes, at: Indices) -> Hashes:
    """Little-endian 4-byte words that begin at the given bytes: uint32[n]."""
    everywhere: Hashes = np.ndarray((len(data) - 3,), "<u4", buffer=data.data, strides=(1,))
    return everywhere[at].astype(np.uint32, copy=False)


def _tails(keys: RawKeys) -> Hashes:
    """What the 0 to 3 bytes after the last whole word add: uint32[n], 0 where there are none."""
    tail_lengths = keys.lengths & 3
    end = keys.starts + keys.lengths - 1
    tail = np.zeros(len(keys), np.int32)
    for place in range(3):
        # Two quirks of Hadoop's murmur2: the bytes are taken from the end, the last one unshifted, and they are
        # sign-extended, which matters for keys that are not ASCII.
        byte = keys.data[np.maximum(end - place, 0)].view(np.int8).astype(np.int32) << (8 * place)
        np.bitwise_xor(tail, byte, out=tail, where=tail_lengths > place)
    return tail.view(np.uint32)
