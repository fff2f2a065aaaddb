"""Numbers that columns are compared with, brought into the column's own type, so that no comparison rounds.

Arrow compares a column of whole numbers with a fraction as floats, of few digits, and has no type for a decimal beside
a whole number where the digits of both are too many.
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeAlias

import pyarrow as pa

_Number: TypeAlias = int | float | Decimal

#: Beyond any value that a column can have, and closer to 0 than any but 0.
_HUGE, _TINY = Decimal("1e80"), Decimal("1e-80")


def is_exact(kind: pa.DataType) -> bool:
    """Whether a column's values are whole numbers or decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def number_beside(kind: pa.DataType, value: object) -> _Number | None:
    """The value as a number that `fitting_comparison` and `members` take beside columns of this type; None where
    Arrow compares it.

    A float beside a decimal is not the number that its writer meant: 0.1 is none that a decimal can be.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Decimal) and not value.is_nan():
        return value
    if isinstance(value, float) and pa.types.is_integer(kind) and not math.isnan(value):
        return float(value)
    return None


def fitting_comparison(op: str, number: _Number, kind: pa.DataType) -> tuple[str, pa.Scalar]:
    """The comparison that says the same with a constant of the column's type.

    op    =, ==, !=, <, <=, >, >=
    kind  exact: see `is_exact`
    """
    low, high = _range(kind)
    exact = _units(number, kind)
    floor, ceil = math.floor(exact), math.ceil(exact)
    if floor == ceil and low <= floor <= high:
        return op, _scalar(floor, kind)
    if op in ("=", "=="):  # false of all values
        return "<", _scalar(low, kind)
    if op == "!=":
        return ">=", _scalar(low, kind)
    if op in ("<", "<="):
        return ("<", _scalar(low, kind)) if floor < low else ("<=", _scalar(min(floor, high), kind))
    return (">", _scalar(high, kind)) if ceil > high else (">=", _scalar(max(ceil, low), kind))


def members(numbers: Iterable[_Number], kind: pa.DataType) -> list[Any]:
    """Those of the numbers that a value of the column can be, in its type."""
    low, high = _range(kind)
    if pa.types.is_integer(kind):
        return [int(number) for number in numbers if low <= number <= high and number == int(number)]
    units = (_units(number, kind) for number in numbers)
    return [_scalar(int(exact), kind).as_py() for exact in units if exact.denominator == 1 and low <= exact <= high]


def _units(number: _Number, kind: pa.DataType) -> Fraction:
    """The number counted in the smallest steps of the type."""
    exact = number if isinstance(number, int) else Decimal(number)
    if isinstance(exact, Decimal):
        if exact.copy_abs() > _HUGE:
            exact = _HUGE.copy_sign(exact)
        elif 0 < exact.copy_abs() < _TINY:
            exact = _TINY.copy_sign(exact)
    steps: int = 10 ** _scale(kind)
    return Fraction(exact) * steps


def _range(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value, in the smallest steps of the type."""
    if pa.types.is_decimal(kind):
        most: int = 10**kind.precision - 1
        return -most, most
    most = 2 ** (kind.bit_width - 1)
    return -most, most - 1


def _scalar(units: int, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_integer(kind):
        return pa.scalar(units, kind)
    digits = tuple(map(int, str(abs(units))))
    return pa.scalar(Decimal((int(units < 0), digits, -_scale(kind))), kind)


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0
