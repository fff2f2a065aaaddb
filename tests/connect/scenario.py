"""A driver over Spark Connect: tables of both types, on both routes, against plain Spark's answer for the same rows.

python scenario.py FOLDER [all | doors | statements], with settings of the session in SCENARIO_CONF
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.errors.exceptions.connect import SparkException
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.errors import CorruptFile, HoodieError, InvalidInput, StatementError
from hoodie.spark.java import ensure_java
from hoodie.spark.plan_size import estimated_bytes

KEYS = 100
NOW = {"hoodie.compact.inline.max.delta.commits": 1}


def rows(spark: SparkSession, low: int, high: int, version: int) -> DataFrame:
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id", "cast(id % 3 as string) as p", f"{version}L as ts", f"id * {version} as v"
    )


def content(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.select("id", "p", "ts", "v").collect())


def run(spark: SparkSession, path: Path, table_type: str, route: dict[str, int], *, brief: bool = False) -> None:
    """brief  a load and an upsert, and nothing else"""
    table = hoodie.create_table(
        str(path), spark=spark, name="t", record_key="id", partition_by="p", ordering="ts", table_type=table_type
    )
    table.bulk_insert(rows(spark, 0, KEYS, 1), options=route)
    changed = table.upsert(rows(spark, 50, 150, 2), options=route)
    assert (changed.route, changed.inserted, changed.updated) == ("executors" if route else "driver", 50, 50)
    if brief:
        assert content(table.snapshot()) == content(rows(spark, 0, 50, 1).unionAll(rows(spark, 50, 150, 2)))
        return
    assert table.delete(rows(spark, 0, 5, 1).select("id", "p"), options=route).deleted == 5
    expected = rows(spark, 5, 50, 1).unionAll(rows(spark, 50, 150, 2))
    assert content(table.snapshot()) == content(expected)
    assert content(table.changes(table.history()[2][0].requested)) == content(rows(spark, 50, 150, 2))

    client = hoodie.hudi.HoodieReadClient(str(path), route, spark=spark)
    asked = rows(spark, 0, 10, 1).unionAll(rows(spark, 148, 152, 1))
    absent = rows(spark, 0, 5, 1).unionAll(rows(spark, 150, 152, 1))
    assert content(client.filter_exists(asked)) == content(absent)
    assert content(client.read(asked).rows) == content(rows(spark, 5, 10, 1).unionAll(rows(spark, 148, 150, 2)))
    assert client.tag_location(asked).count() == 14
    assert "SIMPLE" in str(table.explain_upsert(asked))

    if table_type == "MERGE_ON_READ":
        assert table.schedule_compaction(options=NOW)
        table.compact()
        assert content(table.snapshot(optimized=True)) == content(expected)
    table.insert_overwrite(rows(spark, 0, 3, 3), options=route)
    assert content(table.snapshot()) == content(rows(spark, 0, 3, 3))
    refused(
        InvalidInput, lambda: table.upsert(rows(spark, 0, 3, 3).selectExpr("null as id", "p", "ts", "v"), options=route)
    )
    if route:
        for file in path.glob("*/*.parquet"):
            file.write_bytes(b"PAR1 not PAR1")
        refused(CorruptFile, lambda: table.upsert(rows(spark, 0, 3, 4), options=route))


def estimates(spark: SparkSession) -> None:
    """Spark's sizes of frames, asked for by threads at once: each its own, and nothing printed."""
    out, frames = sys.stdout, [spark.range(10**n) for n in range(2, 6)]
    sys.stdout = told = io.StringIO()
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(estimated_bytes, frames * 3))
    finally:
        same, sys.stdout = sys.stdout is told, out
    assert same
    assert told.getvalue() == ""
    assert found == found[:4] * 3
    assert len(set(found)) == 4
    assert None not in found


def statements(spark: SparkSession, folder: Path) -> None:
    """`spark.sql` and the calls by a table's name, once registered."""
    hoodie.register(spark)
    spark.sql(
        f"CREATE TABLE by_sql (id STRING, p STRING, ts BIGINT, v BIGINT) USING hudi LOCATION '{folder / 'by_sql'}' "
        "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql("INSERT INTO by_sql SELECT id, p, ts, v FROM {df} WHERE ts < :t", {"t": 9}, df=rows(spark, 0, 3, 1))
    spark.sql("UPDATE by_sql SET v = ? WHERE id = ?", [7, "k1"])
    found = spark.sql("SELECT b.* FROM by_sql b JOIN {df} USING (id) WHERE b.v > :v", {"v": 0}, df=rows(spark, 1, 9, 1))
    assert [(row.id, row.v) for row in found.orderBy("id").collect()] == [("k1", 7), ("k2", 2)]
    assert "by_sql" in [table.name for table in spark.catalog.listTables()]
    rows(spark, 3, 4, 1).write.insertInto("by_sql")
    rows(spark, 4, 5, 1).writeTo("by_sql").append()
    assert spark.table("by_sql").count() == spark.read.table("by_sql").count() == 5
    assert "parquet" in spark.sql("EXPLAIN SELECT * FROM by_sql").first()[0]
    spark.sql(f"CREATE TABLE copied USING parquet LOCATION '{folder / 'copied'}' AS SELECT id FROM by_sql")
    spark.sql("CREATE VIEW viewed AS SELECT id FROM by_sql")
    spark.sql("DELETE FROM by_sql WHERE id = 'k0'")
    assert (spark.table("copied").count(), spark.sql("SELECT * FROM viewed").count()) == (5, 4)
    spark.read.format("hudi").load(str(folder / "by_sql")).createOrReplaceTempView("shown")
    assert spark.sql("UPDATE shown SET v = 70 WHERE id = 'k1'").first()["num_updated_rows"] == 1
    assert spark.sql("SELECT v FROM shown WHERE id = 'k1'").first()["v"] == 70
    options = {"hoodie.datasource.write.recordkey.field": "id"}
    rows(spark, 0, 2, 1).write.format("hudi").options(**options, path=str(folder / "saved")).saveAsTable("saved")
    other = spark.newSession()
    assert other.sql("SELECT * FROM saved JOIN by_sql USING (id)").count() == 1
    other.client.close()  # else it asks the server for minutes when the process ends, which has stopped by then
    refused(StatementError, lambda: spark.sql("DROP TABLE by_sql more"))
    for name in ("viewed", "copied", "by_sql", "saved"):
        spark.sql(f"DROP {'VIEW' if name == 'viewed' else 'TABLE'} {name}")
    hoodie.spark.unregister(spark)


def doors(spark: SparkSession, folder: Path) -> None:
    """Spark's own calls, a merge, SQL, a stream from a table to another, and a view that is inserted into."""
    path, copy = str(folder / "trips"), str(folder / "copy")
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "p",
    }
    hoodie.register(spark)
    rows(spark, 0, 4, 1).write.format("hudi").options(**options).mode("overwrite").save(path)
    table = hoodie.open_table(path, spark=spark)
    merged = table.merge(rows(spark, 3, 5, 2)).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (merged.updated, merged.inserted) == (1, 1)
    hoodie.spark.sql(
        spark,
        f"MERGE INTO hudi.`{path}` t USING (SELECT 'k0' AS id, '0' AS p, 3L AS ts) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE",
    )
    expected = rows(spark, 1, 3, 1).unionAll(rows(spark, 3, 5, 2))
    assert content(spark.read.format("org.apache.hudi").load(path)) == content(expected)

    def load() -> None:
        changes = spark.readStream.format("hudi").load(path).select("id", "p", "ts", "v")
        writer = changes.writeStream.format("hudi").options(**options).option("checkpointLocation", str(folder / "ck"))
        started(lambda: writer.trigger(availableNow=True).start(copy)).awaitTermination()

    load()
    assert content(spark.read.format("hudi").load(copy)) == content(expected)
    spark.sql(f"CREATE TEMPORARY VIEW live USING hudi OPTIONS (path '{path}')")
    spark.sql("INSERT INTO live (id, p, ts, v) VALUES ('k9', '0', 9, 9)")
    hoodie.spark.refresh_view(spark, "live")
    assert spark.table("live").count() == 5
    load()
    assert spark.read.format("hudi").load(copy).count() == 5
    refused(
        InvalidInput,
        lambda: spark.readStream.format("hudi").load(
            hoodie.create_table(str(folder / "empty"), spark=spark, name="e", record_key="id").path
        ),
    )
    change_data(spark, path, folder)
    hoodie.spark.unregister(spark)


def started(start: Callable[[], Any]) -> Any:
    """A stream's query. A server gives workers of streams 10 seconds to start: too few on a busy machine."""
    for _ in range(9):
        try:
            return start()
        except SparkException as error:
            if "worker failed to connect back" not in str(error):
                raise
    return start()


def change_data(spark: SparkSession, path: str, folder: Path) -> None:
    """Turned on by SQL, and read by the call, by options, by SQL, and as a stream."""
    hoodie.spark.sql(spark, f"ALTER TABLE hudi.`{path}` SET TBLPROPERTIES ('hoodie.table.cdc.enabled' = 'true')")
    table = hoodie.open_table(path, spark=spark)
    begin = table.history()[0][0].requested
    table.upsert(rows(spark, 1, 2, 5))
    table.delete(spark.createDataFrame([("k9", "0")], "id string, p string"))

    def told(frame: DataFrame) -> list[tuple[object, ...]]:
        images = ("get_json_object(before, '$.v')", "get_json_object(after, '$.v')")
        return sorted(tuple(row) for row in frame.selectExpr("op", *images).collect())

    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
    }
    begins = {"hoodie.datasource.read.begin.instanttime": begin}
    expected = [("d", "9", None), ("u", "1", "5")]
    assert told(table.changes(begin, cdc=True)) == expected
    assert told(spark.read.format("hudi").options(**options, **begins).load(path)) == expected
    assert told(hoodie.spark.sql(spark, f"SELECT * FROM hudi_table_changes('{path}', 'cdc', '{begin}')")) == expected
    starts = {"hoodie.datasource.streaming.startOffset": begin}
    stream = spark.readStream.format("hudi").options(**options, **starts).load(path).writeStream.format("parquet")
    stream = stream.option("checkpointLocation", str(folder / "cdc-ck")).trigger(availableNow=True)
    stream.start(str(folder / "cdc")).awaitTermination()
    assert told(spark.read.parquet(str(folder / "cdc"))) == expected


def refused(kind: type[HoodieError], act: object) -> None:
    try:
        act()  # type: ignore[operator]
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def main(folder: Path, *what: str) -> None:
    ensure_java()
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    for key, value in json.loads(os.environ["SCENARIO_CONF"]).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    assert "connect" in type(spark).__module__
    if what == ("doors",):
        doors(spark, folder)
    elif what == ("statements",):
        statements(spark, folder)
    else:
        run(spark, folder / "driver", "COPY_ON_WRITE", {}, brief=not what)
        run(spark, folder / "executors", "MERGE_ON_READ", {"hoodie.spark.driver.max.batch.bytes": 0}, brief=not what)
        if what == ("all",):
            run(spark, folder / "other driver", "MERGE_ON_READ", {})
            run(spark, folder / "other executors", "COPY_ON_WRITE", {"hoodie.spark.driver.max.batch.bytes": 0})
        estimates(spark)
    spark.stop()
    print("all of it held")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
