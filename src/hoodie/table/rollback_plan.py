"""What a rollback is to take back: files to delete, and slices whose logs get a command block.

Source: spec/table-services.md 3.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import CorruptFile
from hoodie.formats.commit_json import decode_commit
from hoodie.formats.log_blocks import read_block_headers
from hoodie.model.files import BaseFile, LogFile, parse_data_file
from hoodie.model.instant import Instant, State
from hoodie.model.plans import InstantRef, RollbackPlan, RollbackRequest
from hoodie.storage.protocol import Storage, join, split
from hoodie.table.markers import Marker, MarkerKind, read_markers
from hoodie.timeline.transition import instant_path

Names = dict[str, set[str]]  # by partition path
Slices = dict[tuple[str, str, str], set[str]]  # (partition path, file id, base instant) -> names of log files


def plan_rollback(storage: Storage, failed: Instant) -> RollbackPlan:
    """What a pending write left: what its markers name, or, if it has none, what is found where it was to write.

    Raises CorruptFile when the marker of a log file has no log file's name, or the write's inflight file is no profile
    """
    markers = read_markers(storage, failed.requested)
    if markers:
        deletes, appended = _by_markers(markers, failed.requested)
    else:
        deletes, appended = _by_profile(storage, failed)
    requests = [
        RollbackRequest(partition=folder, delete=(name,))
        for folder, names in sorted(deletes.items())
        for name in sorted(names)
    ]
    requests += [
        RollbackRequest(
            partition=folder, file_id=file_id, base_instant=base_instant, log_blocks=dict.fromkeys(sorted(names), 1)
        )
        for (folder, file_id, base_instant), names in sorted(appended.items())
    ]
    return RollbackPlan(instant=InstantRef(failed.requested, failed.action), requests=tuple(requests))


def made_by(storage: Storage, failed: str) -> list[str]:
    """Paths of the files that a write's markers name and that are to be deleted."""
    deletes, _ = _by_markers(read_markers(storage, failed), failed)
    return [join(folder, name) for folder, names in deletes.items() for name in names]


def _by_markers(markers: Iterable[Marker], failed: str) -> tuple[Names, Slices]:
    deletes: Names = {}
    appended: Slices = {}
    for marker in markers:
        folder, name = split(marker.path)
        log = parse_log(folder, name) if marker.kind is MarkerKind.APPEND else None
        if log is None or log.base_instant == failed:  # the write made the group: no reader has ever seen it
            deletes.setdefault(folder, set()).add(name)
        else:
            appended.setdefault((folder, log.group.file_id, log.base_instant), set()).add(name)
    return deletes, appended


def _by_profile(storage: Storage, failed: Instant) -> tuple[Names, Slices]:
    """What lies in the partitions and file groups of the write's workload profile.

    Markers go with the completion. A write without them wrote nothing, unless its completed file was taken away, or its
    writer keeps no markers: blocks that nobody takes back would be read once they are older than the timeline.
    """
    deletes: Names = {}
    appended: Slices = {}
    path = instant_path(Instant(failed.requested, failed.action, State.INFLIGHT))
    profile = decode_commit(storage.read(path), path) if storage.exists(path) else decode_commit(b"", path)
    for partition, stats in profile.stats.items():
        names = [entry.name for entry in storage.list(partition)]
        for name in names:
            file = parse_data_file(partition, name, 0)
            if (isinstance(file, BaseFile) and file.instant == failed.requested) or (
                isinstance(file, LogFile) and file.base_instant == failed.requested
            ):
                deletes.setdefault(partition, set()).add(name)
        for stat in stats:
            if not stat.file_id or stat.prev_commit in ("null", failed.requested):
                continue
            logs = logs_of_slice(partition, names, stat.file_id, stat.prev_commit)
            if own := {log.name for log in logs if _holds_blocks(storage, log.path, failed.requested)}:
                appended[partition, stat.file_id, stat.prev_commit] = own
    return deletes, appended


def _holds_blocks(storage: Storage, path: str, instant: str) -> bool:
    size = storage.size(path)
    heads = read_block_headers(lambda offset, length: storage.read_range(path, offset, offset + length), size, path)
    return any(head.header.instant == instant for head in heads)


def logs_of_slice(partition: str, names: Iterable[str], file_id: str, base_instant: str) -> list[LogFile]:
    """The log files of a slice among the files of its partition; their size is not known."""
    files = (parse_data_file(partition, name, 0) for name in names)
    return [
        file
        for file in files
        if isinstance(file, LogFile) and (file.group.file_id, file.base_instant) == (file_id, base_instant)
    ]


def parse_log(folder: str, name: str) -> LogFile:
    """The log file that a name stands for. Raises CorruptFile when it stands for none."""
    found = parse_data_file(folder, name, 0)
    if not isinstance(found, LogFile):
        raise CorruptFile(join(folder, name), "a marker says that a write appended to it, but it is no log file")
    return found
