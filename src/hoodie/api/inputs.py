"""What people have as rows, taken as one stream of Arrow batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types as arrow

from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.schema.types import is_list

Path: TypeAlias = str | os.PathLike[str]


def is_spark_frame(rows: object) -> bool:
    """Whether rows are a DataFrame of Spark's, classic or Connect."""
    return hasattr(rows, "mapInArrow") and hasattr(rows, "sparkSession")


def is_predicate(keys: object) -> bool:
    """Whether what a delete is given says which rows, rather than holds their keys."""
    import pyarrow.compute as pc

    return isinstance(keys, (str, list, pc.Expression))


def column_names(rows: Any) -> list[str]:
    """The columns of a Spark DataFrame or of what speaks Arrow, as far as it tells them without being read."""
    schema = getattr(rows, "schema", None)
    if isinstance(schema, pa.Schema):
        return list(schema.names)
    return [str(name) for name in getattr(rows, "columns", ())]


def arrow_stream(rows: Any) -> pa.RecordBatchReader:
    """The rows as a stream that can be read once; times in nanoseconds become microseconds, which tables hold.

    rows    anything with `__arrow_c_stream__`: pyarrow.Table, RecordBatchReader, Polars, DuckDB relations; pandas
            DataFrames, without their index; a pyarrow.RecordBatch
    Raises  InvalidInput on anything else; SchemaMismatch on what makes no table of Arrow's; while it is read
            SchemaMismatch where nanoseconds would be lost
    """
    if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns"):
        reader = _of_pandas(rows).to_reader()
    elif isinstance(rows, pa.RecordBatch):
        reader = pa.Table.from_batches([rows]).to_reader()
    elif hasattr(rows, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(rows)
        except pa.ArrowException as problem:
            raise SchemaMismatch(f"the rows make no table of Arrow's: {problem}") from problem
    else:
        raise InvalidInput(
            f"expected rows, not {type(rows).__name__}: a Spark DataFrame, or what speaks Arrow: pyarrow.Table, "
            "RecordBatchReader, a pandas or Polars DataFrame, a DuckDB relation"
        )
    schema = pa.schema([field.with_type(_in_micros(field.type)) for field in reader.schema])
    if schema.types == reader.schema.types:
        return reader
    return pa.RecordBatchReader.from_batches(schema, _cast(reader, schema))


def _of_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        said = ". ".join(str(part).rstrip(".") for part in problem.args)
        raise SchemaMismatch(
            f"the DataFrame makes no table of Arrow's: {said}. Columns need names that differ, and values of one type"
        ) from problem


def _cast(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        try:
            yield batch.cast(schema)
        except pa.ArrowInvalid as problem:
            raise SchemaMismatch(
                f"times in nanoseconds do not fit the microseconds that a table holds: {problem}. Cut them off first, "
                'such as by pandas\' dt.floor("us") or Polars\' dt.cast_time_unit("us")'
            ) from problem


def _in_micros(kind: pa.DataType) -> pa.DataType:
    if arrow.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if arrow.is_struct(kind):
        return pa.struct([child.with_type(_in_micros(child.type)) for child in kind])
    if is_list(kind) and (inner := _in_micros(kind.value_type)) != kind.value_type:
        return pa.list_(kind.value_field.with_type(inner))
    if arrow.is_map(kind) and (inner := _in_micros(kind.item_type)) != kind.item_type:
        return pa.map_(kind.key_field, kind.item_field.with_type(inner))
    return kind


def as_path(path: Any) -> str:
    """A path or URI as text. Raises InvalidInput on what is neither."""
    if isinstance(path, (str, os.PathLike)):
        return os.fspath(path)
    raise InvalidInput(f"expected the path of a table, not {type(path).__name__}")


def session_and_path(session: Any, path: Any, options: Any = None) -> tuple[Any, str, Any]:
    """What was given as `(path)`, `(path, options)`, `(path=path)` or `(session, path, options)`: these three, the
    session perhaps None. Raises InvalidInput on anything else
    """
    if isinstance(path, Mapping) and options is None:
        path, options = None, path
    if path is None:
        session, path = None, session
    if session is not None and not hasattr(session, "createDataFrame"):
        raise InvalidInput(f"expected a SparkSession before the path, not {type(session).__name__}")
    return session, as_path(path), options
