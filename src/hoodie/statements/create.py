"""CREATE TABLE … USING hudi, also AS SELECT: the table, and its entry in Spark's catalog."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.api.table import HoodieTable, create_table, open_table
from hoodie.api.write_client import write
from hoodie.config.compaction import RECORDED
from hoodie.config.datasource import DEFAULT_PAYLOAD, VersionOptions, check_options, overridden, sql_insert
from hoodie.config.driver_options import is_driver_option
from hoodie.config.options import Options, read_options
from hoodie.config.table import PROPERTIES_FILE, PROPERTIES_FOLDER
from hoodie.errors import StatementError, TableMismatch
from hoodie.expressions.text import tick
from hoodie.formats.avro.schema import to_avro
from hoodie.model.meta import META_COLUMNS
from hoodie.model.table_version import VERSIONS
from hoodie.schema.schema import stored_form, without_meta_fields
from hoodie.spark.catalog import catalog_table
from hoodie.spark.entries import absolute_uri, comment_on_entry, set_properties, unset_properties
from hoodie.spark.names import (
    PROVIDERS,
    managed_path,
    named_table,
    qualified,
    register_table,
    registered_path,
    require_database,
)
from hoodie.spark.own_sql import forget_foreign, spark_sql, spark_table, takes_sql
from hoodie.spark.types import all_nullable, to_arrow, to_spark
from hoodie.statements.create_text import PROPERTIES, TYPES, Create, format_of, like_what, read_create, sql_properties
from hoodie.statements.cutting import Name, Text, check_grammar
from hoodie.statements.entry import enter, follow_columns, leave, refuse_debris
from hoodie.statements.rows import empty_result, session_options, with_tables
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage
from hoodie.table.create import options_of
from hoodie.table.properties import update_properties
from hoodie.table.state import declared_schema, load_state

_MODES = ("hoodie.record.merge.mode", "hoodie.write.record.merge.mode")
_NAMES = {**PROPERTIES, "recordmergemode": _MODES[0]}
#: What `CREATE TABLE … LIKE` leaves to the new table, or says by `sql_properties` and PARTITIONED BY.
_SAID_APART = frozenset(
    f"hoodie.{name}"
    for name in (
        "table.name", "database.name", "table.type", "table.recordkey.fields", "table.partition.fields",
        "table.precombine.field", "table.ordering.fields",
    )
)  # fmt: skip


def create_from_statement(session: SparkSession, text: Text) -> DataFrame | None:
    """Carry a CREATE TABLE out; None: it is Spark's."""
    replaces = text.words(3)[1:] == ("OR", "REPLACE")
    at = 4 if replaces else 2
    quiet = text.words(at + 3)[at:] == ("IF", "NOT", "EXISTS")
    at += 3 * quiet
    source = like_what(text)
    if not _is_for_us(session, text, source):
        return None if replaces else _refuse_taken(session, text, at, quiet)
    if not source:
        check_grammar(text)
    parts, at = text.name(at)
    name = Name(parts, parts[-1])
    parts = qualified(session, parts)
    entry = catalog_table(session, parts)
    if entry is not None and entry.ours:
        refuse_debris(name, entry)
    existing_table = named_table(session, parts)
    if quiet and (entry is not None or existing_table is not None):
        return empty_result(session)
    if entry is not None and not entry.ours:
        raise StatementError(f"[TABLE_OR_VIEW_ALREADY_EXISTS] {name} is {entry.kind} already")
    if existing_table is not None and existing_table.entry and not replaces:
        raise StatementError(
            f"table {name} is an entry of the session's catalog already, of the table at {existing_table.path}"
        )
    if len(parts) == 2:
        require_database(session, parts[0])
    statement = _like(session, text, name, source) if source else read_create(text, name, at)
    if replaces and existing_table is not None:
        _replace_table(session, statement, parts, existing_table.path)
    else:
        _create_table(session, statement, parts, quiet)
    return empty_result(session)


def _is_for_us(session: SparkSession, text: Text, source: tuple[str, ...]) -> bool:
    """Whether the table that a statement makes is one of ours. Raises StatementError on a table of another format that
    is to be like one of ours"""
    provider = format_of(text)
    if not source or provider in PROVIDERS:
        return provider in PROVIDERS
    if named_table(session, source) is None:
        return False
    if provider:
        raise text.unreadable(
            f"a table of the format {provider} LIKE one of Hudi: CREATE TABLE … USING {provider} AS SELECT * FROM it "
            "WHERE false"
        )
    return True


def _like(session: SparkSession, text: Text, name: Name, source: tuple[str, ...]) -> Create:
    """What `CREATE TABLE name LIKE source` asks for: the columns of the source, and of a table of ours its partitions,
    key, ordering and type as well, below what the statement says."""
    at = text.find("LIKE")
    _, behind = text.name(at + 1)
    rest = text.part(text.tokens[behind].start, text.end) if behind < len(text.tokens) else ""
    using = "" if format_of(text) else "USING hudi"
    clauses = Text.of(f"CREATE TABLE {name} {using} {rest}")
    check_grammar(clauses)
    statement = read_create(clauses, name, len(clauses.tokens))
    table = named_table(session, source)
    if table is None:
        return replace(statement, schema=all_nullable(spark_table(session, ".".join(map(tick, source))).schema))
    state = load_state(storage_for(table.path))
    declared, config = declared_schema(state), state.config
    own = {_NAMES.get(key.lower(), key): value for key, value in statement.options.items()}
    keys = {key.lower() for key in statement.options}
    options = {key: value for key, value in sql_properties(config).items() if key.lower() not in keys}
    table_options = options_of(config.properties, own)
    alike = {key: value for key, value in table_options.items() if key not in own and key not in _SAID_APART}
    schema = None if declared is None else to_spark(without_meta_fields(declared))
    return replace(
        statement,
        schema=schema,
        partitions=config.partition_columns,
        options={**options, **statement.options},
        alike=alike,
    )


def _replace_table(session: SparkSession, statement: Create, parts: Sequence[str], path: str) -> None:
    """Put another table in place of the one that is there, with the rows of the statement, by one commit."""
    rows = _rows(session, statement)
    schema = statement.schema if statement.schema is not None else None if rows is None else rows.schema
    if schema is None:
        raise StatementError(f"CREATE OR REPLACE TABLE {statement.name} names no columns, and has no query")
    options = dict(statement.options)
    place = options.pop("path", "") or statement.location
    if place and storage_for(place).root != storage_for(path).root:
        raise StatementError(
            f"table {statement.name} is at {path}, and a table in its place stays there, not at {place}"
        )
    statement_settings, keys, kind = _settings(statement, options)
    _refuse_missing(statement, schema, keys, statement_settings)
    columns = partitions_last(schema, statement.partitions)
    if rows is None:
        rows = session.createDataFrame([], all_nullable(columns))
    named = {
        "hoodie.table.name": statement.name.parts[-1],
        "hoodie.datasource.write.recordkey.field": keys,
        "hoodie.datasource.write.partitionpath.field": ",".join(statement.partitions),
        "hoodie.datasource.write.table.type": TYPES[kind],
        "hoodie.datasource.write.operation": "bulk_insert",
    }
    settings = overridden(_of_statements(session_options(session, creating=True)), statement_settings)
    rows = rows.select(*map(tick, columns.names))
    write(rows, path, {**settings, **{key: value for key, value in named.items() if value}}, mode="overwrite")
    table = named_table(session, parts)
    if table is not None and table.entry:
        follow_columns(session, parts)
        entry = catalog_table(session, parts)
        if entry is not None and entry.properties:
            unset_properties(session, parts, list(entry.properties))
        if more := _more(statement.options):
            set_properties(session, parts, more)
        comment_on_entry(session, parts, statement.comment)
    forget_foreign(session)


def _settings(statement: Create, options: Mapping[str, str]) -> tuple[dict[str, str], str, str]:
    """The options of a statement as those of a write, the columns of the key, and the type. Raises StatementError"""
    statement_options = dict(options)
    kind = statement_options.pop("type", "cow").lower()
    if kind not in TYPES:
        raise StatementError(f"type {kind!r} of table {statement.name}: expected cow or mor")
    properties = {
        key: value for key, value in statement_options.items() if key.lower() in _NAMES or key.startswith("hoodie.")
    }
    own = {_NAMES.get(key.lower(), key): value for key, value in properties.items()}
    settings = dict(overridden(statement.alike, check_options(own)))
    keys = settings.pop(_NAMES["primarykey"], "") or settings.pop("hoodie.table.recordkey.fields", "")
    settings.setdefault("hoodie.datasource.write.hive_style_partitioning", "true")  # as Hudi's SQL makes tables
    return settings, keys, kind


def _ordered_as_by_hudi(options: Options) -> Options:
    """The options with the payload class of Hudi 0.x's tables, where neither that nor a merge mode is named: late rows
    win. In later versions of the format they lose, as by `create_table`."""
    if VERSIONS[read_options(VersionOptions, options).version].layout != 1 or any(key in options for key in _MODES):
        return options
    return overridden({_NAMES["payloadclass"]: DEFAULT_PAYLOAD}, options)


def _more(options: Mapping[str, str]) -> dict[str, str]:
    """What a statement says of a table beside what the table itself keeps."""
    names = {*_NAMES, "type", "path"}
    return {key: value for key, value in options.items() if key.lower() not in names and not is_driver_option(key)}


def _rows(session: SparkSession, statement: Create) -> DataFrame | None:
    if not statement.query:
        return None
    rows = with_tables(session, statement.query) or spark_sql(session, statement.query)
    return rows.drop(*META_COLUMNS)


def _refuse_taken(session: SparkSession, text: Text, at: int, quiet: bool) -> DataFrame | None:
    """A table of another format is Spark's to make (None), but not by a name that a table of ours has."""
    try:
        parts, _ = text.name(at)
    except StatementError:  # such as IDENTIFIER('name')
        return None
    entry = named_table(session, qualified(session, parts))
    if entry is None or entry.entry:
        return None
    if quiet:
        return empty_result(session)
    raise StatementError(
        f"[TABLE_OR_VIEW_ALREADY_EXISTS] {Name(parts, parts[-1])} is a table of Hudi already, at {entry.path}"
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a table is to be, and who knows of it.

    parts       its name with its database
    managed     the statement names no location
    with_entry  Spark's catalog gets an entry of it
    """

    parts: Sequence[str]
    path: str
    managed: bool
    with_entry: bool

    @property
    def storage(self) -> Storage:
        return storage_for(self.path)


def _place(session: SparkSession, statement: Create, parts: Sequence[str]) -> _Place:
    """Raises StatementError where the name is one of a table at another place"""
    path = statement.options.get("path", "") or statement.location
    managed, with_entry = not path, takes_sql() and len(parts) == 2
    path = path or managed_path(session, parts)
    place = _Place(parts, absolute_uri(path) if with_entry else path, managed, with_entry)
    registered = registered_path(session, ".".join(parts))
    if registered is not None and storage_for(registered).root != place.storage.root:
        raise StatementError(
            f"[TABLE_OR_VIEW_ALREADY_EXISTS] {statement.name} is a table of Hudi already, at {registered}"
        )
    return place


def _create_table(session: SparkSession, statement: Create, parts: Sequence[str], quiet: bool) -> None:
    """parts  the table's name with its database"""
    place = _place(session, statement, parts)
    path = place.path
    settings, keys, kind = _settings(statement, {k: v for k, v in statement.options.items() if k != "path"})
    with_location = bool(statement.location or "path" in statement.options)
    exists, described = place.storage.exists(PROPERTIES_FILE), bool(keys)
    if not described and exists and with_location:  # what the table is, it says itself
        config = load_state(place.storage).config
        keys = ",".join(config.record_key)
        if not statement.partitions:
            statement = replace(statement, partitions=config.partition_columns)
        if "type" not in statement.options:
            kind = sql_properties(config)["type"]
        if config.ordering:
            settings.setdefault(_NAMES["precombinefield"], ",".join(config.ordering))
    rows = _rows(session, statement)
    schema = statement.schema if statement.schema is not None else None if rows is None else rows.schema
    if schema is None and not exists:  # as Hudi: a location misspelt would be a second, empty table
        raise StatementError(
            f"CREATE TABLE {statement.name} names no columns, and there is no table at {path}: name the columns of a "
            "new table, or the LOCATION of one that is there"
        )
    if schema is not None and (described or not exists):
        _refuse_missing(statement, schema, keys, settings)
    if exists and not with_location:
        raise StatementError(f"table {statement.name} is there already, at {path}")
    record_key = [key.strip() for key in keys.split(",") if key.strip()]
    facts = {"primaryKey": ",".join(record_key), "preCombineField": settings.get(_NAMES["precombinefield"], "")}
    properties = {"type": kind, **{key: value for key, value in facts.items() if value}}
    if exists:
        named = [] if statement.schema is None else statement.schema.names
        table = open_table(path, spark=session)
        _refuse_other(table, statement, record_key, named, TYPES[kind])
        if rows is not None and not quiet:
            raise StatementError(f"there is a table at {path} already: INSERT INTO it, or DROP TABLE … PURGE first")
        if place.with_entry:
            more = _more(statement.options)
            enter(session, parts, path, table.snapshot().schema, properties, more, statement.comment, managed=False)
    else:
        assert schema is not None
        _make_table(session, statement, place, record_key, settings, properties, schema, rows)
    if with_location and not place.with_entry:
        register_table(session, ".".join(parts), path)
    forget_foreign(session)


def _make_table(
    session: SparkSession,
    statement: Create,
    place: _Place,
    record_key: list[str],
    settings: Mapping[str, str],
    properties: Mapping[str, str],
    schema: StructType,
    rows: DataFrame | None,
) -> None:
    """Make a table, its entry, and its rows, or none of them. properties: those that the entry has"""
    columns = partitions_last(schema, statement.partitions)
    avro = to_avro(stored_form(to_arrow(columns)), statement.name.parts[-1])
    with ExitStack() as undo:
        if place.with_entry:
            more = _more(statement.options)
            enter(session, place.parts, place.path, columns, properties, more, statement.comment, managed=place.managed)
            undo.callback(leave, session, place.parts, place.storage, managed=place.managed)
        table = create_table(
            place.path,
            spark=session,
            name=statement.name.parts[-1],
            record_key=record_key,
            partition_by=statement.partitions,
            table_type=TYPES[properties["type"]],
            options=_ordered_as_by_hudi(overridden(_of_statements(session_options(session, creating=True)), settings)),
        )
        undo.callback(_take_back, place.storage)
        update_properties(table.storage, {"hoodie.table.create.schema": avro})
        if rows is not None:
            _, options = sql_insert(table.options, load_state(table.storage).config)
            table.bulk_insert(rows, options=options)
        undo.pop_all()


def partitions_last(schema: StructType, partitions: Sequence[str]) -> StructType:
    """Spark has the partition columns behind all others, whatever the order in which they are declared."""
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
    table: HoodieTable[DataFrame], statement: Create, keys: Sequence[str], columns: Sequence[str], kind: str
) -> None:
    """Raises TableMismatch when the table that is there is not the one that the statement describes."""
    state = load_state(table.storage)
    config, declared = state.config, declared_schema(state)
    pairs = {
        **({"primaryKey": (config.record_key, tuple(keys))} if keys else {}),
        "PARTITIONED BY": (config.partition_columns, statement.partitions),
    }
    if "type" in statement.options:
        pairs["type"] = ((config.type.value,), (kind,))
    for what, (has, values) in pairs.items():
        if has != values:
            raise TableMismatch(
                f"the table at {table.path} has {what} ({', '.join(has)}), and the statement says ({', '.join(values)})"
            )
    declared_names = set() if declared is None else {name.lower() for name in declared.names}
    if declared_names and (lacking := [name for name in columns if name.lower() not in declared_names]):
        raise TableMismatch(
            f"the table at {table.path} has no columns {', '.join(lacking)}: ALTER TABLE … ADD COLUMNS adds them"
        )


def _refuse_missing(statement: Create, schema: StructType, keys: str, settings: Mapping[str, str]) -> None:
    lists = f"{keys},{settings.get(_NAMES['precombinefield'], '')}"
    named = [*(name.strip() for name in lists.split(",") if name.strip()), *statement.partitions]
    if missing := [name for name in named if not {name, name.split(".")[0]} & set(schema.names)]:
        raise StatementError(f"table {statement.name}: columns {', '.join(missing)} are named and not there")
