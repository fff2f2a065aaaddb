"""One write from a checked batch to its result, alike on every engine: acquire the rows, attempt, publish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

import pyarrow as pa

from hoodie.commit.batch_ids import BatchKnown, require_new
from hoodie.commit.transaction import Transaction, abandon
from hoodie.config.options import Options
from hoodie.errors import WriteConflict
from hoodie.table.overrides import completed
from hoodie.table.state import TableState
from hoodie.writing.duplicates import refuse_dropping
from hoodie.writing.finish import AfterCommit, abandoned_on_error, finish
from hoodie.writing.job import Checked, WriteJob, check, start, with_transaction, writable_state
from hoodie.writing.replacement import Replacement
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.retry import earlier_result, with_retries
from hoodie.writing.stage import Stage
from hoodie.writing.task_results import TaskResults
from hoodie.writing.validation import Validate, validator


class Acquired(Protocol):
    """A batch at hand: its source is not asked again, however many attempts a write takes."""

    @property
    def staged(self) -> Stage | None:
        """Where it lies in files; None: it is elsewhere."""

    def write(self, job: WriteJob, phases: Phases) -> tuple[WriteJob, TaskResults]:
        """Write it as data files. Nothing is published yet."""

    def release(self) -> None:
        """Let go of what holds it."""


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch that fits its table. Nothing is on disk yet.

    columns  the user's; None: of a delete
    options  all of the write, for what the commit's metadata keeps
    acquire  has the engine bring the batch over; raises InvalidInput on rows that cannot be written
    adapt    what the rows ask for beyond their operation; checking them again asks for it again
    validate of the engine
    """

    checked: Checked
    columns: pa.Schema | None
    options: Options
    acquire: Callable[[Checked, Phases], Acquired]
    after_commit: AfterCommit
    phases: Phases = field(default_factory=Phases)
    adapt: Callable[[Checked], Checked] = lambda checked: checked
    validate: Validate | None = None


def _check_again(batch: CheckedBatch) -> Checked:
    """The batch against the table as it is now."""
    settings = batch.checked.settings
    state = completed(writable_state(batch.checked.state.storage, settings), batch.options)
    return batch.adapt(check(state, batch.checked.operation, batch.columns, settings))


def run(
    batch: CheckedBatch,
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
    settings = batch.checked.settings
    validator(batch.options, batch.validate)
    refuse_dropping(batch.checked.operation, batch.options)
    try:
        require_new(batch.checked.state, settings.writers.batch)
    except BatchKnown as known:  # its rows are not even looked at
        if transaction is not None:
            abandon(transaction)
        return earlier_result(known)
    with batch.phases.time("collect"):
        acquired = batch.acquire(batch.checked, batch.phases)
    try:
        if transaction is not None:
            job = with_transaction(batch.checked, transaction)
            result = _run(batch, job, acquired, commit)
        elif replacing is not None:
            with batch.phases.time("begin"):
                job = replacing.start(batch.checked)
            result = _run(batch, job, acquired, commit)
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
            batch.after_commit(batch.checked.state.storage, batch.options, result.instant, result.after)
    return replace(result, seconds=batch.phases.whole())


def _attempts(
    batch: CheckedBatch, acquired: Acquired, commit: bool, *, made: bool, made_of: TableState | None = None
) -> Callable[[], WriteResult]:
    """One attempt after the other, each on the table as it is then. The batch is at hand.

    made  the table has been made since the batch was checked
    """
    numbers = count(int(made))

    def attempt() -> WriteResult:
        with batch.phases.time("begin"):
            job = start(batch.checked if next(numbers) == 0 else _check_again(batch))
        if made_of is not None:
            with abandoned_on_error(job.transaction, job.checked.index):
                _require_same_table(made_of, job.state)
        return _run(batch, job, acquired, commit)

    return attempt


def _require_same_table(before: TableState, now: TableState) -> None:
    """Raises WriteConflict when there were commits meanwhile: rows that were made of the table's may be out of date."""
    if before.timeline.commits != now.timeline.commits:
        raise WriteConflict("another writer has committed since the rows of this write were read; write them again")


def _run(batch: CheckedBatch, job: WriteJob, acquired: Acquired, commit: bool) -> WriteResult:
    with abandoned_on_error(job.transaction, job.checked.index):
        job, outcome = acquired.write(job, batch.phases)
        validate = validator(batch.options, batch.validate)
        return finish(job, outcome, batch.phases, batch.options, commit=commit, validate=validate)
