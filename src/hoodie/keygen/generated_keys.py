"""The record keys of tables without key columns: `<instant>_<task>_<row>`, as Hudi makes them since 0.14.

A row is numbered once, by the task that takes the batch over, before the write has its instant: `_<task>_<row>`. The
instant comes before it when the row is written: each attempt of a write has keys of its own, all of one instant.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.keygen import KeyGenerator
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY

#: Gives rows their keys; pickles to executors.
MakeKeys = Callable[[pa.Table], pa.Table]

#: A key of this kind, and of Hudi's.
GENERATED = r"^\d+_\d+_\d+$"
#: What a key begins with that lacks its instant.
_UNFINISHED = "_"


@dataclass(frozen=True, slots=True)
class NewKeys:
    """Numbers the rows that are new: those to which `make_keys` gives no record key. Each task has its own count.

    Called without a task it leaves them without a key.
    """

    make_keys: MakeKeys

    def __call__(self, rows: pa.Table) -> pa.Table:
        return self.make_keys(rows)

    def of_task(self, task: int) -> MakeKeys:
        """What one task calls with its rows, one part after the other; tasks of one batch have different numbers."""
        first = 0

        def numbered(rows: pa.Table) -> pa.Table:
            nonlocal first
            keyed = self.make_keys(rows)
            keys = keyed.column(RECORD_KEY)
            numbers = first - 1 + np.cumsum(np.asarray(keys.is_null()), dtype=np.int64)
            first += keys.null_count
            new_keys = pc.binary_join_element_wise(f"{_UNFINISHED}{task}_", pc.cast(pa.array(numbers), pa.string()), "")
            at = keyed.schema.get_field_index(RECORD_KEY)
            return keyed.set_column(at, RECORD_KEY, pc.coalesce(keys, pa.chunked_array([new_keys])))

        return numbered


def with_instant(keys: pa.Array, instant: str) -> pa.Array:
    """The record keys as they are stored: those of new rows with the instant of their write in front.

    keys  string[n], no nulls
    """
    return pc.if_else(pc.starts_with(keys, _UNFINISHED), pc.binary_join_element_wise(instant, keys, ""), keys)


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """Takes the record keys that rows have, as reads give them; a row without one is a new row.

    columns    of the rows that stay, before the keys
    is_global  a row may move to another partition
    """

    columns: tuple[str, ...]
    keygen: KeyGenerator
    is_global: bool

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Raises InvalidInput on rows whose partition columns no longer say the partition that they are stored in"""
        keyed = RowKeys(self.columns, self.keygen)(rows)
        stored, keys = rows.column(PARTITION_PATH), rows.column(RECORD_KEY).cast(pa.string())
        keys = pc.if_else(pc.equal(keys, ""), pa.scalar(None, pa.string()), keys)
        moved = pc.and_(pc.is_valid(keys), pc.fill_null(pc.not_equal(stored, keyed.column(PARTITION_PATH)), True))
        if not self.is_global and (count := pc.sum(moved).as_py()):
            raise InvalidInput(
                f"{count} rows have {RECORD_KEY}, and their partition columns say another partition than their "
                f"{PARTITION_PATH}: a row keeps its partition. Delete them and insert them again, or write with a "
                f"global index; rows of another table come without {RECORD_KEY}"
            )
        return keyed.set_column(keyed.schema.get_field_index(RECORD_KEY), RECORD_KEY, keys)
