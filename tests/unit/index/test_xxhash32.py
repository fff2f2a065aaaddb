"""XXH32 of columns of text, against published values and a scalar walk through the specification."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InvalidInput
from hoodie.index.xxhash32 import xxh32

MASK = 0xFFFFFFFF
P1, P2, P3, P4, P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1

#: Of xxHash's own documentation and of implementations in other languages.
PUBLISHED = {
    "": 0x02CC5D05,
    "a": 0x550D7456,
    "abc": 0x32D153FF,
    "Nobody inspects the spammish repetition": 0xE2293B2F,
}


def rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & MASK


def scalar(data: bytes, seed: int) -> int:
    """One text at a time, step by step."""
    at = 0
    if len(data) >= 16:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while at + 16 <= len(data):
            for number in range(4):
                word = int.from_bytes(data[at + 4 * number : at + 4 * number + 4], "little")
                lanes[number] = rotate((lanes[number] + word * P2) & MASK, 13) * P1 & MASK
            at += 16
        value = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
    else:
        value = (seed + P5) & MASK
    value = (value + len(data)) & MASK
    while at + 4 <= len(data):
        value = rotate((value + int.from_bytes(data[at : at + 4], "little") * P3) & MASK, 17) * P4 & MASK
        at += 4
    for byte in data[at:]:
        value = rotate((value + byte * P5) & MASK, 11) * P1 & MASK
    value = (value ^ (value >> 15)) * P2 & MASK
    value = (value ^ (value >> 13)) * P3 & MASK
    return value ^ (value >> 16)


def test_texts_hash_as_published() -> None:
    assert dict(zip(PUBLISHED, xxh32(pa.array(list(PUBLISHED))).tolist(), strict=True)) == PUBLISHED


@given(st.lists(st.text(max_size=60), max_size=9), st.integers(0, MASK), st.integers(0, 2), st.booleans())
def test_a_column_hashes_as_its_texts_one_by_one(texts: list[str], seed: int, skipped: int, wide: bool) -> None:
    column = pa.array(["é", "x", *texts], pa.large_string() if wide else pa.string()).slice(skipped)
    assert xxh32(column, seed).tolist() == [scalar(text.encode(), seed) for text in column.to_pylist()]


def test_more_texts_than_a_block_and_none_at_all() -> None:
    texts = [f"{number:x}" * (number % 9) for number in range(40_000)]
    assert xxh32(pa.chunked_array([texts[:100], [], texts[100:]])).tolist() == [scalar(t.encode(), 0) for t in texts]
    assert xxh32(pa.array([], pa.string())).tolist() == []


def test_a_null_is_refused() -> None:
    with pytest.raises(InvalidInput, match="null"):
        xxh32(pa.array(["a", None]))
