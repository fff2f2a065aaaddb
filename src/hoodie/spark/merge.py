"""File slices with logs as a DataFrame: Arrow tasks merge them, one Spark partition a task."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.formats.conform import conform
from hoodie.model.files import FileSlice
from hoodie.spark.packing import cores, deal
from hoodie.spark.types import in_session_zone, nullable, to_arrow, to_spark
from hoodie.table.log_reader import SliceReader, merged_batches

#: Bytes of files that a task is given, and the bytes that opening a slice counts as: Spark's own defaults for files.
_TASK_BYTES = 128 * 1024 * 1024
_OPEN_BYTES = 4 * 1024 * 1024
#: Rows in a batch on their way to Spark.
BATCH_ROWS = 16_384


#: Those of some rows that are wanted; a picklable function.
Keep = Callable[[pa.Table], pa.Table]


def merged_rows(
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
    if not columns:
        return merged_rows(session, reader, slices, reader.schema.names[:1], keep).select()
    target = nullable(to_spark(pa.schema([reader.schema.field(name) for name in columns])))
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    arrow = in_session_zone(to_arrow(target), zone)
    # Each as bytes: a task then only undoes its own.
    tasks = [zlib.compress(pickle.dumps(task)) for task in pack(slices, cores(session))]
    numbers = session.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(partial(_merge, reader, tuple(tasks), arrow, keep), target)


def pack(slices: Sequence[FileSlice], at_once: int) -> list[list[FileSlice]]:
    """The slices in tasks of about equal bytes, as Spark cuts files: small enough to keep all cores busy."""
    sizes = [_OPEN_BYTES + slice_bytes(slice_) for slice_ in slices]
    share = min(_TASK_BYTES, max(_OPEN_BYTES, sum(sizes) // max(1, at_once)))
    count = min(len(slices), -(-sum(sizes) // share))
    return deal(slices, lambda slice_: _OPEN_BYTES + slice_bytes(slice_), count)


def slice_bytes(slice_: FileSlice) -> int:
    """Bytes of a slice's files."""
    return (slice_.base.size if slice_.base else 0) + sum(log.size for log in slice_.logs)


def _merge(
    reader: SliceReader,
    tasks: Sequence[bytes],
    schema: pa.Schema,
    keep: Keep | None,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for slice_ in pickle.loads(zlib.decompress(tasks[number])):
                for merged in merged_batches(reader, slice_, schema.names):
                    rows = merged if keep is None else keep(merged)
                    yield from conform(rows, schema).to_batches(max_chunksize=BATCH_ROWS)
