"""Which instants leave the active timeline for the archive.

The active timeline decides which files are read: an instant leaves it only once that makes no difference.
Pure rules; `hoodie.services.archive` does it. Source: docs/format/table-services.md 2.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hoodie.config.services import ArchiveOptions
from hoodie.model.instant import COMMITS, WRITES, Action, Instant
from hoodie.model.plans import CleanMetadata
from hoodie.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The state of cleaning, as far as archiving needs it.

    earliest   the oldest commit that cleaning would retain now; "": it counts versions
    last       what the newest completed clean did; None: there is none
    automatic  cleaning is incremental: commits that it has not processed yet stay
    """

    earliest: str = ""
    last: CleanMetadata | None = None
    automatic: bool = True


def archiving_is_due(timeline: Timeline, options: ArchiveOptions) -> bool:
    """Whether there may be anything to archive: not with fewer instants."""
    counts = [len(timeline.commits), *(len(timeline.completed({action})) for action in (Action.CLEAN, Action.ROLLBACK))]
    return max(counts) > options.max_commits


def instants_to_archive(
    timeline: Timeline,
    options: ArchiveOptions,
    cleaning: Cleaning,
    delta_commits: int | None = None,
    *,
    follow_commits: bool = False,
) -> tuple[Instant, ...]:
    """The completed instants to archive, oldest first.

    delta_commits  on a Merge-on-Read table, how many of them a compaction waits for; None: the table has no logs
    follow_commits  cleans and rollbacks go once a later commit has gone (`following`), however many there are; else
                    they are counted as commits are
    """
    keep = options.min_commits
    if cleaning.earliest:
        # A read as of the earliest retained commit needs that one, and one before it.
        keep = max(keep, 2 + sum(commit.requested > cleaning.earliest for commit in timeline.commits))
    most = options.max_commits + keep - options.min_commits
    chosen: list[Instant] = []
    for action in (Action.CLEAN, Action.ROLLBACK):
        completed = timeline.completed({action})
        if follow_commits:
            chosen += completed
        elif len(completed) > most:
            chosen += completed[: len(completed) - keep]
    commits = timeline.commits
    if len(commits) > most:
        bound = min(_bounds(timeline, options, cleaning, delta_commits), default="")
        saved = _savepoints(timeline)
        for commit in commits[: len(commits) - keep]:
            if bound and commit.requested >= bound:
                break
            if commit.requested not in saved:
                chosen.append(commit)
    return tuple(sorted(chosen))


def following(chosen: Iterable[Instant]) -> tuple[Instant, ...]:
    """Those of the chosen that go where cleans and rollbacks follow the commits: what is on the timeline is newer than
    what is in the history then, whichever action it is."""
    chosen = tuple(chosen)
    newest = max((instant.requested for instant in chosen if instant.action in COMMITS), default="")
    return tuple(instant for instant in chosen if instant.requested <= newest)


def _bounds(
    timeline: Timeline, options: ArchiveOptions, cleaning: Cleaning, delta_commits: int | None
) -> Iterator[str]:
    """Instants that stay, and with them all commits from there on."""
    commits = timeline.commits
    replaces = [instant.requested for instant in timeline.completed({Action.REPLACE_COMMIT})]
    pending = timeline.pending(WRITES | {Action.RESTORE})
    if pending:
        # One completed commit before it stays, too: files older than the timeline count as committed.
        oldest = pending[0].requested
        yield max((commit.requested for commit in commits if commit.requested < oldest), default=oldest)
    saved = _savepoints(timeline)
    if saved and options.beyond_savepoint:
        # Files of a savepoint stay, and without the replace commit after it they would be read again.
        yield from (replace for replace in replaces if replace > min(saved))
    elif saved:
        yield min(saved)
    if delta_commits is not None:
        yield from _for_compaction(timeline, delta_commits)
    # Which file groups are replaced is known from the active timeline alone: first their files must be gone.
    last = cleaning.last
    if last is None:
        yield from replaces[:1]
    elif last.earliest:
        yield from (replace for replace in replaces if replace >= last.earliest)
    else:
        yield from (replace for replace in replaces if replace > last.last_completed)
    if last is not None and cleaning.automatic and (last.earliest or last.last_completed):
        yield last.earliest or last.last_completed


def _savepoints(timeline: Timeline) -> set[str]:
    """Instants of savepoints, unfinished ones included."""
    return {instant.requested for instant in timeline.instants if instant.action is Action.SAVEPOINT}


def _for_compaction(timeline: Timeline, delta_commits: int) -> Iterator[str]:
    """The instants that count the delta commits since the last compaction, up to the number that one waits for."""
    compacted = max((i.requested for i in timeline.completed({Action.COMMIT})), default="")
    deltas = [i.requested for i in timeline.instants if i.action is Action.DELTA_COMMIT and i.requested > compacted]
    if len(deltas) >= delta_commits:
        yield deltas[-delta_commits]
    elif compacted:
        yield compacted
    elif deltas:
        yield deltas[0]
