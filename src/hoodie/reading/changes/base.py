"""The changes of a commit that wrote a base file, or took a file group away: from its change log, or from base files.

Source: docs/format/cdc.md 4, cases A to C, E and F.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, CorruptLogBlock
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.log.change_data import KEY
from hoodie.formats.log.content import data_rows
from hoodie.merge.row_changes import AFTER, BEFORE, OP, RowOp, added_changes, images, removed_changes, updated_changes
from hoodie.merge.rows import Mask, as_array, key_groups
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.meta import COMMIT_TIME, RECORD_KEY
from hoodie.reading.changes.data_plan import ChangeReader
from hoodie.reading.slices.column_types import columns_at
from hoodie.reading.slices.reader import base_batches, merged_batches
from hoodie.schema.conform import conform
from hoodie.view.change_data import ChangeStep


def base_changes(reader: ChangeReader, step: ChangeStep) -> Iterator[pa.Table]:
    """What the commit did to the rows of the group, in the columns `op`, `before` and `after` at least.

    Raises  CorruptLogBlock; CorruptFile when a key of a change log is in no base file
    """
    if step.cdc:
        for log in step.cdc:
            yield from _logged_changes(reader, step, log)
    elif step.base is None:
        for rows in _rows_before(reader, step):
            yield removed_changes(rows, reader.image)
    elif step.before is None:
        for rows in base_batches(reader.slices.storage, step.base, reader.slices.schema):
            yield added_changes(rows, reader.image)
    else:
        yield from _base_changes(reader, step, step.base)


def _base_changes(reader: ChangeReader, step: ChangeStep, base: BaseFile) -> Iterator[pa.Table]:
    """The changes between two versions of a base file: rows of the new one have the commit's time if it wrote them."""
    stayed, written = [], []
    for rows in base_batches(reader.slices.storage, base, reader.slices.schema):
        mine = pc.equal(rows.column(COMMIT_TIME), step.instant)
        written.append(rows.filter(mine))
        stayed.append(as_array(rows.column(RECORD_KEY).filter(pc.invert(mine))))
    keys_that_stay = pa.concat_arrays([pa.array([], pa.string()), *stayed])
    new = pa.concat_tables([reader.slices.schema.empty_table(), *written]).combine_chunks()
    keys = as_array(new.column(RECORD_KEY))
    met = np.zeros(len(keys), np.bool_)
    for rows in _rows_before(reader, step):
        rows = rows.filter(pc.invert(pc.is_in(rows.column(RECORD_KEY), value_set=keys_that_stay)))
        at = as_array(pc.index_in(rows.column(RECORD_KEY), value_set=keys))
        yield removed_changes(rows.filter(at.is_null()), reader.image)
        met |= np.asarray(pc.is_in(keys, value_set=as_array(rows.column(RECORD_KEY))))  # a key may be stored twice
        yield updated_changes(rows.filter(at.is_valid()), new.take(at.drop_null()), reader.image)
    yield added_changes(new.filter(pa.array(~met)), reader.image)


def _rows_before(reader: ChangeReader, step: ChangeStep) -> Iterator[pa.Table]:
    """The rows of a group before a commit, in all columns."""
    if step.before is None:
        return
    slices = reader.slices
    if step.before.logs:
        then = replace(slices, committed=reader.committed_before(step.instant))
        yield from merged_batches(then, step.before, slices.schema.names)
    elif step.before.base is not None:
        yield from base_batches(slices.storage, step.before.base, slices.schema)


def _logged_changes(reader: ChangeReader, step: ChangeStep, log: LogFile) -> Iterator[pa.Table]:
    """The changes in a change log; images that it does not hold are taken from the files beside it."""
    for block in read_blocks(reader.slices.storage.read(log.path), log.path):
        if block.kind is not BlockKind.CDC_DATA:
            raise CorruptLogBlock(log.path, f"a block of kind {block.kind.name} among change data", block.offset)
        rows = data_rows(block, log.path)
        names = set(rows.column_names)
        ops = as_array(rows.column(OP)).cast(pa.string())
        columns: dict[str, pa.Array] = {OP: ops}
        for name, without in ((BEFORE, RowOp.INSERT), (AFTER, RowOp.DELETE)):
            if name in names:
                columns[name] = _image(reader, as_array(rows.column(name)), step.instant)
                continue
            needs_image = np.asarray(pc.not_equal(ops, without.value))
            files = _rows_before(reader, step) if name == BEFORE else _rows_after(reader, step)
            columns[name] = _images_in(reader, as_array(rows.column(KEY)), needs_image, files, log.path)
        yield pa.table(columns)


def _rows_after(reader: ChangeReader, step: ChangeStep) -> Iterator[pa.Table]:
    assert step.base is not None  # a change log is beside one, and the plan saw to it
    return base_batches(reader.slices.storage, step.base, reader.slices.schema)


def _images_in(
    reader: ChangeReader, keys: pa.Array, needs_image: Mask, files: Iterator[pa.Table], path: str
) -> pa.StructArray:
    """The images of some keys among the rows of files. Raises CorruptFile naming a key that is not there."""
    keys_of_file = keys.filter(pa.array(needs_image))
    parts = (
        [rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=keys_of_file)) for rows in files]
        if len(keys_of_file)
        else []
    )
    rows = pa.concat_tables([reader.slices.schema.empty_table(), *parts]).combine_chunks()
    at = row_places(keys, rows)
    lost = keys_of_file.filter(at.filter(pa.array(needs_image)).is_null())
    if len(lost):
        raise CorruptFile(path, f"{len(lost)} keys have no row in the data files beside it, such as {lost[0]}")
    at = pc.if_else(pa.array(needs_image), at, pa.scalar(None, at.type))
    return images(rows.take(at), reader.image, ~needs_image)


def row_places(keys: pa.Array, rows: pa.Table) -> pa.Array:
    """Where each key has its row, null: nowhere. Each place of a key that is there several times has a row of its own,
    in their order: the last ones if there are more rows, and if there are fewer, the first places have the last."""
    if key_groups(pa.table({RECORD_KEY: keys}), (RECORD_KEY,)) is None:
        return last_places(keys, rows)
    own = pc.index_in(_numbered(keys), value_set=_numbered(as_array(rows.column(RECORD_KEY))))
    return pc.coalesce(own, last_places(keys, rows))


def last_places(keys: pa.Array, rows: pa.Table) -> pa.Array:
    """Where each key has its last row, null: nowhere. One that is stored twice is told with that row, as by Hudi."""
    stored = as_array(rows.column(RECORD_KEY))
    return pc.subtract(len(stored) - 1, pc.index_in(keys, value_set=stored[::-1]))


def _numbered(keys: pa.Array) -> pa.Array:
    """The keys, each with the number of the same ones behind it."""
    codes = keys.dictionary_encode().indices.to_numpy()[::-1]
    order = np.argsort(codes, kind="stable")
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    return pc.binary_join_element_wise(keys, pa.array(numbers[::-1]).cast(keys.type), " ")


def _image(reader: ChangeReader, stored: pa.StructArray, instant: str) -> pa.StructArray:
    """Images of a log that an instant wrote, in the columns of the table now."""
    fields = list(stored.type)
    rows = pa.Table.from_arrays(stored.flatten(), schema=pa.schema([field.with_nullable(True) for field in fields]))
    columns = pa.schema(list(reader.image))
    rows = conform(columns_at(columns, instant, in_log=True).applied(rows), columns, drop_extra=True)
    return images(rows, reader.image, np.asarray(stored.is_null()))
