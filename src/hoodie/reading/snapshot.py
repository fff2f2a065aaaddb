"""Reading a table as Arrow, without Spark: the rows of a scan.

Source: docs/format/table-services.md 8 (queries).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.display.progress import counted
from hoodie.errors import UnsupportedTable
from hoodie.formats.parquet.columns import damage_of, open_parquet
from hoodie.model.files import BaseFile, FileSlice
from hoodie.reading.filters.predicate import ANY, Tests
from hoodie.reading.filters.row_groups import row_groups
from hoodie.reading.filters.selection import Filters, check_columns, kept_rows
from hoodie.reading.scan import ScanPlan
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.slices.column_types import base_columns
from hoodie.reading.slices.reader import SliceReader, merged_batches, slice_threads
from hoodie.schema.conform import conform
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.state import TableState
from hoodie.timeline.points import Point

#: Rows as `columns`, of a slice that has logs. The schema is that of the whole table, meta columns included.
MergeSlice: TypeAlias = Callable[[FileSlice, pa.Schema, Sequence[str]], pa.Table]


def read_table(
    state: TableState,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    as_of: Point | None = None,
    settings: ReadSettings = DEFAULT_READ,
) -> pa.Table:
    """The rows of a table at hand. Arguments as of `Read`, errors as of `plan_read`"""
    return read_scan(plan_read(state, Read(columns=columns, filters=filters, as_of=as_of), settings))


def read_scan(scan: ScanPlan) -> pa.Table:
    """The rows that a scan is of, in the order of its slices; threads read large ones.

    Raises  CorruptFile; FileNotFoundError when a file was cleaned away meanwhile; SchemaMismatch when a file's column
            cannot be brought into the table's schema
    """
    merge = None if scan.reader is None else partial(merged_rows, scan.reader)
    return _rows_of(
        scan.state.storage, scan.slices, scan.schema, scan.columns, scan.read, scan.matching_rows, merge, scan.tests
    )


def read_slices_arrow(
    storage: Storage,
    slices: Iterable[FileSlice],
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    merge: MergeSlice | None = None,
) -> pa.Table:
    """The rows of file slices at hand, in the table's schema and in the order of the slices; threads read large ones.

    schema   all columns there are, meta columns included where the table has them
    columns  names of those wanted, in order; None: all
    merge    reads a slice with logs; None: there are none
    returns  columns that a file lacks hold their default or null, narrower types are widened
    Raises   as `read_scan`; InvalidInput on an unknown column; UnsupportedTable on logs
    """
    names = schema.names if columns is None else list(columns)
    check_columns(names, schema)
    return _rows_of(
        storage,
        list(slices),
        schema,
        names,
        list(dict.fromkeys(names)),
        partial(kept_rows, expression=None),
        merge,
    )


def _rows_of(
    storage: Storage,
    slices: Sequence[FileSlice],
    schema: pa.Schema,
    columns: Sequence[str],
    read: Sequence[str],
    keep: Callable[[pa.Table], pa.Table],
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
        return keep(rows).replace_schema_metadata().select(list(columns))

    parts = in_threads(counted(rows_of, len(slices), "file slice"), slices, slice_threads(storage, slices))
    if not columns:  # pyarrow forgets the number of rows of a table without columns
        return pa.table({"_": pa.nulls(sum(map(len, parts)))}).select([])
    return pa.concat_tables(parts) if parts else pa.schema([schema.field(name) for name in columns]).empty_table()


def merged_rows(reader: SliceReader, slice_: FileSlice, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """The rows of a slice with logs: a `MergeSlice`, given the reader."""
    projected = pa.schema([schema.field(name) for name in columns])
    return pa.concat_tables([projected.empty_table(), *merged_batches(reader, slice_, columns)])


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
    with storage.open_input(file.path, file.size) as source:
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
