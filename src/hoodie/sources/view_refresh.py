"""Views made by `USING hudi` show their table as it is now.

Spark plans the files of such a view once and keeps the plan. So the session's `sql` and `table`, which
`hoodie.register` catches, look at the table's commits before a query that names a view, and have the view made anew
where there are others. `hoodie.spark.refresh_view` does it by call. The view's options travel in its schema.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from hoodie.config.driver_options import is_driver_option
from hoodie.errors import InvalidInput, TableNotFound
from hoodie.expressions.text import tick
from hoodie.model.instant import Instant
from hoodie.spark.entries import sql_text
from hoodie.spark.own_sql import spark_sql, spark_table
from hoodie.spark.session import require_session
from hoodie.spark.table_views import TableView, note_view
from hoodie.storage import storage_for
from hoodie.table.state import load_state

_KEY = "hoodie.view"
#: Options that say which rows a view has.
_ROWS = ("hoodie.datasource.query.", "hoodie.datasource.read.", "as.of.instant")
_MADE = re.compile(
    r"(?:\s|--[^\n]*\n|/\*[\s\S]*?\*/)*CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>\w+|`(?:[^`]|``)+`)\s*"
    r"(?:\((?:[^()]|\([^()]*\))*\)\s*)?\bUSING\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _View:
    """A view of the session, as it was made last.

    frame    its rows: what tells whether the view of this name is still this one
    commits  those that its table had
    """

    frame: DataFrame
    path: str
    commits: tuple[Instant, ...]


def with_source(schema: StructType, name: str, options: Mapping[str, str]) -> StructType:
    """The columns of a view, the first with a note of what the view is made of.

    Spark writes such notes into files that are made of the view's rows: options of the storage stay out of it.
    """
    first, *others = schema.fields
    noted_options = {key: value for key, value in options.items() if not is_driver_option(key)}
    note = {_KEY: json.dumps({"format": name, "options": noted_options, "whole": len(noted_options) == len(options)})}
    return StructType([StructField(first.name, first.dataType, first.nullable, note), *others])


def source_note(schema: StructType) -> dict[str, Any] | None:
    """What a view is made of: format, options, and whether these are all that there were; None: it is another one."""
    note = schema.fields[0].metadata.get(_KEY) if schema.fields else None
    return None if note is None else json.loads(note)


def refresh_view(session: SparkSession, name: str) -> None:
    """Have a temporary view, made by `CREATE TEMPORARY VIEW … USING hudi OPTIONS (…)`, show its table as it is now,
    with the columns that it has now. DataFrames made of the view before stay as they are.

    Raises InvalidInput when there is no such view, or it is another one
    """
    require_session(session, "refresh_view")
    if not isinstance(name, str):
        raise InvalidInput(f"there is no view {name!r} in this session")
    _views(session).pop(name.lower(), None)  # else the statements below have it made anew once more
    if not session.catalog.tableExists(tick(name)):
        raise InvalidInput(f"there is no view {name!r} in this session")
    source = source_note(spark_table(session, tick(name)).schema)
    if source is None:
        raise InvalidInput(f"{name!r} is not a view made by CREATE TEMPORARY VIEW … USING hudi OPTIONS (path …)")
    if not source["whole"]:
        raise InvalidInput(
            f"{name!r} was made with hoodie.storage.* options, which may be secrets and are not kept: make it again, "
            "CREATE OR REPLACE TEMPORARY VIEW … USING hudi OPTIONS (…)"
        )
    options = ", ".join(f"`{key}` {sql_text(value)}" for key, value in source["options"].items())
    statement = f"CREATE OR REPLACE TEMPORARY VIEW {tick(name)} USING `{source['format']}` OPTIONS ({options})"
    spark_sql(session, statement)


# --- what is caught ---


def _views(session: SparkSession) -> dict[str, _View]:
    """The views that were made since `hoodie.register`, by their names in small letters."""
    views: dict[str, _View] = vars(session).setdefault("_hoodie_views", {})
    return views


def _commits(path: str) -> tuple[Instant, ...]:
    return load_state(storage_for(path)).timeline.commits


def with_views(session: SparkSession, text: str, run: Callable[[], Any]) -> Any:
    """Run a statement, with the views that it names as their tables are now; one that it makes is remembered."""
    match = _MADE.match(text)
    name = match["name"] if match else ""
    if name.startswith("`"):
        name = name[1:-1].replace("``", "`")
    refresh_named(session, text, name)
    outcome = run()
    if match:
        _remember(session, name)
    return outcome


def _remember(session: SparkSession, name: str) -> None:
    frame = spark_table(session, tick(name))
    source = source_note(frame.schema)
    if source is None:  # of a jar
        return
    if not source["whole"]:  # nobody here can reach its table
        return
    path = source["options"]["path"]
    with suppress(TableNotFound):  # a relative path: Spark's planner has a folder of its own
        _views(session)[name.lower()] = _View(frame, path, _commits(path))
        whole = all(key == "path" or not key.startswith(_ROWS) for key in source["options"])
        note_view(session, name, TableView(frame, path, live=True) if whole else None)


def refresh_named(session: SparkSession, text: str, but: str = "") -> None:
    """Have the views that a text names show their tables as they are now, but for one that it makes."""
    views = _views(session)
    if not views:
        return
    text = text.lower()
    words = set(re.findall(r"\w+", text))
    for name in [name for name in views if name in words or (tick(name) in text and not name.isidentifier())]:
        if name == but.lower():
            continue
        view = views[name]
        with suppress(TableNotFound):  # the name may be another's in this text; if not, reading the view says so
            if _commits(view.path) == view.commits:
                continue
            views.pop(name, None)
            if session.catalog.tableExists(tick(name)) and spark_table(session, tick(name)).sameSemantics(view.frame):
                refresh_view(session, name)  # else the name is another view's by now
