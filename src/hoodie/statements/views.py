"""Views that show some rows of a table of ours, or of several: statements that change rows refuse them.

Spark has an internal error for a DELETE of such a view, and speaks of an unknown table or an RDD for the others.
"""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from hoodie.model.files import BaseFile, parse_data_file
from hoodie.spark.catalog import catalog_table
from hoodie.spark.own_sql import spark_sql, spark_table
from hoodie.statements.cutting import Text
from hoodie.statements.names import table_if_ours, table_names

_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_SHARED = "global_temp"


def refuse_changes_of_views(session: SparkSession, statement: Text) -> None:
    """Raises StatementError on a change of a view that shows rows of a table of ours, unless it shows all of one: the
    caller has looked for that."""
    target = next(table_names(statement), None) if statement.word(0) in _CHANGES else None
    if target is not None and _shows_ours(session, target):
        raise statement.unreadable(
            f"{'.'.join(target)} is a view of rows of a Hudi table, and takes no changes: name the table. One that "
            "CREATE TEMPORARY VIEW … AS SELECT * FROM table makes takes UPDATE, DELETE, MERGE and INSERT for it"
        )


def _shows_ours(session: SparkSession, name: Sequence[str]) -> bool:
    shared = len(name) == 2 and name[0].lower() == _SHARED
    entry = None if shared else catalog_table(session, name)
    if entry is not None and not entry.temporary:
        return not entry.provider and _is_of_ours(session, name)
    quoted = ".".join(f"`{part}`" for part in name)
    if (entry is None and not shared) or not session.catalog.tableExists(quoted):
        return False
    files = (path.rpartition("/")[2] for path in spark_table(session, quoted).inputFiles())
    return any(isinstance(parse_data_file("", file, 0), BaseFile) for file in files)


def _is_of_ours(session: SparkSession, name: Sequence[str]) -> bool:
    """Whether a view that the catalog keeps is of tables of ours, by the text of its query."""
    quoted = ".".join(f"`{part}`" for part in name)
    row = spark_sql(session, f"SHOW CREATE TABLE {quoted}").first()
    query = Text.of(str(row[0]) if row else "")
    return any(table_if_ours(session, parts) is not None for parts in table_names(query) if tuple(parts) != tuple(name))
