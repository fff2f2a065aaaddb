"""An index hears of instants that were rolled back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from hoodie.errors import IndexOutOfDate
from hoodie.index.contract import Index
from hoodie.timeline.timeline import Timeline


def notify_rolled_back(index: Index, before: Timeline, now: Timeline) -> None:
    """Tell the index of writes that were pending before, and that the beginning of another has rolled back."""
    dead = [each for each in before.pending() if now.find(each.requested, each.action) is None]
    notify_of_rollbacks(index, [each.requested for each in dead])


def notify_of_rollbacks(index: Index, instants: Iterable[str]) -> None:
    """Tell the index of instants that were rolled back. An error becomes a warning: the rollback stands."""
    for instant in instants if index.rolled_back is not None else ():
        assert index.rolled_back is not None
        try:
            index.rolled_back(instant)
        except Exception as problem:  # of whatever kind a user's own index raises
            warnings.warn(
                IndexOutOfDate(f"{instant} is rolled back, but the index {index.name} does not take that: {problem}"),
                stacklevel=2,
            )
