"""Upkeep of the metadata table: its compaction, its cleaning, its archiving; after a commit, and before the table
itself is archived by call.

Source: docs/format/metadata-table.md 8. Design: docs/design/metadata-table.md.
"""

import logging

from hoodie.config.services import ArchiveOptions
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.metadata.keeping.clean import clean_metadata, retained_commits
from hoodie.metadata.keeping.compact import compact_metadata, waiting_commits
from hoodie.metadata.keeping.drop import drop_with_warning
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.model.instant import Action, Instant, State
from hoodie.services.archive import ArchiveResult, archive, move_to_archive
from hoodie.services.clean import service_state
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState

_log = logging.getLogger("hoodie.services")

_SERVICES = frozenset({Action.COMPACTION, Action.CLEAN})


def may_be_due(state: TableState, settings: Settings) -> bool:
    """Whether the metadata table of a table may have to be compacted, or a service of it was begun. It is cleaned and
    archived after a compaction: in between nothing gets old."""
    table = open_metadata(state.storage, state.config, state.timeline)
    if table is None:
        return False
    begun = any(i.state is not State.COMPLETED and i.action in _SERVICES for i in table.timeline.instants)
    return begun or waiting_commits(table) >= settings.metadata.delta_commits


def keep_up(storage: Storage, settings: Settings) -> None:
    """Compact the metadata table of a table, clean and archive it, as far as each is due.

    Raises  LockTimeout, LockLost; UnsupportedTable when the table must not be written; WriteConflict while a restore
            is pending
    Warns   MetadataTableDropped when it is damaged, and removed
    """
    with settings.writers.lock_on(storage) as lock:
        state = service_state(storage, settings, dry_run=False)
        table = open_metadata(storage, state.config, state.timeline)
        if table is None or table.problem():  # the next write removes one that is behind
            return
        try:
            compacted = compact_metadata(table, settings.metadata.delta_commits, alone=not lock.real)
            lock.check()
            if compacted:
                _log.info("%s: the metadata table was compacted at %s", state.config.name, compacted)
                table = table.reload()
            deleted_files = clean_metadata(table, settings.cleaning)
            lock.check()
            if deleted_files:
                _log.info("%s: %d files of the metadata table were deleted", state.config.name, len(deleted_files))
                table = table.reload()
            how = settings.archiving
            if chosen := _instants_to_archive(table, how, retained_commits(settings.cleaning)):
                move_to_archive(TableState(table.storage, table.config, table.timeline), chosen, how, lock)
        except (CorruptFile, UnsupportedTable) as damage:
            drop_with_warning(storage, str(damage))


@typed_errors()
def archive_table(storage: Storage, settings: Settings, *, dry_run: bool = False) -> ArchiveResult:
    """Archive a table by call. Its metadata table comes first: archiving waits for the compaction of that.

    Arguments, result and errors as of `archive`
    """
    if not dry_run:
        keep_up(storage, settings)
    return archive(storage, settings, dry_run=dry_run)


def _instants_to_archive(table: MetadataTable, how: ArchiveOptions, cleaned: int) -> tuple[Instant, ...]:
    """The instants of a metadata table that may leave its timeline: one more stays than of the table itself, all that
    cleaning looks at, all since the table's oldest, and all since the last compaction.

    cleaned  commits that cleaning keeps files for
    """
    instants = table.timeline.instants
    compactions = [instant.requested for instant in table.timeline.completed({Action.COMMIT})]
    keep = max(how.min_commits + 1, cleaned + 2)
    if len(instants) <= keep + how.max_commits - how.min_commits or not compactions:
        return ()
    pending = [instant.requested for instant in instants if instant.state is not State.COMPLETED]
    first = table.data.instants[0].requested if table.data.instants else ""
    bound = min([compactions[-1], first, *pending])
    return tuple(i for i in instants[: len(instants) - keep] if i.requested < bound)
