"""Keys that are found by their hashes: none is missed, and which are equal the caller sees."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput
from hoodie.formats.parquet.hashed_keys import HashedKeys, all_different, key_hashes

#: Two keys of one hash: of those with less than eight bytes one in some billion pairs is such.
OF_ONE_HASH = ["070801e", "0488a5f"]


@pytest.mark.parametrize(
    ("keys", "others", "expected"),
    [
        ("abcd", "db", [1, 3]),
        ("abca", "a", [0, 3]),
        ("abc", "ccaa", [0, 2]),
        ("abc", "xyz", []),
        ("abc", ["", "c", None], [2]),
        ("abc", [], []),
        ([], "abc", []),
    ],
)
def test_the_places_of_keys_are_found_each_once_and_rising(
    keys: Sequence[str], others: Sequence[str | None], expected: list[int]
) -> None:
    hashed = HashedKeys.of(pa.array(list(keys), pa.string()))
    assert hashed.find(pa.array(list(others), pa.string())).tolist() == expected
    assert hashed.find(pa.chunked_array([[one] for one in others], pa.string())).tolist() == expected
    assert hashed.different == len(set(keys))


def test_keys_that_come_in_parts_keep_their_places() -> None:
    keys = pa.array(["a", "b", "c", "d", "e", "f"])
    hashes = key_hashes(keys)
    least = np.sort(hashes)[2]
    order = np.concatenate([np.flatnonzero(hashes <= least), np.flatnonzero(hashes > least)])
    table = HashedKeys([hashes[order[:3]], hashes[order[3:]]])
    for key, place in zip(keys.take(pa.array(order)).to_pylist(), range(6), strict=True):
        assert table.find(pa.array([key])).tolist() == [place]


def test_a_key_of_equal_hash_is_found_with_the_other() -> None:
    assert len(set(key_hashes(pa.array(OF_ONE_HASH)).tolist())) == 1
    assert HashedKeys.of(pa.array(["x", *OF_ONE_HASH])).find(pa.array(OF_ONE_HASH[:1])).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("keys", "expected"), [("abc", True), ("aba", False), ([], True), (["a", None], False), (["a", ""], False)]
)
def test_whether_keys_are_all_different(keys: Sequence[str], expected: bool) -> None:
    assert all_different(pa.array(list(keys), pa.string())) is expected


def test_keys_of_equal_hash_are_different_ones() -> None:
    assert all_different(pa.array(OF_ONE_HASH))
    assert not all_different(pa.array([*OF_ONE_HASH, OF_ONE_HASH[0]]))


def test_null_and_empty_keys_are_not_hashed() -> None:
    for key in (None, ""):
        with pytest.raises(InvalidInput):
            HashedKeys.of(pa.array(["a", key]))
