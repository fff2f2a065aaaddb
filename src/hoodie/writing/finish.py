"""The end of a write, however its files came about: publish it, or take it back."""

import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from hoodie.commit.conflict_check import WITHOUT_LOCK, rolled_back
from hoodie.commit.transaction import Transaction, abandon, describe, publish_seen
from hoodie.errors import FileGone, HoodieError, InstantNotFound, InvalidInput, SmallFiles, WriteConflict, clause
from hoodie.index import bucket
from hoodie.keygen.time_units import partition_names
from hoodie.lookup.index_follow import notify_of_rollbacks
from hoodie.metadata.keys import MetadataPartition
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId
from hoodie.storage.faults import fault_of, typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.replacement import NOT_YET, REPLACES
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.index_updates import finalize_index
from hoodie.writing.key_changes import WrittenFiles, key_changes
from hoodie.writing.planning import DRIVER, TaskResults
from hoodie.writing.result import Phases, Validate, WriteResult, notify_committed
from hoodie.writing.write import Write, replaced_groups

_log = logging.getLogger("hoodie.write")

#: What a writer does for its table after a commit: (storage, settings, instant, the table as it is then).
AfterCommit = Callable[[Storage, Settings, str, TableState | None], object]


def finish(
    write: Write,
    outcome: TaskResults,
    phases: Phases,
    *,
    commit: bool = True,
    replaced: Mapping[str, Collection[str]] | None = None,
    validate: Validate | None = None,
) -> WriteResult:
    """Publish the files that a write's tasks left.

    commit    False: only describe what would be published
    replaced  file groups that it takes away; None: as its operation says
    validate  checks the commit first; None: nothing does
    """
    replaced = replaced_groups(write, outcome.partitions) if replaced is None else replaced
    write.keep_clear({FileGroupId(partition, file_id) for partition, ids in replaced.items() for file_id in ids})
    with phases.time("commit"):
        extra = _extra(write)
        if write.index.announce is not None:
            extra |= write.index.announce(write.begun.time, outcome.stats, outcome.later)
        metadata = describe(write.begun, outcome.stats, replaced, extra)
        after: TableState | None = None
        if write.operation_rules.new_keys and (existing := metadata.updated + metadata.deleted):
            raise InvalidInput(
                f"{existing} rows of the insert have keys that {write.state.config.name} has already: upsert them, or "
                "leave them out (HoodieReadClient.filter_exists). Nothing has changed"
            )
        if validate is not None:
            validate(write.begun, metadata, write.settings)
        indexed = MetadataPartition.RECORD_INDEX in write.begun.state.config.metadata_partitions
        keys = key_changes(_written_files(write, outcome, replaced)) if indexed else None
        if commit:
            lingering = outcome.route != DRIVER
            metadata, after = publish_seen(
                write.begun, metadata, lingering=lingering, keys=keys, unseeing=write.unseeing
            )
            if outcome.later:
                finalize_index(write.index, write.begun.time, outcome.later)
    later = () if commit else outcome.later
    result = WriteResult(
        write.begun.time,
        metadata,
        outcome.index,
        outcome.route,
        phases.whole(),
        later,
        after,
        keys=None if commit else keys,
        unseeing=write.unseeing and not commit,
        table=write.state.config.name,
        path=write.begun.path,
        difference=write.difference,
    )
    if commit:
        notify_committed(result)
    else:
        _log.info("%s: %s; not committed yet", result.table, result)
    return result


def _written_files(write: Write, outcome: TaskResults, replaced: Mapping[str, Collection[str]]) -> WrittenFiles:
    return WrittenFiles(
        write.begun.state,
        write.begun.time,
        write.schema,
        outcome.stats,
        replaced,
        write.index,
        looked_up=write.operation_rules.locate,
        threads=write.settings.engine.threads,
    )


def _extra(write: Write) -> dict[str, str]:
    """What a commit's metadata keeps besides statistics: the schema, and options with the prefix for that."""
    prefix = write.settings.write.metadata_prefix
    extra = {key: value for key, value in write.settings.options.items() if prefix and key.startswith(prefix)}
    if write.state.config.replaced_at == NOT_YET:
        extra = {**extra, REPLACES: "true"}
    # Keys deleted from a table without rows tell nothing about its columns: the first rows decide.
    if not write.schema.names:
        return extra
    return {**extra, "schema": write.avro_schema, **write.by_id}


@contextmanager
def abandoned_on_error(write: Write) -> Iterator[None]:
    """A write that fails is rolled back at once, and its index hears of it; if that fails too, the next write does it.

    Raises  what it failed with; WriteConflict where that was a file which other writers' commits made obsolete;
            InstantNotFound where another writer without a lock took the files of this one away
    """
    transaction = write.begun
    try:
        yield
    except Exception as error:
        _log.info("write %s failed with %s; rolling it back", transaction.time, type(error).__name__)
        conflict: HoodieError | None = None
        try:
            with typed_errors():
                conflict = _rolled_back_meanwhile(transaction, error)
                taken_back = abandon(transaction)
                conflict = overtaken(transaction.state, error) or conflict
            if not taken_back:
                error.add_note(
                    f"Instant {transaction.time} is not pending: see the table's history for what became of it."
                )
            else:
                notify_of_rollbacks(write.index, [transaction.time])
        except HoodieError as second:
            error.add_note(f"Rolling instant {transaction.time} back failed, too; the next write will. ({second})")
        if conflict is not None:
            raise conflict from error
        raise
    except BaseException:  # such as an interrupt: the process may live on, and would keep the write's heart beating
        transaction.fall_silent()
        raise


#: New partitions of one write that are many, and rows of each that are enough to warrant them.
_PARTITIONS, _ROWS = 200, 100_000
#: New files of one write that are many for a BUCKET index, and rows of each that are enough.
_BUCKETS, _BUCKET_ROWS = 32, 100


def warn_of_small_files(write: Write, stats: Sequence[WriteStat]) -> None:
    """Warns SmallFiles

    stats  of a write that is not published yet
    """
    opened = [stat for stat in stats if stat.prev_commit == "null" and stat.num_inserts]
    if len(opened) < min(_BUCKETS, _PARTITIONS):
        return
    config, rows = write.state.config, sum(stat.num_inserts for stat in opened)
    older = {stat.partition for stat in stats if stat.prev_commit != "null"}
    partitions = {stat.partition for stat in opened} - older
    if len(partitions) > _PARTITIONS and rows < _ROWS * len(partitions):
        columns = ", ".join(partition_names(config.partition_by, config.properties))
        problem = (
            f"{len(partitions)} partitions of {rows // len(partitions)} rows each, and reads open a file of each. "
            f'Partition by something coarser than {columns}, such as partition_by="month(at)" for a time, or not at '
            "all: filters leave out files by the least and greatest value of any column, too"
        )
        warnings.warn(SmallFiles(config.name, problem), stacklevel=3)
    elif write.index.name == bucket.NAME and len(opened) >= _BUCKETS and rows < _BUCKET_ROWS * len(opened):
        problem = (
            f"{len(opened)} files of {rows // len(opened)} rows each, one for each bucket. Make the table with fewer "
            f"buckets ({bucket.BUCKETS}, for each partition), or with another index, hoodie.index.type=BLOOM"
        )
        warnings.warn(SmallFiles(config.name, problem), stacklevel=3)


def with_remedy(error: Exception) -> str:
    """What an error says, and what several writers without a lock need."""
    return str(error) if WITHOUT_LOCK in str(error) else f"{clause(error)}. {WITHOUT_LOCK}"


def _rolled_back_meanwhile(transaction: Transaction, error: Exception) -> InstantNotFound | None:
    """What a file that is gone means to a single writer while another one is at the table; None: it has another
    reason."""
    if transaction.writers.concurrency.several or not isinstance(_fault(error), FileGone):
        return None
    earlier_times = {instant.requested for instant in transaction.state.timeline.instants} | {transaction.time}
    now = transaction.state.reload().timeline
    listed = now.find(transaction.time, transaction.instant.action) is not None
    if listed and all(instant.requested in earlier_times for instant in now.instants):
        return None
    return InstantNotFound(rolled_back(transaction.instant))


def _fault(error: Exception) -> BaseException | None:
    return error if isinstance(error, FileGone) else fault_of(error)


def overtaken(before: TableState, error: Exception) -> WriteConflict | None:
    """The conflict behind a file that is gone: others committed since a write looked at the table, and a cleaning
    removed what only the older rows needed; or another write was rolled back. None: the error has another reason.

    before  the table as the write found it
    """
    if not isinstance(_fault(error), FileGone):
        return None
    now = before.reload().timeline
    if now.commits != before.timeline.commits:
        what = "other writers have committed since this write began, and a cleaning deleted a file that it was to read"
    elif before.timeline.still(now).instants != before.timeline.instants:
        what = "another write was rolled back since this one began"
    else:
        return None
    return WriteConflict(
        f"{what} ({clause(error)}). Nothing is published; write the batch again: "
        "hoodie.write.num.retries.on.conflict.failures does so by itself."
    )
