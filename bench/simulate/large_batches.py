"""One upsert on paper: the planner of real writes over a table and a batch of which there are only counts.

Profile, file slices, tasks, shares of Spark's partitions and what is sent to executors are made by the library's own
functions, in a process of its own, so that processor time and memory are a driver's. What files would be opened and how
large a shuffle block can be follows from these by the formulae of this module; `bench.simulate.formulae` compares them
with writes that run.
"""

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hoodie.config.write import FileSizing
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, base_file_name
from hoodie.plan.exchange import READ_BYTES, joins_keys, pair_partitions, runs_of_batches, shared_partitions
from hoodie.plan.write import PartitionProfile, TaskKind, TaskKinds, WritePlan, plan_write
from hoodie.spark.tasks import Packed, bin_pack
from hoodie.spark.write import staging as spark_staging
from hoodie.writing.batch.stage import Measured, profile, reads_stay_few
from hoodie.writing.batch.staging import Piece
from hoodie.writing.operations import small_bases
from hoodie.writing.tasks.run import new_file_id

Counts = npt.NDArray[np.int64]

#: Bytes of a key on its way through a shuffle.
KEY_BYTES = 100
#: Share of the batch whose keys the table may hold.
UPDATES = 0.8
#: Bytes that are staged as record batches of one partition path each.
GROUP_BYTES = 32 << 20
SHUFFLE_PARTITIONS = 200
#: A block above it is refused by Spark.
LIMIT = 1.5e9


class Keys(StrEnum):
    """How a batch is spread over the table."""

    UNIFORM = "uniform"  # over all partitions and file groups
    RECENT = "time-ordered"  # in the newest tenth of the partitions, and there in the newest tenth of the files
    SKEWED = "skewed"  # partition and file of rank r get 1/r of the first one's rows


class IndexName(StrEnum):
    """An index. Those by key differ among themselves in what they ask of their store, not in the plan."""

    BLOOM = "BLOOM"
    SIMPLE = "SIMPLE"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BUCKET = "BUCKET"
    RECORD_INDEX = "RECORD_INDEX"

    @property
    def by_file(self) -> bool:
        return self not in (IndexName.BUCKET, IndexName.RECORD_INDEX)

    @property
    def is_global(self) -> bool:
        return self.startswith("GLOBAL") or self is IndexName.RECORD_INDEX


@dataclass(frozen=True)
class Sizes:
    """Bytes of a row as Arrow and in a base file, rows of a base file, and whether inserts fill small files first: else
    new ones get as many rows."""

    row: int = 500
    record: int = 250
    file_rows: int = 400_000
    fills: bool = True
    sources: int = 1000  # partitions of the source: so few that each may be far larger than a task should be

    @property
    def sizing(self) -> FileSizing:
        return FileSizing() if self.fills else FileSizing(small_limit=0, auto_split=False, split_size=self.file_rows)


@dataclass(frozen=True)
class Case:
    """A batch of bytes, and the table that it meets."""

    bytes: float
    groups: int
    partitions: int
    keys: Keys
    index: IndexName
    sizes: Sizes = field(default_factory=Sizes)


@dataclass(frozen=True)
class Outcome:
    """What a plan says. Sizes are bytes, of rows as Arrow.

    exchange        "staged" or "shuffle"
    spark_tasks     partitions of Spark that write
    largest_task    rows of the largest write task; largest_partition: bytes of rows that one partition of Spark writes
    largest_block   of any shuffle of the write: at most so large
    look_up         "filter", "join" or "key"; pairs: of key and file, that key ranges leave
    opened          base files that look-up and tasks open, one that is opened twice counted twice
    bytes_read      of base files that tasks rewrite
    sent            bytes of tasks that go to each executor
    pieces          staged record batches that the driver is told of
    """

    exchange: str
    tasks: int
    spark_tasks: int
    largest_task: int
    largest_partition: int
    largest_block: int
    look_up: str
    pairs: float
    opened: int
    bytes_read: int
    sent: int
    pieces: int
    seconds: float
    memory: int


def spread(total: int, count: int, keys: Keys) -> Counts:
    """So many rows over some places, the newest last."""
    if keys is Keys.RECENT:
        newest = max(1, count // 10)
        weights = np.r_[np.zeros(count - newest), np.ones(newest)]
    else:
        weights = 1.0 / np.arange(count, 0, -1) if keys is Keys.SKEWED else np.ones(count)
    bounds = np.floor(np.cumsum(weights) / weights.sum() * total + 1e-9).astype(np.int64)
    bounds[-1] = total
    return np.diff(bounds, prepend=0)


def partition_path(number: int) -> str:
    return f"p={number:06}"


@dataclass(frozen=True)
class Table:
    """The part of a table that a batch touches, as the planner gets it."""

    profile: Mapping[str, PartitionProfile]
    slices: Mapping[FileGroupId, FileSlice]
    by_partition: Mapping[str, Sequence[FileSlice]]
    rows: Mapping[str, int]  # of the batch


def meet(case: Case) -> Table:
    """Rows of the batch by partition and file group; a file group has no more updates than rows."""
    rows = max(1, int(case.bytes / case.sizes.row))
    files = spread(case.groups, case.partitions, Keys.UNIFORM)
    hits: dict[str, dict[str, int]] = {}
    slices: dict[FileGroupId, FileSlice] = {}
    by_partition: dict[str, list[FileSlice]] = {}
    counts: dict[str, int] = {}
    size, first = case.sizes.file_rows * case.sizes.record, 0
    for number, count in enumerate(spread(rows, case.partitions, case.keys).tolist()):
        own, first = range(first, first + int(files[number])), first + int(files[number])
        if not count:
            continue
        path = partition_path(number)
        groups = [FileGroupId(path, f"{group:08x}-0000-4000-8000-{group:012x}-0") for group in own]
        bases = [
            BaseFile(g, "1", "0-1-0", size, base_file_name(g.file_id, "0-1-0", "20240101000000000")) for g in groups
        ]
        part = [FileSlice(group, "1", base) for group, base in zip(groups, bases, strict=True)]
        if case.index is IndexName.BUCKET:  # a bucket takes all rows of its keys, new ones too
            updates = spread(count, len(groups), case.keys)
        else:
            updates = np.minimum(spread(int(count * UPDATES), len(groups), case.keys), case.sizes.file_rows)
        slices |= {slice_.group: slice_ for slice_ in part}
        by_partition[path], counts[path] = part, count
        hits[path] = {g.file_id: int(n) for g, n in zip(groups, updates, strict=True) if n}
    measured = Measured(counts, int(case.bytes), 0, 0, 0)
    return Table(profile(measured, hits, True), slices, by_partition, counts)


def plan(case: Case, table: Table) -> WritePlan:
    kinds = TaskKinds(insert=TaskKind.CREATE, fill=TaskKind.REWRITE, update=TaskKind.REWRITE)
    sizing = case.sizes.sizing
    return plan_write(
        table.profile,
        table.slices,
        {path: small_bases(slices, sizing) for path, slices in table.by_partition.items()},
        sizing,
        case.sizes.record,
        new_file_id,
        kinds,
    )


def staged_pieces(rows: Mapping[str, int], row_bytes: int, keys: Keys) -> int:
    """Record batches that tasks stage: in each group of rows one for each partition path. Batches by time come sorted
    by it."""
    total = sum(rows.values())
    groups = max(1, math.ceil(total * row_bytes / GROUP_BYTES))
    shares = np.fromiter(rows.values(), float) / total
    if keys is Keys.RECENT:
        return groups + len(rows)
    return int(groups * float((-np.expm1(-total / groups * shares)).sum()))


def told_pieces(pieces: int, batch_bytes: float, sources: int) -> int:
    """Pieces and runs that the driver is told of: `spark.write.staging.stage`."""
    tasks = min(sources, max(1, int(batch_bytes // READ_BYTES)))
    most = min(
        spark_staging._PIECES_OF_TASK,
        max(16, spark_staging._PIECES * spark_staging._TASK_BYTES // max(1, int(batch_bytes))),
    )
    if pieces / tasks <= most:
        return pieces
    return tasks * math.ceil(batch_bytes / tasks / READ_BYTES)


def candidates(case: Case, table: Table) -> float:
    """Pairs of key and file that key ranges leave: of keys by time one for each stored key, of random ones all."""
    if case.keys is Keys.RECENT:
        return float(sum(sum(part.updates.values()) for part in table.profile.values()))
    if case.index.is_global:
        return float(sum(table.rows.values())) * case.groups
    return float(sum(count * len(table.by_partition[path]) for path, count in table.rows.items()))


@dataclass(frozen=True)
class Planned:
    """A table as it meets a batch, the plan for it, what of this goes to executors, and what it took."""

    table: Table
    plan: WritePlan
    shared: Counts  # partition of Spark of each task, where rows are shuffled
    sent: int
    seconds: float
    memory: int


@lru_cache(maxsize=1)
def _planned(case: Case) -> Planned:
    idle = _peak()
    table = meet(case)
    started = time.process_time()
    made = plan(case, table)
    shared = np.array(shared_partitions(made.tasks, case.sizes.row), np.int64)
    sent = sum(map(len, Packed.of(made.tasks).bundles))
    return Planned(table, made, shared, sent, time.process_time() - started, _peak() - idle)


def simulate(case: Case) -> Outcome:
    """Plan one upsert, and say what it comes to. One plan serves all indexes but BUCKET."""
    row_bytes = case.sizes.row
    known = _planned(case if case.index is IndexName.BUCKET else replace(case, index=IndexName.BLOOM))
    table, planned = known.table, known.plan
    total = sum(table.rows.values())
    pieces = staged_pieces(table.rows, row_bytes, case.keys)
    told = told_pieces(pieces, case.bytes, case.sizes.sources)
    # One piece for each partition stands for all: only their bytes count here.
    aggregated = [Piece(path, "a", 0, count, count * row_bytes) for path, count in table.rows.items()]
    readers = {path: len(part) + 1 for path, part in table.by_partition.items()}
    staged = (
        case.index in (IndexName.BLOOM, IndexName.SIMPLE) and told == pieces and reads_stay_few(aggregated, readers)
    )
    written = np.array([task.updates + task.inserts for task in planned.tasks], np.int64)
    if staged:
        size = {path: count * row_bytes for path, count in table.rows.items()}
        packs = bin_pack(planned.tasks, lambda task: task.bytes_read + size[task.group.partition], 128 << 20)
        places = np.zeros(len(planned.tasks), np.int64)
        for number, pack in enumerate(packs):
            places[[task.number for task in pack]] = number
    else:
        places = known.shared
    by_place = np.bincount(places, weights=written * row_bytes)
    bases = sum(map(len, table.by_partition.values())) if not case.index.is_global else case.groups
    keys_of_bases = bases * case.sizes.file_rows
    pairs = candidates(case, table) if "BLOOM" in case.index else 0.0
    joined = case.index.by_file and ("SIMPLE" in case.index or joins_keys(pairs, keys_of_bases, total))
    # What a partition of Spark reads of the batch: a block is of one reader.
    reads = max(slice_.stop - slice_.start for slice_ in runs_of_batches([GROUP_BYTES] * 8, READ_BYTES)) * GROUP_BYTES
    reader = min(reads, math.ceil(case.bytes / case.sizes.sources))
    blocks = [0]
    if not staged:
        blocks.append(int(min(reader, by_place.max())))
        if joined:
            blocks.append(min(reader // row_bytes, total) * KEY_BYTES)
        elif "BLOOM" in case.index:
            blocks.append(_pair_block(pairs, total, bases, reader // row_bytes))
    rewritten = sum(1 for task in planned.tasks if task.bytes_read)
    hit = sum(len(part.updates) for part in table.profile.values())
    opened = rewritten
    if case.index.by_file:
        # Footers for key ranges, then the files that hold keys; a join reads the key column of all.
        opened += bases + (bases if joined else hit if case.keys is Keys.RECENT else bases)
        opened -= bases if "SIMPLE" in case.index else 0
    return Outcome(
        "staged" if staged else "shuffle",
        len(planned.tasks),
        int(places.max()) + 1,
        int(written.max()),
        int(by_place.max()),
        max(blocks),
        "key" if not case.index.by_file else "join" if joined else "filter",
        pairs,
        opened,
        planned.bytes_read,
        known.sent,
        told,
        known.seconds,
        known.memory,
    )


def _pair_block(pairs: float, keys: int, files: int, reader_keys: int) -> int:
    """The largest block of the shuffle of pairs: one reader's keys with the files of one partition of Spark."""
    count = pair_partitions(pairs, SHUFFLE_PARTITIONS)
    buckets = max(1, -(-keys // 10_000_000))
    placed = np.random.default_rng(0).integers(0, count, min(files * buckets, 50_000_000))
    most = int(np.bincount(placed, minlength=1).max()) if len(placed) else 0
    return int(most * min(reader_keys, reader_keys * pairs / max(1, keys * files)) / buckets * KEY_BYTES)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def simulate_apart(cases: Sequence[Case]) -> list[Outcome]:
    """`simulate` of cases that differ in their index only, in a process of its own."""
    command = [sys.executable, "-m", "bench.simulate.large_batches", json.dumps([asdict(case) for case in cases])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [Outcome(**outcome) for outcome in json.loads(done.stdout.splitlines()[-1])]


def case_of(values: Mapping[str, Any]) -> Case:
    """A case as JSON has it."""
    typed = {"keys": Keys(values["keys"]), "index": IndexName(values["index"]), "sizes": Sizes(**values["sizes"])}
    return Case(**{**values, **typed})


if __name__ == "__main__":
    print(json.dumps([asdict(simulate(case_of(values))) for values in json.loads(sys.argv[1])]))
