"""What an upsert would do, found out with Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.display.displayed import Displayed
from hoodie.display.summary import Column, Kind, Summary, summary
from hoodie.index.pruning import IndexStats
from hoodie.model.meta import PARTITION_PATH
from hoodie.plan.write import PartitionProfile, WritePlan
from hoodie.spark.write.batch import acquire, plan_on_executors
from hoodie.spark.write.run import CheckedBatch
from hoodie.writing.driver import fits_driver, plan_on_driver, thread_pool
from hoodie.writing.result import Phases
from hoodie.writing.run import CheckedBatch
from hoodie.writing.task_results import DRIVER, EXECUTORS


@dataclass(frozen=True, slots=True, repr=False)
class WriteExplanation(Displayed):
    """The plan of a write that has not happened. New file groups have ids that the real write will not have."""

    profile: Mapping[str, PartitionProfile]  # by partition path
    plan: WritePlan
    route: str  # the engine: "driver" or "executors"
    index_type: str
    index: IndexStats
    index_why: str = ""  # why it is this index

    def __str__(self) -> str:
        inserts = sum(rows.inserts for rows in self.profile.values())
        updates = sum(sum(rows.updates.values()) for rows in self.profile.values())
        lines = [
            f"upsert of {inserts} new and {updates} present keys in {len(self.profile)} partitions, {self.route}",
            f"index {self.index_type} ({self.index_why}): {self.index}",
            f"{len(self.plan.tasks)} tasks read {self.plan.bytes_read} bytes; a record is taken to need "
            f"{self.plan.record_size} bytes",
        ]
        for task in self.plan.tasks:
            what = "new file group" if task.slice is None else f"{task.kind} {task.group.file_id}"
            lines.append(
                f"  {task.group.partition or '(no partition)'}: {what}: {task.updates} updates, {task.inserts} inserts"
            )
        return "\n".join(lines)

    def _summary(self) -> Summary:
        rows = (
            (
                task.group.partition,
                "new file group" if task.slice is None else f"{task.kind} {task.group.file_id}",
                task.updates,
                task.inserts,
                task.bytes_read,
            )
            for task in self.plan.tasks
        )
        return summary(str(self).partition("\n")[0], _COLUMNS, rows, len(self.plan.tasks))


_COLUMNS = (
    Column("partition"),
    Column("task"),
    Column("updates", Kind.COUNT),
    Column("inserts", Kind.COUNT),
    Column("bytes read", Kind.BYTES),
)


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
