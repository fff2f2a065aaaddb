"""A planned read made narrower: fewer columns, and more that is known of the rows that its reader drops itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hoodie.model.meta import COMMIT_TIME
from hoodie.reading.filters.predicate import ANY, Tests
from hoodie.reading.filters.selection import filter_columns
from hoodie.reading.scan import ScanPlan


def narrowed(scan: ScanPlan, columns: Sequence[str], tests: Tests = ANY) -> ScanPlan:
    """The scan with these of its columns, in this order.

    tests  of the rows that the reader keeps: partitions, file slices and row groups that cannot pass are left out.
           Not of changes
    """
    times = () if scan.times is None else (COMMIT_TIME,)
    read = tuple(dict.fromkeys([*filter_columns(scan.filter, scan.schema, columns), *times]))
    scan = replace(scan, columns=tuple(columns), read=read)
    return scan if tests == ANY or scan.times is not None else scan.with_tests(tests)
