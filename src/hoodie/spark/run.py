"""A write from start to end: check the batch, take an instant, write files, publish. Shared by table and client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.spark.types import to_arrow
from hoodie.spark.write import Acquired, acquire, has_keys, keyed_frame, require_columns, user_schema, write
from hoodie.storage.protocol import Storage
from hoodie.table.agree import completed
from hoodie.table.finish import abandoned_on_error, finish
from hoodie.table.job import Checked, WriteJob, check, start, with_transaction, writable_state
from hoodie.table.result import Phases, WriteResult
from hoodie.table.semantics import Settings
from hoodie.table.state import key_samples, table_keygen
from hoodie.table.transaction import Transaction


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch that fits its table. Nothing is on disk yet.

    frame    its rows with record key and partition path
    options  all of the write, for what the commit's metadata keeps
    """

    session: SparkSession
    checked: Checked
    frame: DataFrame
    options: Mapping[str, str]
    phases: Phases = field(default_factory=Phases)


def check_batch(
    session: SparkSession, storage: Storage, operation: WriteOperation, df: DataFrame, options: Mapping[str, str]
) -> CheckedBatch:
    """See whether the table may be written and the batch fits it.

    Raises InvalidInput, SchemaMismatch, InvalidOption, TableMismatch, UnsupportedTable
    """
    if not hasattr(df, "mapInArrow"):
        raise InvalidInput(f"expected a Spark DataFrame, not {type(df).__name__}")
    phases = Phases()
    with phases.time("check"):
        settings = Settings.read(options)
        state = completed(writable_state(storage, settings), options)
        keygen = table_keygen(state, key_samples(state))
        schema = user_schema(df.schema)
        deleting = operation is WriteOperation.DELETE
        if not (deleting and has_keys(df)):
            require_columns(schema, keygen, () if deleting else state.config.ordering, state.config.name)
        checked = check(state, operation, None if deleting else to_arrow(schema), settings)
        frame = keyed_frame(df, checked, keygen)
    return CheckedBatch(session, checked, frame, options, phases)


def run(batch: CheckedBatch, transaction: Transaction | None = None, *, commit: bool = True) -> WriteResult:
    """Carry the write out.

    transaction  whose instant it is to have; None: a new one
    commit       publish it; else the result is what `HoodieWriteClient.commit` takes
    """
    acquired = acquire(batch.session, batch.frame, batch.checked, batch.phases)
    try:
        if transaction is not None:
            job = with_transaction(batch.checked, transaction)
        else:
            with batch.phases.time("begin"):
                job = start(batch.checked)
        with abandoned_on_error(job.transaction):
            return _run(batch, job, acquired, commit)
    finally:
        acquired.release()


def _run(batch: CheckedBatch, job: WriteJob, acquired: Acquired, commit: bool) -> WriteResult:
    job, outcome = write(batch.session, acquired, job, batch.phases)
    return finish(job, outcome, batch.phases, batch.options, commit=commit)
