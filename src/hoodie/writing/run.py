"""One write from a checked batch to its result, alike on every engine: acquire the rows, attempt, publish, and try
again after a conflict with another writer. And the write that has no rows: a delete of partitions.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from hoodie.commit.batch_ids import BatchKnown, require_new
from hoodie.commit.conflict_check import WITHOUT_LOCK
from hoodie.commit.transaction import Transaction, abandon
from hoodie.config.write import WriteOperation
from hoodie.display.progress import progress
from hoodie.errors import CorruptIndex, InstantNotFound, InvalidInput, WriteConflict
from hoodie.index.pruning import IndexStats
from hoodie.lookup.record_index import by_files, ignore_record_index, uses_record_index
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import MapItems, Settings
from hoodie.table.state import TableState
from hoodie.writing.finish import AfterCommit, abandoned_on_error, finish, warn_of_small_files, with_remedy
from hoodie.writing.planning import DRIVER, HeldBatch, TaskResults, announce, fits_driver, prepared_files
from hoodie.writing.replacement import Replacement
from hoodie.writing.result import Phases, Validate, WriteResult, validator
from hoodie.writing.write import Write, check, start, state_of_write, with_transaction

_log = logging.getLogger("hoodie.write")


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """A write that fits its table, and how its rows are acquired. Nothing is on disk yet.

    acquire  has the engine bring the batch over; raises InvalidInput on rows that cannot be written
    adapt    what the rows ask for beyond their operation; checking them again asks for it again
    validate of the engine
    alone    this process does it all: there is no Spark to tell it from
    run      carries out tasks that are no part of the write; None: this process
    """

    write: Write
    acquire: Callable[[Write, Phases], HeldBatch]
    after_commit: AfterCommit
    phases: Phases = field(default_factory=Phases)
    adapt: Callable[[Write], Write] = lambda write: write
    validate: Validate | None = None
    alone: bool = False
    run: MapItems | None = None


def _check_again(batch: IncomingBatch) -> Write:
    """The write, compared with the table as it is now."""
    write, settings = batch.write, batch.write.settings
    state = state_of_write(write.storage, settings)
    require_new(state, settings.writers.batch)
    return batch.adapt(check(state, write.operation, write.columns, settings, only_new=write.only_new))


def run(
    batch: IncomingBatch,
    transaction: Transaction | None = None,
    *,
    commit: bool = True,
    make_table: Callable[[], object] | None = None,
    replacing: Replacement | None = None,
    made_of: TableState | None = None,
) -> WriteResult:
    """Carry the write out.

    transaction  whose instant it is to have; None: a new one
    commit       publish it; else the result is what `HoodieWriteClient.commit` takes
    make_table   called once all rows of the batch have been looked at: its table is not there yet
    replacing    the table that takes the place of the one that is there, with the rows
    made_of      the table that the rows of the batch were read from: one attempt is made, and only on this very table
    Raises       WriteConflict, when there were commits since `made_of`, among others
    """
    write, settings = batch.write, batch.write.settings
    batch = replace(batch, validate=validator(settings, batch.validate))
    if settings.writers.batch.application:
        try:
            require_new(write.state, settings.writers.batch)
        except BatchKnown as error:  # its rows are not even looked at
            if transaction is not None:
                abandon(transaction)
            return earlier_result(error)
    with batch.phases.time("collect"):
        held = batch.acquire(write, batch.phases)
    try:
        if transaction is not None:
            result = _run(batch, with_transaction(write, transaction), held, commit)
        elif replacing is not None:
            with batch.phases.time("begin"):
                begun = replacing.start(write)
            result = _run(batch, begun, held, commit)
            replacing.finish()
        elif made_of is not None:
            result = _attempts(batch, held, commit, new_table=False, made_of=made_of)()
        else:
            if make_table is not None:
                with batch.phases.time("begin"):
                    make_table()
            result = with_retries(settings, _attempts(batch, held, commit, new_table=make_table is not None))
    except BatchKnown as error:
        return earlier_result(error)
    finally:
        with batch.phases.time("stage" if held.staged is not None else "collect"):
            held.release()
    if commit:
        with batch.phases.time("services"):
            batch.after_commit(write.storage, settings, result.instant, result.after)
    return replace(result, seconds=batch.phases.whole(), alone=batch.alone)


def _attempts(
    batch: IncomingBatch, held: HeldBatch, commit: bool, *, new_table: bool, made_of: TableState | None = None
) -> Callable[[], WriteResult]:
    """One attempt after the other, each on the table as it is then. The batch is at hand.

    new_table  the table has been made since the batch was checked
    """
    numbers = count(int(new_table))

    def attempt() -> WriteResult:
        with batch.phases.time("begin"):
            write = start(batch.write if next(numbers) == 0 else _check_again(batch), batch.run)
        if made_of is not None:
            with abandoned_on_error(write):
                _require_same_table(made_of, write.state)
            write = replace(write, made_of_rows=True)
        return _run(batch, write, held, commit)

    return attempt


def _require_same_table(before: TableState, now: TableState) -> None:
    """Raises WriteConflict when there were commits meanwhile: rows that were made of the table's may be out of date."""
    if before.timeline.commits != now.timeline.commits:
        raise WriteConflict("another writer has committed since the rows of this write were read; write them again")


def _run(batch: IncomingBatch, write: Write, held: HeldBatch, commit: bool) -> WriteResult:
    with abandoned_on_error(write):
        write, outcome = write_batch(write, held, batch.phases)
        warn_of_small_files(write, outcome.stats)
        return finish(write, outcome, batch.phases, commit=commit, validate=batch.validate)


def write_batch(write: Write, batch: HeldBatch, phases: Phases) -> tuple[Write, TaskResults]:
    """Write the rows as data files: locate, plan, announce the plan, run its tasks. Nothing is published yet."""
    if write.operation_rules.bulk:
        with phases.time("plan"):
            write = write.with_plan(None)
        with phases.time("write"):
            reports = batch.stream(write)
        partitions = batch.partitions.union(stat.partition or "" for stat in reports.stats)
        return write, TaskResults(reports.stats, partitions, IndexStats(), batch.route, reports.later)
    with phases.time("locate"):
        try:
            located = batch.locate(write, prepared_files(write, batch.partitions))
        except CorruptIndex as damage:
            if not uses_record_index(write.index):
                raise
            ignore_record_index(write.storage, damage)
            write = replace(write, index=by_files(write.index))
            located = batch.locate(write, prepared_files(write, batch.partitions))
    try:
        planned = located.planned
        if batch.spread is not None and not fits_driver(write, planned.plan):
            with phases.time("stage"):
                further = batch.spread(write)
            try:
                return write_batch(write, further, phases)
            finally:
                further.release()
        with phases.time("plan"):
            write = announce(write, planned)
        title = f"{write.operation} {write.state.config.name}{'' if batch.route == DRIVER else ' on executors'}"
        show = write.settings.console.progress
        with phases.time("write"), progress(title, len(planned.plan.tasks), show=show) as advance:
            reports = located.run(write, advance)
        return write, TaskResults(reports.stats, batch.partitions, planned.index, batch.route, reports.later)
    finally:
        located.release()


#: Which partitions of a table are to be deleted, judged by what it holds.
Choose = Callable[[TableState], Sequence[str]]


@typed_errors()
def delete_partitions(
    storage: Storage,
    partitions: Sequence[str],
    settings: Settings,
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
    phases, validate = Phases(), validator(settings, validate)
    attempt = partial(_delete_partitions, storage, partitions, settings, phases, validate, choose, run)
    result = with_retries(settings, attempt)
    if after_commit is not None:
        with phases.time("services"):
            after_commit(storage, settings, result.instant, result.after)
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
        state = state_of_write(storage, settings)
        write = check(state, WriteOperation.DELETE_PARTITION, None, settings)
        require_new(state, settings.writers.batch)  # its partitions are gone, else
        _require_partitions(state, partitions)
    with phases.time("begin"):
        write = start(write, run)
    with abandoned_on_error(write):
        if choose is not None and not (partitions := choose(write.state)):
            raise WriteConflict("other writers have just written to the partitions; nothing was deleted")
        groups = _require_partitions(write.state, partitions)
        write = write.with_plan(None)
        nothing = TaskResults.nothing(frozenset(partitions))
        return finish(write, nothing, phases, replaced=groups, validate=validate)


def _require_partitions(state: TableState, partitions: Sequence[str]) -> dict[str, list[str]]:
    groups = state.groups(partitions)
    if missing := sorted(set(partitions) - set(groups)):
        raise InvalidInput(f"the table has no rows in partitions {missing}; nothing was deleted")
    return groups


#: The route of a write that had nothing to do, as its batch was in the table already.
KNOWN = "known"


def with_retries(settings: Settings, attempt: Callable[[], WriteResult]) -> WriteResult:
    """The result of the first attempt that no other writer contradicts, or that of the write that brought the batch.

    attempt  a whole write: it looks at the table anew, and takes back what it wrote when it fails
    Raises   as the attempts; WriteConflict after 1 + `hoodie.write.num.retries.on.conflict.failures` of them, and at
             once when another writer without a lock rolled the write back: tried again, the two would take turns at it
    """
    how = settings.writers.concurrency
    for remaining in range(how.conflict_retries, -1, -1):
        try:
            return attempt()
        except BatchKnown as error:
            return earlier_result(error)
        except InstantNotFound as error:
            if how.several:
                raise
            raise WriteConflict(with_remedy(error)) from error
        except WriteConflict as conflict:
            if not remaining:
                if how.conflict_retries:
                    conflict.add_note(f"{how.conflict_retries + 1} attempts were made.")
                if not how.several and WITHOUT_LOCK not in str(conflict):
                    conflict.add_note(WITHOUT_LOCK)
                raise
            _log.info(
                "conflict with another writer, the write starts again; %d attempts are left: %s", remaining, conflict
            )
    raise AssertionError  # the last attempt returns or raises


def earlier_result(error: BatchKnown) -> WriteResult:
    """What the write that brought the batch did; its instant is "" when it is no longer on the active timeline."""
    metadata = error.metadata or CommitMetadata(operation=Operation.UNKNOWN)
    return WriteResult(error.instant, metadata, IndexStats(), KNOWN, {})
