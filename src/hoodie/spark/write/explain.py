"""What an upsert would do, as a value to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.index.pruning import IndexStats
from hoodie.lookup.batch import profile
from hoodie.model.meta import PARTITION_PATH
from hoodie.plan.write import PartitionProfile, WritePlan
from hoodie.spark.write.batch import EXECUTORS, acquire, plan_on_executors
from hoodie.spark.write.run import CheckedBatch
from hoodie.writing.driver import DRIVER, fits_driver, plan_on_driver, thread_pool
from hoodie.writing.result import Phases


@dataclass(frozen=True, slots=True)
class WriteExplanation:
    """The plan of a write that has not happened. New file groups have ids that the real write will not have."""

    profile: Mapping[str, PartitionProfile]  # by partition path
    plan: WritePlan
    route: str  # "driver" or "executors"
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


def explain(batch: CheckedBatch) -> WriteExplanation:
    """Acquire, locate and plan, as the write would."""
    checked = batch.checked
    acquired = acquire(batch.session, batch.frame, checked, Phases())
    try:
        index_type, why = checked.index.name, checked.index_why
        if acquired.rows is not None:
            partitions = set(acquired.rows.column(PARTITION_PATH).unique().to_pylist())
            with thread_pool(checked.settings) as pool:
                near = plan_on_driver(
                    checked, checked.state, acquired.rows, checked.files(checked.state, partitions), pool
                )
            rows = profile(near.batch, near.located, near.insert)
            route = DRIVER if fits_driver(checked, near.plan) else EXECUTORS
            return WriteExplanation(rows, near.plan, route, index_type, near.located.stats, why)
        assert acquired.staged is not None
        spread = plan_on_executors(batch.session, acquired.staged, checked, checked.state)
        try:
            return WriteExplanation(spread.profile, spread.plan, EXECUTORS, index_type, spread.index, why)
        finally:
            spread.release()
    finally:
        acquired.release()
