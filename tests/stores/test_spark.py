"""Spark on tables of HDFS, which its own client reads, and of Azure and Google, which only Python tasks reach."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.doctor.examine import Severity, examine
from hoodie.spark.session import local_session
from hoodie.testing.tables import ArrowTable
from support.stores import Store
from support.undoing import FIRST, LATER, SECOND, THIRD, Rows, batch

pytestmark = pytest.mark.stores


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = local_session("hoodie-stores", cores=2, **{"spark.sql.shuffle.partitions": 2})
    yield session
    session.stop()


def rows_of(found: pa.Table) -> dict[str, tuple[Any, ...]]:
    rows = {row["id"]: (row["city"], row["ts"], row["note"]) for row in found.to_pylist()}
    assert len(rows) == found.num_rows
    return rows


@pytest.mark.parametrize("limit", ["268435456", "0"], ids=["driver", "executors"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_history_by_spark_is_read_alike_by_spark_and_without_it(
    spark: SparkSession, store: Store, kind: str, limit: str
) -> None:
    storage = store.new()
    table = hoodie.create_table(
        storage.root,
        spark=spark,
        name="trips",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=kind,
        options={"hoodie.spark.driver.max.batch.bytes": limit},
        storage_options=store.options,
    )

    def frame(rows: Rows) -> Any:
        return spark.createDataFrame(batch(rows))

    table.upsert(frame(FIRST))
    first = table.upsert(frame(SECOND)).instant
    table.upsert(frame(THIRD))
    table.delete(frame({"a": THIRD["a"]}))
    if kind == "MERGE_ON_READ":
        table.compact(table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1}))
    done = table.upsert(frame(LATER))
    assert done.route == ("driver" if limit != "0" else "executors")
    expected = {key: row for key, row in {**FIRST, **SECOND, **THIRD, **LATER}.items() if key != "a"}
    assert rows_of(table.snapshot().toArrow()) == expected
    assert rows_of(hoodie.open_table(storage.root, storage_options=store.options).snapshot().to_arrow()) == expected
    assert rows_of(table.as_of(first).toArrow()) == {**FIRST, **SECOND}
    reads = "base files read by Spark" if storage.root.startswith("hdfs:") else "base files read by Python tasks"
    assert reads in str(table.scan())
    ArrowTable(storage).upsert(batch({"z": ("oslo", 10, "without Spark")}))
    assert rows_of(table.snapshot().toArrow()) == {**expected, "z": ("oslo", 10, "without Spark")}
    assert [str(found) for found in examine(storage) if found.severity is Severity.ERROR] == []
