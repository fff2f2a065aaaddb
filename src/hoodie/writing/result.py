"""What a write tells: its result, and who hears of it: callbacks of each commit, exporters of writes that fail, and
validators before publication.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType

import pyarrow as pa

from hoodie.commit.batch_ids import BatchKnown
from hoodie.commit.transaction import Transaction
from hoodie.config.validators import validations
from hoodie.display.render import Displayed
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, summary
from hoodie.errors import HoodieError, InvalidInput, InvalidOption, PlanInUse, StorageFailed
from hoodie.index.pruning import IndexStats
from hoodie.metadata.changes import KeyChanges
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.schema.schema import NO_DIFFERENCE, ColumnDifference
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.properties import load_properties
from hoodie.table.settings import Settings
from hoodie.table.state import TableState


@dataclass(frozen=True, slots=True, repr=False)
class WriteResult(Displayed):
    """The outcome of one write. Counts are rows; `files` are the data files it published, relative to the table."""

    instant: str
    metadata: CommitMetadata
    index: IndexStats
    route: str  # "driver": driver threads did the work; "executors": Spark's
    seconds: Mapping[str, float]  # wall time by phase; they add up to that of the call
    later: tuple[pa.Table, ...] = field(default=(), repr=False)  # not published: what the index is to be given then
    # The table as the write saw it once it was published, for the services after it; None: they load it.
    after: TableState | None = field(default=None, repr=False, compare=False)
    table: str = ""  # the name of the table
    path: str = ""  # its base path, without a password
    difference: ColumnDifference = NO_DIFFERENCE  # of the batch's columns from those that the table had
    alone: bool = field(default=False, repr=False)  # this process did it all, and nobody asks who of two did
    keys: KeyChanges | None = field(default=None, repr=False)  # not published: for the record index
    unseeing: bool = field(default=False, repr=False)  # not published: its rows were made without a look at the table's

    @property
    def stats(self) -> tuple[WriteStat, ...]:
        return tuple(stat for part in self.metadata.stats.values() for stat in part)

    @property
    def inserted(self) -> int:
        return self.metadata.inserted

    @property
    def updated(self) -> int:
        return self.metadata.updated

    @property
    def deleted(self) -> int:
        return self.metadata.deleted

    @property
    def copied(self) -> int:
        """Rows that were written again as they were, beside those that changed in their base file."""
        counts = (
            stat.num_writes - stat.num_updates - stat.num_inserts for stat in self.stats if stat.log_version is None
        )
        return sum(max(0, count) for count in counts)

    @property
    def missing_columns(self) -> tuple[str, ...]:
        """Columns of the table that the batch lacked; nested ones dotted."""
        return self.difference.missing

    @property
    def new_columns(self) -> tuple[str, ...]:
        """Columns of the batch that the table lacked before; nested ones dotted."""
        return self.difference.new

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(stat.path for stat in self.stats if stat.path)

    def __str__(self) -> str:
        phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())
        columns = f"; {self.difference.summary}" if self.difference.summary else ""
        how = f"in {sum(self.seconds.values()):.2f} s" if self.alone else f"{self.route} ({phases})"
        return (
            f"{self.metadata.operation} at {self.instant}: {self.inserted} inserted, {self.updated} updated, "
            f"{self.deleted} deleted in {len(self.files)} files, {how}{columns}"
        )

    def _summary(self) -> ResultSummary:
        seconds = sum(self.seconds.values())
        row = (self.inserted, self.updated, self.deleted, len(self.files), self.metadata.bytes_written, seconds)
        return summary(str(self), _COLUMNS, [row], compact=True)


_COLUMNS = (
    *(ShownColumn(name, ColumnKind.COUNT) for name in ("inserted", "updated", "deleted", "files")),
    ShownColumn("written", ColumnKind.BYTES),
    ShownColumn("wall time", ColumnKind.SECONDS),
)


@dataclass(slots=True)
class Phases:
    """Wall time by phase, in the order in which phases first began. A phase within another is counted once."""

    seconds: dict[str, float] = field(default_factory=dict)
    _begun: float = field(default_factory=lambda: time.perf_counter())  # the clock of this moment, which a test sets
    _nested: float = 0.0  # what phases within the one that runs have taken

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        start, outer = time.perf_counter(), self._nested
        self.seconds.setdefault(phase, 0.0)
        self._nested = 0.0
        try:
            yield
        finally:
            taken = time.perf_counter() - start
            self.seconds[phase] += taken - self._nested
            self._nested = outer + taken

    def whole(self) -> dict[str, float]:
        """The phases until now, and "other" for what none of them counts: they add up to the wall time."""
        rest = time.perf_counter() - self._begun - sum(self.seconds.values())
        return {**self.seconds, "other": max(0.0, rest)}


_log = logging.getLogger("hoodie.write")

Callback = Callable[[WriteResult], object]


@dataclass(frozen=True, slots=True)
class FailedWrite:
    """A write that raised. No value of an option or a row is in it.

    table      its name; the last part of its path where the table, or its storage, does not answer
    operation  as commits name it: UPSERT, COMPACT, ...
    error      the class of the error
    """

    table: str
    operation: str
    error: str


HearFailure = Callable[[FailedWrite], object]


class Registration:
    """A callback that hears of commits, until `cancel` or the end of a `with` block."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback

    def cancel(self) -> None:
        """End it: the callback is no longer called. May be called twice."""
        global _registered
        with _changing:
            _registered = tuple(other for other in _registered if other is not self)

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def __repr__(self) -> str:
        return f"Registration({getattr(self.callback, '__qualname__', type(self.callback).__name__)})"


_changing = Lock()
_registered: tuple[Registration, ...] = ()
_hearing_failures: tuple[HearFailure, ...] = ()


def on_commit(callback: Callback) -> Registration:
    """Have a function called with the result of each commit that this process publishes from now on: writes,
    compactions, and deletes of partitions, of all tables.

    callback  takes a `WriteResult`. It runs in the thread of the write, right after the commit is visible and before
              the services that run automatically after it: `seconds` has the phases until then. What it raises is
              logged by the logger `hoodie.write`, and never fails the write. It is not called for a batch that the
              table had already (`result.route == "known"`)
    returns   a registration: `cancel()` ends it, and so does leaving `with hoodie.on_commit(callback):`
    """
    global _registered
    _require_callable(callback)
    registration = Registration(callback)
    with _changing:
        _registered = (*_registered, registration)
    return registration


def notify_committed(result: WriteResult) -> None:
    """Log a commit that is visible, and tell all callbacks of it."""
    _log.info("%s: %s", result.table, result)
    for registration in _registered:
        try:
            registration.callback(result)
        except Exception:  # whatever it is: the commit stands, and the caller must not write again
            _log.exception("%r failed on the commit %s of %s", registration, result.instant, result.table)


def _require_callable(callback: object) -> None:
    if not callable(callback):
        raise InvalidInput(f"a callback is a function, and not {callback!r}")


def on_failure(callback: HearFailure) -> Callable[[], None]:
    """Have a function called for each write of this process that raises. Returns what ends that."""
    global _hearing_failures
    _require_callable(callback)
    with _changing:
        _hearing_failures = (*_hearing_failures, callback)

    def cancel() -> None:
        global _hearing_failures
        with _changing:
            _hearing_failures = tuple(other for other in _hearing_failures if other is not callback)

    return cancel


@contextmanager
def failures_heard(storage: Storage, operation: str) -> Iterator[None]:
    """Have the callbacks hear if a write raises, whether before it began, with its instant taken, or after retries.

    A compaction that another process runs is no failure, nor a batch that is sent again.
    """
    try:
        with typed_errors():
            yield
    except (BatchKnown, PlanInUse):
        raise
    except Exception as error:
        if callbacks := _hearing_failures:
            failed = FailedWrite(_name(storage, error), operation.upper(), type(error).__name__)
            for callback in callbacks:
                try:
                    callback(failed)
                except Exception:  # the error of the write is what its caller has to see
                    _log.exception("%r failed on %s", callback, failed)
        raise


def _name(storage: Storage, error: Exception) -> str:
    name = ""
    if not isinstance(error, StorageFailed):  # it would be asked in vain, perhaps for minutes
        with suppress(HoodieError), typed_errors():
            name = load_properties(storage, sleep=lambda _: None)["hoodie.table.name"]
    return name or storage.root.rstrip("/").rpartition("/")[2]


#: Runs the queries of the options on the table as the commit would leave it. Raises ValidationFailed
Validate = Callable[[Transaction, CommitMetadata, Settings], None]


def validator(settings: Settings, validate: Validate | None) -> Validate | None:
    """What is to be called before publication; None: the options ask for nothing.

    validate  of the engine; None: it evaluates no SQL
    Raises    InvalidOption as `validations`, and where the engine evaluates no SQL
    """
    if not settings.validators.names:
        return None
    validations(settings.validators)
    if validate is None:
        raise InvalidOption(
            "hoodie.precommit.validators: their queries are evaluated by Spark, and the commit would pass unchecked: "
            "write with a session, or leave the option out"
        )
    return validate
