"""Writes that are pending because their completed file is lost, and not because they failed: no write, and no repair,
rolls them back, which would delete rows that readers have seen.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from hoodie.commit.markers import read_markers
from hoodie.commit.rollback_planner import PLANS, plan_rollback
from hoodie.errors import CorruptFile
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, parse_data_file
from hoodie.model.instant import WRITES, Action, Instant, State
from hoodie.model.plans import PlannedSlice
from hoodie.plan.conflict import commits_seen
from hoodie.storage.protocol import Storage, split
from hoodie.table.state import TableState
from hoodie.timeline.cleanings import cleaned_files
from hoodie.timeline.load import pending_plans, read_commit, read_compaction_plan
from hoodie.timeline.timeline import TimelineLayout, comparable_action
from hoodie.timeline.transition import completed_instants

#: A reader asks so many of the oldest commits after a pending write whether they were made on it.
_LATER = 3


def lost_completion(
    state: TableState,
    write: Instant,
    commits: Mapping[Instant, CommitMetadata],
    plans: Mapping[Instant, Iterable[PlannedSlice]],
) -> CorruptFile | None:
    """What is said of a write that is pending only because its completed file is lost, as something is built on it;
    None: it may have failed.

    commits  later ones, with what they did
    plans    pending compactions, log compactions and clusterings, with the slices that they are to read. Those that
             were carried out are looked at, too
    """
    timeline, time = state.timeline, write.requested
    if _shares_time(state, write):
        return None
    saved = [savepoint for savepoint in timeline.completed({Action.SAVEPOINT}) if savepoint.requested == time]
    how = "keeps its files" if saved else "builds on it"
    user = next(iter(saved), None) or _built_upon(write, commits, {**_plans_carried_out(state, write), **plans})
    if user is None and (user := _cleaned_input(state, write, lambda write: plans.get(write, ()))):
        how = "removed what it was to read"
    if user:
        problem = f"the completed file of this {write.action} is lost: {user.action} {user.requested} {how}"
        return _with_way_back(state, write, problem, "A rollback would delete them.")
    return None


def _shares_time(state: TableState, write: Instant) -> bool:
    """Whether a completed commit has the time of a pending write: two writers without a lock took the same. What later
    commits name is that one's."""
    return any(commit.requested == write.requested for commit in state.timeline.commits)


def _with_way_back(state: TableState, write: Instant, problem: str, rollback: str) -> CorruptFile:
    timeline, layout = state.timeline, state.layout
    path = completed_path(write, layout) if timeline.layout == 1 else timeline.path(write)
    advice = "Restore the file from a copy of the table"
    if comparable_action(write.action) is not Action.REPLACE_COMMIT:  # whose file says which files do not count
        advice += f", or create {completed_path(write, layout, write.requested)} empty: readers see its rows then"
    return CorruptFile(path, problem, advice=f"{advice}. {rollback}")


def _built_upon(
    write: Instant, commits: Mapping[Instant, CommitMetadata], plans: Mapping[Instant, Iterable[PlannedSlice]]
) -> Instant | None:
    """The oldest commit that was made on a write or names a file of it, or plan that does; None: there is none."""
    time = write.requested
    planned = write.action in PLANS  # logs are added to its slices before it is completed

    def own(names: Iterable[str]) -> bool:
        files = [file for name in names if (file := parse_data_file("", name, 0)) and file.base_instant == time]
        return any(isinstance(file, BaseFile) or not planned for file in files)

    def builds(metadata: CommitMetadata) -> bool:
        return time in commits_seen(metadata) or any(
            (stat.prev_commit == time and not planned) or own((stat.base_file or "", *stat.log_files))
            for stat in metadata.all_stats
        )

    users = [commit for commit, metadata in commits.items() if commit.requested > time and builds(metadata)]
    users += [plan for plan, parts in plans.items() if own(split(path)[1] for part in parts for path in part.paths)]
    return min(users, default=None)


def _plans_carried_out(state: TableState, write: Instant) -> dict[Instant, tuple[PlannedSlice, ...]]:
    """The slices that later compactions and log compactions have read, as far as their plans are on the timeline."""
    plans: dict[Instant, tuple[PlannedSlice, ...]] = {}
    for commit in state.timeline.commits:
        for action in PLANS:
            plan = Instant(commit.requested, action, State.REQUESTED)
            if commit.requested > write.requested and split(state.timeline.path(plan))[1] in state.timeline.files:
                with suppress(FileNotFoundError, CorruptFile):
                    plans[commit] = read_compaction_plan(state.storage, state.timeline, plan).operations
    return plans


def _cleaned_input(
    state: TableState, write: Instant, slices: Callable[[Instant], Iterable[PlannedSlice]]
) -> Instant | None:
    """A clean that removed what a compaction was to read, which was completed by then: pending plans keep theirs.

    slices  of its plan
    """
    cleans = [clean for clean in state.timeline.completed({Action.CLEAN}) if clean.requested > write.requested]
    if write.action is not Action.COMPACTION or not cleans:
        return None
    paths = {path for part in slices(write) for path in part.paths}
    for clean in cleans:
        removed = cleaned_files(state.storage, state.timeline, [clean])
        if not all(state.storage.exists(path) for path in paths & removed):  # a savepoint may have kept them
            return clean
    return None


def unmarked(storage: Storage, write: Instant, layout: TimelineLayout) -> bool:
    """Whether a pending write has files and no markers. It makes these before its files and removes them once it is
    completed; a rollback removes them last. No proof by itself: people remove markers."""
    with suppress(CorruptFile):
        has_files = bool(plan_rollback(storage, write, layout=layout).requests)
        # In this order: it may go on meanwhile, and be completed.
        return (
            has_files and not read_markers(storage, write.requested) and not completed_instants(storage, write, layout)
        )
    return False


def completed_path(write: Instant, layout: TimelineLayout, completed: str = "*") -> str:
    """Where the completed file of a pending write should be. completed: when it was, which nobody knows in layout 2"""
    action = comparable_action(write.action)
    return layout.path(replace(write, action=action, state=State.COMPLETED, completed=completed))


def refuse_lost(state: TableState, write: Instant, *, input_gone: bool = False) -> None:
    """Raises CorruptFile on a write that is pending only because its completed file is lost: its files are in use.

    input_gone  files that a compaction was to read are gone, as after a cleaning: without markers it was completed
    """
    later = [commit for commit in state.timeline.commits if commit.requested > write.requested]
    commits = {commit: read_commit(state.storage, state.timeline, commit) for commit in later}
    plans = pending_plans(state.storage, state.timeline)
    if (lost := lost_completion(state, write, commits, plans)) is not None:
        raise lost
    if input_gone and unmarked(state.storage, write, state.layout):
        problem = "files that it was to read are gone, and it has files of its own: its completed file is lost"
        undo = "If nobody was told that it succeeded, `hoodie rollback` takes it back."
        raise _with_way_back(state, write, problem, undo)


def lost_commit(state: TableState, as_of: str | None) -> Instant | None:
    """A write up to `as_of` (inclusive; None: now) that is pending though a savepoint keeps it, a later commit or plan
    was made on it, or a clean has removed what it was to read. None: there is none, as far as a few commits tell."""
    for write in state.timeline.pending(WRITES):
        if (
            write.state is State.REQUESTED
            or (as_of is not None and write.requested > as_of)
            or _shares_time(state, write)
        ):
            continue  # a compaction that nobody has run yet, which lies there for long, costs no read of commits
        if any(saved.requested == write.requested for saved in state.timeline.completed({Action.SAVEPOINT})):
            return write
        later = [commit for commit in state.timeline.commits if commit.requested > write.requested]
        for commit in (*later[:_LATER], *later[-1:]):
            with suppress(FileNotFoundError, CorruptFile):  # archived, or rolled back; damaged
                if _built_upon(write, {commit: read_commit(state.storage, state.timeline, commit)}, {}):
                    return write
        with suppress(FileNotFoundError, CorruptFile):
            plans: Mapping[Instant, Iterable[PlannedSlice]] = _plans_carried_out(state, write)
            if any(plan.requested > write.requested for plan in state.timeline.pending(WRITES)):
                plans = {**plans, **pending_plans(state.storage, state.timeline)}
            if _built_upon(write, {}, plans):
                return write
            if _cleaned_input(
                state, write, lambda plan: read_compaction_plan(state.storage, state.timeline, plan).operations
            ):
                return write
    return None
