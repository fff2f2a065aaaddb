"""What a write did, for the person who called it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.display.displayed import Displayed
from hoodie.display.summary import Column, Kind, Summary, summary
from hoodie.index.pruning import IndexStats
from hoodie.metadata.changes import KeyChanges
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.schema.schema import NO_DIFFERENCE, ColumnDifference
from hoodie.table.state import TableState


@dataclass(frozen=True, slots=True, repr=False)
class WriteResult(Displayed):
    """The outcome of one write. Counts are rows; `files` are the data files it published, relative to the table."""

    instant: str
    metadata: CommitMetadata
    index: IndexStats
    route: str  # "driver": driver threads did the work; "executors": Spark's
    seconds: Mapping[str, float]  # wall time by phase; they add up to that of the call
    later: tuple[pa.Table, ...] = field(default=(), repr=False)  # not published: what the index is to be given then
    # The table as the write saw it once it was published, for the services after it; None: they load it.
    after: TableState | None = field(default=None, repr=False, compare=False)
    table: str = ""  # the name of the table
    path: str = ""  # its base path, without a password
    difference: ColumnDifference = NO_DIFFERENCE  # of the batch's columns from those that the table had
    alone: bool = field(default=False, repr=False)  # this process did it all, and nobody asks who of two did
    keys: KeyChanges | None = field(default=None, repr=False)  # not published: for the record index
    unseeing: bool = field(default=False, repr=False)  # not published: its rows were made without a look at the table's

    @property
    def stats(self) -> tuple[WriteStat, ...]:
        return tuple(stat for part in self.metadata.stats.values() for stat in part)

    @property
    def inserted(self) -> int:
        return self.metadata.inserted

    @property
    def updated(self) -> int:
        return self.metadata.updated

    @property
    def deleted(self) -> int:
        return self.metadata.deleted

    @property
    def copied(self) -> int:
        """Rows that were written again as they were, beside those that changed in their base file."""
        kept = (
            stat.num_writes - stat.num_updates - stat.num_inserts for stat in self.stats if stat.log_version is None
        )
        return sum(max(0, count) for count in kept)

    @property
    def missing_columns(self) -> tuple[str, ...]:
        """Columns of the table that the batch lacked; nested ones dotted."""
        return self.difference.missing

    @property
    def new_columns(self) -> tuple[str, ...]:
        """Columns of the batch that the table lacked before; nested ones dotted."""
        return self.difference.new

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(stat.path for stat in self.stats if stat.path)

    def __str__(self) -> str:
        phases = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())
        columns = f"; {self.difference.summary}" if self.difference.summary else ""
        how = f"in {sum(self.seconds.values()):.2f} s" if self.alone else f"{self.route} ({phases})"
        return (
            f"{self.metadata.operation} at {self.instant}: {self.inserted} inserted, {self.updated} updated, "
            f"{self.deleted} deleted in {len(self.files)} files, {how}{columns}"
        )

    def _summary(self) -> Summary:
        seconds = sum(self.seconds.values())
        row = (self.inserted, self.updated, self.deleted, len(self.files), self.metadata.bytes_written, seconds)
        return summary(str(self), _COLUMNS, [row], compact=True)


_COLUMNS = (
    *(Column(name, Kind.COUNT) for name in ("inserted", "updated", "deleted", "files")),
    Column("written", Kind.BYTES),
    Column("wall time", Kind.SECONDS),
)


@dataclass(slots=True)
class Phases:
    """Wall time by phase, in the order in which phases first began. A phase within another is counted once."""

    seconds: dict[str, float] = field(default_factory=dict)
    _begun: float = field(default_factory=time.perf_counter)
    _nested: float = 0.0  # what phases within the one that runs have taken

    @contextmanager
    def time(self, phase: str) -> Iterator[None]:
        start, outer = time.perf_counter(), self._nested
        self.seconds.setdefault(phase, 0.0)
        self._nested = 0.0
        try:
            yield
        finally:
            taken = time.perf_counter() - start
            self.seconds[phase] += taken - self._nested
            self._nested = outer + taken

    def whole(self) -> dict[str, float]:
        """The phases until now, and "other" for what none of them counts: they add up to the wall time."""
        rest = time.perf_counter() - self._begun - sum(self.seconds.values())
        return {**self.seconds, "other": max(0.0, rest)}
