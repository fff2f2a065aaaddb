"""Filters on floating numbers take the rows that Spark takes of the same rows in memory, with NaN and both zeros."""

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from support.nightly import nightly, scaled

_VALUES = {
    "nan": (math.nan, 0.05),
    "null": (None, math.nan),
    "minus": (-0.0, -0.0),
    "plus": (0.0, 0.0),
    "some": (1.0, -5.0),
}
_STRUCT = pa.struct([("x", pa.float64()), ("n", pa.int64()), ("in", pa.struct([("f", pa.float32())]))])
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("s", _STRUCT),
    ]
)
ROWS = pa.Table.from_pylist(
    [
        {"id": f"{part}{number}", "part": part, "ts": 1, "d": value, "f": value}
        | {"s": None if value is None else {"x": value, "n": number, "in": {"f": value}}}
        for part, values in _VALUES.items()
        for number, value in enumerate(values)
    ],
    _SCHEMA,
)
TESTS = [
    test.replace("_", column)
    for column in ("d", "f", "s.x", "s.in.f")[:: scaled(3, 1)]
    for test in (
        "not (_ <= 0.1)",
        "_ > 1e30",
        "_ = 0.0",
        "_ <= -0.0D",
        "_ >= 0.0D",
        "_ = double('NaN')",
        "_ in (0.0D, 7.0D)",
    )
] + ["s is null", "s.n = 1"]


def passing(rows: DataFrame) -> dict[str, list[str]]:
    """The rows of each test, by one job: a filter goes down below the union, to the reader of its files."""
    found: dict[str, list[str]] = {test: [] for test in TESTS}
    frames = [rows.where(test).select(F.lit(test), "id") for test in TESTS]
    for test, key in reduce(DataFrame.union, frames).collect():
        found[test].append(key)
    return {test: sorted(keys) for test, keys in found.items()}


@pytest.fixture(scope="module")
def expected(spark: SparkSession) -> dict[str, list[str]]:
    return passing(spark.createDataFrame(ROWS))


def as_others_write(table: Path) -> None:
    """Base files with the statistics and dictionaries that Arrow, like Hudi, writes of floating columns."""
    for file in table.rglob("*.parquet"):
        rows = pq.read_table(file, partitioning=None)
        footer = pq.read_schema(file).metadata
        pq.write_table(rows.replace_schema_metadata(footer), file, store_schema=False)


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        nightly("COPY_ON_WRITE", "others"),
        nightly("MERGE_ON_READ", "ours"),
        nightly("COPY_ON_WRITE", "ours"),
        nightly("MERGE_ON_READ", "others"),
    ],
)
def test_filters_keep_nan_and_both_zeros(
    spark: SparkSession, tmp_path: Path, kind: str, files: str, expected: dict[str, list[str]]
) -> None:
    hoodie.register(spark)
    table = hoodie.create_table(
        tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="ts", table_type=kind
    )
    table.upsert(ROWS)
    if kind == "MERGE_ON_READ":
        table.upsert(ROWS.filter(pa.array([row % 2 == 0 for row in range(len(ROWS))])))
    if files == "others":
        as_others_write(tmp_path / "t")
    read = hoodie.open_table(tmp_path / "t", spark=spark)
    assert passing(read.snapshot()) == expected
    reads: dict[str, Callable[[], DataFrame]] = {
        "again, of what the session keeps": read.snapshot,
        "changes": lambda: read.changes("000"),
        "format": lambda: spark.read.format("hudi").load(str(tmp_path / "t")),
    }
    few = ("not (d <= 0.1)", "d = 0.0", "s.in.f = 0.0")
    for name, frame in reads.items():
        rows = frame()
        for test in few:
            ids = sorted(row.id for row in rows.where(test).select("id").collect())
            assert ids == expected[test], (name, test)


def test_no_parquet_reader_leaves_rows_of_ours_out(
    spark: SparkSession, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    hoodie.create_table(tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="ts").upsert(ROWS)
    files = [str(file) for file in (tmp_path / "t").rglob("*.parquet")]
    assert passing(spark.read.option("recursiveFileLookup", "true").parquet(*files)) == expected


def test_columns_beside_floating_ones_are_pruned_and_filtered_by_the_file(spark: SparkSession, tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="ts").upsert(ROWS)
    rows = hoodie.open_table(tmp_path / "t", spark=spark).snapshot().where("s.n = 1").select("s.n")
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(s.n,1)" in plan
    assert "ReadSchema: struct<s:struct<n:bigint>>" in plan
