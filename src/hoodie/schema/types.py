"""Which column types a table can hold, in which Arrow form, and what they are called in messages (Spark's words)."""

from collections.abc import Callable

import pyarrow as pa

#: Spark's `timestamp`: an instant, microseconds.
TIMESTAMP = pa.timestamp("us", "UTC")
#: Spark's `timestamp_ntz`: a date and time of day without a zone, microseconds.
TIMESTAMP_NTZ = pa.timestamp("us")
#: The same in milliseconds: columns that other writers declared `timestamp-millis` or `local-timestamp-millis`. The
#: unit is a part of the type: numbers in files, in keys and in ordering values are milliseconds.
TIMESTAMP_MILLIS = pa.timestamp("ms", "UTC")
TIMESTAMP_NTZ_MILLIS = pa.timestamp("ms")

_LEAVES = {
    pa.bool_(): pa.bool_(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float32(): pa.float32(),
    pa.float64(): pa.float64(),
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date32(): pa.date32(),
    pa.date64(): pa.date32(),
}

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.null(): "void",
    pa.uint8(): "unsigned tinyint",
    pa.uint16(): "unsigned smallint",
    pa.uint32(): "unsigned int",
    pa.uint64(): "unsigned bigint",
    pa.float16(): "half float",
}


def is_list(kind: pa.DataType) -> bool:
    """Any of Arrow's five list layouts."""
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def list_of(item: pa.Field) -> pa.ListType:
    return pa.list_(item.with_name("element"))


def map_of(value: pa.Field) -> pa.MapType:
    return pa.map_(pa.string(), value.with_name("value"))


def holds(kind: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    """Whether the type, or any within it, passes the test."""
    if test(kind):
        return True
    return any(holds(kind.field(number).type, test) for number in range(kind.num_fields))


def spark_name(kind: pa.DataType) -> str:
    """What Spark SQL calls the type: `bigint`, `array<int>`; Arrow's name for what Spark does not know."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        suffix = {"ns": " in nanoseconds", "ms": " in milliseconds"}.get(kind.unit, "")
        return ("timestamp" if kind.tz else "timestamp_ntz") + suffix
    if pa.types.is_fixed_size_binary(kind):
        return f"binary({kind.byte_width})"
    if is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{spark_name(field.type)}" for field in kind) + ">"
    if pa.types.is_dictionary(kind):
        return spark_name(kind.value_type)
    if pa.types.is_interval(kind) or pa.types.is_duration(kind):
        return "interval"
    if pa.types.is_time(kind):
        return "time"
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        return "uuid"
    return "union" if pa.types.is_union(kind) else str(kind)


def remedy(kind: pa.DataType) -> str:
    """What to cast a column to whose type no table can hold; "": there is no such type."""
    types = pa.types
    if kind == pa.uint64():
        return "cast it to decimal(20,0), or to bigint if no value is above 9223372036854775807"
    if kind == pa.float16():
        return "cast it to float"
    if types.is_time(kind):
        return "cast it to string, or to bigint for the time since midnight"
    if types.is_interval(kind) or types.is_duration(kind):
        return "cast it to string, or to bigint for its length in a unit of your choice"
    if types.is_decimal(kind):
        return "cast it to a decimal of at most 38 digits and a scale of 0 or more, or to string"
    if types.is_run_end_encoded(kind):
        return "decode it, by pyarrow.compute.run_end_decode"
    if isinstance(kind, pa.Bool8Type):
        return "cast it to boolean"
    return "cast it to string, in pandas by astype(str)" if isinstance(kind, pa.BaseExtensionType) else ""


def other_time(have: pa.DataType, kind: pa.DataType) -> str:
    """What is wrong with dates and times as values of a column of another kind of them, as the end of a message; "".

    A time without a zone is no moment, and only who has it knows the zone that it is meant in.
    """
    if pa.types.is_date(have) and pa.types.is_timestamp(kind):
        return "dates, and the table's has times: cast it"
    if pa.types.is_timestamp(have) and pa.types.is_date(kind):
        return "times, and the table's has dates: cast it"
    if not (pa.types.is_timestamp(have) and pa.types.is_timestamp(kind)) or (have.tz is None) == (kind.tz is None):
        return ""
    if have.tz is None:
        return (
            "times without a zone, and the table's has times with one: give them theirs, such as by "
            "datetime.replace(tzinfo=timezone.utc), or dt.tz_localize('UTC') of pandas"
        )
    return (
        "times with a zone, and the table's has times without one: take it off, such as by "
        "datetime.replace(tzinfo=None), or dt.tz_localize(None) of pandas"
    )


def stored_type(kind: pa.DataType) -> pa.DataType | None:
    """The type in which a table holds values of a batch's type that is not nested; None: it cannot."""
    if kind in _LEAVES:
        return _LEAVES[kind]
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            return None
        return TIMESTAMP if kind.tz else TIMESTAMP_NTZ
    if pa.types.is_decimal(kind):
        if 1 <= kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
            return pa.decimal128(kind.precision, kind.scale)
        return None
    if pa.types.is_fixed_size_binary(kind):
        return kind
    if pa.types.is_dictionary(kind) and not pa.types.is_nested(kind.value_type):
        return stored_type(kind.value_type)
    return None


def widen(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The stored type that holds every value of both, exactly, and that readers find in files of either; else None.

    A timestamp keeps the table's unit: one in milliseconds takes microseconds, cut down, as Hudi writes them.
    A decimal takes in one with no more digits on either side of the point, but never grows: with a filter pushed down,
    Spark fails on a file whose decimals have fewer bytes than the filter's value (docs/design/types.md).
    """
    if old == new:
        return old
    if (old, new) in _WIDER:
        return new
    if (new, old) in _WIDER:
        return old
    if pa.types.is_timestamp(old) and pa.types.is_timestamp(new) and (old.tz is None) == (new.tz is None):
        return old  # a table keeps its unit
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        fits = new.scale <= old.scale and new.precision - new.scale <= old.precision - old.scale
        return old if fits else None
    if pa.types.is_fixed_size_binary(old) and new == pa.binary():
        return old
    return None


def grown(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """As `widen`, for a column that may lose digits, as Hudi lets it: int, bigint, float, double grow in this order,
    and numbers become text."""
    if old in _NUMBERS and new in _NUMBERS:
        return max(old, new, key=_NUMBERS.index)
    if pa.string() in (old, new) and (old in _NUMBERS or new in _NUMBERS or pa.types.is_decimal(new)):
        return pa.string()
    return widen(old, new)


def read_by_spark(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether Spark's own reader finds a column of one type in files that have it in another."""
    return old == new or (old, new) in _WIDER


_NUMBERS = [pa.int32(), pa.int64(), pa.float32(), pa.float64()]

_WIDER = {(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())}
