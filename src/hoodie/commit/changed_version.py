"""A table that has got another version of the format since a write looked at it: the write is refused, and taken back.
Where its process died before, the next write does so.

Its files have the names and statistics of the version before, and its instant lies where no reader looks any longer.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.commit.markers import delete_markers, read_markers
from hoodie.errors import WriteConflict
from hoodie.model.instant import Instant, State
from hoodie.storage.protocol import Storage, remove_with_temporaries
from hoodie.table.state import TableState
from hoodie.timeline.layout import TimelineLayout
from hoodie.timeline.stopped_upgrade import UPGRADED_FOLDER, late_writes, move_back


def require_version(before: TableState, now: TableState) -> None:
    """Raise WriteConflict when a table has another version of the format than when a write looked at it."""
    if before.config.version != now.config.version:
        raise WriteConflict(
            f"{now.config.name} has version {now.config.version} now, and had {before.config.version} when this write "
            "looked at it: another process has changed it meanwhile. Nothing is published; write again"
        )


def with_late_writes(state: TableState) -> TableState:
    """The state with the writes on its timeline that began, without a lock, before a downgrade and have ended since."""
    if state.timeline.layout != 1 or UPGRADED_FOLDER not in state.timeline.folders:
        return state
    late = late_writes(state.storage, state.timeline.files)
    move_back(state.storage, late)
    return state.reload() if late else state


def withdraw(storage: Storage, instant: Instant, layout: TimelineLayout) -> None:
    """Remove what a write made that has not been published.

    layout  of the timeline when it began
    """
    remove_with_temporaries(storage, [marker.path for marker in read_markers(storage, instant.requested)])
    for state in (State.INFLIGHT, State.REQUESTED):
        storage.discard(layout.path(replace(instant, state=state)))
    delete_markers(storage, instant.requested)
