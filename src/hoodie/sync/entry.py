"""Which entries a table gets in a metastore, and what each of them says. Pure rules.

Source: docs/format/engines.md 1 and 2.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config.sync import HiveSyncOptions, MetaSyncOptions, TableStrategy
from hoodie.errors import InvalidOption, SyncRefused
from hoodie.sync.columns import hive_columns, spark_properties

INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
REALTIME_INPUT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
OLD_INPUT = "com.uber.hoodie.hadoop.HoodieInputFormat"
OLD_REALTIME_INPUT = "com.uber.hoodie.hadoop.realtime.HoodieRealtimeInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"

#: Input formats of entries that a sync may change: it made them, or another writer's sync did.
KNOWN_INPUTS = frozenset({INPUT, REALTIME_INPUT, OLD_INPUT, OLD_REALTIME_INPUT})

READ_OPTIMIZED = "hoodie.query.as.ro.table"

_NAME = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class EntryName:
    """One entry of a table.

    realtime        its input format merges logs
    read_optimized  what Spark is told of it; None: nothing
    """

    name: str
    realtime: bool
    read_optimized: bool


@dataclass(frozen=True, slots=True)
class SyncedEntry:
    """What an entry is to say.

    columns, keys     name -> Hive's type, in order
    comments          of columns, by name in lower case
    properties, serde the table's and the serde's parameters
    plain             which one of those for engines without Hudi's formats; "": an entry of Hudi
    query             of a view
    """

    database: str
    name: str
    input_format: str
    location: str
    columns: Mapping[str, str]
    keys: Mapping[str, str]
    comments: Mapping[str, str]
    properties: Mapping[str, str]
    serde: Mapping[str, str]
    managed: bool
    output_format: str = OUTPUT
    serde_class: str = SERDE
    plain: str = ""
    query: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"


def entry_names(table: str, *, merge_on_read: bool, hive: HiveSyncOptions, meta: MetaSyncOptions) -> list[EntryName]:
    """The entries that a table gets, in the order in which they are written."""
    if not merge_on_read:
        return [EntryName(table, False, False)]
    if hive.strategy is TableStrategy.RO:
        return [EntryName(table, False, True)]
    if hive.strategy is TableStrategy.RT:
        return [EntryName(table, True, False)]
    names = [EntryName(table if hive.skip_ro_suffix else f"{table}_ro", False, True)]
    names.append(EntryName(f"{table}_rt", True, False))
    return [*names, EntryName(table, True, False)] if meta.plain_name else names


def desired_entry(
    name: EntryName,
    database: str,
    location: str,
    schema: pa.Schema,
    partition_fields: Sequence[str],
    comments: Mapping[str, str],
    hive: HiveSyncOptions,
    spark_version: str = "",
) -> SyncedEntry:
    """An entry as it is to be.

    location          of the table, as a URI
    schema            meta columns first
    Raises  SyncRefused on columns that Hive cannot hold; InvalidOption on malformed properties
    """
    columns, keys = hive_columns(schema, partition_fields, timestamps=hive.timestamps, omit_meta=hive.omit_meta)
    if not columns:
        raise SyncRefused(f"{database}.{name.name}", "the table has no columns yet: sync after its first commit")
    formats = (OLD_INPUT, OLD_REALTIME_INPUT) if hive.old_input_format else (INPUT, REALTIME_INPUT)
    properties = _lines(hive.table_properties, "table_properties")
    serde = {"serialization.format": "1", **_lines(hive.serde_properties, "serde_properties"), "path": location}
    if hive.as_datasource:
        fields = [field for field in schema if field.name in columns or field.name in keys]
        properties |= spark_properties(pa.schema(fields), partition_fields, hive.schema_piece, spark_version)
        serde[READ_OPTIMIZED] = str(name.read_optimized).lower()
    if not hive.managed:
        properties["EXTERNAL"] = "TRUE"
    return SyncedEntry(
        database=database,
        name=name.name,
        input_format=formats[name.realtime],
        location=location,
        columns=columns,
        keys=keys,
        comments=comments if hive.comments else {},
        properties=properties,
        serde=serde,
        managed=hive.managed,
    )


def check_name(name: str, what: str) -> None:
    """Raises SyncRefused on a database or table name that Hive does not take."""
    if not _NAME.fullmatch(name):
        raise SyncRefused(
            f"{what} {name!r}",
            "Hive takes names of letters, digits and '_' alone. Name another one with "
            f"hoodie.datasource.hive_sync.{what}",
        )


def _lines(text: str, what: str) -> dict[str, str]:
    lines = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise InvalidOption(f"hoodie.datasource.hive_sync.{what}: {line!r} is not key=value; one property a line")
        lines[key.strip()] = value.strip()
    return lines
