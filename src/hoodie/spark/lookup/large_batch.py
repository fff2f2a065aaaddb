"""Keys that stay with Spark, as they are many: where an index has them, and the rows that the table has of them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.config.read import ReadSettings
from hoodie.index.pruning import IndexStats
from hoodie.lookup.batch import Batch, KeyLocations, numbered_groups, only
from hoodie.lookup.context import LookupContext
from hoodie.lookup.point_read import LocatedKeys, ReadStats, read_slice, reader_for, snapshot_slices
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta import PARTITION_PATH
from hoodie.reading.slices.reader import SliceReader
from hoodie.schema.conform import conform
from hoodie.spark.lookup.hits import KeyLookup, look_up_keys
from hoodie.spark.lookup.locate import FILE_ID
from hoodie.spark.read.merged_slices import BATCH_ROWS, pack
from hoodie.spark.tasks import cores
from hoodie.spark.types import all_nullable, in_session_zone, to_arrow, to_spark
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.storage.protocol import Storage


def ask(session: SparkSession, context: LookupContext, frame: DataFrame, rows: Mapping[str, int]) -> KeyLookup:
    """Look keys up in the table as it is.

    frame   with `_hoodie_record_key` and `_hoodie_partition_path`, no nulls
    rows    of it, by partition path
    Raises  UnsupportedTable where the index does not look
    """
    if context.instead is not None and not context.index.is_global:  # what a task finds elsewhere only files can settle
        context = replace(context, index=context.instead, instead=None)
    return look_up_keys(session, context, frame, rows, context.files(rows))


def slices_of(lookup: KeyLookup) -> tuple[dict[FileGroupId, FileSlice], IndexStats]:
    """The slices that hold a key, as a snapshot reader merges them, and what it cost to find them: one job.

    Raises CorruptIndex when an index of its own names file groups that are not there
    """
    start = time.perf_counter()
    updates, cost = lookup.count()
    groups = {FileGroupId(partition, file_id) for partition, ids in updates.items() for file_id in ids}
    return snapshot_slices(lookup.context, groups), replace(cost, seconds=time.perf_counter() - start)


def rows_of_keys(
    session: SparkSession, lookup: KeyLookup, schema: pa.Schema, columns: Sequence[str], settings: ReadSettings
) -> tuple[DataFrame, ReadStats]:
    """The rows that the table has of the keys, read when an action asks for them; only file groups that hold a key are
    opened, each by one task.

    schema   all columns of the table
    columns  those wanted, in order
    """
    state = lookup.context.state
    slices, cost = slices_of(lookup)
    reader = reader_for(state, schema, slices.values(), settings)
    requested_schema = pa.schema([schema.field(name) for name in columns])
    target = all_nullable(to_spark(requested_schema))
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    returned = in_session_zone(to_arrow(target), zone)
    # As many as by bytes, but by hash: a task gets the keys of some file groups, whichever Spark puts together.
    tasks = max(1, len(pack(list(slices.values()), 2 * cores(session))))
    kernel = partial(_read, state.storage, reader, slices, requested_schema, returned)
    rows = lookup.key_hits.repartition(tasks, PARTITION_PATH, FILE_ID).mapInArrow(kernel, target)
    merged = sum(bool(slice_.logs) for slice_ in slices.values())
    opened = sum(slice_.base is not None for slice_ in slices.values())
    return rows, ReadStats(index=cost, files_opened=opened, slices_merged=merged, seconds=cost.seconds)


def _read(
    storage: Storage,
    reader: SliceReader | None,
    slices: Mapping[FileGroupId, FileSlice],
    requested_schema: pa.Schema,
    returned: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    hit_batches = [batch for batch in batches if len(batch)]
    if not hit_batches:
        return
    hits = pa.Table.from_batches(hit_batches)
    columns = [hits.column(name).combine_chunks() for name in (PARTITION_PATH, FILE_ID)]
    groups, places = numbered_groups(*columns)
    located = only(KeyLocations(np.arange(len(hits)), groups, tuple(places), IndexStats()), slices.keys())
    for slice_, _, keys in LocatedKeys(
        Batch(hits, (), np.zeros(1, np.int64)), located, slices, certain=False
    ).slices_with_keys():
        with mark_worker_errors():
            rows, _ = read_slice(storage, reader, slice_, keys, requested_schema)
        yield from conform(rows, returned).to_batches(max_chunksize=BATCH_ROWS)
