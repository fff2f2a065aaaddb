"""The Python data source behind `CREATE TEMPORARY VIEW … USING hudi OPTIONS (path '…')` and `readStream`.

Views are read by tasks as Arrow, about half as fast as `table.snapshot()`. Filters are not pushed down: Spark 4.3 keeps
the reader of the last filtered query for the next one, which may have no filter.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hoodie.config.options import Options
from hoodie.config.read import IncrementalFormat, QueryOptions, QueryType, ReadSettings
from hoodie.errors import FileGone, InvalidOption
from hoodie.reading.changes.data_plan import ChangeData, plan_change_data
from hoodie.reading.scan import ScanKind, ScanPlan
from hoodie.reading.scan_plan import plan_scan
from hoodie.sources.answers import source_options
from hoodie.sources.change_stream import ChangeStream, stream_schema
from hoodie.sources.slice_tasks import slice_tasks, task_rows
from hoodie.sources.view_refresh import with_source
from hoodie.sources.view_writer import ViewWriter
from hoodie.spark.entries import noted_path
from hoodie.spark.types import all_nullable, to_spark
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.storage import storage_at
from hoodie.table.state import load_state


class HudiSource(DataSource):
    """A table of Hudi for Spark's SQL: a view by its options, an entry of the catalog by the note with its columns."""

    @classmethod
    def name(cls) -> str:
        return "hudi"

    def schema(self) -> StructType:
        path, options = source_options(self.options)
        if options.read(QueryOptions).as_of:
            planned = _scan(path, options, None)
            assert isinstance(planned, ScanPlan)  # change data has a begin, and no instant
            schema = all_nullable(to_spark(planned.schema))
        else:
            schema = stream_schema(path, options)
        return with_source(schema, self.name(), self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(_with_place(self.options, schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        path, options = source_options(self.options)
        return ChangeStream(path, options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        path, options = source_options(_with_place(self.options, schema))
        return ViewWriter(path, options, overwrite)


def _with_place(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """The options of a read or write, with the place of the table where the columns are those of an entry."""
    place = noted_path(schema)
    return dict(options) if place is None or "path" in options else {**options, "path": place}


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


_SOURCES = {source.name(): source for source in (HudiSource, OrgApacheHudiSource, HoodieSource)}


def register_source(session: SparkSession, name: str) -> bool:
    """Whether the session takes a data source of that name: not where a jar has it."""
    taken: dict[str, bool] = vars(session).setdefault("_hoodie_sources", {})
    if name not in taken:  # Spark warns of a second time
        try:
            session.dataSource.register(_SOURCES[name])
        except Exception as problem:  # Spark Connect's errors are of another base than classic Spark's
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(problem):
                raise
            taken[name] = False
        else:
            taken[name] = True
    return taken[name]


class _Reader(DataSourceReader):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.path, self.options = source_options(options)
        self.target = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> Sequence[InputPartition]:
        return slice_tasks(_scan(self.path, self.options, self.target.names))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with mark_worker_errors():
            try:
                yield from task_rows(partition, self.target)
            except (FileGone, FileNotFoundError) as gone:
                raise FileGone(
                    errno.ENOENT,
                    f"{gone}: the view shows the table as of its creation, and its files were cleaned since. "
                    "hoodie.spark.refresh_view(spark, name) has it show the table as it is now",
                ) from gone


def _scan(path: str, options: Options, columns: Sequence[str] | None) -> ScanPlan | ChangeData:
    """The read that the options ask for. Raises InvalidOption"""
    query, settings = options.read(QueryOptions), ReadSettings.read(options)
    state = load_state(storage_at(path, options))
    if query.query is QueryType.INCREMENTAL:
        if not query.begin:
            raise InvalidOption("an incremental query needs hoodie.datasource.read.begin.instanttime")
        if query.format is IncrementalFormat.CDC:
            return plan_change_data(state, query.begin, query.end or None, settings)
        return plan_scan(
            state, ScanKind.CHANGES, begin=query.begin, end=query.end or None, columns=columns, settings=settings
        )
    kind = ScanKind.READ_OPTIMIZED if query.query is QueryType.READ_OPTIMIZED else ScanKind.SNAPSHOT
    return plan_scan(state, kind, as_of=query.as_of or None, columns=columns, settings=settings)
