"""Reading a table as a DataFrame: the driver decides on the files, Spark's own Parquet reader reads them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.config.keygen import NULL_PARTITION
from hoodie.config.table import TableConfig
from hoodie.errors import UnsupportedTable
from hoodie.model.files import FileSlice
from hoodie.model.schema import with_meta_fields
from hoodie.spark.files import read_parquet
from hoodie.spark.types import to_spark
from hoodie.table.read import table_schema
from hoodie.table.state import TableState
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices

_PLAIN = re.compile(r"[A-Za-z0-9_.@ -]+")


def snapshot(
    session: SparkSession, state: TableState, as_of: str | None = None, partitions: Collection[str] | None = None
) -> DataFrame:
    """The rows at an instant (None: now), the five meta columns first.

    partitions  read these partition paths only
    """
    view = load_view(state.storage, state.timeline, state.config, partitions)
    slices = list(merged_slices(view, as_of).values())
    if any(slice_.logs for slice_ in slices):
        raise UnsupportedTable(f"{state.config.name}: file slices with log files cannot be read by this version.")
    schema = table_schema(state, view, as_of)
    return base_rows(session, state, slices, with_meta_fields(schema) if state.config.meta_fields else schema)


def base_rows(session: SparkSession, state: TableState, slices: Sequence[FileSlice], schema: pa.Schema) -> DataFrame:
    """The rows of the slices' base files."""
    files = [slice_.base for slice_ in slices if slice_.base is not None]
    hive = hive_folders(state.config, {file.group.partition for file in files})
    frame = read_parquet(session, state.storage, [file.path for file in files], to_spark(schema), hive_partitions=hive)
    return frame.select(*[F.col("`" + name.replace("`", "``") + "`") for name in schema.names]) if hive else frame


def hive_folders(config: TableConfig, partitions: Collection[str]) -> bool:
    """Whether Spark may take partition columns from the folders: they say in full what the columns hold.

    Not with time-based paths, nulls, or characters that an escape could stand for: there the files' own columns count.
    """
    if not config.hive_style or not config.partition_by or "Timestamp" in config.key_generator:
        return False
    names = config.partition_by
    if "Custom" in config.key_generator or any("." in name for name in names):
        return False
    for partition in partitions:
        parts = [part.partition("=") for part in partition.split("/")]
        if [part[0] for part in parts] != list(names):
            return False
        if any(part[2] == NULL_PARTITION or not _PLAIN.fullmatch(part[2]) for part in parts):
            return False
    return True
