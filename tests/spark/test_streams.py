"""readStream and writeStream of format("hudi"), as Spark runs them. The rules are tested in tests/unit/sources, and the
page on streaming runs in test_docs: a query's Python processes make these slow.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import hoodie
from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from support.trips import table_options

pytestmark = pytest.mark.nightly

SCHEMA = "id string, city string, at long"
KEYS = table_options("copy", "id", ordering="at")


@pytest.fixture
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    hoodie.register(spark)
    yield spark
    hoodie.spark.unregister(spark)


def rows_of(*rows: tuple[str, str, int]) -> pa.Table:
    return pa.table(dict(zip(("id", "city", "at"), zip(*rows, strict=True), strict=True)))


def content(path: str) -> list[tuple[object, ...]]:
    rows = hoodie.open_table(path).snapshot(columns=["id", "city", "at"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_a_stream_of_changes_becomes_a_table_of_its_own(registered: SparkSession, tmp_path: Path) -> None:
    spark, path, copy, checkpoint = registered, *(str(tmp_path / name) for name in ("t", "copy", "checkpoint"))
    table = hoodie.create_table(path, spark=spark, name="t", record_key="id", partition_by="city", ordering="at")
    table.upsert(rows_of(("a", "oslo", 1), ("b", "rome", 1)))
    table.upsert(rows_of(("a", "oslo", 2)))

    def load(path: str = path) -> None:
        changes = (
            spark.readStream.format("hudi")
            .option("hoodie.datasource.streaming.max.commits.per.trigger", 1)
            .load(path)
            .selectExpr("id", "city", "at")
        )
        query = (
            changes.writeStream.partitionBy("city")
            .format("hudi")
            .options(**KEYS)
            .option("checkpointLocation", checkpoint)
            .outputMode("append")
            .trigger(availableNow=True)
            .start(copy)
        )
        query.awaitTermination()

    # Of the session's settings those count that say how tables are read.
    spark.conf.set("hoodie.datasource.streaming.startOffset", "latest")
    spark.conf.set("hoodie.read.ignore.missing.files", "true")
    try:
        load()
    finally:
        spark.conf.unset("hoodie.datasource.streaming.startOffset")
        spark.conf.unset("hoodie.read.ignore.missing.files")
    assert content(copy) == [("a", "oslo", 2), ("b", "rome", 1)]
    assert [len(commit.stats) for _, commit in hoodie.open_table(copy).history()] == [1, 2]
    assert (tmp_path / "copy" / "oslo").is_dir()
    table.upsert(rows_of(("c", "rome", 3)))
    load()
    assert content(copy) == [("a", "oslo", 2), ("b", "rome", 1), ("c", "rome", 3)]
    other = hoodie.create_table(str(tmp_path / "other"), spark=spark, name="o", record_key="id")
    other.upsert(rows_of(("a", "oslo", 1)))
    with pytest.raises(InvalidInput, match="checkpoint is of table 't'"):
        load(other.path)


def test_streams_name_tables_as_statements_do(registered: SparkSession, tmp_path: Path) -> None:
    spark, files = registered, str(tmp_path / "files")
    spark.createDataFrame([("a", "oslo", 1), ("a", "oslo", 2)], SCHEMA).coalesce(1).write.json(files)
    spark.sql(
        f"""CREATE TABLE streamed (id STRING, city STRING, at BIGINT) USING hudi LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id', preCombineField = 'at', 'hoodie.cleaner.commits.retained' = '7')"""
    )

    def ends(query: StreamingQuery) -> None:
        query.awaitTermination()

    for number, name in ((1, "hudi"), (2, "")):
        writer = spark.readStream.schema(SCHEMA).json(files).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / f"in{number}"))
        ends((writer.format(name) if name else writer).toTable("streamed"))
        assert content(str(tmp_path / "t")) == [("a", "oslo", 2)]
        assert len(hoodie.open_table(tmp_path / "t").history()) == number
    changes = spark.readStream.table("streamed").select("id", "at").writeStream.trigger(availableNow=True)
    ends(changes.option("checkpointLocation", str(tmp_path / "out")).start(str(tmp_path / "copy")))
    assert [tuple(row) for row in spark.read.parquet(str(tmp_path / "copy")).collect()] == [("a", 2)]
    spark.sql("DROP TABLE streamed PURGE")


def test_the_rows_of_a_complete_result_take_the_place_of_all_others_and_errors_are_typed(
    registered: SparkSession, tmp_path: Path
) -> None:
    spark, path, files = registered, str(tmp_path / "t"), str(tmp_path / "files")
    spark.createDataFrame([("a", "oslo", 1), ("b", "oslo", 2)], SCHEMA).coalesce(1).write.json(files)
    counts = spark.readStream.schema(SCHEMA).json(files).groupBy("city").agg({"at": "max"}).toDF("city", "at")
    options = {**KEYS, "hoodie.datasource.write.recordkey.field": "city"}

    def start(frame: DataFrame, checkpoint: str, mode: str) -> None:
        writer = (
            frame.writeStream.format("hudi").options(**options).option("checkpointLocation", str(tmp_path / checkpoint))
        )
        writer.outputMode(mode).trigger(availableNow=True).start(path).awaitTermination()

    start(counts, "1", "complete")
    spark.createDataFrame([("c", "rome", 3)], SCHEMA).coalesce(1).write.mode("append").json(files)
    start(counts, "1", "complete")
    assert sorted((row["city"], row["at"]) for row in hoodie.open_table(path).snapshot().to_arrow().to_pylist()) == [
        ("oslo", 2),
        ("rome", 3),
    ]
    assert [str(commit.operation) for _, commit in hoodie.open_table(path).history()] == ["INSERT_OVERWRITE_TABLE"] * 2

    rows = spark.readStream.schema(SCHEMA).json(files)
    plain = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "4")).partitionBy("city")
    plain.trigger(availableNow=True).start(str(tmp_path / "plain")).awaitTermination()
    assert (tmp_path / "plain" / "city=oslo").is_dir()  # other formats get all that was said
    with pytest.raises(SchemaMismatch):
        start(rows.drop("at"), "2", "append")
    assert len(hoodie.open_table(path).history()) == 2
    with pytest.raises(InvalidInput, match="checkpoint"):
        rows.writeStream.format("hudi").options(**options).start(path)
    with pytest.raises(InvalidOption, match="recordkey"):
        rows.writeStream.format("hudi").option("hoodie.datasource.write.recordkey.feild", "x").option(
            "checkpointLocation", str(tmp_path / "3")
        ).start(path)
    with pytest.raises(InvalidInput, match="register_table"):
        rows.writeStream.format("hudi").toTable("t")
    empty = hoodie.create_table(str(tmp_path / "empty"), spark=spark, name="e", record_key="id")
    with pytest.raises(InvalidInput, match="no columns yet"):
        spark.readStream.format("hudi").load(empty.path)
