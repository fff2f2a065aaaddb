"""The rows of a scan as a stream: a batch of them at a time is in memory, and a slice's logs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie.formats.parquet.base_footer import read_footer
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.meta import COMMIT_TIME, RECORD_KEY
from hoodie.reading.filters.predicate import ANY, Tests
from hoodie.reading.filters.selection import filter_columns
from hoodie.reading.scan import ScanPlan
from hoodie.reading.slices.reader import base_batches, merged_batches, slice_threads
from hoodie.reading.slices.slice_changes import SliceChanges
from hoodie.storage.protocol import Storage, in_threads


def scan_batches(scan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """The rows that a scan is of, in the order of its slices.

    Files are opened one after the other. Raises as `read_scan`
    """
    target = pa.schema([scan.schema.field(name) for name in scan.columns])
    for slice_ in scan.slices:
        for rows in slice_batches(scan, slice_):
            selected = scan.matching_rows(rows).select(list(scan.columns))
            if selected.num_rows and not scan.columns:
                yield pa.RecordBatch.from_struct_array(pa.array([{}] * selected.num_rows, pa.struct([])))
            else:
                yield from selected.cast(target).to_batches()


def slice_batches(scan: ScanPlan, slice_: FileSlice) -> Iterator[pa.Table]:
    """The rows of one slice in the columns that a scan reads, those that its filter keeps and perhaps others."""
    read = list(scan.read) or scan.schema.names[:1]  # rows are counted by a column that they have
    if slice_.logs:
        assert scan.reader is not None  # a scan with logs has one
        return merged_batches(scan.reader, slice_, read)
    assert slice_.base is not None  # a slice without logs has a base file
    target = pa.schema([scan.schema.field(name) for name in read])
    return base_batches(scan.state.storage, slice_.base, target, scan.tests)


def count_rows(scan: ScanPlan) -> int:
    """How many rows a scan is of: by the footers of files, where no log or filter can change the number.

    Threads look at the slices; each holds a batch of one at a time, and its logs.
    """
    if not scan.slices:
        return 0
    needed = with_columns(scan, ())  # but for what the filter asks for no column counts
    counted = [RECORD_KEY] if RECORD_KEY in scan.schema.names else scan.schema.names[:1]  # logs are merged by keys

    def count(slice_: FileSlice) -> int:
        if not scan.keeps_all:
            return sum(needed.matching_rows(rows).num_rows for rows in slice_batches(needed, slice_))
        stored = 0 if slice_.base is None else _rows_of(scan.state.storage, slice_.base)
        if not slice_.logs:
            return stored
        assert scan.reader is not None  # a scan with logs has one
        changes = SliceChanges(scan.reader, slice_, counted)
        rows = sum(part.num_rows for part in changes.rows())
        return int(stored + rows - len(changes.replaced))

    return sum(in_threads(count, scan.slices, slice_threads(scan.state.storage, scan.slices)))


def _rows_of(storage: Storage, base: BaseFile) -> int:
    with storage.open_input(base.path, base.size) as source:
        return read_footer(source, base.path).rows


def with_columns(scan: ScanPlan, columns: Sequence[str], tests: Tests = ANY) -> ScanPlan:
    """The scan with these of its columns, in this order.

    tests  of the rows that the reader keeps: partitions, file slices and row groups that cannot pass are left out.
           Not of changes
    """
    times = () if scan.times is None else (COMMIT_TIME,)
    read = tuple(dict.fromkeys([*filter_columns(scan.filter, scan.schema, columns), *times]))
    scan = replace(scan, columns=tuple(columns), read=read)
    return scan if tests == ANY or scan.times is not None else scan.with_tests(tests)
