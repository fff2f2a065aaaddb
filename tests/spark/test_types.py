"""Column types between Spark, Arrow and the files of a table."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as sql

import hoodie
from hoodie.errors import SchemaMismatch
from hoodie.formats.avro.schema import from_avro, to_avro
from hoodie.schema.conform import conform
from hoodie.schema.schema import reconcile, stored_form
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_NTZ, spark_name
from hoodie.spark import columns
from hoodie.spark.types import all_nullable, as_ddl, fit_for_arrow, in_session_zone, to_arrow, to_spark

COLUMNS = """id string NOT NULL, b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f32 float, f64 double,
    s string, raw binary, d date, at timestamp, local timestamp_ntz, d9 decimal(9,2), d18 decimal(18,4),
    d38 decimal(38,10), l array<int>, ll array<array<timestamp_ntz>>, m map<string,decimal(12,2)>,
    mm map<string,map<string,date>>, st struct<x: int NOT NULL, at: timestamp, raw: binary>,
    ls array<struct<x: int NOT NULL, tags: array<string>>>,
    ms map<string,struct<local: timestamp_ntz, n: struct<x: bigint>>>"""
UTC = dt.UTC
LOCAL = dt.datetime(1900, 2, 3, 4, 5, 6, 789012)
MOMENT = LOCAL.replace(tzinfo=UTC)
ROWS: list[tuple[Any, ...]] = [
    (
        *("a", True, -128, 32767, -(2**31), 2**63 - 1, float("nan"), -0.0, "ü☃𝄞", b"\x00\xff", dt.date(1, 1, 1)),
        *(MOMENT, LOCAL, Decimal("1234567.89"), Decimal("-1.2300"), Decimal("1" * 28 + "." + "9" * 10)),
        *([1, None], [[LOCAL, None], None, []], {"k": Decimal("1.50"), "n": None}, {"k": {"d": dt.date(9999, 12, 31)}}),
        *((1, MOMENT, b"x"), [(1, ["t", None]), None, (2, None)], {"k": (LOCAL, (5,)), "n": None}),
    ),
    ("b", *[None] * 22),
    ("c", *[None] * 15, [], [], {}, {}, (7, None, None), [], {}),
]


def written(rows: pa.Table, folder: Path) -> list[str]:
    """The rows as the base-file writer stores them, in two files."""
    folder.mkdir()
    paths = [str(folder / f"{number}.parquet") for number in range(2)]
    for path, part in zip(paths, (rows.slice(0, 1), rows.slice(1)), strict=True):
        pq.write_table(part, path, store_schema=False, store_decimal_as_integer=False)
    return paths


def test_the_mapping_keeps_names_types_and_nullability_both_ways(spark: SparkSession) -> None:
    schema = spark.createDataFrame([], COLUMNS).schema
    arrow = to_arrow(schema)
    assert to_spark(arrow) == schema
    assert [spark_name(field.type) for field in arrow][:6] == [
        field.dataType.simpleString() for field in schema.fields[:6]
    ]
    assert not arrow.field("id").nullable
    assert not arrow.field("st").type.field("x").nullable
    stored = stored_form(arrow)
    assert from_avro(to_avro(stored, "t"), "f").equals(stored)


def test_columns_as_text_are_the_same_columns(spark: SparkSession) -> None:
    odd = sql.StructType([sql.StructField("a`b, c", sql.StructType().add("x y", "long").add("select", "timestamp"))])
    noted = sql.StructType().add("at", "timestamp", True, {"comment": 'in "UTC"; two\nlines'})
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")  # of text that says no more
    try:
        for schema in (
            all_nullable(spark.createDataFrame([], COLUMNS.replace("timestamp,", "timestamp_ltz,")).schema),
            odd,
        ):
            schema = sql.StructType([*schema, *noted])
            text = as_ddl(schema)
            assert text is not None
            assert spark.createDataFrame([], text).schema == schema
    finally:
        spark.conf.unset("spark.sql.timestampType")
    assert as_ddl(sql.StructType().add("at", "long", True, {"comment": "it's"})) is None


def test_few_texts_say_what_a_text_a_column_says(spark: SparkSession) -> None:
    names = "a int, b string, f float, c int, `d``e, f` int, `g.h` int, g double"
    frame = spark.createDataFrame([(1, "b", -0.0, 2, 3, 4, 5.0)], names)
    schema = frame.schema
    few, every = columns.few_texts(schema, ["own.one", "own.two"]), columns.tested_texts(schema)
    assert few is not None
    assert every is not None
    assert len(few) == 4
    wide = frame.selectExpr("*", "1 as `own.one`", "2 as `own.two`")
    assert wide.selectExpr(*few).schema == wide.selectExpr(*every).schema
    assert wide.selectExpr(*few).collect() == frame.collect()
    assert columns.few_texts(sql.StructType().add("s", sql.StructType().add("x", "double")), []) is None


def test_char_and_varchar_are_strings() -> None:
    schema = sql.StructType([sql.StructField("c", sql.CharType(3)), sql.StructField("v", sql.VarcharType(3))])
    assert to_arrow(schema) == pa.schema([("c", pa.string()), ("v", pa.string())])


def test_columns_that_no_table_can_hold_are_named_in_one_message(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT 1 AS fine, INTERVAL '1' DAY AS a, NULL AS b, map(1, 2) AS c, array(named_struct('y', NULL)) AS d, "
        "parse_json('1') AS e, make_interval(1) AS f"
    )
    with pytest.raises(SchemaMismatch) as caught:
        to_arrow(frame.schema)
    for words in (
        "a is interval day",
        "b is void",
        "c is map<int,int>: the keys",
        "d.element.y is void",
        "e is variant",
    ):
        assert words in str(caught.value)
    assert "f is interval" in str(caught.value)
    assert "fine" not in str(caught.value)


def test_columns_that_spark_lacks_are_named() -> None:
    with pytest.raises(SchemaMismatch, match=r"a\.element is time; b is unsigned bigint"):
        to_spark(pa.schema([("a", pa.list_(pa.time64("us"))), ("b", pa.uint64()), ("c", pa.int32())]))


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_sparks_own_reader_reads_what_we_store_back_as_it_was(
    spark: SparkSession, tmp_path: Path, vectorized: str
) -> None:
    frame = spark.createDataFrame(ROWS, COLUMNS)
    stored = stored_form(to_arrow(frame.schema))
    rows = conform(frame.to(all_nullable(frame.schema)).toArrow(), stored)
    paths = written(rows, tmp_path / "t")
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        seen = spark.read.schema(to_spark(stored)).parquet(*paths)
        assert repr(sorted(seen.collect())) == repr(sorted(frame.collect()))
        as_before = conform(seen.toArrow().sort_by("id"), stored)
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert repr(as_before.to_pylist()) == repr(rows.to_pylist())


def test_rows_that_python_returns_have_the_types_spark_insists_on(spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.createDataFrame(ROWS, COLUMNS)
        stored = stored_form(to_arrow(frame.schema))
        kind = all_nullable(to_spark(stored))
        returned = in_session_zone(to_arrow(kind), "America/New_York")

        def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from conform(conform(batch, stored), returned).to_batches()

        seen = frame.mapInArrow(through, kind)
        assert seen.toArrow().num_rows == len(ROWS)
        assert repr(sorted(seen.collect())) == repr(sorted(frame.collect()))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


WIDENED = [
    (pa.int32(), [1, None, -2], pa.int64(), [2**40], ["c = 1", "c > 1099511627775", "c IN (1, 1099511627776)"]),
    (pa.int32(), [1, None, -2], pa.float64(), [0.5], ["c = 1", "c > 0.75D", "c < -1.5D"]),
    (pa.float32(), [1.5, None, -2.0], pa.float64(), [0.1], ["c = 0.1D", "c > 0.75D", "c <> 1.5D"]),
]


@pytest.mark.parametrize(("old", "old_values", "new", "new_values", "filters"), WIDENED)
def test_spark_reads_and_filters_files_from_before_a_widening(
    spark: SparkSession,
    tmp_path: Path,
    old: pa.DataType,
    old_values: list[Any],
    new: pa.DataType,
    new_values: list[Any],
    filters: list[str],
) -> None:
    pq.write_table(pa.table({"c": pa.array(old_values, old)}), tmp_path / "old.parquet", store_schema=False)
    later = pa.table({"c": pa.array(new_values, new), "added": ["s"]})
    pq.write_table(later, tmp_path / "new.parquet", store_schema=False)
    schema = reconcile(pa.schema([("c", old)]), later.schema)
    frame = spark.read.schema(to_spark(schema)).parquet(str(tmp_path / "old.parquet"), str(tmp_path / "new.parquet"))
    everything = [(value, None) for value in old_values] + [(value, "s") for value in new_values]
    assert {*map(tuple, frame.collect())} == {*everything}
    for words in filters:
        pushed = sorted(map(tuple, frame.filter(words).collect()))
        spark.conf.set("spark.sql.parquet.filterPushdown", "false")
        try:
            assert pushed == sorted(map(tuple, frame.filter(words).collect()))
        finally:
            spark.conf.unset("spark.sql.parquet.filterPushdown")
        assert pushed


def test_a_nested_timestamp_moves_to_the_session_zone() -> None:
    zoned = pa.timestamp("us", "Asia/Tokyo")
    inner = pa.struct([("at", TIMESTAMP), ("local", TIMESTAMP_NTZ)])
    schema = pa.schema([("at", TIMESTAMP), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    moved = in_session_zone(schema, "Asia/Tokyo")
    expected = pa.struct([("at", zoned), ("local", TIMESTAMP_NTZ)])
    assert moved == pa.schema([("at", zoned), ("l", pa.list_(expected)), ("m", pa.map_(pa.string(), expected))])


def test_empty_lists_within_another_type_get_the_offsets_that_spark_left_out() -> None:
    lists = pa.Array.from_buffers(pa.list_(pa.string()), 0, [None, pa.py_buffer(b"")], children=[pa.array([""])[:0]])
    structs = pa.StructArray.from_arrays([lists], ["tags"])
    batch = pa.record_batch({"a": pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), structs), "b": [1, 2]})
    found = fit_for_arrow(batch)
    assert found.equals(batch)
    offsets = found.column(0).values.field(0).buffers()[1]
    assert offsets.size >= 4
    plain = batch.select(["b"])
    assert fit_for_arrow(plain) is plain


@pytest.mark.parametrize("limit", ["268435456", "0"], ids=["driver", "executors"])
def test_a_void_column_is_of_the_tables_type(spark: SparkSession, tmp_path: Path, limit: str) -> None:
    options = {"hoodie.spark.driver.max.batch.bytes": limit}
    table = hoodie.create_table(
        str(tmp_path / "t"), spark=spark, name="t", record_key="id", ordering="ts", options=options
    )
    table.upsert(spark.sql("SELECT 1 AS id, 1L AS ts, 'x' AS text, array(1.5D) AS list"))
    done = table.upsert(spark.sql("SELECT int(id) AS id, 2L AS ts, NULL AS text, NULL AS list FROM range(1, 3)"))
    assert (done.updated, done.inserted) == (1, 1)
    found = table.snapshot().select("id", "text", "list")
    assert [kind for _, kind in found.dtypes] == ["int", "string", "array<double>"]
    assert sorted(map(tuple, found.collect())) == [(1, None, None), (2, None, None)]
