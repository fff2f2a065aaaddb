"""Loads what the rules of hoodie.view.slices need: partitions, files, pending plans, replaced file groups.

Source: docs/format/table-and-timeline.md 3 and 7.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from hoodie.config.table import BOOTSTRAP, PROPERTIES_FILE, PROPERTIES_FOLDER, TableConfig, require_readable
from hoodie.errors import CorruptFile, DamagedLog, MetafileMissing, UnsupportedTable
from hoodie.formats.java.properties import parse_properties
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import METAFILE, METAFILES, BaseFile, FileGroupId, LogFile, parent_folders, parse_data_file
from hoodie.model.instant import Action, Instant
from hoodie.model.plans import CompactionPlan, ReplacePlan
from hoodie.storage.protocol import Entry, Storage, in_threads, join
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import clustering_inputs, load_timeline, read_commit, read_compaction_plan, still_pending
from hoodie.timeline.timeline import Timeline
from hoodie.view.published import all_published
from hoodie.view.slices import FileSystemView, group_files

B = TypeVar("B")

#: The instant of a bootstrap that leaves the rows where they are (METADATA_ONLY).
_KEYS_ALONE = "00000000000001"


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a table that may be partitions, with their files. "" is the base path.

    marked    those with a metafile, none of them within another: the partitions
    unmarked  those without one that hold data files: partitions that lost their metafile, or something else
    """

    marked: Mapping[str, Sequence[Entry]] = field(default_factory=dict)
    unmarked: Mapping[str, Sequence[Entry]] = field(default_factory=dict)

    def with_unmarked(self, partitions: Iterable[str]) -> dict[str, Sequence[Entry]]:
        """The files of the partitions, including those without a metafile; a folder within a partition is not one."""
        both = {**self.marked, **{partition: self.unmarked[partition] for partition in partitions}}
        return _outermost(both)


def discover_partitions(storage: Storage) -> list[str]:
    """Partition paths of a table, sorted; "" is the base path, the one partition of a table without partitions.

    Includes folders with data files that lost their metafile, or are not partitions: search them for files of a known
    instant, not for rows.
    """
    folders = list_folders(storage)
    return sorted({*folders.marked, *folders.unmarked})


def list_folders(storage: Storage, partitions: Iterable[str] | None = None) -> Folders:
    """The folders that may be partitions.

    partitions  those to list, one listing each; None: all, with one listing of the tree
    """
    if partitions is None:
        return folders_of_tree(list_table(storage)[0])
    paths = sorted(set(partitions))
    # Threads would only wait for each other where no network does.
    listings = in_threads(storage.list, paths) if storage.remote else map(storage.list, paths)
    tree = dict(zip(paths, listings, strict=True))
    marked = {folder: entries for folder, entries in tree.items() if _is_partition(entries)}
    return Folders(marked, _unmarked(tree, marked))


def list_table(storage: Storage) -> tuple[dict[str, list[Entry]], list[str]]:
    """The files outside `.hoodie`, by folder, without the partitions of other tables that lie among them, such as a
    copy of the table; and the base paths of these tables."""
    tree = storage.list_tree("", skip=(PROPERTIES_FOLDER,))
    others = []
    for folder in [folder for folder in tree if f"/{PROPERTIES_FOLDER}/" in f"{folder}/"]:
        base, _, below = f"{folder}/".partition(f"/{PROPERTIES_FOLDER}/")
        names = [f"{PROPERTIES_FOLDER}/{entry.name}" for entry in tree.pop(folder)]
        if not below and PROPERTIES_FILE in names:
            others.append(base)
    within = [
        folder
        for folder, entries in tree.items()
        if _is_partition(entries) and any(f"{folder}/".startswith(f"{other}/") for other in others)
    ]
    for folder, is_own in zip(within, in_threads(lambda folder: may_be_own(storage, folder), within), strict=True):
        if not is_own:
            del tree[folder]
    return tree, others


def may_be_own(storage: Storage, partition: str) -> bool:
    """Whether a partition lies as deep below the base path as its metafile says: one of a table around lies deeper
    below that table's."""
    try:
        depth = partition_depth(storage.read(join(partition, METAFILE)))
    except FileNotFoundError:  # removed since it was listed, or of another form
        return True
    return depth in (None, len(partition.split("/")) if partition else 0)


def partition_depth(metafile: bytes) -> int | None:
    """How deep below its table a partition lies, as its metafile says; None: the file is damaged."""
    try:
        depth = parse_properties(metafile, METAFILE).get("partitionDepth", "")
    except CorruptFile:
        return None
    return int(depth) if depth.isdecimal() else None


def folders_of_tree(tree: Mapping[str, Sequence[Entry]]) -> Folders:
    """The folders that may be partitions, of a listing of the whole table outside `.hoodie`."""
    marked = _outermost({folder: entries for folder, entries in tree.items() if _is_partition(entries)})
    return Folders(marked, _unmarked(tree, marked))


def _unmarked(tree: Mapping[str, Sequence[Entry]], marked: Mapping[str, Sequence[Entry]]) -> dict[str, Sequence[Entry]]:
    return {
        folder: entries
        for folder, entries in tree.items()
        if folder not in marked
        and not any(above in marked for above in ("", *parent_folders(folder)))
        and any(not entry.is_dir and parse_data_file(folder, entry.name, 0) for entry in entries)
    }


def list_partitions(storage: Storage, partitions: Iterable[str] | None = None) -> dict[str, Sequence[Entry]]:
    """The files of folders with data files, by folder, with or without a metafile: to search for known files, such as
    those of a plan.

    partitions  as for `list_folders`
    """
    folders = list_folders(storage, partitions)
    return {**folders.marked, **folders.unmarked}


def load_view(
    storage: Storage,
    timeline: Timeline,
    config: TableConfig,
    partitions: Iterable[str] | None = None,
    folders: Folders | None = None,
) -> FileSystemView:
    """The view of a table, or of some of its partitions.

    folders  their files, where another than the storage has listed them
    Raises CorruptFile when a plan or replace commit cannot be read, or is empty and may have replaced rows, a group is
           in two pending compactions, or the timeline is lost; FileNotFoundError when an instant was removed meanwhile:
           load the timeline again
    Warns  DamagedLog of empty log files to which a commit on the timeline has written; MetafileMissing of folders with
           data files and without metafile: the commits on the timeline, which are read for it, decide whether they
           are partitions
    Whether all files exist that commits name is not checked: `hoodie.view.published` does.
    """
    folders = list_folders(storage, partitions) if folders is None else folders
    unmarked = _named_by_commits(storage, config, timeline, folders) if folders.unmarked else frozenset()
    files = data_files(folders.with_unmarked(unmarked))
    if times := {i.requested for i in timeline.pending()} & {i.requested for i in timeline.commits}:
        files = _of_commits(storage, timeline, times, files)
    if files and not timeline.instants:
        refuse_lost_timeline(storage, config, files)
    if timeline.layout != 1:
        timeline = with_history(storage, config, timeline, slice_instants(files))
    if emptied := [file for file in files if isinstance(file, LogFile) and file.size == 0]:
        _warn_of_emptied_logs(storage, timeline, emptied)
    replaces = timeline.completed({Action.REPLACE_COMMIT})
    pending = _with_content(storage, timeline, timeline.pending_replaces, still_pending)
    view = build_view(
        timeline,
        files,
        _with_content(storage, timeline, replaces, partial(_replacement, files=files)),
        _with_content(storage, timeline, timeline.pending_compactions, read_compaction_plan),
        [(i, plan) for i, plan in pending if plan is not None],
    )
    return replace(view, unmarked=unmarked) if unmarked else view


def _of_commits(
    storage: Storage, timeline: Timeline, times: Collection[str], files: Iterable[BaseFile | LogFile]
) -> list[BaseFile | LogFile]:
    """The files without the base files of pending writes that have the time of a completed commit: it names its own.
    (Log blocks are a delta commit's: `hoodie.reading.slices.log_scanner` leaves those of a pending one out.)"""
    commits = (read_commit(storage, timeline, i) for i in timeline.commits if i.requested in times)
    published = frozenset().union(*(commit.paths for commit in commits))
    return [f for f in files if isinstance(f, LogFile) or f.instant not in times or f.path in published]


def replaced_by(
    storage: Storage,
    timeline: Timeline,
    instant: Instant,
    files_of: Callable[[Collection[str]], Iterable[BaseFile | LogFile]],
) -> CommitMetadata | None:
    """What a completed replace commit says; where its file is empty, with the file groups that it replaced: those of a
    clustering's plan but the ones that it kept. None: nothing says what it replaced.

    files_of  the files of some partitions
    """
    commit = read_commit(storage, timeline, instant)
    if not commit.says_nothing:
        return commit
    time = instant.requested
    if (groups := clustering_inputs(storage, timeline, time)) is None:
        return None
    partitions = {group.partition for group in groups}
    replaced = groups.difference(file.group for file in files_of(partitions) if file.base_instant == time)
    ids = {name: tuple(group.file_id for group in replaced if group.partition == name) for name in partitions}
    return replace(commit, replaced=ids)


def older_file(timeline: Timeline, instant: Instant, files: Iterable[BaseFile | LogFile]) -> str:
    """The path of a committed file that is older than an instant, which may have replaced it; "": there is none."""
    visible = timeline.visible()
    older = (f.path for f in files if f.base_instant < instant.requested and visible.committed(f.base_instant))
    return min(older, default="")


def _replacement(
    storage: Storage, timeline: Timeline, instant: Instant, files: Iterable[BaseFile | LogFile]
) -> CommitMetadata:
    """Raises CorruptFile where nothing says what it replaced and a file is older: rows would be read beside the new"""
    commit = replaced_by(storage, timeline, instant, lambda partitions: files)
    if commit is not None:
        return commit
    if path := older_file(timeline, instant, files):
        problem = f"it is empty, so nothing says whether it replaced {path} and others, whose rows would count twice"
        advice = "Restore it from a copy of the table, or roll it back: `hoodie check` says how"
        raise CorruptFile(timeline.path(instant), problem, advice=f"{advice}.")
    return read_commit(storage, timeline, instant)


def require_rows(storage: Storage, config: TableConfig) -> None:
    """Raise UnsupportedTable, saying why, unless the rows of such a table can be read, and are in its own files. A
    bootstrapped table is listed for it."""
    require_readable(config)
    if BOOTSTRAP in config.properties:
        _require_own_rows(storage, config)


def _require_own_rows(storage: Storage, config: TableConfig) -> None:
    """Base files of the first instant hold meta columns alone; the rows are in the files of before the bootstrap."""
    files = data_files(list_table(storage)[0])
    if keys_alone := [file.path for file in files if isinstance(file, BaseFile) and file.instant == _KEYS_ALONE]:
        raise UnsupportedTable(
            f"{config.name}: {len(keys_alone)} base files, such as {keys_alone[0]}, hold the keys of rows that lie in "
            f"{config.properties[BOOTSTRAP]}. Have Hudi rewrite and remove them: CALL run_clustering(table => …), then "
            "CALL run_clean(table => …, clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)."
        )


def refuse_lost_timeline(storage: Storage, config: TableConfig, files: Iterable[BaseFile | LogFile]) -> None:
    """Raises CorruptFile where a timeline without instants has data files, unless they are of a table around."""
    for partition, path in {file.group.partition: file.path for file in files}.items():
        if may_be_own(storage, partition) and not load_timeline(storage, config).instants:
            problem = f"the timeline has no instant, and there are data files, such as {path}"
            advice = "Restore the instants from a copy of the table; a write would hide those rows"
            raise CorruptFile(config.timeline_folder, problem, advice=advice)


def _named_by_commits(storage: Storage, config: TableConfig, timeline: Timeline, folders: Folders) -> frozenset[str]:
    """Which of the folders without metafile are partitions: those that commits on the timeline name."""
    commits = all_published(storage, timeline, tolerant=False)
    committed = frozenset(partition for commit in commits for partition in commit.partitions)
    for folder in sorted(committed & folders.unmarked.keys()):
        warnings.warn(MetafileMissing(folder, True), stacklevel=4)
    others = sorted(folders.unmarked.keys() - committed)
    instants = {folder: slice_instants(data_files({folder: folders.unmarked[folder]})) for folder in others}
    visible = with_history(storage, config, timeline, frozenset().union(*instants.values()), rows=False).visible()
    for folder, times in instants.items():
        if any(map(visible.committed, times)):
            warnings.warn(MetafileMissing(folder, False), stacklevel=4)
    return committed & folders.unmarked.keys()


def build_view(
    timeline: Timeline,
    files: Iterable[BaseFile | LogFile],
    replaces: Iterable[tuple[Instant, CommitMetadata]] = (),
    compactions: Iterable[tuple[Instant, CompactionPlan]] = (),
    clusterings: Iterable[tuple[Instant, ReplacePlan]] = (),
) -> FileSystemView:
    """The view of the given files and instants.

    replaces     completed replace commits
    compactions  pending ones
    clusterings  pending replace commits; those without a clustering plan are ignored
    """
    replaced: dict[FileGroupId, str] = {}
    for instant, metadata in sorted(replaces, key=lambda pair: pair[0]):
        for partition, file_ids in metadata.replaced.items():
            replaced |= {FileGroupId(partition, file_id): instant.requested for file_id in file_ids}
    compacting: dict[FileGroupId, str] = {}
    for instant, plan in compactions:
        for operation in plan.operations:
            if compacting.setdefault(operation.group, instant.requested) != instant.requested:
                raise CorruptFile(
                    timeline.path(instant),
                    f"file group {operation.group.file_id} is also in the compaction {compacting[operation.group]}",
                    advice="Unschedule one of them with Hudi's command line.",
                )
    clustering: dict[FileGroupId, str] = {}
    for instant, replace_plan in clusterings:
        if replace_plan.operation == "CLUSTER":
            clustering |= {slice_.group: instant.requested for slice_ in replace_plan.slices}
    return FileSystemView(timeline, group_files(files), replaced, compacting, clustering)


def data_files(listed: Mapping[str, Iterable[Entry]]) -> list[BaseFile | LogFile]:
    """The base and log files among the files of partitions."""
    return [
        file
        for partition, entries in listed.items()
        for entry in entries
        if not entry.is_dir and (file := parse_data_file(partition, entry.name, entry.size)) is not None
    ]


def _outermost(folders: Mapping[str, Sequence[Entry]]) -> dict[str, Sequence[Entry]]:
    """The folders within no other: a folder within a partition is not one."""
    outermost: dict[str, Sequence[Entry]] = {}
    # Sorted by segments, a folder comes before all below it.
    for folder, entries in sorted(folders.items(), key=lambda item: item[0].split("/")):
        if not any(above in outermost for above in ("", *parent_folders(folder))):
            outermost[folder] = entries
    return outermost


def _is_partition(entries: Iterable[Entry]) -> bool:
    return any(entry.name in METAFILES and not entry.is_dir for entry in entries)


def slice_instants(files: Iterable[BaseFile | LogFile]) -> set[str]:
    """The base instants of the files' slices."""
    return {file.base_instant for file in files}


def _warn_of_emptied_logs(storage: Storage, timeline: Timeline, logs: Collection[LogFile]) -> None:
    """A writer that died may leave an empty log file, so the commits are checked for rows in it.

    Reads are refused then, as for any log that is shorter than published. They look at the newest commits and those
    that are remembered: where others are too many, the warning is all that shows it.
    """
    empty, first = {log.path for log in logs}, min(log.base_instant for log in logs)
    later = [instant for instant in timeline.completed({Action.DELTA_COMMIT}) if instant.requested >= first]
    for _, commit in _with_content(storage, timeline, later, read_commit):
        for stat in (stat for part in commit.stats.values() for stat in part):
            if stat.path in empty and stat.file_size:
                problem = f"the file is empty, but had {stat.file_size} bytes when it was written"
                warnings.warn(DamagedLog(stat.path, 0, problem), stacklevel=3)


def _with_content(
    storage: Storage, timeline: Timeline, instants: Sequence[Instant], read: Callable[[Storage, Timeline, Instant], B]
) -> list[tuple[Instant, B]]:
    if not instants:
        return []
    return list(zip(instants, in_threads(lambda instant: read(storage, timeline, instant), instants), strict=True))
