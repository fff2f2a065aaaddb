"""Reads partitions of the metadata table: all records, those of some keys, or those whose keys begin alike.

Source: docs/format/metadata-table.md 1.2, 5.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, CorruptLogBlock, UnsupportedTable
from hoodie.formats.hfile.cells import HFileCells
from hoodie.formats.hfile.reader import HFile, open_hfile
from hoodie.formats.log.blocks import BlockHead, BlockKind, BlockMap, read_block_headers
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.merge.log_scan import blocks_to_merge, blocks_to_merge_compacted
from hoodie.metadata.file_ranges import WHOLE, WHOLE_OF_ALL, FileRanges, open_ranges
from hoodie.metadata.keys import MetadataPartition, file_groups_of
from hoodie.metadata.merging import merged
from hoodie.metadata.record_schema import STORED_SCHEMA
from hoodie.metadata.records import SCHEMAS, decode_records, deleted_records
from hoodie.metadata.table import MetadataTable
from hoodie.model.files import FileSlice, LogFile, parse_data_file
from hoodie.model.instant import Action
from hoodie.storage.protocol import AT_ONCE, Storage, in_threads, meanwhile, waiting_threads
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import read_commit, read_compaction_plan
from hoodie.timeline.timeline import Timeline
from hoodie.view.load import build_view
from hoodie.view.slices import FileSystemView, latest_slices, merged_slices


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Which records to read. All, unless keys or prefixes of keys are given."""

    keys: frozenset[str] | None = None
    prefixes: tuple[str, ...] = ()
    _rows: tuple[bytes, ...] = field(init=False, repr=False, compare=False)  # of the keys, as HFiles are asked for them

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", tuple([key.encode() for key in self.keys or ()]))

    def cells(self, file: HFile) -> Iterator[HFileCells]:
        """Those of an HFile."""
        if self.keys is not None:
            yield from file.rows(self._rows)
        elif self.prefixes:
            for prefix in self.prefixes:
                yield from file.prefixed(prefix.encode())
        else:
            yield from file.cells()


ALL = RecordSelection()


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of a log file, and how the file is read."""

    path: str
    head: BlockHead
    read: FileRanges

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


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """What a base file or a log block holds of what is wanted.

    schema   the Avro schema of the records in cells; "": it is a block of deletes
    deleted  the tombstones of such a block
    """

    path: str
    schema: str = ""
    cells: Iterable[HFileCells] = ()
    deleted: pa.Table | None = None
    is_base: bool = False


def read_records(
    table: MetadataTable,
    partition: MetadataPartition,
    selection: RecordSelection = ALL,
    slices: Sequence[FileSlice] | None = None,
) -> pa.Table:
    """Records of a partition, in the form of `records.SCHEMAS`; deleted ones are left out. No order.

    slices  `partition_slices`, where they have been listed
    Raises  CorruptFile on damage, on a partition without file groups, and on log blocks of instants that the data
            table's timeline has lost; UnsupportedTable; FileNotFoundError when cleaning took a file away meanwhile
    """
    slices = partition_slices(table, partition) if slices is None else slices
    if selection.keys is not None:
        return _records_of_keys(table, partition, selection.keys, slices)
    tables = in_threads(partial(slice_records, table, partition, selection=selection), slices)
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


def stored_counts(table: MetadataTable, slice_: FileSlice) -> tuple[int, int]:
    """Entries in the base file of a slice, and in its log blocks that count: a key may be in several, and those of
    deleted keys are counted. Only the ends of files and blocks are read.

    Raises CorruptFile
    """
    base = 0
    if slice_.base is not None:
        path, size = slice_.base.path, slice_.base.size
        base = open_hfile(open_ranges(table.storage, path, size), size, path).trailer.cells
    return base, sum(in_threads(_count, _blocks(table, slice_.logs)))


def _count(block: _Block) -> int:
    if block.kind is BlockKind.DELETE:
        return len(decode_deletes(block.content(), block.path, block.head.offset))
    read = block.read.part(block.head.content_offset)
    return open_hfile(read, block.head.content_length, block.path).trailer.cells


def instant_records(table: MetadataTable, partition: MetadataPartition, instant: str) -> pa.Table:
    """The records of a partition in the log blocks of a delta commit, deletions included: of `records.SCHEMAS`."""
    blocks = [
        block
        for slice_ in partition_slices(table, partition)
        for log in slice_.logs
        for block in _heads(table.storage, log)
        if block.kind is not BlockKind.COMMAND and block.header.instant == instant
    ]
    return pa.concat_tables(_decoded([_in_block(block, partition, ALL) for block in blocks], partition))


def log_instants(storage: Storage, log: LogFile) -> set[str]:
    """The delta commits that wrote blocks into a log file."""
    return {block.header.instant for block in _heads(storage, log) if block.kind is not BlockKind.COMMAND}


def whole_view(table: MetadataTable, partition: MetadataPartition) -> FileSystemView:
    """The view of a partition. Raises CorruptFile when files that it must have are gone"""
    folder = str(partition)
    parsed = (parse_data_file(folder, e.name, e.size, "hfile") for e in table.storage.list(folder) if not e.is_dir)
    files = [file for file in parsed if file is not None]
    instants = {file.base_instant for file in files}
    timeline = with_history(table.storage, table.config, table.timeline, instants)
    plans = [
        (instant, read_compaction_plan(table.storage, timeline, instant)) for instant in timeline.pending_compactions
    ]
    view = build_view(timeline, files, compactions=plans)
    slices = merged_slices(view)
    if not slices:
        raise CorruptFile(f"{table.storage.root}/{folder}", "no file group of the metadata table is there")
    for slice_ in slices.values():
        _require_whole(table, slice_, partition, timeline)
    return view


def _require_whole(table: MetadataTable, slice_: FileSlice, partition: MetadataPartition, timeline: Timeline) -> None:
    """See that a slice has the files that it must have: what it should hold would not be missed otherwise.

    Building the file lists makes a base file, and so does each compaction of a group with records; logs are numbered.
    """
    where = f"{slice_.group.partition}/{slice_.group.file_id}"
    if slice_.base is None and (partition is MetadataPartition.FILES or _was_compacted(table, slice_, timeline)):
        raise CorruptFile(where, f"the base file of instant {slice_.base_instant} is gone")
    if timeline.layout != 1:
        return
    versions: dict[str, set[int]] = {}
    for log in slice_.logs:
        versions.setdefault(log.base_instant, set()).add(log.version)
    for base_instant, numbers in versions.items():
        if gaps := set(range(1, max(numbers))) - numbers:
            raise CorruptFile(where, f"log file {min(gaps)} beside the base file of {base_instant} is gone")


def _was_compacted(table: MetadataTable, slice_: FileSlice, timeline: Timeline) -> bool:
    """Whether a compaction wrote the base file that a slice begins with: in layout 2, whose logs do not name it, one
    before its first log. A group of which nothing stays gets none, and a delta commit may have added a log to its new
    slice while the compaction was pending."""
    begun, group = slice_.base_instant, slice_.group
    for compaction in timeline.completed({Action.COMMIT}):
        if compaction.requested == begun or (timeline.layout == 2 and compaction.requested < begun):
            stats = read_commit(table.storage, timeline, compaction).stats.get(group.partition, ())
            if any(stat.file_id == group.file_id for stat in stats):
                return True
    return False


def slice_records(
    table: MetadataTable, partition: MetadataPartition, slice_: FileSlice, selection: RecordSelection = ALL
) -> pa.Table:
    """Those of one file slice. Raises as `read_records`"""
    return _merged(_stored_in_slice(table, partition, slice_, selection), partition)


def _records_of_keys(
    table: MetadataTable, partition: MetadataPartition, keys: Iterable[str], slices: Sequence[FileSlice]
) -> pa.Table:
    """Those of some keys. What few are in each file is decoded at once: that costs more by calls than by records."""
    ordered = sorted(keys)
    groups = file_groups_of(pa.array(ordered, pa.string()), len(slices)).tolist()
    by_group: dict[int, set[str]] = {}
    for key, group in zip(ordered, groups, strict=True):
        by_group.setdefault(group, set()).add(key)

    at_once = max(1, AT_ONCE // max(1, len(by_group)))

    def stored_in_group(group: int) -> list[_Stored]:
        stored = _stored_in_slice(table, partition, slices[group], RecordSelection(frozenset(by_group[group])), at_once)
        return [replace(part, cells=tuple(part.cells)) for part in stored]

    slices_found = in_threads(stored_in_group, sorted(by_group), waiting_threads(table.storage))
    return _merged([part for parts in slices_found for part in parts], partition)


def _merged(parts: Sequence[_Stored], partition: MetadataPartition) -> pa.Table:
    """What parts of slices come to: no key is in two slices."""
    base, logs = ([part for part in parts if part.is_base is is_base] for is_base in (True, False))
    return merged(pa.concat_tables(_decoded(base, partition)), _decoded(logs, partition), partition)


def _decoded(parts: Iterable[_Stored], partition: MetadataPartition) -> list[pa.Table]:
    """The records of parts, in their order. Parts of one schema that follow each other are decoded at once: few records
    cost more by calls than by their bytes."""
    tables = [SCHEMAS[partition].empty_table()]
    for schema, run in groupby(parts, key=lambda part: part.schema):
        first, *others = run
        if not schema:
            tables += [part.deleted for part in (first, *others)]
        elif not others:
            tables.append(decode_records(first.cells, partition, schema, first.path))
        else:
            several = [replace(part, cells=tuple(part.cells)) for part in (first, *others)]
            try:
                cells = [cells for part in several for cells in part.cells]
                tables.append(decode_records(cells, partition, schema, first.path))
            except (CorruptFile, UnsupportedTable):
                for part in several:  # one of them says which file it is
                    decode_records(part.cells, partition, schema, part.path)
                raise
    return tables


def _stored_in_slice(
    table: MetadataTable,
    partition: MetadataPartition,
    slice_: FileSlice,
    selection: RecordSelection,
    at_once: int = AT_ONCE,
) -> list[_Stored]:
    """What a slice holds, in the order in which it counts. Cells are read as they are taken.

    at_once  requests for them at the same time, at most
    """
    whole = WHOLE if selection.keys is not None or selection.prefixes else WHOLE_OF_ALL

    def of_base() -> list[_Stored]:
        if slice_.base is None:
            return []
        path, size = slice_.base.path, slice_.base.size
        read = open_ranges(table.storage, path, size, whole=whole, at_once=at_once)
        file = open_hfile(read, size, path, read.many)
        return [_Stored(path, _schema(file), selection.cells(file), is_base=True)]

    def of_logs() -> list[_Stored]:
        blocks = _blocks(table, slice_.logs)
        return in_threads(
            lambda block: _in_block(block, partition, selection, at_once), blocks, waiting_threads(table.storage)
        )

    if not slice_.logs:
        return of_base()
    with meanwhile(table.storage, of_logs) as logs:
        return of_base() + logs()


def _blocks(table: MetadataTable, logs: Iterable[LogFile]) -> list[_Block]:
    """The blocks that count, oldest first."""
    ordered = sorted((log for log in logs if not log.cdc), key=lambda log: log.order)
    heads = in_threads(partial(_heads, table.storage), ordered, waiting_threads(table.storage))
    every = [block for blocks in heads for block in blocks]
    damaged = [block for block in every if block.kind is BlockKind.CORRUPT]
    if damaged:
        raise CorruptLogBlock(damaged[0].path, "a block that is cut short or damaged", damaged[0].head.offset)
    compacted = any(block.header.compacted for block in every)
    scan = blocks_to_merge_compacted if compacted else blocks_to_merge
    undone = {block.header.target for block in every if block.kind is BlockKind.COMMAND}
    unknown = table.unknown({block.header.instant for block in every if block.kind is not BlockKind.COMMAND} - undone)
    if lost := next((time for time in unknown if not _says_nothing(table, time)), ""):
        path = next(block.path for block in every if block.header.instant == lost)
        raise CorruptFile(path, f"holds a block of instant {lost}, which the table's timeline no longer has")
    return list(scan(every, table.blocks()).blocks)


def _says_nothing(table: MetadataTable, time: str) -> bool:
    """Whether a delta commit is of one record, the list of partitions: what changes a file has one of its folder, too.
    Hudi 1.1 writes such a commit after a downgrade, and the data table has no instant of it."""
    delta_commit = table.timeline.find(time, Action.DELTA_COMMIT)
    if delta_commit is None:
        return False
    return sum(stat.num_writes for stat in read_commit(table.storage, table.timeline, delta_commit).all_stats) == 1


def _heads(storage: Storage, log: LogFile) -> list[_Block]:
    read = open_ranges(storage, log.path, log.size)
    return [_Block(log.path, head, read) for head in read_block_headers(read, log.size, log.path)]


def _in_block(
    block: _Block, partition: MetadataPartition, selection: RecordSelection, at_once: int = AT_ONCE
) -> _Stored:
    if block.kind is BlockKind.DELETE:
        keys = decode_deletes(block.content(), block.path, block.head.offset).column("record_key")
        deleted_keys = keys.combine_chunks() if keys.num_chunks else pa.array([], pa.string())
        if len(deleted_keys) and selection.keys is not None:
            deleted_keys = deleted_keys.filter(pc.is_in(deleted_keys, pa.array(sorted(selection.keys), pa.string())))
        if len(deleted_keys) and partition is MetadataPartition.FILES:  # whose records are lists: nobody deletes one
            raise CorruptLogBlock(block.path, "deletes whole lists of files", block.head.offset)
        return _Stored(block.path, deleted=deleted_records(deleted_keys, partition))
    if block.kind is not BlockKind.HFILE_DATA:
        raise CorruptLogBlock(block.path, f"a {block.kind.name} block in the metadata table", block.head.offset)
    read = replace(block.read.part(block.head.content_offset), at_once=at_once)
    file = open_hfile(read, block.head.content_length, block.path, read.many)
    return _Stored(block.path, block.header.schema or _schema(file), selection.cells(file))


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
    if schema := _newest_schema(table, slice_):
        return schema
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
    return _schema(open_hfile(open_ranges(table.storage, base.path, base.size), base.size, base.path))
