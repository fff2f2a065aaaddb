"""The kernel of rows that say nothing of some columns: stored values stay there, whatever the rule."""

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput
from hoodie.merge import payloads
from hoodie.merge.base import BaseMerge, Incoming
from hoodie.merge.payloads import rule_for
from hoodie.merge.rows import nullable
from hoodie.merge.rules import MergeRule, keeping, with_stored_columns

NESTED = pa.struct([("x", pa.int64()), ("y", pa.int64()), ("in", pa.struct([("p", pa.int64()), ("q", pa.int64())]))])
SCHEMA = pa.schema(
    [
        pa.field("_hoodie_record_key", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("v", pa.int64()),
        pa.field("w", pa.int64(), nullable=False),
        pa.field("s", NESTED),
    ]
)


class Newer:
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer


def table(*rows: dict[str, Any], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(rows), nullable(schema)).cast(schema)


STORED = table(
    {"_hoodie_record_key": "a", "ts": 5, "v": 1, "w": 10, "s": {"x": 1, "y": 2, "in": {"p": 3, "q": 4}}},
    {"_hoodie_record_key": "b", "ts": 5, "v": 2, "w": 20, "s": None},
    {"_hoodie_record_key": "c", "ts": 5, "v": None, "w": 30, "s": {"x": 1, "y": 2, "in": None}},
)
INCOMING = table(
    {"_hoodie_record_key": "b", "ts": 6, "v": 7, "s": {"x": 9, "in": {"p": 9}}},
    {"_hoodie_record_key": "a", "ts": 4, "v": 8, "s": {"x": 8, "in": {"p": 8}}},
    {"_hoodie_record_key": "c", "ts": 7, "v": None, "s": None},
    {"_hoodie_record_key": "n", "ts": 1, "v": 9, "s": {"x": 7}},
    schema=nullable(SCHEMA),
)
MISSING = ("w", "s.y", "s.in.q")


def merged(rule: MergeRule) -> tuple[dict[str, dict[str, Any]], BaseMerge]:
    keys = INCOMING.column("_hoodie_record_key").combine_chunks()
    merge = BaseMerge(Incoming(INCOMING, keys), rule)
    rows = merge.batch(STORED).to_pylist() + merge.inserts().to_pylist()
    return {row.pop("_hoodie_record_key"): row for row in rows}, merge


NEW = {"ts": 1, "v": 9, "w": None, "s": {"x": 7, "y": None, "in": None}}
B = {"ts": 6, "v": 7, "w": 20, "s": {"x": 9, "y": None, "in": {"p": 9, "q": None}}}
C = {"ts": 7, "v": None, "w": 30, "s": None}


@pytest.mark.parametrize("payload", [payloads.OVERWRITE_WITH_LATEST, payloads.DEFAULT, payloads.FIRST_VALUE])
def test_the_winner_has_the_stored_values_of_what_it_says_nothing_of(payload: str) -> None:
    rule = pickle.loads(pickle.dumps(keeping(rule_for(payload, ("ts",)), MISSING)))
    rows, merge = merged(rule)
    late = {"ts": 4, "v": 8, "w": 10, "s": {"x": 8, "y": 2, "in": {"p": 8, "q": 4}}}
    wins = payload == payloads.OVERWRITE_WITH_LATEST
    assert rows == {"a": late if wins else STORED.slice(0, 1).drop_columns("_hoodie_record_key").to_pylist()[0],
                    "b": B, "c": C, "n": NEW}  # fmt: skip
    assert (merge.updated, merge.unchanged, merge.inserted) == ((3, 0, 1) if wins else (2, 1, 1))


def test_a_rule_that_fills_nulls_fills_the_others_as_before() -> None:
    rows, _ = merged(keeping(rule_for(payloads.PARTIAL_UPDATE, ("ts",)), MISSING))
    assert rows["b"] == B
    assert rows["c"] == {**C, "s": {"x": 1, "y": 2, "in": None}}
    assert rows["n"] == NEW


def test_rows_that_delete_delete() -> None:
    flagged = INCOMING.append_column("_hoodie_is_deleted", pa.array([True, False, False, True]))
    stored = STORED.append_column("_hoodie_is_deleted", pa.nulls(3, pa.bool_()))
    rule = keeping(rule_for(payloads.DEFAULT, ("ts",)), MISSING)
    merge = BaseMerge(Incoming(flagged, flagged.column("_hoodie_record_key").combine_chunks()), rule)
    assert merge.batch(stored).column("_hoodie_record_key").to_pylist() == ["a", "c"]
    assert merge.inserts().num_rows == 0


def test_nothing_missing_changes_no_rule() -> None:
    rule = rule_for(payloads.DEFAULT, ("ts",))
    assert keeping(rule, ()) is rule


@pytest.mark.parametrize(
    ("payload", "missing", "match"),
    [
        (payloads.EMPTY, "w", "deletes every row"),
        (payloads.AWS_DMS, "Op", "cannot keep 'Op'"),
        (payloads.MYSQL_DEBEZIUM, "_event_seq", "cannot keep '_event_seq'"),
        (payloads.POSTGRES_DEBEZIUM, "_event_lsn", "cannot keep '_event_lsn'"),
    ],
)
def test_a_rule_that_decides_by_a_missing_column_is_refused(payload: str, missing: str, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        keeping(rule_for(payload, ("ts",)), (missing,))


def test_a_merger_of_the_users_own_gets_no_values_twice() -> None:
    rule = replace(rule_for(payloads.DEFAULT), merger=Newer())
    with pytest.raises(InvalidInput, match='missing="keep" has no meaning here: the merger'):
        keeping(rule, ("w",))


@pytest.mark.parametrize("payload", [payloads.AWS_DMS, payloads.MYSQL_DEBEZIUM, payloads.POSTGRES_DEBEZIUM])
def test_rules_of_change_streams_keep_other_columns(payload: str) -> None:
    assert keeping(rule_for(payload, ("ts",)), ("w",)).keeps == ("w",)


def test_slices_of_structs_are_aligned() -> None:
    whole = with_stored_columns(STORED.slice(1), INCOMING.slice(2), ["s.y"])
    assert whole.column("s").to_pylist() == [None, {"x": 7, "y": 2, "in": None}]
