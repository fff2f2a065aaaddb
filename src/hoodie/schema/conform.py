"""Rows converted to a schema: a batch to the table's, and rows of old files to the current one; and where the columns
of a table are in files that were written before its columns were renamed, retyped or replaced.

A field of a table's schema carries this in its metadata, and so takes it along to the tasks that read files.
"""

from __future__ import annotations

import dataclasses
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatch
from hoodie.schema.leaves import list_offsets
from hoodie.schema.number_text import is_number_text, number_text
from hoodie.schema.schema import AVRO_DEFAULT
from hoodie.schema.types import is_list, spark_name

#: Field metadata: how files of each version of the table's columns have the field.
WRITTEN = b"hoodie.written"


@dataclass(frozen=True, slots=True)
class FileColumn:
    """How a file has a column.

    name     its name there; None: the file does not have it, even if another column there has the name that it has now
    retyped  its values have another type there
    fields   of a struct, by their names now: those that the file has in another way
    item     of a list's elements or a map's values; None: as they are now
    """

    name: str | None
    retyped: bool = False
    fields: Mapping[str, FileColumn] = dataclasses.field(default_factory=dict)
    item: FileColumn | None = None


#: A version of the columns, an instant as a number, and how its files have a column; None: as it is now.
_History = Sequence[tuple[int, FileColumn | None]]


def with_column_history(column: pa.Field, history: _History, exceptions: Mapping[str, int]) -> pa.Field:
    """The field of a table, with how files have it.

    history     oldest first, at least one
    exceptions  instants whose files are of another version than the newest one up to the instant
    returns     the field itself where all versions have it as it is now
    """
    if all(written is None for _, written in history):
        return column
    parts = {"versions": [[version, _encoded(written)] for version, written in history], "exceptions": {**exceptions}}
    text = json.dumps(parts, separators=(",", ":"))
    return column.with_metadata({**(column.metadata or {}), WRITTEN: text.encode()})


def written_columns(schema: pa.Schema, instant: str) -> dict[str, FileColumn]:
    """The columns of a table that a file of some instant has in another way, by their names now.

    schema   columns of the table, as a read has them
    instant  that wrote the file or log block
    """
    return {
        column.name: written
        for column in schema
        if (text := (column.metadata or {}).get(WRITTEN)) and (written := _at(json.loads(text), instant)) is not None
    }


def _at(parts: Mapping[str, Any], instant: str) -> FileColumn | None:
    versions: list[list[Any]] = parts["versions"]
    number = parts["exceptions"].get(instant, int(instant) if instant.isdigit() else 0)
    at = bisect_right([version for version, _ in versions], number) - 1
    return _decoded(versions[max(at, 0)][1])


def _encoded(written: FileColumn | None) -> list[Any] | None:
    if written is None:
        return None
    fields = {name: _encoded(child) for name, child in written.fields.items()}
    return [written.name, written.retyped, fields, _encoded(written.item)]


def _decoded(node: list[Any] | None) -> FileColumn | None:
    if node is None:
        return None
    name, retyped, fields, item = node
    children = {key: child for key, value in fields.items() if (child := _decoded(value)) is not None}
    return FileColumn(name, retyped, children, _decoded(item))


def conform(rows: pa.Table | pa.RecordBatch, schema: pa.Schema, *, drop_extra: bool = False) -> pa.Table:
    """The rows in exactly these columns, taken by name; structs within likewise. Copies only what has to change.

    schema      of a table, with or without meta fields, or any other
    drop_extra  leave out columns that the schema lacks, nested ones included; otherwise they are an error
    returns     a column that the rows lack holds its Avro default, else null
    Raises      SchemaMismatch, naming the column: values that the type cannot hold, nulls where none may be, a type
                that cannot be converted, a missing column that takes no nulls

    Besides what `schema.reconcile` accepts this takes what files of other writers hold: timestamps in other units
    (finer ones than the column's are cut down, as Hudi does), without the zone or as plain longs, bigint for double,
    bytes and numbers for string, large and dictionary encoded layouts. Decimals stored as integers need nothing. Open
    files with INT96 timestamps with `coerce_int96_timestamp_unit="us"`: as nanoseconds they end in 2262. Rows of files
    first get the types that they really have: `stored_types`.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    if table.schema.equals(schema) and not any(not field.nullable or _is_strict(field.type) for field in schema):
        return table
    names = table.schema.names
    _check_names(names, schema.names, "", drop_extra)
    name_set = set(names)
    columns = []
    for field in schema:
        if field.name not in name_set:
            columns.append(_filler(field, table.num_rows, field.name))
            continue
        column = table.column(field.name)
        chunks = [_array(chunk, field, field.name, drop_extra) for chunk in column.chunks]
        columns.append(pa.chunked_array(chunks, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary encoded array, one for each row. Arrow decodes no views, as Polars' categories are."""
    plain = _PLAIN.get(array.type.value_type)
    if plain is not None:
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(plain))
    return array.dictionary_decode()


_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def _check_names(have: list[str], want: list[str], path: str, drop_extra: bool) -> None:
    if len(set(have)) < len(have):
        twice = sorted({name for name in have if have.count(name) > 1})
        raise SchemaMismatch(f"column {path}{twice[0]} occurs more than once.")
    table_names = set(want)
    extra = [name for name in have if name not in table_names]
    if extra and not drop_extra:
        raise SchemaMismatch(f"the table has no column {', '.join(path + name for name in extra)}.")


def _filler(field: pa.Field, count: int, path: str) -> pa.Array:
    default = (field.metadata or {}).get(AVRO_DEFAULT)
    if default is not None:
        return pa.repeat(pa.scalar(json.loads(default), field.type), count)
    if not field.nullable and count:
        raise SchemaMismatch(f"column {path} is missing and takes no nulls.")
    return _cast(pa.nulls(count, field.type), field.type, path, drop_extra=False)


def _array(array: pa.Array, field: pa.Field, path: str, drop_extra: bool) -> pa.Array:
    """The array in the field's type, without nulls if the field takes none."""
    if not field.nullable and array.null_count:
        raise _nulls(path, array.null_count)
    return _cast(array, field.type, path, drop_extra)


def _cast(array: pa.Array, kind: pa.DataType, path: str, drop_extra: bool) -> pa.Array:
    have = array.type
    if have == kind and not _is_strict(kind):
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(have):
        return _struct(array, kind, path, drop_extra)
    if pa.types.is_list(kind) and is_list(have):
        return _list(array, kind, path, drop_extra)
    if pa.types.is_map(kind) and pa.types.is_map(have):
        return _map(array, kind, path, drop_extra)
    if pa.types.is_list(kind) and pa.types.is_fixed_size_binary(have):
        return _vector(array, kind, path)
    if pa.types.is_nested(kind) or pa.types.is_nested(have):
        if pa.types.is_null(have):
            return pa.nulls(len(array), kind)
        raise _mismatch(path, have, kind)
    return _leaf(array, kind, path)


def _struct(array: pa.StructArray, kind: pa.StructType, path: str, drop_extra: bool) -> pa.StructArray:
    names = [child.name for child in array.type]
    _check_names(names, [child.name for child in kind], f"{path}.", drop_extra)
    # Children of a null struct may be null whatever they say, so only rows with a struct count.
    valid = pc.is_valid(array) if array.null_count else None
    children = []
    for child in kind:
        dotted = f"{path}.{child.name}"
        if child.name not in names:
            lenient = child.with_nullable(child.nullable or array.null_count == len(array))
            values = _filler(lenient, len(array), dotted)
            children.append(values if child.nullable else _solid(values))
            continue
        values = array.field(names.index(child.name))
        if not child.nullable and values.null_count:
            missing = pc.is_null(values) if valid is None else pc.and_(pc.is_null(values), valid)
            if count := pc.sum(missing).as_py():
                raise _nulls(dotted, count)
        if valid is not None and values.type != child.type:  # what lies below a null struct need not fit
            values = array.flatten()[names.index(child.name)]
        values = _cast(values, child.type, dotted, drop_extra)
        children.append(values if child.nullable else _solid(values))
    validity = None if valid is None else valid.buffers()[1]
    return pa.Array.from_buffers(kind, len(array), [validity], array.null_count, children=children)


def _list(array: pa.Array, kind: pa.ListType, path: str, drop_extra: bool) -> pa.ListArray:
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        array = _packed(array)
    elif not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    dotted, item = f"{path}.element", kind.value_field
    if array.values.type != item.type and (array.null_count or len(array.values) > len(array.flatten())):
        array = _packed(array)  # elements of null lists, and outside of a slice, need not fit
    if not item.nullable and array.values.null_count and (count := array.flatten().null_count):
        raise _nulls(dotted, count)
    values = _cast(array.values, item.type, dotted, drop_extra)
    if not item.nullable:
        values = _solid(values)
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[values]
    )


def _vector(array: pa.FixedSizeBinaryArray, kind: pa.ListType, path: str) -> pa.ListArray:
    """The numbers of VECTOR values, little-endian and as many in each."""
    width = kind.value_type.bit_width // 8 if pa.types.is_primitive(kind.value_type) else 0
    count, rest = divmod(array.type.byte_width, width) if width else (0, 1)
    if rest:
        raise _mismatch(path, array.type, kind)
    bytes_ = array.buffers()[1].slice(array.offset * array.type.byte_width, len(array) * array.type.byte_width)
    numbers = pa.Array.from_buffers(kind.value_type, len(array) * count, [None, bytes_])
    offsets = pa.array(np.arange(len(array) + 1, dtype=np.int32) * np.int32(count))
    return pa.ListArray.from_arrays(offsets, numbers, kind, mask=array.is_null() if array.null_count else None)


def _packed(array: pa.Array) -> pa.ListArray:
    """The lists, one behind the other, as a view's are not. Arrow's own cast of a view leaves the last offset out."""
    mask = array.is_null() if array.null_count else None
    kind = pa.list_(array.type.value_field)
    return pa.ListArray.from_arrays(list_offsets(array), array.flatten(), kind, mask=mask)


def _map(array: pa.MapArray, kind: pa.MapType, path: str, drop_extra: bool) -> pa.MapArray:
    dotted, item = f"{path}.value", kind.item_field
    if not item.nullable and array.items.null_count:
        loose = pa.list_(item.with_nullable(True).with_type(array.items.type))
        parts = (array.buffers()[:2], array.null_count, array.offset)
        if count := pa.Array.from_buffers(loose, len(array), *parts, children=[array.items]).flatten().null_count:
            raise _nulls(dotted, count)
    keys = _cast(array.keys, kind.key_type, f"{path}.key", drop_extra)
    values = _cast(array.items, item.type, dotted, drop_extra)
    children = [_entries(kind, keys, values if item.nullable else _solid(values))]
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=children
    )


def _entries(kind: pa.MapType, keys: pa.Array, values: pa.Array) -> pa.StructArray:
    pair = pa.struct([kind.key_field, kind.item_field])
    return pa.Array.from_buffers(pair, len(keys), [None], 0, children=[keys, values])


def _is_strict(kind: pa.DataType) -> bool:
    """Whether anything within the type takes no nulls."""
    map_values = [kind.item_field] if pa.types.is_map(kind) else None  # a key is never null
    children = map_values or [kind.field(number) for number in range(kind.num_fields)]
    return any(not child.nullable or _is_strict(child.type) for child in children)


def _solid(array: pa.Array) -> pa.Array:
    """The array with its nulls unmarked. They stand below null parents, where no reader looks, but pyarrow's Parquet
    writer refuses any null in a column that takes none."""
    if not array.null_count:
        return array
    kind, (_, *rest) = array.type, array.buffers()
    if pa.types.is_struct(kind):
        children = [array.field(index) for index in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(array), [None], 0, children=children)
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, len(array), [None, rest[0]], 0, array.offset, children=[array.values])
    if pa.types.is_map(kind):
        entries = _entries(kind, array.keys, array.items)
        return pa.Array.from_buffers(kind, len(array), [None, rest[0]], 0, array.offset, children=[entries])
    return pa.Array.from_buffers(kind, len(array), [None, *rest], 0, array.offset)


def _leaf(array: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    have = array.type
    if pa.types.is_dictionary(have):
        return _cast(decoded(array), kind, path, False)
    if not _castable(have, kind):
        raise _mismatch(path, have, kind)
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(kind):
        array = _cut_down(array, kind)
    # Floats are rounded, as Hudi's reader does with a file of bigints in a column that another writer made double.
    checked = not pa.types.is_floating(kind)
    try:
        if is_number_text(have) and pa.types.is_string(kind):
            return number_text(array).cast(kind)
        if pa.types.is_decimal(have):
            array = cut_off(array, kind.scale)
        return array.cast(kind, safe=checked)
    except pa.ArrowInvalid as error:
        words = f"{spark_name(have)} values of column {path} do not fit {spark_name(kind)}"
        raise SchemaMismatch(f"{words}: {error}") from error


def cut_off(array: pa.Array, scale: int, *, safe: bool = True) -> pa.Array:
    """Decimals with at most nine digits more behind the point than `scale`; a cast cuts the rest.

    Arrow (26.0) divides by more than 32 bits with wrong digits in some quotients: it refuses values whose further
    digits are zeros, and rounds others wrongly.

    safe    refuse digits that are not zeros
    Raises  ArrowInvalid
    """
    wide = pa.decimal128 if pa.types.is_decimal128(array.type) else pa.decimal256
    for digits in range(array.type.scale - 9, scale, -9):
        array = array.cast(wide(array.type.precision, digits), safe=safe)
    return array


def _cut_down(array: pa.TimestampArray, kind: pa.TimestampType) -> pa.TimestampArray:
    """Times in the type's unit, rounded down, if that is the coarser one."""
    have = array.type
    step = _PER_SECOND[have.unit] // _PER_SECOND[kind.unit]
    if step <= 1:
        return array
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    numbers = array.view(pa.int64()).fill_null(0).to_numpy() // step
    return pa.array(numbers, pa.int64(), mask=nulls).view(pa.timestamp(kind.unit, have.tz))


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _castable(have: pa.DataType, kind: pa.DataType) -> bool:
    """Whether one leaf type converts to the other; single values may still not fit."""
    types = pa.types
    if types.is_null(have) or (is_number_text(have) and types.is_string(kind)):
        return True
    if types.is_integer(have):
        stamp = have == pa.int64() and types.is_timestamp(kind)
        return bool(stamp or types.is_integer(kind) or kind in (pa.float32(), pa.float64()))
    if types.is_floating(have):
        return bool(kind == pa.float64())
    if types.is_decimal(have):
        return bool(types.is_decimal(kind))
    if types.is_timestamp(have):
        return bool(types.is_timestamp(kind) or kind == pa.int64())
    if types.is_date(have):
        return bool(types.is_date(kind))
    return _is_text(have) and _is_text(kind)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    tests: Iterable[bool] = (
        types.is_string(kind),
        types.is_large_string(kind),
        types.is_string_view(kind),
        types.is_binary(kind),
        types.is_large_binary(kind),
        types.is_binary_view(kind),
        types.is_fixed_size_binary(kind) and not types.is_decimal(kind),
    )
    return any(tests)


def _nulls(path: str, count: int) -> SchemaMismatch:
    return SchemaMismatch(f"column {path} takes no nulls and {count} of its values are null.")


def _mismatch(path: str, have: pa.DataType, kind: pa.DataType) -> SchemaMismatch:
    return SchemaMismatch(f"column {path} is {spark_name(have)} here and {spark_name(kind)} in the table.")
