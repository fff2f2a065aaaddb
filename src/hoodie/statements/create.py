"""CREATE TABLE … USING hudi, also AS SELECT: the table, and its entry in Spark's catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa
import sqlglot
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp

from hoodie.api.table import HoodieTable, create_table, open_table
from hoodie.config.compaction import RECORDED
from hoodie.config.datasource import DEFAULT_PAYLOAD, check_options, overridden, sql_insert
from hoodie.config.table import PROPERTIES_FILE, PROPERTIES_FOLDER
from hoodie.errors import StatementError, TableMismatch
from hoodie.expressions.text import DIALECT
from hoodie.formats.avro.schema import to_avro
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.schema import stored_form
from hoodie.spark.catalog import catalog_table
from hoodie.spark.entries import absolute
from hoodie.spark.names import (
    PROVIDERS,
    managed_path,
    named_table,
    qualified,
    register_table,
    registered_path,
    require_database,
)
from hoodie.spark.own_sql import forget_foreign, spark_sql, takes_sql
from hoodie.spark.types import to_arrow
from hoodie.statements.cutting import Name, Text, check_grammar
from hoodie.statements.entry import enter, leave, refuse_debris
from hoodie.statements.rows import nothing, settings_of, with_tables
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage
from hoodie.table.properties import update_properties
from hoodie.table.state import declared_schema, load_state

_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_NAMES = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "precombinefield": "hoodie.datasource.write.precombine.field",
    "payloadclass": "hoodie.datasource.write.payload.class",
}


@dataclass(frozen=True, slots=True)
class _Create:
    name: Name
    columns: Text | None  # as DDL
    partitions: tuple[str, ...]
    location: str
    options: Mapping[str, str]
    query: str


def makes_ours(text: Text) -> bool:
    """Whether a statement makes a table of ours."""
    return text.word(0) == "CREATE" and "TABLE" in text.words(5) and _provider(text) in PROVIDERS


def like_what(text: Text) -> tuple[str, ...]:
    """The name behind `CREATE TABLE name LIKE`; (): the statement is another one."""
    if text.word(0) != "CREATE" or text.word(1) != "TABLE":
        return ()
    at = text.find("LIKE")
    return text.name(at + 1)[0] if 0 < at < len(text.tokens) - 1 and at < 12 else ()


def _provider(text: Text) -> str:
    at = text.find("USING")
    return text.name(at + 1)[0][-1].lower() if at >= 0 and at + 1 < len(text.tokens) else ""


def create(session: SparkSession, text: Text) -> DataFrame | None:
    ours = _provider(text) in PROVIDERS
    if (parts := like_what(text)) and named_table(session, parts) is not None:
        raise text.unreadable(
            "CREATE TABLE … LIKE a table of Hudi is not supported: CREATE TABLE … USING hudi AS SELECT * FROM it WHERE "
            "false, with its TBLPROPERTIES"
        )
    at, quiet = 2, text.words(5)[2:] == ("IF", "NOT", "EXISTS")
    at += 3 * quiet
    if not ours:
        return _refuse_taken(session, text, at, quiet)
    check_grammar(text)
    parts, at = text.name(at)
    name = Name(parts, parts[-1])
    parts = qualified(session, parts)
    entry = catalog_table(session, parts)
    if entry is not None and entry.ours:
        refuse_debris(name, entry)
    there = named_table(session, parts)
    if quiet and (entry is not None or there is not None):
        return nothing(session)
    if entry is not None and not entry.ours:
        raise StatementError(f"[TABLE_OR_VIEW_ALREADY_EXISTS] {name} is {entry.kind} already")
    if there is not None and there.entry:
        raise StatementError(f"table {name} is an entry of the session's catalog already, of the table at {there.path}")
    if len(parts) == 2:
        require_database(session, parts[0])
    _create_table(session, _read_create(text, name, at), parts, quiet)
    return nothing(session)


def _refuse_taken(session: SparkSession, text: Text, at: int, quiet: bool) -> DataFrame | None:
    """A table of another format is Spark's to make (None), but not by a name that a table of ours has."""
    try:
        parts, _ = text.name(at)
    except StatementError:  # such as IDENTIFIER('name')
        return None
    there = named_table(session, qualified(session, parts))
    if there is None or there.entry:
        return None
    if quiet:
        return nothing(session)
    raise StatementError(
        f"[TABLE_OR_VIEW_ALREADY_EXISTS] {Name(parts, parts[-1])} is a table of Hudi already, at {there.path}"
    )


def _read_create(text: Text, name: Name, at: int) -> _Create:
    columns = text.inside(at)[0] if text.word(at) == "(" else None
    tree = sqlglot.parse_one(str(text), read=DIALECT)
    options: dict[str, str] = {}
    location, partitions = "", tuple[str, ...]()
    for item in tree.find_all(exp.Property):
        if isinstance(item, exp.LocationProperty):
            location = item.this.name
        elif isinstance(item, exp.PartitionedByProperty):
            partitions = tuple(part.name for part in item.this.expressions)
        elif type(item) is exp.Property:
            value = item.args["value"]
            options[_key(item)] = str(value.this).lower() if isinstance(value, exp.Boolean) else value.name
    return _Create(name, columns, partitions, location, options, _query(text))


def _key(item: exp.Property) -> str:
    """The key of an option: 'a.b', or a.b without quotes."""
    if isinstance(item.this, str):
        return item.this
    return item.this.sql(dialect=DIALECT).replace("`", "") if isinstance(item.this, exp.Dot) else item.this.name


def _query(text: Text) -> str:
    """The query behind the other clauses, with or without an AS before it; "" for none."""
    at = text.find("AS", "SELECT", "WITH", "FROM", "VALUES", start=text.find("USING"))
    if at < 0:
        return ""
    return str(text.after(at) if text.word(at) == "AS" else text.part(text.tokens[at].start, text.end))


def _create_table(session: SparkSession, wanted: _Create, parts: Sequence[str], quiet: bool) -> None:
    """parts  the table's name with its database"""
    options = dict(wanted.options)
    path = options.pop("path", "") or wanted.location
    managed, with_entry = not path, takes_sql() and len(parts) == 2
    path = path or managed_path(session, parts)
    if with_entry:
        path = absolute(path)
    registered = registered_path(session, ".".join(parts))
    if registered is not None and storage_for(registered).root != storage_for(path).root:
        raise StatementError(
            f"[TABLE_OR_VIEW_ALREADY_EXISTS] {wanted.name} is a table of Hudi already, at {registered}"
        )
    kind = options.pop("type", "cow").lower()
    if kind not in _TYPES:
        raise StatementError(f"type {kind!r} of table {wanted.name}: expected cow or mor")
    given = dict(check_options({_NAMES.get(key.lower(), key): value for key, value in options.items()}))
    keys = given.pop(_NAMES["primarykey"], "") or given.pop("hoodie.table.recordkey.fields", "")
    with_location = bool(wanted.location or "path" in wanted.options)
    storage = storage_for(path)
    there = storage.exists(PROPERTIES_FILE)
    described = bool(keys)
    if not described and there and with_location:  # what the table is, it says itself
        config = load_state(storage).config
        keys = ",".join(config.record_key)
        if not wanted.partitions:
            wanted = replace(wanted, partitions=tuple(name.partition(":")[0] for name in config.partition_by))
        if "type" not in wanted.options:
            kind = next(word for word, name in _TYPES.items() if name == config.type.value)
        if config.ordering:
            given.setdefault(_NAMES["precombinefield"], ",".join(config.ordering))
    rows = None
    if wanted.query:
        rows = with_tables(session, wanted.query) or spark_sql(session, wanted.query)
        rows = rows.drop(*META_COLUMNS)
    schema = fields_of(wanted.columns) if wanted.columns else None if rows is None else rows.schema
    if schema is not None and (described or not there):
        _refuse_missing(wanted, schema, keys)
    if there and not with_location:
        raise StatementError(f"table {wanted.name} is there already, at {path}")
    record_key = [key.strip() for key in keys.split(",") if key.strip()]
    if there:
        named = schema.names if schema is not None and wanted.columns else []
        _refuse_other(open_table(path, spark=session), wanted, record_key, named, _TYPES[kind])
        if rows is not None and not quiet:
            raise StatementError(f"there is a table at {path} already: INSERT INTO it, or DROP TABLE … PURGE first")
    given.setdefault("hoodie.datasource.write.hive_style_partitioning", "true")  # as Hudi's SQL makes tables
    given = dict(overridden({_NAMES["payloadclass"]: DEFAULT_PAYLOAD}, given))  # likewise
    avro = ""
    if schema is not None and not there:
        columns = stored_form(_partitions_last(to_arrow(schema), wanted.partitions))
        avro = to_avro(columns, wanted.name.parts[-1])
    key = {"primaryKey": ",".join(record_key)} if record_key else {}
    properties = {"type": kind, **key, **_ordering(given)}
    if not there:
        with ExitStack() as undo:
            if with_entry:
                columns_of_entry = _in_order(schema or StructType(), wanted.partitions)
                enter(session, parts, path, columns_of_entry, properties, managed=managed)
                undo.callback(leave, session, parts, storage, managed=managed)
            table = create_table(
                path,
                spark=session,
                name=wanted.name.parts[-1],
                record_key=record_key,
                partition_by=wanted.partitions,
                table_type=_TYPES[kind],
                options=overridden(_of_statements(settings_of(session)), given),
            )
            undo.callback(_take_back, storage)
            if avro:
                update_properties(table.storage, {"hoodie.table.create.schema": avro})
            if rows is not None:
                _, options = sql_insert(table.options, load_state(table.storage).config)
                table.bulk_insert(rows, options=options)
            undo.pop_all()
    elif with_entry:
        columns_of_entry = open_table(path, spark=session).snapshot().schema
        enter(session, parts, path, columns_of_entry, properties, managed=False)
    if with_location and not with_entry:
        register_table(session, ".".join(parts), path)
    forget_foreign(session)


def _ordering(given: Mapping[str, str]) -> dict[str, str]:
    name = given.get(_NAMES["precombinefield"], "")
    return {"preCombineField": name} if name else {}


def _in_order(schema: StructType, partitions: Sequence[str]) -> StructType:
    """Spark has the partition columns behind all others."""
    others = [field for field in schema.fields if field.name not in partitions]
    return StructType([*others, *(schema[name] for name in partitions if name in schema.names)])


def _of_statements(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session without those that a table would keep for all its writers."""
    return {key: value for key, value in settings.items() if key not in RECORDED}


def _take_back(storage: Storage) -> None:
    """Remove a table that was made for rows that failed; not if it has commits, such as another writer's."""
    timeline = load_state(storage).timeline
    if not timeline.commits and not timeline.pending():
        storage.delete_tree(PROPERTIES_FOLDER)


def _refuse_other(
    table: HoodieTable[DataFrame], wanted: _Create, keys: Sequence[str], columns: Sequence[str], kind: str
) -> None:
    """Raises TableMismatch when the table that is there is not the one that the statement describes."""
    state = load_state(table.storage)
    config, declared = state.config, declared_schema(state)
    pairs = {
        **({"primaryKey": (config.record_key, tuple(keys))} if keys else {}),
        "PARTITIONED BY": (tuple(name.partition(":")[0] for name in config.partition_by), wanted.partitions),
    }
    if "type" in wanted.options:
        pairs["type"] = ((config.type.value,), (kind,))
    for what, (has, asked) in pairs.items():
        if has != asked:
            raise TableMismatch(
                f"the table at {table.path} has {what} ({', '.join(has)}), and the statement says ({', '.join(asked)})"
            )
    there = set() if declared is None else {name.lower() for name in declared.names}
    if there and (lacking := [name for name in columns if name.lower() not in there]):
        raise TableMismatch(
            f"the table at {table.path} has no columns {', '.join(lacking)}: ALTER TABLE … ADD COLUMNS adds them"
        )


def fields_of(columns: Text) -> StructType:
    """Columns as DDL has them. Raises StatementError on others"""
    try:
        found = StructType.fromDDL(str(columns))
    except ParseException as problem:
        raise columns.unreadable(
            f"expected columns as name TYPE [NOT NULL] [COMMENT 'text'], without DEFAULT, GENERATED or constraints: "
            f"{str(problem).strip().splitlines()[0]}"
        ) from problem
    assert isinstance(found, StructType)  # several columns are no single type
    return found


def _refuse_missing(wanted: _Create, schema: StructType, keys: str) -> None:
    named = [*(key.strip() for key in keys.split(",") if key.strip()), *wanted.partitions]
    if missing := [name for name in named if name not in schema.names]:
        raise StatementError(f"table {wanted.name}: columns {', '.join(missing)} are named and not there")


def _partitions_last(schema: pa.Schema, partitions: tuple[str, ...]) -> pa.Schema:
    """Spark has the partition columns behind all others, whatever the order in which they are declared."""
    return pa.schema([*(f for f in schema if f.name not in partitions), *(schema.field(name) for name in partitions)])


# --- the others ---
