"""The lock file of Hudi's FileSystemBasedLockProvider: `lock` in a folder, created exclusively, deleted at the end.

A writer that dies leaves it behind. After `expire` minutes by the file's modification time others may delete it and
create it anew; a live holder renews it before. With 0 it stays until a person removes it. The file of a process of this
machine that has ended is taken over at once.
Source: docs/format/table-services.md 7.
"""

from __future__ import annotations

import hashlib

from hoodie.locks.lease import Owner, new_owner
from hoodie.locks.lock_files import LockFiles
from hoodie.locks.protocol import Grant, Refused
from hoodie.storage.protocol import Entry, join, split

#: Seconds that taking a dead writer's lock over takes at most, where locks do not expire.
_TAKING_OVER = 60.0


class FileLock(LockFiles):
    """Attempts at one lock; its name is the path of the lock file."""

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
            left = self._entry(right)
            # The writer that was to delete it died.
            if left is not None and self.is_expired(left, self.validity or _TAKING_OVER):
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
