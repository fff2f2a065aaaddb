"""The partition `partition_stats`: least and greatest values and nulls of columns, by partition of the table.

A record says all that the files of its partition hold, and takes the place of the one before. Replaced file groups
count once more with the commit that replaces them, as in Hudi.
Source: docs/format/table-versions-8-9.md 11; pinned by the tables of Hudi 1.x in tests/fixtures.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hoodie.errors import UnsupportedTable
from hoodie.metadata.encode import record_cells
from hoodie.metadata.keys import MetadataPartition, column_stats_key, partition_stats_key
from hoodie.metadata.merging import united
from hoodie.metadata.partitions.column_ranges import Range
from hoodie.metadata.partitions.indexed_columns import first_columns, kept_columns
from hoodie.metadata.partitions.kind import Building, Change, InitialContent, PartitionKind, where_defined, where_typed
from hoodie.metadata.partitions.typed_stats import ranges_of_files
from hoodie.metadata.partitions.value_types import NO_TYPE
from hoodie.metadata.records import COLUMN_STATS as SCHEMA
from hoodie.metadata.records import deleted_records
from hoodie.metadata.statistics import column_statistics
from hoodie.metadata.table import open_metadata
from hoodie.model.commit import Operation
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.instant import Instant, State
from hoodie.storage.protocol import Storage
from hoodie.timeline.timeline import Timeline, comparable_action
from hoodie.view.load import load_view
from hoodie.view.slices import FileSystemView, merged_slices

File = BaseFile | LogFile
#: Later than the completion of all that is completed.
_LATEST = "9" * 17


def _records(change: Change) -> pa.Table:
    if change.compacted:
        raise UnsupportedTable(f"what {change.instant} takes back of it is part of its base files by now")
    commit = change.commit
    if commit is None:
        return SCHEMA.empty_table()
    names = kept_columns(change)
    if commit.operation is Operation.DELETE_PARTITION:
        keys = [partition_stats_key(name, path) for path in commit.replaced for name in names]
        return deleted_records(pa.array(keys, pa.string()), MetadataPartition.PARTITION_STATS)
    partitions = [path for path, stats in commit.stats.items() if stats]
    files = _files_of(_with_completed(change, load_view(change.storage, change.timeline, change.config, partitions)))
    ranges = _ranges(change, [file for part in files.values() for file in part], names)
    return _of_partitions(files, names, ranges)


def _of_partitions(
    files: Mapping[str, Collection[File]], names: Collection[str], ranges: Mapping[tuple[str, str], Range]
) -> pa.Table:
    records = []
    for partition, part in files.items():
        for name in names:
            if (whole := _joined_range(ranges.get((file.path, name)) for file in part)) is not None:
                row = partition_stats_key(name, partition)
                records.append(
                    {"row": row, "file": partition, "column": name, **whole, "tight": True, "deleted": False}
                )
    return pa.Table.from_pylist(records, schema=SCHEMA)


def _joined_range(ranges: Iterable[Range | None]) -> Range | None:
    """What some files hold together of a column; None: none of them has it. Raises UnsupportedTable"""
    whole: Range | None = None
    for file_range in ranges:
        if file_range is None:
            continue
        if whole is None or whole["type"] == NO_TYPE:
            kind = file_range["type"] if whole is None or file_range["type"] != NO_TYPE else whole["type"]
            whole = {**(file_range if whole is None else united(file_range, whole)), "type": kind}
            continue
        if file_range["type"] not in (NO_TYPE, whole["type"]):
            raise UnsupportedTable("files of one partition have statistics of other types")
        whole = united({**file_range, "type": whole["type"]}, whole)
    return whole


def _ranges(change: Change, files: Collection[File], names: Collection[str]) -> dict[tuple[str, str], Range]:
    """The range of each column in each file, by its path: as the column statistics have it, else as the file has."""
    stored = _stored_ranges(change, files, names)
    lacking = [file for file in files if any((file.path, name) not in stored for name in names)]
    for file, ranges in ranges_of_files(change.storage, lacking, names):
        for name, column_range in ranges.items():
            stored.setdefault((file.path, name), column_range)
    return stored


def _stored_ranges(change: Change, files: Collection[File], names: Collection[str]) -> dict[tuple[str, str], Range]:
    table = open_metadata(change.storage, change.config, change.timeline)
    partitions = {file.group.partition for file in files}
    records = None if table is None else column_statistics(table, names, partitions)
    if records is None:
        return {}
    by_row = {record["row"]: record for record in records.to_pylist()}
    keys = {
        (file.path, name): column_stats_key(name, file.group.partition, file.name) for file in files for name in names
    }
    members = [field.name for field in SCHEMA if field.name not in ("row", "file", "column", "deleted")]
    return {
        place: {member: by_row[row][member] for member in members}
        for place, row in keys.items()
        if row in by_row and by_row[row]["type"] is not None
    }


def _files_of(view: FileSystemView) -> dict[str, list[File]]:
    """The files that a snapshot is read from, by partition."""
    files: dict[str, list[File]] = {}
    for group, slice_ in merged_slices(view).items():
        files.setdefault(group.partition, []).extend(
            [*([slice_.base] if slice_.base else []), *(log for log in slice_.logs if not log.cdc)]
        )
    return files


def _with_completed(change: Change, view: FileSystemView) -> FileSystemView:
    """The view as it is once the action is completed; what it replaces is still there."""
    compacting = {group: time for group, time in view.compacting.items() if time != change.instant}
    return replace(view, timeline=_timeline_after(view.timeline, change.instant), compacting=compacting)


def _timeline_after(timeline: Timeline, instant: str) -> Timeline:
    instants = tuple(
        Instant(instant, comparable_action(one.action), State.COMPLETED, _LATEST)
        if one.requested == instant and one.state is not State.COMPLETED
        else one
        for one in timeline.instants
    )
    return replace(timeline, instants=tuple(sorted(instants)))


def _first_content(building: Building) -> InitialContent:
    """A task for each partition of the table."""
    names = first_columns(building)
    files = _files_of(load_view(building.storage, building.timeline, building.config))
    return InitialContent(1, sorted(files.items()), partial(_first_records, building.storage, names))


def _first_records(
    storage: Storage, names: Collection[str], partition: tuple[str, Sequence[File]]
) -> Iterator[pa.Table]:
    path, files = partition
    ranges = {
        (file.path, name): column_range
        for file, of_file in ranges_of_files(storage, files, names)
        for name, column_range in of_file.items()
    }
    yield _of_partitions({path: files}, names, ranges)


PARTITION_STATS = PartitionKind(
    partition=MetadataPartition.PARTITION_STATS,
    prefix="partition-stats",
    records=_records,
    first=_first_content,
    cells=partial(record_cells, MetadataPartition.PARTITION_STATS),
    deletes_apart=where_defined,
    is_of=where_typed,
)
