"""Columns that a file has under another name or type, or not at all, come out as the table has them now."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatch
from hoodie.reading.slices.column_types import columns_at
from hoodie.schema.conform import FileColumn, conform, with_column_history, written_columns

OLD, NOW = "20240101000000000", "20240102000000000"


def altered(field: pa.Field, written: FileColumn) -> pa.Field:
    """A field that files before NOW have in another way."""
    return with_column_history(field, [(0, written), (int(NOW), None)], {})


def read(rows: pa.Table, *fields: pa.Field, instant: str = OLD, in_log: bool = False) -> list[dict[str, Any]]:
    schema = pa.schema(fields)
    columns = columns_at(schema, instant, in_log=in_log)
    picked = rows.select(columns.names(schema.names, rows.column_names))
    return conform(columns.applied(picked), schema, drop_extra=True).to_pylist()


def test_names_that_were_exchanged_are_told_apart() -> None:
    rows = pa.table({"a": [1], "b": [2]})
    fields = [altered(pa.field("a", pa.int64()), FileColumn("b")), altered(pa.field("b", pa.int64()), FileColumn("a"))]
    assert read(rows, *fields) == [{"a": 2, "b": 1}]
    assert read(rows, *fields, instant=NOW) == [{"a": 1, "b": 2}]


def test_a_column_of_the_same_name_that_was_dropped_is_not_this_one() -> None:
    rows = pa.table({"id": ["x", "y"], "b": ["old", "old"]})
    b = altered(pa.field("b", pa.string()), FileColumn(None))
    assert read(rows, pa.field("id", pa.string()), b) == [{"id": "x", "b": None}, {"id": "y", "b": None}]
    assert read(rows, b) == [{"b": None}, {"b": None}]


@pytest.mark.parametrize(
    ("have", "kind", "value"),
    [
        (pa.array([1, None], pa.int32()), pa.int64(), 1),
        (pa.array([1, None], pa.int32()), pa.decimal128(4, 2), Decimal("1.00")),
        (pa.array([1 << 40, None], pa.int64()), pa.string(), str(1 << 40)),
        (pa.array([1e20, None], pa.float64()), pa.string(), "1.0E20"),
        (pa.array([0.1, None], pa.float32()), pa.string(), "0.1"),
        (pa.array([0.25, None], pa.float64()), pa.decimal128(6, 2), Decimal("0.25")),
        (pa.array([Decimal("2.50"), None], pa.decimal128(8, 2)), pa.decimal128(12, 4), Decimal("2.5000")),
        (pa.array([Decimal("2.50"), None], pa.decimal128(8, 2)), pa.string(), "2.50"),
        (pa.array([dt.date(2024, 1, 2), None]), pa.string(), "2024-01-02"),
        (pa.array(["2024-01-02", None]), pa.date32(), dt.date(2024, 1, 2)),
        (pa.array(["2.5", None]).dictionary_encode(), pa.decimal128(8, 2), Decimal("2.50")),
    ],
)
def test_values_of_a_former_type_are_read_as_hudi_casts_them(have: pa.Array, kind: pa.DataType, value: object) -> None:
    column = altered(pa.field("v", kind), FileColumn("old", retyped=True))
    assert read(pa.table({"old": have}), column) == [{"v": value}, {"v": None}]


def test_a_float_of_a_log_is_widened_by_its_text_and_one_of_a_base_file_by_its_bits() -> None:
    column, rows = (
        altered(pa.field("v", pa.float64()), FileColumn("v", True)),
        pa.table({"v": pa.array([0.1], pa.float32())}),
    )
    assert read(rows, column, in_log=True) == [{"v": 0.1}]
    assert read(rows, column) == [{"v": 0.10000000149011612}]


def test_a_text_that_is_no_value_of_the_new_type_is_refused_by_name() -> None:
    column = altered(pa.field("v", pa.date32()), FileColumn("v", retyped=True))
    with pytest.raises(SchemaMismatch, match="column v is string in a file and date in the table"):
        read(pa.table({"v": ["tomorrow"]}), column)


def test_fields_of_structs_lists_and_maps_are_found_by_their_former_names() -> None:
    kind = pa.struct([("x", pa.string()), ("new", pa.int32())])
    inner = FileColumn("s", fields={"x": FileColumn("y", retyped=True), "new": FileColumn(None)})
    values = [{"y": 7, "new": "other"}, None, {"y": None, "new": None}]
    was = pa.array(values, pa.struct([("y", pa.int32()), ("new", pa.string())]))
    now = [{"x": "7", "new": None}, None, {"x": None, "new": None}]
    struct = altered(pa.field("s", kind), inner)
    items = altered(pa.field("l", pa.list_(pa.field("element", kind))), FileColumn("l", item=inner))
    pairs = altered(pa.field("m", pa.map_(pa.string(), kind)), FileColumn("m", item=inner))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3]), was)
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 1, 3]), pa.array(["a", "b", "c"]), was)
    rows = pa.table({"s": was, "l": lists, "m": maps})
    expected = [
        {"s": now[0], "l": now[:2], "m": [("a", now[0])]},
        {"s": now[1], "l": [], "m": []},
        {"s": now[2], "l": now[2:], "m": [("b", now[1]), ("c", now[2])]},
    ]
    assert read(rows, struct, items, pairs) == expected
    assert read(rows.slice(1), struct, items, pairs) == expected[1:]


def test_a_struct_all_of_whose_fields_are_new_keeps_its_nulls() -> None:
    was = pa.array([{"x": 1}, None])
    column = altered(pa.field("s", pa.struct([("x", pa.string())])), FileColumn("s", fields={"x": FileColumn(None)}))
    assert read(pa.table({"s": was}), column) == [{"s": {"x": None}}, {"s": None}]


def test_the_version_is_the_newest_up_to_the_instant_unless_its_commit_named_another() -> None:
    history = [(0, FileColumn("first")), (20240101000000000, FileColumn("second")), (20240103000000000, None)]
    schema = pa.schema(
        [with_column_history(pa.field("v", pa.int32()), history, {"20240102000000000": 20240103000000000})]
    )

    def place(instant: str) -> str | None:
        found = written_columns(schema, instant).get("v")
        return None if found is None else found.name

    assert [place(i) for i in ("20230101000000000", "20240101000000000", "20240101000000001")] == [
        "first",
        "second",
        "second",
    ]
    assert place("20240102000000000") is None
    assert place("20240103000000001") is None
    assert written_columns(pa.schema([with_column_history(pa.field("v", pa.int32()), [(0, None)], {})]), OLD) == {}
