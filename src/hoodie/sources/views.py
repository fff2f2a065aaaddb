"""The Python data source behind `CREATE TEMPORARY VIEW … USING hudi OPTIONS (path '…')`: rows as Arrow, read by tasks.

It reads a table anew for each query, and about half as fast as `table.snapshot()`. It does not write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hoodie.config.datasource import check_options
from hoodie.config.read import IncrementalFormat, QueryOptions, QueryType
from hoodie.errors import InvalidInput, InvalidOption, UnsupportedTable
from hoodie.model.files import FileSlice
from hoodie.reading.change_data import group_changes
from hoodie.reading.change_data_plan import ChangeData, ChangeReader, plan_change_data
from hoodie.reading.file_slice_reader import SliceReader, base_batches, merged_batches
from hoodie.reading.scan import Scan, ScanKind, plan_scan
from hoodie.schema.conform import conform
from hoodie.sources.answers import job_options
from hoodie.spark.read.merged_slices import pack, pack_by
from hoodie.spark.types import nullable, to_spark
from hoodie.storage import storage_for
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.view.change_data import ChangeStep


@dataclass
class _Slices(InputPartition):
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
class _Changes(InputPartition):
    """What a task reads of change data: the steps of some file groups."""

    reader: ChangeReader
    groups: tuple[tuple[ChangeStep, ...], ...]


class HudiSource(DataSource):
    """A table of Hudi for Spark's SQL."""

    @classmethod
    def name(cls) -> str:
        return "hudi"

    def schema(self) -> StructType:
        planned = _planned(self.options, None)
        return nullable(to_spark(planned.schema if isinstance(planned, Scan) else planned.reader.schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        raise UnsupportedTable(
            "a view USING hudi cannot be written to: hoodie.sql(spark, 'INSERT INTO …') takes the statement, and "
            "df.write.format('hudi') after hoodie.register(spark), or hoodie.write(df, path, options), a DataFrame"
        )


class OrgApacheHudiSource(HudiSource):
    """The same by the name of Hudi's package."""

    @classmethod
    def name(cls) -> str:
        return "org.apache.hudi"


class HoodieSource(HudiSource):
    """The same by this library's name."""

    @classmethod
    def name(cls) -> str:
        return "hoodie"


SOURCES = {source.name(): source for source in (HudiSource, OrgApacheHudiSource, HoodieSource)}


class _Reader(DataSourceReader):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options, self.names = options, schema.names
        self.target = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> Sequence[InputPartition]:
        scan = _planned(self.options, self.names)
        if isinstance(scan, ChangeData):
            parts = pack_by(scan.groups, lambda steps: sum(step.size for step in steps), os.cpu_count() or 1)
            return [_Changes(scan.reader, tuple(part)) for part in parts]
        return [
            _Slices(scan.state.storage, scan.schema, scan.read, tuple(part), scan.reader, scan.rows_kept)
            for part in pack(scan.slices, os.cpu_count() or 1)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, _Changes):
            for steps in partition.groups:
                for rows in group_changes(partition.reader, steps):
                    for batch in conform(rows.select(self.names), self.target).to_batches():
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=self.target)
            return
        if not isinstance(partition, _Slices):  # Spark makes a partition of its own where there are none
            return
        columns = list(partition.columns)
        wanted = pa.schema([partition.schema.field(name) for name in columns])
        for slice_ in partition.slices:
            if slice_.logs:
                assert partition.reader is not None
                batches = merged_batches(partition.reader, slice_, columns)
            else:
                assert slice_.base is not None
                batches = base_batches(partition.storage, slice_.base, wanted)
            for rows in batches:
                kept = (rows if partition.keep is None else rows.filter(partition.keep)).select(self.names)
                for batch in conform(kept, self.target).to_batches():
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=self.target)


def _planned(options: Mapping[str, str], columns: Sequence[str] | None) -> Scan | ChangeData:
    """The read that the options ask for; their keys come in small letters.

    Raises InvalidInput without a path; InvalidOption
    """
    path = options.get("path")
    if not path:
        raise InvalidInput(
            "no path: CREATE TEMPORARY VIEW … USING hudi OPTIONS (path '/path/of/the/table'). Of a table in Spark's "
            "catalog with provider hudi Spark hands over no path; use hoodie.sql with hoodie.register_table"
        )
    given = check_options(job_options(options))
    query = given.read(QueryOptions)
    state = load_state(storage_for(path))
    if query.query is QueryType.INCREMENTAL:
        if not query.begin:
            raise InvalidOption("an incremental query needs hoodie.datasource.read.begin.instanttime")
        if query.format is IncrementalFormat.CDC:
            return plan_change_data(state, query.begin, query.end or None, given)
        return plan_scan(
            state, ScanKind.CHANGES, begin=query.begin, end=query.end or None, columns=columns, options=given
        )
    kind = ScanKind.READ_OPTIMIZED if query.query is QueryType.READ_OPTIMIZED else ScanKind.SNAPSHOT
    return plan_scan(state, kind, as_of=query.as_of or None, columns=columns, options=given)
