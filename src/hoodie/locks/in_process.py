"""A lock among the threads of one process."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from hoodie.locks.protocol import TELL_AFTER, Grant, Refused

_GUARD = threading.Lock()
_LOCKS: dict[tuple[str, str], threading.Lock] = {}
_HOLDERS: dict[tuple[str, str], str] = {}


@dataclass(frozen=True, slots=True)
class _HeldLock:
    key: tuple[str, str]

    def check(self) -> None:
        return None  # it cannot be lost

    def release(self) -> None:
        _HOLDERS.pop(self.key, None)
        _LOCKS[self.key].release()


def in_process(table: str, name: str) -> Callable[[float], Grant | Refused]:
    """Attempts at the lock `name` of a table.

    table  its identity (`table_identity`): the same for every way to write the table's path
    """
    key = (table, name)
    with _GUARD:
        lock = _LOCKS.setdefault(key, threading.Lock())

    def attempt(seconds: float) -> Grant | Refused:
        got = lock.acquire(timeout=min(seconds, TELL_AFTER)) if seconds > 0 else lock.acquire(blocking=False)
        if not got:
            return Refused(_HOLDERS.get(key, "another thread of this process"))
        _HOLDERS[key] = f"thread {threading.current_thread().name} of this process"
        return _HeldLock(key)

    return attempt
