"""A batch written by executors from staged files: tasks stage it, look keys up in it and write from it; no shuffle.

Every task of a partition reads that partition's staged rows, so this way is taken while those reads stay within a few
times the batch (`reads_stay_few`); beyond it rows are shuffled to their tasks (`hoodie.spark.write.executors`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hoodie.index.pruning import IndexStats
from hoodie.keygen.generated_keys import MakeKeys
from hoodie.model.files import BaseFile
from hoodie.model.meta import PARTITION_PATH
from hoodie.plan.exchange import READ_BYTES, runs_of_batches
from hoodie.plan.write import WritePlan, WriteTask
from hoodie.spark.keyed import KeyedFrame, keyed_batches
from hoodie.spark.tasks import bin_pack, collect, run_per_item
from hoodie.spark.types import to_arrow
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.spark.write.executors import STATS, reports_of, task_report, write_token
from hoodie.storage.protocol import Storage
from hoodie.writing.batch.duplicates import ARRIVAL
from hoodie.writing.batch.stage import (
    Measured,
    Stage,
    StagedHits,
    lookup_calls,
    staged_hits,
    staged_lookup,
    staged_tasks,
)
from hoodie.writing.batch.staging import (
    BatchRun,
    LookupCall,
    Piece,
    StagedTask,
    new_stage,
    read_pieces,
    remove_stale,
    rows_of,
    stage_rows,
    without_arrivals,
)
from hoodie.writing.index_updates import TaskResult
from hoodie.writing.planning import TaskReports, TaskRunner
from hoodie.writing.write import Write

_PIECE = StructType(
    [StructField(n, StringType()) for n in ("partition", "file")]
    + [StructField(n, LongType()) for n in ("batch", "rows", "bytes", "bad_keys", "bad_ordering")]
    + [StructField(n, LongType()) for n in ("batches", "bad_paths")]  # of a run only
)
_ROWS = StructType([StructField("partition", StringType()), StructField("rows", LongType())])
_COSTS = StructType([StructField("call", LongType()), StructField("cost", StringType())])

#: Bytes of base files that a Spark task is given, for looking keys up and for writing: each task costs 0.1 s of CPU.
_LOOK_UP_BYTES = 512 << 20
_WRITE_BYTES = 128 << 20
#: Pieces that the driver is told of, about, and those of one task of the many that a batch of unknown size may have.
_PIECES = 2_000_000
_PIECES_OF_TASK = 1000
#: Bytes of a batch that a Spark task gets, where nobody said otherwise.
_TASK_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class SparkStage(Stage):
    """A staged batch that executors can read.

    schema  of its rows, in Spark's types
    runs    what there is besides the pieces: of tasks with too many
    counts  rows by partition path, where there are runs
    """

    schema: StructType
    runs: tuple[BatchRun, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def measured(self) -> Measured:
        by_pieces = Stage.measured(self)
        return Measured(
            self.counts if self.runs else by_pieces.rows,
            by_pieces.bytes + sum(run.bytes for run in self.runs),
            by_pieces.bad_keys + sum(run.bad_keys for run in self.runs),
            by_pieces.bad_paths + sum(run.bad_paths for run in self.runs),
            by_pieces.bad_ordering + sum(run.bad_ordering for run in self.runs),
        )

    def rows(self) -> pa.Table:
        whole = (*self.pieces, *(piece for run in self.runs for piece in run.pieces()))
        return Stage.rows(replace(self, pieces=whole))

    @property
    def parts(self) -> list[list[Piece] | BatchRun]:
        """It in parts of bounded size, each of one file."""
        files: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            files.setdefault(piece.file, []).append(piece)
        cuts = (
            part[run] for part in files.values() for run in runs_of_batches((piece.bytes for piece in part), READ_BYTES)
        )
        return [*cuts, *self.runs]

    def frame(self, session: SparkSession, *, arrivals: bool = False) -> DataFrame:
        """It as a DataFrame: a Spark partition reads one of its `parts`, which bounds what it hands to any shuffle.
        arrivals: with the numbers of its rows."""
        schema = StructType([*self.schema.fields, *([StructField(ARRIVAL, LongType())] if arrivals else [])])
        return run_per_item(session, self.parts, partial(_read, self.storage, arrivals), schema)


def stage(
    session: SparkSession, storage: Storage, batch: KeyedFrame, ordering: Sequence[str], size: int | None = None
) -> SparkStage:
    """Stage the rows with their keys: the one time that their source is evaluated.

    ordering  columns whose nulls are counted
    size      bytes that the batch has as far as is known
    """
    remove_stale(storage)
    folder = new_stage()
    try:
        most = min(_PIECES_OF_TASK, max(16, _PIECES * _TASK_BYTES // max(1, size or 0)))
        call = partial(_stage, storage, folder, tuple(ordering), batch.make_keys, most)
        piece_table = collect(batch.frame.mapInArrow(call, _PIECE))
        several = pc.is_valid(piece_table.column("batches"))
        runs = tuple(BatchRun(**row) for row in piece_table.filter(several).drop_columns("partition").to_pylist())
        single = piece_table.filter(pc.invert(several)).drop_columns(["batches", "bad_paths"])
        staged = SparkStage(storage, folder, tuple(Piece(**row) for row in single.to_pylist()), batch.schema, runs)
        return replace(staged, counts=_count(session, staged)) if runs else staged
    except BaseException:
        storage.delete_tree(folder)
        raise


def _count(session: SparkSession, stage: SparkStage) -> dict[str, int]:
    """Rows by partition path, counted by tasks."""
    counted = run_per_item(session, stage.parts, partial(_count_part, stage.storage), _ROWS)
    summed = collect(counted.where("partition is not null").groupBy("partition").sum("rows"))
    return dict(zip(*(column.to_pylist() for column in summed.columns), strict=True))


def _count_part(storage: Storage, part: list[Piece] | BatchRun) -> Iterator[pa.RecordBatch]:
    rows: dict[str | None, int] = {}
    with mark_worker_errors():
        for _, batch in read_pieces(storage, _pieces_of(part), [PARTITION_PATH]):
            partition = batch.column(0)[0].as_py()
            rows[partition] = rows.get(partition, 0) + len(batch)
    yield pa.record_batch([pa.array(rows.keys(), pa.string()), pa.array(rows.values(), pa.int64())], to_arrow(_ROWS))


def _pieces_of(part: list[Piece] | BatchRun) -> list[Piece]:
    return part.pieces() if isinstance(part, BatchRun) else part


def look_up_staged(
    session: SparkSession, stage: Stage, write: Write, bases: Mapping[str, Sequence[BaseFile]]
) -> StagedHits:
    """Look the staged keys up in the base files of their partitions, by partition path."""
    calls = lookup_calls(stage, bases)
    packs = bin_pack(calls, lambda call: call.base.size, _LOOK_UP_BYTES)
    run = partial(_locate, staged_lookup(write, stage))
    costs = collect(run_per_item(session, packs, run, _COSTS)).to_pylist()
    return staged_hits(stage, calls, ((row["call"], IndexStats(**json.loads(row["cost"]))) for row in costs))


def run_staged(
    session: SparkSession, stage: Stage, plan: WritePlan, hits: StagedHits, run: TaskRunner, *, delete: bool
) -> TaskReports:
    """Run each task of the plan on the staged rows that are its own. Returns what the winning attempts report.

    delete  rows whose key no file group holds have no effect
    """
    work = staged_tasks(stage, plan, hits, delete)
    packs = bin_pack(work, lambda item: item[0].bytes_read + sum(p.bytes for p in item[1].pieces), _WRITE_BYTES)
    return reports_of(run_per_item(session, packs, partial(_write, stage.storage, run), STATS))


def _stage(
    storage: Storage,
    folder: str,
    ordering: Sequence[str],
    make_keys: MakeKeys | None,
    most: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """most  pieces that are told one by one"""
    context = TaskContext.get()
    name = f"{context.partitionId()}-{context.taskAttemptId()}" if context else "0-0"
    with mark_worker_errors():
        first = context.partitionId() << 33 if context else 0  # as Spark's monotonically_increasing_id
        pieces = stage_rows(storage, f"{folder}/{name}.arrow", keyed_batches(make_keys, batches), ordering, first)
    records: Sequence[Piece | BatchRun] = pieces
    if len(pieces) > most:
        records = [BatchRun.of(pieces[run]) for run in runs_of_batches((piece.bytes for piece in pieces), READ_BYTES)]
    if records:
        yield pa.RecordBatch.from_pylist([asdict(item) for item in records], schema=to_arrow(_PIECE))


def _read(storage: Storage, arrivals: bool, part: list[Piece] | BatchRun) -> Iterator[pa.RecordBatch]:
    with mark_worker_errors():
        for _, batch in read_pieces(storage, _pieces_of(part)):
            yield batch if arrivals else without_arrivals(batch)


def _locate(look_up: Callable[[LookupCall], IndexStats], calls: Sequence[LookupCall]) -> Iterator[pa.RecordBatch]:
    for call in calls:
        with mark_worker_errors():
            cost = look_up(call)
        yield pa.record_batch([pa.array([call.number]), pa.array([json.dumps(asdict(cost))])], names=["call", "cost"])


def _write(storage: Storage, run: TaskRunner, work: Sequence[tuple[WriteTask, StagedTask]]) -> Iterator[pa.RecordBatch]:
    for task, staged in work:
        with mark_worker_errors():
            rows = rows_of(storage, staged)
            task_result = run(task, rows, write_token(task.number)) if rows.num_rows else TaskResult(())
        yield task_report(task.number, len(rows), task_result)
