"""The merges, updates and deletes of HoodieTable by condition, and its writes from streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie.api.engine import Frame
from hoodie.api.handle import Options, TableHandle, with_missing
from hoodie.api.local_conditions import local_merge, local_update, refuse_frames, require_name
from hoodie.api.merge_builder import MergeBuilder
from hoodie.conditional.clauses import MergeRequest
from hoodie.errors import InvalidInput
from hoodie.reading.filters.predicate import held_filters
from hoodie.storage.faults import typed_calls
from hoodie.writing.result import WriteResult, failures_heard

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@typed_calls
class TableConditions(TableHandle[Frame]):
    """Merges, updates and deletes by condition; and what a stream's `foreachBatch` takes."""

    def merge(
        self,
        source: Any,
        condition: str | Column | None = None,
        *,
        source_name: str = "source",
        target_name: str = "target",
        frames: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> MergeBuilder:
        """Begin a merge: `table.merge(changes, "target.id = source.id").when_matched_update_all().execute()`.

        source       rows that are compared with those of the table: with Spark a Spark DataFrame; else what `upsert`
                     takes, held in memory
        condition    which source row matches which row of the table; None: the one of the same key. As text it may say
                     that the key columns are equal (with partition columns, unless the index is global), and clauses
                     may ask for the source's columns only: then the table is not read, as by an upsert. Else the two
                     are joined
        source_name, target_name  what expressions call them
        frames       without Spark: rows that subqueries may select from, by name
        options      of the write
        Raises       InvalidInput, SchemaMismatch
        """
        settings = self._condition_settings(options)
        if not isinstance(source_name, str) or not isinstance(target_name, str):
            raise InvalidInput(f"source_name={source_name!r}, target_name={target_name!r}: expected names as text")
        if self.session is None:
            return local_merge(self.storage, source, condition, (target_name, source_name), frames, settings)
        from hoodie.spark.merge.run import merge_with_spark, quotes_told

        refuse_frames(frames)
        session, request = self.session, MergeRequest(source, condition, (), target_name, source_name)

        def execute(request: MergeRequest) -> WriteResult:
            values = [value for clause in request.clauses for value in (clause.values or {}).values()]
            with failures_heard(self.storage, "MERGE"), quotes_told(values):
                return merge_with_spark(session, self.storage, request, settings)

        return MergeBuilder(request, execute)

    def update(
        self,
        values: Options,
        where: str | Sequence[Any] | Column | None = None,
        *,
        name: str = "target",
        frames: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Set columns of the rows for which a condition holds: `table.update({"price": "price * 2"}, "city = 'oslo'")`.

        values  column -> SQL text, plain value, or with Spark a Column
        where   SQL text, tuples as `snapshot` takes them, or with Spark a Column; None: all rows. Files of partitions,
                and row groups, that can have no such row are not opened, as far as the text says so
        name    what expressions may call the table
        frames  without Spark: rows that subqueries may select from, by name
        Raises  InvalidInput on an unknown column, one of the record key or, without a global index, of the partition,
                and on a result that is too large, or a division by zero; SchemaMismatch when a value does not fit its
                column; WriteConflict; MissingPackage for a function that needs DuckDB
        """
        if not isinstance(values, Mapping):
            raise InvalidInput(
                "an update takes columns with their new values, and then the condition: "
                "update({'price': 'price * 2'}, \"city = 'oslo'\")"
            )
        require_name(name)
        with failures_heard(self.storage, "UPDATE"):
            settings, where = self._condition_settings(options), held_filters(where)
            if self.session is None:
                return local_update(self.storage, where, values, name, frames, settings)
            from hoodie.spark.merge.run import quotes_told, update_with_spark

            refuse_frames(frames)
            with quotes_told(values.values()):
                return update_with_spark(self.session, self.storage, where, values, settings, name)

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
