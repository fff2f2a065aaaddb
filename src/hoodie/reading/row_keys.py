"""The record keys of the rows that file slices have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.errors import UnsupportedTable
from hoodie.metadata.partitions.kind import SliceKeys
from hoodie.model.files import FileSlice
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.slices.reader import SliceReader, slice_reader
from hoodie.reading.snapshot import merged_rows, read_slices_arrow
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState
from hoodie.timeline.timeline import Timeline
from hoodie.view.slices import FileSystemView


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Reads the record keys of file slices; picklable.

    schema  all columns of the table, meta columns included
    reader  merges logs; None where no slice has any
    """

    storage: Storage
    schema: pa.Schema
    reader: SliceReader | None

    @classmethod
    def of(cls, state: TableState, view: FileSystemView, slices: Collection[FileSlice]) -> KeyReader:
        schema = with_meta_fields(table_schema(state, view))
        with_logs = any(slice_.logs for slice_ in slices)
        return cls(state.storage, schema, slice_reader(state, schema) if with_logs else None)

    def keys(self, slice_: FileSlice) -> pa.ChunkedArray:
        """string[n], of the rows of a slice."""
        merge = None if self.reader is None else partial(merged_rows, self.reader)
        return read_slices_arrow(self.storage, [slice_], self.schema, [RECORD_KEY], merge=merge).column(RECORD_KEY)


def read_keys(storage: Storage, config: TableConfig, timeline: Timeline, slices: Sequence[FileSlice]) -> SliceKeys:
    """How the keys of slices are read, as a snapshot reader merges them: a `ReadKeys`.

    Raises UnsupportedTable when the table stores no record keys
    """
    if not config.meta_fields or not config.record_key:
        raise UnsupportedTable(
            f"{config.name} cannot have a record index: its rows hold no record keys, or none that are made of columns "
            "(hoodie.populate.meta.fields, hoodie.table.recordkey.fields)"
        )
    state = TableState(storage, config, timeline)
    return KeyReader.of(state, FileSystemView(timeline), slices).keys
