"""Where record keys are, by the record index: read are the file groups that the keys hash to, and in their files the
blocks that may hold them.

Source: docs/format/metadata-table.md 5 and 6; pinned by tests/unit/metadata/test_key_locations.py.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.read import RecordSelection, partition_slices, read_records
from hoodie.metadata.record_index import is_by_partition, locations
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.model.files import FileSlice
from hoodie.storage.protocol import Storage
from hoodie.timeline.timeline import Timeline

_PARTITION = MetadataPartition.RECORD_INDEX
#: Why one that Hudi calls RECORD_LEVEL_INDEX is of no use: it is whole, and keys are hashed in it otherwise.
BY_PARTITION = "it is one by partition of the table"


@dataclass(frozen=True, slots=True)
class RecordLocator:
    """The record index of a table at one moment; picklable.

    slices  its file slices, by file group
    """

    table: MetadataTable
    slices: tuple[FileSlice, ...]

    def entries(self, keys: pa.Array) -> pa.Table:
        """The entries of some keys, of the schema `records.RECORD_INDEX`, no order; keys without one are left out.

        keys    string[n], no nulls
        Raises  as `read_records`
        """
        selection = RecordSelection(frozenset(keys.to_pylist()))
        try:
            return read_records(self.table, _PARTITION, selection, self.slices)
        except FileNotFoundError:  # cleaning took a file away since the slices were listed
            return read_records(self.table.reload(), _PARTITION, selection)

    def locate(self, keys: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Partition path and file id of each key, string[n] both; null where it has no entry. As `entries`"""
        entries = self.entries(keys)
        paths, ids = locations(entries)
        at = pc.index_in(keys, value_set=entries.column("row").combine_chunks())
        return paths.take(at), ids.take(at)


def open_locator(storage: Storage, config: TableConfig, timeline: Timeline) -> RecordLocator | str:
    """The record index of a data table, or why it is of no use. timeline: of the data table, loaded before"""
    if _PARTITION not in config.metadata_partitions:
        return "the table has none"
    try:
        table = open_metadata(storage, config, timeline)
        if table is None:
            return "the file lists of its metadata table were never finished"
        if problem := table.problem():
            return problem
        slices = tuple(partition_slices(table, _PARTITION))
        return BY_PARTITION if is_by_partition(slices) else RecordLocator(table, slices)
    except (CorruptFile, UnsupportedTable) as damage:
        return str(damage)
    except FileNotFoundError as error:
        return f"a file of it is gone: {error}"
