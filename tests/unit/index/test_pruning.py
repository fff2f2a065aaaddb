"""Which files may hold which keys: ranges, filters and the exact look-up."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput
from hoodie.formats.parquet.bloom import BloomKind, add_keys, empty_filter
from hoodie.formats.parquet.murmur import KeyHashes
from hoodie.index.pruning import IndexStats, lookup_keys, prune_by_filter, prune_by_range


def candidates(mins: list[str | None], maxs: list[str | None], keys: list[str]) -> dict[int, set[str]]:
    found = prune_by_range(mins, maxs, pa.array(keys, pa.string()))
    return {file: {keys[index] for index in indices} for file, indices in found}


def test_a_file_is_a_candidate_for_the_keys_within_its_bounds_both_included() -> None:
    assert candidates(["b", "d"], ["d", "e"], ["a", "e", "b", "c", "d", "dd", "f"]) == {
        0: {"b", "c", "d"},
        1: {"d", "dd", "e"},
    }


def test_a_file_without_a_bound_may_hold_any_key() -> None:
    assert candidates([None, "b", None], ["b", None, None], ["x", "a"]) == {file: {"x", "a"} for file in range(3)}


def test_a_file_out_of_range_is_not_named() -> None:
    assert candidates(["b", "a"], ["c", "a"], ["d", "e"]) == {}


def test_a_key_that_occurs_twice_is_a_candidate_twice() -> None:
    found = list(prune_by_range(["a"], ["b"], pa.array(["a", "c", "a"])))
    assert [(file, sorted(indices.tolist())) for file, indices in found] == [(0, [0, 2])]


def test_no_keys_or_no_files_give_no_candidates() -> None:
    assert candidates(["a"], ["b"], []) == {}
    assert candidates([], [], ["a"]) == {}


def test_the_batch_may_be_a_slice_of_large_strings() -> None:
    keys = pa.array(["a", "b", "c", "d"], pa.large_string())[1:3]
    found = list(prune_by_range(pa.array(["c"]), pa.array(["d"]), keys))
    assert [(file, indices.tolist()) for file, indices in found] == [(0, [1])]


@pytest.mark.parametrize("bounds", [("\uff21", "\U0001f600"), ("\U0001f600", "\uff21")])
def test_bounds_of_either_writer_hold_the_keys_where_their_orders_differ(bounds: tuple[str, str]) -> None:
    # by code point U+FF21 is the smaller, by UTF-16 unit U+1F600 is
    assert candidates([bounds[0]], [bounds[1]], ["\uff21", "\U0001f600", "a"]) == {0: {"\uff21", "\U0001f600"}}


def test_a_null_key_is_refused() -> None:
    with pytest.raises(InvalidInput):
        list(prune_by_range(["a"], ["b"], pa.array(["a", None])))


def test_a_filter_keeps_its_keys_in_order_and_no_filter_keeps_all() -> None:
    keys = pa.array(["a", "b", "c", "d"])
    filter = add_keys(empty_filter(BloomKind.SIMPLE, 100, 1e-9), keys[1:], 0)
    hashes = KeyHashes.of(keys)
    chosen = np.array([3, 0, 1])
    assert prune_by_filter(filter, hashes, chosen).tolist() == [3, 1]
    assert prune_by_filter(None, hashes, chosen).tolist() == [3, 0, 1]


@pytest.mark.parametrize("stored", [0, 1, 3, 40])
@pytest.mark.parametrize("asked", [1, 4, 41])
def test_a_lookup_finds_the_same_keys_whether_the_file_or_the_batch_has_more(stored: int, asked: int) -> None:
    file_keys = [f"k{n % 7}" if n % 3 else None for n in range(stored)]
    wanted = [f"k{n * 5 % 9}" for n in range(asked)]
    found = lookup_keys(pa.chunked_array([file_keys[:2], file_keys[2:]], pa.string()), pa.array(wanted))
    assert found.tolist() == [key in file_keys for key in wanted]


def test_a_look_up_is_exact_for_keys_that_occur_twice_and_for_files_with_nulls() -> None:
    file_keys = pa.chunked_array([["a", None], ["c", "d", "c"]])
    wanted = pa.array(["c", "x", "a", "c", "x"])
    assert lookup_keys(file_keys, wanted).tolist() == [True, False, True, True, False]


def test_a_look_up_takes_text_of_another_width_and_empty_sides() -> None:
    wanted = pa.array(["a", "b"])
    assert lookup_keys(pa.array(["b"], pa.large_string()), wanted).tolist() == [False, True]
    assert lookup_keys(pa.chunked_array([["b"]]).cast(pa.large_string()), wanted).tolist() == [False, True]
    assert lookup_keys(pa.array(["b"]).dictionary_encode(), wanted).tolist() == [False, True]
    assert lookup_keys(pa.array([None, None], pa.string()), wanted).tolist() == [False, False]
    assert lookup_keys(pa.array([], pa.string()), wanted).tolist() == [False, False]
    assert lookup_keys(pa.array(["b"]), wanted[:0]).tolist() == []


def test_costs_add_up() -> None:
    one = IndexStats(files=2, files_read=1, candidates=10, pruned_by_range=5, pruned_by_filter=3, checked=2, hits=2)
    two = IndexStats(files=1, candidates=4, pruned_by_range=4)
    assert one + two == IndexStats(
        files=3, files_read=1, candidates=14, pruned_by_range=9, pruned_by_filter=3, checked=2, hits=2
    )
    assert sum([one, two], IndexStats()) == one + two
