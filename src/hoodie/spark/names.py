"""Tables by name: a registry in the session's settings, the session's catalog, and the tables of a database's folder.

A name is a setting, `spark.hoodie.catalog.<name>` = path, so that spark-defaults can hold it; one registered by a call
lives as long as its session. In the catalog are the entries that a sync made (`hoodie.spark.catalog`). A name without a
database is one of the session's current database, in the registry as well, where a plain name is one of `default`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from pyspark.sql import SparkSession

from hoodie.config.table import PROPERTIES_FILE
from hoodie.errors import InvalidInput, StatementError, UnsupportedTable
from hoodie.expressions.text import tick
from hoodie.spark.catalog import SESSION_CATALOG, catalog_table, checked, current_database
from hoodie.spark.own_sql import forget_foreign
from hoodie.spark.session import require_session
from hoodie.storage import storage_for

PREFIX = "spark.hoodie.catalog."
#: What stands before a path in backticks: hudi.`/data/trips`.
PROVIDERS = ("hudi", "hoodie")
_DEFAULT = "default"
#: Properties of entries that say what the table is: it says so itself.
_WRITE = "hoodie.datasource.write."
_OF_TABLE = (
    *("hoodie.table.", "hoodie.database.", "hoodie.query.", f"{_WRITE}recordkey.", f"{_WRITE}partitionpath."),
    *(f"{_WRITE}precombine.", f"{_WRITE}keygenerator.", f"{_WRITE}hive_style_partitioning", f"{_WRITE}table."),
    *(f"{_WRITE}payload.", "hoodie.compaction.payload.", "hoodie.record.merge.", "hoodie.write.record.merge."),
)


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that a name stands for.

    read_optimized  the name is one of queries of the newest base files alone
    entry           the name is an entry of the session's catalog
    options         `hoodie.*` that the entry's properties say, for statements on the table
    """

    path: str
    read_optimized: bool = False
    entry: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


def register_table(session: SparkSession, name: str, location: str | os.PathLike[str]) -> None:
    """Let SQL and `open_table` call the table at a path by a name, in this session. The same name again replaces it.

    name      `trips`, of the current database, or `db.trips`; capitals make no difference
    location  its path
    Raises    InvalidInput on a name of other characters
    """
    require_session(session, "register_table")
    if not isinstance(location, (str, os.PathLike)) or not os.fspath(location):
        raise InvalidInput(f"location={location!r}: expected the path of a table")
    session.conf.set(PREFIX + _keys(session, _checked_name(name))[0], os.fspath(location))
    forget_foreign(session)


def unregister_table(session: SparkSession, name: str) -> None:
    """Forget a name. The table stays as it is."""
    require_session(session, "unregister_table")
    for key in _keys(session, _checked_name(name)):
        session.conf.unset(PREFIX + key)


def registered_path(session: SparkSession, name: str) -> str | None:
    """The path that a name stands for; None when it is not registered."""
    if "/" in name:
        return None
    for key in _keys(session, name.lower()):
        path = session.conf.get(PREFIX + key, None)
        if path is not None:
            return path
    return None


def registered_names(session: SparkSession, database: str) -> list[str]:
    """The names that the registry has of a database."""
    names = {key.removeprefix(PREFIX) for key in session.conf.getAll if key.startswith(PREFIX)}
    prefix = f"{database.lower()}."
    own = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    return sorted(own | {name for name in names if "." not in name and database.lower() == _DEFAULT})


def _keys(session: SparkSession, name: str) -> tuple[str, ...]:
    """What the registry may have a name in small letters by, the form that is written first."""
    database, _, table = name.rpartition(".")
    database = database or current_database(session) or _DEFAULT
    return (table, f"{database}.{table}") if database == _DEFAULT else (f"{database}.{table}",)


def qualified(session: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    """A name with its database: that of a plain name is the current one, unless another catalog than Spark's own is."""
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        return tuple(parts[1:])
    if len(parts) > 1:
        return tuple(parts)
    database = current_database(session)
    return tuple(parts) if database is None else (database, *parts)


def managed_path(session: SparkSession, parts: Sequence[str]) -> str:
    """Where a table without a location of its own is, or would be: in the folder of its database.

    parts   a name of one or two parts
    Raises  StatementError when there is no such database, or the session's current catalog is not Spark's own
    """
    *named, table = parts
    database = named[0] if named else current_database(session)
    if database is None:
        raise StatementError(
            f"{table}: the current catalog is {session.catalog.currentCatalog()}, which takes no table of Hudi: "
            "give the table a LOCATION, or a name with a database of spark_catalog"
        )
    require_database(session, database)
    folder = unquote(session.catalog.getDatabase(database).locationUri)  # Spark has it as a URI
    return f"{folder.removeprefix('file://').removeprefix('file:').rstrip('/')}/{table.lower()}"


def require_database(session: SparkSession, database: str) -> None:
    """Raises StatementError when the session's catalog has no such database."""
    if not session.catalog.databaseExists(f"{SESSION_CATALOG}.{tick(database)}"):
        raise StatementError(f"[SCHEMA_NOT_FOUND] there is no database {database}: CREATE DATABASE {database} makes it")


def named_table(session: SparkSession, parts: Sequence[str]) -> NamedTable | None:
    """The table that SQL names; None: no table of ours has the name.

    parts   ("hudi", "/data/trips"), or a name of one or two parts, or of three with Spark's own catalog before it
    Raises  UnsupportedTable when the catalog's entry lacks what it takes to read it right

    Looks at temporary views, which are Spark's, then in the registry, in the session's catalog, and in the folder of
    the name's database.
    """
    if len(parts) == 2 and parts[0].lower() in PROVIDERS:
        return NamedTable(parts[1])
    if len(parts) == 3:
        parts = qualified(session, parts)
    if len(parts) > 2 or not all(parts):
        return None
    entry = catalog_table(session, parts)
    if entry is not None and entry.temporary:
        return None
    registered = registered_path(session, ".".join(parts))
    if registered is not None:
        return NamedTable(registered)
    if entry is not None:
        if not entry.ours:
            return None
        options = {key: value for key, value in entry.properties.items() if _is_for_statements(key)}
        return NamedTable(checked(entry).path, entry.read_optimized, entry=True, options=options)
    try:
        path = managed_path(session, parts)
    except StatementError:  # no such database: the name is nobody's
        return None
    return NamedTable(path) if storage_for(path).exists(PROPERTIES_FILE) else None


def _is_for_statements(key: str) -> bool:
    """Whether a property of an entry is an option of statements, and not a setting that the table itself has."""
    return key.startswith("hoodie.") and not key.startswith(_OF_TABLE)


def located(session: SparkSession, location: str) -> str:
    """The path of what `open_table` is given: a path, or a name of the registry or of the session's catalog.

    Raises  UnsupportedTable when the catalog's entry is no table of Hudi, or lacks what it takes to read it right;
            InvalidInput when a folder of that name has a table, too, elsewhere
    """
    registered = registered_path(session, location)
    if registered is not None:
        return registered
    parts = location.split(".")
    if len(parts) > 2 or not all(part.isidentifier() for part in parts):
        return location
    folder = storage_for(location)
    has_table = folder.exists(PROPERTIES_FILE)
    if has_table and len(parts) == 1:
        return location
    entry = catalog_table(session, parts)
    if entry is None:
        return location
    if not entry.ours:
        raise UnsupportedTable(f"{location} is {entry.kind} in the session's catalog, no table of Hudi")
    path = checked(entry).path
    if has_table and storage_for(path).root != folder.root:
        raise InvalidInput(
            f"{location!r} is a folder with a table and also an entry of the session's catalog, which is at {path}: "
            f"give the path of the one that is meant, such as './{location}'"
        )
    return path


def _checked_name(name: str) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"table name {name!r}: expected text, such as 'trips'")
    parts = name.lower().split(".")
    if not 0 < len(parts) < 3 or not all(part.replace("_", "").isalnum() for part in parts):
        raise InvalidInput(f"table name {name!r}: expected letters, digits and underscores, such as trips or db.trips")
    return name.lower()
