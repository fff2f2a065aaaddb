"""What changed in a table between two instants, as Arrow, without Spark.

Source: docs/format/table-services.md 8 (incremental queries).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie.config.options import Options
from hoodie.reading.changes.data import change_data_batches, select_changes
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.reading.filters.selection import Filters
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import plan_scan
from hoodie.reading.snapshot import open_storage, read_scan
from hoodie.storage.faults import typed_errors
from hoodie.table.state import TableState, load_state
from hoodie.timeline.points import Point


@typed_errors()
def read_changes_arrow(
    path: str | os.PathLike[str],
    begin: Point,
    end: Point | None = None,
    *,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    cdc: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """The rows of a table that changed in (begin, end], each once and as it was at the end, without Spark.

    begin, end  an instant or a point in time as of `read_arrow`, or "earliest"; end None: now
    columns, filters, storage_options, options
                as of `read_arrow`; among the options those of incremental queries and of change data
    cdc         each change of each row instead, with the row before and after: as of `HoodieTable.changes`
    Raises      as `plan_scan` and `read_arrow`; with `cdc` as `plan_change_data`
    Deleted rows are not among them, but with `cdc`.
    """
    storage, ours = open_storage(path, options, storage_options)
    if not cdc:
        return changed_rows(load_state(storage), begin, end, columns, filters, ours)
    plan = plan_change_data(load_state(storage), begin, end, ours)
    selected = select_changes(plan.reader.schema, columns, filters)
    return pa.Table.from_batches(list(selected.of(change_data_batches(plan))), selected.schema)


def changed_rows(
    state: TableState,
    begin: Point,
    end: Point | None = None,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    options: Options | None = None,
) -> pa.Table:
    """The changed rows of a table at hand: see `read_changes_arrow`."""
    return read_scan(
        plan_scan(state, ScanKind.CHANGES, begin=begin, end=end, columns=columns, filters=filters, options=options)
    )
