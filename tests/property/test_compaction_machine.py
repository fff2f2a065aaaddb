"""Upserts, deletes, plans, compactions, whatever of them dies, and rollbacks, in any order: after each step the table
holds what a dict of rows does, in every view.

The dict knows no files, but one thing of them: which file groups a plan names. From there on rows of logs meet anew.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hoodie.commit.rollback_executor import roll_back
from hoodie.commit.transaction import clean_up
from hoodie.config.write import WriteOperation
from hoodie.errors import DamagedLog, InvalidPlan, MetadataTableDropped
from hoodie.model.files import BaseFile
from hoodie.model.instant import Action
from hoodie.services.compaction.job import begin_compaction
from hoodie.services.compaction.run import compact, run_on_driver
from hoodie.services.compaction.schedule import pending_compactions, schedule_compaction, unschedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import REFUSED, ArrowTable
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.view.load import data_files, list_partitions
from support.history_model import (
    BY_ORDERING,
    OVERWRITE,
    Copy,
    Placement,
    TableModel,
    Version,
    deleted,
    placement,
    text_of,
)
from support.instants import next_time
from support.metadata_fresh import KEPT, check_kept
from support.nightly import scaled
from support.strategies import Row, Shape, Step, WriteFault

#: Few keys and ordering values, so that versions meet: late ones, equal ones, deletes and what comes back after them.
SHAPE = Shape(
    pa.schema(
        [
            ("id", pa.string()),
            ("p", pa.string()),
            ("ts", pa.int64()),
            ("v", pa.int32()),
            ("_hoodie_is_deleted", pa.bool_()),
        ]
    ),
    keys=("id",),
    partition="p",
    ordering="ts",
    domains={},
)
KEYS = pa.schema([("id", pa.string()), ("p", pa.string())])

PLACES = {"a": "x", "b": "x", "c": "y"}


def placed(row: Row) -> Row:
    return {**row, "p": PLACES[row["id"]]}


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from("aaabc"),
            "ts": st.sampled_from([0, 1, 1, 2]),
            "v": st.integers(0, 99),
            "_hoodie_is_deleted": st.sampled_from([None, None, None, True]),
        }
    ).map(placed),
    min_size=1,
    max_size=3,
)
DELETED = st.lists(st.sampled_from("aab").map(lambda key: placed({"id": key})), min_size=1, max_size=2)
FAULT = st.builds(WriteFault, st.integers(0, 12), st.sampled_from(Dying))
SOME_FAULTS = st.none() | st.none() | st.none() | FAULT
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}


def _upsert(rows: list[Row]) -> Step:
    return Step(WriteOperation.UPSERT, SHAPE.schema, tuple(rows))


def _delete(keys: list[Row]) -> Step:
    return Step(WriteOperation.DELETE, KEYS, tuple(keys))


STEPS = ROWS.map(_upsert) | ROWS.map(_upsert) | DELETED.map(_delete)


# --- the model: what happened, replayed ---


@dataclass(frozen=True)
class Write:
    instant: str
    step: Step
    placement: Placement


@dataclass(frozen=True)
class Plan:
    """From here on the file groups take logs into new slices."""

    instant: str
    groups: frozenset[str]


@dataclass(frozen=True)
class TaskResult:
    """The compaction is published."""

    instant: str
    groups: frozenset[str]


Event = Write | Plan | TaskResult


class Model(TableModel):
    """A base row may be gone, while the log beside it has the key."""

    def outcome(self, stored: Version | None, new: Version) -> Version | None:
        if stored is None:
            return None if deleted(new.values) else new
        return super().outcome(stored, new)

    def compacted(self, groups: Collection[str]) -> Model:
        """Base rows are what base and log made of them."""

        def folded(copy: Copy) -> Copy:
            if copy.group not in groups:
                return copy
            return replace(copy, base=self.visible(copy), log=None)  # type: ignore[arg-type]

        return replace(self, rows={key: tuple(map(folded, copies)) for key, copies in self.rows.items()})

    def forgotten(self, groups: Collection[str]) -> Model:
        """Keys that no look-up finds any more are gone: neither base file nor log has them alive."""

        def kept(copy: Copy) -> bool:
            return copy.group not in groups or copy.base is not None or self.visible(copy) is not None

        rows = {key: tuple(filter(kept, copies)) for key, copies in self.rows.items()}
        return replace(self, rows={key: copies for key, copies in rows.items() if copies})


def replay(payload: str, events: Sequence[Event], up_to: str = "9") -> Model:
    """The table as of an instant, as it is seen today: compactions that were published since count from their plan."""
    done = {event.instant for event in events if isinstance(event, TaskResult)}
    model = Model(SHAPE, payload)
    for event in events:
        if event.instant > up_to:
            continue
        if isinstance(event, Write):
            model = model.after(event.step, event.instant, event.placement)[0]  # type: ignore[assignment]
        elif isinstance(event, Plan) and event.instant in done:
            model = model.compacted(event.groups)
        elif isinstance(event, TaskResult):
            model = model.forgotten(event.groups)
    return model


# --- the machine ---


class Compactions(RuleBasedStateMachine):
    """One writer, any number of plans, and compactors that come and die."""

    payload = OVERWRITE
    more: Mapping[str, str] = {}

    @initialize(
        rows=ROWS, keys=DELETED, small=st.sampled_from([0, 20_000]), format=st.sampled_from(["avro", "parquet"])
    )
    def create(self, rows: list[Row], keys: list[Row], small: int, format: str) -> None:
        """A table with rows, some of them deleted by logs, and a plan for these."""
        self.storage = MemoryStorage()
        self.table = ArrowTable.create(
            self.storage,
            {
                **SHAPE.options,
                "hoodie.datasource.write.payload.class": self.payload,
                "hoodie.datasource.write.table.type": "MERGE_ON_READ",
                "hoodie.parquet.small.file.limit": small,
                "hoodie.logfile.data.block.format": format,
                "hoodie.spark.driver.threads": 1,
                "hoodie.compact.inline": "false",  # the rules of this machine do it
                **NOW,
                **self.more,
            },
        )
        self.options = self.table.options
        self.events: list[Event] = []
        self.plans: dict[str, frozenset[str]] = {}
        self.write(_upsert(rows), None)
        self.write(_delete(keys), None)
        self.plan(False)

    @rule(step=STEPS, fault=SOME_FAULTS)
    def write(self, step: Step, fault: WriteFault | None) -> None:
        before = {i.requested for i in self.table.state().timeline.commits}
        if fault is not None:
            self.table.fail_next(fault.calls, fault.dying)
        try:
            self.table.write(step.operation, step.table)
        except (Crash, *REFUSED):
            self.storage.delete_tree(".hoodie/.locks")
        timeline = self.table.state().timeline
        for instant in timeline.commits:
            if instant.requested not in before:
                commit = read_commit(self.storage, timeline, instant)
                done = placement(self.storage, commit, instant.requested)
                self.events.append(Write(instant.requested, step, done))

    @rule(one=st.booleans())
    def plan(self, one: bool) -> None:
        clean_up(self.table.state())
        options = {**self.options, "hoodie.compaction.target.io": "0"} if one else self.options
        instant = schedule_compaction(self.storage, Settings.of(options))
        if instant is not None:
            (plan,) = (plan for i, plan in pending_compactions(self.table.state()) if i.requested == instant)
            self.plans[instant] = frozenset(operation.group.file_id for operation in plan.operations)
            assert sum(map(len, self.plans.values())) == len(frozenset().union(*self.plans.values()))
            assert not one or len(plan.operations) == 1
            self.events.append(Plan(instant, self.plans[instant]))

    @precondition(lambda self: self.plans)
    @rule(pick=st.integers(0, 3), fault=SOME_FAULTS)
    def compact(self, pick: int, fault: WriteFault | None) -> None:
        instant = self.picked(pick)
        storage = CrashAfter(self.storage, fault.calls, fault.dying) if fault and fault.dying else self.storage
        try:
            compact(storage, Settings.read(self.options), instant)
        except Crash:
            self.storage.delete_tree(".hoodie/.locks")  # as time goes by
        if instant not in {i.requested for i in self.table.state().timeline.pending_compactions}:
            self.events.append(TaskResult(instant, self.plans.pop(instant)))

    @rule(pick=st.integers(0, 3))
    def roll_back(self, pick: int) -> None:
        """What the next write does first; and a compaction at work as Hudi rolls it back."""
        clean_up(self.table.state())
        if self.plans:
            job = begin_compaction(self.storage, Settings.read(self.options), self.picked(pick))
            assert job is not None
            run_on_driver(job, threads=1)
            roll_back(self.storage, job.instant, next_time(self.storage), layout=LAYOUT_1)

    @precondition(lambda self: self.plans)
    @rule(pick=st.integers(0, 3))
    def unschedule(self, pick: int) -> None:
        clean_up(self.table.state())
        instant = self.picked(pick)
        try:
            unschedule_compaction(self.storage, Settings.read(self.options), instant)
        except InvalidPlan:  # there are logs for it
            return
        del self.plans[instant]
        self.events = [event for event in self.events if event.instant != instant]

    def picked(self, pick: int) -> str:
        instants = sorted(self.plans)
        return instants[pick % len(instants)]

    # --- what must hold ---

    @invariant()
    def every_view_holds_what_the_dict_does(self) -> None:
        if not getattr(self, "events", ()):
            return
        model = replay(self.payload, self.events)
        rows = self.table.snapshot()
        self.same(rows, model.snapshot())
        assert max(Counter(zip(*map(_texts, (rows["id"], rows["p"])), strict=True)).values(), default=1) == 1
        self.same(self.table.read_optimized(), model.read_optimized())
        instants = [event.instant for event in self.events if isinstance(event, Write)]
        instant = instants[-2] if len(instants) > 1 else instants[-1]
        self.same(self.table.as_of(instant), replay(self.payload, self.events, instant).snapshot())

    @invariant()
    def all_base_files_are_those_of_commits_or_of_what_is_pending(self) -> None:
        if not getattr(self, "events", ()):
            return
        timeline = self.table.state().timeline
        named = {
            stat.path
            for instant in timeline.commits
            for part in read_commit(self.storage, timeline, instant).stats.values()
            for stat in part
        }
        pending = {instant.requested for instant in timeline.pending(Action)}
        for file in data_files(list_partitions(self.storage)):
            assert not isinstance(file, BaseFile) or file.path in named or file.instant in pending, file.path

    def same(self, rows: pa.Table, expected: pa.Table) -> None:
        assert text_of(rows.drop_columns(["_hoodie_commit_seqno", "_hoodie_file_name"])) == text_of(expected)


def _texts(column: pa.ChunkedArray) -> list[Any]:
    return column.to_pylist()


class CompactionsByOrdering(Compactions):
    payload = BY_ORDERING


class CompactionsKept(Compactions):
    """Beside a metadata table of all partitions."""

    more = KEPT

    @invariant()
    def the_metadata_table_tells_what_a_build_does(self) -> None:
        if hasattr(self, "table"):
            check_kept(self.storage)

    def teardown(self) -> None:
        """Once nothing is pending, since no metadata table is built before."""
        if hasattr(self, "table"):
            clean_up(self.table.state())
            while compact(self.storage, Settings.read(self.options)) is not None:
                pass
            check_kept(self.storage)


SETTINGS = settings(max_examples=scaled(4, 20), stateful_step_count=12)


class _Quiet:
    settings = SETTINGS

    def runTest(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedLog)  # of writers that died, until the next one takes them back
            warnings.simplefilter("ignore", MetadataTableDropped)  # a rollback of what is compacted ends parts of it
            super().runTest()  # type: ignore[misc]


class TestOverwriting(_Quiet, Compactions.TestCase):  # type: ignore[misc, valid-type, name-defined]
    pass


class TestByOrdering(_Quiet, CompactionsByOrdering.TestCase):  # type: ignore[misc, valid-type, name-defined]
    pass


class TestKept(_Quiet, CompactionsKept.TestCase):  # type: ignore[misc, valid-type, name-defined]
    settings = settings(SETTINGS, max_examples=scaled(1, 2))


@pytest.mark.nightly
class TestKeptLong(_Quiet, CompactionsKept.TestCase):  # type: ignore[misc, valid-type, name-defined]
    settings = settings(SETTINGS, max_examples=25, stateful_step_count=15)
