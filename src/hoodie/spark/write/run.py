"""What Spark adds to a write: its frames, and Arrow rows of a session's writer, seen to fit their table."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.spark.after_commit import after_commit
from hoodie.spark.types import to_arrow, with_types_of
from hoodie.spark.validate import validate
from hoodie.spark.write.batch import acquire, acquire_arrow, has_keys, keyed_frame, require_columns, user_schema
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState
from hoodie.writing.arrow_batch import check_against, check_rows
from hoodie.writing.result import Phases
from hoodie.writing.run import CheckedBatch


def check_batch(
    session: SparkSession,
    storage: Storage,
    operation: WriteOperation,
    df: DataFrame,
    options: Options,
    new: TableState | None = None,
) -> CheckedBatch:
    """See whether the table may be written and the batch fits it.

    new     the table as it will be, when it is not made yet
    Raises InvalidInput, SchemaMismatch, InvalidOption, TableMismatch, UnsupportedTable
    """
    if not hasattr(df, "mapInArrow"):
        raise InvalidInput(f"expected a Spark DataFrame, not {type(df).__name__}")
    phases = Phases()
    with phases.time("check"):
        schema = user_schema(df.schema)
        checked, columns, keygen = check_against(
            storage,
            operation,
            options,
            new,
            columns=lambda known: to_arrow(with_types_of(known, schema)),
            require=partial(require_columns, schema),
            has_keys=has_keys(df),
        )
        frame = keyed_frame(df, checked, keygen)
    return CheckedBatch(
        checked,
        columns,
        options,
        partial(acquire, session, frame),
        partial(after_commit, session),
        phases,
        validate=partial(validate, session),
    )


def check_arrow(
    session: SparkSession,
    storage: Storage,
    operation: WriteOperation,
    source: pa.RecordBatchReader,
    options: Options,
    new: TableState | None = None,
) -> CheckedBatch:
    """As `check_batch`, of Arrow rows that this process has."""
    phases = Phases()
    with phases.time("check"):
        checked, rows = check_rows(storage, operation, source, options, new)
    return CheckedBatch(
        checked,
        rows.columns,
        options,
        partial(acquire_arrow, session, rows),
        partial(after_commit, session),
        phases,
        validate=partial(validate, session),
    )
