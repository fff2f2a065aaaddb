"""From a DataFrame to data files: key its rows, acquire them for driver or executors, locate, plan, run."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.config.write import BulkInsertSort
from hoodie.display.progress import progress
from hoodie.errors import HoodieError
from hoodie.index.pruning import IndexStats
from hoodie.lookup.index_choice import prepare_index
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import PartitionProfile, new_group_sizes
from hoodie.spark.keyed import KeyedFrame
from hoodie.spark.plan_size import estimated_bytes
from hoodie.spark.tasks import check_workers, persist
from hoodie.spark.types import to_spark
from hoodie.spark.write import executors, staging
from hoodie.spark.write.shuffled import LocatedRows, record_executor_writes, tag_rows
from hoodie.spark.write.staging import SparkStage
from hoodie.writing.arrow_batch import ArrowRows
from hoodie.writing.driver import partitions_of, write_on_driver
from hoodie.writing.local import ordering_needed, sound_rows, stage_batches, take_rows
from hoodie.writing.operations import Combine
from hoodie.writing.planning import (
    BatchPlan,
    TaskRunner,
    announce,
    plan_batch,
    shows_progress,
    task_runner,
    what_runs,
    written,
)
from hoodie.writing.precombine import combine
from hoodie.writing.result import Phases
from hoodie.writing.stage import StagedHits, lies_deleted, profile, reads_stay_few, require_sound
from hoodie.writing.staging import new_stage, remove_stale
from hoodie.writing.task_results import EXECUTORS, TaskResults
from hoodie.writing.tasks import write_stream
from hoodie.writing.write import Write

#: A source that Spark takes to be this many times smaller than the driver's limit is collected without being
#: measured: its statistics may be of compressed files.
_TRUSTED_SHARE = 8


@dataclass(frozen=True, slots=True)
class Acquired:
    """A batch at hand: here as Arrow (`rows`), staged in files, or still with Spark (`batch`) to stream by.

    schema  of the keyed rows, in Spark's types
    staged  lies in files of the table; `batch`, if there is one, reads them
    """

    session: SparkSession
    schema: StructType
    rows: pa.Table | None = None
    staged: SparkStage | None = None
    batch: KeyedFrame | None = None

    def write(self, write: Write, phases: Phases) -> tuple[Write, TaskResults]:
        """Write the batch as data files. Nothing is published yet."""
        if self.rows is not None:
            return write_on_driver(write, self.rows, phases, partial(self._hand_over, self.rows, write, phases))
        if self.batch is not None:
            return _bulk_on_executors(self.batch, write, phases)
        assert self.staged is not None
        return _write_on_executors(self.session, self.staged, write, phases)

    def _hand_over(self, rows: pa.Table, write: Write, phases: Phases) -> tuple[Write, TaskResults]:
        """Have executors write a batch that is here: it is small, but what it changes is not."""
        with phases.time("stage"):
            check_workers(self.session)
            batch = KeyedFrame.local(self.session, rows, self.schema)
            # Its ordering values are checked already.
            staged = staging.stage(self.session, write.state.storage, batch, ())
        try:
            return _write_on_executors(self.session, staged, write, phases)
        finally:
            staged.release()

    def release(self) -> None:
        """Remove what was staged."""
        if self.staged is not None:
            self.staged.release()


def acquire(session: SparkSession, batch: KeyedFrame, write: Write, phases: Phases) -> Acquired:
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
            return Acquired(session, batch.schema, rows)
        batch = KeyedFrame.local(session, rows, batch.schema)  # else times without zone become instants
    check_workers(session)
    if write.operation_rules.bulk:
        return Acquired(session, batch.schema, batch=batch)
    with phases.time("stage"):
        staged = staging.stage(session, write.state.storage, batch, ordering)
    try:
        measured = staged.measured()
        require_sound(measured, ordering)
        if most and measured.bytes <= most and _rewrite_fits(measured.rows.keys(), write):
            with phases.time("collect"):
                rows = staged.rows() if staged.pieces else batch.rows(0)
            staged.release()
            return Acquired(session, batch.schema, rows)
    except BaseException:
        staged.release()
        raise
    return Acquired(session, batch.schema, staged=staged)


def acquire_arrow(session: SparkSession, rows: ArrowRows, write: Write, phases: Phases) -> Acquired:
    """As `acquire`, of Arrow rows that this process has: it stages a large batch itself.

    Raises  as `acquire`
    """
    schema = to_spark(rows.schema)
    most = write.settings.engine.driver_batch
    with phases.time("collect"):
        held, rest = take_rows(rows.batches(), most)
    if rest is None:
        table = sound_rows(pa.Table.from_batches(held, rows.schema), write)
        if most and _rewrite_fits(partitions_of(table), write):
            return Acquired(session, schema, table)
        held, rest = iter(table.to_batches()), iter(())
    check_workers(session)
    storage, folder = write.state.storage, new_stage()
    with phases.time("stage"):
        remove_stale(storage)
        found = stage_batches(storage, folder, chain(held, rest), write)
    staged = SparkStage(storage, folder, found.pieces, schema)
    batch = KeyedFrame(staged.frame(session), None, schema) if write.operation_rules.bulk else None
    return Acquired(session, schema, staged=staged, batch=batch)


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


@dataclass(frozen=True, slots=True)
class ExecutorPlan:
    """A staged batch with the plan for it, and where the keys are that the table holds.

    hits  of its rows, where tasks read them from the staged files
    rows  with their file groups, where Spark shuffles them to their tasks; else None
    """

    planned: BatchPlan
    hits: StagedHits
    rows: LocatedRows | None = None

    def release(self) -> None:
        if self.rows is not None:
            self.rows.release()


def plan_on_executors(session: SparkSession, staged: SparkStage, write: Write) -> ExecutorPlan:
    """Look keys up, decide which task each row goes to."""
    operation_rules, settings, measured = write.operation_rules, write.settings, staged.measured()
    files = write.files_of(set(measured.rows))
    record_size = write.state.record_size(settings.sizing)
    most_tasks = {
        partition: len(files.bases.get(partition, ())) + len(new_group_sizes(count, settings.sizing, record_size))
        for partition, count in measured.rows.items()
    }
    readable = (write.locates_staged or not operation_rules.locate) and reads_stay_few(staged.pieces, most_tasks)
    tagged: LocatedRows | None = None
    hits = StagedHits()
    start = time.perf_counter()
    if readable and operation_rules.locate and files.bases:
        hits = staging.locate(session, staged, write, files.bases)
        if lies_deleted(write.state, files, staged, hits):
            readable, hits = False, StagedHits()
    rows: Mapping[str, PartitionProfile]
    if readable:
        rows, index = profile(measured, hits.updates, not operation_rules.delete), hits.cost
    else:
        tagged = tag_rows(session, staged, write, files)
        files, rows, index = tagged.files, tagged.profile, tagged.cost
    index = replace(index, seconds=time.perf_counter() - start if operation_rules.locate else 0.0)
    return ExecutorPlan(plan_batch(write, files, rows, index), hits, tagged)


def _write_on_executors(
    session: SparkSession, staged: SparkStage, write: Write, phases: Phases
) -> tuple[Write, TaskResults]:
    delete = write.operation_rules.delete
    with phases.time("locate"):
        prepare_index(write.index, write.state, set(staged.measured().rows))
        found = plan_on_executors(session, staged, write)
    try:
        with phases.time("plan"):
            write = announce(write, found.planned)
        with phases.time("write"):
            count = len(found.planned.plan.tasks)
            with progress(f"{what_runs(write)} on executors", count, show=shows_progress(write)) as advance:
                done = _run_on_executors(session, staged, found, task_runner(write, write.spec(lingering=True)), delete)
                advance(count, *written(done.stats))  # Spark tells the driver nothing before its job ends
        partitions = frozenset(staged.measured().rows)
        return write, TaskResults(done.stats, partitions, found.planned.index, EXECUTORS, done.later)
    finally:
        found.release()


def _run_on_executors(
    session: SparkSession, staged: SparkStage, found: ExecutorPlan, run: TaskRunner, delete: bool
) -> executors.TaskReports:
    plan = found.planned.plan
    if not plan.tasks:
        return executors.TaskReports((), 0, ())
    if found.rows is None:
        return staging.run_tasks(session, staged, plan, found.hits, run, delete=delete)
    done = executors.run_tasks(executors.place(session, found.rows.frame, plan), (*plan.tasks, *plan.spare), run)
    total = found.rows.total
    if done.rows < total and not delete:  # a row whose key the table has several times arrives as often
        raise HoodieError(f"{total} rows were staged and {done.rows} arrived at their tasks; nothing is published")
    return done


def _bulk_on_executors(batch: KeyedFrame, write: Write, phases: Phases) -> tuple[Write, TaskResults]:
    options = write.settings.write
    keys = (PARTITION_PATH, RECORD_KEY)
    frame, make_keys = batch.frame, batch.make_keys
    combines = write.operation_rules.combine is not Combine.ALL
    if combines or options.bulk_sort is not BulkInsertSort.NONE:
        frame, make_keys = batch.with_columns(), None
    if combines:
        frame = executors.by_key(frame, partial(combine, rule=write.rule, operation_rules=write.operation_rules))
    kept: DataFrame | None = None
    if options.bulk_sort is BulkInsertSort.GLOBAL_SORT:
        kept = frame = persist(frame)  # a sort looks at its input twice: for the ranges, then for the rows
        count = options.bulk_parallelism
        frame = frame.repartitionByRange(count, *keys).sortWithinPartitions(*keys) if count else frame.orderBy(*keys)
    else:
        # As Hudi's row writer does: never more partitions than there are. Jobs of 200 are common, for few rows, too.
        frame = frame.coalesce(options.bulk_parallelism) if options.bulk_parallelism else frame
        if options.bulk_sort is BulkInsertSort.PARTITION_SORT:
            frame = frame.sortWithinPartitions(*keys)
    with phases.time("plan"):
        write = write.with_plan(None)
    try:
        with phases.time("write"):
            stream = partial(write_stream, write.spec(lingering=True), write.rule)
            stats = executors.run_stream(frame, make_keys, stream).stats
            later = record_executor_writes(frame.sparkSession, write, stats)
    finally:
        if kept is not None:
            kept.unpersist()
    return write, TaskResults(stats, frozenset(stat.partition or "" for stat in stats), IndexStats(), EXECUTORS, later)
