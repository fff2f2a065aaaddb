"""Reading a table as Arrow, without Spark: the rows of a scan.

Source: docs/format/table-services.md 8 (queries).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.datasource import door_options
from hoodie.config.driver_options import without_driver_options
from hoodie.config.hudi_options import Purpose
from hoodie.config.options import Options
from hoodie.errors import UnsupportedTable
from hoodie.formats.parquet.columns import damage_of, open_parquet
from hoodie.model.files import BaseFile, FileSlice
from hoodie.reading.filters.predicate import ANY, Tests
from hoodie.reading.filters.row_groups import row_groups
from hoodie.reading.filters.selection import Filters, check_columns, read_filter
from hoodie.reading.scan import Scan
from hoodie.reading.scan_plan import plan_scan
from hoodie.reading.slices.column_types import base_columns
from hoodie.reading.slices.reader import SliceReader, merged_batches
from hoodie.schema.conform import conform
from hoodie.storage import storage_at
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, load_state
from hoodie.timeline.points import Point

#: Rows as `columns`, of a slice that has logs. The schema is that of the whole table, meta columns included.
MergeSlice: TypeAlias = Callable[[FileSlice, pa.Schema, Sequence[str]], pa.Table]


@typed_errors()
def read_arrow(
    path: str | os.PathLike[str],
    *,
    partitions: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    as_of: Point | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """The rows of a table as a snapshot reader sees them, without Spark.

    partitions       read these partition paths only, such as ["2024-01-31"]; other files are not even opened
    columns          names of top-level columns, in the order wanted; None: the five `_hoodie_*` columns, unless the
                     table is without, then the user's
    filters          rows to keep; may name columns that are not among `columns`
    as_of            `yyyyMMddHHmmss[SSS]`, ISO text such as `2024-01-31 12:30` or `2024-01-31T12:30:45Z`, a datetime or
                     a date; inclusive, in the table's zone where it names none; None: now
    storage_options  of the fsspec driver of the path, such as key and secret of s3fs; a local path needs none
    options          `hoodie.*` options of reads; others are taken as the driver's
    Raises           TableNotFound; UnsupportedTable; CorruptFile; InvalidInput on an unknown column, a malformed
                     `as_of`, or one as of which files were cleaned; MissingFile when a file is gone that a commit
                     published; InvalidOption
    Bytes of logs that had to be skipped are warned about (`errors.DamagedLog`), and timestamps about whose unit commits
    and files disagree (`errors.ContradictoryTimestamps`).
    """
    storage, ours = open_storage(path, options, storage_options)
    return read_table(load_state(storage), columns, filters, as_of, ours, partitions)


def open_storage(
    path: str | os.PathLike[str], options: Mapping[str, Any] | None, storage_options: Mapping[str, Any] | None
) -> tuple[Storage, Options]:
    """The storage of a table to read, and the `hoodie.*` options of reads. Options of other names are the driver's."""
    given = options or {}
    ours = door_options({key: given[key] for key in given if key.startswith("hoodie.")}, Purpose.READ)
    driver = {key: given[key] for key in given if not key.startswith("hoodie.")}
    return storage_at(path, ours, {**driver, **(storage_options or {})}), without_driver_options(ours)


def read_table(
    state: TableState,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    as_of: Point | None = None,
    options: Options | None = None,
    partitions: Collection[str] | None = None,
) -> pa.Table:
    """The rows of a table at hand: see `read_arrow`."""
    return read_scan(
        plan_scan(state, columns=columns, partitions=partitions, filters=filters, as_of=as_of, options=options)
    )


def read_scan(scan: Scan) -> pa.Table:
    """The rows that a scan is of, in the order of its slices; threads read them.

    Raises  CorruptFile; FileNotFoundError when a file was cleaned away meanwhile; SchemaMismatch when a file's column
            cannot be brought into the table's schema
    """
    merge = None if scan.reader is None else partial(merged_rows, scan.reader)
    return _rows_of(
        scan.state.storage, scan.slices, scan.schema, scan.columns, scan.read, scan.rows_kept, merge, scan.tests
    )


def read_slices_arrow(
    storage: Storage,
    slices: Iterable[FileSlice],
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    merge: MergeSlice | None = None,
) -> pa.Table:
    """The rows of file slices at hand, in the table's schema and in the order of the slices; threads read them.

    schema   all columns there are, meta columns included where the table has them
    columns  names of those wanted, in order; None: all
    filters  rows to keep
    merge    reads a slice with logs; None: there are none
    returns  columns that a file lacks hold their default or null, narrower types are widened
    Raises   as `read_scan`; InvalidInput on an unknown column; UnsupportedTable on logs
    """
    wanted = schema.names if columns is None else list(columns)
    rows = read_filter(filters, schema)
    read = list(dict.fromkeys([*wanted, *(rows.columns if rows else ())]))
    check_columns(read, schema)
    return _rows_of(storage, list(slices), schema, wanted, read, rows.expression if rows else None, merge)


def _rows_of(
    storage: Storage,
    slices: Sequence[FileSlice],
    schema: pa.Schema,
    wanted: Sequence[str],
    read: Sequence[str],
    keep: pc.Expression | None,
    merge: MergeSlice | None,
    tests: Tests = ANY,
) -> pa.Table:
    read = read or schema.names[:1]  # rows are counted by a column that they have

    def rows_of(slice_: FileSlice) -> pa.Table:
        if slice_.logs:
            if merge is None:
                raise UnsupportedTable(
                    f"file group {slice_.group.file_id} has log files, and this read has no rule to merge them"
                )
            rows = merge(slice_, schema, read)
        else:
            assert slice_.base is not None  # a slice without logs has a base file
            rows = read_base_file(storage, slice_.base, schema, read, threads=len(slices) == 1, tests=tests)
        return (rows if keep is None else rows.filter(keep)).select(list(wanted))

    parts = _each(rows_of, slices)
    empty = pa.schema([schema.field(name) for name in wanted]).empty_table()
    if not wanted:  # pyarrow forgets the number of rows of a table without columns
        return pa.table({"_": pa.nulls(sum(map(len, parts)))}).select([])
    return pa.concat_tables(parts) if parts else empty


def merged_rows(reader: SliceReader, slice_: FileSlice, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """The rows of a slice with logs: a `MergeSlice`, given the reader."""
    wanted = pa.schema([schema.field(name) for name in columns])
    return pa.concat_tables([wanted.empty_table(), *merged_batches(reader, slice_, columns)])


def read_base_file(
    storage: Storage,
    file: BaseFile,
    schema: pa.Schema,
    columns: Sequence[str],
    threads: bool = True,
    tests: Tests = ANY,
) -> pa.Table:
    """Some columns of a base file, in the table's types.

    columns  names of top-level columns of `schema`, in the order wanted
    threads  whether columns are decoded in parallel
    tests    row groups that cannot pass them by their statistics are not read
    Raises   CorruptFile; OSError of the storage, FileNotFoundError among them; SchemaMismatch
    """
    target = pa.schema([schema.field(name) for name in columns])
    with storage.open_listed(file.path, file.size) as source:
        parquet = open_parquet(source, file.path, pre_buffer=True)
        types = base_columns(storage, parquet, target, file.instant)
        with damage_of(file.path):
            stored = set(parquet.schema_arrow.names)
            names = types.names(columns, stored)
            groups = row_groups(parquet, target, types, tests)
            if len(groups) == parquet.num_row_groups:
                rows = parquet.read(names, use_threads=threads)
            else:
                rows = parquet.read_row_groups(groups, names, use_threads=threads)
    return conform(types.applied(rows), target, drop_extra=True)


def _each(rows_of: Callable[[FileSlice], pa.Table], slices: Sequence[FileSlice]) -> list[pa.Table]:
    if len(slices) < 2:
        return [rows_of(slice_) for slice_ in slices]
    with ThreadPoolExecutor(min(len(slices), (os.cpu_count() or 1) + 2), thread_name_prefix="hoodie") as pool:
        return list(pool.map(rows_of, slices))
