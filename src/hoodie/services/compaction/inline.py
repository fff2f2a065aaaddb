"""The compaction that a writer does by itself, after its commit."""

import logging
import warnings
from contextlib import suppress
from dataclasses import replace

from hoodie.config.compaction import CompactionOptions, Trigger
from hoodie.errors import InstantNotFound, OptionIgnored, PlanInUse, WriteConflict
from hoodie.model.instant import Action
from hoodie.plan.compaction import compaction_is_due
from hoodie.services.compaction.claim import runs_unclaimed
from hoodie.services.compaction.job import RunTasks
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.timeline import new_time, utc_now

#: Tables that were warned of.
_warned: set[str] = set()

_log = logging.getLogger("hoodie.services")


def compact_inline(
    storage: Storage,
    settings: Settings,
    run: RunTasks | None = None,
    state: TableState | None = None,
) -> bool:
    """Plan compactions after a commit, and carry them out, as `inline_compaction` says, where services run at all.

    run      as of `compact`
    state    the table after the commit; None: it is loaded
    returns  whether there are new base files
    Raises   as `schedule_compaction` and `compact`; a plan that fails stays, for the next commit or for anybody else
    """
    how = settings.compacts_after_commit()
    if not (how.run or how.schedule):  # the options say so themselves
        if how.beside:
            _warn_if_nobody_does(state or load_state(storage), settings)
        return False
    state = state or load_state(storage)
    if not state.config.merge_on_read:
        return False
    how, due = settings.compacts_after_commit(state.config), settings.compaction_of(state.config)
    if not (how.run or how.schedule) or not (how.explicit or _is_due(state, due)):
        return False
    compacted, pending = False, state.timeline.pending_compactions
    if how.run:
        for plan in pending:  # of a writer that died, or whose compaction failed
            if not runs_unclaimed(state, plan):
                compacted |= _compact(storage, settings, plan.requested, run)
    elif pending and due.trigger is not Trigger.NUM_COMMITS_AFTER_LAST_REQUEST:
        return False
    try:
        instant = schedule_compaction(storage, settings)
    except PlanInUse:  # another process does it
        return compacted
    except WriteConflict as conflict:
        if how.explicit:
            raise
        _log.info("%s: no compaction is planned: %s", state.config.name, conflict)  # after a later commit
        return compacted
    if how.run and instant is not None:
        compacted |= _compact(storage, settings, instant, run)
    return compacted


def _compact(storage: Storage, settings: Settings, instant: str, run: RunTasks | None) -> bool:
    """Run a plan, unless another process runs it or has run it; returns whether it ran."""
    with suppress(PlanInUse, InstantNotFound):
        compact(storage, settings, instant, run)
        return True
    return False


def _warn_if_nobody_does(state: TableState, settings: Settings) -> None:
    """Warn, once in a process, of a table whose compactions are left to another process, and long due."""
    if not state.config.merge_on_read or state.storage.root in _warned or state.timeline.pending_compactions:
        return
    how = settings.compaction_of(state.config)
    twice = replace(how, delta_commits=2 * how.delta_commits, delta_seconds=2 * how.delta_seconds)
    if not compaction_is_due(state.timeline, new_time(state.timeline, state.config.timezone, utc_now), twice):
        return
    _warned.add(state.storage.root)
    problem = (
        f"{state.config.name}: hoodie.datasource.compaction.async.enable=true leaves compaction to another process, "
        "and none has compacted the logs for twice as long as one is due after. `hoodie compaction run` does it; "
        "without the option the writer does it by itself"
    )
    warnings.warn(OptionIgnored(problem), stacklevel=2)


def _is_due(state: TableState, how: CompactionOptions) -> bool:
    """Whether a compaction is due, and logs were written since the last one. Planning lists the whole table."""
    time = new_time(state.timeline, state.config.timezone, utc_now)
    return compaction_is_due(state.timeline, time, how) and _logs_written(state)


def _logs_written(state: TableState) -> bool:
    """Whether a commit since the last compaction wrote logs; one that went away meanwhile counts as such."""
    since = max((instant.requested for instant in state.timeline.completed({Action.COMMIT})), default="")
    try:
        for commit, metadata in zip(reversed(state.timeline.commits), state.commits(), strict=True):
            if commit.requested <= since:
                return False
            if any(stat.log_version is not None for stat in metadata.all_stats):
                return True
    except FileNotFoundError:  # archived or rolled back since
        return True
    return False
