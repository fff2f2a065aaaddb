"""A write from start to end: check the batch, take an instant, write files, publish. Shared by table and client."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from hoodie.config.write import WriteOperation
from hoodie.errors import HoodieError, InvalidInput
from hoodie.spark.types import to_arrow
from hoodie.spark.write import Acquired, acquire, keyed_frame, user_columns, write
from hoodie.storage.protocol import Storage
from hoodie.table.create import named_settings, require_same
from hoodie.table.job import Checked, WriteJob, check, replaced_groups, start, with_transaction, writable_state
from hoodie.table.outcome import Outcome
from hoodie.table.result import Phases, WriteResult
from hoodie.table.semantics import Settings
from hoodie.table.state import key_samples, table_keygen
from hoodie.table.transaction import Transaction, abandon, describe, publish


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
        state = writable_state(storage, settings)
        require_same(state, named_settings(options))
        columns = None if operation is WriteOperation.DELETE else to_arrow(user_columns(df).schema)
        checked = check(state, operation, columns, settings)
        frame = keyed_frame(df, checked, table_keygen(state, key_samples(state)))
    return CheckedBatch(session, checked, frame, options, phases)


def run(batch: CheckedBatch, transaction: Transaction | None = None, *, commit: bool = True) -> WriteResult:
    """Carry the write out.

    transaction  whose instant it is to have; None: a new one
    commit       publish it; else the result is what `publish_result` takes
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
    return _finish(job, outcome, replaced_groups(job, outcome.partitions), batch.phases, batch.options, commit)


def _finish(
    job: WriteJob,
    outcome: Outcome,
    replaced: Mapping[str, Collection[str]],
    phases: Phases,
    options: Mapping[str, str],
    commit: bool = True,
) -> WriteResult:
    with phases.time("commit"):
        metadata = describe(job.transaction, outcome.stats, replaced, _extra(job, options))
        if commit:
            publish(job.transaction, metadata)
    return WriteResult(job.transaction.time, metadata, outcome.index, outcome.route, phases.seconds)


def delete_partitions(
    session: SparkSession, storage: Storage, partitions: Sequence[str], options: Mapping[str, str]
) -> WriteResult:
    """Take all file groups of partitions away. Raises InvalidInput naming partitions that the table does not have."""
    if isinstance(partitions, str):
        raise InvalidInput(f"expected a list of partition paths, not the text {partitions!r}")
    phases = Phases()
    with phases.time("check"):
        settings = Settings.read(options)
        state = writable_state(storage, settings)
        checked = check(state, WriteOperation.DELETE_PARTITION, None, settings)
        there = state.slices(partitions)
        missing = sorted(set(partitions) - set(there))
        if missing:
            raise InvalidInput(f"the table has no rows in partitions {missing}; nothing was deleted")
    job = start(checked)
    with abandoned_on_error(job.transaction):
        job = job.with_plan(None)
        groups = {partition: [s.group.file_id for s in part] for partition, part in there.items()}
        return _finish(job, Outcome.nothing(frozenset(partitions)), groups, phases, options)


def _extra(job: WriteJob, options: Mapping[str, str]) -> dict[str, str]:
    """What a commit's metadata keeps besides statistics: the schema, and options with the prefix for that."""
    prefix = job.checked.settings.write.metadata_prefix
    kept = {key: value for key, value in options.items() if prefix and key.startswith(prefix)}
    return {**kept, "schema": job.checked.avro_schema}


@contextmanager
def abandoned_on_error(transaction: Transaction) -> Iterator[None]:
    """A write that fails is rolled back at once; if that fails too, the next write does it."""
    try:
        yield
    except Exception as error:
        try:
            if not abandon(transaction):
                error.add_note(f"Instant {transaction.time} is not pending: see the table's history for what became of it.")
        except (HoodieError, OSError) as second:
            error.add_note(f"Rolling instant {transaction.time} back failed, too; the next write will. ({second})")
        raise
