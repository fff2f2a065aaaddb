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


def updates(
    spark: SparkSession, count: int, n: int, *, days: int = DAYS, version: int = 1, commits: int = 0
) -> DataFrame:
    """`count` of n orders, as many in each of the newest `days` partitions. A later version has later times.

    commits  0, or how many times: each takes the orders that come after those of the one before, in a later version,
             and the column `commit` counts them
    """
    rows_of_day, updated_of_day = n // DAYS, math.ceil(count / days)
    row, commit = _of_commits(count)
    day = DAYS - days + row % days
    nth = F.floor(F.floor(row / days) * rows_of_day / updated_of_day).cast("bigint")
    order = (nth + commit) % rows_of_day * DAYS + day
    numbered = [commit.alias("commit")] if commits else []
    return spark.range(count * (commits or 1)).select(*_order(order, _day(day), version + commit), *numbered)


def inserts(
    spark: SparkSession, count: int, first: int, *, days: int = 1, version: int = 1, commits: int = 0
) -> DataFrame:
    """Orders of the newest `days` partitions, from the number `first` on. `commits` as of `updates`."""
    row, commit = _of_commits(count)
    day = DAYS - days + row % days
    numbered = [commit.alias("commit")] if commits else []
    rows = spark.range(count * (commits or 1))
    return rows.select(*_order(F.col("id") + first, _day(day), version + commit), *numbered)


def _of_commits(count: int) -> tuple[Column, Column]:
    """The number of a row within its commit of `count` rows, and that of the commit."""
    return F.col("id") % count, F.floor(F.col("id") / count).cast("bigint")


def _day(number: Column) -> Column:
    return F.concat(F.lit("2024-01-"), F.lpad((number + 1).cast("string"), 2, "0"))


def _order(order: Column, day: Column, version: int | Column) -> list[Column]:
    """The twelve columns of one version of an order; pieces of a hash of both are its values."""
    key = F.md5(order.cast("string"))
    parts = [F.substring(key, start, size) for start, size in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    digest = F.md5(F.concat_ws("/", order.cast("string"), F.lit(version).cast("string")))

    def piece(at: int, below: int) -> Column:
        """Six hex digits of the digest as a number in [0, below)."""
        return F.conv(F.substring(digest, 1 + 4 * at, 6), 16, 10).cast("bigint") % below

    words = ("placed", "paid", "packed", "shipped", "returned")
    return [
        F.concat_ws("-", *parts).alias("order_id"),
        day.alias("ds"),
        (order + F.lit(version).cast("bigint") * 10**12).alias("ts"),
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
