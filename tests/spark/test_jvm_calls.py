"""How often a read asks Spark's JVM: each call is a round trip, and short queries are little else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.jvm_calls import counted_calls, made_table, opened_snapshot
from hoodie.spark.read import driver_changes


# PySpark hands lists over item by item: two base files, and two files of the rows of logs, are a call each.
@pytest.mark.parametrize(("table_type", "most"), [("COPY_ON_WRITE", 22), ("MERGE_ON_READ", 30)])
def test_a_table_is_opened_and_its_snapshot_planned_with_few_calls_to_spark(
    spark: SparkSession, tmp_path: Path, table_type: str, most: int
) -> None:
    path = tmp_path / "trips"
    made_table(spark, path, table_type)
    rows = opened_snapshot(spark, path)
    assert rows.where("fare > 100").count() == 0  # the fares of all logs are below
    assert rows.where("ts >= 1000").count() == 34
    driver_changes.forget()
    for _ in ("reads the logs", "has them"):
        with counted_calls() as calls:
            opened_snapshot(spark, path)
        assert 0 < calls.total() <= most, calls.most_common()
