"""A batch written by executors from staged files: tasks stage it, look keys up in it and write from it; no shuffle.

Every task of a partition reads that partition's staged rows, so this way is taken while those reads stay within a few
times the batch (`reads_stay_few`); beyond it rows are shuffled to their tasks (`hoodie.spark.write.executors`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hoodie.config.write import BloomOptions
from hoodie.index.pruning import IndexStats
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.plan.write import WritePlan, WriteTask
from hoodie.spark.lookup.locate import Files
from hoodie.spark.tasks import bin_pack, collect, run_per_item
from hoodie.spark.types import sound
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.spark.write.executors import STATS, TaskReports, report, reported, write_token
from hoodie.storage.protocol import Storage
from hoodie.writing.index_updates import TaskResult
from hoodie.writing.planning import TaskRunner
from hoodie.writing.stage import Stage, hits_path, staged_tasks
from hoodie.writing.staging import (
    Piece,
    StagedTask,
    by_partition,
    locate_staged,
    new_stage,
    read_pieces,
    remove_stale,
    rows_of,
    stage_rows,
)

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

    def frame(self, session: SparkSession) -> DataFrame:
        """It as a DataFrame, one Spark partition per staged file."""
        files: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            files.setdefault(piece.file, []).append(piece)
        parts = list(files.values())
        return run_per_item(session, parts, partial(_read, self.storage), self.schema)


def stage(session: SparkSession, storage: Storage, frame: DataFrame, ordering: Sequence[str]) -> SparkStage:
    """Stage the keyed rows: the one time that their source is evaluated.

    ordering  columns whose nulls are counted
    """
    remove_stale(storage, time.time_ns() // 1_000_000)
    folder = new_stage()
    try:
        found = collect(frame.mapInArrow(partial(_stage, storage, folder, tuple(ordering)), _PIECE))
    except BaseException:
        storage.delete_tree(folder)
        raise
    return SparkStage(storage, folder, tuple(Piece(**row) for row in found.to_pylist()), frame.schema)


def locate(
    session: SparkSession, stage: Stage, files: Files, pruned: bool, bloom: BloomOptions, *, keeps_positions: bool
) -> tuple[dict[str, dict[str, int]], dict[FileGroupId, str], IndexStats]:
    """Look the staged keys up in the base files of their partitions.

    keeps_positions  whether the rows of hits are to know where in their base file the keys are
    returns  rows whose key is found, per partition path and file id; where the hits of each group are staged; the cost
    """
    pieces = by_partition(stage.pieces)
    calls = [(file, pieces[partition]) for partition, part in files.items() for file in part if partition in pieces]
    packs = bin_pack(list(enumerate(calls)), lambda call: call[1][0].size, _LOOK_UP_BYTES)
    run = partial(_locate, stage.storage, stage.folder, pruned, bloom, keeps_positions)
    costs = collect(run_per_item(session, packs, run, _COSTS)).to_pylist()
    updates: dict[str, dict[str, int]] = {}
    hits: dict[FileGroupId, str] = {}
    total = IndexStats()
    for row in costs:
        file, cost = calls[row["call"]][0], IndexStats(**json.loads(row["cost"]))
        total += cost
        if cost.hits:
            updates.setdefault(file.group.partition, {})[file.group.file_id] = cost.hits
            hits[file.group] = hits_path(stage.folder, row["call"])
    return updates, hits, total


def run_tasks(
    session: SparkSession,
    stage: Stage,
    plan: WritePlan,
    hits: Mapping[FileGroupId, str],
    run: TaskRunner,
    *,
    delete: bool,
) -> TaskReports:
    """Run each task of the plan on the staged rows that are its own. Returns what the winning attempts report.

    delete  rows whose key no file group holds have no effect
    """
    work = staged_tasks(stage, plan, hits, delete)
    packs = bin_pack(work, lambda item: item[0].bytes_read + sum(p.bytes for p in item[1].pieces), _WRITE_BYTES)
    return reported(collect(run_per_item(session, packs, partial(_write, stage.storage, run), STATS)))


def _stage(
    storage: Storage, folder: str, ordering: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    name = f"{context.partitionId()}-{context.taskAttemptId()}" if context else "0-0"
    with mark_worker_errors():
        pieces = stage_rows(storage, f"{folder}/{name}.arrow", map(sound, batches), ordering)
    if pieces:
        yield pa.RecordBatch.from_pylist(
            [asdict(piece) for piece in pieces],
            schema=pa.schema(
                [(n, pa.string()) for n in ("partition", "file")]
                + [(n, pa.int64()) for n in ("batch", "rows", "bytes", "bad_keys", "bad_ordering")]
            ),
        )


def _read(storage: Storage, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    with mark_worker_errors():
        for _, batch in read_pieces(storage, pieces):
            yield batch


def _locate(
    storage: Storage,
    folder: str,
    pruned: bool,
    bloom: BloomOptions,
    keeps_positions: bool,
    calls: Sequence[tuple[int, tuple[BaseFile, tuple[Piece, ...]]]],
) -> Iterator[pa.RecordBatch]:
    for number, (file, pieces) in calls:
        with mark_worker_errors():
            to = hits_path(folder, number)
            cost = locate_staged(storage, file, (storage, pieces), pruned, bloom, to, keeps_positions=keeps_positions)
        yield pa.record_batch([pa.array([number]), pa.array([json.dumps(asdict(cost))])], names=["call", "cost"])


def _write(storage: Storage, run: TaskRunner, work: Sequence[tuple[WriteTask, StagedTask]]) -> Iterator[pa.RecordBatch]:
    for task, staged in work:
        with mark_worker_errors():
            rows = rows_of(storage, staged)
            done = run(task, rows, write_token(task.number)) if rows.num_rows else TaskResult(())
        yield report(task.number, len(rows), done)
