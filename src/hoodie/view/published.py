"""Which files the completed commits of a timeline published, and which of these are missing.

What a completed commit names is remembered in this process (`hoodie.timeline.load`), apart from the rest that it
says: it takes less room, so more commits are remembered by it.

A file is missing that a reader or writer needs: one that, if it existed, would be in a slice that is used. So
superseded, replaced and hidden files (of an instant that does not count) are not missing; without a missing file an
older version would show, or nothing. Files that a cleaning on the timeline removed are not missing either. A log that
is shorter than it was published lacks rows as a missing one does, and is taken for one.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hoodie.config.table import TableConfig
from hoodie.errors import CommitNotChecked, CorruptFile
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.storage.protocol import Storage, in_threads, join
from hoodie.timeline.cleanings import cleaned_files
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import COMMITS, Grown, Memory, read_commit
from hoodie.timeline.timeline import Timeline
from hoodie.view.slices import FileSystemView, GroupFiles, group_files, latest_base_files, merged_slices

#: The most commits not yet cached that one read opens, newest first: number of files, and their bytes together. The
#: newest one is read whatever its size.
FRESH_COMMITS = 32
FRESH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PublishedNames:
    """What a completed commit names.

    files       names of the base and log files that it made or appended to, by partition path, each with the bytes that
                it has at least: of a log as many as the commit wrote
    base_files  names of the base files of the slices to whose logs it wrote, by partition path
    partitions  all partition paths that it wrote to, or replaced file groups of
    """

    instant: Instant
    files: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    base_files: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    partitions: frozenset[str] = frozenset()


def published_by(instant: Instant, commit: CommitMetadata) -> PublishedNames:
    """What a commit's metadata names. Only the name in a path counts: its folder is the partition's."""
    files = _by_partition(commit.stats, lambda stat: (stat.path or "").rpartition("/")[2])
    base_files = _by_partition(commit.stats, lambda stat: stat.base_file)
    return PublishedNames(instant, files, base_files, frozenset({*files, *commit.replaced}))


def _by_partition(
    stats: Mapping[str, Sequence[WriteStat]], name: Callable[[WriteStat], str | None]
) -> dict[str, dict[str, int]]:
    """The names that statistics give, those of logs with their bytes; partitions without any are left out."""
    names = {path: {n: s.file_size * (".log." in n) for s in part if (n := name(s))} for path, part in stats.items()}
    return {partition: some for partition, some in names.items() if some}


#: What completed commits name: of up to 64 MiB of commit files.
PUBLISHED: Memory[PublishedNames] = Memory(64 * 1024 * 1024)


def all_published(storage: Storage, timeline: Timeline, *, tolerant: bool = True) -> list[PublishedNames]:
    """What all completed commits of the timeline name, newest first; those archived since it was loaded are left out.

    tolerant  warn (CommitNotChecked) of commits that cannot be read; False: raise CorruptFile
    """
    commits = _read(storage, timeline, reversed(timeline.commits), tolerant=tolerant)
    return [commit for commit in commits if commit is not None]


def read_ahead(storage: Storage, timeline: Timeline) -> None:
    """Read the commits at once that this process has not read yet, for those who need all of them one after the other.
    Only if they are few, and worth it where each read waits for a network. What cannot be read, they find out."""
    fresh = [instant for instant in timeline.commits if _remembered(storage, timeline, instant) is None]
    if sum(timeline.stamps.get(instant, (0, 0))[0] for instant in fresh) > FRESH_BYTES:
        return

    def read(instant: Instant) -> None:
        with suppress(OSError, CorruptFile):
            read_commit(storage, timeline, instant)

    in_threads(read, fresh)


def newest_published(storage: Storage, timeline: Timeline, as_of: str | None = None) -> list[PublishedNames]:
    """What the newest commits up to `as_of` (inclusive; None: now) name, newest first: all that are cached, and as
    many others as `FRESH_COMMITS` and `FRESH_BYTES` let one read open.

    Warns CommitNotChecked of commits that cannot be read; those archived since the timeline was loaded are left out
    """
    instants, opened, size = [], 0, 0
    for instant in reversed(timeline.commits):
        if as_of is not None and instant.requested > as_of:
            continue
        if _remembered(storage, timeline, instant) is None:
            bytes_ = timeline.stamps.get(instant, (0, 0))[0]
            if opened and (opened >= FRESH_COMMITS or size + bytes_ > FRESH_BYTES):
                continue
            opened, size = opened + 1, size + bytes_
        instants.append(instant)
    return [commit for commit in _read(storage, timeline, instants) if commit is not None]


def _read(
    storage: Storage, timeline: Timeline, instants: Iterable[Instant], *, tolerant: bool = True
) -> Iterator[PublishedNames | None]:
    def read(instant: Instant) -> PublishedNames | CorruptFile | None:
        try:
            published = published_by(instant, read_commit(storage, timeline, instant))
        except FileNotFoundError:  # archived, or rolled back, since the timeline was loaded
            return None
        except CorruptFile as damage:
            return damage
        PUBLISHED.put(storage, timeline, instant, published)
        return published

    ordered = list(instants)
    remembered = [_remembered(storage, timeline, instant) for instant in ordered]
    fresh = [instant for instant, commit in zip(ordered, remembered, strict=True) if commit is None]
    outcomes = iter(in_threads(read, fresh) if fresh else ())
    for commit in remembered:
        outcome = next(outcomes) if commit is None else commit
        if isinstance(outcome, CorruptFile):
            if not tolerant:
                raise outcome
            warnings.warn(CommitNotChecked(outcome.path, outcome.problem), stacklevel=4)
            continue
        yield outcome


def _remembered(storage: Storage, timeline: Timeline, instant: Instant) -> PublishedNames | None:
    published = PUBLISHED.get(storage, timeline, instant)
    if published is None and (commit := COMMITS.get(storage, timeline, instant)) is not None:
        published = published_by(instant, commit)
        PUBLISHED.put(storage, timeline, instant, published)
    return published


#: The slices that a reader or writer uses of a view.
Taken = Callable[[FileSystemView], Iterable[FileSlice]]


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing published file, and the commit that names it.

    plan  path of the lost plan of a compaction, without which no reader sees the file; "": the file itself is missing
    The size of a log is what it has at least: one that is there is shorter.
    """

    file: BaseFile | LogFile
    instant: Instant
    plan: str = ""

    @property
    def path(self) -> str:
        """Relative to the table's base path."""
        return self.plan or self.file.path

    @property
    def group(self) -> FileGroupId:
        return self.file.group


def snapshot_files(as_of: str | None = None) -> Taken:
    """The slices that a snapshot reader uses."""
    return lambda view: merged_slices(view, as_of).values()


def read_optimized_files(as_of: str | None = None) -> Taken:
    """The slices that a reader of base files alone uses."""
    return lambda view: _base_slices(view, as_of)


def writer_files(view: FileSystemView) -> Iterator[FileSlice]:
    """The slices that a writer builds on: those that readers merge, and the base files in which keys are looked up."""
    yield from merged_slices(view).values()
    yield from _base_slices(view, None)


def _base_slices(view: FileSystemView, as_of: str | None) -> Iterator[FileSlice]:
    for group, base in latest_base_files(view, as_of).items():
        yield FileSlice(group, base.instant, base)


def find_missing(
    storage: Storage,
    config: TableConfig,
    view: FileSystemView,
    commits: Iterable[PublishedNames],
    taken: Taken,
    partitions: Collection[str] | None = None,
) -> list[Missing]:
    """The missing files of a view, by path.

    commits     whose files are checked, newest first
    partitions  those that the view is of; None: all
    Raises      CorruptFile

    Storage is read only when files look missing: cleanings on the timeline, and (layout 2) the history of instants
    that left it.
    """
    commits = list(commits)
    missing = _missing_files(
        storage, config, view, named_and_absent(_data_file_names(view), commits, partitions), taken
    )
    return missing + behind_lost_plans(view, commits, taken)


def behind_lost_plans(view: FileSystemView, commits: Iterable[PublishedNames], taken: Taken) -> list[Missing]:
    """Layout 1: the logs that commits name and that no reader sees, as the plan of the compaction is lost that opened
    their slice; by path, one for each plan."""
    timeline, visible = view.timeline, view.timeline.visible()
    if timeline.layout != 1:
        return []
    hidden = {
        log.path: log
        for files in view.groups.values()
        for log in files.logs
        if log.base_instant not in visible.pending and not visible.committed(log.base_instant)
    }
    if not hidden:
        return []
    named = {join(folder, name) for commit in commits for folder, names in commit.files.items() for name in names}
    lost: dict[str, Missing] = {}
    for path in sorted(hidden.keys() & named):
        log = hidden[path]
        plan = Instant(log.base_instant, Action.COMPACTION, State.REQUESTED)
        instants = tuple(sorted({*timeline.instants, plan}))
        planned = replace(view, timeline=replace(timeline, instants=instants), compacting={log.group: plan.requested})
        if any(log in slice_.logs for slice_ in taken(replace(planned, groups={log.group: view.groups[log.group]}))):
            lost.setdefault(plan.requested, Missing(log, plan, timeline.path(plan)))
    return [lost[time] for time in sorted(lost)]


@dataclass(frozen=True, slots=True)
class _Complete:
    """Partitions of a table in which no file was missing.

    compacting  the pending compactions then
    partitions  by how many of the oldest commits, and which files were there, with their bytes
    """

    compacting: Mapping[FileGroupId, str]
    partitions: Mapping[str, tuple[int, frozenset[tuple[str, int]]]]


#: What this process has seen to be complete; forgotten once it is this many files of a table.
COMPLETE: Grown[_Complete] = Grown()
_MOST_NAMES = 200_000


def missing_for_writers(
    storage: Storage, config: TableConfig, view: FileSystemView, partitions: Collection[str] | None = None
) -> list[Missing]:
    """As `find_missing`, by all commits of the timeline, for a writer.

    Where nothing was missing the last time, and the commits and pending compactions of that time are still there, a
    file can be missing now only if a later commit names it, or if it was there: slices only follow each other.
    """
    timeline, present = view.timeline, _data_file_names(view)
    _, remembered = COMPLETE.get(storage, timeline) or (0, _Complete(view.compacting, {}))
    before = remembered.partitions if remembered.compacting == view.compacting else {}
    paths = present.keys() if partitions is None else partitions
    seen = [before[path] for path in paths if path in before]
    checked = min(count for count, _ in seen) if partitions is not None and seen and len(seen) == len(paths) else 0
    instants = timeline.commits[checked:]
    commits = [commit for commit in _read(storage, timeline, reversed(instants)) if commit is not None]
    absent = named_and_absent(present, commits, partitions)
    if checked:
        absent += [
            Missing(file, Instant(file.base_instant, Action.COMMIT, State.COMPLETED))
            for path, (_, names) in zip(paths, seen, strict=True)
            for name, size in names - present.get(path, {}).items()
            if (file := _data_file(path, name, size)) is not None
        ]
    missing = _missing_files(storage, config, view, absent, writer_files) if absent else []
    if config.merge_on_read:
        missing += behind_lost_plans(view, commits, writer_files)
    if missing and checked:  # by which commit, all of them tell
        return find_missing(storage, config, view, all_published(storage, timeline), writer_files, partitions)
    if not missing and len(commits) == len(instants):
        now = {path: (len(timeline.commits), frozenset(present.get(path, {}).items())) for path in paths}
        every = {**before, **now}
        if sum(len(names) for _, names in every.values()) > _MOST_NAMES:
            every = now
        COMPLETE.put(storage, timeline, _Complete(view.compacting, every))
    return missing


def _missing_files(
    storage: Storage, config: TableConfig, view: FileSystemView, absent: Collection[Missing], taken: Taken
) -> list[Missing]:
    """The absent files that are missing. Raises CorruptFile"""
    if not absent:
        return []
    times = {entry.file.base_instant for entry in absent}
    view = replace(view, timeline=with_history(storage, config, view.timeline, times))
    missing = missing_files(view, absent, taken)
    if not missing:
        return []
    cleans = [instant for instant in view.timeline.instants if instant.action is Action.CLEAN]
    cleaned = cleaned_files(storage, view.timeline, cleans)
    return [entry for entry in missing if entry.path not in cleaned]


def named_and_absent(
    present: Mapping[str, Mapping[str, int]], commits: Iterable[PublishedNames], partitions: Collection[str] | None
) -> list[Missing]:
    """The data files that commits name and the listing lacks, or has shorter, needed or not.

    present  names of the files that are there, and their bytes, by partition path
    """
    only = None if partitions is None else frozenset(partitions)
    absent: dict[tuple[str, str, int], Instant] = {}
    beside: dict[tuple[str, str, int], Instant] = {}
    for commit in commits:
        for by_partition, instants in ((commit.files, absent), (commit.base_files, beside)):
            for partition, names in by_partition.items():
                if only is None or partition in only:
                    sizes = present.get(partition, {})
                    lacking = ((name, size) for name, size in names.items() if sizes.get(name, -1) < size)
                    instants |= {(partition, name, size): commit.instant for name, size in lacking}
    missing = []
    for (partition, name, size), instant in {**beside, **absent}.items():
        if (file := _data_file(partition, name, size)) is not None:
            missing.append(Missing(file, instant))
    return missing


def _data_file_names(view: FileSystemView) -> dict[str, dict[str, int]]:
    """The names of the data files of a view, and their bytes, by partition path."""
    present: dict[str, dict[str, int]] = {}
    for group, files in view.groups.items():
        names = present.setdefault(group.partition, {})
        names.update((base.name, base.size) for base in files.bases)
        names.update((log.name, log.size) for log in (*files.logs, *files.changes))
    return present


def _data_file(partition: str, name: str, size: int) -> BaseFile | LogFile | None:
    """The base or log file of a name; None: it is neither, or holds change data."""
    file = parse_data_file(partition, name, size)
    return None if isinstance(file, LogFile) and file.cdc else file


def missing_files(view: FileSystemView, absent: Iterable[Missing], taken: Taken) -> list[Missing]:
    """Those of the absent files that would be used if they existed; by path."""
    by_group: dict[FileGroupId, dict[str, Missing]] = {}
    for entry in absent:
        by_group.setdefault(entry.group, {})[entry.file.name] = entry
    trial: dict[FileGroupId, GroupFiles] = {}
    for group, lost in by_group.items():
        files = view.groups.get(group, GroupFiles())
        trial[group] = group_files([*files.bases, *files.logs, *(entry.file for entry in lost.values())])[group]
    missing: dict[str, Missing] = {}
    for slice_ in taken(replace(view, groups=trial)):
        lost = by_group[slice_.group]
        for entry in lost.values():
            if isinstance(entry.file, BaseFile):
                # Another attempt's file of the same instant is not the published one.
                needed = slice_.base is not None and slice_.base.instant == entry.file.instant
            else:
                needed = any(log.name == entry.file.name for log in slice_.logs)
            if needed:
                missing[entry.path] = entry
    return [missing[path] for path in sorted(missing)]
