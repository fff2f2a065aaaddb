"""Every index over executors: rows go where driver threads have them go, and readers agree on the table."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import hoodie
from hoodie.config.options import as_text
from hoodie.errors import KeyInTwoPartitions
from hoodie.metadata.validate import validate_metadata
from hoodie.reading.row_keys import read_keys
from hoodie.spark.lookup import locate
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.writing.batch import stage
from support import own_indexes, spark_tables
from support.nightly import nightly
from support.oracles import assert_same_rows, read_hudi_rs

SPREAD = {"hoodie.spark.driver.max.batch.bytes": 0}
WRITTEN = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
BY_ORDERING = "DefaultHoodieRecordPayload"
CASES = {
    "global simple": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "global bloom, stays": {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 3},
    "record index, global": {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"},
    "own": {"hoodie.index.class": "support.own_indexes:exact"},
    "own, global": {"hoodie.index.class": "support.own_indexes:exact_global"},
}


def rows(spark, low, high, version, shift=0):
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id",
        f"cast((id + {shift}) % 3 as string) as p",
        f"{version}L as ts",
        f"id * {version} as v",
        "timestamp_seconds(id) as at",
    )


def table(spark, path, table_type, **options):
    return spark_tables.table(
        spark, path, table_type, **{"hoodie.datasource.write.payload.class": BY_ORDERING, **options}
    )


@pytest.mark.parametrize(
    ("case", "table_type"),
    [
        ("bucket", "MERGE_ON_READ"),
        nightly("own", "MERGE_ON_READ"),
        nightly("own, global", "COPY_ON_WRITE"),
        nightly("global simple", "MERGE_ON_READ"),
        nightly("record index, global", "MERGE_ON_READ"),
        nightly("record index, global", "COPY_ON_WRITE"),
        nightly("global bloom, stays", "COPY_ON_WRITE"),
    ],
)
def test_executors_give_the_table_that_driver_threads_give(spark, tmp_path, case, table_type):
    if "own" in case:  # executors import it, too
        shipped = shutil.make_archive(
            str(tmp_path / "support"), "zip", Path(own_indexes.__file__).parents[1], "support"
        )
        spark.sparkContext.addPyFile(shipped)
    near = table(spark, tmp_path / "driver", table_type, **CASES[case])
    far = table(spark, tmp_path / "far", table_type, **CASES[case], **SPREAD)
    results = []
    for one in (near, far):
        one.upsert(rows(spark, 0, 60, 5))
        # Later versions of some where they are, and of some elsewhere, two of them twice and in two partitions; earlier
        # ones of others, which stay.
        mixed = rows(spark, 0, 10, 6).union(rows(spark, 30, 50, 7, shift=1)).union(rows(spark, 48, 50, 8, shift=2))
        results.append(one.upsert(mixed.union(rows(spark, 50, 70, 2, shift=1))))
        results.append(one.delete(rows(spark, 0, 100, 1).where("v % 7 = 0")))
    told = [(r.route, r.inserted, r.updated, r.deleted, r.index.hits) for r in results]
    assert [r[0] for r in told] == ["driver", "driver", "executors", "executors"]
    assert [r[1:4] for r in told[:2]] == [r[1:4] for r in told[2:]]
    assert told[2][4] > 0
    assert results[2].index.seconds > 0
    expected = near.snapshot().toArrow()
    assert_same_rows(far.snapshot().toArrow(), expected, ignore=WRITTEN)
    assert_same_rows(read_hudi_rs(tmp_path / "far"), expected, ignore=WRITTEN)
    if "record" in case:
        state = load_state(LocalStorage(tmp_path / "far"))
        assert "record_index" in state.config.metadata_partitions
        told = validate_metadata(state.storage, state.config, state.timeline, read_keys=read_keys)
        assert told.problems == ()
        assert told.partitions["record_index"] == expected.num_rows
    if "global" in case:
        keys = expected["_hoodie_record_key"].to_pylist()
        assert len(set(keys)) == len(keys)
        assert near.delete(rows(spark, 0, 10, 1).select("id")).deleted == 8  # without a partition column
        assert far.delete(rows(spark, 0, 10, 1).select("id")).deleted == 8


@pytest.mark.nightly
def test_a_batch_of_unmoved_keys_under_a_global_index_is_written_as_it_stands(spark, tmp_path):
    one = table(spark, tmp_path / "t", "COPY_ON_WRITE", **CASES["global simple"], **SPREAD)
    one.upsert(rows(spark, 0, 30, 1))
    result = one.upsert(rows(spark, 20, 40, 2))
    assert (result.inserted, result.updated, result.deleted) == (10, 10, 0)
    assert one.snapshot().count() == 40


@pytest.mark.nightly  # beside tests/unit/lookup/test_global_look_up.py
def test_executors_name_a_key_in_two_partitions(spark, tmp_path):
    one = table(spark, tmp_path / "t", "COPY_ON_WRITE", **CASES["global simple"], **SPREAD)
    one.insert(rows(spark, 0, 10, 1))
    one.insert(rows(spark, 3, 4, 1, shift=1))
    before = one.history()
    with pytest.raises(KeyInTwoPartitions, match=r"'k3' in '0', '1'|'k3' in '1', '0'"):
        one.upsert(rows(spark, 0, 10, 2))
    assert one.history() == before
    assert one.delete(rows(spark, 3, 4, 1).select("id")).deleted == 2
    one.upsert(rows(spark, 0, 10, 2))
    assert one.snapshot().count() == 10


def test_files_are_counted_once_however_many_tasks_look_into_them(spark, tmp_path, monkeypatch):
    options = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    one = table(spark, tmp_path / "t", "COPY_ON_WRITE", **options)
    for low in (1000, 1030, 1060):
        one.insert(rows(spark, low, low + 30, 1).selectExpr("id", "'0' as p", "ts", "v", "at"))
    batch = rows(spark, 1020, 1040, 2).selectExpr("id", "'0' as p", "ts", "v", "at")
    by_driver = one.explain_upsert(batch).index
    monkeypatch.setattr(stage, "LARGEST_PARTITION", 0)
    cut = {**SPREAD, "hoodie.bloom.index.keys.per.bucket": 2}
    by_tasks = one.explain_upsert(batch, options=cut).index
    assert replace(by_tasks, seconds=0) == replace(by_driver, seconds=0)
    assert (by_tasks.files, by_tasks.files_read, by_tasks.files_pruned_by_range) == (3, 2, 1)


def test_a_key_that_a_batch_holds_twice_is_one_hit_however_the_look_up_is_cut(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "LARGEST_PARTITION", 0)
    monkeypatch.setattr(locate, "_LOOK_UP_AT", 1)
    options = {"hoodie.index.type": "BLOOM", "hoodie.combine.before.upsert": "false", **SPREAD}
    one = table(spark, tmp_path / "t", "COPY_ON_WRITE", **{key: as_text(value) for key, value in options.items()})
    one.upsert(rows(spark, 0, 4, 1))
    twice = [row for _ in range(3) for row in rows(spark, 0, 2, 2).collect()]
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    try:
        result = one.upsert(spark.createDataFrame(twice, rows(spark, 0, 1, 1).schema))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert result.updated == 2
    assert one.snapshot().count() == 4


def test_an_index_hears_of_what_a_client_gives_up(spark, tmp_path):
    """`start_commit` takes a dead write back, `rollback` one that is open."""
    path, diary = str(tmp_path / "t"), own_indexes.diary
    hoodie.create_table(path, spark=spark, name="t", record_key="id")
    batch = spark.range(3).selectExpr("cast(id as string) as id", "id as v")
    dead = hoodie.hudi.HoodieWriteClient(path, spark=spark).start_commit()
    diary.heard.clear()
    client = hoodie.hudi.HoodieWriteClient(
        path, {"hoodie.index.class": "support.own_indexes:diary", "hoodie.auto.commit": "false"}, spark=spark
    )
    opened = client.start_commit()
    assert diary.heard == [("rolled back", dead)]
    client.upsert(batch, opened)
    client.rollback(opened)
    assert diary.heard[1:] == [("learn", opened), ("rolled back", opened)]
    diary.heard.clear()
