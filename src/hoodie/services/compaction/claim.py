"""Claims on compactions: one process at a time plans, or runs a plan, and another may once that one is dead.

A claim is a lock of its own, separate from the table's: it is held as long as the work takes, while writers publish. It
is kept in the table's storage, whatever lock the table has: a dead holder's lease expires there, and its file says that
the run was not Hudi's. Hudi claims nothing, and keeps no heartbeat of a compaction: the age of its files tells whether
it runs one.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter

from hoodie.commit.markers import marker_folder
from hoodie.config.locks import LockProvider
from hoodie.errors import PlanInUse
from hoodie.locks import Lock, lock_by
from hoodie.locks.clock import LOCKS, StorageClock
from hoodie.model.instant import Instant, State
from hoodie.storage.protocol import Storage, split
from hoodie.table.settings import Settings
from hoodie.table.state import TableState

#: Seconds to wait for another process that plans a compaction: longer than planning takes, unless it died.
_PATIENCE = 10.0

#: Seconds after the last file of a run that claims nothing in which it counts as alive: a task may write that long.
_QUIET = 3600.0


def runs_unclaimed(state: TableState, plan: Instant) -> bool:
    """Whether a process that claims nothing runs a plan, as far as its files tell: it wrote one within the hour."""
    if plan.state is not State.INFLIGHT:
        return False
    storage, (folder, name) = state.storage, split(state.timeline.path(plan))
    begun = [entry for entry in storage.list(folder) if entry.name == name and entry.mtime]
    if not begun or any(entry.name.startswith(f"compaction-{plan.requested}.") for entry in storage.list(LOCKS)):
        return False
    markers = (entry for entries in storage.list_tree(marker_folder(plan.requested)).values() for entry in entries)
    return StorageClock(storage).age(max([*begun, *markers], key=attrgetter("mtime")), _QUIET) < _QUIET


def left_running(plan: Instant, call: str) -> str:
    """Why a plan is left alone that `runs_unclaimed`. call: what takes it over"""
    return (
        f"compaction {plan.requested} is left to a job of Hudi, which wrote files of it within the last hour. "
        f"If that job is dead {call} takes it over at once"
    )


@contextmanager
def claimed(storage: Storage, settings: Settings, instant: str) -> Iterator[Lock]:
    """Claim a plan. Raises PlanInUse when another process holds it."""
    lock = _independent(storage, settings, f"compaction-{instant}")
    if not lock.acquire(0):
        raise PlanInUse(
            f"compaction {instant} is claimed by another process. If that process is dead its claim expires."
        )
    with _released(lock):
        yield lock


@contextmanager
def scheduling(storage: Storage, settings: Settings) -> Iterator[Lock]:
    """Be the only process that plans compactions of the table: under its lock, or without one under a claim.

    Raises LockTimeout; PlanInUse
    """
    lock = settings.writers.lock_on(storage)
    if lock.real:
        with lock:
            yield lock
        return
    lock = _independent(storage, settings, "compaction")
    if not lock.acquire(_PATIENCE):
        raise PlanInUse("another process is planning a compaction. If it is dead its claim expires.")
    with _released(lock):
        yield lock


def _independent(storage: Storage, settings: Settings, name: str) -> Lock:
    return lock_by(LockProvider.STORAGE, settings.writers.lock, storage, name=name)


@contextmanager
def _released(lock: Lock) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):  # the work is done, or its own error matters more; the lease expires
            lock.release()
