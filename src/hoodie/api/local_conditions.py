"""Merges, updates and deletes by condition on a table without Spark: what a call gives, as this process takes it."""

from collections.abc import Mapping
from typing import Any

from hoodie.api.handle import TableHandle
from hoodie.api.inputs import arrow_stream, is_spark_frame
from hoodie.api.merge_builder import MergeBuilder
from hoodie.conditional import merge as merges
from hoodie.conditional import update as updates
from hoodie.conditional.clauses import MergeRequest
from hoodie.conditional.rows import TableCall, normal_frame
from hoodie.errors import InvalidInput
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit
from hoodie.table.settings import Settings
from hoodie.writing.result import WriteResult, failures_heard

_Frames = Mapping[str, Any] | None


def local_merge(
    storage: Storage, source: Any, condition: Any, names: tuple[str, str], frames: _Frames, settings: Settings
) -> MergeBuilder:
    """names: of the table and of the source"""
    if is_spark_frame(source):
        raise InvalidInput(
            "this table was opened without Spark, and the source is a DataFrame of Spark's: open it with its session"
        )
    call = _call(storage, frames)

    def execute(request: MergeRequest) -> WriteResult:
        with failures_heard(storage, "MERGE"):
            return merges.merge(call, request, settings)

    return MergeBuilder(MergeRequest(arrow_stream(source).read_all(), condition, (), *names), execute)


def local_update(
    storage: Storage, condition: Any, values: Mapping[str, Any], name: str, frames: _Frames, settings: Settings
) -> WriteResult:
    return updates.update(_call(storage, frames), condition, values, settings, name)


def _call(storage: Storage, frames: _Frames) -> TableCall:
    if frames is not None and not isinstance(frames, Mapping):
        raise InvalidInput(
            f"frames is a {type(frames).__name__}: expected rows by their names, such as {{'blocked': rows}}"
        )
    named = (
        {} if frames is None else {name: normal_frame(arrow_stream(rows).read_all()) for name, rows in frames.items()}
    )
    for name, rows in named.items():
        if twice := sorted({column for column in rows.schema.names if rows.schema.names.count(column) > 1}):
            raise InvalidInput(f"frame {name!r} has the column {twice[0]!r} twice: rename one")
    return TableCall(storage, after_commit, named)


def delete_by_condition(
    table: TableHandle[Any], condition: Any, *, name: str, frames: _Frames, options: Mapping[str, Any] | None
) -> WriteResult:
    """Delete the rows for which a condition holds; None: all. By Spark where the table has a session.

    Raises as `HoodieTable.update`
    """
    require_name(name)
    with failures_heard(table.storage, "DELETE"):
        settings = table._condition_settings(options)
        if table.session is None:
            return updates.delete_where(_call(table.storage, frames), condition, settings, name)
        from hoodie.spark.merge import run  # PySpark is there: the table has a session

        refuse_frames(frames)
        return run.delete_with_spark(table.session, table.storage, condition, settings, name)


def require_name(name: object) -> None:
    """Raises InvalidInput on what expressions cannot call a table."""
    if not isinstance(name, str):
        raise InvalidInput(f"name={name!r}: expected what the condition calls the table, as text")


def refuse_frames(frames: object) -> None:
    """Raises InvalidInput where a table with Spark is given frames."""
    if frames:
        raise InvalidInput("frames are for tables without Spark; with Spark a subquery selects from a temporary view")
