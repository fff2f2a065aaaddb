"""A batch in memory, written by threads of this process: each task rewrites one file group."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.display.progress import Advance
from hoodie.index.contract import ByFile, TagKeys
from hoodie.index.pruning import SEVERAL
from hoodie.lookup.batch import (
    Batch,
    KeyLocations,
    assign,
    locate,
    locate_by_key,
    only,
    order_by_partition,
    unlocated,
    without_rows,
    workload_profile,
)
from hoodie.lookup.context import index_context
from hoodie.lookup.stored_footers import stored_footers
from hoodie.merge.rows import (
    KEY_STATUS,
    NOT_INSERTED,
    NOT_MATCHED,
    KeyStatus,
    KeyStatuses,
    Positions,
    actions_of,
    take_column,
    with_positions,
    with_statuses,
)
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import RememberingStorage
from hoodie.table.settings import Settings
from hoodie.table.state import TableFiles
from hoodie.writing.batch.arrow import partitions_of
from hoodie.writing.batch.duplicates import combine
from hoodie.writing.batch.stage import Stage
from hoodie.writing.index_updates import TaskResult, record_files
from hoodie.writing.operations import Combine
from hoodie.writing.planning import DRIVER, BatchPlan, HeldBatch, TaskReports, plan_batch, rows_and_bytes, task_runner
from hoodie.writing.relocation import resolve_locations, with_stored
from hoodie.writing.tasks.run import write_stream
from hoodie.writing.write import Write

T = TypeVar("T")

_PLACE = "_hoodie_place"


@dataclass(frozen=True, slots=True)
class TaggedBatch:
    """A batch in memory whose keys are looked up. Rows that are neither located nor inserted have no effect.

    insert  bool[n], which rows are new to the table
    files   what a writer sees of the partitions that the rows, and their keys, are in
    """

    batch: Batch
    located: KeyLocations
    insert: npt.NDArray[np.bool_]
    files: TableFiles


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A batch in memory with the plan for it.

    storage  the table's, which remembers the files in which keys were found: these are rewritten
    """

    planned: BatchPlan
    tagged: TaggedBatch
    storage: Storage

    def run(self, write: Write, advance: Advance) -> TaskReports:
        """The first failure is raised once the tasks that had begun have ended."""
        plan, tagged = self.planned.plan, self.tagged
        # The batch is combined: no task has to look for rows of one key again.
        once = replace(write, operation_rules=replace(write.operation_rules, combine=Combine.ALL))
        run, rows = task_runner(once, replace(write.spec(), storage=self.storage)), tagged.batch.rows

        def run_one(numbered: tuple[int, pa.Table]) -> TaskResult:
            number, part = numbered
            result = run(plan.tasks[number], part, f"{number}-0-0")
            advance(1, *rows_and_bytes(result.stats))
            return result

        parts = (
            (number, _at(rows, positions))
            for number, positions in assign(tagged.batch, tagged.located, tagged.insert, plan)
        )
        with thread_pool(write.settings, len(plan.tasks)) as pool:
            return TaskReports.of(pool.map(run_one, parts))

    def release(self) -> None:
        pass


@dataclass(frozen=True)
class MemoryBatch:
    """Keyed rows in memory, written by threads.

    spread  as of `HeldBatch`
    """

    rows: pa.Table
    spread: Callable[[Write], HeldBatch] | None = None
    staged: Stage | None = None
    route: str = DRIVER

    @cached_property
    def partitions(self) -> frozenset[str]:
        return partitions_of(self.rows)

    def locate(self, write: Write, files: TableFiles) -> MemoryPlan:
        remembers = write
        if write.storage.remote:
            remembers = replace(write, state=replace(write.state, storage=RememberingStorage(write.storage)))
        with thread_pool(write.settings, sum(map(len, files.bases.values()))) as pool:
            tag = tagger(remembers, self.partitions, files)
            tagged = tag_on_driver(remembers, self.rows, files, pool, tag)
        profiled = workload_profile(tagged.batch, tagged.located, tagged.insert)
        planned = plan_batch(write, tagged.files, profiled, tagged.located.stats)
        return MemoryPlan(planned, tagged, remembers.storage)

    def stream(self, write: Write) -> TaskReports:
        return write_bulk(write, iter(bulk_rows(write, self.rows).to_batches()))

    def release(self) -> None:
        pass


def _at(rows: pa.Table, positions: Positions) -> pa.Table:
    """The rows at some positions, each once, where they lie if they are side by side."""
    start, end = (int(positions[0]), int(positions[-1]) + 1) if len(positions) else (0, 0)
    if end - start == len(positions):
        return rows.slice(start, end - start)
    return rows.take(pa.array(positions))


class _ThisThread(Executor):
    """Runs calls at once, in the thread that makes them."""

    def submit(self, call: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(call(*arguments, **named))
        except BaseException as error:
            future.set_exception(error)
        return future


def thread_pool(settings: Settings, calls: int = 2) -> Executor:
    """Threads for so many calls. A single one stays in its thread: memory that Arrow keeps for a thread is new to each
    further one, and to take it from the system costs a small write a fifth of its time."""
    if calls < 2:
        return _ThisThread()
    return ThreadPoolExecutor(settings.engine.threads, thread_name_prefix="hoodie")


def tagger(write: Write, partitions: Iterable[str], files: TableFiles) -> TagKeys | None:
    """What asks the index about keys of a batch, one for all of it; None: they are not looked up by key."""
    look_up = write.index.look_up
    if not write.operation_rules.locate or isinstance(look_up, ByFile):
        return None
    return look_up.tagger(index_context(write.state, sorted(partitions), files))


def tag_on_driver(write: Write, rows: pa.Table, files: TableFiles, pool: Executor, tag: TagKeys | None) -> TaggedBatch:
    """Combine duplicates, and look keys up.

    rows    the user's columns with `_hoodie_record_key` and `_hoodie_partition_path`; of a batch, or of a part of it
    files   what a writer sees: `Write.files_of` of the batch's partitions
    tag     `tagger` of the batch
    """
    operation_rules, rule = write.operation_rules, write.rule
    batch = order_by_partition(combine(rows, rule, operation_rules, write.key))
    statuses: KeyStatuses | None = None
    if not operation_rules.locate:
        located = unlocated()
    else:
        located, files = _locate(write, batch, files, pool, tag)
        if write.index.is_global or (write.by_file and not write.is_certain and located.ambiguous):
            batch, located, statuses = _resolve(write, batch, located, pool)
    insert = located.inserts(len(batch.rows))
    actions = actions_of(batch.rows)
    if actions is not None and np.isin(actions, NOT_MATCHED).any():
        located = without_rows(located, np.isin(actions, NOT_MATCHED))
    if operation_rules.delete:
        insert[:] = False
    elif operation_rules.locate:  # the delete of a key that is not there has no effect
        insert &= ~rule.is_delete(batch.rows)
    if actions is not None:
        insert &= ~np.isin(actions, NOT_INSERTED)
    if write.keeps_statuses:
        if statuses is None:
            statuses = np.where(located.inserts(len(batch.rows)), KeyStatus.INSERT, KeyStatus.UPDATE).astype(np.int8)
        batch = replace(batch, rows=with_statuses(batch.rows, statuses))
    if write.keeps_positions and located.stored is not None:
        batch = replace(batch, rows=with_positions(batch.rows, located.stored_positions(len(batch.rows))))
    return TaggedBatch(batch, located, insert, files)


def _locate(
    write: Write, batch: Batch, files: TableFiles, pool: Executor, tag: TagKeys | None
) -> tuple[KeyLocations, TableFiles]:
    """Where the keys are, and what a writer sees of the partitions that they are in."""
    if tag is None:
        bloom, stored = write.settings.bloom, None
        if bloom.use_metadata and isinstance(write.index.look_up, ByFile) and write.index.look_up.pruned:
            stored = stored_footers(write.state, [base for part in files.bases.values() for base in part])
        return locate(write.storage, batch, files.bases, write.index, bloom, pool, stored), files
    located = locate_by_key(batch, tag)
    files = write.files_of_hits(files, located.places)
    if write.names_new and write.operation_rules.delete:
        # A key to be deleted whose file group is not there is not there either.
        located = only(located, files.groups)
    return located, files


def _resolve(
    write: Write, batch: Batch, located: KeyLocations, pool: Executor
) -> tuple[Batch, KeyLocations, KeyStatuses]:
    """The batch with its rows where they go: those that a global index finds in another partition, or whose key is in
    several file groups."""
    how, certain = write.relocation_rule, write.is_certain
    hits = with_stored(write.state, batch.rows, located, how, certain, write.settings.reading, pool)
    resolved = resolve_locations(batch.rows, hits, how)
    carried = with_statuses(resolved.rows, resolved.statuses).append_column(
        _PLACE, pa.array(resolved.groups, pa.int64())
    )
    ordered = order_by_partition(carried)
    groups = ordered.rows.column(_PLACE).to_numpy()
    rows, statuses = take_column(ordered.rows.drop_columns([_PLACE]), KEY_STATUS)
    assert statuses is not None
    at = np.flatnonzero(groups >= 0)
    stored = None if located.stored is None else np.full(len(at), SEVERAL, np.int64)
    located = replace(located, rows=at, groups=groups[at].astype(np.int64), stored=stored)
    return replace(ordered, rows=rows), located, statuses


def bulk_rows(write: Write, rows: pa.Table) -> pa.Table:
    """The rows of a bulk insert as they are written: combined and sorted as options say."""
    rows = combine(rows, write.rule, write.operation_rules, write.key)
    if not write.settings.write.bulk_sort.by_key:
        return rows
    return rows.sort_by([(PARTITION_PATH, "ascending"), (RECORD_KEY, "ascending")])


def write_bulk(write: Write, batches: Iterator[pa.RecordBatch]) -> TaskReports:
    """Write keyed rows into new file groups as they come. Nothing is published yet."""
    key_columns, threads = write.operation_rules.key_columns, write.settings.engine.threads
    stats = write_stream(write.spec(), write.rule, batches, "0-0-0", key_columns, threads)
    return TaskReports(stats, tuple(record_files(write.storage, write.begun.time, stats, write.index.record_writes)))
