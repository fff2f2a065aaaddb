"""The compaction that a writer does by itself, after its commit."""

from __future__ import annotations

from contextlib import suppress

from hoodie.config.compaction import CompactionOptions, Trigger, inline_compaction
from hoodie.config.options import Options
from hoodie.errors import PlanInUse
from hoodie.services.compaction.job import RunTasks
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state


def compact_inline(storage: Storage, options: Options, run: RunTasks | None = None) -> None:
    """Plan compactions after a commit, and carry them out, as `hoodie.compact.inline` and `.schedule.inline` say.

    run     as of `compact`
    Raises as `schedule_compaction` and `compact`; a plan that fails stays, for the next commit or for anybody else
    """
    how = inline_compaction(options)
    if not (how.run or how.schedule):
        return
    state = load_state(storage)
    if not state.config.merge_on_read:
        return
    pending = bool(state.timeline.pending_compactions)
    while how.run and pending:  # of a writer that died, or whose compaction failed
        pending = compact(storage, options, run=run) is not None
    further = options.read(CompactionOptions).trigger is Trigger.NUM_COMMITS_AFTER_LAST_REQUEST
    if how.schedule and pending and not further:
        return
    with suppress(PlanInUse):  # another process does it
        instant = schedule_compaction(storage, options)
        if how.run and instant is not None:
            compact(storage, options, instant, run)
