"""What an upsert would do, as a value to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie.display.displayed import Displayed
from hoodie.display.summary import Column, Kind, Summary, summary
from hoodie.index.pruning import IndexStats
from hoodie.plan.write import PartitionProfile, WritePlan, WriteTask
from hoodie.writing.driver import partitions_of, plan_on_driver, thread_pool
from hoodie.writing.planning import BatchPlan
from hoodie.writing.write import Write


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
            where = task.group.partition or "(no partition)"
            lines.append(f"  {where}: {_what(task)}: {task.updates} updates, {task.inserts} inserts")
        return "\n".join(lines)

    def _summary(self) -> Summary:
        rows = (
            (task.group.partition, _what(task), task.updates, task.inserts, task.bytes_read) for task in self.plan.tasks
        )
        return summary(str(self).partition("\n")[0], _COLUMNS, rows, len(self.plan.tasks))


_COLUMNS = (
    Column("partition"),
    Column("task"),
    Column("updates", Kind.COUNT),
    Column("inserts", Kind.COUNT),
    Column("bytes read", Kind.BYTES),
)


def _what(task: WriteTask) -> str:
    return "new file group" if task.slice is None else f"{task.kind} {task.group.file_id}"


def plan_of_rows(write: Write, rows: pa.Table) -> BatchPlan:
    """Locate and plan keyed rows, as driver threads would write them."""
    files = write.files_of(partitions_of(rows))
    with thread_pool(write.settings) as pool:
        return plan_on_driver(write, rows, files, pool).planned


def explained(write: Write, planned: BatchPlan, route: str) -> WriteExplanation:
    """A plan as people see it."""
    index, why = write.index.name, write.why
    return WriteExplanation(planned.profile, planned.plan, route, index, planned.index, why)
