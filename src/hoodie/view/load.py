"""Gathering what the rules of hoodie.view.slices need: partitions, files, pending plans, replaced file groups.

Source: docs/format/table-and-timeline.md 3 and 7.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, DamagedLog
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, FileGroupId, LogFile, parse_data_file
from hoodie.model.instant import Action, Instant
from hoodie.model.plans import CompactionPlan, ReplacePlan
from hoodie.storage.protocol import Entry, Storage, check_path
from hoodie.timeline.load import read_commit, read_compaction_plan, read_replace_plan, with_history
from hoodie.timeline.timeline import Timeline
from hoodie.view.slices import FileSystemView, group_files

#: The file that makes a folder a partition: text, or in the base files' format.
METAFILES = frozenset({".hoodie_partition_metadata" + suffix for suffix in ("", ".parquet", ".orc")})

#: Calls to storage under way at once; they wait, they do not compute.
_THREADS = 16

A = TypeVar("A")
B = TypeVar("B")


def discover_partitions(storage: Storage) -> list[str]:
    """Partition paths of a table, sorted; "" is the base path, the one partition of a table without partitions."""
    return sorted(_all_partitions(storage))


def list_partitions(storage: Storage, partitions: Iterable[str] | None = None) -> dict[str, list[Entry]]:
    """The files of partitions, by partition path. A folder without metafile is no partition: nothing in it counts.

    partitions  those to look at, one listing each; None: all there are, with one listing of the tree
    """
    if partitions is None:
        return _all_partitions(storage)
    wanted = sorted({check_path(partition) for partition in partitions})
    listed = zip(wanted, _threaded(storage.list, wanted), strict=True)
    return {partition: entries for partition, entries in listed if _is_partition(entries)}


def load_view(
    storage: Storage, timeline: Timeline, config: TableConfig, partitions: Iterable[str] | None = None
) -> FileSystemView:
    """The view of a table, or of some of its partitions.

    Raises CorruptFile when a plan or replace commit cannot be read, or a group is in two pending compactions;
           FileNotFoundError when an instant went away meanwhile: load the timeline again
    Warns  DamagedLog of log files without a byte that a commit on the timeline has filled
    """
    listed = list_partitions(storage, partitions)
    files = data_files(listed)
    timeline = with_history(storage, config, timeline, _instants(files))
    _tell_of_emptied_logs(storage, timeline, files)
    return build_view(
        timeline,
        files,
        _with_content(storage, timeline, timeline.completed({Action.REPLACE_COMMIT}), read_commit),
        _with_content(storage, timeline, timeline.pending_compactions, read_compaction_plan),
        _with_content(storage, timeline, timeline.pending_replaces, read_replace_plan),
    )


def build_view(
    timeline: Timeline,
    files: Iterable[BaseFile | LogFile],
    replaces: Iterable[tuple[Instant, CommitMetadata]] = (),
    compactions: Iterable[tuple[Instant, CompactionPlan]] = (),
    clusterings: Iterable[tuple[Instant, ReplacePlan]] = (),
) -> FileSystemView:
    """The view that files and the content of instants give.

    replaces     completed replace commits
    compactions  pending ones
    clusterings  pending replace commits; those without a clustering plan are none
    """
    replaced: dict[FileGroupId, str] = {}
    for instant, metadata in sorted(replaces, key=lambda found: found[0]):
        for partition, file_ids in metadata.replaced.items():
            replaced |= {FileGroupId(partition, file_id): instant.requested for file_id in file_ids}
    compacting: dict[FileGroupId, str] = {}
    for instant, plan in compactions:
        for operation in plan.operations:
            if compacting.setdefault(operation.group, instant.requested) != instant.requested:
                raise CorruptFile(
                    timeline.path(instant),
                    f"file group {operation.group.file_id} is in the compaction {compacting[operation.group]}, too",
                    advice="Unschedule one of them with Hudi's command line.",
                )
    clustering: dict[FileGroupId, str] = {}
    for instant, replace_plan in clusterings:
        if replace_plan.operation != "CLUSTER" or replace_plan.clustering is None:
            continue
        for cluster in replace_plan.clustering.groups:
            clustering |= {slice_.group: instant.requested for slice_ in cluster.slices}
    return FileSystemView(timeline, group_files(files), replaced, compacting, clustering)


def data_files(listed: Mapping[str, Iterable[Entry]]) -> list[BaseFile | LogFile]:
    """The base and log files among the files of partitions."""
    return [
        file
        for partition, entries in listed.items()
        for entry in entries
        if not entry.is_dir and (file := parse_data_file(partition, entry.name, entry.size)) is not None
    ]


def _all_partitions(storage: Storage) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    # Sorted by segments, a folder comes before all below it; what lies in a partition is none.
    tree = sorted(storage.list_tree("", skip=(".hoodie",)).items(), key=lambda item: item[0].split("/"))
    for folder, entries in tree:
        if _is_partition(entries) and not any(above in found for above in _above(folder)):
            found[folder] = entries
    return found


def _above(folder: str) -> Iterable[str]:
    """The folders that a folder lies in, the base path included."""
    if folder:
        yield ""
    for at, char in enumerate(folder):
        if char == "/":
            yield folder[:at]


def _is_partition(entries: Iterable[Entry]) -> bool:
    return any(entry.name in METAFILES and not entry.is_dir for entry in entries)


def _instants(files: Iterable[BaseFile | LogFile]) -> set[str]:
    return {file.instant if isinstance(file, BaseFile) else file.base_instant for file in files}


def _tell_of_emptied_logs(storage: Storage, timeline: Timeline, files: Iterable[BaseFile | LogFile]) -> None:
    """A writer that died may leave a log file without a byte, so the commits are asked whether rows were there."""
    logs = [file for file in files if isinstance(file, LogFile) and file.size == 0]
    if not logs:
        return
    empty, first = {log.path for log in logs}, min(log.base_instant for log in logs)
    later = [instant for instant in timeline.completed({Action.DELTA_COMMIT}) if instant.requested >= first]
    for _, commit in _with_content(storage, timeline, later, read_commit):
        for stat in (stat for part in commit.stats.values() for stat in part):
            if stat.path in empty and stat.file_size:
                problem = f"the file is empty, but had {stat.file_size} bytes when it was written"
                warnings.warn(DamagedLog(stat.path, 0, problem), stacklevel=3)


def _with_content(
    storage: Storage,
    timeline: Timeline,
    instants: Sequence[Instant],
    read: Callable[[Storage, Timeline, Instant], B],
) -> list[tuple[Instant, B]]:
    return list(zip(instants, _threaded(lambda instant: read(storage, timeline, instant), instants), strict=True))


def _threaded(call: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """The call's results in the order of items; several go out at once."""
    if len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items))) as pool:
        return list(pool.map(call, items))
