"""Log blocks with their contents: rows and deleted keys as Arrow tables, and the block that rolls an instant back.

The header entry RECORD_POSITIONS says which rows of the base file the block's records stand for: base64 of a 64-bit
roaring bitmap in portable form: int64 count of buckets, then for each int32 the high half of its values and a 32-bit
bitmap; little-endian.
"""

import base64
import binascii
import io
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from hoodie.errors import CorruptLogBlock, UnsupportedTable
from hoodie.formats.avro.rows import decode_rows, encode_rows
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock
from hoodie.formats.log.delete_block import encode_deletes

_ROLLBACK = "0"  # the only command there is


def data_rows(block: LogBlock, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a data block, in its own schema.

    columns  the columns wanted, None for all; all must be in the block
    Raises   CorruptLogBlock on a malformed content; UnsupportedTable if the block holds no rows that can be read
    """
    if block.kind is BlockKind.PARQUET_DATA:
        return read_parquet_content(block.content, path, block.offset, columns)
    if block.kind not in (BlockKind.AVRO_DATA, BlockKind.CDC_DATA):
        raise UnsupportedTable(f"{path} at byte {block.offset}: rows of a {block.kind.name} block are not read")
    if block.header.schema is None:
        raise CorruptLogBlock(path, "a data block without the schema of its rows", block.offset)
    return decode_rows(block.content, block.header.schema, path, block.offset, columns)


def avro_block(
    instant: str, schema_json: str, rows: pa.Table, positions: str | None = None, positions_of: str = ""
) -> LogBlock:
    """A data block of rows in Avro's form. `schema_json` has the meta fields, and so have the rows.

    positions  the header entry RECORD_POSITIONS: of the rows in their order (`encode_positions`)
    positions_of  instant of the base file that they are of; "": the name of the log says so (up to table version 6)
    """
    header = _header(instant, schema_json, positions, positions_of)
    return LogBlock(BlockKind.AVRO_DATA, header, encode_rows(rows, schema_json))


def parquet_block(
    instant: str,
    schema_json: str,
    rows: pa.Table,
    positions: str | None = None,
    positions_of: str = "",
    compression: str = "gzip",
) -> LogBlock:
    """A data block that is a whole Parquet file. Arguments as of `avro_block`."""
    header = _header(instant, schema_json, positions, positions_of)
    return LogBlock(BlockKind.PARQUET_DATA, header, write_parquet_content(rows, compression))


def delete_block(
    instant: str, schema_json: str, deletes: pa.Table, positions: str | None = None, positions_of: str = ""
) -> LogBlock:
    """A block of deleted keys, a table of schema `delete_block.DELETES`. Other writers state the rows' schema too."""
    return LogBlock(BlockKind.DELETE, _header(instant, schema_json, positions, positions_of), encode_deletes(deletes))


def _header(instant: str, schema_json: str, positions: str | None, positions_of: str) -> BlockMap:
    entries = [(HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema_json)]
    if positions is not None:
        entries.append((HeaderKey.RECORD_POSITIONS, positions))
        if positions_of:
            entries.append((HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS, positions_of))
    return BlockMap(tuple(entries))


def rollback_block(instant: str, target: str) -> LogBlock:
    """The block by which the rollback `instant` takes back every block of the instant `target` before it."""
    entries = (
        (HeaderKey.INSTANT_TIME, instant),
        (HeaderKey.COMMAND_BLOCK_TYPE, _ROLLBACK),
        (HeaderKey.TARGET_INSTANT_TIME, target),
    )
    return LogBlock(BlockKind.COMMAND, BlockMap(entries))


def is_rollback(header: BlockMap) -> bool:
    """Whether the header of a COMMAND block says rollback, with a target."""
    return header.get(HeaderKey.COMMAND_BLOCK_TYPE) == _ROLLBACK and header.target is not None


def read_parquet_content(
    content: bytes | memoryview, path: str, offset: int = 0, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of a Parquet file that is a block's content. Raises CorruptLogBlock if it is none."""
    try:
        with pq.ParquetFile(pa.BufferReader(pa.py_buffer(content))) as file:
            return file.read(columns=None if columns is None else list(columns))
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptLogBlock(path, f"the block's Parquet content cannot be read: {error}", offset) from error


def write_parquet_content(rows: pa.Table, compression: str = "gzip") -> bytes:
    """The rows as a whole Parquet file, in one row group; lists in the standard 3-level form."""
    out = io.BytesIO()
    with pq.ParquetWriter(
        out, rows.schema, compression=compression, store_schema=False, use_compliant_nested_type=True
    ) as writer:
        writer.write_table(rows, row_group_size=max(1, rows.num_rows))
    return out.getvalue()


_HEAD = struct.Struct("<qi")
_MOST = 2**32  # a base file with more rows would take a second bucket

RowPositions = npt.NDArray[np.int64]


def encode_positions(positions: RowPositions) -> str | None:
    """The text of the header entry; None for positions that it cannot tell apart, or that one bucket cannot hold.

    positions  int64[n], rising
    """
    if not len(positions) or positions[0] < 0 or positions[-1] >= _MOST or (np.diff(positions) <= 0).any():
        return None
    bitmap = BitMap(positions.astype(np.uint32))
    bitmap.run_optimize()
    return base64.b64encode(_HEAD.pack(1, 0) + bitmap.serialize()).decode()


def decode_positions(text: str) -> RowPositions | None:
    """int64[n], rising; None when the text is not a bitmap of one bucket: rows are then found by their keys.

    Source  docs/format/table-versions-8-9.md 6.2; pinned by tests/vectors/v8-v9/record_positions.json
    """
    try:
        data = base64.b64decode(text, validate=True)
        buckets, high = _HEAD.unpack_from(data)
        if buckets != 1 or high != 0 or len(data) == _HEAD.size:
            return None
        values = BitMap.deserialize(data[_HEAD.size :])
    except (binascii.Error, struct.error, ValueError):
        return None
    return np.frombuffer(values.to_array(), np.uint32).astype(np.int64)
