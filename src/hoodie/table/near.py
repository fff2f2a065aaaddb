"""A write by threads of this process: the whole batch is here as Arrow, and each task rewrites one file group."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config.write import BulkInsertSort
from hoodie.errors import InvalidInput
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import WriteStat
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import WritePlan, WriteTask, plan_write
from hoodie.table.batch import Batch, Located, assign, locate, order_by_partition, profile, unlocated
from hoodie.table.combine import combine
from hoodie.table.job import Checked, WriteJob
from hoodie.table.outcome import Outcome
from hoodie.table.partitions import require_partition_paths
from hoodie.table.result import Phases
from hoodie.table.semantics import Settings
from hoodie.table.state import TableFiles, TableState
from hoodie.table.tasks import new_file_id, run_task, write_stream

NEAR = "near"


@dataclass(frozen=True, slots=True)
class NearPlan:
    """A batch with the plan for it.

    insert  bool[n], which rows are new to the table
    """

    batch: Batch
    located: Located
    insert: npt.NDArray[np.bool_]
    plan: WritePlan


def thread_pool(settings: Settings) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(settings.spread.near_threads or os.cpu_count() or 1, thread_name_prefix="hoodie")


def check_keys(rows: pa.Table) -> None:
    """Refuse rows without a record key, a partition path, or a folder to be in. Raises InvalidInput saying how many."""
    refuse_bad_keys(rows.column(RECORD_KEY).null_count, rows.column(PARTITION_PATH).null_count)
    require_partition_paths(rows.column(PARTITION_PATH).unique().to_pylist())


def refuse_bad_keys(keys: int, paths: int) -> None:
    """Raises InvalidInput unless both counts of bad rows are zero."""
    if keys:
        raise InvalidInput(
            f"{keys} rows have a record key that is null or empty. Filter them out, or fill the key columns."
        )
    if paths:
        raise InvalidInput(
            f"{paths} rows have a partition value that cannot be read as the time it should be; see the formats in "
            "hoodie.keygen.timebased.input.dateformat."
        )


def plan_near(
    checked: Checked, state: TableState, rows: pa.Table, files: TableFiles, pool: ThreadPoolExecutor
) -> NearPlan:
    """Combine duplicates, look keys up, decide which task each row goes to.

    rows    the user's columns with `_hoodie_record_key` and `_hoodie_partition_path`
    files   what a writer sees of the batch's partitions
    """
    semantics, settings, rule = checked.semantics, checked.settings, checked.rule
    batch = order_by_partition(combine(rows, rule, semantics))
    if semantics.locate:
        located = locate(state.storage, batch, files.bases, settings.write.index, settings.bloom, pool)
    else:
        located = unlocated()
    insert = located.inserts(len(batch.rows))
    if semantics.delete:
        insert[:] = False
    elif semantics.locate:  # the delete of a key that is not there has no effect
        insert &= ~rule.is_delete(batch.rows)
    plan = plan_write(
        profile(batch, located, insert),
        {slice_.group: slice_ for part in files.slices.values() for slice_ in part},
        lambda partition: semantics.small_files(files.slices.get(partition, ()), settings.sizing),
        settings.sizing,
        state.record_size(settings.sizing),
        new_file_id,
        semantics.works,
    )
    return NearPlan(batch, located, insert, plan)


def write_near(job: WriteJob, rows: pa.Table, phases: Phases) -> tuple[WriteJob, Outcome]:
    """Write the keyed rows as data files. Nothing is published yet."""
    checked = job.checked
    batch_partitions = frozenset(rows.column(PARTITION_PATH).unique().to_pylist())
    if checked.semantics.bulk:
        rows = combine(rows, checked.rule, checked.semantics)
        if checked.settings.write.bulk_sort is not BulkInsertSort.NONE:
            rows = rows.sort_by([(PARTITION_PATH, "ascending"), (RECORD_KEY, "ascending")])
        job = job.with_plan(None)
        with phases.time("write"):
            stats = write_stream(job.spec, checked.rule, iter(rows.to_batches()), "0-0-0")
        return job, Outcome(stats, batch_partitions, IndexStats(), NEAR)
    with thread_pool(checked.settings) as pool:
        with phases.time("locate"):
            needed = checked.semantics.locate or checked.settings.sizing.small_limit > 0
            files = checked.files(job.state, batch_partitions) if needed else TableFiles()
            planned = plan_near(checked, job.state, rows, files, pool)
        job = job.with_plan(planned.plan)
        with phases.time("write"):
            run = partial(run_task, job.spec, checked.rule, checked.semantics)
            stats = _run(planned, run, pool)
    return job, Outcome(stats, batch_partitions, planned.located.stats, NEAR)


def _run(
    planned: NearPlan, run: Callable[[WriteTask, pa.Table, str], Sequence[WriteStat]], pool: ThreadPoolExecutor
) -> list[WriteStat]:
    """Run the tasks. The first failure is raised once the tasks that had begun have ended."""
    calls = []
    for number, positions in assign(planned.batch, planned.located, planned.insert, planned.plan):
        rows = planned.batch.rows
        part = rows if len(positions) == len(rows) else rows.take(pa.array(positions))
        calls.append(pool.submit(run, planned.plan.tasks[number], part, f"{number}-0-0"))
    try:
        return [stat for call in calls for stat in call.result()]
    except BaseException:
        for call in calls:
            call.cancel()
        raise
