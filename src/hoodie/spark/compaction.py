"""Compaction by a session: tasks on driver or executors, one for each file slice."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from hoodie.display.progress import progress
from hoodie.model.commit import WriteStat
from hoodie.services.compaction.job import Compaction, CompactionJob, CompactionTask
from hoodie.services.compaction.run import run_on_driver, run_operation
from hoodie.spark.tasks import check_workers, run_per_item
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.spark.write.executors import STATS, reports_of, task_report
from hoodie.writing.index_updates import TaskResult
from hoodie.writing.planning import rows_and_bytes


def carry_out(session: SparkSession, job: CompactionJob) -> Sequence[WriteStat | None]:
    """Carry out the tasks of a job: a small one by threads of the driver, as small writes are, others on executors."""
    return run_on_driver(job) if job.on_driver else compact_on_executors(session, job)


def compact_on_executors(session: SparkSession, job: CompactionJob) -> list[WriteStat]:
    """Carry out the tasks of a job, each as a Spark task. Returns the statistics of the winning attempts."""
    if not job.tasks:
        return []
    check_workers(session)
    work = [(job.compaction, task) for task in job.tasks]
    with progress("compaction on executors", len(work), show=job.show_progress) as advance:
        stats = list(reports_of(run_per_item(session, work, _run, STATS)).stats)
        advance(len(work), *rows_and_bytes(stats))  # Spark tells the driver nothing before its job ends
    return stats


def _run(work: tuple[Compaction, CompactionTask]) -> Iterator[pa.RecordBatch]:
    compaction, task = work
    context = TaskContext.get()
    with mark_worker_errors():
        stat = run_operation(compaction, task, context.taskAttemptId() if context else 0)
    stats: Sequence[WriteStat] = () if stat is None else (stat,)
    yield task_report(task.number, 0, TaskResult(stats))
