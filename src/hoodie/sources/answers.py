"""What `spark.read.format("hudi").load()` and `df.write.format("hudi").save()` do, once they are caught."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.api.datasource_read import read
from hoodie.api.write_client import write
from hoodie.config.datasource import ALL_GROUPS, check_options, overridden
from hoodie.config.driver_options import driver_options
from hoodie.config.hudi_options import Purpose, hudi_options
from hoodie.config.options import Options, declared, group_keys
from hoodie.config.read import IncrementalOptions, QueryOptions, QueryType, StreamOptions
from hoodie.config.write import WriteOperation
from hoodie.errors import CorruptFile, InvalidInput, InvalidOption
from hoodie.sources.stream_schema import stream_schema
from hoodie.spark.entries import absolute_uri
from hoodie.spark.names import registered_path
from hoodie.spark.table_views import of_table
from hoodie.spark.worker_errors import mark_worker_errors, raise_worker_errors
from hoodie.statements.rows import session_options
from hoodie.storage import storage_for
from hoodie.storage.faults import typed_errors

IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
BATCH = "hoodie.datasource.write.streaming.batch.id"


@dataclass(frozen=True, slots=True)
class StreamSink:
    """Writes micro-batches as `hoodie.hudi.write` does, the first of which may make the table. Pickles.

    options     as checked; with `IDENTIFIER`, if the job gave one
    checkpoint  its folder. By the query's id in there, and the batch's number, the table knows what it has
    """

    path: str
    options: Options
    checkpoint: str

    def __call__(self, batch: DataFrame, number: int) -> None:
        name = self.options.get(IDENTIFIER) or query_id(self.checkpoint)
        with mark_worker_errors(), raise_worker_errors():
            write(batch, self.path, {**self.options, IDENTIFIER: name, BATCH: str(number)})


def query_id(checkpoint: str) -> str:
    """The id of a query, as its checkpoint has it from its start on. Raises CorruptFile; FileNotFoundError"""
    text = storage_for(checkpoint).read("metadata")
    try:
        return str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError) as problem:
        raise CorruptFile(f"{checkpoint}/metadata", f"no query id: {problem!r}") from problem


_MODES = {"default": "errorifexists", "error": "errorifexists"}


def load(session: SparkSession, path: object, options: Mapping[str, Any]) -> DataFrame:
    """The rows that the options ask for, over the session's settings: see `hoodie.hudi.read`.

    Raises  InvalidOption on unknown options; TableNotFound; InvalidInput on none or several paths
    """
    where = _named_path(session, path, options)
    call_options = overridden(session_options(session, Purpose.READ), job_options(options))
    with raise_worker_errors():
        rows = read(where, call_options, spark=session)
    query = check_options(call_options, Purpose.READ).read(QueryOptions)
    return (
        of_table(rows, where, driver_options(call_options))
        if query.query is QueryType.SNAPSHOT and not query.as_of
        else rows
    )


def save(frame: DataFrame, path: object, mode: str, partition_by: Sequence[str], options: Mapping[str, Any]) -> None:
    """Write the rows as the options say: see `hoodie.hudi.write`.

    mode          append, overwrite, ignore, error, errorifexists or default, which is errorifexists, as in Spark
    partition_by  columns that make the partition path, if no option names them
    Raises        as `load` and `hoodie.hudi.write`; InvalidInput on an overwrite of a table that has savepoints
    """
    session = frame.sparkSession
    where = _one_path(session, path, options)
    call_options = job_options(partitioned(options, partition_by))
    mode = mode.lower()
    with raise_worker_errors():
        write(frame, where, call_options, mode=_MODES.get(mode, mode))


def load_stream(session: SparkSession, path: object, options: Mapping[str, Any]) -> tuple[dict[str, str], StructType]:
    """Look at the table of a stream before Spark does, whose errors have no class. The options that its workers take,
    which see no session, with the path as they can use it; and its columns.

    The session's settings say how a stream reads. What it reads they say to queries alone, as in Hudi.
    Raises  as `load`; InvalidInput on a table without columns
    """
    where = _one_path(session, path, options)
    of_queries = {key for group in (QueryOptions, StreamOptions, IncrementalOptions) for key in group_keys(group)}
    settings = {key: text for key, text in session_options(session, Purpose.READ).items() if key not in of_queries}
    checked_options = overridden(settings, check_options(job_options(options), Purpose.READ))
    query = checked_options.read(QueryOptions)
    checked_options.read(StreamOptions)
    if query.query is QueryType.READ_OPTIMIZED or query.begin or query.end or query.as_of:
        raise InvalidOption(
            "a stream gives the changes since it began: hoodie.datasource.streaming.startOffset says where that is. "
            "It takes no read_optimized, begin, end or as.of.instant"
        )
    with typed_errors():
        return {**checked_options, "path": absolute_uri(where)}, stream_schema(where, checked_options)


def stream_sink(
    session: SparkSession,
    path: object,
    options: Mapping[str, Any],
    partition_by: Sequence[str],
    mode: str,
    query_name: str | None,
) -> StreamSink:
    """What writes the micro-batches of a stream.

    mode    append and update do the operation that the options name; complete puts the rows in place of all others
    Raises  InvalidInput without a checkpoint location; InvalidOption
    """
    where = absolute_uri(_one_path(session, path, options))
    checkpoint = next((str(value) for key, value in options.items() if key.lower() == "checkpointlocation"), "")
    shared = session.conf.get("spark.sql.streaming.checkpointLocation", None)
    if not checkpoint and shared and query_name:
        checkpoint = f"{shared.rstrip('/')}/{query_name}"
    if not checkpoint:
        raise InvalidInput(
            "a stream into a table needs a checkpoint that stays: option('checkpointLocation', …); or a queryName and "
            "spark.sql.streaming.checkpointLocation. Each micro-batch is then written exactly once"
        )
    named = {key: value for key, value in options.items() if key.lower() != "checkpointlocation"}
    call_options = job_options(partitioned(named, partition_by))
    if mode.lower() == "complete":
        call_options["hoodie.datasource.write.operation"] = WriteOperation.INSERT_OVERWRITE_TABLE.value
    return StreamSink(where, check_options(call_options, Purpose.WRITE), absolute_uri(checkpoint))


def partitioned(options: Mapping[str, Any], by: Sequence[str]) -> dict[str, str]:
    """The options as text, with the columns of `partitionBy` where they name no others."""
    key = "hoodie.datasource.write.partitionpath.field"
    named = job_options(options)
    return dict(overridden({key: ",".join(by)}, named)) if by else named


def source_options(options: Mapping[str, str]) -> tuple[str, Options]:
    """Path and options of Spark's Python data source; their keys come in small letters.

    Raises InvalidInput without a path; InvalidOption
    """
    path = options.get("path")
    if not path:
        raise InvalidInput(
            "no path: CREATE TEMPORARY VIEW … USING hudi OPTIONS (path '/path/of/the/table'). For a table in Spark's "
            "catalog with provider hudi Spark hands over no path: hoodie.spark.sql and hoodie.open_table take its name"
        )
    return path, check_options(job_options(options))


def job_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The options of a Hudi job as text, without the path; names as they are declared, if only their case differs."""
    cased_options = {_cased().get(key.lower(), key): value for key, value in options.items()}
    cased_options = {key: value for key, value in cased_options.items() if key.lower() not in ("path", "paths")}
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in cased_options.items()
        if value is not None
    }


@cache
def _cased() -> dict[str, str]:
    """Names of options that have capitals, by their small letters: those are all that Spark's data sources get."""
    names = [*hudi_options(), *(key for group in ALL_GROUPS for _, spec in declared(group) for key in spec.keys)]
    return {name.lower(): name for name in names if name != name.lower()}


def _one_path(session: SparkSession, path: object, options: Mapping[str, Any]) -> str:
    """The path of a table; a pattern of all its files is that."""
    table_path = _named_path(session, path, options)
    return table_path.rstrip("*/") or table_path


def _named_path(session: SparkSession, path: object, options: Mapping[str, Any]) -> str:
    named = next((value for key, value in options.items() if key.lower() == "path"), None)
    if path is not None and named is not None:
        raise InvalidInput("the path is given twice: as option and as argument")
    table_path = path if path is not None else named
    if isinstance(table_path, (list, tuple)) and len(table_path) == 1:
        table_path = table_path[0]
    if not isinstance(table_path, str) or not table_path:
        raise InvalidInput(f"expected the path of one table, not {table_path!r}")
    return registered_path(session, table_path) or table_path.rstrip("/") or table_path
