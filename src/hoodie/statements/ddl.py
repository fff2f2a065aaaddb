"""CREATE, ALTER, DROP and TRUNCATE TABLE, and SHOW PARTITIONS, of tables of ours."""

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
from hoodie.config.table import CDC, CDC_MODE, PROPERTIES_FILE, PROPERTIES_FOLDER
from hoodie.errors import StatementError, TableMismatch
from hoodie.expressions.text import DIALECT
from hoodie.formats.avro.schema import to_avro
from hoodie.keygen.keygen import NULL_PARTITION, unescape_path
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.schema import stored_form
from hoodie.spark.catalog import catalog_table
from hoodie.spark.entries import absolute, drop_entry
from hoodie.spark.names import (
    PROVIDERS,
    managed_path,
    named_table,
    qualified,
    register_table,
    registered_names,
    registered_path,
    require_database,
    unregister_table,
)
from hoodie.spark.own_sql import forget_foreign, spark_sql, takes_sql
from hoodie.spark.types import nullable, to_arrow
from hoodie.statements.cutting import Name, Text, check_grammar
from hoodie.statements.entry import enter, leave, refuse_debris, widen_entry
from hoodie.statements.rows import nothing, opened, settings_of, table_rows, with_tables
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage
from hoodie.table.change_logging import log_change_data
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.table.state import declared_schema, load_state
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


# --- create ---


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


def _create(session: SparkSession, text: Text) -> DataFrame | None:
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
    schema = _fields(wanted.columns) if wanted.columns else None if rows is None else rows.schema
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


def _fields(columns: Text) -> StructType:
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
    new = _fields(added)
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
