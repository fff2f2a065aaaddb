"""What Spark adds to a write: its frames, and Arrow rows of a session's writer, seen to fit their table; and the
services after it, by a session.
"""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.spark.columns import quoted
from hoodie.spark.compaction import carry_out
from hoodie.spark.keyed import KeyedFrame, has_keys, keyed_rows, keys_of, require_frame_columns, user_schema
from hoodie.spark.tasks import map_items
from hoodie.spark.types import to_arrow, with_types_of
from hoodie.spark.validate import validate
from hoodie.spark.write.batch import acquire_arrow, acquire_frame
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.batch.arrow import KEYS, check_against, check_rows, keys_for
from hoodie.writing.planning import HeldBatch
from hoodie.writing.result import Phases
from hoodie.writing.run import IncomingBatch
from hoodie.writing.write import Write


def check_frame(
    session: SparkSession,
    storage: Storage,
    operation: WriteOperation,
    df: DataFrame,
    settings: Settings,
    new: TableState | None = None,
) -> IncomingBatch:
    """See whether the table may be written and the batch fits it.

    new     the table as it will be, when it is not made yet
    Raises InvalidInput, SchemaMismatch, InvalidOption, TableMismatch, UnsupportedTable
    """
    if not hasattr(df, "mapInArrow"):
        raise InvalidInput(f"expected a Spark DataFrame, not {type(df).__name__}")
    phases = Phases()
    with phases.time("check"):
        schema = user_schema(df.schema)
        write = check_against(
            storage,
            operation,
            settings,
            new,
            columns=lambda table_schema, _: to_arrow(with_types_of(table_schema, schema)),
            require=lambda _, keygen, ordering, config: require_frame_columns(schema, keygen, ordering, config.name),
            has_keys=has_keys(df),
        )
        batch = _keyed(df, write)
    return incoming(session, write, partial(acquire_frame, session, batch), phases)


def _keyed(frame: DataFrame, write: Write) -> KeyedFrame:
    """The rows, which have the columns needed, with their keys.

    A delete takes nothing else, but for the parts of a compound key: they are compared with the stored rows'.
    """
    if write.keygen is None:
        return keys_of(frame, None)
    user = user_schema(frame.schema)
    keys = KEYS if write.updates_by_stored_keys else ()
    if len(user) < len(frame.schema):
        frame = frame.select(*map(quoted, (*user.names, *keys)))
    types = with_types_of(write.schema, user)
    if types != user:
        frame = frame.to(StructType([*types.fields, *(StructField(name, StringType()) for name in keys)]))
    if write.operation_rules.delete:
        names = {name.partition(".")[0] for name in write.keygen.record_keys}
        return keys_of(frame, write.keygen, names if len(write.keygen.record_keys) > 1 else ())
    return keyed_rows(frame, keys_for(write, user.names), user.names)


def check_arrow(
    session: SparkSession,
    storage: Storage,
    operation: WriteOperation,
    source: pa.RecordBatchReader,
    settings: Settings,
    new: TableState | None = None,
) -> IncomingBatch:
    """As `check_frame`, of Arrow rows that this process has."""
    phases = Phases()
    with phases.time("check"):
        write, rows = check_rows(storage, operation, source, settings, new)
    return incoming(session, write, partial(acquire_arrow, session, rows), phases)


def incoming(
    session: SparkSession, write: Write, acquire: Callable[[Write, Phases], HeldBatch], phases: Phases
) -> IncomingBatch:
    """A write that a session carries out. Arguments as of `IncomingBatch`"""
    return IncomingBatch(
        write,
        acquire,
        partial(after_commit_of_spark, session),
        phases,
        validate=partial(validate, session),
        run=partial(map_items, session),
    )


def after_commit_of_spark(
    session: SparkSession, storage: Storage, settings: Settings, instant: str, state: TableState | None = None
) -> None:
    """As `sync.after_commit.after_commit`; compactions that are not small run on executors."""
    run = partial(carry_out, session)
    after_commit(storage, settings, instant, state, run_compaction=run, spark_version=session.version)
