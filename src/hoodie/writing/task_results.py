"""What the tasks of a write did, before it is published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.index.pruning import IndexStats
from hoodie.model.commit import WriteStat
from hoodie.writing.index_updates import TaskResult

DRIVER = "driver"
EXECUTORS = "executors"


@dataclass(frozen=True, slots=True)
class TaskResults:
    """Statistics of the winning task attempts.

    partitions  partition paths of the batch, those included in which nothing came to be written
    route       the engine that did the work: DRIVER or EXECUTORS
    later       what the index is to be given once the write is published
    """

    stats: Sequence[WriteStat]
    partitions: frozenset[str]
    index: IndexStats
    route: str
    later: tuple[pa.Table, ...] = ()

    @classmethod
    def on_driver(cls, tasks: Iterable[TaskResult], partitions: frozenset[str], index: IndexStats) -> TaskResults:
        """Of tasks that threads of the driver ran."""
        done = list(tasks)
        later = tuple(task.later for task in done if task.later is not None)
        return cls([stat for task in done for stat in task.stats], partitions, index, DRIVER, later)

    @classmethod
    def nothing(cls, partitions: frozenset[str]) -> TaskResults:
        """Of a write without rows."""
        return cls((), partitions, IndexStats(), DRIVER)
