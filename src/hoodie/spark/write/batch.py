"""From a DataFrame to data files: key its rows, acquire them for driver or executors, locate, plan, run."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hoodie.config.write import BulkInsertSort
from hoodie.display.progress import Advance
from hoodie.errors import HoodieError
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import PartitionProfile, measure_record_size, new_group_sizes
from hoodie.spark.columns import content_hash
from hoodie.spark.keyed import KeyedFrame
from hoodie.spark.plan_size import estimated_bytes
from hoodie.spark.tasks import check_workers, persist
from hoodie.spark.types import to_spark
from hoodie.spark.write import executors, staging
from hoodie.spark.write.shuffle import LocatedRows, record_executor_writes, tag_rows
from hoodie.spark.write.staging import SparkStage
from hoodie.table.state import TableFiles
from hoodie.writing.batch.arrow import ArrowRows, ordering_needed, partitions_of, sound_rows
from hoodie.writing.batch.duplicates import combine
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.batch.stage import StagedHits, lies_deleted, profile, reads_stay_few, require_sound
from hoodie.writing.batch.staging import new_stage, remove_stale
from hoodie.writing.local import stage_batches, take_rows
from hoodie.writing.operations import Combine
from hoodie.writing.planning import (
    EXECUTORS,
    BatchPlan,
    HeldBatch,
    TaskReports,
    plan_batch,
    rows_and_bytes,
    task_runner,
)
from hoodie.writing.result import Phases
from hoodie.writing.tasks.run import write_stream
from hoodie.writing.write import Write

#: A source that Spark takes to be this many times smaller than the driver's limit is collected without being
#: measured: its statistics may be of compressed files.
_TRUSTED_SHARE = 8


@dataclass(frozen=True, slots=True)
class ExecutorPlan:
    """A staged batch with the plan for it, and where the keys are that the table holds.

    hits  of its rows, where tasks read them from the staged files
    rows  with their file groups, where Spark shuffles them to their tasks; else None
    """

    session: SparkSession
    staged: SparkStage
    planned: BatchPlan
    hits: StagedHits
    rows: LocatedRows | None = None

    def run(self, write: Write, advance: Advance) -> TaskReports:
        plan, delete = self.planned.plan, write.operation_rules.delete
        if not plan.tasks:
            return TaskReports()
        run = task_runner(write, write.spec(lingering=True))
        if self.rows is None:
            reports = staging.run_staged(self.session, self.staged, plan, self.hits, run, delete=delete)
        else:
            measured = self.staged.measured()
            placed = executors.place(self.session, self.rows.frame, plan, measured.bytes / max(1, measured.total))
            reports = executors.run_placed(placed, (*plan.tasks, *plan.spare), run)
            total = self.rows.total
            if reports.rows < total and not delete:  # a row whose key the table has several times arrives as often
                raise HoodieError(
                    f"{total} rows were staged and {reports.rows} arrived at their tasks; nothing is published"
                )
        advance(len(plan.tasks), *rows_and_bytes(reports.stats))  # Spark tells the driver nothing before its job ends
        return reports

    def release(self) -> None:
        if self.rows is not None:
            self.rows.release()


@dataclass(frozen=True, slots=True)
class SparkBatch:
    """A batch that executors write: staged in files of the table, or still with Spark (`batch`) to stream by.

    batch  reads the staged files, if there are both
    """

    session: SparkSession
    staged: SparkStage | None = None
    batch: KeyedFrame | None = None
    spread: Callable[[Write], HeldBatch] | None = None
    route: str = EXECUTORS

    @property
    def partitions(self) -> frozenset[str]:
        return frozenset() if self.staged is None else frozenset(self.staged.measured().rows)

    def locate(self, write: Write, files: TableFiles) -> ExecutorPlan:
        session, staged = self.session, self.staged
        assert staged is not None
        operation_rules, settings, measured = write.operation_rules, write.settings, staged.measured()
        record_size = measure_record_size(write.state.recent_commits(), settings.sizing)
        most_tasks = {
            partition: len(files.bases.get(partition, ())) + len(new_group_sizes(count, settings.sizing, record_size))
            for partition, count in measured.rows.items()
        }
        readable = write.locates_staged or not operation_rules.locate
        readable = readable and not staged.runs and reads_stay_few(staged.pieces, most_tasks)
        tagged: LocatedRows | None = None
        hits = StagedHits()
        start = time.perf_counter()
        if readable and operation_rules.locate and files.bases:
            hits = staging.look_up_staged(session, staged, write, files.bases)
            if lies_deleted(write.state, files, staged, hits):
                readable, hits = False, StagedHits()
        rows: Mapping[str, PartitionProfile]
        if readable:
            rows, index = profile(measured, hits.updates, not operation_rules.delete), hits.cost
        else:
            tagged = tag_rows(session, staged, write, files)
            files, rows, index = tagged.files, tagged.profile, tagged.cost
        index = replace(index, seconds=time.perf_counter() - start if operation_rules.locate else 0.0)
        return ExecutorPlan(session, staged, plan_batch(write, files, rows, index), hits, tagged)

    def stream(self, write: Write) -> TaskReports:
        options, keys = write.settings.write, (F.col(PARTITION_PATH), F.col(RECORD_KEY))
        count = options.bulk_parallelism
        assert self.batch is not None
        frame, make_keys = self.batch.frame, self.batch.make_keys
        combines = write.operation_rules.combine is not Combine.ALL
        if combines or options.bulk_sort is not BulkInsertSort.NONE:
            frame, make_keys = self.batch.without_new_keys()
        # Rows that have no key yet are dealt out by what they hold: alike, if a task runs again.
        sort = keys if make_keys is None else (F.col(PARTITION_PATH), content_hash(frame))
        if combines:
            frame = executors.by_key(frame, partial(combine, rule=write.rule, operation_rules=write.operation_rules))
        persisted_frame: DataFrame | None = None
        if options.bulk_sort is BulkInsertSort.GLOBAL_SORT:
            # A sort looks at its input twice: for the ranges, then for the rows.
            persisted_frame = frame = persist(frame)
            ranges = frame.repartitionByRange(count, *sort).sortWithinPartitions(*sort) if count else None
            frame = frame.orderBy(*sort) if ranges is None else ranges
        elif options.bulk_sort.by_path and write.state.config.partition_columns:
            frame = frame.repartition(*((count,) if count else ()), PARTITION_PATH)
            if options.bulk_sort is BulkInsertSort.PARTITION_PATH_REPARTITION_AND_SORT:
                frame = frame.sortWithinPartitions(PARTITION_PATH)
        else:
            # As Hudi's row writer does: never more partitions than there are. Jobs of 200 are common.
            frame = frame.coalesce(count) if count else frame
            if options.bulk_sort is BulkInsertSort.PARTITION_SORT:
                frame = frame.sortWithinPartitions(*keys)
        try:
            key_columns = write.operation_rules.key_columns
            stream = partial(write_stream, write.spec(lingering=True), write.rule, key_columns=key_columns)
            stats = executors.run_stream(frame, make_keys, stream).stats
            return TaskReports(stats, record_executor_writes(frame.sparkSession, write, stats))
        finally:
            if persisted_frame is not None:
                persisted_frame.unpersist()

    def release(self) -> None:
        """Remove what was staged."""
        if self.staged is not None:
            self.staged.release()


def _in_memory(session: SparkSession, rows: pa.Table, schema: StructType) -> MemoryBatch:
    """Rows here, of a schema in Spark's types: they are few, but what they change may be too much for the driver."""

    def spread(write: Write) -> SparkBatch:
        check_workers(session)
        # Its ordering values are checked already.
        return SparkBatch(session, staging.stage(session, write.storage, KeyedFrame.local(session, rows, schema), ()))

    return MemoryBatch(rows, spread)


def acquire_frame(session: SparkSession, batch: KeyedFrame, write: Write, phases: Phases) -> HeldBatch:
    """Bring the batch over if it is small, else stage it. Its source is evaluated once.

    Raises  InvalidInput on rows without key, partition path or an ordering value that is asked for
    """
    most = write.settings.engine.driver_batch
    ordering = ordering_needed(write)
    guess = estimated_bytes(batch.frame) if most else None
    if guess is not None and guess * _TRUSTED_SHARE <= most:
        with phases.time("collect"):
            rows = batch.rows()
        sound_rows(rows, write)
        if rows.nbytes <= most and _rewrite_fits(partitions_of(rows), write):
            return _in_memory(session, rows, batch.schema)
        batch = KeyedFrame.local(session, rows, batch.schema)  # else times without zone become instants
    check_workers(session)
    if write.operation_rules.bulk:
        return SparkBatch(session, batch=batch)
    with phases.time("stage"):
        staged = staging.stage(session, write.state.storage, batch, ordering, guess)
    try:
        measured = staged.measured()
        require_sound(measured, ordering, write.state.config)
        if most and measured.bytes <= most and _rewrite_fits(measured.rows.keys(), write):
            with phases.time("collect"):
                rows = staged.rows() if staged.pieces or staged.runs else batch.rows(0)
            staged.release()
            return _in_memory(session, rows, batch.schema)
    except BaseException:
        staged.release()
        raise
    return SparkBatch(session, staged)


def acquire_arrow(session: SparkSession, rows: ArrowRows, write: Write, phases: Phases) -> HeldBatch:
    """As `acquire`, of Arrow rows that this process has: it stages a large batch itself. Raises as `acquire`"""
    schema = to_spark(rows.schema)
    most = write.settings.engine.driver_batch
    with phases.time("collect"):
        held, rest = take_rows(rows.batches(), most)
    if rest is None:
        table = sound_rows(pa.Table.from_batches(held, rows.schema), write)
        if most and _rewrite_fits(partitions_of(table), write):
            return _in_memory(session, table, schema)
        held, rest = iter(table.to_batches()), iter(())
    check_workers(session)
    storage, folder = write.state.storage, new_stage()
    with phases.time("stage"):
        remove_stale(storage)
        stage = stage_batches(storage, folder, chain(held, rest), write)
    staged = SparkStage(storage, folder, stage.pieces, schema)
    batch = KeyedFrame(staged.frame(session), None, schema) if write.operation_rules.bulk else None
    return SparkBatch(session, staged, batch)


def _rewrite_fits(partitions: Collection[str], write: Write) -> bool:
    """Whether driver threads are to rewrite what the batch may touch: base files of its partitions; with a global index
    that looks into files, of all. (One that finds keys by itself tells where they are once it is asked: `fits_driver`.)
    """
    if not write.operation_rules.match:
        return True
    everywhere = write.index.is_global and write.by_file
    slices = write.state.slices(None if everywhere else partitions)
    size = sum(slice_.base.size for part in slices.values() for slice_ in part if slice_.base is not None)
    return size <= write.settings.engine.driver_rewrite
