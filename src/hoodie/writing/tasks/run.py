"""What a task does with the rows of one file group: new base files, the next version of one, or logs beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import InvalidInput
from hoodie.formats.parquet.base_footer import base_footer
from hoodie.formats.parquet.columns import damage_of, open_encoded, open_parquet
from hoodie.keygen.generated_keys import with_instant
from hoodie.lookup.batch import group_batches
from hoodie.lookup.index_choice import is_bucket
from hoodie.merge.base import BaseMerge, Incoming, taken
from hoodie.merge.payloads import by_ordering
from hoodie.merge.rows import (
    DELETING,
    KEY_STATUS,
    NOT_INSERTED,
    NOT_MATCHED,
    ROW_ACTION,
    ROW_POSITION,
    KeyStatus,
    Mask,
    RowAction,
    RowActions,
    as_array,
    take_column,
    values_of_keys,
)
from hoodie.merge.rules import MergeRule
from hoodie.model.commit import WriteStat
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import TaskKind, WriteTask
from hoodie.reading.slices.column_types import base_columns
from hoodie.schema.conform import conform
from hoodie.schema.encoded import keeping_encoded
from hoodie.storage.protocol import InputFile, in_threads
from hoodie.writing.batch.duplicates import ambiguous_keys, combine, in_order_of_arrival, require_one_tuple
from hoodie.writing.operations import LateRows, OperationRules
from hoodie.writing.tasks.base_file import BaseFileWriter, WriteSpec, stamp
from hoodie.writing.tasks.change_log import ChangeLogWriter
from hoodie.writing.tasks.kept_values import after_the_merge, before_the_merge, with_stored_values
from hoodie.writing.tasks.log_file import append_log
from hoodie.writing.tasks.stored_rows import late_rows

#: Rows of a base file that a rewrite holds at a time.
BATCH_ROWS = 131_072
#: Bytes of a small file.
_SMALL_FILE = 16 * 1024 * 1024
#: Bytes of rows that a bulk insert holds over all partitions.
_HOLD_BYTES = 256 * 1024 * 1024
#: Files that a bulk insert has open at once; systems let a process have 1024, and storages buffer for each.
_MOST_OPEN = 500
#: Rows that are encoded to learn how large a row is.
_SAMPLE_ROWS = 20_000


def new_file_id() -> str:
    """A file id that no other has. It holds no "_", which separates the parts of a file name."""
    file_id = f"{uuid4()}-0"
    return new_file_id() if is_bucket(file_id) else file_id


def run_task(
    spec: WriteSpec, rule: MergeRule, operation_rules: OperationRules, task: WriteTask, rows: pa.Table, token: str
) -> list[WriteStat]:
    """Write the rows of one file group.

    rows   the user's columns with `_hoodie_record_key` and `_hoodie_partition_path`, all of the task's partition
    token  write token of this attempt
    """
    rows, statuses = take_column(in_order_of_arrival(rows), KEY_STATUS)
    rows, positions = take_column(rows, ROW_POSITION)
    combined = combine(rows, rule, operation_rules)
    if combined is not rows:
        keys = as_array(combined.column(RECORD_KEY))
        positions = None if positions is None else values_of_keys(keys, rows, positions)
        statuses = None if statuses is None else values_of_keys(keys, rows, statuses)
    combined, actions = take_column(combined, ROW_ACTION)
    arriving = before_the_merge(spec) if rule.keeps else spec
    incoming = _incoming(arriving, operation_rules, task.group.partition, combined, token)
    if actions is not None:
        incoming = _as_asked(incoming, actions)
    if statuses is not None and (moved := statuses == KeyStatus.MOVED_OUT).any():
        incoming = replace(incoming, deleted=moved if incoming.deleted is None else moved | incoming.deleted)
    match task.kind:
        case TaskKind.CREATE:
            return _create(spec, rule, task, incoming, token)
        case TaskKind.REWRITE:
            return [_rewrite(spec, rule, operation_rules, task, incoming, combined, token)]
        case TaskKind.APPEND:
            _require_one_tuple_in_logs(spec, operation_rules, task, combined)
            late = _late(spec, rule, operation_rules, task, incoming)
            if late is not None and operation_rules.late_rows is LateRows.LOSE:
                incoming = taken(incoming, np.flatnonzero(~late))
                statuses = None if statuses is None else statuses[~late]
                positions = None if positions is None else positions[~late]
                late = None
            if rule.keeps:
                incoming = with_stored_values(spec, rule, task, incoming)
            return append_log(spec, rule, task, incoming, token, statuses, positions, late)


def _late(
    spec: WriteSpec, rule: MergeRule, operation_rules: OperationRules, task: WriteTask, incoming: Incoming
) -> Mask | None:
    """Which rows have a lesser ordering value than the stored row of their key; None: it does not matter."""
    slice_ = task.slice
    if operation_rules.late_rows is LateRows.AS_READ or spec.stored is None or slice_ is None:
        return None
    base = slice_.base
    if operation_rules.late_rows is LateRows.WIN and not slice_.logs and base and base.instant == slice_.base_instant:
        return None  # by the table's rule they win against a base file
    return late_rows(spec.stored, spec.schema, slice_, incoming, by_ordering(rule))


def _require_one_tuple_in_logs(
    spec: WriteSpec, operation_rules: OperationRules, task: WriteTask, rows: pa.Table
) -> None:
    """As `require_one_tuple` with the rows of the slice, which are read for keys that more than one tuple may have."""
    columns = operation_rules.key_columns
    if spec.stored is None or task.slice is None or not columns:
        return
    every = as_array(rows.column(RECORD_KEY))
    keys = every.filter(ambiguous_keys(every, columns))
    if not len(keys):
        return
    names = {name.partition(".")[0] for name in columns}
    target = pa.schema([field for field in spec.schema if field.name in names or field.name == RECORD_KEY])
    require_one_tuple(rows, columns, stored=spec.stored.of(task.slice, keys, target))


def _incoming(spec: WriteSpec, operation_rules: OperationRules, partition: str, rows: pa.Table, token: str) -> Incoming:
    keys = as_array(rows.column(RECORD_KEY))
    if keys.null_count:
        raise InvalidInput(f"{keys.null_count} rows of partition {partition!r} have no record key (null or empty)")
    if operation_rules.delete:
        nulls = [pa.nulls(len(keys), field.type) for field in spec.schema]
        schema = pa.schema([field.with_nullable(True) for field in spec.schema])
        table = pa.Table.from_arrays(nulls, schema=schema)
        table = table.set_column(schema.get_field_index(RECORD_KEY), schema.field(RECORD_KEY), keys)
        return Incoming(table, keys, np.ones(len(keys), np.bool_))
    return Incoming(stamp(rows, keys, partition, spec, token), keys)


def _as_asked(incoming: Incoming, actions: RowActions) -> Incoming:
    """The rows of a merge, each with what it is for."""
    if not (actions != RowAction.WRITE).any():
        return incoming
    added, keeps_stored = ~np.isin(actions, NOT_INSERTED), np.isin(actions, NOT_MATCHED)
    deleted = np.isin(actions, DELETING)  # whatever its ordering value: no stored row outranks it
    return replace(incoming, deleted=deleted, after_delete=deleted, added=added, keeps_stored=keeps_stored)


def _create(spec: WriteSpec, rule: MergeRule, task: WriteTask, incoming: Incoming, token: str) -> list[WriteStat]:
    """New base files of at most the maximum size; more than one when rows turn out larger than planned."""
    with GroupWriter(spec, task.group, token, rolls=not task.named) as writer:
        rows = incoming.rows if incoming.added is None else incoming.rows.filter(pa.array(incoming.added))
        rows = _without_deletes(rows, rule)
        writer.append(after_the_merge(rows, spec, rule) if rule.keeps else rows)
    return writer.stats


def _without_deletes(rows: pa.Table, rule: MergeRule) -> pa.Table:
    """The rows to insert. Deletes of keys that are not there have no effect, and are not counted."""
    deletes = rule.is_delete(rows)
    return rows.filter(pa.array(~deletes)) if deletes.any() else rows


def _rewrite(
    spec: WriteSpec,
    rule: MergeRule,
    operation_rules: OperationRules,
    task: WriteTask,
    incoming: Incoming,
    batch: pa.Table,
    token: str,
) -> WriteStat:
    """The next version of a base file: stored rows in their order, merged, then the rows with new keys.

    batch  the incoming rows as they came: of a delete with the parts of its keys
    """
    assert task.slice is not None
    base = task.slice.base
    assert base is not None
    merge = BaseMerge(incoming, rule)
    with spec.storage.open_input(base.path, base.size) as source:
        metadata = open_parquet(source, base.path).metadata
        footer = base_footer(metadata, base.path)
        # Where the file takes all rows of its partition, which of them are new shows only now.
        arriving = 0 if operation_rules.delete else incoming.num_rows
        with (
            nullcontext() if spec.cdc is None else ChangeLogWriter(spec, spec.cdc, task.group, token) as changes,
            BaseFileWriter(
                spec, task.group, token, base=footer, base_path=base.path, expected_rows=footer.rows + arriving
            ) as writer,
        ):
            no_keys = pa.array([], pa.string())
            for stored in _stored_rows(spec, source, base, metadata):
                require_one_tuple(batch, operation_rules.key_columns, stored=stored)
                if operation_rules.match:
                    merged = merge.merge(stored)
                    writer.append(merged.rows, no_keys)
                    if changes is not None:
                        changes.merged(stored, merged)
                else:
                    merge.unchanged += stored.num_rows
                    writer.append(stored, no_keys)
            deleted = merge.deleted  # before deletes of keys that are not there are counted, too
            inserts = merge.inserts()
            if rule.keeps:
                inserts = after_the_merge(inserts, spec, rule)
            writer.append(inserts)
            if changes is not None:
                changes.inserted(inserts)
                changes.end(writer.rows, merge.inserted)
    return replace(
        writer.stat(),
        prev_commit=base.instant,
        prev_base_file=base.name,
        num_deletes=deleted,
        num_updates=merge.updated,
        num_inserts=merge.inserted,
        cdc_stats=None if changes is None else changes.stats,
    )


def _stored_rows(spec: WriteSpec, source: InputFile, base: BaseFile, footer: pq.FileMetaData) -> Iterator[pa.Table]:
    """The rows of a base file in the columns of the write, a batch at a time. Columns of few values stay encoded,
    unless a change log shows the rows."""
    opened = open_encoded if spec.cdc is None else open_parquet
    parquet = opened(source, base.path, checked=True, footer=footer)
    types = base_columns(spec.storage, parquet, spec.schema, base.instant)
    # A small file is read by the task's own thread: to hand columns to others costs a fifth more.
    batches = parquet.iter_batches(batch_size=BATCH_ROWS, use_threads=base.size > _SMALL_FILE)
    while True:
        with damage_of(base.path):
            batch = next(batches, None)
        if batch is None:
            return
        rows = types.applied(batch)
        yield conform(rows, keeping_encoded(spec.schema, rows.schema, plain=(RECORD_KEY,)), drop_extra=True)


class GroupWriter:
    """New file groups of one partition, one after the other: the next one begins when a file has its maximum size.

    file ids are `<prefix>-0`, `<prefix>-1`, …
    """

    def __init__(self, spec: WriteSpec, group: FileGroupId, token: str, *, rolls: bool = True) -> None:
        """rolls  False: one file takes all rows, however many"""
        self._spec, self._group, self._token, self._rolls = spec, group, token, rolls
        self._prefix = group.file_id.removesuffix("-0")
        self._count = 0
        self._stack = ExitStack()
        self._writer: BaseFileWriter | None = None
        self._row_bytes, self._sampled = 0.0, 0
        self.stats: list[WriteStat] = []

    def __enter__(self) -> GroupWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            self.close()
        else:
            self._stack.__exit__(*raised)  # type: ignore[arg-type]  # as the with statement hands them

    def append(self, rows: pa.Table) -> None:
        """Rows of the file's schema."""
        while rows.num_rows:
            most = max(1, self._most(rows))
            if self._writer is not None and self._writer.rows >= most:
                self.close()
            if self._writer is None:
                self._open(min(most, rows.num_rows))  # a bloom filter for more keys would be a large part of the file
            assert self._writer is not None
            room = most - self._writer.rows
            self._writer.append(rows.slice(0, room))
            rows = rows.slice(room)

    @property
    def pending_bytes(self) -> int:
        """Bytes of rows that are not in a row group yet."""
        return self._writer.pending_bytes if self._writer else 0

    def flush(self) -> None:
        """Write what is pending as a row group."""
        if self._writer is not None:
            self._writer.flush()

    def _most(self, rows: pa.Table) -> int:
        """How many rows like these a file holds; all of them where they are few for certain."""
        limit = self._spec.sizing.max_size
        if not self._rolls:
            return int(rows.num_rows) + (self._writer.rows if self._writer else 0)
        if (self._writer is None or self._writer.rows == 0) and rows.nbytes <= limit // 2:
            return int(rows.num_rows)
        at_hand = rows.num_rows + (self._writer.rows if self._writer else 0)
        if self._sampled < _SAMPLE_ROWS and at_hand > 2 * self._sampled:  # few rows tell little
            sample = pa.concat_tables([*(self._writer.pending if self._writer else ()), rows])
            self._row_bytes = encoded_row_bytes(sample, self._spec.sizing.codec.value)
            self._sampled = at_hand
        return int(limit / self._row_bytes)

    def _open(self, expected: int) -> None:
        group = FileGroupId(self._group.partition, f"{self._prefix}-{self._count}")
        self._count += 1
        self._writer = self._stack.enter_context(BaseFileWriter(self._spec, group, self._token, expected_rows=expected))

    def close(self) -> None:
        """Finish the file that is open; more rows go to the next one."""
        if self._writer is None:
            return
        self._stack.close()
        self.stats.append(self._writer.stat())
        self._writer = None


def encoded_row_bytes(rows: pa.Table, codec: str) -> float:
    """Bytes that a row takes in Parquet, measured by encoding a sample of the rows; what any file takes left out."""
    sample = rows.slice(0, _SAMPLE_ROWS)
    # One row tells what a row group and the footer cost.
    variable = _encoded(sample, codec) - _encoded(sample.slice(0, 1), codec)
    return max(1.0, variable / max(1, int(sample.num_rows) - 1))


def _encoded(rows: pa.Table, codec: str) -> int:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, compression=codec, store_schema=False) as writer:
        writer.write_table(rows)
    return int(sink.getvalue().size)


def write_stream(
    spec: WriteSpec,
    rule: MergeRule,
    batches: Iterator[pa.RecordBatch],
    token: str,
    key_columns: Sequence[str] = (),
    threads: int = 1,
) -> list[WriteStat]:
    """Bulk insert: rows as they come into new file groups, one or more per partition that occurs.

    key_columns  of a compound key: rows held together that differ in them and have one record key are refused
    threads      that write the last rows of each partition: all rows, where they fit in memory

    Holds at most a few hundred MB: past that the rows that wait are written, a row group per partition. Partitions keep
    their file open, up to _MOST_OPEN; past that the one that was not written to for longest is closed, and rows that
    still come for it go to another file. A task whose rows fit in memory, or come sorted, writes one per partition.
    """
    waiting: dict[str, list[pa.Table]] = {}
    with _StreamWriter(spec, token, key_columns) as writer:
        first = held = 0
        for batch in group_batches(batches):
            for number, partition in enumerate(batch.partitions):
                span = batch.range(number)
                rows = _without_deletes(batch.rows.slice(span.start, span.stop - span.start), rule)
                keys = as_array(rows.column(RECORD_KEY))
                if keys.null_count:
                    raise InvalidInput(f"{keys.null_count} rows have no record key (null or empty)")
                keys = with_instant(keys, spec.instant) if spec.new_keys else keys
                if partition is None:
                    raise InvalidInput(f"{len(rows)} rows have no partition path: a partition column cannot be read")
                waiting.setdefault(partition, []).append(stamp(rows, keys, partition, spec, token, first))
                first += len(rows)
                held += rows.nbytes
            if held > _HOLD_BYTES:
                writer.take(waiting)
                waiting, held = {}, 0
        writer.finish(waiting, threads)
    return writer.stats


class _StreamWriter:
    """The files of a bulk insert's task."""

    def __init__(self, spec: WriteSpec, token: str, key_columns: Sequence[str]) -> None:
        self._spec, self._token, self._key_columns = spec, token, key_columns
        self._stack = ExitStack()
        self._writers: list[GroupWriter] = []
        self._open: dict[str, GroupWriter] = {}  # the one written to last at the end

    def __enter__(self) -> _StreamWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.__exit__(*raised)  # type: ignore[arg-type]  # as the with statement hands them

    @property
    def stats(self) -> list[WriteStat]:
        """The statistics of all files, once they are closed."""
        return [stat for writer in self._writers for stat in writer.stats]

    def take(self, waiting: Mapping[str, Sequence[pa.Table]]) -> None:
        """Write rows; more will come. The largest partitions' files stay open."""
        for partition in sorted(waiting, key=lambda name: sum(rows.nbytes for rows in waiting[name])):
            writer = self._writer(partition)
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            self._open[partition] = writer
            self._append(writer, waiting[partition])
        # All but one: a partition's few rows would keep the whole batch in memory that they are a slice of.
        *others, _ = sorted(self._open.values(), key=lambda writer: writer.pending_bytes)
        for writer in others:
            writer.flush()

    def finish(self, waiting: Mapping[str, Sequence[pa.Table]], threads: int) -> None:
        """Write the last rows and close all files."""

        def write(last: tuple[GroupWriter, Sequence[pa.Table]]) -> None:
            writer, parts = last
            if parts:
                self._append(writer, parts)
            writer.close()

        parts_of: dict[str, Sequence[pa.Table]] = {**dict.fromkeys(self._open, ()), **waiting}
        in_threads(write, [(self._writer(partition), parts) for partition, parts in parts_of.items()], threads)

    def _writer(self, partition: str) -> GroupWriter:
        """The partition's, which is no longer among those that are open."""
        if partition in self._open:
            return self._open.pop(partition)
        group = FileGroupId(partition, new_file_id())
        self._writers.append(self._stack.enter_context(GroupWriter(self._spec, group, self._token)))
        return self._writers[-1]

    def _append(self, writer: GroupWriter, parts: Sequence[pa.Table]) -> None:
        rows = pa.concat_tables(parts)
        require_one_tuple(rows, self._key_columns)
        writer.append(rows)
