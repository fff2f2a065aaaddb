"""The lock file of Hudi's FileSystemBasedLockProvider: `lock` in a folder, created exclusively, deleted at the end.

A writer that dies leaves it behind. After `expire` minutes by the file's modification time others may delete it and
create it anew; a live holder renews it before. With 0 it stays until a person removes it.
Source: docs/format/table-services.md 7.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hoodie.locks.background import Background, background
from hoodie.locks.clock import StorageClock
from hoodie.locks.lease import Lease, Owner, decode_owner, new_owner
from hoodie.locks.protocol import Grant, Refused
from hoodie.storage.protocol import Entry, Storage, join, split


@dataclass(slots=True)
class FileLock:
    """Attempts at one lock.

    path      of the lock file
    validity  seconds; 0: forever
    """

    storage: Storage
    path: str
    what: str
    validity: float
    monotonic: Callable[[], float] = time.monotonic
    run: Background = background
    clock: StorageClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = StorageClock(self.storage, self.monotonic)

    def attempt(self, seconds: float) -> Grant | Refused:
        """One try; does not wait."""
        refused = self._free()
        if refused is not None:
            return refused
        owner, start = new_owner(self.validity), self.monotonic()
        try:
            self.storage.create_new(self.path, owner.encode())
        except FileExistsError:
            return Refused("a writer that came first")
        lease = Lease(
            what=self.what,
            owner=owner,
            touch=lambda: self.storage.write(self.path, owner.encode()),
            confirm=lambda: self._owner() == owner,
            remove=lambda: self._remove(owner),
            start=start,
            monotonic=self.monotonic,
        )
        if self.validity:
            lease.stop = self.run(self.validity / 4, lease.renew)
        return lease

    def _free(self) -> Refused | None:
        """Who holds the lock; None when it is free. Removes the file of an expired lock."""
        entry = self._entry(self.path)
        if entry is None:
            return None
        owner = self._owner()
        who = owner.who if owner else f"the writer of {self.path}"
        if not self.validity:
            return Refused(f"{who} (if it is dead, delete {join(self.storage.root, self.path)})")
        if not self._expired(entry):
            return Refused(who)
        # Only one of those who see the lock expired may delete it: else the second would delete the lock of the first.
        right = f"{self.path}.{_identity(entry, owner)}.expired"
        try:
            self.storage.create_new(right, b"")
        except FileExistsError:
            left = self._entry(right)
            if left is not None and self._expired(left):  # the writer that was to delete it died
                self.storage.delete(right)
            return Refused("a writer that came first")
        try:
            if self._entry(self.path) == entry and self._owner() == owner:
                self.storage.delete(self.path)
        finally:
            self.storage.delete(right)
        return None

    def _expired(self, entry: Entry) -> bool:
        return self.clock.age(entry, self.validity) > self.validity + 1  # object stores have whole seconds

    def _entry(self, path: str) -> Entry | None:
        folder, name = split(path)
        return next((entry for entry in self.storage.list(folder) if entry.name == name), None)

    def _owner(self) -> Owner | None:
        try:
            return decode_owner(self.storage.read(self.path))
        except FileNotFoundError:
            return None

    def _remove(self, owner: Owner) -> None:
        if self._owner() == owner:
            self.storage.delete(self.path)


def _identity(entry: Entry, owner: Owner | None) -> str:
    """Identifies one acquisition of the lock; files of Hudi are empty and differ by their time."""
    return hashlib.blake2b(f"{entry.mtime} {owner.token if owner else ''}".encode(), digest_size=8).hexdigest()
