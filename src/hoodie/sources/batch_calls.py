"""`spark.read` and `df.write`: their last calls, answered here where the format is ours."""

from collections.abc import Callable
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from hoodie.errors import InvalidInput
from hoodie.sources import answers
from hoodie.sources.calls import (
    SAID,
    Call,
    columns_to_partition_by,
    frame_of,
    load_by,
    names_in,
    ours,
    recorded_calls,
    recorder,
)
from hoodie.spark.columns import quoted


def _mode(original: Call, self: Any, /, saveMode: str | None) -> Any:
    if saveMode:
        recorded_calls(self)["mode"] = saveMode
    return original(self, saveMode)


def _load(
    original: Callable[..., Any], reader: Any, session: Any, path: Any, options: dict[str, Any], schema: Any
) -> DataFrame:
    frame = answers.load(session, path, {**recorded_calls(reader)["options"], **options})
    if schema is None:
        return frame
    requested_schema = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    names = [field.name for field in cast("StructType", requested_schema)]
    table_columns = {name.lower() for name in frame.columns}
    if missing := [name for name in names if name.lower() not in table_columns]:
        raise InvalidInput(f"the table has no columns {', '.join(missing)}, which the schema of the read names")
    return frame.select(*map(quoted, names))


def _save(
    original: Call,
    self: Any,
    /,
    path: str | None = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    recorded = recorded_calls(self)
    if not ours(format or recorded["format"]):
        return original(self, path, format, mode, partitionBy, **options)  # type: ignore[no-any-return]
    by = columns_to_partition_by(partitionBy, recorded)
    answers.save(frame_of(self), path, mode or recorded["mode"], by, {**recorded["options"], **options})
    return None


READER: dict[str, Call] = {**SAID, "schema": recorder("schema"), "load": load_by(_load)}
WRITER: dict[str, Call] = {**SAID, "mode": _mode, "partitionBy": recorder("by", names_in), "save": _save}
