"""Restoring a table to a savepoint: all later writes are rolled back, newest first.

While a restore is pending no other write is accepted, and readers see what is left of the later commits, each whole or
not at all. An interrupted restore resumes when it is called again: what is still on the timeline is still to be done.
Source: docs/format/table-services.md 4.
"""

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from hoodie.commit.conflict_check import pending_rollbacks
from hoodie.commit.heartbeat import remove_heartbeat
from hoodie.commit.markers import delete_markers
from hoodie.commit.rebuilt import read_whole, rebuild_commit
from hoodie.commit.rollback_executor import is_clustering, outcome, resume_rollback, undo, unpublish
from hoodie.commit.rollback_planner import PLANS, block_instants, plan_published, plan_rollback
from hoodie.display.render import Displayed
from hoodie.display.summary import ResultSummary, count_text, summary
from hoodie.errors import CorruptFile, InstantNotFound, InvalidInput, InvalidPlan, UnsupportedTable, WriteConflict
from hoodie.formats.timeline.services import decode_restore_plan, encode_restore_metadata, encode_restore_plan
from hoodie.locks import Lock
from hoodie.lookup.index_follow import RunRepair, index_follows
from hoodie.metadata.keeping.build import build, not_built, why_not_built
from hoodie.metadata.keeping.drop import drop_metadata, drop_with_warning, warn_of_drop
from hoodie.model.files import LogFile
from hoodie.model.instant import WRITES, Action, Instant, State
from hoodie.model.plans import InstantRef, RestoreMetadata, RestorePlan, RollbackMetadata, RollbackPlan
from hoodie.reading.row_keys import read_keys
from hoodie.recovery.rollback import looked_at, pending_action
from hoodie.recovery.savepoint import Savepoint, read_savepoints
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, join, split
from hoodie.table.properties import recover
from hoodie.table.replacement import refuse_before
from hoodie.table.settings import MapItems, Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.archive import newest_archived
from hoodie.timeline.timeline import Clock, new_time, utc_now
from hoodie.timeline.transition import complete, create_requested, to_inflight
from hoodie.view.load import data_files, list_partitions
from hoodie.writing.write import writable_state

_log = logging.getLogger("hoodie.services")


@dataclass(frozen=True, slots=True, repr=False)
class RestoreResult(Displayed):
    """What a restore rolled back, or (dry run) would.

    savepoint  the commit to which the table is restored
    instant    of the restore; "" in a dry run, and when nothing was newer than the savepoint
    plan       instants that are rolled back, newest first
    rollbacks  what to delete and undo for each of them, in a dry run; see `metadata` for what was done
    metadata   None in a dry run, and when nothing was newer
    """

    savepoint: str
    instant: str
    plan: RestorePlan
    rollbacks: tuple[RollbackPlan, ...] = ()
    metadata: RestoreMetadata | None = None

    @property
    def deletes(self) -> tuple[str, ...]:
        """Paths of the files that would be deleted, in a dry run."""
        return tuple(
            join(request.partition, name)
            for plan in self.rollbacks
            for request in plan.requests
            for name in request.delete
        )

    def _summary(self) -> ResultSummary:
        count = len(self.plan.instants)
        files = f", deleting {count_text(len(self.deletes), 'file')}" if self.rollbacks else ""
        verb = "would roll back" if self.metadata is None and count else "rolled back"
        title = f"restore to {self.savepoint}: {verb} {count_text(count, 'instant')}{files}"
        rows = ((instant.time, instant.action) for instant in self.plan.instants)
        return summary(title, ("instant", "action"), rows, count, compact=True)


@typed_errors()
def restore(
    storage: Storage,
    settings: Settings,
    instant: str,
    *,
    dry_run: bool = False,
    clock: Clock = utc_now,
    repair: RunRepair | None = None,
    run: MapItems | None = None,
) -> RestoreResult:
    """Roll back all writes after a savepoint. This cannot be undone.

    instant  of the savepoint
    dry_run  only say what would be done
    repair   puts the entries of an HBase index that rows lack afterwards; None: threads of this process
    run      builds the metadata table again, if the table is large; None: this process
    Raises   InvalidOption, IndexUnavailable when the table's HBase index cannot be updated (see `index_follows`);
             InstantNotFound without such a savepoint; InvalidInput when a newer savepoint stands in the way;
             InvalidPlan when files of the savepoint are missing, later commits are archived, or older ones wrote to
             files that would be deleted; WriteConflict when another restore, or an older write, is pending: nothing has
             changed then. WriteConflict when a writer published during the restore: then call it again
    """
    if dry_run:
        state = looked_at(storage)
        _check(state, instant)
        plan = _plan(state, instant)
        rollbacks = tuple(_rollback_plan(state, target) for target in _instants(state, plan))
        return RestoreResult(instant, "", plan, rollbacks)
    with (
        settings.writers.lock_on(storage) as lock,
        index_follows(storage, settings, partial(_instants_to_undo, instant), repair),
    ):
        state = writable_state(storage, settings, places_keys=False, refuse=partial(_refuse, instant))
        return _restore(state, instant, lock, clock, partial(_build_again, settings, run))


def _refuse(instant: str, state: TableState) -> None:
    """Raises as `restore`"""
    if _unfinished_restore(state, instant) is None:
        _check(state, instant)
        _plan(state, instant)


def _instants_to_undo(savepoint: str, state: TableState) -> Collection[str]:
    """The completed instants to roll back."""
    return {commit.requested for commit in state.timeline.commits if commit.requested > savepoint}


def _restore(
    state: TableState, instant: str, lock: Lock, clock: Clock, build_again: Callable[[Storage, Collection[str]], None]
) -> RestoreResult:
    started, storage = time.monotonic(), state.storage
    pending = _unfinished_restore(state, instant)
    if pending is None:
        _check(state, instant)
        stale = pending_rollbacks(state.timeline)
        for begun in stale:
            resume_rollback(storage, begun, state.layout)
        state = state.reload() if stale else state
        plan = _plan(state, instant)
        if not plan.instants:
            return RestoreResult(instant, "", plan)
        time_of_it = new_time(state.timeline, state.config.timezone, clock)
        pending = create_requested(storage, time_of_it, Action.RESTORE, encode_restore_plan(plan), layout=state.layout)
    else:
        plan = _read_plan(state, pending)
        # A rollback of another writer may have begun before the restore, and died.
        for begun in pending_rollbacks(state.timeline):
            resume_rollback(storage, begun, state.layout)
    if pending.state is State.REQUESTED:
        pending = to_inflight(storage, pending, layout=state.layout)
    partitions = state.config.metadata_partitions
    if state.config.has_metadata_table:  # it may have merged what is rolled back into its base files
        if state.config.was_upgraded:
            drop_with_warning(storage, "it may have merged what the restore takes back")
        else:
            drop_metadata(storage)
    else:
        recover(storage)  # of an earlier run that died as it removed it
    rollbacks = _take_back(state.reload(), plan, pending.requested, lock)
    metadata = RestoreMetadata(
        start=pending.requested,
        millis=int((time.monotonic() - started) * 1000),
        instants=tuple(rollbacks),
        rollbacks=rollbacks,
        refs=plan.instants,
    )
    lock.check()
    delete_markers(storage, pending.requested)
    completed = complete(storage, pending, encode_restore_metadata(metadata, storage.root), layout=state.layout)
    _forget_rollbacks(storage, instant, completed.requested)
    if partitions:
        build_again(storage, partitions)
    _log.info(
        "%s: restore %s to %s rolled %d instants back in %.3f s",
        state.config.name,
        completed.requested,
        instant,
        len(plan.instants),
        metadata.millis / 1000,
    )
    return RestoreResult(instant, completed.requested, plan, metadata=metadata)


def _build_again(settings: Settings, run: MapItems | None, storage: Storage, partitions: Collection[str]) -> None:
    """Build the partitions of a metadata table that was removed, unless another writer is at work.

    Warns MetadataTableDropped where they cannot be built of the table's files: the table is restored all the same
    """
    now = load_state(storage)
    if now.config.was_upgraded:
        return
    if reason := why_not_built(now.timeline):
        _log.info("%s: the metadata table is not built again: %s", now.config.name, reason)
        return
    buildable_partitions = [name for name in partitions if not not_built(now.config, [name])]
    executors = settings.executors(run)
    try:
        build(
            storage,
            now.config,
            now.timeline,
            buildable_partitions,
            settings.writers.metadata.options,
            read_keys,
            executors,
        )
    except (CorruptFile, UnsupportedTable) as problem:
        drop_metadata(storage)  # what was begun of it
        warn_of_drop(storage, "the metadata table", str(problem))


def _take_back(state: TableState, plan: RestorePlan, by: str, lock: Lock) -> dict[str, tuple[RollbackMetadata, ...]]:
    """Roll back what is on the timeline after the savepoint. Returns what was done, by instant, without the work of an
    earlier, interrupted run."""
    rollbacks: dict[str, tuple[RollbackMetadata, ...]] = {ref.time: () for ref in plan.instants}
    for target in _instants(state, _plan(state, plan.savepoint)):
        lock.check()
        started, rollback = time.monotonic(), _rollback_plan(state, target)
        if target.state is State.COMPLETED:
            action = Action(rollback.instant.action)
            unpublish(state.storage, target, action, keep_stats=True, layout=state.layout)
        partitions = undo(state.storage, by, rollback, keeps_plan=False, layout=state.layout)
        remove_heartbeat(state.storage, target.requested)
        rollbacks[target.requested] = (outcome(by, rollback, partitions, started),)
    late_writes = _plan(state.reload(), plan.savepoint).instants
    if late_writes:
        raise WriteConflict(
            f"{len(late_writes)} writes, such as {late_writes[0].action} {late_writes[0].time}, were published during "
            f"the restore. Stop their writers, and call restore({plan.savepoint!r}) again to resume it."
        )
    return rollbacks


def _rollback_plan(state: TableState, target: Instant) -> RollbackPlan:
    if target.state is not State.COMPLETED:
        return plan_rollback(state.storage, target, whole=True, layout=state.layout)
    pending = Instant(target.requested, pending_action(state, target), State.COMPLETED)
    metadata = read_whole(state.storage, state.timeline, target) or rebuild_commit(
        state.storage, state.timeline, target
    )
    replaced = list(metadata.replaced)
    return plan_published(state.storage, pending, metadata, partitions=replaced, whole=True, layout=state.layout)


def _plan(state: TableState, savepoint: str) -> RestorePlan:
    """Clusterings that are pending first: they name files of the others. Then all writes, newest first."""
    later = [i for i in reversed(state.timeline.instants) if i.action in WRITES and i.requested > savepoint]
    clusterings = [i for i in later if i.state is not State.COMPLETED and is_clustering(state.storage, i, state.layout)]
    ordered = [*clusterings, *(i for i in later if i not in clusterings)]
    return RestorePlan(instants=tuple(InstantRef(i.requested, i.action) for i in ordered), savepoint=savepoint)


def _instants(state: TableState, plan: RestorePlan) -> list[Instant]:
    pairs = ((ref, state.timeline.find(ref.time, Action(ref.action))) for ref in plan.instants)
    return [instant for _, instant in pairs if instant is not None]


# --- preconditions ---


def _unfinished_restore(state: TableState, savepoint: str) -> Instant | None:
    """The unfinished restore to the savepoint. Raises WriteConflict when it is one to another."""
    for begun in state.timeline.pending({Action.RESTORE}):
        theirs = _read_plan(state, begun).savepoint
        if theirs != savepoint:
            raise WriteConflict(
                f"a restore to {theirs} (instant {begun.requested}) began and did not end: call restore({theirs!r}) "
                "first"
            )
        return begun
    return None


def _read_plan(state: TableState, restore: Instant) -> RestorePlan:
    path = state.layout.path(Instant(restore.requested, Action.RESTORE, State.REQUESTED))
    plan = decode_restore_plan(state.storage.read(path), path)
    if not plan.savepoint:
        raise CorruptFile(path, "a restore plan that names no savepoint")
    return plan


def _check(state: TableState, instant: str) -> None:
    """Raises as `restore`."""
    refuse_before(state.config, instant, "restored to")
    savepoints = read_savepoints(state)
    target = next((savepoint for savepoint in savepoints if savepoint.instant == instant), None)
    if target is None:
        savepoint_list = ", ".join(savepoint.instant for savepoint in savepoints)
        raise InstantNotFound(f"instant {instant} is not a savepoint. Savepoints: {savepoint_list or 'none'}")
    newer = [savepoint.instant for savepoint in savepoints if savepoint.instant > instant]
    if newer:
        raise InvalidInput(
            f"the table cannot be restored to {instant}: {', '.join(newer)} are newer savepoints. Delete those first"
        )
    older = [i for i in state.timeline.pending() if i.requested < instant and i.action not in PLANS]
    older = [i for i in older if not is_clustering(state.storage, i, state.layout)]
    if older:
        raise WriteConflict(
            f"the {older[0].action} {older[0].requested} is older than the savepoint {instant} and pending: it must be "
            "committed or rolled back before the table is restored"
        )
    later = min((i.requested for i in state.timeline.commits if i.requested > instant), default="~")
    if (archived := newest_archived(state.storage, state.config, later)) > instant:
        raise InvalidPlan(
            f"the table cannot be restored to {instant}: later commits up to {archived} are archived, and what they "
            "wrote is no longer known"
        )
    if path := _older_blocks(state, instant):
        raise InvalidPlan(
            f"the table cannot be restored to {instant}: {path} belongs to files that came later, and an older commit "
            "wrote to it"
        )
    missing = _missing(state.storage, target)
    if missing:
        raise InvalidPlan(
            f"the table cannot be restored to {instant}: {len(missing)} files of the savepoint are missing, such as "
            f"{missing[0]}"
        )


def _older_blocks(state: TableState, savepoint: str) -> str:
    """A log file that would be deleted with its slice, though a commit up to the savepoint wrote to it; "" for none.

    A writer may begin before the savepoint, and list file slices long after it.
    """
    older = {commit.requested for commit in state.timeline.commits if commit.requested <= savepoint}
    for file in data_files(list_partitions(state.storage)):
        if not isinstance(file, LogFile) or file.base_instant <= savepoint:
            continue
        if not older.isdisjoint(block_instants(state.storage, file)):
            return file.path
    return ""


def _missing(storage: Storage, savepoint: Savepoint) -> list[str]:
    by_folder: dict[str, set[str]] = {}
    for path in savepoint.files:
        folder, name = split(path)
        by_folder.setdefault(folder, set()).add(name)
    missing_paths = []
    for folder, names in sorted(by_folder.items()):
        missing_paths += [join(folder, name) for name in sorted(names - {entry.name for entry in storage.list(folder)})]
    return missing_paths


def _forget_rollbacks(storage: Storage, savepoint: str, restore: str) -> None:
    """Remove rollbacks after the savepoint: their targets no longer exist. Left after a crash they are harmless."""
    now = load_state(storage)
    for rollback in now.timeline.completed({Action.ROLLBACK}):
        if savepoint < rollback.requested < restore:
            # The completed file last: a pending rollback would be resumed.
            for state in (State.REQUESTED, State.INFLIGHT):
                storage.delete(now.layout.path(Instant(rollback.requested, Action.ROLLBACK, state)))
            storage.delete(now.timeline.path(rollback))
