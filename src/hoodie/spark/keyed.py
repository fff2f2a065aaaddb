"""Rows of a DataFrame with what makes their keys: in Arrow, where rows leave Spark, else as columns in one step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from hoodie.errors import SchemaMismatch
from hoodie.keygen.arrow_keys import RowKeys, parts_of
from hoodie.keygen.generated_keys import MakeKeys, NewKeys
from hoodie.keygen.keygen import KeyGenerator, refuse_lacking
from hoodie.model.meta import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.spark.columns import quoted
from hoodie.spark.types import all_nullable, fit_for_arrow, local_frame, spark_type_at, to_arrow
from hoodie.spark.worker_errors import mark_worker_errors


@dataclass(frozen=True, slots=True, eq=False)
class KeyedFrame:
    """Rows that Spark has, whose keys are made once they are Arrow.

    make_keys  None: the rows have them
    schema     of the keyed rows
    """

    frame: DataFrame
    make_keys: MakeKeys | None
    schema: T.StructType

    @classmethod
    def of(cls, frame: DataFrame, make_keys: MakeKeys, columns: Sequence[str]) -> KeyedFrame:
        """columns  of the frame that stay beside the keys"""
        fields = {field.name: field for field in frame.schema.fields}
        keys = [T.StructField(name, T.StringType()) for name in (RECORD_KEY, PARTITION_PATH)]
        return cls(frame, make_keys, T.StructType([*(fields[name] for name in columns), *keys]))

    @classmethod
    def local(cls, session: SparkSession, rows: pa.Table, schema: T.StructType) -> KeyedFrame:
        """Keyed rows of this process."""
        return cls(local_frame(session, rows, all_nullable(schema)), None, schema)

    def rows(self, limit: int | None = None) -> pa.Table:
        """The keyed rows, every column nullable. limit: of these the first"""
        rows = to_arrow_table(self.frame if limit is None else self.frame.limit(limit))
        if self.make_keys is None:
            return rows
        return pa.concat_tables(map(_of_task(self.make_keys, 0), parts_of(rows)))

    def without_new_keys(self) -> tuple[DataFrame, MakeKeys | None]:
        """The rows with their keys as columns of Spark's, and what gives new rows theirs: after any shuffle, as a task
        that runs again may number its rows in another order. None: all have one."""
        if not isinstance(self.make_keys, NewKeys):
            return self.with_columns(), None
        names = tuple(name for name in self.schema.names if name not in (RECORD_KEY, PARTITION_PATH))
        unnumbered = KeyedFrame(self.frame, self.make_keys.make_keys, self.schema)
        return unnumbered.with_columns(), NewKeys(RowKeys(names, None))

    def with_columns(self) -> DataFrame:
        """The rows with their keys as columns of Spark's."""
        if self.make_keys is None:
            return self.frame
        rows = self.frame.to(all_nullable(self.frame.schema))
        return rows.mapInArrow(partial(keyed_batches, self.make_keys), all_nullable(self.schema))


def keyed_batches(make_keys: MakeKeys | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: the rows as Spark hands them over, with their keys."""
    if make_keys is not None:
        context = TaskContext.get()
        make_keys = _of_task(make_keys, context.partitionId() if context else 0)
    for batch in map(fit_for_arrow, batches):
        if make_keys is None:
            yield batch
            continue
        with mark_worker_errors():
            rows = make_keys(pa.Table.from_batches([batch]))
        yield from rows.to_batches()


def _of_task(make_keys: MakeKeys, task: int) -> MakeKeys:
    return make_keys.of_task(task) if isinstance(make_keys, NewKeys) else make_keys


def has_keys(frame: DataFrame) -> bool:
    """Whether rows come with record key and partition path, as reads have them: all that a delete needs."""
    return {RECORD_KEY, PARTITION_PATH} <= set(frame.columns)


def keyed_rows(frame: DataFrame, make_keys: MakeKeys, columns: Sequence[str]) -> KeyedFrame:
    """Columns of the frame, then the keys. Raises as `make_keys` on types that no key is made of"""
    make_keys(to_arrow(frame.schema).empty_table())
    return KeyedFrame.of(frame, make_keys, columns)


def keys_of(frame: DataFrame, keygen: KeyGenerator | None, parts: Collection[str] = ()) -> KeyedFrame:
    """The keys alone, or with the columns `parts` of them; keygen None: the frame has them. Raises as `keyed_rows`"""
    columns: Iterable[str] = (RECORD_KEY, PARTITION_PATH)
    if keygen is not None:
        paths = (*keygen.record_keys, *(field.name for field in keygen.partition_fields))
        columns = dict.fromkeys(path.partition(".")[0] for path in paths)
    stay = tuple(name for name in columns if name in parts)
    return keyed_rows(frame.select(*map(quoted, columns)), RowKeys(stay, keygen), stay)


def user_schema(schema: T.StructType) -> T.StructType:
    """The columns without the five meta columns, which a frame read from a table has."""
    return T.StructType([field for field in schema.fields if field.name not in META_COLUMNS])


def require_frame_columns(schema: T.StructType, keygen: KeyGenerator, ordering: Sequence[str], table: str) -> None:
    """As `refuse_lacking`, and refuses an ordering column without an order."""
    refuse_lacking(schema.names, lambda name: spark_type_at(schema, name) is not None, keygen, ordering, table)
    for name in ordering:
        kind = spark_type_at(schema, name)
        if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
            raise SchemaMismatch(f"ordering column {name!r} is {kind.simpleString()}: expected a number, text or time")


def to_arrow_table(frame: DataFrame) -> pa.Table:
    """The frame's rows, every column nullable.

    Spark fails on a null struct whose fields take no nulls. Only then is the frame asked in other types: that is a plan
    of its own, which costs as much as the job of a small batch.
    """
    types = all_nullable(frame.schema)
    if [field.dataType for field in types] != [field.dataType for field in frame.schema]:
        frame = frame.to(types)
    rows = frame.toArrow()
    rows = pa.Table.from_batches(map(fit_for_arrow, rows.to_batches()), rows.schema)
    return pa.Table.from_arrays(rows.columns, schema=pa.schema([field.with_nullable(True) for field in rows.schema]))
