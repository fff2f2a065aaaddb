"""What a table's timeline says of its partitions since the last sync: written, or deleted.

Source: docs/format/engines.md 4 (which partitions).
"""

from collections.abc import Collection
from dataclasses import dataclass

from hoodie.formats.timeline.services import decode_clean_metadata
from hoodie.model.commit import Operation
from hoodie.model.instant import Action, Instant
from hoodie.table.state import TableState
from hoodie.timeline.load import completion_times, read_commit
from hoodie.view.load import list_folders


@dataclass(frozen=True, slots=True)
class SyncedUpTo:
    """What an entry was last brought up to: instants; "" where it does not say."""

    instant: str = ""
    completion: str = ""


@dataclass(frozen=True, slots=True)
class TouchedPartitions:
    """Partition paths that an entry is compared with.

    present  those to be there
    deleted  those that a commit or a clean has deleted
    whole    `present` has all of the table's
    """

    present: frozenset[str]
    deleted: frozenset[str]
    whole: bool


def newest_sync(state: TableState) -> SyncedUpTo:
    """What an entry is brought up to when it is synced now. One listing, of the timeline."""
    times = completion_times(state.storage, state.config, state.timeline)
    return SyncedUpTo(state.timeline.newest_commit, max(times.values(), default=""))


def touched_since(state: TableState, last: SyncedUpTo, *, incremental: bool) -> TouchedPartitions:
    """The partitions that commits and cleans since the last sync touched, or all of the table.

    Reads these commits and cleans; lists all partitions when the timeline does not reach back to the last sync
    """
    commit_times = {instant.requested for instant in state.timeline.commits}
    if not incremental or last.instant not in commit_times:
        _, deleted = _written_and_deleted(state, state.timeline.commits, "")
        return TouchedPartitions(frozenset(list_folders(state.storage).marked) - deleted, deleted, True)
    times = completion_times(state.storage, state.config, state.timeline)
    commits = [
        instant
        for instant in state.timeline.commits
        if instant.requested > last.instant or (last.completion and times.get(instant.requested, "") > last.completion)
    ]
    written, deleted = _written_and_deleted(state, commits, last.instant)
    return TouchedPartitions(written - deleted, deleted, False)


def _written_and_deleted(
    state: TableState, commits: Collection[Instant], cleans_after: str
) -> tuple[frozenset[str], frozenset[str]]:
    """The partitions that instants name, and those of them that were deleted and not written again."""
    written: dict[str, str] = {}
    deleted: dict[str, str] = {}
    named: set[str] = set()
    for instant in commits:
        metadata = read_commit(state.storage, state.timeline, instant)
        named |= metadata.stats.keys() | metadata.replaced.keys()
        written |= dict.fromkeys(metadata.stats, instant.requested)
        if metadata.operation is Operation.DELETE_PARTITION:
            deleted |= dict.fromkeys(metadata.replaced, instant.requested)
    for clean in state.timeline.completed({Action.CLEAN}):
        path = state.timeline.path(clean)
        if clean.requested <= cleans_after or not (data := state.storage.read(path)):
            continue
        for partition, cleaned in decode_clean_metadata(data, path).partitions.items():
            if cleaned.removed:
                deleted[partition] = max(deleted.get(partition, ""), clean.requested)
    removed = frozenset(partition for partition, time in deleted.items() if time > written.get(partition, ""))
    return frozenset(named), removed
