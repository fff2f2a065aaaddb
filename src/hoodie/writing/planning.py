"""What a write asks of a batch, wherever its rows are, in memory, in files or with Spark; and what it does alike on
every engine between its look-up and its tasks: plan, announce the plan, run each task, and what tasks report.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from hoodie.commit.clustering_check import clustered_groups
from hoodie.display.progress import Advance
from hoodie.index.pruning import IndexStats
from hoodie.keygen.generated_keys import with_instant
from hoodie.lookup.context import index_context
from hoodie.model.commit import WriteStat
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import PartitionProfile, WritePlan, WriteTask, measure_record_size, plan_write
from hoodie.table.partition_metadata import restore_metafiles
from hoodie.table.state import TableFiles
from hoodie.writing.batch.stage import Stage
from hoodie.writing.index_updates import TaskResult, WriteRows, run_and_record
from hoodie.writing.tasks.base_file import WriteSpec
from hoodie.writing.tasks.run import new_file_id, run_task
from hoodie.writing.write import Write

_log = logging.getLogger("hoodie.index")

#: Runs a task on its rows, by a write token.
TaskRunner = Callable[[WriteTask, pa.Table, str], TaskResult]


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What is to be done with a batch whose keys are looked up.

    index     what the look-up cost
    unmarked  partitions that lost their metafile
    """

    profile: Mapping[str, PartitionProfile]  # by partition path
    plan: WritePlan
    index: IndexStats
    unmarked: frozenset[str] = frozenset()


def plan_batch(
    write: Write, files: TableFiles, profile: Mapping[str, PartitionProfile], index: IndexStats
) -> BatchPlan:
    """Decide which tasks there are.

    files    what the write sees: `Write.files_of`
    profile  rows to insert and to update, by partition path
    """
    rules, sizing, state = write.operation_rules, write.settings.sizing, write.state
    # Rows that come into these would be lost.
    clustered = clustered_groups(state) if state.timeline.pending_replaces else {}
    small_files = {
        partition: rules.small_files([s for s in files.slices.get(partition, ()) if s.group not in clustered], sizing)
        for partition, rows in profile.items()
        if rows.inserts
    }
    plan = plan_write(
        profile,
        files.groups,
        small_files,
        sizing,
        measure_record_size(state.recent_commits(), sizing),
        new_file_id,
        rules.kinds,
        names_new=write.names_new,
    )
    if rules.locate:
        _log.info(
            "%s: index %s found %d of %d looked-up pairs of key and file; %d files read, %d left out, %.3f s",
            state.config.name,
            write.index.name,
            index.hits,
            index.candidates,
            index.files_read,
            index.files_pruned_by_range + index.files_pruned_by_filter,
            index.seconds,
        )
    return BatchPlan(profile, plan, index, files.unmarked)


def prepared_files(write: Write, partitions: frozenset[str]) -> TableFiles:
    """What the write sees of the partitions of its batch, as far as its plan asks. The index makes ready for them."""
    needed = write.operation_rules.locate or write.settings.sizing.small_limit > 0
    files = write.files_of(partitions) if needed else TableFiles()
    if write.index.prepare is not None:
        seen = files if needed else write.state.files(partitions)
        write.index.prepare(index_context(write.state, sorted(partitions), seen))
    return files


def fits_driver(write: Write, plan: WritePlan) -> bool:
    """Whether driver threads are to carry a plan out, by the bytes of base files that it reads.

    An index that finds keys by itself, in whatever partition, says only with the plan how much that is.
    """
    return not write.operation_rules.match or plan.bytes_read <= write.settings.engine.driver_rewrite


def announce(write: Write, planned: BatchPlan) -> Write:
    """Put the plan on the timeline, before any task writes."""
    write = write.with_plan(planned.plan)
    if planned.unmarked:
        restore_metafiles(write.storage, planned.unmarked, write.begun.time)
    return write


def task_runner(write: Write, spec: WriteSpec) -> TaskRunner:
    """What runs each task: it writes the rows of one file group, then tells the index. Pickles to executors.

    spec  the write's, its storage perhaps one that remembers
    """
    plain = partial(run_task, spec, write.rule, write.operation_rules)
    recorder = write.recorder
    run = partial(_run, plain) if recorder is None else partial(run_and_record, plain, recorder)
    return partial(_with_finished_keys, spec.instant, run) if spec.new_keys else run


def _run(write_rows: WriteRows, task: WriteTask, rows: pa.Table, token: str) -> TaskResult:
    return TaskResult(write_rows(task, rows, token))


def _with_finished_keys(instant: str, run: TaskRunner, task: WriteTask, rows: pa.Table, token: str) -> TaskResult:
    at = rows.schema.get_field_index(RECORD_KEY)
    return run(task, rows.set_column(at, RECORD_KEY, with_instant(rows.column(RECORD_KEY), instant)), token)


def rows_and_bytes(stats: Iterable[WriteStat]) -> tuple[int, int]:
    """Rows and bytes that tasks wrote, rows that were copied included."""
    every = list(stats)
    return sum(stat.num_writes for stat in every), sum(stat.total_write_bytes for stat in every)


DRIVER = "driver"
EXECUTORS = "executors"


@dataclass(frozen=True, slots=True, eq=False)
class TaskReports:
    """What the winning attempts of tasks report.

    later  what the index is to be given once the write is published
    rows   that they took, where these are counted
    """

    stats: Sequence[WriteStat] = ()
    later: tuple[pa.Table, ...] = ()
    rows: int = 0

    @classmethod
    def of(cls, tasks: Iterable[TaskResult]) -> TaskReports:
        results = list(tasks)
        later = tuple(task.later for task in results if task.later is not None)
        return cls(tuple(stat for task in results for stat in task.stats), later)


@dataclass(frozen=True, slots=True)
class TaskResults:
    """Statistics of the winning task attempts.

    partitions  partition paths of the batch, those included in which nothing came to be written
    route       the engine that did the work: DRIVER or EXECUTORS
    later       as of `TaskReports`
    """

    stats: Sequence[WriteStat]
    partitions: frozenset[str]
    index: IndexStats
    route: str
    later: tuple[pa.Table, ...] = ()

    @classmethod
    def nothing(cls, partitions: frozenset[str]) -> TaskResults:
        """The results of a write without rows."""
        return cls((), partitions, IndexStats(), DRIVER)


class LocatedBatch(Protocol):
    """A batch whose keys are looked up, with the plan for it."""

    @property
    def planned(self) -> BatchPlan: ...

    def run(self, write: Write, advance: Advance) -> TaskReports:
        """Run the tasks of the plan. Nothing is published yet."""

    def release(self) -> None:
        """Let go of what holds the rows with their places."""


class HeldBatch(Protocol):
    """A batch at hand: its source is not asked again, however many attempts a write takes."""

    @property
    def route(self) -> str:
        """The engine that does the work: DRIVER or EXECUTORS."""

    @property
    def staged(self) -> Stage | None:
        """Where it lies in files; None: it is elsewhere."""

    @property
    def partitions(self) -> frozenset[str]:
        """Partition paths of its rows, as far as they are known before these are written."""

    @property
    def spread(self) -> Callable[[Write], HeldBatch] | None:
        """Hands the rows over to executors, for a plan that is too large for the driver; None: it carries out any."""

    def locate(self, write: Write, files: TableFiles) -> LocatedBatch:
        """Look its keys up and plan. files: `Write.files_of` its partitions"""

    def stream(self, write: Write) -> TaskReports:
        """Write its rows into new file groups as they come: a bulk insert."""

    def release(self) -> None:
        """Let go of what holds it."""
