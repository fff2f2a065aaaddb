"""Writes that are pending because their completed file is lost, and not because they failed: no write, and no repair,
rolls them back, which would delete rows that readers have seen.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from hoodie.commit.markers import read_markers
from hoodie.commit.rollback_planner import PLANS, plan_rollback
from hoodie.errors import CorruptFile
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, LogFile, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import PlannedSlice
from hoodie.plan.conflict import commits_seen
from hoodie.storage.protocol import Storage, split
from hoodie.table.state import TableState
from hoodie.timeline.layout import COMPLETES_AS, TimelineLayout, comparable_action
from hoodie.timeline.load import pending_plans, read_commit
from hoodie.timeline.transition import completed_instants
from hoodie.view.load import data_files

#: Of the commits after a pending write, how many of the oldest a reader asks whether they were made on it.
_LATER = 3


def built_upon(
    write: Instant,
    commits: Mapping[Instant, CommitMetadata],
    files: Iterable[BaseFile | LogFile],
    savepoints: Iterable[Instant],
    plans: Mapping[Instant, Iterable[PlannedSlice]],
) -> Instant | None:
    """Its savepoint, or the first completed commit that was made on a pending write or wrote to a file slice of it, or
    the first plan with a file of it: the write was completed then, and its completed file is lost. None: there is none.

    commits  of the timeline, with what they did
    files    of the partitions that these wrote to: in layout 2 a log does not name its slice, but nobody adds logs to a
             file group that a pending write began with a base file
    plans    pending compactions, log compactions and clusterings, with the slices that they are to read
    """
    time = write.requested
    if saved := next((savepoint for savepoint in savepoints if savepoint.requested == time), None):
        return saved

    planned = write.action in PLANS  # logs are added to its slices before it is completed

    def has_own(names: Iterable[str]) -> bool:
        files = (parse_data_file("", name, 0) for name in names)
        return any(
            file.base_instant == time and (isinstance(file, BaseFile) or not planned)
            for file in files
            if file is not None
        )

    oldest: dict[FileGroupId, tuple[str, bool]] = {}
    for file in files:
        begun = (file.instant, True) if isinstance(file, BaseFile) else (file.base_instant, False)
        oldest[file.group] = min(oldest.get(file.group, begun), begun)
    created = {group for group, begun in oldest.items() if begun == (time, True)}

    def is_later(stat: WriteStat, partition: str) -> bool:
        own = stat.prev_commit == time or FileGroupId(partition, stat.file_id) in created
        return (own and not planned) or has_own((stat.base_file or "", *stat.log_files))

    later = [
        commit
        for commit, metadata in commits.items()
        if commit.requested > time
        and (
            time in commits_seen(metadata)
            or any(is_later(stat, partition) for partition, part in metadata.stats.items() for stat in part)
        )
    ]
    later += [
        plan for plan, slices in plans.items() if has_own(split(path)[1] for slice_ in slices for path in slice_.paths)
    ]
    return min(later, default=None)


def unmarked(storage: Storage, write: Instant, layout: TimelineLayout) -> bool:
    """Whether a pending write has files and no markers. It makes these before its files and removes them once it is
    completed; a rollback removes them last."""
    with suppress(CorruptFile):
        has_files = bool(plan_rollback(storage, write, layout=layout).requests)
        # In this order: it may go on meanwhile, and be completed.
        return (
            has_files and not read_markers(storage, write.requested) and not completed_instants(storage, write, layout)
        )
    return False


def way_back(write: Instant, layout: TimelineLayout) -> str:
    """What gives the rows of such a write back. The file of a replace commit says which files do not count, too."""
    advice = "Restore the file from a copy of the table"
    if comparable_action(write.action) is not Action.REPLACE_COMMIT:
        advice += f", or create {completed_path(write, layout, write.requested)} empty: readers see its rows then"
    return advice


def completed_path(write: Instant, layout: TimelineLayout, completed: str = "*") -> str:
    """Where the completed file of a pending write should be. completed: when it was, which nobody knows in layout 2"""
    action = COMPLETES_AS.get(write.action, write.action)
    return layout.path(replace(write, action=action, state=State.COMPLETED, completed=completed))


def lost_completion(
    state: TableState,
    write: Instant,
    commits: Mapping[Instant, CommitMetadata],
    files: Iterable[BaseFile | LogFile],
    plans: Mapping[Instant, Iterable[PlannedSlice]],
    *,
    marked: bool = False,
) -> CorruptFile | None:
    """What is said of a write that is pending only because its completed file is lost; None: it may have failed.

    commits, files, plans  as of `built_upon`
    marked                 only if something is built on it, whether it has markers or not: of services, which may have
                           none while they run
    """
    timeline, layout = state.timeline, state.layout
    path = completed_path(write, layout) if timeline.layout == 1 else timeline.path(write)
    advice = way_back(write, layout)
    if user := built_upon(write, commits, files, timeline.completed({Action.SAVEPOINT}), plans):
        how = "keeps its files" if user.action is Action.SAVEPOINT else "builds on it"
        problem = f"the completed file of this {write.action} is lost: {user.action} {user.requested} {how}"
        return CorruptFile(path, problem, advice=f"{advice}. A rollback would delete them.")
    if marked or not unmarked(state.storage, write, layout):
        return None
    problem = "it has files and no markers, which a write removes once it is completed: its completed file is lost"
    undo = "If nobody was told that it succeeded, `hoodie rollback` takes it back."
    return CorruptFile(path, problem, advice=f"{advice}. {undo}")


def refuse_lost(state: TableState, write: Instant, *, marked: bool = False) -> None:
    """Raises CorruptFile on a write that is pending only because its completed file is lost: its files are in use.

    marked  as of `lost_completion`: a person asks to roll it back
    """
    later = [commit for commit in state.timeline.commits if commit.requested > write.requested]
    commits = {commit: read_commit(state.storage, state.timeline, commit) for commit in later}
    partitions = {partition for commit in commits.values() for partition in commit.stats}
    files = data_files({partition: state.storage.list(partition) for partition in partitions})
    plans = pending_plans(state.storage, state.timeline)
    if (lost := lost_completion(state, write, commits, files, plans, marked=marked)) is not None:
        raise lost


def lost_commit(state: TableState, as_of: str | None) -> Instant | None:
    """A write up to `as_of` (inclusive; None: now) that is pending though a later commit says that it was made on it.
    None: there is none, as far as a few commits tell."""
    for write in state.timeline.pending():
        later = [commit for commit in state.timeline.commits if commit.requested > write.requested]
        for commit in (*later[:_LATER], *later[-1:]) if as_of is None or write.requested <= as_of else ():
            with suppress(FileNotFoundError, CorruptFile):  # archived, or rolled back; damaged
                if write.requested in commits_seen(read_commit(state.storage, state.timeline, commit)):
                    return write
    return None
