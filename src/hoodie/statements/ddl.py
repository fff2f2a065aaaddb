"""ALTER, DROP and TRUNCATE TABLE, and SHOW PARTITIONS, of tables of ours; CREATE TABLE is beside."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.api.table import HoodieTable, open_table
from hoodie.config.table import CDC, CDC_MODE, PROPERTIES_FILE, PROPERTIES_FOLDER
from hoodie.errors import StatementError
from hoodie.keygen.keygen import NULL_PARTITION, unescape_path
from hoodie.model.meta import META_COLUMNS
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
from hoodie.spark.types import nullable
from hoodie.statements.create import create, fields_of, makes_ours
from hoodie.statements.cutting import Name, Text
from hoodie.statements.entry import widen_entry
from hoodie.statements.rows import nothing, opened, table_rows
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage
from hoodie.table.change_logging import log_change_data
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.view.load import discover_partitions


def ddl(session: SparkSession, text: Text) -> DataFrame | None:
    """Carry the statement out, if it is about a table of ours; None: it is Spark's."""
    if text.word(0) == "SHOW":  # to sqlglot all that follows is one token
        rest = Text.of(str(text.after(0)))
        return _show_partitions(session, rest) if rest.word(0) == "PARTITIONS" else None
    match text.words(2):
        case ("CREATE", "TABLE"):
            return create(session, text)
        case ("CREATE", "OR") if "USING" in text.words(12) and text.words(4)[3] == "TABLE":
            if makes_ours(text):
                raise text.unreadable("CREATE OR REPLACE TABLE is not supported: DROP TABLE first", 1)
        case ("DROP", "TABLE"):
            return _drop(session, text)
        case ("DROP", "DATABASE" | "SCHEMA"):
            _refuse_tables_of(session, text)
        case ("ALTER", "TABLE"):
            return _alter(session, text)
        case ("TRUNCATE", "TABLE"):
            return _truncate(session, text)
    return None


def _drop(session: SparkSession, text: Text) -> DataFrame | None:
    at, quiet = 2, text.words(4)[2:] == ("IF", "EXISTS")
    parts, end = text.name(at + 2 * quiet)
    found = named_table(session, parts)
    if len(parts) == 2 and parts[0].lower() in PROVIDERS and text.word(end) != "PURGE":
        raise text.unreadable("a path is no name to forget: DROP TABLE … PURGE removes the table's files", 2)
    if found is None:
        return None
    if found.entry:  # Spark drops it, and the files of a table without a location
        purged = text.word(end) == "PURGE" and storage_for(found.path).exists(PROPERTIES_FILE)
        drop_entry(session, qualified(session, parts))
        if purged and storage_for(found.path).exists(PROPERTIES_FILE):
            _remove(storage_for(found.path))
        return nothing(session)
    path, name = found.path, ".".join(qualified(session, parts))
    external = registered_path(session, name) is not None
    if external:
        unregister_table(session, name)
    if not external or text.word(end) == "PURGE":
        open_table(path, spark=session)  # what is no table is not removed
        _remove(storage_for(path))
    return nothing(session)


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
    table = opened(session, name)
    if table is None:
        return None
    if text.word(at) == "ADD" and text.word(at + 1) in ("COLUMN", "COLUMNS"):
        return _add_columns(session, table, name, text, at + 2)
    quiet = text.word(at) == "DROP" and text.words(at + 3)[at + 1 :] == ("IF", "EXISTS")
    if text.word(at) == "DROP" and text.word(at + 1 + 2 * quiet) == "PARTITION":
        if paths := _partition_paths(table, text, at + 1 + 2 * quiet, quiet):
            table.delete_partitions(paths)
        return nothing(session)
    if text.words(at + 2)[at:] == ("SET", "TBLPROPERTIES"):
        return _set_properties(session, table, text, at + 2)
    raise text.unreadable("of ALTER TABLE there are ADD COLUMNS, DROP PARTITION and SET TBLPROPERTIES", at)


def _set_properties(session: SparkSession, table: HoodieTable[DataFrame], text: Text, at: int) -> DataFrame:
    given: dict[str, str] = {}
    for item in text.inside(at)[0].split():
        equals = item.find("=")
        name = "".join(token.text for token in item.tokens[:equals])
        if equals < 1 or len(item.tokens) != equals + 2:
            raise item.unreadable("expected 'property' = 'value'")
        if name not in (CDC, CDC_MODE):
            raise item.unreadable(f"of a table that is there, {CDC} can be set, and with it {CDC_MODE}")
        given[name] = item.tokens[equals + 1].text.upper()
    if given.get(CDC) != "TRUE":
        raise text.unreadable(f"expected {CDC} = true: change data can be turned on, not off", at)
    log_change_data(table.storage, Settings.read(table.options).writers, given.get(CDC_MODE, ""))
    return nothing(session)


def _add_columns(session: SparkSession, table: HoodieTable[DataFrame], name: Name, text: Text, at: int) -> DataFrame:
    added = text.inside(at)[0] if text.word(at) == "(" else text.part(text.tokens[at].start, text.end)
    for item in added.split():
        if item.find("AFTER", "FIRST") >= 0:
            raise item.unreadable("columns are added behind the others: FIRST and AFTER are not supported")
    present = table.snapshot().schema
    new = fields_of(added)
    lower = {name.lower() for name in present.names}
    if again := [name for name in new.names if name.lower() in lower]:
        raise added.unreadable(f"the table has columns {', '.join(again)} already")
    columns = [field for field in present.fields if field.name not in META_COLUMNS]
    table.upsert(session.createDataFrame([], nullable(StructType([*columns, *new.fields]))))
    widen_entry(session, name.parts, new.fields)
    return nothing(session)


def _truncate(session: SparkSession, text: Text) -> DataFrame | None:
    parts, at = text.name(2)
    table = opened(session, Name(parts, parts[-1]))
    if table is None:
        return None
    if text.word(at) == "PARTITION":
        table.delete_partitions(_partition_paths(table, text, at))
    elif paths := _paths(table):
        table.delete_partitions(paths)
    return nothing(session)


def _paths(table: HoodieTable[DataFrame]) -> list[str]:
    """The partition paths that hold files."""
    return sorted({slice_.group.partition for slice_ in table.file_slices()})


def _partition_paths(table: HoodieTable[DataFrame], text: Text, at: int, quiet: bool = False) -> list[str]:
    """The path of `PARTITION (dt = '2024-01-31')`, whose values are literals; none when `quiet` and there is none.

    at      the place of PARTITION
    Raises  StatementError
    """
    if text.word(at + 1) != "(":
        raise text.unreadable("expected PARTITION (column = value)", at)
    spec, _ = text.inside(at + 1)
    given = _given(spec)
    if found := [path for path in discover_partitions(table.storage) if _spec(table, path) == given]:
        return found
    if quiet:
        return []
    raise spec.unreadable(f"the table has no such partition; SHOW PARTITIONS lists those of {table.path}")


def _given(spec: Text) -> dict[str, str]:
    """What `dt = '2024-01-31', city = 'oslo'` says: column in lower case -> text of the value."""
    given = {}
    for item in spec.split():
        parts, behind = item.name()
        value = _literal(item, behind + 1) if item.word(behind) == "=" else None
        if value is None:
            raise item.unreadable("expected partition column = value")
        given[parts[-1].lower()] = value
    return given


def _literal(item: Text, at: int) -> str | None:
    """The text of a literal that ends an item: '2024-01-31', DATE '2024-01-31', 7, -7 or NULL, which has the partition
    of the empty text; None: it is none."""
    before, last = item.word(at), item.tokens[-1]
    is_value = item.word(-1) != ""  # not quoted
    if len(item.tokens) == at + 1:
        return NULL_PARTITION if before == "NULL" or not last.text else last.text
    if len(item.tokens) != at + 2:
        return None
    if before == "-" and is_value:
        return f"-{last.text}"
    return last.text if before in ("DATE", "TIMESTAMP") and not is_value else None


def _spec(table: HoodieTable[DataFrame], path: str) -> dict[str, str]:
    config = load_state(table.storage).config
    values = [part.partition("=")[2] if config.hive_style else part for part in path.split("/")]
    if config.url_encode:
        values = [unescape_path(value) for value in values]
    return dict(zip((name.partition(":")[0].lower() for name in config.partition_by), values, strict=False))


def _show_partitions(session: SparkSession, text: Text) -> DataFrame | None:
    parts, at = text.name(1)
    table = opened(session, Name(parts, parts[-1]))
    if table is None:
        return None
    wanted = _given(text.inside(at + 1)[0]).items() if text.words(at + 2)[at:] == ("PARTITION", "(") else {}.items()
    specs = [_spec(table, path) for path in _paths(table) if path]
    rows = [("/".join(f"{name}={value}" for name, value in spec.items()),) for spec in specs if wanted <= spec.items()]
    return table_rows(session, rows, "partition string")
