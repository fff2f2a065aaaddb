"""Callbacks that hear of each commit of this process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from types import TracebackType

from hoodie.writing.result import WriteResult

_log = logging.getLogger("hoodie.write")

Callback = Callable[[WriteResult], object]


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
