"""Compaction through the table: planned, run on executors, with a writer at work between."""

import subprocess
import sys

import pytest

import hoodie
from hoodie.errors import InvalidOption, ServiceFailed
from hoodie.model.instant import Action
from hoodie.services.compaction.schedule import pending_compactions
from hoodie.spark.write import batch
from hoodie.table.state import load_state
from support.nightly import nightly
from support.oracles import assert_same_rows, read_hudi_rs

NOW = {"hoodie.compact.inline.max.delta.commits": 1}
INLINE = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 2}
SCHEDULE = {"hoodie.compact.schedule.inline": True, "hoodie.compact.inline.max.delta.commits": 2}


def rows(spark, low, high, version):
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id", "cast(id % 2 as string) as p", f"{version}L as ts", f"id * {version} as v"
    )


def table(spark, path, kind="MERGE_ON_READ"):
    return hoodie.create_table(
        str(path), spark=spark, name="t", record_key="id", partition_by="p", ordering="ts", table_type=kind
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("limit", "route"), [nightly(2**30, "driver"), (100, "executors"), nightly(0, "executors")])
def test_a_writer_goes_on_beside_a_pending_compaction_and_nothing_is_lost(spark, tmp_path, limit, route):
    one = table(spark, tmp_path / "t")
    one.bulk_insert(rows(spark, 0, 100, 1))
    one.upsert(rows(spark, 0, 20, 2))
    planned = one.schedule_compaction({"who": "test"}, options=NOW)
    assert planned is not None
    one.upsert(rows(spark, 10, 30, 3))
    one.delete(rows(spark, 0, 4, 1))
    before = one.snapshot().toArrow()
    optimized = one.snapshot(optimized=True).toArrow()
    done = one.compact(options={"hoodie.spark.driver.max.rewrite.bytes": limit})
    assert (done.instant, done.metadata.extra["who"], done.route) == (planned, "test", route)
    assert_same_rows(one.snapshot().toArrow(), before, ignore=["_hoodie_file_name"])
    assert (
        one.snapshot(optimized=True).where("v != cast(substr(id, 2) as bigint)").count() == 19
    )  # k1 to k19 as of the plan
    assert_same_rows(read_hudi_rs(tmp_path / "t"), before, ignore=["_hoodie_file_name"])
    assert optimized.num_rows == 100
    assert one.compact() is None


# --- deployment: inline, and by a compactor ---


def timeline(one):
    return load_state(one.storage).timeline


def compactions(one):
    return [i.requested for i in timeline(one).completed({Action.COMMIT})]


def pending(one):
    return [instant.requested for instant, _ in pending_compactions(load_state(one.storage))]


@pytest.mark.nightly
def test_a_writer_compacts_after_its_commits_by_itself(spark, tmp_path):
    path = str(tmp_path / "t")
    one = hoodie.create_table(
        path, spark=spark, name="t", record_key="id", partition_by="p", ordering="ts", table_type="MERGE_ON_READ",
        options=INLINE,
    )  # fmt: skip
    done = []

    def check(count):
        assert len(compactions(one)) == count
        assert pending(one) == []
        done.append(timeline(one).newest_commit)

    one.bulk_insert(rows(spark, 0, 40, 1))
    check(0)
    one.upsert(rows(spark, 0, 10, 2))
    check(1)
    one.upsert(rows(spark, 0, 10, 3))
    check(1)
    client = hoodie.hudi.HoodieWriteClient(path, {**INLINE, "hoodie.auto.commit": False}, spark=spark)
    instant = client.start_commit()
    result = client.upsert(rows(spark, 0, 10, 4), instant)
    check(1)
    client.commit(instant, result)
    check(2)
    client = hoodie.hudi.HoodieWriteClient(path, INLINE, spark=spark)
    client.upsert(rows(spark, 0, 10, 5), client.start_commit())
    hoodie.hudi.write(rows(spark, 0, 10, 6), path, INLINE)
    check(3)
    for n in range(2):
        one.delete(rows(spark, 2 * n, 2 * n + 1, 1), options={"hoodie.compact.inline": False})
    check(3)
    one.delete_partitions(["1"])
    check(4)
    assert done == sorted(done)
    assert {row.id: row.v for row in one.snapshot().collect()} == {
        f"k{n}": n * (6 if n < 10 else 1) for n in range(4, 40, 2)
    }
    assert_same_rows(read_hudi_rs(path), one.snapshot().toArrow())


def test_a_compaction_that_fails_after_a_commit_is_a_warning_and_is_run_again(spark, tmp_path, monkeypatch):
    one = table(spark, tmp_path / "t")
    one.bulk_insert(rows(spark, 0, 20, 1))

    def fails(session, job):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("hoodie.spark.write.run.carry_out", fails)
        with pytest.warns(ServiceFailed, match="compaction after it failed: StorageFailed: OSError: no space left"):
            result = one.upsert(rows(spark, 0, 10, 2), options=INLINE)
    assert result.updated == 10
    assert timeline(one).newest_commit == result.instant
    (instant,) = pending(one)
    assert not list(tmp_path.rglob(f"*_{instant}.parquet"))
    one.upsert(rows(spark, 0, 5, 3), options=INLINE)
    assert compactions(one) == [instant]
    assert {row.id: row.v for row in one.snapshot().collect()} == {
        f"k{n}": n * (3 if n < 5 else 2 if n < 10 else 1) for n in range(20)
    }


def test_options_that_contradict_each_other_change_nothing(spark, tmp_path):
    one = table(spark, tmp_path / "t")
    both = {"hoodie.compact.inline": True, "hoodie.compact.schedule.inline": "true"}
    for call in (
        lambda: one.bulk_insert(rows(spark, 0, 2, 1), options=both),
        lambda: hoodie.hudi.HoodieWriteClient(one.path, both, spark=spark),
        lambda: hoodie.open_table(one.path, spark=spark, options=both),
    ):
        with pytest.raises(InvalidOption, match="both true"):
            call()
    assert timeline(one).instants == ()


@pytest.mark.nightly
def test_a_writer_plans_and_a_compactor_on_spark_runs_the_plan(spark, tmp_path):
    one = table(spark, tmp_path / "t")
    one.bulk_insert(rows(spark, 0, 100, 1), options=SCHEDULE)
    one.upsert(rows(spark, 0, 20, 2), options=SCHEDULE)
    (instant,) = pending(one)
    one.upsert(rows(spark, 10, 30, 3), options=SCHEDULE)
    assert pending(one) == [instant]  # one at a time, unless the trigger counts from the last request
    before = one.snapshot().toArrow()
    command = [sys.executable, "-m", "hoodie.cli", "compactor", "run", one.path]
    for conf in ("spark.sql.shuffle.partitions=1", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"):
        command += ["--conf", conf]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"{instant}: 2 file slices compacted in ")
    assert compactions(one) == [instant]
    assert_same_rows(one.snapshot().toArrow(), before, ignore=["_hoodie_file_name"])


def test_the_client_plans_and_compacts_by_instant(spark, tmp_path):
    one = table(spark, tmp_path / "t")
    one.bulk_insert(rows(spark, 0, 20, 1))
    client = hoodie.hudi.HoodieWriteClient(one.path, NOW, spark=spark)
    assert client.schedule_compaction() is None  # no logs
    one.upsert(rows(spark, 0, 10, 2))
    instant = client.schedule_compaction({"who": "client"})
    assert instant is not None
    done = client.compact(instant)
    assert (done.instant, done.metadata.extra["who"], done.updated) == (instant, "client", 10)
    assert compactions(one) == [instant]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("index", "few_reads"), [pytest.param("SIMPLE", True, id="staged"), pytest.param("BLOOM", False, id="shuffled")]
)
def test_a_key_that_came_back_beside_a_compaction_is_found_by_spread_writes(
    spark, tmp_path, monkeypatch, index, few_reads
):
    monkeypatch.setattr(batch, "reads_stay_few", lambda pieces, readers: few_reads)
    spread = {"hoodie.index.type": index, "hoodie.spark.driver.max.batch.bytes": 0}
    one = table(spark, tmp_path / "t")
    one.bulk_insert(rows(spark, 0, 10, 1))
    one.delete(rows(spark, 0, 4, 1))
    instant = one.schedule_compaction(options=NOW)
    one.upsert(rows(spark, 0, 2, 2), options=spread)
    one.compact(instant)
    result = one.upsert(rows(spark, 0, 3, 3), options=spread)
    assert (result.updated, result.inserted, result.route) == (2, 1, "executors")
    found = sorted((row.id, row.v) for row in one.snapshot().collect())
    assert found == [(f"k{n}", n * 3 if n < 3 else n) for n in (0, 1, 2, 4, 5, 6, 7, 8, 9)]
