"""One write from a checked batch to its result, alike on every engine: acquire the rows, attempt, publish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

from hoodie.commit.batch_ids import BatchKnown, require_new
from hoodie.commit.transaction import Transaction, abandon
from hoodie.errors import WriteConflict
from hoodie.table.overrides import completed
from hoodie.table.state import TableState
from hoodie.writing.finish import AfterCommit, abandoned_on_error, finish
from hoodie.writing.replacement import Replacement
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.retry import earlier_result, with_retries
from hoodie.writing.stage import Stage
from hoodie.writing.task_results import TaskResults
from hoodie.writing.write import Write, check, start, with_transaction, writable_state


class Acquired(Protocol):
    """A batch at hand: its source is not asked again, however many attempts a write takes."""

    @property
    def staged(self) -> Stage | None:
        """Where it lies in files; None: it is elsewhere."""

    def write(self, write: Write, phases: Phases) -> tuple[Write, TaskResults]:
        """Write it as data files. Nothing is published yet."""

    def release(self) -> None:
        """Let go of what holds it."""


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """A write that fits its table, and how its rows are had. Nothing is on disk yet.

    acquire  has the engine bring the batch over; raises InvalidInput on rows that cannot be written
    """

    write: Write
    acquire: Callable[[Write, Phases], Acquired]
    after_commit: AfterCommit
    phases: Phases = field(default_factory=Phases)


def _check_again(write: Write) -> Write:
    """The write, compared with the table as it is now."""
    settings = write.settings
    state = completed(writable_state(write.storage, settings), settings.given)
    require_new(state, settings.writers.batch)
    return check(state, write.operation, write.columns, settings)


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
    try:
        require_new(write.state, settings.writers.batch)
    except BatchKnown as known:  # its rows are not even looked at
        if transaction is not None:
            abandon(transaction)
        return earlier_result(known)
    with batch.phases.time("collect"):
        acquired = batch.acquire(write, batch.phases)
    try:
        if transaction is not None:
            result = _run(batch, with_transaction(write, transaction), acquired, commit)
        elif replacing is not None:
            with batch.phases.time("begin"):
                begun = replacing.start(write)
            result = _run(batch, begun, acquired, commit)
            replacing.finish()
        elif made_of is not None:
            result = _attempts(batch, acquired, commit, made=False, made_of=made_of)()
        else:
            if make_table is not None:
                with batch.phases.time("begin"):
                    make_table()
            result = with_retries(settings, _attempts(batch, acquired, commit, made=make_table is not None))
    except BatchKnown as known:
        return earlier_result(known)
    finally:
        with batch.phases.time("stage" if acquired.staged is not None else "collect"):
            acquired.release()
    if commit:
        with batch.phases.time("services"):
            batch.after_commit(write.storage, settings.given, result.instant, result.after)
    return replace(result, seconds=batch.phases.whole())


def _attempts(
    batch: IncomingBatch, acquired: Acquired, commit: bool, *, made: bool, made_of: TableState | None = None
) -> Callable[[], WriteResult]:
    """One attempt after the other, each on the table as it is then. The batch is at hand.

    made  the table has been made since the batch was checked
    """
    numbers = count(int(made))

    def attempt() -> WriteResult:
        with batch.phases.time("begin"):
            write = start(batch.write if next(numbers) == 0 else _check_again(batch.write))
        if made_of is not None:
            with abandoned_on_error(write):
                _require_same_table(made_of, write.state)
        return _run(batch, write, acquired, commit)

    return attempt


def _require_same_table(before: TableState, now: TableState) -> None:
    """Raises WriteConflict when there were commits meanwhile: rows that were made of the table's may be out of date."""
    if before.timeline.commits != now.timeline.commits:
        raise WriteConflict("another writer has committed since the rows of this write were read; write them again")


def _run(batch: IncomingBatch, write: Write, acquired: Acquired, commit: bool) -> WriteResult:
    with abandoned_on_error(write):
        write, outcome = acquired.write(write, batch.phases)
        return finish(write, outcome, batch.phases, commit=commit)
