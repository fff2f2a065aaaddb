"""Spark's rules of types, on Arrow's: what two sides of an operator become, and what is shown of a type.

Source: Spark SQL reference, ANSI compliance (type promotion and precedence; arithmetic of decimals).
"""

import pyarrow as pa
from pyarrow import types as arrow

NULL, BOOL, INT, BIGINT, DOUBLE, TEXT, DATE = (
    pa.null(), pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.date32(),
)  # fmt: skip
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")

_MOST = 38
_LEAST_SCALE = 6
#: Digits that a decimal needs for any value of an integer type, by its bits.
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def is_integer(kind: pa.DataType) -> bool:
    return bool(arrow.is_integer(kind))


def is_decimal(kind: pa.DataType) -> bool:
    return bool(arrow.is_decimal(kind))


def is_float(kind: pa.DataType) -> bool:
    return bool(arrow.is_floating(kind))


def is_number(kind: pa.DataType) -> bool:
    return is_integer(kind) or is_decimal(kind) or is_float(kind)


def is_text_kind(kind: pa.DataType) -> bool:
    return bool(arrow.is_string(kind))


def is_time(kind: pa.DataType) -> bool:
    return bool(arrow.is_date(kind) or arrow.is_timestamp(kind))


def evaluated_kind(kind: pa.DataType) -> pa.DataType:
    """The type in which expressions have values of a type: times are microseconds, and bytes of any length alike."""
    if arrow.is_fixed_size_binary(kind):
        return pa.binary()
    return pa.timestamp("us", kind.tz) if arrow.is_timestamp(kind) and kind.unit != "us" else kind


def decimal_of(kind: pa.DataType) -> pa.DataType:
    """The decimal that holds all values of an integer type; a decimal is itself."""
    return kind if is_decimal(kind) else pa.decimal128(_DIGITS[kind.bit_width], 0)


def adjusted(precision: int, scale: int) -> pa.DataType:
    """A result of arithmetic, in 38 digits at most: of those behind the point it keeps six, or all there are."""
    if precision <= _MOST:
        return pa.decimal128(max(precision, 1), scale)
    whole = precision - scale
    return pa.decimal128(_MOST, max(_MOST - whole, min(scale, _LEAST_SCALE)))


def arithmetic_kind(op: str, left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of `+ - * / %` and `div` of two numbers; None: there is none."""
    if NULL in (left, right) and op == "/" and not is_decimal(left):
        return DOUBLE if is_number(left) or is_number(right) or left == right else None
    if NULL in (left, right):
        left, right = (right, right) if left == NULL else (left, left)
    if left == NULL:
        return BIGINT if op == "div" else DOUBLE
    if not (is_number(left) and is_number(right)):
        return None
    if is_float(left) or is_float(right):
        if op == "div":
            return None
        return left if left == right and op != "/" else (DOUBLE if op != "/" or left != right else left)
    if is_decimal(left) or is_decimal(right):
        return BIGINT if op == "div" else _decimal_result(op, decimal_of(left), decimal_of(right))
    if op in ("/", "div"):
        return DOUBLE if op == "/" else BIGINT
    return wider_integer(left, right)


def wider_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return left if left.bit_width >= right.bit_width else right


def _decimal_result(op: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    scale = max(s1, s2)
    if op in ("+", "-"):
        return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if op == "*":
        return adjusted(p1 + p2 + 1, s1 + s2)
    if op == "%":
        return adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    scale = max(_LEAST_SCALE, s1 + p2 + 1)
    return adjusted(p1 - s1 + s2 + scale, scale)


def wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal that holds the values of both, as far as 38 digits do: those before the point come first."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= _MOST:
        return pa.decimal128(whole + scale, scale)
    return pa.decimal128(_MOST, max(0, _MOST - whole))


def common_kind(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which two values are compared, or of a CASE that gives either; None: there is none."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    for one, other in ((left, right), (right, left)):
        if is_text_kind(one):
            return _beside_text(other)
    if is_number(left) and is_number(right):
        if is_float(left) or is_float(right):
            return DOUBLE
        if is_decimal(left) or is_decimal(right):
            return wider_decimal(decimal_of(left), decimal_of(right))
        return wider_integer(left, right)
    if is_time(left) and is_time(right):
        if arrow.is_date(left) or arrow.is_date(right):
            return right if arrow.is_date(left) else left
        return TIMESTAMP
    return None


def _beside_text(other: pa.DataType) -> pa.DataType | None:
    if is_integer(other):
        return BIGINT
    if is_decimal(other) or is_float(other):
        return DOUBLE
    return other if is_time(other) or other == BOOL or arrow.is_binary(other) else None
