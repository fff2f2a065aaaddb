"""Who hears of writes that fail: the exporters of metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock

from hoodie.commit.batch_ids import BatchKnown
from hoodie.errors import HoodieError, PlanInUse, StorageFailed
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.properties import load_properties

_log = logging.getLogger("hoodie.write")


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


Callback = Callable[[FailedWrite], object]

_changing = Lock()
_registered: tuple[Callback, ...] = ()


def on_failure(callback: Callback) -> Callable[[], None]:
    """Have a function called for each write of this process that raises. Returns what ends that."""
    global _registered
    with _changing:
        _registered = (*_registered, callback)

    def cancel() -> None:
        global _registered
        with _changing:
            _registered = tuple(each for each in _registered if each is not callback)

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
        if told := _registered:
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
