"""Which files cleaning deletes, and which partitions it has to list.

A file version is deleted when no read as of a retained commit, no savepoint and no pending plan needs it. Pure rules;
`hoodie.services.clean` lists and deletes. Source: docs/format/table-services.md 1.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from hoodie.config.services import CleanOptions, CleanPolicy
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.model.instant import Instant, time_before
from hoodie.model.plans import CleanMetadata
from hoodie.timeline.timeline import Timeline
from hoodie.view.slices import FileSystemView, GroupFiles, committed_slices

#: After so many commits without anything to delete a clean is recorded all the same: the next one then need not look at
#: these commits again, and they may be archived.
CHECKPOINT = 10


def earliest_retained(timeline: Timeline, options: CleanOptions, now: str) -> Instant | None:
    """The oldest commit as of which reads are to work; None: all of them, or the policy counts versions.

    now  instant time of the clean
    """
    commits, earliest = timeline.commits, None
    if options.policy is CleanPolicy.KEEP_LATEST_COMMITS and len(commits) > options.commits:
        earliest = commits[-options.commits]
    elif options.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        since = time_before(now, hours=options.hours)
        recent = (commit for commit in commits if commit.requested >= since)
        earliest = next(recent, commits[-1] if commits else None)  # where all are older, the newest is what readers see
    pending = timeline.pending()
    if earliest is not None and pending and earliest.requested > pending[0].requested:
        # The files that a pending write or plan started from stay.
        earliest = max((c for c in commits if c.requested < pending[0].requested), default=None)
    return earliest


def looked_up_to(timeline: Timeline, options: CleanOptions) -> str:
    """By versions: the newest commit whose effects a clean of this moment sees; "" for none.

    Commits that are pending now are the next clean's, though newer ones are completed.
    """
    pending = timeline.pending()
    if options.policy is not CleanPolicy.KEEP_LATEST_FILE_VERSIONS or not pending:
        return timeline.newest_commit
    return max((c.requested for c in timeline.commits if c.requested < pending[0].requested), default="")


def commits_since(timeline: Timeline, last: CleanMetadata | None) -> int:
    """Completed commits since the last clean planned: what `hoodie.clean.max.commits` counts."""
    return sum(last is None or commit.requested > last.last_completed for commit in timeline.commits)


@dataclass(frozen=True, slots=True)
class CleanScope:
    """Where to look for files to delete.

    commits  those that may have replaced files since the last clean; None: list all partitions
    """

    commits: tuple[Instant, ...] | None

    @property
    def worth_a_record(self) -> bool:
        """Whether a clean is recorded even if it deletes nothing, so that the next one has less to list."""
        return self.commits is None or len(self.commits) >= CHECKPOINT


def scope_of(
    timeline: Timeline,
    options: CleanOptions,
    earliest: Instant | None,
    last: CleanMetadata | None,
    savepoints: Collection[str],
    *,
    all_active: bool,
) -> CleanScope:
    """Where files may have become deletable since the last clean.

    A version can be deleted once a newer one of its group, or the replacement of the group, is old enough: the commits
    that became so since the last clean say in which partitions that is.

    earliest    `earliest_retained`
    last        what the newest completed clean did; None: there is none
    savepoints  instants that are savepointed now: where one went away, its files may be anywhere
    all_active  nothing was ever archived: without a clean all commits are there to look at
    """
    commits = timeline.commits
    by_versions = options.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    if not commits or (earliest is None and not by_versions):
        return CleanScope(())
    up_to = "" if by_versions else earliest.requested if earliest else ""
    if last is None:
        if not all_active:
            return CleanScope(None)
        return CleanScope(tuple(c for c in commits if by_versions or c.requested < up_to))
    saved_then = {time for time in last.extra.get(SAVEPOINTS, "").split(",") if time}
    # Both policies say up to where the last clean looked, each in a field of its own.
    since = last.last_completed if by_versions and not last.earliest else "" if by_versions else last.earliest
    if not since or since < timeline.first_commit or not saved_then <= set(savepoints):
        return CleanScope(None)
    if by_versions:
        return CleanScope(tuple(c for c in commits if c.requested > since))
    return CleanScope(tuple(c for c in commits if since <= c.requested < up_to))


#: Key of a clean plan's extra metadata: the savepoints at the time, separated by commas.
SAVEPOINTS = "savepointed_timestamps"


def superseding(commit: CommitMetadata) -> set[str]:
    """Partition paths where a commit replaced a file version, or file groups.

    New file groups and appended logs leave nothing behind that could be deleted.
    """
    partitions = {
        partition
        for partition, stats in commit.stats.items()
        if any(stat.log_version is None and stat.prev_commit != "null" for stat in stats)
    }
    return partitions | {partition for partition, ids in commit.replaced.items() if ids}


def files_to_delete(
    view: FileSystemView,
    options: CleanOptions,
    earliest: Instant | None,
    pending: Collection[str] = (),
    saved: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Names of the files that are no longer needed, by partition path.

    pending  paths of the files in pending compactions, log compactions and clusterings
    saved    paths of the files in savepoints
    A slice with one of these stays whole.
    """
    deletions: dict[str, set[str]] = {}
    for group, files in view.groups.items():
        slices = committed_slices(view, group)
        replaced = view.replaced.get(group)
        if options.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
            old = slices if replaced is not None else _beyond_versions(view, slices, options.versions, pending)
        elif earliest is None:
            continue
        elif replaced is not None:
            old = slices if replaced < earliest.requested else ()
        else:
            old = _before(slices, earliest.requested)
        for slice_ in old:
            paths = [file.path for file in _files(slice_, files)]
            if not any(path in pending or path in saved for path in paths):
                deletions.setdefault(group.partition, set()).update(file.name for file in _files(slice_, files))
    return {partition: tuple(sorted(names)) for partition, names in sorted(deletions.items())}


def _before(slices: tuple[FileSlice, ...], earliest: str) -> tuple[FileSlice, ...]:
    """All older than `earliest` but the newest of these, which a read as of `earliest` needs."""
    older = tuple(slice_ for slice_ in slices if slice_.base_instant < earliest)
    return older[:-1]


def _beyond_versions(
    view: FileSystemView, slices: tuple[FileSlice, ...], versions: int, pending: Collection[str]
) -> tuple[FileSlice, ...]:
    """All but the newest `versions`; what a pending compaction is about to join counts as one."""
    if not slices:
        return ()
    opened = view.compacting.get(slices[0].group)
    closed = [
        slice_
        for slice_ in slices
        if slice_.base_instant != opened and not any(file.path in pending for file in _own_files(slice_))
    ]
    retained = versions - (1 if opened is not None else 0)
    return tuple(closed[: max(0, len(closed) - retained)])


def _own_files(slice_: FileSlice) -> Iterator[BaseFile | LogFile]:
    if slice_.base is not None:
        yield slice_.base
    yield from slice_.logs


def _files(slice_: FileSlice, files: GroupFiles) -> Iterator[BaseFile | LogFile]:
    """The files of a slice, its change data included."""
    yield from _own_files(slice_)
    yield from (log for log in files.changes if log.base_instant == slice_.base_instant)


def emptied(view: FileSystemView, deleted: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Partitions in which no data file is left, committed or not: those to remove whole."""
    stored_names: dict[str, set[str]] = {partition: set() for partition in deleted}
    for group, files in view.groups.items():
        if group.partition in stored_names:
            stored_names[group.partition].update(_names(files))
    return tuple(p for p, names in sorted(stored_names.items()) if p and names <= set(deleted[p]))


def _names(files: GroupFiles) -> Iterable[str]:
    yield from (base.name for base in files.bases)
    yield from (log.name for log in (*files.logs, *files.changes))
