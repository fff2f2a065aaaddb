"""Making the entries of an HBase index from the table: for a table that has no index yet, or one that is wrong."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.table import require_writable
from hoodie.errors import InvalidOption
from hoodie.index import hbase
from hoodie.index.contract import There
from hoodie.index.hbase_client import Cells, HBaseClient
from hoodie.index.hbase_entries import ENTRY, NEXT, Entry, delete_rows, find_entries, places, put_entries, row_keys
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta import RECORD_KEY
from hoodie.model.schema import with_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.choose_index import named_index
from hoodie.table.log_reader import slice_reader
from hoodie.table.read import merged_rows, read_slices_arrow, table_schema
from hoodie.table.state import TableState, load_state
from hoodie.view.load import load_view
from hoodie.view.slices import FileSystemView, committed_slices, merged_slices

#: Keys whose entries are put, or that are deleted, at a time.
_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was done: entries put, entries removed that no row of the table has, file groups read, wall time."""

    entries: int
    removed: int
    groups: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.entries} entries of {self.groups} file groups written, {self.removed} removed that no row has "
            f"({self.seconds:.1f} s)"
        )


def rebuild_index(storage: Storage, options: Mapping[str, str]) -> Rebuilt:
    """Put an entry for each row of the table, and remove entries that are of no row. The table is only read.

    options  of a write: hoodie.index.hbase.*
    Raises   InvalidOption when the index is another one, or cannot be reached by the options; IndexUnavailable;
             TableNotFound; UnsupportedTable; CorruptFile; MissingFile

    While it runs nothing else should write to the table: entries of a write that is pending are left as they are.
    """
    begun = time.perf_counter()
    state = load_state(storage)
    named = named_index(state, options).name or hbase.NAME
    if named != hbase.NAME:
        raise InvalidOption(f"the index {named} keeps nothing outside the table: there is nothing to rebuild")
    require_writable(state.config, KNOWN_PAYLOADS)
    index = hbase.reach(options, state.config)
    view = load_view(storage, state.timeline, state.config)
    state.require_complete(view)
    slices = list(merged_slices(view).values())
    at = _now(index, state)
    written, known = 0, set()
    with index.client() as client:
        client.check_table()
        for slice_, keys in _keys(state, view, slices):
            entry = _entry(view, slice_)
            known.add(entry)
            rows = row_keys(keys, index.buckets)
            put_entries(client, rows, [entry] * len(rows), at, yields=False)
            written += len(rows)
        removed = _sweep(client, state, known, at)
    return Rebuilt(written, removed, len(slices), time.perf_counter() - begun)


def find_again(storage: Storage, options: Mapping[str, str], groups: Collection[FileGroupId]) -> int:
    """Put the entries that rows of some file groups lack, as a rollback brought the rows back. Returns how many.

    Costs the key columns of these file groups, and a look-up of their keys. Raises as `rebuild_index`.
    """
    state = load_state(storage)
    index = hbase.reach(options, state.config)
    validity = hbase.validity_of(There(storage, state.config, state.timeline))
    view = load_view(storage, state.timeline, state.config, {group.partition for group in groups})
    slices = [slice_ for group, slice_ in merged_slices(view).items() if group in groups]
    at, written = _now(index, state), 0
    with index.client() as client:
        for slice_, keys in _keys(state, view, slices):
            rows = row_keys(keys, index.buckets)
            found = places(rows, find_entries(client, rows, validity), validity, client.where)
            here = [pa.scalar(text, pa.string()) for text in (slice_.group.partition, slice_.group.file_id)]
            right = pc.and_(*(pc.fill_null(pc.equal(a, b), False) for a, b in zip(found, here, strict=True)))
            lost = [rows[number] for number in np.flatnonzero(~np.asarray(right)).tolist()]
            put_entries(client, lost, [_entry(view, slice_)] * len(lost), at, yields=False)
            client.delete(lost, NEXT, at)
            written += len(lost)
    return written


def _now(index: hbase.HBaseIndex, state: TableState) -> int:
    """A timestamp after those of all writes so far, ms since 1970."""
    newest = index.timestamp(state.timeline.newest) if state.timeline.newest else 0
    return max(time.time_ns() // 1_000_000, newest)


def _keys(
    state: TableState, view: FileSystemView, slices: Collection[FileSlice]
) -> Iterator[tuple[FileSlice, pa.Array]]:
    """The record keys of each slice, in parts."""
    schema = with_meta_fields(table_schema(state, view))
    merge = None
    if any(slice_.logs for slice_ in slices):
        merge = partial(merged_rows, slice_reader(state, schema))
    for slice_ in slices:
        keys = read_slices_arrow(state.storage, [slice_], schema, [RECORD_KEY], merge=merge).column(RECORD_KEY)
        for start in range(0, len(keys), _ROWS):
            yield slice_, pa.concat_arrays(keys.slice(start, _ROWS).chunks)


def _entry(view: FileSystemView, slice_: FileSlice) -> Entry:
    """The entry of the rows of a slice.

    A row does not tell the instant that inserted it, only the one that changed it last: should that one be rolled back,
    the row stays, and an entry with its instant would not count any more. The oldest instant of the file group is never
    later than the row.
    """
    oldest = committed_slices(view, slice_.group)[0].base_instant
    return Entry(oldest.encode(), slice_.group.file_id.encode(), slice_.group.partition.encode())


def _sweep(client: HBaseClient, state: TableState, known: Collection[Entry], at: int) -> int:
    """Remove the entries that were not put just now, and what moves left unsettled. Returns how many rows went."""
    pending = {instant.requested for instant in state.timeline.pending()}
    stale: dict[bytes, int] = {}
    moved: list[bytes] = []
    removed = 0

    def remove() -> None:
        nonlocal removed
        delete_rows(client, list(stale), max([at, *stale.values()]), "9" * 17)
        client.delete(moved, NEXT, at)
        removed += len(stale)
        stale.clear()
        moved.clear()

    for row, cells in client.scan((*ENTRY, *NEXT)):
        if _is_stale(cells, state, pending, known, at):
            stale[row] = max(cell.timestamp for cell in cells.values())
        elif NEXT[0] in cells and cells[NEXT[0]].value.decode(errors="replace") not in pending:
            moved.append(row)
        if len(stale) + len(moved) >= _ROWS:
            remove()
    remove()
    return removed


def _is_stale(cells: Cells, state: TableState, pending: Collection[str], known: Collection[Entry], at: int) -> bool:
    if all(name in cells for name in ENTRY):
        entry = Entry(*(cells[name].value for name in ENTRY))
        if entry in known and cells[ENTRY[0]].timestamp >= at:
            return False
        commit = entry.commit.decode(errors="replace")
        if commit in pending or commit > state.timeline.newest:  # of a write that goes on meanwhile
            return False
    return True
