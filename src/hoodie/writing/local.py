"""A write by this process alone: a batch that fits into memory stays there, a larger one goes to files beside it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa

from hoodie.config.options import Options
from hoodie.config.write import BulkInsertSort, WriteOperation
from hoodie.index.contract import ByFile, ByKey
from hoodie.index.pruning import IndexStats
from hoodie.lookup.batch import Batch, locate_by_key, only
from hoodie.lookup.index_choice import index_context, prepare_index
from hoodie.lookup.key_status import KeyStatus, with_statuses
from hoodie.merge.ordering import require_ordering
from hoodie.merge.rules import Survivor
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import WriteTask
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableFiles, TableState
from hoodie.writing.arrow_batch import ArrowRows, check_rows
from hoodie.writing.driver import check_keys, write_on_driver
from hoodie.writing.finish import AfterCommit
from hoodie.writing.index_updates import TaskResult, record_files
from hoodie.writing.job import Checked, WriteJob
from hoodie.writing.operations import Combine
from hoodie.writing.planning import TaskRunner, announce, plan_batch, task_runner
from hoodie.writing.precombine import combine
from hoodie.writing.result import Phases
from hoodie.writing.run import Acquired, CheckedBatch
from hoodie.writing.spilled_tagging import tag_staged
from hoodie.writing.stage import Stage, hits_path, profile, require_sound, staged_tasks
from hoodie.writing.staging import (
    Piece,
    StagedTask,
    by_partition,
    locate_staged,
    read_pieces,
    rows_of,
    stage_rows,
    write_hits,
)
from hoodie.writing.task_results import DRIVER, TaskResults
from hoodie.writing.tasks import write_stream

#: Rows whose key is found, per partition path and file id; where the hits of each file group are staged; the cost.
Located = tuple[dict[str, dict[str, int]], dict[FileGroupId, str], IndexStats]

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
        checked = job.checked
        if checked.operation_rules.bulk:
            return _write_bulk(job, self.staged, phases)
        return _write_spilled(job, self.staged, phases)

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
        pieces = stage_rows(storage, f"{folder}/rows.arrow", batches, ordering_needed(checked))
        stage = Stage(storage, folder, tuple(pieces))
        require_sound(stage.measured(), checked.rule.ordering)
    except BaseException:
        storage.delete_tree(folder)
        raise
    return stage


def _write_spilled(job: WriteJob, stage: Stage, phases: Phases) -> tuple[WriteJob, TaskResults]:
    checked, measured = job.checked, stage.measured()
    rules, settings = checked.operation_rules, checked.settings
    partitions = frozenset(measured.rows)
    with phases.time("locate"):
        needed = rules.locate or settings.sizing.small_limit > 0
        files = checked.files(job.state, partitions) if needed else TableFiles()
        prepare_index(checked.index, job.state, partitions, files if needed else None)
        updates: dict[str, dict[str, int]] = {}
        hits: dict[FileGroupId, str] = {}
        cost = IndexStats()
        tagged = rules.locate and not _by_partition(checked)
        if tagged:
            again = tag_staged(job, stage, files)
            stage, files, measured = again.stage, again.files, again.stage.measured()
            updates, hits, cost = again.updates, again.hits, again.cost
        elif rules.locate and isinstance(checked.index.look_up, ByFile):
            updates, hits, cost = _locate(job, stage, files)
        elif rules.locate:
            (updates, hits, cost), files = _locate_by_key(job, stage, files)
        planned = plan_batch(checked, job.state, files, profile(measured, updates, not rules.delete), cost)
    job = announce(job, planned)
    with phases.time("write"):
        work = staged_tasks(stage, planned.plan, hits, rules.delete)
        run = partial(_run_task, stage, task_runner(job, job.spec), checked.keeps_statuses and not tagged)
        done = _on_threads(run, work, _threads(checked, work))
    stats = [stat for task in done for stat in task.stats]
    later = tuple(task.later for task in done if task.later is not None)
    return job, TaskResults(stats, partitions, planned.index, DRIVER, later)


def _locate(job: WriteJob, stage: Stage, files: TableFiles) -> Located:
    """Look the keys up in the base files of their partitions."""
    look_up = job.checked.index.look_up
    assert isinstance(look_up, ByFile)
    pieces = by_partition(stage.pieces)
    bases = [(base, pieces[path]) for path, part in files.bases.items() if path in pieces for base in part]
    calls = [(number, base, part) for number, (base, part) in enumerate(bases)]

    def find(call: tuple[int, BaseFile, tuple[Piece, ...]]) -> IndexStats:
        number, base, part = call
        to = hits_path(stage.folder, number)
        return locate_staged(
            job.spec.storage,
            base,
            (stage.storage, part),
            look_up.pruned,
            job.checked.settings.bloom,
            to,
            keeps_positions=job.checked.keeps_positions,
        )

    costs = _on_threads(find, calls, job.checked.settings.engine.driver_threads or os.cpu_count() or 1)
    updates: dict[str, dict[str, int]] = {}
    hits: dict[FileGroupId, str] = {}
    for (number, base, _), cost in zip(calls, costs, strict=True):
        if cost.hits:
            updates.setdefault(base.group.partition, {})[base.group.file_id] = cost.hits
            hits[base.group] = hits_path(stage.folder, number)
    return updates, hits, sum(costs, IndexStats())


def _locate_by_key(job: WriteJob, stage: Stage, files: TableFiles) -> tuple[Located, TableFiles]:
    """As `_locate`, by an index that is asked about keys: those of one partition at a time are in memory. And what the
    write sees of the file groups that it names."""
    checked, look_up = job.checked, job.checked.index.look_up
    assert isinstance(look_up, ByKey)
    pieces = by_partition(stage.pieces)
    tag = look_up.tagger(index_context(job.state, tuple(pieces), files))
    updates: dict[str, dict[str, int]] = {}
    hits: dict[FileGroupId, str] = {}
    total = IndexStats()
    for partition, part in pieces.items():
        batches = [batch for _, batch in read_pieces(stage.storage, part, [RECORD_KEY, PARTITION_PATH])]
        keys = pa.Table.from_batches(batches)
        located = locate_by_key(Batch(keys, (partition,), np.array([0, len(keys)])), tag)
        files = checked.files_of_hits(job.state, files, located.places)
        if look_up.names_new and checked.operation_rules.delete:
            located = only(located, files.groups)  # what is not there yet holds nothing to delete
        total += located.stats
        for group, rows in located.by_place():
            updates.setdefault(group.partition, {})[group.file_id] = len(rows)
            hits[group] = hits_path(stage.folder, len(hits))
            write_hits(stage.storage, hits[group], rows)
    return (updates, hits, total), files


def _by_partition(checked: Checked) -> bool:
    """Whether keys can be looked up a partition at a time. A global index may send rows to other partitions, and an
    index that records writes wants to know of each row whether its key was there.

    An index that names file groups for new keys, too, does not tell them from others: all count as found.
    """
    index = checked.index
    names_all = isinstance(index.look_up, ByKey) and index.look_up.names_new and index.record_writes is None
    return not index.is_global and (names_all or not checked.keeps_statuses)


def _run_task(stage: Stage, run: TaskRunner, all_found: bool, work: tuple[WriteTask, StagedTask]) -> TaskResult:
    task, staged = work
    rows = rows_of(stage.storage, staged)
    if all_found:
        rows = with_statuses(rows, np.full(rows.num_rows, KeyStatus.UPDATE, np.int8))
    return run(task, rows, f"{task.number}-0-0") if rows.num_rows else TaskResult(())


def _threads(checked: Checked, work: Sequence[tuple[WriteTask, StagedTask]]) -> int:
    """Threads whose rows together stay within a few times what a batch in memory may take."""
    engine = checked.settings.engine
    most = engine.driver_threads or os.cpu_count() or 1
    row_bytes = max((sum(p.bytes for p in s.pieces) / sum(p.rows for p in s.pieces) for _, s in work), default=0.0)
    largest = max((task.inserts + task.updates for task, _ in work), default=0) * row_bytes
    return max(1, min(most, int(2 * engine.driver_batch / largest))) if largest else most


def _on_threads(run: Callable[[T], R], work: Sequence[T], threads: int) -> list[R]:
    """What a function makes of each item. The first failure is raised once those that had begun have ended."""
    with ThreadPoolExecutor(threads, thread_name_prefix="hoodie") as pool:
        return list(pool.map(run, work))


def _write_bulk(job: WriteJob, stage: Stage, phases: Phases) -> tuple[WriteJob, TaskResults]:
    job = job.with_plan(None)
    with phases.time("write"):
        stats = write_stream(job.spec, job.checked.rule, _bulk_batches(job.checked, stage), "0-0-0")
        told = record_files(job.spec.storage, job.spec.instant, stats, job.checked.index.record_writes)
    return job, TaskResults(stats, frozenset(stage.measured().rows), IndexStats(), DRIVER, tuple(told))


def _bulk_batches(checked: Checked, stage: Stage) -> Iterator[pa.RecordBatch]:
    """The rows as they are to be written; where they are sorted or combined, a partition of them at a time."""
    rules = checked.operation_rules
    sort = checked.settings.write.bulk_sort is not BulkInsertSort.NONE
    if not sort and rules.combine is Combine.ALL:
        for _, batch in read_pieces(stage.storage, stage.pieces):
            yield batch
        return
    for _, pieces in sorted(by_partition(stage.pieces).items()):
        rows = pa.Table.from_batches([batch for _, batch in read_pieces(stage.storage, pieces)])
        rows = combine(rows, checked.rule, rules, checked.key)
        if sort:
            rows = rows.sort_by([(PARTITION_PATH, "ascending"), (RECORD_KEY, "ascending")])
        yield from rows.to_batches()
