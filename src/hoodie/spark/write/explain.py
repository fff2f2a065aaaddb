"""What an upsert would do, found out with Spark."""

from __future__ import annotations

from hoodie.spark.write.batch import Acquired, plan_on_executors
from hoodie.writing.driver import fits_driver
from hoodie.writing.explanation import WriteExplanation, explained, plan_of_rows
from hoodie.writing.result import Phases
from hoodie.writing.run import IncomingBatch
from hoodie.writing.task_results import DRIVER, EXECUTORS


def explain(batch: IncomingBatch) -> WriteExplanation:
    """Acquire, locate and plan, as the write would."""
    write = batch.write
    acquired = batch.acquire(write, Phases())
    assert isinstance(acquired, Acquired)
    try:
        if acquired.rows is not None:
            planned = plan_of_rows(write, acquired.rows)
            return explained(write, planned, DRIVER if fits_driver(write, planned.plan) else EXECUTORS)
        assert acquired.staged is not None
        found = plan_on_executors(acquired.session, acquired.staged, write)
        found.release()
        return explained(write, found.planned, EXECUTORS)
    finally:
        acquired.release()
