"""A run of a compaction: what its tasks need, and its start.

Source: docs/format/table-services.md 5.
"""

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hoodie.commit.lost import refuse_lost
from hoodie.errors import CorruptFile, InvalidPlan
from hoodie.formats.avro.schema import to_avro
from hoodie.formats.timeline.plans import encode_compaction_plan
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant
from hoodie.plan.compaction import problems
from hoodie.reading.slices.log_scanner import find_blocks
from hoodie.reading.slices.reader import SliceReader, slice_reader
from hoodie.schema.schema import with_meta_fields
from hoodie.services.compaction.schedule import (
    PlanFiles,
    compactable_state,
    find_compaction,
    look_up,
    mended,
    take_back_plan,
)
from hoodie.storage.protocol import Storage, rewrite
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, columns_by_id
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import TimelineLayout
from hoodie.timeline.transition import to_inflight
from hoodie.writing.tasks.base_file import WriteSpec

_log = logging.getLogger("hoodie.services")


@dataclass(frozen=True, slots=True)
class Compaction:
    """What all operations of a run need; pickles to executors.

    run   a number that other runs of the same plan do not have: part of the names of its files
    logs  where commits on the timeline wrote to a log, by its path: the first byte, and the one behind the last
    """

    spec: WriteSpec
    reader: SliceReader
    run: int
    logs: Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One operation of a plan."""

    number: int
    slice: FileSlice


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """A compaction whose run has begun. Readers see nothing of it before `publish`.

    on_driver  whether it is small enough for threads of the driver, by the options that decide so for writes
    show_progress  whether the options want a progress bar
    """

    compaction: Compaction
    tasks: tuple[CompactionTask, ...]
    instant: Instant
    extra: Mapping[str, str]
    on_driver: bool = True
    show_progress: bool = False

    @property
    def storage(self) -> Storage:
        return self.compaction.spec.storage

    @property
    def layout(self) -> TimelineLayout:
        return self.compaction.spec.layout


#: Carries out the tasks of a job: their statistics, None for one without rows.
RunTasks = Callable[[CompactionJob], Iterable[WriteStat | None]]


def begin_compaction(storage: Storage, settings: Settings, instant: str | None = None) -> CompactionJob | None:
    """Begin a run: leftovers of an earlier one are removed first. Arguments and errors as `compact`."""
    state = compactable_state(storage, settings)
    pending = find_compaction(state, instant)
    if pending is None:
        return None
    plan_files = look_up(state, pending)
    if plan_files.leftovers:
        refuse_lost(state, pending)
    _require_files(state, plan_files)
    schema, local_times = with_meta_fields(plan_files.schema), state.layout.version.local_times
    reader = slice_reader(state, schema, settings=settings.reading)
    late = _late_logs(reader, plan_files)
    if late:
        plan_files = mended(plan_files, settings.sizing.max_size)
    logs = _published_logs(state, plan_files)
    requested = take_back_plan(storage, pending, plan_files.leftovers, layout=state.layout)
    if late:
        _log.info("%s: the plan takes in logs of a writer that did not see it: %s", state.config.name, ", ".join(late))
        rewrite(storage, state.layout.path(requested), encode_compaction_plan(plan_files.plan))
    begun = to_inflight(storage, requested, layout=state.layout)
    spec = WriteSpec(
        storage=storage,
        instant=begun.requested,
        schema=schema,
        avro_schema=to_avro(schema, state.config.name, local_times=local_times),
        sizing=settings.sizing,
        bloom=settings.bloom,
        logs=settings.logs,
        pending=begun,
        layout=state.layout,
    )
    tasks = tuple(CompactionTask(number, operation.slice) for number, operation in enumerate(plan_files.operations))
    columns = to_avro(plan_files.schema, state.config.name, local_times=local_times)
    extra = {**plan_files.plan.extra, "schema": columns}
    extra |= columns_by_id(state, pending.requested)
    limits = settings.engine
    on_driver = limits.driver_batch > 0 and sum(task.slice.bytes for task in tasks) <= limits.driver_rewrite
    show = settings.console.progress
    return CompactionJob(Compaction(spec, reader, random.randrange(2**31), logs), tasks, begun, extra, on_driver, show)


def _require_files(state: TableState, plan_files: PlanFiles) -> None:
    if missing := problems(plan_files.operations):
        raise InvalidPlan(
            f"{state.config.name}: the compaction plan does not fit the table: {'; '.join(missing[:10])}"
            + (f"; and {len(missing) - 10} more" if len(missing) > 10 else "")
            + ". Unschedule it and plan again."
        )


def _late_logs(reader: SliceReader, plan_files: PlanFiles) -> list[str]:
    """Paths of logs with committed rows that the plan does not name: of a writer that did not see it. Readers pass over
    them after the compaction, so the plan takes them in."""
    return [
        log.path
        for operation in plan_files.operations
        if operation.unknown and find_blocks(reader.storage, operation.unknown, reader.committed)[0]
        for log in operation.unknown
    ]


def _published_logs(state: TableState, plan_files: PlanFiles) -> dict[str, list[tuple[int, int]]]:
    """`Compaction.logs` of a plan. Raises CorruptFile when a log is shorter than it was published."""
    logs = [log for operation in plan_files.operations for log in operation.slice.logs]
    sizes, first = {log.path: log.size for log in logs}, min((log.base_instant for log in logs), default="~")
    written: dict[str, list[tuple[int, int]]] = {}
    for instant in state.timeline.commits:
        if instant.requested < first:
            continue
        with suppress(FileNotFoundError, CorruptFile):  # archived meanwhile; the doctor reports damage
            for stat in read_commit(state.storage, state.timeline, instant).all_stats:
                if stat.path in sizes:
                    written.setdefault(stat.path, []).append((stat.log_offset or 0, stat.file_size))
    for path, parts in written.items():
        if sizes[path] < (end := max(end for _, end in parts)):
            raise lost_rows(path, f"{sizes[path]} bytes, and commits published {end}")
    return written


def lost_rows(path: str, problem: str, offset: int | None = None) -> CorruptFile:
    """Why a log is not compacted whose rows are damaged."""
    advice = (
        "A compaction would leave its rows out for good: restore it from a copy of the table. Without one, unschedule "
        "the compaction and write what reads still have with insert_overwrite."
    )
    return CorruptFile(path, problem, offset, advice)
