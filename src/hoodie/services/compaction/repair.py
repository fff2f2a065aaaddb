"""Plans that cannot be run: withdrawn, or adapted to the existing files.

A plan can be withdrawn until a writer appends to the slice that it opened. From then on it has to be run; one that no
longer fits the table is repaired first.
Source: docs/format/table-services.md 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from hoodie.errors import InvalidPlan
from hoodie.formats.timeline.plans import encode_compaction_plan
from hoodie.model.instant import Instant
from hoodie.model.plans import CompactionOperation
from hoodie.plan.compaction import Found, operation_of
from hoodie.services.compaction.claim import claimed, scheduling
from hoodie.services.compaction.schedule import (
    PlanFiles,
    compactable_state,
    find_compaction,
    look_up,
    refuse_pending_writes,
    take_back_plan,
)
from hoodie.storage.protocol import Storage, rewrite
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.timeline.transition import remove_pending


def unschedule_compaction(storage: Storage, settings: Settings, instant: str) -> None:
    """Withdraw a plan; the files of a run that died are removed.

    Raises InstantNotFound when it is not pending; WriteConflict while a write is; PlanInUse while it is being run;
           InvalidPlan when logs were written for the base files that it was to make: it must be run
    """
    with _in_hand(storage, settings, instant, "withdrawn") as (pending, plan_files):
        layout = load_state(storage).layout
        later = [log.path for operation in plan_files.found for log in operation.later]
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
        gone = [operation for operation in plan_files.found if operation.missing and _needs_base(plan_files, operation)]
        if gone:
            raise InvalidPlan(
                f"compaction {instant}: a base file is missing: "
                + "; ".join(
                    f"{operation.slice.group.partition}/{name}" for operation in gone for name in operation.missing
                )
                + ". Restore it. Without it the rows of its file group are lost; `unschedule` releases the others."
            )
        lines = list(_changes(plan_files.found))
        if lines:
            size = settings.sizing.max_size
            operations = tuple(
                [_mended(*pair, size) for pair in zip(plan_files.plan.operations, plan_files.found, strict=True)]
            )
            plan = replace(plan_files.plan, operations=operations)
            layout = load_state(storage).layout
            requested = take_back_plan(storage, pending, plan_files.leftovers, layout=layout)
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
        yield pending, look_up(state, pending)


def _needs_base(plan_files: PlanFiles, operation_files: Found) -> bool:
    base_files = {operation.group: operation.base_file for operation in plan_files.plan.operations}
    return base_files[operation_files.slice.group] in operation_files.missing


def _changes(operations: Iterable[Found]) -> Iterator[str]:
    for operation in operations:
        where = f"file group {operation.slice.group.file_id} of partition {operation.slice.group.partition!r}"
        yield from (f"{where}: {name} is missing and left out" for name in operation.missing)
        yield from (f"{where}: {log.name} is added" for log in operation.unknown)


def _mended(operation: CompactionOperation, files: Found, max_file_size: int) -> CompactionOperation:
    if not (files.missing or files.unknown):
        return operation
    logs = tuple(sorted((*files.slice.logs, *files.unknown), key=lambda log: log.order))
    return operation_of(replace(files.slice, logs=logs), max_file_size)
