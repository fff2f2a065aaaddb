"""What a query of changes covers: the commits in (begin, end], the file groups they changed, the rows they wrote.

Pure rules; `hoodie.reading.changes.plan` reads what they need. Source: docs/format/table-services.md 8.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from hoodie.config.table import TimelineZone
from hoodie.errors import InstantNotFound, InvalidInput
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.timeline.points import Point, is_instant, query_instant
from hoodie.timeline.timeline import Timeline
from hoodie.view.slices import FileSystemView, GroupFiles, merged_slices

#: Words for points: the beginning of all time, which Hudi's users write as "000", too; and the newest commit.
EARLIEST, LATEST = "earliest", "latest"

#: Commits of these write no new rows: rewritten rows keep their older commit times. Not so those of a log compaction by
#: Hudi 1.1, whose rows are its own.
_WRITES_NO_ROWS = frozenset({Operation.COMPACT, Operation.INDEX, Operation.DELETE, Operation.DELETE_PREPPED})


@dataclass(frozen=True, slots=True)
class Span:
    """The commits of a range, oldest first in the order that the range is about.

    timeline  what a reader at the end of the range sees; with `as_of`, the last instant whose files count
    exact     rows count by exactly these commit times, not by all between the first and the last: in a range by
              completion, other commits may lie between them
    completions  when commits were completed, by their time, in a range by completion; else empty
    """

    begin: str
    end: str
    timeline: Timeline
    commits: tuple[Instant, ...] = ()
    as_of: str | None = None
    exact: bool = False
    completions: Mapping[str, str] = field(default_factory=dict)

    def position(self, commit: Instant) -> str:
        """Where a commit stands in the order that the range is about."""
        return self.completions.get(commit.requested, commit.requested)

    @property
    def times(self) -> tuple[str, ...]:
        """Commit times of its rows, ascending."""
        return tuple(sorted(instant.requested for instant in self.commits))


def is_word(point: Point, word: str) -> bool:
    """Whether a point is `EARLIEST` or `LATEST`, in any case, as in Hudi."""
    return isinstance(point, str) and point.strip().lower() == word


def is_earliest(point: Point) -> bool:
    """Whether a point is before all commits."""
    return is_word(point, EARLIEST) or (isinstance(point, str) and re.fullmatch("0+", point) is not None)


def moment(
    timeline: Timeline,
    point: Point,
    completions: Mapping[str, str],
    now: str,
    zone: TimelineZone = TimelineZone.UTC,
    *,
    end: bool = False,
) -> str:
    """The position of `begin` or `end` in the order of a range: "" for the beginning of all time.

    point        an instant of the timeline; a point in time, which an instant that the table does not have is, too;
                 "earliest", "000"
    completions  when commits were completed, where the range is about that; else empty
    now          in the table's zone
    zone         the table's
    end          it is the end of the range, which may be in the future
    Raises       InvalidInput when it is of another form, or a begin in the future; InstantNotFound when the instant is
                 pending
    """
    if is_earliest(point):
        return ""
    if isinstance(point, str) and is_instant(point):
        if point in completions.values():
            return point
        same = [instant for instant in timeline.instants if instant.requested == point]
        if any(instant.state is State.COMPLETED for instant in same):
            return completions.get(point, point)
        if same:
            raise _pending_error(timeline, same[0])
    try:
        # As text an instant without milliseconds is before all of its second.
        position = str(point) if is_instant(point) else query_instant(point, zone)
    except InvalidInput as problem:
        raise InvalidInput(
            f"{point!r} is neither an instant nor a point in time, nor {EARLIEST!r}: {problem}"
        ) from None
    if not end and position > max(now, timeline.newest):
        raise InvalidInput(f"{point!r} is in the future: it is {now} in the table's time zone")
    return position


def _pending_error(timeline: Timeline, instant: Instant) -> InstantNotFound:
    before = max((i.requested for i in timeline.commits if i.requested < instant.requested), default="")
    return InstantNotFound(
        f"{instant.requested} is a {instant.action} that is pending. "
        f"{f'The last commit before it is {before}. ' if before else 'No commit is before it. '}"
        "A range begins and ends at completed commits, or at points in time."
    )


def commit_span(
    timeline: Timeline, begin: str, end: str, completions: Mapping[str, str], clustering: Collection[str] = ()
) -> tuple[Span, Instant | None]:
    """The commits with begin < position <= end, and a pending commit that makes the range unsafe, if there is one.

    begin, end   positions as `moment` gives them
    completions  when commits were completed, where that is their position; empty: their own time is
    clustering   times of pending replace commits that only move rows
    returns      a hollow commit is pending while a later one up to `end` is completed: a reader that continues from
                 `end` would never see its rows
    """
    if completions:
        commits = [i for i in timeline.commits if begin < completions.get(i.requested, i.requested) <= end]
        commits.sort(key=lambda instant: completions.get(instant.requested, instant.requested))
        then = _as_completed_by(timeline, end, completions)
        return Span(begin, end, then, tuple(commits), None, True, completions), None
    commits = [instant for instant in timeline.commits if instant.requested <= end]
    last = max((instant.requested for instant in commits), default="")
    pending = (i for i in timeline.pending(COMMITS) if i.requested < last and i.requested not in clustering)
    inside = tuple(instant for instant in commits if instant.requested > begin)
    return Span(begin, end, timeline, inside, last), next(pending, None)


def before(covered: Span, hollow: Instant) -> Span:
    """The part of a range that lies before a pending commit."""
    inside = tuple(instant for instant in covered.commits if instant.requested < hollow.requested)
    last = max((i.requested for i in covered.timeline.commits if i.requested < hollow.requested), default="")
    return replace(covered, end=last, commits=inside, as_of=last)


def _as_completed_by(timeline: Timeline, end: str, completions: Mapping[str, str]) -> Timeline:
    """The timeline as a reader saw it at that time: what was completed later is still pending."""
    compacts = any(i.action is Action.DELTA_COMMIT for i in timeline.instants)

    def then(instant: Instant) -> Instant:
        publishes = instant.state is State.COMPLETED and instant.action in COMMITS
        if not publishes or completions.get(instant.requested, instant.requested) <= end:
            return instant
        # On a table with logs, a commit is a compaction: the slice that it opened is joined to the one before. Other
        # later actions do not affect a reader of the earlier files, nor does a compaction that was planned later.
        opens = compacts and instant.action is Action.COMMIT and instant.requested <= end
        action = Action.COMPACTION if opens else Action.COMMIT
        return Instant(instant.requested, action, State.INFLIGHT)

    instants = tuple(sorted(map(then, timeline.instants)))
    remaining = frozenset(instants)
    return replace(
        timeline,
        instants=instants,
        names={i: n for i, n in timeline.names.items() if i in remaining},
        archived={then(instant): commit for instant, commit in timeline.archived.items()},
    )


@dataclass(frozen=True, slots=True)
class Touched:
    """The file groups that may hold rows that commits of a range wrote.

    groups  with the last commit of the range that wrote rows there
    last    with the last statistics of the group in a commit of the range: its newest file at that time
    """

    groups: Mapping[FileGroupId, str] = field(default_factory=dict)
    last: Mapping[FileGroupId, WriteStat] = field(default_factory=dict)

    @property
    def partitions(self) -> set[str]:
        return {group.partition for group in self.groups}


def touched(commits: Iterable[tuple[Instant, CommitMetadata]]) -> Touched:
    """What the commits of a range did, in its order.

    Compaction, and deletes by key, write no rows: groups that only they changed are left out. A clustering moves rows
    to new groups: these count when one of those that they replace does.
    """
    groups: dict[FileGroupId, str] = {}
    last: dict[FileGroupId, WriteStat] = {}
    for instant, commit in commits:
        moved = {partition for partition, ids in commit.replaced.items() if _any_in(groups, partition, ids)}
        for partition, stats in commit.stats.items():
            if commit.operation is Operation.CLUSTER:
                writes = partition in moved
            else:
                writes = commit.operation not in _WRITES_NO_ROWS
            for stat in stats:
                if stat.path is not None:
                    group = FileGroupId(partition, stat.file_id)
                    last[group] = stat
                    if writes:
                        groups[group] = instant.requested
        for partition, ids in commit.replaced.items():
            for file_id in ids:
                groups.pop(FileGroupId(partition, file_id), None)
    return Touched(groups, {group: last[group] for group in groups})


def _any_in(groups: Mapping[FileGroupId, str], partition: str, ids: Iterable[str]) -> bool:
    return any(FileGroupId(partition, file_id) in groups for file_id in ids)


def changed_slices(view: FileSystemView, changes: Touched, as_of: str | None) -> list[FileSlice]:
    """The slices that the touched groups had at the end of the range, by partition path and file id."""
    return [slice_ for group, slice_ in merged_slices(view, as_of).items() if group in changes.groups]


def cleaned_groups(view: FileSystemView, changes: Touched) -> dict[FileGroupId, str]:
    """The touched groups whose slice was removed by cleaning: the first missing file of each."""
    missing_files = {}
    for group, stat in changes.last.items():
        files = view.groups.get(group, GroupFiles())
        # Hudi counts the change logs among the logs of a slice.
        names = {base.name for base in files.bases} | {log.name for log in (*files.logs, *files.changes)}
        assert stat.path is not None  # `touched` checked it
        needed = (stat.path.rpartition("/")[2], stat.base_file or "", *stat.log_files)
        missing_file = next((name for name in needed if name and name not in names), None)
        if missing_file is not None:
            missing_files[group] = missing_file
    return missing_files
