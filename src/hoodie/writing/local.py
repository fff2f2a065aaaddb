"""A write by this process alone: a batch that fits into memory stays there, a larger one goes to files beside it."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

import pyarrow as pa

from hoodie.config.write import WriteOperation
from hoodie.display.progress import Advance
from hoodie.plan.write import WriteTask
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.settings import Settings
from hoodie.table.state import TableFiles, TableState
from hoodie.writing.batch.arrow import check_rows, ordering_needed, sound_rows
from hoodie.writing.batch.memory import MemoryBatch, bulk_rows, write_bulk
from hoodie.writing.batch.spilled import tag_staged
from hoodie.writing.batch.stage import (
    Stage,
    StagedHits,
    lies_deleted,
    lookup_calls,
    profile,
    require_sound,
    staged_hits,
    staged_lookup,
    staged_tasks,
)
from hoodie.writing.batch.staging import StagedTask, by_partition, read_pieces, rows_of, stage_rows, without_arrivals
from hoodie.writing.finish import AfterCommit
from hoodie.writing.index_updates import TaskResult
from hoodie.writing.operations import Combine
from hoodie.writing.planning import (
    DRIVER,
    BatchPlan,
    HeldBatch,
    TaskReports,
    TaskRunner,
    plan_batch,
    rows_and_bytes,
    task_runner,
)
from hoodie.writing.result import Phases
from hoodie.writing.run import IncomingBatch
from hoodie.writing.write import Write

_FOLDER = "batch"


@dataclass(frozen=True, slots=True)
class SpilledPlan:
    """A batch in files with the plan for it.

    stage  the rows as tasks take them: perhaps staged once more
    """

    planned: BatchPlan
    stage: Stage
    hits: StagedHits

    def run(self, write: Write, advance: Advance) -> TaskReports:
        work = staged_tasks(self.stage, self.planned.plan, self.hits, write.operation_rules.delete)
        run_task = partial(_run_task, self.stage, task_runner(write, write.spec()), advance)
        return TaskReports.of(in_threads(run_task, work, _threads(write, work)))

    def release(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class SpilledBatch:
    """A batch in files of this process's own: no more of it is in memory than the tasks at work take."""

    staged: Stage
    folder: tempfile.TemporaryDirectory[str]
    spread: Callable[[Write], HeldBatch] | None = None
    route: str = DRIVER

    @property
    def partitions(self) -> frozenset[str]:
        return frozenset(self.staged.measured().rows)

    def locate(self, write: Write, files: TableFiles) -> SpilledPlan:
        rules, stage, hits = write.operation_rules, self.staged, StagedHits()
        if write.locates_staged:
            calls = lookup_calls(stage, files.bases)
            costs = in_threads(staged_lookup(write, stage), calls, write.settings.engine.threads)
            hits = staged_hits(stage, calls, enumerate(costs))
        if rules.locate and (not write.locates_staged or lies_deleted(write.state, files, stage, hits)):
            stage, hits, files = tag_staged(write, stage, files)
        rows = profile(stage.measured(), hits.updates, not rules.delete)
        return SpilledPlan(plan_batch(write, files, rows, hits.cost), stage, hits)

    def stream(self, write: Write) -> TaskReports:
        return write_bulk(write, _bulk_batches(write, self.staged))

    def release(self) -> None:
        self.folder.cleanup()


def check_batch(
    storage: Storage,
    operation: WriteOperation,
    source: pa.RecordBatchReader,
    settings: Settings,
    after_commit: AfterCommit,
    new: TableState | None = None,
) -> IncomingBatch:
    """See whether the table may be written and the batch fits it. Arguments and errors as `check_rows`."""
    phases = Phases()
    with phases.time("check"):
        write, rows = check_rows(storage, operation, source, settings, new)
    return IncomingBatch(write, partial(acquire, rows), after_commit, phases, alone=True)


class RowsOnce(Protocol):
    """Rows with record key and partition path, which can be read once."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of `batches`."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in batches of bounded size."""


def acquire(rows: RowsOnce, write: Write, phases: Phases) -> HeldBatch:
    """Take the batch over: into memory up to `hoodie.spark.driver.max.batch.bytes`, else into temporary files.

    Raises InvalidInput on rows without key, partition path or an ordering value that is asked for
    """
    with phases.time("collect"):
        held, rest = take_rows(rows.batches(), write.settings.engine.driver_batch)
        if rest is None:
            return MemoryBatch(sound_rows(pa.Table.from_batches(held, rows.schema), write))
    with phases.time("stage"):
        folder = tempfile.TemporaryDirectory(prefix="hoodie-batch-")
        try:
            stage = stage_batches(LocalStorage(folder.name), _FOLDER, chain(held, rest), write)
        except BaseException:
            folder.cleanup()
            raise
        return SpilledBatch(stage, folder)


def take_rows(
    batches: Iterator[pa.RecordBatch], most: int
) -> tuple[Iterator[pa.RecordBatch] | list[pa.RecordBatch], Iterator[pa.RecordBatch] | None]:
    """Batches up to a number of bytes, and the others; None: there are none."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > most:
            return _handed_over(held), batches
    return held, None


def _handed_over(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, each let go of once it is taken."""
    held.reverse()
    while held:
        yield held.pop()


def stage_batches(storage: Storage, folder: str, batches: Iterator[pa.RecordBatch], write: Write) -> Stage:
    """Stage keyed rows. Raises InvalidInput as `sound_rows`: the stage is gone then."""
    try:
        pieces = stage_rows(storage, f"{folder}/rows.arrow", batches, ordering_needed(write), 0)
        stage = Stage(storage, folder, tuple(pieces))
        require_sound(stage.measured(), write.rule.ordering, write.state.config)
    except BaseException:
        storage.delete_tree(folder)
        raise
    return stage


def _run_task(stage: Stage, run: TaskRunner, advance: Advance, work: tuple[WriteTask, StagedTask]) -> TaskResult:
    task, staged = work
    rows = rows_of(stage.storage, staged)
    result = run(task, rows, f"{task.number}-0-0") if rows.num_rows else TaskResult(())
    advance(1, *rows_and_bytes(result.stats))
    return result


def _threads(write: Write, work: Sequence[tuple[WriteTask, StagedTask]]) -> int:
    """Threads whose rows together stay within a few times what a batch in memory may take."""
    engine = write.settings.engine
    most = engine.threads
    row_bytes = max((sum(p.bytes for p in s.pieces) / sum(p.rows for p in s.pieces) for _, s in work), default=0.0)
    largest = max((task.inserts + task.updates for task, _ in work), default=0) * row_bytes
    return max(1, min(most, int(2 * engine.driver_batch / largest))) if largest else most


def _bulk_batches(write: Write, stage: Stage) -> Iterator[pa.RecordBatch]:
    """The rows as they are to be written; where they are sorted or combined, a partition of them at a time."""
    if not write.settings.write.bulk_sort.by_key and write.operation_rules.combine is Combine.ALL:
        for _, batch in read_pieces(stage.storage, stage.pieces):
            yield without_arrivals(batch)
        return
    for _, pieces in sorted(by_partition(stage.pieces).items()):
        rows = pa.Table.from_batches([batch for _, batch in read_pieces(stage.storage, pieces)])
        yield from bulk_rows(write, rows).to_batches()
