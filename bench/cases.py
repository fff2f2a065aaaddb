"""What is measured: each case has contenders that do the same work, plain Spark first."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from bench import normaliser
from bench.meter import Meter
from bench.workload import Workload
from hoodie.spark.read import local_logs

PLAIN = "plain Spark"
SLOTS = 2000
SNAPSHOTS = ("snapshot", "snapshot-first", "snapshot-keys", "snapshot-few")
#: The contender that finds nothing kept of the logs.
FIRST = "first query"
#: `ts` of an insert is this and the id; ids of inserts begin at n.
FIRST_INSERTED = 10**12

# Which way a write goes is decided by size; these limits decide it beforehand.
PATHS = {
    "driver": {"hoodie.spark.driver.max.batch.bytes": 2**60, "hoodie.spark.driver.max.rewrite.bytes": 2**60},
    "executors": {"hoodie.spark.driver.max.batch.bytes": 0},
}

Phases = Mapping[str, float]


@dataclass(frozen=True)
class Contender:
    """One way to do a case's work. Only `work` is timed; it gets the folder that `prepare` has filled.

    check  a number that is equal for all contenders that did the work right
    after  what is to end before the folder goes; not timed
    """

    name: str
    prepare: Callable[[Path], None]
    work: Callable[[Path], Phases]
    check: Callable[[Path], object]
    after: Callable[[Path], None] = lambda folder: None


@dataclass(frozen=True)
class Case:
    name: str
    changed: int  # bytes of the batch as Parquet; 0: the case writes nothing
    contenders: tuple[Contender, ...]


@dataclass(frozen=True)
class Query:
    """What is asked of a table's rows, and the columns that takes; None: all."""

    columns: tuple[str, ...] | None
    run: Callable[[DataFrame], object]


@dataclass(frozen=True)
class Bench:
    """What cases are built from. `made` holds tables that several cases start from."""

    spark: SparkSession
    workload: Workload
    made: Path
    indexes: tuple[str, ...]
    paths: tuple[str, ...]
    table_type: str

    def case(self, name: str) -> Iterator[Case]:
        """The case of that name; those of queries give several."""
        if name in ("bulk", "bulk-sort"):
            yield self._bulk(name)
        elif name in SNAPSHOTS:
            yield from self._snapshots(name)
        elif name == "query":
            yield from self._queries()
            if self.table_type == "MERGE_ON_READ":
                yield from self._log_queries()
        else:
            yield self._upsert(name)

    def _bulk(self, name: str) -> Case:
        orders, sort = self.spark.read.parquet(str(self.workload.orders)), name == "bulk-sort"
        options = {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"} if sort else {}

        def insert(folder: Path) -> Phases:
            return self.create(folder / "table", "ds", options).bulk_insert(orders).seconds

        def write(folder: Path) -> Phases:
            normaliser.bulk(orders, folder / "table", sort=sort)
            return {}

        return Case(
            name,
            size(self.workload.orders),
            (
                Contender(PLAIN, _nothing, write, self._checksum_plain),
                Contender("bulk_insert", _nothing, insert, self._checksum_table),
            ),
        )

    def _upsert(self, batch: str) -> Case:
        source = self.workload.batch(batch)
        changes = self.spark.read.parquet(str(source))

        def write(folder: Path) -> Phases:
            normaliser.rewrite(self.spark, self.workload.base, changes, folder / "table")
            return {}

        def upsert(options: Mapping[str, object], folder: Path) -> Phases:
            table = hoodie.open_table(str(folder / "table"), spark=self.spark, options=options)
            return table.upsert(changes).seconds

        contenders = [Contender(PLAIN, _nothing, write, self._checksum_plain)]
        for index in self.indexes:
            for path in self.paths:
                options = {"hoodie.index.type": index, **PATHS[path]}
                contenders.append(
                    Contender(
                        f"{index} {path}", self.copy_of_base_table, partial(upsert, options), self._checksum_table
                    )
                )
        return Case(batch, size(source), tuple(contenders))

    def _queries(self) -> Iterator[Case]:
        table, base = self.base_table(), self.workload.base
        wide_table, wide = self._two_thousand_files()

        for name, query, keyed, plain in (
            ("query: aggregate, 10 files", TOTAL, table, base),
            ("query: all columns, 10 files", SCAN, table, base),
            (f"query: aggregate, {SLOTS} files", TOTAL, wide_table, wide),
        ):
            yield self._query(name, query, keyed, plain)

    def _log_queries(self) -> Iterator[Case]:
        """After updates that stand in logs: what the table holds, and what a read-optimized query sees of it."""
        table, plain, inserted = self.after_spread()
        yield self._query("query: aggregate, logs of spread", TOTAL, table, plain)
        yield self._query("query: all columns, logs of spread", SCAN, table, plain)
        yield self._query("read-optimized: aggregate, logs of spread", TOTAL, table, inserted, "read_optimized")
        yield self._query("read-optimized: all columns, logs of spread", SCAN, table, inserted, "read_optimized")
        table, plain = self._wide_after_updates()
        yield self._query(f"query: aggregate, {SLOTS} files, logs on 5%", TOTAL, table, plain)

    def _snapshots(self, kind: str) -> Iterator[Case]:
        """Queries on a Merge-on-Read snapshot as people write them: no columns are named for the read.

        snapshot        logs of the spread batch in every file group, read by executors, by the positions that the logs
                        have; then what is kept of queries before, and beside it the table once it is compacted
        snapshot-first  the same logs as the first query finds them, read by the driver if they are small, and as the
                        second one does
        snapshot-keys   the same, where the logs have no positions, and keys are compared
        snapshot-few    logs on 5% of the file groups

        Phases are CPU seconds: of opening the table and making the frame, and of running it.
        """
        if kind == "snapshot-few":
            table, plain = self._wide_after_updates()
            yield from self._asked(f"{SLOTS} files, logs on 5%", plain, {"what is kept": table})
            return
        logged, plain, _ = self.after_spread()
        if kind == "snapshot-first":
            yield from self._asked("logs of spread", plain, {FIRST: logged, "second query": logged})
            return
        if kind == "snapshot-keys":
            yield from self._asked("logs of spread", plain, {"by keys": self._after_spread_without_positions()}, False)
            return
        yield from self._asked("logs of spread", plain, {"by positions, executors": logged}, False)
        yield from self._asked("logs of spread", plain, {"what is kept": logged, "compacted": self._compacted()})

    def _asked(self, told: str, plain: Path, tables: Mapping[str, Path], keep: bool = True) -> Iterator[Case]:
        """All that is asked of some rows, of each table that has them.

        keep  a session keeps what it read of logs
        """
        options = {} if keep else {"hoodie.spark.read.cache.max.log.bytes": 0}

        def forget(name: str, _: Path) -> None:
            if not keep:  # Spark would find what is kept in the plan of a query that keeps nothing
                self.spark.catalog.clearCache()
            if name == FIRST:
                local_logs.forget_changes()

        @cache
        def held(path: Path) -> object:
            """The rows, which are the same for all that is asked of them."""
            return (self._rows_of_plain if path == plain else self._rows_of_table)(path)(path)

        def asks(name: str, path: Path, run: Callable[[DataFrame], object]) -> Contender:
            def ask(_: Path) -> Phases:
                with Meter() as frame:
                    if path == plain:
                        rows = normaliser.read(self.spark, plain)
                    else:
                        rows = hoodie.open_table(str(path), spark=self.spark, options=options).snapshot()
                with Meter() as query:
                    run(rows)
                return {"frame": frame.reading.cpu, "query": query.reading.cpu}

            return Contender(name, partial(forget, name), ask, lambda _: held(path))

        for what, run in ASKED.items():
            contenders = [asks(name, path, run) for name, path in {PLAIN: plain, **tables}.items()]
            yield Case(f"snapshot: {what}, {told}", 0, tuple(contenders))

    def _query(self, name: str, query: Query, table: Path, plain: Path, view: str = "snapshot") -> Case:
        def of_plain(_: Path) -> Phases:
            query.run(normaliser.read(self.spark, plain))
            return {}

        def of_table(_: Path) -> Phases:
            query.run(rows(columns=query.columns))
            return {}

        def rows(columns: Sequence[str] | None = None) -> DataFrame:
            opened = hoodie.open_table(str(table), spark=self.spark)
            return getattr(opened, view)(columns=columns)

        contenders = (
            Contender(PLAIN, _nothing, of_plain, self._rows_of_plain(plain)),
            Contender(view, _nothing, of_table, lambda _: checksum(rows())),
        )
        return Case(name, 0, contenders)

    def create(self, path: Path, partition_by: str, options: Mapping[str, object]) -> hoodie.HoodieTable:
        return hoodie.create_table(
            str(path),
            spark=self.spark,
            name="orders",
            record_key="order_id",
            partition_by=partition_by,
            ordering="ts",
            table_type=self.table_type,
            options=dict(options),
        )

    def base_table(self) -> Path:
        """The base as a table, made once by one bulk_insert."""
        path = self.made / "base"
        if not path.exists():
            self.create(path, "ds", {}).bulk_insert(self.spark.read.parquet(str(self.workload.orders)))
        return path

    def _two_thousand_files(self) -> tuple[Path, Path]:
        table, plain = self.made / "wide-table", self.made / "wide-plain"
        if not table.exists():
            orders = self.spark.read.parquet(str(self.workload.orders))
            slot = F.lpad((F.col("customer_id") % SLOTS).cast("string"), 4, "0")
            rows = orders.withColumn("slot", slot)
            rows.repartition("slot").write.partitionBy("slot").parquet(str(plain))
            self.create(table, "slot", {}).bulk_insert(rows.repartition("slot"))
        return table, plain

    def after_spread(self) -> tuple[Path, Path, Path]:
        """The base table after the spread batch; its rows as plain Parquet; those of its base files."""
        table, plain, inserted = (self.made / name for name in ("logged", "logged-plain", "inserted-plain"))
        if not table.exists():
            changes = self.spark.read.parquet(str(self.workload.batch("spread")))
            shutil.copytree(self.base_table(), table)
            opened = hoodie.open_table(str(table), spark=self.spark, options={"hoodie.parquet.small.file.limit": 0})
            opened.upsert(changes)
            normaliser.rewrite(self.spark, self.workload.base, changes, plain)
            new = changes.where(F.col("ts") >= FIRST_INSERTED + self.workload.n)
            normaliser.rewrite(self.spark, self.workload.base, new, inserted)
        return table, plain, inserted

    def _compacted(self) -> Path:
        """The table of `after_spread` without logs."""
        table = self.made / "compacted"
        if not table.exists():
            shutil.copytree(self.after_spread()[0], table)
            opened = hoodie.open_table(
                str(table), spark=self.spark, options={"hoodie.compact.inline.max.delta.commits": 1}
            )
            opened.schedule_compaction()
            opened.compact()
        return table

    def _after_spread_without_positions(self) -> Path:
        table = self.made / "logged-unplaced"
        if not table.exists():
            shutil.copytree(self.base_table(), table)
            options = {"hoodie.parquet.small.file.limit": 0, "hoodie.write.record.positions": False}
            opened = hoodie.open_table(str(table), spark=self.spark, options=options)
            opened.upsert(self.spark.read.parquet(str(self.workload.batch("spread"))))
        return table

    def _wide_after_updates(self) -> tuple[Path, Path]:
        """The table of many files after an update of each row in one of twenty, and its rows as plain Parquet."""
        base, wide = self._two_thousand_files()
        table, plain = self.made / "wide-logged", self.made / "wide-logged-plain"
        if not table.exists():
            rows = normaliser.read(self.spark, wide).where(F.col("slot") < f"{SLOTS // 20:04d}")
            changes = rows.withColumn("status", F.lit("changed")).withColumn("ts", F.col("ts") + 1)
            shutil.copytree(base, table)
            hoodie.open_table(str(table), spark=self.spark).upsert(changes)
            normaliser.rewrite(self.spark, wide, changes, plain, "slot")
        return table, plain

    def copy_of_base_table(self, folder: Path) -> None:
        """For `Contender.prepare`."""
        shutil.copytree(self.base_table(), folder / "table")

    def _checksum_plain(self, folder: Path) -> object:
        return self._rows_of_plain(folder / "table")(folder)

    def _checksum_table(self, folder: Path) -> object:
        return self._rows_of_table(folder / "table")(folder)

    def _rows_of_plain(self, path: Path) -> Callable[[Path], object]:
        return lambda _: checksum(normaliser.read(self.spark, path))

    def _rows_of_table(self, path: Path) -> Callable[[Path], object]:
        return lambda _: checksum(hoodie.open_table(str(path), spark=self.spark).snapshot())


def _total(rows: DataFrame) -> object:
    return rows.groupBy("status").agg(F.sum(F.col("price") * F.col("quantity"))).collect()


def _scan(rows: DataFrame) -> object:
    return rows.write.format("noop").mode("overwrite").save()


TOTAL = Query(("status", "price", "quantity"), _total)
#: Of an order. The meta columns, which plain Parquet has not, cost what five more text columns do.
COLUMNS = [
    "order_id",
    "ds",
    "ts",
    "customer_id",
    "store_id",
    "quantity",
    "price",
    "discount",
    "status",
    "comment",
    "updated_at",
    "is_gift",
]
SCAN = Query(tuple(COLUMNS), _scan)
#: What is asked of a snapshot whose columns nobody named.
ASKED: dict[str, Callable[[DataFrame], object]] = {
    "aggregate": lambda rows: rows.groupBy("status").agg(F.sum("price")).collect(),
    "count": lambda rows: rows.count(),
    "filter": lambda rows: rows.where("ts = 5").collect(),
    "all columns": lambda rows: _scan(rows.select(*COLUMNS)),
}


def checksum(rows: DataFrame) -> object:
    """Count and a sum of hashes over all columns of an order, the same in whatever order the rows come."""
    columns = sorted(name for name in rows.columns if not name.startswith("_hoodie_"))
    hashed = F.xxhash64(*columns).cast("decimal(38,0)")
    return rows.select(hashed.alias("hash")).agg(F.count("*"), F.sum("hash")).collect()


def size(path: Path) -> int:
    """Bytes in a file or in all files below a folder."""
    return sum(files_below(path).values())


def files_below(path: Path) -> dict[str, int]:
    """Size by path of all files below a folder; none if it is not there."""
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            file = os.path.join(folder, name)
            found[file] = os.path.getsize(file)
    return found


def _nothing(folder: Path) -> None:
    """The work starts from an empty folder."""
