"""Entries of Spark's catalog for tables of ours: provider, location, columns, and a note of where the table is.

Spark hands no option of an entry to a Python data source, but it does hand over the columns as they are stored, with
their comments. So the first column's comment says where the table is: whatever part of Spark reads the entry, with
Python or without, comes to the table by it.
Source: docs/format/datasource.md 5
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from hoodie.config.driver_options import is_driver_option
from hoodie.expressions.text import tick
from hoodie.spark.catalog import SESSION_CATALOG
from hoodie.spark.own_sql import forget_foreign, prepare, spark_sql

_COMMENT = "comment"
_PLACE = "Hudi table at "


def noted_path(schema: StructType) -> str | None:
    """Where the table is that these columns of an entry are of; None: they do not say."""
    comment = schema.fields[0].metadata.get(_COMMENT) if schema.fields else None
    return comment.removeprefix(_PLACE) if comment and comment.startswith(_PLACE) else None


def entry_name(parts: Sequence[str]) -> str:
    """A name of two parts as Spark's statements take it."""
    return ".".join([SESSION_CATALOG, *map(tick, parts)])


def absolute(path: str) -> str:
    """A path that means the same in every process of this machine."""
    return path if "://" in path or path.startswith("file:") else os.path.abspath(path)


def make_entry(
    session: SparkSession,
    parts: Sequence[str],
    path: str,
    schema: StructType,
    properties: Mapping[str, str],
    *,
    managed: bool,
) -> None:
    """Put a table into the session's catalog. Partition columns are columns like others there: else Spark would let
    none be added behind them.

    parts    database and name
    path     absolute
    schema   its columns, the five of Hudi first
    managed  Spark removes the files with the entry; else it leaves them
    """
    columns = ",\n".join(_columns(schema, path))
    said = ", ".join(f"{_text(key)} {_text(value)}" for key, value in properties.items() if not is_driver_option(key))
    clauses = [
        f"CREATE TABLE {entry_name(parts)} (\n{columns}\n) USING hudi",
        f"OPTIONS ({said})" if said else "",
        "" if managed else f"LOCATION {_text(path)}",
    ]
    prepare(session)
    spark_sql(session, "\n".join(filter(None, clauses)))
    forget_foreign(session)


def drop_entry(session: SparkSession, parts: Sequence[str]) -> None:
    """Take an entry out of the catalog, with the table's files if it is a managed one."""
    prepare(session)
    spark_sql(session, f"DROP TABLE IF EXISTS {entry_name(parts)}")


def add_to_entry(session: SparkSession, parts: Sequence[str], fields: Sequence[StructField]) -> None:
    """Say in an entry that its table has more columns."""
    columns = ", ".join(f"{tick(field.name)} {_type(field.dataType)}" for field in fields)
    spark_sql(session, f"ALTER TABLE {entry_name(parts)} ADD COLUMNS ({columns})")


def _columns(schema: StructType, path: str) -> list[str]:
    comments = [field.metadata.get(_COMMENT, "") for field in schema.fields]
    comments[0] = f"{_PLACE}{path}"
    return [
        f"{tick(field.name)} {_type(field.dataType)}{f' COMMENT {_text(comment)}' if comment else ''}"
        for field, comment in zip(schema.fields, comments, strict=True)
    ]


def _type(kind: DataType) -> str:
    """A type as SQL has it, with the names of structs in backticks."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{tick(field.name)}: {_type(field.dataType)}' for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    return kind.simpleString()


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
