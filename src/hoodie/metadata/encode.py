"""Records of the metadata table as the cells of HFiles: in log blocks, and in base files.

Source: docs/format/metadata-table.md 2.4, 3 and 4; pinned by the metadata tables of real Hudi in tests/fixtures.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.formats.avro.bytes import Pieces
from hoodie.formats.avro.compile import compile_schema
from hoodie.formats.avro.nodes import Node
from hoodie.formats.hfile.writer import BLOCK_SIZE, encode_hfile, write_hfile
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock
from hoodie.formats.log.delete_block import deletes_of, encode_deletes
from hoodie.formats.parquet.bloom import BloomKind, add_keys, empty_filter
from hoodie.formats.parquet.bloom import encode as encode_bloom
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.record_schema import STORED_SCHEMA
from hoodie.metadata.records import BOUND, BRANCHES, RECORD_FIELDS, SCHEMAS

#: The bloom filter of each base file: its keys at first, its error rate, and its keys at most.
_BLOOM = (60_000, 1e-9, 100_000)
_NAME = "_hoodie_file_name"


def data_block(instant: str, rows: pa.Array, values: pa.Array, schema: str = STORED_SCHEMA) -> LogBlock:
    """The log block of a delta commit with records.

    rows, values  of their cells
    schema        that they are written by, in Avro
    """
    content = encode_hfile(rows, values, {"schema": schema.encode()})
    return LogBlock(BlockKind.HFILE_DATA, _header(instant, schema), content)


def record_delete_block(instant: str, partition: MetadataPartition, keys: pa.Array) -> LogBlock:
    """The log block of a delta commit that takes records away. keys: string[n], no nulls"""
    deletes = deletes_of(keys, pa.repeat(pa.scalar(str(partition)), len(keys)))
    return LogBlock(BlockKind.DELETE, _header(instant), encode_deletes(deletes))


def _header(instant: str, schema: str = STORED_SCHEMA) -> BlockMap:
    return BlockMap(((HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema)))


def base_file(rows: pa.Array, values: pa.Array, block_size: int = BLOCK_SIZE, schema: str = STORED_SCHEMA) -> bytes:
    """The content of a base file. rows, values: of its cells, at least one; schema: as of `data_block`"""
    order = pc.array_sort_indices(rows.view(pa.binary()))  # as bytes, whatever the locale
    ordered = rows.take(order)
    entries, rate, most = _BLOOM
    bloom = add_keys(empty_filter(BloomKind.DYNAMIC_V0, entries, rate), ordered, most)
    info = {
        "schema": schema.encode(),
        "bloomFilterTypeCode": bloom.kind.value.encode(),
        "minRecordKey": ordered[0].as_py().encode(),
        "maxRecordKey": ordered[-1].as_py().encode(),
    }
    metas, pieces = {"bloomFilter": encode_bloom(bloom).encode()}, list[bytes]()
    write_hfile(pieces.append, [(ordered, values.take(order))], info, metas, block_size=block_size)
    return b"".join(pieces)


def record_cells(
    partition: MetadataPartition, records: pa.Table, file_name: str = "", schema: str = STORED_SCHEMA
) -> tuple[pa.Array, pa.Array]:
    """Rows and values of cells, one for each record: string[n] and binary[n]. Not for `files`.

    records    of the partition's schema in `records.SCHEMAS`
    file_name  of the base file that they are for; "": they are for a log block
    schema     that they are written by, in Avro
    """
    branch, (kind,) = BRANCHES[partition]
    names = SCHEMAS[partition].names[1:]
    stored = {
        name: column_in_one_piece(records, column)
        for column, name in zip(names, RECORD_FIELDS[partition], strict=True)
        if name
    }
    columns = {"type": pa.array(np.full(len(records), kind, np.int32)), branch: stored}
    return column_in_one_piece(records, "row"), encoded_records(columns, file_name, len(records), schema)


def encoded_records(
    columns: Mapping[str, pa.Array | Mapping[str, pa.Array]], file_name: str, count: int, schema: str = STORED_SCHEMA
) -> pa.Array:
    """Records as the values of cells: binary[count].

    columns    by field of the record, the others are null; a struct by its own fields
    file_name, schema  as of `record_cells`
    """
    record, pieces = compile_schema(schema, unions=True), Pieces(count)
    same = {"key": "", **({_NAME: file_name} if file_name else {})}
    for name, node in record.fields:
        if name in same:
            pieces.same(_encoded(node, same[name]))
        elif (column := columns.get(name)) is None:
            node.write_nulls(pieces)
        else:
            node.write(column if isinstance(column, pa.Array) else _struct(column, node.arrow), pieces)
    return pieces.join()


@lru_cache(64)
def _encoded(node: Node, text: str) -> bytes:
    pieces = Pieces(1)
    node.write(pa.array([text]), pieces)
    written: bytes = pieces.join()[0].as_py()
    return written


def _struct(columns: Mapping[str, pa.Array], kind: pa.StructType) -> pa.StructArray:
    fields = list(kind)
    count = len(next(iter(columns.values())))
    members = [
        pa.nulls(count, field.type)  # what later releases of Hudi add, and leave empty
        if field.name not in columns
        else _bounds(columns[field.name], field.type)
        if columns[field.name].type == BOUND
        else columns[field.name].cast(field.type)
        for field in fields
    ]
    return pa.StructArray.from_arrays(members, fields=fields)


def _bounds(values: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Least or greatest values, of `records.BOUND`, in the classes that Avro has for them."""
    members: list[pa.Array] = []
    for field in kind:
        if BOUND.get_field_index(field.name) < 0:  # no statistics are of this class
            members.append(pa.nulls(len(values), field.type))
            continue
        member = pc.struct_field(values, field.name)
        (inner,) = list(field.type)
        members.append(pa.StructArray.from_arrays([member.cast(inner.type)], fields=[inner], mask=member.is_null()))
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=values.is_null())


def column_in_one_piece(records: pa.Table, name: str) -> pa.Array:
    """A column in one piece."""
    column = records.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
