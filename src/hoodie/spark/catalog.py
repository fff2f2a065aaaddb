"""What the session's catalog says of a name: the entry that a sync made, as far as Spark lets Python see it.

Spark hands no path to Python for an entry of the provider hudi, and most of its calls fail on one without Hudi's jar
(`DATA_SOURCE_NOT_FOUND`). SHOW TABLE EXTENDED alone tells what the entry says without looking its provider up.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from hoodie.errors import UnsupportedTable
from hoodie.spark.own_sql import spark_sql

SESSION_CATALOG = "spark_catalog"
_PROVIDERS = ("hudi", "org.apache.hudi", "hoodie")
_INPUTS = ("org.apache.hudi.", "com.uber.hoodie.")
_IDENTIFIER = re.compile(r"\w+", re.ASCII)
_READ = ("Provider", "Location", "InputFormat", "Storage Properties", "Table Properties")
#: What statements say of an entry as Spark does.
_TOLD = ("Database", "Table", "Created Time", "Last Access", "Created By", "Type", "Provider", "Comment")
#: What Spark itself puts into the properties of a table.
_OF_SPARK = ("provider", "owner", "location", "option.", "transient_lastDdlTime", "spark.sql.")


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table or view that the catalog has.

    provider        "" of a view
    path            of the table's folder; "" where the entry has none
    input_format    Hive's class; "" where Spark does not say
    read_optimized  the entry is for queries of the newest base files alone
    temporary       it is a view of the session
    properties      that somebody gave it
    details         what Spark says of it besides: its database, when it was created
    """

    name: str
    provider: str = ""
    path: str = ""
    input_format: str = ""
    read_optimized: bool = False
    temporary: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What it is, for errors."""
        return f"a table of the format {self.provider}" if self.provider else "a view"

    @property
    def ours(self) -> bool:
        """Whether it is a table of Hudi, by whatever it says of itself."""
        return self.provider in _PROVIDERS or self.input_format.startswith(_INPUTS)


def current_database(session: SparkSession) -> str | None:
    """The database that names without one are of, in small letters; None where the current catalog is another one."""
    if session.catalog.currentCatalog() != SESSION_CATALOG:
        return None
    return session.catalog.currentDatabase().lower()


def catalog_table(session: SparkSession, parts: Sequence[str]) -> CatalogTable | None:
    """What the session's own catalog has by a name of one or two parts; None: nothing. One call of Spark, two where the
    name has a database. Raises UnsupportedTable when the text of the entry says something twice."""
    if not 0 < len(parts) < 3 or not all(_IDENTIFIER.fullmatch(part) for part in parts):
        return None
    if session.catalog.currentCatalog() != SESSION_CATALOG:
        return None
    *database, name = parts
    if database and not session.catalog.databaseExists(database[0]):
        return None
    where = f" IN {SESSION_CATALOG}.`{database[0]}`" if database else ""
    rows = spark_sql(session, f"SHOW TABLE EXTENDED{where} LIKE '{name}'").collect()
    matches = [row for row in rows if row["tableName"].lower() == name.lower()]
    views = [row for row in matches if row["isTemporary"]]
    if views and not database:
        return CatalogTable(name, temporary=True)
    entries = [row for row in matches if not row["isTemporary"]]
    return parse_entry(entries[0]["information"], ".".join(parts)) if entries else None


def parse_entry(information: str, name: str) -> CatalogTable:
    """The entry from the text that Spark has of it, a line `Key: value` for each of its parts."""
    parts_read: dict[str, str] = {}
    details: dict[str, str] = {}
    for line in information.partition("\nSchema: ")[0].splitlines():
        key, colon, value = line.partition(": ")
        if colon and key in _TOLD:
            details.setdefault(key, value)
        if not colon or key not in _READ:
            continue
        if key in parts_read:
            raise UnsupportedTable(f"catalog entry {name} says its {key} twice: open the table by its path")
        parts_read[key] = value
    options = _pairs(parts_read.get("Storage Properties", ""))
    properties = {
        key: value
        for key, value in _pairs(parts_read.get("Table Properties", "")).items()
        if not key.startswith(_OF_SPARK)
    }
    return CatalogTable(
        name,
        parts_read.get("Provider", "").lower(),
        parts_read.get("Location", ""),
        parts_read.get("InputFormat", ""),
        options.get("hoodie.query.as.ro.table", "").lower() == "true",
        properties=properties,
        details=details,
    )


def _pairs(text: str) -> dict[str, str]:
    """The properties in a text such as `[type=cow, note=a, b]`, whose commas Spark does not escape."""
    parts = re.split(r", (?=[^\s=,]+=)", text.removeprefix("[").removesuffix("]"))
    return dict(part.partition("=")[::2] for part in parts if part)


def checked(entry: CatalogTable) -> CatalogTable:
    """The entry, if it says where its table is and that other readers may not take it for plain files.

    Raises UnsupportedTable, saying what it lacks and how to sync it again
    """
    again = f"table.sync() writes it anew; until then open the table by its path{f', {entry.path}' * bool(entry.path)}"
    if entry.provider not in _PROVIDERS:
        raise UnsupportedTable(
            f"catalog entry {entry.name} has an input format of Hudi and not Spark's properties of a data source table "
            f"(hoodie.datasource.hive_sync.sync_as_datasource=false): Spark itself would read all file versions at "
            f"once. {again}"
        )
    if not entry.path:
        raise UnsupportedTable(f"catalog entry {entry.name} of the provider {entry.provider} has no path. {again}")
    return entry
