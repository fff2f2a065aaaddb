"""`spark.readStream` and `df.writeStream`: their last calls, answered here where the format is ours."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from hoodie.errors import InvalidInput, StatementError
from hoodie.sources import answers
from hoodie.sources.calls import SAID, Call, columns_to_partition_by, load_by, names_in, ours, recorded_calls, recorder
from hoodie.sources.sql_calls import named_or_none
from hoodie.sources.views import HoodieSource, register_source
from hoodie.spark.names import NamedTable
from hoodie.spark.worker_errors import raise_marked_errors


def _load(
    original: Callable[..., Any], reader: Any, session: Any, path: Any, options: dict[str, Any], schema: Any
) -> DataFrame:
    handed, columns = answers.load_stream(session, path, {**recorded_calls(reader)["options"], **options})
    register_source(session, HoodieSource.name())  # which is never a jar's
    frame: DataFrame = original(reader.options(**handed), None, HoodieSource.name(), schema or columns, **options)
    return frame


def _table(original: Call, self: Any, /, tableName: str) -> Any:
    session = self._spark if hasattr(self, "_spark") else self._client
    entry = _entry(session, tableName)
    return original(self, tableName) if entry is None else self.format("hudi").load(entry.path)


def _entry(session: Any, name: str) -> NamedTable | None:
    """The table of ours that a stream names; None: it is Spark's, or nobody's.

    Raises StatementError on an entry of the newest base files alone
    """
    named_entry = named_or_none(session, name)
    if named_entry is None:
        return None
    if named_entry[1].read_optimized:
        raise StatementError(
            f"{name} is an entry for queries of the newest base files alone: a stream takes the table's other name"
        )
    return named_entry[1]


def _partition_by(original: Call, self: Any, /, *cols: Any) -> Any:
    """Kept back until the format is known: where it is ours, `foreachBatch` is the sink, which refuses columns."""
    recorded_calls(self).update(by=names_in(*cols), partition=lambda: original(self, *cols))
    return self


def _pass_partitions_on(writer: Any, columns: Any) -> None:
    if columns is not None:
        writer.partitionBy(columns)
    recorded_calls(writer).pop("partition", lambda: None)()


def _foreach_batch(original: Call, self: Any, /, func: Any) -> Any:
    recorded_calls(self)["format"] = ""  # the sink is the caller's, whatever format was named before
    return original(self, func)


def _start(
    original: Call,
    self: Any,
    /,
    path: str | None = None,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    recorded = recorded_calls(self)
    if not ours(format or recorded["format"]):
        _pass_partitions_on(self, partitionBy)
        return original(self, path, format, outputMode, None, queryName, **options)
    session = self._spark if hasattr(self, "_spark") else self._session
    sink = answers.stream_sink(
        session,
        path,
        {**recorded["options"], **options},
        columns_to_partition_by(partitionBy, recorded),
        outputMode or recorded["mode"],
        queryName or recorded.get("name"),
    )
    # `foreachBatch` takes the format's place
    return original(self.foreachBatch(sink), None, None, outputMode, None, queryName, **options)


def _to_table(
    original: Call,
    self: Any,
    /,
    tableName: str,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    recorded = recorded_calls(self)
    named = format or recorded["format"]
    session = self._spark if hasattr(self, "_spark") else self._session
    table = _entry(session, tableName) if ours(named) or not named else None
    if table is not None:
        options = {key: value for key, value in table.options.items() if key not in recorded["options"]} | options
        return self.start(table.path, "hudi", outputMode, partitionBy, queryName, **options)
    if ours(named):
        raise InvalidInput(
            f"toTable({tableName!r}): no table has that name, and the stream would make an entry of Spark's "
            "catalog that hands its path to nobody. CREATE TABLE makes a table with a name, "
            "hoodie.spark.register_table gives one; or take start(path)"
        )
    _pass_partitions_on(self, partitionBy)
    return original(self, tableName, format, outputMode, None, queryName, **options)


def _raising(original: Call, self: Any, /, *arguments: Any, **named: Any) -> Any:
    with raise_marked_errors():
        return original(self, *arguments, **named)


STREAM_READER: dict[str, Call] = {**SAID, "schema": recorder("schema"), "load": load_by(_load), "table": _table}
STREAM_WRITER: dict[str, Call] = {
    **SAID,
    "partitionBy": _partition_by,
    "outputMode": recorder("mode"),
    "queryName": recorder("name"),
    "foreachBatch": _foreach_batch,
    "start": _start,
    "toTable": _to_table,
}
QUERY: dict[str, Call] = {"awaitTermination": _raising, "processAllAvailable": _raising}
