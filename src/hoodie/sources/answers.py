"""What `spark.read.format("hudi").load()` and `df.write.format("hudi").save()` do, once they are caught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.api.datasource_read import read
from hoodie.api.write_client import write
from hoodie.config.datasource import overridden
from hoodie.errors import InvalidInput
from hoodie.spark.names import registered_path
from hoodie.spark.worker_errors import raise_worker_errors

_MODES = {"default": "errorifexists", "error": "errorifexists"}


def load(session: SparkSession, path: object, options: Mapping[str, Any]) -> DataFrame:
    """The rows that the options ask for: see `hoodie.read`.

    Raises  InvalidOption on unknown options; TableNotFound; InvalidInput on none or several paths
    """
    where = _one_path(session, path, options)
    given = job_options(options)
    with raise_worker_errors():
        return read(session, where, given)


def save(frame: DataFrame, path: object, mode: str, partition_by: Sequence[str], options: Mapping[str, Any]) -> None:
    """Write the rows as the options say: see `hoodie.write`.

    mode          append, overwrite, ignore, error, errorifexists or default, which is errorifexists, as in Spark
    partition_by  columns that make the partition path, if no option names them
    Raises        as `load` and `hoodie.write`; InvalidInput on an overwrite of a table that has savepoints
    """
    session = frame.sparkSession
    where = _one_path(session, path, options)
    given = job_options(options)
    if partition_by:
        named = {"hoodie.datasource.write.partitionpath.field": ",".join(partition_by)}
        given = dict(overridden(named, given))
    mode = mode.lower()
    with raise_worker_errors():
        write(frame, where, given, mode=_MODES.get(mode, mode))


def job_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The options of a Hudi job as text, without the path."""
    given = {key: value for key, value in options.items() if key.lower() not in ("path", "paths")}
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in given.items()
        if value is not None
    }


def _one_path(session: SparkSession, path: object, options: Mapping[str, Any]) -> str:
    named = next((value for key, value in options.items() if key.lower() == "path"), None)
    if path is not None and named is not None:
        raise InvalidInput("the path is given twice: as option and as argument")
    found = path if path is not None else named
    if isinstance(found, (list, tuple)) and len(found) == 1:
        found = found[0]
    if not isinstance(found, str) or not found:
        raise InvalidInput(f"expected the path of one table, not {found!r}")
    return registered_path(session, found) or found.removesuffix("/*").rstrip("*").rstrip("/") or found
