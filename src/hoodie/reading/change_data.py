"""Change data: what became of each row in a range of commits, with the row before and after, as Arrow.

Source: docs/format/cdc.md 4 and 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, CorruptLogBlock
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.log.content import data_rows
from hoodie.merge.base import Incoming, inserts, merge_base
from hoodie.merge.log_scan import Committed
from hoodie.merge.row_changes import (
    AFTER,
    BEFORE,
    OP,
    RowOp,
    added_changes,
    images,
    merged_changes,
    removed_changes,
    updated_changes,
)
from hoodie.merge.rows import Mask, as_array, nullable
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.model.meta import COMMIT_TIME, RECORD_KEY
from hoodie.reading.change_data_plan import ChangeData, ChangeReader
from hoodie.reading.file_slice_reader import SliceReader, base_batches, merged_batches, scan_logs
from hoodie.reading.json_text import json_text
from hoodie.reading.selection import Filters, check_columns, read_filter
from hoodie.schema.conform import conform
from hoodie.view.change_data import ChangeStep


def change_data_batches(plan: ChangeData) -> Iterator[pa.RecordBatch]:
    """The rows of a read, file group by file group, in each in the order of the commits.

    Raises  CorruptFile, CorruptLogBlock; FileNotFoundError when a file was cleaned away meanwhile
    """
    for steps in plan.groups:
        for rows in group_changes(plan.reader, steps):
            yield from rows.to_batches()


@dataclass(frozen=True, slots=True, eq=False)
class SelectedChanges:
    """Which columns and rows of change data are wanted."""

    schema: pa.Schema
    keep: pc.Expression | None = None

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The columns and rows wanted of batches that have all."""
        for batch in batches:
            kept = batch if self.keep is None else batch.filter(self.keep)
            yield kept.select(self.schema.names)


def select_changes(
    schema: pa.Schema, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> SelectedChanges:
    """Raises InvalidInput on an unknown column or a malformed filter.

    schema  of the change data; columns and filters are over it
    """
    wanted = schema.names if columns is None else list(columns)
    rows = read_filter(filters, schema)
    check_columns([*wanted, *(rows.columns if rows else ())], schema)
    return SelectedChanges(pa.schema([schema.field(name) for name in wanted]), rows.expression if rows else None)


def group_changes(reader: ChangeReader, steps: Sequence[ChangeStep]) -> Iterator[pa.Table]:
    """What became of the rows of one file group, in the columns of `ChangeReader.schema`.

    steps  of the group, oldest first

    Held are the rows that the commits wrote to logs, and the stored rows of their keys; of a base file that is compared
    with the one before its keys and its changed rows.
    """
    for is_log, together in groupby(steps, lambda step: bool(step.logs)):
        if is_log:
            yield from _log_steps(reader, list(together))
            continue
        for step in together:
            for changes in _step(reader, step):
                yield _told(reader, step.instant, changes)


def _told(reader: ChangeReader, instant: str, changes: pa.Table) -> pa.Table:
    """Changes in the columns of the read."""
    before, after = as_array(changes.column(BEFORE)), as_array(changes.column(AFTER))
    if reader.as_text:
        before, after = json_text(before), json_text(after)
    columns = [changes.column(OP), pa.repeat(instant, changes.num_rows), before, after]
    return pa.Table.from_arrays(columns, schema=reader.schema)


def _step(reader: ChangeReader, step: ChangeStep) -> Iterator[pa.Table]:
    """The changes of a commit that wrote a base file, or took the group away."""
    if step.cdc:
        for log in step.cdc:
            yield from _logged(reader, step, log)
    elif step.base is None:
        for rows in _rows_before(reader, step):
            yield removed_changes(rows, reader.image)
    elif step.before is None:
        for rows in base_batches(reader.slices.storage, step.base, reader.slices.schema):
            yield added_changes(rows, reader.image)
    else:
        yield from _compared(reader, step, step.base)


def _compared(reader: ChangeReader, step: ChangeStep, base: BaseFile) -> Iterator[pa.Table]:
    """The changes between two versions of a base file: rows of the new one have the commit's time if it wrote them."""
    stayed, written = [], []
    for rows in base_batches(reader.slices.storage, base, reader.slices.schema):
        mine = pc.equal(rows.column(COMMIT_TIME), step.instant)
        written.append(rows.filter(mine))
        stayed.append(as_array(rows.column(RECORD_KEY).filter(pc.invert(mine))))
    kept = pa.concat_arrays([pa.array([], pa.string()), *stayed])
    new = pa.concat_tables([reader.slices.schema.empty_table(), *written]).combine_chunks()
    keys = as_array(new.column(RECORD_KEY))
    met = np.zeros(len(keys), np.bool_)
    for rows in _rows_before(reader, step):
        rows = rows.filter(pc.invert(pc.is_in(rows.column(RECORD_KEY), value_set=kept)))
        at = as_array(pc.index_in(rows.column(RECORD_KEY), value_set=keys))
        yield removed_changes(rows.filter(at.is_null()), reader.image)
        both = at.drop_null()
        met[both.to_numpy(zero_copy_only=False)] = True
        yield updated_changes(rows.filter(at.is_valid()), new.take(both), reader.image)
    yield added_changes(new.filter(pa.array(~met)), reader.image)


def _log_steps(reader: ChangeReader, steps: Sequence[ChangeStep]) -> Iterator[pa.Table]:
    """The changes of commits that wrote logs: each is merged into what the ones before it left."""
    for _, together in groupby(steps, lambda step: None if step.before is None else step.before.base_instant):
        run = list(together)
        written = [_incoming(reader, step) for step in run]
        keys = pa.concat_arrays([rows.keys for rows in written]).unique()
        schema = nullable(written[0].rows.schema)
        found = [
            rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=keys)) for rows in _rows_before(reader, run[0])
        ]
        stored = pa.concat_tables([schema.empty_table(), *(rows.cast(schema) for rows in found)])
        for step, incoming in zip(run, written, strict=True):
            merged = merge_base(stored, incoming, reader.slices.rule)
            yield _told(reader, step.instant, merged_changes(stored, merged, reader.image))
            matched = np.zeros(incoming.num_rows, np.bool_)
            matched[merged.matched] = True
            new = inserts(incoming, matched, reader.slices.rule).rows
            yield _told(reader, step.instant, added_changes(new, reader.image))
            stored = pa.concat_tables([merged.rows.cast(schema), new.cast(schema)]).combine_chunks()


def _incoming(reader: ChangeReader, step: ChangeStep) -> Incoming:
    """The rows and deleted keys that a commit wrote to logs."""
    rows, report = scan_logs(_as_of(reader, reader.committed_by(step.instant)), step.logs)
    for damage in report.damaged:
        warnings.warn(damage, stacklevel=2)
    return rows


def _rows_before(reader: ChangeReader, step: ChangeStep) -> Iterator[pa.Table]:
    """The rows of a group before a commit, in all columns."""
    if step.before is None:
        return
    slices = reader.slices
    if step.before.logs:
        yield from _merged(_as_of(reader, reader.committed_before(step.instant)), step.before)
    elif step.before.base is not None:
        yield from base_batches(slices.storage, step.before.base, slices.schema)


def _merged(reader: SliceReader, slice_: FileSlice) -> Iterator[pa.Table]:
    return merged_batches(reader, slice_, reader.schema.names)


def _as_of(reader: ChangeReader, committed: Committed) -> SliceReader:
    return replace(reader.slices, committed=committed)


def _logged(reader: ChangeReader, step: ChangeStep, log: LogFile) -> Iterator[pa.Table]:
    """The changes in a change log; images that it does not hold are taken from the files beside it."""
    for block in read_blocks(reader.slices.storage.read(log.path), log.path):
        if block.kind is not BlockKind.CDC_DATA:
            raise CorruptLogBlock(log.path, f"a block of kind {block.kind.name} among change data", block.offset)
        rows = data_rows(block, log.path)
        present = set(rows.column_names)
        ops = as_array(rows.column(OP)).cast(pa.string())
        told: dict[str, pa.Array] = {OP: ops}
        for name, without in ((BEFORE, RowOp.INSERT), (AFTER, RowOp.DELETE)):
            if name in present:
                told[name] = _image(reader, as_array(rows.column(name)))
                continue
            wanted = np.asarray(pc.not_equal(ops, without.value))
            files = _rows_before(reader, step) if name == BEFORE else _rows_after(reader, step)
            told[name] = _found(reader, as_array(rows.column("record_key")), wanted, files, log.path)
        yield pa.table(told)


def _rows_after(reader: ChangeReader, step: ChangeStep) -> Iterator[pa.Table]:
    assert step.base is not None  # a change log is beside one, and the plan saw to it
    return base_batches(reader.slices.storage, step.base, reader.slices.schema)


def _found(reader: ChangeReader, keys: pa.Array, wanted: Mask, files: Iterator[pa.Table], path: str) -> pa.StructArray:
    """The images of some keys among the rows of files. Raises CorruptFile naming a key that is not there."""
    asked = keys.filter(pa.array(wanted))
    parts = [rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=asked)) for rows in files] if len(asked) else []
    rows = pa.concat_tables([reader.slices.schema.empty_table(), *parts]).combine_chunks()
    at = pc.index_in(keys, value_set=as_array(rows.column(RECORD_KEY)))
    lost = asked.filter(at.filter(pa.array(wanted)).is_null())
    if len(lost):
        raise CorruptFile(path, f"{len(lost)} keys have no row in the data files beside it, such as {lost[0]}")
    at = pc.if_else(pa.array(wanted), at, pa.scalar(None, at.type))
    return images(rows.take(at), reader.image, ~wanted)


def _image(reader: ChangeReader, stored: pa.StructArray) -> pa.StructArray:
    """Images of a log in the columns of the table now."""
    fields = list(stored.type)
    rows = pa.Table.from_arrays(stored.flatten(), schema=pa.schema([field.with_nullable(True) for field in fields]))
    rows = conform(rows, pa.schema(list(reader.image)), drop_extra=True)
    return images(rows, reader.image, np.asarray(stored.is_null()))
