"""How often a read asks Spark's JVM: each call is a round trip, and short queries are little else."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hoodie
from bench.jvm_calls import counted_calls, made_table, opened_snapshot
from hoodie.spark.read import local_logs, positioned_slices


# PySpark hands lists over item by item: two base files, and two files of the rows of logs, are a call each.
@pytest.mark.parametrize(("table_type", "most"), [("COPY_ON_WRITE", 23), ("MERGE_ON_READ", 30)])
def test_a_table_is_opened_and_its_snapshot_planned_with_few_calls_to_spark(
    spark: SparkSession, tmp_path: Path, table_type: str, most: int
) -> None:
    path = tmp_path / "trips"
    made_table(spark, path, table_type)
    rows = opened_snapshot(spark, path)
    assert rows.where("fare > 100").count() == 0  # the fares of all logs are below
    assert rows.where("ts >= 1000").count() == 34
    local_logs.forget_changes()
    for _ in ("reads the logs", "has them"):
        with counted_calls() as calls:
            opened_snapshot(spark, path)
        assert 0 < calls.total() <= most, calls.most_common()


def test_which_rows_logs_replace_goes_to_spark_as_one_value(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No join, no broadcast and no union; as an argument where it is too much to parse, here with a lower limit."""
    path = tmp_path / "trips"
    made_table(spark, path, "MERGE_ON_READ")
    few = spark.sql("select 'x' || id id, 'c2' city, id ts, 1.5D fare, id seats from range(2)")
    hoodie.open_table(str(path), spark=spark).upsert(few)
    for most in (positioned_slices._MOST_TEXT, 0):
        monkeypatch.setattr(positioned_slices, "_MOST_TEXT", most)
        rows = opened_snapshot(spark, path)
        assert (rows.count(), rows.where("ts >= 1000").count()) == (102, 34)
        other = opened_snapshot(spark, path)
        assert rows.join(other, rows["id"] == other["id"]).where(rows["ts"] >= 1000).count() == 34
        plan = rows._jdf.queryExecution().executedPlan().toString()
        assert plan.count("FileScan") == 1, plan
        assert not any(word in plan for word in ("Join", "Broadcast", "Union", "[[")), plan


@pytest.mark.parametrize(("told", "one_key"), [(0, 40), (1, 40), (2, 40), (0, 0), (2, 0)])
def test_files_are_told_by_their_names_where_sizes_are_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: int, one_key: int
) -> None:
    monkeypatch.setattr(positioned_slices, "_ONE_KEY", one_key)
    monkeypatch.setattr(positioned_slices, "_NUMBERS", positioned_slices._NUMBERS[told:])
    made_table(spark, tmp_path / "trips", "MERGE_ON_READ")
    rows = opened_snapshot(spark, tmp_path / "trips")
    assert sorted(row.ts % 1000 for row in rows.select("ts").collect()) == list(range(100))


def test_a_file_of_which_nothing_is_known_fails_the_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trips"
    made_table(spark, path, "MERGE_ON_READ")
    placed = positioned_slices._places_of
    monkeypatch.setattr(positioned_slices, "_places_of", lambda gone: placed({n + 1: each for n, each in gone.items()}))
    with pytest.raises((PySparkException, Py4JJavaError), match="what the logs change of a base file is not known"):
        opened_snapshot(spark, path).count()
