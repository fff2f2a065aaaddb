"""A write spread over Spark's executors: rows meet the task of their file group, tasks send back their statistics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakSet

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from hoodie.config.write import BloomOptions
from hoodie.errors import HoodieError
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit
from hoodie.index.contract import ByFile, Index
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import PartitionProfile, WritePlan, WriteTask
from hoodie.spark.lookup.locate import COST, FILE_ID, Files, join_cost, locate_on_executors
from hoodie.spark.types import nullable, sound
from hoodie.spark.worker_errors import mark_worker_errors, raise_worker_errors
from hoodie.storage.protocol import Storage
from hoodie.writing.index_updates import TaskResult

TASK = "_hoodie_task"
_SHARE = "_hoodie_share"

STATS = StructType(
    [
        StructField("task", LongType()),
        StructField("rows", LongType()),
        StructField("stats", StringType()),
        StructField("later", BinaryType()),  # Arrow, for the index once the write is published
    ]
)

#: Keys up to this many bytes are sent to every executor instead of being shuffled.
BROADCAST_KEYS = 64 * 1024 * 1024

TaskRunner = Callable[[WriteTask, pa.Table, str], TaskResult]
StreamRunner = Callable[[Iterator[pa.RecordBatch], str], Sequence[WriteStat]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one pass over the batch found, by partition path."""

    rows: Mapping[str, int]
    bytes: int  # about as many as the batch takes as Arrow
    bad_keys: int  # rows whose key is null or empty
    bad_paths: int  # rows without a partition path
    bad_ordering: int  # rows with a null among their ordering values

    @property
    def total(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True, eq=False)
class TaskReports:
    """What the winning attempts of a job's tasks did.

    rows   that they took
    later  what the index is to be given once the write is published
    """

    stats: tuple[WriteStat, ...]
    rows: int
    later: tuple[pa.Table, ...]


def persist(frame: DataFrame) -> DataFrame:
    """Keep the batch, so that its source is evaluated once however many jobs the write needs."""
    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def hits_by_file(
    session: SparkSession,
    storage: Storage,
    frame: DataFrame,
    rows: Mapping[str, int],
    files: Files,
    index: Index,
    bloom: BloomOptions,
) -> DataFrame:
    """Where an index by file has the keys of a batch: `locate_spread`.

    rows  of the batch, by partition path
    """
    keys = frame.select(RECORD_KEY, PARTITION_PATH)
    small = 100 * sum(rows.values()) <= BROADCAST_KEYS  # a key and its path take about 100 bytes as a row
    return locate_on_executors(session, storage, keys, _asked(rows, files, index), files, index, bloom, small)


def count_hits(
    hits: DataFrame, rows: Mapping[str, int], files: Files, index: Index
) -> tuple[dict[str, dict[str, int]], IndexStats]:
    """Keys found per partition path and file id, and what it cost to find them. Arguments as of `hits_by_file`."""
    counts = _asked(rows, files, index)
    with raise_worker_errors():
        counted = hits.groupBy(PARTITION_PATH, FILE_ID, COST).agg(F.count(RECORD_KEY).alias("keys")).toArrow()
    updates: dict[str, dict[str, int]] = {}
    stats = IndexStats()
    found = 0
    for row in counted.to_pylist():
        if row[COST] is not None:
            stats += IndexStats(**json.loads(row[COST]))
        else:
            updates.setdefault(row[PARTITION_PATH], {})[row[FILE_ID]] = row["keys"]
            found += row["keys"]
    if isinstance(index.look_up, ByFile) and not index.look_up.pruned:
        return updates, join_cost(counts, files, found)
    pairs = sum(counts[partition] * len(part) for partition, part in files.items())
    number = sum(len(part) for part in files.values())
    return updates, stats + IndexStats(
        files=number - stats.files,
        files_pruned_by_range=number - stats.files,
        candidates=pairs - stats.candidates,
        pruned_by_range=pairs - stats.candidates,
    )


def _asked(rows: Mapping[str, int], files: Files, index: Index) -> Mapping[str, int]:
    """Keys that are asked for in the files of each partition path."""
    return dict.fromkeys(files, sum(rows.values())) if index.is_global else rows


def profile(measured: Measured, updates: Mapping[str, Mapping[str, int]], insert: bool) -> dict[str, PartitionProfile]:
    """The workload profile; insert False: rows without location have no effect (delete)."""
    made = {}
    for partition, rows in measured.rows.items():
        there = updates.get(partition, {})
        inserts = max(0, rows - sum(there.values())) if insert else 0
        if inserts or there:
            made[partition] = PartitionProfile(inserts, dict(there))
    return made


def join_hits(frame: DataFrame, hits: DataFrame | None, broadcast: bool, *, drop_new: bool) -> DataFrame:
    """Each row with the id of the file group that holds its key, null for none. A row occurs once a hit.

    drop_new  rows whose key the table does not hold have no effect
    """
    if hits is None:
        return frame.withColumn(FILE_ID, F.lit(None).cast("string"))
    found = hits.where(F.col(RECORD_KEY).isNotNull()).select(RECORD_KEY, PARTITION_PATH, FILE_ID)
    how = "inner" if drop_new else "left"
    return frame.join(F.broadcast(found) if broadcast else found, [RECORD_KEY, PARTITION_PATH], how)


def place(session: SparkSession, frame: DataFrame, plan: WritePlan) -> DataFrame:
    """Each row with the number of its task, in a Spark partition of that task's own.

    frame  the rows with the id of their file group: `join_hits`
    A row that the plan has no task for keeps null: the tasks refuse it.
    """
    # Rows of one key get one share, hence one task, whichever executor looks at them.
    share = F.pmod(F.xxhash64(RECORD_KEY, F.lit(1)), F.lit(1 << 30)) / F.lit(float(1 << 30))
    frame = frame.withColumn(_SHARE, F.when(F.col(FILE_ID).isNull(), share).otherwise(F.lit(0.0)))
    frame = frame.withColumn(FILE_ID, F.coalesce(FILE_ID, F.lit("")))
    targets = session.createDataFrame(_targets(plan)).withColumnRenamed("partition", "_hoodie_target")
    placed = frame.join(
        F.broadcast(targets),
        (frame[PARTITION_PATH] == targets["_hoodie_target"])
        & (frame[FILE_ID] == targets["group"])
        & (frame[_SHARE] >= targets["low"])
        & (frame[_SHARE] < targets["high"]),
        "left",
    ).drop("_hoodie_target", "group", "low", "high", FILE_ID, _SHARE)
    count = max(1, len(plan.tasks))
    if hasattr(placed, "repartitionById"):  # PySpark 4.1: exactly one task's rows in each Spark partition
        return placed.repartitionById(count, F.coalesce(F.col(TASK), F.lit(0)).cast("int"))
    return placed.repartition(count, F.col(TASK))


def _targets(plan: WritePlan) -> pa.Table:
    """Where rows go: (partition, file id or "" for inserts, share in [low, high)) -> task."""
    rows: list[tuple[str, str, float, float, int]] = [
        (group.partition, group.file_id, 0.0, 2.0, task) for group, task in plan.update_targets().items()
    ]
    shares = plan.insert_shares()
    for partition, dealt in plan.shares.items():
        rows += [(partition, "", *shares[task], task) for task, _ in dealt]
    names = ["partition", "group", "low", "high", TASK]
    types = [pa.string(), pa.string(), pa.float64(), pa.float64(), pa.int64()]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)


def run_tasks(placed: DataFrame, tasks: Sequence[WriteTask], run: TaskRunner) -> TaskReports:
    """Run each task on the rows placed with it. Returns what the winning attempts report."""
    return _collect(placed.mapInArrow(partial(_run_placed, tasks, run), STATS))


def run_stream(frame: DataFrame, run: StreamRunner) -> TaskReports:
    """Run one writer over each Spark partition as it stands."""
    return _collect(frame.mapInArrow(partial(_run_stream, run), STATS))


def by_key(frame: DataFrame, change: Callable[[pa.Table], pa.Table]) -> DataFrame:
    """The rows, changed where all rows of each key are together. A task holds those of its Spark partition."""
    schema = nullable(frame.schema)
    together = frame.to(schema).repartition(PARTITION_PATH, RECORD_KEY)
    return together.mapInArrow(partial(_change_all, change), schema)


def _change_all(change: Callable[[pa.Table], pa.Table], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = list(batches)
    if found:
        with mark_worker_errors():
            rows = change(pa.Table.from_batches(found))
        yield from rows.to_batches()


def _collect(reports: DataFrame) -> TaskReports:
    with raise_worker_errors():
        found = reports.toArrow()
    return reported(found)


def reported(reports: pa.Table) -> TaskReports:
    """What is in tasks' reports."""
    rows = reports.to_pylist()
    found = [decode_commit(row["stats"].encode(), "task report") for row in rows]
    stats = tuple(stat for part in found for group in part.stats.values() for stat in group)
    later = tuple(pa.ipc.open_stream(row["later"]).read_all() for row in rows if row["later"] is not None)
    return TaskReports(stats, sum(row["rows"] for row in rows), later)


def _run_placed(
    tasks: Sequence[WriteTask], run: TaskRunner, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    waiting: dict[int, list[pa.RecordBatch]] = {}
    for batch in map(sound, batches):
        numbers = batch.column(TASK)
        if numbers.null_count:
            raise HoodieError(
                "rows arrived that the plan has no file group for: the input gave other rows when Spark evaluated it "
                "again. Write it to storage first, or make it deterministic."
            )
        rows = batch.drop_columns([TASK])
        found = np.unique(numbers.to_numpy())
        for number in found.tolist():
            part = rows if len(found) == 1 else rows.filter(pa.array(numbers.to_numpy() == number))
            waiting.setdefault(number, []).append(part)
    for number in sorted(waiting):
        rows_of_task = pa.Table.from_batches(waiting.pop(number))
        with mark_worker_errors():
            done = run(tasks[number], rows_of_task, write_token(number))
        yield report(number, len(rows_of_task), done)


def _run_stream(run: StreamRunner, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    taken = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for batch in map(sound, batches):
            taken += len(batch)
            yield batch

    context = TaskContext.get()
    number = context.partitionId() if context else 0
    with mark_worker_errors():
        stats = run(counted(), write_token(number))
    yield report(number, taken, TaskResult(stats))


def report(number: int, rows: int, done: TaskResult) -> pa.RecordBatch:
    """What a task tells the driver, by the schema STATS."""
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in done.stats:
        by_partition.setdefault(stat.partition or "", []).append(stat)
    report = CommitMetadata(operation=Operation.UNKNOWN, stats={p: tuple(part) for p, part in by_partition.items()})
    text = encode_commit(report).decode()
    later = None if done.later is None else _as_stream(done.later)
    return pa.record_batch(
        [pa.array([number]), pa.array([rows]), pa.array([text]), pa.array([later], pa.binary())], names=STATS.names
    )


def _as_stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def write_token(number: int) -> str:
    """`<task>-<stage>-<attempt>`: another attempt of the task writes under another name."""
    context = TaskContext.get()
    return f"{number}-{context.stageId()}-{context.taskAttemptId()}" if context else f"{number}-0-0"


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose Python workers cannot run this library, before anything is written.

    Raises WorkerEnvironment naming PYSPARK_PYTHON.
    """
    if session in _checked:
        return
    with raise_worker_errors():
        session.range(1).mapInArrow(_probe, "ok long").toArrow()
    _checked.add(session)


_checked: WeakSet[SparkSession] = WeakSet()


def _probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import hoodie.writing.tasks  # noqa: F401

    for batch in batches:
        yield pa.record_batch([batch.column(0)], names=["ok"])
