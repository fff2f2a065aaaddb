"""Columns by their exact names, whatever characters these have."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, StructType

from hoodie.expressions.text import tick

#: Types that have no hash, by their names in Spark's JSON.
_NOT_HASHED = ("map", "variant")


def quoted(name: str) -> Column:
    """A column of exactly that name."""
    return F.col(tick(name))


def is_floating(kind: DataType) -> bool:
    """Whether a column is of floating numbers itself."""
    return isinstance(kind, (FloatType, DoubleType))


def tested_by_row(column: Column, kind: DataType) -> Column:
    """The same values, on which Spark tests filters row by row.

    Spark's order of floating numbers has NaN above all others, and -0.0 equal to 0.0. The least and greatest values by
    which Parquet's reader and Spark's own cache leave out rows know neither. No filter passes a computed value, so
    floating numbers are negated twice, in structs too. Filters on lists and maps are tested so anyway.
    """
    if is_floating(kind):
        return F.negative(F.negative(column))
    if isinstance(kind, StructType):
        for field in kind:
            if holds_floating(field.dataType):
                column = column.withField(tick(field.name), tested_by_row(column[field.name], field.dataType))
    return column


def tested_texts(schema: StructType) -> list[str] | None:
    """The columns as `tested_by_row` has them, as texts, which take Python fewer calls to Spark; None: a struct holds
    floating numbers, which no short text says."""
    if any(holds_floating(field.dataType) and not is_floating(field.dataType) for field in schema):
        return None
    names = [(tick(field.name), is_floating(field.dataType)) for field in schema]
    return [f"negative(negative({name})) as {name}" if floating else name for name, floating in names]


def content_hash(frame: DataFrame) -> Column:
    """A hash of what a row holds, but for columns that Spark hashes none of."""
    hashed = [quoted(field.name) for field in frame.schema if not _has_no_hash(field.dataType)]
    return F.xxhash64(*hashed) if hashed else F.lit(0).cast("long")


def _has_no_hash(kind: DataType) -> bool:
    return any(f'"{name}"' in kind.json() for name in _NOT_HASHED)


def holds_floating(kind: DataType) -> bool:
    """Whether a column is of floating numbers, or a struct that has one."""
    return is_floating(kind) or (isinstance(kind, StructType) and any(holds_floating(field.dataType) for field in kind))
