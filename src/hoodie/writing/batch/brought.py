"""Columns as files and data frames bring them: of another type than the table's, with values that its type holds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import ColumnLeftOut, SchemaMismatch
from hoodie.expressions.casts import kernel_of
from hoodie.keygen.arrow_keys import is_text
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.types import spark_name, stored_type, widen

#: The greatest whole number up to which a floating type holds each one.
_WHOLE = {32: 2**24, 64: 2**53}


def peeked(source: pa.RecordBatchReader) -> tuple[pa.RecordBatch | None, pa.RecordBatchReader]:
    """The first batch that has rows, and the stream with it; None: there is none."""
    held: list[pa.RecordBatch] = []
    for batch in source:
        held.append(batch)
        if batch.num_rows:
            break
    rest: Iterator[pa.RecordBatch] = chain(held, source)
    first = held[-1] if held and held[-1].num_rows else None
    return first, pa.RecordBatchReader.from_batches(source.schema, rest)


@dataclass(frozen=True, slots=True)
class BroughtColumns:
    """The columns of a batch in the types that they are written with.

    read_text  text is read as the dates, times and numbers of its column
    """

    schema: pa.Schema
    read_text: bool = False

    def applied(self, rows: pa.Table) -> pa.Table:
        """Rows with these columns, behind them the meta columns that they have.

        Raises SchemaMismatch naming the column, and a value that its type does not hold
        """
        for field in self.schema:
            at = rows.schema.get_field_index(field.name)
            column = rows.column(at)
            if column.type != field.type:
                chunks = [_converted(chunk, field.type, field.name, self.read_text) for chunk in column.chunks]
                rows = rows.set_column(at, field, pa.chunked_array(chunks, field.type))
        return rows.select([*self.schema.names, *(name for name in rows.schema.names if name in META_COLUMNS)])


def brought_columns(
    table: pa.Schema | None, batch: pa.Schema, first: pa.RecordBatch | None, *, read_text: bool = False
) -> BroughtColumns:
    """How the columns of a batch are written; those of no type that the table lacks are left out.

    table  in stored form; None: it has no columns yet
    first  the first rows: whether numbers are whole, and whether a column has values at all, is seen there. Later rows
           that differ are refused once they are read
    """
    fields = []
    for field in batch:
        at = -1 if table is None else table.get_field_index(field.name)
        if at >= 0:
            assert table is not None
            fields.append(field.with_type(_written(table.field(at).type, field, first, read_text)))
        elif not arrow.is_null(field.type):
            fields.append(field)
    return BroughtColumns(pa.schema(fields), read_text)


def note_left_out(table: str, batch: pa.Schema, written: pa.Schema) -> None:
    """Warns of columns that have no type, as none of their values tells one."""
    if names := [field.name for field in batch if field.name not in written.names]:
        warnings.warn(ColumnLeftOut(table, tuple(names)), stacklevel=2)


def _written(kind: pa.DataType, field: pa.Field, first: pa.RecordBatch | None, read_text: bool) -> pa.DataType:
    have = field.type
    if arrow.is_null(have):
        return kind
    values = None if first is None else first.column(first.schema.get_field_index(field.name))
    if arrow.is_floating(have) and arrow.is_integer(kind):
        return kind if values is None or _all_whole(values, kind) else have
    if arrow.is_integer(have) and arrow.is_floating(kind):
        return kind
    if read_text and is_text(have) and not is_text(kind) and kernel_of(pa.string(), kind) is not None:
        return kind
    stored = stored_type(have)
    fits = stored is not None and widen(kind, stored) == kind
    empty = values is not None and values.null_count == len(values)
    return kind if empty and not fits and not arrow.is_nested(kind) else have


def _all_whole(values: pa.Array, kind: pa.DataType) -> bool:
    return bool(_whole(values, kind).null_count == values.null_count)


def _whole(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floating numbers as whole ones; null where one is none."""
    numbers = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    limit = 2.0 ** (kind.bit_width - 1)
    with np.errstate(invalid="ignore"):
        fits = (np.trunc(numbers) == numbers) & (numbers >= -limit) & (numbers < limit)
    made = np.where(fits, numbers, 0).astype(np.int64)
    return pa.array(made, pa.int64(), mask=~fits | np.asarray(values.is_null())).cast(kind)


def _converted(values: pa.Array, kind: pa.DataType, name: str, read_text: bool) -> pa.Array:
    have = values.type
    if values.null_count == len(values):
        return pa.nulls(len(values), kind)
    if arrow.is_floating(have) and arrow.is_integer(kind):
        return _refusing(values, _whole(values, kind), kind, name)
    if arrow.is_integer(have) and arrow.is_floating(kind):
        most = _WHOLE[kind.bit_width]
        large = pc.or_(pc.greater(values, most), pc.less(values, -most))
        return _refusing(values, pc.if_else(large, pa.scalar(None, have), values), kind, name).cast(kind, safe=False)
    kernel = kernel_of(pa.string(), kind) if read_text and is_text(have) else None
    if kernel is None:
        raise _mismatch(values, values.is_valid(), kind, name)
    return _refusing(values, kernel(values.cast(pa.string())), kind, name)


def _refusing(values: pa.Array, fitting: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    if fitting.null_count > values.null_count:
        raise _mismatch(values, pc.and_(values.is_valid(), fitting.is_null()), kind, name)
    return fitting


def _mismatch(values: pa.Array, bad: pa.Array, kind: pa.DataType, name: str) -> SchemaMismatch:
    value, word = values.filter(bad)[0].as_py(), spark_name(kind)
    return SchemaMismatch(
        f"column {name} is {word} in the table, which does not hold the {spark_name(values.type)} value {value!r} of "
        f"the batch: cast the column to {word} first; nothing was written"
    )
