"""Taking back what a failed write left: its markers name the files, and the rollback is an instant of its own.

The order is the format's: plan, inflight, files, the failed instant and its markers, then the completed rollback; so
that a rollback that dies anywhere is taken up again by the next writer, under its own instant.
Source: spec/table-services.md 3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hoodie.errors import UnsupportedTable
from hoodie.formats.timeline_avro import decode_rollback_plan, encode_rollback_metadata, encode_rollback_plan
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import InstantRef, RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition
from hoodie.storage.protocol import Storage, join, split
from hoodie.table.markers import MarkerKind, delete_markers, read_markers
from hoodie.timeline.timeline import Timeline
from hoodie.timeline.transition import (
    complete,
    create_requested,
    instant_path,
    remove_pending,
    to_inflight,
)

#: Pending instants of these actions are failed writes once another write of a single writer begins.
FAILED = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


def failed_writes(timeline: Timeline, is_clustering: Callable[[Instant], bool]) -> list[Instant]:
    """Pending writes that are no table service, newest first: what a single writer's next write rolls back."""
    return [
        i for i in reversed(timeline.pending(FAILED)) if not (i.action is Action.REPLACE_COMMIT and is_clustering(i))
    ]


def pending_rollbacks(timeline: Timeline) -> Sequence[Instant]:
    """Rollbacks that began and did not end, oldest first."""
    return timeline.pending({Action.ROLLBACK})


def roll_back(storage: Storage, failed: Instant, at: str) -> Instant:
    """Undo a pending write, by its markers.

    at      instant time of the rollback, newer than all on the timeline
    returns the completed rollback
    """
    plan = plan_by_markers(storage, failed)
    requested = create_requested(storage, at, Action.ROLLBACK, encode_rollback_plan(plan, storage.root))
    return execute(storage, requested, plan)


def resume(storage: Storage, rollback: Instant) -> Instant:
    """Carry a rollback on that another process began."""
    path = instant_path(Instant(rollback.requested, Action.ROLLBACK, State.REQUESTED))
    return execute(storage, rollback, decode_rollback_plan(storage.read(path), path))


def plan_by_markers(storage: Storage, failed: Instant) -> RollbackPlan:
    """What to delete: the base files that markers name, by partition. A write without markers wrote nothing."""
    by_partition: dict[str, list[str]] = {}
    for marker in read_markers(storage, failed.requested):
        if marker.kind is MarkerKind.APPEND:
            raise UnsupportedTable(
                f"instant {failed.requested} appended to log files ({marker.path}): this version cannot undo that; "
                "let Hudi do it."
            )
        folder, name = split(marker.path)
        by_partition.setdefault(folder, []).append(name)
    requests = tuple(
        RollbackRequest(partition=partition, delete=(name,))
        for partition, names in sorted(by_partition.items())
        for name in sorted(names)
    )
    return RollbackPlan(instant=InstantRef(failed.requested, failed.action), requests=requests)


def execute(storage: Storage, rollback: Instant, plan: RollbackPlan) -> Instant:
    """Do what a rollback's plan says; every step may have been done before."""
    started = time.monotonic()
    if rollback.state is State.REQUESTED:
        rollback = to_inflight(storage, rollback)
    deleted: dict[str, list[str]] = {}
    for request in plan.requests:
        for name in request.delete:
            storage.delete(join(request.partition, name))
            deleted.setdefault(request.partition, []).append(name)
    target = Instant(plan.instant.time, Action(plan.instant.action), State.INFLIGHT)
    remove_pending(storage, target)
    metadata = RollbackMetadata(
        start=rollback.requested,
        millis=int((time.monotonic() - started) * 1000),
        files_deleted=sum(len(names) for names in deleted.values()),
        commits=(target.requested,),
        partitions={partition: RolledBackPartition(deleted=tuple(names)) for partition, names in deleted.items()},
        instants=(plan.instant,),
    )
    # The plan holds what the markers said. After the completion nobody would come back for them.
    delete_markers(storage, target.requested)
    return complete(storage, rollback, encode_rollback_metadata(metadata, storage.root))
