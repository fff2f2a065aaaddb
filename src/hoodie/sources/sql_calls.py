"""`spark.sql`, `spark.table`, `spark.catalog` and views of frames, once caught: they know the tables of ours."""

import functools
from collections.abc import Callable
from typing import Any

from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Table

from hoodie.api.datasource_read import read
from hoodie.config.datasource import overridden
from hoodie.config.hudi_options import Purpose
from hoodie.config.table import PROPERTIES_FILE
from hoodie.errors import StatementError
from hoodie.sources.answers import job_options
from hoodie.sources.calls import Call, recorded_calls
from hoodie.sources.view_refresh import refresh_named, with_views
from hoodie.spark.catalog import SESSION_CATALOG, current_database
from hoodie.spark.names import NamedTable, registered_names, registered_path
from hoodie.spark.own_sql import forget_foreign, is_handed_over, prepare, takes_sql
from hoodie.spark.table_views import note_view, table_of
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.statements.cutting import Name, Text
from hoodie.statements.names import table_if_ours
from hoodie.statements.rows import open_named, session_options
from hoodie.statements.run import answer, makes_table_of_ours
from hoodie.statements.session import fits
from hoodie.storage import storage_for


def caught(original: Call, call: Call) -> Call:
    """A method in whose place a call stands."""

    @functools.wraps(original)
    def method(self: Any, /, *arguments: Any, **named: Any) -> Any:
        return call(original, self, *arguments, **named)

    return method


def _sql(original: Call, self: SparkSession, /, sqlQuery: str, *arguments: Any, **named: Any) -> Any:
    def run() -> Any:
        return original(self, sqlQuery, *arguments, **named)

    if is_handed_over() or not isinstance(sqlQuery, str):
        return with_views(self, sqlQuery, run) if isinstance(sqlQuery, str) else run()
    if not takes_sql():
        if makes_table_of_ours(sqlQuery):
            raise StatementError(
                "CREATE TABLE … USING hudi is no statement of Spark's, which would leave an entry without a table: "
                "hoodie.spark.sql(spark, …) takes it, and so does spark.sql after hoodie.register(spark, sql=True)"
            )
        return with_views(self, sqlQuery, run)
    return _answer(self, sqlQuery, arguments, named, run)


def _answer(session: SparkSession, text: str, arguments: Any, named: dict[str, Any], run: Callable[[], Any]) -> Any:
    prepare(session)
    frames = dict(named)
    args = arguments[0] if arguments else frames.pop("args", None)

    def ours() -> DataFrame | None:
        return answer(session, text, args, frames)

    def attempt() -> Any:
        rows = ours()
        if rows is not None:
            return rows
        try:
            return run()
        except (AnalysisException, UnsupportedOperationException):
            if forget_foreign(session) and (rows := ours()) is not None:  # a name was another's a moment ago
                return rows
            raise

    return with_views(session, text, attempt)


def _table(original: Call, self: Any, /, tableName: str) -> Any:
    is_session = hasattr(self, "catalog")
    session = self if is_session else self._spark if hasattr(self, "_spark") else self._client
    refresh_named(session, tableName)
    if is_handed_over() or not takes_sql():
        return original(self, tableName)
    prepare(session)
    rows = _frame(session, tableName, None if is_session else self)
    return original(self, tableName) if rows is None else rows


def name_parts(name: str) -> tuple[str, ...] | None:
    """The parts of a name as Spark's calls take it; None: it is none."""
    try:
        text = Text.of(name)
        parts, end = text.name()
    except StatementError:
        return None
    return parts if end == len(text.tokens) else None


def named_or_none(session: SparkSession, name: object) -> tuple[Name, NamedTable] | None:
    """The table of ours that a call names; None: it is Spark's, or nobody's."""
    parts = name_parts(name) if isinstance(name, str) else None
    table = table_if_ours(session, parts) if parts else None
    return None if parts is None or table is None else (Name(parts, parts[-1]), table)


def _frame(session: SparkSession, name: str, reader: Any) -> DataFrame | None:
    """The rows of a table of ours by its name, as the options of a reader say; None: it is none."""
    named_entry = named_or_none(session, name)
    if named_entry is None:
        return None
    settings = session_options(session, Purpose.READ)
    open_named(session, *named_entry, settings)  # an entry without a table is named as that
    options = dict(overridden(settings, job_options(recorded_calls(reader)["options"]) if reader is not None else {}))
    if named_entry[1].read_optimized:
        options["hoodie.datasource.query.type"] = "read_optimized"
    with raise_worker_errors():
        return read(named_entry[1].path, options, spark=session)


def _table_exists(original: Call, self: Any, /, tableName: str, dbName: str | None = None) -> bool:
    exists: bool = original(self, tableName, dbName)
    if exists or is_handed_over() or not takes_sql():
        return exists
    parts = name_parts(f"{dbName}.{tableName}" if dbName else tableName)
    if parts is not None and len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        parts = parts[1:]
    return parts is not None and registered_path(_session(self), ".".join(parts)) is not None


def _list_tables(original: Call, self: Any, /, dbName: str | None = None, pattern: str | None = None) -> list[Table]:
    tables: list[Table] = original(self, dbName, pattern)
    if is_handed_over() or not takes_sql():
        return tables
    session = _session(self)
    parts = name_parts(dbName) if dbName else None
    database = parts[-1] if parts else current_database(session)
    if database is None:
        return tables
    listed_names = {table.name.lower() for table in tables if not table.isTemporary}
    names = [
        name for name in registered_names(session, database) if name not in listed_names and fits(name, pattern or "*")
    ]
    return [*tables, *(Table(name, SESSION_CATALOG, [database], None, "EXTERNAL", False) for name in names)]


def _session(catalog: Any) -> SparkSession:
    session: SparkSession = catalog._sparkSession
    return session


def _noting_frames(original: Call, self: Any, /, name: str) -> None:
    """Frames of a whole table are remembered as views of it."""
    original(self, name)
    view = table_of(self)
    # Else the path is a pattern, or a partition.
    whole = view is not None and storage_for(view.path, view.driver).exists(PROPERTIES_FILE)
    note_view(self.sparkSession, name, view if whole else None)


SESSION: dict[str, Call] = {"sql": _sql, "table": _table}
TABLE_READER: dict[str, Call] = {"table": _table}
CATALOG: dict[str, Call] = {"tableExists": _table_exists, "listTables": _list_tables}
FRAME: dict[str, Call] = {"createOrReplaceTempView": _noting_frames, "createTempView": _noting_frames}
