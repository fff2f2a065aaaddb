"""Values of Arrow columns as the text that Hudi's key generators make of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import SchemaMismatch
from hoodie.keygen import calendar
from hoodie.schema.conform import decoded
from hoodie.schema.number_text import by_distinct_value, number_text
from hoodie.schema.types import spark_name

#: Days since 1970 of 0001-01-01 and 9999-12-31: dates whose text Arrow and Java agree on.
_PLAIN_DATES = (-719_162, 2_932_896)


def column_at(rows: pa.Table, path: str) -> pa.Array:
    """The column of a name, which may be nested ("a.b"): null where a struct on the way is. No dictionary is left.

    Raises SchemaMismatch when it is missing
    """
    first, *rest = path.split(".")
    if rows.schema.names.count(first) != 1:
        raise SchemaMismatch(f"column {path!r} is missing; the columns are {', '.join(rows.schema.names)}")
    column = rows.column(first)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    for name in rest:
        if not arrow.is_struct(column.type) or column.type.get_field_index(name) < 0:
            raise SchemaMismatch(f"column {path!r} is missing: {column.type} has no {name!r}")
        column = pc.struct_field(column, name)
    return decoded(column) if arrow.is_dictionary(column.type) else column


def type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    """The type of a column, which may be nested; None: it is missing, or there more than once."""
    first, *rest = path.split(".")
    if schema.names.count(first) != 1:
        return None
    kind = schema.field(first).type
    for name in rest:
        if not arrow.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(kind.get_field_index(name)).type
    return kind


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, in whichever layout."""
    return bool(arrow.is_string(kind) or arrow.is_large_string(kind) or arrow.is_string_view(kind))


def text_of(
    column: pa.Array, name: str, *, millis: bool = False, consistent: bool = False, zone: str = "UTC"
) -> pa.Array:
    """Values as Hudi's Avro key generators write them.

    millis      a timestamp is the number of its milliseconds, rounded down; else of its microseconds
    consistent  a timestamp with a zone is `yyyy-MM-dd HH:mm:ss.S` on the clocks of `zone`
    returns     large_string[n]; null for null
    Raises      SchemaMismatch on a type that has no text form
    """
    kind = column.type
    if arrow.is_floating(kind) and not arrow.is_float16(kind):
        return number_text(column)
    if arrow.is_binary(kind) or arrow.is_large_binary(kind) or arrow.is_fixed_size_binary(kind):
        return by_distinct_value(column, lambda value: bytes(value).hex())
    if arrow.is_timestamp(kind):
        if consistent and kind.tz is not None:
            return _timestamp_text(column, zone)
        return pc.cast(number_of_time(column, millis), pa.large_string())
    if arrow.is_date(kind):
        return _date_text(pc.cast(column, pa.date32()))
    if not (is_text(kind) or arrow.is_integer(kind) or arrow.is_boolean(kind) or arrow.is_decimal(kind)):
        raise SchemaMismatch(f"column {name!r} is {spark_name(kind)}: it cannot be part of a key or path")
    return pc.cast(column, pa.large_string())  # decimals as Java's BigDecimal: with an exponent below 1E-6


def number_of_time(column: pa.Array, millis: bool) -> pa.Array:
    """int64[n], the number that a time is in the table: of microseconds or milliseconds, rounded down. Times that are
    milliseconds already stay as they are."""
    unit = column.type.unit
    if unit == "ms" and not millis:
        return pc.cast(column, pa.int64())  # the table declares the column so
    target = 1_000 if millis else 1_000_000
    have = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    numbers = pc.cast(column, pa.int64())
    if have <= target:
        return pc.multiply_checked(numbers, target // have)
    return floor_divided(numbers, have // target)


def floor_divided(numbers: pa.Array, step: int) -> pa.Array:
    """int64[n], rounded down; null for null."""
    nulls = np.asarray(numbers.is_null()) if numbers.null_count else None
    return pa.array(numbers.fill_null(0).to_numpy(zero_copy_only=False) // step, pa.int64(), mask=nulls)


def _date_text(days: pa.Array) -> pa.Array:
    numbers = pc.min_max(days.view(pa.int32()))
    low, high = numbers["min"].as_py(), numbers["max"].as_py()
    if low is None or (_PLAIN_DATES[0] <= low and high <= _PLAIN_DATES[1]):
        return pc.cast(days, pa.large_string())
    return by_distinct_value(days.view(pa.int32()), calendar.date_text)


def _timestamp_text(column: pa.Array, zone: str) -> pa.Array:
    """Java's Timestamp.toString of the time in milliseconds, which a fraction is cut off to: one fraction digit or
    more."""
    micros = number_of_time(pc.cast(column, pa.timestamp("us", column.type.tz)), millis=False)
    nulls = np.asarray(micros.is_null())
    numbers = micros.fill_null(0).to_numpy(zero_copy_only=False)
    millis = np.where(numbers < 0, -(-numbers // 1000), numbers // 1000)
    local = calendar.to_zone(millis, zone)
    return by_distinct_value(pa.array(local, pa.int64(), mask=nulls), calendar.clock_text)
