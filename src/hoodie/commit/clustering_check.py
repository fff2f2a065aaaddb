"""File groups that a pending clustering is to replace: what is written to them is lost once the plan is carried out.

Hudi plans and runs clusterings. Its writers refuse rows of such a group, and so do ours: docs/design/concurrency.md.
"""

import logging
from collections.abc import Collection

from hoodie.commit.lost import refuse_lost
from hoodie.commit.rollback_executor import roll_back
from hoodie.commit.transaction import Transaction
from hoodie.errors import WriteConflict
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Instant
from hoodie.table.state import TableState
from hoodie.timeline.load import still_pending
from hoodie.timeline.timeline import Clock, new_time, utc_now

_log = logging.getLogger("hoodie.write")

#: Option with which a write rolls the plan back that it meets.
WITHDRAW = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"


def clustered_groups(state: TableState) -> dict[FileGroupId, Instant]:
    """The file groups of pending clusterings, each with the clustering. Reads nothing where none is pending."""
    plans = ((i, still_pending(state.storage, state.timeline, i)) for i in state.timeline.pending_replaces)
    clusterings = ((i, plan.clustering) for i, plan in plans if plan is not None and plan.clustering)
    return {s.group: instant for instant, plan in clusterings for group in plan.groups for s in group.slices}


def keep_clear(
    transaction: Transaction, groups: Collection[FileGroupId], *, withdraw: bool, clock: Clock = utc_now
) -> None:
    """See that no pending clustering is to replace file groups that a write changes or takes away.

    withdraw  roll such clusterings back, their plans included
    Raises    WriteConflict naming the clusterings and file groups; or when one was carried out at this moment
    """
    planned = clustered_groups(transaction.state)
    both = sorted(group for group in groups if group in planned)
    if not both:
        return
    times = sorted({planned[group].requested for group in both})
    if not withdraw:
        names = ", ".join(f"{group.partition}/{group.file_id}".lstrip("/") for group in both[:5])
        more = f" and {len(both) - 5} more" if len(both) > 5 else ""
        raise WriteConflict(
            f"the pending clustering {', '.join(times)} is to replace file group{'s' if len(both) > 1 else ''} {names}"
            f"{more}, which this {transaction.operation} changes: its rows would be lost. Nothing is published. Have "
            f"Hudi run the clustering (CALL run_clustering), then write again; or write with {WITHDRAW}=true, which "
            "rolls the plan back first"
        )
    state, writers = transaction.state, transaction.writers
    with writers.lock_on(state.storage):
        for time in times:
            now = state.reload()
            pending = next((i for i in now.timeline.pending_replaces if i.requested == time), None)
            if pending is None:
                continue  # withdrawn meanwhile; one that was carried out is found before this write is published
            refuse_lost(now, pending)
            at = new_time(now.timeline, now.config.timezone, clock)
            listing = not writers.rollback.using_markers
            roll_back(state.storage, pending, at, listing=listing, withdraw=True, layout=state.layout)
            _log.info("%s: rolled the pending clustering %s back", state.config.name, time)
