"""What an upsert would do, found out with Spark."""

from __future__ import annotations

from hoodie.spark.write.batch import Acquired, plan_on_executors
from hoodie.writing.driver import fits_driver
from hoodie.writing.explanation import WriteExplanation, explained, plan_of_rows
from hoodie.writing.result import Phases
from hoodie.writing.run import CheckedBatch
from hoodie.writing.task_results import DRIVER, EXECUTORS


def explain(batch: CheckedBatch) -> WriteExplanation:
    """Acquire, locate and plan, as the write would."""
    checked = batch.checked
    acquired = batch.acquire(checked, Phases())
    assert isinstance(acquired, Acquired)
    try:
        if acquired.rows is not None:
            planned = plan_of_rows(checked, acquired.rows)
            return explained(checked, planned, DRIVER if fits_driver(checked, planned.plan) else EXECUTORS)
        assert acquired.staged is not None
        found = plan_on_executors(acquired.session, acquired.staged, checked, checked.state)
        found.release()
        return explained(checked, found.planned, EXECUTORS)
    finally:
        acquired.release()
