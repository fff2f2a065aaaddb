"""Reads partitions of the metadata table: all records, those of some keys, or those whose keys begin alike.

Source: docs/format/metadata-table.md 1.2, 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, CorruptLogBlock, UnsupportedTable
from hoodie.formats.hfile.cells import Cells
from hoodie.formats.hfile.reader import HFile, open_hfile
from hoodie.formats.log.blocks import BlockHead, BlockKind, BlockMap, RangedRead, read_block_headers
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.merge.log_scan import blocks_to_merge, blocks_to_merge_compacted
from hoodie.metadata.keys import MetadataPartition, file_groups_of
from hoodie.metadata.merging import merged
from hoodie.metadata.record_schema import STORED_SCHEMA
from hoodie.metadata.records import SCHEMAS, decode_records, tombstones
from hoodie.metadata.table import MetadataTable
from hoodie.model.files import BaseFile, FileSlice, LogFile, parse_data_file
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage
from hoodie.storage.together import in_threads
from hoodie.timeline.load import read_compaction_plan, with_history
from hoodie.timeline.timeline import Timeline
from hoodie.view.load import build_view
from hoodie.view.slices import FileSystemView, latest_slices, merged_slices

#: A file up to this many bytes comes whole, with one request.
_WHOLE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records to read. All, unless keys or prefixes of keys are given."""

    keys: frozenset[str] | None = None
    prefixes: tuple[str, ...] = ()

    def cells(self, file: HFile) -> Iterator[Cells]:
        """Those of an HFile."""
        if self.keys is not None:
            yield from file.rows([key.encode() for key in self.keys])
        elif self.prefixes:
            for prefix in self.prefixes:
                yield from file.prefixed(prefix.encode())
        else:
            yield from file.cells()


ALL = Wanted()


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of a log file, and how the file is read."""

    path: str
    head: BlockHead
    read: RangedRead

    @property
    def kind(self) -> BlockKind:
        return self.head.kind

    @property
    def header(self) -> BlockMap:
        return self.head.header

    def content(self) -> bytes:
        data = self.read(self.head.content_offset, self.head.content_length)
        if len(data) != self.head.content_length:
            raise CorruptLogBlock(self.path, "the file is shorter than its block says", self.head.offset)
        return data

    def within(self, offset: int, length: int) -> bytes:
        """Bytes of the content."""
        length = min(length, self.head.content_length - offset)
        return self.read(self.head.content_offset + offset, length)


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """What a base file or a log block holds of what is wanted.

    schema   the Avro schema of the records in cells; "": it is a block of deletes
    deleted  the tombstones of such a block
    """

    path: str
    schema: str = ""
    cells: Iterable[Cells] = ()
    deleted: pa.Table | None = None
    is_base: bool = False


def read_records(
    table: MetadataTable,
    partition: MetadataPartition,
    wanted: Wanted = ALL,
    slices: Sequence[FileSlice] | None = None,
) -> pa.Table:
    """Records of a partition, in the form of `records.SCHEMAS`; deleted ones are left out. No order.

    slices  `partition_slices`, where they have been listed
    Raises  CorruptFile on damage, on a partition without file groups, and on log blocks of instants that the data
            table's timeline has lost; UnsupportedTable; FileNotFoundError when cleaning took a file away meanwhile
    """
    slices = partition_slices(table, partition) if slices is None else slices
    if wanted.keys is not None:
        return _records_of_keys(table, partition, wanted.keys, slices)
    tables = in_threads(partial(slice_records, table, partition, wanted=wanted), slices)
    return pa.concat_tables([SCHEMAS[partition].empty_table(), *tables])


def partition_slices(table: MetadataTable, partition: MetadataPartition) -> list[FileSlice]:
    """The file slices of a partition, by file id: their number is that of its file groups. Raises CorruptFile"""
    slices = merged_slices(whole_view(table, partition))
    return [slices[group] for group in sorted(slices, key=lambda group: group.file_id)]


def writer_slices(table: MetadataTable, partition: MetadataPartition) -> list[FileSlice]:
    """The slices that a delta commit adds to, by file id: those that a pending compaction opened included.

    Raises CorruptFile
    """
    slices = latest_slices(whole_view(table, partition))
    return [slices[group] for group in sorted(slices, key=lambda group: group.file_id)]


def instant_records(table: MetadataTable, partition: MetadataPartition, instant: str) -> pa.Table:
    """The records of a partition in the log blocks of a delta commit, deletions included: of `records.SCHEMAS`."""
    blocks = [
        block
        for slice_ in partition_slices(table, partition)
        for log in slice_.logs
        for block in _heads(table.storage, log)
        if block.kind is not BlockKind.COMMAND and block.header.instant == instant
    ]
    records = (_decoded(partition, _in_block(block, partition, ALL)) for block in blocks)
    return pa.concat_tables([SCHEMAS[partition].empty_table(), *records])


def log_instants(storage: Storage, log: LogFile) -> set[str]:
    """The delta commits that wrote blocks into a log file."""
    return {block.header.instant for block in _heads(storage, log) if block.kind is not BlockKind.COMMAND}


def whole_view(table: MetadataTable, partition: MetadataPartition) -> FileSystemView:
    """The view of a partition. Raises CorruptFile when files that it must have are gone"""
    folder = str(partition)
    parsed = (parse_data_file(folder, e.name, e.size, "hfile") for e in table.storage.list(folder) if not e.is_dir)
    files = [file for file in parsed if file is not None]
    instants = {file.instant if isinstance(file, BaseFile) else file.base_instant for file in files}
    timeline = with_history(table.storage, table.config, table.timeline, instants)
    plans = [
        (instant, read_compaction_plan(table.storage, timeline, instant)) for instant in timeline.pending_compactions
    ]
    view = build_view(timeline, files, compactions=plans)
    slices = merged_slices(view)
    if not slices:
        raise CorruptFile(f"{table.storage.root}/{folder}", "no file group of the metadata table is there")
    for slice_ in slices.values():
        _require_whole(slice_, partition, timeline)
    return view


def _require_whole(slice_: FileSlice, partition: MetadataPartition, timeline: Timeline) -> None:
    """See that a slice has the files that it must have: what it should hold would not be missed otherwise.

    Building the file lists makes a base file, and so does each compaction of a group with records; logs are numbered.
    """
    where = f"{slice_.group.partition}/{slice_.group.file_id}"
    compactions = {instant.requested for instant in timeline.completed({Action.COMMIT})}
    if slice_.base is None and (partition is MetadataPartition.FILES or slice_.base_instant in compactions):
        raise CorruptFile(where, f"the base file of instant {slice_.base_instant} is gone")
    if timeline.layout != 1:
        return
    versions: dict[str, set[int]] = {}
    for log in slice_.logs:
        versions.setdefault(log.base_instant, set()).add(log.version)
    for base_instant, numbers in versions.items():
        if gaps := set(range(1, max(numbers))) - numbers:
            raise CorruptFile(where, f"log file {min(gaps)} beside the base file of {base_instant} is gone")


def slice_records(
    table: MetadataTable, partition: MetadataPartition, slice_: FileSlice, wanted: Wanted = ALL
) -> pa.Table:
    """Those of one file slice. Raises as `read_records`"""
    stored = _stored(table, partition, slice_, wanted)
    return _merged(stored, in_threads(partial(_decoded, partition), stored), partition)


def _records_of_keys(
    table: MetadataTable, partition: MetadataPartition, keys: Iterable[str], slices: Sequence[FileSlice]
) -> pa.Table:
    """Those of some keys. What few are in each file is decoded at once: that costs more by calls than by records."""
    ordered = sorted(keys)
    groups = file_groups_of(pa.array(ordered, pa.string()), len(slices)).tolist()
    by_group: dict[int, set[str]] = {}
    for key, group in zip(ordered, groups, strict=True):
        by_group.setdefault(group, set()).add(key)

    def found(group: int) -> list[_Stored]:
        stored = _stored(table, partition, slices[group], Wanted(frozenset(by_group[group])))
        return [replace(part, cells=tuple(part.cells)) for part in stored]

    parts = [part for of_slice in in_threads(found, sorted(by_group)) for part in of_slice]
    if partition is MetadataPartition.FILES:  # whose cells hold many records each
        return _merged(parts, [_decoded(partition, part) for part in parts], partition)
    counts = [sum(map(len, part.cells)) for part in parts]
    together: dict[str, list[int]] = {}
    for number, part in enumerate(parts):
        if part.schema:
            together.setdefault(part.schema, []).append(number)
    tables = [part.deleted for part in parts]
    for schema, numbers in together.items():
        cells = [cells for number in numbers for cells in parts[number].cells]
        try:
            records = decode_records(cells, partition, schema, parts[numbers[0]].path)
        except (CorruptFile, UnsupportedTable):
            for number in numbers:  # one of them says which file it is
                _decoded(partition, parts[number])
            raise
        for number in numbers:
            tables[number], records = records.slice(0, counts[number]), records.slice(counts[number])
    return _merged(parts, tables, partition)


def _merged(parts: Sequence[_Stored], tables: Sequence[pa.Table], partition: MetadataPartition) -> pa.Table:
    """What parts of slices come to: no key is in two slices. tables: the records of each part"""
    base = [table for part, table in zip(parts, tables, strict=True) if part.is_base]
    logs = [table for part, table in zip(parts, tables, strict=True) if not part.is_base]
    return merged(pa.concat_tables([SCHEMAS[partition].empty_table(), *base]), logs, partition)


def _stored(table: MetadataTable, partition: MetadataPartition, slice_: FileSlice, wanted: Wanted) -> list[_Stored]:
    """What a slice holds, in the order in which it counts. Cells are read as they are taken."""
    parts: list[_Stored] = []
    if slice_.base is not None:
        path, size = slice_.base.path, slice_.base.size
        file = open_hfile(_ranges(table.storage, path, size), size, path)
        parts.append(_Stored(path, _schema(file), wanted.cells(file), is_base=True))
    blocks = _blocks(table, slice_.logs)
    return parts + in_threads(lambda block: _in_block(block, partition, wanted), blocks)


def _decoded(partition: MetadataPartition, part: _Stored) -> pa.Table:
    if not part.schema:
        return part.deleted
    return decode_records(part.cells, partition, part.schema, part.path)


def _blocks(table: MetadataTable, logs: Iterable[LogFile]) -> list[_Block]:
    """The blocks that count, oldest first."""
    ordered = sorted((log for log in logs if not log.cdc), key=lambda log: log.order)
    every = [block for found in in_threads(partial(_heads, table.storage), ordered) for block in found]
    damaged = [block for block in every if block.kind is BlockKind.CORRUPT]
    if damaged:
        raise CorruptLogBlock(damaged[0].path, "a block that is cut short or damaged", damaged[0].head.offset)
    compacted = any(block.header.compacted for block in every)
    scan = blocks_to_merge_compacted if compacted else blocks_to_merge
    undone = {block.header.target for block in every if block.kind is BlockKind.COMMAND}
    lost = table.unknown({block.header.instant for block in every if block.kind is not BlockKind.COMMAND} - undone)
    if lost:
        path = next(block.path for block in every if block.header.instant == lost)
        raise CorruptFile(path, f"holds a block of instant {lost}, which the table's timeline no longer has")
    return list(scan(every, table.blocks()).blocks)


def _heads(storage: Storage, log: LogFile) -> list[_Block]:
    read = _ranges(storage, log.path, log.size)
    return [_Block(log.path, head, read) for head in read_block_headers(read, log.size, log.path)]


def _in_block(block: _Block, partition: MetadataPartition, wanted: Wanted) -> _Stored:
    if block.kind is BlockKind.DELETE:
        keys = decode_deletes(block.content(), block.path, block.head.offset).column("record_key")
        found = keys.combine_chunks() if keys.num_chunks else pa.array([], pa.string())
        if wanted.keys is not None:
            found = found.filter(pc.is_in(found, pa.array(sorted(wanted.keys), pa.string())))
        if len(found) and partition is MetadataPartition.FILES:  # whose records are lists: nobody deletes one
            raise CorruptLogBlock(block.path, "deletes whole lists of files", block.head.offset)
        return _Stored(block.path, deleted=tombstones(found, partition))
    if block.kind is not BlockKind.HFILE_DATA:
        raise CorruptLogBlock(block.path, f"a {block.kind.name} block in the metadata table", block.head.offset)
    file = open_hfile(block.within, block.head.content_length, block.path)
    return _Stored(block.path, block.header.schema or _schema(file), wanted.cells(file))


def _schema(file: HFile) -> str:
    schema = file.info.get("schema")
    if schema is None:
        raise CorruptFile(file.path, "its file info has no schema")
    return schema.decode("utf-8", "replace")


def stored_schema(table: MetadataTable, slice_: FileSlice) -> str:
    """The schema by which further records of a slice are to be written.

    In a table of version 8 or 9 that of its newest file, or of the file lists where it has no record yet: releases of
    Hudi have other ones, and hudi-rs takes one in a slice. An earlier table has ours, that of Hudi 0.15.
    """
    if not table.layout.version.logs_of_writes:
        return STORED_SCHEMA
    if found := _newest_schema(table, slice_):
        return found
    lists = (_newest_schema(table, other) for other in partition_slices(table, MetadataPartition.FILES))
    return next(filter(None, lists), STORED_SCHEMA)


def _newest_schema(table: MetadataTable, slice_: FileSlice) -> str:
    """The schema of its newest records; "": it has none."""
    for log in sorted((log for log in slice_.logs if not log.cdc), key=lambda log: log.order, reverse=True):
        for block in _heads(table.storage, log):
            if block.kind is BlockKind.HFILE_DATA and block.header.schema:
                return block.header.schema
    if slice_.base is None:
        return ""
    base = slice_.base
    return _schema(open_hfile(_ranges(table.storage, base.path, base.size), base.size, base.path))


def _ranges(storage: Storage, path: str, size: int) -> RangedRead:
    """How a file is read: from memory if it is small, else range by range."""
    if size <= _WHOLE:
        data = storage.read(path)
        return lambda offset, length: data[offset : offset + length]
    return lambda offset, length: storage.read_range(path, offset, offset + length)
