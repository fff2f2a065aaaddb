"""The ordering ("precombine") value of rows, compared as Java compares it."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.formats.java.strings import java_order, raw_strings
from hoodie.merge.rows import Mask, Positions, as_array, as_mask


def ordering_column(rows: pa.Table, name: str) -> pa.ChunkedArray | None:
    """The column that an ordering field names, `a.b` being field b of struct a; None when there is none."""
    if name in rows.column_names:
        return rows.column(name)
    first, _, rest = name.partition(".")
    if not rest or first not in rows.column_names:
        return None
    column, path = rows.column(first), rest.split(".")
    kind = column.type
    for part in path:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return pc.struct_field(column, path)


def roots(ordering: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The top-level columns that hold the ordering fields."""
    return tuple(name if name in columns else name.partition(".")[0] for name in ordering)


def order_ranks(parts: Sequence[pa.Table], ordering: Sequence[str]) -> Positions:
    """Numbers that compare as the ordering values of all rows do, across the parts.

    Several ordering fields compare one after the other. A null is less than any value, and a field that the rows
    don't have is the same for all: both are what a reader meets in rows older than the field.

    parts    tables with the same column types
    returns  int64[rows of all parts], the parts end to end
    Raises   InvalidInput when a type has no order
    """
    total = sum(part.num_rows for part in parts)
    ranked = []
    for name in ordering:
        columns = [ordering_column(part, name) for part in parts]
        if all(column is not None for column in columns):
            ranked.append(_ranks([as_array(column) for column in columns], name))
    if not ranked:
        return np.zeros(total, np.int64)
    return ranked[0] if len(ranked) == 1 else _lexicographic(ranked)


def has_ordering(rows: pa.Table, ordering: Sequence[str]) -> Mask:
    """bool[n]: whether the row has all its ordering values, those of fields that exist."""
    present = np.ones(rows.num_rows, np.bool_)
    for name in ordering:
        column = ordering_column(rows, name)
        if column is not None and column.null_count:
            present &= as_mask(column.is_valid())
    return present


def require_ordering(rows: pa.Table, ordering: Sequence[str], key_column: str) -> None:
    """Refuse rows that cannot be ordered: they would be written, and readers of the log would fail on them.

    Raises InvalidInput when an ordering field is absent, or null in some rows (how many, and the key of one)
    """
    for name in ordering:
        column = ordering_column(rows, name)
        if column is None:
            raise InvalidInput(f"the ordering field {name!r} is not among the columns {rows.column_names}")
        if column.null_count:
            first = int(np.flatnonzero(~as_mask(column.is_valid()))[0])
            example = rows.column(key_column)[first].as_py()
            raise InvalidInput(
                f"the ordering value {name!r} is null in {column.null_count} of {rows.num_rows} rows, "
                f"such as the one with key {example!r}. Fill it in, or write the table without an ordering field."
            )


def _ranks(columns: list[pa.Array], name: str) -> Positions:
    """int64 numbers in the order of the values, nulls first."""
    kind = columns[0].type
    column = pa.concat_arrays(columns) if len(columns) > 1 else columns[0]
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    valid = as_mask(column.is_valid()) if column.null_count else None
    numbers = _numbers(column if valid is None else column.drop_null(), name)
    if valid is None:
        return numbers
    ranks = np.full(len(column), -1, np.int64)
    ranks[valid] = np.unique(numbers, return_inverse=True)[1].reshape(-1)
    return ranks


def _numbers(column: pa.Array, name: str) -> Positions:
    """int64 numbers in the order of the values of a column without nulls."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return as_mask(column).astype(np.int64)
    if pa.types.is_floating(kind):
        return _float_order(column.cast(pa.float64()))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int64())
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        numbers: Positions = column.to_numpy().astype(np.int64, copy=False)
        return numbers
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _sorted_codes(java_order(column))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _sorted_codes(_signed_bytes(column))
    if pa.types.is_decimal(kind) or pa.types.is_uint64(kind):
        return _sorted_codes(column)
    raise InvalidInput(f"the ordering field {name!r} has the type {kind}, which has no order")


def _float_order(column: pa.Array) -> Positions:
    """Java's Double.compareTo: -0.0 before 0.0, NaN after all numbers and equal to itself."""
    values = column.to_numpy().copy()
    values[np.isnan(values)] = np.nan
    bits: Positions = values.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _signed_bytes(column: pa.Array) -> pa.Array:
    """Java's ByteBuffer.compareTo: bytes are -128 to 127."""
    data, offsets = raw_strings(column.cast(pa.large_binary()))
    buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(data[offsets[0] : offsets[-1]] ^ 0x80)]
    return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)


def _sorted_codes(column: pa.Array) -> Positions:
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    codes: Positions = rank[encoded.indices.to_numpy()]
    return codes


def _lexicographic(ranked: list[Positions]) -> Positions:
    order = np.lexsort(ranked[::-1])
    steps = np.zeros(len(order), np.bool_)
    for ranks in ranked:
        steps[1:] |= np.diff(ranks[order]) != 0
    result = np.empty(len(order), np.int64)
    result[order] = np.cumsum(steps)
    return result
