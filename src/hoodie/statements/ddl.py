"""CREATE, ALTER, DROP and TRUNCATE TABLE, and SHOW PARTITIONS, of tables of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp

from hoodie.api.table import HoodieTable, create_table, open_table
from hoodie.config.datasource import check_options
from hoodie.config.table import CDC, CDC_MODE, PROPERTIES_FOLDER
from hoodie.errors import StatementError
from hoodie.formats.avro.schema import to_avro
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.schema import stored_form
from hoodie.spark.merge.expressions import DIALECT
from hoodie.spark.names import (
    PROVIDERS,
    managed_path,
    named_table,
    register_table,
    registered_path,
    unregister_table,
)
from hoodie.spark.types import nullable, to_arrow
from hoodie.statements.cutting import Name, Text, check_grammar
from hoodie.statements.rows import nothing, opened, table_rows, with_tables
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage
from hoodie.table.change_logging import log_change_data
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.view.load import discover_partitions

_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_NAMES = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "precombinefield": "hoodie.datasource.write.precombine.field",
    "payloadclass": "hoodie.datasource.write.payload.class",
}


def ddl(session: SparkSession, text: Text) -> DataFrame | None:
    """Carry the statement out, if it is about a table of ours; None: it is Spark's."""
    if text.word(0) == "SHOW":  # to sqlglot all that follows is one token
        rest = Text.of(str(text.after(0)))
        return _show_partitions(session, rest) if rest.word(0) == "PARTITIONS" else None
    match text.words(2):
        case ("CREATE", "TABLE"):
            return _create(session, text)
        case ("CREATE", "OR") if "USING" in text.words(12) and text.words(4)[3] == "TABLE":
            if _provider(text) in PROVIDERS:
                raise text.unreadable("CREATE OR REPLACE TABLE is not supported: DROP TABLE first", 1)
        case ("DROP", "TABLE"):
            return _drop(session, text)
        case ("ALTER", "TABLE"):
            return _alter(session, text)
        case ("TRUNCATE", "TABLE"):
            return _truncate(session, text)
    return None


# --- create ---


@dataclass(frozen=True, slots=True)
class _Create:
    name: Name
    columns: str  # as DDL; "" for none
    partitions: tuple[str, ...]
    location: str
    options: Mapping[str, str]
    query: str


def _provider(text: Text) -> str:
    at = text.find("USING")
    return text.name(at + 1)[0][-1].lower() if at >= 0 and at + 1 < len(text.tokens) else ""


def _create(session: SparkSession, text: Text) -> DataFrame | None:
    if _provider(text) not in PROVIDERS:
        return None
    check_grammar(text)
    at, quiet = 2, text.words(5)[2:] == ("IF", "NOT", "EXISTS")
    at += 3 * quiet
    parts, at = text.name(at)
    name = Name(parts, parts[-1])
    there = named_table(session, parts)
    if quiet and there is not None:
        return nothing(session)
    if there is not None and there.entry:
        raise StatementError(f"table {name} is an entry of the session's catalog already, of the table at {there.path}")
    _create_table(session, _read_create(text, name, at))
    return nothing(session)


def _read_create(text: Text, name: Name, at: int) -> _Create:
    columns = ""
    if text.word(at) == "(":
        inner, _ = text.inside(at)
        columns = str(inner)
    tree = sqlglot.parse_one(str(text), read=DIALECT)
    options: dict[str, str] = {}
    location, partitions = "", tuple[str, ...]()
    for item in tree.find_all(exp.Property):
        if isinstance(item, exp.LocationProperty):
            location = item.this.name
        elif isinstance(item, exp.PartitionedByProperty):
            partitions = tuple(part.name for part in item.this.expressions)
        elif type(item) is exp.Property:
            key = item.this if isinstance(item.this, str) else item.this.name
            options[key] = item.args["value"].name
    as_ = text.find("AS")
    return _Create(name, columns, partitions, location, options, str(text.after(as_)) if as_ >= 0 else "")


def _create_table(session: SparkSession, wanted: _Create) -> None:
    options = dict(wanted.options)
    path = options.pop("path", "") or wanted.location or managed_path(session, ".".join(wanted.name.parts))
    kind = options.pop("type", "cow").lower()
    if kind not in _TYPES:
        raise StatementError(f"type {kind!r} of table {wanted.name}: expected cow or mor")
    given = dict(check_options({_NAMES.get(key.lower(), key): value for key, value in options.items()}))
    keys = given.pop(_NAMES["primarykey"], "") or given.pop("hoodie.table.recordkey.fields", "")
    if not keys:
        raise StatementError(f"table {wanted.name} needs a key: TBLPROPERTIES (primaryKey = 'id')")
    rows = None
    if wanted.query:
        rows = with_tables(session, wanted.query) or session.sql(wanted.query)
    schema = _fields(wanted.columns) if wanted.columns else None if rows is None else rows.schema
    if schema is not None:
        _refuse_missing(wanted, schema, keys)
    with_location = bool(wanted.location or "path" in wanted.options)
    storage = storage_for(path)
    there = storage.exists(".hoodie/hoodie.properties")
    if there and not with_location:
        raise StatementError(f"table {wanted.name} is there already, at {path}")
    given.setdefault("hoodie.datasource.write.hive_style_partitioning", "true")  # as Hudi's SQL makes tables
    if there:
        table = open_table(session, path)
    else:
        table = create_table(
            session,
            path,
            name=wanted.name.parts[-1],
            record_key=[key.strip() for key in keys.split(",")],
            partition_by=wanted.partitions,
            table_type=_TYPES[kind],
            options=given,
        )
        if schema is not None:
            columns = stored_form(_partitions_last(to_arrow(schema), wanted.partitions))
            avro = to_avro(columns, wanted.name.parts[-1])
            update_properties(table.storage, {"hoodie.table.create.schema": avro})
    if with_location:
        register_table(session, ".".join(wanted.name.parts), path)
    if rows is not None:
        table.bulk_insert(rows)


def _fields(columns: str) -> StructType:
    """Columns as DDL has them. Raises what Spark raises on others"""
    found = StructType.fromDDL(columns)
    assert isinstance(found, StructType)  # several columns are no single type
    return found


def _refuse_missing(wanted: _Create, schema: StructType, keys: str) -> None:
    named = [*(key.strip() for key in keys.split(",")), *wanted.partitions]
    if missing := [name for name in named if name not in schema.names]:
        raise StatementError(f"table {wanted.name}: columns {', '.join(missing)} are named and not there")


def _partitions_last(schema: pa.Schema, partitions: tuple[str, ...]) -> pa.Schema:
    """Spark has the partition columns behind all others, whatever the order in which they are declared."""
    return pa.schema([*(f for f in schema if f.name not in partitions), *(schema.field(name) for name in partitions)])


# --- the others ---


def _drop(session: SparkSession, text: Text) -> DataFrame | None:
    at, quiet = 2, text.words(4)[2:] == ("IF", "EXISTS")
    parts, end = text.name(at + 2 * quiet)
    found = named_table(session, parts)
    if found is None or found.entry:  # entries are Spark's to drop: the table's files stay
        return None
    path, name = found.path, ".".join(parts)
    external = registered_path(session, name) is not None
    if external:
        unregister_table(session, name)
    if not external or text.word(end) == "PURGE":
        open_table(session, path)  # what is no table is not removed
        _remove(storage_for(path))
    return nothing(session)


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
    table = opened(session, name, {})
    if table is None:
        return None
    if text.word(at) == "ADD" and text.word(at + 1) in ("COLUMN", "COLUMNS"):
        return _add_columns(session, table, text, at + 2)
    if text.word(at) == "DROP" and text.words(at + 4)[at + 1 : at + 3] == ("IF", "EXISTS"):
        at += 2
    if text.word(at) == "DROP" and text.word(at + 1) == "PARTITION":
        table.delete_partitions([_partition_path(table, text.inside(at + 2)[0])])
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
        given[name] = item.word(equals + 1)
    if given.get(CDC) != "TRUE":
        raise text.unreadable(f"expected {CDC} = true: change data can be turned on, not off", at)
    log_change_data(table.storage, Settings.read(table.options).writers, given.get(CDC_MODE, ""))
    return nothing(session)


def _add_columns(session: SparkSession, table: HoodieTable[DataFrame], text: Text, at: int) -> DataFrame:
    added = text.inside(at)[0] if text.word(at) == "(" else text.part(text.tokens[at].start, text.end)
    for item in added.split():
        if item.find("AFTER", "FIRST") >= 0:
            raise item.unreadable("columns are added behind the others: FIRST and AFTER are not supported")
    present = table.snapshot().schema
    new = _fields(str(added))
    lower = {name.lower() for name in present.names}
    if again := [name for name in new.names if name.lower() in lower]:
        raise added.unreadable(f"the table has columns {', '.join(again)} already")
    columns = [field for field in present.fields if field.name not in META_COLUMNS]
    table.upsert(session.createDataFrame([], nullable(StructType([*columns, *new.fields]))))
    return nothing(session)


def _truncate(session: SparkSession, text: Text) -> DataFrame | None:
    parts, at = text.name(2)
    table = opened(session, Name(parts, parts[-1]), {})
    if table is None:
        return None
    if text.word(at) == "PARTITION":
        table.delete_partitions([_partition_path(table, text.inside(at + 1)[0])])
    elif paths := _paths(table):
        table.delete_partitions(paths)
    return nothing(session)


def _paths(table: HoodieTable[DataFrame]) -> list[str]:
    """The partition paths that hold files."""
    return sorted({slice_.group.partition for slice_ in table.file_slices()})


def _partition_path(table: HoodieTable[DataFrame], spec: Text) -> str:
    """The path of `dt = '2024-01-31'`, whose values are literals. Raises StatementError"""
    given = {}
    for item in spec.split():
        parts, at = item.name()
        if item.word(at) != "=" or len(item.tokens) != at + 2:
            raise item.unreadable("expected partition column = value")
        given[parts[-1].lower()] = item.tokens[at + 1].text
    for path in discover_partitions(table.storage):
        if _spec(table, path) == given:
            return path
    raise spec.unreadable(f"the table has no such partition; SHOW PARTITIONS lists those of {table.path}")


def _spec(table: HoodieTable[DataFrame], path: str) -> dict[str, str]:
    config = load_state(table.storage).config
    values = [part.partition("=")[2] if config.hive_style else part for part in path.split("/")]
    return dict(zip((name.partition(":")[0].lower() for name in config.partition_by), values, strict=False))


def _show_partitions(session: SparkSession, text: Text) -> DataFrame | None:
    parts, _ = text.name(1)
    table = opened(session, Name(parts, parts[-1]), {})
    if table is None:
        return None
    paths = [path for path in discover_partitions(table.storage) if path]
    rows = [("/".join(f"{name}={value}" for name, value in _spec(table, path).items()),) for path in paths]
    return table_rows(session, rows, "partition string")
