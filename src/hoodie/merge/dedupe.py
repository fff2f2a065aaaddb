"""Which of the rows of one batch with the same key is written: `hoodie.combine.before.upsert` and its kin."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.merge.fold import fold
from hoodie.merge.ordering import require_ordering
from hoodie.merge.rows import key_groups
from hoodie.merge.rules import MergeRule, Survivor
from hoodie.model.meta import IS_DELETED


def combine_duplicates(batch: pa.Table, key_columns: Sequence[str], rule: MergeRule) -> pa.Table:
    """The batch with each key once, versions of a key folded by `rule.precombine` in the order of the batch.

    Of equal ordering values the later row wins (FirstValue: the earlier). Rows that mark a delete stay rows: they
    still have to meet the stored one. Rows stand in the order in which their keys first occur; a batch without
    duplicates is returned itself.

    key_columns  what makes a key, the record key last: partition path and record key, or the record key alone under
                 a global index
    Raises       InvalidInput when an ordering field is absent or null, also in rows whose key is unique: written to a
                 log they could not be read back
    """
    if not batch.num_rows:
        return batch
    if rule.survivor is not Survivor.OLDEST:
        require_ordering(batch, rule.ordering, key_columns[-1])
    groups = key_groups(batch, key_columns)
    if groups is None:
        return batch
    folded = fold(batch, groups, None, rule)
    if folded.deleted is None:
        return folded.rows
    return _flagged(folded.rows, pa.array(folded.deleted), rule)


def _flagged(rows: pa.Table, deleted: pa.Array, rule: MergeRule) -> pa.Table:
    """Rows that a merger declared deleted, marked as such: the only way in which a batch can carry it."""
    if IS_DELETED not in rows.column_names:
        raise InvalidInput(
            f"merger {rule.name} deletes keys that occur several times in the batch, which has no column {IS_DELETED!r}"
            " to say so. Add the column (boolean), or have the merger keep such rows."
        )
    position = rows.column_names.index(IS_DELETED)
    return rows.set_column(
        position, rows.schema.field(position), pc.or_kleene(rows.column(position).fill_null(False), deleted)
    )
