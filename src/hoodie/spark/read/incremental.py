"""Changes as a DataFrame: base files that a range touched by Spark's own reader, slices with logs by Arrow tasks; and
change data, by Arrow tasks alone."""

from collections.abc import Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.model.meta import COMMIT_TIME
from hoodie.reading.changes.data import group_changes
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.reading.changes.plan import CommitTimes
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.spark.read.merged_slices import packed_rows
from hoodie.spark.read.snapshot import scan_frames
from hoodie.table.state import TableState
from hoodie.timeline.points import Point
from hoodie.view.change_data import ChangeStep


def changes(
    session: SparkSession,
    state: TableState,
    begin: Point,
    end: Point | None = None,
    columns: Sequence[str] | None = None,
    settings: ReadSettings = DEFAULT_READ,
) -> DataFrame:
    """The rows that changed in (begin, end], the five meta columns first.

    columns  of the table, in the order wanted; None: all
    Raises   as `plan_read`

    The filter on commit times goes down to Spark's Parquet reader. Slices with logs give only rows that count to Spark.
    """
    request = Read(kind=ScanKind.CHANGES, begin=begin, end=end, columns=columns)
    scan = plan_read(state, request, settings, for_spark=True)
    assert scan.times is not None  # a scan of changes has them
    requested_columns = list(scan.columns)
    read = requested_columns if COMMIT_TIME in requested_columns else [*requested_columns, COMMIT_TIME]
    frames = scan_frames(session, scan, read, _counts(scan.times), scan.times.keep)
    rows = reduce(DataFrame.unionByName, frames)
    return rows if read == requested_columns else rows.drop(COMMIT_TIME)


def _counts(times: CommitTimes) -> Column:
    time = F.col(COMMIT_TIME)
    if times.exact is not None:
        return time.isin(*times.exact)
    return (time > times.after) & (time <= times.up_to)


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
