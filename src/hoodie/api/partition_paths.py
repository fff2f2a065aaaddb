"""Partitions as people name them, by path or by the values of the partition columns, as partition paths."""

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as arrow

from hoodie.api.inputs import is_column, same_kind
from hoodie.config.keygen import PartitionUnit
from hoodie.errors import HoodieError, InvalidInput
from hoodie.keygen.arrow_keys import in_units_of, is_text, partition_path, type_at
from hoodie.keygen.keygen import FieldKind, KeyGenerator, PartitionField
from hoodie.reading.table_schema import read_schema
from hoodie.storage.protocol import Storage, check_path
from hoodie.table.state import load_state, table_keygen


def partition_paths(partitions: Any, storage: Storage) -> list[str]:
    """The partition paths that are meant.

    partitions  a list, or a column, of paths as text; of values of the one partition column, such as dates; or of
                tuples, or dicts by name, of the values of all
    Raises      InvalidInput on anything else, and on a value that names no partition for certain
    """
    named = _path_list(partitions)
    if all(isinstance(one, str) for one in named):
        return [check_path(str(one)) for one in named]
    state = load_state(storage)
    schema = read_schema(state)
    keygen = in_units_of(table_keygen(state), schema)
    return [str(one) if isinstance(one, str) else _path(one, keygen, schema) for one in named]


def _path_list(partitions: Any) -> list[Any]:
    if is_column(partitions):
        column = pa.chunked_array(partitions) if hasattr(partitions, "__arrow_c_stream__") else pa.array(partitions)
        return list(column.to_pylist())
    is_frame = hasattr(partitions, "columns") or hasattr(partitions, "__arrow_c_stream__")
    if isinstance(partitions, (str, bytes, Mapping)) or is_frame or not isinstance(partitions, Iterable):
        is_short = isinstance(partitions, (str, bytes, Mapping, int, NoneType))
        shown = repr(partitions) if is_short else type(partitions).__name__
        raise InvalidInput(f"partitions={shown}: expected partition paths in a list, such as ['2024-01-31']")
    return list(partitions)


def _path(named: Any, keygen: KeyGenerator, schema: pa.Schema) -> str:
    """The partition path of rows with these values."""
    fields = keygen.partition_fields
    names = [field.name for field in fields]
    if isinstance(named, Mapping):
        values = [named[name] for name in names] if set(named) == set(names) else []
    else:
        values = list(named) if isinstance(named, (tuple, list)) else [named]
    try:
        if not fields or len(values) != len(fields):
            raise ValueError(f"the partition columns are {', '.join(names) or 'none'}")
        columns = [_column(value, field, keygen, schema) for value, field in zip(values, fields, strict=True)]
        path = partition_path(pa.table(columns, names), keygen)[0].as_py()
    except (pa.ArrowException, HoodieError, TypeError, ValueError, OverflowError) as problem:
        raise InvalidInput(
            f"partitions=[{named!r}]: {problem}; expected partition paths in a list, such as ['2024-01-31'], or values "
            "of the partition columns; scan().partitions has the paths"
        ) from problem
    return str(path)


def _column(value: Any, field: PartitionField, keygen: KeyGenerator, schema: pa.Schema) -> pa.Array:
    """One value as a column of the partition column's type. Raises TypeError, ValueError where it is not one of it"""
    kind = type_at(schema, field.name)
    column = pa.array(np.array([value]) if isinstance(value, np.generic) else [value], from_pandas=True)
    have = column.type
    if kind is None or "." in field.name:
        raise ValueError(f"the table has no column {field.name!r} whose values name folders")
    if column.null_count:
        raise ValueError("a null names no partition for certain")
    by_day = keygen.timestamp is not None and keygen.timestamp.partition_unit is PartitionUnit.DAY
    if arrow.is_timestamp(kind) or field.kind is FieldKind.TIMESTAMP:
        if not (by_day and arrow.is_date(have)):
            raise TypeError(f"{field.name!r} is a time, whose folders have names of their own")
        return column.cast(kind)
    if not is_text(have) and not same_kind(have, kind):
        raise TypeError(f"{field.name!r} is {kind}, and this is {have}")
    cast = column.cast(kind)
    if not cast.cast(have).equals(column):
        raise ValueError(f"{field.name!r} is {kind}, of which it is no value")
    return cast
