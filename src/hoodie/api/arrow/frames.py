"""Arrow rows as frames of other libraries."""

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import MissingPackage
from hoodie.keygen.calendar import FIRST_DAY, LAST_DAY
from hoodie.schema.types import is_list


def pandas_frame(rows: pa.Table, options: Mapping[str, Any]) -> Any:
    """A pandas DataFrame; whole numbers and truth values with nulls among them in pandas' own types for these, and
    values that pandas' objects would change in Arrow's: maps, and nested whole numbers with nulls among them. A column
    of dates beyond Python's calendar is one of times.

    options  of `pyarrow.Table.to_pandas`; with `types_mapper` that says the types
    Raises   MissingPackage without pandas
    """
    if "types_mapper" in options:
        return _to_pandas(rows, options)
    places = [place for place, column in enumerate(rows.columns) if _is_typed(column)]
    if not places:
        return _to_pandas(rows, options)
    others = [place for place in range(rows.num_columns) if place not in places]
    frame = _to_pandas(rows.select(others), options)
    frame.columns = others
    pandas = sys.modules["pandas"]  # pyarrow has loaded it
    typed = pandas.DataFrame({place: _typed(rows.column(place), pandas) for place in places}, index=frame.index)
    frame = pandas.concat([frame, typed], axis=1)[list(range(rows.num_columns))]
    frame.columns = rows.schema.names
    return frame


def _typed(column: pa.ChunkedArray, pandas: Any) -> Any:
    """The values of a column in a type of pandas'."""
    if arrow.is_date(column.type):
        return column.to_pandas(date_as_object=False).array
    if column.type in _NULLABLE:
        return getattr(pandas, _NULLABLE[column.type])().__from_arrow__(column)
    return pandas.ArrowDtype(column.type).__from_arrow__(column)


def _is_typed(column: pa.ChunkedArray) -> bool:
    """Whether a column needs a type in pandas to be written back as it is."""
    if column.type == pa.date32():
        ends = pc.min_max(column.cast(pa.int32())).as_py()
        return ends["min"] is not None and not FIRST_DAY <= ends["min"] <= ends["max"] <= LAST_DAY
    return bool(column.null_count) if column.type in _NULLABLE else any(map(_is_changed, column.chunks))


def _is_changed(values: pa.Array, *, nested: bool = False) -> bool:
    """Whether objects of pandas would be other values: maps are lists there, and whole numbers beside nulls floats."""
    kind = values.type
    if is_list(kind):
        if arrow.is_timestamp(kind.value_type) and kind.value_type.tz is not None:
            return True  # numpy's times have no zone
        return _is_changed(values.flatten(), nested=True)
    if arrow.is_struct(kind):
        return any(_is_changed(field, nested=True) for field in values.flatten())
    if nested and arrow.is_fixed_size_binary(kind):
        return True  # Arrow makes no objects of pandas' of these
    return arrow.is_map(kind) or (nested and arrow.is_integer(kind) and values.null_count > 0)


def _to_pandas(rows: pa.Table, options: Mapping[str, Any]) -> Any:
    try:
        return rows.to_pandas(**options)
    except ModuleNotFoundError as missing:
        raise MissingPackage("pandas", "pandas", "to_pandas") from missing


_NULLABLE = {pa.bool_(): "BooleanDtype", pa.int32(): "Int32Dtype", pa.int64(): "Int64Dtype"}
