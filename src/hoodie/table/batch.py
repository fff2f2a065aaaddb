"""A batch on its way into a table, as Arrow: rows with their keys, grouped by partition and located in file groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.config.write import BloomOptions, IndexType
from hoodie.index.pruning import IndexStats
from hoodie.model.files import BaseFile
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import PartitionProfile, WritePlan
from hoodie.storage.protocol import Storage
from hoodie.table.lookup import find_keys

#: Bytes of rows that are grouped by partition at once where rows stream by.
_GROUP_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows ordered by partition path, each partition a contiguous range.

    rows        the user's columns, then `_hoodie_record_key` and `_hoodie_partition_path`
    partitions  partition path of each range
    offsets     int64[len(partitions) + 1], where the ranges start and end
    """

    rows: pa.Table
    partitions: tuple[str, ...]
    offsets: np.ndarray

    def range(self, number: int) -> slice:
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))

    def keys(self, number: int) -> pa.Array:
        """string[n], the record keys of one partition."""
        span = self.range(number)
        return one_chunk(self.rows.column(RECORD_KEY).slice(span.start, span.stop - span.start))


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column as a single array."""
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def order_by_partition(rows: pa.Table) -> Batch:
    """The batch with its rows grouped by partition path; rows of a partition keep their order."""
    codes, values = _codes(rows.column(PARTITION_PATH))
    if len(values) > 1 and np.any(np.diff(codes) < 0):
        order = np.argsort(codes, kind="stable")
        rows, codes = rows.take(pa.array(order)), codes[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(values)))]).astype(np.int64)
    return Batch(rows, tuple(values), offsets)


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    encoded = one_chunk(column.dictionary_encode())
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()


def group_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Batch]:
    """Record batches put together until grouping them by partition is worth it."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if len(batch) == 0:
            continue
        waiting.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield order_by_partition(pa.Table.from_batches(waiting))
            waiting, size = [], 0
    if waiting:
        yield order_by_partition(pa.Table.from_batches(waiting))


@dataclass(frozen=True, slots=True)
class Located:
    """Which rows of a batch are in which file group. A key found in two file groups occurs twice.

    rows    int64[h], positions in the batch
    groups  int64[h], positions in `files`
    """

    rows: np.ndarray
    groups: np.ndarray
    files: tuple[BaseFile, ...]
    stats: IndexStats

    def inserts(self, count: int) -> np.ndarray:
        """bool[count]: which rows of the batch no file group holds."""
        missing = np.ones(count, dtype=bool)
        missing[self.rows] = False
        return missing


def locate(
    storage: Storage,
    batch: Batch,
    bases: Mapping[str, Sequence[BaseFile]],
    index: IndexType,
    bloom: BloomOptions,
    pool: Executor,
) -> Located:
    """Look every key of the batch up in the base files of its partition. Files are read by the pool's threads.

    bases   partition path -> newest base file of each file group
    """
    found: list[BaseFile] = []
    calls = []
    for number, partition in enumerate(batch.partitions):
        files = bases.get(partition, ())
        if not files:
            continue
        calls += [(number, call) for call in find_keys(storage, files, batch.keys(number), index, bloom, pool)]
        found += files
    rows: list[np.ndarray] = []
    groups: list[np.ndarray] = []
    stats = IndexStats()
    for position, (number, call) in enumerate(calls):
        hits, cost = call.result()
        stats = stats + cost
        rows.append(hits + batch.offsets[number])
        groups.append(np.full(len(hits), position, dtype=np.int64))
    return Located(_concat(rows), _concat(groups), tuple(found), stats)


def _concat(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)


def unlocated() -> Located:
    """The location of a batch whose keys are not looked up."""
    return Located(_concat(()), _concat(()), (), IndexStats())


def profile(batch: Batch, located: Located, insert: np.ndarray) -> dict[str, PartitionProfile]:
    """The workload profile: inserts and updates per file group of each partition.

    insert  bool[n], rows to be inserted; neither inserted nor located: the row has no effect (a delete without target)
    """
    updates: dict[str, dict[str, int]] = {}
    counts = np.bincount(located.groups, minlength=len(located.files))
    for file, count in zip(located.files, counts.tolist(), strict=True):
        if count:
            updates.setdefault(file.group.partition, {})[file.group.file_id] = count
    made = {}
    for number, partition in enumerate(batch.partitions):
        inserts = int(np.count_nonzero(insert[batch.range(number)]))
        if inserts or partition in updates:
            made[partition] = PartitionProfile(inserts, updates.get(partition, {}))
    return made


def assign(batch: Batch, located: Located, insert: np.ndarray, plan: WritePlan) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of each task: (task number, int64[k] positions in the batch, ascending). Inserts are dealt in order."""
    rows: dict[int, list[np.ndarray]] = {}
    targets = plan.update_targets()
    order = np.argsort(located.groups, kind="stable")
    bounds = np.searchsorted(located.groups[order], np.arange(len(located.files) + 1))
    for position, file in enumerate(located.files):
        hit = located.rows[order[bounds[position] : bounds[position + 1]]]
        if len(hit):
            rows.setdefault(targets[file.group], []).append(hit)
    for number, partition in enumerate(batch.partitions):
        span = batch.range(number)
        new = np.flatnonzero(insert[span]) + span.start
        start = 0
        for task, count in plan.shares.get(partition, ()):
            rows.setdefault(task, []).append(new[start : start + count])
            start += count
    for task, parts in sorted(rows.items()):
        yield task, np.sort(np.concatenate(parts))
