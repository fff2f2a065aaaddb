"""What runs automatically after a commit: cleaning, upkeep of the metadata table, then archiving. The commit stays
published if they fail."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hoodie.config.options import Options
from hoodie.config.services import ArchiveOptions, CleanOptions, CleanPolicy, ServiceOptions, with_kept
from hoodie.errors import ServiceFailed
from hoodie.metadata.drop import has_metadata_table
from hoodie.model.instant import Action
from hoodie.services.archive import ArchiveResult, archive
from hoodie.services.clean import CleanResult, clean, service_state
from hoodie.services.metadata_upkeep import keep_up
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState
from hoodie.timeline.timeline import Timeline

_log = logging.getLogger("hoodie.services")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Serviced:
    """What was done after a commit; None for a service that had nothing to do, is off, or failed."""

    cleaned: CleanResult | None = None
    archived: ArchiveResult | None = None
    state: TableState | None = None  # the table before that, where it was looked at


def after_commit(storage: Storage, options: Options, instant: str, state: TableState | None = None) -> Serviced:
    """Clean and archive by the options. What fails is the warning ServiceFailed: the commit stands.

    options  of the write
    instant  of the commit
    state    the table as the write saw it once it was published (`WriteResult.after`); None: it is loaded
    Raises   InvalidOption, which a write sees before it begins
    """
    cleans, archives = options.read(CleanOptions), options.read(ArchiveOptions)
    if not options.read(ServiceOptions).enabled or not (cleans.automatic or archives.automatic):
        return Serviced()
    load = partial(service_state, storage, options, dry_run=False, state=state)
    state = _guarded("reading the table", instant, load)
    if state is None:
        return Serviced()
    cleans = with_kept(options, state.config.properties).read(CleanOptions)
    cleaned: CleanResult | None = None
    archived: ArchiveResult | None = None
    if cleans.automatic and _may_clean(state.timeline, cleans):
        cleaned = _guarded("cleaning", instant, partial(clean, storage, options, automatic=True, state=state))
    if has_metadata_table(state.config):  # archiving waits for its compaction
        _guarded("keeping the metadata table", instant, partial(keep_up, storage, options))
    if archives.automatic and _may_archive(state.timeline, archives):
        # The timeline of now shows what was cleaned, even if the clean failed.
        archived = _guarded("archiving", instant, partial(archive, storage, options))
    return Serviced(cleaned, archived, state)


def _may_clean(timeline: Timeline, options: CleanOptions) -> bool:
    """Whether there may be something to clean: with fewer commits there is not."""
    by_commits = options.policy is CleanPolicy.KEEP_LATEST_COMMITS
    return not by_commits or len(timeline.commits) > options.commits or bool(timeline.pending({Action.CLEAN}))


def _may_archive(timeline: Timeline, options: ArchiveOptions) -> bool:
    """Whether there may be something to archive, with the clean that comes first."""
    counts = [len(timeline.completed({action})) for action in (Action.CLEAN, Action.ROLLBACK)]
    return max(len(timeline.commits), *(count + 1 for count in counts)) > options.max_commits


def _guarded(service: str, instant: str, run: Callable[[], T]) -> T | None:
    try:
        with typed_errors():
            return run()
    # Any error at all: raised, it would look as if the write had failed, and the caller would write again.
    except Exception as error:
        _log.info("%s after commit %s failed with %s", service, instant, type(error).__name__)
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        warnings.warn(ServiceFailed(service, instant, f"{type(error).__name__}: {error}{notes}"), stacklevel=4)
        return None
