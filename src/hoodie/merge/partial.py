"""The merge rule for logs in which rows hold some columns only: `IS_PARTIAL` blocks, as MERGE of Hudi 1.x has them.

Source: docs/format/table-versions-8-9.md 9.4; tests/fixtures/hudi-1.x, `merge_into_partial`.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.errors import UnsupportedTable
from hoodie.merge.payloads import COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING, fill_combine, fill_precombine
from hoodie.merge.rules import MergeRule, Survivor


def partial_rule(rule: MergeRule, where: str) -> MergeRule:
    """The row that wins by the table's rule keeps the columns that it has, and the other one gives the rest.

    where   one of the blocks, for errors
    Raises  UnsupportedTable for a rule that is not one of the merge modes: Hudi writes such rows with these only
    """
    if rule.name not in (EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING):
        raise UnsupportedTable(
            f"{where}: a block of partial updates, which the rule {rule.name} cannot merge. "
            "Compact the table with the Hudi that wrote it."
        )
    return replace(
        rule,
        survivor=Survivor.MADE,
        precombine_with=fill_precombine,
        combine_with=fill_combine,
        leader_meta=True,
        partial=True,
    )
