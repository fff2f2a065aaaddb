"""Entries of the record index, which say where each record key is: made, and encoded as Hudi writes them.

Source: docs/format/metadata-table.md 4.5; pinned by tests/vectors/record_index_location.json and the metadata tables
of real Hudi in tests/fixtures.
"""

import datetime as dt
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.config.table import TimelineZone
from hoodie.metadata.encode import column_in_one_piece, record_cells
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.record_schema import STORED_SCHEMA
from hoodie.metadata.records import RECORD_INDEX, file_ids
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import parse_time

_UUID = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(0|[1-9]\d{0,8}))?", re.ASCII)
_BY_UUID, _RAW = 0, 1
#: The file id of a group that may have keys of all partitions of the table.
_GLOBAL = re.compile(r"record-index-\d+-\d+", re.ASCII)
#: What an entry says beside its key. Keys of one file group that one instant inserted have it in common.
_VALUE = ("partition", "high", "low", "file_index", "file_id", "instant", "encoding")
#: Keys, and the file group that each is in.
PLACES = pa.schema([("row", pa.string()), ("partition", pa.string()), ("file_id", pa.string())])


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


def is_by_partition(slices: Iterable[FileSlice]) -> bool:
    """Whether the file groups of a record index are each for one partition of the table: its keys occur in several."""
    return not all(_GLOBAL.fullmatch(slice_.group.file_id) for slice_ in slices)


def epoch_millis(instant: str, zone: TimelineZone) -> int:
    """The moment of an instant as entries hold it, in milliseconds since 1970. It only informs: nothing is read by
    it."""
    moment = parse_time(instant)
    in_zone = moment.replace(tzinfo=dt.UTC) if zone is TimelineZone.UTC else moment.astimezone()
    return int(in_zone.timestamp()) * 1000 + moment.microsecond // 1000


def places_table(keys: pa.Array, group: FileGroupId) -> pa.Table:
    """Keys that are in a file group, of the schema `PLACES`. keys: string[n], no nulls"""
    columns = [pa.repeat(pa.scalar(text, pa.string()), len(keys)) for text in (group.partition, group.file_id)]
    return pa.Table.from_arrays([keys, *columns], schema=PLACES)


def entries(places: pa.Table, millis: int) -> pa.Table:
    """Entries that say where keys are, of the schema `records.RECORD_INDEX`.

    places  of the schema `PLACES`, no nulls
    millis  of the instant that inserted the keys
    """
    paths, ids = (column_in_one_piece(places, name).dictionary_encode() for name in ("partition", "file_id"))
    stored = [stored_file_id(file_id) for file_id in ids.dictionary.to_pylist()]
    of_file = {
        "high": [file_id.high for file_id in stored],
        "low": [file_id.low for file_id in stored],
        "file_index": [file_id.index for file_id in stored],
        "file_id": [file_id.text for file_id in stored],
        "encoding": [file_id.encoding for file_id in stored],
    }
    count = len(places)
    columns = {
        "row": column_in_one_piece(places, "row"),
        "partition": paths.dictionary.take(paths.indices),
        "instant": pa.repeat(pa.scalar(millis, pa.int64()), count),
        "deleted": pa.repeat(pa.scalar(False), count),
    }
    for name, values in of_file.items():
        columns[name] = pa.array(values, RECORD_INDEX.field(name).type).take(ids.indices)
    return pa.Table.from_arrays([columns[name] for name in RECORD_INDEX.names], schema=RECORD_INDEX)


def locations(records: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Partition path and file id of each entry: string[n] each."""
    numbers, distinct = _distinct(records)
    paths, ids = column_in_one_piece(distinct, "partition"), file_ids(distinct)
    return paths.take(pa.array(numbers)), ids.take(pa.array(numbers))


def record_index_cells(
    records: pa.Table, file_name: str = "", schema: str = STORED_SCHEMA
) -> tuple[pa.Array, pa.Array]:
    """Rows and values of cells, one for each entry: string[n] and binary[n].

    records    entries, of the schema `records.RECORD_INDEX`; none deleted
    file_name  of the base file that they are for; "": they are for a log block
    schema     that they are written by, in Avro
    """
    numbers, distinct = _distinct(records)
    _, values = record_cells(MetadataPartition.RECORD_INDEX, distinct, file_name, schema)
    return column_in_one_piece(records, "row"), values.take(pa.array(numbers))


def _distinct(records: pa.Table) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], pa.Table]:
    """For each entry the number of its value, and the distinct values: keys of a file group have the same."""
    numbers, count = np.zeros(len(records), np.int64), 1
    for name in _VALUE:
        encoded = column_in_one_piece(records, name).dictionary_encode(null_encoding="encode")
        if len(encoded.dictionary) > 1:
            column = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            both = pa.array(numbers * len(encoded.dictionary) + column).dictionary_encode()
            numbers, count = both.indices.to_numpy().astype(np.int64), len(both.dictionary)
    # They are numbered as they appear: each of them is the greatest so far where it does first.
    first = np.searchsorted(np.maximum.accumulate(numbers), np.arange(min(count, len(numbers))))
    return numbers, records.take(pa.array(first))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
