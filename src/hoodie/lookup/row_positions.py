"""Where the rows of a batch are in the base file of their group, as a column that they take along to their task."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.rows import as_array, take_column
from hoodie.model.meta import RECORD_KEY

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
