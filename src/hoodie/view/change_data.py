"""What change data is read from: for each commit and file group, the files that tell what became of its rows.

Pure rules; `hoodie.reading.changes.data_plan` reads what they need. Source: docs/format/cdc.md 4.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import Instant
from hoodie.view.slices import FileSystemView, GroupFiles, slice_before

#: Commits of these leave all rows as they are.
_KEEPS_ROWS = frozenset(
    {Operation.CLUSTER, Operation.COMPACT, Operation.LOG_COMPACT, Operation.INDEX, Operation.ALTER_SCHEMA}
)


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """What one commit did to one file group.

    before  the slice that readers saw before the commit; None: the group had no rows
    base    the base file that the commit wrote
    logs    the log files that it wrote
    cdc     the change logs that it wrote beside the base file
    opened  the pending compaction of the group: logs that are completed after it began are merged last; "": none
    With none of the three, the commit took the file group away.
    """

    instant: str
    group: FileGroupId
    before: FileSlice | None = None
    base: BaseFile | None = None
    logs: tuple[LogFile, ...] = ()
    cdc: tuple[LogFile, ...] = ()
    opened: str = ""

    @property
    def takes_away(self) -> bool:
        """Whether the commit took the file group away."""
        return self.base is None and not self.logs and not self.cdc

    @property
    def size(self) -> int:
        """Bytes of the files that may be read."""
        before = self.before
        old = 0 if before is None else before.bytes
        return old + (self.base.size if self.base else 0) + sum(log.size for log in (*self.logs, *self.cdc))


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A file that a step needs and that is missing."""

    instant: str
    name: str


def changes_rows(commit: CommitMetadata) -> bool:
    """Whether a commit's rows are changes, not rows moved."""
    return commit.operation not in _KEEPS_ROWS and not commit.compacted


def touched_partitions(commits: Iterable[tuple[Instant, CommitMetadata]]) -> set[str]:
    """Partition paths that the commits wrote to, or took file groups of."""
    return {
        partition
        for _, commit in commits
        if changes_rows(commit)
        for partition in (*(part for part, stats in commit.stats.items() if stats), *commit.replaced)
    }


@dataclass(frozen=True, slots=True)
class ImagesIn:
    """Which images change logs hold; the others are in file slices."""

    before: bool = True
    after: bool = True


def change_steps(
    view: FileSystemView, commits: Iterable[tuple[Instant, CommitMetadata]], logged: ImagesIn
) -> tuple[dict[FileGroupId, list[ChangeStep]], list[GoneFile]]:
    """The steps of a range by file group, oldest first in each, and the files that they lack.

    view     of the partitions touched
    commits  oldest first
    logged   what the table's change logs hold
    """
    steps: dict[FileGroupId, list[ChangeStep]] = {}
    missing_files: list[GoneFile] = []
    for instant, commit in commits:
        if not changes_rows(commit):
            continue
        for step, missing in _steps_of(view, instant.requested, commit, logged):
            steps.setdefault(step.group, []).append(step)
            missing_files += [GoneFile(step.instant, name) for name in missing]
    return steps, missing_files


def _steps_of(
    view: FileSystemView, instant: str, commit: CommitMetadata, logged: ImagesIn
) -> Iterator[tuple[ChangeStep, Sequence[str]]]:
    """The steps of one commit, each with the names of files that it needs and that are missing."""
    for partition, stats in commit.stats.items():
        by_file: dict[str, list[WriteStat]] = {}
        for stat in stats:
            if stat.path is not None:
                by_file.setdefault(stat.file_id, []).append(stat)
        for file_id, of_group in by_file.items():
            yield _written_step(view, instant, FileGroupId(partition, file_id), of_group, logged)
    for partition, file_ids in commit.replaced.items():
        for file_id in file_ids:
            group = FileGroupId(partition, file_id)
            before = slice_before(view, group, instant)
            yield ChangeStep(instant, group, before), () if before else (file_id,)


def _written_step(
    view: FileSystemView, instant: str, group: FileGroupId, stats: Sequence[WriteStat], logged: ImagesIn
) -> tuple[ChangeStep, Sequence[str]]:
    files = view.groups.get(group, GroupFiles())
    bases = {base.name: base for base in files.bases}
    logs, changes = {log.name: log for log in files.logs}, {log.name: log for log in files.changes}
    written = [stat.path.rpartition("/")[2] for stat in stats if stat.path is not None]
    change_names = [name.rpartition("/")[2] for stat in stats for name in stat.cdc_stats or ()]
    before = slice_before(view, group, instant)
    base = next((bases[name] for name in written if name in bases), None)
    step = ChangeStep(
        instant,
        group,
        before,
        base,
        tuple(logs[name] for name in written if name in logs),
        tuple(changes[name] for name in change_names if name in changes),
        view.compacting.get(group, ""),
    )
    needed = change_names + [stat.base_file for stat in stats if stat.base_file]
    if not (change_names and logged.after):
        needed += written
    missing = [name for name in dict.fromkeys(needed) if not (name in bases or name in logs or name in changes)]
    # The statistic of a base file names the instant of the one before it.
    old = stats[0].prev_commit
    if not (change_names and logged.before) and not step.logs and old.isdigit() and not _is_at(before, old):
        missing.append(f"{group.file_id} of {old}")
    return step, missing


def _is_at(slice_: FileSlice | None, instant: str) -> bool:
    return slice_ is not None and slice_.base is not None and slice_.base.instant == instant
