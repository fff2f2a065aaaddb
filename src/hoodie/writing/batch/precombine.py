"""Duplicates within a batch: what a write does with rows of one key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie.errors import KeyMatchedTwice
from hoodie.merge.dedupe import combine_duplicates
from hoodie.merge.ordering import ordering_column, require_ordering
from hoodie.merge.row_action import RowAction, actions_of
from hoodie.merge.rows import Positions, key_groups, take_column
from hoodie.merge.rules import MergeRule
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.writing.batch.key_tuples import require_one_tuple
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
    Raises InvalidInput when the rule needs an ordering value that is null; KeyMatchedTwice when a key must be unique;
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
    if operation_rules.combine is Combine.UNIQUE:
        raise _key_twice(rows, groups)
    last = np.empty(int(groups.max()) + 1, np.int64)
    last[groups] = np.arange(len(groups))  # of equal indexes the last assignment stays
    return rows.take(pa.array(last))


def _require_ordering_of_merge(rows: pa.Table, ordering: Sequence[str]) -> None:
    """As `require_ordering`, of the rows that do not delete, by the ordering columns that the table has."""
    actions = actions_of(rows)
    kept = rows if actions is None else rows.filter(pa.array(actions != RowAction.DELETE))
    require_ordering(kept, [name for name in ordering if ordering_column(rows, name) is not None], RECORD_KEY)


def _key_twice(rows: pa.Table, groups: Positions) -> KeyMatchedTwice:
    counts = np.bincount(groups)
    twice = np.flatnonzero(counts > 1)
    first = np.empty(len(counts), np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]  # of equal indexes the last assignment stays
    keys = rows.column(RECORD_KEY).take(pa.array(first[twice[:_NAMED]])).to_pylist()
    return KeyMatchedTwice(len(twice), tuple(keys))
