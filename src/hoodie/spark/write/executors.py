"""A write by Spark's executors: rows meet the task of their file group, tasks send back their statistics."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from hoodie.errors import HoodieError
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit
from hoodie.keygen.generated_keys import MakeKeys
from hoodie.lookup.batch import agreed_positions
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.exchange import shared_partitions
from hoodie.plan.write import WritePlan, WriteTask
from hoodie.spark.keyed import keyed_batches
from hoodie.spark.lookup.locate import FILE_ID
from hoodie.spark.tasks import Packed, collect
from hoodie.spark.types import all_nullable, fit_for_arrow
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.writing.batch.duplicates import ARRIVAL
from hoodie.writing.index_updates import TaskResult
from hoodie.writing.planning import TaskReports, TaskRunner

TASK = "_hoodie_task"
_SHARE = "_hoodie_share"
_SHARED = "_hoodie_shared"

STATS = StructType(
    [
        StructField("task", LongType()),
        StructField("rows", LongType()),
        StructField("stats", StringType()),
        StructField("later", BinaryType()),  # Arrow, for the index once the write is published
    ]
)

StreamRunner = Callable[[Iterator[pa.RecordBatch], str], Sequence[WriteStat]]


def place(session: SparkSession, frame: DataFrame, plan: WritePlan, row_bytes: float) -> DataFrame:
    """Each row with the number of its task, in the Spark partition of that task: its own, or where there are many one
    of several (`shared_partitions`).

    frame      the rows with the id of their file group: `join_hits`
    row_bytes  of a row of it
    A row that the plan has no task for keeps null: the tasks refuse it.
    """
    # Rows of one key get one share, hence one task, whichever executor looks at them.
    share = F.pmod(F.xxhash64(RECORD_KEY, F.lit(1)), F.lit(1 << 30)) / F.lit(float(1 << 30))
    frame = frame.withColumn(_SHARE, F.when(F.col(FILE_ID).isNull(), share).otherwise(F.lit(0.0)))
    frame = frame.withColumn(FILE_ID, F.coalesce(FILE_ID, F.lit("")))
    shared = shared_partitions(plan.tasks, row_bytes)
    targets = session.createDataFrame(_targets(plan, shared)).withColumnRenamed("partition", "_hoodie_target")
    placed = frame.join(
        F.broadcast(targets),
        (frame[PARTITION_PATH] == targets["_hoodie_target"])
        & (frame[FILE_ID] == targets["group"])
        & (frame[_SHARE] >= targets["low"])
        & (frame[_SHARE] < targets["high"]),
        "left",
    ).drop("_hoodie_target", "group", "low", "high", FILE_ID, _SHARE)
    count = max(shared, default=0) + 1
    # Exactly the rows of these tasks in each Spark partition.
    return placed.repartitionById(count, F.coalesce(F.col(_SHARED), F.lit(0)).cast("int")).drop(_SHARED)


def _targets(plan: WritePlan, shared: Sequence[int]) -> pa.Table:
    """Where rows go: (partition, file id or "" for inserts, share in [low, high)) -> task, and its Spark partition."""
    count = max(shared, default=0) + 1

    def where(task: int) -> tuple[int, int]:
        # Rows for the spare tasks are few if any: they go along with others.
        return task, shared[task] if task < len(shared) else task % count

    rows: list[tuple[str, str, float, float, int, int]] = [
        (group.partition, group.file_id, 0.0, 2.0, *where(task)) for group, task in plan.update_targets().items()
    ]
    shares = plan.insert_shares()
    for partition, dealt in plan.shares.items():
        rows += [(partition, "", *shares[task], *where(task)) for task, _ in dealt]
    names = ["partition", "group", "low", "high", TASK, _SHARED]
    types = [pa.string(), pa.string(), pa.float64(), pa.float64(), pa.int64(), pa.int64()]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)


def run_placed(placed: DataFrame, tasks: Sequence[WriteTask], run: TaskRunner) -> TaskReports:
    """Run each task on the rows placed with it. Returns what the winning attempts report."""
    return reports_of(placed.mapInArrow(partial(_run_placed, Packed.of(tasks), run), STATS))


def run_stream(frame: DataFrame, make_keys: MakeKeys | None, run: StreamRunner) -> TaskReports:
    """Run one writer over each Spark partition as it stands. make_keys: None where the rows have their keys"""
    return reports_of(frame.mapInArrow(partial(_run_stream, make_keys, run), STATS))


def by_key(frame: DataFrame, change: Callable[[pa.Table], pa.Table]) -> DataFrame:
    """The rows, changed where all rows of each key are together. A task holds those of its Spark partition.

    change  takes the rows with `ARRIVAL`, and returns them without it
    """
    schema = all_nullable(frame.schema)
    numbered = frame.to(schema).withColumn(ARRIVAL, F.monotonically_increasing_id())
    together = numbered.repartition(PARTITION_PATH, RECORD_KEY)
    return together.mapInArrow(partial(_change_all, change), schema)


def _change_all(change: Callable[[pa.Table], pa.Table], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    batch_list = list(batches)
    if batch_list:
        with mark_worker_errors():
            rows = change(pa.Table.from_batches(batch_list))
        yield from rows.to_batches()


def reports_of(tasks: DataFrame) -> TaskReports:
    """What tasks report, once they have run: rows of `STATS`."""
    rows = collect(tasks).to_pylist()
    reports = [decode_commit(row["stats"].encode(), "task report") for row in rows]
    stats = tuple(stat for part in reports for group in part.stats.values() for stat in group)
    later = tuple(pa.ipc.open_stream(row["later"]).read_all() for row in rows if row["later"] is not None)
    return TaskReports(stats, later, sum(row["rows"] for row in rows))


def _run_placed(
    tasks: Packed[WriteTask], run: TaskRunner, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    waiting: dict[int, list[pa.RecordBatch]] = {}
    for batch in map(fit_for_arrow, batches):
        numbers = batch.column(TASK)
        if numbers.null_count:
            raise HoodieError(
                "rows arrived that the plan has no file group for: the input gave other rows when Spark evaluated it "
                "again. Write it to storage first, or make it deterministic."
            )
        rows = batch.drop_columns([TASK])
        task_numbers = np.unique(numbers.to_numpy())
        for number in task_numbers.tolist():
            part = rows if len(task_numbers) == 1 else rows.filter(pa.array(numbers.to_numpy() == number))
            waiting.setdefault(number, []).append(part)
    for task in tasks.values_at(sorted(waiting)):
        rows_of_task = pa.Table.from_batches(waiting.pop(task.number))
        with mark_worker_errors():
            task_result = run(task, agreed_positions(rows_of_task), write_token(task.number))
        yield task_report(task.number, len(rows_of_task), task_result)


def _run_stream(
    make_keys: MakeKeys | None, run: StreamRunner, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    taken = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for batch in keyed_batches(make_keys, batches):
            taken += len(batch)
            yield batch

    context = TaskContext.get()
    number = context.partitionId() if context else 0
    with mark_worker_errors():
        stats = run(counted(), write_token(number))
    yield task_report(number, taken, TaskResult(stats))


def task_report(number: int, rows: int, task_result: TaskResult) -> pa.RecordBatch:
    """What a task tells the driver, by the schema STATS."""
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in task_result.stats:
        by_partition.setdefault(stat.partition or "", []).append(stat)
    report = CommitMetadata(operation=Operation.UNKNOWN, stats={p: tuple(part) for p, part in by_partition.items()})
    text = encode_commit(report, whole=True).decode()
    later = None if task_result.later is None else _as_stream(task_result.later)
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
