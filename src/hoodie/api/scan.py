"""A read that is planned and not run: which files hold a table's rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hoodie.reading.filters.selection import Filters
from hoodie.reading.scan import Scan, ScanKind
from hoodie.reading.scan_plan import plan_scan
from hoodie.reading.snapshot import open_storage
from hoodie.storage.faults import typed_errors
from hoodie.table.state import load_state


@typed_errors()
def scan(
    path: str | os.PathLike[str],
    *,
    partitions: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    as_of: str | None = None,
    kind: str = ScanKind.SNAPSHOT,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Scan:
    """What a read of a table would read, without Spark and without reading a row.

    Its `files` are the base files that are current: what a reader of Parquet may be given, which must never be told to
    read all Parquet files of the folder. They are refused where logs hold rows, too.

    kind    "snapshot", "as_of" or "read_optimized"
    partitions, columns, filters, as_of, storage_options, options  as of `read_arrow`
    Raises  as `read_arrow`
    """
    storage, ours = open_storage(path, options, storage_options)
    return plan_scan(
        load_state(storage),
        kind,
        columns=columns,
        partitions=partitions,
        filters=filters,
        as_of=as_of,
        options=ours,
    )
