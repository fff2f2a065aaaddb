"""Bloom filters against a model that adds one key at a time, word for word as Hudi does."""

import base64
import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFile
from hoodie.formats.parquet.bloom import BloomFilter, BloomKind, add_keys, decode, empty_filter, encode, might_contain
from hoodie.formats.parquet.murmur import KeyHashes
from support.bloom_bits import positions

KEYS = st.lists(st.text(min_size=1, max_size=30), max_size=40)
# Enough of them to fill all rows and go round: Hypothesis seldom draws long lists.
MANY_KEYS = st.integers(0, 90).flatmap(
    lambda count: st.sampled_from(["k{}", "key-{:04}", "ключ{}"]).map(
        lambda form: [form.format(i) for i in range(count)]
    )
)
KINDS = st.sampled_from(BloomKind)
ENTRIES = st.integers(1, 9)
RATES = st.sampled_from([0.3, 0.01, 1e-9])
MAX_ENTRIES = st.integers(0, 40)


def murmur(data: bytes, seed: int) -> int:
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value = (seed ^ len(data)) & mask
    for at in range(0, len(data) // 4 * 4, 4):
        word = int.from_bytes(data[at : at + 4], "little") * factor & mask
        word = (word ^ word >> 24) * factor & mask
        value = (value * factor & mask) ^ word
    if left := len(data) % 4:
        for place in range(left):
            byte = data[-1 - place]
            value ^= ((byte - 256 if byte > 127 else byte) << 8 * place) & mask
        value = value * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def model_positions(key: str, m: int, k: int) -> list[int]:
    seed, found = 0, []
    for _ in range(k):
        seed = murmur(key.encode(), seed)
        found.append(abs(seed - 2**32 if seed >= 2**31 else seed) % m)
    return found


def model_targets(count: int, entries: int, max_entries: int) -> tuple[list[int], int, int]:
    """The row of each of `count` adds to an empty filter; then the number of rows and the current count."""
    rows, current, reached, turn, targets = 1, 0, False, 0, []
    for _ in range(count):
        if reached:
            targets.append(turn % rows)
            turn += 1
        elif current >= entries:
            if rows * entries < max_entries:
                rows, current = rows + 1, 0
                targets.append(rows - 1)
            else:
                reached = True
                targets.append(0)
        else:
            targets.append(rows - 1)
        current += 1
    return targets, rows, current


@given(KEYS, st.integers(1, 2**31 - 1), st.integers(1, 12))
def test_positions_are_those_of_the_model(keys: list[str], m: int, k: int) -> None:
    found = positions(pa.array(keys, pa.string()), m, k)
    assert found.T.tolist() == [model_positions(key, m, k) for key in keys]


@given(MANY_KEYS, ENTRIES, RATES, MAX_ENTRIES)
def test_a_dynamic_filter_grows_as_the_model_does(keys: list[str], entries: int, fpp: float, max_entries: int) -> None:
    empty = empty_filter(BloomKind.DYNAMIC_V0, entries, fpp)
    filter = add_keys(empty, pa.array(keys, pa.string()), max_entries)
    targets, rows, current = model_targets(len(keys), entries, max_entries)
    expected = [np.zeros(empty.bits, np.uint8) for _ in range(rows)]
    for key, row in zip(keys, targets, strict=True):
        expected[row][model_positions(key, empty.bits, empty.hashes)] = 1
    assert (len(filter.rows), filter.count) == (rows, current)
    for row, bits in zip(filter.rows, expected, strict=True):
        assert np.array_equal(row, np.packbits(bits, bitorder="little"))


@given(MANY_KEYS, st.lists(st.integers(0, 90), max_size=6), KINDS, ENTRIES, RATES, MAX_ENTRIES)
def test_adding_in_parts_even_over_a_file_is_adding_at_once(
    keys: list[str], cuts: list[int], kind: BloomKind, entries: int, fpp: float, max_entries: int
) -> None:
    empty = empty_filter(kind, entries, fpp)
    column = pa.array(keys, pa.string())
    bounds = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    parts = [column[start:stop] for start, stop in itertools.pairwise(bounds)]
    filter = empty
    for part in parts:
        filter = decode(encode(add_keys(filter, part, max_entries)), kind, "p")
    whole = add_keys(empty, column, max_entries)
    assert encode(filter) == encode(whole)
    assert add_keys(empty, pa.chunked_array(parts), max_entries) == whole


@given(KEYS | MANY_KEYS, KEYS, KINDS, ENTRIES, RATES, MAX_ENTRIES)
def test_an_added_key_is_never_denied(
    keys: list[str], others: list[str], kind: BloomKind, entries: int, fpp: float, max_entries: int
) -> None:
    filter = add_keys(empty_filter(kind, entries, fpp), pa.array(keys, pa.string()), max_entries)
    asked = pa.array(others + keys, pa.string())
    found = might_contain(filter, asked)
    assert found[len(others) :].all()
    assert found.tolist() == [in_any_row(filter, key) for key in others + keys]
    assert might_contain(filter, KeyHashes.of(asked)).tolist() == found.tolist()


def in_any_row(filter: BloomFilter, key: str) -> bool:
    places = model_positions(key, filter.bits, filter.hashes)
    return any(all(row[place // 8] >> place % 8 & 1 for place in places) for row in filter.rows)


@given(KEYS, KINDS, ENTRIES, RATES, MAX_ENTRIES)
def test_a_filter_survives_its_encoding(
    keys: list[str], kind: BloomKind, entries: int, fpp: float, max_entries: int
) -> None:
    filter = add_keys(empty_filter(kind, entries, fpp), pa.array(keys, pa.string()), max_entries)
    assert decode(encode(filter), kind.value, "p") == filter


@given(st.data(), KEYS, KINDS, st.sampled_from(["bytes", "text"]))
def test_a_damaged_filter_is_corrupt_or_still_a_filter(
    data: st.DataObject, keys: list[str], kind: BloomKind, where: str
) -> None:
    filter = add_keys(empty_filter(kind, 5, 0.01), pa.array(keys, pa.string()), 12)
    text = encode(filter)
    raw = bytearray(base64.b64decode(text) if where == "bytes" else text.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, min(len(raw) - 1, 50)))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    damaged = base64.b64encode(raw).decode() if where == "bytes" else raw.decode("iso-8859-1")
    try:
        decoded = decode(damaged, kind.value, "p")
    except CorruptFile:
        return
    assert len(might_contain(decoded, pa.array(["a", "bcd"]))) == 2
    assert encode(decoded) == damaged or where == "text"  # base64 may carry stray bits in its last letter
