"""What people do to the rows of a table by condition, and by streams: with Spark, which evaluates the expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hoodie.api.engine import Frame
from hoodie.api.handle import Options, TableHandle, with_missing
from hoodie.api.merge_builder import MergeBuilder
from hoodie.errors import InvalidInput
from hoodie.storage.faults import typed_calls
from hoodie.writing.on_failure import failures_heard
from hoodie.writing.result import WriteResult

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from hoodie.spark.merge.clauses import MergeRequest


@typed_calls
class TableConditions(TableHandle[Frame]):
    """Merges, updates and deletes by condition; and what a stream's `foreachBatch` takes."""

    def merge(
        self,
        source: DataFrame,
        condition: str | Column | None = None,
        *,
        source_name: str = "source",
        target_name: str = "target",
        options: Options | None = None,
    ) -> MergeBuilder:
        """Begin a merge: `table.merge(changes, "target.id = source.id").when_matched_update_all().execute()`.

        source       rows that are compared with those of the table, a Spark DataFrame
        condition    which source row matches which row of the table; None: the one of the same key. As text it may say
                     that the key columns are equal (with partition columns, unless the index is global), and clauses
                     may ask for the source's columns only: then the table is not read, as by an upsert. Else Spark
                     joins the two
        source_name, target_name  what expressions call them
        options      of the write
        Raises       InvalidInput on a table without Spark
        """
        from hoodie.spark.merge.clauses import MergeRequest
        from hoodie.spark.merge.run import merge

        session, given = self._spark(), self._options(options)
        request = MergeRequest(source, condition, (), target_name, source_name)

        def execute(request: MergeRequest) -> WriteResult:
            with failures_heard(self.storage, "MERGE"):
                return merge(session, self.storage, request, given)

        return MergeBuilder(request, execute)

    def update(
        self,
        values: Options,
        where: str | Column | None = None,
        *,
        name: str = "target",
        options: Options | None = None,
    ) -> WriteResult:
        """Set columns of the rows for which a condition holds.

        values   column -> SQL text, Column or plain value
        where    SQL text or a Column; None: all rows. Where text is about partition columns, only the files of
                 partitions that can fit are opened
        name     what expressions may call the table
        Raises   InvalidInput on an unknown column, one of the record key or, without a global index, of the
                 partition, and on a table without Spark; SchemaMismatch when a value does not fit its column;
                 WriteConflict
        """
        from hoodie.spark.merge.run import update

        with failures_heard(self.storage, "UPDATE"):
            return update(self._spark(), self.storage, where, values, self._options(options), name)

    def stream_upsert(
        self, name: str, *, operation: str = "upsert", missing: str | None = None, options: Options | None = None
    ) -> Callable[[DataFrame, int], None]:
        """What a stream's `foreachBatch` takes to write each micro-batch once, as a commit of its own.

        name       of the stream, for good: with the batch's number it says in the commit which batch that was
        operation  "upsert", "insert", "bulk_insert" or "delete"
        missing    what becomes of columns that a batch lacks, as of `upsert`
        options    of the writes, over those of the table object
        Raises     InvalidInput; the function raises as `upsert`
        """
        from hoodie.spark.stream import stream_writer

        return stream_writer(self.storage, name, operation, self._options(with_missing(options, missing)))

    def _spark(self) -> Any:
        if self.session is None:
            raise InvalidInput(
                "this table was opened without Spark, which evaluates expressions: open it with a session"
            )
        return self.session
