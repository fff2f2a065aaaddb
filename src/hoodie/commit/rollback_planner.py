"""What a rollback has to undo: files to delete, and slices whose logs get a command block.

Source: docs/format/table-services.md 3.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hoodie.commit.markers import Marker, MarkerKind, read_markers
from hoodie.errors import CorruptFile
from hoodie.formats.log.blocks import read_block_headers
from hoodie.formats.timeline.plans import decode_compaction_plan
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, FileGroupId, LogFile, parse_data_file
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.model.plans import InstantRef, RollbackPlan, RollbackRequest
from hoodie.storage.protocol import Storage, join, split
from hoodie.timeline.load import commit_content
from hoodie.timeline.timeline import TimelineLayout, comparable_action
from hoodie.timeline.transition import instant_path, instants_at
from hoodie.view.load import discover_partitions

#: Pending instants of these actions are plans: what a failed run left is removed, the plan stays.
PLANS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})

Slice = tuple[str, str, str]  # (partition path, file id, base instant)


@dataclass(slots=True)
class _FilesOfInstant:
    """The files and log blocks of an instant."""

    deletes: dict[str, set[str]] = field(default_factory=dict)  # partition path -> names
    appended: dict[Slice, dict[str, int]] = field(default_factory=dict)  # -> log file -> bytes (1: not known)

    def add_delete(self, partition: str, name: str) -> None:
        self.deletes.setdefault(partition, set()).add(name)

    def add_log(self, partition: str, log: LogFile, size: int) -> None:
        self.appended.setdefault((partition, log.group.file_id, log.base_instant), {})[log.name] = size


def plan_rollback(
    storage: Storage, failed: Instant, *, listing: bool = False, whole: bool = False, layout: TimelineLayout
) -> RollbackPlan:
    """The files and blocks of a pending instant: what its markers name, or what a listing of the partitions finds.

    listing  True: ignore markers and workload profile; all partitions are listed, and all logs searched. Without
             readable markers the partitions of the profile are listed and searched, or all when there is no profile
    whole    of a compaction: include the logs that belong to the slices it opened. Else they stay, as its plan does
    Raises   CorruptLogBlock when a log that has to be searched cannot be read
    """
    published = _published_at(storage, failed, layout)
    listing = listing or bool(published)  # its completion has removed the markers of both
    markers = () if listing or (whole and failed.action in PLANS) else _markers(storage, failed.requested)
    if markers:
        leftovers = _by_markers(markers, failed.requested)
    elif failed.action in PLANS:
        leftovers = _by_compaction_plan(storage, failed, whole, layout)
    elif failed.state is State.REQUESTED and not listing:
        leftovers = _FilesOfInstant()  # nothing is written before it is inflight
    else:
        leftovers = _by_profile(storage, failed, listing, layout)
    for folder, names in leftovers.deletes.items():
        names -= {name for name in names if group_of(folder, name) in published}
    if published and failed.action is not Action.DELTA_COMMIT:  # the blocks are the other's
        leftovers.appended.clear()
    return _plan(failed, leftovers)


def _published_at(storage: Storage, failed: Instant, layout: TimelineLayout) -> frozenset[FileGroupId | None]:
    """The file groups of completed commits that took the time of a failed instant for another action: files of both are
    named alike, and no two instants of one time write to one file group."""
    others = COMMITS - {comparable_action(failed.action)}
    alike = instants_at(storage, failed.requested, layout)
    completed = [instant for instant in alike if instant.state is State.COMPLETED and instant.action in others]
    paths = [instant_path(instant, layout) for instant in completed]
    commits = [commit_content(storage.read(path), path, i) for path, i in zip(paths, completed, strict=True)]
    return frozenset(group_of(*split(path)) for commit in commits for path in commit.paths)


def group_of(folder: str, name: str) -> FileGroupId | None:
    """The file group of a data file, None of another."""
    file = parse_data_file(folder, name, 0)
    return None if file is None else file.group


def plan_published(
    storage: Storage,
    instant: Instant,
    metadata: CommitMetadata,
    *,
    partitions: Collection[str] = (),
    whole: bool = False,
    layout: TimelineLayout,
) -> RollbackPlan:
    """The files and blocks of a completed instant: found by listing, since its markers are removed.

    instant     with the action that it was pending under, such as COMPACTION for a commit of a Merge-on-Read table
    metadata    what it did
    partitions  to list besides those that it wrote to
    whole       of a compaction: include the logs that belong to its base files. Else they stay, as its plan does
    """
    leftovers, time = _FilesOfInstant(), instant.requested
    folders = {*metadata.stats, *partitions}
    if instant.action is Action.COMPACTION:
        folders |= _planned_partitions(storage, instant, layout)
    sizes: dict[str, int] = {}
    for partition in sorted(folders):
        entries = {entry.name: entry.size for entry in storage.list(partition) if not entry.is_dir}
        _add_own(leftovers, partition, entries, time, logs=whole or instant.action is not Action.COMPACTION)
        sizes |= {join(partition, name): size for name, size in entries.items()}
    for partition, stats in metadata.stats.items():
        for stat in stats:
            log = parse_data_file(partition, split(stat.path)[1], 0) if stat.path else None
            if isinstance(log, LogFile) and log.base_instant != time:
                leftovers.add_log(partition, log, sizes.get(log.path, 1))
    return _plan(instant, leftovers)


def made_by(storage: Storage, failed: str) -> list[str]:
    """Paths of the files that a write's markers name and that are to be deleted."""
    deletes = _by_markers(_markers(storage, failed), failed).deletes
    return [join(folder, name) for folder, names in deletes.items() for name in names]


def _plan(target: Instant, leftovers: _FilesOfInstant) -> RollbackPlan:
    requests = [
        RollbackRequest(partition=folder, delete=(name,))
        for folder, names in sorted(leftovers.deletes.items())
        for name in sorted(names)
    ]
    requests += [
        RollbackRequest(
            partition=folder, file_id=file_id, base_instant=base_instant, log_blocks=dict(sorted(sizes.items()))
        )
        for (folder, file_id, base_instant), sizes in sorted(leftovers.appended.items())
    ]
    return RollbackPlan(instant=InstantRef(target.requested, target.action), requests=tuple(requests))


# --- by markers ---


def _markers(storage: Storage, instant: str) -> tuple[Marker, ...]:
    """The markers of an instant; none when any of them is unreadable: then a listing finds more."""
    try:
        markers = read_markers(storage, instant)
        for marker in markers:
            if marker.kind is MarkerKind.APPEND:
                parse_log(*split(marker.path))
    except CorruptFile:
        return ()
    return markers


def _by_markers(markers: Iterable[Marker], failed: str) -> _FilesOfInstant:
    leftovers = _FilesOfInstant()
    for marker in markers:
        folder, name = split(marker.path)
        log = parse_log(folder, name) if marker.kind is MarkerKind.APPEND else None
        if log is None or log.base_instant == failed:  # the write made the group: no reader has ever seen it
            leftovers.add_delete(folder, name)
        else:
            leftovers.add_log(folder, log, 1)
    return leftovers


# --- by listing ---


def _by_profile(storage: Storage, failed: Instant, everywhere: bool, layout: TimelineLayout) -> _FilesOfInstant:
    """The files of the partitions and file groups in the write's workload profile.

    Markers are removed at completion. A write without them wrote nothing, unless its completed file was removed, or its
    writer keeps no markers: blocks that are not cancelled would be read once they are older than the timeline.
    """
    inflight = Instant(failed.requested, failed.action, State.INFLIGHT)
    path = instant_path(inflight, layout)
    content = b"" if everywhere or not storage.exists(path) else storage.read(path)
    try:
        profile = commit_content(content, path, inflight) if content else None
    except CorruptFile:  # cut short: it may lack what the write did
        profile = None
    blocks = not layout.version.logs_of_writes
    if profile is None:
        return _search(storage, failed.requested, dict.fromkeys(discover_partitions(storage)), blocks=blocks)
    where = {partition: _updated(profile, partition) for partition in profile.stats}
    return _search(storage, failed.requested, where, blocks=blocks)


def _updated(profile: CommitMetadata, partition: str) -> dict[str, str]:
    """File id -> base instant that the writer saw, of the file groups of a partition that a write was to change."""
    stats = profile.stats[partition]
    return {stat.file_id: stat.prev_commit for stat in stats if stat.file_id and stat.prev_commit != "null"}


def _by_compaction_plan(storage: Storage, failed: Instant, whole: bool, layout: TimelineLayout) -> _FilesOfInstant:
    path = instant_path(Instant(failed.requested, failed.action, State.REQUESTED), layout)
    leftovers = _FilesOfInstant()
    try:
        operations = decode_compaction_plan(storage.read(path), path).operations
    except CorruptFile:  # a damaged plan: its files carry its instant
        partitions = discover_partitions(storage)
        if failed.action is Action.LOG_COMPACTION:
            return _search(
                storage, failed.requested, dict.fromkeys(partitions), blocks=not layout.version.logs_of_writes
            )
        for partition in partitions:
            names = [entry.name for entry in storage.list(partition)]
            _add_own(leftovers, partition, names, failed.requested, logs=whole)
        return leftovers
    if failed.action is Action.LOG_COMPACTION:
        groups: dict[str, dict[str, str]] = {}
        for operation in operations:
            groups.setdefault(operation.group.partition, {})[operation.group.file_id] = operation.base_instant
        return _search(storage, failed.requested, groups, blocks=not layout.version.logs_of_writes)
    for partition in {operation.group.partition for operation in operations}:
        _add_own(leftovers, partition, [entry.name for entry in storage.list(partition)], failed.requested, logs=whole)
    return leftovers


def _planned_partitions(storage: Storage, instant: Instant, layout: TimelineLayout) -> set[str]:
    path = instant_path(Instant(instant.requested, instant.action, State.REQUESTED), layout)
    data = storage.read(path) if storage.exists(path) else b""
    return {operation.group.partition for operation in decode_compaction_plan(data, path).operations} if data else set()


def _search(
    storage: Storage, time: str, where: Mapping[str, Mapping[str, str] | None], *, blocks: bool = True
) -> _FilesOfInstant:
    """What an instant left in partitions.

    where  partition path -> {file id: oldest base instant} of file groups whose logs it may have appended to; None: all
    blocks its blocks may be in logs that carry another instant in their name
    """
    leftovers = _FilesOfInstant()
    for partition, groups in where.items():
        entries = {entry.name: entry.size for entry in storage.list(partition) if not entry.is_dir}
        _add_own(leftovers, partition, entries, time, logs=True)
        for name, size in entries.items() if blocks else ():
            log = parse_data_file(partition, name, size)
            if not isinstance(log, LogFile) or log.base_instant == time:
                continue
            if groups is not None and log.base_instant < groups.get(log.group.file_id, "~"):
                continue
            if time in block_instants(storage, log):
                leftovers.add_log(partition, log, size)
    return leftovers


def _add_own(leftovers: _FilesOfInstant, partition: str, names: Iterable[str], time: str, *, logs: bool) -> None:
    """Files that carry the instant in their name: no other writer's."""
    for name in names:
        file = parse_data_file(partition, name, 0)
        own = (isinstance(file, BaseFile) and file.instant == time) or (
            logs and isinstance(file, LogFile) and file.base_instant == time
        )
        if own:
            leftovers.add_delete(partition, name)


def block_instants(storage: Storage, log: LogFile) -> set[str | None]:
    """The instants of a log file's blocks, without command blocks."""
    heads = read_block_headers(
        lambda offset, length: storage.read_range(log.path, offset, offset + length), log.size, log.path
    )
    return {head.header.instant for head in heads if not head.header.target}


# --- names ---


def logs_of_slice(partition: str, names: Iterable[str], file_id: str, base_instant: str) -> list[LogFile]:
    """The log files of a slice among the files of its partition; their size is not known."""
    files = (parse_data_file(partition, name, 0) for name in names)
    return [
        file
        for file in files
        if isinstance(file, LogFile)
        and (file.group, file.base_instant) == (FileGroupId(partition, file_id), base_instant)
    ]


def parse_log(folder: str, name: str) -> LogFile:
    """The log file that a name stands for. Raises CorruptFile when it stands for none."""
    file = parse_data_file(folder, name, 0)
    if not isinstance(file, LogFile):
        raise CorruptFile(join(folder, name), "a marker says that a write appended to it, but it is not a log file")
    return file
