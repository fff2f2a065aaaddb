"""Tables by name: a registry in the session's settings, and the tables of the warehouse folder.

A name is a setting, `spark.hoodie.catalog.<name>` = path, so that spark-defaults can hold it; one registered by a call
lives as long as its session. Spark's own catalog is not asked: of an entry of provider hudi it hands no path to Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from hoodie.errors import InvalidInput
from hoodie.storage import storage_for

PREFIX = "spark.hoodie.catalog."
#: What stands before a path in backticks: hudi.`/data/trips`.
PROVIDERS = ("hudi", "hoodie")


def register_table(session: SparkSession, name: str, location: str) -> None:
    """Let SQL and `open_table` call the table at a path by a name, in this session. The same name again replaces it.

    name      `trips` or `db.trips`; capitals make no difference
    location  its path
    Raises    InvalidInput on a name of other characters
    """
    session.conf.set(PREFIX + _checked(name), location)


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


def path_of(session: SparkSession, parts: Sequence[str]) -> str | None:
    """The path of the table that SQL names; None: no table of ours has the name.

    parts  ("hudi", "/data/trips"), or a name of one or two parts

    Looks in the registry, then whether Spark knows the name, then in the warehouse folder.
    """
    if len(parts) == 2 and parts[0].lower() in PROVIDERS:
        return parts[1]
    name = ".".join(parts)
    if len(parts) > 2 or not all(parts):
        return None
    found = registered_path(session, name)
    if found is not None:
        return found
    if session.catalog.tableExists(name):
        return None
    path = managed_path(session, name)
    return path if storage_for(path).exists(".hoodie/hoodie.properties") else None


def _checked(name: str) -> str:
    parts = name.lower().split(".")
    if not 0 < len(parts) < 3 or not all(part.replace("_", "").isalnum() for part in parts):
        raise InvalidInput(f"table name {name!r}: expected letters, digits and underscores, such as trips or db.trips")
    return name.lower()
