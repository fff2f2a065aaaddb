"""Putting entries of an HBase index again by Spark, after a rollback or restore: one task for each file slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from hoodie.lookup.index_repair import Repair, RepairJob, RepairTask, repair_near, repair_slice
from hoodie.spark.tasks import check_workers, collect, run_per_item
from hoodie.spark.worker_errors import mark_worker_errors

_PUT = StructType([StructField("put", LongType())])


def put_again(session: SparkSession, job: RepairJob) -> Sequence[int]:
    """Carry out the tasks of a job: a small one by threads of the driver, others on executors."""
    if job.on_driver or not job.tasks:
        return repair_near(job)
    check_workers(session)
    work = [(job.repair, task) for task in job.tasks]
    put: list[int] = collect(run_per_item(session, work, _run, _PUT)).column("put").to_pylist()
    return put


def _run(work: tuple[Repair, RepairTask]) -> Iterator[pa.RecordBatch]:
    with mark_worker_errors():
        put = repair_slice(*work)
    yield pa.record_batch({"put": pa.array([put], pa.int64())})
