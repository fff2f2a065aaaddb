"""A lock in the table's own storage, of any kind with exclusive create: a numbered file that its holder renews.

`.hoodie/.locks/<name>.<number>`: the greatest number holds the lock. A holder that does not renew it loses it to
the writer that creates the next number; that create is exclusive, so only one writer succeeds. Its age is measured by
the storage's clock; writers' clocks do not matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hoodie.locks.clock import LOCKS
from hoodie.locks.lease import decode_owner, new_owner
from hoodie.locks.lock_files import LockFiles
from hoodie.locks.protocol import Grant, Refused
from hoodie.storage.protocol import Entry

_NUMBER = re.compile(r"(\d{10})", re.ASCII)


@dataclass(slots=True)
class StorageLock(LockFiles):
    """Attempts at one lock.

    name     within the table, a file name
    renewal  seconds between renewals
    """

    renewal: float

    def attempt(self, seconds: float) -> Grant | Refused:
        """One try; does not wait."""
        numbers = self._numbers()
        if numbers:
            refused = self._held(numbers[max(numbers)])
            if refused is not None:
                return refused
        number = max(numbers, default=0) + 1
        owner, start = new_owner(self.validity), self.monotonic()
        try:
            self.storage.create_new(self._path(number), owner.encode())
        except FileExistsError:
            return Refused("a writer that came first")
        now = self._numbers()
        mine = now.pop(number, None)
        if (
            mine is None or now != numbers
        ):  # the file changed since: the lock was released and acquired by another writer
            self.remove(self._path(number), owner)
            return Refused("a writer that came at the same time")
        for old in numbers:
            self.storage.discard(self._path(old))
        lease = self.lease(self._path(number), owner, start, lambda: max(self._numbers(), default=0) == number)
        lease.stop = self.run(min(self.renewal, self.validity / 3), lease.renew)
        return lease

    def _held(self, entry: Entry) -> Refused | None:
        """Who holds the lock; None when its lease has expired, or its process is dead."""
        number = int(entry.name[-10:])
        try:
            owner = decode_owner(self.storage.read(self._path(number)))
        except FileNotFoundError:
            return Refused("a writer that is about to finish")
        validity = owner.validity if owner else self.validity
        if self.is_dead(owner) or self.is_expired(entry, validity):
            return None
        return self.refused(owner.who if owner else "an unknown writer", entry, owner, validity)

    def _numbers(self) -> dict[int, Entry]:
        """The lock's files. A renewed file differs by its time."""
        entries = {}
        for entry in self.storage.list(LOCKS):
            name, _, number = entry.name.rpartition(".")
            if name == self.name and _NUMBER.fullmatch(number):
                entries[int(number)] = entry
        return entries

    def _path(self, number: int) -> str:
        return f"{LOCKS}/{self.name}.{number:010d}"
