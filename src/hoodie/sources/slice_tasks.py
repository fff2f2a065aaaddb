"""What tasks of the Python data source read, as Arrow: file slices of a planned read, or change data."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from hoodie.errors import SchemaMismatch, clause
from hoodie.model.files import FileSlice
from hoodie.reading.changes.data import group_changes
from hoodie.reading.changes.data_plan import ChangeData, ChangeReader
from hoodie.reading.scan import ScanPlan
from hoodie.reading.slices.reader import SliceReader, base_batches, merged_batches
from hoodie.schema.conform import conform
from hoodie.spark.read.merged_slices import pack, pack_by
from hoodie.storage.protocol import Storage
from hoodie.view.change_data import ChangeStep


@dataclass
class SliceTask(InputPartition):
    """What a task reads, and all that it needs to: Spark hands it nothing else of what the planner knows.

    columns  those that are read; `keep` may look at more than are given
    """

    storage: Storage
    schema: pa.Schema
    columns: tuple[str, ...]
    slices: tuple[FileSlice, ...]
    reader: SliceReader | None
    keep: pc.Expression | None


@dataclass
class ChangeTask(InputPartition):
    """What a task reads of change data: the steps of some file groups."""

    reader: ChangeReader
    groups: tuple[tuple[ChangeStep, ...], ...]


def slice_tasks(scan: ScanPlan | ChangeData) -> list[InputPartition]:
    """The tasks of a read."""
    if isinstance(scan, ChangeData):
        parts = pack_by(scan.groups, lambda steps: sum(step.size for step in steps), os.cpu_count() or 1)
        return [ChangeTask(scan.reader, tuple(part)) for part in parts]
    return [
        SliceTask(scan.state.storage, scan.schema, scan.read, tuple(part), scan.reader, scan.rows_kept)
        for part in pack(scan.slices, os.cpu_count() or 1)
    ]


def task_rows(task: InputPartition, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in the columns and types that Spark was told of.

    Raises SchemaMismatch when a column has a wider type by now, whose values do not fit
    """
    for rows in _tables(task):
        for batch in _typed(rows.select(target.names), target).to_batches():
            yield pa.RecordBatch.from_arrays(batch.columns, schema=target)


def _typed(rows: pa.Table, target: pa.Schema) -> pa.Table:
    try:
        return conform(rows, target, drop_extra=True)  # fields that structs got later
    except SchemaMismatch as problem:
        what = clause(problem)
        raise SchemaMismatch(
            f"{what}. A stream or view keeps the types that the table had when it began: start the stream again, "
            "with its checkpoint, or make the view again"
        ) from problem


def _tables(task: InputPartition) -> Iterator[pa.Table]:
    if isinstance(task, ChangeTask):
        for steps in task.groups:
            yield from group_changes(task.reader, steps)
    elif isinstance(task, SliceTask):  # Spark makes a partition of its own where there are none
        for slice_ in task.slices:
            for rows in _batches(task, slice_, list(task.columns)):
                yield rows if task.keep is None else rows.filter(task.keep)


def _batches(task: SliceTask, slice_: FileSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
    if slice_.logs:
        assert task.reader is not None  # a read with logs has one
        return merged_batches(task.reader, slice_, columns)
    assert slice_.base is not None  # a slice without logs has a base file
    return base_batches(task.storage, slice_.base, pa.schema([task.schema.field(name) for name in columns]))
