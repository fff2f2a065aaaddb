"""The Parquet files that all engines read, and by DuckDB the rows that a table has to have after each step."""

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench import workload
from bench.spark_peers.parts import COLUMNS, COMMITS, FILTER, SCAN, SET, UPSERTS
from hoodie.spark.session import local_session

#: A hash of all columns. Of times it takes the microseconds, since files have them as an instant or as local time.
_CASTS = {"string": "varchar", "timestamp": ""}
_NAMES = ", ".join(COLUMNS)


class Rows:
    """What a table is to hold."""

    def __init__(self, folder: Path) -> None:
        import duckdb

        self._folder = folder
        self._connection: Any = duckdb.connect()
        self._connection.execute("set threads = 2")

    def _file(self, batch: str) -> str:
        return f"read_parquet('{self._folder / batch}/*.parquet', hive_partitioning = false)"

    def days(self, batch: str) -> list[str]:
        """The partitions of a batch."""
        found = self._connection.execute(f"select distinct ds from {self._file(batch)} order by ds").fetchall()
        return [day for (day,) in found]

    def bulk(self, batch: str) -> None:
        self._connection.execute(f"create or replace table orders as select {_NAMES} from {self._file(batch)}")

    def upsert(self, batch: str) -> None:
        self.delete(batch)
        self._connection.execute(f"insert into orders select {_NAMES} from {self._file(batch)}")

    def delete(self, batch: str) -> None:
        self._connection.execute(f"delete from orders where order_id in (select order_id from {self._file(batch)})")

    def merge(self, batch: str) -> None:
        source = self._file(batch)
        updates = ", ".join(f"{name} = s.{name}" for name in SET)
        keys = f"select order_id from {source} where op = 'D'"
        self._connection.execute(
            f"insert into orders select {_NAMES} from {source} s anti join orders o using (order_id) where s.op = 'I'"
        )
        self._connection.execute(f"delete from orders where order_id in ({keys})")
        self._connection.execute(
            f"update orders set {updates} from {source} s where orders.order_id = s.order_id and s.op = 'U'"
        )

    def answer(self, query: str, batch: str = "") -> list[Any]:
        """What a query of `tables.Table` is to give."""
        text = {
            "count": "select count(*) from orders",
            "filter": f"select count(*) from orders where {FILTER}",
            "sum": "select count(distinct status), sum(price), sum(quantity), max(ts) from orders",
            "scan": f"select {', '.join(SCAN)} from orders",
            "changes": f"select count(*), sum(price) from {self._file(batch)}" if batch else "",
        }[query]
        return list(self._connection.execute(text).fetchone())

    def digest(self, path: Path | None = None) -> list[Any]:
        """Count and checksum of the rows, or of those in Parquet files of a folder."""
        rows = f"read_parquet('{path}/*.parquet', hive_partitioning = false)" if path else "orders"
        columns = (
            f"epoch_us({name})" if kind == "timestamp" else f"{name}::{_CASTS.get(kind, kind)}"
            for name, kind in COLUMNS.items()
        )
        text = f"select count(*), sum(hash({', '.join(columns)}) >> 16) from {rows}"
        return list(self._connection.execute(text).fetchone())


def same(answer: list[Any], expected: list[Any]) -> bool:
    """Sums of doubles depend on the order of the rows in their last digits."""

    def close(one: Any, other: Any) -> bool:
        if isinstance(one, float) or isinstance(other, float):
            return bool(abs(one - other) <= 1e-9 * abs(other) + 1e-6)
        return bool(one == other)

    return len(answer) == len(expected) and all(map(close, answer, expected))


def prepare_apart(sizes: Sequence[int], data: Path) -> list[Path]:
    """The folders of the batches of so many orders, written unless they are there. The session that does it ends."""
    folders = [data / f"spark-peers-{n}" for n in sizes]
    absent = {n: folder for n, folder in zip(sizes, folders, strict=True) if not folder.exists()}
    if absent:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(_prepare, absent).result()
    return folders


def _prepare(absent: Mapping[int, Path]) -> None:
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": 2,
    }
    spark = local_session("spark-peers", cores=2, **settings)
    for n, folder in absent.items():
        draft = folder.with_name(f"{folder.name}.{os.getpid()}")
        _write(spark, n, draft)
        draft.rename(folder)


def _write(spark: SparkSession, n: int, folder: Path) -> None:
    def put(name: str, rows: DataFrame) -> None:
        rows.coalesce(2).write.parquet(str(folder / name))

    def put_each(name: str, rows: DataFrame) -> None:
        """A folder of each commit below that of the name."""
        rows.repartition("commit").write.partitionBy("commit").parquet(str(folder / name))

    put("orders", workload.base_rows(spark, n))
    for batch in workload.BATCHES:
        put(batch, workload.batch_rows(spark, batch, n))
    put("insert", workload.inserts(spark, n // 20, n, days=workload.DAYS))
    put("delete", workload.updates(spark, n // 100, n))
    op = F.when(F.col("order_id") < "2", "D").otherwise("U")
    old = workload.updates(spark, n // 50, n, version=2).withColumn("op", op)
    new = workload.inserts(spark, n // 200, n, days=workload.DAYS).withColumn("op", F.lit("I"))
    put("merge", old.unionAll(new))
    few = n // 1000
    put_each(
        "logs",
        workload.updates(spark, 9 * few, n, commits=UPSERTS).unionAll(workload.inserts(spark, few, n, commits=UPSERTS)),
    )
    put_each("commits", workload.updates(spark, 10, n, days=1, commits=COMMITS))
