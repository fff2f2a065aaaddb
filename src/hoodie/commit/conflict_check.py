"""What other writers left or are about, before a write begins; and before it is published, whether it is still on the
timeline, and what others did meanwhile.

The decision itself is pure: `hoodie.plan.conflict`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from hoodie.commit.markers import delete_markers, read_markers
from hoodie.errors import InstantNotFound, WriteConflict
from hoodie.formats.avro.schema import user_columns
from hoodie.formats.timeline.internal_schema import LATEST_SCHEMA
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.instant import Action, Instant, State
from hoodie.plan.conflict import (
    SERVICES,
    Other,
    appended_groups,
    conflicts,
    groups_of_commit,
    other_of_clustering,
    other_of_commit,
    other_of_compaction,
    since,
    unaware,
    vanished,
)
from hoodie.storage.protocol import Storage, remove_with_temporaries
from hoodie.table.replacement import REPLACES, WAITING
from hoodie.table.state import TableState, columns_by_id, declared_schema
from hoodie.timeline.load import read_commit, read_compaction_plan, still_pending
from hoodie.timeline.stopped_upgrade import UPGRADED_FOLDER, late_writes, move_back
from hoodie.timeline.timeline import Timeline, TimelineLayout

#: Pending instants of these actions are failed writes once another write of a single writer begins.
FAILED = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


def failed_writes(timeline: Timeline, is_clustering: Callable[[Instant], bool]) -> list[Instant]:
    """Pending writes that are not table services, newest first: what a single writer's next write rolls back."""
    return [
        i for i in reversed(timeline.pending(FAILED)) if not (i.action is Action.REPLACE_COMMIT and is_clustering(i))
    ]


def pending_rollbacks(timeline: Timeline) -> Sequence[Instant]:
    """Unfinished rollbacks, oldest first."""
    return timeline.pending({Action.ROLLBACK})


def refuse_during_restore(timeline: Timeline) -> None:
    """Raises WriteConflict while a restore is pending: it would roll back what is written now."""
    if restoring := timeline.pending({Action.RESTORE}):
        raise WriteConflict(
            f"the table is being restored (instant {restoring[0].requested}). If the restoring process is dead, call "
            "restore again with the same savepoint to resume it."
        )


def require_no_conflict(
    before: TableState,
    instant: Instant,
    metadata: CommitMetadata,
    now: TableState,
    *,
    alone: bool,
    published: bool = False,
    beside: bool = False,
) -> None:
    """Check that a write may be published, or was rightly published, given what other writers did.

    before     the table as the write found it
    instant    its own
    now        the table at this moment
    alone      it was to be the only writer: any other write is a conflict
    published  it is, and this is the second look
    beside     other writers may have added to the logs to which it adds
    Raises     WriteConflict naming instants and file groups; InstantNotFound when it was rolled back
    """
    if not published:
        _require_standing(instant, now)
    refuse_during_restore(now.timeline)
    _require_same_table(before, instant, now)
    if REPLACES in metadata.extra:  # of other writes it would keep some rows, of another table
        alone = True
        if not published and now.config.properties.get(WAITING) != instant.requested:
            raise WriteConflict(
                f"instant {instant.requested} replaces the table, and another overwrite has begun meanwhile. Nothing "
                "is published; write the batch again."
            )
    if undisturbed(before.timeline, now.timeline, instant):
        return
    if lost_instants := vanished(before.timeline, now.timeline):
        raise WriteConflict(
            f"instant {instant.requested} was made on rows of {', '.join(i.requested for i in lost_instants)}, which "
            "were rolled back meanwhile. Nothing is published; write the batch again."
        )
    others = [other for later in since(before.timeline, now.timeline, instant) if (other := _look_up(now, later))]
    if published:  # other writes may be based on this write by now
        others = unaware(instant, metadata, others)
    appended = appended_groups(metadata) if beside else frozenset()
    own = now.timeline.find(instant.requested, instant.action) if published else None
    completed = own.completed if own is not None else ""
    against = conflicts(before.timeline, groups_of_commit(metadata), others, alone, appended, completed)
    if against:
        raise WriteConflict(
            f"instant {instant.requested} contradicts {'; '.join(map(str, against))}. Nothing is published; write the "
            "batch again" + (f". {WITHOUT_LOCK}" if alone else _RETRIES)
        )
    if any(other.operation not in SERVICES and other.instant.state is State.COMPLETED for other in others):
        _require_same_columns(before, instant, metadata, now)


def undisturbed(before: Timeline, now: Timeline, own: Instant) -> bool:
    """Whether the timeline has changed by nothing but the write itself since that began, and it began after all there.

    Arguments as of `hoodie.plan.conflict.since`
    """
    return before.newest < own.requested and before.instants == tuple(
        instant for instant in now.instants if instant.requested != own.requested
    )


#: What helps where several writers write a table without a lock.
WITHOUT_LOCK = (
    "Several writers need hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL, each of them, which gives them "
    "a lock (docs/concurrency.md)."
)
_RETRIES = ": hoodie.write.num.retries.on.conflict.failures does so by itself."


#: How many of the newest commits a commit names that it was made on. Older ones are reachable through these.
_SEEN_COMMITS = 10


def made_on(before: Timeline) -> str:
    """The value of `SEEN` for a write that looked at the table when its timeline was this."""
    return ",".join(instant.requested for instant in before.commits[-_SEEN_COMMITS:])


def require_whole(now: TableState, instant: Instant) -> None:
    """See that a write that has just been published was not being rolled back: a rollback removes the inflight file
    first, and the requested one of a write that has not got further. Raises InstantNotFound

    now  listed after the publication: the rollback, which looks whether the write is published once it has removed
         these files, or this listing then sees the other
    """
    pending = (replace(instant, state=state) for state in (State.REQUESTED, State.INFLIGHT))
    if not all(now.timeline.path(state).rpartition("/")[2] in now.timeline.files for state in pending):
        raise InstantNotFound(rolled_back(instant))


def rolled_back(instant: Instant) -> str:
    """What is said to a write that another writer rolled back."""
    return (
        f"instant {instant.requested} is no longer on the timeline: another writer considered this one dead and "
        f"rolled it back. Nothing is published; write the batch again. {WITHOUT_LOCK}"
    )


def _require_standing(instant: Instant, now: TableState) -> None:
    current = now.timeline.find(instant.requested, instant.action)
    if current is None or current.state is State.REQUESTED:
        raise InstantNotFound(rolled_back(instant))
    if current.state is State.COMPLETED:
        raise WriteConflict(f"instant {instant.requested} is published already")


def _require_same_table(before: TableState, instant: Instant, now: TableState) -> None:
    if now.config.replaced_at not in (before.config.replaced_at, instant.requested):
        raise WriteConflict(
            f"instant {instant.requested}: an overwrite replaced the whole table meanwhile, at "
            f"{now.config.replaced_at}. Nothing is published; write the batch again, if it is of the new table."
        )
    for what in ("version", "metadata_partitions", "metadata_inflight"):
        then, since_then = getattr(before.config, what), getattr(now.config, what)
        if then != since_then:
            raise WriteConflict(
                f"instant {instant.requested}: the table's {what.replace('_', ' ')} changed from {then or 'none'} to "
                f"{since_then or 'none'} meanwhile, by another writer. Nothing is published; write the batch again."
            )


def _require_same_columns(before: TableState, instant: Instant, metadata: CommitMetadata, now: TableState) -> None:
    """The newest commit defines the table's columns: publishing a batch without the new ones would hide them."""
    after = declared_schema(now)
    if not metadata.schema or after is None:
        return
    own = user_columns(metadata.schema, now.layout.path(instant))
    if own == after and metadata.extra.get(LATEST_SCHEMA) == columns_by_id(now).get(LATEST_SCHEMA):
        return
    with suppress(FileNotFoundError):  # archived meanwhile: the earlier columns are no longer available
        if declared_schema(before) == after and columns_by_id(before) == columns_by_id(now):
            return
    raise WriteConflict(
        f"instant {instant.requested}: the table's columns changed meanwhile ({_difference(own, after)}). Nothing "
        "is published; write the batch again" + _RETRIES
    )


def _difference(own: pa.Schema, after: pa.Schema) -> str:
    more = [name for name in after.names if name not in own.names]
    return f"new: {', '.join(more)}" if more else "of other types or order"


def _look_up(now: TableState, instant: Instant) -> Other | None:
    """What another instant changed, or will change; None: a plan that was withdrawn since the timeline was listed."""
    storage, timeline = now.storage, now.timeline
    try:
        if instant.state is State.COMPLETED:
            return _completed(now, instant)
        if instant.action is Action.COMPACTION:
            return other_of_compaction(instant, read_compaction_plan(storage, timeline, instant))
        if (plan := still_pending(storage, timeline, instant)) is None:
            return None
        other = other_of_clustering(instant, plan)
        if other.operation is None and instant.state is State.INFLIGHT:
            profile = other_of_commit(instant, read_commit(storage, timeline, instant))
            return replace(other, groups=other.groups | profile.groups)
        return other
    except FileNotFoundError:
        if instant.state is State.COMPLETED:
            raise WriteConflict(f"instant {instant.requested} is being rolled back by another writer") from None
        return None


def _completed(now: TableState, instant: Instant) -> Other:
    other = other_of_commit(instant, read_commit(now.storage, now.timeline, instant))
    if other.operation is not Operation.COMPACT:
        return other
    with suppress(FileNotFoundError):  # its plan says more: which files it took in
        planned = replace(instant, action=Action.COMPACTION)
        return other_of_compaction(instant, read_compaction_plan(now.storage, now.timeline, planned))
    return other


def require_version(before: TableState, now: TableState) -> None:
    """Raise WriteConflict when a table has another version of the format than when a write looked at it."""
    if before.config.version != now.config.version:
        raise WriteConflict(
            f"{now.config.name} has version {now.config.version} now, and had {before.config.version} when this write "
            "looked at it: another process has changed it meanwhile. Nothing is published; write again"
        )


def with_late_writes(state: TableState) -> TableState:
    """The state with the writes on its timeline that began, without a lock, before a downgrade and have ended since."""
    if state.timeline.layout != 1 or UPGRADED_FOLDER not in state.timeline.folders:
        return state
    late = late_writes(state.storage, state.timeline.files)
    move_back(state.storage, late)
    return state.reload() if late else state


def withdraw(storage: Storage, instant: Instant, layout: TimelineLayout) -> None:
    """Remove what a write made that has not been published. layout: of the timeline when it began"""
    remove_with_temporaries(storage, [marker.path for marker in read_markers(storage, instant.requested)])
    for state in (State.INFLIGHT, State.REQUESTED):
        storage.discard(layout.path(replace(instant, state=state)))
    delete_markers(storage, instant.requested)
