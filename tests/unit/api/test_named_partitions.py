"""Partitions as people name them: by paths, by values of the partition columns, in any kind of list."""

import datetime as dt
from pathlib import Path
from typing import Any

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


def table(folder: Path, partition_by: Any, columns: dict[str, list[Any]], **options: Any) -> HoodieTable[Rows]:
    made = hoodie.create_table(folder, record_key="id", partition_by=partition_by, **options)
    made.upsert(pa.table({"id": list(range(len(next(iter(columns.values()))))), **columns}))
    return made


@pytest.fixture
def days(tmp_path: Path) -> HoodieTable[Rows]:
    return table(tmp_path / "days", "day", {"day": [DAY, DAY + dt.timedelta(1)]})


def ids(rows: Rows) -> list[int]:
    return sorted(rows.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    "partitions",
    [
        [DAY],
        [dt.datetime(2024, 1, 1)],
        [pd.Timestamp("2024-01-01")],
        [np.datetime64("2024-01-01")],
        [np.datetime64("2024-01-01T00", "ns")],
        np.array(["2024-01-01"], "datetime64[ns]"),
        pd.Series(pd.to_datetime(["2024-01-01"])),
        pl.Series([DAY]),
        pa.array([DAY]),
        pa.chunked_array([["2024-01-01"]]),
        {DAY},
        (day for day in [DAY]),
        [(DAY,)],
        [{"day": DAY}],
        [{"day": "2024-01-01"}],
    ],
    ids=lambda value: f"{type(value).__name__} {value!r}"[:40],
)
def test_days_name_partitions(days: HoodieTable[Rows], partitions: Any):
    held = list(partitions) if isinstance(partitions, type(_ for _ in ())) else partitions
    assert ids(days.snapshot(partitions=held)) == [0]
    assert days.scan(partitions=held).partitions == ("2024-01-01",)
    assert len(days.file_slices(partitions=held)) == 1
    days.delete_partitions(partitions if held is partitions else iter(held))
    assert ids(days.snapshot()) == [1]


def test_partitions_of_a_generator_are_deleted(days: HoodieTable[Rows]):
    days.delete_partitions(path for path in ["2024-01-01"])
    assert ids(days.snapshot()) == [1]
    days.insert_overwrite(pa.table({"id": [5], "day": [DAY]}), partitions=iter([DAY + dt.timedelta(1)]))
    assert ids(days.snapshot()) == [5]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ([dt.datetime(2024, 1, 1, 5)], r"'day' is date32\[day\], of which it is no value"),
        ([20240101], "'day' is .*, and this is int64"),
        ([b"2024-01-01"], "and this is binary"),
        ([None], "a null names no partition"),
        ([pd.NaT], "a null names no partition"),
        ([{"date": DAY}], "the partition columns are day"),
        ([(DAY, 1)], "the partition columns are day"),
        ({"day": DAY}, "expected partition paths in a list"),
        ("2024-01-01", "expected partition paths in a list"),
        (DAY, "partitions=date: expected partition paths in a list"),
        (pa.table({"day": [DAY]}), "partitions=Table: expected"),
        (pd.DataFrame({"day": [DAY]}), "partitions=DataFrame: expected"),
    ],
    ids=lambda value: f"{value!r}"[:30],
)
def test_what_names_no_partition_is_refused(days: HoodieTable[Rows], wrong: Any, problem: str):
    rows = pa.table({"id": [5], "day": [DAY]})
    for call in (
        lambda: days.snapshot(partitions=wrong),
        lambda: days.scan(partitions=wrong),
        lambda: days.file_slices(partitions=wrong),
        lambda: days.delete_partitions(wrong),
        lambda: days.insert_overwrite(rows, partitions=wrong),
    ):
        with pytest.raises(InvalidInput, match=problem):
            call()
    assert ids(days.snapshot()) == [0, 1]


def test_values_of_several_columns_are_tuples_or_dicts(tmp_path: Path):
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    two = table(tmp_path / "two", ["city", "n"], {"city": ["a", "b"], "n": [1, 2]}, options=hive)
    for named in (("a", 1), ["a", np.int32(1)], {"n": 1, "city": "a"}, {"n": "1", "city": "a"}, "city=a/n=1"):
        assert ids(two.snapshot(partitions=[named])) == [0]
    for wrong in (("a",), {"city": "a"}, ("a", True), ("a", "one"), ("a", 1.5), 1):
        with pytest.raises(InvalidInput, match="or values of the partition columns"):
            two.snapshot(partitions=[wrong])


def test_days_name_folders_of_days_and_no_others(tmp_path: Path):
    at = {"at": [dt.datetime(2024, 1, 1, 3), dt.datetime(2024, 1, 2, 3)]}
    assert ids(table(tmp_path / "day", "day(at)", at).snapshot(partitions=[DAY])) == [0]
    with pytest.raises(InvalidInput, match="'at' is a time, whose folders have names of their own"):
        table(tmp_path / "hour", "hour(at)", at).snapshot(partitions=[DAY])
