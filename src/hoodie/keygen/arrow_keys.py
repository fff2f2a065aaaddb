"""Record keys and partition paths of rows, as Hudi's key generators make them, and their text of values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from hoodie.keygen import arrow_times as times
from hoodie.keygen import calendar, joda
from hoodie.keygen.keygen import (
    EMPTY_KEY_PART,
    NULL_KEY_PART,
    NULL_PARTITION,
    FieldKind,
    KeyGenerator,
    PartitionField,
    escape_path,
)
from hoodie.keygen.timebased import TimestampSettings
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.schema.conform import decoded
from hoodie.schema.number_text import by_distinct_value, number_text
from hoodie.schema.types import other_time, spark_name


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


def in_units_of(keygen: KeyGenerator, schema: pa.Schema) -> KeyGenerator:
    """The key generator, knowing which dates and times the table holds in its columns, and in which unit.

    schema  the user's columns of the table
    """
    kinds = ((name, type_at(schema, name)) for name in keygen.columns)
    times = tuple((name, kind) for name, kind in kinds if kind is not None and arrow.is_temporal(kind))
    return replace(keygen, times=times) if times else keygen


#: Types of bytes of any length.
BYTES = frozenset({pa.binary(), pa.large_binary(), pa.binary_view()})


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
    if kind in BYTES or arrow.is_fixed_size_binary(kind):
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
    if low is None or (low >= calendar.FIRST_DAY and high <= calendar.LAST_DAY):  # Arrow and Java agree on these
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


#: Bytes of rows that are keyed at once.
_PART_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Gives rows their record key and partition path; pickles to executors.

    columns  of the rows that stay, before the keys
    keygen   makes the keys; None: the rows have them, as reads give them
    """

    columns: tuple[str, ...]
    keygen: KeyGenerator | None

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Raises SchemaMismatch, InvalidInput and InvalidOption as `record_key` and `partition_path`"""
        if self.keygen is None:
            return rows.select([*self.columns, RECORD_KEY, PARTITION_PATH])
        keys = [make(rows, self.keygen).cast(pa.string()) for make in (record_key, partition_path)]
        names = [*self.columns, RECORD_KEY, PARTITION_PATH]
        return pa.Table.from_arrays([*rows.select(list(self.columns)).columns, *keys], names)


def parts_of(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows in parts of bounded size, at least one: keys of a part fit into one array."""
    step = max(1, rows.num_rows * _PART_BYTES // max(rows.nbytes, _PART_BYTES))
    for start in range(0, max(1, rows.num_rows), step):
        yield rows.slice(start, step)


def record_key(rows: pa.Table, keygen: KeyGenerator) -> pa.Array:
    """The record key of each row; null where it is bad: the one value, or all values of a compound key, null or empty.

    rows     a table or record batch with the key columns, nested ones ("a.b") within structs
    returns  large_string[n]; all null where the table makes keys
    Raises   SchemaMismatch naming a column that is missing or has no text form (arrays, maps, structs)
    Source   Hudi 0.15's key generators; pinned by tests/vectors/keygen.json
    """
    if keygen.makes_new_keys:
        return pa.nulls(rows.num_rows, pa.large_string())
    parts = [_text(rows, name, keygen) for name in keygen.record_keys]
    if not keygen.writes_pairs:
        return pc.if_else(pc.equal(parts[0], ""), None, parts[0])
    empty = pa.scalar("", pa.large_string())
    pieces: list[pa.Array | pa.Scalar] = []
    for name, part in zip(keygen.record_keys, parts, strict=True):
        shown = pc.if_else(pc.equal(part, ""), EMPTY_KEY_PART, part)
        pieces += [pa.scalar(f",{name}:" if pieces else f"{name}:", pa.large_string())]
        pieces += [pc.fill_null(shown, NULL_KEY_PART)]
    bad = reduce(pc.and_, [pc.fill_null(pc.equal(part, ""), True) for part in parts])
    return pc.if_else(bad, None, pc.binary_join_element_wise(*pieces, empty))


def partition_path(rows: pa.Table, keygen: KeyGenerator) -> pa.Array:
    """The partition path of each row, relative to the table; "" where the table has no partitions.

    returns  large_string[n]; null where a TIMESTAMP field holds text in none of its formats, or a time beyond year
             294000
    Raises   SchemaMismatch naming a column that is missing or of a type its field cannot have; InvalidInput where a
             time cannot be of the column's type; InvalidOption where the key generator lacks its time settings
    Source   as record_key
    """
    if not keygen.partition_fields:
        return pa.repeat(pa.scalar("", pa.large_string()), rows.num_rows)
    pieces: list[pa.Array | pa.Scalar] = []
    for field in keygen.partition_fields:
        if pieces:
            pieces.append(pa.scalar("/", pa.large_string()))
        if keygen.hive_style:
            pieces.append(pa.scalar(f"{field.name}=", pa.large_string()))
        pieces.append(_partition_text(rows, field, keygen))
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, pa.scalar("", pa.large_string()))


def require_order(kind: pa.DataType | None, name: str) -> None:
    """Raises SchemaMismatch on an ordering column without an order: arrays, maps, structs."""
    if kind is not None and arrow.is_nested(kind):
        raise SchemaMismatch(f"ordering column {name!r} is {spark_name(kind)}: expected a number, text or time")


def _text(rows: pa.Table, name: str, keygen: KeyGenerator) -> pa.Array:
    consistent = keygen.consistent_timestamps
    column = _key_column(rows, name, keygen)
    return text_of(column, name, millis=name in keygen.in_millis, consistent=consistent, zone=keygen.zone)


def _key_column(rows: pa.Table, name: str, keygen: KeyGenerator) -> pa.Array:
    """Raises SchemaMismatch on dates and times of another kind than the table's: they would name other rows; and on
    times that a table cannot hold"""
    column = column_at(rows, name)
    stored = dict(keygen.times).get(name)
    if stored is not None and (problem := other_time(column.type, stored)):
        raise SchemaMismatch(f"the keys do not fit the table: column {name!r} has {problem}")
    unit = column.type.unit if arrow.is_timestamp(column.type) else ""
    if unit == "s" or (unit == "ms" and stored is not None and name not in keygen.in_millis):
        try:
            return pc.cast(column, pa.timestamp("us", column.type.tz))
        except pa.ArrowInvalid as problem:
            raise SchemaMismatch(
                f"the keys do not fit the table: column {name!r} has times beyond the year 294000, or before -290000"
            ) from problem
    return column


def _partition_text(rows: pa.Table, field: PartitionField, keygen: KeyGenerator) -> pa.Array:
    if field.kind is FieldKind.TIMESTAMP:
        if keygen.timestamp is None:
            raise InvalidOption(
                f"partition column {field.name!r} is a TIMESTAMP field: set hoodie.keygen.timebased.timestamp.type and "
                "hoodie.keygen.timebased.output.dateformat"
            )
        text = _time_text(_key_column(rows, field.name, keygen), keygen.timestamp, keygen, field.name)
        return _escaped(text) if keygen.url_encode else text
    if field.kind is FieldKind.UNKNOWN:
        raise InvalidOption(f"partition column {field.name!r}: expected {field.name}:SIMPLE or {field.name}:TIMESTAMP")
    kind = column_at(rows, field.name).type
    text = _text(rows, field.name, keygen)
    empty = pc.fill_null(pc.equal(text, ""), True)
    escapes = is_text(kind) or (arrow.is_timestamp(kind) and kind.tz is not None)
    shown = _escaped(text) if keygen.url_encode and escapes else text
    return pc.if_else(empty, NULL_PARTITION, shown)


def _escaped(text: pa.Array) -> pa.Array:
    encoded = text.dictionary_encode()
    values = [escape_path(value) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(values, pa.large_string()), encoded.indices)


def _time_text(column: pa.Array, settings: TimestampSettings, keygen: KeyGenerator, name: str) -> pa.Array:
    output = joda.output_tokens(settings.output_format)
    if is_text(column.type) and settings.input_formats:
        millis, clock = _time_of_text(column, settings)
        zone = settings.output_zone or settings.input_zone
        local = times.in_zone(millis, zone) if zone else clock
    else:
        millis = _time_of_number(column, settings, keygen, name)
        local = times.in_zone(millis, settings.output_zone or "UTC")
    return times.format_times(millis, local, output)


def _time_of_text(column: pa.Array, settings: TimestampSettings) -> tuple[pa.Array, pa.Array]:
    text = pc.fill_null(pc.cast(column, pa.large_string()), settings.text_for_null)
    tries = [times.parse_times(text, joda.parsing(pattern), settings.input_zone) for pattern in settings.input_formats]
    return pc.coalesce(*[millis for millis, _ in tries]), pc.coalesce(*[clock for _, clock in tries])


def _time_of_number(column: pa.Array, settings: TimestampSettings, keygen: KeyGenerator, name: str) -> pa.Array:
    """int64[n], epoch milliseconds; null becomes 1 in the unit, as in Hudi."""
    kind = column.type
    if settings.partition_unit and not arrow.is_timestamp(kind):
        raise SchemaMismatch(
            f"partition column {name!r} is {spark_name(kind)}, and the table's folders are made of times: cast it to "
            f"timestamp. A table whose folders are the dates or texts themselves is made by partition_by={name!r}"
        )
    if arrow.is_timestamp(kind) and kind.tz is not None and keygen.consistent_timestamps:
        return _time_of_instant(column, settings)
    if settings.unit is None:
        raise InvalidInput(
            f"partition column {name!r} is {spark_name(kind)}: timestamp.type {settings.type} reads strings only"
        )
    nulls = np.asarray(column.is_null())
    if arrow.is_integer(kind):
        number = pc.cast(column, pa.int64())
    elif arrow.is_floating(kind):
        number = _as_whole(column)
    elif arrow.is_decimal(kind):
        number = _whole_of_decimal(column)
    elif arrow.is_date(kind):
        number = pc.cast(pc.cast(column, pa.date32()).view(pa.int32()), pa.int64())
    elif arrow.is_timestamp(kind):
        number = number_of_time(column, name in keygen.in_millis)
    else:
        raise InvalidInput(
            f"partition column {name!r} is {spark_name(kind)}: timestamp.type {settings.type} reads numbers; "
            "use DATE_STRING for text"
        )
    return times.millis_of(pc.if_else(pa.array(nulls), pa.scalar(1, pa.int64()), number), settings.unit)


def _time_of_instant(column: pa.Array, settings: TimestampSettings) -> pa.Array:
    micros = number_of_time(pc.cast(column, pa.timestamp("us", column.type.tz)), millis=False)
    numbers = micros.fill_null(0).to_numpy(zero_copy_only=False)
    cut = np.where(numbers < 0, -(-numbers // 1000), numbers // 1000)
    if settings.unit:
        null_time = times.millis_of(pa.array([1], pa.int64()), settings.unit)[0]
    else:
        null_time = _time_of_text(pa.array([None], pa.large_string()), settings)[0][0]
    return pc.fill_null(pa.array(cut, pa.int64(), mask=np.asarray(micros.is_null())), null_time)


def _as_whole(column: pa.Array) -> pa.Array:
    """Floats as int64, cut off toward zero: NaN is 0; null beyond the type, as for null."""
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    values = np.where(np.isnan(values), 0.0, np.trunc(values))
    beyond = (values < -(2.0**63)) | (values >= 2.0**63)
    return pa.array(np.where(beyond, 0.0, values).astype(np.int64), pa.int64(), mask=beyond)


def _whole_of_decimal(column: pa.Array) -> pa.Array:
    """Decimals as int64, cut off toward zero; null beyond the type, as for null."""
    encoded = column.dictionary_encode()
    whole = [int(value) for value in encoded.dictionary.to_pylist()]
    held = [number if -(2**63) <= number < 2**63 else None for number in whole]
    return pc.take(pa.array(held, pa.int64()), encoded.indices)
