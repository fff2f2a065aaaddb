"""What a lock is: attempts to get it, checks that it is still had, and an end.

A provider is a function that tries once; waiting, retries and errors are the same for all.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self

from hoodie.config.locks import LockOptions
from hoodie.errors import LockLost, LockNotReleased, LockTimeout


class Grant(Protocol):
    """A lock that is had."""

    def check(self) -> None:
        """Raises LockLost unless nobody else can have the lock now."""

    def release(self) -> None:
        """Give it back; nothing to do when it is lost. May raise errors of the storage or server."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Somebody else has the lock. `holder` says who, as far as is known."""

    holder: str


#: One try for a lock, which may wait up to the given seconds where the provider has a better way than to ask again.
Attempt = Callable[[float], "Grant | Refused"]

_LONGEST_PAUSE = 1.0  # seconds between two tries within one wait


@dataclass(slots=True)
class Lock:
    """A lock on a table, or on something of it. One thread at a time; not reentrant.

    what     of which errors speak, such as "lock of table s3://bucket/trips"
    attempt  of the provider
    options  how long to wait
    real     False: the lock of a table without a provider, which everybody has at all times

    `with lock:` waits as the options say, and raises LockTimeout.
    """

    what: str
    attempt: Attempt
    options: LockOptions = field(default_factory=LockOptions)
    real: bool = True
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    _grant: Grant | None = None
    _holder: str = ""

    @property
    def held(self) -> bool:
        """Whether it was acquired and not released since; `check` tells whether it is still had."""
        return self._grant is not None

    def acquire(self, timeout: float | None = None) -> bool:
        """Get the lock.

        timeout  seconds to wait at most; 0: one try. None: as the options say
        returns  whether it is had
        Raises   LockTimeout when it is held by this object already; errors of the storage or server
        """
        if self._grant is not None:
            raise LockTimeout(f"the {self.what} is held by this very object: it is not reentrant")
        if timeout is not None:
            return self._wait(timeout)
        for left in range(self.options.retries, -1, -1):
            if self._wait(self.options.wait / 1000):
                return True
            if left:
                self.sleep(self.options.retry_wait / 1000)
        return False

    def check(self) -> None:
        """Raises LockLost unless the lock is had, and nobody else can have it now."""
        if self._grant is None:
            raise LockLost(f"the {self.what} is not held")
        self._grant.check()

    def release(self) -> None:
        """Give the lock back; nothing to do when it is not held."""
        grant, self._grant = self._grant, None
        if grant is not None:
            grant.release()

    def __enter__(self) -> Self:
        if not self.acquire():
            waited = (self.options.wait * (self.options.retries + 1)) / 1000
            raise LockTimeout(
                f"the {self.what} was not to be had within {waited:g} s; {self._holder or 'somebody else'} holds it. "
                "Wait for that writer to end, or give this one more time (hoodie.write.lock.wait_time_ms, "
                "hoodie.write.lock.client.num_retries). Nothing has changed."
            )
        return self

    @contextmanager
    def keeping(self) -> Iterator[Self]:
        """A block at whose end the lock is released, as with `with lock:`, of a lock that is acquired already."""
        try:
            yield self
        except BaseException as error:
            self.__exit__(type(error), error)
            raise
        self.__exit__(None)

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        try:
            self.release()
        except Exception as error:
            problem = f"releasing the {self.what} failed: {error}. It may take its time until others have it."
            # What was done under the lock is done, or has an error of its own, which is the one to hear of.
            if raised and isinstance(raised[0], BaseException):
                raised[0].add_note(problem)
            else:
                warnings.warn(LockNotReleased(problem), stacklevel=2)

    def _wait(self, seconds: float) -> bool:
        end, pause = self.monotonic() + seconds, 0.01
        while True:
            answer = self.attempt(max(0.0, end - self.monotonic()))
            if not isinstance(answer, Refused):
                self._grant = answer
                return True
            self._holder = answer.holder
            left = end - self.monotonic()
            if left <= 0:
                return False
            self.sleep(min(left, pause * random.uniform(0.5, 1)))
            pause = min(_LONGEST_PAUSE, pause * 2)


class _Always:
    """The grant of a lock that everybody has."""

    def check(self) -> None:
        return None

    def release(self) -> None:
        return None


def always(seconds: float) -> Grant:
    """The attempt of a table without a lock provider."""
    return _Always()
