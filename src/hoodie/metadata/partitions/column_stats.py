"""The partition `column_stats`: least and greatest values and nulls of columns, by data file.

Source: docs/format/metadata-table.md 4.3 and 7.4; pinned by the metadata tables of real Hudi in tests/fixtures.
"""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.config.metadata import COLUMN_LIST, MetadataOptions
from hoodie.config.table import TableConfig
from hoodie.formats.avro.schema import from_avro
from hoodie.formats.log.content import data_rows
from hoodie.metadata.encode import record_cells
from hoodie.metadata.keys import MetadataPartition, column_stats_key
from hoodie.metadata.partitions.column_ranges import SCALE, Range, no_rows, of_footer, of_rows, signed_bytes
from hoodie.metadata.partitions.data_files import added_files, blocks_of, deleted_base_files, of_footers, shares_of
from hoodie.metadata.partitions.indexed_columns import first_columns, kept_columns
from hoodie.metadata.partitions.kind import (
    Building,
    Change,
    InitialContent,
    PartitionKind,
    untyped_or_typed,
    where_defined,
)
from hoodie.metadata.partitions.typed_stats import ranges_of_files, recorded, records_of_files
from hoodie.metadata.records import COLUMN_STATS as SCHEMA
from hoodie.metadata.records import deleted_records
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.meta import META_COLUMNS
from hoodie.model.table_version import VERSIONS
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.state import TableState, declared_schema

#: Logs that are in memory at once: a large commit appends some hundred megabytes to one.
_LOGS_AT_ONCE = 4
#: What is said of a file that is gone.
_GONE: Range = {"min": None, "max": None, "values": -1, "nulls": -1, "size": -1, "uncompressed_size": -1}


def columns_to_index(config: TableConfig) -> tuple[str, ...]:
    """The columns of which there are statistics, as the table's settings have them; none: all top-level ones."""
    return _names_in(config.properties.get(COLUMN_LIST, ""))


def _names_in(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _records(change: Change) -> pa.Table:
    if VERSIONS[change.config.version].defines_indexes:
        return _of_definition(change)
    names = columns_to_index(change.config)
    records: list[dict[str, Any]] = []
    if change.commit is not None:
        bases, logs = added_files(change.files)
        records += _of_base_files(change.storage, bases, names)
        of_log = partial(_of_log, change.storage, change.instant, names)
        for at in range(0, len(logs), _LOGS_AT_ONCE):
            records += (record for part in in_threads(of_log, logs[at : at + _LOGS_AT_ONCE]) for record in part)
    if deleted := deleted_base_files(change.files):
        columns = names or _table_columns(change)
        ranges = dict.fromkeys(columns, _GONE)
        records += (record for file in deleted for record in recorded(file, ranges, deleted=True))
    return pa.Table.from_pylist(records, schema=SCHEMA)


def _of_definition(change: Change) -> pa.Table:
    """As of the columns that the table's index definitions name. Raises UnsupportedTable"""
    names = kept_columns(change)
    bases, logs = added_files(change.files)
    rows = [] if change.commit is None else records_of_files(change.storage, [*bases, *logs], names)
    keys = [
        column_stats_key(column, file.group.partition, file.name)
        for file in deleted_base_files(change.files)
        for column in names
    ]
    records = pa.Table.from_pylist(rows, schema=SCHEMA)
    return pa.concat_tables([records, deleted_records(pa.array(keys, pa.string()), MetadataPartition.COLUMN_STATS)])


def _first_content(building: Building) -> InitialContent:
    """The files with statistics here: base files, as in Hudi; logs have theirs from the commits that write them. Where
    statistics say the types of their values, all files."""
    if VERSIONS[building.config.version].types_statistics:
        bases, logs = added_files(building.files)
        typed = partial(_typed, building.storage, first_columns(building))
        return InitialContent(building.options.column_stats_groups, shares_of([*bases, *logs]), typed)
    names = _names_in(building.options.column_list) or columns_to_index(building.config)
    bases, _ = added_files(building.files)
    stored = partial(_stored_ranges, building.storage, names)
    return InitialContent(building.options.column_stats_groups, shares_of(bases), stored)


def _stored_ranges(storage: Storage, names: Collection[str], files: list[BaseFile]) -> Iterator[pa.Table]:
    yield pa.Table.from_pylist([*_of_base_files(storage, files, names)], schema=SCHEMA)


def _typed(storage: Storage, names: Collection[str], files: list[BaseFile | LogFile]) -> Iterator[pa.Table]:
    yield pa.Table.from_pylist(records_of_files(storage, files, names), schema=SCHEMA)


def _of_base_files(storage: Storage, files: list[BaseFile], names: Collection[str]) -> Iterator[dict[str, Any]]:
    for records in of_footers(storage, files, lambda file, footer: recorded(file, of_footer(footer, names))):
        yield from records


def _of_log(storage: Storage, instant: str, names: Collection[str], log: LogFile) -> list[dict[str, Any]]:
    blocks = blocks_of(storage, log, instant)
    schema = next((block.header.schema for block in blocks if block.header.schema), None)
    if schema is None:  # no column is known
        return []
    columns = [name for name in from_avro(schema, log.path).names if not names or name in names]
    parts = [data_rows(block, log.path) for block in blocks if block.kind.is_data]
    rows = pa.concat_tables(parts, promote_options="default") if parts else None
    if rows is None or not len(rows):
        return recorded(log, {name: no_rows() for name in columns})
    return recorded(log, of_rows(rows, columns))


def _table_columns(change: Change) -> tuple[str, ...]:
    schema = declared_schema(TableState(change.storage, change.config, change.timeline))
    return (*(META_COLUMNS if change.config.meta_fields else ()), *(schema.names if schema is not None else ()))


def _differences(building: Building, records: pa.Table) -> Iterator[str]:
    """Base files of which the statistics say something else than their footers. Those without a record are read, and
    what logs hold is within the records of their commits: neither leaves out a row."""
    bases, _ = added_files(building.files)
    stored = {record["row"]: record for record in records.to_pylist()}
    names = {record["column"] for record in stored.values()}
    if VERSIONS[building.config.version].defines_indexes:
        ranges_per_file: Iterator[Mapping[str, Range]] = (
            ranges for _, ranges in ranges_of_files(building.storage, bases, names)
        )
    else:
        ranges_per_file = of_footers(
            building.storage, bases, lambda file, footer: of_footer(footer, names) if names else {}
        )
    for file, ranges in zip(bases, ranges_per_file, strict=True):
        for column, column_range in ranges.items():
            record = stored.get(column_stats_key(column, file.group.partition, file.name))
            if record is not None and any(
                _plain_bound(record[name]) != _plain_bound(column_range[name]) for name in column_range
            ):
                yield f"{MetadataPartition.COLUMN_STATS} of {column} in {file.path} are not those of its footer"


def _plain_bound(value: Any) -> Any:
    """A bound without its class: a compaction by Hudi makes whole numbers of dates, and bytes of decimals."""
    if not isinstance(value, dict):
        return value
    if "typeOrdinal" in value:
        return tuple(value.values())
    member_value = next((member for member in value.values() if member is not None), None)
    if member_value != member_value:  # NaN
        return "NaN"
    if isinstance(member_value, Decimal):
        return signed_bytes(int(member_value.scaleb(SCALE)))
    return member_value


def _settings(options: MetadataOptions) -> Mapping[str, str]:
    return {COLUMN_LIST: options.column_list} if _names_in(options.column_list) else {}


COLUMN_STATS = PartitionKind(
    partition=MetadataPartition.COLUMN_STATS,
    prefix="col-stats",
    records=_records,
    first=_first_content,
    cells=partial(record_cells, MetadataPartition.COLUMN_STATS),
    settings=_settings,
    differences=_differences,
    deletes_apart=where_defined,
    is_of=untyped_or_typed,
)
