"""Compares a record index with the rows of its table: each key has one entry, which says where its row is."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.table import TableConfig
from hoodie.metadata.encode import column_in_one_piece
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.kind import ReadKeys
from hoodie.metadata.read import read_records
from hoodie.metadata.record_index import PLACES, locations, placed
from hoodie.metadata.table import MetadataTable
from hoodie.storage.protocol import Storage
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices


def record_index_problems(
    table: MetadataTable, storage: Storage, config: TableConfig, read_keys: ReadKeys
) -> Iterator[str]:
    """What the record index and the rows say differently, one line each.

    storage, config  of the data table
    """
    slices = list(merged_slices(load_view(storage, table.data, config)).values())
    keys_of = read_keys(storage, config, table.data, slices)
    rows = pa.concat_tables(
        [PLACES.empty_table()]
        + [placed(chunk.cast(pa.string()), each.group) for each in slices for chunk in keys_of(each).chunks]
    )
    records = read_records(table, MetadataPartition.RECORD_INDEX)
    paths, ids = locations(records)
    stored = pa.Table.from_arrays([column_in_one_piece(records, "row"), paths, ids], schema=PLACES)
    where = MetadataPartition.RECORD_INDEX
    at = pc.index_in(rows.column("row"), value_set=column_in_one_piece(stored, "row"))
    yield from _some(rows.filter(pc.is_null(at)), f"in no entry of {where}")
    located = rows.filter(pc.is_valid(at))
    entries = stored.take(at.drop_null())
    same = pc.and_(*(pc.equal(located.column(name), entries.column(name)) for name in ("partition", "file_id")))
    yield from _some(located.filter(pc.invert(same)), f"elsewhere by {where}")
    live = pc.is_in(stored.column("row"), value_set=column_in_one_piece(rows, "row"))
    yield from _some(stored.filter(pc.invert(live)), f"in {where}, and in no row")
    if len(rows) != len(stored):
        yield f"the table has {len(rows)} keys, and {where} {len(stored)} entries"


def _some(places: pa.Table, problem: str) -> Iterator[str]:
    if len(places):
        first = places.slice(0, 1).to_pylist()[0]
        more = f", and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"key {first['row']!r} of file group {first['file_id']} in {first['partition']!r}{more}: {problem}"
