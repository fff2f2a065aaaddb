"""Heartbeats: an empty file for each write in progress, whose modification time shows that its writer is alive.

Written with the LAZY policy only. Source: docs/format/table-and-timeline.md 4.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from hoodie.config.locks import ConcurrencyOptions
from hoodie.errors import WriteConflict
from hoodie.locks.background import Background, background
from hoodie.locks.clock import StorageClock
from hoodie.storage.protocol import Storage

_FOLDER = ".hoodie/.heartbeat"


def heartbeat_path(instant: str) -> str:
    """The path of the heartbeat of a write."""
    return f"{_FOLDER}/{instant}"


@dataclass(slots=True, eq=False)
class Heartbeat:
    """The heartbeat of a write of this process. `start` it before the write's instant is on the timeline."""

    storage: Storage
    instant: str
    interval: float  # seconds
    expiry: float  # seconds
    monotonic: Callable[[], float] = time.monotonic
    run: Background = background
    _last: float = 0.0
    _ended: bool = False
    _stop: Callable[[], None] = lambda: None
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> Heartbeat:
        """Write the heartbeat, and keep renewing it. Raises errors of the storage."""
        self._last = self.monotonic()
        self.storage.write(heartbeat_path(self.instant), b"")
        self._stop = self.run(self.interval, self.beat)
        return self

    def beat(self) -> bool:
        """One heartbeat; False once it is too late: other writers may already consider this one dead."""
        with self._turn:
            if self._ended or self._late():
                return False
            now = self.monotonic()
            try:
                self.storage.write(heartbeat_path(self.instant), b"")
            except Exception:  # of the storage's driver; `check` raises if no heartbeat succeeds in time
                return True
            self._last = now
            return True

    def check(self) -> None:
        """Raises WriteConflict when other writers may consider this one dead."""
        with self._turn:
            if self._late():
                raise WriteConflict(
                    f"instant {self.instant}: no heartbeat for more than {self.expiry:g} s "
                    "(hoodie.client.heartbeat.interval_in_ms times tolerable.misses); other writers may consider "
                    "this one dead. Nothing is published; write the batch again."
                )

    def stop(self) -> None:
        """Stop the heartbeat without removing it: others may roll the write back once it expires."""
        with self._turn:
            self._ended = True
        self._stop()

    def end(self) -> None:
        """The write is over: stop the heartbeat and remove its file."""
        self.stop()
        remove_heartbeat(self.storage, self.instant)

    def _late(self) -> bool:
        return self.monotonic() - self._last > self.expiry


def start_heartbeat(storage: Storage, instant: str, options: ConcurrencyOptions) -> Heartbeat:
    """A started heartbeat."""
    return Heartbeat(storage, instant, options.heartbeat_interval / 1000, options.heartbeat_expiry / 1000).start()


def remove_heartbeat(storage: Storage, instant: str) -> None:
    """Remove the heartbeat of a finished write. One that is left behind has no effect."""
    with suppress(OSError):
        storage.discard(heartbeat_path(instant))


def silent_writes(storage: Storage, instants: Collection[str], options: ConcurrencyOptions) -> set[str]:
    """The writes in progress whose heartbeat expired or is missing. Ages are by the storage's clock."""
    if not instants:
        return set()
    heartbeats = {entry.name: entry for entry in storage.list(_FOLDER) if not entry.is_dir}
    clock, limit = StorageClock(storage), options.heartbeat_expiry / 1000
    # Object stores have whole seconds.
    return {
        instant
        for instant in instants
        if instant not in heartbeats or clock.age(heartbeats[instant], limit) > limit + 1
    }
