"""The types that the columns of a file really have: labels that are known to be wrong, and the witnesses against them.

Hudi before 1.1 had one timestamp in its own schemas, in microseconds: it labelled columns of milliseconds
`timestamp-micros`, in files, logs and commits, and stored times without a zone as plain longs. Commits of later writers
declare what the numbers are. The rules are those of Hudi's own reader (`AvroSchemaRepair`), see docs/design/types.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFile, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro.schema import from_avro
from hoodie.schema.schema import ALSO_TEXT, AVRO_LOGICAL, GROWN, LOCAL_MICROS, VECTOR
from hoodie.schema.types import TIMESTAMP_MILLIS, holds, is_list, read_by_spark, spark_name

#: Marks of columns that files may have in another type.
_MARKS = frozenset([ALSO_TEXT, GROWN])
_AVRO_IN_FOOTER = b"parquet.avro.schema"

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)

#: What the file's own Avro schema says: asked for only where it can matter.
Avro = Callable[[], "pa.Schema | None"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Witnesses of a column's type that say different things.

    column  dotted, of the table
    table   its type by the table's commits
    file    by the label in the file, or in the schema of a log block
    avro    by the Avro schema in the file's footer; "": it was not asked, or says nothing
    taken   the type that the values are read by
    """

    column: str
    table: str
    file: str
    avro: str
    taken: str


@dataclass(frozen=True, slots=True)
class StoredTypes:
    """How the rows of one file differ from their labels.

    types  of the top-level columns whose label is wrong; their bytes are those of these types
    text   columns that are text in the file or in the table, and not in both -> their type in the table
    finer  columns whose times are finer in the file than in the table, which cuts them down; those that have vectors,
           whose bytes become lists; and those that have grown since
    """

    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    text: Mapping[str, pa.DataType] = field(default_factory=dict)
    finer: frozenset[str] = frozenset()
    contradictions: tuple[Contradiction, ...] = ()

    def __bool__(self) -> bool:
        """Whether rows have to be changed."""
        return bool(self.types or self.text)

    def applied(self, rows: _Rows) -> _Rows:
        """The rows with columns of the right types. No value is copied, but for text.

        Raises SchemaMismatch naming a column whose text is no such value
        """
        if not self:
            return rows
        columns = []
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            if name in self.types:
                column = _as_view(column, self.types[name])
            elif name in self.text:
                column = _parsed(column, self.text[name], name)
            columns.append(column)
        return type(rows).from_arrays(columns, names=rows.schema.names)


def in_doubt(column: pa.Field) -> bool:
    """Whether files may label the column wrongly: those of the types that Spark's own writers make never do. The
    label of a vector is of bytes."""
    if _is_vector(column):
        return True
    if pa.types.is_timestamp(column.type):
        return column.type.unit == "ms" or (column.metadata or {}).get(AVRO_LOGICAL) == LOCAL_MICROS
    return any(in_doubt(column.type.field(number)) for number in range(column.type.num_fields))


def types_of_file(parquet: pq.ParquetFile, table: pa.Schema) -> StoredTypes:
    """How the columns of a Parquet file are to be read, in a table with these columns."""
    if not _has_times(table):
        return StoredTypes()
    text: bytes = (parquet.metadata.metadata or {}).get(_AVRO_IN_FOOTER, b"")
    return stored_types(parquet.schema_arrow, table, *avro_witness(text.decode("utf-8", "replace")))


def avro_witness(text: str) -> tuple[Avro, bool]:
    """The last two arguments of `stored_types` for an Avro schema as JSON; "" says nothing."""
    return cache(lambda: _avro_of(text)), "-millis" in text


def stored_types(
    labels: pa.Schema, table: pa.Schema, avro: Avro = lambda: None, avro_has_millis: bool = False
) -> StoredTypes:
    """How columns are to be read that a file labels so, in a table with these columns.

    labels  the file's columns; of a log block in Avro the schema in its header
    avro    the Avro schema in the file's footer; it counts where the file has no label
    avro_has_millis  whether that speaks of milliseconds: if not, labels of microseconds need no look at it
    """
    if not _has_times(table):
        return StoredTypes()
    walk = _Walk(avro, avro_has_millis)
    types: dict[str, pa.DataType] = {}
    text: dict[str, pa.DataType] = {}
    for column in table:
        at = labels.get_field_index(column.name)
        if at < 0:
            continue
        have = labels.field(at).type
        if ALSO_TEXT in (column.metadata or {}) and _is_text(have) != _is_text(column.type):
            text[column.name] = column.type
            continue
        if _is_vector(column) or (GROWN in (column.metadata or {}) and not read_by_spark(have, column.type)):
            walk.finer.add(column.name)
            continue
        actual = walk.type(have, column.type, column.name, (column.name,))
        if actual != have:
            types[column.name] = actual
    return StoredTypes(types, text, frozenset(walk.finer), tuple(walk.contradictions))


def _has_times(table: pa.Schema) -> bool:
    return any(
        not _MARKS.isdisjoint(column.metadata or {}) or _is_vector(column) or holds(column.type, pa.types.is_timestamp)
        for column in table
    )


def _is_vector(column: pa.Field) -> bool:
    return (column.metadata or {}).get(AVRO_LOGICAL) == VECTOR


class _Walk:
    """One walk over the columns of one file."""

    def __init__(self, avro: Avro, avro_has_millis: bool) -> None:
        self.avro, self.avro_has_millis = avro, avro_has_millis
        self.contradictions: list[Contradiction] = []
        self.finer: set[str] = set()

    def type(self, have: pa.DataType, want: pa.DataType, column: str, path: tuple[str, ...]) -> pa.DataType:
        """The type whose values the bytes are.

        have    as labelled
        want    of the table
        column  in messages
        path    of fields; "[]" goes into a list's elements or a map's values
        """
        types = pa.types
        if types.is_struct(have) and types.is_struct(want):
            return pa.struct([self._child(child, want, column, path) for child in have])
        if types.is_list(have) and is_list(want):
            item = have.value_field
            inner = self.type(item.type, want.value_type, f"{column}.element", (*path, "[]"))
            return have if inner == item.type else pa.list_(item.with_type(inner))
        if types.is_map(have) and types.is_map(want):
            value = have.item_field
            inner = self.type(value.type, want.item_type, f"{column}.value", (*path, "[]"))
            return have if inner == value.type else pa.map_(have.key_type, value.with_type(inner))
        return self._leaf(have, want, column, path)

    def _child(self, child: pa.Field, want: pa.StructType, column: str, path: tuple[str, ...]) -> pa.Field:
        at = want.get_field_index(child.name)
        if at < 0:
            return child
        return child.with_type(
            self.type(child.type, want.field(at).type, f"{column}.{child.name}", (*path, child.name))
        )

    def _leaf(self, have: pa.DataType, want: pa.DataType, column: str, path: tuple[str, ...]) -> pa.DataType:
        if not pa.types.is_timestamp(want):
            return have
        if have == pa.int64():
            declared = self._avro_timestamp(want, path)
            taken = want if declared is None else pa.timestamp(_unit(want, declared), want.tz)
            if declared is not None and declared.unit != want.unit:
                self._note(column, want, have, declared, taken)
            return taken
        if not pa.types.is_timestamp(have):
            return have
        if (have.tz is None) != (want.tz is None):  # the number is the same, as a time in UTC
            have = pa.timestamp(have.unit, want.tz)
        declared = self._avro_timestamp(want, path) if self.avro_has_millis else None
        if have.unit == "us" and want == TIMESTAMP_MILLIS:
            self._note(column, want, have, declared, want)
            return want
        # Between times without a zone the label stands: writers that had this type at all labelled it rightly.
        finer = (have.unit, want.unit) == ("us", "ms")
        if finer:
            self.finer.add(path[0])
        if finer or (declared is not None and declared.unit != have.unit):
            self._note(column, want, have, declared, have)
        return have

    def _avro_timestamp(self, want: pa.DataType, path: tuple[str, ...]) -> pa.DataType | None:
        """The timestamp that the footer's Avro schema has there, if it is one of the same kind."""
        schema = self.avro()
        kind = None if schema is None else pa.struct(list(schema))
        for step in path:
            if kind is None:
                return None
            if step == "[]":
                kind = kind.value_type if is_list(kind) else kind.item_type if pa.types.is_map(kind) else None
            else:
                at = kind.get_field_index(step) if pa.types.is_struct(kind) else -1
                kind = kind.field(at).type if at >= 0 else None
        if kind is None or not pa.types.is_timestamp(kind) or (kind.tz is None) != (want.tz is None):
            return None
        return kind

    def _note(
        self, column: str, want: pa.DataType, have: pa.DataType, declared: pa.DataType | None, taken: pa.DataType
    ) -> None:
        avro = "" if declared is None else _word(declared)
        self.contradictions.append(Contradiction(column, _word(want), _word(have), avro, _word(taken)))


def _unit(want: pa.TimestampType, declared: pa.TimestampType) -> str:
    """The unit of plain longs. Microseconds of a moment are what old writers said of all: milliseconds are meant."""
    if want.tz is not None and "ms" in (want.unit, declared.unit):
        return "ms"
    return str(declared.unit)


def _word(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return f"{'' if kind.tz else 'local-'}timestamp-{'millis' if kind.unit == 'ms' else 'micros'}"
    return spark_name(kind)


def _avro_of(text: str) -> pa.Schema | None:
    """One that cannot be read says nothing: it is a witness, not what rows are decoded by."""
    try:
        return from_avro(text, "") if text else None
    except (CorruptFile, UnsupportedTable):
        return None


def _as_view(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)
    return column.view(kind)


def _parsed(column: pa.Array | pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.Array | pa.ChunkedArray:
    try:
        return pc.cast(column.cast(pa.string()), kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        words = f"column {name} is {spark_name(column.type)} in a file and {spark_name(kind)} in the table"
        raise SchemaMismatch(f"{words}, and not every value can be read so: {error}") from error


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))


def with_newer_units(schema: pa.Schema, newer: pa.Schema) -> pa.Schema:
    """The columns as an older commit declared them, with what a newer one tells about the unit of their numbers."""
    types = stored_types(schema, newer).types
    return pa.schema([newer.field(c.name).with_nullable(c.nullable) if c.name in types else c for c in schema])
