"""Numbers as the text that Java makes of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def is_number_text(kind: pa.DataType) -> bool:
    """Whether values are numbers that have a text of Java's here."""
    types = pa.types
    return bool(types.is_integer(kind) or kind in (pa.float32(), pa.float64()) or types.is_decimal(kind))


def number_text(numbers: pa.Array) -> pa.Array:
    """large_string[n]: whole numbers and decimals as they are written, floats as `Double.toString`; null for null."""
    if not pa.types.is_floating(numbers.type):
        return pc.cast(numbers, pa.large_string())  # decimals as Java's BigDecimal: with an exponent below 1E-6
    width = np.float32 if pa.types.is_float32(numbers.type) else np.float64
    return by_distinct_value(numbers, lambda value: _java_float(width(value)))


def by_distinct_value(column: pa.Array, convert: Callable[[Any], str | None]) -> pa.Array:
    """large_string[n]: what a function makes of each value that occurs, called once for each; null for null."""
    encoded = column.dictionary_encode()
    texts = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], pa.large_string())
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
    if len(mantissa.lstrip("-")) == 3:  # where one digit is enough Java takes the closest of two: 4.9E-324
        mantissa, exponent = np.format_float_scientific(value, unique=False, precision=1).split("e")
    return f"{mantissa}E{int(exponent)}"
