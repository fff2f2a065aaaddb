"""From a DataFrame to data files: key its rows, bring them near or leave them spread, locate, plan, run."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.config.keygen import KeyGenerator
from hoodie.config.write import BulkInsertSort
from hoodie.errors import InvalidInput, WriteConflict
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import WriteStat
from hoodie.model.meta import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import PartitionProfile, WritePlan, plan_write
from hoodie.spark import keyed, spread
from hoodie.spark.types import nullable
from hoodie.table.job import Checked, WriteJob
from hoodie.table.near import check_keys, refuse_bad_keys, write_near
from hoodie.table.outcome import Outcome
from hoodie.table.result import Phases
from hoodie.table.semantics import Combine
from hoodie.table.state import Slices, TableState
from hoodie.table.tasks import new_file_id, run_task, write_stream

#: A source that Spark takes to be this many times smaller than the near limit is brought over without being measured:
#: its statistics may be of compressed files.
_TRUSTED_SHARE = 8
_SIZE = re.compile(r"sizeInBytes=([\d.]+(?:E[+-]?\d+)?) ?([KMGTPE]i)?B")
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Acquired:
    """A batch at hand: here as Arrow (`rows`), or with Spark; persisted and measured unless it only streams by."""

    rows: pa.Table | None = None
    frame: DataFrame | None = None
    measured: spread.Measured | None = None

    def release(self) -> None:
        """Let Spark forget a batch that it keeps."""
        if self.measured is not None and self.frame is not None:
            self.frame.unpersist()


def keyed_frame(frame: DataFrame, checked: Checked, keygen: KeyGenerator) -> DataFrame:
    """The rows with their record key and partition path; of a delete nothing else.

    Raises InvalidInput naming all columns that are missing
    """
    delete = checked.semantics.delete
    if delete and {RECORD_KEY, PARTITION_PATH} <= set(frame.columns):
        return frame.select(RECORD_KEY, PARTITION_PATH)
    frame = user_columns(frame)
    schema = frame.schema
    problems = keyed.missing_columns(schema, keygen, () if delete else checked.rule.ordering)
    if problems:
        raise InvalidInput(f"the batch does not fit table {checked.state.config.name!r}: {'; '.join(problems)}")
    key = keyed.record_key(schema, keygen).alias(RECORD_KEY)
    path = keyed.partition_path(schema, keygen).alias(PARTITION_PATH)
    return frame.select(key, path) if delete else frame.select(*map(_column, schema.names), key, path)


def user_columns(frame: DataFrame) -> DataFrame:
    """The rows without the five meta columns, which a frame read from a table has."""
    kept = [name for name in frame.columns if name not in META_COLUMNS]
    return frame if len(kept) == len(frame.columns) else frame.select(*map(_column, kept))


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def acquire(session: SparkSession, frame: DataFrame, checked: Checked, phases: Phases) -> Acquired:
    """Bring the batch over if it is small, else have Spark keep and measure it. Its source is evaluated once.

    frame   keyed rows
    Raises  InvalidInput on rows without key or partition path
    """
    near = checked.settings.spread.near_batch
    guess = estimated_bytes(frame) if near else None
    if guess is not None and guess * _TRUSTED_SHARE <= near:
        with phases.time("collect"):
            rows = to_arrow_table(frame)
        check_keys(rows)
        if rows.nbytes <= near and _rewrite_fits(set(rows.column(PARTITION_PATH).unique().to_pylist()), checked):
            return Acquired(rows)
        frame = session.createDataFrame(rows)
    if checked.semantics.bulk:
        spread.check_workers(session)
        return Acquired(frame=frame)
    kept = spread.persist(frame)
    try:
        with phases.time("profile"):
            ordered = checked.semantics.combine is Combine.ORDERED
            values = [keyed.ordering_value(frame.schema, name) for name in checked.rule.ordering] if ordered else []
            measured = spread.measure(kept, values)
        refuse_bad_keys(measured.bad_keys, measured.bad_paths)
        if measured.bad_ordering:
            raise InvalidInput(
                f"{measured.bad_ordering} rows have no ordering value: {', '.join(checked.rule.ordering)} is null."
            )
        if measured.bytes <= near and _rewrite_fits(set(measured.rows), checked):
            with phases.time("collect"):
                rows = to_arrow_table(kept)
            kept.unpersist()
            return Acquired(rows)
        spread.check_workers(session)
    except BaseException:
        kept.unpersist()
        raise
    return Acquired(frame=kept, measured=measured)


def to_arrow_table(frame: DataFrame) -> pa.Table:
    """The frame's rows. Columns are taken as nullable: Spark fails on a null struct whose fields take no nulls."""
    return frame.to(nullable(frame.schema)).toArrow()


def estimated_bytes(frame: DataFrame) -> int | None:
    """Spark's estimate of the frame's size, from the text of its plan; None when it has none.

    The only way to the optimizer's statistics that also works over Spark Connect.
    """
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain(mode="cost")
    found = _SIZE.search(text.getvalue())
    return int(float(found[1]) * _UNITS[found[2] or ""]) if found else None


def _rewrite_fits(partitions: set[str], checked: Checked) -> bool:
    """Whether driver threads are to rewrite what the batch may touch."""
    if not checked.semantics.match:
        return True
    return _bytes_of(checked.slices(partitions)) <= checked.settings.spread.near_rewrite


def _bytes_of(slices: Slices) -> int:
    return sum(s.base.size for part in slices.values() for s in part if s.base is not None)


def write(session: SparkSession, acquired: Acquired, job: WriteJob, phases: Phases) -> tuple[WriteJob, Outcome]:
    """Write the batch as data files. Nothing is published yet."""
    if acquired.rows is not None:
        return write_near(job, acquired.rows, phases)
    assert acquired.frame is not None
    if acquired.measured is None:
        return _bulk_spread(acquired.frame, job, phases)
    return _write_spread(session, acquired, job, phases)


@dataclass(frozen=True, slots=True)
class SpreadPlan:
    """A spread batch with the plan for it.

    hits  where the keys are that the table holds, persisted; None: nowhere
    """

    profile: Mapping[str, PartitionProfile]
    plan: WritePlan
    hits: DataFrame | None
    index: IndexStats

    @property
    def few_hits(self) -> bool:
        """Whether the hits may be sent to every executor; one takes about 200 bytes as a row."""
        found = sum(sum(rows.updates.values()) for rows in self.profile.values())
        return 200 * found <= spread.BROADCAST_KEYS

    def release(self) -> None:
        if self.hits is not None:
            self.hits.unpersist()


def plan_spread(session: SparkSession, acquired: Acquired, checked: Checked, state: TableState) -> SpreadPlan:
    """Look keys up, decide which task each row goes to."""
    assert acquired.frame is not None
    assert acquired.measured is not None
    semantics, settings, measured = checked.semantics, checked.settings, acquired.measured
    slices = state.slices(set(measured.rows))
    files = {p: [s.base for s in part if s.base is not None] for p, part in slices.items()}
    files = {p: part for p, part in files.items() if part}
    hits: DataFrame | None = None
    updates: Mapping[str, Mapping[str, int]] = {}
    index = IndexStats()
    if semantics.locate and files:
        hits, updates, index = spread.locate(
            session, state.storage, acquired.frame, measured, files, settings.write.index, settings.bloom
        )
    rows = spread.profile(measured, updates, not semantics.delete)
    plan = plan_write(
        rows,
        {s.group: s for part in slices.values() for s in part},
        lambda partition: semantics.small_files(slices.get(partition, ()), settings.sizing),
        settings.sizing,
        state.record_size(settings.sizing),
        new_file_id,
    )
    return SpreadPlan(rows, plan, hits, index)


def _write_spread(session: SparkSession, acquired: Acquired, job: WriteJob, phases: Phases) -> tuple[WriteJob, Outcome]:
    assert acquired.frame is not None
    assert acquired.measured is not None
    checked, measured = job.checked, acquired.measured
    with phases.time("locate"):
        planned = plan_spread(session, acquired, checked, job.state)
    try:
        job = job.with_plan(planned.plan)
        stats: list[WriteStat] = []
        if planned.plan.tasks:
            delete = checked.semantics.delete
            with phases.time("write"):
                placed = spread.place(
                    session, acquired.frame, planned.hits, planned.plan, planned.few_hits, drop_new=delete
                )
                run = partial(run_task, job.spec, checked.rule, checked.semantics)
                stats, taken = spread.run_tasks(placed, planned.plan.tasks, run)
            if taken != measured.total and not delete:
                raise WriteConflict(
                    f"{measured.total} rows were counted and {taken} arrived at their tasks: the input gave other rows "
                    "when Spark evaluated it again. Write it to storage first, or make it deterministic."
                )
        return job, Outcome(stats, frozenset(measured.rows), planned.index, SPREAD)
    finally:
        planned.release()


def _bulk_spread(frame: DataFrame, job: WriteJob, phases: Phases) -> tuple[WriteJob, Outcome]:
    options = job.checked.settings.write
    keys = (PARTITION_PATH, RECORD_KEY)
    kept: DataFrame | None = None
    if options.bulk_sort is BulkInsertSort.GLOBAL_SORT:
        kept = frame = spread.persist(frame)  # a sort looks at its input twice: for the ranges, then for the rows
        count = options.bulk_parallelism
        frame = frame.repartitionByRange(count, *keys).sortWithinPartitions(*keys) if count else frame.orderBy(*keys)
    else:
        frame = frame.repartition(options.bulk_parallelism) if options.bulk_parallelism else frame
        if options.bulk_sort is BulkInsertSort.PARTITION_SORT:
            frame = frame.sortWithinPartitions(*keys)
    job = job.with_plan(None)
    try:
        with phases.time("write"):
            stats, _ = spread.run_stream(frame, partial(write_stream, job.spec, job.checked.rule))
    finally:
        if kept is not None:
            kept.unpersist()
    return job, Outcome(stats, frozenset(stat.partition or "" for stat in stats), IndexStats(), SPREAD)
