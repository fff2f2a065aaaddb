"""The rows of `hudi_metadata`: the records of a table's metadata table, in the columns that Hudi's have.

Source: docs/format/metadata-table.md 4.1; the columns of Hudi 1.1's function, without those of its later partitions.
"""

import warnings
from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import MetadataTableIgnored, UnsupportedTable
from hoodie.metadata.encode import column_in_one_piece
from hoodie.metadata.keys import ALL_PARTITIONS, MetadataPartition
from hoodie.metadata.read import read_records
from hoodie.metadata.records import BOUND, BRANCHES, RECORD_FIELDS, SCHEMAS
from hoodie.metadata.table import open_metadata
from hoodie.model.table_version import TableVersion
from hoodie.table.state import TableState

_FILE = pa.struct([("size", pa.int64()), ("isDeleted", pa.bool_())])
_LIST = pa.map_(pa.string(), _FILE)
#: The types of lists: of all partitions, and of the files of one.
_PARTITIONS, _FILES = BRANCHES[MetadataPartition.FILES][1]
_SHOWN = (
    MetadataPartition.FILES,
    MetadataPartition.BLOOM_FILTERS,
    MetadataPartition.COLUMN_STATS,
    MetadataPartition.RECORD_INDEX,
)
_ORDER = (*_SHOWN, MetadataPartition.PARTITION_STATS)  # which are in the column of COLUMN_STATS
#: Members of Hudi's union of values that table version 6 has: later ones have more.
_FIRST_MEMBERS = 11


@cache
def columns_of(version: TableVersion) -> pa.Schema:
    """The columns of the records of a table."""
    branches = [(BRANCHES[partition][0], _branch(partition, version)) for partition in _SHOWN]
    return pa.schema([("key", pa.string()), ("type", pa.int32()), *branches])


def _branch(partition: MetadataPartition, version: TableVersion) -> pa.DataType:
    """The type of the column that holds what a partition is about."""
    if partition is MetadataPartition.FILES:
        return _LIST
    fields = _fields(partition, version).items()
    kinds = [(field, SCHEMAS[partition].field(column).type) for field, column in fields]
    return pa.struct([(field, _members_of(version) if kind == BOUND else kind) for field, kind in kinds])


def _fields(partition: MetadataPartition, version: TableVersion) -> dict[str, str]:
    """The fields of a record of that version, and the columns that hold them."""
    columns = zip(RECORD_FIELDS[partition], SCHEMAS[partition].names[1:], strict=True)
    later = {"isTightBound": version.defines_indexes, "valueType": version.types_statistics}
    return {field: column for field, column in columns if field and later.get(field, True)}


def _members_of(version: TableVersion) -> pa.StructType:
    """The members of Hudi's union of values, by their place."""
    count = len(BOUND) if version.defines_indexes else _FIRST_MEMBERS
    kinds = [BOUND.field(place).type for place in range(count)]
    return pa.struct([(f"member{place}", pa.struct([("value", kind)])) for place, kind in enumerate(kinds)])


def metadata_records(state: TableState) -> pa.Table:
    """All records of the metadata table, of the columns of its version, a partition after the other, sorted by key.

    Raises  UnsupportedTable without a metadata table; CorruptFile when it is damaged
    Warns   MetadataTableIgnored when it is out of date: the rows are those that it has
    """
    table = open_metadata(state.storage, state.config, state.timeline)
    if table is None:
        raise UnsupportedTable(
            f"{state.config.name} has no metadata table: hoodie.table.metadata.partitions does not name `files`. "
            "CALL create_metadata_table builds one"
        )
    if problem := table.problem():
        warnings.warn(MetadataTableIgnored(table.storage.root, problem), stacklevel=2)
    version = state.layout.version
    shown = [partition for partition in _ORDER if partition in table.ready]
    parts = [_rows(partition, read_records(table, partition), version) for partition in shown]
    return pa.concat_tables([columns_of(version).empty_table(), *parts])


def _rows(partition: MetadataPartition, records: pa.Table, version: TableVersion) -> pa.Table:
    records = records.sort_by([(name, "ascending") for name in records.schema.names[:2]]).combine_chunks()
    if partition is MetadataPartition.FILES:
        return _lists(records, version)
    branch, (kind,) = BRANCHES[partition]
    fields = {field: column_in_one_piece(records, column) for field, column in _fields(partition, version).items()}
    members = [_members(values, version) if values.type == BOUND else values for values in fields.values()]
    content = pa.StructArray.from_arrays(members, names=list(fields))
    kinds = pa.array(np.full(len(records), kind, np.int32))
    return _table({"key": column_in_one_piece(records, "row"), "type": kinds, branch: content}, version)


def _lists(records: pa.Table, version: TableVersion) -> pa.Table:
    """A row for each list: its files by name."""
    rows = column_in_one_piece(records, "row")
    codes = np.asarray(rows.dictionary_encode().indices)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    offsets = pa.array(np.append(starts, len(rows)).astype(np.int32))
    files = pa.StructArray.from_arrays(
        [column_in_one_piece(records, "size"), column_in_one_piece(records, "deleted")], fields=list(_FILE)
    )
    lists = pa.MapArray.from_arrays(offsets, column_in_one_piece(records, "name"), files)
    keys = rows.take(pa.array(starts))
    kinds = pc.if_else(pc.equal(keys, ALL_PARTITIONS), _PARTITIONS, _FILES).cast(pa.int32())
    return _table({"key": keys, "type": kinds, BRANCHES[MetadataPartition.FILES][0]: lists}, version)


def _members(values: pa.StructArray, version: TableVersion) -> pa.StructArray:
    """Least or greatest values: the member of its class is a struct with it, the others are null."""
    kinds = _members_of(version)
    members = []
    for place in range(len(kinds)):
        member = pc.struct_field(values, place)
        members.append(pa.StructArray.from_arrays([member], names=["value"], mask=member.is_null()))
    return pa.StructArray.from_arrays(members, fields=list(kinds), mask=values.is_null())


def _table(columns: Mapping[str, pa.Array], version: TableVersion) -> pa.Table:
    schema, count = columns_of(version), len(columns["key"])
    arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
