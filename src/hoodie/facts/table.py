"""All that a report or a metric says of a table, as one value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hoodie.config.table import TableConfig
from hoodie.config.write import FileSizing
from hoodie.facts.sizes import Sizes, file_sizes, sizes, totals_written
from hoodie.facts.summary import Column, declared_columns
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileSlice
from hoodie.model.instant import WRITES, Instant
from hoodie.plan.archive import archiving_is_due
from hoodie.recovery.savepoint import Savepoint, read_savepoints
from hoodie.services.archive import choose, history
from hoodie.services.clean import last_clean, make_plan
from hoodie.services.compaction.schedule import CompactionPreview, pending_compactions, preview_compaction
from hoodie.storage.protocol import join, redacted_path
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.timeline.timeline import Clock, new_time, utc_now
from hoodie.view.slices import merged_slices


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """A commit. Sizes are bytes, counts rows.

    written        rows in the files that it wrote, copied ones included
    amplification  rows written for each row that it changed; None where none was, as by services
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
    sizes      files that readers see, and what lies beside them
    ratios     file groups with logs: partition, file id, log bytes, base bytes; the greatest ratio first
    archiving  instants that would be archived now
    rows       in the base files that readers see, by the statistics of commits; None: some have none
    columns    the user's
    plans      compactions that are pending: their instant, and how many file groups they merge
    """

    config: TableConfig
    path: str
    as_of: str
    instants: tuple[Instant, ...]
    commits: tuple[CommitFacts, ...]
    sizes: Sizes
    sizing: FileSizing
    ratios: tuple[tuple[str, str, int, int], ...]
    cleaning: CleaningFacts
    compaction: CompactionPreview | None
    archiving: int
    savepoints: tuple[Savepoint, ...]
    rows: int | None
    columns: tuple[Column, ...]
    plans: tuple[tuple[Instant, int], ...]

    @property
    def pending(self) -> tuple[Instant, ...]:
        """Writes that are not completed: at work now, failed, or planned."""
        return tuple(i for i in self.instants if i.action in WRITES and i.state.name != "COMPLETED")


def table_facts(state: TableState, settings: Settings, clock: Clock = utc_now) -> TableFacts:
    """Look at a table: its timeline, all commits of that, and its partitions, listed once for each part of the report.

    settings `hoodie.*` options of its writes: by them cleaning, archiving and compaction would go
    Raises   CorruptFile; InvalidOption; UnsupportedTable
    """
    storage, config, timeline = state.storage, state.config, state.timeline
    view = state.view()
    slices = list(merged_slices(view).values())
    sizing = settings.sizing
    files = file_sizes(view)
    now = new_time(timeline, config.timezone, clock)
    commits = history(state)
    return TableFacts(
        config=config,
        path=redacted_path(storage.root),
        as_of=now,
        instants=timeline.instants,
        commits=tuple(commit_facts(i, metadata) for i, metadata in reversed(commits)),
        sizes=sizes(slices, files, sizing.small_limit),
        sizing=sizing,
        ratios=tuple(_ratios(slices)),
        cleaning=_cleaning(state, settings, now, files),
        compaction=preview_compaction(state, settings, clock) if config.merge_on_read else None,
        archiving=len(choose(state, settings, clock)) if archiving_is_due(timeline, settings.archiving) else 0,
        savepoints=tuple(read_savepoints(state)),
        rows=_rows(slices, (metadata for _, metadata in commits)),
        columns=declared_columns(storage, config, timeline),
        plans=tuple((instant, len(plan.operations)) for instant, plan in pending_compactions(state)),
    )


def commit_facts(instant: Instant, metadata: CommitMetadata) -> CommitFacts:
    """What a report says of a commit."""
    writes = totals_written((metadata,))
    return CommitFacts(
        instant.requested,
        str(metadata.operation),
        metadata.inserted,
        metadata.updated,
        metadata.deleted,
        metadata.files,
        metadata.bytes_written,
        writes.rows,
        writes.amplification,
    )


def _rows(slices: Iterable[FileSlice], commits: Iterable[CommitMetadata]) -> int | None:
    written = {stat.path: stat.num_writes for metadata in commits for stat in metadata.all_stats}
    counts = [written.get(s.base.path) for s in slices if s.base is not None]
    return None if None in counts else sum(count for count in counts if count is not None)


def _ratios(slices: Iterable[FileSlice]) -> list[tuple[str, str, int, int]]:
    ratios = [(s.group.partition, s.group.file_id, s.log_bytes, s.base.size if s.base else 0) for s in slices if s.logs]
    return sorted(ratios, key=lambda ratio: ratio[2] / max(ratio[3], 1), reverse=True)


def _cleaning(state: TableState, settings: Settings, now: str, sizes: Mapping[str, int]) -> CleaningFacts:
    how = settings.cleaning_of(state.config)
    plan, _ = make_plan(state, how, last_clean(state), now, automatic=False)
    paths = [join(partition, name) for partition, names in plan.files.items() for name in names]
    earliest = plan.earliest[0] if plan.earliest else ""
    return CleaningFacts(len(paths), sum(sizes.get(path, 0) for path in paths), earliest, how.automatic)
