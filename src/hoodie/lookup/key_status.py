"""What is known of each row of a batch once its key is tagged, as a column that the row takes along to its task."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.rows import as_array
from hoodie.model.meta import RECORD_KEY

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
    if KEY_STATUS not in rows.column_names:
        return rows, None
    return rows.drop_columns([KEY_STATUS]), rows.column(KEY_STATUS).to_numpy().astype(np.int8)


def statuses_of_keys(keys: pa.Array, rows: pa.Table, statuses: KeyStatuses) -> KeyStatuses:
    """The statuses of keys that are left of rows; rows of one key have one status.

    keys  string[k], each among the rows' record keys
    """
    found = pc.index_in(keys, value_set=as_array(rows.column(RECORD_KEY)))
    taken: KeyStatuses = statuses[found.to_numpy(zero_copy_only=False).astype(np.int64)]
    return taken
