"""Keys of a DataFrame looked up in a table: by threads of the driver when they are few, else by Spark's tasks."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from hoodie.api.arrow_keys import INSTANT, key_lookup, keygen_of, located_rows
from hoodie.api.engine import KeyedRows
from hoodie.api.inputs import arrow_stream, is_spark_frame
from hoodie.config.options import Options
from hoodie.errors import SchemaMismatch
from hoodie.index.contract import ByFile
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.keygen import KeyGenerator
from hoodie.lookup.context import LookupContext
from hoodie.lookup.point_read import held, locate_keys, read_rows, reader_for
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.filters.selection import check_columns, selected_columns
from hoodie.reading.table_schema import read_schema
from hoodie.schema.conform import conform
from hoodie.schema.schema import every_column
from hoodie.schema.types import stored_type
from hoodie.spark.columns import quoted
from hoodie.spark.keyed import KeyedFrame, has_keys, keyed_rows, keys_of, user_schema
from hoodie.spark.lookup.large_batch import ask, rows_of_keys, slices_of
from hoodie.spark.lookup.locate import FILE_ID, match_columns
from hoodie.spark.plan_size import estimated_bytes
from hoodie.spark.read import snapshot
from hoodie.spark.types import all_nullable, local_frame, spark_type_at, to_spark
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.writing.batch.arrow import check_keys, refuse_bad_keys
from hoodie.writing.batch.memory import thread_pool

#: A batch is brought to the driver if Spark takes it to be this many times smaller than the limit: its statistics may
#: be of compressed files.
_TRUSTED_SHARE = 8
#: Rows that are brought over when Spark does not know how many there are.
_FEW = 100_000


def _text(name: str) -> StructField:
    return StructField(name, StringType())


class SparkKeys:
    """Asks a table about keys: `HoodieReadClient` with a session.

    Batches within `hoodie.spark.driver.max.batch.bytes` are brought to the driver, and their
    keys looked up by its threads; larger ones stay with Spark's tasks, which evaluate them more than once.
    """

    def __init__(self, session: SparkSession, storage: Storage, options: Options) -> None:
        self.session, self.storage, self.options = session, storage, options
        self.settings = Settings.read(options)

    def filter_exists(self, rows: Any) -> DataFrame:
        df = self._frame_of(rows)
        context = key_lookup(self.storage, self.settings, self.options)
        batch = self._keyed(df, context, df.columns)
        near = self._arrow_if_few(batch, context)
        if not isinstance(near, pa.Table):
            return self._absent_on_executors(near, context).select(*map(quoted, df.columns))
        with thread_pool(self.settings) as pool:
            places = locate_keys(context, near, pool)
            schema = read_schema(context.state)
            reader = reader_for(context.state, schema, places.slices.values(), self.settings.reading)
            new = ~held(places, self.storage, reader, pool)
        return self._frame(places.batch.rows.filter(pa.array(new)), batch).select(*map(quoted, df.columns))

    def read(self, keys: Any, columns: Sequence[str] | None = None, meta: bool = True) -> KeyedRows[DataFrame]:
        """As `HoodieReadClient.read`. Rows of keys that were not brought to the driver are not read yet."""
        context = key_lookup(self.storage, self.settings, self.options)
        schema = read_schema(context.state)
        requested_columns = list(selected_columns(columns, every_column(schema, meta)))
        check_columns(requested_columns, schema)
        near = self._arrow_if_few(self._keyed(self._frame_of(keys), context, []), context)
        if not isinstance(near, pa.Table):
            lookup = ask(self.session, context, near, self._counts(near, context))
            return KeyedRows(*rows_of_keys(self.session, lookup, schema, requested_columns, self.settings.reading))
        with thread_pool(self.settings) as pool:
            places = locate_keys(context, near, pool)
            reader = reader_for(context.state, schema, places.slices.values(), self.settings.reading)
            rows, stats = read_rows(places, self.storage, schema, requested_columns, reader, pool)
        target = all_nullable(to_spark(rows.schema))
        return KeyedRows(local_frame(self.session, rows, target), stats)

    def tag_location(self, rows: Any) -> DataFrame:
        df = self._frame_of(rows)
        context = key_lookup(self.storage, self.settings, self.options)
        batch = self._keyed(df, context, df.columns)
        names = list(dict.fromkeys([*df.columns, RECORD_KEY, PARTITION_PATH]))
        if taken := {FILE_ID, INSTANT} & set(names):
            raise SchemaMismatch(f"columns {sorted(taken)} are there already: drop them")
        near = self._arrow_if_few(batch, context)
        if not isinstance(near, pa.Table):
            tagged = self._tag_on_executors(near, context)
        else:
            with thread_pool(self.settings) as pool:
                places = locate_keys(context, near, pool)
            tagged = self._frame(located_rows(places), batch, FILE_ID, INSTANT)
        return tagged.select(*map(quoted, names), FILE_ID, INSTANT)

    # --- what the calls share ---

    def _frame_of(self, rows: Any) -> DataFrame:
        """Rows of any kind as a DataFrame."""
        if is_spark_frame(rows):
            frame: DataFrame = rows
            return frame
        table = arrow_stream(rows).read_all()
        # Spark has no type for categories, views and unsigned numbers; what tables have none for either it names.
        plain = pa.schema([field.with_type(stored_type(field.type) or field.type) for field in table.schema])
        plain_table = conform(table, plain)
        return local_frame(self.session, plain_table, to_spark(plain_table.schema))

    def _keyed(self, df: DataFrame, context: LookupContext, columns: Sequence[str]) -> KeyedFrame:
        """Columns of the rows, then record key and partition path; columns of these names are taken as they are."""
        others = tuple(name for name in columns if name not in (RECORD_KEY, PARTITION_PATH))
        keygen: KeyGenerator | None = None
        if not has_keys(df):
            schema = user_schema(df.schema)
            keygen = keygen_of(context, schema.names, lambda name: spark_type_at(schema, name) is not None)
        if not others:
            return keys_of(df, keygen)
        return keyed_rows(df.select(*map(quoted, df.columns)), RowKeys(others, keygen), others)

    def _arrow_if_few(self, batch: KeyedFrame, context: LookupContext) -> pa.Table | DataFrame:
        """The keyed rows as Arrow if they are few enough for driver threads to look up, else as a frame.

        Spark knows no size of many frames, those made of Python rows among them: then the first rows tell. An estimate
        may be wrong (files compress, joins multiply), so what was brought over is measured; if it is too large, the
        frame returned has these rows, and its source is not evaluated again.
        """
        near = self.settings.engine.driver_batch
        if near == 0:
            return batch.with_columns()
        guess = estimated_bytes(batch.frame)
        trusted = guess is not None and guess * _TRUSTED_SHARE <= near
        rows = batch.rows(None if trusted else _FEW + 1)
        if rows.nbytes > near or (not trusted and rows.num_rows > _FEW):
            return (KeyedFrame.local(self.session, rows, batch.schema) if trusted else batch).with_columns()
        check_keys(rows, context.state.config)
        return rows

    def _frame(self, rows: pa.Table, like: KeyedFrame, *more: str) -> DataFrame:
        """Arrow rows as a DataFrame of the same types; `more` are columns of text."""
        return local_frame(self.session, rows, all_nullable(StructType([*like.schema.fields, *map(_text, more)])))

    def _counts(self, frame: DataFrame, context: LookupContext) -> dict[str, int]:
        """Rows by partition path of a batch that stays with Spark. Raises InvalidInput on rows without a key."""
        bad = F.count_if(F.col(RECORD_KEY).isNull()).alias("bad")
        with raise_worker_errors():
            partition_counts = frame.groupBy(PARTITION_PATH).agg(F.count("*").alias("rows"), bad).collect()
        bad_paths = sum(row["rows"] for row in partition_counts if row[0] is None)
        refuse_bad_keys(sum(row.bad for row in partition_counts), bad_paths, context.state.config)
        return {row[0]: row["rows"] for row in partition_counts}

    def _absent_on_executors(self, frame: DataFrame, context: LookupContext) -> DataFrame:
        """Spark's anti join of the batch with keys that are there: all of its partitions, or those the index has."""
        counts, on, index = self._counts(frame, context), match_columns(context.index), context.index
        if isinstance(index.look_up, ByFile) and not index.look_up.pruned:  # it reads all keys in any case
            partitions = None if index.is_global else list(counts)
            existing_rows = snapshot.snapshot(self.session, context.state, None, partitions, on, self.settings.reading)
        elif context.is_certain:
            existing_rows = ask(self.session, context, frame, counts).key_hits
        else:
            lookup, schema = ask(self.session, context, frame, counts), read_schema(context.state)
            existing_rows, _ = rows_of_keys(
                self.session, lookup, schema, [RECORD_KEY, PARTITION_PATH], self.settings.reading
            )
        return frame.join(existing_rows.select(*on), on, "left_anti")

    def _tag_on_executors(self, frame: DataFrame, context: LookupContext) -> DataFrame:
        lookup = ask(self.session, context, frame, self._counts(frame, context))
        slices_by_group, _ = slices_of(lookup)
        places = [(group.partition, group.file_id, slice_.base_instant) for group, slice_ in slices_by_group.items()]
        slices = self.session.createDataFrame(places, StructType([*map(_text, ("path", FILE_ID, INSTANT))]))
        hits = lookup.key_hits.select(F.col(RECORD_KEY).alias("key"), F.col(PARTITION_PATH).alias("path"), FILE_ID)
        same = F.col(RECORD_KEY) == F.col("key")
        if not context.index.is_global:
            same &= F.col(PARTITION_PATH) == F.col("path")
        tagged = frame.join(hits.join(F.broadcast(slices), ["path", FILE_ID]), same, "left")
        return tagged.withColumn(PARTITION_PATH, F.coalesce("path", PARTITION_PATH))
