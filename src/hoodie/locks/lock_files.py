"""What locks have in common that are files of a storage: an owner in the file, and a lease timed by its clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hoodie.locks.background import Background, background
from hoodie.locks.clock import StorageClock
from hoodie.locks.lease import Lease, Owner, decode_owner
from hoodie.locks.protocol import Refused
from hoodie.storage.protocol import Entry, Storage

_log = logging.getLogger("hoodie.locks")

#: Object stores have whole seconds.
_SECOND = 1


@dataclass(slots=True)
class LockFiles:
    """The files of one lock.

    name      of the lock, which its files are named after
    what      the lock's description in errors
    validity  seconds; 0: forever
    """

    storage: Storage
    name: str
    what: str
    validity: float
    monotonic: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    run: Background = field(default=background, kw_only=True)
    clock: StorageClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = StorageClock(self.storage, self.monotonic)

    def lease(self, path: str, owner: Owner, start: float, is_newest: Callable[[], bool] = lambda: True) -> Lease:
        """The lease of the lock file that an owner created; nothing renews it yet.

        is_newest  whether no other file has taken the place of this one
        """
        return Lease(
            what=self.what,
            owner=owner,
            touch=lambda: self.storage.write(path, owner.encode()),
            confirm=lambda: is_newest() and self.owner(path) == owner,
            remove=lambda: self.remove(path, owner),
            start=start,
            monotonic=self.monotonic,
        )

    def owner(self, path: str) -> Owner | None:
        """Who a lock file names; None without such a file, for an empty one, and for another program's."""
        try:
            return decode_owner(self.storage.read(path))
        except FileNotFoundError:
            return None

    def remove(self, path: str, owner: Owner) -> None:
        """Remove a lock file, unless it is another owner's."""
        if self.owner(path) == owner:
            self.storage.discard(path)

    def is_dead(self, owner: Owner | None) -> bool:
        """Whether the process of a lock file has ended for certain: its lock need not expire."""
        if owner is None or owner.process is None or not owner.process.is_dead:
            return False
        _log.warning("%s, which held the %s, is dead: its lock is taken over", owner.process, self.what)
        return True

    def refused(self, who: str, entry: Entry, owner: Owner | None, validity: float, never: str = "") -> Refused:
        """The answer about a lock that another holds.

        never  what to do about one that never expires
        """

        def wait() -> str:
            parts = [str(owner.process) if owner and owner.process else who]
            if owner and owner.since:
                parts.append(f"held for {max(0, time.time_ns() // 1_000_000 - owner.since) / 1000:.0f} s")
            if validity:
                parts.append(f"expires in {max(0.0, validity + _SECOND - self.clock.age(entry)):.0f} s")
            else:
                parts.append(f"never expires ({never})")
            return ", ".join(parts)

        return Refused(f"{who} ({never})" if never else who, wait)

    def is_expired(self, entry: Entry, validity: float) -> bool:
        return self.clock.age(entry, validity) > validity + _SECOND
