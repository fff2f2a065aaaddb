"""Running a compaction: logs merged into base files, one file slice a task, and published together.

Source: docs/format/table-services.md 5.
"""

import logging
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain

import pyarrow as pa

from hoodie.commit.lost import refuse_lost
from hoodie.display.progress import progress
from hoodie.errors import DamagedLog, HoodieError, PlanInUse
from hoodie.index.pruning import IndexStats
from hoodie.locks import Lock
from hoodie.model.commit import WriteStat
from hoodie.reading.slices.base_file_reader import footer_of
from hoodie.reading.slices.reader import SliceMerge, slice_threads
from hoodie.services.compaction.claim import claimed, left_running, runs_unclaimed
from hoodie.services.compaction.job import (
    Compaction,
    CompactionJob,
    CompactionTask,
    RunTasks,
    begin_compaction,
    lost_rows,
)
from hoodie.services.compaction.publish import give_up_compaction, publish_compaction
from hoodie.services.compaction.schedule import compactable_state, find_compaction, is_pending_plan
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, in_threads, redacted_path
from hoodie.table.partition_metadata import ensure_partition
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.planning import DRIVER, EXECUTORS, rows_and_bytes
from hoodie.writing.result import Phases, WriteResult, failures_heard, notify_committed
from hoodie.writing.tasks.base_file import BaseFileWriter

_log = logging.getLogger("hoodie.services")


@typed_errors()
def compact(
    storage: Storage, settings: Settings, instant: str | None = None, run: RunTasks | None = None
) -> WriteResult | None:
    """Run a pending compaction from the start, whatever earlier runs did.

    The plan is claimed first: only one process runs it. A claim ends with its holder, or expires so many seconds
    after its holder died (`hoodie.write.lock.storage.validity.timeout.secs`).

    instant  None: the oldest pending one that is not running, be it here or, as far as its files tell, by Hudi
    run      None: threads of this process
    returns  None when no instant was given and there is none to run
    Raises   InstantNotFound; InvalidPlan when files of the plan are missing; PlanInUse when another process runs it;
             WriteConflict, LockLost when another process considered this run dead; LockTimeout; CorruptFile;
             UnsupportedTable. The plan stays
    """
    phases = Phases()
    with failures_heard(storage, "COMPACT"):
        result = _compact(storage, settings, instant, run, phases)
    return None if result is None else replace(result, seconds=phases.whole())


def _compact(
    storage: Storage, settings: Settings, instant: str | None, run: RunTasks | None, phases: Phases
) -> WriteResult | None:
    with phases.time("begin"):
        state = compactable_state(storage, settings)
    if instant is not None:
        find_compaction(state, instant)
        with claimed(storage, settings, instant) as claim:
            return _carry_out(state, settings, instant, run, claim, phases)
    for pending in state.timeline.pending_compactions:
        if runs_unclaimed(state, pending):
            refuse_lost(state, pending)
            _log.warning("%s: %s", state.config.name, left_running(pending, f"compact({pending.requested!r})"))
            continue
        with suppress(PlanInUse), claimed(storage, settings, pending.requested) as claim:
            if is_pending_plan(storage, pending, state.layout):
                return _carry_out(state, settings, pending.requested, run, claim, phases)
    return None


def _carry_out(
    state: TableState, settings: Settings, instant: str, run: RunTasks | None, claim: Lock, phases: Phases
) -> WriteResult:
    storage = state.storage
    with phases.time("begin"):
        job = begin_compaction(storage, settings, instant)
    assert job is not None  # an instant was named
    _log.info("%s: compaction %s begins: %d file slices", state.config.name, instant, len(job.tasks))
    with ExitStack() as publishing:
        with phases.time("write"), _given_up_on_error(job, claim):
            stats = list((run or run_on_driver)(job))
            lock = publishing.enter_context(settings.writers.lock_on(storage))
            claim.check()
            lock.check()
        with phases.time("commit"):
            metadata = publish_compaction(job, stats)
    route = DRIVER if run is None or job.on_driver else EXECUTORS
    result = WriteResult(
        instant,
        metadata,
        IndexStats(),
        route,
        phases.whole(),
        table=state.config.name,
        path=redacted_path(storage.root),
    )
    notify_committed(result)
    return result


@contextmanager
def _given_up_on_error(job: CompactionJob, claim: Lock) -> Iterator[None]:
    """A failed or interrupted run leaves its plan and no files; if removing them fails too the next run does it."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        _log.info("compaction %s failed with %s; its plan stays", job.instant.requested, type(error).__name__)
        try:
            give_up_compaction(job, claim)
        except (HoodieError, OSError) as second:
            error.add_note(f"Removing the files of this run failed too; the next run removes them. ({second})")
        raise


def run_on_driver(job: CompactionJob, threads: int = 0) -> list[WriteStat | None]:
    """Run the tasks in threads, which share the memory for rows of logs. The first failure is raised once the
    tasks that had begun have ended.

    threads  0: as many as read the slices best
    """
    slices = [task.slice for task in job.tasks]
    count = min(threads or slice_threads(job.storage, slices), max(1, len(slices)))
    reader = job.compaction.reader
    options = replace(reader.options, max_bytes=max(1, reader.options.max_bytes // count))
    shared = replace(job.compaction, reader=replace(reader, options=options))
    with progress("compaction", len(job.tasks), show=job.show_progress) as advance:

        def run_one(task: CompactionTask) -> WriteStat | None:
            stat = run_operation(shared, task)
            advance(1, *rows_and_bytes([] if stat is None else [stat]))
            return stat

        return in_threads(run_one, job.tasks, count)


def _see_damage(logs: Mapping[str, Sequence[tuple[int, int]]], damage: DamagedLog) -> None:
    """Raises CorruptFile where a log lost rows that a commit published; warns of what a dead writer left."""
    if not damage.instant and any(begin <= damage.offset < end for begin, end in logs.get(damage.path, ())):
        raise lost_rows(damage.path, damage.problem, damage.offset)
    warnings.warn(damage, stacklevel=3)


def run_operation(compaction: Compaction, task: CompactionTask, attempt: int = 0) -> WriteStat | None:
    """Merge the logs of a file slice with its base file into the base file of the plan's instant.

    Rows keep their meta columns, except the file name. In memory are the rows of the logs (see `MergeOptions`), a batch
    of the base file and a row group.

    attempt  a number that other attempts of the task in this run do not have
    returns  None when no block of the logs counts and there is no base file: then there is none to write
    """
    started = time.monotonic()
    spec, slice_ = compaction.spec, task.slice
    base, no_keys = slice_.base, pa.array([], pa.string())
    merge = SliceMerge(compaction.reader, slice_, on_damage=partial(_see_damage, compaction.logs))
    with closing(merge.batches()) as batches:
        first = next(batches, None)  # the logs have been read by now
        scanned = time.monotonic()
        if base is None and merge.report.merged == 0:
            return None
        footer = footer_of(spec.storage, base) if base else None
        if base:  # nobody has looked yet whether the partition has lost its metafile; without a base the writer does
            ensure_partition(spec.storage, slice_.group.partition, spec.instant)
        with BaseFileWriter(
            spec,
            slice_.group,
            f"{task.number}-{compaction.run}-{attempt}",
            base=footer,
            base_path=base.path if base else "",
            expected_rows=(footer.rows if footer else 0) + merge.keys,
        ) as writer:
            for rows in chain(() if first is None else (first,), batches):
                writer.append(rows, None if merge.inserted else no_keys)
    report = merge.report
    millis = int((time.monotonic() - scanned) * 1000)
    return replace(
        writer.stat(),
        prev_commit=base.instant if base else "null",
        prev_base_file=base.name if base else "",
        num_deletes=merge.deleted,
        num_updates=merge.updated,
        num_inserts=merge.inserted,
        log_records=merge.records,
        log_files_compacted=len(slice_.logs),
        log_size_compacted=slice_.log_bytes,
        updated_records_compacted=merge.keys,
        # Corrupt blocks are among those rolled back, if a rollback came after them.
        log_blocks=report.merged + report.hidden + report.rollbacks + max(report.rolled_back, report.corrupt),
        corrupt_log_blocks=report.corrupt,
        rollback_blocks=report.rollbacks,
        scan_time=int((scanned - started) * 1000),
        upsert_time=millis if base else 0,
        create_time=0 if base else millis,
    )
