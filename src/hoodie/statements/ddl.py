"""Statements that define, alter, show and drop tables of ours."""

from pyspark.sql import DataFrame, SparkSession

from hoodie.api.table import open_table
from hoodie.config.table import PROPERTIES_FILE, PROPERTIES_FOLDER
from hoodie.errors import StatementError
from hoodie.spark.entries import drop_entry
from hoodie.spark.names import (
    PROVIDERS,
    managed_path,
    named_table,
    qualified,
    registered_names,
    registered_path,
    unregister_table,
)
from hoodie.statements.alter import (
    alter_table_columns,
    alters_columns,
    comment_on_column,
    comment_on_table,
    rename_table,
    set_table_properties,
    unset_table_properties,
)
from hoodie.statements.create import create_from_statement
from hoodie.statements.create_text import makes_ours
from hoodie.statements.cutting import Name, Text, rest_of
from hoodie.statements.describe import show_columns, show_create, show_properties
from hoodie.statements.names import table_if_ours
from hoodie.statements.partitions import alter_partitions, show_partitions, truncate
from hoodie.statements.rows import empty_result, opened, require_grammar
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage


def ddl(session: SparkSession, text: Text) -> DataFrame | None:
    """Carry the statement out, if it is about a table of ours; None: it is Spark's."""
    if text.word(0) == "SHOW":  # to sqlglot all that follows is one token
        return _show(session, rest_of(text))
    if text.is_about_index():
        return _index(session, text)
    match text.words(2):
        case ("CREATE", "TABLE"):
            return create_from_statement(session, text)
        case ("CREATE", "EXTERNAL") if makes_ours(text):
            if text.find("LOCATION") < 0:
                raise text.unreadable("CREATE EXTERNAL TABLE must be accompanied by LOCATION", 1)
            return create_from_statement(session, Text.of(f"CREATE {text.after(1)}"))
        case ("CREATE", "OR") if text.words(4)[2:] == ("REPLACE", "TABLE") and makes_ours(text):
            return create_from_statement(session, text)
        case ("REPLACE", "TABLE") if named_table(session, text.name(2)[0]):
            create = Text.of(f"CREATE OR {text}")
            return create_from_statement(session, create) if makes_ours(create) else None
        case ("COMMENT", "ON") if text.word(2) == "TABLE":
            return comment_on_table(session, text)
        case ("COMMENT", "ON") if text.word(2) == "COLUMN":
            return comment_on_column(session, text)
        case ("DROP", "TABLE"):
            return _drop(session, text)
        case ("DROP", "DATABASE" | "SCHEMA"):
            _refuse_tables_of(session, text)
        case ("ALTER", "TABLE"):
            return _alter(session, text)
        case ("TRUNCATE", "TABLE"):
            return truncate(session, text)
    return None


def _show(session: SparkSession, rest: Text) -> DataFrame | None:
    match (rest.word(0), rest.word(1)):
        case ("PARTITIONS", _):
            return show_partitions(session, rest)
        case ("TBLPROPERTIES", _):
            return show_properties(session, rest)
        case ("COLUMNS", _):
            return show_columns(session, rest)
        case ("CREATE", "TABLE"):
            return show_create(session, rest)
        case ("INDEXES", _):
            return _index(session, rest)
    return None


def _drop(session: SparkSession, text: Text) -> DataFrame | None:
    at, quiet = 2, text.words(4)[2:] == ("IF", "EXISTS")
    parts, end = text.name(at + 2 * quiet)
    table = named_table(session, parts)
    if len(parts) == 2 and parts[0].lower() in PROVIDERS and text.word(end) != "PURGE":
        raise text.unreadable("a path is no name to forget: DROP TABLE … PURGE removes the table's files", 2)
    if table is None:
        return None
    require_grammar(session, text)
    if table.entry:  # Spark drops it, and the files of a table without a location
        purged = text.word(end) == "PURGE" and storage_for(table.path).exists(PROPERTIES_FILE)
        drop_entry(session, qualified(session, parts))
        if purged and storage_for(table.path).exists(PROPERTIES_FILE):
            _remove(storage_for(table.path))
        return empty_result(session)
    path, name = table.path, ".".join(qualified(session, parts))
    external = registered_path(session, name) is not None
    if external:
        unregister_table(session, name)
    if not external or text.word(end) == "PURGE":
        open_table(path, spark=session)  # what is no table is not removed
        _remove(storage_for(path))
    return empty_result(session)


def _refuse_tables_of(session: SparkSession, text: Text) -> None:
    """DROP DATABASE is Spark's. It knows no table of ours that has no entry in the catalog, and would take an empty
    database's folder away with them."""
    at = 2 + 2 * (text.words(4)[2:] == ("IF", "EXISTS"))
    try:
        parts, end = text.name(at)
    except StatementError:  # such as IDENTIFIER('name')
        return
    database = parts[-1].lower()
    if len(parts) > 2 or not session.catalog.databaseExists(database):
        return
    names = registered_names(session, database)
    if text.word(end) == "CASCADE":
        for name in names:
            unregister_table(session, f"{database}.{name}")
        return
    storage = storage_for(managed_path(session, (database, "")))
    folders = [entry.name for entry in storage.list("") if entry.is_dir]
    if tables := sorted({*names, *(name for name in folders if storage.exists(f"{name}/{PROPERTIES_FILE}"))}):
        raise StatementError(
            f"[SCHEMA_NOT_EMPTY] database {database} has tables of Hudi: {', '.join(tables)}. DROP TABLE them first, "
            "or DROP DATABASE … CASCADE"
        )


def _remove(storage: Storage) -> None:
    """Remove a table's files, those that make it a table last: what a crash leaves says that files
    are missing, rather than pass for an empty table."""
    entries = sorted(storage.list(""), key=lambda entry: entry.name == PROPERTIES_FOLDER)
    for entry in entries:
        if entry.is_dir:
            storage.delete_tree(entry.name)
        else:
            storage.delete(entry.name)


def _alter(session: SparkSession, text: Text) -> DataFrame | None:
    parts, at = text.name(2)
    name = Name(parts, parts[-1])
    if text.words(at + 2)[at:] == ("UNSET", "TBLPROPERTIES") and table_if_ours(session, parts) is not None:
        return unset_table_properties(session, name, text, at + 2)  # one may be why the table cannot be opened
    table = opened(session, name)
    if table is None:
        return None
    if alters_columns(text, at):
        return alter_table_columns(session, table, name, text, at)
    if (frame := alter_partitions(session, table, text, at)) is not None:
        return frame
    match (text.word(at), text.word(at + 1)):
        case ("RENAME", "TO"):
            return rename_table(session, name, text, at)
        case ("SET", "TBLPROPERTIES"):
            return set_table_properties(session, table, name, text, at + 2)
    raise text.unreadable(
        "ALTER TABLE takes RENAME TO, ADD, ALTER, RENAME and DROP COLUMN, ADD and DROP PARTITION, SET and UNSET "
        "TBLPROPERTIES",
        at,
    )


def _index(session: SparkSession, text: Text) -> DataFrame | None:
    """Statements on indexes are refused: no query of ours would use one."""
    at = text.find("ON", "FROM", "IN")
    if at < 0 or at + 1 >= len(text.tokens):
        return None
    parts, _ = text.name(at + 1)
    if table_if_ours(session, parts) is None:
        return None
    raise text.unreadable(
        f"{Name(parts, parts[-1])} has no indexes that SQL makes: filters use the statistics of columns in "
        "the files, and hoodie.index.type says how a write finds its keys"
    )


def repair_statement(session: SparkSession, text: Text) -> DataFrame | None:
    """MSCK REPAIR TABLE and ANALYZE TABLE: partitions and statistics of a table of ours are in its own files, so that
    there is nothing to do. None: the table is Spark's."""
    text = rest_of(text)
    parts, _ = text.name(1 + (text.word(0) == "REPAIR"))
    if opened(session, Name(parts, parts[-1])) is None:
        return None
    require_grammar(session, text)
    return empty_result(session)
