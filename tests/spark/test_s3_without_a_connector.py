"""Tables on S3 for a Spark whose Java side knows no S3: all goes through the storage's driver, in tasks, too."""

import json
import logging
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.storage import FsspecStorage
from support.nightly import nightly
from support.s3_server import running_s3

SECRET = "a-secret-that-nobody-may-read"


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    with running_s3("lake", "a-key-of-nobody", SECRET) as options:
        yield options


@pytest.fixture
def uri() -> str:
    return f"s3://lake/{uuid4().hex}"


def batch(ids: range, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:03}" for number in ids],
            "city": ["oslo" if number % 2 else "rome" for number in ids],
            "ts": [ts] * len(ids),
        }
    )


def rows(found: Any) -> list[tuple[Any, ...]]:
    table = found if isinstance(found, pa.Table) else found.toArrow()
    return sorted(tuple(row.values()) for row in table.select(["id", "city", "ts"]).to_pylist())


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        nightly("COPY_ON_WRITE", "268435456"),
        ("MERGE_ON_READ", "0"),
        nightly("COPY_ON_WRITE", "0"),
        nightly("MERGE_ON_READ", "268435456"),
    ],
)
def test_a_table_is_written_and_read_by_spark(
    spark: SparkSession, s3: dict[str, Any], uri: str, kind: str, limit: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "hoodie")
    options = {"hoodie.spark.driver.max.batch.bytes": limit}
    table = hoodie.create_table(
        uri,
        spark=spark,
        name="trips",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=kind,
        options=options,
        storage_options=s3,
    )
    table.bulk_insert(spark.createDataFrame(batch(range(40), 1)))
    done = table.upsert(spark.createDataFrame(batch(range(30, 50), 2)))
    assert (done.updated, done.inserted, done.route) == (10, 10, "driver" if limit != "0" else "executors")
    table.delete(spark.createDataFrame(batch(range(5), 1)))
    expected = [(f"k{n:03}", "oslo" if n % 2 else "rome", 1 if n < 30 else 2) for n in range(5, 50)]
    assert rows(table.snapshot()) == expected
    assert rows(hoodie.open_table(uri, storage_options=s3).snapshot().to_arrow()) == expected
    assert table.snapshot(filters="city = 'oslo' and id < 'k010'").count() == 3
    assert table.changes(done.instant).count() == 0
    merged = table.merge(
        spark.createDataFrame(batch(range(48, 52), 3)), "target.id = source.id and target.city = source.city"
    )
    merged = merged.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (merged.updated, merged.inserted) == (2, 2)
    if kind == "MERGE_ON_READ":
        table.compact()
    assert len(rows(table.snapshot())) == 47
    told = str(table.scan())
    assert "read by Python tasks (Spark's Java side has no connector for s3://)" in told
    assert not table.check()
    keep_secrets(table, FsspecStorage(uri, s3), caplog.text + told)


def keep_secrets(table: Any, storage: FsspecStorage, more: str) -> None:
    """Nothing that people or engines see has the credentials."""
    frame = table.snapshot()
    plan = frame._jdf.queryExecution().toString()
    shown = [more, plan, repr(table), repr(table.history()), repr(frame), str(table.storage), repr(table.options)]
    stored = [storage.read(f"{folder}/{entry.name}" if folder else entry.name) for folder, entry in files(storage)]
    assert stored
    for text in [*(text.encode() for text in shown), *stored]:
        assert SECRET.encode() not in text
        assert b"a-key-of-nobody" not in text


def files(storage: FsspecStorage) -> Iterator[tuple[str, Any]]:
    for folder, entries in storage.list_tree().items():
        for entry in entries:
            yield folder, entry


def test_a_task_that_cannot_read_says_so_without_the_credentials(
    spark: SparkSession, s3: dict[str, Any], uri: str
) -> None:
    table = hoodie.create_table(uri, spark=spark, name="t", record_key="id", storage_options=s3)
    table.upsert(spark.createDataFrame(batch(range(3), 1)))
    frame = table.snapshot()
    path = table.scan().slices[0].base.path
    FsspecStorage(uri, s3).delete(path)
    with pytest.raises((PySparkException, Py4JJavaError)) as failed:
        frame.toArrow()
    assert path in str(failed.value)
    assert SECRET not in str(failed.value)


def as_options(s3: dict[str, Any]) -> dict[str, str]:
    """The driver's options among those of a call."""
    return {f"hoodie.storage.{name}": json.dumps(v) if isinstance(v, dict) else v for name, v in s3.items()}


def test_a_hudi_job_gives_its_storage_options_like_its_others(
    spark: SparkSession, s3: dict[str, Any], uri: str
) -> None:
    given = as_options(s3)
    hoodie.register(spark)
    try:
        job = {"hoodie.datasource.write.recordkey.field": "id", **given}
        spark.createDataFrame(batch(range(3), 1)).write.format("hudi").options(**job).save(uri)
        assert spark.read.format("hudi").options(**given).load(uri).count() == 3
    finally:
        hoodie.spark.unregister(spark)
    assert rows(hoodie.hudi.read(uri, given).to_arrow()) == rows(
        hoodie.open_table(uri, storage_options=s3).snapshot().to_arrow()
    )
    table = hoodie.open_table(uri, spark=spark, options=given)
    keep_secrets(table, FsspecStorage(uri, s3), str(dict(table.options)))
    with pytest.raises(InvalidOption, match="the storage is chosen when the table is opened"):
        table.snapshot(options=given)


@pytest.mark.nightly
def test_views_and_streams_take_storage_options(spark: SparkSession, s3: dict[str, Any], uri: str) -> None:
    given = as_options(s3)
    hoodie.create_table(uri, spark=spark, name="t", record_key="id", storage_options=s3).upsert(batch(range(3), 1))
    hoodie.register(spark)
    try:
        options = ", ".join(f"`{name}` '{value}'" for name, value in given.items())
        spark.sql(f"CREATE TEMPORARY VIEW on_s3 USING hudi OPTIONS (path '{uri}', {options})")
        assert spark.table("on_s3").count() == 3
        assert SECRET not in spark.table("on_s3").schema.json()
        with pytest.raises(InvalidInput, match="make it again"):
            hoodie.spark.refresh_view(spark, "on_s3")
        stream = spark.readStream.format("hudi").options(**given).load(uri).writeStream.format("memory")
        query = stream.queryName("streamed").trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        assert spark.table("streamed").count() == 3
    finally:
        for view in ("on_s3", "streamed"):
            spark.sql(f"DROP VIEW IF EXISTS {view}")
        hoodie.spark.unregister(spark)


def test_a_view_of_rows_that_were_loaded_with_the_keys_of_a_store_takes_changes(
    spark: SparkSession, s3: dict[str, Any], uri: str
) -> None:
    hoodie.create_table(uri, name="t", record_key="id", storage_options=s3).upsert(batch(range(2), ts=1))
    given = {f"hoodie.storage.{name}": json.dumps(v) if isinstance(v, dict) else v for name, v in s3.items()}
    hoodie.register(spark)
    try:
        spark.read.format("hudi").options(**given).load(uri).createOrReplaceTempView("loaded_with_keys")
        spark.sql("UPDATE loaded_with_keys SET ts = 9 WHERE id = 'k001'")
        assert spark.sql("SELECT id FROM loaded_with_keys WHERE ts = 9").first()[0] == "k001"
    finally:
        hoodie.spark.unregister(spark)
