"""Change data as a DataFrame: Arrow tasks read it, each some file groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.reading.changes.data import group_changes
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.spark.read.merged_slices import packed_rows
from hoodie.table.state import TableState
from hoodie.timeline.points import Point
from hoodie.view.change_data import ChangeStep


def change_data(
    session: SparkSession,
    state: TableState,
    begin: Point,
    end: Point | None = None,
    settings: ReadSettings = DEFAULT_READ,
) -> DataFrame:
    """What became of each row in the commits of (begin, end]: `op`, `ts_ms`, `before`, `after`.

    Raises  as `plan_change_data`
    """
    plan = plan_change_data(state, begin, end, settings)
    return packed_rows(session, plan.groups, _bytes, plan.reader.schema, partial(group_changes, plan.reader))


def _bytes(steps: Sequence[ChangeStep]) -> int:
    return sum(step.size for step in steps)
