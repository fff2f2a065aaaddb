"""Record keys, partition paths and ordering values of a DataFrame's rows, as native Spark columns.

Every function takes the DataFrame's schema and gives an expression over its columns; nothing runs here, and no row
ever passes through Python. Results do not depend on ANSI mode, nor on the session's time zone. A row whose key or
path Hudi would refuse gets null.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from hoodie.keygen import joda
from hoodie.keygen.keygen import (
    EMPTY_KEY_PART,
    ESCAPED_CHARACTERS,
    NULL_KEY_PART,
    NULL_PARTITION,
    FieldKind,
    KeyGenerator,
    PartitionField,
    lacking_columns,
)
from hoodie.keygen.timebased import TimestampSettings
from hoodie.spark import times
from hoodie.spark.columns import quoted

_ESCAPED = r"""[\x00-\x1F\x7F"#%'*/:=?\\{\[\]^]"""  # ESCAPED_CHARACTERS for Java


def record_key(schema: T.StructType, keygen: KeyGenerator) -> Column:
    """The record key of each row; null where it is bad: the one value, or all values of a compound key, null or empty.

    returns  string
    Raises   SchemaMismatch naming a column that is missing or has no text form (arrays, maps, structs)
    Source   Hudi 0.15's key generators; pinned by tests/vectors/keygen.json
    """
    if not keygen.record_keys:
        raise InvalidOption("no record key: the key generator has no fields")
    parts = [_text(*_field(schema, name), keygen, name) for name in keygen.record_keys]
    if not keygen.writes_pairs:
        return F.when(parts[0] != "", parts[0])
    pieces: list[Column] = []
    for name, part in zip(keygen.record_keys, parts, strict=True):
        shown = F.when(part.isNull(), NULL_KEY_PART).when(part == "", EMPTY_KEY_PART).otherwise(part)
        pieces += [F.lit(f",{name}:" if pieces else f"{name}:"), shown]
    some = F.coalesce(*[F.nullif(part, F.lit("")) for part in parts])
    return F.when(some.isNotNull(), F.concat(*pieces))


def partition_path(schema: T.StructType, keygen: KeyGenerator) -> Column:
    """The partition path of each row, relative to the table; "" where the table has no partitions.

    returns  string; null where a TIMESTAMP field holds text in none of its formats, or a time beyond year 294000
    Raises   SchemaMismatch naming a column that is missing or of a type its field cannot have;
             InvalidOption where the key generator lacks its time settings
    Source   as record_key
    """
    if not keygen.partition_fields:
        return F.lit("")
    pieces: list[Column] = []
    for field in keygen.partition_fields:
        if pieces:
            pieces.append(F.lit("/"))
        if keygen.hive_style:
            pieces.append(F.lit(f"{field.name}="))
        pieces.append(_partition_text(schema, field, keygen))
    return F.concat(*pieces) if len(pieces) > 1 else pieces[0]


def ordering_value(schema: T.StructType, path: str) -> Column:
    """The value that decides between two rows of one key, in its column's own type; `path` may be nested ("a.b").

    Raises SchemaMismatch on a column that is missing or has no order (arrays, maps, structs)
    """
    column, kind = _field(schema, path)
    if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
        raise SchemaMismatch(f"ordering column {path!r} is {kind.simpleString()}: expected a number, text or time")
    return column


def missing_columns(schema: T.StructType, keygen: KeyGenerator, ordering: Sequence[str] = ()) -> list[str]:
    """What the DataFrame lacks, one line for each column: empty if it has all that keys, paths and ordering need."""
    return lacking_columns(schema.names, lambda name: _type_at(schema, name) is not None, keygen, ordering)


def _field(schema: T.StructType, path: str) -> tuple[Column, T.DataType]:
    kind = _type_at(schema, path)
    if kind is None:
        raise SchemaMismatch(f"column {path!r} is missing; the columns are {', '.join(schema.names)}")
    first, *rest = path.split(".")
    column = quoted(first)
    for name in rest:
        column = column.getField(name)
    return column, kind


def _type_at(schema: T.StructType, path: str) -> T.DataType | None:
    kind: T.DataType = schema
    for name in path.split("."):
        if not isinstance(kind, T.StructType) or name not in kind.names:
            return None
        kind = kind[name].dataType
    return kind


def _text(column: Column, kind: T.DataType, keygen: KeyGenerator, name: str) -> Column:
    """A value as Hudi's Avro key generators write it; null for null."""
    match kind:
        case T.StringType() | T.CharType() | T.VarcharType():
            return column
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType() | T.BooleanType() | T.DateType():
            return column.cast("string")
        case T.FloatType() | T.DoubleType():
            return column.cast("string")  # Java's Float.toString and Double.toString
        case T.DecimalType():
            return _decimal_text(column, kind.scale)
        case T.BinaryType():
            return F.lower(F.hex(column))
        case T.TimestampType() if keygen.consistent_timestamps:
            return _timestamp_text(column, keygen.zone)
        case T.TimestampType() | T.TimestampNTZType():
            return _number(column, kind, name in keygen.millis).cast("string")
        case _:
            raise SchemaMismatch(f"column {name!r} is {kind.simpleString()}: it cannot be part of a key or path")


def _number(column: Column, kind: T.DataType, millis: bool) -> Column:
    """The number that a time is in the table: of microseconds, or milliseconds, rounded down."""
    if isinstance(kind, T.TimestampNTZType):
        # Through text: Spark's conversions go by the session's zone, which may not have this time of day.
        column = F.concat(column.cast("string"), F.lit("Z")).cast("timestamp")
    return F.unix_millis(column) if millis else F.unix_micros(column)


def _decimal_text(column: Column, scale: int) -> Column:
    """Java's BigDecimal.toString. Spark's cast gives that only with ANSI off; with it on, never an exponent."""
    plain = column.cast("string")
    if scale <= 6:
        return plain
    digits = F.regexp_replace(plain, r"^(-?)0\.0*(?=\d)", "$1")  # the unscaled value
    exponent = F.length(F.ltrim(digits, F.lit("-"))) - 1 - scale
    scientific = F.concat(F.regexp_replace(digits, r"^(-?\d)(\d+)$", "$1.$2"), F.lit("E"), exponent.cast("string"))
    return F.when(plain.rlike(r"^-?0\.000000"), scientific).otherwise(plain)


def _timestamp_text(column: Column, zone: str) -> Column:
    """Java's Timestamp.toString of the time in milliseconds, on the clocks of a zone: at least one fraction digit."""
    text = times.clock(times.to_zone(times.truncated(F.unix_micros(column), 1000), zone)).cast("string")
    return F.when(text.contains("."), text).otherwise(F.concat(text, F.lit(".0")))


def _partition_text(schema: T.StructType, field: PartitionField, keygen: KeyGenerator) -> Column:
    column, kind = _field(schema, field.name)
    if field.kind is FieldKind.TIMESTAMP:
        if keygen.timestamp is None:
            raise InvalidOption(
                f"partition column {field.name!r} is a TIMESTAMP field: set hoodie.keygen.timebased.timestamp.type and "
                "hoodie.keygen.timebased.output.dateformat"
            )
        text = _time_text(column, kind, keygen.timestamp, keygen, field.name)
        return _escaped(text) if keygen.url_encode else text
    if field.kind is FieldKind.UNKNOWN:
        raise InvalidOption(f"partition column {field.name!r}: expected {field.name}:SIMPLE or {field.name}:TIMESTAMP")
    text = _text(column, kind, keygen, field.name)
    shown = _escaped(text) if keygen.url_encode and isinstance(kind, (T.StringType, T.TimestampType)) else text
    return F.when(text != "", shown).otherwise(NULL_PARTITION)


def _escaped(text: Column) -> Column:
    # Few values need it: the loop over the characters runs only for those. "%" comes first in it.
    characters = F.array(*[F.lit(character) for character in ESCAPED_CHARACTERS])
    escaped = F.aggregate(
        characters, text, lambda done, character: F.replace(done, character, F.concat(F.lit("%"), F.hex(character)))
    )
    return F.when(text.rlike(_ESCAPED), escaped).otherwise(text)


def _time_text(
    column: Column, kind: T.DataType, settings: TimestampSettings, keygen: KeyGenerator, name: str
) -> Column:
    output = joda.output_tokens(settings.output_format)
    if isinstance(kind, T.StringType) and settings.input_formats:
        millis, clock = _time_of_text(column, settings)
        zone = settings.output_zone or settings.input_zone
        local = times.to_zone(millis, zone) if zone else clock
    else:
        millis = _time_of_number(column, kind, settings, keygen, name)
        local = times.to_zone(millis, settings.output_zone or "UTC")
    return times.printed(local, local - millis, output)


def _time_of_text(column: Column, settings: TimestampSettings) -> tuple[Column, Column]:
    text = F.coalesce(column, F.lit(settings.text_for_null))
    tries = [times.parsed(text, joda.parsing(pattern), settings.input_zone) for pattern in settings.input_formats]
    if len(tries) == 1:
        return tries[0]
    return F.coalesce(*[millis for millis, _ in tries]), F.coalesce(*[clock for _, clock in tries])


def _time_of_number(
    column: Column, kind: T.DataType, settings: TimestampSettings, keygen: KeyGenerator, name: str
) -> Column:
    """Epoch milliseconds; null becomes 1 in the unit, as in Hudi."""
    if isinstance(kind, T.TimestampType) and keygen.consistent_timestamps:
        one = F.lit(1).cast("bigint")
        nothing = F.lit(None).cast("string")
        null_time = times.millis_of(one, settings.unit) if settings.unit else _time_of_text(nothing, settings)[0]
        return F.coalesce(times.truncated(F.unix_micros(column), 1000), null_time)
    if settings.unit is None:
        raise InvalidInput(
            f"partition column {name!r} is {kind.simpleString()}: timestamp.type {settings.type} reads strings only"
        )
    match kind:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            number = column.cast("bigint")
        case T.FloatType() | T.DoubleType():
            number = F.when(F.isnan(column), F.lit(0)).otherwise(column.try_cast("bigint"))
        case T.DecimalType():
            number = column.try_cast("bigint")
        case T.DateType():
            number = F.unix_date(column).cast("bigint")
        case T.TimestampType() | T.TimestampNTZType():
            number = _number(column, kind, name in keygen.millis)
        case _:
            raise InvalidInput(
                f"partition column {name!r} is {kind.simpleString()}: timestamp.type {settings.type} reads numbers; "
                "use DATE_STRING for text"
            )
    return times.millis_of(F.when(column.isNull(), F.lit(1)).otherwise(number), settings.unit)
