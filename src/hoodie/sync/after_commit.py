"""What follows a commit: expiry, manifests, cleaning, upkeep of the metadata table, archiving, compaction, the
metastore. The commit stands if they fail. Each is called only where it has something to do.
"""

import logging
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hoodie.commit.conflict_check import WITHOUT_LOCK
from hoodie.config.services import ArchiveOptions, CleanOptions, CleanPolicy
from hoodie.errors import FileGone, ServiceFailed, WriteConflict
from hoodie.model.instant import Action
from hoodie.services.archive import ArchiveResult, archive
from hoodie.services.clean import CleanResult, clean, service_state
from hoodie.services.compaction.inline import compact_inline
from hoodie.services.compaction.job import RunTasks
from hoodie.services.expiry import expire_partitions
from hoodie.services.metadata_upkeep import keep_up, may_be_due
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.sync.hive import sync_table
from hoodie.sync.manifest import write_manifests
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.timeline.timeline import Timeline

_log = logging.getLogger("hoodie.services")

T = TypeVar("T")


def after_commit(
    storage: Storage,
    settings: Settings,
    instant: str,
    state: TableState | None = None,
    *,
    run_compaction: RunTasks | None = None,
    spark_version: str = "",
) -> None:
    """Run what the settings of a write ask for after its commit, one after the other.

    instant         of the commit
    state           the table as the write saw it once it was published; None: it is loaded
    run_compaction  carries out the tasks of a compaction; None: threads of this process
    spark_version   as for `sync_table`
    A service that fails leaves what it can go on with, and a `ServiceFailed` warning: the write itself has succeeded.
    """
    enabled = settings.services.enabled
    if enabled and settings.expiry.inline:
        expired = _guarded("deleting expired partitions", instant, partial(expire_partitions, storage, settings))
        if expired is None or expired.partitions:
            state = None  # the table is another one now, or may be
    # Before cleaning, which may delete what the last manifests name.
    _manifests(storage, settings, instant, state=state)
    serviced = clean_and_archive(storage, settings, instant, state) if enabled else Serviced()
    compacted: bool | None = False
    state = state or serviced.state
    if enabled and (state is None or state.config.merge_on_read):
        compact = partial(compact_inline, storage, settings, run_compaction, state)
        compacted = _guarded("compaction", instant, compact)
    removed = serviced.cleaned.partitions if serviced.cleaned else ()
    if removed or compacted is not False:  # one that failed may have carried out others before
        _manifests(storage, settings, instant, removed=removed)
    if settings.hive_sync.enabled or settings.meta_sync.enabled:
        advice = "The metastore shows the table as of the last sync; the next commit syncs again, as table.sync() does."
        sync = partial(sync_table, storage, settings, spark_version=spark_version)
        _guarded("the sync to the metastore", instant, sync, advice)


@dataclass(frozen=True, slots=True)
class Serviced:
    """What was done after a commit; None for a service that had nothing to do, is off, or failed."""

    cleaned: CleanResult | None = None
    archived: ArchiveResult | None = None
    state: TableState | None = None  # the table before that, where it was looked at


def clean_and_archive(storage: Storage, settings: Settings, instant: str, state: TableState | None = None) -> Serviced:
    """Clean and archive by the settings. What fails is the warning ServiceFailed: the commit stands.

    settings  of the write
    instant   of the commit
    state     the table as the write saw it once it was published (`WriteResult.after`); None: it is loaded
    """
    cleans, archives = settings.cleaning, settings.archiving
    if not (cleans.automatic or archives.automatic):
        return Serviced()
    if state is None:
        state = _guarded("reading the table", instant, partial(service_state, storage, settings, dry_run=False))
    if state is None:
        return Serviced()
    cleans = settings.cleaning_of(state.config)
    cleaned: CleanResult | None = None
    archived: ArchiveResult | None = None
    if cleans.automatic and _may_clean(state.timeline, cleans):
        run = partial(clean, storage, settings, automatic=True, state=state)
        cleaned = _guarded("cleaning", instant, run, settings=settings)
    if state.config.has_metadata_table:  # archiving waits for its compaction
        _guarded("keeping the metadata table", instant, partial(_keep_up, state, settings))
    if archives.automatic and _may_archive(state.timeline, archives):
        # The timeline of now shows what was cleaned, even if the clean failed.
        archived = _guarded("archiving", instant, partial(archive, storage, settings), settings=settings)
    return Serviced(cleaned, archived, state)


def _keep_up(state: TableState, settings: Settings) -> None:
    if may_be_due(state, settings):
        keep_up(state.storage, settings)


def _may_clean(timeline: Timeline, options: CleanOptions) -> bool:
    """Whether there may be something to clean: with fewer commits there is not."""
    by_commits = options.policy is CleanPolicy.KEEP_LATEST_COMMITS
    return not by_commits or len(timeline.commits) > options.commits or bool(timeline.pending({Action.CLEAN}))


def _may_archive(timeline: Timeline, options: ArchiveOptions) -> bool:
    """Whether there may be something to archive, with the clean that comes first."""
    counts = [len(timeline.completed({action})) for action in (Action.CLEAN, Action.ROLLBACK)]
    return max(len(timeline.commits), *(count + 1 for count in counts)) > options.max_commits


def _manifests(
    storage: Storage,
    settings: Settings,
    instant: str,
    *,
    state: TableState | None = None,
    removed: Collection[str] = (),
) -> None:
    """Bring the manifests up to date that the settings ask for. What fails is the warning ServiceFailed.

    instant         of the commit
    state, removed  as for `write_manifests`
    """
    if settings.manifests.formats or settings.manifests.view:
        advice = "Engines go on reading the old lists; the next commit writes what is missing."
        write = partial(write_manifests, storage, settings, removed=removed, state=state)
        _guarded("writing the manifests", instant, write, advice)


def _guarded(
    service: str, instant: str, run: Callable[[], T], advice: str = "", *, settings: Settings | None = None
) -> T | None:
    """What `run` returns; None when it fails, which is the warning ServiceFailed.

    settings  of a writer: where another one was in its way and it takes no lock, the warning says what both need
    """
    try:
        with typed_errors():
            return run()
    # Any error at all: raised, it would look as if the write had failed, and the caller would write again.
    except Exception as error:
        _log.info("%s after commit %s failed with %s", service, instant, type(error).__name__)
        several = settings is None or settings.writers.concurrency.several
        if not several and isinstance(error, FileGone | WriteConflict) and WITHOUT_LOCK not in str(error):
            error.add_note(WITHOUT_LOCK)
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        problem = f"{type(error).__name__}: {error}{notes} {advice}".rstrip()
        warnings.warn(ServiceFailed(service, instant, problem), stacklevel=4)
        return None
