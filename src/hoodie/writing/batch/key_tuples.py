"""Rows of two different keys that have one record key: parts of a compound key may hold what separates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.keygen.arrow_text import column_at, type_at
from hoodie.keygen.keygen import EMPTY_KEY_PART, NULL_KEY_PART
from hoodie.merge.rows import as_array, key_groups
from hoodie.model.meta import RECORD_KEY

_PART = "part "  # before the number of a key column


def require_one_tuple(
    rows: pa.Table, columns: Sequence[str], key: Sequence[str] = (RECORD_KEY,), stored: pa.Table | None = None
) -> None:
    """Refuse rows that have a record key in common and differ in their key columns.

    rows     with their record keys. Rows without the key columns, as those of a delete, are not looked at
    columns  that the record key is made of; fewer than two: there is nothing to tell apart
    key      what makes a key
    stored   rows of the table that are compared with them, with record keys and key columns; None: none
    Raises   InvalidInput naming two of them
    """
    if len(columns) < 2 or any(type_at(rows.schema, name) is None for name in columns):
        return
    tuples = _ambiguous(rows, columns, key)
    if not tuples.num_rows:
        return
    if stored is not None:
        same = pc.is_in(stored.column(RECORD_KEY), as_array(tuples.column(RECORD_KEY)).cast(pa.string()))
        tuples = pa.concat_tables([tuples, _tuples(stored.filter(same), columns, key).cast(tuples.schema)])
    tuples = tuples.group_by(tuples.column_names, use_threads=False).aggregate([])
    groups = key_groups(tuples, key)
    if groups is None:
        return
    count = np.bincount(groups)
    first = int(np.flatnonzero(count > 1)[0])
    one, other = tuples.take(pa.array(np.flatnonzero(groups == first)[:2])).to_pylist()
    raise InvalidInput(
        f"({_shown(one, columns)}) and ({_shown(other, columns)}) have one record key, {one[RECORD_KEY]!r}, and would "
        "overwrite each other. "
        "Nothing was written: keep ',' and ':' together with the names of key columns, and the texts "
        f"{EMPTY_KEY_PART} and {NULL_KEY_PART}, out of key columns, or give the table a key of one column."
    )


def _shown(row: Mapping[str, object], columns: Sequence[str]) -> str:
    values = [row[f"{_PART}{at}"] for at in range(len(columns))]
    texts = ["null" if value is None else repr(value) for value in values]
    return ", ".join(f"{name} = {text}" for name, text in zip(columns, texts, strict=True))


def ambiguous_keys(keys: pa.Array | pa.ChunkedArray, columns: Sequence[str]) -> pa.Array | pa.ChunkedArray:
    """Which record keys more than one tuple may have: a separator occurs twice, or a part is a text that stands for
    no value. All others are read in one way only."""
    mask = pc.or_(pc.match_substring(keys, f":{EMPTY_KEY_PART}"), pc.match_substring(keys, f":{NULL_KEY_PART}"))
    for name in columns[1:]:
        mask = pc.or_(mask, pc.greater(pc.count_substring(keys, f",{name}:"), 1))
    return pc.fill_null(mask, False)


def _ambiguous(rows: pa.Table, columns: Sequence[str], key: Sequence[str]) -> pa.Table:
    mask = ambiguous_keys(rows.column(RECORD_KEY), columns)
    if not pc.any(mask).as_py():
        return _tuples(rows.slice(0, 0), columns, key)
    return _tuples(rows.filter(mask), columns, key)


def _tuples(rows: pa.Table, columns: Sequence[str], key: Sequence[str]) -> pa.Table:
    parts = [column_at(rows, name) for name in columns]
    names = [*key, *(f"{_PART}{at}" for at in range(len(columns)))]
    return pa.Table.from_arrays([*(rows.column(name) for name in key), *parts], names)
