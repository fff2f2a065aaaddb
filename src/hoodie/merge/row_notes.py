"""What rows of a batch take along to their tasks, as columns: what a merge does with them, what is known of their keys,
and where they are in the base file of their group.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.rows import as_array, take_column
from hoodie.model.meta import RECORD_KEY

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


def take_actions(rows: pa.Table) -> tuple[pa.Table, RowActions | None]:
    """The rows without the column, and the column."""
    actions = actions_of(rows)
    return (rows, None) if actions is None else (rows.drop_columns([ROW_ACTION]), actions)


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


def take_statuses(rows: pa.Table) -> tuple[pa.Table, KeyStatuses | None]:
    """The rows without the column, and the column."""
    return take_column(rows, KEY_STATUS)


#: int64, no nulls, less than 0 where it is not known. Only rows on their way to the logs of a slice have it.
ROW_POSITION = "_hoodie_row_position"

RowPositions = npt.NDArray[np.int64]


def with_positions(rows: pa.Table, positions: RowPositions) -> pa.Table:
    return rows.append_column(ROW_POSITION, pa.array(positions, pa.int64()))


def take_positions(rows: pa.Table) -> tuple[pa.Table, RowPositions | None]:
    """The rows without the column, and the column."""
    return take_column(rows, ROW_POSITION)


def agreed_positions(rows: pa.Table) -> pa.Table:
    """The rows without the positions of keys whose rows have several: the base file has as many rows of the key."""
    if ROW_POSITION not in rows.column_names:
        return rows
    keys, positions = as_array(rows.column(RECORD_KEY)), rows.column(ROW_POSITION).to_numpy()
    if pc.count_distinct(keys).as_py() == len(keys):
        return rows
    first = np.asarray(pc.index_in(keys, value_set=keys)).astype(np.int64)
    other = positions != positions[first]
    if not other.any():
        return rows
    several = np.zeros(len(keys), np.bool_)
    several[first[other]] = True
    at = rows.schema.get_field_index(ROW_POSITION)
    agreed = pa.array(np.where(several[first], -1, positions), pa.int64())
    return rows.set_column(at, rows.schema.field(at), agreed)
