"""Nested arrays whose leaves get other types. Values below nulls, and outside of a slice, are left out: nobody sees
them, and they need not fit."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.schema.types import is_list

#: What makes of a leaf's values those of another type; it is told the leaf's dotted path.
Convert: TypeAlias = Callable[[pa.Array, pa.DataType, str], pa.Array]


def with_leaves(array: pa.Array, kind: pa.DataType, path: str, convert: Convert) -> pa.Array:
    """The array in a type of the same shape: the same fields, lists and maps, with other leaves.

    convert  is asked for leaves whose type differs, and where only one of the two types is nested
    """
    have = array.type
    if have == kind:
        return array
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(have) and pa.types.is_struct(kind):
        if not kind.num_fields:
            return array
        children = [
            with_leaves(child, field.type, f"{path}.{field.name}", convert)
            for child, field in zip(array.flatten(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if is_list(have) and pa.types.is_list(kind):
        elements = with_leaves(array.flatten(), kind.value_type, f"{path}.element", convert)
        return pa.ListArray.from_arrays(list_offsets(array), elements, kind, mask=mask)
    if pa.types.is_map(have) and pa.types.is_map(kind):
        offsets, keys, items = map_parts(array)
        keys = with_leaves(keys, kind.key_type, f"{path}.key", convert)
        items = with_leaves(items, kind.item_type, f"{path}.value", convert)
        return pa.MapArray.from_arrays(offsets, keys, items, kind, mask=mask)
    return convert(array, kind, path)


def list_offsets(array: pa.Array) -> pa.Array:
    """Where each list begins and ends among the array's flattened elements."""
    ends = np.cumsum(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    return pa.array(np.concatenate([np.zeros(1, np.int64), ends])).cast(pa.int32())


def map_parts(array: pa.MapArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Where the pairs of each map begin and end, the keys of all, and their values; none below nulls."""
    # As lists of pairs, which can be flattened: Arrow takes and filters no maps of views.
    pair = pa.struct([array.type.key_field, array.type.item_field])
    pairs = pa.Array.from_buffers(pair, len(array.keys), [None], 0, children=[array.keys, array.items])
    buffers = array.buffers()[:2]
    lists = pa.Array.from_buffers(pa.list_(pair), len(array), buffers, array.null_count, array.offset, children=[pairs])
    keys, items = lists.flatten().flatten()
    return list_offsets(lists), keys, items
