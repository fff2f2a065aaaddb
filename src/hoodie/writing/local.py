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
from hoodie.writing.job import Checked, WriteJob
from hoodie.writing.operations import Combine
from hoodie.writing.planning import TaskRunner, announce, plan_batch, task_runner
from hoodie.writing.result import Phases
from hoodie.writing.run import Acquired, CheckedBatch
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

T = TypeVar("T")
R = TypeVar("R")

_FOLDER = "batch"


@dataclass(frozen=True, slots=True)
class LocalRows:
    """A batch in memory."""

    rows: pa.Table
    staged: Stage | None = None

    def write(self, job: WriteJob, phases: Phases) -> tuple[WriteJob, TaskResults]:
        return write_on_driver(job, self.rows, phases)

    def release(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class SpilledRows:
    """A batch in files of this process's own: no more of it is in memory than the tasks at work take."""

    staged: Stage
    folder: tempfile.TemporaryDirectory[str]

    def write(self, job: WriteJob, phases: Phases) -> tuple[WriteJob, TaskResults]:
        if not job.checked.operation_rules.bulk:
            return _write_spilled(job, self.staged, phases)
        batches = _bulk_batches(job.checked, self.staged)
        return write_bulk(job, batches, frozenset(self.staged.measured().rows), phases)

    def release(self) -> None:
        self.folder.cleanup()


def check_batch(
    storage: Storage,
    operation: WriteOperation,
    source: pa.RecordBatchReader,
    options: Options,
    after_commit: AfterCommit,
    new: TableState | None = None,
) -> CheckedBatch:
    """See whether the table may be written and the batch fits it. Arguments and errors as `check_rows`."""
    phases = Phases()
    with phases.time("check"):
        checked, rows = check_rows(storage, operation, source, options, new)
    return CheckedBatch(checked, rows.columns, options, partial(acquire, rows), after_commit, phases)


def acquire(rows: ArrowRows, checked: Checked, phases: Phases) -> Acquired:
    """Take the batch over: into memory up to `hoodie.spark.driver.max.batch.bytes`, else into temporary files.

    Raises InvalidInput on rows without key, partition path or an ordering value that is asked for
    """
    with phases.time("collect"):
        held, rest = take_rows(rows.batches(), checked.settings.engine.driver_batch)
        if rest is None:
            return LocalRows(sound_rows(pa.Table.from_batches(held, rows.schema), checked))
    with phases.time("stage"):
        folder = tempfile.TemporaryDirectory(prefix="hoodie-batch-")
        try:
            stage = stage_batches(LocalStorage(folder.name), _FOLDER, chain(held, rest), checked)
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


def sound_rows(rows: pa.Table, checked: Checked) -> pa.Table:
    """The keyed rows. Raises InvalidInput on some that cannot be written."""
    check_keys(rows)
    if ordered := ordering_needed(checked):
        require_ordering(rows, ordered, RECORD_KEY)
    return rows


def ordering_needed(checked: Checked) -> Sequence[str]:
    """The ordering columns that must have a value in each row of the batch."""
    ordered = checked.operation_rules.combine is Combine.ORDERED and checked.rule.survivor is not Survivor.OLDEST
    return checked.rule.ordering if ordered else ()


def stage_batches(storage: Storage, folder: str, batches: Iterator[pa.RecordBatch], checked: Checked) -> Stage:
    """Stage keyed rows. Raises InvalidInput as `sound_rows`: the stage is gone then."""
    try:
        pieces = stage_rows(storage, f"{folder}/rows.arrow", batches, ordering_needed(checked), 0)
        stage = Stage(storage, folder, tuple(pieces))
        require_sound(stage.measured(), checked.rule.ordering)
    except BaseException:
        storage.delete_tree(folder)
        raise
    return stage


def _write_spilled(job: WriteJob, stage: Stage, phases: Phases) -> tuple[WriteJob, TaskResults]:
    checked, rules = job.checked, job.checked.operation_rules
    partitions = frozenset(stage.measured().rows)
    with phases.time("locate"):
        files = prepared_files(checked, job.state, partitions)
        hits = StagedHits()
        if checked.locates_staged:
            calls = lookup_calls(stage, files.bases)
            costs = _on_threads(staged_lookup(checked, stage), calls, checked.settings.engine.threads)
            hits = staged_hits(stage, calls, enumerate(costs))
        if rules.locate and (not checked.locates_staged or lies_deleted(job.state, files, stage, hits)):
            stage, hits, files = tag_staged(job, stage, files)
        rows = profile(stage.measured(), hits.updates, not rules.delete)
        planned = plan_batch(checked, job.state, files, rows, hits.cost)
    job = announce(job, planned)
    with phases.time("write"):
        work = staged_tasks(stage, planned.plan, hits, rules.delete)
        run = partial(_run_task, stage, task_runner(job, job.spec))
        done = _on_threads(run, work, _threads(checked, work))
    return job, TaskResults.on_driver(done, partitions, planned.index)


def _run_task(stage: Stage, run: TaskRunner, work: tuple[WriteTask, StagedTask]) -> TaskResult:
    task, staged = work
    rows = rows_of(stage.storage, staged)
    return run(task, rows, f"{task.number}-0-0") if rows.num_rows else TaskResult(())


def _threads(checked: Checked, work: Sequence[tuple[WriteTask, StagedTask]]) -> int:
    """Threads whose rows together stay within a few times what a batch in memory may take."""
    engine = checked.settings.engine
    most = engine.threads
    row_bytes = max((sum(p.bytes for p in s.pieces) / sum(p.rows for p in s.pieces) for _, s in work), default=0.0)
    largest = max((task.inserts + task.updates for task, _ in work), default=0) * row_bytes
    return max(1, min(most, int(2 * engine.driver_batch / largest))) if largest else most


def _on_threads(run: Callable[[T], R], work: Sequence[T], threads: int) -> list[R]:
    """What a function makes of each item. The first failure is raised once those that had begun have ended."""
    with ThreadPoolExecutor(threads, thread_name_prefix="hoodie") as pool:
        return list(pool.map(run, work))


def _bulk_batches(checked: Checked, stage: Stage) -> Iterator[pa.RecordBatch]:
    """The rows as they are to be written; where they are sorted or combined, a partition of them at a time."""
    unsorted = checked.settings.write.bulk_sort is BulkInsertSort.NONE
    if unsorted and checked.operation_rules.combine is Combine.ALL:
        for _, batch in read_pieces(stage.storage, stage.pieces):
            yield without_arrivals(batch)
        return
    for _, pieces in sorted(by_partition(stage.pieces).items()):
        rows = pa.Table.from_batches([batch for _, batch in read_pieces(stage.storage, pieces)])
        yield from bulk_rows(checked, rows).to_batches()
