"""Savepoints: commits whose files cleaning keeps until the savepoint is deleted.

Source: docs/format/table-services.md 4.
"""

import datetime as dt
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from hoodie.commit.conflict_check import pending_rollbacks, refuse_during_restore
from hoodie.commit.rollback_executor import rollback_plan
from hoodie.display.render import Displayed, DisplayedList
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, count_text, summary
from hoodie.errors import HoodieError, InstantNotFound, InvalidInput, InvalidPlan, WriteConflict
from hoodie.formats.timeline.services import decode_savepoint, encode_savepoint
from hoodie.model.files import FileGroupId, FileSlice, parse_data_file
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.model.plans import SavepointMetadata
from hoodie.reading.complete_view import require_published
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, join, split
from hoodie.table.replacement import refuse_before
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.archive import replaced_in_archive
from hoodie.timeline.cleanings import cleanings
from hoodie.timeline.timeline import Timeline, TimelineLayout
from hoodie.timeline.transition import complete, remove_pending, to_inflight, uncomplete
from hoodie.view.slices import FileSystemView, merged_slices
from hoodie.writing.write import writable_state

_log = logging.getLogger("hoodie.services")


def now_millis() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, repr=False)
class Savepoint(Displayed):
    """A commit that is kept."""

    instant: str  # of the commit
    user: str
    at: int  # when it was made, milliseconds since 1970, UTC
    comment: str
    files: frozenset[str]  # paths of base and log files, relative to the base path

    def _summary(self) -> ResultSummary:
        by, why = f" by {self.user}" if self.user else "", f": {self.comment}" if self.comment else ""
        return summary(f"Savepoint({self.instant}{by}, {count_text(len(self.files), 'file')}{why})")


class SavepointList(DisplayedList[Savepoint]):
    """The savepoints of a table, oldest first."""

    __slots__ = ()

    def _summary(self) -> ResultSummary:
        creation_times = (
            dt.datetime.fromtimestamp(s.at / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC") for s in self
        )
        rows = ((s.instant, at, s.user, s.comment, len(s.files)) for s, at in zip(self, creation_times, strict=True))
        columns = ("instant", "made", "user", "comment", ShownColumn("files", ColumnKind.COUNT))
        return summary(count_text(len(self), "savepoint"), columns, rows, len(self))


# --- existing savepoints, and what they keep ---


def read_savepoints(state: TableState) -> SavepointList:
    """The savepoints of a table, oldest first, without those deleted since it was loaded. Raises CorruptFile."""
    savepoints = []
    for instant in state.timeline.completed({Action.SAVEPOINT}):
        with suppress(FileNotFoundError):
            savepoints.append(_read(state.storage, instant, state.timeline.path(instant)))
    return SavepointList(savepoints)


def savepointed_files(state: TableState) -> frozenset[str]:
    """Paths of all files that savepoints keep. A slice with any file among them stays whole.

    A cleaner checks twice: when it plans, and again with a fresh state once its plan is on the timeline, before it
    deletes. `make_savepoint` checks for plans after its savepoint is published. So one of the two sees the other.
    Raises CorruptFile
    """
    return frozenset[str]().union(*(savepoint.files for savepoint in read_savepoints(state)))


def savepoint_of(timeline: Timeline, instant: str) -> Instant | None:
    """The completed savepoint of a commit."""
    savepoint = timeline.find(instant, Action.SAVEPOINT)
    return savepoint if savepoint is not None and savepoint.state is State.COMPLETED else None


def _read(storage: Storage, instant: Instant, path: str) -> Savepoint:
    metadata = decode_savepoint(storage.read(path), path)
    files = frozenset(join(partition, name) for partition, names in metadata.files.items() for name in names)
    return Savepoint(instant.requested, metadata.by, metadata.at, metadata.comments, files)


# --- making and deleting ---


@typed_errors()
def make_savepoint(
    storage: Storage,
    settings: Settings,
    instant: str | None = None,
    comment: str = "",
    user: str = "",
    *,
    millis: Callable[[], int] = now_millis,
) -> Savepoint:
    """Keep the files that a reader of the table as of a commit needs.

    instant  None: the newest completed commit
    millis   the clock, since 1970
    Raises   InstantNotFound when there is no such completed commit; InvalidInput when it is a savepoint already, or on
             text that is no Unicode; InvalidPlan when cleaning has removed, or is about to remove, files of it;
             MissingFile when others of its files are missing; WriteConflict when the commit was rolled back, or a
             cleaning planned, at the same time: then no savepoint is made
    """
    with settings.writers.lock_on(storage):
        state = writable_state(storage, settings, places_keys=False, refuse=partial(_keepable, instant))
        return _make(state, instant, comment, user, millis)


def _keepable(instant: str | None, state: TableState) -> tuple[Instant, FileSystemView]:
    """The commit to keep, and the table's files. Raises as `make_savepoint`"""
    commit = _commit(state, instant)
    refuse_during_restore(state.timeline)
    refuse_before(state.config, commit.requested, "kept as of")
    if savepoint_of(state.timeline, commit.requested):
        raise InvalidInput(f"instant {commit.requested} is a savepoint already; delete it first to replace it")
    view = state.view()
    _require_not_cleaned(state, view, commit.requested)
    require_published(state, view, commit.requested)
    return commit, view


def _make(state: TableState, instant: str | None, comment: str, user: str, millis: Callable[[], int]) -> Savepoint:
    storage = state.storage
    commit, view = _keepable(instant, state)
    files = _names(merged_slices(view, commit.requested).values())
    content = encode_savepoint(SavepointMetadata(by=user, at=millis(), comments=comment, files=files))
    begun = Instant(commit.requested, Action.SAVEPOINT, State.INFLIGHT)
    with suppress(WriteConflict):  # of an interrupted call, or a concurrent one: the process that completes it wins
        to_inflight(storage, begun, layout=state.layout)
    completed = complete(storage, begun, content, layout=state.layout)
    _require_kept(storage, commit, view)
    _log.info("%s: savepoint made at %s", state.config.name, commit.requested)
    return _read(storage, completed, state.layout.path(completed))


def find_savepoint(timeline: Timeline, instant: str) -> Instant:
    """Raises InstantNotFound"""
    savepoint = timeline.find(instant, Action.SAVEPOINT)
    if savepoint is None:
        savepoint_list = ", ".join(other.requested for other in timeline.completed({Action.SAVEPOINT}))
        raise InstantNotFound(f"instant {instant} is not a savepoint. Savepoints: {savepoint_list or 'none'}.")
    return savepoint


def remove_savepoint(storage: Storage, instant: str, layout: TimelineLayout) -> None:
    begun = uncomplete(storage, Instant(instant, Action.SAVEPOINT, State.COMPLETED), layout=layout)
    remove_pending(storage, begun, layout)


def _commit(state: TableState, instant: str | None) -> Instant:
    commits = state.timeline.commits
    if instant is None:
        if not commits:
            raise InstantNotFound(f"{state.config.name} has no completed commit to make a savepoint of")
        return commits[-1]
    for commit in commits:
        if commit.requested == instant:
            return commit
    pending = any(write.requested == instant for write in state.timeline.pending(COMMITS))
    what = "is not completed" if pending else "is not a commit of the active timeline"
    raise InstantNotFound(f"instant {instant} {what}: a savepoint needs a completed commit")


def _names(slices: Iterable[FileSlice]) -> dict[str, tuple[str, ...]]:
    names_of: dict[str, list[str]] = {}
    for slice_ in slices:
        names = names_of.setdefault(slice_.group.partition, [])
        names += [slice_.base.name] if slice_.base else []
        names += [log.name for log in slice_.logs]
    return {partition: tuple(names) for partition, names in names_of.items()}


# --- against cleaning ---


def _require_not_cleaned(state: TableState, view: FileSystemView, instant: str) -> None:
    """Raises InvalidPlan when a reader as of an instant needs files that cleaning removed, or plans to remove."""
    current = {group: slice_.base_instant for group, slice_ in merged_slices(view, instant).items()}
    replaced = {group for group, when in view.replaced.items() if when <= instant}
    for cleaning in cleanings(state.storage, state.config, state.timeline, instant):
        # One that counts versions does not say how far back the table can be read. Files older than the slice that a
        # reader uses were removed for their age.
        losses = {
            group: path
            for path, group, base in _slices_of(() if cleaning.earliest else cleaning.files)
            if group not in replaced and current.get(group, "") <= base <= instant
        }
        for group in replaced_in_archive(state.storage, state.config, losses, instant) if losses else ():
            del losses[group]
        if losses or (
            cleaning.earliest > instant and instant != state.timeline.newest_commit
        ):  # the newest slice stays
            what = (
                f"removes {next(iter(losses.values()))}" if losses else f"keeps nothing older than {cleaning.earliest}"
            )
            raise InvalidPlan(
                f"the table as of {instant} cannot be kept: the cleaning {cleaning.requested} {what}. "
                "Take a newer commit."
            )


def _slices_of(paths: Iterable[str]) -> list[tuple[str, FileGroupId, str]]:
    slices = []
    for path in sorted(paths):
        file = parse_data_file(*split(path), 0)
        if file is not None:
            slices.append((path, file.group, file.base_instant))
    return slices


def _require_kept(storage: Storage, commit: Instant, view: FileSystemView) -> None:
    """Check for a cleaning, or a rollback of the commit, that was planned before the savepoint existed."""
    try:
        state = load_state(storage)
        targets = {
            rollback_plan(storage, rollback, state.layout).instant.time
            for rollback in pending_rollbacks(state.timeline)
        }
        restoring = state.timeline.pending({Action.RESTORE})
        if commit.requested in targets or restoring or commit not in state.timeline.commits:
            raise WriteConflict(f"instant {commit.requested} is being rolled back, or the table restored")
        _require_not_cleaned(state, view, commit.requested)
    except HoodieError:
        remove_savepoint(storage, commit.requested, load_state(storage).layout)
        raise
