"""The columns of one file or log block brought to those of the table: their places, names and types there.

Source: tests/fixtures/schema_on_read, rows that Hudi reads of columns it has altered; docs/design/types.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatch
from hoodie.formats.parquet.stored_types import StoredTypes
from hoodie.keygen.arrow_text import text_of
from hoodie.schema.conform import decoded
from hoodie.schema.types import is_list, spark_name
from hoodie.schema.written import Written

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """How the rows of one file become rows of the table.

    types    of columns whose label in the file is wrong
    written  columns that the file has in another way than the table now, by their names in the table
    kinds    types of those in the table
    in_log   Hudi widens a float of a log by its text, 0.1 to 0.1, and one of a base file by its bits
    """

    types: StoredTypes = field(default_factory=StoredTypes)
    written: Mapping[str, Written] = field(default_factory=dict)
    kinds: Mapping[str, pa.DataType] = field(default_factory=dict)
    in_log: bool = False

    def __bool__(self) -> bool:
        """Whether rows have to be changed."""
        return bool(self.types or self.written)

    def names(self, columns: Iterable[str], stored: Collection[str] | None = None) -> list[str]:
        """The names that some columns of the table have in the file.

        stored  names of all columns of the file: others are left out; None: they are not known
        """
        places = (self.written[name].name if name in self.written else name for name in columns)
        return [name for name in places if name is not None and (stored is None or name in stored)]

    def applied(self, rows: Rows) -> Rows:
        """Rows of the file under the table's names, without columns that the table no longer has.

        Raises SchemaMismatch naming a column whose values are none of its type now
        """
        return self.types.applied(self._moved(rows))

    def _moved(self, rows: Rows) -> Rows:
        if not self.written:
            return rows
        places = {written.name: name for name, written in self.written.items() if written.name is not None}
        columns, names = [], []
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            now = places.get(name)
            if now is not None:
                column = _column(column, self.kinds[now], self.written[now], _Place(now, self.in_log))
            elif name not in self.written:
                now = name
            if now is not None:
                columns.append(column)
                names.append(now)
        if not columns:
            return _without_columns(rows)
        return type(rows).from_arrays(columns, names=names)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where values are: the column, dotted, and whether in a log."""

    column: str
    in_log: bool

    def within(self, name: str) -> _Place:
        return _Place(f"{self.column}.{name}", self.in_log)


def _without_columns(rows: Rows) -> Rows:
    """As many rows, of which nothing is known: a column that no table has is passed by."""
    return type(rows).from_arrays([pa.nulls(rows.num_rows)], names=["hoodie.none"])  # no column has a dot in its name


def _column(
    column: pa.Array | pa.ChunkedArray, kind: pa.DataType, written: Written, place: _Place
) -> pa.Array | pa.ChunkedArray:
    if not isinstance(column, pa.ChunkedArray):
        return _array(column, kind, written, place)
    if not column.num_chunks:
        column = pa.chunked_array([pa.array([], column.type)])
    return pa.chunked_array([_array(chunk, kind, written, place) for chunk in column.chunks])


def _array(array: pa.Array, kind: pa.DataType, written: Written, place: _Place) -> pa.Array:
    """Values of a file in the names of the table's type, and in its types where these differ by more than width."""
    have = array.type
    if pa.types.is_struct(kind) and pa.types.is_struct(have):
        return _struct(array, kind, written, place)
    if pa.types.is_list(have) and is_list(kind):
        if written.item is None:
            return array
        values = _array(array.values, kind.value_type, written.item, place.within("element"))
        return _from(array, pa.list_(values.type), values)
    if pa.types.is_map(have) and pa.types.is_map(kind):
        if written.item is None:
            return array
        items = _array(array.items, kind.item_type, written.item, place.within("value"))
        keys = array.keys
        pairs = pa.StructArray.from_arrays(
            [keys, items], fields=[have.key_field, have.item_field.with_type(items.type)]
        )
        return _from(array, pa.map_(have.key_type, items.type), pairs)
    return _retyped(array, kind, place) if written.retyped else array


def _from(array: pa.Array, kind: pa.DataType, child: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[child]
    )


def _struct(array: pa.StructArray, kind: pa.StructType, written: Written, place: _Place) -> pa.StructArray:
    stored = [child.name for child in array.type]
    children: dict[str, pa.Array] = {}
    for child in kind:
        then = written.fields.get(child.name)
        stored_name = child.name if then is None else then.name
        if stored_name in stored:
            values = array.field(stored.index(stored_name))
            if then is not None:
                values = _array(values, child.type, then, place.within(child.name))
            children[child.name] = values
    if not children:  # all fields are new
        children = {kind.field(0).name: pa.nulls(len(array), kind.field(0).type)}
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(list(children.values()), list(children), mask=mask)


def _retyped(array: pa.Array, kind: pa.DataType, place: _Place) -> pa.Array:
    """Values of a type that Hudi allows to change to another. Wider numbers are left to `conform`."""
    if pa.types.is_dictionary(array.type):
        array = decoded(array)
    have = array.type
    try:
        if pa.types.is_string(kind) and not pa.types.is_string(have):
            return text_of(array, place.column).cast(pa.string())
        if pa.types.is_string(have) and not pa.types.is_string(kind):
            return pc.cast(array, kind)
        if have == pa.float32() and kind == pa.float64() and place.in_log:
            return pc.cast(text_of(array, place.column), kind)
        if pa.types.is_decimal(kind) and pa.types.is_integer(have):
            return array.cast(pa.decimal128(38, kind.scale)).cast(kind)
        if pa.types.is_decimal(kind) and pa.types.is_floating(have):
            return text_of(array, place.column).cast(pa.string()).cast(pa.decimal128(38, kind.scale)).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        words = f"column {place.column} is {spark_name(have)} in a file and {spark_name(kind)} in the table"
        raise SchemaMismatch(f"{words}, and not every value can be read so: {error}") from error
    return array
