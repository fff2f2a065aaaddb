"""Taking back what a failed write left: a rollback is a plan (`hoodie.table.rollback_plan`) and an instant of its own.

Base files are deleted. Blocks in the logs of a slice that was there before are taken back by a command block after
them: docs/design/rollback-of-logs.md says why.

The order is the format's: plan, inflight, files, the failed instant and its markers, then the completed rollback; so
that a rollback that dies anywhere is taken up again by the next writer, under its own instant.
Source: spec/table-services.md 3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from hoodie.formats.log_blocks import encode_block
from hoodie.formats.log_content import rollback_block
from hoodie.formats.timeline_avro import decode_rollback_plan, encode_rollback_metadata, encode_rollback_plan
from hoodie.model.files import log_file_name
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition
from hoodie.storage.protocol import Storage, join, remove_with_temporaries, split
from hoodie.table.markers import MarkerKind, create_marker, delete_markers, read_markers
from hoodie.table.rollback_plan import logs_of_slice, made_by, parse_log, plan_rollback
from hoodie.timeline.timeline import Timeline
from hoodie.timeline.transition import (
    back_to_requested,
    complete,
    create_requested,
    instant_path,
    remove_pending,
    to_inflight,
)

#: Pending instants of these actions are failed writes once another write of a single writer begins.
FAILED = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})

#: The write token of log files that hold a command block.
_COMMAND_TOKEN = "1-0-1"


def failed_writes(timeline: Timeline, is_clustering: Callable[[Instant], bool]) -> list[Instant]:
    """Pending writes that are no table service, newest first: what a single writer's next write rolls back."""
    return [
        i for i in reversed(timeline.pending(FAILED)) if not (i.action is Action.REPLACE_COMMIT and is_clustering(i))
    ]


def pending_rollbacks(timeline: Timeline) -> Sequence[Instant]:
    """Rollbacks that began and did not end, oldest first."""
    return timeline.pending({Action.ROLLBACK})


def roll_back(storage: Storage, failed: Instant, at: str) -> Instant:
    """Undo a pending write.

    at      instant time of the rollback, newer than all on the timeline
    returns the completed rollback
    """
    plan = plan_rollback(storage, failed)
    requested = create_requested(storage, at, Action.ROLLBACK, encode_rollback_plan(plan, storage.root))
    return execute(storage, requested, plan)


def resume(storage: Storage, rollback: Instant) -> Instant:
    """Carry a rollback on that another process began."""
    path = instant_path(Instant(rollback.requested, Action.ROLLBACK, State.REQUESTED))
    return execute(storage, rollback, decode_rollback_plan(storage.read(path), path))


def execute(storage: Storage, rollback: Instant, plan: RollbackPlan) -> Instant:
    """Do what a rollback's plan says; every step may have been done before."""
    started = time.monotonic()
    if rollback.state is State.REQUESTED:
        rollback = to_inflight(storage, rollback)
    target = Instant(plan.instant.time, Action(plan.instant.action), State.INFLIGHT)
    partitions = _take_back(storage, rollback.requested, target.requested, plan.requests)
    if target.action is Action.COMPACTION:
        back_to_requested(storage, target)  # its plan stays: new logs belong to the slice that it opened
    else:
        remove_pending(storage, target)
    # Attempts that Spark has given up may have finished a file meanwhile. Later ones see that the write is over.
    remove_with_temporaries(storage, made_by(storage, target.requested))
    metadata = RollbackMetadata(
        start=rollback.requested,
        millis=int((time.monotonic() - started) * 1000),
        files_deleted=sum(len(done.deleted) for done in partitions.values()),
        commits=(target.requested,),
        partitions=partitions,
        instants=(plan.instant,),
    )
    # The plan holds what the markers said. After the completion nobody would come back for them.
    delete_markers(storage, target.requested)
    delete_markers(storage, rollback.requested)
    return complete(storage, rollback, encode_rollback_metadata(metadata, storage.root))


def _take_back(
    storage: Storage, rollback: str, target: str, requests: Sequence[RollbackRequest]
) -> dict[str, RolledBackPartition]:
    """Delete files, write command blocks. What was done, by partition path."""
    by_partition: dict[str, list[RollbackRequest]] = {}
    for request in requests:
        by_partition.setdefault(request.partition, []).append(request)
    command = encode_block(rollback_block(rollback, target))
    earlier = _commands_written(storage, rollback, command)
    done = {}
    for partition, part in by_partition.items():
        deleted = [name for request in part for name in request.delete]
        remove_with_temporaries(storage, [join(partition, name) for name in deleted])
        undone = [request for request in part if request.log_blocks]
        sizes = {entry.name: entry.size for entry in storage.list(partition)} if undone else {}
        commands = [
            earlier.get((partition, request.file_id, request.base_instant))
            or _write_command(storage, rollback, command, request, sizes)
            for request in undone
        ]
        failed = {name: sizes[name] for request in undone for name in request.log_blocks if name in sizes}
        done[partition] = RolledBackPartition(
            deleted=tuple(deleted), command_logs=dict.fromkeys(commands, len(command)), failed_logs=failed
        )
    return done


def _write_command(
    storage: Storage, rollback: str, command: bytes, request: RollbackRequest, names: Collection[str]
) -> str:
    """Put a command block into a new log file after all others of the slice; its name.

    names  of the files in the partition
    It also comes after log files that are not there (yet): a writer that is taken for dead may still finish one.
    """
    slice_ = (request.file_id, request.base_instant)
    there = logs_of_slice(request.partition, {*names, *request.log_blocks}, *slice_)
    version = max((log.version for log in there), default=0)
    while True:
        version += 1
        name = log_file_name(*slice_, version, _COMMAND_TOKEN)
        path = join(request.partition, name)
        create_marker(storage, rollback, path, MarkerKind.APPEND)
        try:
            storage.create_new(path, command)
        except FileExistsError:  # another rollback was faster
            continue
        return name


def _commands_written(storage: Storage, rollback: str, command: bytes) -> dict[tuple[str, str, str], str]:
    """What the rollback wrote before it died: (partition path, file id, base instant) -> name of the log file."""
    found = {}
    for marker in read_markers(storage, rollback):
        folder, name = split(marker.path)
        log = parse_log(folder, name)
        if storage.exists(marker.path) and storage.read(marker.path) == command:
            found[folder, log.group.file_id, log.base_instant] = name
    return found
