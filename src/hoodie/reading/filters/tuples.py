"""Filters in pyarrow's tuples as a condition in SQL, for what takes conditions alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hoodie.errors import InvalidInput
from hoodie.reading.filters.predicate import Test, tests_of

_SIGNS = {"=": "=", "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def sql_of(filters: Sequence[Any]) -> str:
    """The condition that tuples (column, operator, value), in lists of *and*, *or*, say.

    Raises InvalidInput on other filters, and on values that SQL has no constant for
    """
    try:
        clauses = [" and ".join(map(_comparison, clause)) for clause in tests_of(filters)]
    except (ValueError, TypeError, IndexError, KeyError) as problem:
        raise InvalidInput(f"where={filters!r}: expected tuples (column, operator, value), {problem}") from problem
    return " or ".join(f"({clause})" for clause in clauses)


def _comparison(test: Test) -> str:
    column = f"`{test.column.replace('`', '``')}`"
    if test.op not in ("in", "not in"):
        return f"{column} {_SIGNS[test.op]} {_constant(test.value)}"
    if not test.value:
        return "false" if test.op == "in" else "true"
    return f"{column} {test.op} ({', '.join(map(_constant, test.value))})"


def _constant(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return str(value)
        case float() if value - value == 0:
            return f"cast({value!r} as double)"
        case str():
            return "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
        case dt.datetime():
            return f"timestamp '{value.isoformat(' ')}'"
        case dt.date():
            return f"date '{value.isoformat()}'"
    raise ValueError(f"not {value!r}: no constant of SQL's")
