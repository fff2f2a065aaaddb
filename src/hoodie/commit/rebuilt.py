"""What a completed commit did, when its file is empty or cut short: by the files of the table and its markers.

Base files and new logs carry the instant in their names, blocks in the logs of older slices in their headers. Which
file groups a replace commit replaced, nothing says; they are back once the commit is rolled back.
"""

from collections.abc import Collection, Iterable

from hoodie.commit.markers import MarkerKind, read_markers
from hoodie.commit.rollback_planner import block_instants
from hoodie.errors import CorruptFile
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, LogFile, parse_data_file
from hoodie.model.instant import Action, Instant
from hoodie.storage.protocol import Storage, split
from hoodie.timeline.load import clustering_inputs, read_commit
from hoodie.timeline.timeline import Timeline
from hoodie.view.load import data_files, list_partitions


def read_whole(storage: Storage, timeline: Timeline, instant: Instant) -> CommitMetadata | None:
    """What a completed commit did; None when its file is empty or cannot be read. Raises FileNotFoundError"""
    try:
        metadata = read_commit(storage, timeline, instant)
    except CorruptFile:
        return None
    return None if metadata.says_nothing else metadata


def rebuild_commit(
    storage: Storage, timeline: Timeline, instant: Instant, cleaned: Collection[str] = ()
) -> CommitMetadata:
    """What a completed commit did, by a listing of the table, the headers of all log blocks, and its markers.

    cleaned  paths of files that cleanings removed since
    returns  the files it wrote, with the slice each replaced; no rows are counted. As replaced: the file groups of a
             clustering's plan, and those whose newest slice a cleaning removed since
    """
    time = instant.requested
    files = data_files(list_partitions(storage))
    removed = [file for path in cleaned if (file := parse_data_file(*split(path), 0)) is not None]
    bases = _committed_bases([*files, *removed], timeline, time)
    appended = _appended(storage, files, time)
    stats: dict[str, list[WriteStat]] = {}
    for file in files:
        if file.base_instant == time or file.path in appended:
            previous = bases.get(file.group, "null") if isinstance(file, BaseFile) else "null"
            partition, file_id = file.group.partition, file.group.file_id
            stat = WriteStat(file_id=file_id, path=file.path, partition=partition, prev_commit=previous)
            stats.setdefault(partition, []).append(stat)
    replaced: set[FileGroupId] = set()
    if instant.action is Action.REPLACE_COMMIT:
        newest = {file.group for file in removed if bases.get(file.group) == file.base_instant}
        written = {file.group for file in files if file.base_instant == time}
        replaced = newest - written | (clustering_inputs(storage, timeline, time) or set())
    return CommitMetadata(
        operation=Operation.UNKNOWN,
        stats={partition: tuple(part) for partition, part in stats.items()},
        replaced={
            partition: tuple(sorted(group.file_id for group in replaced if group.partition == partition))
            for partition in sorted({group.partition for group in replaced})
        },
    )


def _committed_bases(files: Iterable[BaseFile | LogFile], timeline: Timeline, time: str) -> dict[FileGroupId, str]:
    """The newest committed slice of each file group before an instant."""
    visible, bases = timeline.visible(), dict[FileGroupId, str]()
    for file in files:
        base = file.base_instant
        if base < time and visible.committed(base):
            bases[file.group] = max(bases.get(file.group, ""), base)
    return bases


def _appended(storage: Storage, files: Iterable[BaseFile | LogFile], time: str) -> set[str]:
    """Paths of logs of older slices that hold blocks of the instant, or to which its markers say that it wrote."""
    try:
        marked = {marker.path for marker in read_markers(storage, time) if marker.kind is MarkerKind.APPEND}
    except CorruptFile:
        marked = set()
    logs = [file for file in files if isinstance(file, LogFile) and not file.cdc and file.base_instant != time]
    return {log.path for log in logs if log.path in marked or time in block_instants(storage, log)}
