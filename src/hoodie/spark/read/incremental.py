"""Changes as a DataFrame: base files that a range touched by Spark's own reader, slices with logs by Arrow tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.model.meta import COMMIT_TIME
from hoodie.reading.incremental import CommitTimes, plan_changes
from hoodie.reading.snapshot import check_columns
from hoodie.spark.read.merged_slices import merged_rows
from hoodie.spark.read.snapshot import base_rows
from hoodie.table.state import TableState


def changes(
    session: SparkSession,
    state: TableState,
    begin: str,
    end: str | None = None,
    columns: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows that changed in (begin, end], the five meta columns first.

    columns  of the table, in the order wanted; None: all
    Raises   as `plan_changes`; InvalidInput on an unknown column

    The filter on commit times goes down to Spark's Parquet reader. Slices with logs give only rows that count to Spark.
    """
    plan = plan_changes(state, begin, end, options)
    wanted = plan.schema.names if columns is None else list(columns)
    check_columns(wanted, plan.schema)
    read = wanted if COMMIT_TIME in wanted else [*wanted, COMMIT_TIME]
    logged = [slice_ for slice_ in plan.slices if slice_.logs]
    plain = [slice_ for slice_ in plan.slices if not slice_.logs]
    frames = []
    if plain or not logged:
        frames.append(base_rows(session, state, plain, plan.schema, read).where(_counts(plan.times)))
    if logged:
        assert plan.reader is not None  # `plan_changes` saw to it
        frames.append(merged_rows(session, plan.reader, logged, read, plan.times.keep))
    rows = reduce(DataFrame.unionByName, frames)
    return rows if read == wanted else rows.drop(COMMIT_TIME)


def _counts(times: CommitTimes) -> Column:
    time = F.col(COMMIT_TIME)
    if times.exact is not None:
        return time.isin(*times.exact)
    return (time > times.after) & (time <= times.up_to)
