"""What tasks of the Python data source read: file slices of a planned read, as Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from hoodie.model.files import FileSlice
from hoodie.reading.file_slice_reader import SliceReader, base_batches, merged_batches
from hoodie.reading.scan import Scan
from hoodie.schema.conform import conform
from hoodie.spark.read.merged_slices import pack
from hoodie.storage.protocol import Storage


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


def slice_tasks(scan: Scan) -> list[InputPartition]:
    """The tasks of a read."""
    return [
        SliceTask(scan.state.storage, scan.schema, scan.read, tuple(part), scan.reader, scan.rows_kept)
        for part in pack(scan.slices, os.cpu_count() or 1)
    ]


def task_rows(task: InputPartition, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in the columns and types that Spark was told of."""
    if not isinstance(task, SliceTask):  # Spark makes a partition of its own where there are none
        return
    for slice_ in task.slices:
        for rows in _batches(task, slice_, list(task.columns)):
            kept = (rows if task.keep is None else rows.filter(task.keep)).select(target.names)
            for batch in conform(kept, target).to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=target)


def _batches(task: SliceTask, slice_: FileSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
    if slice_.logs:
        assert task.reader is not None  # a read with logs has one
        return merged_batches(task.reader, slice_, columns)
    assert slice_.base is not None  # a slice without logs has a base file
    return base_batches(task.storage, slice_.base, pa.schema([task.schema.field(name) for name in columns]))
