"""The doctor's checks of data files: missing, superfluous, or different from their commit.

Source: docs/design/invariants.md 3, 5, 7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hoodie.commit.lost import lost_completion
from hoodie.display.summary import count_text
from hoodie.doctor.findings import Contents, Fault, Finding, Mend, Remedy, Scene, Severity
from hoodie.model.commit import WriteStat
from hoodie.model.files import METAFILE, METAFILES, BaseFile, FileGroupId, LogFile, parse_data_file
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.storage.protocol import Entry, Storage, in_threads, join, split
from hoodie.table.state import TableState
from hoodie.view.load import data_files, partition_depth
from hoodie.view.published import all_published, find_missing, snapshot_files
from hoodie.view.slices import FileSystemView

_ANOTHERS = "Changes, and reads as of an instant, are wrong: restore the commit from a copy of the table"
#: The files outside `.hoodie`, by path, as they were listed before the timeline.
Present = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """Which files the commits of the active timeline name, by path.

    stats    the statistic of each file and the commit that it is of, the newest if several name it
    changes  change logs, with their commit and size
    """

    stats: Mapping[str, tuple[Instant, WriteStat]]
    changes: Mapping[str, tuple[Instant, int]]

    @classmethod
    def by(cls, contents: Contents) -> PublishedFiles:
        stats: dict[str, tuple[Instant, WriteStat]] = {}
        changes: dict[str, tuple[Instant, int]] = {}
        for instant, metadata in sorted(contents.commits.items()):
            for stat in metadata.all_stats:
                if stat.path:
                    stats[stat.path] = (instant, stat)
                changes |= {path: (instant, size) for path, size in (stat.cdc_stats or {}).items()}
        return cls(stats, changes)


def examine_files(scene: Scene, contents: Contents, *, rows: bool = False) -> Iterator[Finding]:
    """All findings from names and sizes of files.

    rows  data files are opened, too (`hoodie.doctor.rows`): a log that has grown is judged by its blocks
    """
    published = PublishedFiles.by(contents)
    entries_by_path = {join(folder, entry.name): entry for folder, entries in scene.tree.items() for entry in entries}
    missing = list(_missing(scene, contents, published, entries_by_path))
    yield from missing
    yield from _published_twice(contents)
    yield from _of_another_commit(scene, contents)
    yield from _sizes(published, entries_by_path, rows=rows)
    yield from _orphans(scene, contents, published, entries_by_path)
    yield from _strays(scene)
    yield from _invisible(scene, contents)
    yield from _plans(scene, contents, entries_by_path)
    yield from _lost_plans(scene, contents, published)
    yield from _savepoints(scene, contents, entries_by_path, {finding.where for finding in missing})


# --- files that should be there ---


def _is_missing(scene: Scene, present: Present, path: str) -> bool:
    """Whether it is not there: what was listed before lacks the files of a commit that was published since."""
    return path not in present and not scene.storage.exists(path)


def _missing(scene: Scene, contents: Contents, published: PublishedFiles, present: Present) -> Iterator[Finding]:
    removed, saved = _removed(contents, published), _saved(contents)
    newest = _newest_bases(published)
    replaced = {
        FileGroupId(partition, file_id)
        for metadata in contents.commits.values()
        for partition, ids in metadata.replaced.items()
        for file_id in ids
    }
    # Cleans leave the timeline before the commits whose files they removed.
    cleaned_before = any(i.action is Action.CLEAN for i in scene.timeline.instants) or bool(
        scene.storage.list(scene.config.history_folder)
    )
    for path, (instant, _) in sorted(published.changes.items()):
        log = parse_data_file(*split(path), 0)
        if path in present or path in removed or not isinstance(log, LogFile):
            continue
        if cleaned_before and (log.group in replaced or log.base_instant < newest.get(log.group, "")):
            continue
        if not _is_missing(scene, present, path):
            continue
        problem = (
            f"{instant.action} {instant.requested} published it, and it is missing: its change data cannot be read"
        )
        advice = "Restore it from a copy of the table. Rows of the table are not in it"
        yield Finding(Severity.ERROR, Fault.MISSING, path, problem, advice)
    for path, (instant, stat) in sorted(published.stats.items()):
        if path in present or path in removed:
            continue
        folder, name = split(path)
        file = parse_data_file(folder, name, 0)
        if file is None:
            continue
        old = scene.timeline.layout == 1 and file.base_instant < newest.get(file.group, "")
        if ((old or file.group in replaced) and cleaned_before) or not _is_missing(scene, present, path):
            continue
        if old or file.group in replaced:
            what = "reads as of earlier instants are wrong"
        else:
            what = "its rows are lost to readers, or show in an older version"
        published_by = f"{instant.action} {instant.requested} published it ({stat.num_writes} rows)"
        advice = "Restore it from a copy of the table, or restore the table to an earlier instant"
        if path in saved:
            what += f"; the table cannot be restored to the savepoint {saved[path]}, which keeps it"
        yield Finding(Severity.ERROR, Fault.MISSING, path, f"{published_by}, and it is missing: {what}", advice)


def named_and_missing(state: TableState, view: FileSystemView, reported_paths: Collection[str]) -> Iterator[Finding]:
    """Files without which reads are refused, such as the base file that a commit names beside a log.

    reported_paths  those of which there is a finding
    """
    commits = all_published(state.storage, state.timeline)
    for lost in find_missing(state.storage, state.config, view, commits, snapshot_files()):
        if lost.path not in reported_paths:
            problem = f"{lost.instant.action} {lost.instant.requested} names it, and it is missing: reads are refused"
            advice = "Restore it from a copy of the table, or the file of the commit if that is what is damaged"
            yield Finding(Severity.ERROR, Fault.MISSING, lost.path, problem, advice)


def _removed(contents: Contents, published: PublishedFiles) -> set[str]:
    """Files that instants of the timeline removed, or will remove. A rollback may remove what is its target's only: not
    what a commit published that is on the timeline."""
    removed: set[str] = set()
    for clean in contents.cleans.values():
        for partition, part in clean.partitions.items():
            removed |= {join(partition, name) for name in (*part.planned, *part.deleted, *part.failed)}
    for plan in contents.clean_plans.values():
        removed |= {join(partition, name) for partition, names in plan.files.items() for name in names}
    for rollback in contents.rollbacks.values():
        paths = {join(partition, name) for partition, part in rollback.partitions.items() for name in part.deleted}
        removed |= paths - published.stats.keys()
    return removed


def by_commits(scene: Scene, contents: Contents, sizes: Mapping[str, int | None]) -> bool:
    """Whether commits of the active timeline wrote these files with these sizes, and those without a size not."""
    published = PublishedFiles.by(contents)
    removed, active = _removed(contents, published), {instant.requested for instant in scene.timeline.instants}

    def agrees(path: str, size: int | None) -> bool:
        if size is not None:
            return path in published.stats and path not in removed and published.stats[path][1].file_size == size
        file = parse_data_file(*split(path), 0)
        named = path in published.stats or path in published.changes
        return file is not None and file.base_instant in active and not named

    return all(agrees(*pair) for pair in sizes.items())


def _newest_bases(published: PublishedFiles) -> dict[FileGroupId, str]:
    """The newest instant at which each file group got a base file."""
    newest: dict[FileGroupId, str] = {}
    for path in published.stats:
        file = parse_data_file(*split(path), 0)
        if isinstance(file, BaseFile):
            newest[file.group] = max(newest.get(file.group, ""), file.instant)
    return newest


def _plans(scene: Scene, contents: Contents, present: Present) -> Iterator[Finding]:
    """Pending plans whose files are missing: they can never be carried out. Those that were are `pending_instants`'."""
    state = TableState(scene.storage, scene.config, scene.timeline)
    for instant, slices in contents.plans.items():
        if lost_completion(state, instant, contents.commits, contents.plans) is not None:
            continue
        if missing := [path for slice_ in slices for path in slice_.paths if _is_missing(scene, present, path)]:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            problem = f"the pending {instant.action} needs {missing[0]}{more}, which is missing"
            compaction = instant in contents.compactions
            advice = (
                "Restore it, or unschedule the plan and plan again"
                if compaction
                else "Roll it back with Hudi, which made the plan"
            )
            yield Finding(Severity.ERROR, Fault.PLAN, scene.timeline.path(instant), problem, advice)


def _lost_plans(scene: Scene, contents: Contents, published: PublishedFiles) -> Iterator[Finding]:
    """Logs of layout 1 written behind the plan of a compaction that is lost, or is not about their file group:
    no reader knows to which base file they belong."""
    if scene.timeline.layout != 1:
        return
    visible = scene.timeline.visible()
    planned = {
        (instant.requested, operation.group)
        for instant, plan in contents.compactions.items()
        for operation in plan.operations
    }
    pending = {instant.requested for instant in contents.compactions}
    writes = {instant.requested for instant in scene.timeline.pending(COMMITS)}  # there are findings about them
    lost: dict[str, list[str]] = {}
    for path in sorted(published.stats):
        file = parse_data_file(*split(path), 0)
        if not isinstance(file, LogFile) or file.base_instant in writes or (file.base_instant, file.group) in planned:
            continue
        if file.base_instant in pending or not visible.committed(file.base_instant):
            lost.setdefault(file.base_instant, []).append(path)
    for time, paths in lost.items():
        plan = Instant(time, Action.COMPACTION, State.REQUESTED)
        is_there = scene.timeline.find(time, Action.COMPACTION) is not None
        problem = "names none of their file groups" if is_there else "is missing"
        more = f" and {count_text(len(paths) - 1, 'more log')}" if len(paths) > 1 else ""
        yield Finding(
            Severity.ERROR,
            Fault.PLAN,
            scene.timeline.path(plan),
            f"{paths[0]}{more} of completed commits belong to this compaction, and its plan {problem}: readers miss "
            "their rows",
            "Restore the plan from a copy of the table, or the table to an older savepoint. Compact and clean nothing "
            "before: the rows are in the logs",
        )


def _saved(contents: Contents) -> dict[str, str]:
    """The files that savepoints keep, by path, each with the newest savepoint that does."""
    return {
        join(partition, name): instant.requested
        for instant, metadata in sorted(contents.savepoints.items())
        for partition, names in metadata.files.items()
        for name in names
    }


def _savepoints(scene: Scene, contents: Contents, present: Present, reported_paths: set[str]) -> Iterator[Finding]:
    for instant, metadata in contents.savepoints.items():
        paths = {join(partition, name) for partition, names in metadata.files.items() for name in names}
        if missing := sorted(path for path in paths - reported_paths if _is_missing(scene, present, path)):
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            problem = f"the savepoint {instant.requested} keeps it{more}, and it is missing"
            advice = "The table cannot be restored to that instant: restore the file, or delete the savepoint"
            yield Finding(Severity.ERROR, Fault.MISSING, missing[0], problem, advice)


# --- files that should not be there, or not so ---


def _published_twice(contents: Contents) -> Iterator[Finding]:
    first: dict[str, Instant] = {}
    for instant, metadata in sorted(contents.commits.items()):
        for part in metadata.stats.values():
            for path in {stat.path for stat in part if stat.path and stat.path.endswith(".parquet")}:
                if (other := first.setdefault(path, instant)) != instant:
                    problem = f"both {other.requested} and {instant.requested} say that they published it"
                    advice = "A commit was copied, or two writers used one name: compare the two commits"
                    yield Finding(Severity.ERROR, Fault.TWICE, path, problem, advice)


def _of_another_commit(scene: Scene, contents: Contents) -> Iterator[Finding]:
    """Commits that name a file of another commit of the timeline, which does not name it. (Logs of version 6 have the
    instant of a base file.)"""
    files = {
        instant: [file for path in sorted(metadata.paths) if (file := parse_data_file(*split(path), 0)) is not None]
        for instant, metadata in sorted(contents.commits.items())
    }
    times = {instant.requested for instant in files}
    slices = {(file.group, file.base_instant) for instant in files for file in files[instant] if _is_own(file, instant)}
    for instant, named in files.items():
        others = [file for file in named if not _is_own(file, instant) and file.base_instant in times]
        strange = (
            file for file in others if isinstance(file, BaseFile) or (file.group, file.base_instant) not in slices
        )
        if (file := next(strange, None)) is not None:
            problem = f"it names {file.path}, which instant {file.base_instant} wrote: the content is another commit's"
            yield Finding(Severity.ERROR, Fault.UNREADABLE, scene.timeline.path(instant), problem, _ANOTHERS)


def _is_own(file: BaseFile | LogFile, instant: Instant) -> bool:
    return file.base_instant == instant.requested


def _sizes(published: PublishedFiles, present: Present, *, rows: bool) -> Iterator[Finding]:
    sizes = {path: (instant, stat.file_size) for path, (instant, stat) in published.stats.items()}
    for path, (instant, size) in sorted({**sizes, **published.changes}.items()):
        if size and path in present and present[path].size != size:
            grown = (
                path in sizes and present[path].size > size and isinstance(parse_data_file(*split(path), 0), LogFile)
            )
            if not (grown and rows):
                yield wrong_size(path, present[path].size, instant, size)


def wrong_size(path: str, size: int, instant: Instant, published: int) -> Finding:
    problem = f"{size} bytes, and {instant.requested} published {published}"
    advice = "The file was changed or cut short since: restore it from a copy of the table"
    return Finding(Severity.ERROR, Fault.SIZE, path, problem, advice)


def _orphans(scene: Scene, contents: Contents, published: PublishedFiles, present: Present) -> Iterator[Finding]:
    """Data files that no completed instant names."""
    visible = scene.timeline.visible()
    active = {instant.requested for instant in contents.commits}
    pending = visible.pending | visible.open
    saved = _saved(contents)
    built_upon = {stat.prev_commit for _, stat in published.stats.values()}
    for file in scene.files:
        instant = file.base_instant
        path = file.path
        by_name = isinstance(file, BaseFile) or scene.timeline.layout == 2  # else by the blocks of the log
        if path in published.stats and by_name and instant not in pending and not visible.committed(instant):
            yield of_another_instant(path, published.stats[path][0].requested, instant)
        if instant in pending or path in saved or path in published.stats or path in published.changes:
            continue
        if not scene.is_settled(present[path].mtime):
            continue
        if instant in active:
            if isinstance(file, LogFile):
                if file.cdc:
                    yield _lost_changes(file, published)
                continue  # which commit wrote it is in its blocks
            yield _attempt(file, contents, present)
        elif not visible.committed(instant) and (instant in built_upon or not scene.timeline.instants):
            problem = f"of instant {instant}, which was completed, and whose files of the timeline are lost"
            advice = "Restore them from a copy of the table: readers miss its rows. Do not delete it"
            yield Finding(Severity.ERROR, Fault.ORPHAN, path, problem, advice)
        elif not visible.committed(instant):
            problem = f"of instant {instant}, which is not on the timeline: a write that was never published"
            advice = "Readers ignore it as long as the timeline begins before it: it can be deleted"
            yield Finding(Severity.WARNING, Fault.ORPHAN, path, problem, advice, Remedy(Mend.DELETE, path))


def of_another_instant(path: str, owner: str, instant: str, *, lost: bool = True) -> Finding:
    """A file whose commit has another instant than its rows. lost: theirs is not on the timeline"""
    problem = f"{owner} names it, and it is of instant {instant}"
    if not lost:
        problem = f"{problem}: the content of the commit is another one's"
        return Finding(Severity.ERROR, Fault.UNREADABLE, path, problem, _ANOTHERS)
    problem = f"{problem}, which is not on the timeline: readers miss it"
    advice = f"Were the files of {owner} renamed? Give them the instant {instant} again, or restore them from a copy"
    return Finding(Severity.ERROR, Fault.ORPHAN, path, problem, advice)


def _lost_changes(log: LogFile, published: PublishedFiles) -> Finding:
    """A change log that the commit of its instant does not name: readers of change data go by the commit."""
    problem = f"change data of the completed instant {log.base_instant}, which does not name it"
    if not any(f"{log.group.file_id}_{log.base_instant}." in path for path in published.changes):
        advice = "Readers ignore it. Compare it with the commit, and restore that from a copy if it is another one's"
        return Finding(Severity.WARNING, Fault.ORPHAN, log.path, problem, advice)
    advice = "Readers ignore it: it is of a task's lost attempt, and can be deleted"
    return Finding(Severity.WARNING, Fault.ORPHAN, log.path, problem, advice, Remedy(Mend.DELETE, log.path))


def _attempt(file: BaseFile, contents: Contents, present: Present) -> Finding:
    """A base file of a completed instant that does not name it."""
    commit = next(metadata for i, metadata in contents.commits.items() if i.requested == file.instant)
    winners = [stat.path for stat in commit.stats.get(file.group.partition, ()) if stat.file_id == file.group.file_id]
    # One of another instant tells that the commit has another content, and that these rows are in no other file.
    safe = [winner for winner in winners if winner and winner in present and f"_{file.instant}." in winner]
    problem = f"of the completed instant {file.instant}, which does not name it: readers may read its rows"
    if safe:
        advice = f"It is a lost attempt of the task that wrote {safe[0]}: it can be deleted"
        return Finding(Severity.ERROR, Fault.ORPHAN, file.path, problem, advice, Remedy(Mend.DELETE, file.path))
    advice = "Compare it with the commit: restore that from a copy, or delete the file if its rows are superfluous"
    return Finding(Severity.ERROR, Fault.ORPHAN, file.path, problem, advice)


def _strays(scene: Scene) -> Iterator[Finding]:
    """Files that are none of the table's, a finding for each folder. Names with a dot or `_` in front hide them."""
    for folder, entries in sorted(scene.tree.items()):
        if any(part.startswith((".", "_")) for part in folder.split("/")):
            continue
        names = sorted(
            entry.name
            for entry in entries
            if not entry.name.startswith((".", "_")) and parse_data_file(folder, entry.name, entry.size) is None
        )
        if names:
            more = f", and {len(names) - 1} more such files in this folder" if len(names) > 1 else ""
            problem = f"the table did not write it{more}: its readers pass it by"
            advice = "Engines that read the folder as plain Parquet may not: move it away"
            yield Finding(Severity.NOTE, Fault.STRAY, join(folder, names[0]), problem, advice)


def _invisible(scene: Scene, contents: Contents) -> Iterator[Finding]:
    """Folders with data files that have no metafile, or an empty one: Hudi's readers, and others, ignore them."""
    partitions = {partition for commit in contents.commits.values() for partition in (*commit.stats, *commit.replaced)}
    marked = {folder for folder, entries in scene.tree.items() if any(entry.name in METAFILES for entry in entries)}
    visible = scene.timeline.visible()
    for folder, entries in scene.tree.items():
        if any(entry.name in METAFILES and not entry.size for entry in entries):
            yield _unreadable(folder, "is empty")
        files = data_files({folder: entries})
        if folder in marked or not files or any(join(folder, "").startswith(f"{m}/" if m else "") for m in marked):
            continue
        if folder in partitions:
            problem = (
                f"the folder has data files, commits name the partition, and its {METAFILE} is missing: other readers "
                "ignore it"
            )
            advice = "The next write to the partition restores the metafile; --repair does so now"
            yield Finding(Severity.ERROR, Fault.INVISIBLE, folder, problem, advice, Remedy(Mend.METAFILE, folder))
        elif any(visible.committed(f.base_instant) for f in files):
            problem = (
                f"the folder has data files of completed instants and no {METAFILE}, and no commit of the active "
                "timeline names it: readers ignore it"
            )
            advice = (
                "If it is a partition, restore the metafile as in another one of the same depth; if not, move it away"
            )
            yield Finding(Severity.WARNING, Fault.INVISIBLE, folder, problem, advice)


def damaged_metafiles(scene: Scene) -> Iterator[Finding]:
    """Partitions whose metafile is cut short or damaged, or another table's. Each is read."""
    folders = [
        folder
        for folder, entries in scene.tree.items()
        if any(entry.name == METAFILE and entry.size for entry in entries)
    ]
    contents = in_threads(lambda folder: _read_if_there(scene.storage, join(folder, METAFILE)), folders)
    for folder, content in zip(folders, contents, strict=True):
        depth = len(folder.split("/")) if folder else 0
        if content is not None and (written := partition_depth(content)) != depth:
            if written is None:
                yield _unreadable(folder, "does not say how deep the partition lies")
                continue
            problem = (
                f"its {METAFILE} is of a table whose partitions lie {written} folders deep, and it lies {depth} deep"
            )
            advice = (
                "Move the files of that table, or this one's, out of the folder: their rows may be read as this one's"
            )
            yield Finding(Severity.ERROR, Fault.MISPLACED, folder, problem, advice)


def _unreadable(folder: str, problem: str) -> Finding:
    problem = f"its {METAFILE} {problem}: other readers fail on it"
    remedy = Remedy(Mend.METAFILE, folder)
    return Finding(Severity.ERROR, Fault.INVISIBLE, folder, problem, "--repair writes it anew", remedy)


def _read_if_there(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except FileNotFoundError:  # the partition was removed since it was listed
        return None
