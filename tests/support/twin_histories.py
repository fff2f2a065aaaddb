"""Random histories of twin tables: after each step both hold the rows of a dict, in every view, and no service changes
a row."""

from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.metadata_fresh import KEPT, check_kept
from support.twins import CONDITIONS, FLOAT, NO_PARTITION, PAIR, TEXT, Keys, Row, Twins

PLACES = ["x", "y", "", None]
INDEXES: list[Mapping[str, Any]] = [
    {"hoodie.index.type": "SIMPLE"},
    {"hoodie.index.type": "BLOOM"},
    {"hoodie.index.type": "GLOBAL_SIMPLE"},
    {"hoodie.index.type": "GLOBAL_BLOOM"},
    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
]
#: Little is retained, so that cleaning and archiving have something to do in a short history.
RETENTION = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.compact.inline": "false",
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.integers(0, 4),
            "p": st.sampled_from(PLACES),
            "ts": st.integers(0, 3),
            "d": st.sampled_from([None, 0.0, -0.0, 0.5, -1.0, float("nan")]),
            "s": st.sampled_from([None, "", "a", "__HIVE_DEFAULT_PARTITION__"]),
        }
    ),
    min_size=1,
    max_size=4,
)
SERVICES = st.sampled_from(["plan", "compact", "compact", "clean", "archive"])


class Histories(RuleBasedStateMachine):
    """Ordering values that rise with every step, or come late; batches in memory, or staged in files."""

    spark: Any = None
    folder = "memory://twins"
    more: Mapping[str, str] = {}

    @initialize(
        keys=st.sampled_from([TEXT, FLOAT, PAIR]),
        index=st.sampled_from(INDEXES),
        rising=st.booleans(),
        spilled=st.booleans(),
        small=st.sampled_from([0, 20_000]),
        format=st.sampled_from(["avro", "parquet"]),
        serving=st.sampled_from(["", "", "compaction", "cleaning"]),
        version=st.sampled_from(["6", "8", "9"]),
    )
    def create(
        self,
        keys: Keys,
        index: Mapping[str, Any],
        rising: bool,
        spilled: bool,
        small: int,
        format: str,
        serving: str,
        version: str,
    ) -> None:
        """serving  what runs after every step"""
        self.keys, self.rising, self.step, self.serving = keys, rising, 0, serving
        everywhere = "GLOBAL" in index["hoodie.index.type"]
        self.moving = rising or not everywhere  # where a late row of another partition goes is told elsewhere
        options = {
            **RETENTION,
            **index,
            "hoodie.parquet.small.file.limit": small,
            "hoodie.logfile.data.block.format": format,
            "hoodie.write.table.version": version,
            **self.more,
        }
        if spilled:
            options["hoodie.spark.driver.max.batch.bytes"] = 0
        self.twins = Twins(keys, options, everywhere=everywhere, spark=self.spark, folder=self.folder)

    def placed(self, rows: list[Row]) -> list[Row]:
        self.step += 1
        return [
            {
                **dict(zip(self.keys.columns, self.keys.domain[row["key"]], strict=True)),
                **{name: row[name] for name in ("p", "d", "s")},
                **({} if self.moving else {"p": PLACES[row["key"] % 2]}),
                "ts": row["ts"] + (self.step * 10 if self.rising else 0),
            }
            for row in rows
        ]

    @rule(rows=ROWS)
    def upsert(self, rows: list[Row]) -> None:
        self.twins.upsert(self.placed(rows))

    @rule(rows=ROWS)
    def insert(self, rows: list[Row]) -> None:
        self.twins.insert_new(self.placed(rows))

    @rule(rows=ROWS)
    def delete(self, rows: list[Row]) -> None:
        self.twins.delete(self.placed(rows))

    @rule(rows=ROWS)
    def delete_insert_and_upsert(self, rows: list[Row]) -> None:
        self.twins.delete(self.placed(rows))
        self.twins.insert_new(self.placed(rows))
        self.twins.upsert(self.placed(rows[:1]))

    @rule(rows=ROWS)
    def overwrite(self, rows: list[Row]) -> None:
        self.twins.overwrite(self.placed(rows))

    @rule(partition=st.sampled_from(["x", "y", NO_PARTITION]))
    def drop(self, partition: str) -> None:
        self.twins.drop(partition)

    @rule(condition=st.sampled_from(sorted(CONDITIONS)))
    def delete_where(self, condition: str) -> None:
        if self.twins.rows:
            self.twins.delete_where(condition)

    @rule(rows=ROWS, others=ROWS, overwriting=st.booleans())
    def held_open(self, rows: list[Row], others: list[Row], overwriting: bool) -> None:
        if self.twins.held:
            return
        between = self.placed(others)
        self.twins.held_open(self.placed(rows), between, overwriting=overwriting)

    @rule()
    def begin(self) -> None:
        self.twins.begin()

    @precondition(lambda self: self.twins.held)
    @rule(rows=ROWS)
    def end(self, rows: list[Row]) -> None:
        self.twins.end(self.placed(rows))

    @rule(partition=st.sampled_from(["x", "y", NO_PARTITION]), rows=ROWS, withdraw=st.booleans())
    def beside_a_clustering(self, partition: str, rows: list[Row], withdraw: bool) -> None:
        self.twins.beside_a_clustering(partition, self.placed(rows), withdraw=withdraw)

    @rule()
    def roll_back(self) -> None:
        self.twins.roll_back()

    @rule(service=SERVICES)
    def serve(self, service: str) -> None:
        self.twins.serve(service)

    @invariant()
    def both_tables_hold_the_rows(self) -> None:
        if hasattr(self, "twins"):
            self.twins.check()
            services = {"compaction": ("plan", "compact"), "cleaning": ("clean", "archive")}.get(self.serving, ())
            for service in services:
                self.twins.serve(service)
            if services:
                self.twins.check()


class Kept(Histories):
    """Beside metadata tables of all partitions, which are compared after each step."""

    more = KEPT

    @invariant()
    def the_metadata_tables_tell_what_a_build_does(self) -> None:
        if hasattr(self, "twins"):
            for table in self.twins.tables:
                check_kept(table.storage)


def run_histories(count: int, steps: int, machine: type[Histories] = Histories) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=count, stateful_step_count=steps))  # type: ignore[no-untyped-call]
