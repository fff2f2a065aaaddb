"""Reading a table as a DataFrame: the driver decides on the files, Spark's own Parquet reader reads them.

Only file slices with logs go through Python, which merges them, and base files whose labels are wrong."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyarrow import types as arrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.config.table import TableConfig
from hoodie.keygen.keygen import NULL_PARTITION
from hoodie.model.files import FileSlice
from hoodie.reading.column_types import mislabelled
from hoodie.reading.complete_view import complete_view
from hoodie.reading.file_slice_reader import slice_reader
from hoodie.reading.snapshot import check_columns, table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.spark.read.base_files import read_parquet
from hoodie.spark.read.merged_slices import file_rows, merged_rows
from hoodie.spark.types import to_spark
from hoodie.table.state import TableState
from hoodie.view.missing import read_optimized_files, snapshot_files
from hoodie.view.slices import FileSystemView, latest_base_files, merged_slices

_PLAIN = re.compile(r"[A-Za-z0-9_.@ -]+")


def snapshot(
    session: SparkSession,
    state: TableState,
    as_of: str | None = None,
    partitions: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows at an instant (None: now), the five meta columns first.

    partitions  read these partition paths only
    columns     of the table, in the order wanted; None: all. Slices with logs are merged in Python, which Spark does
                not tell what a query needs: there only these columns are read
    options     `hoodie.*` options of reads
    Raises      InvalidInput on an unknown column, and as of an instant whose files were cleaned; UnsupportedTable when
                there is no rule to merge the table's rows; MissingFile when a file is gone that a commit published

    Slices without logs are read by Spark alone. Where logs were damaged, the tasks' log says so (`errors.DamagedLog`).
    """
    state, view = complete_view(state, partitions, snapshot_files(as_of), options, as_of)
    schema = read_schema(state, view, as_of)
    wanted = schema.names if columns is None else list(columns)
    check_columns(wanted, schema)
    slices = list(merged_slices(view, as_of).values())
    logged = [slice_ for slice_ in slices if slice_.logs]
    plain = [slice_ for slice_ in slices if not slice_.logs]
    frames = [base_rows(session, state, plain, schema, wanted)] if plain or not logged else []
    if logged:
        reader = slice_reader(state, schema, as_of, options)
        frames.append(merged_rows(session, reader, logged, wanted))
    return reduce(DataFrame.unionByName, frames)


def read_optimized(
    session: SparkSession,
    state: TableState,
    as_of: str | None = None,
    partitions: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of the newest base files at an instant, without the logs, by Spark alone. Arguments as of `snapshot`."""
    state, view = complete_view(state, partitions, read_optimized_files(as_of), options, as_of)
    schema = read_schema(state, view, as_of)
    wanted = schema.names if columns is None else list(columns)
    check_columns(wanted, schema)
    bases = latest_base_files(view, as_of)
    slices = [FileSlice(group, base.instant, base) for group, base in bases.items()]
    return base_rows(session, state, slices, schema, wanted)


def read_schema(state: TableState, view: FileSystemView, as_of: str | None = None) -> pa.Schema:
    """The columns that a read as of an instant (None: now) gives: meta columns first where the table has them."""
    schema = table_schema(state, view, as_of)
    return with_meta_fields(schema) if state.config.meta_fields else schema


def base_rows(
    session: SparkSession, state: TableState, slices: Sequence[FileSlice], schema: pa.Schema, columns: Sequence[str]
) -> DataFrame:
    """The rows of the slices' base files.

    schema   all columns of the table
    columns  those wanted, in order

    Spark's own reader goes by the labels in the files: those whose labels are wrong are read by Arrow tasks. What it
    costs to know them: see `mislabelled`.
    """
    based = {slice_.base: slice_ for slice_ in slices if slice_.base is not None}
    wrong = mislabelled(state, list(based), schema, columns)
    files = [file for file in based if file not in wrong]
    frames = []
    if files or not wrong:
        hive = hive_folders(state.config, schema, {file.group.partition for file in files})
        paths = [file.path for file in files]
        frame = read_parquet(session, state.storage, paths, to_spark(schema), hive_partitions=hive)
        frames.append(frame if not hive and list(columns) == schema.names else frame.select(*map(quoted, columns)))
    if wrong:
        rest = [replace(based[file], logs=()) for file in based if file in wrong]
        frames.append(file_rows(session, state.storage, schema, rest, columns))
    return reduce(DataFrame.unionByName, frames)


def quoted(name: str) -> Column:
    """A column of exactly that name."""
    return F.col("`" + name.replace("`", "``") + "`")


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
    if not all(name in schema.names and _says_itself(schema.field(name).type) for name in names):
        return False
    for partition in partitions:
        parts = [part.partition("=") for part in partition.split("/")]
        if [part[0] for part in parts] != list(names):
            return False
        if any(part[2] == NULL_PARTITION or not _PLAIN.fullmatch(part[2]) for part in parts):
            return False
    return True


def _says_itself(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (arrow.is_string, arrow.is_integer, arrow.is_boolean, arrow.is_date32))
