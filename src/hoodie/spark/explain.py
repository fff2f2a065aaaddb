"""What an upsert would do, as a value to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from hoodie.index.pruning import IndexStats
from hoodie.plan.write import PartitionProfile, WritePlan
from hoodie.spark.write import SPREAD, Acquired, plan_spread
from hoodie.table.batch import profile
from hoodie.table.job import Checked
from hoodie.table.near import NEAR, plan_near, thread_pool


@dataclass(frozen=True, slots=True)
class WriteExplanation:
    """The plan of a write that has not happened. New file groups have ids that the real write will not have."""

    profile: Mapping[str, PartitionProfile]  # by partition path
    plan: WritePlan
    route: str  # "near" or "spread"
    index_type: str
    index: IndexStats

    def __str__(self) -> str:
        inserts = sum(rows.inserts for rows in self.profile.values())
        updates = sum(sum(rows.updates.values()) for rows in self.profile.values())
        lines = [
            f"upsert of {inserts} new and {updates} present keys in {len(self.profile)} partitions, {self.route}",
            f"index {self.index_type}: {self.index}",
            f"{len(self.plan.tasks)} tasks read {self.plan.bytes_read} bytes; a record is taken to need "
            f"{self.plan.record_size} bytes",
        ]
        for task in self.plan.tasks:
            what = "new file group" if task.slice is None else f"rewrite {task.group.file_id}"
            lines.append(
                f"  {task.group.partition or '(no partition)'}: {what}: {task.updates} updates, {task.inserts} inserts"
            )
        return "\n".join(lines)


def explain(session: SparkSession, acquired: Acquired, checked: Checked) -> WriteExplanation:
    """Locate and plan, as the write would."""
    index_type = checked.settings.write.index.value
    if acquired.rows is not None:
        partitions = set(acquired.rows.column("_hoodie_partition_path").unique().to_pylist())
        with thread_pool(checked.settings) as pool:
            planned = plan_near(checked, checked.state, acquired.rows, checked.slices(partitions), pool)
        rows = profile(planned.batch, planned.located, planned.insert)
        return WriteExplanation(rows, planned.plan, NEAR, index_type, planned.located.stats)
    spread = plan_spread(session, acquired, checked, checked.state)
    try:
        return WriteExplanation(spread.profile, spread.plan, SPREAD, index_type, spread.index)
    finally:
        spread.release()
