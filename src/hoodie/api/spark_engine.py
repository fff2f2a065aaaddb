"""The engine of a Spark session: rows are DataFrames, small work is done by threads of the driver."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.api.engine import Engine
from hoodie.api.inputs import arrow_stream, is_spark_frame
from hoodie.api.spark_keys import SparkKeys
from hoodie.config.read import ReadSettings
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput, MissingPackage
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.changes.data_plan import CHANGE_COLUMNS
from hoodie.reading.filters.predicate import ANY, Tests, held_filters
from hoodie.reading.filters.selection import ANY_ZONE, certain_tests, check_columns, read_filter, tuples_in_sql
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.table_schema import read_schema
from hoodie.spark.columns import quoted
from hoodie.spark.compaction import carry_out
from hoodie.spark.index_repair import put_again
from hoodie.spark.read import incremental, snapshot
from hoodie.spark.read.incremental import change_data
from hoodie.spark.read.route import route_to
from hoodie.spark.tasks import is_classic, map_items
from hoodie.spark.types import local_frame, to_spark
from hoodie.spark.validate import validate
from hoodie.spark.write.run import after_commit_of_spark, check_arrow, check_frame
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.run import IncomingBatch


def spark_engine(session: SparkSession) -> Engine[DataFrame]:
    """Reads and writes by a session."""
    return Engine(
        partial(check_spark_batch, session),
        partial(read_spark, session),
        partial(SparkKeys, session),
        partial(after_commit_of_spark, session),
        lambda rows: local_frame(session, rows, to_spark(rows.schema)),
        partial(carry_out, session),
        partial(put_again, session),
        partial(map_items, session),
        spark_version=session.version,
        validate=partial(validate, session),
        route=partial(route_to, session),
        meta=True,
    )


def check_spark_batch(
    session: SparkSession,
    storage: Storage,
    operation: WriteOperation,
    rows: Any,
    settings: Settings,
    new: TableState | None = None,
) -> IncomingBatch:
    """See that rows fit their table: a DataFrame, or anything that `arrow_stream` takes."""
    if is_spark_frame(rows):
        return check_frame(session, storage, operation, rows, settings, new)
    return check_arrow(session, storage, operation, arrow_stream(rows), settings, new)


def read_spark(session: SparkSession, state: TableState, read: Read, settings: ReadSettings) -> DataFrame:
    """Raises InvalidInput on a filter that is an expression of pyarrow's, which Spark cannot take."""
    if read.cdc and read.columns is not None:
        check_columns(read.columns, CHANGE_COLUMNS)
    if read.filters is None:
        return _read(session, state, read, read.columns, settings)
    rows = _filter(session, state, read)
    whole = replace(read, meta=True)  # the condition may ask for meta columns
    frame = _read(session, state, whole, rows.read, settings, rows.tests).where(rows.condition)
    if read.columns is not None:
        return frame.select(*map(quoted, read.columns))
    return frame if read.meta else frame.drop(*META_COLUMNS)


def _read(
    session: SparkSession,
    state: TableState,
    read: Read,
    columns: Sequence[str] | None,
    settings: ReadSettings,
    tests: Tests = ANY,
) -> DataFrame:
    if read.kind is ScanKind.CHANGES:
        assert read.begin is not None
        if read.cdc:
            rows = change_data(session, state, read.begin, read.end, settings)
            return rows if columns is None else rows.select(*columns)
        frame = incremental.changes(session, state, read.begin, read.end, columns, settings)
        return frame if read.meta or columns is not None else frame.drop(*META_COLUMNS)
    rows_read = replace(read, columns=columns, filters=None)
    return snapshot.scan_rows(session, plan_read(state, rows_read, settings, for_spark=True, tests=tests))


class _Filter(NamedTuple):
    """A filter for Spark.

    read   the columns that are wanted or that it may ask for; None: all
    tests  what leaves out partitions, and row groups that Python tasks read; Spark's own reader has the condition
    """

    condition: Column
    read: Sequence[str] | None
    tests: Tests


def _filter(session: SparkSession, state: TableState, read: Read) -> _Filter:
    filters = held_filters(read.filters)
    schema = CHANGE_COLUMNS if read.cdc else read_schema(state)
    if isinstance(filters, pc.Expression):
        raise InvalidInput("Spark takes no expression of pyarrow's: give the filter as SQL text or tuples")
    check_columns(read.columns or (), schema)
    if isinstance(filters, str):
        try:
            row_filter, text = read_filter(filters, schema), filters
        except (InvalidInput, MissingPackage):
            return _Filter(F.expr(filters), None, ANY)  # Spark takes more than we can read
        assert row_filter is not None
        check_columns(row_filter.columns, schema)
    else:
        row_filter, text = tuples_in_sql(filters, schema)
    columns = None if read.columns is None else list(dict.fromkeys([*read.columns, *row_filter.columns]))
    # Over Spark Connect the zone counts that the session has when the query runs.
    exact = is_classic(session) and session.conf.get("spark.sql.session.timeZone") in _UTC
    return _Filter(
        F.expr(text), columns, certain_tests(row_filter.tests, schema, dt.timedelta() if exact else ANY_ZONE)
    )


_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})
