"""`INSERT INTO` a view made by `USING hudi`: tasks stage the rows beside the table, the committer writes them.

The committer is a Python process of Spark's without a session, so that a batch is written as without Spark, and may be
as large as one that is written on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from hoodie.api.write_client import write
from hoodie.config.datasource import sql_insert
from hoodie.config.options import Options
from hoodie.config.read import QueryOptions, QueryType
from hoodie.config.write import EngineOptions, WriteOperation
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.model.meta import META_COLUMNS
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.storage import storage_at
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.writing.batch.staging import new_stage, remove_stale

OPERATION = "hoodie.datasource.write.operation"


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
                staged = [found for found in messages if isinstance(found, StagedRows) and found.path]
                self._require_small(sum(found.bytes for found in staged))
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
        return pa.RecordBatchReader.from_batches(schema, _batches(self.storage, [found.path for found in staged]))

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
