"""What is said of columns in files by types and values that no table of the fixtures has."""

import datetime as dt
import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.metadata.partitions.column_ranges import Range, of_footer, of_rows

UTC = pa.timestamp("us", "UTC")


def of_file(column: pa.Array, name: str = "c", rows: int = 2, **options: Any) -> dict[str, Range]:
    """Of a base file with row groups of some rows."""
    out = io.BytesIO()
    pq.write_table(pa.table({"c": column}), out, row_group_size=rows, **options)
    out.seek(0)
    return of_footer(pq.read_metadata(out), [name] if name != "c" else ())


def ends(found: dict[str, Range], name: str = "c") -> tuple[Any, Any]:
    low, high = found[name]["min"], found[name]["max"]
    return (low, high)


MOMENT = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
MICROS = int(MOMENT.timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (pa.array([3, None, 1], pa.int8()), {"IntWrapper": 1}, {"IntWrapper": 3}),
        (pa.array([3, None, -1], pa.int64()), {"LongWrapper": -1}, {"LongWrapper": 3}),
        (pa.array([0.5, None, 2.0], pa.float32()), {"FloatWrapper": 0.5}, {"FloatWrapper": 2.0}),
        (pa.array(["b", None, "a"]), {"StringWrapper": "a"}, {"StringWrapper": "b"}),
        (pa.array([b"b", None, b"\xff"]), {"BytesWrapper": b"b"}, {"BytesWrapper": b"\xff"}),
        (pa.array([True, None, False]), {"BooleanWrapper": False}, {"BooleanWrapper": True}),
        (pa.array([dt.date(1970, 1, 3), None]), {"DateWrapper": 2}, {"DateWrapper": 2}),
        (pa.array([MOMENT, None], UTC), {"LongWrapper": MICROS}, {"LongWrapper": MICROS}),
        (
            pa.array([Decimal("-1.25"), None, Decimal("7.50")], pa.decimal128(9, 2)),
            {"DecimalWrapper": Decimal("-1.25")},
            {"DecimalWrapper": Decimal("7.50")},
        ),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_files_and_logs_say_the_same_of_values(column: pa.Array, low: object, high: object) -> None:
    """In several row groups, one of which may have nulls alone."""
    by_file, by_rows = of_file(column, rows=1), of_rows(pa.table({"c": column}), ["c"])
    assert ends(by_file) == ends(by_rows) == (low, high)
    for found in (by_file["c"], by_rows["c"]):
        assert (found["values"], found["nulls"]) == (len(column), 1)
    assert by_file["c"]["uncompressed_size"] > 0


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        (pa.int32(), {"IntWrapper": 0}),
        (pa.float64(), {"DoubleWrapper": 0.0}),
        (pa.bool_(), {"BooleanWrapper": False}),
        (pa.string(), None),
        (pa.binary(), None),
    ],
    ids=str,
)
def test_columns_without_values_have_what_parquet_of_java_has_for_none(kind: pa.DataType, bound: object) -> None:
    found = of_file(pa.nulls(3, kind))
    assert ends(found) == (bound, bound)
    assert found["c"]["nulls"] == found["c"]["values"] == 3
    assert ends(of_rows(pa.table({"c": pa.nulls(3, kind)}), ["c"])) == (None, None)


def test_nothing_is_said_of_what_hudi_has_no_form_for() -> None:
    wide = pa.array([Decimal(10) ** 30], pa.decimal128(38, 0))
    fine = pa.array([Decimal("1E-16")], pa.decimal128(30, 16))
    large = pa.array([Decimal(10) ** 20], pa.decimal128(28, 2))  # more than 30 digits with 15 behind the point
    fixed = pa.array([b"1234"], pa.binary(4))
    for column in (wide, fine, large, fixed):
        assert of_file(column) == {}
        assert of_rows(pa.table({"c": column}), ["c"]) == {}


def test_nothing_is_said_of_files_without_statistics_or_rows() -> None:
    assert of_file(pa.array([1, 2]), write_statistics=False) == {}
    assert of_file(pa.array([], pa.int64())) == {}


def test_a_text_without_an_end_in_its_footer_has_none() -> None:
    """Parquet's writers leave out long ones."""
    found = of_file(pa.array(["x" * 100_000, "a"]))
    assert ends(found) in [(None, None), ({"StringWrapper": "a"}, {"StringWrapper": "x" * 100_000})]
    assert found["c"]["nulls"] == 0


def test_nan_is_above_all_numbers_in_logs() -> None:
    low, high = ends(of_rows(pa.table({"c": [1.0, float("nan"), -1.0]}), ["c"]))
    assert low == {"DoubleWrapper": -1.0}
    assert math.isnan(high["DoubleWrapper"])


def test_nested_columns_of_logs_are_counted_and_have_no_ends() -> None:
    struct = pa.array([{"x": 1}, None], pa.struct([("x", pa.int64())]))
    mapped = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    found = of_rows(pa.table({"s": struct, "m": mapped}), ["s", "m", "absent"])
    assert {name: (part["min"], part["values"], part["nulls"]) for name, part in found.items()} == {
        "s": (None, 2, 1),
        "m": (None, 2, 2),
    }


def test_only_leaves_that_are_named_are_looked_at_within_others() -> None:
    struct = pa.array([{"x": 1, "y": "a"}], pa.struct([("x", pa.int64()), ("y", pa.string())]))
    assert of_file(struct) == {}
    assert ends(of_file(struct, "c.x"), "c.x") == ({"LongWrapper": 1}, {"LongWrapper": 1})
