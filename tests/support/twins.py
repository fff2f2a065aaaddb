"""Twins: a Copy-on-Write and a Merge-on-Read table that take the same calls, beside one dict of rows.

The dict knows the rule that both follow: of two versions of a row the one of the greater ordering value stays, of equal
ones the later, and a delete is for good: what comes after it begins anew. It knows no file, log or index.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import hoodie
from hoodie import HoodieTable
from hoodie.config.table import TimelineZone
from hoodie.errors import HoodieError, WriteConflict
from hoodie.hudi import HoodieReadClient, HoodieWriteClient
from hoodie.table.state import load_state
from hoodie.timeline.timeline import new_time, utc_now
from hoodie.writing.result import WriteResult
from support.by_position import rows_by_position
from support.clusterings import WITHDRAW, plan_clustering
from support.scans import plan_scan

Row = Mapping[str, Any]
Identity = tuple[Any, ...]
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
VALUES = pa.schema([("p", pa.string()), ("ts", pa.int64()), ("d", pa.float64()), ("s", pa.string())])
#: Conditions on floating-point values, and what they take.
CONDITIONS: Mapping[str, Callable[[float | None], bool]] = {
    "d = 0.0": lambda d: d == 0.0,
    "d < 0.0": lambda d: d is not None and d < 0.0,
    "d <= 0.1": lambda d: d is not None and d <= 0.1,
    "d is null": lambda d: d is None,
}
_numbers = itertools.count()


@dataclass(frozen=True)
class Keys:
    """Record keys: their columns, and the values that a history takes them from."""

    name: str
    schema: pa.Schema
    domain: tuple[tuple[Any, ...], ...]

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)


TEXT = Keys("text", pa.schema([("id", pa.string())]), (("a",), ("b",), ("A",), (" ",), ("é:,",)))
#: Both zeros are keys of their own, as their texts are.
FLOAT = Keys("float", pa.schema([("id", pa.float64())]), ((0.0,), (-0.0,), (1.5,), (1e7,), (float("nan"),)))
PAIR = Keys(
    "pair",
    pa.schema([("id", pa.string()), ("sub", pa.string())]),
    (("a", ""), ("a", None), ("a", "b"), ("b", "a:1"), ("b", ",")),
)


def text(values: Iterable[Any]) -> tuple[str, ...]:
    """Values apart as they are stored: -0.0 from 0.0, null from ''; NaN equal to NaN."""
    return tuple(map(repr, values))


def same(rows: list[tuple[str, ...]], expected: list[tuple[str, ...]], view: str) -> None:
    more, fewer = Counter(rows) - Counter(expected), Counter(expected) - Counter(rows)
    if more or fewer:
        raise AssertionError(f"{view}: {[*more.elements()]} in place of {[*fewer.elements()]}")


def listed(frame: Any) -> list[dict[str, Any]]:
    """Rows of a read, with Spark or without."""
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow().to_pylist()  # type: ignore[no-any-return]
    return [row.asDict() for row in frame.collect()]


class Twins:
    """Both tables and the dict.

    everywhere  a key is one row in the table, not in a partition
    spark       a Spark session, or none
    folder      of the tables
    """

    def __init__(
        self,
        keys: Keys,
        options: Mapping[str, Any],
        *,
        everywhere: bool,
        spark: Any = None,
        folder: str = "memory://twins",
    ) -> None:
        self.keys, self.everywhere, self.spark = keys, everywhere, spark
        self.schema = pa.schema([*keys.schema, *VALUES])
        self.options = {"hoodie.spark.driver.threads": 1, **options}
        number = next(_numbers)
        self.tables: tuple[HoodieTable[Any], ...] = tuple(
            hoodie.create_table(  # type: ignore[call-overload]
                f"{folder}-{number}/{kind}",
                spark=spark,
                name="twins",
                record_key=keys.columns,
                partition_by="p",
                ordering="ts",
                table_type=kind,
                options=self.options,
            )
            for kind in TYPES
        )
        self.rows: dict[Identity, Row] = {}
        self.before: dict[Identity, Row] | None = None  # as long as the newest commits can be taken back
        self.newest: tuple[str, ...] = ()
        self.held: tuple[tuple[HoodieWriteClient, str], ...] = ()
        self.at_begin: set[Identity] = set()  # of the rows when the held instants began

    # --- the dict ---

    def identity(self, row: Row) -> Identity:
        key = text(row[name] for name in self.keys.columns)
        return key if self.everywhere else (row["p"] or NO_PARTITION, *key)

    def merged(self, rows: Iterable[Row]) -> dict[Identity, Row]:
        after, batch = dict(self.rows), dict[Identity, Row]()
        for row in rows:
            one = batch.get(self.identity(row))
            if one is None or row["ts"] >= one["ts"]:
                batch[self.identity(row)] = row
        for identity, row in batch.items():
            if identity not in after or row["ts"] >= after[identity]["ts"]:
                after[identity] = row
        return after

    def without(self, rows: Iterable[Row]) -> dict[Identity, Row]:
        gone = {self.identity(row) for row in rows}
        return {identity: row for identity, row in self.rows.items() if identity not in gone}

    def outside(self, partitions: Iterable[str]) -> dict[Identity, Row]:
        places = set(partitions)
        return {key: row for key, row in self.rows.items() if (row["p"] or NO_PARTITION) not in places}

    # --- what both tables take ---

    def upsert(self, rows: Sequence[Row]) -> None:
        self._write(lambda table: table.upsert(self.arrow(rows)), self.merged(rows))

    def delete(self, rows: Sequence[Row]) -> None:
        self._write(lambda table: table.delete(self.arrow(rows)), self.without(rows))

    def insert_new(self, rows: Sequence[Row]) -> None:
        """Insert rows of keys that are not there."""
        batch = {self.identity(row): row for row in rows if self.identity(row) not in self.rows}
        if batch:
            self._write(lambda table: table.insert(self.arrow(list(batch.values()))), {**self.rows, **batch})

    def overwrite(self, rows: Sequence[Row]) -> None:
        """Replace the partitions of the rows; keys that are a row elsewhere are left out."""
        places = {row["p"] or NO_PARTITION for row in rows}
        rest = self.outside(places)
        batch = {self.identity(row): row for row in rows if self.identity(row) not in rest}
        if {row["p"] or NO_PARTITION for row in batch.values()} == places:
            self._write(lambda table: table.insert_overwrite(self.arrow(list(batch.values()))), {**rest, **batch})

    def drop(self, partition: str) -> None:
        if any((row["p"] or NO_PARTITION) == partition for row in self.rows.values()):
            self._write(lambda table: table.delete_partitions([partition]), self.outside([partition]))

    def delete_where(self, condition: str) -> None:
        fits = CONDITIONS[condition]
        rest = {key: row for key, row in self.rows.items() if not fits(row["d"])}
        self._write(lambda table: table.delete(where=condition), rest)

    def held_open(self, rows: Sequence[Row], others: Sequence[Row], *, overwriting: bool) -> None:
        """A writer takes its instant, another commits, and then the first one writes; after a conflict, anew.

        Both may write a key only where a row of it is there: two writers who insert one new key at a time make two
        rows (docs/concurrency.md).
        """
        self.begin()
        self.overwrite(others) if overwriting else self.upsert(others)
        self.end(rows)

    def begin(self) -> None:
        """A writer takes its instants, and writes later."""
        if not self.held:
            clients = [HoodieWriteClient(table.path, spark=self.spark, options=self.options) for table in self.tables]
            self.held = tuple((client, client.start_commit()) for client in clients)
            self.at_begin = set(self.rows)

    def end(self, rows: Sequence[Row]) -> None:
        """The writer with the held instants writes; after a conflict, anew. It leaves out keys that are new since."""
        new = set(self.rows) - self.at_begin
        rows = [row for row in rows if self.identity(row) not in new]
        for table, (client, instant) in zip(self.tables, self.held, strict=True):
            if not rows:
                client.rollback(instant)
                continue
            try:
                client.upsert(self.arrow(rows), instant)
            except WriteConflict:
                table.upsert(self.arrow(rows))
        self.held = ()
        self.rows = self.merged(rows)
        self.before = None

    def beside_a_clustering(self, partition: str, rows: Sequence[Row], *, withdraw: bool) -> None:
        """Upsert while a clustering of a partition is planned: rows of its file groups are refused, or it goes."""
        after = self.merged(rows)
        planned = {identity for identity, row in self.rows.items() if (row["p"] or NO_PARTITION) == partition}
        if not planned or self.held:
            return
        changes = any(self.identity(row) in planned for row in rows)
        refused = []
        for table in self.tables:
            instant = new_time(load_state(table.storage).timeline, TimelineZone.UTC, utc_now)
            plan = plan_clustering(table.storage, [partition], instant=instant)
            try:
                table.upsert(self.arrow(rows))
            except WriteConflict:
                refused.append(table)
                self.check_one(table)
            else:
                assert not changes, "rows of a pending clustering's file groups were written"
            if not (withdraw and table in refused):
                table.storage.delete(plan)
            if table in refused:
                table.upsert(self.arrow(rows), options=WITHDRAW)
                assert not table.storage.exists(plan)
        self.rows, self.before = after, None

    def roll_back(self) -> None:
        """Take the newest commit of both back, where that can be done."""
        if self.before is None:
            return
        try:
            for table, instant in zip(self.tables, self.newest, strict=True):
                table.rollback(instant, dry_run=True)
        except HoodieError:
            return  # cleaned, or followed by a service's instant
        for table, instant in zip(self.tables, self.newest, strict=True):
            table.rollback(instant)
        self.rows, self.before = self.before, None

    def serve(self, service: str) -> None:
        """A service changes no row."""
        cow, mor = self.tables
        if service == "plan":
            with suppress(WriteConflict) if self.held else nullcontext():  # none is planned beside a pending write
                mor.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
        elif service == "compact":
            mor.compact()
        else:
            for table in (cow, mor):
                getattr(table, service)()

    def _write(self, write: Callable[[HoodieTable[Any]], WriteResult], after: dict[Identity, Row]) -> None:
        self.newest = tuple(write(table).instant for table in self.tables)
        self.before, self.rows = self.rows, after

    # --- what must hold ---

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist([dict(row) for row in rows], schema=self.schema)

    def texts(self, rows: Iterable[Row]) -> list[tuple[str, ...]]:
        return sorted(text(row[name] for name in self.schema.names) for row in rows)

    def check(self) -> None:
        """Every view of both tables holds the dict's rows."""
        for table in self.tables:
            self.check_one(table)

    def check_one(self, table: HoodieTable[Any]) -> None:
        """Every view of a table holds the dict's rows."""
        expected = self.texts(self.rows.values())
        keys = [dict(row) for row in self.rows.values()]
        absent = [dict(zip(self.keys.columns, values, strict=True)) | {"p": "x"} for values in self.keys.domain]
        if not table.schema.names:
            assert not expected
            return
        kind = table.path.rsplit("/", 1)[-1]
        same(self.texts(listed(table.snapshot())), expected, kind)
        assert table.count() == len(expected), kind
        scan = plan_scan(load_state(table.storage))
        same(self.texts(rows_by_position(scan).to_pylist()), expected, f"{kind} by position")
        asked = self.arrow([*keys, *(row | dict.fromkeys(["ts", "d", "s"]) for row in absent)])
        client = HoodieReadClient(table.path, spark=self.spark, options=self.options)
        read = client.read(asked)
        same(self.texts(listed(read.rows)), expected, f"{kind} by key")
        for condition, fits in CONDITIONS.items():
            fitting = [row for row in self.rows.values() if fits(row["d"])]
            rows = listed(table.snapshot(filters=condition))
            same(self.texts(rows), self.texts(fitting), f"{kind} where {condition}")
