"""Filters as people write them: what is plain is taken, all else is refused in words."""

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.errors import InvalidInput

DAY = dt.date(2024, 1, 1)


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable[Rows]:
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city")
    table.upsert(pa.table({"id": [1, 2, 3], "city": ["a", "b", "ab"], "fare": [1.5, 2.5, None]}))
    return table


def ids(rows: Rows) -> list[int]:
    return sorted(rows.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("id", "<>", 1)], [2, 3]),
        ([("id", "IN", [1, 2])], [1, 2]),
        ([("id", "Not  In", {1: 0}.keys())], [2, 3]),
        ([("id", "in", np.array([1, 2]))], [1, 2]),
        ([("id", "in", pl.Series([1]))], [1]),
        ([("id", "in", pa.array([1]))], [1]),
        ([("id", "=", np.int64(1))], [1]),
        ([("fare", "=", np.float64(1.5))], [1]),
        ([("id", "=", pa.scalar(1))], [1]),
    ],
    ids=lambda value: f"{value!r}"[:40],
)
def test_tuples_are_taken_as_people_write_them(table: HoodieTable[Rows], filters: Any, expected: list[int]):
    assert ids(table.snapshot(filters=filters)) == ids(table.scan(filters=filters).rows()) == expected
    assert table.count(filters=filters) == len(expected)
    assert table.update({"fare": "fare"}, filters).updated == len(expected)
    assert table.delete(where=filters).deleted == len(expected)


@pytest.mark.parametrize("day", [np.datetime64("2024-01-01"), np.datetime64("2024-01-01", "ns"), pa.scalar(DAY)])
def test_a_day_of_numpy_or_arrow_is_compared(tmp_path: Path, day: Any):
    table = hoodie.create_table(tmp_path / "days", record_key="id")
    table.upsert(pa.table({"id": [1, 2], "day": [DAY, DAY + dt.timedelta(1)]}))
    assert (
        ids(table.snapshot(filters=[("day", "=", day)])) == ids(table.snapshot(filters=[("day", "in", [day])])) == [1]
    )
    assert table.update({"day": "day"}, [("day", "=", day)]).updated == 1


@pytest.mark.parametrize("number", [np.float16(2), np.float32(2), np.uint8(2)])
def test_a_narrow_number_of_numpy_is_compared_with_wide_ones(tmp_path: Path, number: Any):
    table = hoodie.create_table(tmp_path / "wide", record_key="id")
    table.upsert(pa.table({"id": [1, 2], "n": [2**62, 2]}))
    assert (
        ids(table.snapshot(filters=[("n", "=", number)])) == ids(table.snapshot(filters=[("n", "<=", number)])) == [2]
    )


def test_what_is_no_bytes_is_refused_among_bytes(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "bytes", record_key="id")
    table.upsert(pa.table({"id": [1, 2], "raw": [b"", b"\xff"]}))
    assert ids(table.snapshot(filters=[("raw", "in", [b"\xff", None])])) == [2]
    with pytest.raises(InvalidInput, match="and the values of 'raw' are binary"):
        table.snapshot(filters=[("raw", "in", [0])])


def test_values_of_an_iterator_are_there_when_a_scan_is_read(table: HoodieTable[Rows]):
    scan = table.scan(filters=[("id", "in", iter([1, 2]))])
    assert ids(scan.rows()) == ids(scan.rows()) == [1, 2]


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ([("city", "in", "ab")], "'in' takes a list of values, not 'ab'"),
        ([("id", "in", pd.DataFrame({"id": [1]}))], "'in' takes a list of values"),
        ([("id", "in", 1)], "'in' takes a list of values, not 1"),
        ([("city", "=", np.timedelta64(1, "D"))], "expected tuples"),
        ([("fare", "is", None)], "'is' is no operator: take one of =, ==, "),
        ([], "and there is none"),
        ([[]], r"not \[\]"),
        ([{"id": 1}], "not {'id': 1}"),
        (["id = 1"], "not 'id = 1'"),
        (("id", "=", 1), r"in a list, also where it is one: \[\('id', '=', 1\)\]"),
        ([["id", "=", 1]], "not 'id'"),
        (b"id = 1", "expected (a condition as text|tuples)"),
    ],
    ids=lambda value: f"{value!r}"[:40],
)
def test_what_is_no_filter_is_refused(table: HoodieTable[Rows], filters: Any, problem: str):
    with pytest.raises(InvalidInput, match=problem):
        table.snapshot(filters=filters)
    with pytest.raises(InvalidInput, match=problem):
        table.update({"fare": 0}, filters)


@pytest.mark.parametrize(
    ("filters", "way"),
    [
        (pl.col("id") == 1, r"filters is a Expr: .* for table.lazy\(\).filter"),
        (duckdb.ColumnExpression("id") == 1, r"for table.snapshot\(\).to_duckdb\(\).filter"),
        ({"id": 1}, "filters is a dict: expected a condition as text"),
        (True, "filters is a bool: expected a condition as text"),
        (lambda row: True, "filters is a function: expected a condition as text"),
    ],
)
def test_expressions_of_other_libraries_are_told_where_they_work(table: HoodieTable[Rows], filters: Any, way: str):
    for read in (table.snapshot, table.to_arrow, table.count):
        with pytest.raises(InvalidInput, match=way):
            read(filters=filters)


def test_a_column_that_is_not_there_is_told_by_those_of_the_table(table: HoodieTable[Rows]):
    for call in (lambda: table.update({"fare": "hello"}), lambda: table.snapshot(columns=["zzz"])):
        with pytest.raises(InvalidInput, match="id, city, fare") as refused:
            call()
        assert "_hoodie" not in str(refused.value)


AT = dt.datetime(2024, 1, 1, 5)


@pytest.fixture
def kinds(tmp_path: Path) -> HoodieTable[Rows]:
    table = hoodie.create_table(tmp_path / "kinds", record_key="id")
    columns = {
        "at": pa.array([AT.replace(tzinfo=dt.UTC), None]),
        "local": pa.array([AT, None]),
        "day": [DAY, None],
        "f": pa.array([0.1, 0.5], pa.float32()),
        "n": [1, 2],
        "b": [True, False],
        "part": [{"code": 7, "inner": {"name": "x"}}, {"code": None, "inner": None}],
    }
    table.upsert(pa.table({"id": [1, 2], **columns}))
    return table


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ([("at", "=", AT)], "the column has a zone, and the time has none"),
        ([("at", "<", pd.Timestamp(AT))], "the column has a zone, and the time has none"),
        ([("local", ">", AT.replace(tzinfo=dt.UTC))], "the time has a zone, and the column has none"),
        ([("at", "in", [AT])], "the column has a zone, and the time has none"),
        ([("at", "not in", [np.datetime64(AT)])], "the column has a zone, and the time has none"),
        ([("n", "in", [True])], "the values of 'n' are int64"),
        ([("f", "not in", [np.True_])], "the values of 'f' are float"),
        ([("b", "in", [1])], "the values of 'b' are bool"),
    ],
)
def test_values_of_another_kind_are_refused_before_rows_are_read(
    kinds: HoodieTable[Rows], filters: Any, problem: str
) -> None:
    for call in (lambda: kinds.snapshot(filters=filters), lambda: kinds.update({"n": "n"}, filters)):
        with pytest.raises(InvalidInput, match=problem):
            call()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("day", "in", [AT])], []),
        ([("day", "in", [dt.datetime(2024, 1, 1), AT])], [1]),
        ([("day", "not in", [AT])], [1, 2]),
        ([("f", "in", [np.float32(0.1), 0.5])], [1, 2]),
        ([("local", "=", np.datetime64("2024-01-01T05"))], [1]),
        ([("local", "in", [np.datetime64("2024-01-01T05:00")])], [1]),
    ],
)
def test_in_compares_as_the_equals_sign_does(kinds: HoodieTable[Rows], filters: Any, expected: list[int]):
    assert ids(kinds.snapshot(filters=filters)) == expected
    assert kinds.count(filters=filters) == len(expected)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("day", "=", "2024-01-01")], [1]),
        ([("day", "<", "2024-01-02"), ("at", ">=", "2024-01-01 05:00:00")], [1]),
        ([("day", "in", ["2024-01-01", DAY, None])], [1, 2]),
        ([("local", ">", "2024-01-01")], [1]),
        ([("n", "=", "1")], [1]),
        ([("n", "not in", ["1"])], [2]),
        ([("b", "=", "true")], [1]),
        ([("part.code", "=", 7)], [1]),
        ([("part.inner.name", "in", ["x", None])], [1, 2]),
        ([[("part.code", "=", 7)], [("n", "=", 2)]], [1, 2]),
    ],
    ids=str,
)
def test_text_beside_another_type_and_fields_of_structs_are_compared_as_in_sql(
    kinds: HoodieTable[Rows], filters: Any, expected: list[int]
):
    assert ids(kinds.snapshot(filters=filters)) == expected
    assert kinds.update({"n": "n"}, filters).updated == len(expected)


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ([("day", "=", "soon")], "'soon' .* cannot be cast to date"),
        ([("part.name", "=", 1)], "has no field 'name'"),
        ([("n.name", "=", 1)], "no column 'n.name'"),
    ],
)
def test_what_sql_does_not_compare_tuples_do_not_either(kinds: HoodieTable[Rows], filters: Any, problem: str):
    with pytest.raises(InvalidInput, match=problem):
        ids(kinds.snapshot(filters=filters))
