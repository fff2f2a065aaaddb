"""What a filter says about single columns, and whether rows between a least and a greatest value can pass it.

A filter is known here as an *or* of *ands* of tests. A part of it that is no test of one column with a constant is left
out: then fewer rows are ruled out, never more.
"""

import datetime as dt
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from hoodie.expressions.text import tick

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: More alternatives than these are not told apart.
_MOST = 64


@dataclass(frozen=True, slots=True)
class Test:
    """One column compared with a constant.

    op     =, ==, !=, <, <=, >, >=, in, not in, null, not null
    value  of `in` and `not in` a collection; else what is compared with
    """

    __test__ = False  # not pytest's

    column: str
    op: str
    value: Any = None


#: An *or* of *ands*; an empty *and* passes everything.
Tests: TypeAlias = tuple[tuple[Test, ...], ...]
#: Passes everything.
ANY: Tests = ((),)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a column's values in some rows. None: nothing.

    low, high  all values that are not null are between these, both included; both None: unknown
    nulls      how many nulls there are
    exact      no other values than those between: False for floats, whose NaN is in no statistics
    """

    low: Any = None
    high: Any = None
    nulls: int | None = None
    exact: bool = True


def tests_of(filters: Sequence[Any]) -> Tests:
    """The tests of filters in pyarrow's tuples: see `selection.Filters`.

    Raises ValueError on what is no tuple of a column, an operator and a value
    """
    if not isinstance(filters, (list, tuple)) or not filters:
        raise ValueError("and there is none" if isinstance(filters, (list, tuple)) else f"not {filters!r}")
    if _is_test(filters):
        raise ValueError(f"in a list, also where it is one: [{filters!r}]")
    clauses = filters if isinstance(filters[0], list) else [filters]
    if empty := [clause for clause in clauses if not isinstance(clause, (list, tuple)) or not clause]:
        raise ValueError(f"not {empty[0]!r}")
    return tuple(tuple(map(_test, clause)) for clause in clauses)


def _is_test(one: Any) -> bool:
    return isinstance(one, tuple) and len(one) == 3 and isinstance(one[0], str) and isinstance(one[1], str)


_OPERATORS = ("=", "==", "!=", "<", "<=", ">", ">=", "in", "not in")


def _test(one: Any) -> Test:
    if not _is_test(one):
        raise ValueError(f"not {one!r}")
    column, op, value = one
    op = {"<>": "!="}.get(op, " ".join(op.lower().split()))
    if op not in _OPERATORS:
        raise ValueError(f"and {op!r} is no operator: take one of {', '.join(_OPERATORS)}, or a condition as text")
    if op not in ("in", "not in"):
        return Test(column, op, _plain_value(value))
    if isinstance(value, (str, bytes)) or hasattr(value, "columns") or not isinstance(value, Iterable):
        raise ValueError(f"and {op!r} takes a list of values, not {value!r}")
    return Test(column, op, list(map(_plain_value, value)))  # which can be looked at more than once


def _plain_value(value: Any) -> Any:
    """A value of Arrow's or a number of numpy's as one of Python's; one of numpy's days and minutes, which Arrow does
    not take; and pandas' NA and NaT, which are null."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (np.bool_, np.number)) and not isinstance(value, np.timedelta64):
        return value.item()
    if isinstance(value, np.datetime64):
        convertible = np.datetime_data(value)[0] in ("D", "s", "ms", "us", "ns")
        value = pa.array(np.array([value if convertible else value.astype("datetime64[us]")]))[0]
    return value.as_py() if isinstance(value, pa.Scalar) else value


def held_filters(filters: Any) -> Any:
    """Filters that can be looked at more than once: an iterator of values for `in` is a list. Others as they are."""
    if not isinstance(filters, (list, tuple)):
        return filters
    try:
        return [[(test.column, test.op, test.value) for test in clause] for clause in tests_of(filters)]
    except ValueError:
        return filters  # who reads them says what they are


def passing_both(one: Tests, other: Tests) -> Tests:
    """Tests that pass what passes both."""
    if len(one) * len(other) > _MOST:
        return one
    return tuple((*clause, *other_clause) for clause in one for other_clause in other)


def passing_either(one: Tests, other: Tests) -> Tests:
    """Tests that pass what passes one of two."""
    return (*one, *other) if len(one) + len(other) <= _MOST else ANY


def may_pass(tests: Tests, bounds: Callable[[str], Bounds | None]) -> bool:
    """Whether rows of which so much is known can pass. bounds: of a column; None: nothing is known"""
    return any(all(_possible(test, bounds(test.column)) for test in clause) for clause in tests)


def _possible(test: Test, bounds: Bounds | None) -> bool:
    if bounds is None:
        return True
    if test.op == "null":
        return bounds.nulls != 0
    if bounds.low is None or bounds.high is None or test.op == "not null":
        return True
    try:
        return _between(test, bounds)
    except TypeError:  # values of other types than the statistics are
        return True


def _between(test: Test, bounds: Bounds) -> bool:
    low, high, value = bounds.low, bounds.high, test.value
    match test.op:
        case "=" | "==":
            return bool(low <= value <= high)
        case "!=":
            return not (bounds.exact and low == high == value)
        case "<" | "<=":
            return _COMPARE[test.op](low, value)
        case ">" | ">=":
            return _COMPARE[test.op](high, value)
        case "in":
            holds_null = bounds.nulls != 0 and None in value  # of tuples, as pyarrow has it
            return holds_null or any(low <= one <= high for one in value if one is not None)
        case _:
            return True


def widened_bounds(low: float, high: float, kind: pa.DataType) -> tuple[float, float]:
    """The bounds of a floating column, a step further apart: Arrow may compare in fewer digits."""
    narrow = np.float32 if kind.bit_width <= 32 else np.float64
    with np.errstate(over="ignore"):
        return float(np.nextafter(narrow(low), narrow(-np.inf))), float(np.nextafter(narrow(high), narrow(np.inf)))


#: What a decimal of SQL's has at most.
_DIGITS = 38
_SIGNS = {"=": "=", "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def sql_of(tests: Tests, columns: Sequence[str]) -> str:
    """The condition in SQL that tests of tuples say: it is what they mean, with Spark and without.

    columns  of the table; another name with dots is that of a struct's field

    Null is among the values of `in` where it is one of them, and not among those of `not in` where it is none, as
    pyarrow has it.
    Raises ValueError on values that SQL has no constant for
    """
    return " or ".join(f"({' and '.join(_comparison(test, columns) for test in clause)})" for clause in tests)


def _comparison(test: Test, columns: Sequence[str]) -> str:
    column = tick(test.column) if test.column in columns else ".".join(map(tick, test.column.split(".")))
    if test.op not in ("in", "not in"):
        return f"{column} {_SIGNS[test.op]} {_constant(test.value)}"
    constants = list(map(_constant, test.value))
    values, has_null = [value for value in constants if value != "null"], "null" in constants
    among = f"{column} {test.op} ({', '.join(values)})" if values else str(test.op == "not in").lower()
    if test.op == "in":
        return f"({among} or {column} is null)" if has_null else among
    return f"({among} and {column} is not null)" if has_null else f"({among} or {column} is null)"


def _constant(value: Any) -> str:
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return _exact_constant(Decimal(value))
        case Decimal() if value.is_finite():
            return _exact_constant(value)
        case float():
            return _double(value)
        case str():
            return "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            return f"{'timestamp_ntz' if value.tzinfo is None else 'timestamp'} '{value.isoformat(' ')}'"
        case dt.date():
            return f"date '{value.isoformat()}'"
    raise ValueError(f"not {value!r}: no constant of SQL's")


def _exact_constant(value: Decimal) -> str:
    """A number of at most 38 digits, as SQL has them; one of more as a double, which any value is as far from."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    fits = len(digits) + max(exponent, 0) <= _DIGITS and -exponent <= _DIGITS
    return f"{value:f}" if fits else _double(float(value))


def _double(value: float) -> str:
    if not math.isfinite(value):
        return f"cast('{value}' as double)"
    text = repr(value)
    return text if "e" in text else f"{text}e0"  # which makes it a double, and no decimal
