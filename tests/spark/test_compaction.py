"""Compaction through the table: planned, run on executors, with a writer at work between."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.errors import UnsupportedTable
from oracles import assert_same_rows, read_hudi_rs

NOW = {"hoodie.compact.inline.max.delta.commits": 1}


def rows(spark, low, high, version):
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id", "cast(id % 2 as string) as p", f"{version}L as ts", f"id * {version} as v"
    )


def table(spark, path, kind="MERGE_ON_READ"):
    return hoodie.create_table(
        spark, str(path), name="t", record_key="id", partition_by="p", ordering="ts", table_type=kind
    )


def test_a_writer_goes_on_beside_a_pending_compaction_and_nothing_is_lost(spark, tmp_path):
    one = table(spark, tmp_path / "t")
    one.bulk_insert(rows(spark, 0, 100, 1))
    one.upsert(rows(spark, 0, 20, 2))
    planned = one.schedule_compaction({"who": "test"}, NOW)
    assert planned is not None
    one.upsert(rows(spark, 10, 30, 3))
    one.delete(rows(spark, 0, 4, 1))
    before = one.snapshot().toArrow()
    optimized = one.read_optimized().toArrow()
    done = one.compact()
    assert done is not None
    assert (done.instant, done.metadata.extra["who"]) == (planned, "test")
    assert_same_rows(one.snapshot().toArrow(), before, ignore=["_hoodie_file_name"])
    assert one.read_optimized().where("v != cast(substr(id, 2) as bigint)").count() == 19  # k1 to k19 as of the plan
    assert_same_rows(read_hudi_rs(tmp_path / "t"), before, ignore=["_hoodie_file_name"])
    assert optimized.num_rows == 100
    assert one.compact() is None


def test_no_compaction_is_planned_before_its_time_or_on_a_table_without_logs(spark, tmp_path):
    one = table(spark, tmp_path / "mor")
    one.upsert(rows(spark, 0, 10, 1))
    assert one.schedule_compaction() is None
    assert one.schedule_compaction(options=NOW) is None
    with pytest.raises(UnsupportedTable, match="Copy-on-Write"):
        table(spark, tmp_path / "cow", "COPY_ON_WRITE").schedule_compaction()
