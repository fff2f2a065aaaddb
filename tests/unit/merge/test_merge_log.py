"""The blocks of a log folded: records, deletes with and without an ordering value, records after deletes."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFile, SchemaMismatch
from hoodie.formats.log.delete_block import DELETES, ORDERING_COLUMN, OrderingClass, decode_deletes, deletes_of
from hoodie.merge import payloads
from hoodie.merge.base import BaseMerge, single_versions
from hoodie.merge.log_merge import LogMerge
from hoodie.merge.payloads import rule_for, rule_for_mode
from hoodie.merge.rules import MergeRule

VECTORS = Path(__file__).parents[2] / "vectors"

OVERWRITE = rule_for(payloads.OVERWRITE_WITH_LATEST, ("ts",))
PARTIAL = rule_for(payloads.PARTIAL_UPDATE, ("ts",))


def schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            ("_hoodie_record_key", pa.string()),
            ("_hoodie_partition_path", pa.string()),
            pa.field("ts", kind, nullable=False),
            ("v", pa.string()),
        ]
    )


def merge(*blocks: Any, rule: MergeRule = OVERWRITE, kind: pa.DataType | None = None, fold_rows: int = 1 << 18) -> Any:
    """Key -> value, "deleted" for a tombstone. A block is a list of (key, ts[, value]), or a table of deletes."""
    kind = kind or pa.int64()
    log = LogMerge(schema(kind), rule, fold_rows)
    for block in blocks:
        if isinstance(block, pa.Table):
            log.add(log.tombstones(block, "some.log"))
        else:
            columns = [pa.array([row[0] for row in block]), pa.array(["p"] * len(block))]
            columns += [pa.array([row[1] for row in block], kind), pa.array([row[-1] for row in block], pa.string())]
            log.add(log.records(pa.Table.from_arrays(columns, schema=schema(kind))))
    incoming = log.finish()
    if incoming.versions:
        incoming, _ = single_versions(incoming, rule)
    incoming.rows.validate(full=True)
    keys, values = incoming.keys.to_pylist(), incoming.rows["v"].to_pylist()
    assert keys == incoming.rows["_hoodie_record_key"].to_pylist()
    assert set(incoming.rows["_hoodie_partition_path"].to_pylist()) <= {"p"}
    gone = [False] * len(keys) if incoming.deleted is None else incoming.deleted.tolist()
    assert len(set(keys)) == len(keys)
    return {key: "deleted" if g else value for key, value, g in zip(keys, values, gone, strict=True)}


def deletes(*entries: tuple[str, Any], kind: pa.DataType | None = None, cls: OrderingClass | None = None) -> pa.Table:
    keys, values = zip(*entries, strict=True)
    ordering = None if all(v is None for v in values) else pa.array(values, kind or pa.int64())
    return deletes_of(pa.array(keys), pa.array(["p"] * len(keys)), ordering, ordering_class=cls)


@pytest.mark.parametrize("rule", [OVERWRITE, PARTIAL], ids=["picks rows", "makes rows"])
@pytest.mark.parametrize("fold_rows", [1, 3, 1000])
def test_records_fold_by_ordering_value_and_arrival(rule: MergeRule, fold_rows: int) -> None:
    blocks = [[("a", 1, "1"), ("b", 5, "1")], [("a", 1, "2"), ("c", 1, "2")], [("b", 4, "3")]]
    assert merge(*blocks, rule=rule, fold_rows=fold_rows) == {"a": "2", "b": "1", "c": "2"}


@pytest.mark.parametrize("rule", [OVERWRITE, PARTIAL], ids=["picks rows", "makes rows"])
@pytest.mark.parametrize("fold_rows", [1, 1000])
def test_a_delete_loses_only_to_a_record_with_a_greater_ordering_value(rule: MergeRule, fold_rows: int) -> None:
    records = [(key, 5, "live") for key in "abcd"]
    block = deletes(("a", 4), ("b", 5), ("c", 6), ("d", None), ("x", 1))
    found = merge(records, block, rule=rule, fold_rows=fold_rows)
    assert found == {"a": "live", "b": "deleted", "c": "deleted", "d": "deleted", "x": "deleted"}


@pytest.mark.parametrize("rule", [OVERWRITE, PARTIAL], ids=["picks rows", "makes rows"])
@pytest.mark.parametrize("fold_rows", [1, 1000])
def test_a_record_after_a_delete_stands_again_whatever_its_ordering_value(rule: MergeRule, fold_rows: int) -> None:
    found = merge([("a", 5, "1")], deletes(("a", 9)), [("a", -3, "2")], rule=rule, fold_rows=fold_rows)
    assert found == {"a": "2"}
    again = merge([("a", 5, "1")], deletes(("a", 9)), [("a", -3, "2")], deletes(("a", -4)), rule=rule)
    assert again == {"a": "2"}


def test_negative_ordering_values_compare_as_numbers() -> None:
    assert merge([("a", -5, "1"), ("b", -5, "1")], deletes(("a", -6), ("b", -4))) == {"a": "1", "b": "deleted"}


def test_an_ordering_value_of_another_java_class_does_not_compare() -> None:
    record = [("a", 5, "live")]
    assert merge(record, deletes(("a", 1), cls=OrderingClass.LONG)) == {"a": "live"}
    assert merge(record, deletes(("a", 1), cls=OrderingClass.INT)) == {"a": "deleted"}
    assert merge(record, deletes(("a", 1), cls=OrderingClass.LONG), kind=pa.int32()) == {"a": "deleted"}
    assert merge(record, deletes(("a", 1), cls=OrderingClass.INT), kind=pa.int32()) == {"a": "live"}


def test_the_integer_0_wins_over_all_before_even_where_integers_compare() -> None:
    assert merge([("a", 5, "live")], deletes(("a", 0), kind=pa.int32()), kind=pa.int32()) == {"a": "deleted"}
    assert merge([("a", 5, "live")], deletes(("a", -1), kind=pa.int32()), kind=pa.int32()) == {"a": "live"}


DAY = datetime.date
LATER_RECORDS: list[tuple[pa.DataType, Any, Any]] = [
    (pa.bool_(), True, False),
    (pa.int16(), 5, 4),
    (pa.float32(), 1.5, 1.25),
    (pa.float64(), float("nan"), 1e300),
    (pa.string(), "\ue000", "\U0001f600"),
    (pa.large_string(), "b", "a"),
    (pa.dictionary(pa.int32(), pa.string()), "b", "a"),
    (pa.binary(), b"\x01", b"\x80"),
    (pa.date32(), DAY(2024, 1, 2), DAY(2024, 1, 1)),
    (pa.timestamp("us", "UTC"), datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 1)),
    (pa.timestamp("ms"), datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 1)),
    (pa.decimal128(10, 2), Decimal("12.51"), Decimal("12.50")),
    (pa.decimal128(30, 10), Decimal("12.51"), Decimal("12.50")),
]


@pytest.mark.parametrize(("kind", "greater", "less"), LATER_RECORDS, ids=lambda p: str(p) if len(str(p)) < 30 else "")
def test_ordering_values_of_every_type_compare(kind: pa.DataType, greater: Any, less: Any) -> None:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    assert merge([("a", greater, "live")], deletes(("a", less), kind=plain), kind=kind) == {"a": "live"}
    assert merge([("a", less, "live")], deletes(("a", greater), kind=plain), kind=kind) == {"a": "deleted"}


def test_the_classes_of_a_block_written_by_hudi_are_told_apart() -> None:
    vector = json.loads((VECTORS / "delete_block_ordering.json").read_text())
    block = decode_deletes(bytes.fromhex(vector["content_hex"]))
    comparable = {  # entry by entry: k0 a long 5, k1 an int 7, k2 text, k3 a date, k4 decimal 12.5, k5 timestamp, ...
        "k0": (pa.int64(), 6),
        "k1": (pa.int32(), 8),
        "k2": (pa.string(), "stz"),
        "k3": (pa.date32(), DAY(2025, 1, 3)),
        "k4": (pa.decimal128(9, 2), Decimal("12.51")),
        "k7": (pa.float32(), 1.75),
        "k8": (pa.float64(), 2.75),
        "k9": (pa.binary(), b"\x02"),
    }
    for key, (kind, greater) in comparable.items():
        found = merge([(r["recordKey"], greater, "live") for r in vector["records"]], block, kind=kind)
        assert [k for k, value in found.items() if value == "live"] == [key]


def test_without_an_ordering_field_a_delete_wins_over_all_before() -> None:
    for rule in (rule_for(payloads.OVERWRITE_WITH_LATEST), rule_for_mode("COMMIT_TIME_ORDERING", ("ts",))):
        assert merge([("a", 9, "1"), ("b", 1, "1")], deletes(("a", 1)), [("b", 0, "2")], rule=rule) == {
            "a": "deleted",
            "b": "2",
        }


def test_several_ordering_fields_or_a_nested_one_do_not_compare_with_deletes() -> None:
    both = rule_for(payloads.OVERWRITE_WITH_LATEST, ("ts", "v"))
    assert merge([("a", 9, "1")], deletes(("a", 1)), rule=both) == {"a": "deleted"}


def test_the_values_of_several_ordering_fields_compare_one_after_the_other() -> None:
    rule = rule_for_mode("EVENT_TIME_ORDERING", ("ts", "v"))

    def delete(key: str, *values: tuple[OrderingClass, int | str]) -> dict[str, object]:
        array = [{"ordering_class": int(cls), ORDERING_COLUMN[cls]: value} for cls, value in values]
        return {
            "record_key": key,
            "partition": "p",
            "ordering_class": int(OrderingClass.ARRAY),
            "ordering_array": array,
        }

    LONG, INT, STRING = OrderingClass.LONG, OrderingClass.INT, OrderingClass.STRING
    gone = pa.Table.from_pylist(
        [
            delete("less", (LONG, 5), (STRING, "a")),
            delete("same", (LONG, 5), (STRING, "b")),
            delete("zero", (LONG, 0), (STRING, "")),
            delete("other class", (INT, 1), (STRING, "a")),  # does not compare: it wins
            delete("one value", (LONG, 1)),
        ],
        schema=DELETES,
    )
    rows = [(key, 5, "b") for key in ("less", "same", "zero", "other class", "one value")]
    assert merge(rows, gone, rule=rule) == {
        "less": "b",
        "same": "deleted",
        "zero": "b",
        "other class": "deleted",
        "one value": "deleted",
    }


def test_event_time_mode_orders_deletes_like_records() -> None:
    rule = rule_for_mode("EVENT_TIME_ORDERING", ("ts",))
    assert merge([("a", 5, "1")], deletes(("a", 9)), [("a", 7, "late")], rule=rule) == {"a": "deleted"}
    assert merge([("a", 5, "1")], deletes(("a", 9)), [("a", 9, "tie")], rule=rule) == {"a": "tie"}
    assert merge([("a", 5, "1")], deletes(("a", None)), [("a", -7, "new")], rule=rule) == {"a": "new"}
    final_first = deletes(("a", None)), deletes(("a", 3))
    log = LogMerge(schema(pa.int64()), rule)
    for block in final_first:
        log.add(log.tombstones(block))
    assert log.finish().rows["ts"].to_pylist() == [None], "a delete without ordering value is not softened by one with"


def test_a_null_ordering_value_in_the_log_is_less_than_any() -> None:
    assert merge([("a", None, "old"), ("b", 1, "old")], [("a", 1, "new"), ("b", None, "new")]) == {
        "a": "new",
        "b": "old",
    }
    assert merge([("a", None, "old")], deletes(("a", 1))) == {"a": "deleted"}


def test_the_result_merges_into_base_rows() -> None:
    log = LogMerge(schema(pa.int64()), OVERWRITE, fold_rows=2)
    stored = pa.Table.from_pylist(
        [{"_hoodie_record_key": k, "_hoodie_partition_path": "p", "ts": 5, "v": "base"} for k in "abc"],
        schema(pa.int64()),
    )
    log.add(log.records(stored.slice(1, 1).set_column(3, "v", pa.array(["log"]))))
    log.add(log.tombstones(deletes(("c", None), ("y", None))))
    log.add(
        log.records(
            pa.Table.from_pylist([{**stored.to_pylist()[0], "_hoodie_record_key": "x", "v": "new"}], stored.schema)
        )
    )
    compaction = BaseMerge(log.finish(), OVERWRITE)
    out = pa.concat_tables([compaction.batch(stored), compaction.inserts()], promote_options="permissive")
    assert dict(zip(out["_hoodie_record_key"].to_pylist(), out["v"].to_pylist(), strict=True)) == {
        "a": "base",
        "b": "log",
        "x": "new",
    }
    assert (compaction.updated, compaction.deleted, compaction.inserted, compaction.unchanged) == (1, 2, 1, 1)


def test_an_empty_log_gives_nothing() -> None:
    assert merge() == {}
    assert merge([], deletes(("a", None)).slice(0, 0)) == {}


def test_a_block_of_other_columns_is_refused() -> None:
    log = LogMerge(schema(pa.int64()), OVERWRITE)
    with pytest.raises(SchemaMismatch, match="log block"):
        log.add(log.records(pa.table({"k": ["a"]})))
    with pytest.raises(SchemaMismatch, match="delete block"):
        log.add(log.tombstones(pa.table({"k": ["a"]})))


def test_an_ordering_value_that_the_column_cannot_hold_is_corrupt() -> None:
    with pytest.raises(CorruptFile, match=r"some\.log"):
        merge([("a", 1, "x")], deletes(("a", 300), kind=pa.int32()), kind=pa.int8())
