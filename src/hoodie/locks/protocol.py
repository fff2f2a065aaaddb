"""What a lock is: attempts to acquire it, checks that it is still held, and its release.

A provider is a function that tries once; waiting, retries and errors are the same for all.
"""

import datetime as dt
import logging
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self

from hoodie.config.locks import LockOptions
from hoodie.errors import LockLost, LockNotReleased, LockTimeout, clause
from hoodie.storage.faults import typed_errors

_log = logging.getLogger("hoodie.locks")


class Grant(Protocol):
    """A held lock."""

    def check(self) -> None:
        """Raises LockLost unless no other writer can hold the lock now."""

    def release(self) -> None:
        """Release the lock; does nothing when it is lost. May raise errors of the storage or server."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Another writer holds the lock.

    holder  which, as far as known
    wait    what a line about waiting says after "waiting for the lock of "
    """

    holder: str
    wait: Callable[[], str] | None = field(default=None, compare=False)


#: One attempt at a lock, which may wait up to the given seconds where the provider has a better way than polling.
Attempt = Callable[[float], "Grant | Refused"]

_LONGEST_PAUSE = 1.0  # seconds between two attempts within one wait
#: Seconds of waiting after which a line says so, and between the lines after it.
TELL_AFTER, TELL_AGAIN = 5.0, 60.0


def tell_of_waiting(what: str, wait: str) -> None:
    """what: the lock; wait: as of `Refused`"""
    _log.warning("waiting for the lock of %s (%s)", wait, what)


@dataclass(slots=True)
class Lock:
    """A lock on a table, or on something of it. One thread at a time; not reentrant.

    what     its description in errors, such as "lock of table s3://bucket/trips"
    attempt  of the provider; None: the lock of a table without one, which every caller holds at all times
    options  how long to wait
    skew     seconds by which the clocks of its holders differ at most

    `with lock:` waits as the options say, and raises LockTimeout.
    """

    what: str
    attempt: Attempt | None
    options: LockOptions = field(default_factory=LockOptions)
    skew: float = 0.0
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    _grant: Grant | None = None
    _holder: str = ""
    _tell_at: float = 0.0

    @property
    def real(self) -> bool:
        """Whether it keeps other writers out."""
        return self.attempt is not None

    @typed_errors()
    def acquire(self, timeout: float | None = None) -> bool:
        """Acquire the lock.

        timeout  seconds to wait at most; 0: one attempt. None: as the options say
        returns  whether it was acquired
        Raises   LockTimeout when it is held by this object already; StorageFailed; errors of the server
        """
        if self.attempt is None:
            return True
        if self._grant is not None:
            raise LockTimeout(f"the {self.what} is already held by this object: it is not reentrant")
        started = self.monotonic()
        self._tell_at = started + TELL_AFTER
        acquired = self._acquire(self.attempt, timeout)
        waited = self.monotonic() - started
        if acquired:
            level = logging.INFO if self._holder else logging.DEBUG
            _log.log(level, "acquired the %s after %.3f s%s", self.what, waited, self._held_by())
        else:
            _log.info("could not acquire the %s within %.3f s%s", self.what, waited, self._held_by())
        return acquired

    def _acquire(self, attempt: Attempt, timeout: float | None) -> bool:
        self._holder = ""
        if timeout is not None:
            return self._wait(attempt, timeout)
        for retries in range(self.options.retries, -1, -1):
            if self._wait(attempt, self.options.wait / 1000):
                return True
            if retries:
                self.sleep(self.options.retry_wait / 1000)
        return False

    def _held_by(self) -> str:
        return f"; it was held by {self._holder}" if self._holder else ""

    def check(self) -> None:
        """Raises LockLost unless the lock is held and no other writer can hold it now."""
        if self.attempt is None:
            return
        if self._grant is None:
            raise LockLost(f"the {self.what} is not held")
        try:
            self._grant.check()
        except LockLost as lost:
            _log.info("the %s is lost: %s", self.what, lost)
            raise

    def outlast(self, moment: dt.datetime, clock: Callable[[], dt.datetime]) -> None:
        """Wait, holding the lock, until the clocks of all that may hold it are past a moment: the next holder's times
        are later than that. A moment that is further ahead than clocks differ is not waited for.

        clock  tells the time, in UTC
        """
        ahead = (moment - clock()).total_seconds() + self.skew
        if self.real and self.skew and ahead > 0:
            self.sleep(min(ahead, 2 * self.skew))

    def release(self) -> None:
        """Release the lock; does nothing when it is not held."""
        grant, self._grant = self._grant, None
        if grant is not None:
            grant.release()
            _log.debug("released the %s", self.what)

    def __enter__(self) -> Self:
        if self.real and not self.acquire():
            options = self.options
            waited = (options.wait * (options.retries + 1) + options.retry_wait * options.retries) / 1000
            raise LockTimeout(
                f"could not acquire the {self.what} within {waited:g} s; {self._holder or 'another writer'} holds it. "
                "Wait for that writer to end, or give this one more time (hoodie.write.lock.wait_time_ms, "
                "hoodie.write.lock.client.num_retries). Nothing has changed."
            )
        return self

    @contextmanager
    def keeping(self) -> Iterator[Self]:
        """A block at whose end an acquired lock is released, as with `with lock:`."""
        try:
            yield self
        except BaseException as error:
            self.__exit__(type(error), error)
            raise
        self.__exit__(None)

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if self._grant is None:
            return
        try:
            self.release()
        except Exception as error:
            problem = (
                f"releasing the {self.what} failed: {clause(error)}. Other writers may have to wait until it expires."
            )
            # The work under the lock is done, or has an error of its own, which matters more.
            if raised and isinstance(raised[0], BaseException):
                raised[0].add_note(problem)
            else:
                warnings.warn(LockNotReleased(problem), stacklevel=2)

    def _wait(self, attempt: Attempt, seconds: float) -> bool:
        end, pause = self.monotonic() + seconds, 0.01
        while True:
            answer = attempt(max(0.0, end - self.monotonic()))
            if not isinstance(answer, Refused):
                self._grant = answer
                return True
            self._holder = answer.holder
            now = self.monotonic()
            if now >= end:
                return False
            if now >= self._tell_at:
                self._tell_at = now + TELL_AGAIN
                tell_of_waiting(self.what, answer.holder if answer.wait is None else answer.wait())
            self.sleep(min(end - now, pause * random.uniform(0.5, 1)))
            pause = min(_LONGEST_PAUSE, pause * 2)
