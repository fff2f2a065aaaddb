"""Least and greatest values, nulls and sizes of columns, as Hudi states them of base files and of logs.

Source: docs/format/metadata-table.md 4.3; pinned by the metadata tables of real Hudi in tests/fixtures.
"""

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.metadata.partitions.value_types import NO_TYPE, type_in_footer, type_in_rows
from hoodie.metadata.records import BOUND

#: What is known of a column: the columns of `records.COLUMN_STATS` from `min` to `type`; the last two are not of all.
Range = dict[str, Any]

_DECIMAL = BOUND.field("DecimalWrapper").type
#: The digits behind the point of all decimals there.
SCALE = _DECIMAL.scale
_CLASSES = {"INT32": "IntWrapper", "INT64": "LongWrapper", "FLOAT": "FloatWrapper", "DOUBLE": "DoubleWrapper"}
#: What the footers of Hudi say of a column without values.
_EMPTY = {"BOOLEAN": False, "INT32": 0, "INT64": 0, "FLOAT": 0.0, "DOUBLE": 0.0}


def of_footer(footer: pq.FileMetaData, names: Collection[str] = (), *, typed: bool = False) -> dict[str, Range]:
    """The ranges of columns of a base file, by name.

    names    of leaves, dotted where they are nested; none: all columns that have no others within
    typed    bounds are stored as in the file, with their type, as Hudi 1.1 and later have it
    returns  without columns of whose type, or of whose chunks, nothing certain is said
    """
    ranges: dict[str, Range] = {}
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        if column.path in names if names else "." not in column.path:
            chunks = [footer.row_group(group).column(number) for group in range(footer.num_row_groups)]
            if (column_range := _of_chunks(column, chunks, typed)) is not None:
                ranges[column.path] = column_range
    return ranges


def _of_chunks(column: pq.ColumnSchema, chunks: list[pq.ColumnChunkMetaData], typed: bool) -> Range | None:
    kind = type_in_footer(column) if typed else None
    chunks = [chunk for chunk in chunks if chunk.num_values]
    statistics = [chunk.statistics for chunk in chunks]
    if (
        any(part is None or not part.has_null_count for part in statistics)
        or not chunks
        or not (kind if typed else _has_class(column))
    ):
        return None
    values, nulls = sum(chunk.num_values for chunk in chunks), sum(part.null_count for part in statistics)
    ranged = [part for part in statistics if part.has_min_max]
    low = high = None
    if nulls == values:
        if (empty := _EMPTY.get(column.physical_type)) is not None:
            low = high = empty
    elif all(part.has_min_max or not part.num_values for part in statistics):  # in which nulls do not count
        try:
            low = min(_value(column, part.min_raw) for part in ranged)
            high = max(_value(column, part.max_raw) for part in ranged)
        except UnicodeDecodeError:  # a text of which its writer kept a part
            low = high = None
    bounds = [_bound(column, value, typed) for value in (low, high)]
    if any(bound is _UNFIT for bound in bounds):
        return None
    sizes = (
        sum(chunk.total_compressed_size for chunk in chunks),
        sum(chunk.total_uncompressed_size for chunk in chunks),
    )
    return _range(bounds, values, nulls, kind, sizes)


def _range(
    bounds: Sequence[dict[str, Any] | None],
    values: int,
    nulls: int,
    kind: dict[str, Any] | None,
    sizes: tuple[int, int] = (0, 0),
) -> Range:
    """bounds: the least and the greatest. kind: of the values, where they are typed"""
    counts = {"values": values, "nulls": nulls, "size": sizes[0], "uncompressed_size": sizes[1]}
    typed = {} if kind is None else {"tight": False, "type": kind}
    return {"min": bounds[0], "max": bounds[1], **counts, **typed}


#: A value that Hudi has no form for.
_UNFIT: dict[str, Any] = {}


def _has_class(column: pq.ColumnSchema) -> bool:
    """Whether Hudi has a class for the values of a column; it fails on others."""
    if column.logical_type.type == "DECIMAL":
        return bool(column.precision <= _DECIMAL.precision and column.scale <= _DECIMAL.scale)
    return column.physical_type in (*_CLASSES, "BOOLEAN", "BYTE_ARRAY")


def _value(column: pq.ColumnSchema, raw: Any) -> Any:
    if column.logical_type.type == "DECIMAL":
        return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
    return raw.decode() if _is_text(column) else raw


def _is_text(column: pq.ColumnSchema) -> bool:
    return column.physical_type == "BYTE_ARRAY" and column.logical_type.type in ("STRING", "ENUM", "JSON")


def _bound(column: pq.ColumnSchema, value: Any, typed: bool) -> dict[str, Any] | None:
    if value is None:
        return None
    kind, physical = column.logical_type.type, column.physical_type
    if kind == "DECIMAL":
        return {"BytesWrapper": signed_bytes(value)} if typed else _decimal(value, column.scale)
    if kind == "DATE" and not typed:
        return {"DateWrapper": value}
    if physical == "BYTE_ARRAY":
        return {"StringWrapper" if _is_text(column) else "BytesWrapper": value}
    return {"BooleanWrapper" if physical == "BOOLEAN" else _CLASSES[physical]: value}


def signed_bytes(number: int) -> bytes:
    """A number as the fewest bytes that hold it and its sign, the first one first, as Java's BigInteger has it."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def _decimal(unscaled: int, scale: int) -> dict[str, Any]:
    """With the scale that all decimals have there; `_UNFIT` where that takes more digits than there are."""
    scaled = unscaled * 10 ** (_DECIMAL.scale - scale)
    if abs(scaled) >= 10**_DECIMAL.precision:
        return _UNFIT
    digits = tuple(map(int, str(abs(scaled))))
    return {"DecimalWrapper": Decimal((int(scaled < 0), digits, -_DECIMAL.scale))}


def of_rows(rows: pa.Table, names: Iterable[str], *, typed: bool = False) -> dict[str, Range]:
    """The ranges of columns of the rows that a commit appended to a log, by name.

    names  of top-level columns; those that the rows do not have are passed by, as are those without a class
    typed  as of `of_footer`
    """
    ranges: dict[str, Range] = {}
    for name in names:
        if rows.schema.get_field_index(name) < 0:
            continue
        column = rows.column(name)
        if typed:
            if (column_range := _typed(column)) is not None:
                ranges[name] = column_range
            continue
        kind = column.type
        nulls = len(rows) if pa.types.is_map(kind) else column.null_count  # as Hudi counts them
        low = high = None
        if not pa.types.is_nested(kind):
            if (bounds := _of_column(column)) is None:
                continue
            low, high = bounds
        ranges[name] = _range((low, high), len(rows), nulls, None)
    return ranges


def no_rows(*, typed: bool = False) -> Range:
    """The range of a column in a log to which a commit appended no rows."""
    return _range((None, None), 0, 0, NO_TYPE if typed else None)


def _typed(column: pa.ChunkedArray) -> Range | None:
    if (kind := type_in_rows(column.type)) is None:
        return None
    if pa.types.is_decimal(column.type):
        scale = column.type.scale
        ends = pc.min_max(column).as_py().values()
        low, high = (None if end is None else {"BytesWrapper": signed_bytes(_unscaled(end, scale))} for end in ends)
    else:
        bounds = _of_column(column.cast(pa.int32()) if pa.types.is_date32(column.type) else column)
        if bounds is None:
            return None
        low, high = bounds
    return _range((low, high), len(column), column.null_count, kind)


def _unscaled(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) + "0" * (int(exponent) + scale))
    return -number if sign else number


def _of_column(column: pa.ChunkedArray) -> tuple[dict[str, Any] | None, dict[str, Any] | None] | None:
    """Its least and greatest value; None where Hudi has no class for its type."""
    kind, types = column.type, pa.types
    name = next((name for fits, name in _ARROW_CLASSES if fits(kind)), "")
    if types.is_decimal(kind):
        if kind.precision > _DECIMAL.precision or kind.scale > _DECIMAL.scale:
            return None
        ends = pc.min_max(column).as_py()
        bounds = [
            None if value is None else _decimal(int(value.scaleb(kind.scale)), kind.scale) for value in ends.values()
        ]
        return None if any(bound is _UNFIT for bound in bounds) else (bounds[0], bounds[1])
    if not name:
        return None
    if name == "LongWrapper" and not types.is_int64(kind):  # times: the number that is stored
        column = column.cast(pa.int64())
    elif name in ("IntWrapper", "DateWrapper"):
        column = column.cast(pa.int32())
    low, high = pc.min_max(column).as_py().values()
    if types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        high = float("nan")  # Java has it above all
        if pc.all(pc.is_nan(column)).as_py():
            low = high
    return tuple(None if value is None else {name: value} for value in (low, high))  # type: ignore[return-value]


_types = pa.types
_ARROW_CLASSES = (
    (_types.is_boolean, "BooleanWrapper"),
    (_types.is_date32, "DateWrapper"),
    (lambda kind: _types.is_integer(kind) and kind.bit_width <= 32, "IntWrapper"),
    (lambda kind: _types.is_int64(kind) or _types.is_timestamp(kind) or _types.is_time64(kind), "LongWrapper"),
    (_types.is_time32, "IntWrapper"),
    (_types.is_float32, "FloatWrapper"),
    (_types.is_float64, "DoubleWrapper"),
    (lambda kind: _types.is_string(kind) or _types.is_large_string(kind), "StringWrapper"),
    (lambda kind: _types.is_binary(kind) or _types.is_large_binary(kind), "BytesWrapper"),
)
