"""Reading file slices with logs: which blocks count, their rows folded, and the base file merged with them.

Source: docs/format/log-files.md 8.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.config.read import DEFAULT_READ, MergeOptions, ReadSettings
from hoodie.errors import CorruptFile, CorruptLogBlock, DamagedLog, InvalidInput, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro.compile import BadSchema, compile_schema
from hoodie.formats.log.blocks import BlockKind, HeaderKey, LogBlock
from hoodie.formats.log.content import data_rows
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.formats.parquet.columns import damage_of, open_encoded
from hoodie.keygen.keygen import KeyGenerator
from hoodie.merge.base import inserts as rows_to_insert
from hoodie.merge.base import merge_base
from hoodie.merge.log_merge import LogMerge, Versions
from hoodie.merge.log_scan import Committed
from hoodie.merge.payloads import partial_rule, table_rule
from hoodie.merge.rows import Mask, pick
from hoodie.merge.rules import Choice, MergeRule
from hoodie.model.files import BaseFile, FileGroupId, FileSlice
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.filters.predicate import ANY, Tests
from hoodie.reading.filters.row_groups import fetched_together, row_groups
from hoodie.reading.slices.column_types import FileColumns, base_columns, block_columns, columns_at
from hoodie.reading.slices.log_rows import LogFold, LogRows
from hoodie.reading.slices.log_scanner import PlacedBlock, ScanReport, block_content, committed_blocks, find_blocks
from hoodie.reading.slices.positions import PlacedKeys
from hoodie.reading.slices.projection import MergeColumns, merge_columns
from hoodie.schema.conform import conform
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, table_keygen

#: Rows, and about bytes of them, of a base file that a merge holds at a time.
_BATCH_ROWS = 131_072
_BATCH_BYTES = 32 * 1024 * 1024
#: Bytes of a base file that are fetched at once, unless a row group has more.
_FETCH_BYTES = 16 * 1024 * 1024
#: Mean bytes of slices from which on threads pay on a local disk, without logs and with them. Smaller ones are mostly
#: calls of Python: threads that take turns with them cost twice the processor time, and more of the clock.
_BASE_FOR_THREADS = 512 * 1024
_LOGS_FOR_THREADS = 4 * 1024 * 1024

OnDamage = Callable[[DamagedLog], None]
Seen = Callable[[PlacedBlock, Versions], None]


@dataclass(frozen=True, slots=True)
class SliceReader:
    """How the slices of a table are read at one moment. Pickles: it goes to executors.

    schema     all columns of the table, meta columns included where it has them
    rule       which version of a row wins
    committed  which blocks count
    keygen     makes the record keys of rows that do not store them; None: they do
    stored     which rows of base files take part, by columns that are read; None: all
    tests      what is known of the rows that the reader's caller keeps of those merged: no more are asked for
    whole      how slices are read whose logs hold rows with some columns only, where else some versions of rows take
               no part in the merge
    """

    storage: Storage
    schema: pa.Schema
    rule: MergeRule
    committed: Committed
    options: MergeOptions = field(default_factory=MergeOptions)
    keygen: KeyGenerator | None = None
    stored: pc.Expression | None = None
    tests: Tests = ANY
    whole: WholeSlices | None = None


@dataclass(frozen=True, slots=True)
class WholeSlices:
    """What of slices takes part in a merge when all does.

    committed  which blocks count
    bases      the base files of slices that are given without
    """

    committed: Committed
    bases: Mapping[FileGroupId, BaseFile] = field(default_factory=dict)


def slice_threads(storage: Storage, slices: Sequence[FileSlice]) -> int:
    """Threads that read slices best, a slice each: some more than there are cores where the storage is waited for."""
    cores = os.cpu_count() or 1
    if storage.remote:
        return cores + 2
    logs = sum(slice_.log_bytes for slice_ in slices)
    base = sum(slice_.base.size for slice_ in slices if slice_.base is not None)
    return cores if base + logs >= (_LOGS_FOR_THREADS if logs else _BASE_FOR_THREADS) * len(slices) else 1


@dataclass(frozen=True, slots=True)
class SliceBlocks:
    """A slice with the blocks of its logs that count, and the reader that merges them."""

    reader: SliceReader
    slice: FileSlice
    blocks: tuple[PlacedBlock, ...]
    report: ScanReport


def slice_blocks(reader: SliceReader, slice_: FileSlice) -> SliceBlocks:
    """The blocks of a slice that count. Raises as `find_blocks`; UnsupportedTable as `partial_rule`"""
    blocks, report = find_blocks(reader.storage, slice_.logs, reader.committed)
    if reader.whole is not None and any(map(is_partial, blocks)):
        base = slice_.base or reader.whole.bases.get(slice_.group)
        whole = replace(reader, committed=reader.whole.committed, stored=None, whole=None)
        return slice_blocks(whole, replace(slice_, base=base))
    return SliceBlocks(replace(reader, rule=rule_of_blocks(reader.rule, [blocks])), slice_, blocks, report)


def rule_of_blocks(rule: MergeRule, blocks: Iterable[Sequence[PlacedBlock]]) -> MergeRule:
    """The rule that merges the rows of blocks. Raises UnsupportedTable as `partial_rule`"""
    partial = next(filter(is_partial, chain.from_iterable(blocks)), None)
    return rule if partial is None else partial_rule(rule, f"{partial.path} at byte {partial.head.offset}")


def goes_by_position(reader: SliceReader) -> bool:
    """Whether the keys that logs have of stored rows can stand for those of the base file."""
    return reader.stored is None and reader.keygen is None


def is_partial(block: PlacedBlock) -> bool:
    """Whether the rows of a block hold some columns only."""
    return block.header.get(HeaderKey.IS_PARTIAL) == "true"


def slice_reader(
    state: TableState, schema: pa.Schema, as_of: str | None = None, settings: ReadSettings = DEFAULT_READ
) -> SliceReader:
    """How a snapshot reader reads the slices of a table.

    schema   the table's columns, meta columns included where it has them
    as_of    instant, inclusive; None: now
    settings of the read, or of the write that reads
    Raises   UnsupportedTable when there is no rule to merge the table's rows; InvalidOption
    """
    return SliceReader(
        storage=state.storage,
        schema=schema,
        rule=table_rule(state.config.properties, schema, settings.mergers.mergers),
        committed=committed_blocks(state.timeline, as_of, state.config.history_folder),
        options=settings.merging,
        keygen=None if state.config.meta_fields else table_keygen(state),
    )


def fold_blocks(
    storage: Storage, blocks: Sequence[PlacedBlock], needed: MergeColumns, fold: LogFold, seen: Seen | None = None
) -> int:
    """Add the rows and deleted keys of blocks, in their order, to a fold.

    seen     called with each block and what it holds
    returns  number of rows in the data blocks
    Raises   CorruptFile on a content that cannot be read; SchemaMismatch naming the file when its rows cannot be
             brought into the table's schema
    """
    total, folded, records = sum(block.head.content_length for block in blocks), 0, 0
    for block in blocks:
        folded += block.head.content_length
        versions = block_versions(storage, block, needed, fold.merge)
        records += versions.rows.num_rows if block.kind.is_data else 0
        if seen is not None:
            seen(block, versions)
        fold.add(versions, folded / total if total else 1.0)
    return records


def block_versions(storage: Storage, block: PlacedBlock, needed: MergeColumns, log: LogMerge) -> Versions:
    """The rows or deleted keys of a block, in the columns of the merge. Raises as `fold_blocks`"""
    head, path = block.head, block.path
    content = block_content(storage, block)
    if block.kind is BlockKind.DELETE:
        deletes = decode_deletes(content, path, head.content_offset)
        require_keys(deletes.column("record_key"), path, head.content_offset)
        return log.tombstones(deletes, path)
    decoded = LogBlock(block.kind, block.header, content, offset=head.content_offset)
    columns = columns_at(needed.stored, block.header.instant, in_log=True)
    rows = data_rows(decoded, path, _columns_of(decoded, needed, columns))
    try:
        rows = block_columns(storage, decoded, rows, needed.stored, columns).applied(rows)
        rows = needed.bring(rows, rows.column_names if is_partial(block) else None)
    except InvalidInput as problem:
        raise SchemaMismatch(f"{path} at byte {head.offset}: {problem}") from problem
    require_keys(rows.column(RECORD_KEY), path, head.content_offset)
    return log.records(rows, once=block.header.get(HeaderKey.RECORD_POSITIONS) is not None)


def _columns_of(block: LogBlock, needed: MergeColumns, columns: FileColumns) -> list[str] | None:
    """Those of the needed columns that the block has; None: all, where its schema does not tell."""
    if block.kind is BlockKind.PARQUET_DATA:
        return columns.names(needed.stored.names)  # Arrow passes by names that the file does not have
    if block.header.schema is None:
        return None
    try:
        names = {name for name, _ in compile_schema(block.header.schema).fields}
    except (BadSchema, UnsupportedTable):  # decoding the rows says so
        return None
    return columns.names(needed.stored.names, names)


def require_keys(keys: pa.Array | pa.ChunkedArray, path: str, offset: int | None = None) -> None:
    """Raises CorruptFile, of a log CorruptLogBlock, when a record key is null or empty."""
    shortest = pc.min(pc.binary_length(keys)).as_py()
    if keys.null_count or shortest == 0:
        problem = f"some of {len(keys)} rows have no record key"
        raise CorruptFile(path, problem) if offset is None else CorruptLogBlock(path, problem, offset)


def merged_batches(
    reader: SliceReader, slice_: FileSlice, columns: Sequence[str], on_damage: OnDamage | None = None
) -> Iterator[pa.Table]:
    """The rows of a slice, streamed: see `SliceMerge`."""
    return SliceMerge(reader, slice_, columns, on_damage).batches()


class SliceMerge:
    """The merge of one slice: rows of the base file in their order, each as the logs have it, then new rows.

    New rows come in the order of the logs, unless the logs' rows went to disk. Held are the rows of the logs (see
    `MergeOptions`), one batch of the base file and one block.

    report   of the logs, once batches have been asked for
    records  rows in the data blocks that counted, once a batch is out
    keys     different keys in the blocks that counted, then, too
    updated, deleted, unchanged, inserted  numbers of rows, once all batches are out; `inserted` grows with the first
             batch of new rows, which no stored rows follow
    largest  most bytes of log rows that were held at a time
    """

    def __init__(
        self,
        reader: SliceReader,
        slice_: FileSlice,
        columns: Sequence[str] | None = None,
        on_damage: OnDamage | None = None,
    ) -> None:
        """
        columns    of the table, in the order wanted; None: all
        on_damage  called for bytes that are skipped; None: they are warned about
        """
        self._reader, self._slice, self._on_damage = reader, slice_, on_damage
        names = reader.schema.names if columns is None else list(columns)
        self._target = pa.schema([reader.schema.field(name) for name in names])
        self.report = ScanReport()
        self.records = self.keys = 0
        self.updated = self.deleted = self.unchanged = self.inserted = self.largest = 0

    def batches(self) -> Generator[pa.Table, None, None]:
        """Rows in the table's types, columns in the order wanted.

        Skipped bytes are warned about (`errors.DamagedLog`).
        Raises  as `find_blocks` and `fold_blocks`; CorruptFile naming the base file; FileNotFoundError when a file was
                cleaned away
        """
        merge = slice_blocks(self._reader, self._slice)
        reader, base, blocks, self.report = merge.reader, merge.slice.base, merge.blocks, merge.report
        for damage in self.report.damaged:
            if self._on_damage is None:
                warnings.warn(damage, stacklevel=2)
            else:
                self._on_damage(damage)
        if not blocks:
            if base is not None:
                for batch in base_batches(reader.storage, base, self._target):
                    self.unchanged += batch.num_rows
                    yield batch
            return
        if base is not None and _stands_for_none(reader, base):
            base = None
        needed = merge_columns(reader.schema, reader.rule, self._target.names, reader.keygen)
        with LogFold(needed.schema, reader.rule, reader.options) as fold:
            placed = PlacedKeys(merge.slice)
            placed.all = placed.all and goes_by_position(reader) and not reader.rule.partial
            self.records = fold_blocks(reader.storage, blocks, needed, fold, placed.add)
            rows = fold.finish()
            self.keys = rows.keys
            self.largest = fold.largest
            for merged in self._merge(reader, base, rows, needed, placed):
                if merged.num_rows:
                    yield self._in_read_columns(merged)

    def _merge(
        self, reader: SliceReader, base: BaseFile | None, log: LogRows, needed: MergeColumns, placed: PlacedKeys
    ) -> Iterator[pa.Table]:
        rule, matched = reader.rule, np.zeros(len(log), np.bool_)
        if base is not None and placed.all:
            yield from self._merge_placed(reader, base, log, needed, placed, matched)
        elif base is not None:
            for raw in base_batches(reader.storage, base, needed.stored):
                stored = needed.keyed(raw if reader.stored is None else raw.filter(reader.stored))
                keys = stored.column(RECORD_KEY)
                require_keys(keys, base.path)
                at = log.find(keys)
                if not len(at):
                    self.unchanged += stored.num_rows
                    yield stored
                    continue
                merged = merge_base(stored, log.take(at), rule)
                matched[at[merged.matched]] = True
                self.updated += merged.updated
                self.deleted += merged.deleted
                self.unchanged += merged.unchanged
                yield merged.rows
        for place, incoming in log.parts():
            inserts = rows_to_insert(incoming, matched[place], rule)
            self.deleted += inserts.deleted
            self.inserted += inserts.rows.num_rows
            yield inserts.rows

    def _merge_placed(
        self, reader: SliceReader, base: BaseFile, log: LogRows, needed: MergeColumns, placed: PlacedKeys, matched: Mask
    ) -> Iterator[pa.Table]:
        """The stored rows merged with those of the logs, whose positions are known: of the base file no keys are read
        unless they are wanted."""
        names = self._target.names
        read = [field for field in needed.stored if field.name != RECORD_KEY or RECORD_KEY in names] or [*needed.stored]
        names, start = names or [read[0].name], 0
        for raw in base_batches(reader.storage, base, pa.schema(read)):
            here = placed.within(start, start + raw.num_rows)
            stored = placed.keyed(raw, start, here, needed.schema.names)
            at = log.find(stored.column(RECORD_KEY)) if len(stored) else np.empty(0, np.int64)
            if not len(at):
                self.unchanged += raw.num_rows
                yield raw
            else:
                merged = merge_base(stored, log.take(at), reader.rule)
                matched[at[merged.matched]] = True
                self.updated += merged.updated
                self.deleted += merged.deleted
                self.unchanged += raw.num_rows - merged.updated - merged.deleted
                rows = np.arange(raw.num_rows)
                places, deleted = placed.positions[here] - start, merged.met[merged.choice == Choice.DELETE]
                stay = np.delete(places, deleted)
                rows[stay] = raw.num_rows + np.arange(len(stay))
                rows = np.delete(rows, places[deleted])
                yield pick([raw.select(names), merged.rows.select(names)], rows)
            start += raw.num_rows

    def _in_read_columns(self, rows: pa.Table) -> pa.Table:
        rows = rows.select(self._target.names)
        return pa.Table.from_arrays(rows.columns, schema=self._target) if self._target.names else rows


def _stands_for_none(reader: SliceReader, base: BaseFile) -> bool:
    """Whether the rows of a base file make no difference: logs replace those of their keys, whatever these hold, and of
    the others none can pass the tests by the statistics in the footer."""
    if reader.tests == ANY or not reader.rule.replaces_all:
        return False
    with reader.storage.open_input(base.path, base.size) as source:
        parquet = open_encoded(source, base.path)
        types = base_columns(reader.storage, parquet, reader.schema, base.instant)
        return not row_groups(parquet, reader.schema, types, reader.tests)


def base_batches(
    storage: Storage, file: BaseFile, target: pa.Schema, tests: Tests = ANY, part: range | None = None
) -> Iterator[pa.Table]:
    """The rows of a base file in the columns of `target`, a batch at a time.

    tests   row groups that cannot pass them by their statistics are not read
    part    bytes of the file: only row groups that begin there are read. None: all
    Raises CorruptFile; FileNotFoundError; SchemaMismatch naming the file when it cannot be brought into the columns
    """
    for _, rows in _read_batches(storage, file, target, tests, part):
        yield rows


def numbered_batches(
    storage: Storage, file: BaseFile, target: pa.Schema, part: range | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """As `base_batches`, all rows of the part, each batch with the position of its first row in the file."""
    start: int | None = None
    for first, rows in _read_batches(storage, file, target, ANY, part):
        start = first if start is None else start  # without tests the row groups of a part follow one another
        yield start, rows
        start += rows.num_rows


def _read_batches(
    storage: Storage, file: BaseFile, target: pa.Schema, tests: Tests, part: range | None
) -> Iterator[tuple[int, pa.Table]]:
    """Batches, each with the position of the first row of all row groups that are read."""
    with storage.open_input(file.path, file.size) as source:
        parquet = open_encoded(source, file.path, pre_buffer=True)
        stored = set(parquet.schema_arrow.names)
        types = base_columns(storage, parquet, target, file.instant)
        names = types.names(target.names, stored)
        size, groups = _batch_rows(parquet.metadata), row_groups(parquet, target, types, tests, part)
        first = sum(parquet.metadata.row_group(number).num_rows for number in range(groups[0] if groups else 0))
        for run in fetched_together(parquet, groups, names, _FETCH_BYTES):
            batches = parquet.iter_batches(batch_size=size, row_groups=run, columns=names)
            while True:
                with damage_of(file.path):
                    batch = next(batches, None)
                if batch is None:
                    break
                try:
                    yield first, conform(types.applied(batch), target, drop_extra=True)
                except SchemaMismatch as problem:
                    raise SchemaMismatch(f"{file.path}: {problem}") from problem


def _batch_rows(metadata: pq.FileMetaData) -> int:
    """Rows of a batch: fewer where they are large."""
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * metadata.num_rows // size if size else _BATCH_ROWS))
