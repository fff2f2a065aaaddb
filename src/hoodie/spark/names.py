"""Tables by name: a registry in the session's settings, the session's catalog, and the tables of the warehouse folder.

A name is a setting, `spark.hoodie.catalog.<name>` = path, so that spark-defaults can hold it; one registered by a call
lives as long as its session. In the catalog are the entries that a sync made (`hoodie.spark.catalog`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from hoodie.config.table import PROPERTIES_FILE
from hoodie.errors import InvalidInput, UnsupportedTable
from hoodie.spark.catalog import catalog_table, checked
from hoodie.storage import storage_for

PREFIX = "spark.hoodie.catalog."
#: What stands before a path in backticks: hudi.`/data/trips`.
PROVIDERS = ("hudi", "hoodie")


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that a name stands for.

    read_optimized  the name is one of queries of the newest base files alone
    entry           the name is an entry of the session's catalog, which a sync made
    """

    path: str
    read_optimized: bool = False
    entry: bool = False


def register_table(session: SparkSession, name: str, location: str | os.PathLike[str]) -> None:
    """Let SQL and `open_table` call the table at a path by a name, in this session. The same name again replaces it.

    name      `trips` or `db.trips`; capitals make no difference
    location  its path
    Raises    InvalidInput on a name of other characters
    """
    session.conf.set(PREFIX + _checked(name), os.fspath(location))


def unregister_table(session: SparkSession, name: str) -> None:
    """Forget a name. The table stays as it is."""
    session.conf.unset(PREFIX + _checked(name))


def registered_path(session: SparkSession, name: str) -> str | None:
    """The path that a name stands for; None when it is not registered."""
    if "/" in name:
        return None
    for key in (name.lower(), name.lower().removeprefix("default.")):
        found = session.conf.get(PREFIX + key, None)
        if found is not None:
            return found
    return None


def managed_path(session: SparkSession, name: str) -> str:
    """Where a table of that name is, or would be, in the warehouse folder."""
    database, _, table = name.lower().rpartition(".")
    warehouse = (session.conf.get("spark.sql.warehouse.dir", None) or "spark-warehouse").removeprefix("file:")
    folder = f"{database}.db/" if database and database != "default" else ""
    return f"{warehouse.rstrip('/')}/{folder}{table}"


def named_table(session: SparkSession, parts: Sequence[str]) -> NamedTable | None:
    """The table that SQL names; None: no table of ours has the name.

    parts   ("hudi", "/data/trips"), or a name of one or two parts
    Raises  UnsupportedTable when the catalog's entry lacks what it takes to read it right

    Looks in the registry, then in the session's catalog, then in the warehouse folder.
    """
    if len(parts) == 2 and parts[0].lower() in PROVIDERS:
        return NamedTable(parts[1])
    name = ".".join(parts)
    if len(parts) > 2 or not all(parts):
        return None
    registered = registered_path(session, name)
    if registered is not None:
        return NamedTable(registered)
    found = catalog_table(session, parts)
    if found is not None:
        return NamedTable(checked(found).path, found.read_optimized, entry=True) if found.ours else None
    path = managed_path(session, name)
    return NamedTable(path) if storage_for(path).exists(PROPERTIES_FILE) else None


def located(session: SparkSession, given: str) -> str:
    """The path of what `open_table` is given: a path, or a name of the registry or of the session's catalog.

    Raises  UnsupportedTable when the catalog's entry is no table of Hudi, or lacks what it takes to read it right;
            InvalidInput when a folder of that name has a table, too, elsewhere
    """
    registered = registered_path(session, given)
    if registered is not None:
        return registered
    parts = given.split(".")
    if len(parts) > 2 or not all(part.isidentifier() for part in parts):
        return given
    folder = storage_for(given)
    there = folder.exists(PROPERTIES_FILE)
    if there and len(parts) == 1:
        return given
    found = catalog_table(session, parts)
    if found is None:
        return given
    if not found.ours:
        kind = f"a table of the format {found.provider}" if found.provider else "a view"
        raise UnsupportedTable(f"{given} is {kind} in the session's catalog, no table of Hudi")
    path = checked(found).path
    if there and storage_for(path).root != folder.root:
        raise InvalidInput(
            f"{given!r} is a folder with a table and also an entry of the session's catalog, which is at {path}: give "
            f"the path of the one that is meant, such as './{given}'"
        )
    return path


def _checked(name: str) -> str:
    parts = name.lower().split(".")
    if not 0 < len(parts) < 3 or not all(part.replace("_", "").isalnum() for part in parts):
        raise InvalidInput(f"table name {name!r}: expected letters, digits and underscores, such as trips or db.trips")
    return name.lower()
