"""Rows as callers give them, taken as one stream of Arrow batches."""

import datetime as dt
import functools
import os
from collections import deque
from collections.abc import Callable, Iterator, KeysView, Mapping, ValuesView
from decimal import Decimal
from numbers import Number, Real
from types import FunctionType, NoneType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import types as arrow

from hoodie.errors import InvalidInput, SchemaMismatch, clause
from hoodie.keygen.arrow_keys import BYTES, is_text, type_at
from hoodie.model.instant import Instant
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.table_schema import read_schema
from hoodie.recovery.savepoint import Savepoint
from hoodie.schema.conform import decoded
from hoodie.schema.leaves import with_leaves
from hoodie.schema.types import is_list, other_time
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.timeline.points import Point
from hoodie.writing.batch.arrow import INDEX_LEFT_OUT
from hoodie.writing.result import WriteResult

Path: TypeAlias = str | os.PathLike[str]

P = ParamSpec("P")
T = TypeVar("T")
_Client = TypeVar("_Client", bound=type)


def is_spark_frame(rows: object) -> bool:
    """Whether rows are a DataFrame of Spark's, classic or Connect."""
    return hasattr(rows, "mapInArrow") and hasattr(rows, "sparkSession")


#: What names one instant: its text, the result of a write, an instant of the table's history, or a savepoint.
Named: TypeAlias = str | WriteResult | Instant | Savepoint
#: What a read may be of: what names an instant, or a point in time.
Moment: TypeAlias = Named | Point


def instant_of(moment: Moment | None) -> Point | None:
    """A point in time; of the result of a write the instant that it has."""
    if isinstance(moment, (WriteResult, Savepoint)):
        return moment.instant
    if isinstance(moment, tuple):
        raise InvalidInput(
            "a tuple is no instant; that of an entry of history(), whose entries are pairs: history()[0][0]"
        )
    if isinstance(moment, np.datetime64):
        moment = pa.array(np.array([moment.astype("datetime64[us]")]))[0].as_py()
    if isinstance(moment, dt.date) and moment != moment:
        raise InvalidInput(f"{moment!r} is not a point in time")  # pandas' NaT is a datetime
    return moment.requested if isinstance(moment, Instant) else moment


def named_instant(named: Named, call: str) -> str:
    """The instant that is meant. Raises InvalidInput on what names none; call: who is told"""
    instant = instant_of(named)
    if isinstance(instant, str) and instant:
        return instant
    raise InvalidInput(
        f"{call} does not take {_value_text(named)}: expected an instant as text, such as '20240131120000000', the "
        "result of a write, a savepoint, or an instant of history()"
    )


def _value_text(value: object) -> str:
    """A value in a message: what is short as it is, else its type."""
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def keys_as_rows(keys: Any, storage: Storage) -> Any:
    """Keys as rows: a list or an iterator of values, or a column of a frame, is those of the one column that the
    table's record key is made of.

    Raises InvalidInput where it is made of more, or of none
    """
    if isinstance(keys, (str, bytes, Number, dt.date, np.generic)):
        raise InvalidInput(f"keys are a list, also where it is one: [{keys!r}]")
    column = is_column(keys)
    if not column and not is_listing(keys):
        return keys
    state = load_state(storage)
    columns = state.config.record_key
    if not columns:
        raise InvalidInput(
            f"{state.config.name} has no record key: give rows with {RECORD_KEY} and {PARTITION_PATH}, as reads with "
            f"meta=True have them, and not a {type(keys).__name__}; or delete by a condition, delete(where=...)"
        )
    if len(columns) != 1:
        raise InvalidInput(
            f"the key of {state.config.name} is made of {', '.join(columns)}: give rows with the key and "
            f"partition columns, such as a pyarrow.Table or a DataFrame, and not a {type(keys).__name__}; or name them "
            "by a condition (scan(filters=…), delete(where=…))"
        )
    kind = type_at(read_schema(state), columns[0])
    try:
        return pa.table({columns[0]: _of_kind(keys, kind) if column else _key_array(list(keys), kind)})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        reason = f"{problem}{_way_to_rows(keys)}"
        raise InvalidInput(f"the list of keys holds what {columns[0]!r} ({kind}) does not: {reason}") from problem


def is_column(values: Any) -> bool:
    """Whether values are one column: of pandas, Polars, numpy or Arrow."""
    shape = getattr(values, "shape", None)  # a DataFrame of Spark takes it for the name of a column
    return isinstance(values, (pa.Array, pa.ChunkedArray)) or (isinstance(shape, tuple) and len(shape) == 1)


def is_listing(values: Any) -> bool:
    """Whether it gives values one after the other: a list, a set, a view of a dict, an iterator, and no rows."""
    return isinstance(
        values, (list, tuple, set, frozenset, range, KeysView, ValuesView, deque, Iterator)
    ) and not hasattr(values, "__arrow_c_stream__")


#: Values of Python's that Arrow takes for a type without changing them, or refuses.
_EXACT: tuple[tuple[Callable[[pa.DataType], bool], set[type]], ...] = (
    (arrow.is_integer, {int}),
    (is_text, {str, bytes}),
    (arrow.is_floating, {int, float}),
    (arrow.is_decimal, {int, Decimal}),
    (arrow.is_date, {dt.date}),
    (arrow.is_timestamp, {dt.datetime}),
    (arrow.is_time, {dt.time}),
)


def _key_array(keys: list[Any], kind: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    types = {type(key) for key in keys} - {NoneType}
    if kind is not None and arrow.is_timestamp(kind):
        for key in keys:
            if isinstance(key, dt.datetime) and key == key:
                _refuse_other_zone(pa.timestamp("us", None if key.tzinfo is None else "UTC"), kind)
    if kind is None or any(is_one(kind) and types <= exact for is_one, exact in _EXACT):
        return pa.array(keys, kind)
    if arrow.is_binary(kind) or arrow.is_fixed_size_binary(kind):
        return pa.array(keys, kind)
    if types and all(issubclass(one, np.generic) for one in types) and None not in keys:
        return _of_kind(np.array(keys), kind)
    if any(getattr(key, "nanosecond", 0) > 0 for key in keys):  # of pandas' Timestamp, which Arrow cuts off
        raise ValueError("times of nanoseconds are none of it")
    return _of_kind(pa.array(keys, from_pandas=True), kind)


def _of_kind(keys: Any, kind: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    """A column of keys in the type of the table's. Raises TypeError where that is another kind of value, ValueError
    where a value is none of it"""
    column = pa.chunked_array(keys) if hasattr(keys, "__arrow_c_stream__") else pa.array(keys, from_pandas=True)
    if arrow.is_dictionary(column.type):
        column = decoded(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    if kind is None:
        return column
    have = column.type
    if not arrow.is_null(have) and not same_kind(have, kind):
        raise TypeError(f"they are {have}")
    _refuse_other_zone(have, kind)
    cast = column.cast(kind)
    if _may_round(have, kind) and not cast.cast(have).equals(column):
        raise ValueError(f"of {have} some are none of it")
    return cast


def _refuse_other_zone(have: pa.DataType, kind: pa.DataType) -> None:
    """Raises TypeError on times without a zone, and dates, for a column of times with one, and the reverse"""
    is_other = arrow.is_timestamp(kind) and (getattr(have, "tz", None) is None) != (kind.tz is None)
    if is_other and (problem := other_time(have, kind)):
        raise TypeError(f"it has {problem}")


def same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are text, truth values, times, bytes, or none of these, which are not made of each other."""
    return all(
        is_one(one) == is_one(other) for is_one in (is_text, arrow.is_boolean, arrow.is_temporal, BYTES.__contains__)
    )


def _may_round(have: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow casts some values without a word to others: times to dates, and floats to decimals."""
    to_dates = arrow.is_date(kind) and not arrow.is_date(have) and not arrow.is_null(have)
    return to_dates or (arrow.is_decimal(kind) and arrow.is_floating(have))


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
        _refuse_objects(rows)
        try:
            reader = pa.RecordBatchReader.from_stream(rows)
        except pa.ArrowException as problem:
            reason = _one_column(rows) if is_column(rows) else problem
            raise SchemaMismatch(
                f"the rows make no table of Arrow's: {clause(reason)}{_polars_only(rows)}"
            ) from problem
    elif is_column(rows) and hasattr(rows, "to_frame"):  # pandas' Series are streams since version 3
        raise SchemaMismatch(f"the rows make no table of Arrow's: {_one_column(rows)}")
    else:
        way = _way_to_rows(rows)
        raise InvalidInput(
            f"expected rows, not {type(rows).__name__}: a Spark DataFrame, or what speaks Arrow: pyarrow.Table, "
            f"RecordBatchReader, a pandas or Polars DataFrame, a DuckDB relation{way}"
        )
    schema = pa.schema([field.with_type(_in_micros(field.type)) for field in reader.schema], reader.schema.metadata)
    if schema.types == reader.schema.types:
        return reader
    return pa.RecordBatchReader.from_batches(schema, _cast(reader, schema))


def _one_column(rows: object) -> str:
    frame = "rows.to_frame()" if hasattr(rows, "to_frame") else "pyarrow.table({name: rows})"
    return f"a {type(rows).__name__} is one column: write {frame}"


def _way_to_rows(rows: object) -> str:
    """How what is no rows becomes rows, as the end of a message; "" where nothing is plain."""
    if hasattr(rows, "collect_schema"):
        return ". Collect it: rows.collect()"
    if isinstance(rows, dict):
        return ". Columns by name make a table: pyarrow.table(rows)"
    if isinstance(rows, (list, tuple)) and rows and all(isinstance(row, dict) for row in rows):
        return ". A list of dicts makes a table: pyarrow.Table.from_pylist(rows)"
    if hasattr(rows, "scanner") or hasattr(rows, "to_reader"):  # a dataset of pyarrow's, or a scanner
        return f". Read it: rows{'.scanner()' if hasattr(rows, 'scanner') else ''}.to_reader()"
    if hasattr(rows, "snapshot"):
        return ". A table's rows are rows.snapshot()"
    if isinstance(rows, (str, os.PathLike)):
        return ". A file is read first, such as by pyarrow.parquet.read_table(path) or pyarrow.csv.read_csv(path)"
    if isinstance(rows, Iterator) or (isinstance(rows, list) and rows and isinstance(rows[0], pa.RecordBatch)):
        return ". Record batches make a stream: pyarrow.RecordBatchReader.from_batches(schema, batches)"
    return ""


def _refuse_objects(rows: Any) -> None:
    """Raises SchemaMismatch on columns of Polars that hold Python's objects: it hands over their addresses."""
    schema = getattr(rows, "schema", None)
    if type(rows).__module__.partition(".")[0] != "polars" or schema is None:
        return
    if names := [name for name, kind in schema.items() if _holds_objects(kind)]:
        raise SchemaMismatch(
            f"These columns cannot be stored: {', '.join(names)} of type Object: cast them to string, such as by "
            f"pl.col({names[0]!r}).map_elements(str, return_dtype=pl.String)"
        )


def _holds_objects(kind: Any) -> bool:
    inner = [getattr(kind, "inner", None), *(field.dtype for field in getattr(kind, "fields", ()))]
    return str(kind) == "Object" or any(_holds_objects(child) for child in inner if child is not None)


def _polars_only(rows: Any) -> str:
    """Which columns of a DataFrame of Polars have types that Arrow does not have, as the end of a message; ""."""
    schema = getattr(rows, "schema", None)
    if type(rows).__module__.partition(".")[0] != "polars" or schema is None:
        return ""
    refused = [f"{name!r} ({kind})" for name, kind in schema.items() if not _speaks_arrow(rows[:0].select([name]))]
    return f" of {', '.join(refused)}. Cast it, such as to Int64 or Decimal(38, 0)" if refused else ""


def _speaks_arrow(frame: Any) -> bool:
    try:
        pa.RecordBatchReader.from_stream(frame).close()
    except pa.ArrowException:
        return False
    return True


def _of_pandas(frame: Any) -> pa.Table:
    if frame.columns.nlevels > 1:
        raise SchemaMismatch(
            f"the DataFrame's columns have {frame.columns.nlevels} levels, such as {frame.columns[0]!r}, and a table's "
            "one: name them anew, such as by frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    try:
        rows = _without_defaults(pa.Table.from_pandas(frame, preserve_index=False))
        index = ",".join(str(name) for name in frame.index.names if name is not None and name not in frame.columns)
        return rows.replace_schema_metadata({**rows.schema.metadata, INDEX_LEFT_OUT: index}) if index else rows
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        if isinstance(problem, (OverflowError, UnicodeError)):  # Arrow does not say of which column
            advice = ". Cast it, such as to decimal.Decimal" if isinstance(problem, OverflowError) else ""
            message = f"column {_column_without_array(frame)}: {clause(problem)}{advice}"
        else:
            message = ". ".join(clause(part) for part in problem.args)
        sparse = [
            name for name, kind in zip(frame.columns, frame.dtypes, strict=True) if str(kind).startswith("Sparse")
        ]
        way = (
            f"Make it dense first: frame.astype({{{sparse[0]!r}: frame[{sparse[0]!r}].dtype.subtype}})"
            if sparse
            else "Columns need names that differ, and values of one type"
        )
        raise SchemaMismatch(f"the DataFrame makes no table of Arrow's: {message}. {way}") from problem


def _column_without_array(frame: Any) -> str:
    """The first column of which Arrow makes no array."""
    for name in frame.columns:
        try:
            pa.array(frame[name], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return str(name)
    return ""


def _without_defaults(rows: pa.Table) -> pa.Table:
    """Columns of an empty frame to which pandas gave its types for no values, double and object, have no type."""
    if rows.num_rows or not all(kind in (pa.float64(), pa.null()) for kind in rows.schema.types):
        return rows
    schema = pa.schema([field.with_type(pa.null()) for field in rows.schema], rows.schema.metadata)
    return schema.empty_table()


def _cast(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        try:
            yield _in_type(batch, schema)
        except pa.ArrowInvalid as problem:
            raise SchemaMismatch(
                f"times in nanoseconds do not fit the microseconds that a table holds: {clause(problem)}. Cut them off "
                'first, such as by pandas\' dt.floor("us") or Polars\' dt.cast_time_unit("us")'
            ) from problem


def _in_type(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        with_leaves(column, field.type, field.name, lambda values, kind, _: values.cast(kind))
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _in_micros(kind: pa.DataType) -> pa.DataType:
    if arrow.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if not arrow.is_nested(kind):
        return kind
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
        text: str = os.fspath(path)
        if not text:
            raise InvalidInput("the path of the table is empty; '.' is the folder that this process works in")
        if "\0" in text:
            raise InvalidInput(f"the path {text!r} has a null character, which no file may have: leave it out")
        return text
    raise InvalidInput(f"expected the path of a table, not {type(path).__name__}")


def path_first(call: Callable[P, T]) -> Callable[P, T]:
    """Refuse a session in the place of the path, by showing the call as it is: the path, and `spark=` by name."""
    name = call.__qualname__.removesuffix(".__init__")

    @functools.wraps(call)
    def checked(*args: P.args, **named: P.kwargs) -> T:
        subjects = args[1:] if call.__name__ == "__init__" else args
        if session := next((subject for subject in subjects[:1] if is_session(subject)), None):
            path = next((repr(subject) for subject in subjects[1:2] if isinstance(subject, (str, os.PathLike))), "path")
            raise InvalidInput(
                f"the path goes first, and the {type(session).__name__} by name: {name}({path}, spark=spark)"
            )
        return call(*args, **named)

    return checked


def extra_of_commit(extra: Any) -> dict[str, str]:
    """What a caller keeps with a commit; None: nothing. Raises InvalidInput on what is no text by text"""
    if extra is None:
        return {}
    if isinstance(extra, Mapping) and all(isinstance(text, str) for pair in extra.items() for text in pair):
        return dict(extra)
    raise InvalidInput(f"extra_metadata={extra!r}: expected a dict of texts by their names, such as {{'job': '17'}}")


def as_seconds(argument: str, value: Any) -> float:
    """A time span in seconds. Raises InvalidInput on what is none, and on a negative one"""
    seconds = value.total_seconds() if isinstance(value, dt.timedelta) else value
    if isinstance(seconds, Real) and not isinstance(seconds, bool) and float(seconds) >= 0:
        return float(seconds)
    raise InvalidInput(f"{argument}={value!r}: expected a number of seconds")


def checked_flags(client: _Client) -> _Client:
    """A class whose public methods refuse what is neither True nor False for an argument that is one of these: "no" and
    "false" would be true."""
    for name, member in list(vars(client).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            flags = {flag for flag, default in (member.__kwdefaults__ or {}).items() if isinstance(default, bool)}
            if "meta" in (member.__kwdefaults__ or {}):
                flags.add("meta")
            if flags:
                setattr(client, name, _with_flags(member, frozenset(flags)))
    return client


def _with_flags(call: Callable[P, T], flags: frozenset[str]) -> Callable[P, T]:
    @functools.wraps(call)
    def checked(*args: P.args, **named: P.kwargs) -> T:
        for flag in flags & named.keys():
            value = named[flag]
            if not isinstance(value, (bool, np.bool_)) and not (flag == "meta" and value is None):
                raise InvalidInput(f"{flag}={value!r}: expected True or False")
        return call(*args, **named)

    return checked


def is_session(value: object) -> bool:
    """Whether a value is a session of Spark's, classic or Connect."""
    return hasattr(value, "createDataFrame")


def as_session(spark: Any) -> Any:
    """A session, or None. Raises InvalidInput on anything else"""
    if spark is None or is_session(spark):
        return spark
    raise InvalidInput(f"spark={type(spark).__name__}: expected a SparkSession, or None to work without Spark")
