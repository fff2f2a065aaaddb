"""Duplicates within a batch: what a write does with rows of one key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie.merge.dedupe import combine_duplicates
from hoodie.merge.rows import key_groups
from hoodie.merge.rules import MergeRule
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.writing.operations import Combine, OperationRules

KEY = (PARTITION_PATH, RECORD_KEY)


def combine(rows: pa.Table, rule: MergeRule, operation_rules: OperationRules, key: Sequence[str] = KEY) -> pa.Table:
    """The rows that are written of a batch, by the operation's word on duplicates.

    key     what makes a key: with a global index the record key alone
    Raises InvalidInput when the rule needs an ordering value that is null
    """
    if operation_rules.combine is Combine.ALL or rows.num_rows == 0:
        return rows
    if operation_rules.combine is Combine.ORDERED:
        return combine_duplicates(rows, key, rule)
    groups = key_groups(rows, key)
    if groups is None:
        return rows
    last = np.empty(int(groups.max()) + 1, np.int64)
    last[groups] = np.arange(len(groups))  # of equal indexes the last assignment stays
    return rows.take(pa.array(last))
