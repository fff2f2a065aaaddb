"""Statistics of data files in the form of Hudi 1.1 and later: each file has a record of every column that it holds.

Source: docs/format/table-versions-8-9.md 11; pinned by tests/fixtures/metadata/v9_mor_statistics.zip.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.avro.schema import from_avro
from hoodie.formats.log.content import data_rows
from hoodie.metadata.keys import column_stats_key
from hoodie.metadata.merging import united
from hoodie.metadata.partitions.column_ranges import Range, no_rows, of_footer, of_rows
from hoodie.metadata.partitions.data_files import data_blocks, of_sources
from hoodie.model.files import BaseFile, LogFile
from hoodie.storage.protocol import Storage, in_threads

#: Logs that are in memory at once.
_LOGS_AT_ONCE = 4
_SIZES = ("size", "uncompressed_size")


def records_of_files(
    storage: Storage, files: Sequence[BaseFile | LogFile], names: Collection[str]
) -> list[dict[str, Any]]:
    """Records of some files, of the schema `records.COLUMN_STATS`.

    names   of top-level columns; a file that lacks one has no record of it, nor has a base file without rows
    Raises  UnsupportedTable where a column has no statistics; CorruptFile
    """
    return [
        record
        for file, ranges in ranges_of_files(storage, files, names)
        for record in recorded(file, ranges)
        if record["values"] or isinstance(file, LogFile)
    ]


def recorded(file: BaseFile | LogFile, ranges: Mapping[str, Range], *, deleted: bool = False) -> list[dict[str, Any]]:
    """The records of a file, by the ranges of its columns."""
    return [
        {
            "row": column_stats_key(column, file.group.partition, file.name),
            "file": file.name,
            "column": column,
            **column_range,
            "deleted": deleted,
        }
        for column, column_range in ranges.items()
    ]


def ranges_of_files(
    storage: Storage, files: Sequence[BaseFile | LogFile], names: Collection[str]
) -> Iterator[tuple[BaseFile | LogFile, Mapping[str, Range]]]:
    """The ranges of columns in each file. Raises as `records_of_files`"""
    bases = [file for file in files if isinstance(file, BaseFile)]
    logs = [file for file in files if isinstance(file, LogFile)]
    yield from zip(bases, of_sources(storage, bases, partial(_of_base_file, names)), strict=True)
    of_log = partial(_of_log, storage, names)
    for at in range(0, len(logs), _LOGS_AT_ONCE):
        part = logs[at : at + _LOGS_AT_ONCE]
        yield from zip(part, in_threads(of_log, part), strict=True)


def _of_base_file(
    names: Collection[str], file: BaseFile, footer: pq.FileMetaData, source: pa.NativeFile
) -> dict[str, Range]:
    """By the footer, and by the values where that does not say all: it knows no NaN, and nothing of long texts."""
    stored = [name for name in footer.schema.to_arrow_schema().names if name in names]
    ranges = of_footer(footer, stored, typed=True)
    unsure = [name for name in stored if _is_unsure(ranges.get(name))]
    if unsure and footer.num_rows:
        for name, column_range in _read(footer, source, unsure, file.path).items():
            sizes = ranges.get(name) or _sizes(footer, name)
            ranges[name] = {**column_range, **{key: sizes[key] for key in _SIZES}}
    return {name: ranges[name] if name in ranges else no_rows(typed=True) for name in stored}


def _is_unsure(column_range: Range | None) -> bool:
    if column_range is None:
        return True
    if column_range["nulls"] == column_range["values"]:
        return False
    least = column_range["min"] or {}
    return not least or not {"FloatWrapper", "DoubleWrapper"}.isdisjoint(least)


def _read(footer: pq.FileMetaData, source: pa.NativeFile, names: list[str], path: str) -> dict[str, Range]:
    ranges: dict[str, Range] = {}
    for batch in pq.ParquetFile(source, metadata=footer).iter_batches(columns=names):
        part = of_rows(pa.Table.from_batches([batch]), names, typed=True)
        if unfit := [name for name in names if name not in part]:
            raise UnsupportedTable(f"the column {unfit[0]} of {path} has no statistics in Hudi")
        ranges = {
            name: united(column_range, ranges[name]) if name in ranges else column_range
            for name, column_range in part.items()
        }
    return {name: _finite(column_range) for name, column_range in ranges.items()}


def _finite(column_range: Range) -> Range:
    """Without NaN, which Spark has above all numbers, and Hudi's filters below all."""
    ends = {"min": -math.inf, "max": math.inf}
    bounds = {
        end: column_range[end] and {name: _known_value(value, ends[end]) for name, value in column_range[end].items()}
        for end in ends
    }
    return {**column_range, **bounds}


def _known_value(value: Any, end: float) -> Any:
    return end if isinstance(value, float) and math.isnan(value) else value


def _sizes(footer: pq.FileMetaData, name: str) -> dict[str, int]:
    chunks = [
        footer.row_group(group).column(number)
        for group in range(footer.num_row_groups)
        for number in range(footer.num_columns)
        if footer.schema.column(number).path == name
    ]
    totals = (
        sum(chunk.total_compressed_size for chunk in chunks),
        sum(chunk.total_uncompressed_size for chunk in chunks),
    )
    return dict(zip(_SIZES, totals, strict=True))


def _of_log(storage: Storage, names: Collection[str], log: LogFile) -> dict[str, Range]:
    """What a log holds: one with deletes only says of all columns that it has no values."""
    blocks = data_blocks(storage, log)
    rows = [data_rows(block, log.path) for block in blocks if block.kind.is_data]
    rows = [part for part in rows if len(part)]
    if not rows:
        return dict.fromkeys(names, no_rows(typed=True))
    schema = next((block.header.schema for block in blocks if block.kind.is_data and block.header.schema), "")
    if not schema:
        raise CorruptFile(log.path, "a block of rows without a schema")
    stored = [name for name in from_avro(schema, log.path).names if name in names]
    table = pa.concat_tables(rows, promote_options="default")
    ranges = of_rows(table, stored, typed=True)
    if unfit := [name for name in stored if name not in ranges]:
        raise UnsupportedTable(f"the column {unfit[0]} of {log.path} has no statistics in Hudi")
    return {name: _finite(column_range) for name, column_range in ranges.items()}
