"""Expressions of merges as columns of Spark's."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def as_column(value: object) -> Column:
    """An expression: text is SQL, a Column is itself, any other value stands for itself."""
    if isinstance(value, str):
        return F.expr(value)
    return value if hasattr(value, "alias") and hasattr(value, "cast") else F.lit(value)  # type: ignore[return-value]


def filter_of(condition: str | Column | None) -> Column:
    """A condition as `where` takes it, where Spark evaluates nothing behind a conjunct that is null. In an expression
    around the condition it evaluates the right side of `null AND …`, which may fail."""
    return F.lit(True) if condition is None else as_column(condition)


def condition_holds(condition: str | Column | None) -> Column:
    """Whether a condition is true; null is not."""
    return F.lit(True) if condition is None else F.coalesce(as_column(condition), F.lit(False))
