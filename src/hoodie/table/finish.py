"""The end of a write, however its files came about: publish it, or take it back; and the write that has no files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from hoodie.config.write import WriteOperation
from hoodie.errors import HoodieError, InvalidInput
from hoodie.storage.protocol import Storage
from hoodie.table.agree import completed
from hoodie.table.job import WriteJob, check, replaced_groups, start, writable_state
from hoodie.table.outcome import Outcome
from hoodie.table.result import Phases, WriteResult
from hoodie.table.semantics import Settings
from hoodie.table.transaction import Transaction, abandon, describe, publish


def finish(
    job: WriteJob, outcome: Outcome, phases: Phases, options: Mapping[str, str], *, commit: bool = True
) -> WriteResult:
    """Publish the files that a write's tasks left.

    options  of the write: what the commit's metadata keeps
    commit   False: only describe what would be published
    """
    return _finish(job, outcome, replaced_groups(job, outcome.partitions), phases, options, commit)


def _finish(
    job: WriteJob,
    outcome: Outcome,
    replaced: Mapping[str, Collection[str]],
    phases: Phases,
    options: Mapping[str, str],
    commit: bool,
) -> WriteResult:
    with phases.time("commit"):
        metadata = describe(job.transaction, outcome.stats, replaced, _extra(job, options))
        if commit:
            publish(job.transaction, metadata)
    return WriteResult(job.transaction.time, metadata, outcome.index, outcome.route, phases.seconds)


def _extra(job: WriteJob, options: Mapping[str, str]) -> dict[str, str]:
    """What a commit's metadata keeps besides statistics: the schema, and options with the prefix for that."""
    prefix = job.checked.settings.write.metadata_prefix
    kept = {key: value for key, value in options.items() if prefix and key.startswith(prefix)}
    # Keys deleted from a table without rows tell nothing about its columns: the first rows decide.
    return {**kept, "schema": job.checked.avro_schema} if job.checked.schema.names else kept


@contextmanager
def abandoned_on_error(transaction: Transaction) -> Iterator[None]:
    """A write that fails is rolled back at once; if that fails too, the next write does it."""
    try:
        yield
    except Exception as error:
        try:
            if not abandon(transaction):
                error.add_note(
                    f"Instant {transaction.time} is not pending: see the table's history for what became of it."
                )
        except (HoodieError, OSError) as second:
            error.add_note(f"Rolling instant {transaction.time} back failed, too; the next write will. ({second})")
        raise


def delete_partitions(storage: Storage, partitions: Sequence[str], options: Mapping[str, str]) -> WriteResult:
    """Take all file groups of partitions away. Raises InvalidInput naming partitions that the table does not have."""
    if not partitions:
        raise InvalidInput("no partition is named: delete_partitions takes partition paths, such as ['2024-01-31']")
    if isinstance(partitions, str):
        raise InvalidInput(f"expected a list of partition paths, not the text {partitions!r}")
    phases = Phases()
    with phases.time("check"):
        settings = Settings.read(options)
        state = completed(writable_state(storage, settings), options)
        checked = check(state, WriteOperation.DELETE_PARTITION, None, settings)
        there = state.slices(partitions)
        missing = sorted(set(partitions) - set(there))
        if missing:
            raise InvalidInput(f"the table has no rows in partitions {missing}; nothing was deleted")
    job = start(checked)
    with abandoned_on_error(job.transaction):
        job = job.with_plan(None)
        groups = {partition: [s.group.file_id for s in part] for partition, part in there.items()}
        return _finish(job, Outcome.nothing(frozenset(partitions)), groups, phases, options, commit=True)
