"""Delta commits of the metadata table: one for each action on the table, with the same time, and the rollback of one.

The caller holds the lock of the table: a metadata table has none of its own.
Source: docs/format/metadata-table.md 7.2 and 7.3; pinned by tests/unit/metadata/test_metadata_delta.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import pyarrow as pa

from hoodie.formats.log.blocks import encode_block
from hoodie.formats.log.content import rollback_block
from hoodie.formats.timeline.commit_json import encode_commit, encode_inflight, inflight_profile
from hoodie.formats.timeline.services import decode_rollback_plan, encode_rollback_metadata, encode_rollback_plan
from hoodie.metadata.encode import data_block
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.read import log_instants, writer_slices
from hoodie.metadata.record_schema import SCHEMA
from hoodie.metadata.table import MetadataTable
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import FileSlice, log_file_name, log_token
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import InstantRef, RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition
from hoodie.storage.protocol import Storage, join
from hoodie.timeline.transition import complete, create_requested, instant_path, remove_pending, to_inflight, uncomplete

#: The suffix of the instant that takes back a delta commit, to the time of the action that asks for it.
_TAKING_BACK = "006"
#: The write token of log files that hold a command block.
_COMMAND_TOKEN = "1-0-1"


def append(table: MetadataTable, instant: str, records: pa.Table) -> None:
    """Write a delta commit with entries of file lists: a log block, unless there are none.

    instant  of the action on the table, 17 digits; no delta commit has it
    records  of the schema `records.FILES`
    Raises   CorruptFile when the partition is damaged
    """
    started, storage, partition = time.monotonic(), table.storage, str(MetadataPartition.FILES)
    slice_ = writer_slices(table, MetadataPartition.FILES)[0]
    count = len(set(records.column("row").to_pylist()))
    updates = {slice_.group: (slice_.base_instant, count)} if count else {}
    profile = inflight_profile(Operation.UPSERT_PREPPED, {partition: 0} if count else {}, updates)
    requested = create_requested(storage, instant, Action.DELTA_COMMIT)
    begun = to_inflight(storage, requested, encode_inflight(profile), just_requested=True)
    stats: dict[str, tuple[WriteStat, ...]] = {}
    if count:
        content = encode_block(data_block(instant, records))
        name, version = create_log(storage, slice_, log_token(instant, "0-0-0"), content)
        stats[partition] = (_stat(slice_, name, version, count, len(content), time.monotonic() - started),)
    done = CommitMetadata(operation=Operation.UPSERT_PREPPED, stats=stats, extra={"schema": SCHEMA})
    complete(storage, begun, encode_commit(done))


def create_log(storage: Storage, slice_: FileSlice, token: str, content: bytes) -> tuple[str, int]:
    """Add a log file to a slice; its name and version."""
    version = max((log.version for log in slice_.logs if log.base_instant == slice_.base_instant), default=0)
    while True:
        version += 1
        name = log_file_name(slice_.group.file_id, slice_.base_instant, version, token)
        try:
            storage.create_new(join(slice_.group.partition, name), content)
        except FileExistsError:
            continue
        return name, version


def _stat(slice_: FileSlice, name: str, version: int, count: int, size: int, seconds: float) -> WriteStat:
    return WriteStat(
        file_id=slice_.group.file_id,
        path=join(slice_.group.partition, name),
        partition=slice_.group.partition,
        prev_commit=slice_.base_instant,
        num_writes=count,
        num_updates=count,
        total_write_bytes=size,
        file_size=size,
        upsert_time=int(seconds * 1000),
        log_version=version,
        log_offset=0,
        base_file=slice_.base.name if slice_.base else "",
        log_files=(*(log.name for log in slice_.logs), name),
    )


def take_back(table: MetadataTable, target: str, by: str) -> None:
    """Roll a delta commit back, if there is one.

    Its blocks are cancelled by a command block, unless they are part of a base file by now: see `is_compacted`.

    target  time of the delta commit
    by      time of the action on the table that asks for it
    """
    if table.timeline.find(target, Action.DELTA_COMMIT) is None:
        return
    plan = RollbackPlan(instant=InstantRef(target, Action.DELTA_COMMIT), requests=tuple(_requests(table, target)))
    content = encode_rollback_plan(plan, table.storage.root)
    _roll_back(table, create_requested(table.storage, _free(table, by), Action.ROLLBACK, content), plan)


def finish_rollbacks(table: MetadataTable) -> MetadataTable:
    """Finish rollbacks of delta commits that died; the metadata table afterwards.

    Raises CorruptFile when a plan cannot be read
    """
    pending = table.timeline.pending({Action.ROLLBACK})
    for rollback in pending:
        path = instant_path(Instant(rollback.requested, Action.ROLLBACK, State.REQUESTED))
        plan = decode_rollback_plan(table.storage.read(path), path)
        if plan.instant.action == Action.DELTA_COMMIT:
            requests = tuple(_requests(table, plan.instant.time))
            _roll_back(table, rollback, RollbackPlan(instant=plan.instant, requests=requests))
            table = table.reload()
    return table


def _roll_back(table: MetadataTable, rollback: Instant, plan: RollbackPlan) -> None:
    """Carry a rollback out, whatever an earlier run has done."""
    storage, started, target = table.storage, time.monotonic(), plan.instant.time
    if rollback.state is State.REQUESTED:
        rollback = to_inflight(storage, rollback)
    command = encode_block(rollback_block(rollback.requested, target))
    slices = {slice_.group.file_id: slice_ for slice_ in writer_slices(table, MetadataPartition.FILES)}
    done: dict[str, RolledBackPartition] = {}
    for request in plan.requests:
        name, _ = create_log(storage, slices[request.file_id], _COMMAND_TOKEN, command)
        logs = dict(request.log_blocks)
        done[request.partition] = RolledBackPartition(command_logs={name: len(command)}, failed_logs=logs)
    committed = table.timeline.find(target, Action.DELTA_COMMIT)
    if committed is not None:
        if committed.state is State.COMPLETED:
            committed = uncomplete(storage, committed)
        remove_pending(storage, committed)
    metadata = RollbackMetadata(
        start=rollback.requested,
        millis=int((time.monotonic() - started) * 1000),
        commits=(target,),
        partitions=done,
        instants=(plan.instant,),
    )
    complete(storage, rollback, encode_rollback_metadata(metadata, storage.root))


def is_compacted(table: MetadataTable, instant: str) -> bool:
    """Whether what a delta commit wrote is part of a base file by now."""
    return any(commit.requested > instant for commit in table.timeline.completed({Action.COMMIT}))


def orphans(table: MetadataTable) -> list[str]:
    """Delta commits of actions that the table's timeline does not have: their writer died, and the action was given up.

    Older ones than all there are belong to archived actions.
    """
    times = {instant.requested for instant in table.data.instants}
    first = min(times, default="")
    return [
        instant.requested
        for instant in table.timeline.instants
        if instant.action is Action.DELTA_COMMIT
        and len(instant.requested) == len(first) == 17
        and instant.requested > first
        and instant.requested not in times
    ]


def _requests(table: MetadataTable, target: str) -> Iterable[RollbackRequest]:
    """The slices whose logs hold blocks of an instant."""
    if is_compacted(table, target):
        return
    for slice_ in writer_slices(table, MetadataPartition.FILES):
        logs = {log.name: log.size for log in slice_.logs if target in log_instants(table.storage, log)}
        if logs:
            yield RollbackRequest(
                partition=slice_.group.partition,
                file_id=slice_.group.file_id,
                base_instant=slice_.base_instant,
                log_blocks=logs,
            )


def _free(table: MetadataTable, by: str) -> str:
    """A time for a rollback: the one that Hudi gives it, or the first after it that no earlier one took."""
    taken = {instant.requested for instant in table.timeline.instants}
    numbers = [_TAKING_BACK, *(f"{number:03}" for number in range(10, 1000))]
    return next(by + number for number in numbers if by + number not in taken)
