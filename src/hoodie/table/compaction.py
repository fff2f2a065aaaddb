"""Running a compaction: logs merged into base files, one file slice a task, and published together.

Source: spec/table-services.md 5.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from hoodie.errors import HoodieError, InstantNotFound, InvalidPlan, WriteConflict
from hoodie.formats.avro_schema import to_avro
from hoodie.formats.commit_json import encode_commit
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.schema import with_meta_fields
from hoodie.plan.compaction import problems
from hoodie.plan.compaction_strategies import log_bytes
from hoodie.storage.protocol import Storage, remove_with_temporaries, split
from hoodie.table.base_file import BaseFileWriter, WriteSpec
from hoodie.table.compaction_plan import (
    PlanFiles,
    compactable_state,
    find_compaction,
    look_up,
    marked_files,
    require_not_published,
    take_back,
)
from hoodie.table.log_headers import find_blocks
from hoodie.table.log_reader import SliceMerge, SliceReader, slice_reader
from hoodie.table.lookup import footer_of
from hoodie.table.markers import delete_markers
from hoodie.table.near import NEAR
from hoodie.table.result import Phases, WriteResult
from hoodie.table.semantics import Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.load import read_commit
from hoodie.timeline.transition import complete, to_inflight
from hoodie.view.load import data_files, list_partitions


@dataclass(frozen=True, slots=True)
class Compaction:
    """What all operations of a run need; pickles to executors.

    run  a number that other runs of the same plan do not have: part of the names of its files
    """

    spec: WriteSpec
    reader: SliceReader
    run: int


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One operation of a plan."""

    number: int
    slice: FileSlice


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """A compaction whose run has begun. Readers see nothing of it before `publish`."""

    compaction: Compaction
    tasks: tuple[CompactionTask, ...]
    instant: Instant
    extra: Mapping[str, str]

    @property
    def storage(self) -> Storage:
        return self.compaction.spec.storage


#: Carries out the tasks of a job: their statistics, None for one without rows.
RunTasks = Callable[[CompactionJob], Iterable[WriteStat | None]]


def compact(
    storage: Storage, options: Mapping[str, str], instant: str | None = None, run: RunTasks | None = None
) -> WriteResult | None:
    """Carry a pending compaction out, from the start, whatever became of earlier runs.

    instant  None: the oldest pending one
    run      None: threads of this process
    returns  None when no instant was given and none is pending
    Raises   InstantNotFound; InvalidPlan when files of the plan are missing; WriteConflict when another process runs
             it; CorruptFile; UnsupportedTable. The plan stays
    """
    phases = Phases()
    with phases.time("begin"):
        job = begin(storage, options, instant)
    if job is None:
        return None
    try:
        with phases.time("write"):
            stats = list((run or run_near)(job))
    except Exception as error:
        try:
            _give_up(job)
        except (HoodieError, OSError) as second:
            error.add_note(f"Removing the files of this run failed, too; the next run will. ({second})")
        raise
    with phases.time("commit"):
        metadata = publish(job, stats)
    return WriteResult(job.instant.requested, metadata, IndexStats(), NEAR if run is None else "spread", phases.seconds)


def _give_up(job: CompactionJob) -> None:
    try:
        take_back(job.storage, job.instant)
    except WriteConflict:  # another run has published: what readers see stays
        _discard(job)


def begin(storage: Storage, options: Mapping[str, str], instant: str | None = None) -> CompactionJob | None:
    """Begin a run: what an earlier one left is removed first. Arguments and errors as `compact`."""
    settings = Settings.read(options)
    state = compactable_state(storage, settings)
    pending = find_compaction(state, instant)
    if pending is None:
        return None
    at = look_up(state, pending)
    _require_files(state, at)
    schema = with_meta_fields(at.schema)
    reader = slice_reader(state, schema, options=options)
    _require_all_logs(reader, at)
    begun = to_inflight(storage, take_back(storage, pending, at.leftovers))
    spec = WriteSpec(
        storage=storage,
        instant=begun.requested,
        schema=schema,
        avro_schema=to_avro(schema, state.config.name),
        sizing=settings.sizing,
        bloom=settings.bloom,
        logs=settings.logs,
        pending=begun,
    )
    tasks = tuple(CompactionTask(number, each.slice) for number, each in enumerate(at.found))
    extra = {**at.plan.extra, "schema": to_avro(at.schema, state.config.name)}
    return CompactionJob(Compaction(spec, reader, random.randrange(2**31)), tasks, begun, extra)


def _require_files(state: TableState, at: PlanFiles) -> None:
    missing = problems(replace(each, unknown=()) for each in at.found)
    if missing:
        raise InvalidPlan(
            f"{state.config.name}: the compaction plan does not fit the table: {'; '.join(missing[:10])}"
            + (f"; and {len(missing) - 10} more" if len(missing) > 10 else "")
            + ". Unschedule it, and plan anew."
        )


def _require_all_logs(reader: SliceReader, at: PlanFiles) -> None:
    """Rows in logs that the plan does not name would be lost: after it readers do not look there."""
    for each in at.found:
        if each.unknown and find_blocks(reader.storage, each.unknown, reader.committed)[0]:
            raise InvalidPlan(
                f"{', '.join(log.path for log in each.unknown)}: committed rows that the compaction plan does not know "
                "of, by a writer that began before it was made. Unschedule it, and plan anew."
            )


def run_near(job: CompactionJob, threads: int = 0) -> list[WriteStat | None]:
    """Carry the tasks out by threads, which share the memory for rows of logs. The first failure is raised once the
    tasks that had begun have ended.

    threads  0: one a core
    """
    count = min(threads or os.cpu_count() or 1, max(1, len(job.tasks)))
    reader = job.compaction.reader
    options = replace(reader.options, max_bytes=max(1, reader.options.max_bytes // count))
    shared = replace(job.compaction, reader=replace(reader, options=options))
    with ThreadPoolExecutor(count, thread_name_prefix="hoodie-compaction") as pool:
        calls = [pool.submit(run_operation, shared, task) for task in job.tasks]
        try:
            return [call.result() for call in calls]
        except BaseException:
            for call in calls:
                call.cancel()
            raise


def run_operation(compaction: Compaction, task: CompactionTask, attempt: int = 0) -> WriteStat | None:
    """Merge the logs of a file slice with its base file into the base file of the plan's instant.

    Rows keep their meta columns, but the file name. Held are the rows of the logs (see `MergeOptions`), a batch of the
    base file and a row group.

    attempt  a number that other attempts of the task in this run do not have
    returns  None when no block of the logs counts and there is no base file: then there is none to write
    """
    started = time.monotonic()
    spec, slice_ = compaction.spec, task.slice
    base, no_keys = slice_.base, pa.array([], pa.string())
    merge = SliceMerge(compaction.reader, slice_)
    with closing(merge.batches()) as batches:
        first = next(batches, None)  # the logs have been read by now
        scanned = time.monotonic()
        if base is None and merge.report.merged == 0:
            return None
        footer = footer_of(spec.storage, base) if base else None
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
    file, report = writer.file(), merge.report
    millis = int((time.monotonic() - scanned) * 1000)
    return WriteStat(
        file_id=slice_.group.file_id,
        path=file.path,
        partition=slice_.group.partition,
        prev_commit=base.instant if base else "null",
        num_writes=writer.rows,
        num_deletes=merge.deleted,
        num_updates=merge.updated,
        num_inserts=merge.inserted,
        total_write_bytes=file.size,
        file_size=file.size,
        log_records=merge.records,
        log_files_compacted=len(slice_.logs),
        log_size_compacted=log_bytes(slice_),
        updated_records_compacted=merge.keys,
        # Corrupt blocks are among those rolled back, if a rollback came after them.
        log_blocks=report.merged + report.hidden + report.rollbacks + max(report.rolled_back, report.corrupt),
        corrupt_log_blocks=report.corrupt,
        rollback_blocks=report.rollbacks,
        scan_time=int((scanned - started) * 1000),
        upsert_time=millis if base else 0,
        create_time=0 if base else millis,
    )


# --- publishing ---


def publish(job: CompactionJob, stats: Iterable[WriteStat | None]) -> CommitMetadata:
    """Make the new base files visible: one exclusive create.

    stats    of each task's winning attempt; None, or nothing, for a task without rows
    Raises   HoodieError when statistics do not fit the plan: nothing is published. InstantNotFound, WriteConflict when
             another process took the run back or published its own; the files of this run are removed
    """
    made = _checked(job, stats)
    by_partition: dict[str, list[WriteStat]] = {}
    for group, stat in made.items():
        by_partition.setdefault(group.partition, []).append(stat)
    metadata = CommitMetadata(
        operation=Operation.COMPACT,
        stats={partition: tuple(part) for partition, part in by_partition.items()},
        extra=dict(job.extra),
        compacted=True,
    )
    sizes = {stat.path: stat.file_size for stat in made.values() if stat.path}
    try:
        _settle(job, sizes)
        complete(job.storage, job.instant, encode_commit(metadata))
    except (InstantNotFound, WriteConflict):
        _discard(job)
        raise
    with suppress(OSError):  # readers see the files by now, and markers of a completed instant mean nothing
        # Attempts that were given up may have finished a file meanwhile. Later ones see that the run is over.
        lost = set(marked_files(job.storage, job.instant.requested)) - sizes.keys()
        remove_with_temporaries(job.storage, sorted(lost))
        delete_markers(job.storage, job.instant.requested)
    return metadata


def _checked(job: CompactionJob, stats: Iterable[WriteStat | None]) -> dict[FileGroupId, WriteStat]:
    tasks = {task.slice.group: task for task in job.tasks}
    made: dict[FileGroupId, WriteStat] = {}
    instant = job.instant.requested
    for stat in stats:
        if stat is None:
            continue
        group = FileGroupId(stat.partition or "", stat.file_id)
        if group not in tasks or group in made:
            what = "was compacted twice" if group in made else "is not in the plan"
            raise HoodieError(f"compaction {instant}: file group {group} {what}; nothing is published")
        file = parse_data_file(group.partition, split(stat.path or "")[1], stat.file_size)
        if not isinstance(file, BaseFile) or (file.path, file.group, file.instant) != (stat.path, group, instant):
            raise HoodieError(f"compaction {instant}: {stat.path} is no base file of {group}; nothing is published")
        made[group] = stat
    missing = [group for group, task in tasks.items() if group not in made and task.slice.base is not None]
    if missing:
        raise HoodieError(f"compaction {instant}: {len(missing)} file groups, such as {missing[0]}, were not compacted")
    return {group: made[group] for group in tasks if group in made}


def _settle(job: CompactionJob, sizes: Mapping[str, int]) -> None:
    """See that all files are there, and remove those of lost attempts, which would be taken for versions of rows."""
    there = _files_of(job)
    for path, size in sizes.items():
        if path not in there or there[path].size != size:
            raise WriteConflict(
                f"{path} of compaction {job.instant.requested} is gone: another process took this run for dead and "
                "began anew. Nothing is published by this one."
            )
    others = sorted({*there, *marked_files(job.storage, job.instant.requested)} - sizes.keys())
    require_not_published(job.storage, job.instant)  # else these are what readers see
    remove_with_temporaries(job.storage, others)


def _files_of(job: CompactionJob) -> dict[str, BaseFile]:
    """The base files of the plan's instant in its file groups, by path."""
    groups = {task.slice.group for task in job.tasks}
    listed = list_partitions(job.storage, {group.partition for group in groups})
    return {
        file.path: file
        for file in data_files(listed)
        if isinstance(file, BaseFile) and file.group in groups and file.instant == job.instant.requested
    }


def _discard(job: CompactionJob) -> None:
    """Remove the files of a run that lost, unless they are published."""
    state = load_state(job.storage)
    found = state.timeline.find(job.instant.requested, Action.COMPACTION)
    named: set[str | None] = set()
    if found is not None and found.state is State.COMPLETED:
        stats = read_commit(job.storage, state.timeline, found).stats
        named = {stat.path for part in stats.values() for stat in part}
    for path, file in _files_of(job).items():
        if path not in named and file.token.split("-")[1] == str(job.compaction.run):
            job.storage.delete(path)
