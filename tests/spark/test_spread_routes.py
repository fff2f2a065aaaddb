"""The ways in which a write is spread over executors give the same table as driver threads."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.writing import stage
from support.oracles import assert_same_rows, read_hudi_rs

SPREAD = {"hoodie.spark.driver.max.batch.bytes": 0}


def rows(spark, low, high, version):
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id", "cast(id % 3 as string) as p", f"{version}L as ts", f"id * {version} as v"
    )


def table(spark, path, **options):
    return hoodie.create_table(
        spark, str(path), name="t", record_key="id", partition_by="p", ordering="ts", options=options
    )


@pytest.fixture(params=["staged", "shuffled"])
def route(request, monkeypatch):
    if request.param == "shuffled":  # as if the batch were too large for each task to read its partition's rows
        monkeypatch.setattr(stage, "LARGEST_PARTITION", 0)
    return request.param


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_both_spread_ways_give_the_table_that_driver_threads_give(spark, tmp_path, route, index):
    near, far = table(spark, tmp_path / "driver"), table(spark, tmp_path / "far", **SPREAD)
    # Small files, so that a partition has several file groups and inserts go to more than one new group.
    options = {
        "hoodie.index.type": index,
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": 40,
    }
    results = []
    for one in (near, far):
        one.upsert(rows(spark, 0, 300, 1), options=options)
        twice = rows(spark, 250, 400, 2).union(rows(spark, 380, 400, 3))
        results.append(one.upsert(twice, options=options))
        one.delete(rows(spark, 0, 500, 1).where("v % 7 = 0"), options=options)
    assert [result.route for result in results] == ["driver", "executors"]
    assert [(r.inserted, r.updated) for r in results] == [(100, 50)] * 2
    assert results[0].index.hits == 50
    for cost in (result.index for result in results):  # each candidate file is left out for a reason, or read
        assert cost.files == cost.files_pruned_by_range + cost.files_pruned_by_filter + cost.files_read > 0
    written = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
    expected = near.snapshot().toArrow()
    assert_same_rows(far.snapshot().toArrow(), expected, ignore=written)
    assert_same_rows(read_hudi_rs(tmp_path / "far"), expected, ignore=written)
    assert len({slice_.group for slice_ in far.file_slices()}) > 6


def test_nothing_stays_staged_after_a_write_or_a_refusal(spark, tmp_path, route):
    one = table(spark, tmp_path / "t", **SPREAD)
    one.upsert(rows(spark, 0, 10, 1))
    with pytest.raises(hoodie.HoodieError, match="null or empty"):
        one.upsert(rows(spark, 0, 10, 1).selectExpr("if(v = 3, null, id) as id", "p", "ts", "v"))
    assert not (tmp_path / "t" / ".hoodie" / ".temp" / "staged").exists() or not any(
        (tmp_path / "t" / ".hoodie" / ".temp" / "staged").iterdir()
    )


def test_the_input_is_evaluated_once(spark, tmp_path):
    counted = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            counted.add(batch.num_rows)
            yield batch

    frame = rows(spark, 0, 50, 1)
    one = table(spark, tmp_path / "t", **SPREAD)
    one.upsert(frame.mapInArrow(count, frame.schema))
    one.upsert(frame.mapInArrow(count, frame.schema))
    assert counted.value == 100
