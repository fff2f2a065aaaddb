"""What happened to a table: its instants, and what commits wrote."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from hoodie.facts.look import look
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.storage.protocol import Storage
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class InstantLine:
    """An instant, and what it wrote if it is a completed commit.

    state       REQUESTED, INFLIGHT or COMPLETED
    completed   completion time; "" where the table's version does not record it
    rows        in the files that it wrote, copied ones included
    bytes       that it wrote
    partitions  that it wrote to or replaced files in
    archived    it left the active timeline
    """

    instant: str
    action: str
    state: str
    completed: str = ""
    operation: str = ""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    rows: int = 0
    bytes: int = 0
    files: int = 0
    partitions: int = 0
    archived: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """Instants, newest first.

    more  how many more there are, which --limit left out
    """

    instants: tuple[InstantLine, ...]
    more: int


def line_of(storage: Storage, timeline: Timeline, instant: Instant) -> InstantLine:
    """An instant of the active timeline; a completed commit is read."""
    if instant.state is not State.COMPLETED or instant.action not in COMMITS:
        return instant_line(instant, None)
    with suppress(FileNotFoundError):  # archived or rolled back since the timeline was listed
        return instant_line(instant, read_commit(storage, timeline, instant))
    return instant_line(instant, None)


def instant_line(instant: Instant, metadata: CommitMetadata | None, *, archived: bool = False) -> InstantLine:
    if metadata is None:
        return InstantLine(instant.requested, instant.action.value, instant.state.name, instant.completed)
    return InstantLine(
        instant=instant.requested,
        action=instant.action.value,
        state=instant.state.name,
        completed=instant.completed,
        operation=metadata.operation.value,
        inserted=metadata.inserted,
        updated=metadata.updated,
        deleted=metadata.deleted,
        rows=metadata.rows_written,
        bytes=metadata.bytes_written,
        files=len({stat.path for stat in metadata.all_stats if stat.path}),
        partitions=len({*metadata.stats, *metadata.replaced}),
        archived=archived,
    )


def newest_instants(
    storage: Storage,
    limit: int,
    *,
    actions: Sequence[str] = (),
    every: bool = False,
    pending: bool = False,
    archived: bool = False,
) -> History:
    """The newest instants of a table.

    limit     so many; 0: all. Only these are read
    actions   words of actions, such as "clean"; (): those that publish rows
    every     of all actions, in all states
    pending   those that are not completed
    archived  completed commits that left the active timeline, too. The whole archive is read
    """
    config, timeline = look(storage)
    chosen = frozenset(map(Action, actions)) or (frozenset(Action) if every or pending else COMMITS)
    active = [i for i in reversed(timeline.instants) if i.action in chosen]
    if pending or not (every or actions):
        active = [i for i in active if (i.state is State.COMPLETED) is not pending]
    old_commits: list[tuple[Instant, CommitMetadata]] = []
    if archived and not pending:
        from hoodie.timeline.archive import archived_commits

        times = {instant.requested for instant in timeline.commits}
        old_commits = [pair for pair in archived_commits(storage, config) if pair[0].requested not in times]
        old_commits = [pair for pair in old_commits if pair[0].action in chosen]
    count = limit or len(active) + len(old_commits)
    lines = [line_of(storage, timeline, instant) for instant in active[:count]]
    lines += [instant_line(*pair, archived=True) for pair in old_commits[: count - len(lines)]]
    return History(tuple(lines), len(active) + len(old_commits) - len(lines))
