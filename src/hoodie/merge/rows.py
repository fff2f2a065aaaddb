"""Rows picked from several tables at once, with checks that the tables fit; and what rows of a batch take along to
their tasks, as columns: what a merge does with them, what is known of their keys, and where they are in the base file.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.formats.parquet.hashed_keys import MANY_KEYS, all_different
from hoodie.model.meta import RECORD_KEY
from hoodie.schema.encoded import encoded_schema, joined_chunks, plain_type

_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_Number = TypeVar("_Number", bound=np.generic)


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """The values, rising, each once. Ten times as fast as `np.unique`, which hashes, where most values differ."""
    rising = np.sort(values)
    return rising[np.flatnonzero(np.concatenate(([True], rising[1:] != rising[:-1])))] if len(rising) else rising


def pick(parts: Sequence[pa.Table], positions: Positions, schema: pa.Schema | None = None) -> pa.Table:
    """The rows at `positions` of the parts laid end to end: one concatenation and one take a column.

    parts      tables of the same column types; the first one's schema is the result's unless `schema` is given. Where a
               column is encoded in one of them, it is in the result
    positions  int64[n], each in [0, sum of the parts' rows)
    """
    schema = parts[0].schema if schema is None else schema
    indices = pa.array(positions)
    columns = [pick_column([part.column(i) for part in parts], indices) for i in range(len(schema))]
    return pa.Table.from_arrays(columns, schema=encoded_schema(schema, columns))


def pick_column(
    parts: Sequence[pa.ChunkedArray], indices: pa.Array, most: int = 2**31 - 1
) -> pa.Array | pa.ChunkedArray:
    """The values at `at` of the columns laid end to end.

    most  bytes of text that one array may hold: beyond it the result is in chunks
    """
    chunks = joined_chunks([chunk for part in parts for chunk in part.chunks if len(chunk)])
    if not chunks:
        return pa.array([], parts[0].type)
    kind = chunks[0].type
    if len(chunks) > 1 and kind in _LARGE and sum(chunk.nbytes for chunk in chunks) > most:
        taken = pa.concat_arrays([chunk.cast(_LARGE[kind]) for chunk in chunks]).take(indices)
        piece = np.cumsum(pc.binary_length(taken).fill_null(0).to_numpy(zero_copy_only=False)) // max(most // 2, 1)
        ends = [*(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(taken)]
        starts = [0, *ends[:-1]]
        return pa.chunked_array([taken.slice(a, b - a).cast(kind) for a, b in zip(starts, ends, strict=True)], kind)
    whole = pa.concat_arrays(chunks) if len(chunks) > 1 else chunks[0]
    return whole.take(indices)


def take_rising(rows: pa.Table, positions: Positions) -> pa.Table:
    """The rows at rising positions, each chunk's by themselves: Arrow's take would first copy all chunks into one."""
    parts, start = [], 0
    for batch in rows.to_batches():
        low, high = np.searchsorted(positions, (start, start + batch.num_rows))
        parts.append(batch.take(pa.array(positions[low:high] - start)))
        start += batch.num_rows
    return pa.Table.from_batches(parts, rows.schema)


def take_column(rows: pa.Table, name: str) -> tuple[pa.Table, npt.NDArray[Any] | None]:
    """The rows without a column of numbers, and the column; None: they have none of this name."""
    if name not in rows.column_names:
        return rows, None
    return rows.drop_columns([name]), rows.column(name).to_numpy()


def values_of_keys(keys: pa.Array, rows: pa.Table, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """What is known of keys that are left of rows; rows of one key have one value.

    keys    string[k], each among the rows' record keys
    values  [n], of the rows
    """
    positions = pc.index_in(keys, value_set=as_array(rows.column(RECORD_KEY)))
    taken: npt.NDArray[_Number] = values[positions.to_numpy(zero_copy_only=False).astype(np.int64)]
    return taken


def as_table(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])


def as_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column in one piece, dictionaries resolved."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def as_mask(values: pa.Array | pa.ChunkedArray) -> Mask:
    """bool[n] of a boolean column; null is False."""
    filled = values.fill_null(False) if values.null_count else values
    mask: Mask = filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy()
    return mask


def check_same_columns(actual: pa.Schema, expected: pa.Schema, what: str) -> None:
    """Refuse rows whose columns are not those of the table, in its order. Nullability may differ.

    Raises SchemaMismatch naming the first column that differs.
    """
    if actual.names != expected.names:
        missing = [name for name in expected.names if name not in actual.names]
        extra = [name for name in actual.names if name not in expected.names]
        raise SchemaMismatch(
            f"{what}: columns {actual.names} are not those of the table, {expected.names}"
            f" (missing {missing}, unexpected {extra})"
        )
    for name, kind, expected_type in zip(actual.names, actual.types, expected.types, strict=True):
        if kind not in (expected_type, plain_type(expected_type)):
            raise SchemaMismatch(f"{what}: column {name!r} is {kind}, in the table {expected_type}")


def nullable(schema: pa.Schema) -> pa.Schema:
    """The schema with all columns nullable: rows of deleted keys hold a key and little else."""
    return pa.schema([field.with_nullable(True) for field in schema])


def key_groups(rows: pa.Table, key_columns: Sequence[str]) -> Positions | None:
    """Which rows share a key: a dense group number per row, in the order in which the keys first occur.

    returns  int64[n]; None when no key occurs twice, found out without building the groups
    Raises   InvalidInput when a key column is absent
    """
    absent = [name for name in key_columns if name not in rows.column_names]
    if absent or not key_columns:
        raise InvalidInput(f"key columns {absent} are not among {rows.column_names}")
    count = rows.num_rows
    if count > MANY_KEYS and RECORD_KEY in key_columns and all_different(as_array(rows.column(RECORD_KEY))):
        return None
    ids, groups = np.zeros(count, np.int64), 1
    for name in reversed(key_columns):  # the record key tells most: it comes first here
        encoded = as_array(rows.column(name)).dictionary_encode(null_encoding="encode")
        distinct = len(encoded.dictionary)
        if distinct == count:
            return None
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        ids, groups = _dense(codes + ids * distinct)
        if groups == count:
            return None
    return ids


def _dense(codes: Positions) -> tuple[Positions, int]:
    """Numbers renumbered 0, 1, ... in the order of their first occurrence, and how many there are."""
    encoded = pa.array(codes).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64, copy=False), len(encoded.dictionary)


#: int8, no nulls. Only batches of merges have it.
ROW_ACTION = "_hoodie_row_action"

RowActions = npt.NDArray[np.int8]


class RowAction(IntEnum):
    """What becomes of a row by whether the table has its key."""

    WRITE = 0  # updates the stored row, or is inserted
    DELETE = 1  # deletes the stored row, whatever its ordering value; else it has no effect
    UPDATE = 2  # updates the stored row; else it has no effect
    INSERT = 3  # is inserted; a stored row stays as it is
    REPLACE = 4  # deletes the stored row, whatever its ordering value; else it is inserted


#: Those without effect on a key that the table does not have, and on one that it has.
NOT_INSERTED = (RowAction.DELETE, RowAction.UPDATE)
NOT_MATCHED = (RowAction.INSERT,)
DELETING = (RowAction.DELETE, RowAction.REPLACE)


def actions_of(rows: pa.Table) -> RowActions | None:
    """int8[n], or None where the batch is no merge's."""
    if ROW_ACTION not in rows.column_names:
        return None
    actions: RowActions = rows.column(ROW_ACTION).to_numpy().astype(np.int8)
    return actions


#: int8, no nulls. Only rows of which somebody asks have it: an index that learns, or a log that counts its inserts.
KEY_STATUS = "_hoodie_key_status"

KeyStatuses = npt.NDArray[np.int8]


class KeyStatus(IntEnum):
    """What a row is to its file group."""

    UPDATE = 0  # the group holds its key
    INSERT = 1  # no group does
    MOVED_IN = 2  # a group of another partition did, from which this write deletes it
    MOVED_OUT = 3  # the group holds its key, which moves away: the row stands for its deletion


def with_statuses(rows: pa.Table, statuses: KeyStatuses) -> pa.Table:
    return rows.append_column(KEY_STATUS, pa.array(statuses, pa.int8()))


#: int64, no nulls, less than 0 where it is not known. Only rows on their way to the logs of a slice have it.
ROW_POSITION = "_hoodie_row_position"

RowPositions = npt.NDArray[np.int64]


def with_positions(rows: pa.Table, positions: RowPositions) -> pa.Table:
    return rows.append_column(ROW_POSITION, pa.array(positions, pa.int64()))
