"""How often a read asks Spark's JVM: each call is a round trip, and short queries are little else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.jvm_calls import counted_calls, made_table, opened_snapshot
from hoodie.spark.read import driver_changes, positioned_slices


# PySpark hands lists over item by item: two base files, and two files of the rows of logs, are a call each.
@pytest.mark.parametrize(("table_type", "most"), [("COPY_ON_WRITE", 21), ("MERGE_ON_READ", 30)])
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


def test_which_rows_logs_replace_is_sent_to_spark_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a frame where it is too much for text: as it is here, with a lower limit."""
    monkeypatch.setattr(positioned_slices, "_MOST_WORDS_AS_TEXT", 0)
    path = tmp_path / "trips"
    made_table(spark, path, "MERGE_ON_READ")
    counts = []
    for _ in range(2):
        with counted_calls() as calls:
            rows = opened_snapshot(spark, path)
        counts.append(calls.total())
        assert (rows.count(), rows.where("ts >= 1000").count()) == (100, 34)
    assert counts[1] < 35 < counts[0]
    other = opened_snapshot(spark, path)
    assert rows.join(other, rows["id"] == other["id"]).where(rows["ts"] >= 1000).count() == 34
