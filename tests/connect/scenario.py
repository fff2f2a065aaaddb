"""A driver over Spark Connect: tables of both types, on both routes, against plain Spark's answer for the same rows.

python scenario.py FOLDER
"""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.errors import CorruptFile, HoodieError, InvalidInput
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


def run(spark: SparkSession, path: Path, table_type: str, route: dict[str, int]) -> None:
    table = hoodie.create_table(
        spark, str(path), name="t", record_key="id", partition_by="p", ordering="ts", table_type=table_type
    )
    table.bulk_insert(rows(spark, 0, KEYS, 1), options=route)
    changed = table.upsert(rows(spark, 50, 150, 2), options=route)
    assert (changed.route, changed.inserted, changed.updated) == ("executors" if route else "driver", 50, 50)
    assert table.delete(rows(spark, 0, 5, 1).select("id", "p"), options=route).deleted == 5
    expected = rows(spark, 5, 50, 1).unionAll(rows(spark, 50, 150, 2))
    assert content(table.snapshot()) == content(expected)
    assert content(table.changes(table.history()[2][0].requested)) == content(rows(spark, 50, 150, 2))

    client = hoodie.HoodieReadClient(spark, str(path), route)
    asked = rows(spark, 0, 10, 1).unionAll(rows(spark, 148, 152, 1))
    absent = rows(spark, 0, 5, 1).unionAll(rows(spark, 150, 152, 1))
    assert content(client.filter_exists(asked)) == content(absent)
    assert content(client.read(asked).rows) == content(rows(spark, 5, 10, 1).unionAll(rows(spark, 148, 150, 2)))
    assert client.tag_location(asked).count() == 14
    assert "SIMPLE" in str(table.explain_upsert(asked))

    if table_type == "MERGE_ON_READ":
        assert table.schedule_compaction(options=NOW)
        table.compact()
        assert content(table.read_optimized()) == content(expected)
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


def refused(kind: type[HoodieError], act: object) -> None:
    try:
        act()  # type: ignore[operator]
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def main(folder: Path) -> None:
    ensure_java()
    spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    assert "connect" in type(spark).__module__
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for name, route in (("driver", {}), ("executors", {"hoodie.spark.driver.max.batch.bytes": 0})):
            run(spark, folder / f"{table_type}-{name}", table_type, route)
    estimates(spark)
    spark.stop()
    print("all of it held")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
