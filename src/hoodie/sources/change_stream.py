"""`readStream.format("hudi")`: each micro-batch has the rows that a range of commits changed, or their change data.

Offsets are instants (`hoodie.reading.changes.offsets`). The reader lives in a worker of Spark's planner as long as its
query; what it raises carries its class in its text (`hoodie.spark.worker_errors`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from hoodie.config.options import Options
from hoodie.config.read import StreamOptions
from hoodie.errors import SchemaMismatch
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.reading.changes.offsets import (
    StreamOffset,
    begin_of,
    first_offset,
    next_offset,
    range_settings,
    read_offset,
)
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.table_schema import read_schema
from hoodie.schema.schema import column_difference
from hoodie.sources.slice_tasks import slice_tasks, task_rows
from hoodie.sources.stream_schema import of_change_data, stream_settings
from hoodie.spark.types import source_schema
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.storage import storage_at
from hoodie.table.state import TableState, load_state
from hoodie.view.incremental import EARLIEST, LATEST


def _refuse_lost_columns(began_with: pa.Schema, state: TableState) -> None:
    """Raises SchemaMismatch where the table has no longer all columns, nested ones too, that the stream began with"""
    schema = read_schema(state)
    lost = [name for name in began_with.names if name not in schema.names]
    lost += [path for path in column_difference(began_with, schema).missing if path not in lost]
    if lost:
        raise SchemaMismatch(
            f"the table no longer has {', '.join(lost)}: dropped or renamed since the stream began. A stream keeps the "
            "columns that the table had then: start the stream again, with its checkpoint"
        )


class ChangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The changed rows of a table, each as it was at the end of its micro-batch; with the format cdc, each change."""

    def __init__(self, path: str, options: Options, schema: StructType) -> None:
        self.storage, self.settings = storage_at(path, options), stream_settings(options)
        self.stream, self.of_change_data = options.read(StreamOptions), of_change_data(options)
        self.target = source_schema(schema)
        self.first: StreamOffset | None = None
        self.ends = False
        self.last: StreamOffset | None = None

    def initialOffset(self) -> dict[str, str]:
        with mark_worker_errors():
            if self.first is None:  # Spark may ask again
                self.first = first_offset(self._state(), self.stream.start.strip(), self.settings.incremental)
            return self.first.as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.stream.most_commits
        return ReadMaxFiles(most) if most else ReadAllAvailable()  # what it counts is commits

    def prepareForTriggerAvailableNow(self) -> None:
        self.ends = True

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, str]:
        with mark_worker_errors():
            state = self._state()
            most = limit.max_files if isinstance(limit, ReadMaxFiles) else 0
            began = read_offset(start, state, self.settings.incremental)
            how = began.counted(self.settings.incremental)
            if self.ends and self.last is None:
                self.last = first_offset(state, LATEST, how)
            return next_offset(state, began, how, most, self.last).as_json()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        with mark_worker_errors():
            state, how = self._state(), self.settings.incremental
            up_to = read_offset(end, state, how)
            begin = begin_of(read_offset(start, state, how), up_to)
            if begin == up_to.position:
                return []
            settings = range_settings(replace(self.settings, incremental=up_to.counted(how)))
            begin = begin or EARLIEST
            if self.of_change_data:
                return slice_tasks(plan_change_data(state, begin, up_to.position, settings))
            _refuse_lost_columns(self.target, state)
            read = Read(kind=ScanKind.CHANGES, begin=begin, end=up_to.position, columns=self.target.names)
            return slice_tasks(plan_read(state, read, settings))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with mark_worker_errors():
            yield from task_rows(partition, self.target)

    def _state(self) -> TableState:
        return load_state(self.storage)
