"""A batch written by executors from staged files: tasks stage it, look keys up in it and write from it; no shuffle.

Every task of a partition reads that partition's staged rows, so this way is taken while those reads stay within a few
times the batch (`reads_stay_few`); beyond it rows are shuffled to their tasks (`hoodie.spark.write.executors`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hoodie.index.pruning import IndexStats
from hoodie.keygen.generated_keys import MakeKeys
from hoodie.model.files import BaseFile
from hoodie.plan.write import WritePlan, WriteTask
from hoodie.spark.keyed import KeyedFrame, keyed_batches
from hoodie.spark.tasks import bin_pack, collect, run_per_item
from hoodie.spark.types import to_arrow
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.spark.write.executors import STATS, report, reports_of, write_token
from hoodie.storage.protocol import Storage
from hoodie.writing.batch.held import TaskReports
from hoodie.writing.batch.precombine import ARRIVAL
from hoodie.writing.batch.stage import Stage, StagedHits, lookup_calls, staged_hits, staged_lookup, staged_tasks
from hoodie.writing.batch.staging import (
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
from hoodie.writing.planning import TaskRunner
from hoodie.writing.write import Write

_PIECE = StructType(
    [StructField(n, StringType()) for n in ("partition", "file")]
    + [StructField(n, LongType()) for n in ("batch", "rows", "bytes", "bad_keys", "bad_ordering")]
)
_COSTS = StructType([StructField("call", LongType()), StructField("cost", StringType())])

#: Bytes of base files that a Spark task is given, for looking keys up and for writing: each task costs 0.1 s of CPU.
_LOOK_UP_BYTES = 512 << 20
_WRITE_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class SparkStage(Stage):
    """A staged batch that executors can read. schema: of its rows, in Spark's types"""

    schema: StructType

    def frame(self, session: SparkSession, *, arrivals: bool = False) -> DataFrame:
        """It as a DataFrame, one Spark partition per staged file. arrivals: with the numbers of its rows."""
        files: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            files.setdefault(piece.file, []).append(piece)
        parts = list(files.values())
        schema = StructType([*self.schema.fields, *([StructField(ARRIVAL, LongType())] if arrivals else [])])
        return run_per_item(session, parts, partial(_read, self.storage, arrivals), schema)


def stage(session: SparkSession, storage: Storage, batch: KeyedFrame, ordering: Sequence[str]) -> SparkStage:
    """Stage the rows with their keys: the one time that their source is evaluated.

    ordering  columns whose nulls are counted
    """
    remove_stale(storage)
    folder = new_stage()
    try:
        call = partial(_stage, storage, folder, tuple(ordering), batch.make_keys)
        found = collect(batch.frame.mapInArrow(call, _PIECE))
    except BaseException:
        storage.delete_tree(folder)
        raise
    return SparkStage(storage, folder, tuple(Piece(**row) for row in found.to_pylist()), batch.schema)


def locate(session: SparkSession, stage: Stage, write: Write, bases: Mapping[str, Sequence[BaseFile]]) -> StagedHits:
    """Look the staged keys up in the base files of their partitions, by partition path."""
    calls = lookup_calls(stage, bases)
    packs = bin_pack(calls, lambda call: call.base.size, _LOOK_UP_BYTES)
    run = partial(_locate, staged_lookup(write, stage))
    costs = collect(run_per_item(session, packs, run, _COSTS)).to_pylist()
    return staged_hits(stage, calls, ((row["call"], IndexStats(**json.loads(row["cost"]))) for row in costs))


def run_tasks(
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
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    name = f"{context.partitionId()}-{context.taskAttemptId()}" if context else "0-0"
    with mark_worker_errors():
        first = context.partitionId() << 33 if context else 0  # as Spark's monotonically_increasing_id
        pieces = stage_rows(storage, f"{folder}/{name}.arrow", keyed_batches(make_keys, batches), ordering, first)
    if pieces:
        yield pa.RecordBatch.from_pylist([asdict(piece) for piece in pieces], schema=to_arrow(_PIECE))


def _read(storage: Storage, arrivals: bool, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    with mark_worker_errors():
        for _, batch in read_pieces(storage, pieces):
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
            done = run(task, rows, write_token(task.number)) if rows.num_rows else TaskResult(())
        yield report(task.number, len(rows), done)
