"""What a metadata table says, as rows for people: one form for each of its partitions."""

import warnings
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.table import TableConfig
from hoodie.errors import InvalidInput, MetadataTableIgnored, UnsupportedTable
from hoodie.metadata.keys import ALL_PARTITIONS, ROOT, MetadataPartition, hashed_file
from hoodie.metadata.read import read_records
from hoodie.metadata.records import BOUND, file_ids
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.storage.protocol import Storage
from hoodie.timeline.timeline import Timeline

_PATH = ("partition", pa.string())
_FILE = ("file", pa.string())
_RANGE = (
    ("column", pa.string()),
    ("min", pa.string()),
    ("max", pa.string()),
    ("values", pa.int64()),
    ("nulls", pa.int64()),
    ("size", pa.int64()),
    ("uncompressed_size", pa.int64()),
)
#: The columns of each partition's rows.
SHOWN = {
    MetadataPartition.FILES: pa.schema([_PATH, _FILE, ("size", pa.int64())]),
    MetadataPartition.COLUMN_STATS: pa.schema([_PATH, _FILE, *_RANGE]),
    MetadataPartition.PARTITION_STATS: pa.schema([_PATH, *_RANGE]),
    MetadataPartition.BLOOM_FILTERS: pa.schema(
        [_PATH, _FILE, ("type", pa.string()), ("instant", pa.string()), ("filter", pa.string())]
    ),
    MetadataPartition.RECORD_INDEX: pa.schema(
        [("record_key", pa.string()), _PATH, ("file_id", pa.string()), ("instant_time", pa.timestamp("ms", "UTC"))]
    ),
}


def metadata_rows(storage: Storage, config: TableConfig, timeline: Timeline, partition: str) -> pa.Table:
    """The rows of one partition of a table's metadata table, sorted.

    partition  "files", "column_stats", "partition_stats" (version 9), "bloom_filters" or "record_index"
    returns    the columns of `SHOWN`. Least and greatest values are text, of stored numbers where a column's are times.
               Filters are in base64; their files, and the partition paths of statistics, are known by the file lists
    Raises     InvalidInput on another word, or a partition that the table does not have; UnsupportedTable without a
               metadata table; CorruptFile when it is damaged
    Warns      MetadataTableIgnored when it is out of date: the rows are those that it has
    """
    try:
        chosen = MetadataPartition(partition)
    except ValueError:
        raise InvalidInput(
            f"{partition!r} is no partition of a metadata table: expected one of {', '.join(MetadataPartition)}"
        ) from None
    table = open_metadata(storage, config, timeline)
    if table is None:
        raise UnsupportedTable(
            f"{config.name} has no metadata table: hoodie.table.metadata.partitions does not name `files`. "
            "`hoodie metadata create` builds one."
        )
    if chosen not in table.ready:
        raise InvalidInput(f"the metadata table has no {chosen}: it has {', '.join(sorted(table.ready))}")
    if problem := table.problem():
        warnings.warn(MetadataTableIgnored(table.storage.root, problem), stacklevel=2)
    rows = _ROWS[chosen](table, read_records(table, chosen))
    return rows.sort_by([(name, "ascending") for name in SHOWN[chosen].names[:3]])


def _files(table: MetadataTable, records: pa.Table) -> pa.Table:
    files = records.filter(pc.not_equal(records.column("row"), ALL_PARTITIONS))
    columns = [_paths(files.column("row")), files.column("name"), files.column("size")]
    return pa.Table.from_arrays(columns, schema=SHOWN[MetadataPartition.FILES])


def _column_stats(table: MetadataTable, records: pa.Table) -> pa.Table:
    listed = _files(table, read_records(table, MetadataPartition.FILES))
    at = pc.index_in(records.column("file"), listed.column("file").combine_chunks())
    columns = [listed.column("partition").take(at), records.column("file"), *_range(records)]
    return pa.Table.from_arrays(columns, schema=SHOWN[MetadataPartition.COLUMN_STATS])


def _partition_stats(table: MetadataTable, records: pa.Table) -> pa.Table:
    columns = [_paths(records.column("file")), *_range(records)]
    return pa.Table.from_arrays(columns, schema=SHOWN[MetadataPartition.PARTITION_STATS])


def _range(records: pa.Table) -> list[pa.Array | pa.ChunkedArray]:
    return [
        records.column("column"),
        *(_as_text(records.column(name)) for name in ("min", "max")),
        *(records.column(name) for name in ("values", "nulls", "size", "uncompressed_size")),
    ]


def _bloom_filters(table: MetadataTable, records: pa.Table) -> pa.Table:
    """A key holds no name, only its hash."""
    listed = _files(table, read_records(table, MetadataPartition.FILES))
    names = listed.column("file").to_pylist()
    at = pc.index_in(
        pc.utf8_slice_codeunits(records.column("row"), 12), pa.array([hashed_file(name) for name in names], pa.string())
    )
    columns = [
        listed.column("partition").take(at),
        listed.column("file").take(at),
        *(records.column(name) for name in ("type", "instant")),
        records.column("filter").cast(pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=SHOWN[MetadataPartition.BLOOM_FILTERS])


def _record_index(table: MetadataTable, records: pa.Table) -> pa.Table:
    columns = [
        records.column("row"),
        records.column("partition"),
        file_ids(records),
        records.column("instant").cast(pa.timestamp("ms", "UTC")),
    ]
    return pa.Table.from_arrays(columns, schema=SHOWN[MetadataPartition.RECORD_INDEX])


_ROWS: dict[MetadataPartition, Callable[[MetadataTable, pa.Table], pa.Table]] = {
    MetadataPartition.FILES: _files,
    MetadataPartition.COLUMN_STATS: _column_stats,
    MetadataPartition.PARTITION_STATS: _partition_stats,
    MetadataPartition.BLOOM_FILTERS: _bloom_filters,
    MetadataPartition.RECORD_INDEX: _record_index,
}


def _paths(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(names, ROOT), "", names)


def _as_text(bounds: pa.ChunkedArray) -> pa.Array:
    """Least or greatest values as text, whatever their class."""
    values = pa.concat_arrays(bounds.chunks) if bounds.num_chunks else pa.array([], BOUND)
    texts = pa.nulls(len(values), pa.string())
    for field in BOUND:
        member = pc.struct_field(values, field.name)
        if pa.types.is_binary(field.type):
            text = pa.array([None if value is None else value.hex() for value in member.to_pylist()], pa.string())
        else:
            text = member.cast(pa.string())
        texts = pc.coalesce(texts, text)
    return texts
