"""What statements do to the entries that tables of ours have in Spark's catalog."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from hoodie.api.table import open_table
from hoodie.config.table import PROPERTIES_FILE
from hoodie.errors import StatementError
from hoodie.model.meta import META_COLUMNS
from hoodie.spark.catalog import CatalogTable, catalog_table
from hoodie.spark.entries import drop_entry, entry_name, make_entry, noted_path, replace_columns
from hoodie.spark.names import named_table, qualified, require_database
from hoodie.spark.own_sql import spark_table
from hoodie.spark.types import to_spark
from hoodie.statements.cutting import Name, Text
from hoodie.statements.names import table_names
from hoodie.statements.rows import without_table
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage
from hoodie.table.state import declared_schema, load_state


def with_meta_columns(schema: StructType) -> StructType:
    """Columns of a table with the five of Hudi before them."""
    own = [field for field in schema.fields if field.name not in META_COLUMNS]
    return StructType([*(StructField(name, StringType()) for name in META_COLUMNS), *own])


def enter(
    session: SparkSession,
    parts: Sequence[str],
    path: str,
    schema: StructType,
    facts: Mapping[str, str],
    properties: Mapping[str, str] = MappingProxyType({}),
    comment: str = "",
    *,
    managed: bool,
) -> None:
    """Put a table into the catalog: see `make_entry`. An entry of the table that is there already stays."""
    if catalog_table(session, parts) is None:
        make_entry(session, parts, path, with_meta_columns(schema), facts, properties, comment, managed=managed)


def leave(session: SparkSession, parts: Sequence[str], storage: Storage, *, managed: bool) -> None:
    """Take an entry back. Not with the files of a table that another writer has written to."""
    if not managed or not storage.exists(PROPERTIES_FILE):
        drop_entry(session, parts)


@contextmanager
def entered(
    session: SparkSession, parts: Sequence[str], path: str, schema: StructType, *, managed: bool
) -> Iterator[None]:
    """Have a table in the catalog that the block writes: before it, as the folder of a table without a location must
    be empty then; and not after it, if the block leaves no table. Its columns are those of the first write.

    Raises StatementError when there is no such database
    """
    require_database(session, parts[0])
    storage = storage_for(path)
    stored = storage.exists(PROPERTIES_FILE)
    if stored and managed:
        raise StatementError(f"there is a table at {path} already, whose folder a table {parts[-1]} would take")
    columns = open_table(path, spark=session).snapshot().schema if stored else schema
    enter(session, parts, path, columns, {}, managed=managed)
    with ExitStack() as undo:
        undo.callback(leave, session, parts, storage, managed=managed)
        yield
        undo.pop_all()


def refuse_taken(session: SparkSession, name: Name, parts: Sequence[str]) -> None:
    """Raises StatementError on a name that another table or view has, and that of an entry without its table."""
    entry = catalog_table(session, parts)
    if entry is not None and entry.ours:
        refuse_debris(name, entry)
    if entry is not None:
        raise StatementError(f"[TABLE_OR_VIEW_ALREADY_EXISTS] {name} is {entry.kind} already")


def follow_columns(session: SparkSession, parts: Sequence[str]) -> None:
    """Have the entry of a table, if it has one, say which columns the table has now. A sync does so for its own."""
    table = named_table(session, parts)
    if table is None or not table.entry or not is_noted(session, parts):
        return
    declared = declared_schema(load_state(storage_for(table.path)))
    if declared is not None:
        columns = with_meta_columns(to_spark(declared))
        path = table.path.removeprefix("file://").removeprefix("file:")  # the catalog puts the scheme before it
        replace_columns(session, qualified(session, parts), path, columns)


def is_noted(session: SparkSession, parts: Sequence[str]) -> bool:
    """Whether the entry was made by `make_entry`, so that Spark by itself can read its table."""
    return noted_path(spark_table(session, entry_name(qualified(session, parts))).schema) is not None


def refuse_debris(name: Name, entry: CatalogTable) -> None:
    """Raises StatementError when an entry says that it is of a table of ours, and there is none."""
    if entry.path and not storage_for(entry.path).exists(PROPERTIES_FILE):
        raise without_table(name, entry.path)


def require_entries(session: SparkSession, statement: Text, query: Text) -> None:
    """Raises StatementError when a view that Spark keeps would read tables of ours that its catalog does not know."""
    for parts in dict.fromkeys(table_names(query)):
        table = named_table(session, parts)
        if table is None:
            continue
        name = Name(parts, parts[-1])
        if not table.entry:
            raise statement.unreadable(
                f"a view that stays needs tables that Spark's catalog has, and {name} is none of them. After "
                "hoodie.register(spark), CREATE TABLE name USING hudi LOCATION '…' gives a table its entry; "
                "CREATE TEMPORARY VIEW takes any table"
            )
        if not is_noted(session, parts):
            raise statement.unreadable(
                f"the entry of {name} was not made by CREATE TABLE of this library, so that Spark by itself cannot "
                "read it for a view that stays. CREATE TEMPORARY VIEW takes it"
            )
