"""The types of columns as statistics of Hudi 1.1 and later have them, numbers of its enumeration of types.

Source: docs/format/table-versions-8-9.md 11; pinned by tests/fixtures/metadata/v9_mor_statistics.zip.
"""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.metadata.merging import DECIMAL

#: A member of `records.VALUE_TYPE`.
ValueType = dict[str, Any]
#: That of a log without rows.
NO_TYPE: ValueType = {"typeOrdinal": 1, "additionalInfo": None}

_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES = range(2, 9)
_DATE, _TIMESTAMP, _LOCAL_TIMESTAMP = 12, 16, 19
_PHYSICAL = {
    "BOOLEAN": _BOOLEAN,
    "INT32": _INT,
    "INT64": _LONG,
    "FLOAT": _FLOAT,
    "DOUBLE": _DOUBLE,
    "BYTE_ARRAY": _BYTES,
}


def type_in_footer(column: pq.ColumnSchema) -> ValueType | None:
    """The type of a leaf of a base file; None: Hudi has no statistics of such, or they are not written here."""
    kind = column.logical_type.type
    if kind == "DECIMAL":
        return _decimal(column.precision, column.scale)
    if kind in ("STRING", "ENUM", "JSON"):
        return _plain_type(_STRING)
    if kind == "DATE":
        return _plain_type(_DATE)
    if kind == "TIMESTAMP":
        description = json.loads(column.logical_type.to_json())
        if description["timeUnit"] != "microseconds":
            return None
        return _plain_type(_TIMESTAMP if description["isAdjustedToUTC"] else _LOCAL_TIMESTAMP)
    if kind not in ("NONE", "INT"):
        return None
    return _plain_type(_PHYSICAL.get(column.physical_type))


def type_in_rows(kind: pa.DataType) -> ValueType | None:
    """The type of a column of rows; None: Hudi has no statistics of such, or they are not written here."""
    types = pa.types
    if types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if types.is_timestamp(kind):
        if kind.unit != "us":
            return None
        return _plain_type(_LOCAL_TIMESTAMP if kind.tz is None else _TIMESTAMP)
    return _plain_type(next((number for fits, number in _ARROW if fits(kind)), None))


def is_not_written(kind: pa.DataType) -> bool:
    """Whether Hudi has statistics of a column of rows that are not written here, as it was not seen what they are."""
    times = pa.types.is_time(kind) or pa.types.is_timestamp(kind)
    return times and type_in_rows(kind) is None


def _plain_type(number: int | None) -> ValueType | None:
    return None if number is None else {"typeOrdinal": number, "additionalInfo": None}


def _decimal(precision: int, scale: int) -> ValueType:
    return {"typeOrdinal": DECIMAL, "additionalInfo": f"{precision},{scale}"}


_types = pa.types
_ARROW = (
    (_types.is_boolean, _BOOLEAN),
    (_types.is_date32, _DATE),
    (lambda kind: _types.is_integer(kind) and kind.bit_width <= 32, _INT),
    (_types.is_int64, _LONG),
    (_types.is_float32, _FLOAT),
    (_types.is_float64, _DOUBLE),
    (lambda kind: _types.is_string(kind) or _types.is_large_string(kind), _STRING),
    (lambda kind: _types.is_binary(kind) or _types.is_large_binary(kind), _BYTES),
)
