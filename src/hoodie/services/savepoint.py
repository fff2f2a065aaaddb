"""Deleting savepoints, which may leave archiving something to do."""

import logging
from functools import partial

from hoodie.commit.conflict_check import refuse_during_restore
from hoodie.config.services import ArchiveOptions
from hoodie.errors import InvalidPlan
from hoodie.locks import Lock
from hoodie.recovery.savepoint import find_savepoint, remove_savepoint
from hoodie.services.archive import move_to_archive, replaced_bound
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.timeline.archive import newest_archived, newest_archived_entry
from hoodie.writing.write import writable_state

_log = logging.getLogger("hoodie.services")


@typed_errors()
def delete_savepoint(storage: Storage, settings: Settings, instant: str) -> None:
    """Delete a savepoint: the next cleaning may remove its files.

    Where commits after it are archived, its own is archived first: without the savepoint readers would take the
    timeline to begin with it, and not read what the archived ones wrote.

    Raises InstantNotFound without one at the instant; WriteConflict while a restore is pending; InvalidPlan when its
           commit cannot be archived yet
    """
    with settings.writers.lock_on(storage) as lock:
        state = writable_state(storage, settings, places_keys=False, refuse=partial(_refuse, instant))
        _refuse(instant, state)
        _archive_commit(state, instant, settings.archiving, lock)
        remove_savepoint(storage, instant, state.layout)
        _log.info("savepoint %s deleted", instant)


def _refuse(instant: str, state: TableState) -> None:
    refuse_during_restore(state.timeline)
    find_savepoint(state.timeline, instant)


def _archive_commit(state: TableState, instant: str, how: ArchiveOptions, lock: Lock) -> None:
    """Move the commit of a savepoint to the archive, if later ones are there."""
    first = state.timeline.first_commit
    if instant >= first or newest_archived(state.storage, state.config, first) < instant:
        return
    newest = newest_archived_entry(state.storage, state.config, first)
    chosen = [commit for commit in state.timeline.commits if commit.requested == instant]
    if replaced_bound(state, chosen):
        raise InvalidPlan(
            f"the savepoint {instant} cannot be deleted yet: later commits are archived, and files that its own "
            "replaced are still there. Clean the table first."
        )
    move_to_archive(state, chosen, how, lock, again=newest)
