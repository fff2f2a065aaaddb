"""Which instants of a table its metadata table lacks: from both timelines alone.

Pure rules. Source: docs/format/metadata-table.md 5 and 7.2; pinned by tests/unit/metadata/test_metadata_table.py.
"""

from hoodie.model.instant import Action, Instant, State
from hoodie.timeline.timeline import Timeline

#: Actions on the data table that a metadata table follows with an instant of the same time.
_FOLLOWED = frozenset(
    {Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLEAN, Action.ROLLBACK, Action.RESTORE}
)


def missing_instants(own: Timeline, data: Timeline) -> tuple[str, ...]:
    """Instants that are completed on the data table and that its metadata table lacks, oldest first.

    Each such action has its instant there, unless it is older than all there are: these were archived, or the metadata
    table was built after it. A restore by Hudi has instants of other times there. From table version 8 on a rollback of
    what it has nothing of may have none (Hudi 1.1), and the first instant's time does not tell when the metadata table
    was built: its completion does.

    own   of the metadata table, with one instant at least; loaded after `data`
    data  of the data table
    """
    followed = {instant.requested for instant in completed_of(own)} | of_restores(own, data).keys()
    first = own.instants[0]
    lacking = [
        instant
        for instant in data.completed(_FOLLOWED)
        if instant.requested not in followed
        and instant.requested >= first.requested
        and not (instant.completed and instant.completed <= first.completed)
    ]
    if lacking and data.layout == 2 and not _has_undone(own, data):
        lacking = [instant for instant in lacking if instant.action is not Action.ROLLBACK]
    return tuple(instant.requested for instant in lacking)


def _has_undone(own: Timeline, data: Timeline) -> bool:
    """Whether it has an action that the data table no longer has. What is compacted here may be archived there."""
    times = {instant.requested for instant in data.instants}
    times = times.union(*of_restores(own, data).values())
    compacted = max((instant.requested for instant in own.completed({Action.COMMIT})), default="")
    later = (instant.requested for instant in own.completed({Action.DELTA_COMMIT}))
    return any(max(compacted, min(times)) < time < max(times) and time not in times for time in later)


def of_restores(own: Timeline, data: Timeline) -> dict[str, list[str]]:
    """Restores of the data table for which Hudi did something in the metadata table at other times, with these: between
    their beginning and end; in layout 1, which does not tell the end, before the next instant of the data table."""
    times: dict[str, list[str]] = {}
    for restore in data.completed({Action.RESTORE}):
        begin = restore.requested
        end = restore.completed or min((i.requested for i in data.instants if i.requested > begin), default="~")
        within = [i for i in completed_of(own) if begin < i.requested and (i.completed or i.requested) < end]
        at = next((number for number, i in enumerate(within) if i.action is Action.RESTORE), None)
        if at is not None:  # its commit comes next
            times[begin] = [i.requested for i in (within if restore.completed else within[: at + 2])]
    return times


def completed_of(own: Timeline) -> list[Instant]:
    return [instant for instant in own.instants if instant.state is State.COMPLETED]
