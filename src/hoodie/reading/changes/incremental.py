"""What changed in a table between two instants, as Arrow, without Spark.

Source: docs/format/table-services.md 8 (incremental queries).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.reading.filters.selection import Filters
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import plan_scan
from hoodie.reading.snapshot import read_scan
from hoodie.table.state import TableState
from hoodie.timeline.points import Point


def changed_rows(
    state: TableState,
    begin: Point,
    end: Point | None = None,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    settings: ReadSettings = DEFAULT_READ,
) -> pa.Table:
    """The rows that changed in (begin, end], each once and as at its end. Arguments and errors as of `plan_scan`."""
    return read_scan(
        plan_scan(state, ScanKind.CHANGES, begin=begin, end=end, columns=columns, filters=filters, settings=settings)
    )
