"""What Spark adds to a write: its frames, and Arrow rows of a session's writer, seen to fit their table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.spark.after_commit import after_commit
from hoodie.spark.types import to_arrow
from hoodie.spark.write.batch import acquire, acquire_arrow, has_keys, keyed_frame, require_columns, user_schema
from hoodie.storage.protocol import Storage
from hoodie.table.overrides import completed
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, key_samples, table_keygen
from hoodie.writing.arrow_batch import check_rows
from hoodie.writing.job import check, writable_state
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
        settings = Settings.read(options)
        state = completed(new or writable_state(storage, settings), options)
        keygen = table_keygen(state, key_samples(state))
        schema = user_schema(df.schema)
        deleting = operation is WriteOperation.DELETE
        if not deleting:
            require_columns(schema, keygen, state.config.ordering, state.config.name)
        columns = None if deleting else to_arrow(schema)
        checked = check(state, operation, columns, settings)
        if deleting and not has_keys(df):  # a global index says itself where keys are
            needed = replace(keygen, partition_fields=()) if checked.index.is_global else keygen
            require_columns(schema, needed, (), state.config.name)
        frame = keyed_frame(df, checked, keygen)
    return CheckedBatch(
        checked, columns, options, partial(acquire, session, frame), partial(after_commit, session), phases
    )


def _check_again(batch: CheckedBatch) -> Checked:
    """The batch against the table as it is now."""
    settings = batch.checked.settings
    state = completed(writable_state(batch.checked.state.storage, settings), batch.options)
    return check(state, batch.checked.operation, batch.columns, settings)


def run(
    batch: CheckedBatch,
    transaction: Transaction | None = None,
    *,
    commit: bool = True,
    make_table: Callable[[], object] | None = None,
) -> WriteResult:
    """Carry the write out.

    transaction  whose instant it is to have; None: a new one
    commit       publish it; else the result is what `HoodieWriteClient.commit` takes
    make_table   called once all rows of the batch have been looked at: its table is not there yet
    """
    settings = batch.checked.settings
    try:
        require_new(batch.checked.state, settings.writers.batch)
    except BatchKnown as known:  # its rows are not even looked at
        if transaction is not None:
            abandon(transaction)
        return earlier_result(known)
    with batch.phases.time("collect"):
        acquired = acquire(batch.session, batch.frame, batch.checked, batch.phases)
    try:
        if transaction is not None:
            job = with_transaction(batch.checked, transaction)
            result = _run(batch, job, acquired, commit)
        else:
            if make_table is not None:
                with batch.phases.time("begin"):
                    make_table()
            result = with_retries(settings, _attempts(batch, acquired, commit, made=make_table is not None))
    except BatchKnown as known:
        return earlier_result(known)
    finally:
        with batch.phases.time("stage" if acquired.staged else "collect"):
            acquired.release()
    if commit:
        with batch.phases.time("services"):
            after_commit(batch.session, batch.checked.state.storage, batch.options, result.instant, result.after)
    return replace(result, seconds=batch.phases.whole())


def _attempts(batch: CheckedBatch, acquired: Acquired, commit: bool, *, made: bool) -> Callable[[], WriteResult]:
    """One attempt after the other, each on the table as it is then. The batch is at hand.

    made  the table has been made since the batch was checked
    """
    numbers = count(int(made))

    def attempt() -> WriteResult:
        with batch.phases.time("begin"):
            job = start(batch.checked if next(numbers) == 0 else _check_again(batch))
        return _run(batch, job, acquired, commit)

    return attempt


def _run(batch: CheckedBatch, job: WriteJob, acquired: Acquired, commit: bool) -> WriteResult:
    with abandoned_on_error(job.transaction, job.checked.index):
        job, outcome = write(batch.session, acquired, job, batch.phases)
        return finish(job, outcome, batch.phases, batch.options, commit=commit)
