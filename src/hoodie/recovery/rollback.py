"""Rolling back on request: the latest commit, or a pending instant.

The preconditions are in `hoodie.plan.rollback`; `hoodie.commit.rollback_executor` does the work.
Source: docs/format/table-services.md 3.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from hoodie.commit.conflict_check import pending_rollbacks, refuse_during_restore
from hoodie.commit.heartbeat import remove_heartbeat
from hoodie.commit.lost import refuse_lost
from hoodie.commit.rebuilt import read_whole, rebuild_commit
from hoodie.commit.rollback_executor import (
    execute_rollback,
    is_clustering,
    resume_rollback,
    roll_back,
    rollback_plan,
    unpublish,
)
from hoodie.commit.rollback_planner import PLANS, plan_published, plan_rollback
from hoodie.config.table import require_writable
from hoodie.display.render import Displayed
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, count_text, summary
from hoodie.errors import CorruptFile, HoodieError, InstantNotFound, InvalidInput, InvalidPlan, WriteConflict
from hoodie.formats.timeline.services import decode_rollback_metadata, encode_rollback_plan
from hoodie.lookup.index_follow import RunRepair, index_follows
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId
from hoodie.model.instant import WRITES, Action, Instant, State
from hoodie.model.plans import RollbackMetadata, RollbackPlan
from hoodie.plan.rollback import cleaned_before, missing_before, needed_before, touched_groups, why_no_rollback
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, join
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.archive import newest_archived
from hoodie.timeline.cleanings import cleanings
from hoodie.timeline.load import pending_plans, read_compaction_plan
from hoodie.timeline.timeline import COMPLETES_AS, Clock, new_time, utc_now
from hoodie.timeline.transition import create_requested, remove_pending
from hoodie.view.load import data_files, discover_partitions, list_partitions
from hoodie.writing.write import writable_state

_log = logging.getLogger("hoodie.services")


@dataclass(frozen=True, slots=True, repr=False)
class RollbackResult(Displayed):
    """What a rollback removed, or (dry run) would.

    target    the instant that is rolled back
    instant   of the rollback; "" in a dry run
    plan      files to delete, and slices whose logs get a command block
    metadata  what was done; None in a dry run
    """

    target: str
    instant: str
    plan: RollbackPlan
    metadata: RollbackMetadata | None

    @property
    def deletes(self) -> tuple[str, ...]:
        """Paths of the files to delete."""
        return tuple(join(request.partition, name) for request in self.plan.requests for name in request.delete)

    @property
    def undoes(self) -> tuple[str, ...]:
        """Paths of log files whose blocks are cancelled by a command block after them."""
        return tuple(join(request.partition, name) for request in self.plan.requests for name in request.log_blocks)

    def _summary(self) -> ResultSummary:
        would = "would delete" if self.metadata is None else "deleted"
        logs = f", blocks of {count_text(len(self.undoes), 'log file')} undone" if self.undoes else ""
        title = f"rollback of {self.target}: {would} {count_text(len(self.deletes), 'file')}{logs}"
        work = {request.partition: [0, 0] for request in self.plan.requests}
        for request in self.plan.requests:
            work[request.partition][0] += len(request.delete)
            work[request.partition][1] += len(request.log_blocks)
        columns = (
            "partition",
            ShownColumn("files", ColumnKind.COUNT),
            ShownColumn("log blocks of files", ColumnKind.COUNT),
        )
        rows = ((partition, files, blocks) for partition, (files, blocks) in work.items())
        return summary(title, columns, rows, len(work), compact=True)


@typed_errors()
def rollback(
    storage: Storage,
    settings: Settings,
    instant: str | None = None,
    *,
    dry_run: bool = False,
    clock: Clock = utc_now,
    repair: RunRepair | None = None,
) -> RollbackResult:
    """Roll back the newest completed commit, or a pending instant.

    instant  of either; None: the newest completed commit. An interrupted rollback is finished, and is the result
             when it is of this instant, or none is given
    dry_run  only say what would be done
    repair   puts the entries of an HBase index that rows lack afterwards; None: threads of this process
    Raises   InvalidOption, IndexUnavailable when the table's HBase index cannot be updated (see `index_follows`);
             InstantNotFound when it is not on the active timeline; InvalidInput when it may not be rolled back: newer
             commits, pending instants that build on it, a savepoint; InvalidPlan when cleaning has removed, or will
             remove, what the table needs without it, or it is the last commit of an archived timeline; WriteConflict
             when one of these happened meanwhile; CorruptFile when it is pending as its completed file is lost, or the
             plan of an interrupted rollback is. Nothing has changed then
    """
    listing = not settings.writers.rollback.using_markers
    if dry_run:
        return _rollback(looked_at(storage), instant, listing, None)
    with (
        settings.writers.lock_on(storage),
        index_follows(storage, settings, partial(_instants_to_undo, instant), repair),
    ):
        state = writable_state(
            storage, settings, places_keys=False, refuse=lambda state: _rollback(state, instant, listing, None)
        )
        result = _rollback(state, instant, listing, clock)
        _log.info("rollback %s of %s deleted %d files", result.instant, result.target, len(result.deletes))
        return result


def _instants_to_undo(instant: str | None, state: TableState) -> Collection[str]:
    """The completed instant to roll back."""
    if instant is not None:
        return (instant,)
    return tuple(commit.requested for commit in state.timeline.commits[-1:])


def _rollback(state: TableState, instant: str | None, listing: bool, clock: Clock | None) -> RollbackResult:
    """clock  None: a dry run"""
    refuse_during_restore(state.timeline)
    for begun in pending_rollbacks(state.timeline):
        plan = _plan_of(state, begun)
        matches = plan.instant.time == instant or instant is None
        completed = resume_rollback(state.storage, begun, state.layout) if clock else None
        if matches and (completed or clock is None):
            return _result(state, plan, completed)
    state = state.reload()
    target = find_target(state, instant)
    if target.state is State.COMPLETED:
        return _roll_back_commit(state, target, listing, clock)
    if target.state is State.REQUESTED and (
        target.action in PLANS or is_clustering(state.storage, target, state.layout)
    ):
        raise InvalidInput(
            f"{target.action} {target.requested} is only planned, so there is nothing to roll back: run or withdraw it"
        )
    refuse_lost(state, target)
    plan = plan_rollback(state.storage, target, listing=listing, layout=state.layout)
    if clock is None:
        return _result(state, plan, None)
    time = new_time(state.timeline, state.config.timezone, clock)
    completed = roll_back(state.storage, target, time, listing=listing, layout=state.layout)
    remove_heartbeat(state.storage, target.requested)
    return _result(state, plan, completed)


def _plan_of(state: TableState, begun: Instant) -> RollbackPlan:
    try:
        return rollback_plan(state.storage, begun, state.layout)
    except FileNotFoundError as error:
        if begun not in state.reload().timeline.instants:
            raise  # another process has carried it out, or withdrawn it
        path = state.layout.path(begun)
        advice = (
            "Delete this file, too, and call again: what was not rolled back is pending still, and is planned anew."
        )
        raise CorruptFile(path, "this rollback has lost its plan", advice=advice) from error


def looked_at(storage: Storage) -> TableState:
    """The state for a dry run. Raises UnsupportedTable on a table that is refused whatever the options."""
    state = load_state(storage)
    require_writable(state.config, KNOWN_PAYLOADS)
    return state


def find_target(state: TableState, instant: str | None) -> Instant:
    """The instant to roll back, in its state on the timeline. Arguments and errors as `rollback`."""
    timeline = state.timeline
    if instant is None:
        if not timeline.commits:
            raise InstantNotFound(f"{state.config.name} has no completed commit to roll back")
        return timeline.commits[-1]
    for candidate in timeline.instants:
        if candidate.requested == instant and candidate.action in WRITES:
            return candidate
    first = min((candidate.requested for candidate in timeline.commits), default="~")
    if instant < first and instant <= newest_archived(state.storage, state.config, first):
        what = "is archived: what it wrote is part of all later commits. Restore the table to a savepoint instead"
    else:
        what = "is not a commit of the timeline: it never began, or is rolled back already"
    raise InstantNotFound(f"instant {instant} {what}")


# --- completed commits ---


def _roll_back_commit(state: TableState, target: Instant, listing: bool, clock: Clock | None) -> RollbackResult:
    storage = state.storage
    pending = Instant(target.requested, pending_action(state, target), State.COMPLETED)
    metadata = _commit_metadata(state, target)
    _check(state, target, pending.action, metadata)
    partitions = discover_partitions(storage) if listing else list(metadata.replaced)
    plan = plan_published(storage, pending, metadata, partitions=partitions, layout=state.layout)
    if clock is None:
        return _result(state, plan, None)
    time = new_time(state.timeline, state.config.timezone, clock)
    content = encode_rollback_plan(plan, storage.root)
    requested = create_requested(storage, time, Action.ROLLBACK, content, layout=state.layout)
    try:
        # Writers that begin from now on see the rollback. Those that began before are visible now.
        _check(state.reload(), target, pending.action, metadata)
    except HoodieError as error:
        remove_pending(storage, requested, state.layout)
        raise WriteConflict(f"{error} That happened meanwhile.") from error
    unpublish(storage, target, pending.action, layout=state.layout)
    return _result(state, plan, execute_rollback(storage, requested, plan, layout=state.layout))


def _commit_metadata(state: TableState, target: Instant) -> CommitMetadata:
    """What a completed commit did; rebuilt from the table's files when its own file is damaged."""
    metadata = read_whole(state.storage, state.timeline, target)
    if metadata is not None:
        return metadata
    removed = {
        path
        for cleaning in cleanings(state.storage, state.config, state.timeline, target.requested)
        for path in cleaning.files
    }
    _log.warning("%s: %s is damaged: what it wrote is searched for", state.config.name, state.timeline.path(target))
    return rebuild_commit(state.storage, state.timeline, target, removed)


def pending_action(state: TableState, completed: Instant) -> Action:
    """The action under which a completed instant was pending."""
    for action, completes_as in COMPLETES_AS.items():
        path = state.layout.path(Instant(completed.requested, action, State.REQUESTED))
        if completed.action is completes_as and state.storage.exists(path):
            return action
    if completed.action is Action.COMMIT and state.config.merge_on_read:
        return Action.COMPACTION
    return completed.action


def _check(state: TableState, target: Instant, action: Action, metadata: CommitMetadata) -> None:
    timeline, storage = state.timeline, state.storage
    if target.requested <= state.config.replaced_at:
        raise InvalidInput(
            f"{target.action} {target.requested} cannot be rolled back: an overwrite replaced the whole table at "
            f"{state.config.replaced_at}, and what was before is of another table. Write the rows that are wanted."
        )
    if target not in timeline.commits:
        raise InstantNotFound(f"instant {target.requested} is no longer completed: another process rolls it back")
    compaction = None
    if action in PLANS:
        planned = Instant(target.requested, action, State.REQUESTED)
        if not storage.exists(state.layout.path(planned)):
            raise InvalidPlan(
                f"compaction {target.requested} cannot be rolled back: its plan is no longer on the timeline"
            )
        compaction = read_compaction_plan(storage, timeline, planned)
    if reason := why_no_rollback(timeline, target, touched_groups(metadata), _plans(state)):
        raise InvalidInput(f"{target.action} {target.requested} cannot be rolled back: {reason}.")
    saved = {savepoint.requested for savepoint in timeline.completed({Action.SAVEPOINT})}
    others = {commit.requested for commit in timeline.commits} - {target.requested}
    # The newest savepoint shows what is archived before it.
    alone = others <= saved and not timeline.pending_compactions
    if alone and newest_archived(storage, state.config, target.requested) > max(others, default=""):
        raise InvalidPlan(
            f"{target.action} {target.requested} cannot be rolled back: all commits before it are archived, and a "
            "timeline without a commit shows no files. Restore the table to a savepoint, or write rows that undo it."
        )
    before = needed_before(metadata, compaction)
    files = data_files(list_partitions(storage, {group.partition for group in before.groups}))
    lost_files = [f"{group.file_id} of {base} in {group.partition!r}" for group, base in missing_before(before, files)]
    for cleaning in cleanings(state.storage, state.config, state.timeline, target.requested):
        lost_files += [
            f"{path} (by the cleaning {cleaning.requested})"
            for path in cleaned_before(before, cleaning.files, target.requested)
        ]
    if lost_files:
        raise InvalidPlan(
            f"{target.action} {target.requested} cannot be rolled back: {len(lost_files)} older files that the table "
            f"needs then were removed by cleaning, or will be, such as {lost_files[0]}. Write rows that undo it."
        )


def _plans(state: TableState) -> dict[Instant, set[FileGroupId]]:
    """Pending compactions, log compactions and clusterings, with their file groups."""
    plans = pending_plans(state.storage, state.timeline)
    return {instant: {slice_.group for slice_ in slices} for instant, slices in plans.items()}


def _result(state: TableState, plan: RollbackPlan, completed: Instant | None) -> RollbackResult:
    if completed is None:
        return RollbackResult(plan.instant.time, "", plan, None)
    path = state.layout.path(completed)
    metadata = decode_rollback_metadata(state.storage.read(path), path)
    return RollbackResult(plan.instant.time, completed.requested, plan, metadata)
