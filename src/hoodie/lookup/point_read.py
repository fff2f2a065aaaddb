"""Rows by key: where the keys of a batch are, which of them the table holds, and the rows of those it does.

An index says where a key would be: in Merge-on-Read tables it knows nothing of a delete in a log, and a bucket holds
keys that are not there yet. So where it cannot be certain, the slice that it names is asked.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.config.read import ReadSettings
from hoodie.errors import CorruptIndex
from hoodie.formats.parquet.columns import open_encoded, read_columns
from hoodie.index.contract import ByFile
from hoodie.index.pruning import IndexStats, lookup_keys
from hoodie.lookup.batch import Batch, KeyLocations, locate, locate_by_key, one_chunk, only, order_by_partition
from hoodie.lookup.context import LookupContext, index_context, refuse_unknown
from hoodie.lookup.key_lookup import keys_in_base
from hoodie.lookup.record_index import KeyElsewhere, ignore_record_index
from hoodie.merge.rows import Mask
from hoodie.model.files import BaseFile, FileGroupId, FileSlice
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.slices.column_types import FileColumns, base_columns
from hoodie.reading.slices.reader import SliceReader, merged_batches, slice_reader
from hoodie.schema.conform import conform
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState
from hoodie.view.slices import merged_slices


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStats:
    """What a read of keys cost.

    index  of finding their file groups: files, those pruned, those whose keys were read, false positives, hits
    """

    index: IndexStats = field(default_factory=IndexStats)
    files_opened: int = 0  # base files whose rows were read
    slices_merged: int = 0  # of these file groups, slices whose logs were merged for it
    row_groups: int = 0  # of the opened files of slices without logs
    row_groups_read: int = 0  # the others hold none of the keys by their least and greatest
    rows: int = 0
    seconds: float = 0.0  # wall time, the index's share included

    def __add__(self, other: ReadStats) -> ReadStats:
        return ReadStats(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


@dataclass(frozen=True, slots=True)
class LocatedKeys:
    """A batch with the file groups that its keys are in, as an index has it.

    slices   of these file groups, as a snapshot reader merges them
    certain  a key that was found in a slice without logs is there
    """

    batch: Batch
    located: KeyLocations
    slices: Mapping[FileGroupId, FileSlice]
    certain: bool

    def slices_with_keys(self) -> Iterator[tuple[FileSlice, npt.NDArray[np.int64], pa.Array]]:
        """The slices, each with the rows of the batch whose keys are in it, and these keys."""
        keys = self.batch.rows.column(RECORD_KEY)
        for place, rows in self.located.by_place():
            yield self.slices[place], rows, one_chunk(keys.take(pa.array(rows)))


def locate_keys(context: LookupContext, rows: pa.Table, pool: Executor) -> LocatedKeys:
    """Where the keys of rows are.

    rows     with `_hoodie_record_key` and `_hoodie_partition_path`, no nulls; others are carried along
    Raises   UnsupportedTable where the index does not look; CorruptFile; MissingFile; FileNotFoundError when a file was
             cleaned away
    """
    try:
        return _locate_keys(context, rows, pool)
    except (CorruptIndex, KeyElsewhere) as problem:
        if context.instead is None:
            raise
        if not isinstance(problem, KeyElsewhere):
            ignore_record_index(context.state.storage, problem)
        return _locate_keys(replace(context, index=context.instead, instead=None), rows, pool)


def _locate_keys(context: LookupContext, rows: pa.Table, pool: Executor) -> LocatedKeys:
    state, index = context.state, context.index
    batch = order_by_partition(rows)
    files = context.files(batch.partitions)
    if isinstance(index.look_up, ByFile):
        located = locate(state.storage, batch, files.bases, index, context.settings.bloom, pool)
    else:
        located = locate_by_key(batch, index.look_up.tagger(index_context(state, batch.partitions, files)))
    slices = snapshot_slices(context, {place for place, _ in located.by_place()})
    located = only(located, slices.keys())
    return LocatedKeys(batch, located, slices, context.by_file)


def snapshot_slices(context: LookupContext, groups: Collection[FileGroupId]) -> dict[FileGroupId, FileSlice]:
    """The slices of some file groups, as a snapshot reader merges them; those without one are left out.

    Raises as `TableState.files`; CorruptIndex when an index by key names file groups that are not there
    """
    if not groups:
        return {}
    state, partitions = context.state, {group.partition for group in groups}
    view = state.view(partitions)
    state.require_complete(view, partitions, context.reading)
    slices = {group: slice_ for group, slice_ in merged_slices(view).items() if group in groups}
    if not (context.by_file or context.names_new):
        refuse_unknown(context.index, groups, slices)
    return slices


def reader_for(
    state: TableState, schema: pa.Schema, slices: Iterable[FileSlice], settings: ReadSettings
) -> SliceReader | None:
    """How those of the slices that have logs are read; None: there are none. Raises as `slice_reader`."""
    if not any(slice_.logs for slice_ in slices):
        return None
    return slice_reader(state, schema, None, settings)


def held(places: LocatedKeys, storage: Storage, reader: SliceReader | None, pool: Executor) -> Mask:
    """Which rows of the batch have a key that a snapshot of the table has."""
    mask = np.zeros(len(places.batch.rows), np.bool_)
    calls = []
    for slice_, rows, keys in places.slices_with_keys():
        if places.certain and not slice_.logs:
            mask[rows] = True
        else:
            calls.append((rows, pool.submit(_held_in, storage, reader, slice_, keys)))
    for rows, call in calls:
        mask[rows] |= call.result()
    return mask


def _held_in(storage: Storage, reader: SliceReader | None, slice_: FileSlice, keys: pa.Array) -> Mask:
    if slice_.base is not None and not slice_.logs:
        return keys_in_base(storage, slice_.base.path, keys, slice_.base.size)
    mask = np.zeros(len(keys), np.bool_)
    if slice_.logs:
        assert reader is not None  # `reader_for` saw to it
        for rows in merged_batches(reader, slice_, [RECORD_KEY]):
            mask |= lookup_keys(rows.column(0), keys)
    return mask


def read_rows(
    places: LocatedKeys,
    storage: Storage,
    schema: pa.Schema,
    columns: Sequence[str],
    reader: SliceReader | None,
    pool: Executor,
) -> tuple[pa.Table, ReadStats]:
    """The rows that the table has of the keys, each once; only file groups that hold a key are opened.

    schema   all columns of the table, meta columns included
    columns  those wanted, in order
    """
    started = time.perf_counter()
    target = pa.schema([schema.field(name) for name in columns])
    calls = []
    for slice_, _, keys in places.slices_with_keys():
        calls.append(pool.submit(read_slice, storage, reader, slice_, keys, target))
    parts, stats = [target.empty_table()], ReadStats(index=places.located.stats)
    for call in calls:
        rows, cost = call.result()
        parts.append(rows)
        stats += cost
    result = pa.concat_tables(parts).combine_chunks()
    seconds = time.perf_counter() - started + places.located.stats.seconds
    return result, replace(stats, rows=result.num_rows, seconds=seconds)


def read_slice(
    storage: Storage, reader: SliceReader | None, slice_: FileSlice, keys: pa.Array, target: pa.Schema
) -> tuple[pa.Table, ReadStats]:
    """The rows that a slice has of the keys, and what reading them cost. For `reader` see `reader_for`."""
    if not slice_.logs:
        return _stored(storage, slice_, keys, target)
    assert reader is not None  # `reader_for` saw to it
    return _merged(reader, slice_, keys, target)


def _merged(reader: SliceReader, slice_: FileSlice, keys: pa.Array, target: pa.Schema) -> tuple[pa.Table, ReadStats]:
    names = list(dict.fromkeys([*target.names, RECORD_KEY]))
    batches = merged_batches(reader, slice_, names)
    parts = [rows.filter(pc.is_in(rows.column(RECORD_KEY), keys)).select(target.names) for rows in batches]
    return pa.concat_tables([target.empty_table(), *parts]), ReadStats(
        files_opened=int(slice_.base is not None), slices_merged=1
    )


def _stored(storage: Storage, slice_: FileSlice, keys: pa.Array, target: pa.Schema) -> tuple[pa.Table, ReadStats]:
    assert slice_.base is not None  # a slice without logs has a base file
    with storage.open_input(slice_.base.path, slice_.base.size) as source:
        parquet = open_encoded(source, slice_.base.path)
        groups = list(_may_hold(parquet, keys))
        types = base_columns(storage, parquet, target, slice_.base.instant)
        parts = [_rows_of_group(parquet, group, slice_.base, keys, target, types) for group in groups]
    stats = ReadStats(files_opened=1, row_groups=parquet.num_row_groups, row_groups_read=len(groups))
    return pa.concat_tables([target.empty_table(), *parts]), stats


def _rows_of_group(
    parquet: pq.ParquetFile, group: int, base: BaseFile, keys: pa.Array, target: pa.Schema, types: FileColumns
) -> pa.Table:
    stored = read_columns(parquet, group, [RECORD_KEY], base.path).column(0)
    at = np.flatnonzero(np.asarray(pc.is_in(stored, keys)))
    if not len(at):
        return target.empty_table()
    in_file = set(parquet.schema_arrow.names)
    names = [name for name in types.names(target.names, in_file) if name != RECORD_KEY]
    rows = read_columns(parquet, group, names, base.path).take(pa.array(at)) if names else pa.table({})
    # The key column is here already.
    keyed_rows = pa.Table.from_arrays([*rows.columns, stored.take(pa.array(at))], [*rows.column_names, RECORD_KEY])
    return conform(types.applied(keyed_rows), target, drop_extra=True)


def _may_hold(parquet: pq.ParquetFile, keys: pa.Array) -> Iterator[int]:
    """The row groups that can hold one of the keys, by their least and greatest. Parquet orders strings by bytes."""
    binary_keys = keys.cast(pa.binary())
    paths = [parquet.schema.column(number).path for number in range(len(parquet.schema))]
    column = paths.index(RECORD_KEY)
    for group in range(parquet.num_row_groups):
        statistics = parquet.metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            yield group
            continue
        low, high = (value.encode() if isinstance(value, str) else value for value in (statistics.min, statistics.max))
        if pc.any(pc.and_(pc.greater_equal(binary_keys, low), pc.less_equal(binary_keys, high))).as_py():
            yield group
