"""The time by a storage's own clock: ages of its files are measured by it, not by the clock of any writer."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from hoodie.storage.protocol import Entry, Storage, split, temporary_beside

#: Where lock files and probes lie, relative to the base path.
LOCKS = ".hoodie/.locks"


def storage_now(storage: Storage) -> int:
    """Milliseconds since 1970 by the clock that gives files their modification times.

    Writes a probe file, reads its time and removes it. For a storage without file times: this process's clock.
    """
    probe = temporary_beside(f"{LOCKS}/clock")
    storage.create_new(probe, b"")
    try:
        name = split(probe)[1]
        times = [entry.mtime for entry in storage.list(LOCKS) if entry.name == name]
    finally:
        storage.discard(probe)
    return times[0] if times and times[0] else time.time_ns() // 1_000_000


@dataclass(slots=True)
class StorageClock:
    """Ages of files by the storage's clock. It is read once, and again before a file is considered old."""

    storage: Storage
    monotonic: Callable[[], float] = time.monotonic
    _ahead: float | None = None  # of the monotonic clock, seconds

    def age(self, entry: Entry, young: float = 0.0) -> float:
        """Seconds since a file was written, or less: 0 for a file without a time, which may always be a live writer's.

        young  an age up to this is not measured exactly
        """
        if not entry.mtime:
            return 0.0
        if self._ahead is None or self._elapsed(entry) > young:
            now = storage_now(self.storage) / 1000
            self._ahead = now - self.monotonic()  # the later reading: files seem younger than they are, never older
        return self._elapsed(entry)

    def _elapsed(self, entry: Entry) -> float:
        assert self._ahead is not None
        return self._ahead + self.monotonic() - entry.mtime / 1000
