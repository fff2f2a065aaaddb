"""The engine that needs no Spark: rows are Arrow, threads of this process do the work."""

from typing import Any

from hoodie.api.arrow.rows import Rows
from hoodie.api.arrow_keys import ArrowKeys
from hoodie.api.engine import Engine
from hoodie.api.inputs import arrow_stream, is_spark_frame
from hoodie.config.read import ReadSettings
from hoodie.config.write import WriteOperation
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.local import check_batch
from hoodie.writing.run import IncomingBatch


def check_local_batch(
    storage: Storage, operation: WriteOperation, rows: Any, settings: Settings, new: TableState | None = None
) -> IncomingBatch:
    """See that rows fit their table. A DataFrame of Spark's is written by its own session."""
    if is_spark_frame(rows):
        from hoodie.api.spark_engine import (
            check_spark_batch as check_on_spark,  # PySpark is there: the frame is one of its own
        )

        return check_on_spark(rows.sparkSession, storage, operation, rows, settings, new)
    return check_batch(storage, operation, arrow_stream(rows), settings, after_commit, new)


def read_local(state: TableState, read: Read, settings: ReadSettings) -> Rows:
    if read.cdc:
        assert read.begin is not None
        return Rows.of_change_data(plan_change_data(state, read.begin, read.end, settings), read.columns, read.filters)
    return Rows.of_scan(plan_read(state, read, settings))


def engine_of(session: Any) -> Engine[Any]:
    """The engine of a session; None: the one of this process."""
    if session is None:
        return LOCAL
    from hoodie.api.spark_engine import spark_engine  # PySpark is not loaded where no session is given

    return spark_engine(session)


LOCAL: Engine[Rows] = Engine(check_local_batch, read_local, ArrowKeys, after_commit, Rows.of_table)
