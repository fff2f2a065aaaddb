"""The columns of a stream of a table's changes, and what its options say: known also where PySpark reads no stream."""

from dataclasses import replace

from pyspark.sql.types import StructType

from hoodie.config.options import Options
from hoodie.config.read import HolePolicy, IncrementalFormat, QueryOptions, ReadSettings, StreamOptions
from hoodie.errors import InvalidInput
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.reading.changes.offsets import POLICY
from hoodie.reading.table_schema import read_schema
from hoodie.spark.types import all_nullable, to_spark
from hoodie.storage import storage_at
from hoodie.table.state import load_state


def stream_schema(path: str, options: Options) -> StructType:
    """The columns of a stream of a table. Raises InvalidInput when it has none yet; UnsupportedTable as `changes`"""
    state = load_state(storage_at(path, options))
    schema = read_schema(state)
    if set(schema.names) <= set(META_COLUMNS):
        raise InvalidInput(
            f"{state.config.name} at {path} has no columns yet: its first commit says which. Write to it first"
        )
    if of_change_data(options):
        newest = state.timeline.newest_commit
        schema = plan_change_data(state, newest, newest, stream_settings(options)).reader.schema
    return all_nullable(to_spark(schema))


def stream_settings(options: Options) -> ReadSettings:
    """Those of a stream: it waits for pending commits, unless an option says something else."""
    read, stream = ReadSettings.read(options), options.read(StreamOptions)
    holes = read.incremental.holes if POLICY in options else HolePolicy.BLOCK
    incremental = replace(read.incremental, holes=holes, version=stream.version or read.incremental.version)
    return replace(read, incremental=incremental)


def of_change_data(options: Options) -> bool:
    return options.read(QueryOptions).format is IncrementalFormat.CDC
