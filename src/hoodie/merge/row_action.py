"""What a row of a merge is for, as a column that it takes along to its task: a batch may hold rows to write and keys to
delete at once."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
