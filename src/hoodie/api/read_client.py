"""HoodieReadClient: what a table knows of keys. And one call for those who bring the options of Hudi's data source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from hoodie.api.engine import KeyedRows
from hoodie.config.datasource import door_options
from hoodie.config.hudi_options import Purpose
from hoodie.config.options import Options
from hoodie.config.read import IncrementalFormat, MergeOptions, QueryOptions, QueryType
from hoodie.errors import InvalidOption, SchemaMismatch, UnsupportedTable
from hoodie.index.contract import ByFile
from hoodie.lookup.context import LookupContext, lookup_for_read
from hoodie.lookup.point_read import LocatedKeys, held, locate_keys, read_rows, reader_for
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import CompactionPlan
from hoodie.reading.selection import check_columns
from hoodie.reading.table_schema import read_schema
from hoodie.services.compaction.schedule import pending_compactions
from hoodie.spark import record_keys
from hoodie.spark.local_frame import local_frame
from hoodie.spark.lookup.large_batch import ask, rows_of, slices_of
from hoodie.spark.lookup.locate import FILE_ID, match_columns
from hoodie.spark.plan_size import estimated_bytes
from hoodie.spark.read import incremental, snapshot
from hoodie.spark.read.change_data import change_data
from hoodie.spark.types import nullable, to_spark
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.spark.write.batch import require_columns, to_arrow_table, user_schema
from hoodie.storage import storage_for
from hoodie.storage.faults import typed_calls, typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.overrides import completed
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, in_units_of, key_samples, load_state, table_keygen
from hoodie.view.slices import FileSystemView
from hoodie.writing.driver import check_keys, refuse_bad_keys, thread_pool

#: The instant of the file slice that a key is in.
INSTANT = "_hoodie_instant_time"
#: A batch is brought to the driver if Spark takes it to be this many times smaller than the limit: its statistics may
#: be of compressed files.
_TRUSTED_SHARE = 8
#: Rows that are brought over when Spark does not know how many there are.
_FEW = 100_000


def _text(name: str) -> StructField:
    return StructField(name, StringType())


@typed_calls
class HoodieReadClient:
    """Asks a table about keys, by the index that its writers use. Nothing is written.

    Batches within `hoodie.spark.driver.max.batch.bytes` are brought to the driver, and their
    keys looked up by its threads; larger ones stay with Spark's tasks, which evaluate them more than once.
    """

    def __init__(
        self,
        session: SparkSession,
        path: str,
        options: Mapping[str, Any] | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """
        options          `hoodie.*` options: of the index, and of reads
        storage_options  as of `create_table`
        Raises           InvalidOption; TableNotFound
        """
        self.session = session
        self.storage = storage_for(path, storage_options)
        self.options = door_options(options, Purpose.READ, path)
        self.settings = Settings.read(self.options)
        self.options.read(MergeOptions)
        load_state(self.storage)

    def filter_exists(self, df: DataFrame) -> DataFrame:
        """The rows whose key the table does not hold: what an insert of the batch may add. Duplicates in it stay.

        df       the key and partition columns, and any others, which are kept; or `_hoodie_record_key` and
                 `_hoodie_partition_path` in place of these. A global index needs no partition
        Raises   SchemaMismatch naming columns that are missing; InvalidInput on rows without a key; UnsupportedTable
        A key whose row was deleted is not there, whether or not a file still has it.
        """
        context = self._lookup()
        frame = self._keyed(df, context, df.columns)
        frame, rows = self._near(frame)
        if rows is None:
            return self._absent_on_executors(frame, context).select(*map(snapshot.quoted, df.columns))
        with thread_pool(self.settings) as pool:
            places = locate_keys(context, rows, pool)
            reader = reader_for(context.state, self._schema(context.state), places.slices.values(), self.options)
            new = ~held(places, self.storage, reader, pool)
        return self._frame(places.batch.rows.filter(pa.array(new)), frame).select(*map(snapshot.quoted, df.columns))

    def read(self, keys: DataFrame, *, columns: Sequence[str] | None = None) -> KeyedRows[DataFrame]:
        """The rows of keys, as a snapshot has them; keys that are not there are left out.

        keys     as for `filter_exists`; other columns are ignored
        columns  of the table, in the order wanted; None: all, the five meta columns first
        returns  `rows`, a DataFrame, and `stats`: files pruned and opened, false positives, and for keys that were
                 brought to the driver row groups and rows; of others the rows are not read yet
        Raises   as `filter_exists`; InvalidInput on an unknown column
        Only files that hold one of the keys are opened for rows, and of these the row groups that can hold one.
        """
        context = self._lookup()
        schema = self._schema(context.state)
        wanted = schema.names if columns is None else list(columns)
        check_columns(wanted, schema)
        asked, rows = self._near(self._keyed(keys, context, []))
        if rows is None:
            batch = ask(self.session, context, asked, self._counts(asked))
            return KeyedRows(*rows_of(self.session, batch, schema, wanted, self.options))
        with thread_pool(self.settings) as pool:
            places = locate_keys(context, rows, pool)
            reader = reader_for(context.state, schema, places.slices.values(), self.options)
            found, stats = read_rows(places, self.storage, schema, wanted, reader, pool)
        target = nullable(to_spark(found.schema))
        return KeyedRows(local_frame(self.session, found, target), stats)

    def tag_location(self, df: DataFrame) -> DataFrame:
        """The rows with the file group that an upsert would find their key in.

        df       as for `filter_exists`
        returns  its columns, `_hoodie_record_key`, `_hoodie_partition_path` (with a global index that of the file
                 group), `_hoodie_file_id` and `_hoodie_instant_time`, the slice's base instant; the last two are null
                 for a new key. A key that is in two file groups gives two rows. As for an upsert, a deleted key whose
                 row waits in a base file for compaction has a place
        Raises   as `filter_exists`
        """
        context = self._lookup()
        frame = self._keyed(df, context, df.columns)
        names = list(dict.fromkeys([*df.columns, RECORD_KEY, PARTITION_PATH]))
        if taken := {FILE_ID, INSTANT} & set(names):
            raise SchemaMismatch(f"columns {sorted(taken)} are there already: drop them")
        frame, rows = self._near(frame)
        if rows is None:
            tagged = self._tag_on_executors(frame, context)
        else:
            with thread_pool(self.settings) as pool:
                places = locate_keys(context, rows, pool)
            tagged = self._frame(_located_rows(places), frame, FILE_ID, INSTANT)
        return tagged.select(*map(snapshot.quoted, names), FILE_ID, INSTANT)

    def get_pending_compactions(self) -> list[tuple[str, CompactionPlan]]:
        """The compactions that are planned or being run, with their plans; oldest first."""
        return [(instant.requested, plan) for instant, plan in pending_compactions(load_state(self.storage))]

    # --- what the calls share ---

    def _lookup(self) -> LookupContext:
        """The table as it is now, and its index."""
        state = completed(load_state(self.storage), self.options)
        if not state.config.meta_fields:
            raise UnsupportedTable(
                f"{state.config.name} stores no record keys (hoodie.populate.meta.fields=false): filter its rows"
            )
        return lookup_for_read(state, self.settings, self.options)

    def _schema(self, state: TableState) -> pa.Schema:
        return read_schema(state, FileSystemView(state.timeline))

    def _keyed(self, df: DataFrame, context: LookupContext, kept: Sequence[str]) -> DataFrame:
        """Columns of the rows, then record key and partition path; columns of these names are taken as they are."""
        state = context.state
        others = [snapshot.quoted(name) for name in kept if name not in (RECORD_KEY, PARTITION_PATH)]
        if {RECORD_KEY, PARTITION_PATH} <= set(df.columns):
            return df.select(*others, RECORD_KEY, PARTITION_PATH)
        schema = user_schema(df.schema)
        keygen = in_units_of(table_keygen(state, key_samples(state)), context.schema)
        unpartitioned = replace(keygen, partition_fields=())
        require_columns(schema, unpartitioned, (), state.config.name)
        key = record_keys.record_key(schema, keygen)
        lacking = record_keys.missing_columns(schema, replace(keygen, record_keys=()))
        if not lacking:
            path = record_keys.partition_path(schema, keygen)
            return df.select(*others, key.alias(RECORD_KEY), path.alias(PARTITION_PATH))
        if not context.index.is_global:
            raise SchemaMismatch(
                f"The keys do not fit table {state.config.name!r}: {'; '.join(lacking)}. The index "
                f"{context.index.name} finds a key within its partition only: add the column, or take {RECORD_KEY} and "
                f"{PARTITION_PATH} as reads have them."
            )
        # A global index does not look at the path.
        return df.select(*others, key.alias(RECORD_KEY), F.lit("").alias(PARTITION_PATH))

    def _near(self, frame: DataFrame) -> tuple[DataFrame, pa.Table | None]:
        """The frame, and its rows as Arrow if they are few enough for driver threads to look up.

        Spark knows no size of many frames, those made of Python rows among them: then the first rows tell. An estimate
        may be wrong (files compress, joins multiply), so what was brought over is measured; if it is too large, the
        frame returned has these rows, and its source is not evaluated again.
        """
        near = self.settings.engine.driver_batch
        if near == 0:
            return frame, None
        guess = estimated_bytes(frame)
        trusted = guess is not None and guess * _TRUSTED_SHARE <= near
        rows = to_arrow_table(frame if trusted else frame.limit(_FEW + 1))
        if rows.nbytes > near or (not trusted and rows.num_rows > _FEW):
            return (local_frame(self.session, rows, nullable(frame.schema)) if trusted else frame), None
        check_keys(rows)
        return frame, rows

    def _frame(self, rows: pa.Table, like: DataFrame, *more: str) -> DataFrame:
        """Arrow rows as a DataFrame of the same types; `more` are columns of text."""
        return local_frame(self.session, rows, nullable(StructType([*like.schema.fields, *map(_text, more)])))

    def _counts(self, frame: DataFrame) -> dict[str, int]:
        """Rows by partition path of a batch that stays with Spark. Raises InvalidInput on rows without a key."""
        bad = F.count_if(F.col(RECORD_KEY).isNull()).alias("bad")
        with raise_worker_errors():
            found = frame.groupBy(PARTITION_PATH).agg(F.count("*").alias("rows"), bad).collect()
        refuse_bad_keys(sum(row.bad for row in found), sum(row["rows"] for row in found if row[0] is None))
        return {row[0]: row["rows"] for row in found}

    def _absent_on_executors(self, frame: DataFrame, context: LookupContext) -> DataFrame:
        """Spark's anti join of the batch with keys that are there: all of its partitions, or those the index has."""
        counts, on, index = self._counts(frame), match_columns(context.index), context.index
        if isinstance(index.look_up, ByFile) and not index.look_up.pruned:  # it reads all keys in any case
            partitions = None if index.is_global else list(counts)
            there = snapshot.snapshot(self.session, context.state, None, partitions, on, self.options)
        elif context.is_certain:
            there = ask(self.session, context, frame, counts).found
        else:
            asked, schema = ask(self.session, context, frame, counts), self._schema(context.state)
            there, _ = rows_of(self.session, asked, schema, [RECORD_KEY, PARTITION_PATH], self.options)
        return frame.join(there.select(*on), on, "left_anti")

    def _tag_on_executors(self, frame: DataFrame, context: LookupContext) -> DataFrame:
        asked = ask(self.session, context, frame, self._counts(frame))
        found, _ = slices_of(asked)
        places = [(group.partition, group.file_id, slice_.base_instant) for group, slice_ in found.items()]
        slices = self.session.createDataFrame(places, StructType([*map(_text, ("path", FILE_ID, INSTANT))]))
        hits = asked.found.select(F.col(RECORD_KEY).alias("key"), F.col(PARTITION_PATH).alias("path"), FILE_ID)
        same = F.col(RECORD_KEY) == F.col("key")
        if not context.index.is_global:
            same &= F.col(PARTITION_PATH) == F.col("path")
        tagged = frame.join(hits.join(F.broadcast(slices), ["path", FILE_ID]), same, "left")
        return tagged.withColumn(PARTITION_PATH, F.coalesce("path", PARTITION_PATH))


def client_of(session: SparkSession, storage: Storage, options: Options) -> HoodieReadClient:
    """The client of a table whose storage and options are at hand."""
    client = HoodieReadClient.__new__(HoodieReadClient)
    client.session, client.storage, client.options = session, storage, options
    client.settings = Settings.read(options)
    return client


def _located_rows(places: LocatedKeys) -> pa.Table:
    """The rows of a batch, each with its places: file id and base instant, and the place's partition path."""
    located = places.located
    new = np.flatnonzero(located.inserts(len(places.batch.rows)))
    rows = places.batch.rows.take(pa.array(np.concatenate([located.rows, new])))
    groups = pa.array(
        np.concatenate([located.groups, np.zeros_like(new)]), mask=np.arange(len(rows)) >= len(located.rows)
    )
    instants = [slice_.base_instant if (slice_ := places.slices.get(place)) else None for place in located.places]

    def column(values: Sequence[str | None]) -> pa.Array:
        return pa.array(values or [None], pa.string()).take(groups)

    own = rows.column(PARTITION_PATH)
    path = pc.coalesce(column([place.partition for place in located.places]), own)
    rows = rows.set_column(rows.schema.get_field_index(PARTITION_PATH), PARTITION_PATH, path)
    rows = rows.append_column(FILE_ID, column([place.file_id for place in located.places]))
    return rows.append_column(INSTANT, column(instants))


@typed_errors()
def read_path(
    session: SparkSession,
    path: str,
    options: Mapping[str, Any] | None = None,
    *,
    props: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Read a table as Hudi's Spark data source would: what is read, the options say.

    options          `hoodie.datasource.query.type`: snapshot, read_optimized or incremental; for the last
                     `hoodie.datasource.read.begin.instanttime` and `.end.instanttime`, and
                     `hoodie.datasource.query.incremental.format`, which may be cdc; else `as.of.instant`
    props            path of a properties file with options, which those of the call override
    storage_options  as of `create_table`
    Raises           InvalidOption; as `HoodieTable.snapshot` and `HoodieTable.changes`
    """
    given = door_options(options, Purpose.READ, path, props)
    query = given.read(QueryOptions)
    state = load_state(storage_for(path, storage_options))
    if query.format is IncrementalFormat.CDC and query.query is not QueryType.INCREMENTAL:
        raise InvalidOption(
            "hoodie.datasource.query.incremental.format=cdc is for incremental queries: set "
            "hoodie.datasource.query.type=incremental"
        )
    if query.query is QueryType.INCREMENTAL:
        if not query.begin:
            raise InvalidOption(
                "an incremental query needs hoodie.datasource.read.begin.instanttime: an instant, which is not "
                "included, or earliest"
            )
        if query.format is IncrementalFormat.CDC:
            return change_data(session, state, query.begin, query.end or None, given)
        return incremental.changes(session, state, query.begin, query.end or None, None, given)
    as_of = query.as_of or None
    if query.query is QueryType.READ_OPTIMIZED:
        return snapshot.read_optimized(session, state, as_of, options=given)
    return snapshot.snapshot(session, state, as_of, options=given)
