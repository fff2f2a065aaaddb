"""What a report says of a table, as values: read once, before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hoodie.config.options import Options
from hoodie.config.services import ArchiveOptions, CleanOptions
from hoodie.config.table import TableConfig
from hoodie.config.write import FileSizing
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileSlice
from hoodie.model.instant import WRITES, Instant
from hoodie.plan.archive import is_due
from hoodie.recovery.savepoint import Savepoint, read_savepoints
from hoodie.services.archive import choose, history
from hoodie.services.clean import last_clean, make_plan
from hoodie.services.compaction.schedule import CompactionPreview, preview_compaction
from hoodie.storage.protocol import join, redacted
from hoodie.table.state import TableState
from hoodie.timeline.clock import Clock, new_time, utc_now
from hoodie.view.load import load_view
from hoodie.view.slices import FileSystemView, merged_slices

#: Rows of a commit that were written without being changed, per changed row, are counted of these operations.
_REWRITES = frozenset({"UPSERT", "INSERT", "DELETE", "UPSERT_PREPPED", "INSERT_PREPPED", "DELETE_PREPPED"})


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """A commit. Sizes are bytes, counts rows.

    written        rows in the files that it wrote, copied ones included
    amplification  rows written for each row that it changed; None where nothing was changed, or of services
    """

    instant: str
    operation: str
    inserted: int
    updated: int
    deleted: int
    files: int
    bytes: int
    written: int
    amplification: float | None


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What readers see of a partition, in bytes and files."""

    path: str
    groups: int
    base_bytes: int
    logs: int
    log_bytes: int
    small: int  # base files up to the limit of small files: they take inserts first


@dataclass(frozen=True, slots=True)
class CleaningFacts:
    """What a clean would delete now, by the options: files, their bytes; what reads as of `earliest` need stays."""

    files: int
    bytes: int
    earliest: str
    automatic: bool


@dataclass(frozen=True, slots=True)
class TableFacts:
    """All that a report says.

    as_of      an instant time in the table's zone: when the table was looked at
    commits    of the active timeline, oldest first
    sizes      bytes of the base files that readers see
    older      bytes of files that no reader of the newest state needs: older versions, and leftovers
    ratios     file groups with logs: partition, file id, log bytes, base bytes; the greatest ratio first
    archiving  instants that would be archived now
    """

    config: TableConfig
    path: str
    as_of: str
    instants: tuple[Instant, ...]
    commits: tuple[CommitFacts, ...]
    partitions: tuple[PartitionFacts, ...]
    sizes: tuple[int, ...]
    sizing: FileSizing
    older: int
    ratios: tuple[tuple[str, str, int, int], ...]
    cleaning: CleaningFacts
    compaction: CompactionPreview | None
    archiving: int
    savepoints: tuple[Savepoint, ...]

    @property
    def base_bytes(self) -> int:
        return sum(part.base_bytes for part in self.partitions)

    @property
    def log_bytes(self) -> int:
        return sum(part.log_bytes for part in self.partitions)

    @property
    def groups(self) -> int:
        """File groups."""
        return sum(part.groups for part in self.partitions)

    @property
    def pending(self) -> tuple[Instant, ...]:
        """Writes that are not completed: at work now, failed, or planned."""
        return tuple(i for i in self.instants if i.action in WRITES and i.state.name != "COMPLETED")


def table_facts(state: TableState, options: Options, clock: Clock = utc_now) -> TableFacts:
    """Look at a table: its timeline, all commits of that, and its partitions, listed once for each part of the report.

    options  `hoodie.*` options of its writes: by them cleaning, archiving and compaction would go
    Raises   CorruptFile; InvalidOption; UnsupportedTable
    """
    storage, config, timeline = state.storage, state.config, state.timeline
    view = load_view(storage, timeline, config)
    slices = list(merged_slices(view).values())
    sizing = options.read(FileSizing)
    files = _file_sizes(view)
    base, logs = sum(s.base.size for s in slices if s.base), sum(log.size for s in slices for log in s.logs)
    now = new_time(timeline, config.timezone, clock)
    return TableFacts(
        config=config,
        path=redacted(storage.root),
        as_of=now,
        instants=timeline.instants,
        commits=tuple(commit_facts(i, metadata) for i, metadata in reversed(history(state))),
        partitions=tuple(_partitions(slices, sizing)),
        sizes=tuple(s.base.size for s in slices if s.base is not None),
        sizing=sizing,
        older=sum(files.values()) - base - logs,
        ratios=tuple(_ratios(slices)),
        cleaning=_cleaning(state, options, now, files),
        compaction=preview_compaction(state, options, clock) if config.merge_on_read else None,
        archiving=len(choose(state, options, clock)) if is_due(timeline, options.read(ArchiveOptions)) else 0,
        savepoints=tuple(read_savepoints(state)),
    )


def commit_facts(instant: Instant, metadata: CommitMetadata) -> CommitFacts:
    """What a report says of a commit."""
    changed = metadata.inserted + metadata.updated + metadata.deleted
    written = sum(stat.num_writes for part in metadata.stats.values() for stat in part)
    counts = changed and metadata.operation in _REWRITES
    return CommitFacts(
        instant.requested,
        str(metadata.operation),
        metadata.inserted,
        metadata.updated,
        metadata.deleted,
        metadata.files,
        metadata.bytes_written,
        written,
        written / changed if counts else None,
    )


def _partitions(slices: Iterable[FileSlice], sizing: FileSizing) -> Iterable[PartitionFacts]:
    by_partition: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        by_partition.setdefault(slice_.group.partition, []).append(slice_)
    for path, part in sorted(by_partition.items()):
        sizes = [slice_.base.size for slice_ in part if slice_.base is not None]
        logs = [log.size for slice_ in part for log in slice_.logs]
        small = sum(size <= sizing.small_limit for size in sizes)
        yield PartitionFacts(path, len(part), sum(sizes), len(logs), sum(logs), small)


def _ratios(slices: Iterable[FileSlice]) -> list[tuple[str, str, int, int]]:
    found = [
        (s.group.partition, s.group.file_id, sum(log.size for log in s.logs), s.base.size if s.base else 0)
        for s in slices
        if s.logs
    ]
    return sorted(found, key=lambda each: each[2] / max(each[3], 1), reverse=True)


def _file_sizes(view: FileSystemView) -> dict[str, int]:
    """The bytes of all data files by path, whether readers see them or not."""
    sizes: dict[str, int] = {}
    for files in view.groups.values():
        sizes |= {base.path: base.size for base in files.bases}
        sizes |= {log.path: log.size for log in (*files.logs, *files.changes)}
    return sizes


def _cleaning(state: TableState, options: Options, now: str, sizes: Mapping[str, int]) -> CleaningFacts:
    how = options.read(CleanOptions)
    plan, _ = make_plan(state, how, last_clean(state), now, automatic=False)
    paths = [join(partition, name) for partition, names in plan.files.items() for name in names]
    earliest = plan.earliest[0] if plan.earliest else ""
    return CleaningFacts(len(paths), sum(sizes.get(path, 0) for path in paths), earliest, how.automatic)
