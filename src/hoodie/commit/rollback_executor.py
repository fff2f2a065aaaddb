"""Rolling back a failed write: a rollback is a plan (`commit.rollback_planner`) and an instant of its own.

Base files are deleted. Blocks in the logs of an existing slice are cancelled by a rollback command block after
them: docs/design/rollback-of-logs.md says why.

The order is the format's: plan, inflight, files, the failed instant and its markers, then the completed rollback; so
that the next writer resumes a rollback that died anywhere, under the same instant. `hoodie.recovery.rollback` rolls
back completed commits on request.
Source: docs/format/table-services.md 3.
"""

import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from hoodie.commit.markers import MarkerKind, create_marker, delete_markers, read_markers
from hoodie.commit.rollback_planner import PLANS, logs_of_slice, made_by, parse_log, plan_rollback
from hoodie.errors import CorruptFile, InstantNotFound, WriteConflict, clause
from hoodie.formats.log.blocks import encode_block
from hoodie.formats.log.content import rollback_block
from hoodie.formats.timeline.plans import decode_replace_plan
from hoodie.formats.timeline.services import decode_rollback_plan, encode_rollback_metadata, encode_rollback_plan
from hoodie.metadata.changes import of_rollback
from hoodie.metadata.keeping.follow import follow_change, still_listed, take_back_commit
from hoodie.metadata.partitions.kind import Change
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import log_file_name
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition
from hoodie.storage.protocol import Storage, join, remove_with_temporaries, rewrite, split
from hoodie.table.state import load_state
from hoodie.timeline.load import commit_content
from hoodie.timeline.timeline import TimelineLayout
from hoodie.timeline.transition import (
    back_to_requested,
    complete,
    completed_instants,
    create_requested,
    inflight_content,
    instant_path,
    remove_pending,
    to_inflight,
    uncomplete,
)

#: The write token of log files that hold a command block.
_COMMAND_TOKEN = "1-0-1"


def roll_back(
    storage: Storage,
    failed: Instant,
    instant: str,
    *,
    listing: bool = False,
    withdraw: bool = False,
    layout: TimelineLayout,
) -> Instant:
    """Roll back a pending write.

    instant   time of the rollback, newer than all on the timeline
    listing   find its files by listing all partitions, whatever its markers say
    withdraw  the plan of a clustering goes, too. (After a crash the next writer keeps it.)
    returns   the completed rollback
    Raises    WriteConflict when its writer has published it meanwhile: it stays
    """
    plan = plan_rollback(storage, failed, listing=listing, layout=layout)
    requested = create_requested(
        storage, instant, Action.ROLLBACK, encode_rollback_plan(plan, storage.root), layout=layout
    )
    return execute_rollback(storage, requested, plan, withdraw=withdraw, layout=layout)


def resume_rollback(storage: Storage, rollback: Instant, layout: TimelineLayout) -> Instant | None:
    """Resume a rollback that another process began.

    returns  the completed rollback; None: it was withdrawn, as its target is published and none of its files is removed
    Raises   WriteConflict when another process carries out the same rollback
    """
    try:
        return execute_rollback(storage, rollback, rollback_plan(storage, rollback, layout), layout=layout)
    except (WriteConflict, InstantNotFound, FileNotFoundError) as error:
        # Writers without a lock may resume the same rollback: the other has withdrawn or completed it meanwhile.
        now = pending_state(storage, rollback, layout)
        if now is None:
            return None
        if now.state is State.COMPLETED:
            return now
        if isinstance(error, WriteConflict):
            raise
        raise WriteConflict(
            f"another process is carrying out or withdrawing rollback {rollback.requested} ({clause(error)}). Try "
            "again; if the message stays, `hoodie check` says what is missing. Several writers need a lock: "
            "hoodie.write.concurrency.mode"
        ) from error


def rollback_plan(storage: Storage, rollback: Instant, layout: TimelineLayout) -> RollbackPlan:
    """The plan of a rollback. Raises CorruptFile."""
    path = instant_path(Instant(rollback.requested, Action.ROLLBACK, State.REQUESTED), layout)
    return decode_rollback_plan(storage.read(path), path)


def execute_rollback(
    storage: Storage, rollback: Instant, plan: RollbackPlan, *, withdraw: bool = False, layout: TimelineLayout
) -> Instant:
    """Carry out a rollback's plan; every step is idempotent. `withdraw` as of `roll_back`.

    Raises WriteConflict when the target is published, and whole: the rollback is withdrawn. (A completed instant is
    made pending before its rollback starts. One that is completed now was published by another writer.)
    """
    started = time.monotonic()
    target = Instant(plan.instant.time, Action(plan.instant.action), State.INFLIGHT)
    if rollback.state is State.REQUESTED:
        _refuse_published(storage, rollback, target, layout)
        rollback = to_inflight(storage, rollback, layout=layout)
    # New logs may belong to the slices that a compaction's plan opened.
    keeps_plan = target.action in PLANS or (not withdraw and is_clustering(storage, target, layout))
    # This is removed first: a writer that is considered dead cannot publish after it.
    back_to_requested(storage, target, layout)
    _refuse_published(storage, rollback, target, layout)
    before = load_state(storage)
    # Before the target leaves the timeline: its entries would be those of an unknown instant.
    compacted = take_back_commit(storage, before.config, before.timeline, target.requested, rollback.requested)
    partitions = undo(storage, rollback.requested, plan, keeps_plan=keeps_plan, layout=layout)
    metadata = outcome(rollback.requested, plan, partitions, started)
    if before.config.has_metadata_table:
        now = load_state(storage)
        listed = still_listed(storage, now.config, now.timeline, metadata)
        files = of_rollback(metadata, listed)
        follow_change(Change(storage, now.config, now.timeline, rollback.requested, files, compacted=compacted))
    completed = complete(storage, rollback, encode_rollback_metadata(metadata, storage.root), layout=layout)
    # Only now: they tell a process that resumes it which command blocks are there.
    delete_markers(storage, rollback.requested)
    return completed


def undo(
    storage: Storage, by: str, plan: RollbackPlan, *, keeps_plan: bool, layout: TimelineLayout
) -> dict[str, RolledBackPartition]:
    """Remove what an unpublished instant left: its files, its blocks, itself, its markers.

    by          instant of the rollback or restore
    keeps_plan  only its inflight file is removed: a table service that may run again
    returns     what was done, by partition path
    """
    target = Instant(plan.instant.time, Action(plan.instant.action), State.INFLIGHT)
    partitions = _take_back(storage, by, target.requested, plan.requests)
    # Attempts that Spark abandoned may have finished a file meanwhile. Later ones see that the write is over.
    late = made_by(storage, target.requested)
    if keeps_plan:
        back_to_requested(storage, target, layout)
    else:
        remove_pending(storage, target, layout)
    current = pending_state(storage, target, layout)
    if current is not None and current.state is State.COMPLETED:
        return (
            partitions  # its writer was alive, began after the plan was made and has published: its files are visible
        )
    remove_with_temporaries(storage, late)
    # The plan lists what the markers name. After the completion nothing would remove them.
    delete_markers(storage, target.requested)
    return partitions


def outcome(
    by: str, plan: RollbackPlan, partitions: dict[str, RolledBackPartition], started: float
) -> RollbackMetadata:
    """The metadata of a completed rollback; `started` by the monotonic clock."""
    return RollbackMetadata(
        start=by,
        millis=int((time.monotonic() - started) * 1000),
        files_deleted=sum(len(partition.deleted) for partition in partitions.values()),
        commits=(plan.instant.time,),
        partitions=partitions,
        instants=(plan.instant,),
    )


def unpublish(
    storage: Storage, published: Instant, action: Action, *, keep_stats: bool = False, layout: TimelineLayout
) -> Instant:
    """Make a completed instant pending again: readers see the table as it was before. Idempotent.

    action      under which it was pending, such as COMPACTION for a commit of a Merge-on-Read table
    keep_stats  put its statistics into the inflight file: a restore has no plan for each instant
    returns     the inflight instant
    """
    inflight = Instant(published.requested, action, State.INFLIGHT)
    if keep_stats:
        # One that is damaged says nothing: what it wrote is searched for again.
        metadata = _metadata(storage, published, layout)
        content = b"" if metadata is None else inflight_content(metadata, layout)
        rewrite(storage, instant_path(inflight, layout), content)
    if published.action is Action.REPLACE_COMMIT:
        # A completed clustering is undone, not to run again: an empty request is not a clustering's.
        rewrite(storage, instant_path(Instant(published.requested, action, State.REQUESTED), layout), b"")
    return uncomplete(storage, published, action, layout=layout)


def pending_state(storage: Storage, pending: Instant, layout: TimelineLayout) -> Instant | None:
    """The state in which an instant is on the timeline."""
    if completed := completed_instants(storage, pending, layout):
        return completed[-1]
    states = (Instant(pending.requested, pending.action, s) for s in (State.INFLIGHT, State.REQUESTED))
    return next((state for state in states if storage.exists(instant_path(state, layout))), None)


def is_clustering(storage: Storage, pending: Instant, layout: TimelineLayout) -> bool:
    """Whether a pending instant is a clustering that can run. One whose plan cannot be read never can."""
    path = instant_path(Instant(pending.requested, pending.action, State.REQUESTED), layout)
    if pending.action not in (Action.REPLACE_COMMIT, Action.CLUSTERING) or not storage.exists(path):
        return False
    try:
        return decode_replace_plan(storage.read(path), path).clustering is not None
    except CorruptFile:
        return False


def _refuse_published(storage: Storage, rollback: Instant, target: Instant, layout: TimelineLayout) -> None:
    """Withdraw a rollback whose target is completed and whole."""
    current = pending_state(storage, target, layout)
    if current is None or current.state is not State.COMPLETED:
        return
    try:
        metadata = _metadata(storage, current, layout)
    except FileNotFoundError:  # another process has made it pending since: it resumes the same rollback
        return
    # A damaged one publishes nothing whole. While the rollback is only requested, nothing is removed yet.
    damaged = metadata is None and rollback.state is not State.REQUESTED
    written = () if metadata is None else metadata.paths
    command = encode_block(rollback_block(rollback.requested, target.requested))
    if damaged or _commands_written(storage, rollback.requested, command) or not all(map(storage.exists, written)):
        # Its files are no longer complete, and readers must not use them.
        back_to_requested(storage, unpublish(storage, current, target.action, layout=layout), layout)
        return
    with suppress(FileExistsError):
        storage.create_new(instant_path(target, layout), b"")
    delete_markers(storage, rollback.requested)
    remove_pending(storage, rollback, layout)
    raise WriteConflict(
        f"instant {target.requested} was to be rolled back, but its writer has published it meanwhile: it stays. "
        "To undo it, roll it back as a completed commit."
    )


def _metadata(storage: Storage, completed: Instant, layout: TimelineLayout) -> CommitMetadata | None:
    """What a completed commit's file says; None when it is empty or cut short."""
    path = instant_path(completed, layout)
    content = storage.read(path)
    try:
        return commit_content(content, path, completed) if content else None
    except CorruptFile:
        return None


def _take_back(
    storage: Storage, rollback: str, target: str, requests: Sequence[RollbackRequest]
) -> dict[str, RolledBackPartition]:
    """Delete files, write command blocks. What was done, by partition path."""
    by_partition: dict[str, list[RollbackRequest]] = {}
    for request in requests:
        by_partition.setdefault(request.partition, []).append(request)
    command = encode_block(rollback_block(rollback, target))
    earlier = _commands_written(storage, rollback, command)
    partitions = {}
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
        partitions[partition] = RolledBackPartition(
            deleted=tuple(deleted), command_logs=dict.fromkeys(commands, len(command)), failed_logs=failed
        )
    return partitions


def _write_command(
    storage: Storage, rollback: str, command: bytes, request: RollbackRequest, names: Collection[str]
) -> str:
    """Put a command block into a new log file after all others of the slice; its name.

    names  of the files in the partition
    It also comes after log files that do not exist (yet): a writer that is considered dead may still finish one.
    """
    slice_ = (request.file_id, request.base_instant)
    logs = logs_of_slice(request.partition, {*names, *request.log_blocks}, *slice_)
    version = max((log.version for log in logs), default=0)
    while True:
        version += 1
        name = log_file_name(*slice_, version, _COMMAND_TOKEN)
        path = join(request.partition, name)
        create_marker(storage, rollback, path, MarkerKind.APPEND)
        try:
            storage.create_new(path, command)
        except FileExistsError:  # another rollback came first
            continue
        return name


def _commands_written(storage: Storage, rollback: str, command: bytes) -> dict[tuple[str, str, str], str]:
    """What the rollback has written so far: (partition path, file id, base instant) -> name of the log file."""
    commands = {}
    for marker in read_markers(storage, rollback):
        folder, name = split(marker.path)
        log = parse_log(folder, name)
        if storage.exists(marker.path) and storage.read(marker.path) == command:
            commands[folder, log.group.file_id, log.base_instant] = name
    return commands
