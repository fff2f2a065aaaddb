"""Rows in Avro's binary form, as the content of a data block, from and to Arrow columns.

The content is: int32 block version, int32 count of rows, and each row after its length as int32; big-endian.
"""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hoodie.errors import CorruptLogBlock, InvalidInput, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro.bytes import Cells, Malformed, Pieces, offsets_of
from hoodie.formats.avro.compile import BadSchema, compile_schema
from hoodie.formats.avro.nodes import Record

_VERSION = 3  # 1 and 2 have the same layout
_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_ROWS = 16 * 1024  # rows taken at once: their cursors and bytes stay in the processor's cache
_BYTES = 16 * 1024 * 1024  # and bytes taken at once, unless one row has more


def decode_rows(
    content: bytes | memoryview, schema_json: str, path: str = "", offset: int = 0, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of a data block.

    content      of an AVRO_DATA or CDC_DATA block
    schema_json  the block's SCHEMA header: the schema the rows were written with
    path         names the file in errors
    offset       of the content in that file, for errors
    columns      the columns wanted, None for all; the table has them in the order of the schema
    Raises       CorruptLogBlock on bytes or a schema that are malformed; UnsupportedTable on a newer content
                 version, or a schema without Arrow type
    Source       Hudi's HoodieAvroDataBlock; pinned by tests/vectors/log_blocks.json, and fastavro as oracle
    """
    try:
        record = compile_schema(schema_json)
    except BadSchema as error:
        raise CorruptLogBlock(path, f"the block's schema: {error}", offset) from error
    except UnsupportedTable as error:
        raise UnsupportedTable(f"{path} at byte {offset}: {error}") from error
    chosen = None if columns is None else frozenset(columns)
    schema = pa.schema([field for field in record.arrow if chosen is None or field.name in chosen])
    if chosen is not None and len(chosen) > len(schema):
        raise SchemaMismatch(f"{path}: no columns {sorted(chosen - set(schema.names))} in the block's schema")
    data = memoryview(content)
    starts, ends = _row_bounds(data, path, offset)
    batches = []
    for first, last in _chunks(starts, ends):
        base = int(starts[first])
        at, end = starts[first:last] - base, ends[first:last] - base
        try:
            arrays, after = record.read_columns(Cells(data[base : int(ends[last - 1])]), at, chosen)
        except Malformed as error:
            raise CorruptLogBlock(path, error.problem, offset + base + error.at) from error
        if not np.array_equal(after, end):
            row = int((after != end).argmax())
            problem = f"a row of {end[row] - at[row]} bytes, of which its schema takes {after[row] - at[row]}"
            raise CorruptLogBlock(path, problem, offset + base + int(at[row]))
        if arrays:
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    if not schema.names:
        return pa.table({"": pa.nulls(len(starts))}).select([])
    return pa.Table.from_batches(batches, schema)


def encode_rows(table: pa.Table, schema_json: str) -> bytes:
    """The content of an AVRO_DATA block with the table's rows; columns are taken by name.

    Raises  SchemaMismatch if a column is missing, too many, null where it must not be, or of another type
    """
    try:
        record = compile_schema(schema_json)
    except BadSchema as error:
        raise SchemaMismatch(f"the schema to write: {error}") from error
    surplus = set(table.column_names) - {name for name, _ in record.fields}
    if surplus or len(set(table.column_names)) < table.num_columns:
        raise SchemaMismatch(f"columns {sorted(surplus)} are not in the schema to write, or a column is there twice")
    return b"".join(
        (_HEAD.pack(_VERSION, table.num_rows), *(_encode_batch(batch, record) for batch in _batches(table)))
    )


def _encode_batch(batch: pa.RecordBatch, record: Record) -> memoryview:
    pieces = Pieces(batch.num_rows)
    record.write_columns(dict(zip(batch.schema.names, batch.columns, strict=True)), pieces)
    rows = pieces.join_framed()
    offsets = offsets_of(rows)
    return memoryview(rows.buffers()[2])[int(offsets[0]) : int(offsets[-1])]


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Batches of rows small enough for the cache, and for the 2 GiB that one Arrow array may hold."""
    waiting = [batch for batch in reversed(table.to_batches(max_chunksize=_ROWS)) if batch.num_rows]
    while waiting:
        batch = waiting.pop()
        if batch.nbytes <= 4 * _BYTES or batch.num_rows == 1:
            if batch.nbytes >= 2**31:
                raise InvalidInput(f"a row of {batch.nbytes} bytes: a log block holds less than 2 GiB")
            yield batch
        else:
            half = batch.num_rows // 2
            waiting += (batch.slice(half), batch.slice(0, half))


def _row_bounds(data: memoryview, path: str, offset: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each row's bytes begin and end."""
    size = len(data)
    if size < _HEAD.size:
        raise CorruptLogBlock(path, f"a data block's content of {size} bytes", offset)
    version, count = _HEAD.unpack_from(data)
    if version > _VERSION:
        raise UnsupportedTable(f"{path} at byte {offset}: data block version {version}; up to {_VERSION} are read")
    if version < 1 or not 0 <= count <= (size - _HEAD.size) // _LENGTH.size:
        raise CorruptLogBlock(path, f"data block version {version} with {count} rows in {size} bytes", offset)
    # Each row's length says where the next begins, so the only way is step by step: one addition a row.
    ends = np.empty(count, np.int64)
    at, width, unpack = _HEAD.size, _LENGTH.size, _LENGTH.unpack_from
    limit = size - width
    for row in range(count):
        length = unpack(data, at)[0] if at <= limit else -1
        if not 0 <= length <= limit - at:
            raise CorruptLogBlock(path, f"row {row} of {count} has no length, or one past the content", offset + at)
        at += width + length
        ends[row] = at
    if at != size:
        raise CorruptLogBlock(path, f"{size - at} bytes after the last of {count} rows", offset + at)
    return np.concatenate(([_HEAD.size], ends[:-1])) + width if count else ends, ends


def _chunks(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows to take at once."""
    first = 0
    while first < len(starts):
        full = int(np.searchsorted(ends, starts[first] + _BYTES, side="right"))
        last = max(first + 1, min(first + _ROWS, full))
        yield first, last
        first = last
