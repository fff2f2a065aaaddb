"""Procedures that show the timeline itself, and its cleans: those that Hudi has since 1.1."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from hoodie.formats.timeline.services import decode_clean_metadata, decode_clean_plan
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CleanMetadata
from hoodie.statements.procedures.history import rollbacks
from hoodie.statements.procedures.procedure import Called, Procedure, Rows, procedure
from hoodie.timeline.archive import archived_cleans, archived_commits
from hoodie.timeline.load import modified
from hoodie.timeline.timeline import comparable_action

_VERSION = 2  # of plans and of what cleans did, as Hudi writes them since 0.5


def _times(called: Called) -> Mapping[tuple[str, Action], Mapping[State, str]]:
    """When each instant reached its states, as instant times: when their files were last written, or as the name of a
    completed one says."""
    times: defaultdict[tuple[str, Action], dict[State, str]] = defaultdict(dict)
    state = called.state
    for entry in state.storage.list(state.timeline.folder):
        instant = None if entry.is_dir else state.layout.parse(entry.name)
        if instant is not None:
            key = instant.requested, comparable_action(instant.action)
            times[key][instant.state] = instant.completed or modified(entry, state.config.timezone)
    return times


def _show_timeline(called: Called) -> Rows:
    """Instants between `startTime` and `endTime`, both inclusive, newest first; then commits of the archive."""
    start, end, times = called.get("startTime", ""), called.get("endTime") or "9", _times(called)
    undone = {instant.requested: ", ".join(rollback.commits) for instant, rollback in rollbacks(called)}
    for instant in reversed(called.state.timeline.instants):
        if start <= instant.requested <= end:
            reached = times.get((instant.requested, comparable_action(instant.action)), {})
            commits = undone.get(instant.requested) if instant.action is Action.ROLLBACK else None
            note = None if commits is None else f"Rolled back: {commits}"
            yield (*_named(instant), *(_short(reached.get(state)) for state in State), "ACTIVE", note)
    if called.get("showArchived"):
        for instant, _ in archived_commits(called.state.storage, called.state.config):
            if start <= instant.requested <= end:
                at = _short(instant.requested), None, _short(instant.completed)
                yield (*_named(instant), *at, "ARCHIVED", None)


def _named(instant: Instant) -> tuple[str, str, str]:
    return instant.requested, instant.action.value, instant.state.name


def _short(time: str | None) -> str | None:
    """An instant time as Hudi shows it here: month and day, and the time of the day."""
    return f"{time[4:6]}-{time[6:8]} {time[8:10]}:{time[10:12]}:{time[12:14]}" if time else None


def _cleans(called: Called) -> Iterator[tuple[str, str | None, CleanMetadata]]:
    """Completed cleans, newest first: when each was requested and completed, and what it did. Raises CorruptFile"""
    state, times = called.state, _times(called)
    for instant in reversed(state.timeline.completed({Action.CLEAN})):
        path = state.timeline.path(instant)
        with suppress(FileNotFoundError):  # archived meanwhile
            clean = decode_clean_metadata(state.storage.read(path), path)
            yield instant.requested, times.get((instant.requested, Action.CLEAN), {}).get(State.COMPLETED), clean


def _archived(called: Called) -> Iterator[tuple[str, str | None, CleanMetadata]]:
    if called.get("showArchived"):
        cleans = archived_cleans(called.state.storage, called.state.config, "")
        yield from ((clean.start, None, clean) for clean in sorted(cleans, key=lambda clean: clean.start, reverse=True))


def _show_cleans(called: Called) -> Rows:
    for time, completed, clean in chain(_cleans(called), _archived(called)):
        did = clean.start, clean.millis, clean.files_deleted, clean.earliest or None, clean.last_completed or None
        yield (time, completed, Action.CLEAN.value, *did, _VERSION)


def _show_cleans_metadata(called: Called) -> Rows:
    for time, completed, clean in chain(_cleans(called), _archived(called)):
        for partition, cleaned in clean.partitions.items():
            files = len(cleaned.planned), len(cleaned.deleted), len(cleaned.failed), cleaned.removed
            head = time, completed, Action.CLEAN.value, clean.start, partition, cleaned.policy
            yield (*head, *files, clean.millis, clean.files_deleted)


def _show_clean_plans(called: Called) -> Rows:
    state = called.state
    if called.get("showArchived"):
        raise called.problem(
            "showArchived => true: plans are shown of the timeline; show_cleans has those of the archive"
        )
    for instant in reversed([instant for instant in state.timeline.instants if instant.action is Action.CLEAN]):
        path = state.timeline.path(replace(instant, state=State.REQUESTED, completed=""))
        with suppress(FileNotFoundError):  # archived meanwhile
            plan = decode_clean_plan(state.storage.read(path), path)
            extra = ", ".join(f"{key}={value}" for key, value in plan.extra.items())
            since = plan.earliest[0] if plan.earliest else None, plan.last_completed or None
            counts = len(plan.files), len(plan.partitions)
            head = instant.requested, instant.state.name, Action.CLEAN.value
            yield (*head, *since, plan.policy, _VERSION, *counts, extra or None)


_OF_CLEANS = "table string, limit int = 10, showArchived boolean = false, filter string"

PROCEDURES: Mapping[str, Procedure] = {
    "show_timeline": procedure(
        "table string, path string, limit int = 20, showArchived boolean = false, filter string, startTime string, "
        "endTime string",
        "instant_time string, action string, state string, requested_time string, inflight_time string, "
        "completed_time string, timeline_type string, rollback_info string",
        _show_timeline,
    ),
    "show_cleans": procedure(
        _OF_CLEANS,
        "clean_time string, state_transition_time string, action string, start_clean_time string, "
        "time_taken_in_millis long, total_files_deleted int, earliest_commit_to_retain string, "
        "last_completed_commit_timestamp string, version int",
        _show_cleans,
    ),
    "show_cleans_metadata": procedure(
        _OF_CLEANS,
        "clean_time string, state_transition_time string, action string, start_clean_time string, "
        "partition_path string, policy string, delete_path_patterns int, success_delete_files int, "
        "failed_delete_files int, is_partition_deleted boolean, time_taken_in_millis long, total_files_deleted int",
        _show_cleans_metadata,
    ),
    "show_clean_plans": procedure(
        _OF_CLEANS,
        "plan_time string, state string, action string, earliest_instant_to_retain string, "
        "last_completed_commit_timestamp string, policy string, version int, total_partitions_to_clean int, "
        "total_partitions_to_delete int, extra_metadata string",
        _show_clean_plans,
    ),
}
