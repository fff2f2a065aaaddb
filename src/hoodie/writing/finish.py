"""The end of a write, however its files came about: publish it, take it back, or try again after a conflict with
another writer; and the write that has no files.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from hoodie.commit.batch_ids import BatchKnown, require_new
from hoodie.commit.conflict_check import WITHOUT_LOCK
from hoodie.commit.transaction import abandon, describe, publish_seen
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import FileGone, HoodieError, InstantNotFound, InvalidInput, SmallFiles, WriteConflict
from hoodie.index import bucket
from hoodie.index.pruning import IndexStats
from hoodie.keygen.time_units import partition_names
from hoodie.lookup.index_follow import notify_of_rollbacks
from hoodie.metadata.build_tasks import MapItems
from hoodie.metadata.keys import MetadataPartition
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import FileGroupId
from hoodie.storage.faults import fault_of, typed_errors
from hoodie.storage.protocol import Storage, redacted
from hoodie.table.create import completed
from hoodie.table.replacement import NOT_YET, REPLACES
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.index_updates import finalize_index
from hoodie.writing.key_changes import WrittenFiles, key_changes
from hoodie.writing.planning import DRIVER, TaskResults
from hoodie.writing.result import Phases, Validate, WriteResult, notify_committed, validator
from hoodie.writing.write import Write, check, replaced_groups, start, writable_state

_log = logging.getLogger("hoodie.write")

#: What a writer does for its table after a commit: (storage, options, instant, the table as it is then).
AfterCommit = Callable[[Storage, Options, str, TableState | None], object]

#: Which partitions of a table are to be deleted, judged by what it holds.
Choose = Callable[[TableState], Sequence[str]]


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
        told: Mapping[str, str] = {}
        if write.index.announce is not None:
            told = write.index.announce(write.begun.time, outcome.stats, outcome.later)
        metadata = describe(write.begun, outcome.stats, replaced, {**_extra(write), **told})
        after: TableState | None = None
        if write.operation_rules.new_keys and (there := metadata.updated + metadata.deleted):
            raise InvalidInput(
                f"{there} rows of the insert have keys that {write.state.config.name} has already: upsert them, or "
                "leave them out (HoodieReadClient.filter_exists). Nothing has changed"
            )
        if validate is not None:
            validate(write.begun, metadata, write.settings.given)
        indexed = MetadataPartition.RECORD_INDEX in write.begun.state.config.metadata_partitions
        keys = key_changes(_written(write, outcome, replaced)) if indexed else None
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
        path=redacted(write.state.storage.root),
        difference=write.difference,
    )
    if commit:
        notify_committed(result)
    else:
        _log.info("%s: %s; not committed yet", result.table, result)
    return result


def _written(write: Write, outcome: TaskResults, replaced: Mapping[str, Collection[str]]) -> WrittenFiles:
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
    kept = {key: value for key, value in write.settings.given.items() if prefix and key.startswith(prefix)}
    if write.state.config.replaced_at == NOT_YET:
        kept = {**kept, REPLACES: "true"}
    # Keys deleted from a table without rows tell nothing about its columns: the first rows decide.
    if not write.schema.names:
        return kept
    return {**kept, "schema": write.avro_schema, **write.by_id}


@contextmanager
def abandoned_on_error(write: Write) -> Iterator[None]:
    """A write that fails is rolled back at once, and its index hears of it; if that fails too, the next write does it.

    Raises  what it failed with; WriteConflict where that was a file which other writers' commits made obsolete
    """
    transaction = write.begun
    try:
        yield
    except Exception as error:
        _log.info("write %s failed with %s; rolling it back", transaction.time, type(error).__name__)
        conflict = None
        try:
            with typed_errors():
                taken_back = abandon(transaction)
                conflict = overtaken(transaction.state, error)
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


@typed_errors()
def delete_partitions(
    storage: Storage,
    partitions: Sequence[str],
    options: Options,
    after_commit: AfterCommit | None = None,
    validate: Validate | None = None,
    choose: Choose | None = None,
    run: MapItems | None = None,
) -> WriteResult:
    """Take all file groups of partitions away.

    after_commit  runs the services; None: there are none
    validate      of the engine
    choose        which of them are to go, asked again of the table as it is once the delete has begun; None: all
    run           as for `start`
    Raises        InvalidInput naming partitions that the table does not have; WriteConflict when none is to go then
    """
    if not partitions:
        raise InvalidInput("no partition is named: delete_partitions takes partition paths, such as ['2024-01-31']")
    if isinstance(partitions, str):
        raise InvalidInput(f"expected a list of partition paths, not the text {partitions!r}")
    settings = Settings.read(options)
    phases, validate = Phases(), validator(settings, validate)
    attempt = partial(_delete_partitions, storage, partitions, settings, phases, validate, choose, run)
    result = with_retries(settings, attempt)
    if after_commit is not None:
        with phases.time("services"):
            after_commit(storage, options, result.instant, result.after)
    return replace(result, seconds=phases.whole())


def _delete_partitions(
    storage: Storage,
    partitions: Sequence[str],
    settings: Settings,
    phases: Phases,
    validate: Validate | None,
    choose: Choose | None,
    run: MapItems | None,
) -> WriteResult:
    with phases.time("check"):
        state = completed(writable_state(storage, settings), settings.given)
        write = check(state, WriteOperation.DELETE_PARTITION, None, settings)
        require_new(state, settings.writers.batch)  # its partitions are gone, else
        _require_partitions(state, partitions)
    with phases.time("begin"):
        write = start(write, run)
    with abandoned_on_error(write):
        if choose is not None and not (partitions := choose(write.state)):
            raise WriteConflict("other writers have just written to the partitions; nothing was deleted")
        there = _require_partitions(write.state, partitions)
        write = write.with_plan(None)
        nothing = TaskResults.nothing(frozenset(partitions))
        return finish(write, nothing, phases, replaced=there, validate=validate)


def _require_partitions(state: TableState, partitions: Sequence[str]) -> dict[str, list[str]]:
    there = state.groups(partitions)
    if missing := sorted(set(partitions) - set(there)):
        raise InvalidInput(f"the table has no rows in partitions {missing}; nothing was deleted")
    return there


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


#: The route of a write that had nothing to do, as its batch was in the table already.
KNOWN = "known"


def with_retries(settings: Settings, attempt: Callable[[], WriteResult]) -> WriteResult:
    """The result of the first attempt that no other writer contradicts, or that of the write that brought the batch.

    attempt  a whole write: it looks at the table anew, and takes back what it wrote when it fails
    Raises   as the attempts; WriteConflict after 1 + `hoodie.write.num.retries.on.conflict.failures` of them, and at
             once when another writer without a lock rolled the write back: tried again, the two would take turns at it
    """
    how = settings.writers.concurrency
    for left in range(how.conflict_retries, -1, -1):
        try:
            return attempt()
        except BatchKnown as known:
            return earlier_result(known)
        except InstantNotFound as gone:
            if how.several:
                raise
            raise WriteConflict(with_remedy(gone)) from gone
        except WriteConflict as conflict:
            if not left:
                if how.conflict_retries:
                    conflict.add_note(f"{how.conflict_retries + 1} attempts were made.")
                if not how.several and WITHOUT_LOCK not in str(conflict):
                    conflict.add_note(WITHOUT_LOCK)
                raise
            _log.info("conflict with another writer, the write starts again; %d attempts are left: %s", left, conflict)
    raise AssertionError  # the last attempt returns or raises


def with_remedy(error: Exception) -> str:
    """What an error says, and what several writers without a lock need."""
    return str(error) if WITHOUT_LOCK in str(error) else f"{error} {WITHOUT_LOCK}"


def earlier_result(known: BatchKnown) -> WriteResult:
    """What the write that brought the batch did; its instant is "" when the active timeline does not have it any
    more."""
    metadata = known.metadata or CommitMetadata(operation=Operation.UNKNOWN)
    return WriteResult(known.instant, metadata, IndexStats(), KNOWN, {})


def overtaken(before: TableState, error: Exception) -> WriteConflict | None:
    """The conflict behind a file that is gone: others committed since a write looked at the table, and a cleaning
    removed what only the older rows needed; or another write was rolled back. None: the error has another reason.

    before  the table as the write found it
    """
    fault = error if isinstance(error, FileGone) else fault_of(error)
    if not isinstance(fault, FileGone):
        return None
    now = before.reload().timeline
    if now.commits != before.timeline.commits:
        what = "other writers have committed since this write began, and a cleaning deleted a file that it was to read"
    elif before.timeline.still(now).instants != before.timeline.instants:
        what = "another write was rolled back since this one began"
    else:
        return None
    return WriteConflict(
        f"{what} ({error}). Nothing is published; write the batch again: "
        "hoodie.write.num.retries.on.conflict.failures does so by itself."
    )
