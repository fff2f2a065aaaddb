"""What a write asks of a batch, wherever its rows are, in memory, in files or with Spark; and what its tasks report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hoodie.display.progress import Advance
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import WriteStat
from hoodie.table.state import TableFiles
from hoodie.writing.batch.stage import Stage
from hoodie.writing.index_updates import TaskResult
from hoodie.writing.planning import BatchPlan
from hoodie.writing.write import Write

DRIVER = "driver"
EXECUTORS = "executors"


@dataclass(frozen=True, slots=True, eq=False)
class TaskReports:
    """What the winning attempts of tasks report.

    later  what the index is to be given once the write is published
    rows   that they took, where these are counted
    """

    stats: Sequence[WriteStat] = ()
    later: tuple[pa.Table, ...] = ()
    rows: int = 0

    @classmethod
    def of(cls, tasks: Iterable[TaskResult]) -> TaskReports:
        done = list(tasks)
        later = tuple(task.later for task in done if task.later is not None)
        return cls(tuple(stat for task in done for stat in task.stats), later)


@dataclass(frozen=True, slots=True)
class TaskResults:
    """Statistics of the winning task attempts.

    partitions  partition paths of the batch, those included in which nothing came to be written
    route       the engine that did the work: DRIVER or EXECUTORS
    later       as of `TaskReports`
    """

    stats: Sequence[WriteStat]
    partitions: frozenset[str]
    index: IndexStats
    route: str
    later: tuple[pa.Table, ...] = ()

    @classmethod
    def nothing(cls, partitions: frozenset[str]) -> TaskResults:
        """Of a write without rows."""
        return cls((), partitions, IndexStats(), DRIVER)


class LocatedBatch(Protocol):
    """A batch whose keys are looked up, with the plan for it."""

    @property
    def planned(self) -> BatchPlan: ...

    def run(self, write: Write, advance: Advance) -> TaskReports:
        """Run the tasks of the plan. Nothing is published yet."""

    def release(self) -> None:
        """Let go of what holds the rows with their places."""


class HeldBatch(Protocol):
    """A batch at hand: its source is not asked again, however many attempts a write takes."""

    @property
    def route(self) -> str:
        """The engine that does the work: DRIVER or EXECUTORS."""

    @property
    def staged(self) -> Stage | None:
        """Where it lies in files; None: it is elsewhere."""

    @property
    def partitions(self) -> frozenset[str]:
        """Partition paths of its rows, as far as they are known before these are written."""

    @property
    def spread(self) -> Callable[[Write], HeldBatch] | None:
        """Hands the rows over to executors, for a plan that is too large for the driver; None: it carries out any."""

    def locate(self, write: Write, files: TableFiles) -> LocatedBatch:
        """Look its keys up and plan. files: `Write.files_of` its partitions"""

    def stream(self, write: Write) -> TaskReports:
        """Write its rows into new file groups as they come: a bulk insert."""

    def release(self) -> None:
        """Let go of what holds it."""
