"""HoodieWriteClient, whose caller holds the instant, and `write`, which takes the options of Hudi's data source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hoodie.api.deleted_partitions import deleted_partitions
from hoodie.api.engine import Engine
from hoodie.api.inputs import (
    Named,
    Path,
    as_path,
    as_session,
    column_names,
    extra_of_commit,
    is_spark_frame,
    named_instant,
    path_first,
)
from hoodie.api.local_engine import engine_of
from hoodie.api.table import HoodieTable
from hoodie.api.table_writes import Rowset, effective_operation, new_rows, write_rows
from hoodie.commit.batch_ids import BatchKnown
from hoodie.commit.transaction import Transaction, abandon, begin, given_up_on_error, publish
from hoodie.config.datasource import DatasourceOptions, VersionOptions, door_options, operation_for, overridden
from hoodie.config.driver_options import without_driver_options
from hoodie.config.hudi_options import Purpose
from hoodie.config.keygen import KeyOptions
from hoodie.config.options import Options
from hoodie.config.write import COMBINE, WriteOperation, WriteOptions, missing_options
from hoodie.errors import InstantNotFound, InvalidInput, InvalidOption, TableMismatch, TableNotFound, WriteConflict
from hoodie.lookup.index_choice import choose_index
from hoodie.lookup.index_follow import index_follows, notify_of_rollbacks
from hoodie.model.table_version import VERSIONS
from hoodie.plan.conflict import vanished
from hoodie.reading.row_keys import read_keys
from hoodie.recovery.rollback import rollback
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage import storage_at
from hoodie.storage.faults import typed_calls, typed_errors
from hoodie.table.create import create, named_settings, new_state
from hoodie.table.settings import Settings, for_new_keys, once_dropped
from hoodie.table.state import TableState, load_state
from hoodie.writing.index_updates import finalize_index
from hoodie.writing.operations import TableKind, kind_of
from hoodie.writing.replacement import replacement
from hoodie.writing.result import WriteResult, failures_heard, notify_committed
from hoodie.writing.run import earlier_result, run
from hoodie.writing.write import action_of, prepare_index_for, writable_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@typed_calls
class HoodieWriteClient:
    """Writes in steps: take an instant, write under it, commit it.

    With `hoodie.auto.commit` on (the default) a write commits at once, and `commit` has nothing left to do.
    `HoodieWriteClient(path)` needs no Spark: rows are what speaks Arrow, and threads of this process write them.
    """

    @path_first
    def __init__(
        self,
        path: Path,
        options: Mapping[str, Any] | None = None,
        *,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """
        options          `hoodie.*` options for all writes
        path, spark, storage_options  as of `create_table`
        Raises           InvalidOption; TableNotFound
        """
        self.session, path = as_session(spark), as_path(path)
        checked = door_options(options, Purpose.WRITE, path)
        self.storage, self.options = storage_at(path, checked, storage_options), without_driver_options(checked)
        self.engine: Engine[Any] = engine_of(self.session)
        self.settings = Settings.read(self.options)
        self._begun: dict[str, Transaction] = {}
        load_state(self.storage)

    def start_commit(self, operation: str = "upsert") -> str:
        """Take an instant, after rolling back what failed writes left.

        operation  what it is for; overwriting operations have instants of a kind of their own
        returns    the instant time, to be given to the write
        """
        word = _operation(operation)
        state = writable_state(self.storage, self.settings)
        index = choose_index(state, self.settings).index
        begun = begin(
            state,
            word,
            action_of(word, self._kind(state)),
            writers=self.settings.writers,
            read_keys=read_keys,
            executors=self.settings.executors(self.engine.run),
        )
        with given_up_on_error(begun):
            prepare_index_for(index, state, begun)
        self._forget_ended(begun.state)
        self._begun[begun.time] = begun
        return begun.time

    def upsert(self, df: Rowset, instant: Named, *, missing: str | None = None) -> WriteResult:
        """As `HoodieTable.upsert`, under an instant of `start_commit`. Raises InstantNotFound when it is not open."""
        return self._write(WriteOperation.UPSERT, df, instant, missing)

    def insert(self, df: Rowset, instant: Named, *, missing: str | None = None) -> WriteResult:
        """As `HoodieTable.insert`, under an instant of `start_commit`."""
        return self._write(WriteOperation.INSERT, df, instant, missing)

    def bulk_insert(self, df: Rowset, instant: Named, *, missing: str | None = None) -> WriteResult:
        """As `HoodieTable.bulk_insert`, under an instant of `start_commit`."""
        return self._write(WriteOperation.BULK_INSERT, df, instant, missing)

    def delete(self, keys: Rowset, instant: Named) -> WriteResult:
        """As `HoodieTable.delete`, under an instant of `start_commit`."""
        return self._write(WriteOperation.DELETE, keys, instant)

    def insert_overwrite(self, df: Rowset, instant: Named, *, missing: str | None = None) -> WriteResult:
        """As `HoodieTable.insert_overwrite`, under an instant of `start_commit("insert_overwrite")`."""
        return self._write(WriteOperation.INSERT_OVERWRITE, df, instant, missing)

    def insert_overwrite_table(self, df: Rowset, instant: Named, *, missing: str | None = None) -> WriteResult:
        """As `HoodieTable.insert_overwrite_table`, under an instant of `start_commit("insert_overwrite_table")`."""
        return self._write(WriteOperation.INSERT_OVERWRITE_TABLE, df, instant, missing)

    def commit(
        self, instant: Named, result: WriteResult, *, extra_metadata: Mapping[str, str] | None = None
    ) -> WriteResult:
        """Publish a write. One that committed by itself is left as it is.

        extra_metadata  kept with the commit
        Raises          InstantNotFound when the instant is no longer open; InvalidInput when the result is not its
        """
        instant = named_instant(instant, "commit")
        if not isinstance(result, WriteResult):
            raise InvalidInput(f"commit takes the result of the write under {instant}, not a {type(result).__name__}")
        if result.instant != instant:
            raise InvalidInput(f"the result is of instant {result.instant}, not {instant}")
        state = load_state(self.storage)
        if any(commit.requested == instant for commit in state.timeline.commits):
            self._begun.pop(instant, None)
            return result
        transaction = self._open(instant, _operation(result.metadata.operation.lower()))
        metadata = replace(result.metadata, extra={**extra_of_commit(extra_metadata), **result.metadata.extra})
        try:
            with failures_heard(self.storage, result.metadata.operation), _advice_on_conflict(instant):
                metadata = publish(transaction, metadata, result.keys, unseeing=result.unseeing)
        except BatchKnown as earlier_batch:
            if abandon(transaction):
                notify_of_rollbacks(choose_index(state, self.settings).index, [instant])
            self._begun.pop(instant, None)
            return earlier_result(earlier_batch)
        self._begun.pop(instant, None)
        if result.later:
            finalize_index(choose_index(state, self.settings).index, instant, result.later)
        committed_result = replace(result, metadata=metadata, later=(), keys=None, unseeing=False)
        notify_committed(committed_result)
        self.engine.after_commit(self.storage, self.settings, instant, None)
        return committed_result

    def schedule_compaction(self, extra_metadata: Mapping[str, str] | None = None) -> str | None:
        """As `HoodieTable.schedule_compaction`: the instant of the plan, for `compact`; None when none was made."""
        return schedule_compaction(self.storage, self.settings, extra_of_commit(extra_metadata))

    def compact(self, instant: Named) -> WriteResult:
        """As `HoodieTable.compact`, of one instant. It commits at once, whatever `hoodie.auto.commit` says."""
        result = compact(self.storage, self.settings, named_instant(instant, "compact"), self.engine.compaction)
        assert result is not None  # an instant was named
        return result

    def rollback(self, instant: Named) -> None:
        """Give an open instant up: what was written under it goes away. A completed one is rolled back as by
        `HoodieTable.rollback`.
        """
        instant = named_instant(instant, "rollback")
        if any(commit.requested == instant for commit in load_state(self.storage).timeline.commits):
            rollback(self.storage, self.settings, instant, repair=self.engine.repair)
            return
        with index_follows(self.storage, self.settings):
            abandon(self._open(instant, WriteOperation.UPSERT))
        self._begun.pop(instant, None)

    def _write(self, operation: WriteOperation, df: Rowset, instant: Named, missing: str | None = None) -> WriteResult:
        instant = named_instant(instant, operation.value)
        with failures_heard(self.storage, operation), _advice_on_conflict():
            checked = overridden(self.options, missing_options(missing))
            rows, options = new_rows(self.engine, self.storage, operation, df, checked)
            batch = self.engine.check(self.storage, operation, rows, Settings.read(options))
            transaction = _on_the_table_of_now(self._open(instant, operation))
            result = run(batch, transaction, commit=self.settings.write.auto_commit)
        if self.settings.write.auto_commit:
            self._begun.pop(instant, None)
        return result

    def _forget_ended(self, state: TableState) -> None:
        """Let instants go that are committed or rolled back, by whomever: a client may live as long as its process."""
        pending = {instant.requested for instant in state.timeline.pending()}
        self._begun = {time: begun for time, begun in self._begun.items() if time in pending}

    def _kind(self, state: TableState) -> TableKind:
        return kind_of(state.config.type, inserts_to_logs=False)  # all that is asked is the action

    def _open(self, instant: str, operation: WriteOperation) -> Transaction:
        state = load_state(self.storage)
        self._forget_ended(state)
        pending = [i for i in state.timeline.pending() if i.requested == instant]
        if not pending:
            raise InstantNotFound(
                f"{instant} is not open: it was never started, is committed, or was rolled back by a later write. "
                "Take a new one with start_commit()"
            )
        action = action_of(operation, self._kind(state))
        if pending[0].action is not action and operation is not WriteOperation.UPSERT:
            raise InvalidInput(
                f"instant {instant} is a {pending[0].action}; {operation} needs start_commit({operation.value!r})"
            )
        # The conflict check starts from the table at the time of the instant; for another process's, from now.
        begun = self._begun.get(instant)
        if begun is not None:
            return replace(begun, instant=pending[0], operation=operation)
        return Transaction(state, pending[0], operation, self.settings.writers)


def _on_the_table_of_now(begun: Transaction) -> Transaction:
    """The transaction without what others rolled back, or archived, since it began: their plans are gone.

    Raises WriteConflict when commits that it began on are gone
    """
    then, now = begun.state.timeline, begun.state.reload().timeline
    timeline = then.still(now)
    if vanished_commits := vanished(then, now):
        what = (
            f"was made on rows of {', '.join(i.requested for i in vanished_commits)}, which were rolled back meanwhile"
        )
    elif then.commits and not timeline.commits:
        what = "began on a table whose commits of then are all archived"
    else:
        return replace(begun, state=replace(begun.state, timeline=timeline))
    problem = WriteConflict(f"instant {begun.time} {what}. Nothing is published; write the batch again.")
    problem.add_note(_GIVE_UP.format(begun.time))
    raise problem


@contextmanager
def _advice_on_conflict(instant: str = "") -> Iterator[None]:
    """A conflict says how a client goes on. instant: one that stays open"""
    try:
        yield
    except WriteConflict as conflict:
        if not hasattr(conflict, "__notes__"):
            conflict.add_note(_GIVE_UP.format(instant) if instant else "Take a new instant with start_commit().")
        raise


_GIVE_UP = "Give the instant up with rollback({0!r}), and take a new one with start_commit()."


@typed_errors()
def write(
    df: Any,
    path: Path,
    options: Mapping[str, Any] | None = None,
    *,
    mode: str = "append",
    missing: str | None = None,
    props: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> WriteResult | None:
    """Write a DataFrame as Hudi's Spark data source would: one call, Hudi's options. Makes the table if there is none.

    df               a Spark DataFrame, whose session writes it, or rows as `HoodieTable.upsert` takes them, which this
                     process writes; None only for the operation delete_partition
    options          of a new table the record key, `hoodie.datasource.write.recordkey.field`: without one each row gets
                     a key of its own, and the operation, where none is named, is bulk_insert. Without
                     `hoodie.datasource.write.precombine.field` a column `ts` orders the rows of a new table of version
                     6, as in Hudi 0.15; in one of version 8 or 9 the last row wins, as in Hudi 1
    mode             append: do `hoodie.datasource.write.operation`; overwrite: put a new table with the rows in place
                     of the one that is there, perhaps with another key, schema or type (with the operation
                     insert_overwrite_table the table stays, and its rows are replaced); error, errorifexists: refuse a
                     path with a table; ignore: do nothing there. In upper or lower case
    missing          what becomes of columns of the table that df lacks, as of `HoodieTable.upsert`; None: as options
                     say, else such a batch is refused
    props            path of a properties file with options, which those of the call override
    storage_options  as of `create_table`
    returns          None when there was nothing to do: ignore, delete_partition of partitions that are not there
    Raises           as `HoodieTable.upsert`; TableMismatch when the table there has other settings, or mode is error;
                     InvalidInput on overwrite while a savepoint or a planned compaction forbids it
    """
    path = as_path(path)
    checked = overridden(door_options(options, Purpose.WRITE, path, props), missing_options(missing))
    mode = _save_mode(mode)
    operation = checked.read(DatasourceOptions).operation
    has_key = bool(checked.read(KeyOptions).record_key)  # of a table that is to be made
    if mode == "overwrite" and operation in (WriteOperation.DELETE, WriteOperation.DELETE_PARTITION):
        raise InvalidOption(f"mode overwrite replaces the table, and {operation} takes rows away: take mode append")
    table: HoodieTable[Any]
    if is_spark_frame(df):
        table = HoodieTable(path, spark=df.sparkSession, storage_options=storage_options, options=checked)
    else:
        table = HoodieTable(path, storage_options=storage_options, options=checked)
    checked = without_driver_options(checked)
    version, is_new = VERSIONS[checked.read(VersionOptions).version], False
    try:
        existing_state = load_state(table.storage)
    except TableNotFound as error:
        if operation is WriteOperation.DELETE_PARTITION or error.is_file:
            raise
        is_new = True
    else:
        version = existing_state.layout.version  # which an overwrite keeps
        if mode != "overwrite" or operation is WriteOperation.INSERT_OVERWRITE_TABLE:
            has_key = bool(existing_state.config.record_key)
        if mode in ("error", "errorifexists"):
            raise TableMismatch(f"{table.path} holds a table already, and mode is {mode}")
        if mode == "ignore":
            return None
    if operation is WriteOperation.DELETE_PARTITION:
        named_paths = checked.read(DatasourceOptions).partitions_to_delete
        partitions = deleted_partitions(named_paths, df, existing_state)
        return table.delete_partitions(partitions) if partitions else None
    if df is None:
        raise InvalidInput(f"{operation} needs a DataFrame")
    operation = operation_for(checked, has_record_key=has_key)
    operation, checked = effective_operation(operation, checked)
    if not has_key:
        checked = for_new_keys(checked)
    defaults = {"hoodie.table.name": path.rstrip("/").rpartition("/")[2]}
    ordering = version.default_ordering
    if ordering in column_names(df) and "hoodie.table.precombine.field" not in named_settings(checked):
        defaults["hoodie.datasource.write.precombine.field"] = ordering
    settings = overridden(defaults, checked)  # of a table that is to be made
    with failures_heard(table.storage, operation):
        if not is_new and mode == "overwrite" and operation is not WriteOperation.INSERT_OVERWRITE_TABLE:
            return _replace(df, table, operation, settings)
        if not is_new:
            return write_rows(table.engine, table.storage, operation, df, checked)
        if has_key and Settings.read(checked).drops_existing(operation):
            checked = once_dropped(checked)
        # A batch that does not fit leaves no table behind, and the next one may name other settings.
        batch = table.engine.check(
            table.storage, operation, df, Settings.read(checked), new_state(table.storage, settings)
        )
        return run(batch, make_table=partial(create, table.storage, settings))


def _replace(df: Any, table: HoodieTable[Any], operation: WriteOperation, options: Options) -> WriteResult:
    """Put a new table with the rows in place of the one that is there."""
    has_key = bool(options.read(KeyOptions).record_key)
    if has_key and operation is WriteOperation.UPSERT and options.read(WriteOptions).combine_before_upsert:
        options = overridden(options, {COMBINE: "true"})  # as an upsert into a new table does
    if has_key and Settings.read(options).drops_existing(operation):
        options = once_dropped(options)
    settings = Settings.read(options)
    new = replacement(table.storage, settings)
    batch = table.engine.check(table.storage, WriteOperation.INSERT_OVERWRITE_TABLE, df, settings, new.state)
    return run(batch, replacing=new)


def _save_mode(mode: str) -> str:
    """The mode as Spark spells it; jobs write it in any case."""
    word = mode.strip().lower() if isinstance(mode, str) else mode
    if word not in ("append", "overwrite", "error", "errorifexists", "ignore"):
        raise InvalidOption(f"mode {mode!r}: expected append, overwrite, error, errorifexists or ignore")
    return word


def _operation(word: str) -> WriteOperation:
    if not isinstance(word, str) or word.upper() not in WriteOperation.__members__:
        raise InvalidInput(f"operation {word!r}: expected one of {', '.join(WriteOperation)}")
    return WriteOperation[word.upper()]
