"""Incoming rows against the rows of a base file."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.merge import base, payloads
from hoodie.merge.base import BaseMerge, Incoming, Merged, merge_base
from hoodie.merge.payloads import rule_for, rule_for_mode
from support.incoming import incoming_deletes, incoming_rows

SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("_hoodie_record_key", pa.string()),
        pa.field("ts", pa.int64(), nullable=False),
        ("v", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
OVERWRITE = rule_for(payloads.OVERWRITE_WITH_LATEST, ("ts",))
EVENT_TIME = rule_for(payloads.DEFAULT, ("ts",))


def rows(commit: str, *values: tuple[Any, ...]) -> pa.Table:
    """Rows of (key, ts, value[, deleted])."""
    full = [(commit, *value, *([None] * (4 - len(value)))) for value in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in full], SCHEMA)


def seen(table: pa.Table) -> list[tuple[Any, ...]]:
    table.validate(full=True)
    return [(r["_hoodie_record_key"], r["v"], r["_hoodie_commit_time"]) for r in table.to_pylist()]


STORED = rows("1", ("a", 5, "a1"), ("b", 5, "b1"), ("c", 5, "c1"), ("d", 5, "d1"))


def test_matched_rows_are_replaced_in_place_and_others_stay_as_they_are() -> None:
    merged = merge_base(STORED, incoming_rows(rows("2", ("c", 1, "c2"), ("x", 1, "x2"), ("a", 9, "a2"))), OVERWRITE)
    assert seen(merged.rows) == [("a", "a2", "2"), ("b", "b1", "1"), ("c", "c2", "2"), ("d", "d1", "1")]
    assert merged.rows.schema == SCHEMA
    assert (merged.matched.tolist(), merged.updated, merged.deleted, merged.unchanged) == ([0, 2], 2, 0, 2)


def test_a_stored_row_that_wins_keeps_its_own_commit() -> None:
    merged = merge_base(STORED, incoming_rows(rows("2", ("a", 4, "late"), ("b", 5, "tie"))), EVENT_TIME)
    assert seen(merged.rows)[:2] == [("a", "a1", "1"), ("b", "tie", "2")]
    assert (merged.updated, merged.unchanged, merged.matched.tolist()) == (1, 3, [0, 1])


def test_a_delete_drops_the_row_unless_the_rule_keeps_it() -> None:
    late = incoming_rows(rows("2", ("a", 4, None, True), ("b", 6, None, True)))
    assert [r[0] for r in seen(merge_base(STORED, late, EVENT_TIME).rows)] == ["a", "c", "d"]
    merged = merge_base(STORED, late, OVERWRITE)
    assert [r[0] for r in seen(merged.rows)] == ["c", "d"]
    assert (merged.updated, merged.deleted, merged.unchanged) == (0, 2, 2)


def test_a_batch_that_no_incoming_row_meets_is_passed_on_untouched() -> None:
    merged = merge_base(STORED, incoming_rows(rows("2", ("x", 1, "x"))), OVERWRITE)
    assert merged.rows is STORED
    kept = merge_base(STORED, incoming_rows(rows("2", ("a", 1, "x"))), EVENT_TIME)
    assert kept.rows is STORED


def test_the_delete_operation_ignores_ordering_values() -> None:
    for rule in (OVERWRITE, EVENT_TIME, rule_for_mode("EVENT_TIME_ORDERING", ("ts",))):
        merge = BaseMerge(incoming_deletes(pa.array(["b", "x"]), SCHEMA), rule)
        assert [r[0] for r in seen(merge.batch(STORED))] == ["a", "c", "d"]
        assert merge.inserts().num_rows == 0
        assert (merge.deleted, merge.unchanged, merge.inserted) == (2, 3, 0)


def test_tombstones_with_an_ordering_value_are_compared_only_in_event_time_mode() -> None:
    tombs = Incoming(rows("2", ("a", 4, None), ("b", 6, None)), pa.array(["a", "b"]), np.array([True, True]))
    event_time_mode = rule_for_mode("EVENT_TIME_ORDERING", ("ts",))
    assert [r[0] for r in seen(merge_base(STORED, tombs, event_time_mode).rows)] == ["a", "c", "d"]
    assert [r[0] for r in seen(merge_base(STORED, tombs, EVENT_TIME).rows)] == ["c", "d"]


def test_tombstones_and_rows_come_together() -> None:
    incoming = rows("2", ("a", 9, "gone"), ("b", 9, "b2"), ("x", 9, "x2"), ("y", 9, "gone"), ("z", 9, "z", True))
    deleted = np.array([True, False, False, True, False])
    merge = BaseMerge(Incoming(incoming, incoming["_hoodie_record_key"].combine_chunks(), deleted), EVENT_TIME)
    assert seen(merge.batch(STORED)) == [("b", "b2", "2"), ("c", "c1", "1"), ("d", "d1", "1")]
    assert seen(merge.inserts()) == [("x", "x2", "2")]
    assert (merge.updated, merge.deleted, merge.unchanged, merge.inserted) == (1, 3, 2, 1)


def test_batches_stream_and_what_no_batch_had_is_inserted_in_its_order() -> None:
    merge = BaseMerge(incoming_rows(rows("2", ("x", 1, "x"), ("d", 9, "d2"), ("w", 1, "w"), ("a", 9, "a2"))), OVERWRITE)
    out = [seen(merge.batch(batch)) for batch in STORED.to_batches(max_chunksize=2)]
    assert out == [[("a", "a2", "2"), ("b", "b1", "1")], [("c", "c1", "1"), ("d", "d2", "2")]]
    assert seen(merge.inserts()) == [("x", "x", "2"), ("w", "w", "2")]
    assert (merge.updated, merge.unchanged, merge.inserted) == (2, 2, 2)


def test_a_key_stored_twice_is_updated_twice() -> None:
    twice = pa.concat_tables([STORED, STORED.slice(0, 1)])
    merged = merge_base(twice, incoming_rows(rows("2", ("a", 9, "a2"))), OVERWRITE)
    assert [r[1] for r in seen(merged.rows)] == ["a2", "b1", "c1", "d1", "a2"]
    assert (merged.updated, merged.matched.tolist()) == (2, [0])


def test_merged_fields_carry_the_incoming_commit() -> None:
    rule = rule_for(payloads.PARTIAL_UPDATE, ("ts",))
    merged = merge_base(STORED, incoming_rows(rows("2", ("a", 9, None), ("b", 1, "late"), ("c", 9, "c2"))), rule)
    assert seen(merged.rows) == [("a", "a1", "2"), ("b", "b1", "2"), ("c", "c2", "2"), ("d", "d1", "1")]
    assert merged.rows["ts"].to_pylist() == [9, 5, 9, 5]
    assert (merged.updated, merged.unchanged) == (3, 1)


def test_keys_can_be_given_where_the_file_has_no_meta_columns() -> None:
    bare = pa.table({"id": ["a", "b"], "v": [1, 2]})
    incoming = incoming_rows(pa.table({"id": ["b"], "v": [3]}), keys=pa.array(["b"]))
    merged = merge_base(bare, incoming, rule_for(payloads.OVERWRITE_WITH_LATEST), keys=bare["id"])
    assert merged.rows.to_pylist() == [{"id": "a", "v": 1}, {"id": "b", "v": 3}]


def test_other_columns_than_the_tables_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="'v'"):
        merge_base(STORED, incoming_rows(STORED.drop_columns(["v"])), OVERWRITE)
    other = STORED.set_column(2, "ts", STORED["ts"].cast(pa.int32()))
    with pytest.raises(SchemaMismatch, match="'ts' is int32, in the table int64"):
        merge_base(STORED, incoming_rows(other), OVERWRITE)


def test_a_null_record_key_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1 stored"):
        merge_base(rows("1", (None, 1, "v")), incoming_rows(STORED), OVERWRITE)


def test_any_column_type_passes_through() -> None:
    def table(keys: list[str], commit: str) -> pa.Table:
        return pa.table(
            {
                "_hoodie_record_key": pa.array(keys),
                "ts": [1] * len(keys),
                "code": pa.array([commit + k for k in keys]).dictionary_encode(),
                "nested": [{"a": [{"b": commit}, None]}] * len(keys),
                "map": pa.array([[(commit, 1)]] * len(keys), pa.map_(pa.string(), pa.int64())),
                "nothing": pa.nulls(len(keys)),
            }
        )

    for payload in (payloads.OVERWRITE_WITH_LATEST, payloads.DEFAULT, payloads.PARTIAL_UPDATE):
        merge = BaseMerge(incoming_rows(table(["b", "x"], "2")), rule_for(payload, ("ts",)))
        out = pa.concat_tables([merge.batch(table(["a", "b"], "1")), merge.inserts()])
        out.validate(full=True)
        assert out["code"].to_pylist() == ["1a", "2b", "2x"]
        assert [n["a"][0]["b"] for n in out["nested"].to_pylist()] == ["1", "2", "2"]
        assert out["map"].to_pylist() == [[("1", 1)], [("2", 1)], [("2", 1)]]


@pytest.mark.parametrize("versions", [False, True])
def test_of_many_incoming_rows_each_batch_meets_those_of_its_keys(
    versions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = np.random.default_rng(3)
    numbers = chosen.choice(90, 70, replace=versions)
    values = [(f"k{number}", int(chosen.integers(9)), f"v{at}") for at, number in enumerate(numbers)]
    incoming = replace(incoming_rows(rows("2", *values)), versions=versions)
    batches = [rows("1", *((f"k{number}", 5, "old") for number in range(start, start + 20))) for start in (0, 20, 40)]
    few = BaseMerge(incoming, EVENT_TIME)
    expected = [few.merge(batch) for batch in batches]
    monkeypatch.setattr(base, "MANY_KEYS", 10)
    met: list[int] = []

    def merge(stored: pa.Table, near: Incoming, *more: Any) -> Merged:
        met.append(near.num_rows)
        return merge_base(stored, near, *more)

    monkeypatch.setattr(base, "merge_base", merge)
    many = BaseMerge(incoming, EVENT_TIME)
    for start, batch, before in zip((0, 20, 40), batches, expected, strict=True):
        met.clear()
        merged = many.merge(batch)
        assert max(met) == np.count_nonzero((numbers >= start) & (numbers < start + 20))
        assert seen(merged.rows) == seen(before.rows)
        assert (merged.met.tolist(), merged.choice.tolist()) == (before.met.tolist(), before.choice.tolist())
        assert merged.matched.tolist() == sorted(before.matched.tolist())
    assert seen(many.inserts()) == seen(few.inserts())
    counts = [(one.updated, one.deleted, one.unchanged, one.inserted) for one in (many, few)]
    assert counts[0] == counts[1]
