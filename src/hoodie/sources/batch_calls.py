"""`spark.read` and `df.write`: their last calls, answered here where the format is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from hoodie.errors import InvalidInput
from hoodie.sources import answers
from hoodie.sources.calls import (
    ours,
    partition_columns,
    said_to,
    wrap_format,
    wrap_option,
    wrap_options,
    wrap_partition_by,
    wrap_schema,
)


def _mode(original: Callable[..., Any]) -> Callable[..., Any]:
    def mode(self: Any, saveMode: str | None) -> Any:
        if saveMode:
            said_to(self)["mode"] = saveMode
        return original(self, saveMode)

    return mode


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    def load(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        said = said_to(self)
        if not ours(format or said["format"]):
            return original(self, path, format, schema, **options)  # type: ignore[no-any-return]
        session = self._spark if hasattr(self, "_spark") else self._client
        frame = answers.load(session, path, {**said["options"], **options})
        if schema is None and said.get("schema") is None:
            return frame
        wanted = schema if schema is not None else said["schema"]
        names = wanted.names if hasattr(wanted, "names") else [field.strip().split()[0] for field in wanted.split(",")]
        return frame.select(*names)

    return load


def _save(original: Callable[..., Any]) -> Callable[..., Any]:
    def save(
        self: Any,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        said = said_to(self)
        if not ours(format or said["format"]):
            return original(self, path, format, mode, partitionBy, **options)  # type: ignore[no-any-return]
        by = partition_columns(partitionBy, said)
        answers.save(_frame(self), path, mode or said["mode"], by, {**said["options"], **options})
        return None

    return save


def _save_as_table(original: Callable[..., Any]) -> Callable[..., Any]:
    def saveAsTable(self: Any, name: str, format: str | None = None, *arguments: Any, **options: Any) -> None:
        if ours(format or said_to(self)["format"]):
            raise InvalidInput(
                f"saveAsTable({name!r}) would make an entry of Spark's catalog that hands its path to nobody: "
                "save(path), then hoodie.register_table(spark, name, path); or CREATE TABLE … by hoodie.sql"
            )
        return original(self, name, format, *arguments, **options)  # type: ignore[no-any-return]

    return saveAsTable


def _frame(writer: Any) -> DataFrame:
    if isinstance(writer._df, DataFrame):
        return writer._df
    from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

    return ConnectDataFrame(writer._df, writer._spark)


READER = {
    "format": wrap_format,
    "option": wrap_option,
    "options": wrap_options,
    "schema": wrap_schema,
    "load": _load,
}
WRITER = {
    "format": wrap_format,
    "option": wrap_option,
    "options": wrap_options,
    "mode": _mode,
    "partitionBy": wrap_partition_by,
    "save": _save,
    "saveAsTable": _save_as_table,
}
