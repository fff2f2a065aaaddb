"""A lock with an expiry, renewed while its holder is alive."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from hoodie.errors import LockLost
from hoodie.locks.process import Process

#: The holder relies on this share of a lease's validity only: clocks do not run alike.
_RELIED_ON = 0.9


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lock file: its content.

    token     of one acquisition, never reused
    who       host, process and thread, for messages
    validity  seconds after its last renewal in which others must not take it; 0: forever
    process   None: not known
    since     when it was acquired, ms since 1970 by its process's clock, for messages; 0: not known
    """

    token: str
    who: str
    validity: float
    process: Process | None = None
    since: int = 0

    def encode(self) -> bytes:
        content = {"owner": self.who, "token": self.token, "validitySecs": self.validity}
        process_fields = {"process": self.process.fields(), "since": self.since} if self.process is not None else {}
        return json.dumps({**content, **process_fields}).encode()


def new_owner(validity: float) -> Owner:
    process = Process.own()
    who = f"{process} ({threading.current_thread().name})"
    return Owner(uuid4().hex, who, validity, process, time.time_ns() // 1_000_000)


def decode_owner(data: bytes) -> Owner | None:
    """The owner named in a lock file; None for an empty file, or another program's."""
    try:
        owner = json.loads(data)
        process_fields = owner.get("process")
        process = Process.read(process_fields) if process_fields is not None else None
        since = int(owner.get("since", 0))
        return Owner(str(owner["token"]), str(owner["owner"]), float(owner["validitySecs"]), process, since)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@dataclass(slots=True)
class Lease:
    """The holder's view of its own lease, timed by this process's monotonic clock.

    what       the lock's description in errors
    owner      of the lock file
    touch      write the lock file anew
    confirm    whether the lock file still names the owner, and nothing newer has taken its place
    remove     the lock file
    start      when the lock file was written, or before, by `monotonic`
    monotonic  seconds
    """

    what: str
    owner: Owner
    touch: Callable[[], None]
    confirm: Callable[[], bool]
    remove: Callable[[], None]
    start: float
    monotonic: Callable[[], float] = time.monotonic
    stop: Callable[[], None] = lambda: None
    _lost: str = ""
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def renew(self) -> bool:
        """Renew the lease; False once it is lost."""
        with self._turn:
            if self._is_over():
                return False
            now = self.monotonic()
            try:
                if not self.confirm():
                    self._lost = "another writer has taken it"
                    return False
                self.touch()
            except Exception:  # of the storage's driver; nothing is hidden by it: unless a later renewal comes through
                return True  # the lease ends, and `check` says so
            self.start = now
            return True

    def check(self) -> None:
        """Raises LockLost unless no other writer can hold the lock now."""
        with self._turn:
            if not self._is_over() and not self.confirm():
                self._lost = "another writer has taken it"
            if self._is_over():  # again: `confirm` may have taken long
                raise LockLost(f"the {self.what} is lost: {self._lost}. Nothing is published; try the write again.")

    def release(self) -> None:
        self.stop()
        with self._turn:
            # An expired lease may belong to another writer by now, whose file must stay.
            if not self._is_over() and self.confirm():
                self.remove()
            self._lost = self._lost or "it was released"

    def _is_over(self) -> bool:
        age = self.monotonic() - self.start
        if not self._lost and self.owner.validity and age > self.owner.validity * _RELIED_ON:
            self._lost = f"it was not renewed for {age:.1f} s, and is valid for {self.owner.validity:g} s"
        return bool(self._lost)
