"""The rows that a task's file group holds of its keys, where logs are appended and these rows decide what is."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.lookup.point_read import read_slice
from hoodie.merge.base import Incoming
from hoodie.merge.rows import Mask, nullable
from hoodie.merge.rules import Choice, MergeRule
from hoodie.model.files import FileSlice
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.slices.reader import SliceReader
from hoodie.schema.conform import conform
from hoodie.table.state import TableState
from hoodie.view.slices import merged_slices


@dataclass(frozen=True, slots=True)
class StoredRows:
    """How tasks read them: as a snapshot reader of the state that the write began with. Pickles to executors."""

    state: TableState
    reader: SliceReader

    def of(self, slice_: FileSlice, keys: pa.Array, target: pa.Schema) -> pa.Table:
        """The rows of keys, in columns of the table, nullable.

        slice_  what the task adds to. While a compaction of its group is pending the rows are in the slice before
        """
        whole = self._merged(slice_)
        if whole is None or (whole.base is None and not whole.logs):
            return nullable(target).empty_table()
        rows, _ = read_slice(self.state.storage, self.reader, whole, keys, target)
        return rows.cast(nullable(target))

    def _merged(self, slice_: FileSlice) -> FileSlice | None:
        pending = {instant.requested for instant in self.state.timeline.pending_compactions}
        if slice_.base_instant not in pending:
            return slice_
        state, group = self.state, slice_.group
        return merged_slices(state.view([group.partition])).get(group)


def late_rows(stored: StoredRows, schema: pa.Schema, slice_: FileSlice, incoming: Incoming, rule: MergeRule) -> Mask:
    """bool[n]: rows that leave the stored row of their key as it is, by the rule.

    schema  of the table, meta columns included
    """
    names = {RECORD_KEY, *rule.decides_on(schema.names)}
    rows = stored.of(slice_, incoming.keys, pa.schema([field for field in schema if field.name in names]))
    at = pc.index_in(rows.column(RECORD_KEY), value_set=incoming.keys).combine_chunks()
    newer = conform(incoming.rows.select(rows.column_names).take(at), rows.schema)
    stays = rule.combine(rows, newer).choice == Choice.KEEP
    late = np.zeros(incoming.num_rows, np.bool_)
    positions = at.to_numpy()
    late[positions[stays]] = True
    late[positions[~stays]] = False  # a key that is stored twice: one of its rows changes
    return late if incoming.deleted is None else late & ~incoming.deleted
