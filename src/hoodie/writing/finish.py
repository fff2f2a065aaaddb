"""The end of a write, however its files came about: publish it, or take it back; and the write that has no files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from hoodie.commit.batch_ids import require_new
from hoodie.commit.transaction import abandon, describe, publish_seen
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import HoodieError, InvalidInput, WriteConflict
from hoodie.lookup.index_notify import notify_of_rollbacks
from hoodie.metadata.build_tasks import MapItems
from hoodie.model.files import FileGroupId
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, redacted
from hoodie.table.overrides import completed
from hoodie.table.replacement import NOT_YET, REPLACES
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.batch.held import DRIVER, TaskResults
from hoodie.writing.index_updates import finalize_index
from hoodie.writing.key_changes import WrittenFiles, key_changes
from hoodie.writing.on_commit import notify_committed
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.retry import overtaken, with_retries
from hoodie.writing.validation import Validate, validator
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
        keys = key_changes(_written(write, outcome, replaced))
        if commit:
            lingering = outcome.route != DRIVER
            metadata, after = publish_seen(
                write.begun, metadata, lingering=lingering, keys=keys, unseeing=write.unseeing
            )
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
    phases, validate = Phases(), validator(options, validate)
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
