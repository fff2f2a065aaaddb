"""The Python data source behind `CREATE TEMPORARY VIEW … USING hudi OPTIONS (path '…')` and `readStream`.

Views are read by tasks as Arrow, about half as fast as `table.snapshot()`. Filters are not pushed down: Spark 4.3 keeps
the reader of the last filtered query for the next one, which may have no filter.
"""

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from hoodie.api.datasource_read import read_of
from hoodie.api.write_client import write
from hoodie.config.datasource import sql_insert
from hoodie.config.options import Options
from hoodie.config.read import QueryOptions, QueryType, ReadSettings
from hoodie.config.write import EngineOptions, WriteOperation
from hoodie.errors import FileGone, InvalidInput, InvalidOption
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.changes.data_plan import ChangeData, plan_change_data
from hoodie.reading.scan import ScanPlan
from hoodie.reading.scan_plan import plan_read
from hoodie.sources.answers import source_options
from hoodie.sources.slice_tasks import slice_tasks, task_rows
from hoodie.sources.stream_schema import stream_schema
from hoodie.sources.view_refresh import with_source
from hoodie.spark.entries import noted_path
from hoodie.spark.tasks import is_classic
from hoodie.spark.types import all_nullable, source_schema, to_spark
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.storage import storage_at
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.writing.batch.staging import new_stage, remove_stale

OPERATION = "hoodie.datasource.write.operation"


# --- writing: the committer is a Python process of Spark's without a session, so that a batch is written as without
# Spark, and may be as large as one that is written on the driver ---


@dataclass
class StagedRows(WriterCommitMessage):
    """What one attempt of a task staged. Only those of attempts that won reach the committer.

    path  of its file, relative to the table; "": it had no rows
    """

    path: str
    bytes: int


class ViewWriter(DataSourceArrowWriter):
    """Writes the rows of one statement. Pickled to the tasks, and to the committer."""

    def __init__(self, path: str, options: Options, overwrite: bool) -> None:
        """Raises InvalidOption on a view of other rows than the latest."""
        query = options.read(QueryOptions)
        if query.query is not QueryType.SNAPSHOT or query.as_of:
            raise InvalidOption(
                "rows are inserted into a view of the latest rows (snapshot), not of older or changed ones"
            )
        self.path, self.options, self.storage = path, options, storage_at(path, options)
        self.overwrite = overwrite
        self.most = options.read(EngineOptions).driver_batch
        self.folder = new_stage()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        with mark_worker_errors(), ExitStack() as stack:
            staged = StagedRows("", 0)
            writer: pa.ipc.RecordBatchFileWriter | None = None
            for batch in iterator:
                rows = batch.drop_columns([name for name in META_COLUMNS if name in batch.schema.names])
                if writer is None:
                    staged.path = f"{self.folder}/{uuid4().hex}.arrow"  # each attempt its own
                    sink = stack.enter_context(self.storage.open_output(staged.path))
                    writer = stack.enter_context(pa.ipc.new_file(sink, rows.schema))
                writer.write_batch(rows)
                staged.bytes += rows.nbytes
                self._require_small(staged.bytes)
            return staged

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        with mark_worker_errors():
            try:
                staged = [message for message in messages if isinstance(message, StagedRows) and message.path]
                self._require_small(sum(rows.bytes for rows in staged))
                if staged or self.overwrite:
                    operation, options = sql_insert(self.options, load_state(self.storage).config)
                    if self.overwrite:
                        operation = WriteOperation.INSERT_OVERWRITE_TABLE
                    write(self._rows(staged), self.path, {**self.options, **options, OPERATION: operation.value})
            finally:
                self._forget()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._forget()  # of the table itself nothing was touched, or all of it rolled back

    def _rows(self, staged: Sequence[StagedRows]) -> pa.RecordBatchReader:
        if not staged:
            raise InvalidInput(
                "INSERT OVERWRITE with no rows would empty the table: TRUNCATE TABLE of hoodie.spark.sql says so"
            )
        with self.storage.open_input(staged[0].path) as source:
            schema = pa.ipc.open_file(source).schema
        return pa.RecordBatchReader.from_batches(schema, _batches(self.storage, [rows.path for rows in staged]))

    def _require_small(self, size: int) -> None:
        if size > self.most:
            raise InvalidInput(
                f"INSERT INTO a view takes up to {self.most} bytes (hoodie.spark.driver.max.batch.bytes), since one "
                "process without Spark writes them. Take hoodie.spark.sql(spark, 'INSERT INTO …'), or "
                "hoodie.hudi.write(df, path, options), which Spark's executors carry out"
            )

    def _forget(self) -> None:
        self.storage.delete_tree(self.folder)
        remove_stale(self.storage)


def _batches(storage: Storage, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with storage.open_input(path) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


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
        with mark_worker_errors():
            try:
                from hoodie.sources.change_stream import ChangeStream
            except ModuleNotFoundError as missing:
                raise InvalidInput("readStream of a table needs PySpark 4.2: pip install 'pyspark>=4.2'") from missing
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
            with _active(session):
                session.dataSource.register(_SOURCES[name])
        except Exception as problem:  # Spark Connect's errors are of another base than classic Spark's
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(problem):
                raise
            taken[name] = False
        else:
            taken[name] = True
    return taken[name]


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Have a session be the active one of this thread: it is there that Spark looks for names that are taken."""
    before = SparkSession.getActiveSession() if is_classic(session) else None
    if before is None:
        yield
        return
    session.createDataFrame([], "none int")  # which makes its session the active one
    try:
        yield
    finally:
        before.createDataFrame([], "none int")


class _Reader(DataSourceReader):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.path, self.options = source_options(options)
        self.target = source_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        return slice_tasks(_scan(self.path, self.options, self.target.names))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with mark_worker_errors():
            try:
                yield from task_rows(partition, self.target)
            except (FileGone, FileNotFoundError) as error:
                raise FileGone(
                    errno.ENOENT,
                    f"{error}: the view shows the table as of its creation, and its files were cleaned since. "
                    "hoodie.spark.refresh_view(spark, name) has it show the table as it is now",
                ) from error


def _scan(path: str, options: Options, columns: Sequence[str] | None) -> ScanPlan | ChangeData:
    """The read that the options ask for. Raises InvalidOption"""
    read, settings = read_of(options.read(QueryOptions)), ReadSettings.read(options)
    state = load_state(storage_at(path, options))
    if read.cdc:
        assert read.begin is not None
        return plan_change_data(state, read.begin, read.end, settings)
    return plan_read(state, replace(read, columns=columns), settings)
