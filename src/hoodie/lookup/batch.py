"""A batch on its way into a table, as Arrow: rows with their keys, grouped by partition and located in file groups."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.write import BloomOptions
from hoodie.formats.parquet.base_footer import BaseFooter
from hoodie.index.contract import ByFile, Index, TagKeys, Tags
from hoodie.index.pruning import ABSENT, SEVERAL, IndexStats
from hoodie.lookup.key_lookup import FileWithLogs, find_keys, find_late
from hoodie.merge.rows import ROW_POSITION, Positions, key_groups
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import PartitionProfile, WritePlan
from hoodie.storage.protocol import Storage

#: Bytes of rows that are grouped by partition at once where rows stream by.
_GROUP_BYTES = 32 * 1024 * 1024
#: Keys that an index is asked about at once.
_TAGGED_ROWS = 500_000


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
class KeyLocations:
    """Which rows of a batch are in which file group. A key found in two file groups occurs twice.

    rows    int64[h], positions in the batch
    groups  int64[h], positions in `places`
    stored  int64[h], positions of the keys' rows in the base files of their groups, less than 0 where they are not
            known; None: the index did not look into files
    """

    rows: Positions
    groups: Positions
    places: tuple[FileGroupId, ...]
    stats: IndexStats
    stored: Positions | None = None

    @property
    def ambiguous(self) -> bool:
        """Whether a row is in several file groups."""
        return not np.diff(np.sort(self.rows)).all()

    def stored_positions(self, count: int) -> Positions:
        """int64[count]: for each row of the batch the position of its key in the base file of its group, less than 0
        where that is not known, `SEVERAL` where there may be several."""
        positions = np.full(count, -1, np.int64)
        if self.stored is not None:
            positions[self.rows] = self.stored
            # Where a key is in two groups each row is another's.
            positions[np.bincount(self.rows, minlength=count) > 1] = SEVERAL
        return positions

    def by_place(self) -> Iterator[tuple[FileGroupId, Positions]]:
        """The file groups that hold a key, each with the positions of its rows."""
        order = np.argsort(self.groups, kind="stable")
        bounds = np.searchsorted(self.groups[order], np.arange(len(self.places) + 1))
        for number, place in enumerate(self.places):
            rows = self.rows[order[bounds[number] : bounds[number + 1]]]
            if len(rows):
                yield place, rows

    def inserts(self, count: int) -> np.ndarray:
        """bool[count]: which rows of the batch no file group holds."""
        missing = np.ones(count, dtype=bool)
        missing[self.rows] = False
        return missing


def locate(
    storage: Storage,
    batch: Batch,
    bases: Mapping[str, Sequence[BaseFile]],
    index: Index,
    bloom: BloomOptions,
    pool: Executor,
    footers: Mapping[str, BaseFooter] | None = None,
) -> KeyLocations:
    """Look every key of the batch up in base files: those of its partition, or with a global index all there are. Files
    are read by the pool's threads.

    bases   partition path -> newest base file of each file group
    index   one by file
    footers those that need not be read, by path of the file
    """
    assert isinstance(index.look_up, ByFile)
    start = time.perf_counter()
    pruned = index.look_up.pruned
    if index.is_global:
        every = [file for part in bases.values() for file in part]
        requests = [_LookupPart(0, one_chunk(batch.rows.column(RECORD_KEY)), every)]
    else:
        places = ((number, bases.get(partition, ())) for number, partition in enumerate(batch.partitions))
        requests = [_LookupPart(int(batch.offsets[at]), batch.keys(at), files) for at, files in places if files]
    calls = [find_keys(storage, one.files, one.keys, pruned, bloom, pool, footers) for one in requests]
    hits, stats = _HitsByFile(), IndexStats()
    for one, results in zip(requests, calls, strict=True):
        for file, call in zip(one.files, results, strict=True):
            rows, positions, cost = call.result()
            hits.add(file, rows + one.offset, positions)
            stats = stats + cost
    if any(isinstance(file, FileWithLogs) for one in requests for file in one.files):
        stats = replace(stats, hits=stats.hits + _add_late(hits, requests, hits.of().inserts(len(batch.rows)), pool))
    return hits.of(replace(stats, seconds=time.perf_counter() - start))


@dataclass(frozen=True)
class _LookupPart:
    """Keys of a batch, from the row at `offset` on, that are looked up in some files."""

    offset: int
    keys: pa.Array
    files: Sequence[BaseFile]


@dataclass(frozen=True)
class _HitsByFile:
    """Hits file by file."""

    rows: list[Positions] = field(default_factory=list)
    groups: list[Positions] = field(default_factory=list)
    places: dict[FileGroupId, int] = field(default_factory=dict)
    stored: list[Positions] = field(default_factory=list)

    def add(self, file: BaseFile, rows: Positions, stored: Positions) -> None:
        if len(rows):
            self.rows.append(rows)
            number = self.places.setdefault(file.group, len(self.places))
            self.groups.append(np.full(len(rows), number, dtype=np.int64))
            self.stored.append(stored)

    def of(self, stats: IndexStats | None = None) -> KeyLocations:
        located = _concat(self.rows), _concat(self.groups), tuple(self.places)
        return KeyLocations(*located, stats or IndexStats(), _concat(self.stored))


def _add_late(hits: _HitsByFile, requests: Sequence[_LookupPart], missing: np.ndarray, pool: Executor) -> int:
    """Add the hits in logs, of keys that no base file holds: to read logs takes longer the more there are.

    missing  bool[n], by position in the batch
    returns  how many they are
    """
    late = []
    for one in requests:
        lacking = np.flatnonzero(missing[one.offset : one.offset + len(one.keys)])
        beside = [file for file in one.files if isinstance(file, FileWithLogs)] if len(lacking) else []
        keys = one.keys.take(pa.array(lacking)) if beside else one.keys
        late += [(file, lacking + one.offset, pool.submit(find_late, file, keys)) for file in beside]
    count = 0
    for file, lacking, future in late:
        rows = lacking[future.result()]
        hits.add(file, rows, np.full(len(rows), ABSENT))
        count += len(rows)
    return count


def locate_by_key(batch: Batch, tag: TagKeys) -> KeyLocations:
    """Ask about every key of the batch. A row that has no place is left out."""
    start = time.perf_counter()
    hits: list[tuple[Positions, Positions, list[FileGroupId]]] = []
    stats = IndexStats()
    for first in range(0, len(batch.rows), _TAGGED_ROWS):
        part = batch.rows.slice(first, _TAGGED_ROWS)
        tags = tag(one_chunk(part.column(RECORD_KEY)), one_chunk(part.column(PARTITION_PATH)))
        rows, groups, places = _groups_of(tags)
        hits.append((rows + first, groups, places))
        stats += tags.cost
    every = list(dict.fromkeys(place for _, _, places in hits for place in places))
    number = {place: at for at, place in enumerate(every)}
    numbered = [
        np.array([number[place] for place in places], dtype=np.int64)[groups] for _, groups, places in hits if places
    ]
    stats = replace(stats, seconds=time.perf_counter() - start)
    return KeyLocations(_concat([rows for rows, _, _ in hits]), _concat(numbered), tuple(every), stats)


def _groups_of(tags: Tags) -> tuple[Positions, Positions, list[FileGroupId]]:
    """Rows that have a place, the number of it, and the places."""
    rows = np.flatnonzero(np.asarray(pc.is_valid(tags.file_ids)))
    groups, places = numbered_groups(*(column.take(pa.array(rows)) for column in (tags.partitions, tags.file_ids)))
    return rows, groups, places


def numbered_groups(partitions: pa.Array, file_ids: pa.Array) -> tuple[Positions, list[FileGroupId]]:
    """The file groups that two columns name, and for each row the number of its own."""
    if not len(file_ids):
        return np.empty(0, np.int64), []
    paths, ids = partitions.dictionary_encode(), file_ids.dictionary_encode()
    width = len(ids.dictionary)
    codes = paths.indices.to_numpy().astype(np.int64) * width + ids.indices.to_numpy()
    distinct, groups = np.unique(codes, return_inverse=True)
    names, texts = paths.dictionary.to_pylist(), ids.dictionary.to_pylist()
    places = [FileGroupId(names[code // width], texts[code % width]) for code in distinct.tolist()]
    return groups.reshape(-1).astype(np.int64), places


def agreed_positions(rows: pa.Table) -> pa.Table:
    """The rows, `SEVERAL` in place of the positions of keys whose rows have several: the base file has as many rows of
    the key."""
    if ROW_POSITION not in rows.column_names:
        return rows
    groups = key_groups(rows, (RECORD_KEY,))
    if groups is None:
        return rows
    positions = rows.column(ROW_POSITION).to_numpy()
    first = np.unique(groups, return_index=True)[1][groups]
    several = np.zeros(len(positions), np.bool_)
    several[groups[positions != positions[first]]] = True
    at = rows.schema.get_field_index(ROW_POSITION)
    agreed = pa.array(np.where(several[groups], SEVERAL, positions), pa.int64())
    return rows.set_column(at, rows.schema.field(at), agreed)


def _concat(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)


def only(located: KeyLocations, groups: Collection[FileGroupId]) -> KeyLocations:
    """The hits in some file groups."""
    return _hits(located, np.array([place in groups for place in located.places], np.bool_)[located.groups])


def without_rows(located: KeyLocations, rows: np.ndarray) -> KeyLocations:
    """The hits but those of some rows, bool[n] by position in the batch."""
    return _hits(located, ~rows[located.rows])


def _hits(located: KeyLocations, mask: np.ndarray) -> KeyLocations:
    stored = None if located.stored is None else located.stored[mask]
    return replace(located, rows=located.rows[mask], groups=located.groups[mask], stored=stored)


def unlocated() -> KeyLocations:
    """The location of a batch whose keys are not looked up."""
    return KeyLocations(_concat(()), _concat(()), (), IndexStats())


def workload_profile(batch: Batch, located: KeyLocations, insert: np.ndarray) -> dict[str, PartitionProfile]:
    """The workload profile: inserts and updates per file group of each partition.

    insert  bool[n], rows to be inserted; neither inserted nor located: the row has no effect (a delete without target)
    """
    updates: dict[str, dict[str, int]] = {}
    counts = np.bincount(located.groups, minlength=len(located.places))
    for place, count in zip(located.places, counts.tolist(), strict=True):
        if count:
            updates.setdefault(place.partition, {})[place.file_id] = count
    profiles = {}
    for number, partition in enumerate(batch.partitions):
        inserts = int(np.count_nonzero(insert[batch.range(number)]))
        if inserts or partition in updates:
            profiles[partition] = PartitionProfile(inserts, updates.get(partition, {}))
    return profiles


def assign(
    batch: Batch, located: KeyLocations, insert: np.ndarray, plan: WritePlan
) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of each task: (task number, int64[k] positions in the batch, ascending). Inserts keep their order."""
    rows: dict[int, list[np.ndarray]] = {}
    targets = plan.update_targets()
    for place, hits in located.by_place():
        rows.setdefault(targets[place], []).append(hits)
    for number, partition in enumerate(batch.partitions):
        span = batch.range(number)
        new = np.flatnonzero(insert[span]) + span.start
        start = 0
        for task, count in plan.shares.get(partition, ()):
            rows.setdefault(task, []).append(new[start : start + count])
            start += count
    for task, parts in sorted(rows.items()):
        yield task, np.sort(np.concatenate(parts))
