"""What a write should do: which rows go to which file group, and how large new ones become.

Source: docs/format/indexing-and-write-path.md 7 (workload profile, small files, record size, insert assignment).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hoodie.config.write import FileSizing
from hoodie.display.short import Short
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId, FileSlice


@dataclass(frozen=True, slots=True, repr=False)
class PartitionProfile(Short):
    """How many rows of the batch a partition gets: new keys, and rows per file group that holds their key.

    unsure  a row may be among the updates of several file groups, or several times: there may be new keys, though no
            inserts are counted
    """

    inserts: int
    updates: Mapping[str, int] = field(default_factory=dict)  # by file id
    unsure: bool = False


class TaskKind(StrEnum):
    """What a task does with its rows."""

    CREATE = "create"  # base files of a new file group
    REWRITE = "rewrite"  # the next version of the slice's base file
    APPEND = "append"  # log files, to the slice or as a new file group


@dataclass(frozen=True, slots=True)
class TaskKinds:
    """Which work which rows are: all that sets the table types apart once a write is planned."""

    insert: TaskKind  # rows with new keys that open a file group
    fill: TaskKind  # those that a small file group takes, with its updates
    update: TaskKind  # rows whose key another file group holds


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The work on one file group."""

    number: int
    group: FileGroupId
    kind: TaskKind
    slice: FileSlice | None  # None: the file group is new
    updates: int  # expected rows whose key the group holds
    inserts: int  # expected rows whose key is new
    named: bool = False  # new, and the index assigns its rows: it has them all, in one file

    @property
    def bytes_read(self) -> int:
        rewritten = self.slice.base if self.slice and self.kind is TaskKind.REWRITE else None
        return rewritten.size if rewritten else 0


@dataclass(frozen=True, slots=True, repr=False)
class WritePlan(Short):
    """The tasks of a write, and where the inserts of each partition go.

    shares  per partition: (task number, inserts), in the order in which inserts are assigned
    spare   tasks for the inserts of partitions that may have some after all; their numbers follow those of `tasks`
    """

    tasks: tuple[WriteTask, ...]
    shares: Mapping[str, tuple[tuple[int, int], ...]]
    record_size: int  # estimated bytes of a record
    spare: tuple[WriteTask, ...] = ()

    @property
    def bytes_read(self) -> int:
        return sum(task.bytes_read for task in self.tasks)

    def insert_shares(self) -> dict[int, tuple[float, float]]:
        """The share of its partition's inserts that each task takes, as [low, high) of hashes in [0, 1)."""
        shares: dict[int, tuple[float, float]] = {}
        for dealt in self.shares.values():
            total, low = sum(count for _, count in dealt), 0.0
            for position, (task, count) in enumerate(dealt):
                high = 1.0 if position == len(dealt) - 1 else low + count / total
                shares[task] = (low, high)
                low = high
        return shares

    def update_targets(self) -> dict[FileGroupId, int]:
        """The task of each file group that rows of the batch are assigned to by their key."""
        return {task.group: task.number for task in self.tasks if task.slice is not None or task.named}


def plan_write(
    profile: Mapping[str, PartitionProfile],
    slices: Mapping[FileGroupId, FileSlice],
    small_files: Mapping[str, Sequence[tuple[FileSlice, int]]],
    sizing: FileSizing,
    record_size: int,
    new_file_id: Callable[[], str],
    kinds: TaskKinds,
    *,
    names_new: bool = False,
) -> WritePlan:
    """Tasks for every file group with updates, inserts filling small files first and new file groups after.

    slices       the file groups that the profile names
    names_new    the profile names new file groups, too: its "updates" of these are their inserts
    small_files  by partition with inserts: slices that may take some, with their present size in bytes, in the order
                 to fill
    kinds        what tasks do
    """
    tasks: list[WriteTask] = []
    shares: dict[str, tuple[tuple[int, int], ...]] = {}
    for partition in sorted(profile):
        rows = profile[partition]
        filled = dict(_fill_small(rows.inserts, small_files.get(partition, ()), sizing, record_size))
        chosen = {slice_.group.file_id: slice_ for slice_ in filled}
        small_inserts: dict[str, int] = {slice_.group.file_id: count for slice_, count in filled.items()}
        numbers: dict[str, int] = {}
        for file_id in sorted({*rows.updates, *small_inserts}):
            group = FileGroupId(partition, file_id)
            numbers[file_id] = len(tasks)
            if names_new and group not in slices:
                tasks.append(WriteTask(len(tasks), group, kinds.insert, None, 0, rows.updates[file_id], named=True))
                continue
            tasks.append(
                WriteTask(
                    len(tasks),
                    group,
                    kinds.fill if file_id in small_inserts else kinds.update,
                    chosen.get(file_id) or slices[group],
                    rows.updates.get(file_id, 0),
                    small_inserts.get(file_id, 0),
                )
            )
        dealt = [(numbers[file_id], count) for file_id, count in small_inserts.items()]
        for count in new_group_sizes(rows.inserts - sum(small_inserts.values()), sizing, record_size):
            dealt.append((len(tasks), count))
            group = FileGroupId(partition, new_file_id())
            tasks.append(WriteTask(len(tasks), group, kinds.insert, None, 0, count))
        shares[partition] = tuple(dealt)
    spare: list[WriteTask] = []
    for partition in sorted(profile):
        if profile[partition].unsure and not shares[partition] and not names_new:
            number, group = len(tasks) + len(spare), FileGroupId(partition, new_file_id())
            spare.append(WriteTask(number, group, kinds.insert, None, 0, 0))
            shares[partition] = ((number, 1),)
    return WritePlan(tuple(tasks), shares, record_size, tuple(spare))


def _fill_small(
    inserts: int, candidates: Iterable[tuple[FileSlice, int]], sizing: FileSizing, record_size: int
) -> Iterable[tuple[FileSlice, int]]:
    """How many inserts each small file takes, as far as they reach."""
    remaining = inserts
    for slice_, size in candidates:
        room = min((sizing.max_size - size) // record_size, remaining)
        if room > 0:
            remaining -= room
            yield slice_, room


def new_group_sizes(rows: int, sizing: FileSizing, record_size: int) -> list[int]:
    """Rows of each new file group; the last takes the remainder."""
    if rows <= 0:
        return []
    per_group = max(1, math.ceil(sizing.max_size / record_size) if sizing.auto_split else sizing.split_size)
    full, rest = divmod(rows, per_group)
    return [per_group] * full + ([rest] if rest else [])


def measure_record_size(commits: Iterable[CommitMetadata], sizing: FileSizing) -> int:
    """Bytes per record in base files: from the newest commit that wrote enough, else the configured estimate.

    commits  completed commits, delta commits and replace commits, newest first; read only as far as needed
    """
    enough = sizing.measure_threshold * sizing.small_limit
    for commit in commits:
        written = records = 0
        for stats in commit.stats.values():
            for stat in stats:
                if stat.log_version is None:  # bytes of a log file say nothing about those of a base file
                    written += stat.total_write_bytes
                    records += stat.num_writes
        if written > enough and records > 0:
            return math.ceil(written / records)
    return sizing.record_size
