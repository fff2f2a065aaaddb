"""The view of a table for a read, checked for published files that are missing: the read is refused, or warned about.

A reader looks at the newest commits, and at older ones as far as this process knows them or a limit allows
(`hoodie.view.published`). No storage is listed for it, unless files are missing.
"""

import warnings
from collections.abc import Collection
from dataclasses import dataclass

from hoodie.commit.lost import completed_path, lost_commit
from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.errors import ListingStale, MissingFile, MissingFileIgnored
from hoodie.metadata.table import MetadataTable
from hoodie.metadata.trusted import ignore, trusted_listing
from hoodie.model.instant import Action, Instant
from hoodie.reading.time_travel import require_kept
from hoodie.table.state import TableState, tell_of_missing
from hoodie.timeline.transition import completed_instants
from hoodie.view.published import Missing, Taken, all_published, find_missing, newest_published, snapshot_files
from hoodie.view.slices import FileSystemView

#: Times that the timeline is loaded anew when files are missing: it may have moved on between its listing and theirs.
_TRIES = 5


def complete_view(
    state: TableState,
    partitions: Collection[str] | None,
    taken: Taken,
    settings: ReadSettings = DEFAULT_READ,
    as_of: str | None = None,
) -> tuple[TableState, FileSystemView]:
    """The view of a table, or of some of its partitions, with the files that a reader takes all there; and the state
    that it is of: the given one, or a newer one if files went away meanwhile.

    taken    the slices that the reader takes
    settings `MissingFileOptions` among others
    as_of    instant, inclusive, that `taken` is about; None: now
    Raises   MissingFile, also of the completed file of a commit on which later ones were made; InvalidInput when
             cleaning or archiving took what a read as of then needs
    Warns    MissingFileIgnored of each missing file, when the options say to read what is left
    """
    view = listed_view(state, partitions, taken, settings, as_of)
    return view.state, view.view


@dataclass(frozen=True, slots=True)
class ListedView:
    """A view, and the state that it is of.

    metadata  the metadata table that listed the files; None: the storage did
    """

    state: TableState
    view: FileSystemView
    metadata: MetadataTable | None


def listed_view(
    state: TableState,
    partitions: Collection[str] | None,
    taken: Taken,
    settings: ReadSettings = DEFAULT_READ,
    as_of: str | None = None,
) -> ListedView:
    """As `complete_view`, saying who listed the files: the metadata table where there is one that tells the state of
    the table, unless `hoodie.metadata.enable=false`, or missing files are to be ignored: it does not know of them. Nor
    does it list the past beside a pending clean.

    Warns  MetadataTableIgnored, and lists the storage, when that one is out of date, damaged, or lacks a file that a
           recent commit names
    """
    ask = settings.metadata.enable and not settings.missing.ignore
    # A clean tells the metadata table at its end what it has removed: until then old files in there may be gone.
    ask = ask and not (as_of is not None and state.timeline.pending({Action.CLEAN}))
    ask = ask and bool(state.timeline.instants)  # it goes by them: where they are lost, it lists nothing
    doubtful: Missing | None = None
    again = True
    for _ in range(_TRIES):
        listing = trusted_listing(state.storage, state.config, state.timeline, partitions) if ask else None
        ask = listing is not None
        metadata, folders = listing or (None, None)
        view = state.view(partitions, folders)
        if as_of is not None:
            require_kept(state, view, as_of, partitions)
        lost = _missing(state, view, partitions, taken, as_of)
        hollow = lost_commit(state, as_of)
        if not lost and hollow is None:
            if doubtful is not None:
                ignore(state.storage, f"it lacks {doubtful.path}, which {doubtful.instant.requested} published")
            return ListedView(state, view, metadata)
        if metadata is not None and lost:
            if again and metadata.reload().timeline.files != metadata.timeline.files:
                again = False  # its own cleaning may have taken logs away while they were listed
                continue
            ask, doubtful = False, lost[0]  # the storage knows whether the file is lost, or only the list is wrong
            continue
        now = state.reload()
        if now.timeline == state.timeline:
            break
        state, doubtful = now, None
    _refuse_hollow(state, hollow, settings)
    if lost:
        tell_of_missing(state.storage, lost, settings)
    return ListedView(state, view, None)


def refuse_lost_commit(state: TableState, settings: ReadSettings, as_of: str | None = None) -> None:
    """See that no commit up to `as_of` (inclusive; None: now) on which later ones were made lost its completed file.

    Raises  MissingFile; ListingStale; else warns MissingFileIgnored, when the options say to read what is left
    """
    _refuse_hollow(state, lost_commit(state, as_of), settings)


def _refuse_hollow(state: TableState, hollow: Instant | None, settings: ReadSettings) -> None:
    if hollow is None:
        return
    path = completed_path(hollow, state.layout)
    if completed_instants(state.storage, hollow, state.layout):
        raise ListingStale(path)
    if not settings.missing.ignore:
        raise MissingFile(path, hollow.requested, hollow.action)
    warnings.warn(MissingFileIgnored(path, hollow.requested, hollow.action), stacklevel=4)


def require_published(state: TableState, view: FileSystemView, as_of: str) -> None:
    """See that a view has all files that a snapshot reader takes as of an instant, by all commits of the timeline.

    view    of all partitions
    Raises  MissingFile; CorruptFile
    """
    commits = [commit for commit in all_published(state.storage, state.timeline) if commit.instant.requested <= as_of]
    if lost := find_missing(state.storage, state.config, view, commits, snapshot_files(as_of)):
        tell_of_missing(state.storage, lost, None)


def _missing(
    state: TableState, view: FileSystemView, partitions: Collection[str] | None, taken: Taken, as_of: str | None
) -> list[Missing]:
    commits = newest_published(state.storage, state.timeline, as_of)
    return find_missing(state.storage, state.config, view, commits, taken, partitions)
