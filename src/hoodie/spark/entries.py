"""Entries of Spark's catalog for tables of ours: provider, location, columns, and a note of where the table is.

Spark hands no option of an entry to a Python data source, but it does hand over the columns as they are stored, with
their comments. So the first column's comment says where the table is: whatever part of Spark reads the entry, with
Python or without, comes to the table by it.
Source: docs/format/datasource.md 5
"""

import os
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

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


def absolute_uri(path: str) -> str:
    """A path that means the same in every process of this machine."""
    return path if "://" in path or path.startswith("file:") else os.path.abspath(path)


def make_entry(
    session: SparkSession,
    parts: Sequence[str],
    path: str,
    schema: StructType,
    facts: Mapping[str, str],
    properties: Mapping[str, str],
    comment: str = "",
    *,
    managed: bool,
) -> None:
    """Put a table into the session's catalog. Partition columns are columns like others there: else Spark would let
    none be added behind them.

    parts       database and name
    path        absolute
    schema      its columns, the five of Hudi first
    facts       what the table is
    properties  what else a statement says of it
    managed     Spark removes the files with the entry; else it leaves them
    """
    columns = ",\n".join(_columns(schema, path))
    text = ", ".join(f"{sql_text(key)} {sql_text(value)}" for key, value in facts.items() if not is_driver_option(key))
    more = ", ".join(f"{sql_text(key)} = {sql_text(value)}" for key, value in properties.items())
    clauses = [
        f"CREATE TABLE {entry_name(parts)} (\n{columns}\n) USING hudi",
        f"OPTIONS ({text})" if text else "",
        f"COMMENT {sql_text(comment)}" if comment else "",
        f"TBLPROPERTIES ({more})" if more else "",
        "" if managed else f"LOCATION {sql_text(path)}",
    ]
    prepare(session)
    spark_sql(session, "\n".join(filter(None, clauses)))
    forget_foreign(session)


def drop_entry(session: SparkSession, parts: Sequence[str]) -> None:
    """Take an entry out of the catalog, with the table's files if it is a managed one."""
    prepare(session)
    spark_sql(session, f"DROP TABLE IF EXISTS {entry_name(parts)}")


def replace_columns(session: SparkSession, parts: Sequence[str], path: str, schema: StructType) -> None:
    """Have an entry say which columns its table has now.

    path    of the table, absolute
    schema  its columns, the five of Hudi first
    """
    columns = ", ".join(_columns(schema, path))
    spark_sql(session, f"ALTER TABLE {entry_name(parts)} REPLACE COLUMNS ({columns})")


def set_properties(session: SparkSession, parts: Sequence[str], properties: Mapping[str, str]) -> None:
    text = ", ".join(f"{sql_text(key)} = {sql_text(value)}" for key, value in properties.items())
    spark_sql(session, f"ALTER TABLE {entry_name(parts)} SET TBLPROPERTIES ({text})")


def unset_properties(session: SparkSession, parts: Sequence[str], names: Sequence[str]) -> None:
    text = ", ".join(map(sql_text, names))
    spark_sql(session, f"ALTER TABLE {entry_name(parts)} UNSET TBLPROPERTIES IF EXISTS ({text})")


def rename_entry(session: SparkSession, parts: Sequence[str], new: Sequence[str]) -> None:
    """Give an entry another name in its database; the folder of a managed table gets it, too."""
    prepare(session)
    spark_sql(session, f"ALTER TABLE {entry_name(parts)} RENAME TO {'.'.join(map(tick, new))}")
    forget_foreign(session)


def comment_on_entry(session: SparkSession, parts: Sequence[str], comment: str) -> None:
    spark_sql(session, f"COMMENT ON TABLE {entry_name(parts)} IS {sql_text(comment)}")


def _columns(schema: StructType, path: str) -> list[str]:
    comments = [field.metadata.get(_COMMENT, "") for field in schema.fields]
    comments[0] = f"{_PLACE}{path}"
    return [
        f"{tick(field.name)} {sql_type(field.dataType)}{f' COMMENT {sql_text(comment)}' if comment else ''}"
        for field, comment in zip(schema.fields, comments, strict=True)
    ]


def sql_type(kind: DataType) -> str:
    """A type as SQL has it, with the names of structs in backticks."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{tick(field.name)}: {sql_type(field.dataType)}' for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{sql_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{sql_type(kind.keyType)}, {sql_type(kind.valueType)}>"
    return kind.simpleString().upper()


def sql_text(text: str) -> str:
    """A text as SQL has it, in quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
