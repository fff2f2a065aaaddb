"""Columns by their exact names, whatever characters these have."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def tick(name: str) -> str:
    """A name as SQL has it in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> Column:
    """A column of exactly that name."""
    return F.col(tick(name))
