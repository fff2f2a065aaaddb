"""Arrow rows as frames of other libraries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hoodie.errors import MissingPackage


def pandas_frame(rows: pa.Table, options: Mapping[str, Any]) -> Any:
    """A pandas DataFrame; whole numbers and truth values with nulls among them in pandas' own types for these.

    options  of `pyarrow.Table.to_pandas`; with `types_mapper` that says the types
    Raises   MissingPackage without pandas
    """
    if "types_mapper" in options:
        return _made(rows, options)
    places = [place for place, column in enumerate(rows.columns) if column.null_count and column.type in _NULLABLE]
    if not places:
        return _made(rows, options)
    frame = _made(rows.select([place for place in range(rows.num_columns) if place not in places]), options)
    pandas = sys.modules["pandas"]  # pyarrow has loaded it
    if rows.num_columns == len(places):
        frame = pandas.DataFrame(index=range(rows.num_rows))
    for place in places:
        column = rows.column(place)
        kind = getattr(pandas, _NULLABLE[column.type])()
        frame.insert(place, rows.schema.names[place], kind.__from_arrow__(column))
    return frame


def _made(rows: pa.Table, options: Mapping[str, Any]) -> Any:
    try:
        return rows.to_pandas(**options)
    except ModuleNotFoundError as missing:
        raise MissingPackage("pandas", "pandas", "to_pandas") from missing


_NULLABLE = {pa.bool_(): "BooleanDtype", pa.int32(): "Int32Dtype", pa.int64(): "Int64Dtype"}
