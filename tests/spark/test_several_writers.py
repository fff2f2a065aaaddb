"""Several writers through Spark: attempts anew, clients that hold an instant, batches that are sent again."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import WriteConflict
from hoodie.spark.read import snapshot
from support.meanwhile import Meanwhile, calls_of

# By hand: workers import this module, and find no others of the tests.
NIGHTLY = pytest.mark.nightly
LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
BATCH = {
    "hoodie.datasource.write.streaming.checkpoint.identifier": "orders",
    "hoodie.datasource.write.streaming.batch.id": 3,
}


def frame(spark: SparkSession, *keys: str, note: str = "old") -> DataFrame:
    return spark.createDataFrame([(key, 1, note) for key in keys], "id string, ts long, note string")


def notes(table: HoodieTable) -> dict[str, str]:
    found = table.snapshot().collect()
    rows = {row["id"]: row["note"] for row in found}
    assert len(rows) == len(found)
    return rows


@pytest.fixture
def table(spark, tmp_path) -> HoodieTable:
    made = hoodie.create_table(
        str(tmp_path),
        spark=spark,
        name="orders",
        record_key="id",
        ordering="ts",
        options=LOCKED | {"hoodie.clean.automatic": False},
    )
    made.upsert(frame(spark, "a", "b"))
    return made


@pytest.mark.parametrize(
    "route",
    [
        pytest.param({}, id="driver", marks=NIGHTLY),
        pytest.param({"hoodie.spark.driver.max.batch.bytes": 0}, id="executors"),
    ],
)
def test_a_write_that_gave_way_is_done_again(spark, table, route):
    other = hoodie.open_table(
        table.path, spark=spark, options={**LOCKED, **route, "hoodie.write.num.retries.on.conflict.failures": 1}
    )
    late = [False]

    def first() -> None:
        late[0] = True
        table.upsert(frame(spark, "a", note="first"))

    other.storage = Meanwhile(table.storage, calls_of("create_new write", ".inflight"), first)
    assert other.upsert(frame(spark, "b", note="second")).updated == 1
    assert late == [True]
    assert notes(table) == {"a": "first", "b": "second"}


def test_a_client_that_holds_an_instant_gives_way_to_what_was_committed_since(spark, table):
    client = hoodie.hudi.HoodieWriteClient(table.path, {**LOCKED, "hoodie.auto.commit": "false"}, spark=spark)
    instant = client.start_commit()
    result = client.upsert(frame(spark, "b", note="second"), instant)
    table.upsert(frame(spark, "a", note="first"))
    with pytest.raises(WriteConflict, match="file group"):
        client.commit(instant, result)
    client.rollback(instant)
    assert notes(table) == {"a": "first", "b": "old"}
    instant = client.start_commit()
    client.commit(instant, client.upsert(frame(spark, "b", note="second"), instant))
    assert notes(table) == {"a": "first", "b": "second"}


@pytest.mark.parametrize("when", ["read", pytest.param("listed", marks=NIGHTLY)])
def test_rows_whose_files_were_cleaned_meanwhile_are_read_again(spark, table, monkeypatch, when):
    """By an UPDATE, a MERGE and a DELETE, whose base files Spark's own reader reads."""
    original, late = snapshot.read_parquet, []

    def overtake(now: str) -> None:
        if now == when and not late:
            late.append(now)
            other = hoodie.open_table(table.path, options=LOCKED | {"hoodie.cleaner.commits.retained": 1})
            for _ in range(3):
                other.upsert(pa.table({"id": ["a"], "ts": [1], "note": ["other"]}))
            other.clean()

    def read_parquet(*arguments: Any, **named: Any) -> DataFrame:
        overtake("listed")
        rows = original(*arguments, **named)
        overtake("read")
        return rows

    monkeypatch.setattr(snapshot, "read_parquet", read_parquet)
    source = frame(spark, "b", note="merged")
    merge = table.merge(source, "source.id = target.id and target.note = 'updated'").when_matched_update_all()
    for call, left in (
        (lambda: table.update({"note": "'updated'"}, where="id = 'b'"), {"a": "other", "b": "updated"}),
        (merge.execute, {"a": "other", "b": "merged"}),
        (lambda: table.delete(where="note = 'merged'"), {"a": "other"}),
    ):
        late.clear()
        call()
        assert late == [when]
        assert notes(table) == left


def test_a_batch_that_is_sent_again_is_not_looked_at(spark, table):
    first = table.upsert(frame(spark, "c"), options=BATCH)
    looked = spark.sparkContext.accumulator(0)

    def look(rows: Any) -> Any:
        for part in rows:
            looked.add(1)
            yield part

    again = frame(spark, "d").mapInPandas(look, "id string, ts long, note string")
    known = table.upsert(again, options=BATCH)
    assert (known.instant, known.inserted, known.route) == (first.instant, 1, "known")
    assert looked.value == 0
    client = hoodie.hudi.HoodieWriteClient(table.path, {**LOCKED, **BATCH}, spark=spark)
    assert client.upsert(frame(spark, "d"), client.start_commit()).instant == first.instant
    assert set(notes(table)) == {"a", "b", "c"}
    assert (
        table.upsert(frame(spark, "d"), options={**BATCH, "hoodie.datasource.write.streaming.batch.id": 4}).inserted
        == 1
    )


def test_writers_that_do_not_block_add_to_one_bucket_and_a_compaction_keeps_what_they_wrote(spark, tmp_path):
    """One in Spark's executors, the other on the driver; both hold an instant. The one that began later wins."""
    modes = {**LOCKED, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = hoodie.create_table(
        str(tmp_path),
        spark=spark,
        name="orders",
        record_key="id",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={**modes, **buckets, "hoodie.write.table.version": "9", "hoodie.compact.inline": "false"},
    )
    spread = {**modes, "hoodie.spark.driver.max.batch.bytes": 0}
    slow, quick = (hoodie.hudi.HoodieWriteClient(table.path, more, spark=spark) for more in (spread, modes))
    table.upsert(frame(spark, "a", "b", "c"))
    began, later = slow.start_commit(), quick.start_commit()
    result = slow.upsert(frame(spark, "a", "b", note="slow"), began)
    quick.commit(later, quick.upsert(frame(spark, "b", "d", note="quick"), later))
    slow.commit(began, result)
    expected = {"a": "slow", "b": "quick", "c": "old", "d": "quick"}
    assert notes(table) == expected
    (only,) = table.file_slices()
    assert (only.base, len(only.logs)) == (None, 3)
    planned = table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
    assert notes(table) == expected
    table.compact(planned)
    assert notes(table) == expected
    (only,) = table.file_slices()
    assert (only.base is not None, only.logs) == (True, ())
