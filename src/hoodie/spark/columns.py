"""Columns by their exact names, whatever characters these have."""

from collections.abc import Sequence
from itertools import groupby

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
    return [_tested_text(field.name) if is_floating(field.dataType) else tick(field.name) for field in schema]


def few_texts(schema: StructType, hidden: Sequence[str] = ()) -> list[str] | None:
    """The same columns as few texts, each of which is a call to Spark: floating ones, and the others between them.

    schema  of a frame, in its order
    hidden  columns that the frame has besides
    """
    if (texts := tested_texts(schema)) is None:
        return None
    every, few = [*schema.names, *hidden], list[str]()
    for floating, run in groupby(schema, lambda field: is_floating(field.dataType)):
        names = [field.name for field in run]
        if floating:
            few += map(_tested_text, names)
        elif len(names) == 1:
            few.append(tick(names[0]))
        else:
            others = [tick(name) for name in every if name not in set(names)]
            few.append(f"* except ({', '.join(others)})" if others else "*")
    return few if len(few) < len(texts) else texts


def _tested_text(name: str) -> str:
    return f"negative(negative({tick(name)})) as {tick(name)}"


def content_hash(frame: DataFrame) -> Column:
    """A hash of what a row holds, but for columns that Spark hashes none of."""
    hashed = [quoted(field.name) for field in frame.schema if not _has_no_hash(field.dataType)]
    return F.xxhash64(*hashed) if hashed else F.lit(0).cast("long")


def _has_no_hash(kind: DataType) -> bool:
    return any(f'"{name}"' in kind.json() for name in _NOT_HASHED)


def holds_floating(kind: DataType) -> bool:
    """Whether a column is of floating numbers, or a struct that has one."""
    return is_floating(kind) or (isinstance(kind, StructType) and any(holds_floating(field.dataType) for field in kind))
