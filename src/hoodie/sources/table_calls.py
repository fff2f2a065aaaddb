"""`insertInto`, `saveAsTable` and `writeTo`, once they are caught: writes to tables of ours by their names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from hoodie.config.datasource import overridden
from hoodie.config.table import PROPERTIES_FILE
from hoodie.errors import InvalidInput, StatementError
from hoodie.expressions.text import tick
from hoodie.keygen.keygen import key_generator
from hoodie.sources import answers
from hoodie.sources.calls import (
    Call,
    columns_to_partition_by,
    frame_of,
    names_in,
    note_option,
    note_options,
    ours,
    recorded_calls,
    recorder,
)
from hoodie.sources.sql_calls import name_parts, named_or_none
from hoodie.spark.entries import absolute_uri
from hoodie.spark.names import managed_path, qualified
from hoodie.spark.own_sql import is_handed_over, prepare, takes_sql
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.statements.create import partitions_last
from hoodie.statements.create_text import PROPERTIES, TYPES
from hoodie.statements.cutting import Name
from hoodie.statements.dml import insert_rows, is_dynamic
from hoodie.statements.dml_text import Insert
from hoodie.statements.entry import entered, refuse_taken
from hoodie.statements.rows import open_named, session_options
from hoodie.storage import storage_for
from hoodie.storage.faults import typed_errors
from hoodie.table.create import options_of
from hoodie.table.state import load_state

_PROPERTIES = {**PROPERTIES, "type": "hoodie.datasource.write.table.type"}


# --- by name ---


def insert_into(frame: DataFrame, name: str, overwrite: bool, options: Mapping[str, Any]) -> bool:
    """Insert rows by the places of their columns, as Spark's call of this name; False: the table is not ours."""
    session = frame.sparkSession
    return _insert(frame, name, options, overwrite=overwrite, by_name=False, dynamic=is_dynamic(session))


@typed_errors()
def _insert(
    frame: DataFrame, table: str, options: Mapping[str, Any], *, overwrite: bool, by_name: bool, dynamic: bool
) -> bool:
    session = frame.sparkSession
    named_entry = named_or_none(session, table)
    if named_entry is None:
        return False
    name, entry = named_entry
    if entry.read_optimized:
        raise StatementError(f"{name} is an entry for queries of the newest base files alone, and is not written by")
    opened = open_named(session, name, entry, overridden(session_options(session), answers.job_options(options)))
    with raise_worker_errors():
        statement = Insert(name, "", overwrite=overwrite, by_name=by_name)
        insert_rows(session, statement, opened, frame, dynamic=dynamic)
    return True


@typed_errors()
def save_as_table(
    frame: DataFrame, table: str, mode: str, partition_by: Sequence[str], options: Mapping[str, Any]
) -> None:
    """Write a table by its name, and give it an entry in Spark's catalog if it has none.

    Raises as `hoodie.hudi.write`; StatementError on a name that another format has, and on a database that is not there
    """
    session = frame.sparkSession
    parts = name_parts(table)
    if parts is None:
        raise InvalidInput(f"{table!r} is no name of a table, such as trips or db.trips")
    name, parts, mode = Name(parts, parts[-1]), qualified(session, parts), mode.lower()
    write_options = {_PROPERTIES.get(key.lower(), key): value for key, value in options.items()}
    if partition_by:
        frame = frame.select(*map(tick, partitions_last(frame.schema, partition_by).names))
    kind = str(write_options.get(_PROPERTIES["type"], ""))
    if kind.lower() in TYPES:
        write_options[_PROPERTIES["type"]] = TYPES[kind.lower()]
    named_entry = named_or_none(session, table)
    if named_entry is not None:
        opened = open_named(session, name, named_entry[1], session_options(session))
        if mode == "ignore":
            return
        if mode not in ("append", "overwrite"):
            raise StatementError(
                f"[TABLE_OR_VIEW_ALREADY_EXISTS] {name} is a table of Hudi already, at {named_entry[1].path}"
            )
        write_options = {key: value for key, value in write_options.items() if key.lower() != "path"}
        if mode == "overwrite":
            named = answers.partitioned(write_options, partition_by)
            write_options = options_of(load_state(opened.storage).config.properties, named)
            columns = [field.name for field in key_generator(write_options).partition_fields]
            frame = frame.select(*map(tick, partitions_last(frame.schema, columns).names))
        answers.save(frame, named_entry[1].path, mode, partition_by, write_options)
        return
    refuse_taken(session, name, parts)
    path = next((str(value) for key, value in write_options.items() if key.lower() == "path"), "")
    write_options = {key: value for key, value in write_options.items() if key.lower() != "path"}
    write_options.setdefault("hoodie.table.name", parts[-1])
    managed, path = not path, absolute_uri(path or managed_path(session, parts))
    if not storage_for(path).exists(PROPERTIES_FILE):  # as by CREATE TABLE
        write_options.setdefault("hoodie.datasource.write.hive_style_partitioning", "true")
    with entered(session, parts, path, frame.schema, managed=managed):
        answers.save(frame, path, mode, partition_by, write_options)


def _insert_into(original: Call, self: Any, /, tableName: str, overwrite: bool | None = None) -> None:
    recorded = recorded_calls(self)
    if not is_handed_over() and takes_sql():
        replaces = recorded["mode"].lower() == "overwrite" if overwrite is None else overwrite
        if insert_into(frame_of(self), tableName, replaces, recorded["options"]):
            return
    original(self, tableName, overwrite)


def _save_as_table(
    original: Call,
    self: Any,
    /,
    name: str,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    recorded = recorded_calls(self)
    kind = format or recorded["format"]
    if ours(kind) and not takes_sql():
        raise InvalidInput(
            f"saveAsTable({name!r}) makes an entry of Spark's catalog, which register(spark, sql=False) leaves to "
            "Spark: save(path), then hoodie.spark.register_table(spark, name, path)"
        )
    if is_handed_over() or not takes_sql():
        return original(self, name, format, mode, partitionBy, **options)  # type: ignore[no-any-return]
    frame = frame_of(self)
    prepare(frame.sparkSession)
    if not ours(kind) and (kind or named_or_none(frame.sparkSession, name) is None):
        return original(self, name, format, mode, partitionBy, **options)  # type: ignore[no-any-return]
    by = columns_to_partition_by(partitionBy, recorded)
    return save_as_table(frame, name, mode or recorded["mode"], by, {**recorded["options"], **options})


# --- writeTo ---


def _init(original: Call, self: Any, /, *arguments: Any, **named: Any) -> None:
    original(self, *arguments, **named)
    recorded_calls(self)["table"] = next(value for value in (*arguments, *named.values()) if isinstance(value, str))


def _property(original: Call, self: Any, /, property: str, value: str) -> Any:
    recorded_calls(self)["options"][property] = value
    return original(self, property, value)


_Action = Callable[[DataFrame, dict[str, Any], tuple[Any, ...]], bool]


def _action(act: _Action) -> Call:
    """In place of a call that writes. act: carries it out; False: the table is not ours"""

    def write(original: Call, self: Any, /, *arguments: Any, **named: Any) -> None:
        if not is_handed_over() and takes_sql():
            frame = frame_of(self)
            prepare(frame.sparkSession)
            if act(frame, recorded_calls(self), (*arguments, *named.values())):
                return
        original(self, *arguments, **named)

    return write


def _append(frame: DataFrame, recorded: dict[str, Any], arguments: tuple[Any, ...]) -> bool:
    return _insert(frame, recorded["table"], recorded["options"], overwrite=False, by_name=True, dynamic=False)


def _overwrite_partitions(frame: DataFrame, recorded: dict[str, Any], arguments: tuple[Any, ...]) -> bool:
    return _insert(frame, recorded["table"], recorded["options"], overwrite=True, by_name=True, dynamic=True)


def _overwrite(frame: DataFrame, recorded: dict[str, Any], arguments: tuple[Any, ...]) -> bool:
    if named_or_none(frame.sparkSession, recorded["table"]) is None:
        return False
    if repr(arguments[0]) != "Column<'true'>":
        raise InvalidInput(
            f"writeTo({recorded['table']!r}).overwrite takes lit(True), which replaces all rows. For some: DELETE FROM "
            "… WHERE, then append; or overwritePartitions(), which replaces the partitions that the rows are in"
        )
    return _insert(frame, recorded["table"], recorded["options"], overwrite=True, by_name=True, dynamic=False)


def _creating(mode: str) -> _Action:
    def create(frame: DataFrame, recorded: dict[str, Any], arguments: tuple[Any, ...]) -> bool:
        named_entry = named_or_none(frame.sparkSession, recorded["table"])
        if not ours(recorded["format"]) and (recorded["format"] or named_entry is None):
            return False
        if mode == "replace" and named_entry is None:
            raise StatementError(f"[TABLE_OR_VIEW_NOT_FOUND] there is no table {recorded['table']}: create() makes it")
        by = [column if isinstance(column, str) else frame.select(column).columns[0] for column in recorded["by"]]
        save_mode = "errorifexists" if mode == "create" else "overwrite"
        save_as_table(frame, recorded["table"], save_mode, by, recorded["options"])
        return True

    return create


WRITER_BY_NAME: dict[str, Call] = {"insertInto": _insert_into, "saveAsTable": _save_as_table}
WRITER_V2: dict[str, Call] = {
    "__init__": _init,
    "using": recorder("format"),
    "option": note_option,
    "options": note_options,
    "tableProperty": _property,
    "partitionedBy": recorder("by", names_in),
    "append": _action(_append),
    "overwrite": _action(_overwrite),
    "overwritePartitions": _action(_overwrite_partitions),
    "create": _action(_creating("create")),
    "replace": _action(_creating("replace")),
    "createOrReplace": _action(_creating("createOrReplace")),
}
