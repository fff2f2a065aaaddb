"""The engine that needs no Spark: rows are Arrow, threads of this process do the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hoodie.api.engine import Engine, KeyedRows, Read
from hoodie.api.inputs import arrow_stream, is_spark_frame
from hoodie.api.rows import Rows
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import SchemaMismatch, UnsupportedTable
from hoodie.keygen.arrow_keys import missing_columns
from hoodie.lookup.context import LookupContext, lookup_for_read
from hoodie.lookup.point_read import locate_keys, read_rows, reader_for
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.change_data_plan import plan_change_data
from hoodie.reading.scan import plan_scan
from hoodie.reading.selection import check_columns
from hoodie.reading.table_schema import read_schema
from hoodie.schema.schema import without_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit
from hoodie.table.overrides import completed
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, in_units_of, key_samples, load_state, table_keygen
from hoodie.view.slices import FileSystemView
from hoodie.writing.arrow_batch import ArrowRows, require_columns
from hoodie.writing.driver import check_keys, thread_pool
from hoodie.writing.explanation import WriteExplanation, explained, plan_of_rows
from hoodie.writing.local import LocalRows, SpilledRows, check_batch
from hoodie.writing.result import Phases
from hoodie.writing.run import CheckedBatch
from hoodie.writing.task_results import DRIVER


def check(
    storage: Storage, operation: WriteOperation, rows: Any, options: Options, new: TableState | None = None
) -> CheckedBatch:
    """See that rows fit their table. A DataFrame of Spark's is written by its own session."""
    if is_spark_frame(rows):
        from hoodie.api.spark_engine import check as check_on_spark  # PySpark is there: the frame is one of its own

        return check_on_spark(rows.sparkSession, storage, operation, rows, options, new)
    return check_batch(storage, operation, arrow_stream(rows), options, after_commit, new)


def explain(batch: CheckedBatch) -> WriteExplanation:
    """Acquire, locate and plan, as the write would."""
    acquired = batch.acquire(batch.checked, Phases())
    try:
        if isinstance(acquired, SpilledRows):
            rows = acquired.staged.rows()  # the plan is the same; the write holds less at a time
        elif isinstance(acquired, LocalRows):
            rows = acquired.rows
        else:
            from hoodie.spark.write.explain import explain as explain_on_spark  # a DataFrame was given

            return explain_on_spark(batch)
        return explained(batch.checked, plan_of_rows(batch.checked, rows), DRIVER)
    finally:
        acquired.release()


def read(state: TableState, read: Read, options: Options) -> Rows:
    if read.cdc:
        assert read.begin is not None
        return Rows.of_change_data(plan_change_data(state, read.begin, read.end, options), read.columns, read.filters)
    return Rows.of_scan(
        plan_scan(
            state,
            read.kind,
            columns=read.columns,
            partitions=read.partitions,
            filters=read.filters,
            as_of=read.as_of,
            begin=read.begin,
            end=read.end,
            options=options,
        )
    )


def read_keys(storage: Storage, keys: Any, columns: Sequence[str] | None, options: Options) -> KeyedRows[Rows]:
    state = completed(load_state(storage), options)
    if not state.config.meta_fields:
        raise UnsupportedTable(
            f"{state.config.name} stores no record keys (hoodie.populate.meta.fields=false): filter its rows"
        )
    settings = Settings.read(options)
    context = lookup_for_read(state, settings, options)
    schema = read_schema(state, FileSystemView(state.timeline))
    wanted = schema.names if columns is None else list(columns)
    check_columns(wanted, schema)
    asked = keyed_rows(context, arrow_stream(keys))
    with thread_pool(settings) as pool:
        places = locate_keys(context, asked, pool)
        reader = reader_for(state, schema, places.slices.values(), options)
        found, stats = read_rows(places, storage, schema, wanted, reader, pool)
    return KeyedRows(Rows.of_table(found), stats)


def keyed_rows(context: LookupContext, source: pa.RecordBatchReader) -> pa.Table:
    """Record key and partition path of each row. Raises SchemaMismatch, InvalidInput as `HoodieTable.read`."""
    if {RECORD_KEY, PARTITION_PATH} <= set(source.schema.names):
        rows = ArrowRows(source, None, None)
    else:
        state, schema = context.state, without_meta_fields(source.schema)
        keygen = in_units_of(table_keygen(state, key_samples(state)), context.schema)
        require_columns(schema, replace(keygen, partition_fields=()), (), state.config.name)
        lacking = missing_columns(schema, replace(keygen, record_keys=()))
        if lacking and not context.index.is_global:
            raise SchemaMismatch(
                f"The keys do not fit table {state.config.name!r}: {'; '.join(lacking)}. The index "
                f"{context.index.name} finds a key within its partition only: add the column, or take {RECORD_KEY} and "
                f"{PARTITION_PATH} as reads have them."
            )
        rows = ArrowRows(source, None, replace(keygen, partition_fields=()) if lacking else keygen)
    found = pa.Table.from_batches(rows.batches(), rows.schema)
    check_keys(found)
    return found


LOCAL: Engine[Rows] = Engine(check, explain, read, read_keys, after_commit)
