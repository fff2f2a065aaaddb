"""One call for those who bring the options of Hudi's data source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from hoodie.api.arrow.rows import Rows
from hoodie.api.inputs import Path, as_path, as_session, path_first
from hoodie.api.local_engine import engine_of
from hoodie.api.read_paths import table_at
from hoodie.config.datasource import door_options
from hoodie.config.driver_options import without_driver_options
from hoodie.config.hudi_options import Purpose
from hoodie.config.read import IncrementalFormat, QueryOptions, QueryType, ReadSettings
from hoodie.errors import InvalidOption
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import Read
from hoodie.storage.faults import typed_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@overload
def read(
    path: Path,
    options: Mapping[str, Any] | None = None,
    *,
    spark: None = None,
    props: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Rows: ...
@overload
def read(
    path: Path,
    options: Mapping[str, Any] | None = None,
    *,
    spark: SparkSession,
    props: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame: ...
@typed_errors()
@path_first
def read(
    path: Path,
    options: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    props: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Read a table as Hudi's Spark data source would: what is read, the options say.

    path             of the table; that of a partition, or a pattern such as `path/day=2024-01-*` or `path/*/*`, gives
                     the rows of these partitions
    options          `hoodie.datasource.query.type`: snapshot, read_optimized or incremental; for the last
                     `hoodie.datasource.read.begin.instanttime` and `.end.instanttime`, and
                     `hoodie.datasource.query.incremental.format`, which may be cdc; else `as.of.instant`
    spark            the session, which gives a DataFrame; None: `Rows`, without Spark
    props            path of a properties file with options, which those of the call override
    path, storage_options  as of `create_table`
    Raises           InvalidOption; as `HoodieTable.snapshot` and `HoodieTable.changes`
    """
    path, session = as_path(path), as_session(spark)
    checked = door_options(options, Purpose.READ, path, props)
    query = checked.read(QueryOptions)
    table = table_at(path, query.base_path, checked, storage_options)
    read_request = read_of(query)
    if (partitions := table.partitions()) is not None:
        if read_request.kind is ScanKind.CHANGES:
            raise InvalidOption(
                f"changes are read of the table, not of {table.below!r}: give its path, and the pattern "
                "hoodie.datasource.read.incr.path.glob"
            )
        read_request = replace(read_request, partitions=partitions)
    return engine_of(session).read(table.state, read_request, ReadSettings.read(without_driver_options(checked)))


def read_of(query: QueryOptions) -> Read:
    """The read that the options of Hudi's data source ask for. Raises InvalidOption"""
    cdc = query.format is IncrementalFormat.CDC
    if cdc and query.query is not QueryType.INCREMENTAL:
        raise InvalidOption(
            "hoodie.datasource.query.incremental.format=cdc is for incremental queries: set "
            "hoodie.datasource.query.type=incremental"
        )
    if query.query is QueryType.INCREMENTAL:
        if not query.begin:
            raise InvalidOption(
                "an incremental query needs hoodie.datasource.read.begin.instanttime: an instant, which is not "
                "included, or earliest"
            )
        return Read(kind=ScanKind.CHANGES, begin=query.begin, end=query.end or None, cdc=cdc)
    optimized = query.query is QueryType.READ_OPTIMIZED
    return Read(kind=ScanKind.READ_OPTIMIZED if optimized else ScanKind.SNAPSHOT, as_of=query.as_of or None)
