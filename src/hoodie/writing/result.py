"""What a write did, for the person who called it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.index.pruning import IndexStats
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.table.state import TableState


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of one write. Counts are rows; `files` are the data files it published, relative to the table."""

    instant: str
    metadata: CommitMetadata
    index: IndexStats
    route: str  # "driver": driver threads did the work; "executors": Spark's
    seconds: Mapping[str, float]  # wall time by phase
    later: tuple[pa.Table, ...] = field(default=(), repr=False)  # not published: what the index is to be given then
    # The table as the write saw it once it was published, for the services after it; None: they load it.
    after: TableState | None = field(default=None, repr=False, compare=False)

    @property
    def stats(self) -> tuple[WriteStat, ...]:
        return tuple(stat for part in self.metadata.stats.values() for stat in part)

    @property
    def inserted(self) -> int:
        return sum(stat.num_inserts for stat in self.stats)

    @property
    def updated(self) -> int:
        return sum(stat.num_updates for stat in self.stats)

    @property
    def deleted(self) -> int:
        return sum(stat.num_deletes for stat in self.stats)

    @property
    def copied(self) -> int:
        """Rows that were written again as they were, beside those that changed in their base file."""
        kept = (
            stat.num_writes - stat.num_updates - stat.num_inserts for stat in self.stats if stat.log_version is None
        )
        return sum(max(0, count) for count in kept)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(stat.path for stat in self.stats if stat.path)

    def __str__(self) -> str:
        phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())
        return (
            f"{self.metadata.operation} at {self.instant}: {self.inserted} inserted, {self.updated} updated, "
            f"{self.deleted} deleted in {len(self.files)} files, {self.route} ({phases})"
        )


@dataclass(slots=True)
class Phases:
    """Wall time by phase, in the order in which phases first began."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start
