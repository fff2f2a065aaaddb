"""Records of the metadata table as the cells of HFiles: in log blocks, and in base files.

Source: docs/format/metadata-table.md 2.4, 3 and 4; pinned by the metadata tables of real Hudi in tests/fixtures.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.formats.avro.bytes import Pieces
from hoodie.formats.avro.compile import compile_schema
from hoodie.formats.hfile.writer import encode_hfile
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock
from hoodie.formats.parquet.bloom import BloomKind, add_keys, empty_filter
from hoodie.formats.parquet.bloom import encode as encode_bloom
from hoodie.metadata.keys import ALL_PARTITIONS
from hoodie.metadata.record_schema import STORED_SCHEMA

#: The bloom filter of each base file: its keys at first, its error rate, and its keys at most.
_BLOOM = (60_000, 1e-9, 100_000)
_NAME = "_hoodie_file_name"


def data_block(instant: str, records: pa.Table) -> LogBlock:
    """The log block of a delta commit with entries of file lists, of the schema `records.FILES`."""
    rows, values = file_list_cells(records)
    header = BlockMap(((HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, STORED_SCHEMA)))
    return LogBlock(BlockKind.HFILE_DATA, header, encode_hfile(rows, values, {"schema": STORED_SCHEMA.encode()}))


def base_file(name: str, records: pa.Table) -> bytes:
    """The content of a base file with entries of file lists. name: its own, which each of its records has"""
    rows, values = file_list_cells(records, name)
    ordered = sorted(rows.to_pylist(), key=str.encode)
    entries, rate, most = _BLOOM
    bloom = add_keys(empty_filter(BloomKind.DYNAMIC_V0, entries, rate), pa.array(ordered, pa.string()), most)
    info = {
        "schema": STORED_SCHEMA.encode(),
        "bloomFilterTypeCode": bloom.kind.value.encode(),
        "minRecordKey": ordered[0].encode(),
        "maxRecordKey": ordered[-1].encode(),
    }
    return encode_hfile(rows, values, info, {"bloomFilter": encode_bloom(bloom).encode()})


def file_list_cells(records: pa.Table, file_name: str = "") -> tuple[pa.Array, pa.Array]:
    """Rows and values of cells, one for each list: string[n] and binary[n].

    records    entries of lists
    file_name  of the base file that they are for; "": they are for a log block
    """
    records = records.sort_by([("row", "ascending"), ("name", "ascending")])
    encoded = _array(records, "row").dictionary_encode()
    rows = encoded.dictionary
    counts = np.bincount(np.asarray(encoded.indices, np.int64), minlength=len(rows))
    if file_name and pc.index(rows, ALL_PARTITIONS).as_py() < 0:  # of a table without partitions: an empty list
        rows = pa.concat_arrays([rows, pa.array([ALL_PARTITIONS])])
        counts = np.append(counts, 0)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    infos = pa.StructArray.from_arrays(
        [_array(records, "size"), _array(records, "deleted")],
        fields=[pa.field("size", pa.int64(), False), pa.field("isDeleted", pa.bool_(), False)],
    )
    lists = pa.MapArray.from_arrays(pa.array(offsets), _array(records, "name"), infos)
    kinds = pc.if_else(pc.equal(rows, ALL_PARTITIONS), pa.scalar(1, pa.int32()), pa.scalar(2, pa.int32()))
    columns = {"key": pa.array([""] * len(rows), pa.string()), "type": kinds, "filesystemMetadata": lists}
    if file_name:
        columns[_NAME] = pa.array([file_name] * len(rows), pa.string())
    record, pieces = compile_schema(STORED_SCHEMA, unions=True), Pieces(len(rows))
    for name, node in record.fields:
        node.write(columns.get(name, pa.nulls(len(rows), node.arrow)), pieces)
    return rows, pieces.join()


def _array(records: pa.Table, name: str) -> pa.Array:
    column = records.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
