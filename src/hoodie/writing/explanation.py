"""What an upsert would do, as a value to look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.display.render import Displayed
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, summary
from hoodie.index.pruning import IndexStats
from hoodie.plan.write import PartitionProfile, WritePlan, WriteTask
from hoodie.schema.schema import NO_DIFFERENCE, ColumnDifference
from hoodie.writing.planning import EXECUTORS, fits_driver
from hoodie.writing.result import Phases
from hoodie.writing.run import IncomingBatch


@dataclass(frozen=True, slots=True, repr=False)
class WriteExplanation(Displayed):
    """The plan of a write that has not happened. New file groups have ids that the real write will not have."""

    profile: Mapping[str, PartitionProfile]  # by partition path
    plan: WritePlan
    route: str  # the engine: "driver" or "executors"
    index_type: str
    index: IndexStats
    index_why: str = ""  # why it is this index
    difference: ColumnDifference = NO_DIFFERENCE
    alone: bool = field(default=False, repr=False)  # this process does it all, and nobody asks who of two would

    @property
    def missing_columns(self) -> tuple[str, ...]:
        """Columns of the table that the batch lacks; nested ones dotted."""
        return self.difference.missing

    @property
    def new_columns(self) -> tuple[str, ...]:
        """Columns of the batch that the table lacks; nested ones dotted."""
        return self.difference.new

    def __str__(self) -> str:
        inserts = sum(rows.inserts for rows in self.profile.values())
        updates = sum(sum(rows.updates.values()) for rows in self.profile.values())
        lines = [
            f"upsert of {inserts} new and {updates} present keys in {len(self.profile)} partitions"
            f"{'' if self.alone else f', {self.route}'}",
            f"index {self.index_type} ({self.index_why}): {self.index}",
            f"{len(self.plan.tasks)} tasks read {self.plan.bytes_read} bytes; a record is taken to need "
            f"{self.plan.record_size} bytes",
            *([self.difference.summary] if self.difference.summary else []),
        ]
        for task in self.plan.tasks:
            where = task.group.partition or "(no partition)"
            lines.append(f"  {where}: {_what(task)}: {task.updates} updates, {task.inserts} inserts")
        return "\n".join(lines)

    def _summary(self) -> ResultSummary:
        rows = (
            (task.group.partition, _what(task), task.updates, task.inserts, task.bytes_read) for task in self.plan.tasks
        )
        return summary(str(self).partition("\n")[0], _COLUMNS, rows, len(self.plan.tasks))


_COLUMNS = (
    ShownColumn("partition"),
    ShownColumn("task"),
    ShownColumn("updates", ColumnKind.COUNT),
    ShownColumn("inserts", ColumnKind.COUNT),
    ShownColumn("bytes read", ColumnKind.BYTES),
)


def _what(task: WriteTask) -> str:
    return "new file group" if task.slice is None else f"{task.kind} {task.group.file_id}"


def explain(batch: IncomingBatch) -> WriteExplanation:
    """Acquire, locate and plan, as the write would."""
    write = batch.write
    held = batch.acquire(write, Phases())
    try:
        located = held.locate(write, write.files_of(held.partitions))
        located.release()
        planned = located.planned
        spreads = held.spread is not None and not fits_driver(write, planned.plan)
        route = EXECUTORS if spreads else held.route
        return WriteExplanation(
            planned.profile,
            planned.plan,
            route,
            write.index.name,
            planned.index,
            write.why,
            write.difference,
            alone=batch.alone,
        )
    finally:
        held.release()
