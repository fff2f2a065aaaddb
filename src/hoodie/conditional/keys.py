"""The keys of rows that a merge gives. By a join: those of the rows of the table that they stand for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.conditional.shape import TableShape
from hoodie.errors import InvalidInput
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.keygen import KeyGenerator
from hoodie.merge.rows import ROW_ACTION, RowAction
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY

#: In place of a `RowAction`: the row's key does not say which row of the table its columns equal.
IN_DOUBT = -1

#: The key of the row of the table; null where the row is a new one.
OLD_KEY, OLD_PATH = "_hoodie_old_key", "_hoodie_old_path"


@dataclass(frozen=True, slots=True)
class MergedKeys:
    """Gives each row the key of the row of the table that it stands for, else that of its values; pickles.

    columns    that stay
    sets_key   clauses assign columns that record keys are made of; sets_path: partition paths
    is_global  a row may move to another partition
    """

    columns: tuple[str, ...]
    keygen: KeyGenerator
    sets_key: bool
    sets_path: bool
    is_global: bool

    @classmethod
    def of(
        cls, columns: Sequence[str], keygen: KeyGenerator, shape: TableShape, assigned: Collection[str]
    ) -> MergedKeys:
        """assigned  columns that clauses set"""

        def is_set(names: Sequence[str]) -> bool:
            return not {name.partition(".")[0] for name in names}.isdisjoint(assigned)

        return cls((*columns, ROW_ACTION), keygen, is_set(shape.keys), is_set(shape.partitions), shape.is_global)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Raises InvalidInput on rows that get another key or, with an index that is not global, another partition"""
        keyed = RowKeys(self.columns, self.keygen)(rows)
        key, path = keyed[RECORD_KEY], keyed[PARTITION_PATH]
        old_key, old_path = rows[OLD_KEY], rows[OLD_PATH]
        is_new, deleted = pc.is_null(old_key), pc.equal(rows[ROW_ACTION], int(RowAction.DELETE))
        fixed = pc.or_(is_new, deleted)
        if self.sets_key and _any_changed(key, old_key, fixed):
            raise InvalidInput(
                "the merge gives rows another record key, which an update cannot do: delete and insert them"
            )
        from_values = is_new
        if self.sets_path and self.is_global:
            from_values = pc.or_(is_new, pc.invert(deleted))
        elif self.sets_path and _any_changed(path, old_path, fixed):
            raise InvalidInput(
                "the merge gives rows another partition, which an update cannot do without a global index: name the "
                "partition columns in its condition, delete and insert the rows, or write with a global index"
            )
        keys = [pc.if_else(is_new, key, old_key), pc.if_else(from_values, path, old_path)]
        return pa.Table.from_arrays([*keyed.columns[:-2], *keys], keyed.schema.names)


def _any_changed(now: pa.ChunkedArray, before: pa.ChunkedArray, fixed: pa.ChunkedArray) -> bool:
    changed = pc.fill_null(pc.not_equal(now, before), True)
    return bool(pc.any(pc.and_(changed, pc.invert(fixed))).as_py())


@dataclass(frozen=True, slots=True)
class CertainKeys:
    """Gives rows their key, but for those in doubt: these have none, and end the write before it begins; pickles."""

    make_keys: RowKeys

    def __call__(self, rows: pa.Table) -> pa.Table:
        keyed = self.make_keys(rows)
        key = pc.if_else(pc.equal(rows[ROW_ACTION], IN_DOUBT), pa.scalar(None, pa.string()), keyed[RECORD_KEY])
        return keyed.set_column(keyed.schema.get_field_index(RECORD_KEY), RECORD_KEY, key)
