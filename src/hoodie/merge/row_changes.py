"""What a merge did to rows, each with its image before and after: what change data is made of.

Source: docs/format/cdc.md 3.
"""

from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.base import Merged
from hoodie.merge.rows import Mask, as_array
from hoodie.merge.rules import Choice
from hoodie.model.meta import META_COLUMNS, RECORD_KEY

OP, BEFORE, AFTER = "op", "before", "after"


class RowOp(StrEnum):
    """What became of a row, in the word of Hudi's change data."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"


def image_type(schema: pa.Schema) -> pa.StructType:
    """The type of an image: a table's columns without the meta columns, each of which an absent image leaves null."""
    return pa.struct([field.with_nullable(True) for field in schema if field.name not in META_COLUMNS])


def changes_schema(image: pa.StructType) -> pa.Schema:
    """Columns of changes: what became of a row, its record key, and its images."""
    texts = [pa.field(OP, pa.string()), pa.field(RECORD_KEY, pa.string())]
    return pa.schema([*texts, pa.field(BEFORE, image), pa.field(AFTER, image)])


def merged_changes(stored: pa.Table, merged: Merged, image: pa.StructType) -> pa.Table:
    """The stored rows that a merge changed or dropped, in their order, with both images.

    stored  the rows that `merged` was made of, with `_hoodie_record_key`
    image   `image_type` of their columns, or of some of them
    """
    touched = merged.choice != Choice.KEEP
    at, deletes = merged.met[touched], merged.choice[touched] == Choice.DELETE
    # Rows after a dropped one have moved up.
    now = at - (np.cumsum(deletes) - deletes)
    before = stored.take(pa.array(at))
    ops = pc.if_else(pa.array(deletes), RowOp.DELETE.value, RowOp.UPDATE.value)
    after = images(merged.rows.take(pa.array(now, mask=deletes)), image, deletes)
    return _changes(ops, before, images(before, image), after, image)


def added_changes(rows: pa.Table, image: pa.StructType) -> pa.Table:
    """Rows that were not there before, with `_hoodie_record_key`."""
    ops = pa.repeat(RowOp.INSERT.value, rows.num_rows)
    return _changes(ops, rows, pa.nulls(rows.num_rows, image), images(rows, image), image)


def removed_changes(rows: pa.Table, image: pa.StructType) -> pa.Table:
    """Rows that are no longer there, with `_hoodie_record_key`."""
    ops = pa.repeat(RowOp.DELETE.value, rows.num_rows)
    return _changes(ops, rows, images(rows, image), pa.nulls(rows.num_rows, image), image)


def updated_changes(before: pa.Table, after: pa.Table, image: pa.StructType) -> pa.Table:
    """Rows of the same keys, row by row, as they were and as they are."""
    ops = pa.repeat(RowOp.UPDATE.value, before.num_rows)
    return _changes(ops, before, images(before, image), images(after, image), image)


def images(rows: pa.Table, image: pa.StructType, absent: Mask | None = None) -> pa.StructArray:
    """The rows as images, null where they are absent."""
    columns = [as_array(rows.column(field.name)) for field in image]
    mask = None if absent is None else pa.array(absent)
    return pa.StructArray.from_arrays(columns, fields=list(image), mask=mask)


def _changes(
    ops: pa.Array, keyed: pa.Table, before: pa.StructArray, after: pa.StructArray, image: pa.StructType
) -> pa.Table:
    keys = as_array(keyed.column(RECORD_KEY))
    return pa.Table.from_arrays([ops, keys, before, after], schema=changes_schema(image))
