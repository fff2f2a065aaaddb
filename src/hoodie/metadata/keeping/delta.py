"""Delta commits of the metadata table: one for each action on the table, with the same time, and the rollback of one.

The caller holds the lock of the table: a metadata table has none of its own.
Source: docs/format/metadata-table.md 7.2 and 7.3; pinned by tests/unit/metadata/test_metadata_keeping.py.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, SchemaMismatch
from hoodie.formats.avro.compile import BadSchema
from hoodie.formats.log.blocks import LogBlock, encode_block
from hoodie.formats.log.content import rollback_block
from hoodie.formats.timeline.services import decode_rollback_plan, encode_rollback_metadata, encode_rollback_plan
from hoodie.metadata.encode import column_in_one_piece, data_block, record_delete_block
from hoodie.metadata.keys import MetadataPartition, file_groups_of
from hoodie.metadata.partitions.kind import PartitionKind
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.metadata.read import log_instants, stored_schema, writer_slices
from hoodie.metadata.record_schema import record_schema_text
from hoodie.metadata.table import MetadataTable, is_own
from hoodie.model.commit import CommitMetadata, Operation, WriteStat, inflight_profile
from hoodie.model.files import FileGroupId, FileSlice, LogFile, log_file_name, log_token, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import InstantRef, RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition
from hoodie.model.table_version import TableVersion
from hoodie.storage.protocol import Storage, join, remove_with_temporaries
from hoodie.timeline.transition import (
    complete,
    completed_content,
    create_requested,
    inflight_content,
    instant_path,
    remove_pending,
    to_inflight,
    uncomplete,
)

#: The suffix of the instant that takes back a delta commit, to the time of the action that asks for it.
_TAKING_BACK = "006"
#: The write token of log files that hold a command block.
_COMMAND_TOKEN = "1-0-1"


def append(table: MetadataTable, instant: str, records: Mapping[MetadataPartition, pa.Table]) -> None:
    """Write a delta commit: a log file in each file group that has records of its own.

    instant  of the action on the table, 17 digits; no delta commit has it
    records  by partition, of the schemas `records.SCHEMAS`; partitions without any may be left out
    Raises   CorruptFile when a partition is damaged
    """
    started, storage = time.monotonic(), table.storage
    shares = [share for kind in kinds_of(records) for share in _shares(table, kind, records[kind.partition])]
    groups = [(share.slice.group, share.slice.base_instant, 0, share.count) for share in shares]
    profile = inflight_profile(Operation.UPSERT_PREPPED, groups)
    layout = table.layout
    requested = create_requested(storage, instant, Action.DELTA_COMMIT, ahead=True, layout=layout)
    begun = to_inflight(storage, requested, inflight_content(profile, layout), just_requested=True, layout=layout)
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for share in shares:
        content = b"".join(map(encode_block, _blocks(instant, share)))
        slice_ = share.slice
        if layout.version.logs_of_writes:  # its slice is not told, as it follows from when the write is completed
            slice_ = FileSlice(slice_.group, instant, None)
        name, version = create_log(storage, slice_, log_token(instant, "0-0-0"), content)
        stat = _stat(slice_, name, version, share, len(content), time.monotonic() - started)
        stats[slice_.group.partition] = (*stats.get(slice_.group.partition, ()), stat)
    commit = CommitMetadata(
        operation=Operation.UPSERT_PREPPED, stats=stats, extra={"schema": record_schema_text(layout.version)}
    )
    complete(storage, begun, completed_content(commit, Action.DELTA_COMMIT, layout), layout=layout)


@dataclass(frozen=True, slots=True, eq=False)
class _Share:
    """What one file group gets.

    rows, values  of cells
    deleted       keys whose records are taken away: string[n]
    schema        that the values are written by
    """

    slice: FileSlice
    rows: pa.Array
    values: pa.Array
    deleted: pa.Array
    schema: str

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.deleted)


def _shares(table: MetadataTable, kind: PartitionKind, records: pa.Table) -> Iterator[_Share]:
    """Those of a partition, for each file group that has any. The values are encoded at once: few are as much work as
    one."""
    if not len(records):
        return
    slices = writer_slices(table, kind.partition)
    stored, deletes = _parted(kind, records, table.layout.version)
    deleted = column_in_one_piece(deletes, "row").unique()
    groups_deleted = file_groups_of(deleted, len(slices))
    touched = {
        *file_groups_of(column_in_one_piece(stored, "row").unique(), len(slices)).tolist(),
        *groups_deleted.tolist(),
    }
    schemas = {number: stored_schema(table, slices[number]) for number in sorted(touched)}
    try:
        cells = {schema: kind.cells(stored, "", schema) for schema in {*schemas.values()}}
    except (BadSchema, SchemaMismatch, KeyError, pa.ArrowException) as error:
        raise CorruptFile(slices[min(touched)].group.partition, f"the schema of its records: {error}") from error
    groups = {schema: file_groups_of(rows, len(slices)) for schema, (rows, _) in cells.items()}
    for number, schema in schemas.items():
        chosen = pa.array(np.flatnonzero(groups[schema] == number))
        rows, values = (column.take(chosen) for column in cells[schema])
        deleted_rows = deleted.filter(pa.array(groups_deleted == number))
        yield _Share(slices[number], rows, values, deleted_rows, schema)


def _blocks(instant: str, share: _Share) -> Iterator[LogBlock]:
    """The blocks with the records of one file group: deletes come last."""
    if len(share.rows):
        yield data_block(instant, share.rows, share.values, share.schema)
    if len(share.deleted):
        yield record_delete_block(instant, MetadataPartition(share.slice.group.partition), share.deleted)


def _parted(kind: PartitionKind, records: pa.Table, version: TableVersion) -> tuple[pa.Table, pa.Table]:
    """Those that become records, and those whose keys are deleted."""
    if not kind.deletes_apart(version):
        return records, records.slice(0, 0)
    deleted = records.column("deleted")
    return records.filter(pc.invert(deleted)), records.filter(deleted)


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


def _stat(slice_: FileSlice, name: str, version: int, share: _Share, size: int, seconds: float) -> WriteStat:
    count = len(share.rows)
    return WriteStat(
        file_id=slice_.group.file_id,
        path=join(slice_.group.partition, name),
        partition=slice_.group.partition,
        prev_commit=slice_.base_instant,
        num_writes=count,
        num_updates=count,
        num_deletes=len(share.deleted),
        total_write_bytes=size,
        file_size=size,
        upsert_time=int(seconds * 1000),
        log_version=version,
        log_offset=0,
        base_file=slice_.base.name if slice_.base else "",
        log_files=(*(log.name for log in slice_.logs), name),
    )


def take_back_delta(table: MetadataTable, target: str, by: str) -> None:
    """Roll a delta commit back, if there is one.

    Its blocks are cancelled by a command block, unless they are part of a base file by now: see `is_compacted`. From
    table version 8 on its log files are deleted.

    target  time of the delta commit
    by      time of the action on the table that asks for it
    """
    if table.timeline.find(target, Action.DELTA_COMMIT) is None:
        return
    plan = RollbackPlan(instant=InstantRef(target, Action.DELTA_COMMIT), requests=tuple(_requests(table, target)))
    content = encode_rollback_plan(plan, table.storage.root)
    at = table.time(by) if table.layout.version.logs_of_writes else _free(table, by)
    _roll_back(table, create_requested(table.storage, at, Action.ROLLBACK, content, layout=table.layout), plan)


def finish_pending(table: MetadataTable) -> MetadataTable:
    """Finish rollbacks of delta commits that died, and forget partitions whose building did; the metadata table
    afterwards.

    Raises CorruptFile when a plan cannot be read
    """
    begun = [i for i in table.timeline.pending({Action.DELTA_COMMIT}) if is_own(i.requested)]
    for instant in begun:
        remove_pending(table.storage, instant, layout=table.layout)
    table = table.reload() if begun else table
    pending = table.timeline.pending({Action.ROLLBACK})
    for rollback in pending:
        path = instant_path(Instant(rollback.requested, Action.ROLLBACK, State.REQUESTED), layout=table.layout)
        plan = decode_rollback_plan(table.storage.read(path), path)
        if plan.instant.action == Action.DELTA_COMMIT:
            requests = tuple(_requests(table, plan.instant.time))
            _roll_back(table, rollback, RollbackPlan(instant=plan.instant, requests=requests))
            table = table.reload()
    return table


def _roll_back(table: MetadataTable, rollback: Instant, plan: RollbackPlan) -> None:
    """Carry a rollback out, whatever an earlier run has done."""
    storage, started, target, layout = table.storage, time.monotonic(), plan.instant.time, table.layout
    if rollback.state is State.REQUESTED:
        rollback = to_inflight(storage, rollback, layout=layout)
    command = encode_block(rollback_block(rollback.requested, target))
    slices = {slice_.group: slice_ for slice_ in _all_slices(table)}
    partitions: dict[str, RolledBackPartition] = {}
    for request in plan.requests:
        if request.delete:
            remove_with_temporaries(storage, [join(request.partition, name) for name in request.delete])
            part = partitions.get(request.partition, RolledBackPartition())
            partitions[request.partition] = replace(part, deleted=(*part.deleted, *request.delete))
            continue
        name, _ = create_log(storage, slices[FileGroupId(request.partition, request.file_id)], _COMMAND_TOKEN, command)
        part = partitions.get(request.partition, RolledBackPartition())
        partitions[request.partition] = replace(
            part,
            command_logs={**part.command_logs, name: len(command)},
            failed_logs={**part.failed_logs, **request.log_blocks},
        )
    committed = table.timeline.find(target, Action.DELTA_COMMIT)
    if committed is not None:
        if committed.state is State.COMPLETED:
            committed = uncomplete(storage, committed, layout=layout)
        remove_pending(storage, committed, layout=layout)
    metadata = RollbackMetadata(
        start=rollback.requested,
        millis=int((time.monotonic() - started) * 1000),
        commits=(target,),
        partitions=partitions,
        instants=(plan.instant,),
    )
    complete(storage, rollback, encode_rollback_metadata(metadata, storage.root), layout=layout)


def is_compacted(table: MetadataTable, instant: str) -> bool:
    """Whether what a delta commit wrote is part of a base file by now."""
    if not table.layout.version.logs_of_writes:
        return instant < table.compacted
    delta_commit = table.timeline.find(instant, Action.DELTA_COMMIT)
    return (
        delta_commit is not None and delta_commit.state is State.COMPLETED and delta_commit.completed < table.compacted
    )


def orphans(table: MetadataTable) -> list[str]:
    """Delta commits of actions that the table's timeline does not have: their writer died, and the action was given up.

    Older ones than all there are belong to archived actions, and so do those before a compaction.
    """
    times = {instant.requested for instant in table.data.instants}
    first = max(min(times, default=""), table.compacted[:17])
    return [
        instant.requested
        for instant in table.timeline.instants
        if instant.action is Action.DELTA_COMMIT
        and len(instant.requested) == len(first) == 17
        and instant.requested > first
        and instant.requested not in times
        and instant.requested not in table.of_restores
    ]


def died_later(table: MetadataTable, instant: str) -> list[str]:
    """Delta commits of actions after `instant` that were begun and not completed.

    Hudi 0.15 ends its scan of a log file group at a block that is later than all completed instants: it would miss what
    is put behind that block. Once the delta commit is rolled back there is a later instant. From table version 8 on
    logs of pending delta commits are left out.
    """
    if table.layout.version.logs_of_writes:
        return []
    begun = table.timeline.pending({Action.DELTA_COMMIT})
    return [other.requested for other in begun if other.requested > instant and not is_own(other.requested)]


def _requests(table: MetadataTable, target: str) -> Iterable[RollbackRequest]:
    """The slices whose logs hold blocks of an instant."""
    if is_compacted(table, target):
        return
    if table.layout.version.logs_of_writes:  # a view leaves out those of a delta commit that is pending
        for kind in kinds_of(table.ready):
            folder = str(kind.partition)
            files = (parse_data_file(folder, entry.name, entry.size) for entry in table.storage.list(folder))
            for log in (file for file in files if isinstance(file, LogFile) and file.base_instant == target):
                yield RollbackRequest(
                    partition=folder, file_id=log.group.file_id, base_instant=target, delete=(log.name,)
                )
        return
    for slice_ in _all_slices(table):
        logs = {log.name: log.size for log in slice_.logs if target in log_instants(table.storage, log)}
        if logs:
            yield RollbackRequest(
                partition=slice_.group.partition,
                file_id=slice_.group.file_id,
                base_instant=slice_.base_instant,
                log_blocks=logs,
            )


def _all_slices(table: MetadataTable) -> Iterator[FileSlice]:
    """The slices that a delta commit adds to, of all partitions that are kept."""
    for kind in kinds_of(table.ready):
        yield from writer_slices(table, kind.partition)


def _free(table: MetadataTable, by: str) -> str:
    """A time for a rollback: the one that Hudi gives it, or the first after it that no earlier one took."""
    taken = {instant.requested for instant in table.timeline.instants}
    numbers = [_TAKING_BACK, *(f"{number:03}" for number in range(10, 1000))]
    return next(by + number for number in numbers if by + number not in taken)
