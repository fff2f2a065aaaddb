"""Temporary views that show all rows of one table: statements that change their rows change those of the table.

Noted when they are made, with the frame that tells whether the view of the name is still the same one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.expressions.text import tick
from hoodie.spark.own_sql import spark_table

_TABLE = "_hoodie_table"


@dataclass(frozen=True, slots=True)
class TableView:
    """A view of a table.

    frame  its rows
    path   of the table
    driver options of its storage's driver
    live   it is one of Spark's own by `USING hudi`, which shows the table as it is now, and takes INSERT
    """

    frame: DataFrame
    path: str
    live: bool = False
    driver: Mapping[str, Any] = field(default_factory=dict, repr=False)


def of_table(frame: DataFrame, path: str, driver: Mapping[str, Any]) -> DataFrame:
    """The frame, marked as all rows of a table as they are now."""
    vars(frame)[_TABLE] = TableView(frame, path, driver=driver)
    return frame


def table_of(frame: DataFrame) -> TableView | None:
    """What a view of the frame shows, if that is marked as a table's rows; frames made of it are not marked."""
    view: TableView | None = vars(frame).get(_TABLE)
    return view


def note_view(session: SparkSession, name: str, view: TableView | None) -> None:
    """Remember what a view shows; None: not a table, or part of one."""
    if view is None:
        _views(session).pop(name.lower(), None)
    else:
        _views(session)[name.lower()] = view


def view_named(session: SparkSession, parts: Sequence[str]) -> TableView | None:
    """The view of that name, if it shows a table; None: it does not, or is another view by now."""
    view = _views(session).get(parts[0].lower()) if len(parts) == 1 else None
    if view is None:
        return None
    name = tick(parts[0])
    if session.catalog.tableExists(name) and spark_table(session, name).sameSemantics(view.frame):
        return view
    note_view(session, parts[0], None)
    return None


def _views(session: SparkSession) -> dict[str, TableView]:
    views: dict[str, TableView] = vars(session).setdefault("_hoodie_table_views", {})
    return views
