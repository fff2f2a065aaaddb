"""Putting entries of an HBase index again that rows of some file groups lack, side by side."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.options import Options
from hoodie.hbase.entries import NEXT, KeyEntry, Validity, entry_locations, find_entries, put_entries, row_keys
from hoodie.hbase.index import HBaseIndex, reach, validity_of
from hoodie.hbase.missed_rollbacks import MissedRollback
from hoodie.index.contract import IndexContext
from hoodie.lookup.index_follow import RepairJob, RunRepair, repair_near
from hoodie.model.files import FileSlice
from hoodie.reading.row_keys import KeyReader
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.view.slices import FileSystemView, committed_slices, merged_slices

#: Keys whose entries are put, or that are deleted, at a time.
ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Repair:
    """How the entries of rows that came back are put; picklable.

    validity  which entries count, now that the instants are gone
    at        timestamp of the entries, ms since 1970: after the instants that are gone, before all later ones
    last      the newest instant that is gone: who wrote later has the last word
    """

    index: HBaseIndex
    validity: Validity
    reader: KeyReader
    at: int
    last: str


@dataclass(frozen=True, slots=True)
class RepairTask:
    """One file slice, and the entry of its rows."""

    slice: FileSlice
    entry: KeyEntry


def find_again(
    storage: Storage, options: Options, missed: Collection[MissedRollback], run: RunRepair | None = None
) -> int:
    """Put the entries that rows lack since instants are gone. Returns how many.

    Costs the key columns of the file groups that lost keys by these instants, and a look-up of those keys, without the
    rates of writes.

    run     None: threads of this process
    Raises  IndexUnavailable; CorruptFile; InvalidOption
    """
    groups = {group for record in missed for group in record.groups}
    if not groups:
        return 0
    state = load_state(storage)
    index = reach(options, state.config)
    instants = [record.instant for record in missed]
    validity = validity_of(IndexContext(storage, state.config, state.timeline)).without(instants)
    view = state.view({group.partition for group in groups})
    slices = [slice_ for group, slice_ in merged_slices(view).items() if group in groups]
    tasks = tuple(RepairTask(slice_, entry_of(view, slice_)) for slice_ in slices)
    repair = Repair(
        index, validity, KeyReader.of(state, view, slices), index.timestamp(max(instants)) + 1, max(instants)
    )
    limits = Settings.read(options).engine
    near = limits.driver_batch > 0 and sum(slice_.bytes for slice_ in slices) <= limits.driver_rewrite
    return sum((run or repair_near)(RepairJob(partial(repair_slice, repair), tasks, near)))


def repair_slice(repair: Repair, task: RepairTask) -> int:
    """Put the entries that rows of a slice lack. Returns how many. Raises as `find_again`."""
    written = 0
    with repair.index.client(limited=False) as client:
        for keys in parts(repair.reader.keys(task.slice)):
            rows = row_keys(keys, repair.index.buckets)
            entries = find_entries(client, rows, repair.validity)
            _, file_ids = entry_locations(rows, entries, repair.validity, client.where)
            lost = [rows[number] for number in np.flatnonzero(np.asarray(pc.is_null(file_ids))).tolist()]
            put_entries(client, lost, [task.entry] * len(lost), repair.at, last=repair.last.encode())
            client.delete(lost, NEXT, repair.at)
            written += len(lost)
    return written


def parts(keys: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Some at a time."""
    for start in range(0, len(keys), ROWS):
        yield pa.concat_arrays(keys.slice(start, ROWS).chunks)


def entry_of(view: FileSystemView, slice_: FileSlice) -> KeyEntry:
    """The entry of the rows of a slice.

    A row does not tell the instant that inserted it, only the one that changed it last: should that one be rolled back,
    the row stays, and an entry with its instant would no longer count. The oldest instant of the file group is never
    later than the row.
    """
    oldest = committed_slices(view, slice_.group)[0].base_instant
    return KeyEntry(oldest.encode(), slice_.group.file_id.encode(), slice_.group.partition.encode())
