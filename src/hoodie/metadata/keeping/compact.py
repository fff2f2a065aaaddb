"""Compaction of the metadata table: the logs of each file group become a base file, so that reads need few log blocks.

The caller holds the lock of the table. Source: docs/format/metadata-table.md 8.2; pinned by
tests/unit/metadata/test_metadata_upkeep.py.
"""

import time

from hoodie.errors import CorruptFile
from hoodie.formats.timeline.plans import encode_compaction_plan
from hoodie.metadata.encode import base_file
from hoodie.metadata.keeping.delta import orphans
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.kinds import kinds_of, partition_kind
from hoodie.metadata.read import log_instants, partition_slices, slice_records, stored_schema, whole_view
from hoodie.metadata.record_schema import SCHEMA
from hoodie.metadata.table import MetadataTable
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, FileSlice, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CompactionPlan
from hoodie.plan.compaction import operation_of
from hoodie.storage.protocol import join
from hoodie.timeline.load import read_compaction_plan
from hoodie.timeline.transition import complete, completed_content, create_requested, to_inflight
from hoodie.view.slices import slice_before

_SUFFIX = "001"
_TOKEN = "0-0-0"
#: Bytes that a new base file is taken to have, for the plan's metrics.
_USUAL_SIZE = 120 * 1024 * 1024


def compact_metadata(table: MetadataTable, delta_commits: int, *, alone: bool = False) -> str:
    """Run a compaction that is pending, or one that is due; its instant, "" when there is none.

    delta_commits  that a compaction waits for
    alone          the table has no lock: no other writer may be at work, which could add to the slice as it is closed
    Raises         CorruptFile when the metadata table is damaged, or a pending plan lacks logs
    """
    pending = table.timeline.pending_compactions
    if _busy(table, alone=alone):
        return ""
    if pending:
        return _run(table, pending[0])
    newest = _newest_delta(table)
    if not newest or waiting_commits(table) < delta_commits or orphans(table):
        return ""
    if table.layout.version.logs_of_writes:
        time = table.time(newest)
    else:
        time = newest + _SUFFIX
        if len(newest) != 17 or any(instant.requested == time for instant in table.timeline.instants):
            return ""
    slices = [slice_ for kind in kinds_of(table.ready) for slice_ in partition_slices(table, kind.partition)]
    slices = [slice_ for slice_ in slices if slice_.logs and not _as_built(table, slice_)]
    plan = CompactionPlan(operations=tuple(operation_of(slice_, _USUAL_SIZE) for slice_ in slices))
    content = encode_compaction_plan(plan)
    planned = create_requested(table.storage, time, Action.COMPACTION, content, layout=table.layout)
    return _run(table.reload(), planned)


def _busy(table: MetadataTable, *, alone: bool) -> bool:
    """Whether an action of the table is pending that belongs, or could come to belong, into the base file.

    A base file at an instant stands for all that the table did up to then; from table version 8 on, for what was
    completed here by then.
    """
    newest = _newest_delta(table)
    pending = [i.requested for i in table.data.instants if i.state is not State.COMPLETED]
    if table.layout.version.logs_of_writes:
        return (alone and bool(pending)) or any(table.timeline.find(time, Action.DELTA_COMMIT) for time in pending)
    return any(alone or time <= newest for time in pending)


def _as_built(table: MetadataTable, slice_: FileSlice) -> bool:
    """Whether a slice has no log but the empty one that it began with: of a record index that is many bytes that need
    no rewriting."""
    (log, *others) = slice_.logs
    return not others and slice_.base is not None and log_instants(table.storage, log) <= {slice_.base_instant}


def _newest_delta(table: MetadataTable) -> str:
    return max((i.requested for i in table.timeline.completed({Action.DELTA_COMMIT})), default="")


def waiting_commits(table: MetadataTable) -> int:
    """The delta commits since the last compaction."""
    last = max((i.requested for i in table.timeline.completed({Action.COMMIT})), default="")
    return sum(i.requested > last for i in table.timeline.completed({Action.DELTA_COMMIT}))


def _run(table: MetadataTable, planned: Instant) -> str:
    """Carry a plan out from the start, whatever an earlier run did."""
    storage, started = table.storage, time.monotonic()
    plan = read_compaction_plan(storage, table.timeline, planned)
    views = {str(kind.partition): whole_view(table, kind.partition) for kind in kinds_of(table.ready)}
    begun = to_inflight(storage, planned, layout=table.layout) if planned.state is State.REQUESTED else planned
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for operation in plan.operations:
        folder = operation.group.partition
        if folder not in views:  # of a partition that is gone
            continue
        slice_ = slice_before(views[folder], operation.group, planned.requested)
        if slice_ is None or {log.name for log in slice_.logs} != set(operation.log_files):
            where = f"{table.storage.root}/{folder}"
            raise CorruptFile(where, f"its logs are not those of the compaction {planned.requested}")
        written = _write(table, slice_, planned.requested, started)
        stats[folder] = (*stats.get(folder, ()), *([written] if written else ()))
    commit = CommitMetadata(operation=Operation.COMPACT, stats=stats, extra={"schema": SCHEMA}, compacted=True)
    complete(storage, begun, completed_content(commit, Action.COMMIT, table.layout), layout=table.layout)
    return planned.requested


def _remove_leftovers(table: MetadataTable, slice_: FileSlice, instant: str) -> None:
    """Remove base files that a run which died left: of two with one instant, readers take either."""
    folder = slice_.group.partition
    for entry in table.storage.list(folder):
        file = parse_data_file(folder, entry.name, entry.size, "hfile")
        if isinstance(file, BaseFile) and (file.group, file.instant) == (slice_.group, instant):
            table.storage.delete(file.path)


def _write(table: MetadataTable, slice_: FileSlice, instant: str, started: float) -> WriteStat | None:
    """Write the base file of a slice; None: it has no records, and gets none."""
    kind = partition_kind(MetadataPartition(slice_.group.partition))
    records = slice_records(table, kind.partition, slice_)
    scanned = time.monotonic()
    name = f"{slice_.group.file_id}_{_TOKEN}_{instant}.hfile"
    schema = stored_schema(table, slice_)
    rows, values = kind.cells(records, name, schema)
    _remove_leftovers(table, slice_, instant)
    if not (count := len(rows)):
        return None
    content = base_file(rows, values, kind.block_size, schema)
    path = join(slice_.group.partition, name)
    table.storage.write(path, content)
    return WriteStat(
        file_id=slice_.group.file_id,
        path=path,
        partition=slice_.group.partition,
        prev_commit=slice_.base_instant,
        num_writes=count,
        num_updates=count,
        total_write_bytes=len(content),
        file_size=len(content),
        log_records=count,
        log_files_compacted=len(slice_.logs),
        log_size_compacted=slice_.log_bytes,
        updated_records_compacted=count,
        log_blocks=len(slice_.logs),
        scan_time=int((scanned - started) * 1000),
        upsert_time=int((time.monotonic() - scanned) * 1000),
    )
