"""Putting entries of an index outside the table again by Spark, after a rollback or restore: a task a file slice."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from hoodie.lookup.index_follow import RepairJob, repair_near
from hoodie.spark.tasks import check_workers, collect, run_per_item
from hoodie.spark.worker_errors import mark_worker_errors

_PUT = StructType([StructField("put", LongType())])


def put_again(session: SparkSession, job: RepairJob) -> Sequence[int]:
    """Carry out the tasks of a job: a small one by threads of the driver, others on executors."""
    if job.on_driver or not job.tasks:
        return repair_near(job)
    check_workers(session)
    put: list[int] = collect(run_per_item(session, job.tasks, partial(_run, job.put), _PUT)).column("put").to_pylist()
    return put


def _run(call: Callable[[Any], int], task: Any) -> Iterator[pa.RecordBatch]:
    with mark_worker_errors():
        put = call(task)
    yield pa.record_batch({"put": pa.array([put], pa.int64())})
