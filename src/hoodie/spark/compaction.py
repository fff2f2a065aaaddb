"""The tasks of a compaction on Spark's executors, one for each file slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from hoodie.model.commit import WriteStat
from hoodie.spark.problems import as_in_worker, told_to_driver
from hoodie.spark.spread import STATS, check_workers, report, reported
from hoodie.spark.stage import each
from hoodie.table.compaction import Compaction, CompactionJob, CompactionTask, run_operation


def compact_on_executors(session: SparkSession, job: CompactionJob) -> list[WriteStat]:
    """Carry out the tasks of a job. Returns the statistics of the winning attempts."""
    if not job.tasks:
        return []
    check_workers(session)
    with as_in_worker():
        work = [(job.compaction, task) for task in job.tasks]
        found = each(session, work, _run, STATS).toArrow()
    return reported(found)[0]


def _run(work: tuple[Compaction, CompactionTask]) -> Iterator[pa.RecordBatch]:
    compaction, task = work
    context = TaskContext.get()
    with told_to_driver():
        stat = run_operation(compaction, task, context.taskAttemptId() if context else 0)
    stats: Sequence[WriteStat] = () if stat is None else (stat,)
    yield report(task.number, 0, stats)
