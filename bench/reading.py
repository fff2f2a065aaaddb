"""The cases of reads that a table's timeline and index make cheap: changes since a commit, rows by key, absent keys."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import hoodie
from bench import normaliser
from bench.cases import PLAIN, Bench, Case, Contender, Phases, checksum

#: How many times as many partitions, and rows, the larger table of the incremental case has.
LARGER = 4
KEYS = 1000


def incremental(bench: Bench) -> Iterator[Case]:
    """Pulling the `recent` batch: against reading the whole table, and against the same change in a larger table."""
    table, begin = _after_recent(bench, bench.base_table(), "pulled")
    larger, begin_of_larger = _after_recent(bench, _larger_table(bench), "pulled-larger")

    def snapshot() -> DataFrame:
        return hoodie.open_table(str(table), spark=bench.spark).snapshot()

    def changes() -> DataFrame:
        return hoodie.open_table(str(table), spark=bench.spark).changes(begin)

    def changes_of_larger() -> DataFrame:
        return hoodie.open_table(str(larger), spark=bench.spark).changes(begin_of_larger)

    newer = F.col("_hoodie_commit_time") > begin
    yield Case(
        "changes of recent",
        0,
        (
            _query("snapshot", snapshot, lambda: snapshot().where(newer)),
            _query("changes", changes),
        ),
    )
    yield Case(
        f"changes of recent, table x{LARGER}",
        0,
        (_query("changes", changes), _query(f"changes, x{LARGER}", changes_of_larger)),
    )


def keys(bench: Bench) -> Iterator[Case]:
    """Looking keys up: rows of 1,000 keys of one partition and of all; which rows of `spread` are new."""
    base = normaliser.read(bench.spark, bench.workload.base)
    table = str(bench.base_table())

    def client(index: str) -> hoodie.hudi.HoodieReadClient:
        return hoodie.hudi.HoodieReadClient(table, {"hoodie.index.type": index}, spark=bench.spark)

    orders = bench.spark.read.parquet(str(bench.workload.orders)).select("order_id", "ds", "ts")
    step = max(1, bench.workload.n // KEYS) + 1  # one more than a multiple of the days: all of them in turn
    anywhere = _kept(bench, orders.where(F.col("ts") % step == 0), "keys-anywhere")
    for name, wanted in (("one partition", bench.workload.batch("tiny")), ("all partitions", anywhere)):
        asked = bench.spark.read.parquet(str(wanted)).select("order_id", "ds")
        contenders = [_query(PLAIN, _join(base, asked))]
        contenders += [_query(f"read, {index}", _rows_of(client(index), asked)) for index in bench.indexes]
        yield Case(f"read {KEYS} keys of {name}", 0, tuple(contenders))

    batch = bench.spark.read.parquet(str(bench.workload.batch("spread")))
    contenders = [_query(PLAIN, lambda: batch.join(base.select("order_id"), "order_id", "left_anti"))]
    contenders += [_query(f"filter_exists, {index}", _absent(client(index), batch)) for index in bench.indexes]
    yield Case("rows of spread that are new", 0, tuple(contenders))


def _join(base: DataFrame, asked: DataFrame) -> Callable[[], DataFrame]:
    return lambda: base.join(asked.select("order_id"), "order_id")


def _rows_of(client: hoodie.hudi.HoodieReadClient, asked: DataFrame) -> Callable[[], DataFrame]:
    return lambda: client.read(asked).rows


def _absent(client: hoodie.hudi.HoodieReadClient, batch: DataFrame) -> Callable[[], DataFrame]:
    return lambda: client.filter_exists(batch)


def _query(name: str, rows: Callable[[], DataFrame], checked: Callable[[], DataFrame] | None = None) -> Contender:
    """A contender that reads all columns of some rows.

    checked  the rows that are to be equal, where these are not
    """

    def work(_: Path) -> Phases:
        rows().write.format("noop").mode("overwrite").save()
        return {}

    return Contender(name, lambda _: None, work, lambda _: checksum((checked or rows)()))


def _after_recent(bench: Bench, table: Path, name: str) -> tuple[Path, str]:
    """A copy of a table after the `recent` batch, and the instant before it."""
    path = bench.made / name
    if not path.exists():
        shutil.copytree(table, path)
        changes = bench.spark.read.parquet(str(bench.workload.batch("recent")))
        hoodie.open_table(str(path), spark=bench.spark).upsert(changes)
    history = hoodie.open_table(str(path), spark=bench.spark).history()
    return path, history[1][0].requested


def _larger_table(bench: Bench) -> Path:
    """The base table with partitions of as many rows again and again: those that the batch changes are no larger."""
    path = bench.made / "larger"
    if not path.exists():
        orders = bench.spark.read.parquet(str(bench.workload.orders))
        copies = bench.spark.range(LARGER).select(F.col("id").alias("copy"))
        older = F.concat(F.lit("20"), F.lpad((24 - F.col("copy")).cast("string"), 2, "0"), F.substring("ds", 5, 6))
        rows = orders.crossJoin(F.broadcast(copies)).withColumns(
            {"ds": older, "order_id": F.when(F.col("copy") == 0, F.col("order_id")).otherwise(_key("order_id", "copy"))}
        )
        bench.create(path, "ds", {}).bulk_insert(rows.drop("copy").repartition("ds"))
    return path


def _key(key: str, copy: str) -> Column:
    return F.concat(F.substring(F.md5(F.concat(key, F.col(copy).cast("string"))), 1, 8), F.substring(key, 9, 28))


def _kept(bench: Bench, rows: DataFrame, name: str) -> Path:
    path = bench.made / name
    if not path.exists():
        rows.coalesce(1).write.parquet(str(path))
    return path
