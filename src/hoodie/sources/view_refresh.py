"""Views made by `USING hudi` show their table as it is now.

Spark plans the files of such a view once and keeps the plan. So the session's `sql` and `table`, which
`hoodie.register` catches, look at the table's commits before a query that names a view, and have the view made anew
where there are others. `hoodie.spark.refresh_view` does it by call. The view's options travel in its schema.
"""

from __future__ import annotations

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
from hoodie.model.instant import Instant
from hoodie.spark.columns import tick
from hoodie.storage import storage_for
from hoodie.table.state import load_state

_KEY = "hoodie.view"
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
    kept = {key: value for key, value in options.items() if not is_driver_option(key)}
    note = {_KEY: json.dumps({"format": name, "options": kept, "whole": len(kept) == len(options)})}
    return StructType([StructField(first.name, first.dataType, first.nullable, note), *others])


def refresh_view(session: SparkSession, name: str) -> None:
    """Have a temporary view, made by `CREATE TEMPORARY VIEW … USING hudi OPTIONS (…)`, show its table as it is now,
    with the columns that it has now. DataFrames made of the view before stay as they are.

    Raises InvalidInput when there is no such view, or it is another one
    """
    _views(session).pop(name.lower(), None)  # else the statements below have it made anew once more
    if not session.catalog.tableExists(tick(name)):
        raise InvalidInput(f"there is no view {name!r} in this session")
    note = _note(session.table(tick(name)))
    if note is None:
        raise InvalidInput(f"{name!r} is not a view made by CREATE TEMPORARY VIEW … USING hudi OPTIONS (path …)")
    source = json.loads(note)
    if not source["whole"]:
        raise InvalidInput(
            f"{name!r} was made with hoodie.storage.* options, which may be secrets and are not kept: make it again, "
            "CREATE OR REPLACE TEMPORARY VIEW … USING hudi OPTIONS (…)"
        )
    options = ", ".join(f"`{key}` '{_escaped(value)}'" for key, value in source["options"].items())
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {tick(name)} USING `{source['format']}` OPTIONS ({options})")


def _note(frame: DataFrame) -> str | None:
    fields = frame.schema.fields
    return fields[0].metadata.get(_KEY) if fields else None


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


# --- what is caught ---


def _views(session: SparkSession) -> dict[str, _View]:
    """The views that were made since `hoodie.register`, by their names in small letters."""
    found: dict[str, _View] = vars(session).setdefault("_hoodie_views", {})
    return found


def _commits(path: str) -> tuple[Instant, ...]:
    return load_state(storage_for(path)).timeline.commits


def _sql(original: Callable[..., Any]) -> Callable[..., Any]:
    def sql(self: SparkSession, sqlQuery: str, *arguments: Any, **named: Any) -> Any:
        made = _MADE.match(sqlQuery)
        name = _unquoted(made["name"]) if made else ""
        _refresh_named(self, sqlQuery, name)
        done = original(self, sqlQuery, *arguments, **named)
        if made:
            _remember(self, name)
        return done

    return sql


def _table(original: Callable[..., Any]) -> Callable[..., Any]:
    def table(self: Any, tableName: str) -> Any:
        is_session = hasattr(self, "catalog")
        session = self if is_session else self._spark if hasattr(self, "_spark") else self._client
        _refresh_named(session, tableName)
        return original(self, tableName)

    return table


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _remember(session: SparkSession, name: str) -> None:
    frame = session.table(tick(name))
    note = _note(frame)
    if note is None:  # of a jar
        return
    source = json.loads(note)
    if not source["whole"]:  # nobody here can reach its table
        return
    path = source["options"]["path"]
    with suppress(TableNotFound):  # a relative path: Spark's planner has a folder of its own
        _views(session)[name.lower()] = _View(frame, path, _commits(path))


def _refresh_named(session: SparkSession, text: str, but: str = "") -> None:
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
            if session.catalog.tableExists(tick(name)) and session.table(tick(name)).sameSemantics(view.frame):
                refresh_view(session, name)  # else the name is another view's by now


SESSION = {"sql": _sql, "table": _table}
TABLE_READER = {"table": _table}
