"""A write by this process alone: a batch that fits into memory stays there, a larger one goes to files beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from hoodie.config.options import Options
from hoodie.config.write import BulkInsertSort, WriteOperation
from hoodie.merge.ordering import require_ordering
from hoodie.merge.rules import Survivor
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import WriteTask
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState
from hoodie.writing.arrow_batch import ArrowRows, check_rows
from hoodie.writing.driver import bulk_rows, check_keys, prepared_files, write_bulk, write_on_driver
from hoodie.writing.finish import AfterCommit
from hoodie.writing.index_updates import TaskResult
from hoodie.writing.operations import Combine
from hoodie.writing.planning import TaskRunner, announce, plan_batch, task_runner
from hoodie.writing.result import Phases
from hoodie.writing.run import Acquired, IncomingBatch
from hoodie.writing.spilled_tagging import tag_staged
from hoodie.writing.stage import (
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
from hoodie.writing.staging import (
    StagedTask,
    by_partition,
    read_pieces,
    rows_of,
    stage_rows,
    without_arrivals,
)
from hoodie.writing.task_results import TaskResults
from hoodie.writing.write import Write

T = TypeVar("T")
R = TypeVar("R")

_FOLDER = "batch"


@dataclass(frozen=True, slots=True)
class LocalRows:
    """A batch in memory."""

    rows: pa.Table
    staged: Stage | None = None

    def write(self, write: Write, phases: Phases) -> tuple[Write, TaskResults]:
        return write_on_driver(write, self.rows, phases)

    def release(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class SpilledRows:
    """A batch in files of this process's own: no more of it is in memory than the tasks at work take."""

    staged: Stage
    folder: tempfile.TemporaryDirectory[str]

    def write(self, write: Write, phases: Phases) -> tuple[Write, TaskResults]:
        if not write.operation_rules.bulk:
            return _write_spilled(write, self.staged, phases)
        batches = _bulk_batches(write, self.staged)
        return write_bulk(write, batches, frozenset(self.staged.measured().rows), phases)

    def release(self) -> None:
        self.folder.cleanup()


def check_batch(
    storage: Storage,
    operation: WriteOperation,
    source: pa.RecordBatchReader,
    options: Options,
    after_commit: AfterCommit,
    new: TableState | None = None,
) -> IncomingBatch:
    """See whether the table may be written and the batch fits it. Arguments and errors as `check_rows`."""
    phases = Phases()
    with phases.time("check"):
        write, rows = check_rows(storage, operation, source, options, new)
    return IncomingBatch(write, partial(acquire, rows), after_commit, phases)


def acquire(rows: ArrowRows, write: Write, phases: Phases) -> Acquired:
    """Take the batch over: into memory up to `hoodie.spark.driver.max.batch.bytes`, else into temporary files.

    Raises InvalidInput on rows without key, partition path or an ordering value that is asked for
    """
    with phases.time("collect"):
        held, rest = take_rows(rows.batches(), write.settings.engine.driver_batch)
        if rest is None:
            return LocalRows(sound_rows(pa.Table.from_batches(held, rows.schema), write))
    with phases.time("stage"):
        folder = tempfile.TemporaryDirectory(prefix="hoodie-batch-")
        try:
            stage = stage_batches(LocalStorage(folder.name), _FOLDER, chain(held, rest), write)
        except BaseException:
            folder.cleanup()
            raise
        return SpilledRows(stage, folder)


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


def sound_rows(rows: pa.Table, write: Write) -> pa.Table:
    """The keyed rows. Raises InvalidInput on some that cannot be written."""
    check_keys(rows)
    if ordered := ordering_needed(write):
        require_ordering(rows, ordered, RECORD_KEY)
    return rows


def ordering_needed(write: Write) -> Sequence[str]:
    """The ordering columns that must have a value in each row of the batch."""
    ordered = write.operation_rules.combine is Combine.ORDERED and write.rule.survivor is not Survivor.OLDEST
    return write.rule.ordering if ordered else ()


def stage_batches(storage: Storage, folder: str, batches: Iterator[pa.RecordBatch], write: Write) -> Stage:
    """Stage keyed rows. Raises InvalidInput as `sound_rows`: the stage is gone then."""
    try:
        pieces = stage_rows(storage, f"{folder}/rows.arrow", batches, ordering_needed(write), 0)
        stage = Stage(storage, folder, tuple(pieces))
        require_sound(stage.measured(), write.rule.ordering)
    except BaseException:
        storage.delete_tree(folder)
        raise
    return stage


def _write_spilled(write: Write, stage: Stage, phases: Phases) -> tuple[Write, TaskResults]:
    rules = write.operation_rules
    partitions = frozenset(stage.measured().rows)
    with phases.time("locate"):
        files = prepared_files(write, partitions)
        hits = StagedHits()
        if write.locates_staged:
            calls = lookup_calls(stage, files.bases)
            costs = _on_threads(staged_lookup(write, stage), calls, write.settings.engine.threads)
            hits = staged_hits(stage, calls, enumerate(costs))
        if rules.locate and (not write.locates_staged or lies_deleted(write.state, files, stage, hits)):
            stage, hits, files = tag_staged(write, stage, files)
        rows = profile(stage.measured(), hits.updates, not rules.delete)
        planned = plan_batch(write, files, rows, hits.cost)
    write = announce(write, planned)
    with phases.time("write"):
        work = staged_tasks(stage, planned.plan, hits, rules.delete)
        run = partial(_run_task, stage, task_runner(write, write.spec()))
        done = _on_threads(run, work, _threads(write, work))
    return write, TaskResults.on_driver(done, partitions, planned.index)


def _run_task(stage: Stage, run: TaskRunner, work: tuple[WriteTask, StagedTask]) -> TaskResult:
    task, staged = work
    rows = rows_of(stage.storage, staged)
    return run(task, rows, f"{task.number}-0-0") if rows.num_rows else TaskResult(())


def _threads(write: Write, work: Sequence[tuple[WriteTask, StagedTask]]) -> int:
    """Threads whose rows together stay within a few times what a batch in memory may take."""
    engine = write.settings.engine
    most = engine.threads
    row_bytes = max((sum(p.bytes for p in s.pieces) / sum(p.rows for p in s.pieces) for _, s in work), default=0.0)
    largest = max((task.inserts + task.updates for task, _ in work), default=0) * row_bytes
    return max(1, min(most, int(2 * engine.driver_batch / largest))) if largest else most


def _on_threads(run: Callable[[T], R], work: Sequence[T], threads: int) -> list[R]:
    """What a function makes of each item. The first failure is raised once those that had begun have ended."""
    with ThreadPoolExecutor(threads, thread_name_prefix="hoodie") as pool:
        return list(pool.map(run, work))


def _bulk_batches(write: Write, stage: Stage) -> Iterator[pa.RecordBatch]:
    """The rows as they are to be written; where they are sorted or combined, a partition of them at a time."""
    unsorted = write.settings.write.bulk_sort is BulkInsertSort.NONE
    if unsorted and write.operation_rules.combine is Combine.ALL:
        for _, batch in read_pieces(stage.storage, stage.pieces):
            yield without_arrivals(batch)
        return
    for _, pieces in sorted(by_partition(stage.pieces).items()):
        rows = pa.Table.from_batches([batch for _, batch in read_pieces(stage.storage, pieces)])
        yield from bulk_rows(write, rows).to_batches()
