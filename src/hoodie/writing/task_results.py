"""What the tasks of a write did, before it is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.index.pruning import IndexStats
from hoodie.model.commit import WriteStat


@dataclass(frozen=True, slots=True)
class TaskResults:
    """Statistics of the winning task attempts.

    partitions  partition paths of the batch, those included in which nothing came to be written
    route       "driver" or "executors"
    later       what the index is to be given once the write is published
    """

    stats: Sequence[WriteStat]
    partitions: frozenset[str]
    index: IndexStats
    route: str
    later: tuple[pa.Table, ...] = ()

    @classmethod
    def nothing(cls, partitions: frozenset[str]) -> TaskResults:
        """Of a write without rows."""
        return cls((), partitions, IndexStats(), "driver")
