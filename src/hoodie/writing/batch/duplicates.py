"""Rows of one key: which of a batch are written, and whether those are whose key the table has.

Rows of two different keys may have one record key, where parts of a compound key hold what separates them: these are
refused.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput, KeyMatchedTwice
from hoodie.keygen.arrow_keys import column_at, type_at
from hoodie.keygen.keygen import EMPTY_KEY_PART, NULL_KEY_PART
from hoodie.merge.fold import fold
from hoodie.merge.ordering import ordering_column, require_ordering
from hoodie.merge.rows import Positions, RowAction, actions_of, as_array, key_groups, take_column
from hoodie.merge.rules import MergeRule
from hoodie.model.meta import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie.writing.operations import Combine, OperationRules

KEY = (PARTITION_PATH, RECORD_KEY)

#: int64, no nulls: where a staged row was in its batch. Staging, shuffles and joins order rows otherwise, and of
#: versions that are alike the one that came last wins.
ARRIVAL = "_hoodie_arrival"

_NAMED = 5  # keys that an error names


def in_order_of_arrival(rows: pa.Table) -> pa.Table:
    """The rows as they came, without the column that says so."""
    rows, arrivals = take_column(rows, ARRIVAL)
    if arrivals is None or (np.diff(arrivals) >= 0).all():
        return rows
    return rows.take(pa.array(np.argsort(arrivals, kind="stable")))


def combine(rows: pa.Table, rule: MergeRule, operation_rules: OperationRules, key: Sequence[str] = KEY) -> pa.Table:
    """The rows that are written of a batch, by the operation's word on duplicates.

    key     what makes a key: with a global index the record key alone
    Raises InvalidInput when the rule needs an ordering value that is null; KeyMatchedTwice when a key must be unique,
    and its rows do more than delete it;
    as `require_one_tuple`
    """
    require_one_tuple(rows, operation_rules.key_columns, key)
    rows = in_order_of_arrival(rows)
    if operation_rules.needs_ordering:
        _require_ordering_of_merge(rows, rule.ordering)
    if operation_rules.combine is Combine.ALL or rows.num_rows == 0:
        return rows
    if operation_rules.combine is Combine.ORDERED:
        return combine_duplicates(rows, key, rule)
    groups = key_groups(rows, key)
    if groups is None:
        return rows
    if operation_rules.combine in (Combine.UNIQUE, Combine.STORED):
        rows = _deleted_once(rows, groups, all_delete=operation_rules.delete)
        groups = key_groups(rows, key)
        if groups is None:
            return rows
        raise _key_twice(rows, groups, stored=operation_rules.combine is Combine.STORED)
    last = np.empty(int(groups.max()) + 1, np.int64)
    last[groups] = np.arange(len(groups))  # of equal indexes the last assignment stays
    return rows.take(pa.array(last))


def _require_ordering_of_merge(rows: pa.Table, ordering: Sequence[str]) -> None:
    """As `require_ordering`, of the rows that do not delete, by the ordering columns that the table has."""
    actions = actions_of(rows)
    live_rows = rows if actions is None else rows.filter(pa.array(actions != RowAction.DELETE))
    require_ordering(live_rows, [name for name in ordering if ordering_column(rows, name) is not None], RECORD_KEY)


def _deleted_once(rows: pa.Table, groups: Positions, *, all_delete: bool) -> pa.Table:
    """The rows without those that delete a key that an earlier one deletes: what comes of them is the same."""
    actions = actions_of(rows)
    if actions is None and not all_delete:
        return rows
    deletes = np.arange(rows.num_rows) if actions is None else np.flatnonzero(actions == RowAction.DELETE)
    _, first = np.unique(groups[deletes], return_index=True)
    mask = np.ones(rows.num_rows, np.bool_)
    mask[np.delete(deletes, first)] = False
    return rows.filter(pa.array(mask))


def _key_twice(rows: pa.Table, groups: Positions, *, stored: bool) -> KeyMatchedTwice:
    counts = np.bincount(groups)
    twice = np.flatnonzero(counts > 1)
    first = np.empty(len(counts), np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]  # of equal indexes the last assignment stays
    keys = rows.column(RECORD_KEY).take(pa.array(first[twice[:_NAMED]])).to_pylist()
    return KeyMatchedTwice(len(twice), tuple(keys), stored)


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
        f"({_row_text(one, columns)}) and ({_row_text(other, columns)}) have one record key, {one[RECORD_KEY]!r}, and "
        "would overwrite each other. Nothing was written: "
        "keep ',' and ':' together with the names of key columns, and the texts "
        f"{EMPTY_KEY_PART} and {NULL_KEY_PART}, out of key columns, or give the table a key of one column."
    )


def _row_text(row: Mapping[str, object], columns: Sequence[str]) -> str:
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


def combine_duplicates(batch: pa.Table, key_columns: Sequence[str], rule: MergeRule) -> pa.Table:
    """The batch with each key once, versions of a key folded by `rule.precombine` in the order of the batch.

    Where ordering values are equal, the later row wins (FirstValue: the earlier). Rows that mark a delete stay rows:
    they still have to meet the stored one. Rows stand in the order in which their keys first occur; a batch without
    duplicates is returned itself.

    key_columns  what makes a key, the record key last: partition path and record key, or the record key alone under
                 a global index
    """
    if not batch.num_rows:
        return batch
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
