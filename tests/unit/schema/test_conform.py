"""Rows brought into a schema: by name, exactly, and with the column named when that cannot be."""

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import SchemaMismatch
from hoodie.schema.conform import conform
from hoodie.schema.schema import with_meta_fields
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_NTZ

UTC = dt.UTC


def one(kind: pa.DataType, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("c", kind, nullable)])


def cast(values: list[Any] | pa.Array, have: pa.DataType, want: pa.DataType) -> list[Any]:
    """The values in the other type; sliced and chunked input must give the same."""
    array = values if isinstance(values, pa.Array) else pa.array(values, have)
    rows = conform(pa.table({"c": array}), one(want))
    rows.validate(full=True)
    assert rows.schema == one(want)
    halves = pa.chunked_array([array[:1], array[1:], array[:0]], array.type)
    again = conform(pa.table({"c": halves}), one(want))
    again.validate(full=True)
    assert repr(again.to_pylist()) == repr(rows.to_pylist())
    assert repr(conform(pa.table({"c": array[1:]}), one(want)).to_pylist()) == repr(rows.to_pylist()[1:])
    return rows.column("c").to_pylist()


def items(kind: pa.DataType, nullable: bool = True) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable))


def test_columns_are_taken_by_name_in_the_schemas_order() -> None:
    rows = pa.table({"b": [1], "a": ["x"]})
    schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    assert conform(rows, schema) == pa.table({"a": ["x"], "b": [1]})
    assert conform(rows.to_batches()[0], schema) == pa.table({"a": ["x"], "b": [1]})
    assert conform(rows.slice(0, 0), schema).schema == schema


def test_rows_already_in_the_schema_are_not_copied() -> None:
    rows = pa.table({"a": [1, 2], "s": [{"x": 1}, None]})
    assert conform(rows, rows.schema) is rows
    wider = pa.schema([*rows.schema, pa.field("n", pa.int32())])
    assert conform(rows, wider).column("a").chunk(0).buffers()[1].address == rows["a"].chunk(0).buffers()[1].address


def test_a_missing_column_is_null_and_the_meta_columns_too() -> None:
    schema = with_meta_fields(pa.schema([("a", pa.int64()), ("l", items(pa.struct([("x", pa.int32())])))]))
    rows = conform(pa.table({"a": [1, 2]}), schema)
    assert rows.to_pylist() == [dict.fromkeys(schema.names) | {"a": each} for each in (1, 2)]


def test_a_missing_column_that_takes_no_nulls_is_refused() -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64(), False)])
    with pytest.raises(SchemaMismatch, match="column b is missing and takes no nulls"):
        conform(pa.table({"a": [1]}), schema)


def test_extra_columns_are_refused_or_dropped_when_told() -> None:
    rows = pa.table({"a": [1], "z": [2], "s": [{"x": 1, "y": 2}]})
    schema = pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    with pytest.raises(SchemaMismatch, match="no column z"):
        conform(rows, schema)
    with pytest.raises(SchemaMismatch, match=r"no column s\.y"):
        conform(rows.drop_columns("z"), schema)
    assert conform(rows, schema, drop_extra=True).to_pylist() == [{"a": 1, "s": {"x": 1}}]


def test_a_column_that_is_there_twice_is_refused() -> None:
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaMismatch, match="column a occurs more than once"):
        conform(rows, pa.schema([("a", pa.int64())]))


STAMP = dt.datetime(2024, 1, 2, 3, 4, 5, 678000)
LONG = Decimal("18446744073709551.613")  # 2^64 - 3 thousandths, which Arrow takes for longer than it is


@pytest.mark.parametrize(
    ("values", "have", "want", "result"),
    [
        ([1, None, -2], pa.int8(), pa.int32(), [1, None, -2]),
        ([1, None, -2], pa.int32(), pa.int64(), [1, None, -2]),
        ([1, None, -2], pa.int32(), pa.float64(), [1.0, None, -2.0]),
        ([1.5, None, -2.25], pa.float32(), pa.float64(), [1.5, None, -2.25]),
        ([2**53 + 1, None, 1], pa.int64(), pa.float64(), [float(2**53), None, 1.0]),
        ([Decimal("1.20"), None, Decimal("-3.40")], pa.decimal128(5, 2), pa.decimal128(20, 4), None),
        ([LONG, None, -LONG], pa.decimal128(38, 17), pa.decimal128(38, 3), [LONG, None, -LONG]),
        ([LONG, None, -LONG], pa.decimal256(60, 30), pa.decimal128(20, 3), [LONG, None, -LONG]),
        ([STAMP, None, STAMP], pa.timestamp("ms"), TIMESTAMP_NTZ, None),
        ([STAMP.replace(tzinfo=UTC), None, None], pa.timestamp("ms", "UTC"), TIMESTAMP, None),
        ([1704164645678901, None, -1], pa.int64(), TIMESTAMP_NTZ, None),
        (["a", None, "ü"], pa.large_string(), pa.string(), ["a", None, "ü"]),
        (["a", None, "ü"], pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", None, "ü"]),
        (["a", None, "ü"], pa.string(), pa.binary(), [b"a", None, "ü".encode()]),
        ([b"a", None, "ü".encode()], pa.binary(), pa.string(), ["a", None, "ü"]),
        ([b"ab", None, b"cd"], pa.binary(), pa.binary(2), [b"ab", None, b"cd"]),
        ([None, None, None], pa.null(), items(pa.int32()), [None, None, None]),
        ([dt.date(2020, 1, 1), None, None], pa.date64(), pa.date32(), [dt.date(2020, 1, 1), None, None]),
        ([[1, None], None, []], pa.large_list(pa.int32()), items(pa.int64()), [[1, None], None, []]),
        ([[1, None], None, [2, 3]], pa.list_(pa.int32(), 2), items(pa.int64()), [[1, None], None, [2, 3]]),
        ([[1, None], None, [], [2]], pa.list_view(pa.int16()), items(pa.int64()), [[1, None], None, [], [2]]),
        ([["a"], [None], None], pa.large_list_view(pa.string_view()), items(pa.string()), [["a"], [None], None]),
        ([[1], None, []], items(pa.int32(), False), items(pa.int32()), [[1], None, []]),
        ([[1], None, []], items(pa.int32()), items(pa.int32(), False), [[1], None, []]),
    ],
)
def test_values_of_other_forms_come_out_equal(
    values: list[Any], have: pa.DataType, want: pa.DataType, result: list[Any] | None
) -> None:
    expected = pa.array(values, have).cast(want).to_pylist() if result is None else result
    assert cast(values, have, want) == expected


def test_views_of_lists_that_overlap_or_lie_in_any_order_are_copied() -> None:
    offsets, sizes, values = pa.array([3, 0, 1, 9], pa.int32()), pa.array([2, 2, 3, 1], pa.int32()), pa.array(range(10))
    views = pa.ListViewArray.from_arrays(offsets, sizes, values, mask=pa.array([False, False, True, False]))
    found = conform(pa.table({"c": views.slice(1)}), one(items(pa.int64())))
    found.validate(full=True)
    assert found.column("c").to_pylist() == [[0, 1], None, [9]]


def test_timestamps_keep_their_moment_with_or_without_a_zone() -> None:
    moment = STAMP.replace(tzinfo=UTC)
    assert cast([moment, None], pa.timestamp("us", "America/New_York"), TIMESTAMP) == [moment, None]
    assert cast([STAMP, None], TIMESTAMP_NTZ, TIMESTAMP) == [moment, None]
    assert cast([moment, None], TIMESTAMP, pa.int64())[0] == 1704164645678000
    assert cast([1704164645678000, None], pa.int64(), TIMESTAMP) == [moment, None]


def test_nanoseconds_are_cut_down_before_the_epoch_too() -> None:
    nanos = pa.array([-1, 1999, None], pa.timestamp("ns"))
    micros = conform(pa.table({"c": nanos}), one(TIMESTAMP)).column("c").cast(pa.int64()).to_pylist()
    assert micros == [-1, 1, None]


def test_nested_values_keep_their_nulls_and_gain_the_new_fields() -> None:
    old = pa.struct([("x", pa.int32()), ("m", pa.map_(pa.string(), pa.struct([("p", pa.int32())])))])
    new = pa.struct(
        [
            ("m", pa.map_(pa.string(), pa.struct([("p", pa.int64()), ("q", pa.string())]))),
            ("y", items(pa.int32())),
            ("x", pa.int64()),
        ]
    )
    values = [{"x": 1, "m": [("a", {"p": 5}), ("b", None)]}, None, {"x": None, "m": None}, {"x": 2, "m": []}]
    expected = [
        {"m": [("a", {"p": 5, "q": None}), ("b", None)], "y": None, "x": 1},
        None,
        {"m": None, "y": None, "x": None},
        {"m": [], "y": None, "x": 2},
    ]
    assert cast(values, old, new) == expected
    lists = [values, None, [], [None]]
    assert cast(lists, items(old), items(new)) == [expected, None, [], [None]]


def test_nulls_below_a_null_struct_or_outside_a_slice_are_no_nulls() -> None:
    strict = pa.struct([pa.field("x", pa.int64(), False)])
    loose = pa.struct([("x", pa.int32())])
    assert cast([{"x": 1}, None], loose, strict) == [{"x": 1}, None]
    with pytest.raises(SchemaMismatch, match=r"column c\.x takes no nulls and 1 of its values"):
        cast([{"x": 1}, {"x": None}], loose, strict)
    for kind, wrap in (
        (lambda item, null: items(item, null), lambda value: [value]),
        (lambda item, null: pa.map_(pa.string(), pa.field("value", item, null)), lambda value: [("k", value)]),
    ):
        array = pa.array([wrap(None), wrap(1), None], kind(pa.int32(), True))
        strict_rows = conform(pa.table({"c": array[1:]}), one(kind(pa.int64(), False)))
        strict_rows.validate(full=True)
        assert strict_rows.column("c").to_pylist() == [wrap(1), None]
        with pytest.raises(SchemaMismatch, match=r"column c\.(element|value) takes no nulls"):
            conform(pa.table({"c": array}), one(kind(pa.int64(), False)))


POINT = pa.struct([pa.field("x", pa.int32(), False), pa.field("s", pa.string(), False)])


@pytest.mark.parametrize(
    "kind",
    [
        POINT,
        items(POINT),
        pa.map_(pa.string(), POINT),
        pa.struct([pa.field("p", POINT, False)]),
        pa.struct([pa.field("l", items(pa.int32(), False), False)]),
        pa.struct([pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int32(), False)), False)]),
    ],
    ids=str,
)
def test_a_null_struct_may_have_fields_that_take_no_nulls_and_is_written(kind: pa.DataType) -> None:
    """pyarrow's Parquet writer refuses nulls in such a field, below a null struct too."""
    schema = pa.schema([("id", pa.int64()), ("c", kind)])
    parents = pa.table({"id": [1, 2]}, schema=pa.schema([("id", pa.int64())]))
    nested = pa.nulls(2, kind)
    if pa.types.is_list(kind):
        nested = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.nulls(2, POINT), type=kind)
    if pa.types.is_map(kind):
        entries = (pa.array(["a", "b"]), pa.nulls(2, POINT))
        nested = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), *entries, type=kind)
    for rows in (parents, parents.append_column("c", nested)):
        moved = conform(rows, schema)
        moved.validate(full=True)
        file = io.BytesIO()
        pq.write_table(moved, file, store_schema=False)
        assert pq.read_table(file).to_pylist() == [{"c": None} | row for row in rows.to_pylist()]


@pytest.mark.parametrize("zone", ["UTC", None])
def test_microseconds_are_cut_down_to_milliseconds_over_the_whole_range(zone: str | None) -> None:
    numbers = [-1, -1000, -1001, 1999, 0, None, 2**63 - 1, -(2**63)]
    micros = pa.array(numbers, pa.int64()).view(pa.timestamp("us", zone))
    millis = conform(pa.table({"c": micros}), one(pa.timestamp("ms", zone))).column("c").cast(pa.int64()).to_pylist()
    assert millis == [None if number is None else number // 1000 for number in numbers]


def test_nulls_in_a_column_that_takes_none_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column c takes no nulls and 2 of its values are null"):
        conform(pa.table({"c": pa.array([1, None, None])}), one(pa.int64(), nullable=False))


@pytest.mark.parametrize(
    ("values", "have", "want"),
    [
        ([2**40], pa.int64(), pa.int32()),
        ([Decimal("123.45")], pa.decimal128(5, 2), pa.decimal128(4, 2)),
        ([Decimal("1.23")], pa.decimal128(5, 2), pa.decimal128(5, 1)),
        ([b"\xff"], pa.binary(), pa.string()),
        ([b"abc"], pa.binary(), pa.binary(2)),
        ([2**60], pa.timestamp("s"), TIMESTAMP),
    ],
)
def test_a_value_that_does_not_fit_names_its_column(values: list[Any], have: pa.DataType, want: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match="values of column c do not fit"):
        conform(pa.table({"c": pa.array(values, have)}), one(want))


@pytest.mark.parametrize(
    ("have", "want", "words"),
    [
        (pa.string(), pa.int32(), "column c is string here and int in the table"),
        (pa.float64(), pa.int64(), "double here and bigint"),
        (pa.float64(), pa.float32(), "double here and float"),
        (pa.int32(), TIMESTAMP, "int here and timestamp"),
        (pa.int64(), pa.decimal128(20, 2), "bigint here"),
        (pa.date32(), TIMESTAMP, "date here"),
        (pa.bool_(), pa.int32(), "boolean here"),
        (pa.struct([("x", pa.int32())]), pa.string(), "struct<x:int> here and string"),
        (items(pa.int32()), pa.map_(pa.string(), pa.int32()), "array<int> here"),
        (items(pa.string()), items(pa.int32()), r"column c\.element is string here and int"),
    ],
)
def test_a_type_with_no_way_to_the_other_is_refused(have: pa.DataType, want: pa.DataType, words: str) -> None:
    with pytest.raises(SchemaMismatch, match=words):
        conform(pa.table({"c": pa.nulls(1, have)}), one(want))


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("precision", [5, 9, 12, 18, 20, 38])
def test_decimals_are_read_from_integer_and_byte_columns_alike(precision: int, as_integer: bool) -> None:
    rows = pa.table({"c": pa.array([Decimal("-1.23"), None], pa.decimal128(precision, 2))})
    file = io.BytesIO()
    pq.write_table(rows, file, store_decimal_as_integer=as_integer, store_schema=False)
    assert conform(pq.read_table(file), rows.schema) == rows


@pytest.mark.parametrize("coerce", [None, "us"])
def test_int96_timestamps_become_microseconds(coerce: str | None) -> None:
    stamps = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None, dt.datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)]
    if coerce:
        stamps.append(dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC))
    rows = pa.table({"c": pa.array(stamps, TIMESTAMP)})
    file = io.BytesIO()
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)
    read = pq.read_table(file, coerce_int96_timestamp_unit=coerce)
    assert conform(read, rows.schema) == rows


def test_values_below_null_parents_or_outside_a_slice_need_not_fit() -> None:
    fixed, hidden = pa.binary(3), pa.array([True, False])
    raw = pa.array([b"", b"abc"])
    struct = pa.StructArray.from_arrays([raw], ["a"], mask=hidden)
    listed = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), raw, mask=hidden)
    sliced = pa.array([[b""], [b"abc"]]).slice(1)
    for values, kind, expected in (
        (struct, pa.struct([("a", fixed)]), [None, {"a": b"abc"}]),
        (struct.slice(1), pa.struct([("a", fixed)]), [{"a": b"abc"}]),
        (listed, pa.list_(fixed), [None, [b"abc"]]),
        (sliced, pa.list_(fixed), [[b"abc"]]),
    ):
        rows = conform(pa.table({"v": values}), pa.schema([("v", kind)]))
        rows.validate(full=True)
        assert rows["v"].to_pylist() == expected
