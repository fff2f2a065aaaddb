"""The partition `record_index`: which file group each record key is in.

A write says which keys it put where (`hoodie.writing.key_changes`). What a write did not look up, or looked up before
other commits came, is compared here, under the table's lock, with the entries that there are.
Source: docs/format/metadata-table.md 1.2, 4.5 and 7.4; pinned by tests/unit/metadata/test_record_index_keeping.py.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.config.metadata import MetadataOptions
from hoodie.config.table import TimelineZone
from hoodie.errors import CorruptFile, UnsupportedTable, WriteConflict
from hoodie.index.stored_keys import keys_in
from hoodie.metadata.encode import column_in_one_piece
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.locations import open_locator
from hoodie.metadata.partitions.kind import Building, Change, InitialContent, PartitionKind, SliceKeys, always
from hoodie.metadata.record_index import PLACES, entries, epoch_millis, locations, places_table, record_index_cells
from hoodie.metadata.records import RECORD_INDEX as SCHEMA
from hoodie.metadata.records import deleted_records
from hoodie.model.commit import Operation
from hoodie.model.files import BaseFile, FileSlice
from hoodie.storage.protocol import Storage, in_threads
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices

#: Bytes of an entry, as Hudi estimates them.
_ENTRY_BYTES = 48
#: A look-up decompresses a block for each key, and the index of the file: with small blocks both are cheap.
_BLOCK_SIZE = 8 * 1024
_SAME_KEYS = frozenset({Operation.COMPACT, Operation.LOG_COMPACT})
#: Bytes of data files whose keys one task of building reads.
_SHARE = 64 * 1024 * 1024


def _records(change: Change) -> pa.Table:
    """What an action changes in the index. Raises UnsupportedTable where that is not known, or a key is in two file
    groups; WriteConflict where another writer has inserted one of its keys since they were looked up"""
    commit, keys = change.commit, change.keys
    if change.compacted:
        raise UnsupportedTable(f"what {change.instant} takes back of it is part of its base files by now")
    if commit is None or commit.compacted or commit.operation in _SAME_KEYS or not (commit.stats or commit.replaced):
        return SCHEMA.empty_table()
    if keys is None:
        raise UnsupportedTable(f"the writer of {change.instant} does not say which keys it changed")
    inserted, deleted = keys.inserted, keys.deleted
    _require_once(inserted)
    if not keys.looked_up or keys.commits != change.timeline.commits:
        inserted, deleted = _without_repeats(change, inserted, deleted)
    deleted_keys = column_in_one_piece(deleted, "row")
    deleted_keys = deleted_keys.filter(
        pc.invert(pc.is_in(deleted_keys, value_set=column_in_one_piece(inserted, "row")))
    )
    new = entries(inserted, epoch_millis(change.instant, change.config.timezone))
    return pa.concat_tables([new, deleted_records(deleted_keys.unique(), MetadataPartition.RECORD_INDEX)])


def _without_repeats(change: Change, inserted: pa.Table, deleted: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Keys that were inserted and deleted, without those of which the entries say so already."""
    if not (len(inserted) or len(deleted)):
        return inserted, deleted
    locator = open_locator(change.storage, change.config, change.timeline)
    if isinstance(locator, str):
        raise CorruptFile(change.storage.root, locator)
    keys = pa.concat_arrays([column_in_one_piece(inserted, "row"), column_in_one_piece(deleted, "row")])
    stored = locator.entries(keys.unique())
    paths, ids = locations(stored)
    stored_rows = pa.Table.from_arrays([column_in_one_piece(stored, "row"), paths, ids], schema=PLACES)
    deleted = deleted.filter(_is_there(deleted, stored_rows))
    same = _is_there(inserted, stored_rows)
    is_deleted = pc.is_in(inserted.column("row"), value_set=column_in_one_piece(deleted, "row"))
    is_stored = pc.is_in(inserted.column("row"), value_set=column_in_one_piece(stored_rows, "row"))
    elsewhere = inserted.filter(pc.and_(is_stored, pc.invert(pc.or_(same, is_deleted))))
    if len(elsewhere):
        _refuse(change, elsewhere.slice(0, 1).to_pylist()[0], stored_rows)
    return inserted.filter(pc.invert(same)), deleted


def _is_there(places: pa.Table, stored_rows: pa.Table) -> pa.ChunkedArray:
    """bool[n]: whether entries say the same of keys."""
    at = pc.index_in(places.column("row"), value_set=column_in_one_piece(stored_rows, "row"))
    stored = stored_rows.take(at)
    equal = [pc.equal(places.column(name), stored.column(name)) for name in ("partition", "file_id")]
    return pc.fill_null(pc.and_(*equal), False)


def _refuse(change: Change, place: dict[str, str], stored_rows: pa.Table) -> None:
    (other,) = stored_rows.filter(pc.equal(stored_rows.column("row"), place["row"])).to_pylist()
    assert change.keys is not None
    if change.keys.looked_up:
        raise WriteConflict(
            f"another writer has put the key {place['row']!r} into file group {other['file_id']} since this write "
            "looked it up; write the batch again"
        )
    raise UnsupportedTable(
        f"the key {place['row']!r} is in file group {other['file_id']} of partition {other['partition']!r} already, "
        f"and is written to {place['file_id']} of partition {place['partition']!r}: a record index holds a key once"
    )


def _require_once(places: pa.Table) -> None:
    rows = places.column("row")
    if pc.count_distinct(rows).as_py() == len(rows):
        return
    counts = rows.combine_chunks().value_counts()
    key = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    groups = places.filter(pc.equal(rows, key)).column("file_id").unique().to_pylist()
    raise UnsupportedTable(f"the key {key!r} is in rows of {' and '.join(groups)}: a record index holds a key once")


# --- building ---


@dataclass(frozen=True, slots=True)
class _SliceKeys:
    """A file slice, and when its keys were inserted."""

    slice: FileSlice
    millis: int


def _first_content(building: Building) -> InitialContent:
    view = load_view(building.storage, building.timeline, building.config)
    slices = list(merged_slices(view).values())
    keys_of: SliceKeys = partial(_keys_of_base, building.storage)
    if building.read_keys is not None:
        keys_of = building.read_keys(building.storage, building.config, building.timeline, slices)
    count = groups_for(building.storage, slices, building.options)
    return InitialContent(
        count, _shares(slices, building.config.timezone), partial(_entries_of, keys_of), _require_keys_once
    )


def _shares(slices: Sequence[FileSlice], zone: TimelineZone) -> list[list[_SliceKeys]]:
    """Slices for tasks, each of about so many bytes of files that it has few keys at once."""
    shares: list[list[_SliceKeys]] = []
    size = _SHARE
    for slice_ in slices:
        if size + slice_.bytes > _SHARE:
            shares.append([])
            size = 0
        shares[-1].append(_SliceKeys(slice_, epoch_millis(slice_.base_instant, zone)))
        size += slice_.bytes
    return shares


def _entries_of(keys_of: SliceKeys, share: Sequence[_SliceKeys]) -> Iterator[pa.Table]:
    for part in share:
        for keys in keys_of(part.slice).chunks:
            yield entries(places_table(keys.cast(pa.string()), part.slice.group), part.millis)


def _require_keys_once(records: pa.Table) -> None:
    rows = column_in_one_piece(records, "row")
    if pc.count_distinct(rows).as_py() != len(rows):
        paths, ids = locations(records)
        _require_once(pa.Table.from_arrays([rows, paths, ids], schema=PLACES))


def _keys_of_base(storage: Storage, slice_: FileSlice) -> pa.ChunkedArray:
    if slice_.base is None or slice_.logs:
        raise UnsupportedTable(f"file group {slice_.group.file_id} has logs, whose keys this call does not read")
    return pa.chunked_array([keys_in(storage, slice_.base.path, slice_.base.size)])


def groups_for(storage: Storage, slices: Sequence[FileSlice], options: MetadataOptions) -> int:
    """How many file groups the record index of a table gets, by its rows and by Hudi's rule."""
    fewest, most = options.fewest_groups, options.most_groups
    bases = [slice_.base for slice_ in slices if slice_.base is not None]
    if fewest >= most:
        return fewest
    capacity = options.group_bytes // _ENTRY_BYTES
    if sum(base.size for base in bases) * options.growth < fewest * capacity:  # a key takes a byte at least
        return fewest
    rows = sum(in_threads(lambda base: _rows(storage, base), bases))
    return max(fewest, min(most, math.ceil(np.float32(rows) * np.float32(options.growth)) // capacity))


def _rows(storage: Storage, base: BaseFile) -> int:
    with storage.open_input(base.path, base.size) as source:
        return int(pq.read_metadata(source).num_rows)


RECORD_INDEX = PartitionKind(
    partition=MetadataPartition.RECORD_INDEX,
    prefix="record-index",
    records=_records,
    first=_first_content,
    cells=record_index_cells,
    deletes_apart=always,
    block_size=_BLOCK_SIZE,
)
