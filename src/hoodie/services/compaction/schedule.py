"""Compactions on the timeline: planned, inspected, undone. `hoodie.services.compaction.run` runs them.

A run that died or failed leaves its plan: its files are removed and the next run starts over. Unlike in Hudi, that
rollback is not an instant of its own: it deletes files that no reader has seen, and is repeated until it succeeds.
Source: docs/format/table-services.md 5.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hoodie.commit.conflict_check import failed_writes
from hoodie.commit.lost import refuse_lost
from hoodie.commit.markers import delete_markers, read_markers
from hoodie.errors import CorruptFile, InstantNotFound, InvalidPlan, MissingFileIgnored, UnsupportedTable, WriteConflict
from hoodie.formats.timeline.plans import encode_compaction_plan
from hoodie.model.files import BaseFile, parse_data_file
from hoodie.model.instant import Action, Instant, State, parse_time
from hoodie.model.plans import CompactionPlan
from hoodie.plan.compaction import (
    OperationFiles,
    candidates,
    compaction_is_due,
    find_files,
    operation_of,
    plan_compaction,
    problems,
)
from hoodie.plan.compaction_strategies import Planning, Strategy, strategy_named
from hoodie.reading.table_schema import table_schema
from hoodie.services.compaction.claim import claimed, scheduling
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, remove_with_temporaries, rewrite, split
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, columns_by_id, load_state
from hoodie.timeline.load import moves_rows, read_compaction_plan
from hoodie.timeline.timeline import Clock, TimelineLayout, moment_of, new_time, utc_now
from hoodie.timeline.transition import back_to_requested, completed_instants, create_requested, remove_pending
from hoodie.writing.write import refuse_column_types, writable_state

_log = logging.getLogger("hoodie.services")

# --- planning ---


@typed_errors()
def schedule_compaction(
    storage: Storage,
    settings: Settings,
    extra: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
    *,
    at_once: bool = False,
) -> str | None:
    """Put a plan on the timeline, if a compaction is due and there is something to compact.

    File groups with a missing file are left out, with a warning: their rows would be lost.

    extra    kept in the plan and in its commit
    at_once  it is due, whatever the options say
    returns  the instant of the plan; None: none was made
    Raises   UnsupportedTable on a Copy-on-Write table; WriteConflict while the table's single writer is working;
             PlanInUse, LockTimeout when another process keeps planning; InvalidOption
    """
    strategy = strategy_named(settings.compaction_of(None).strategy)
    state = compactable_state(storage, settings)
    how = settings.compaction_of(state.config)
    now = new_time(state.timeline, state.config.timezone, clock)
    if not (at_once or compaction_is_due(state.timeline, now, how)):
        return None
    with scheduling(storage, settings) as lock:
        state = state.reload()
        time = new_time(state.timeline, state.config.timezone, clock)
        if not (at_once or compaction_is_due(state.timeline, time, how)):  # another process has just planned one
            return None
        if not settings.writers.concurrency.several:
            refuse_pending_writes(state, "a compaction is planned")
        plan = _plan(state, strategy, Planning(how, settings.sizing.max_size, parse_time(time).date()), extra)
        if not plan.operations:
            return None
        lock.check()
        content = encode_compaction_plan(plan)
        requested = create_requested(storage, time, Action.COMPACTION, content, layout=state.layout).requested
        if state.layout.stamps_completion:  # logs that are completed from now on are not of the slices in the plan
            lock.outlast(moment_of(requested, state.layout.zone), clock)
        _log.info("%s: compaction %s planned: %d file slices", state.config.name, requested, len(plan.operations))
        return requested


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """What a compaction that is planned now would merge.

    groups     file groups of the plan
    log_bytes  of their logs; base_bytes: of the base files that it would write anew
    due        whether the options ask for it now
    """

    groups: int
    log_bytes: int
    base_bytes: int
    due: bool


def preview_compaction(state: TableState, settings: Settings, clock: Clock = utc_now) -> CompactionPreview:
    """What `schedule_compaction` would plan now, due or not. Nothing is changed. Raises InvalidOption"""
    how = settings.compaction_of(state.config)
    time = new_time(state.timeline, state.config.timezone, clock)
    planning = Planning(how, settings.sizing.max_size, parse_time(time).date())
    view = state.view()
    plan = plan_compaction(strategy_named(how.strategy), candidates(view), planning, view.partitions, None)
    chosen = {operation.group for operation in plan.operations}
    slices = [slice_ for slice_ in candidates(view) if slice_.group in chosen]
    return CompactionPreview(
        len(slices),
        sum(slice_.log_bytes for slice_ in slices),
        sum(slice_.base.size for slice_ in slices if slice_.base is not None),
        compaction_is_due(state.timeline, time, how),
    )


def _plan(state: TableState, strategy: Strategy, planning: Planning, extra: Mapping[str, str] | None) -> CompactionPlan:
    view = state.view()
    log_plans = [
        read_compaction_plan(state.storage, state.timeline, i) for i in state.timeline.pending({Action.LOG_COMPACTION})
    ]
    slices = candidates(view, {operation.group for plan in log_plans for operation in plan.operations})
    if lost := state.missing(view):
        # Compacting them would lose their rows.
        without = {file.group for file in lost}
        slices = [slice_ for slice_ in slices if slice_.group not in without]
        for file in lost:
            warning = MissingFileIgnored(
                file.path, file.instant.requested, file.instant.action, "Its file group is not compacted."
            )
            warnings.warn(warning, stacklevel=2)
    return plan_compaction(strategy, slices, planning, view.partitions, extra)


def compactable_state(storage: Storage, settings: Settings) -> TableState:
    state = writable_state(storage, settings, places_keys=False, refuse=_refuse)
    _refuse(state)
    return state


def _refuse(state: TableState) -> None:
    if not state.config.merge_on_read:
        raise UnsupportedTable(f"{state.config.name} is a Copy-on-Write table: it has no logs, and so no compaction")
    refuse_column_types(state)


def refuse_pending_writes(state: TableState, before: str) -> None:
    """Raises WriteConflict: a pending write may add logs that the plan misses. Concurrent writers check for plans
    before they commit, and fail on a conflict."""
    pending = failed_writes(state.timeline, partial(moves_rows, state.storage, state.timeline))
    if pending:
        raise WriteConflict(
            f"the {pending[0].action} {pending[0].requested} is pending: it must be committed or rolled back before "
            f"{before}. If its writer is dead, the next write rolls it back."
        )


# --- looking at a plan ---


def pending_compactions(state: TableState) -> list[tuple[Instant, CompactionPlan]]:
    """The compactions that are planned, or being run, with their plans; oldest first. Raises CorruptFile."""
    return [(i, read_compaction_plan(state.storage, state.timeline, i)) for i in state.timeline.pending_compactions]


def is_pending_plan(storage: Storage, instant: Instant, layout: TimelineLayout) -> bool:
    """Whether a plan is still pending."""
    plan = Instant(instant.requested, Action.COMPACTION, State.REQUESTED)
    return storage.exists(layout.path(plan)) and not completed_instants(storage, plan, layout)


def find_compaction(state: TableState, instant: str | None = None) -> Instant | None:
    """The pending compaction of an instant; None: the oldest, if there is one.

    Raises InstantNotFound when there is no such instant, or it is completed, or no compaction
    """
    if instant is None:
        return next(iter(state.timeline.pending_compactions), None)
    instants = [i for i in state.timeline.instants if i.requested == instant]
    for candidate in instants:
        if candidate.action is Action.COMPACTION:
            return candidate
    what = "is not on the timeline" if not instants else f"is a {instants[0].action}, not a compaction"
    if state.config.merge_on_read and any(i.action is Action.COMMIT and i.state is State.COMPLETED for i in instants):
        what = "is completed already"
    pending = [i.requested for i in state.timeline.pending_compactions]
    raise InstantNotFound(f"instant {instant} {what}. Pending compactions: {', '.join(pending) or 'none'}.")


def validate_compaction(storage: Storage, instant: str | None = None) -> list[str]:
    """Why a pending compaction cannot run: files of its plan that are missing.

    instant  None: the oldest pending one; without one there are no problems
    returns  a line for each problem
    Raises   InstantNotFound; CorruptFile, UnsupportedTable when the plan cannot be read
    """
    state = load_state(storage)
    pending = find_compaction(state, instant)
    return [] if pending is None else problems(look_up(state, pending).operations)


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """A plan with its files on storage, and the columns of its base files."""

    plan: CompactionPlan
    operations: tuple[OperationFiles, ...]
    schema: pa.Schema

    @property
    def leftovers(self) -> list[BaseFile]:
        return [base for operation in self.operations for base in operation.leftover]


def look_up(state: TableState, instant: Instant) -> PlanFiles:
    plan = read_compaction_plan(state.storage, state.timeline, instant)
    partitions = {operation.group.partition for operation in plan.operations}
    view = state.view(partitions)
    # A file has columns that Hudi altered since as they were at its own instant: so readers take them.
    then = instant.requested if columns_by_id(state) else None
    return PlanFiles(plan, find_files(plan, instant.requested, view.groups), table_schema(state, view, then))


# --- taking back ---


def take_back_plan(
    storage: Storage, instant: Instant, leftovers: Iterable[BaseFile] = (), *, layout: TimelineLayout
) -> Instant:
    """Undo what a run did so far. Idempotent.

    leftovers  base files that markers may not name: of a writer without markers
    returns    the requested instant
    Raises     WriteConflict when it is published meanwhile: nothing has changed
    """
    require_not_published(storage, instant, layout)
    # The inflight file is removed first: a process that is considered dead cannot publish files that are removed next.
    requested = back_to_requested(storage, instant, layout)
    require_not_published(storage, instant, layout)
    paths = {*marked_files(storage, instant.requested), *(base.path for base in leftovers)}
    remove_with_temporaries(storage, sorted(paths))
    delete_markers(storage, instant.requested)
    return requested


def require_not_published(storage: Storage, instant: Instant, layout: TimelineLayout) -> None:
    """Raises WriteConflict when a compaction is completed: its files are what readers see."""
    if completed_instants(storage, instant, layout):
        raise WriteConflict(f"another process has completed compaction {instant.requested} meanwhile")


def marked_files(storage: Storage, instant: str) -> list[str]:
    """Paths of the base files that markers of a compaction's runs name."""
    paths = [marker.path for marker in read_markers(storage, instant)]
    for path in paths:
        file = parse_data_file(*split(path), 0)
        if not isinstance(file, BaseFile) or file.instant != instant:
            raise CorruptFile(
                path, f"a marker says that compaction {instant} writes it, but it is not a base file of it"
            )
    return paths


# --- plans that cannot be run ---
#
# A plan can be withdrawn until a writer appends to the slice that it opened. From then on it has to be run; one that no
# longer fits the table is repaired first.


def unschedule_compaction(storage: Storage, settings: Settings, instant: str) -> None:
    """Withdraw a plan; the files of a run that died are removed.

    Raises InstantNotFound when it is not pending; WriteConflict while a write is; PlanInUse while it is being run;
           InvalidPlan when logs were written for the base files that it was to make: it must be run
    """
    with _in_hand(storage, settings, instant, "withdrawn") as (pending, plan_files):
        layout = load_state(storage).layout
        later = [log.path for operation in plan_files.operations for log in operation.later]
        if later and not layout.version.logs_of_writes:
            raise InvalidPlan(
                f"{len(later)} log files, such as {later[0]}, were written since compaction {instant} was planned, and "
                "belong to the base files that it makes: readers would not find them. Run it instead; repair it first "
                "if its files are missing."
            )
        remove_pending(storage, take_back_plan(storage, pending, plan_files.leftovers, layout=layout), layout)


def repair_compaction(storage: Storage, settings: Settings, instant: str) -> list[str]:
    """Adapt a plan to the existing files, so that it can be run: logs that it does not name are added, missing logs are
    left out. Their rows are lost already.

    returns  a line for each change; none: the plan fits, and stays as it is
    Raises   InvalidPlan when a base file is missing: nothing has changed; else as `unschedule_compaction`
    """
    with _in_hand(storage, settings, instant, "repaired") as (pending, plan_files):
        broken_operations = [
            operation for operation in plan_files.operations if operation.missing and _needs_base(plan_files, operation)
        ]
        if broken_operations:
            raise InvalidPlan(
                f"compaction {instant}: a base file is missing: "
                + "; ".join(
                    f"{operation.slice.group.partition}/{name}"
                    for operation in broken_operations
                    for name in operation.missing
                )
                + ". Restore it. Without it the rows of its file group are lost; `unschedule` releases the others."
            )
        lines = list(_changes(plan_files.operations))
        if lines:
            layout = load_state(storage).layout
            requested = take_back_plan(storage, pending, plan_files.leftovers, layout=layout)
            plan = mended(plan_files, settings.sizing.max_size).plan
            rewrite(storage, layout.path(requested), encode_compaction_plan(plan))
        return lines


@contextmanager
def _in_hand(storage: Storage, settings: Settings, instant: str, what: str) -> Iterator[tuple[Instant, PlanFiles]]:
    """A plan that is not running, while no other process writes or plans."""
    state = compactable_state(storage, settings)
    find_compaction(state, instant)
    with claimed(storage, settings, instant), scheduling(storage, settings):
        state = state.reload()
        pending = find_compaction(state, instant)
        assert pending is not None  # an instant was named
        refuse_pending_writes(state, f"compaction {instant} is {what}")
        plan_files = look_up(state, pending)
        if plan_files.leftovers:
            # Without its input the rows are in what it left, if anywhere.
            refuse_lost(state, pending, input_gone=any(operation.missing for operation in plan_files.operations))
        yield pending, plan_files


def _needs_base(plan_files: PlanFiles, operation_files: OperationFiles) -> bool:
    base_files = {operation.group: operation.base_file for operation in plan_files.plan.operations}
    return base_files[operation_files.slice.group] in operation_files.missing


def _changes(operations: Iterable[OperationFiles]) -> Iterator[str]:
    for operation in operations:
        where = f"file group {operation.slice.group.file_id} of partition {operation.slice.group.partition!r}"
        yield from (f"{where}: {name} is missing and left out" for name in operation.missing)
        yield from (f"{where}: {log.name} is added" for log in operation.unknown)


def mended(plan_files: PlanFiles, max_file_size: int) -> PlanFiles:
    """A plan that names the logs that there are: with those that it does not name, without those that are missing."""
    files = tuple(_with_all_logs(files) for files in plan_files.operations)
    operations = tuple(
        operation if old is new else operation_of(new.slice, max_file_size)
        for operation, old, new in zip(plan_files.plan.operations, plan_files.operations, files, strict=True)
    )
    return replace(plan_files, plan=replace(plan_files.plan, operations=operations), operations=files)


def _with_all_logs(files: OperationFiles) -> OperationFiles:
    if not (files.missing or files.unknown):
        return files
    logs = tuple(sorted((*files.slice.logs, *files.unknown), key=lambda log: log.order))
    return replace(files, slice=replace(files.slice, logs=logs), missing=(), unknown=())
