"""Records of the metadata table, from cells of HFiles to Arrow tables: one form for each partition.

Source: docs/format/metadata-table.md 4; pinned by tests/vectors/record_values.json and record_index_location.json.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.avro.bytes import Cells as AvroCells
from hoodie.formats.avro.bytes import Malformed
from hoodie.formats.avro.compile import BadSchema, compile_schema
from hoodie.formats.hfile.cells import HFileCells
from hoodie.metadata.keys import MetadataPartition

#: So many cells are decoded for themselves.
_MANY = 1000
#: The column of a record that holds what a partition is about, and its types.
BRANCHES = {
    MetadataPartition.FILES: ("filesystemMetadata", (1, 2)),
    MetadataPartition.COLUMN_STATS: ("ColumnStatsMetadata", (3,)),
    MetadataPartition.PARTITION_STATS: ("ColumnStatsMetadata", (6,)),
    MetadataPartition.BLOOM_FILTERS: ("BloomFilterMetadata", (4,)),
    MetadataPartition.RECORD_INDEX: ("recordIndexMetadata", (5,)),
}
#: A file or a partition in a list. `row` is the key of the list.
FILES = pa.schema([("row", pa.string()), ("name", pa.string()), ("size", pa.int64()), ("deleted", pa.bool_())])

_WRAPPERS = (
    ("BooleanWrapper", pa.bool_()),
    ("IntWrapper", pa.int32()),
    ("LongWrapper", pa.int64()),
    ("FloatWrapper", pa.float32()),
    ("DoubleWrapper", pa.float64()),
    ("BytesWrapper", pa.binary()),
    ("StringWrapper", pa.string()),
    ("DateWrapper", pa.int32()),
    ("DecimalWrapper", pa.decimal128(30, 15)),
    ("TimeMicrosWrapper", pa.int64()),
    ("TimestampMicrosWrapper", pa.int64()),
    ("LocalDateWrapper", pa.int32()),
)
#: A least or greatest value: the member of its class in the writer is not null.
BOUND = pa.struct(list(_WRAPPERS))
#: The type of a column's values, as Hudi numbers types, and what it says more: a precision and a scale.
VALUE_TYPE = pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())])
#: Statistics of data files, or of partitions: `tight` if all of their files are in it. Both are null up to table
#: version 6.
COLUMN_STATS = pa.schema(
    [
        ("row", pa.string()),
        ("file", pa.string()),
        ("column", pa.string()),
        ("min", BOUND),
        ("max", BOUND),
        ("values", pa.int64()),
        ("nulls", pa.int64()),
        ("size", pa.int64()),
        ("uncompressed_size", pa.int64()),
        ("tight", pa.bool_()),
        ("type", VALUE_TYPE),
        ("deleted", pa.bool_()),
    ]
)
BLOOM_FILTERS = pa.schema(
    [
        ("row", pa.string()),
        ("type", pa.string()),
        ("instant", pa.string()),
        ("filter", pa.binary()),
        ("deleted", pa.bool_()),
    ]
)
RECORD_INDEX = pa.schema(
    [
        ("row", pa.string()),
        ("partition", pa.string()),
        ("high", pa.int64()),
        ("low", pa.int64()),
        ("file_index", pa.int32()),
        ("file_id", pa.string()),
        ("instant", pa.int64()),
        ("encoding", pa.int32()),
        ("deleted", pa.bool_()),
    ]
)
SCHEMAS = {
    MetadataPartition.FILES: FILES,
    MetadataPartition.COLUMN_STATS: COLUMN_STATS,
    MetadataPartition.PARTITION_STATS: COLUMN_STATS,
    MetadataPartition.BLOOM_FILTERS: BLOOM_FILTERS,
    MetadataPartition.RECORD_INDEX: RECORD_INDEX,
}
_STATISTICS = (
    "fileName",
    "columnName",
    "minValue",
    "maxValue",
    "valueCount",
    "nullCount",
    "totalSize",
    "totalUncompressedSize",
    "isTightBound",
    "valueType",
    "isDeleted",
)
#: Fields of a record's struct, in the order of the schema's columns after `row`; "": there is none, the rest is told.
RECORD_FIELDS = {
    MetadataPartition.COLUMN_STATS: _STATISTICS,
    MetadataPartition.PARTITION_STATS: _STATISTICS,
    MetadataPartition.BLOOM_FILTERS: ("type", "timestamp", "bloomFilter", "isDeleted"),
    MetadataPartition.RECORD_INDEX: (
        "partitionName",
        "fileIdHighBits",
        "fileIdLowBits",
        "fileIndex",
        "fileId",
        "instantTime",
        "fileIdEncoding",
        "",
    ),
}


def decode_records(cells: Iterable[HFileCells], partition: MetadataPartition, schema_json: str, path: str) -> pa.Table:
    """The records in cells of one HFile, in their order: a table of the partition's schema in `SCHEMAS`.

    schema_json  the Avro schema that they were written with
    Raises       CorruptFile; UnsupportedTable on records that are of another form
    """
    tables = [SCHEMAS[partition].empty_table()]
    tables += [_decoded(one, partition, schema_json, path) for one in _joined(cells)]
    return pa.concat_tables(tables)


def _joined(cells: Iterable[HFileCells]) -> Iterator[HFileCells]:
    """The cells, those of blocks of which few are needed put together: decoding costs something each time."""
    few: list[HFileCells] = []
    for one in cells:
        if len(one) >= _MANY:
            yield from (HFileCells.joined(few), one) if few else (one,)
            few = []
        elif len(one):
            few.append(one)
    if few:
        yield HFileCells.joined(few)


def deleted_records(keys: pa.Array, partition: MetadataPartition) -> pa.Table:
    """Records of keys that a delete block takes away, in the form of the partition's records."""
    schema = SCHEMAS[partition]
    columns = [keys, *(pa.nulls(len(keys), field.type) for field in list(schema)[1:-1])]
    return pa.Table.from_arrays([*columns, pa.array(np.ones(len(keys), np.bool_))], schema=schema)


def file_ids(records: pa.Table) -> pa.Array:
    """The file id of each entry of the record index: string[n]. Those of the usual form are stored as numbers."""
    names = []
    columns = [records.column(name).to_pylist() for name in ("high", "low", "file_index", "file_id", "encoding")]
    for high, low, index, name, encoding in zip(*columns, strict=True):
        if encoding == 1 or name:
            names.append(name)
            continue
        text = str(uuid.UUID(int=((high & 0xFFFFFFFFFFFFFFFF) << 64) | (low & 0xFFFFFFFFFFFFFFFF)))
        names.append(text if index is None or index < 0 else f"{text}-{index}")
    return pa.array(names, pa.string())


def _decoded(cells: HFileCells, partition: MetadataPartition, schema_json: str, path: str) -> pa.Table:
    branch, types = BRANCHES[partition]
    try:
        record = compile_schema(schema_json, unions=True)
        names = [name for name, _ in record.fields if name in ("key", "type", branch)]
        columns, after = record.read_columns(AvroCells(cells.data), cells.starts, frozenset(names))
    except BadSchema as error:
        raise CorruptFile(path, f"the schema of its records: {error}") from error
    except UnsupportedTable as error:
        raise UnsupportedTable(f"{path}: {error}") from error
    except Malformed as error:
        raise CorruptFile(path, f"a record: {error.problem}") from error
    if len(names) < 3:
        raise UnsupportedTable(f"{path}: records without {branch}, of another form than Hudi 0.11 and later have")
    if not np.array_equal(after, cells.ends):
        raise CorruptFile(path, "a record that is longer or shorter than its cell")
    columns_by_name = dict(zip(names, columns, strict=True))
    rows = _rows(cells, columns_by_name["key"], path)
    kinds = set(pc.unique(columns_by_name["type"]).to_pylist())
    if not kinds <= set(types):
        raise CorruptFile(path, f"records of types {sorted(kinds)} in the partition {partition}")
    content = columns_by_name[branch]
    if content.null_count:
        raise CorruptFile(path, f"a record of the partition {partition} without {branch}")
    try:
        return (
            _file_entries(rows, content) if partition is MetadataPartition.FILES else _fields(rows, content, partition)
        )
    except (KeyError, pa.ArrowException) as error:
        raise CorruptFile(path, f"the schema of its records lacks {error}") from error


def _rows(cells: HFileCells, keys: pa.Array, path: str) -> pa.Array:
    """The keys of records: the rows of their cells, unless the records name them."""
    try:
        rows = pa.array([row.decode() for row in cells.rows], pa.string())
    except UnicodeDecodeError as error:
        raise CorruptFile(path, "a record whose key is no text") from error
    named = pc.and_kleene(pc.is_valid(keys), pc.not_equal(pc.binary_length(pc.fill_null(keys, "")), 0))
    return pc.if_else(named, keys, rows) if pc.any(named).as_py() else rows


def _file_entries(rows: pa.Array, lists: pa.MapArray) -> pa.Table:
    counts = np.diff(lists.offsets.to_numpy())
    places = pa.array(np.repeat(np.arange(len(lists), dtype=np.int64), counts))
    items = lists.items
    columns = [rows.take(places), lists.keys, items.field("size"), items.field("isDeleted")]
    return pa.Table.from_arrays(columns, schema=FILES)


def _fields(rows: pa.Array, content: pa.StructArray, partition: MetadataPartition) -> pa.Table:
    schema = SCHEMAS[partition]
    stored = {field.name for field in content.type}
    columns: list[pa.Array] = [rows]
    for field, name in zip(list(schema)[1:], RECORD_FIELDS[partition], strict=True):
        if name not in stored:
            missing = pa.scalar(False) if field.name == "deleted" else pa.scalar(None, field.type)
            columns.append(
                pa.array(np.zeros(len(rows), np.bool_)) if missing.is_valid else pa.nulls(len(rows), field.type)
            )
        elif field.type == BOUND:
            columns.append(_bounds(content.field(name)))
        else:
            columns.append(content.field(name).cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _bounds(values: pa.StructArray) -> pa.StructArray:
    """Least or greatest values, in the order and with the members of BOUND."""
    stored = {field.name for field in values.type}
    members: Sequence[pa.Array] = [
        values.field(name).field("value").cast(kind) if name in stored else pa.nulls(len(values), kind)
        for name, kind in _WRAPPERS
    ]
    return pa.StructArray.from_arrays(list(members), fields=list(BOUND), mask=values.is_null())
