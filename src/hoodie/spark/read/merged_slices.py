"""File slices with logs, merged by Arrow tasks: what they make is a DataFrame, one Spark partition a task."""

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.model.files import FileSlice
from hoodie.reading.slices.reader import SliceReader, merged_batches
from hoodie.schema.conform import conform
from hoodie.spark.tasks import balance, cores
from hoodie.spark.types import all_nullable, in_session_zone, to_arrow, to_spark

#: Bytes of files that a task is given, and the bytes that opening a slice counts as: Spark's own defaults for files.
_TASK_BYTES = 128 * 1024 * 1024
_OPEN_BYTES = 4 * 1024 * 1024
#: Rows in a batch on their way to Spark.
BATCH_ROWS = 16_384


T = TypeVar("T")

#: Those of some rows that are wanted; a picklable function.
Keep = Callable[[pa.Table], pa.Table]
#: Rows of a slice; a picklable function.
ReadSlice = Callable[[FileSlice], Iterator[pa.Table]]


def merged_frame(
    session: SparkSession,
    reader: SliceReader,
    slices: Sequence[FileSlice],
    columns: Sequence[str],
    keep: Keep | None = None,
) -> DataFrame:
    """The rows of slices, merged when an action asks for them.

    columns  of the table, in the order wanted: no others are decoded. Spark cannot tell a Python function which columns
             or rows a query needs, so what a query drops later has been read
    keep     of the merged rows, by the columns wanted; None: all
    """
    names = list(columns) or reader.schema.names[:1]
    schema = pa.schema([reader.schema.field(name) for name in names])
    rows = slice_rows(session, slices, schema, partial(_merged, reader, names, keep))
    return rows if columns else rows.select()


def slice_rows(session: SparkSession, slices: Sequence[FileSlice], schema: pa.Schema, read: ReadSlice) -> DataFrame:
    """What a function makes of slices, as rows of a schema, when an action asks for it."""
    return packed_rows(session, slices, attrgetter("bytes"), schema, read)


def packed_rows(
    session: SparkSession,
    items: Sequence[T],
    size: Callable[[T], int],
    schema: pa.Schema,
    read: Callable[[T], Iterator[pa.Table]],
) -> DataFrame:
    """What a picklable function makes of items, so many bytes each, as rows of a schema, when an action asks for it."""
    return packed_tasks(session, items, size, schema, partial(_read_each, read))


def packed_tasks(
    session: SparkSession,
    items: Sequence[T],
    size: Callable[[T], int],
    schema: pa.Schema,
    read: Callable[[Sequence[T]], Iterator[pa.Table]],
) -> DataFrame:
    """As `packed_rows`, of a function that gets all items of a task."""
    target = all_nullable(to_spark(schema))
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    arrow = in_session_zone(to_arrow(target), zone)
    # Each as bytes: a task then only undoes its own.
    tasks = [zlib.compress(pickle.dumps(task)) for task in pack_by(items, size, cores(session))]
    numbers = session.range(0, len(tasks), 1, max(1, len(tasks)))
    return numbers.mapInArrow(partial(_read, read, tuple(tasks), arrow), target)


def pack(slices: Sequence[FileSlice], at_once: int) -> list[list[FileSlice]]:
    """The slices in tasks of about equal bytes, as Spark cuts files: small enough to keep all cores busy."""
    return pack_by(slices, attrgetter("bytes"), at_once)


def pack_by(items: Sequence[T], size: Callable[[T], int], at_once: int) -> list[list[T]]:
    """As `pack`, of anything that is so many bytes."""
    sizes = [size(item) for item in items]
    whole = sum(sizes) + _OPEN_BYTES * len(sizes)
    count = min(len(items), -(-whole // task_bytes(sizes, at_once)))
    return balance(items, lambda item: _OPEN_BYTES + size(item), count)


def task_bytes(sizes: Sequence[int], at_once: int) -> int:
    """Bytes for a task, of items that are so many bytes each."""
    whole = sum(sizes) + _OPEN_BYTES * len(sizes)
    return min(_TASK_BYTES, max(_OPEN_BYTES, whole // max(1, at_once)))


def _merged(reader: SliceReader, columns: Sequence[str], keep: Keep | None, slice_: FileSlice) -> Iterator[pa.Table]:
    batches = merged_batches(reader, slice_, columns)
    return batches if keep is None else map(keep, batches)


def _read_each(read: Callable[[T], Iterator[pa.Table]], items: Iterable[T]) -> Iterator[pa.Table]:
    return chain.from_iterable(map(read, items))


def _read(
    read: Callable[[Sequence[T]], Iterator[pa.Table]],
    tasks: Sequence[bytes],
    schema: pa.Schema,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for rows in read(pickle.loads(zlib.decompress(tasks[number]))):
                yield from conform(rows, schema).to_batches(max_chunksize=BATCH_ROWS)
