"""Record keys of rows that do not store them (`hoodie.populate.meta.fields=false`), made again from their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from hoodie.keygen.keygen import EMPTY_KEY_PART, NULL_KEY_PART, KeyGenerator, Kind

_KINDS = (Kind.SIMPLE, Kind.COMPLEX, Kind.NON_PARTITION)


def record_key_arrow(table: pa.Table, keygen: KeyGenerator) -> pa.Array:
    """The record key of each row, as the key generator wrote it when the row came in.

    table    has the key columns, nested ones ("a.b") within structs
    returns  large_string[n], aligned with the table's rows, no nulls
    Raises   InvalidOption on a key generator that Hudi does not run without meta columns;
             SchemaMismatch naming a column that is missing or has no text form;
             InvalidInput where the one value, or all values of a compound key, are null or empty
    Source   Hudi 0.15's key generators; pinned by tests/vectors/keygen.json
    """
    if keygen.kind not in _KINDS or not keygen.record_keys:
        raise InvalidOption(
            f"{keygen.kind} key generator on {list(keygen.record_keys)}: record keys can only be computed with "
            f"{', '.join(_KINDS)}"
        )
    parts = [_text(_column(table, name), keygen, name) for name in keygen.record_keys]
    absent = [pc.fill_null(pc.equal(part, ""), True) for part in parts]
    bad = absent[0]
    for mask in absent[1:]:
        bad = pc.and_(bad, mask)
    if count := pc.sum(bad).as_py():
        first = pc.index(bad, True).as_py()
        raise InvalidInput(
            f"{count} of {table.num_rows} rows have no record key, the first at {first}: "
            f"{', '.join(keygen.record_keys)} must not be null or empty"
        )
    if not keygen.writes_pairs:
        return parts[0]
    pieces: list[pa.Array | pa.Scalar] = []
    for name, part in zip(keygen.record_keys, parts, strict=True):
        shown = pc.if_else(pc.equal(part, ""), EMPTY_KEY_PART, part)
        pieces += [
            pa.scalar(f",{name}:" if pieces else f"{name}:", pa.large_string()),
            pc.fill_null(shown, NULL_KEY_PART),
        ]
    return pc.binary_join_element_wise(*pieces, pa.scalar("", pa.large_string()))


def _column(table: pa.Table, path: str) -> pa.Array:
    first, *rest = path.split(".")
    if table.column_names.count(first) != 1:
        raise SchemaMismatch(f"column {path!r} is missing; the columns are {', '.join(table.column_names)}")
    column = table.column(first)
    column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    for name in rest:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            raise SchemaMismatch(f"column {path!r} is missing: {column.type} has no {name!r}")
        column = pc.struct_field(column, name)
    return column


def _text(column: pa.Array, keygen: KeyGenerator, name: str) -> pa.Array:
    """Values as Hudi's Avro key generators write them: large_string, null for null."""
    kind = column.type
    is_a = pa.types
    if is_a.is_dictionary(kind):
        return _text(column.dictionary_decode(), keygen, name)
    if is_a.is_floating(kind):
        width = np.float32 if is_a.is_float32(kind) else np.float64
        return _by_distinct_value(column, lambda value: _java_float(width(value)))
    if is_a.is_binary(kind) or is_a.is_large_binary(kind) or is_a.is_fixed_size_binary(kind):
        return _by_distinct_value(column, lambda value: bytes(value).hex())
    if is_a.is_timestamp(kind):
        if keygen.consistent_timestamps:
            raise InvalidOption(f"key column {name!r}: timestamps as text depend on the zone of their writer")
        if kind.unit == "ns":
            column = pc.cast(column, pa.timestamp("us", kind.tz), safe=False)
        return pc.cast(pc.cast(column, pa.int64()), pa.large_string())
    if is_a.is_date64(kind):
        column = pc.cast(column, pa.date32())
    text = is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind)
    if not (text or is_a.is_integer(kind) or is_a.is_boolean(kind) or is_a.is_date(kind) or is_a.is_decimal(kind)):
        raise SchemaMismatch(f"column {name!r} is {kind}: it cannot be part of a key")
    return pc.cast(column, pa.large_string())  # decimals as Java's BigDecimal: with an exponent below 1E-6


def _by_distinct_value(column: pa.Array, text_of: Callable[[Any], str]) -> pa.Array:
    encoded = column.dictionary_encode()
    texts = pa.array([text_of(value) for value in encoded.dictionary.to_pylist()], pa.large_string())
    return pc.take(texts, encoded.indices)


def _java_float(value: np.floating[Any]) -> str:
    """Java's Double.toString and Float.toString: plain from 1e-3 up to 1e7, else one digit, fraction and exponent."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    mantissa, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    return f"{mantissa}E{int(exponent)}"
