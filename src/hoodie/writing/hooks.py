"""Who hears of a write: callbacks of each commit, exporters of writes that fail, and validators before publication."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from types import TracebackType

from hoodie.commit.batch_ids import BatchKnown
from hoodie.commit.transaction import Transaction
from hoodie.config.options import Options
from hoodie.config.validators import ValidatorOptions, validations
from hoodie.errors import HoodieError, InvalidOption, PlanInUse, StorageFailed
from hoodie.model.commit import CommitMetadata
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.properties import load_properties
from hoodie.writing.result import WriteResult

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
            _registered = tuple(each for each in _registered if each is not self)

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


def on_failure(callback: HearFailure) -> Callable[[], None]:
    """Have a function called for each write of this process that raises. Returns what ends that."""
    global _hearing_failures
    with _changing:
        _hearing_failures = (*_hearing_failures, callback)

    def cancel() -> None:
        global _hearing_failures
        with _changing:
            _hearing_failures = tuple(each for each in _hearing_failures if each is not callback)

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
        if told := _hearing_failures:
            failed = FailedWrite(_name(storage, error), operation.upper(), type(error).__name__)
            for callback in told:
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
Validate = Callable[[Transaction, CommitMetadata, Options], None]


def validator(options: Options, validate: Validate | None) -> Validate | None:
    """What is to be called before publication; None: the options ask for nothing.

    validate  of the engine; None: it evaluates no SQL
    Raises    InvalidOption as `validations`, and where the engine evaluates no SQL
    """
    if not options.read(ValidatorOptions).names:
        return None
    validations(options)
    if validate is None:
        raise InvalidOption(
            "hoodie.precommit.validators: their queries are evaluated by Spark, and the commit would pass unchecked: "
            "write with a session, or leave the option out"
        )
    return validate
