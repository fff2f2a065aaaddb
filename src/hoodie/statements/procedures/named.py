"""Where the table is that an argument of a procedure names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hoodie.errors import StatementError
from hoodie.spark.names import NamedTable, named_table


def path_of(session: SparkSession, table: str) -> str:
    """The path of a table by its name in the session, or by a path. Raises StatementError on a name that none has"""
    return table_named(session, table).path


def table_named(session: SparkSession, table: str) -> NamedTable:
    """The table of a name of the session, or of a path. Raises StatementError on a name that none has"""
    entry = named_table(session, table.replace("`", "").split(".") if "/" not in table else ("hudi", table.strip("`")))
    if entry is None:
        raise StatementError(
            f"no table of Hudi has the name {table!r}: hoodie.spark.register_table gives one, or say path =>"
        )
    return entry
