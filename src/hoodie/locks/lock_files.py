"""Locks that are files of a storage: an owner in the file, and a lease timed by the storage's clock."""

import hashlib
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hoodie.locks.background import Background, background
from hoodie.locks.clock import LOCKS, StorageClock
from hoodie.locks.lease import Lease, Owner, decode_owner, new_owner
from hoodie.locks.protocol import Grant, Refused
from hoodie.storage.protocol import Entry, Storage, join, split

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
        """The answer about a lock that another holds. never: what to do about one that never expires"""

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


#: Seconds that taking a dead writer's lock over takes at most, where locks do not expire.
_TAKING_OVER = 60.0


class FileLock(LockFiles):
    """Attempts at the lock file of Hudi's FileSystemBasedLockProvider: `lock` in a folder, created exclusively, deleted
    at the end. Its name is its path.

    A writer that dies leaves it behind. After `expire` minutes by the file's modification time others may delete it and
    create it anew; a live holder renews it before. With 0 it stays until a person removes it. The file of a process of
    this machine that has ended is taken over at once.
    Source: docs/format/table-services.md 7.
    """

    def attempt(self, seconds: float) -> Grant | Refused:
        """One try; does not wait."""
        refused = self._free()
        if refused is not None:
            return refused
        owner, start = new_owner(self.validity), self.monotonic()
        try:
            self.storage.create_new(self.name, owner.encode())
        except FileExistsError:
            return Refused("a writer that came first")
        lease = self.lease(self.name, owner, start)
        if self.validity:
            lease.stop = self.run(self.validity / 4, lease.renew)
        return lease

    def _free(self) -> Refused | None:
        """Who holds the lock; None when it is free. Removes the file of an expired lock."""
        entry = self._entry(self.name)
        if entry is None:
            return None
        owner = self.owner(self.name)
        who = owner.who if owner else f"the writer of {self.name}"
        if not self.is_dead(owner):
            if not self.validity:
                never = f"if it is dead, delete {join(self.storage.root, self.name)}"
                return self.refused(who, entry, owner, 0, never)
            if not self.is_expired(entry, self.validity):
                return self.refused(who, entry, owner, self.validity)
        # Only one of those who see the lock expired may delete it: else the second would delete the lock of the first.
        right = f"{self.name}.{_identity(entry, owner)}.expired"
        try:
            self.storage.create_new(right, b"")
        except FileExistsError:
            claim = self._entry(right)
            # The writer that was to delete it died.
            if claim is not None and self.is_expired(claim, self.validity or _TAKING_OVER):
                self.storage.delete(right)
            return Refused("a writer that came first")
        try:
            if self._entry(self.name) == entry and self.owner(self.name) == owner:
                self.storage.delete(self.name)
        finally:
            self.storage.delete(right)
        return None

    def _entry(self, path: str) -> Entry | None:
        folder, name = split(path)
        return next((entry for entry in self.storage.list(folder) if entry.name == name), None)


def _identity(entry: Entry, owner: Owner | None) -> str:
    """Identifies one acquisition of the lock; files of Hudi are empty and differ by their time."""
    return hashlib.blake2b(f"{entry.mtime} {owner.token if owner else ''}".encode(), digest_size=8).hexdigest()


_NUMBER = re.compile(r"(\d{10})", re.ASCII)


@dataclass(slots=True)
class StorageLock(LockFiles):
    """Attempts at a lock in the table's own storage, of any kind with exclusive create.

    `.hoodie/.locks/<name>.<number>`: the greatest number holds the lock. A holder that does not renew it loses it to
    the writer that creates the next number; that create is exclusive, so only one writer succeeds. Its age is measured
    by the storage's clock; writers' clocks do not matter.

    name     within the table, a file name
    renewal  seconds between renewals
    """

    renewal: float

    def attempt(self, seconds: float) -> Grant | Refused:
        """One try; does not wait."""
        numbers = self._numbers()
        if numbers:
            refused = self._holder(numbers[max(numbers)])
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

    def _holder(self, entry: Entry) -> Refused | None:
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
