"""What locks have in common that are files of a storage: an owner in the file, and a lease timed by its clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hoodie.locks.background import Background, background
from hoodie.locks.clock import StorageClock
from hoodie.locks.lease import Lease, Owner, decode_owner
from hoodie.storage.protocol import Entry, Storage


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

    def is_expired(self, entry: Entry, validity: float) -> bool:
        return self.clock.age(entry, validity) > validity + 1  # object stores have whole seconds
