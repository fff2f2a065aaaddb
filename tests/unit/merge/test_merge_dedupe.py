"""Each key once: which row of a batch survives, and where it stands."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput
from hoodie.merge import payloads
from hoodie.merge.payloads import rule_for
from hoodie.merge.rows import pick_column
from hoodie.writing.batch.duplicates import combine_duplicates

RULE = rule_for(payloads.OVERWRITE_WITH_LATEST, ("ts",))


def batch(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def kept(table: pa.Table, rule: Any = RULE, keys: tuple[str, ...] = ("p", "k")) -> list[Any]:
    found = combine_duplicates(table, keys, rule)
    assert found.schema == table.schema
    found.validate(full=True)
    return found.column("v").to_pylist()


def test_the_greatest_ordering_value_survives_and_of_equals_the_later_row() -> None:
    rows = batch(p=["x"] * 5, k=["a", "b", "a", "b", "c"], ts=[2, 1, 1, 1, 0], v=["a1", "b1", "a2", "b2", "c"])
    assert kept(rows) == ["a1", "b2", "c"]
    assert kept(rows, rule_for(payloads.FIRST_VALUE, ("ts",))) == ["a1", "b1", "c"]


def test_survivors_stand_where_their_key_first_occurs() -> None:
    assert kept(batch(p=["x"] * 4, k=["a", "b", "a", "c"], ts=[1, 1, 2, 1], v=[1, 2, 3, 4])) == [3, 2, 4]


def test_the_same_key_in_two_partitions_is_two_rows_unless_the_index_is_global() -> None:
    rows = batch(p=["x", "y"], k=["a", "a"], ts=[1, 2], v=[1, 2])
    assert combine_duplicates(rows, ("p", "k"), RULE) is rows
    assert kept(rows, keys=("k",)) == [2]


def test_a_batch_without_duplicates_is_returned_itself() -> None:
    rows = batch(p=["x", "x", "y"], k=["a", "b", "a"], ts=[1, 2, 3], v=[1, 2, 3])
    assert combine_duplicates(rows, ("p", "k"), RULE) is rows
    assert combine_duplicates(rows.slice(0, 0), ("p", "k"), RULE).num_rows == 0


def test_without_an_ordering_field_the_last_row_survives() -> None:
    rows = batch(p=["x"] * 3, k=["a"] * 3, v=[1, 2, 3])
    assert kept(rows, rule_for(payloads.OVERWRITE_WITH_LATEST)) == [3]
    assert kept(rows, rule_for(payloads.EMPTY)) == [1]


def test_a_key_column_that_is_absent_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"\['nope'\]"):
        combine_duplicates(batch(k=["a"], ts=[1]), ("nope", "k"), RULE)


def test_a_row_that_marks_a_delete_survives_as_a_row() -> None:
    rows = batch(p=["x"] * 2, k=["a"] * 2, ts=[1, 2], v=[1, 2], _hoodie_is_deleted=[False, True])
    assert kept(rows) == [2]


def test_a_partial_update_folds_in_the_order_of_arrival() -> None:
    # ts 3, then 1 fills b, then 2: the record made of the first two has ts 3 and b already.
    rows = batch(p=["x"] * 3, k=["k"] * 3, ts=[3, 1, 2], v=["a", None, "c"], b=[None, 2, 3])
    found = combine_duplicates(rows, ("p", "k"), rule_for(payloads.PARTIAL_UPDATE, ("ts",)))
    assert found.to_pylist() == [{"p": "x", "k": "k", "ts": 3, "v": "a", "b": 2}]


def test_keys_with_many_versions_fold_beside_keys_with_few() -> None:
    count = 400
    rng = np.random.default_rng(5)
    keys = [f"k{i}" for i in np.minimum(rng.geometric(0.2, count), 12)]
    rows = pa.table({"p": ["x"] * count, "k": keys, "ts": rng.integers(0, 9, count), "v": np.arange(count)})
    rule = rule_for(payloads.PARTIAL_UPDATE, ("ts",))
    whole = combine_duplicates(rows, ("p", "k"), rule)
    assert whole.column("k").to_pylist() == list(dict.fromkeys(keys))
    for key in set(keys):
        alone = rows.filter(pa.array(np.array(keys) == key))
        assert combine_duplicates(alone, ("p", "k"), rule).to_pylist()[0] in whole.to_pylist()


def test_any_column_type_passes_through() -> None:
    columns = {
        "p": pa.chunked_array([["x"], ["x", "x"]]).cast(pa.dictionary(pa.int32(), pa.string())),
        "k": pa.chunked_array([["a"], ["a", "b"]]).cast(pa.large_string()),
        "ts": pa.array([1, 2, 3]),
        "v": pa.array([{"f": [1, None]}, None, {"f": []}]),
        "m": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "nothing": pa.nulls(3),
    }
    rows = pa.table(columns)
    for payload in (payloads.OVERWRITE_WITH_LATEST, payloads.PARTIAL_UPDATE):
        found = combine_duplicates(rows, ("p", "k"), rule_for(payload, ("ts",)))
        assert found.column("v").to_pylist()[1:] == [{"f": []}]
        assert found.column("k").to_pylist() == ["a", "b"]
        assert found.schema == rows.schema


def test_text_beyond_one_arrays_bytes_comes_in_chunks() -> None:
    parts = [pa.chunked_array([["aaaa", None, "bb"], ["c"]]), pa.chunked_array([["dddddd"]])]
    at = pa.array([4, 0, 1, 3, 2, 4, 4])
    found = pick_column(parts, at, most=12)
    assert found.num_chunks > 1
    assert found.type == pa.string()
    assert (
        found.to_pylist() == pick_column(parts, at).to_pylist() == ["dddddd", "aaaa", None, "c", "bb"] + ["dddddd"] * 2
    )
