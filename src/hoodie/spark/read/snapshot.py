"""Reading a table as a DataFrame: the driver decides on the files, Spark's own Parquet reader reads base files.

Only logs go through Python, base files whose labels are wrong, and those of storages that Spark does not reach."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from pyarrow import types as arrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.config.table import TableConfig
from hoodie.errors import InvalidInput
from hoodie.expressions.text import tick
from hoodie.keygen.keygen import NULL_PARTITION
from hoodie.model.files import BaseFile, FileSlice
from hoodie.reading.scan import ScanKind, ScanPlan
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.slices.reader import SliceReader
from hoodie.spark.read.arrow_files import file_rows
from hoodie.spark.read.base_files import read_parquet, tested_columns
from hoodie.spark.read.kept_changes import kept_changes
from hoodie.spark.read.local_logs import SliceLogs, changes_of_logs
from hoodie.spark.read.merged_slices import Keep, merged_frame
from hoodie.spark.read.positioned_slices import (
    NONE_GONE,
    OWN_COLUMNS,
    changes_of,
    readable,
    rows_among,
    rows_gone,
    rows_that_stay,
    rows_with_logs,
)
from hoodie.spark.read.route import route_to
from hoodie.spark.types import to_spark
from hoodie.table.state import TableState
from hoodie.timeline.points import Point
from hoodie.view.published import newest_published

_PLAIN = re.compile(r"[A-Za-z0-9_.@ -]+")


def snapshot(
    session: SparkSession,
    state: TableState,
    as_of: Point | None = None,
    partitions: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
    settings: ReadSettings = DEFAULT_READ,
) -> DataFrame:
    """The rows at an instant (None: now), the five meta columns first.

    partitions  read these partition paths only
    columns     of the table, in the order wanted; None: all. Slices with logs are merged in Python, which Spark does
                not tell what a query needs: there only these columns are read
    settings    `hoodie.*` options of reads
    Raises      InvalidInput on an unknown column, and as of an instant whose files were cleaned; UnsupportedTable when
                there is no rule to merge the table's rows; MissingFile when a file is gone that a commit published

    Slices without logs are read by Spark alone, where it reaches the storage. Where logs were damaged, the tasks' log
    says so (`errors.DamagedLog`).
    """
    scan = plan_read(state, Read(columns=columns, partitions=partitions, as_of=as_of), settings, for_spark=True)
    return scan_rows(session, scan)


def scan_rows(session: SparkSession, scan: ScanPlan) -> DataFrame:
    """The rows of a scan at one moment, merged and read when an action asks for them.

    scan    planned for Spark
    Raises  InvalidInput on one with filters: Spark has its own
    """
    return reduce(DataFrame.unionByName, scan_frames(session, scan, scan.columns))


def scan_frames(
    session: SparkSession, scan: ScanPlan, columns: Sequence[str], where: Column | None = None, keep: Keep | None = None
) -> list[DataFrame]:
    """The rows of a scan: of slices without logs, and of those with.

    columns  of the table, in the order wanted
    where    which rows count; None: all
    keep     the same, of rows that are merged in Python, as `merged_frame` takes it
    """
    if scan.filter is not None:
        raise InvalidInput("this scan has filters, which only reads without Spark take: use DataFrame.where instead")
    frames, merged, plain = list[DataFrame](), list[DataFrame](), scan.base_slices
    root = route_to(session, scan.state.storage, scan.settings.route.route).root
    if scan.reader is not None:
        by_position = [] if root is None else slices_by_position(scan, columns)
        if by_position and root is not None:
            rows, plain = _rows_by_position(session, scan, scan.reader, root, by_position, columns)
            frames += rows
        if rest := [slice_ for slice_ in scan.log_slices if slice_ not in set(by_position)]:
            merged.append(merged_frame(session, scan.reader, rest, columns, keep))
    if plain or not scan.log_slices:
        frames.insert(0, base_rows(session, scan, plain, root, columns))
    return [*(frames if where is None else [rows.where(where) for rows in frames]), *merged]


def slices_by_position(scan: ScanPlan, columns: Sequence[str]) -> list[FileSlice]:
    """The slices with logs whose base files Spark itself reads: all, unless its reader would give other values."""
    if not scan.settings.positions.by_position or not readable(scan.schema, scan.log_slices, columns):
        return []
    return [slice_ for slice_ in scan.log_slices if slice_.base is None or slice_.base not in scan.mislabelled]


def _rows_by_position(
    session: SparkSession,
    scan: ScanPlan,
    reader: SliceReader,
    root: str,
    slices: Sequence[FileSlice],
    columns: Sequence[str],
) -> tuple[list[DataFrame], tuple[FileSlice, ...]]:
    """The rows of base files that logs do not replace, and the rows of the logs; and the slices without logs whose rows
    are not among them."""
    names = list(columns) or scan.schema.names[:1]
    limit = 0 if scan.kind is ScanKind.CHANGES else scan.settings.positions.cache_limit
    commits = partial(newest_published, scan.state.storage, scan.state.timeline)
    logs = changes_of_logs(session, scan, reader, slices, names, limit, commits)
    if logs is not None:
        beside = scan.base_slices if _read_beside(scan, slices, columns) else ()
        frames = list(_rows_of_logs_here(session, scan, root, logs, beside, names, columns))
        return frames, () if beside else scan.base_slices
    cached_changes = kept_changes(session, reader, slices, names, limit, commits)
    changes = changes_of(session, reader, slices, names) if cached_changes is None else cached_changes
    frames = [rows_among(changes, columns)]
    if files := [slice_.base for slice_ in slices if slice_.base is not None]:
        replaced_rows = rows_gone(session, reader, slices) if cached_changes is None else cached_changes
        frames.append(rows_that_stay(_base_frame(session, scan, root, files), files, replaced_rows, columns))
    return frames, scan.base_slices


def _read_beside(scan: ScanPlan, slices: Sequence[FileSlice], columns: Sequence[str]) -> bool:
    """Whether the slices without logs are read by the scan of those with, whose test each row then takes: a scan of
    their own costs more where they are fewer."""
    files = [slice_.base for slice_ in scan.base_slices if slice_.base is not None]
    with_logs = [slice_.base for slice_ in slices if slice_.base is not None]
    return (
        sum(file.size for file in files) <= sum(file.size for file in with_logs)
        and scan.mislabelled.isdisjoint(files)
        and readable(scan.schema, [*slices, *scan.base_slices], columns)
    )


def _rows_of_logs_here(
    session: SparkSession,
    scan: ScanPlan,
    root: str,
    logs: Sequence[SliceLogs],
    plain: Sequence[FileSlice],
    names: Sequence[str],
    columns: Sequence[str],
) -> Iterator[DataFrame]:
    """The same, of logs that the driver has read, and of slices without logs: one scan, unless base files are read by
    their folders."""
    target = pa.schema([scan.schema.field(name) for name in names])
    schema = to_spark(target)
    sizes = {str(part.rows): part.size for part in logs if part.rows is not None}
    files = [f"file://{path}" for path in sizes]
    changed = [*(item for part in logs for item in part.slices.items()), *((slice_, NONE_GONE) for slice_ in plain)]
    replaced = {slice_.base: positions for slice_, positions in changed if slice_.base is not None}
    hive = hive_folders(scan.state.config, scan.schema, {file.group.partition for file in replaced})
    if hive or not replaced:
        rows = read_parquet(session, root, (), schema, others=files)
        yield rows if names == list(columns) else rows.selectExpr(*map(tick, columns))
        files, sizes = [], {}
    if replaced:
        paths = [file.path for file in replaced]
        schema = to_spark(scan.schema) if hive else schema
        frame = read_parquet(session, root, paths, schema, hive_partitions=hive, others=files, floats_tested=False)
        rows = rows_with_logs(session, frame, replaced, {Path(path).name: size for path, size in sizes.items()})
        requested_schema = to_spark(target) if columns else StructType()
        yield tested_columns(rows, requested_schema, OWN_COLUMNS, in_order=not hive and bool(columns))


def _base_frame(session: SparkSession, scan: ScanPlan, root: str, files: Sequence[BaseFile]) -> DataFrame:
    hive = hive_folders(scan.state.config, scan.schema, {file.group.partition for file in files})
    paths = [file.path for file in files]
    return read_parquet(session, root, paths, to_spark(scan.schema), hive_partitions=hive)


def base_rows(
    session: SparkSession, scan: ScanPlan, slices: Sequence[FileSlice], root: str | None, columns: Sequence[str]
) -> DataFrame:
    """The rows of slices that have no logs.

    root  of the table, as Spark reaches it; None: it does not, and Arrow tasks read all

    Spark's own reader goes by the labels in the files: those whose labels are wrong are read by Arrow tasks, too.
    """
    files = [slice_.base for slice_ in slices if slice_.base is not None]
    by_spark = [file for file in files if root is not None and file not in scan.mislabelled]
    by_arrow = [file for file in files if root is None or file in scan.mislabelled]
    frames = []
    if root is not None and (by_spark or not by_arrow):
        frames.append(_columns_of_base_files(session, scan, root, by_spark, columns))
    if by_arrow or not frames:
        frames.append(file_rows(session, scan.state.storage, scan.schema, by_arrow, columns, scan.tests))
    return reduce(DataFrame.unionByName, frames)


def _columns_of_base_files(
    session: SparkSession, scan: ScanPlan, root: str, files: Sequence[BaseFile], columns: Sequence[str]
) -> DataFrame:
    """These columns in their order; Spark puts those that it takes from folders last."""
    hive = hive_folders(scan.state.config, scan.schema, {file.group.partition for file in files})
    read = scan.schema if hive or not columns else pa.schema([scan.schema.field(name) for name in columns])
    paths = [file.path for file in files]
    frame = read_parquet(session, root, paths, to_spark(read), hive_partitions=hive)
    return frame.selectExpr(*map(tick, columns)) if hive or not columns else frame


def hive_folders(config: TableConfig, schema: pa.Schema, partitions: Collection[str]) -> bool:
    """Whether Spark may take partition columns from the folders: they say in full what the columns hold.

    Not with time-based paths, nulls, characters that an escape could stand for, or types whose text in a path is not
    what Spark makes the value of (a timestamp is microseconds there): there the files' own columns count.
    """
    if not config.hive_style or not config.partition_by or "Timestamp" in config.key_generator:
        return False
    names = config.partition_by
    if "Custom" in config.key_generator or any("." in name for name in names):
        return False
    if not all(name in schema.names and says_itself(schema.field(name).type) for name in names):
        return False
    for partition in partitions:
        parts = [part.partition("=") for part in partition.split("/")]
        if [part[0] for part in parts] != list(names):
            return False
        if any(part[2] == NULL_PARTITION or not _PLAIN.fullmatch(part[2]) for part in parts):
            return False
    return True


def says_itself(kind: pa.DataType) -> bool:
    """Whether the text of a value in a path is what Spark makes the value of."""
    return any(test(kind) for test in (arrow.is_string, arrow.is_integer, arrow.is_boolean, arrow.is_date32))
