"""What is known of each row of a batch once its key is tagged, as a column that the row takes along to its task."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.merge.rows import take_column

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
