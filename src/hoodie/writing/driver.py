"""A write by threads of this process: the whole batch is here as Arrow, and each task rewrites one file group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config.write import BulkInsertSort
from hoodie.display.progress import progress
from hoodie.errors import InvalidInput
from hoodie.index.contract import ByFile, TagKeys
from hoodie.index.pruning import ABSENT, IndexStats
from hoodie.lookup.batch import (
    Batch,
    KeyLocations,
    assign,
    locate,
    locate_by_key,
    only,
    order_by_partition,
    profile,
    unlocated,
    without_rows,
)
from hoodie.lookup.index_choice import index_context, prepare_index
from hoodie.lookup.key_status import KeyStatus, KeyStatuses, take_statuses, with_statuses
from hoodie.lookup.row_positions import with_positions
from hoodie.merge.row_action import NOT_INSERTED, NOT_MATCHED, actions_of
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import WritePlan
from hoodie.storage.remembering import remembering
from hoodie.table.partition_metadata import require_partition_paths
from hoodie.table.settings import Settings
from hoodie.table.state import TableFiles
from hoodie.writing.base_file_writer import WriteSpec
from hoodie.writing.index_updates import TaskResult, record_files
from hoodie.writing.planning import BatchPlan, announce, plan_batch, shows_progress, task_runner, what_runs, written
from hoodie.writing.precombine import combine
from hoodie.writing.relocation import resolve_locations, with_stored
from hoodie.writing.result import Phases
from hoodie.writing.task_results import DRIVER, TaskResults
from hoodie.writing.tasks import write_stream
from hoodie.writing.write import Write

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
class DriverPlan:
    """A batch in memory with the plan for it."""

    planned: BatchPlan
    tagged: TaggedBatch


def thread_pool(settings: Settings) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(settings.engine.threads, thread_name_prefix="hoodie")


def partitions_of(rows: pa.Table) -> frozenset[str]:
    """The partition paths of keyed rows."""
    return frozenset(rows.column(PARTITION_PATH).unique().to_pylist())


def fits_driver(write: Write, plan: WritePlan) -> bool:
    """Whether driver threads are to carry a plan out, by the bytes of base files that it reads.

    An index that finds keys by itself, in whatever partition, says only with the plan how much that is.
    """
    return not write.operation_rules.match or plan.bytes_read <= write.settings.engine.driver_rewrite


def check_keys(rows: pa.Table) -> None:
    """Refuse rows without a record key, a partition path, or a folder to be in. Raises InvalidInput saying how many."""
    refuse_bad_keys(rows.column(RECORD_KEY).null_count, rows.column(PARTITION_PATH).null_count)
    require_partition_paths(partitions_of(rows))


def refuse_bad_keys(keys: int, paths: int) -> None:
    """Raises InvalidInput unless both counts of bad rows are zero."""
    if keys:
        raise InvalidInput(
            f"{keys} rows have a record key that is null or empty. Filter them out, or fill the key columns."
        )
    if paths:
        raise InvalidInput(
            f"{paths} rows have a partition value that cannot be read as the time it should be; see the formats in "
            "hoodie.keygen.timebased.input.dateformat."
        )


def plan_on_driver(write: Write, rows: pa.Table, files: TableFiles, pool: ThreadPoolExecutor) -> DriverPlan:
    """Decide which task each row goes to. Arguments as of `tag_on_driver`."""
    tagged = tag_on_driver(write, rows, files, pool, tagger(write, partitions_of(rows), files))
    profiled = profile(tagged.batch, tagged.located, tagged.insert)
    return DriverPlan(plan_batch(write, tagged.files, profiled, tagged.located.stats), tagged)


def tagger(write: Write, partitions: Iterable[str], files: TableFiles) -> TagKeys | None:
    """What asks the index about keys of a batch, one for all of it; None: they are not looked up by key."""
    look_up = write.index.look_up
    if not write.operation_rules.locate or isinstance(look_up, ByFile):
        return None
    return look_up.tagger(index_context(write.state, sorted(partitions), files))


def tag_on_driver(
    write: Write, rows: pa.Table, files: TableFiles, pool: ThreadPoolExecutor, tag: TagKeys | None
) -> TaggedBatch:
    """Combine duplicates, and look keys up.

    rows    the user's columns with `_hoodie_record_key` and `_hoodie_partition_path`; of a batch, or of a part of it
    files   what a writer sees: `Write.files_of` of the batch's partitions
    tag     `tagger` of the batch
    """
    operation_rules, rule = write.operation_rules, write.rule
    batch = order_by_partition(combine(rows, rule, operation_rules, write.key))
    located = unlocated()
    statuses: KeyStatuses | None = None
    if operation_rules.locate:
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
    write: Write, batch: Batch, files: TableFiles, pool: ThreadPoolExecutor, tag: TagKeys | None
) -> tuple[KeyLocations, TableFiles]:
    """Where the keys are, and what a writer sees of the partitions that they are in."""
    if tag is None:
        return locate(write.storage, batch, files.bases, write.index, write.settings.bloom, pool), files
    located = locate_by_key(batch, tag)
    files = write.files_of_hits(files, located.places)
    if write.names_new and write.operation_rules.delete:
        # A key to be deleted whose file group is not there is not there either.
        located = only(located, files.groups)
    return located, files


def _resolve(
    write: Write, batch: Batch, located: KeyLocations, pool: ThreadPoolExecutor
) -> tuple[Batch, KeyLocations, KeyStatuses]:
    """The batch with its rows where they go: those that a global index finds in another partition, or whose key is in
    several file groups."""
    how, certain = write.relocation_rule, write.is_certain
    hits = with_stored(write.state, batch.rows, located, how, certain, write.settings.given, pool)
    resolved = resolve_locations(batch.rows, hits, how)
    carried = with_statuses(resolved.rows, resolved.statuses).append_column(
        _PLACE, pa.array(resolved.groups, pa.int64())
    )
    ordered = order_by_partition(carried)
    groups = ordered.rows.column(_PLACE).to_numpy()
    rows, statuses = take_statuses(ordered.rows.drop_columns([_PLACE]))
    assert statuses is not None
    at = np.flatnonzero(groups >= 0)
    stored = None if located.stored is None else np.full(len(at), ABSENT, np.int64)
    located = replace(located, rows=at, groups=groups[at].astype(np.int64), stored=stored)
    return replace(ordered, rows=rows), located, statuses


def write_on_driver(
    write: Write, rows: pa.Table, phases: Phases, hand_over: Callable[[], tuple[Write, TaskResults]] | None = None
) -> tuple[Write, TaskResults]:
    """Write the keyed rows as data files. Nothing is published yet.

    hand_over  writes them otherwise: called in place of a plan that is too large for driver threads (`fits_driver`);
               None: they carry out any
    """
    write = write
    partitions = partitions_of(rows)
    if write.operation_rules.bulk:
        with phases.time("plan"):
            rows = bulk_rows(write, rows)
        return write_bulk(write, iter(rows.to_batches()), partitions, phases)
    # Rewritten is a file in which a key was found.
    remembers = replace(write, state=replace(write.state, storage=remembering(write.storage)))
    with thread_pool(write.settings) as pool:
        with phases.time("locate"):
            found = plan_on_driver(remembers, rows, prepared_files(remembers, partitions), pool)
        if hand_over is not None and not fits_driver(write, found.planned.plan):
            return hand_over()
        with phases.time("plan"):
            write = announce(write, found.planned)
        with phases.time("write"):
            done = _run(write, remembers.spec(), found, pool)
    return write, TaskResults.on_driver(done, partitions, found.planned.index)


def prepared_files(write: Write, partitions: frozenset[str]) -> TableFiles:
    """What the write sees of the partitions of its batch, as far as its plan asks. The index makes ready for them."""
    needed = write.operation_rules.locate or write.settings.sizing.small_limit > 0
    files = write.files_of(partitions) if needed else TableFiles()
    prepare_index(write.index, write.state, partitions, files if needed else None)
    return files


def bulk_rows(write: Write, rows: pa.Table) -> pa.Table:
    """The rows of a bulk insert as they are written: combined and sorted as options say."""
    rows = combine(rows, write.rule, write.operation_rules, write.key)
    if write.settings.write.bulk_sort is BulkInsertSort.NONE:
        return rows
    return rows.sort_by([(PARTITION_PATH, "ascending"), (RECORD_KEY, "ascending")])


def write_bulk(
    write: Write, batches: Iterator[pa.RecordBatch], partitions: frozenset[str], phases: Phases
) -> tuple[Write, TaskResults]:
    """Write keyed rows into new file groups as they come. Nothing is published yet."""
    with phases.time("plan"):
        write = write.with_plan(None)
    with phases.time("write"):
        stats = write_stream(write.spec(), write.rule, batches, "0-0-0")
        told = record_files(write.storage, write.begun.time, stats, write.index.record_writes)
    return write, TaskResults(stats, partitions, IndexStats(), DRIVER, tuple(told))


def _run(write: Write, spec: WriteSpec, found: DriverPlan, pool: ThreadPoolExecutor) -> list[TaskResult]:
    """Run the tasks. The first failure is raised once the tasks that had begun have ended."""
    plan, tagged, run = found.planned.plan, found.tagged, task_runner(write, spec)
    rows = tagged.batch.rows
    with progress(what_runs(write), len(plan.tasks), show=shows_progress(write)) as advance:

        def run_one(numbered: tuple[int, pa.Table]) -> TaskResult:
            number, part = numbered
            done = run(plan.tasks[number], part, f"{number}-0-0")
            advance(1, *written(done.stats))
            return done

        parts = (
            (number, rows if len(positions) == len(rows) else rows.take(pa.array(positions)))
            for number, positions in assign(tagged.batch, tagged.located, tagged.insert, plan)
        )
        return list(pool.map(run_one, parts))
