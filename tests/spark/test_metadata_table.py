"""Spark reads a table with a metadata table of Hudi's: its rows, filters that leave files out, and what it says. Its
writes keep the file lists."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.errors import MetadataTableIgnored
from hoodie.metadata.validate import validate_metadata
from hoodie.reading.pruning import PruneReason
from hoodie.reading.row_keys import read_keys
from hoodie.spark import tasks
from hoodie.spark.merge.pruning import pruned_scan
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.metadata_tables import table_files
from support.scans import plan_scan


def test_spark_reads_by_the_metadata_table(spark: SparkSession, tmp_path: Path) -> None:
    for name, data in table_files("mdt_cow").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    table = hoodie.open_table(str(tmp_path), spark=spark)
    off = {"hoodie.metadata.enable": "false"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        rows = table.snapshot().toPandas()
        assert sorted(rows["id"]) == sorted(table.snapshot(options=off).toPandas()["id"])
        last = rows["id"].max()
        filters = [("id", ">=", last)]
        scan = table.scan(filters=filters)
        assert "files listed by the metadata table" in scan.explain()
        assert [part.files for part in scan.pruned if part.reason is PruneReason.STATISTICS] == [2]
        assert [row["id"] for row in table.snapshot(filters=filters).collect()] == [last]
        assert len(table.snapshot(filters=filters).inputFiles()) == 1
        assert len(table.snapshot(filters=filters, options=off).inputFiles()) == 3
    entries = table.metadata("record_index")
    assert entries.columns == ["record_key", "partition", "file_id", "instant_time"]
    assert {row["record_key"] for row in entries.collect()} == set(rows["id"])


def test_writes_of_spark_build_and_keep_the_file_lists(spark: SparkSession, tmp_path: Path) -> None:
    options = {"hoodie.metadata.enable": "true", "hoodie.spark.driver.max.batch.bytes": "0"}
    table = hoodie.create_table(
        str(tmp_path), spark=spark, name="trips", record_key="id", partition_by="city", ordering="ts", options=options
    )
    for ts in range(3):
        frame = spark.createDataFrame(
            [(f"k{ts}", "oslo", ts), ("a", f"city{ts}", ts)], "id string, city string, ts long"
        )
        assert table.upsert(frame).route == "executors"
    table.delete_partitions(["city1"])
    state = load_state(LocalStorage(tmp_path))
    told = validate_metadata(state.storage, state.config, state.timeline)
    assert told.problems == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        assert "files listed by the metadata table" in table.scan().explain()
        assert table.count() == 5


@pytest.mark.nightly
def test_executors_build_the_partitions_of_a_large_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    original: Any = tasks.run_per_item

    def run_per_item(session: SparkSession, items: Sequence[object], *how: object) -> DataFrame:
        counts.append(len(items))
        return original(session, items, *how)

    monkeypatch.setattr("hoodie.spark.tasks.run_per_item", run_per_item)
    table = hoodie.create_table(str(tmp_path), spark=spark, name="trips", record_key="id", ordering="ts")
    table.upsert(spark.range(500).selectExpr("cast(id as string) id", "id ts"))
    options = {
        "hoodie.spark.driver.max.batch.bytes": "0",  # everything is large
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
    }
    table.upsert(spark.range(500, 510).selectExpr("cast(id as string) id", "id ts"), options=options)
    assert counts == [1, 4, 1, 2, 1, 10]  # of each partition: shares of the table's files, then its file groups
    state = load_state(LocalStorage(tmp_path))
    told = validate_metadata(state.storage, state.config, state.timeline, read_keys=read_keys)
    assert (told.problems, told.partitions["record_index"]) == ((), 510)
    assert not LocalStorage(tmp_path).list(".hoodie/.temp/staged")
    counts.clear()
    saved = table.savepoint().instant
    table.delete(spark.range(5).selectExpr("cast(id as string) id"))
    table.restore(saved, options={"hoodie.spark.driver.max.batch.bytes": "0"})
    assert counts == [1, 4, 1, 2, 1, 10]
    assert load_state(LocalStorage(tmp_path)).config.metadata_partitions == state.config.metadata_partitions


def test_conditions_of_writes_leave_out_files_by_statistics(spark: SparkSession, tmp_path: Path) -> None:
    options = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.small.file.limit": "0"}
    table = hoodie.create_table(
        str(tmp_path), spark=spark, name="trips", record_key="id", ordering="ts", options=options
    )
    for ts in range(3):
        frame = spark.createDataFrame([(f"k{ts}", ts, f"c{ts}")], "id string, ts long, city string")
        table.upsert(frame)
    state = load_state(LocalStorage(tmp_path))

    def slices(*conditions: str | None) -> int:
        return len(pruned_scan(spark, plan_scan(state), conditions, "target").slices)

    assert slices(None) == slices("target.ts >= 2", None) == 3
    assert slices("target.ts >= 2") == slices("city = 'c1' and upper(city) = 'C1'") == slices("target.ts in (1)") == 1
    assert slices("target.ts >= 2", "ts = 0") == 2
    assert slices("source.ts >= 2") == slices("ts >= 1 or true") == slices("upper(city) = 'C1'") == 3
    assert table.update({"city": "'oslo'"}, "ts = 1").updated == 1
    assert table.delete(where="ts > 1").deleted == 1
    rows = {row["id"]: row["city"] for row in table.snapshot().collect()}
    assert rows == {"k0": "c0", "k1": "oslo"}
