"""Deletes by condition: by Spark where the table has a session, else by this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoodie.api.handle import Options, TableHandle
from hoodie.api.local_conditions import local_delete
from hoodie.errors import InvalidInput
from hoodie.writing.result import WriteResult, failures_heard


def delete_by_condition(
    table: TableHandle[Any], condition: Any, *, name: str, frames: Mapping[str, Any] | None, options: Options | None
) -> WriteResult:
    """Delete the rows for which a condition holds; None: all. Raises as `HoodieTable.update`"""
    with failures_heard(table.storage, "DELETE"):
        checked = table._options(options)
        if table.session is None:
            return local_delete(table.storage, condition, name, frames, checked)
        from hoodie.spark.merge import run  # PySpark is there: the table has a session

        refuse_frames(frames)
        return run.delete_with_spark(table.session, table.storage, condition, checked, name)


def refuse_frames(frames: object) -> None:
    """Raises InvalidInput where a table with Spark is given frames."""
    if frames:
        raise InvalidInput("frames are for tables without Spark; with Spark a subquery selects from a temporary view")
