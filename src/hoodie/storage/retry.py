"""Retries calls that failed for a transient reason: an overloaded store, a time-out, a broken connection.

Drivers retry some calls, each its own set; here all are.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import tenacity

from hoodie.storage.driver_errors import is_transient, raised_by_driver

_log = logging.getLogger("hoodie.storage")

T = TypeVar("T")

#: Calls are tried so often; the waits between are random and grow, to 5 s at most.
ATTEMPTS = 5

#: What gcsfs makes of a 403.
_FORBIDDEN = "Forbidden: "


def retry(call: Callable[[], T], when: Callable[[BaseException], bool] = is_transient, patience: float = 0.0) -> T:
    """The result of an idempotent call; it is retried while it fails for a transient reason.

    when      whether to try again after an error; for drivers that have tried for long themselves
    patience  seconds for which it is tried, though `ATTEMPTS` were made
    Raises    the last error; an OSError in its place when it is transient and the driver's own
    """
    policy = _policy
    if when is not is_transient or patience:
        stop = tenacity.stop_all(tenacity.stop_after_attempt(ATTEMPTS), tenacity.stop_after_delay(patience))
        policy = _policy.copy(retry=tenacity.retry_if_exception(when), stop=stop)
    with as_os_error():
        result: T = policy(call)
        return result


@contextmanager
def as_os_error() -> Iterator[None]:
    """What a driver raises for the network, or as a plain error of Python, is an OSError for callers, whatever class it
    has for it; and what it raises for a right that is missing a PermissionError."""
    try:
        yield
    except Exception as error:
        if type(error) is OSError and not error.errno and str(error).startswith(_FORBIDDEN):
            raise PermissionError(errno.EACCES, str(error)) from error
        if isinstance(error, OSError) or not (is_transient(error) or raised_by_driver(error)):
            raise
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}") from error


def _log_retry(call: tenacity.RetryCallState) -> None:
    """Only the class of the error: its message may have a signed URL in it."""
    error = call.outcome.exception() if call.outcome else None
    pause = call.next_action.sleep if call.next_action else 0.0
    _log.info(
        "attempt %d of %d failed with %s; trying again in %.2f s",
        call.attempt_number,
        max(call.attempt_number, ATTEMPTS),
        type(error).__name__,
        pause,
    )


_policy = tenacity.Retrying(
    stop=tenacity.stop_after_attempt(ATTEMPTS),
    wait=tenacity.wait_random_exponential(multiplier=0.1, max=5),
    retry=tenacity.retry_if_exception(is_transient),
    before_sleep=_log_retry,
    reraise=True,
)


class RetryingInput:
    """A driver's file, whose reads are tried again. One thread at a time."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        position = self._file.tell()

        def again() -> bytes:
            self._file.seek(position)
            data: bytes = self._file.read(size)
            return data

        return retry(again)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> RetryingInput:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()
