"""The writes of HoodieTable, and rows as they take them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from hoodie.api.engine import Engine, Frame
from hoodie.api.handle import Options, TableHandle, with_missing
from hoodie.api.inputs import arrow_stream, is_spark_frame, keys_as_rows
from hoodie.api.local_conditions import delete_by_condition
from hoodie.api.partition_paths import partition_paths
from hoodie.config.datasource import TableOptions
from hoodie.config.options import Options as Checked
from hoodie.config.options import declared
from hoodie.config.read import ReadSettings
from hoodie.config.table import EMPTY_PAYLOAD, payload_name
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput, InvalidOption, UnsupportedTable, WriteConflict
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.filters.predicate import held_filters
from hoodie.reading.filters.selection import Filters
from hoodie.reading.scan_plan import Read
from hoodie.storage.faults import typed_calls
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings, for_new_keys, once_dropped, without_dropping
from hoodie.table.state import load_state
from hoodie.writing.explanation import WriteExplanation, explain
from hoodie.writing.result import WriteResult, failures_heard
from hoodie.writing.run import delete_partitions, run

if TYPE_CHECKING:
    from pyspark.sql import Column


_PAYLOADS = next(spec for field, spec in declared(TableOptions) if field.name == "payload").keys


def write_rows(
    engine: Engine[Any],
    storage: Storage,
    operation: WriteOperation,
    rows: Any,
    options: Checked,
    emptied: Collection[str] = (),
) -> WriteResult:
    """Check a batch and write it; of rows that are to be left out by their keys the others. Raises as `run`

    emptied  paths of partitions that an overwrite of partitions takes away, be rows of it in them or not

    The keys are looked up before the write, which is made on the table as it was then, or again from the look-up on.
    """
    operation, options = effective_operation(operation, options)
    settings = Settings.read(options)
    if not settings.drops_existing(operation):
        batch = engine.check(storage, operation, rows, settings)
        if emptied:
            adapt = partial(replace, emptied=frozenset(emptied))
            batch = replace(batch, write=adapt(batch.write), adapt=adapt)
        return run(batch)
    if not load_state(storage).config.record_key:
        return run(engine.check(storage, operation, rows, Settings.read(for_new_keys(options))))
    rows = at_hand(rows)
    for remaining_retries in range(settings.writers.concurrency.conflict_retries, -1, -1):
        state = load_state(storage)
        new, chosen = new_rows(engine, storage, operation, rows, options)
        try:
            return run(engine.check(storage, operation, new, Settings.read(chosen)), made_of=state)
        except WriteConflict:
            if not remaining_retries:
                raise
    raise AssertionError  # the last attempt returns or raises


def effective_operation(operation: WriteOperation, options: Checked) -> tuple[WriteOperation, Checked]:
    """What a write does by its options: with EmptyHoodieRecordPayload, which is no rule of a table, it deletes its
    rows; an upsert that leaves out rows whose key is there is an insert, and the commit says so, as Hudi's does.

    Raises InvalidOption on EmptyHoodieRecordPayload with an operation that deletes no rows by their keys
    """
    named = {key: payload_name(options[key]) for key in _PAYLOADS if key in options}
    if EMPTY_PAYLOAD not in named.values():
        inserts = operation is WriteOperation.UPSERT and Settings.read(options).dropping.duplicates
        return WriteOperation.INSERT if inserts else operation, options
    if operation not in (WriteOperation.UPSERT, WriteOperation.DELETE):
        key = next(iter(named))
        raise InvalidOption(f"{key}={options[key]} deletes rows by their keys: take the operation upsert or delete")
    return WriteOperation.DELETE, Checked({key: value for key, value in options.items() if key not in named})


def new_rows(
    engine: Engine[Any], storage: Storage, operation: WriteOperation, rows: Any, options: Checked
) -> tuple[Any, Checked]:
    """The rows whose keys the table does not have, and the options to write them with, if that is asked for; else both
    as they are."""
    if not Settings.read(options).drops_existing(operation):
        return rows, options
    absent_rows = engine.keys(storage, without_dropping(options)).filter_exists(rows)
    return (absent_rows if is_spark_frame(absent_rows) else absent_rows.to_arrow()), once_dropped(options)


def at_hand(rows: Any) -> Any:
    """Rows that can be looked at twice."""
    return rows if is_spark_frame(rows) else arrow_stream(rows).read_all()


#: A Spark DataFrame, or anything with `__arrow_c_stream__`.
Rowset = Any


@typed_calls
class TableWrites(TableHandle[Frame]):
    """The writes of a table."""

    def upsert(self, df: Rowset, *, missing: str | None = None, options: Options | None = None) -> WriteResult:
        """Insert rows whose key is new, and merge the others into the stored rows.

        df       a Spark DataFrame, or what speaks Arrow: a pyarrow.Table or RecordBatchReader, a pandas or Polars
                 DataFrame, a DuckDB relation. It has the table's columns; new ones are added to the table. Larger than
                 memory it passes through temporary files
        missing  what becomes of columns of the table that df lacks, nested ones included: "refuse", "null": its rows
                 are null there, or "keep": stored values stay, and new keys are null there. None: as options say, else
                 refuse
        options  for this write, over those of the table object
        Raises   InvalidInput, SchemaMismatch: nothing has changed; WriteConflict: another writer was faster
        """
        return self._write(WriteOperation.UPSERT, df, options, missing)

    def insert(self, df: Rowset, *, missing: str | None = None, options: Options | None = None) -> WriteResult:
        """Add rows without looking their keys up: small files are filled first. A key that is stored occurs twice then.

        Arguments and errors as of `upsert`; missing="keep" is refused, as no stored row is looked at
        """
        return self._write(WriteOperation.INSERT, df, options, missing)

    def bulk_insert(self, df: Rowset, *, missing: str | None = None, options: Options | None = None) -> WriteResult:
        """Load rows into new files as they come, sorted by `hoodie.bulkinsert.sort.mode`. Raises as `upsert`."""
        return self._write(WriteOperation.BULK_INSERT, df, options, missing)

    def delete(
        self,
        keys: Rowset | None = None,
        *,
        where: Filters | Column | None = None,
        name: str = "target",
        frames: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Delete rows by key, or those for which a condition holds; keys that the table lacks are ignored.

        keys    rows as `upsert` takes them: the key and partition columns (others are ignored), or
                `_hoodie_record_key` and `_hoodie_partition_path` as reads have them; or a list of the values of a key
                of one column
        where   in place of keys: a condition as of `update`, "amount < 0 and day > current_date - 7", or filters as
                `snapshot` takes them. Rows for which it holds when the call begins; "true": all
        name, frames  of the condition, as of `update`
        Raises  as `upsert`; InvalidInput on both, neither, or a malformed condition; UnsupportedTable for a condition
                where the table stores no record keys

        A table that nothing was written to yet has no columns, and so no row for which any condition holds.
        """
        if isinstance(keys, (str, pc.Expression)):
            raise InvalidInput(f"delete({str(keys)!r}): a condition is given by name: delete(where=...)")
        if (keys is None) is (where is None):
            raise InvalidInput('delete takes keys, or where="a condition": one of them ("true" means all rows)')
        if where is None:
            return self._write(WriteOperation.DELETE, keys_as_rows(keys, self.storage), options)
        if isinstance(where, pc.Expression):
            return self._write(WriteOperation.DELETE, self._keys_of(where, self._options(options)), options)
        return delete_by_condition(self, held_filters(where), name=name, frames=frames, options=options)

    def insert_overwrite(
        self,
        df: Rowset,
        *,
        partitions: Iterable[Any] | None = None,
        missing: str | None = None,
        options: Options | None = None,
    ) -> WriteResult:
        """Replace all rows of the partitions that the rows are in.

        partitions  paths of partitions whose rows go as well, be rows of df in them or not, such as "2024-01-31" or
                    "city=oslo", or values as `snapshot` takes them; one that the table does not have has none
        Raises      as `upsert`
        """
        emptied = partition_paths(() if partitions is None else partitions, self.storage)
        return self._write(WriteOperation.INSERT_OVERWRITE, df, options, missing, emptied)

    def insert_overwrite_table(
        self, df: Rowset, *, missing: str | None = None, options: Options | None = None
    ) -> WriteResult:
        """Replace all rows of the table. Raises as `upsert`."""
        return self._write(WriteOperation.INSERT_OVERWRITE_TABLE, df, options, missing)

    def delete_partitions(self, partitions: Iterable[Any], *, options: Options | None = None) -> WriteResult:
        """Delete all rows of partitions.

        partitions  partition paths, such as "2024-01-31" or "city=oslo", or values as `snapshot` takes them
        Raises      InvalidInput naming those that the table does not have
        """
        with failures_heard(self.storage, WriteOperation.DELETE_PARTITION):
            engine, settings = self.engine, self._settings(options)
            paths = partition_paths(partitions, self.storage)
            result = delete_partitions(
                self.storage, paths, settings, engine.after_commit, engine.validate, run=engine.run
            )
        return replace(result, alone=self.session is None)

    def explain_upsert(
        self, df: Rowset, *, missing: str | None = None, options: Options | None = None
    ) -> WriteExplanation:
        """What `upsert` would do: the workload profile, the tasks, where they would run. Nothing is written.

        Raises as `upsert`
        """
        checked = self._options(with_missing(options, missing))
        return explain(self.engine.check(self.storage, WriteOperation.UPSERT, df, Settings.read(checked)))

    def _write(
        self,
        operation: WriteOperation,
        rows: Rowset,
        options: Options | None,
        missing: str | None = None,
        emptied: Collection[str] = (),
    ) -> WriteResult:
        with failures_heard(self.storage, operation):
            checked = self._options(with_missing(options, missing))
            return write_rows(self.engine, self.storage, operation, rows, checked, emptied)

    def _keys_of(self, filters: Filters, checked: Checked) -> Frame:
        """The keys of the rows that pass."""
        state = load_state(self.storage)
        if not state.config.meta_fields:
            raise UnsupportedTable(
                f"{state.config.name} stores no record keys (hoodie.populate.meta.fields=false): delete by key columns"
            )
        return self.engine.read(
            state, Read(columns=[RECORD_KEY, PARTITION_PATH], filters=filters), ReadSettings.read(checked)
        )
