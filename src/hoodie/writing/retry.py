"""A write and its further attempts: after a conflict with another writer, on the table as it is then."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hoodie.commit.batch_ids import BatchKnown
from hoodie.commit.conflict_check import WITHOUT_LOCK
from hoodie.errors import FileGone, InstantNotFound, WriteConflict
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.storage.faults import fault_of
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.writing.result import WriteResult

_log = logging.getLogger("hoodie.write")

#: The route of a write that had nothing to do, as its batch was in the table already.
KNOWN = "known"


def with_retries(settings: Settings, attempt: Callable[[], WriteResult]) -> WriteResult:
    """The result of the first attempt that no other writer contradicts, or that of the write that brought the batch.

    attempt  a whole write: it looks at the table anew, and takes back what it wrote when it fails
    Raises   as the attempts; WriteConflict after 1 + `hoodie.write.num.retries.on.conflict.failures` of them, and at
             once when another writer without a lock rolled the write back: tried again, the two would take turns at it
    """
    how = settings.writers.concurrency
    for left in range(how.conflict_retries, -1, -1):
        try:
            return attempt()
        except BatchKnown as known:
            return earlier_result(known)
        except InstantNotFound as gone:
            if how.several:
                raise
            raise WriteConflict(with_remedy(gone)) from gone
        except WriteConflict as conflict:
            if not left:
                if how.conflict_retries:
                    conflict.add_note(f"{how.conflict_retries + 1} attempts were made.")
                if not how.several and WITHOUT_LOCK not in str(conflict):
                    conflict.add_note(WITHOUT_LOCK)
                raise
            _log.info("conflict with another writer, the write starts again; %d attempts are left: %s", left, conflict)
    raise AssertionError  # the last attempt returns or raises


def with_remedy(error: Exception) -> str:
    """What an error says, and what several writers without a lock need."""
    return str(error) if WITHOUT_LOCK in str(error) else f"{error} {WITHOUT_LOCK}"


def earlier_result(known: BatchKnown) -> WriteResult:
    """What the write that brought the batch did; its instant is "" when the active timeline does not have it any
    more."""
    metadata = known.metadata or CommitMetadata(operation=Operation.UNKNOWN)
    return WriteResult(known.instant, metadata, IndexStats(), KNOWN, {})


def overtaken(before: TableState, error: Exception) -> WriteConflict | None:
    """The conflict behind a file that is gone: others committed since a write looked at the table, and a cleaning
    removed what only the older rows needed; or another write was rolled back. None: the error has another reason.

    before  the table as the write found it
    """
    fault = error if isinstance(error, FileGone) else fault_of(error)
    if not isinstance(fault, FileGone):
        return None
    now = before.reload().timeline
    if now.commits != before.timeline.commits:
        what = "other writers have committed since this write began, and a cleaning deleted a file that it was to read"
    elif before.timeline.still(now).instants != before.timeline.instants:
        what = "another write was rolled back since this one began"
    else:
        return None
    return WriteConflict(
        f"{what} ({error}). Nothing is published; write the batch again: "
        "hoodie.write.num.retries.on.conflict.failures does so by itself."
    )
