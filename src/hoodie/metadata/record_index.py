"""Entries of the record index, which say where each record key is: made, and encoded as Hudi writes them.

Source: docs/format/metadata-table.md 4.5; pinned by tests/vectors/record_index_location.json and the metadata tables
of real Hudi in tests/fixtures.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.config.table import TimelineZone
from hoodie.formats.avro.bytes import Pieces
from hoodie.formats.avro.compile import compile_schema
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock
from hoodie.formats.log.delete_block import deletes_of, encode_deletes
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.record_schema import STORED_SCHEMA
from hoodie.metadata.records import RECORD_INDEX, file_ids
from hoodie.model.files import FileGroupId
from hoodie.model.instant import parse_time

_TYPE = 5
_UUID = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(0|[1-9]\d{0,8}))?", re.ASCII)
_BY_UUID, _RAW = 0, 1
_FILE_NAME = "_hoodie_file_name"
_CONTENT = "recordIndexMetadata"
_VALUE = ("partition", "high", "low", "file_index", "file_id", "instant", "encoding")
_STORED = ("partitionName", "fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "instantTime", "fileIdEncoding")


@dataclass(frozen=True, slots=True)
class StoredFileId:
    """A file id as entries hold it: a UUID as two numbers of 64 bits with what follows it, or any other as text."""

    high: int
    low: int
    index: int
    text: str
    encoding: int


def stored_file_id(file_id: str) -> StoredFileId:
    """How entries hold a file id."""
    match = _UUID.fullmatch(file_id)
    if match is None:
        return StoredFileId(-1, -1, -1, file_id, _RAW)
    number = uuid.UUID(match[1]).int
    high, low = (_signed(part) for part in (number >> 64, number & 0xFFFFFFFFFFFFFFFF))
    return StoredFileId(high, low, -1 if match[2] is None else int(match[2]), "", _BY_UUID)


def epoch_millis(instant: str, zone: TimelineZone) -> int:
    """The moment of an instant as entries hold it, in milliseconds since 1970. It only informs: nothing is read by
    it."""
    moment = parse_time(instant)
    in_zone = moment.replace(tzinfo=dt.UTC) if zone is TimelineZone.UTC else moment.astimezone()
    return int(in_zone.timestamp()) * 1000 + moment.microsecond // 1000


def entries(keys: pa.Array, group: FileGroupId, millis: int) -> pa.Table:
    """Entries that say that keys are in a file group, of the schema `records.RECORD_INDEX`.

    keys    string[n], no nulls
    millis  of the instant that inserted them
    """
    stored, count = stored_file_id(group.file_id), len(keys)
    values = (group.partition, stored.high, stored.low, stored.index, stored.text, millis, stored.encoding, False)
    fields = list(RECORD_INDEX)[1:]
    columns = [pa.repeat(pa.scalar(value, part.type), count) for part, value in zip(fields, values, strict=True)]
    return pa.Table.from_arrays([keys, *columns], schema=RECORD_INDEX)


def locations(records: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Partition path and file id of each entry: string[n] each."""
    numbers, distinct = _distinct(records)
    paths, ids = _array(distinct, "partition"), file_ids(distinct)
    return paths.take(pa.array(numbers)), ids.take(pa.array(numbers))


def record_index_cells(records: pa.Table, file_name: str = "") -> tuple[pa.Array, pa.Array]:
    """Rows and values of cells, one for each entry: string[n] and binary[n].

    records    entries, of the schema `records.RECORD_INDEX`; none deleted
    file_name  of the base file that they are for; "": they are for a log block
    """
    rows = _array(records, "row")
    numbers, distinct = _distinct(records)
    content = pa.StructArray.from_arrays([_array(distinct, name) for name in _VALUE], names=list(_STORED))
    count = len(distinct)
    columns = {
        "key": pa.repeat(pa.scalar(""), count),
        "type": pa.repeat(pa.scalar(_TYPE, pa.int32()), count),
        _CONTENT: content,
    }
    if file_name:
        columns[_FILE_NAME] = pa.repeat(pa.scalar(file_name), count)
    record, pieces = compile_schema(STORED_SCHEMA, unions=True), Pieces(count)
    for name, node in record.fields:
        node.write(columns.get(name, pa.nulls(count, node.arrow)), pieces)
    return rows, pieces.join().take(pa.array(numbers))


def delete_block(instant: str, keys: pa.Array) -> LogBlock:
    """The log block that takes the entries of keys away. keys: string[n]"""
    partition = pa.repeat(pa.scalar(str(MetadataPartition.RECORD_INDEX)), len(keys))
    header = BlockMap(((HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, STORED_SCHEMA)))
    return LogBlock(BlockKind.DELETE, header, encode_deletes(deletes_of(keys, partition)))


def _distinct(records: pa.Table) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], pa.Table]:
    """For each entry the number of its value, and the distinct values: keys of a file group have the same."""
    codes = np.zeros(len(records), np.int64)
    for name in _VALUE:
        encoded = _array(records, name).dictionary_encode(null_encoding="encode")
        column = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + column, return_inverse=True)
        codes = codes.reshape(-1)
    _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return numbers.reshape(-1), records.take(pa.array(first))


def _array(records: pa.Table, name: str) -> pa.Array:
    column = records.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
