"""The columns of one file or log block brought to those of the table: their places, names and types there. Where
witnesses of a type contradict each other, there is a warning.

Source: tests/fixtures/schema_on_read, rows that Hudi reads of columns it has altered; docs/design/types.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import ContradictoryTimestamps, SchemaMismatch
from hoodie.formats.avro.schema import from_avro
from hoodie.formats.log.blocks import BlockKind, LogBlock
from hoodie.formats.parquet.columns import open_parquet
from hoodie.formats.parquet.stored_types import (
    Contradiction,
    StoredTypes,
    avro_witness,
    in_doubt,
    stored_types,
    types_of_file,
)
from hoodie.keygen.arrow_keys import text_of
from hoodie.model.files import BaseFile
from hoodie.model.instant import Instant
from hoodie.schema.conform import FileColumn, decoded, written_columns
from hoodie.schema.schema import ALSO_TEXT, GROWN
from hoodie.schema.types import is_list, spark_name
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.state import TableState
from hoodie.timeline.load import read_commit

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """How the rows of one file become rows of the table.

    types    of columns whose label in the file is wrong
    written  columns that the file has in another way than the table now, by their names in the table
    kinds    types of those in the table
    in_log   Hudi widens a float of a log by its text, 0.1 to 0.1, and one of a base file by its bits
    """

    types: StoredTypes = field(default_factory=StoredTypes)
    written: Mapping[str, FileColumn] = field(default_factory=dict)
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

    def applied(self, rows: _Rows) -> _Rows:
        """Rows of the file under the table's names, without columns that the table no longer has.

        Raises SchemaMismatch naming a column whose values are none of its type now
        """
        return self.types.applied(self._shift_times(rows) if self.written else rows)

    def _shift_times(self, rows: _Rows) -> _Rows:
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


def _without_columns(rows: _Rows) -> _Rows:
    """As many rows, of which nothing is known: a column that no table has is passed by."""
    return type(rows).from_arrays([pa.nulls(rows.num_rows)], names=["hoodie.none"])  # no column has a dot in its name


def _column(
    column: pa.Array | pa.ChunkedArray, kind: pa.DataType, written: FileColumn, place: _Place
) -> pa.Array | pa.ChunkedArray:
    if not isinstance(column, pa.ChunkedArray):
        return _array(column, kind, written, place)
    if not column.num_chunks:
        column = pa.chunked_array([pa.array([], column.type)])
    return pa.chunked_array([_array(chunk, kind, written, place) for chunk in column.chunks])


def _array(array: pa.Array, kind: pa.DataType, written: FileColumn, place: _Place) -> pa.Array:
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


def _struct(array: pa.StructArray, kind: pa.StructType, written: FileColumn, place: _Place) -> pa.StructArray:
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


#: What footers said, by table, file, size and columns: base files never change. A few hundred bytes each.
_stored_types: dict[tuple[str, str, int, bytes], StoredTypes] = {}
_MOST_STORED_TYPES = 100_000


def base_columns(storage: Storage, parquet: pq.ParquetFile, schema: pa.Schema, instant: str) -> FileColumns:
    """How the rows of a base file are to be read in columns of the table.

    instant  that wrote the file
    Warns    ContradictoryTimestamps
    """
    columns = columns_at(schema, instant)
    types = types_of_file(parquet, _as_written(schema, columns))
    warn_of(storage.root, types.contradictions)
    return replace(columns, types=types)


def block_columns(
    storage: Storage, block: LogBlock, rows: pa.Table, schema: pa.Schema, columns: FileColumns
) -> FileColumns:
    """As `base_columns`, of the rows of a data block. The schema in its header is the rows' own, or a further witness.

    columns  where they are in the block (`columns_at`)
    """
    header = block.header.schema if block.kind is BlockKind.PARQUET_DATA else None
    types = stored_types(rows.schema, _as_written(schema, columns), *avro_witness(header or ""))
    warn_of(storage.root, types.contradictions)
    return replace(columns, types=types)


def columns_at(schema: pa.Schema, instant: str, *, in_log: bool = False) -> FileColumns:
    """Where the columns of a table are in what an instant wrote; nothing of their labels."""
    written = written_columns(schema, instant)
    return FileColumns(written=written, kinds={name: schema.field(name).type for name in written}, in_log=in_log)


def _as_written(schema: pa.Schema, columns: FileColumns) -> pa.Schema:
    """The columns whose labels are looked at: not those that the file has under another name or type."""
    return schema if not columns.written else pa.schema([c for c in schema if c.name not in columns.written])


def warn_of(table: str, contradictions: Iterable[Contradiction]) -> None:
    """One warning for each. It does not name the file: the same one of many files is shown once."""
    for contradiction in contradictions:
        warning = ContradictoryTimestamps(
            table,
            contradiction.column,
            contradiction.table,
            contradiction.file,
            contradiction.avro,
            contradiction.taken,
        )
        warnings.warn(warning, stacklevel=4)


def mislabelled_files(
    state: TableState, files: Sequence[BaseFile], schema: pa.Schema, columns: Collection[str]
) -> frozenset[BaseFile]:
    """Those of some base files that a reader of Parquet, as Spark's own, would read as other values, or not at all:
    wrong labels, and columns that were altered since.

    schema   all columns of the table
    columns  those that are read
    Warns    ContradictoryTimestamps

    Costs nothing where the commits leave no doubt: for the types that Spark's writers make. Where a column in question
    is in milliseconds, or a local timestamp of another writer's, the footers of the files are read, by threads, and
    remembered by this process. Where it is a number that the key generator prints as a time, one commit is read for
    each instant among the files, and footers only of those whose commit declares another type, or is archived.
    """
    fields = [column for column in schema if column.name in columns]
    projection = pa.schema(fields)
    altered = frozenset(file for file in files if written_columns(projection, file.instant))
    suspects = list(files) if any(map(in_doubt, fields)) else _suspects(state, files, fields)
    suspects = [file for file in suspects if file not in altered]
    if not suspects:
        return altered
    key = schema.serialize().to_pybytes()
    types_of_files = in_threads(partial(_types_of, state.storage, schema, key), suspects)
    noted = dict.fromkeys(note for types in types_of_files for note in types.contradictions)
    warn_of(state.storage.root, (note for note in noted if note.column.partition(".")[0] in columns))
    return altered | frozenset(
        file
        for file, types in zip(suspects, types_of_files, strict=True)
        if any(name in columns for name in (*types.types, *types.text, *types.finer))
    )


def _suspects(state: TableState, files: Sequence[BaseFile], columns: Sequence[pa.Field]) -> list[BaseFile]:
    """Files that may hold a column of numbers as text, or one that has grown as it was, as their commits have it."""
    marks = (ALSO_TEXT, GROWN)
    kinds = {c.name: c.type for c in columns if any(mark in (c.metadata or {}) for mark in marks)}
    if not kinds:
        return []
    file_instants = {file.instant for file in files}
    instants = [instant for instant in state.timeline.commits if instant.requested in file_instants]
    if not instants:
        return list(files)
    clear = set(in_threads(partial(_declares, state, kinds), instants))
    return [file for file in files if file.instant not in clear]


def _declares(state: TableState, kinds: Mapping[str, pa.DataType], instant: Instant) -> str:
    """The instant if its commit declares the columns so, "" otherwise."""
    try:
        text = read_commit(state.storage, state.timeline, instant).schema
    except FileNotFoundError:  # archived meanwhile
        return ""
    schema = from_avro(text, state.timeline.path(instant)) if text else pa.schema([])
    same = all(name in schema.names and schema.field(name).type == kind for name, kind in kinds.items())
    return instant.requested if same else ""


def _types_of(storage: Storage, schema: pa.Schema, key: bytes, file: BaseFile) -> StoredTypes:
    place = (storage.root, file.path, file.size, key)
    types = _stored_types.get(place)
    if types is None:
        with storage.open_input(file.path, file.size) as source:
            types = types_of_file(open_parquet(source, file.path), schema)
        if len(_stored_types) >= _MOST_STORED_TYPES:
            _stored_types.clear()
        _stored_types[place] = types
    return types
