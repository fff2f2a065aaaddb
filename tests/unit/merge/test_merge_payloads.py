"""What each payload class decides, case by case as Hudi's own classes answered."""

import datetime
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput, InvalidOption, UnsupportedTable
from hoodie.merge import payloads
from hoodie.merge.fold import fold
from hoodie.merge.payloads import rule_for, rule_for_mode, table_rule, with_defaults
from hoodie.merge.rules import UNAVAILABLE, Choice, MergeRule, Survivor
from hoodie.schema.schema import AVRO_DEFAULT
from support.incoming import PAYLOAD_COLUMNS

COLUMNS = pa.schema([pa.field("id", pa.string()), *PAYLOAD_COLUMNS])
VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "payload_merge.json").read_text())

AVRO = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "ts", "type": ["null", "long"], "default": None},
            {"name": "v", "type": ["null", "string"], "default": None},
            {"name": "n", "type": "int", "default": -1},
        ],
    }
)


def record(values: dict[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(COLUMNS.names), "id": "k", "n": -1, **values}


def rows(*values: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([record(v) for v in values], COLUMNS)


def result(rule: MergeRule, older: pa.Table, newer: pa.Table, how: str) -> list[Any]:
    """Each pair's outcome, in the words of the vectors."""
    outcome = getattr(rule, how)(older, newer)
    made = outcome.rows(older, newer).to_pylist()
    words = {Choice.KEEP: "old", Choice.TAKE: "new", Choice.DELETE: "delete"}
    return [words.get(c, row) for c, row in zip(outcome.choice.tolist(), made, strict=True)]


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: f"{v['payload'].rpartition('.')[2]}: {v['case']}")
def test_a_payload_decides_as_hudi_does(vector: dict[str, Any]) -> None:
    rule = with_defaults(rule_for(vector["payload"], ("ts",)), AVRO)
    older, newer = rows(vector["old"]), rows(vector["new"])

    expected = vector["precombine"]
    (found,) = result(rule, older, newer, "precombine")
    if isinstance(expected, dict):
        assert (found if isinstance(found, dict) else record(vector[found])) == record(expected["merged"])
        assert record(expected["merged"])["ts"] == expected["ordering"]
    else:
        assert found == expected

    expected = vector["combine_with_stored"]
    (found,) = result(rule, older, newer, "combine")
    if expected in ("keep stored", "delete"):
        assert found == {"keep stored": "old", "delete": "delete"}[expected]
    else:
        assert (found if isinstance(found, dict) else record(vector[found])) == record(expected)
        assert found != "old", "a row that changed carries the incoming commit"


def test_many_pairs_decide_as_one_at_a_time() -> None:
    for payload in {v["payload"] for v in VECTORS["vectors"]}:
        cases = [v for v in VECTORS["vectors"] if v["payload"] == payload]
        rule = with_defaults(rule_for(payload, ("ts",)), AVRO)
        older, newer = rows(*(v["old"] for v in cases)), rows(*(v["new"] for v in cases))
        for how in ("precombine", "combine"):
            alone = [result(rule, rows(v["old"]), rows(v["new"]), how)[0] for v in cases]
            assert result(rule, older, newer, how) == alone


def test_an_unknown_payload_is_named() -> None:
    with pytest.raises(UnsupportedTable, match=r"com\.acme\.Mine"):
        rule_for("com.acme.Mine")
    with pytest.raises(UnsupportedTable, match="MERGE INTO"):
        rule_for("org.apache.spark.sql.hudi.command.payload.ExpressionPayload")


def test_without_an_ordering_field_the_incoming_row_wins() -> None:
    older, newer = rows({"ts": 9}), rows({"ts": 1})
    for payload in (payloads.DEFAULT, payloads.EVENT_TIME, payloads.FIRST_VALUE):
        assert result(rule_for(payload), older, newer, "combine") == ["new"]


def test_first_value_takes_the_incoming_row_over_a_null_ordering() -> None:
    rule = rule_for(payloads.FIRST_VALUE, ("ts",))
    assert result(rule, rows({}, {}, {"ts": 2}), rows({}, {"ts": 1}, {"ts": 2}), "combine") == ["new", "new", "old"]


def test_a_delete_marker_replaces_the_flag() -> None:
    marked = {"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "gone"}
    older = rows({"ts": 1}, {"ts": 1}, {"ts": 9})
    newer = rows({"ts": 2, "v": "gone"}, {"ts": 2, "_hoodie_is_deleted": True}, {"ts": 2, "v": "gone"})
    for payload in (payloads.DEFAULT, payloads.FIRST_VALUE):
        assert result(rule_for(payload, ("ts",), marked), older, newer, "combine") == ["delete", "new", "old"]
    event_time = rule_for(payloads.EVENT_TIME, ("ts",), marked)
    assert result(event_time, older, newer, "combine") == ["new", "delete", "old"]


def test_a_delete_marker_is_compared_as_text() -> None:
    marked = {"hoodie.payload.delete.field": "n", "hoodie.payload.delete.marker": "7"}
    rule = rule_for(payloads.DEFAULT, (), marked)
    assert rule.is_delete(rows({"n": 7}, {"n": 8}, {"n": None})).tolist() == [True, False, False]
    assert rule.is_delete(pa.table({"id": ["a"]})).tolist() == [False]


def test_a_delete_field_without_a_marker_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"delete\.marker"):
        rule_for(payloads.DEFAULT, (), {"hoodie.payload.delete.field": "v"})


def test_dms_needs_its_column() -> None:
    rule = rule_for(payloads.AWS_DMS)
    with pytest.raises(InvalidInput, match="'Op'"):
        rule.is_delete(pa.table({"id": ["a"]}))
    assert rule.is_delete(rows({"Op": "D"}, {"Op": "I"}, {}, {"_hoodie_is_deleted": True})).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_postgres_refuses_an_incoming_row_without_lsn() -> None:
    rule = rule_for(payloads.POSTGRES_DEBEZIUM, ("ts",))
    with pytest.raises(InvalidInput, match="_event_lsn"):
        rule.combine(rows({"_event_lsn": 1}), rows({}))


def test_mysql_refuses_a_sequence_that_is_none() -> None:
    rule = rule_for(payloads.MYSQL_DEBEZIUM, ("ts",))
    for bad in ("12", "a.b", "1.2.3", ""):
        with pytest.raises(InvalidInput, match="_event_seq"):
            rule.combine(rows({"_event_seq": "1.1"}), rows({"_event_seq": bad}))


def test_postgres_fills_text_and_bytes_only_where_the_placeholder_stands() -> None:
    schema = pa.schema(
        [("_event_lsn", pa.int64()), ("s", pa.string()), ("b", pa.binary()), ("l", pa.list_(pa.string()))]
    )
    gap = "__debezium_unavailable_value"
    older = pa.table([[1, 1], ["old", "old"], [b"old", b"old"], [["old"], ["old"]]], schema=schema)
    newer = pa.table([[2, 2], [gap, "new"], [gap.encode(), None], [[gap], None]], schema=schema)
    rule = rule_for(payloads.POSTGRES_DEBEZIUM)
    outcome = rule.combine(older, newer)
    assert outcome.choice.tolist() == [Choice.MERGED, Choice.TAKE]
    assert outcome.rows(older, newer).to_pylist() == [
        {"_event_lsn": 2, "s": "old", "b": b"old", "l": [gap]},
        {"_event_lsn": 2, "s": "new", "b": None, "l": None},
    ]


def test_a_partial_update_that_came_late_keeps_the_incoming_meta_columns() -> None:
    schema = pa.schema(
        [("_hoodie_commit_time", pa.string()), ("ts", pa.int64()), ("a", pa.string()), ("b", pa.string())]
    )
    older = pa.table([["001"], [5], ["old"], [None]], schema=schema)
    newer = pa.table([["002"], [3], ["new"], ["new"]], schema=schema)
    rule = rule_for(payloads.PARTIAL_UPDATE, ("ts",))
    for how in ("precombine", "combine"):
        assert result(rule, older, newer, how) == [{"_hoodie_commit_time": "002", "ts": 5, "a": "old", "b": "new"}]


def test_a_partial_update_whose_leading_record_is_a_delete_stays_as_it_is() -> None:
    rule = rule_for(payloads.PARTIAL_UPDATE, ("ts",))
    gone = {"ts": 5, "_hoodie_is_deleted": True}
    assert result(rule, rows(gone, {"ts": 1, "v": "x"}), rows({"ts": 1, "v": "x"}, gone), "precombine") == [
        "old",
        "new",
    ]


def test_defaults_of_every_type_give_way() -> None:
    kinds: dict[str, tuple[pa.DataType, Any, Any, Any]] = {  # default in the schema, the same as a value, stored
        "text": (pa.string(), "x", "x", "stored"),
        "whole": (pa.int64(), 0, 0, 5),
        "real": (pa.float64(), 0, 0.0, 5.5),
        "flag": (pa.bool_(), False, False, True),
        "day": (pa.date32(), 1, datetime.date(1970, 1, 2), None),
        "bytes": (pa.binary(), "ÿ", b"\xff", b"s"),
        "money": (pa.decimal128(9, 2), "\x01", Decimal("0.01"), None),
        "list": (pa.list_(pa.int32()), [], [], [1]),
        "coded": (pa.dictionary(pa.int32(), pa.string()), "x", "x", "stored"),
        "wrong": (pa.int32(), "text", 3, 4),
    }
    schema = pa.schema(
        [pa.field(n, kind, metadata={AVRO_DEFAULT: json.dumps(d)}) for n, (kind, d, _, _) in kinds.items()]
    )
    rule = with_defaults(rule_for(payloads.OVERWRITE_NON_DEFAULTS, ()), schema)
    stored = pa.Table.from_pylist([{n: s for n, (_, _, _, s) in kinds.items()}], schema)
    incoming = pa.Table.from_pylist([{n: v for n, (_, _, v, _) in kinds.items()}, dict.fromkeys(kinds)], schema)
    outcome = rule.combine(pa.concat_tables([stored, stored]), incoming)
    first, second = outcome.rows(incoming, incoming).to_pylist()
    assert first == {**stored.to_pylist()[0], "wrong": 3}
    assert second == dict.fromkeys(kinds), "null is not the default here"


def test_the_delete_operation_takes_any_row_away() -> None:
    rule = rule_for(payloads.EMPTY)
    assert result(rule, rows({"ts": 9}), rows({}), "combine") == ["delete"]
    assert result(rule, rows({"ts": 9}), rows({}), "precombine") == ["old"]
    assert rule.survivor is Survivor.OLDEST


def test_merge_modes_stand_for_rules() -> None:
    older, newer = rows({"ts": 3}, {"ts": 2}), rows({"ts": 2}, {"ts": 2})
    event = rule_for_mode("EVENT_TIME_ORDERING", ("ts",))
    commit = rule_for_mode("COMMIT_TIME_ORDERING", ("ts",))
    for how in ("precombine", "combine"):
        assert result(event, older, newer, how) == ["old", "new"]
        assert result(commit, older, newer, how) == ["new", "new"]
    with pytest.raises(UnsupportedTable, match="LUNAR"):
        rule_for_mode("LUNAR")


def test_partial_update_modes_fill_what_is_missing() -> None:
    mode = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    rule = with_defaults(rule_for_mode("EVENT_TIME_ORDERING", ("ts",), mode), AVRO)
    older, newer = rows({"ts": 3, "n": 5}), rows({"ts": 2, "n": 6, "v": "new"})
    merged = record({"ts": 3, "n": 5, "v": "new"})
    assert result(rule, older, newer, "combine") == result(rule, older, newer, "precombine") == [merged]
    late_delete = rows({"ts": 2, "_hoodie_is_deleted": True})
    assert result(rule, older, late_delete, "combine") == ["old"]
    with pytest.raises(UnsupportedTable, match="KEEP_ALL"):
        rule_for_mode("EVENT_TIME_ORDERING", (), {"hoodie.table.partial.update.mode": "KEEP_ALL"})


def test_partial_updates_keep_the_commit_time_of_the_row_that_leads() -> None:
    mode = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    rule = with_defaults(rule_for_mode("EVENT_TIME_ORDERING", ("ts",), mode), AVRO)
    versions = [rows({"ts": 3, "n": 5}), rows({"ts": 2, "v": "late"}), rows({"ts": 4, "n": 6}), rows({"ts": 1, "n": 1})]
    stamped = [part.append_column("_hoodie_commit_time", [[str(n)]]) for n, part in enumerate(versions)]
    folded = fold(pa.concat_tables(stamped), np.zeros(4, np.int64), None, rule).rows.to_pylist()
    one_by_one = stamped[0]
    for newer in stamped[1:]:
        one_by_one = rule.combine(one_by_one, newer).rows(one_by_one, newer)
    expected = {**record({"ts": 4, "n": 6, "v": "late"}), "_hoodie_commit_time": "2"}
    assert folded == one_by_one.to_pylist() == [expected]


def test_a_table_of_version_6_goes_by_its_payload_class_whatever_the_strategy_id() -> None:
    stored = {
        "hoodie.table.version": "6",
        "hoodie.table.precombine.field": "ts",
        "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    }
    assert table_rule(stored) == rule_for(payloads.OVERWRITE_WITH_LATEST, ("ts",))
    payload = {"hoodie.compaction.payload.class": payloads.DEFAULT}
    assert table_rule({**stored, **payload}) == rule_for(payloads.DEFAULT, ("ts",))


def test_a_table_of_version_8_or_9_goes_by_its_merge_mode() -> None:
    nine = {"hoodie.table.version": "9", "hoodie.table.ordering.fields": "a, b"}
    assert table_rule(nine) == rule_for_mode("EVENT_TIME_ORDERING", ("a", "b"))
    assert table_rule({"hoodie.table.version": "8"}) == rule_for_mode("COMMIT_TIME_ORDERING")
    custom = {
        "hoodie.table.version": "8",
        "hoodie.table.precombine.field": "ts",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.compaction.payload.class": payloads.PARTIAL_UPDATE,
    }
    assert table_rule(custom) == rule_for(payloads.PARTIAL_UPDATE, ("ts",))
    with pytest.raises(UnsupportedTable, match="1897ef5f"):
        table_rule({**custom, "hoodie.record.merge.strategy.id": "1897ef5f-18bc-4557-939c-9d6a8afd1519"})


@pytest.mark.parametrize(
    ("named", "mode"),
    [
        ({"hoodie.record.merge.strategy.id": "ce9acb64-bde0-424c-9b91-f6ebba25356d"}, "COMMIT_TIME_ORDERING"),
        ({"hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"}, "EVENT_TIME_ORDERING"),
        ({"hoodie.compaction.payload.class": payloads.OVERWRITE_WITH_LATEST}, "COMMIT_TIME_ORDERING"),
        ({"hoodie.compaction.payload.class": payloads.DEFAULT}, "EVENT_TIME_ORDERING"),
        ({"hoodie.compaction.payload.class": payloads.EVENT_TIME}, "EVENT_TIME_ORDERING"),
    ],
)
def test_an_empty_merge_mode_is_that_of_the_strategy_or_the_payload_class(named: dict[str, str], mode: str) -> None:
    table = {
        "hoodie.table.version": "8",
        "hoodie.table.precombine.field": "ts",
        "hoodie.record.merge.mode": "",
        **named,
    }
    assert table_rule(table) == rule_for_mode(mode, ("ts",))
    custom = {**table, "hoodie.record.merge.strategy.id": "", "hoodie.compaction.payload.class": payloads.FIRST_VALUE}
    assert table_rule(custom) == rule_for(payloads.FIRST_VALUE, ("ts",))


def test_properties_for_the_merger_set_the_delete_marker() -> None:
    nine = {
        "hoodie.table.version": "9",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.record.merge.property.hoodie.payload.delete.field": "Op",
        "hoodie.record.merge.property.hoodie.payload.delete.marker": "D",
    }
    deletes = table_rule(nine).is_delete(rows({"Op": "D"}, {"Op": "I"}, {"_hoodie_is_deleted": True}))
    assert deletes.tolist() == [True, False, True]


def test_the_table_says_what_stands_for_a_value_that_is_not_available() -> None:
    nine = {
        "hoodie.table.version": "9",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": "?",
    }
    rule = table_rule(nine)
    older, newer = rows({"v": "one"}, {"v": "two"}), rows({"v": "?"}, {"v": UNAVAILABLE})
    assert rule.combine(older, newer).rows(older, newer).column("v").to_pylist() == ["one", UNAVAILABLE]


def test_a_rule_travels_to_executors() -> None:
    for payload in payloads._PAYLOADS:
        rule = with_defaults(rule_for(payload, ("ts",)), AVRO)
        assert pickle.loads(pickle.dumps(rule)) == rule
    assert isinstance(rule.is_delete(rows({})), np.ndarray)
