"""The rows that are measured: a table of orders and three batches of changes, from ids and hashes only.

Column        Type               Value
order_id      string, key        md5 of the id as 8-4-4-4-12 hex: random keys, the worst case for pruning by range
ds            string, partition  one of ten days; id mod 10
ts            bigint, ordering   the id; + 10^12 in a change
customer_id, store_id, quantity, price, discount, status, comment, updated_at, is_gift
                                 from the md5 of id and version, so that a change changes them all

Batch    Rows                                          Where
spread   10% of n: 9 in 10 updates, 1 in 10 inserts    updates all over, inserts in the newest partition
recent   1% of n: half updates, half inserts           the two newest partitions
tiny     1,000 updates                                 the newest partition
"""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

BATCHES = ("spread", "recent", "tiny")
DAYS = 10


@dataclass(frozen=True)
class Workload:
    """Where the Parquet files of one size lie: `base` partitioned by ds, `orders` and each batch flat."""

    n: int
    folder: Path

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def orders(self) -> Path:
        return self.folder / "orders"

    def batch(self, name: str) -> Path:
        return self.folder / name


def prepare(spark: SparkSession, n: int, data: Path) -> Workload:
    """The workload of n base rows below `data`, written now unless it is there whole."""
    workload = Workload(n, data / f"orders-{n}")
    if not workload.folder.exists():
        draft = data / f"orders-{n}.{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        _write(spark, Workload(n, draft))
        draft.rename(workload.folder)
    return workload


def base_rows(spark: SparkSession, n: int) -> DataFrame:
    ids = spark.range(n)
    return ids.select(*_order(F.col("id"), _day(F.col("id") % DAYS), version=0))


def batch_rows(spark: SparkSession, name: str, n: int) -> DataFrame:
    """The rows of a batch for a base of n rows. Updated ids are spaced evenly, none twice; inserted ids start at n."""
    if name == "spread":
        return updates(spark, n // 10 * 9 // 10, n).unionAll(inserts(spark, n // 100, n))
    if name == "recent":
        return updates(spark, n // 200, n, days=2).unionAll(inserts(spark, n // 200, n, days=2))
    if name == "tiny":
        return updates(spark, min(1000, n // DAYS), n, days=1)
    raise ValueError(f"no batch {name!r}; there are {', '.join(BATCHES)}")


def updates(spark: SparkSession, count: int, n: int, *, days: int = DAYS, version: int = 1) -> DataFrame:
    """`count` of n orders, as many in each of the newest `days` partitions. A later version has later times."""
    rows_of_day, updated_of_day = n // DAYS, math.ceil(count / days)
    day = DAYS - days + F.col("id") % days
    nth = F.floor(F.floor(F.col("id") / days) * rows_of_day / updated_of_day).cast("bigint")
    return spark.range(count).select(*_order(nth * DAYS + day, _day(day), version))


def inserts(spark: SparkSession, count: int, first: int, *, days: int = 1) -> DataFrame:
    """Orders of the newest `days` partitions, from the number `first` on."""
    day = DAYS - days + F.col("id") % days
    return spark.range(count).select(*_order(F.col("id") + first, _day(day), version=1))


def _day(number: Column) -> Column:
    return F.concat(F.lit("2024-01-"), F.lpad((number + 1).cast("string"), 2, "0"))


def _order(order: Column, day: Column, version: int) -> list[Column]:
    """The twelve columns of one version of an order; pieces of a hash of both are its values."""
    key = F.md5(order.cast("string"))
    parts = [F.substring(key, start, size) for start, size in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    digest = F.md5(F.concat_ws("/", order.cast("string"), F.lit(str(version))))

    def piece(at: int, below: int) -> Column:
        """Six hex digits of the digest as a number in [0, below)."""
        return F.conv(F.substring(digest, 1 + 4 * at, 6), 16, 10).cast("bigint") % below

    words = ("placed", "paid", "packed", "shipped", "returned")
    return [
        F.concat_ws("-", *parts).alias("order_id"),
        day.alias("ds"),
        (order + version * 10**12).alias("ts"),
        piece(0, 500_000).alias("customer_id"),
        piece(1, 1_000).cast("int").alias("store_id"),
        (piece(2, 12) + 1).cast("int").alias("quantity"),
        (piece(3, 1_000_000) / 100).alias("price"),
        (piece(4, 50) / 100).alias("discount"),
        F.element_at(F.array(*map(F.lit, words)), (piece(5, len(words)) + 1).cast("int")).alias("status"),
        F.md5(digest).alias("comment"),
        F.timestamp_seconds(F.lit(1_704_067_200) + piece(6, 31_536_000)).alias("updated_at"),
        (piece(1, 16) == 0).alias("is_gift"),
    ]


def _write(spark: SparkSession, workload: Workload) -> None:
    base_rows(spark, workload.n).write.parquet(str(workload.orders))
    orders = spark.read.parquet(str(workload.orders))
    orders.repartition("ds").write.partitionBy("ds").parquet(str(workload.base))
    for name in BATCHES:
        batch_rows(spark, name, workload.n).write.parquet(str(workload.batch(name)))
