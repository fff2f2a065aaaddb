"""Arrow values as Python's, dates and times that Python's calendar does not have among them."""

from typing import Any

import pyarrow as pa

from hoodie.schema.types import is_list, list_of, map_of


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as `to_pylist` has them; dates and times as text where one is before the year 1 or after 9999."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return list(column.cast(_with_texts(column.type)).to_pylist())


def _with_texts(kind: pa.DataType) -> pa.DataType:
    """The type with text in place of dates and times."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_texts(field.type)) for field in kind])
    if is_list(kind):
        return list_of(kind.value_field.with_type(_with_texts(kind.value_type)))
    if pa.types.is_map(kind):
        return map_of(kind.item_field.with_type(_with_texts(kind.item_type)))
    return pa.string() if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else kind
