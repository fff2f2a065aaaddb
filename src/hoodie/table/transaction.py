"""One write's way onto the timeline: begin, describe, publish."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from hoodie.config.table import TimelineZone
from hoodie.config.write import WriteOperation
from hoodie.errors import HoodieError
from hoodie.formats.avro_plans import encode_replace_plan
from hoodie.formats.commit_json import encode_commit, encode_inflight, inflight_profile
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State, next_time
from hoodie.model.plans import ReplacePlan
from hoodie.plan.write import WritePlan
from hoodie.storage.protocol import remove_with_temporaries
from hoodie.table.markers import delete_markers, read_markers
from hoodie.table.rollback import failed_writes, pending_rollbacks, resume, roll_back
from hoodie.table.state import TableState
from hoodie.timeline.load import read_replace_plan
from hoodie.timeline.transition import complete, create_requested, to_inflight

Clock = Callable[[], dt.datetime]


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A write that has an instant. Readers see nothing of it before `publish`."""

    state: TableState  # as it was when the instant was taken
    instant: Instant
    operation: WriteOperation

    @property
    def time(self) -> str:
        return self.instant.requested


def begin(state: TableState, operation: WriteOperation, action: Action, clock: Clock = utc_now) -> Transaction:
    """Take an instant; what failed writes left is rolled back first (one writer at a time: the EAGER policy).

    Raises WriteConflict when another writer takes the same instant
    """
    state = clean_up(state, clock)
    time = new_time(state, clock)
    content = b""
    if action is Action.REPLACE_COMMIT:
        words = "DELETE_PARTITION" if operation is WriteOperation.DELETE_PARTITION else ""
        content = encode_replace_plan(ReplacePlan(operation=words), state.storage.root)
    return Transaction(state, create_requested(state.storage, time, action, content), operation)


def clean_up(state: TableState, clock: Clock = utc_now) -> TableState:
    """Finish rollbacks that died, roll back writes that did; the state afterwards."""
    stale = pending_rollbacks(state.timeline)
    for rollback in stale:
        resume(state.storage, rollback)
    if stale:
        state = state.reload()
    for failed in failed_writes(state.timeline, partial(_is_clustering, state)):
        roll_back(state.storage, failed, new_time(state, clock))
        state = state.reload()
    return state


def _is_clustering(state: TableState, instant: Instant) -> bool:
    return read_replace_plan(state.storage, state.timeline, instant).clustering is not None


def new_time(state: TableState, clock: Clock) -> str:
    """An instant time after all on the timeline, in the table's zone, even when the clock went back."""
    now = clock()
    local = now if state.config.timezone is TimelineZone.UTC else now.astimezone().replace(tzinfo=None)
    return next_time(local.replace(tzinfo=None), state.timeline.newest)


def to_work(transaction: Transaction, plan: WritePlan | None) -> Transaction:
    """Announce what is going to be written: the workload profile that rollback and conflict checks read."""
    inserts: dict[str, int] = {}
    updates: dict[FileGroupId, tuple[str, int]] = {}
    for task in plan.tasks if plan else ():
        partition = task.group.partition
        inserts[partition] = inserts.get(partition, 0) + task.inserts
        if task.slice is not None:
            updates[task.group] = (task.slice.base_instant, task.updates)
    content = encode_inflight(inflight_profile(transaction.operation.recorded, inserts, updates))
    return replace(transaction, instant=to_inflight(transaction.state.storage, transaction.instant, content))


def describe(
    transaction: Transaction,
    stats: Sequence[WriteStat],
    replaced: Mapping[str, Collection[str]],
    extra: Mapping[str, str],
) -> CommitMetadata:
    """What the commit will say.

    stats     of the winning attempts
    replaced  partition path -> ids of file groups that this write takes away
    extra     the schema as Avro JSON under "schema", and what the user wants kept with the commit
    Raises    HoodieError when statistics contradict each other
    """
    return CommitMetadata(
        operation=transaction.operation.recorded,
        stats={partition: tuple(part) for partition, part in _checked(stats, transaction.time).items()},
        replaced={partition: tuple(sorted(ids)) for partition, ids in replaced.items()},
        extra=dict(extra),
    )


def publish(transaction: Transaction, metadata: CommitMetadata) -> None:
    """Make the write visible: one exclusive create, after the leftovers of lost task attempts are gone.

    Raises InstantNotFound when another writer rolled it back; WriteConflict when it is published already
    """
    storage = transaction.state.storage
    published = {stat.path for part in metadata.stats.values() for stat in part}
    _remove_leftovers(transaction, published)
    complete(storage, transaction.instant, encode_commit(metadata))
    with suppress(OSError):  # readers see the write by now, and markers of a completed instant mean nothing
        # Attempts that were given up may have finished a file meanwhile. Later ones see that the write is over.
        _remove_leftovers(transaction, published)
        delete_markers(storage, transaction.time)


def abandon(transaction: Transaction, clock: Clock = utc_now) -> bool:
    """Roll this write back, now that it failed. When that fails too the next write does it.

    returns  False when there is nothing to take back: readers see the write, though its writer had no answer; or
             another writer has rolled it back
    """
    state = transaction.state.reload()
    found = state.timeline.find(transaction.time, transaction.instant.action)
    if found is None or found.state is State.COMPLETED:
        return False
    roll_back(state.storage, transaction.instant, new_time(state, clock))
    return True


def _checked(stats: Sequence[WriteStat], instant: str) -> dict[str, list[WriteStat]]:
    by_partition: dict[str, list[WriteStat]] = {}
    seen: set[FileGroupId] = set()
    for stat in stats:
        partition = stat.partition or ""
        group = FileGroupId(partition, stat.file_id)
        if group in seen and stat.log_version is None:
            raise HoodieError(f"instant {instant}: file group {group} was written twice; nothing is published")
        if stat.path is None or not stat.path.startswith(f"{partition}/" if partition else ""):
            raise HoodieError(f"instant {instant}: {stat.path} is not in partition {partition!r}; nothing is published")
        seen.add(group)
        by_partition.setdefault(partition, []).append(stat)
    return by_partition


def _remove_leftovers(transaction: Transaction, published: Collection[str | None]) -> None:
    """Files that markers name and no statistics do: of task attempts that lost or were retried."""
    storage = transaction.state.storage
    lost = [marker.path for marker in read_markers(storage, transaction.time) if marker.path not in published]
    remove_with_temporaries(storage, lost)
