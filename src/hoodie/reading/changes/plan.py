"""What changed in a table between two instants: which slices to read, which of their rows count.

Source: docs/format/table-services.md 8 (incremental queries).
"""

import datetime as dt
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.read import DEFAULT_READ, HolePolicy, IncrementalOptions, ReadSettings
from hoodie.config.table import TimelineZone
from hoodie.errors import CommitNotChecked, CorruptFile, HistoryGone, HollowCommit, InvalidInput, UnsupportedTable
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Action, Instant, format_time
from hoodie.model.meta import COMMIT_TIME
from hoodie.plan.conflict import made_of
from hoodie.reading.complete_view import complete_view, refuse_lost_commit
from hoodie.reading.filters.path_globs import matches_file
from hoodie.reading.slices.reader import SliceReader, WholeSlices, slice_reader
from hoodie.reading.table_schema import read_schema
from hoodie.storage.protocol import Storage
from hoodie.table.replacement import refuse_before
from hoodie.table.state import TableState, tell_of_missing
from hoodie.timeline.archive import commits_that_left
from hoodie.timeline.load import completion_times, moves_rows, read_commit
from hoodie.timeline.points import Point, is_instant, query_instant
from hoodie.timeline.timeline import Clock, Timeline, utc_now
from hoodie.view.incremental import Span, Touched, before, changed_slices, cleaned_groups, commit_span, moment, touched
from hoodie.view.load import load_view
from hoodie.view.published import Missing, find_missing, missing_files, published_by, snapshot_files
from hoodie.view.slices import FileSystemView, merged_slices


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The rows that count, by their commit time: after < time <= up_to; one of `exact` where that is given.

    Pickles: it goes to executors.
    """

    after: str
    up_to: str
    exact: tuple[str, ...] | None = None

    def expression(self) -> pc.Expression:
        """For rows with `_hoodie_commit_time`."""
        time = pc.field(COMMIT_TIME)
        if self.exact is not None:
            return time.isin(pa.array(self.exact, pa.string()))
        return (time > self.after) & (time <= self.up_to)

    def keep(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that count."""
        return rows.filter(self.expression())


@dataclass(frozen=True, slots=True)
class Changes:
    """Which slices hold the changes of a range, and how they are read.

    state   of the table that was looked at: the one given, or a newer one if files went away meanwhile
    view    of the partitions that the range wrote to, as of its end; of all where the whole table is read
    schema  the table's columns of now, meta columns included
    slices  those that may hold rows of the range, in their state at its end
    times   the rows of them that count
    reader  of slices with logs; None: there are none
    as_of   the last instant whose files count in the view; None: all of its timeline
    whole   the history is gone, and the whole table is read instead
    """

    state: TableState
    view: FileSystemView
    schema: pa.Schema
    slices: tuple[FileSlice, ...]
    times: CommitTimes
    reader: SliceReader | None
    as_of: str | None = None
    whole: bool = False


def plan_changes(
    state: TableState,
    begin: Point,
    end: Point | None = None,
    settings: ReadSettings = DEFAULT_READ,
    clock: Clock = utc_now,
    tries: int = 5,
) -> Changes:
    """Which slices hold the rows that changed in (begin, end], and which rows these are.

    begin, end  an instant of the table, a point in time (`query_instant`), or "earliest"; end None: the newest instant
    settings    `IncrementalOptions` and `MissingFileOptions` among others
    tries       times that the timeline may be loaded anew, when files went away that it knows nothing of
    Raises      MissingFile when a file of the range is missing that readers of today need, too, or the completed file
                of a commit; InvalidInput on a malformed or future begin or end, or begin after end; InstantNotFound;
                HistoryGone; HollowCommit; UnsupportedTable without meta columns

    Only the range's commits and the folders of the partitions that they wrote to are looked at.
    """
    if not state.config.meta_fields:
        raise UnsupportedTable(
            f"{state.config.name} stores no commit times (hoodie.populate.meta.fields=false): what changed is not known"
        )
    how = settings.incremental
    span = commits_between(state, begin, end, how, clock)
    refuse_lost_commit(state, settings, span.end)
    if how.full_scan and any(instant in span.timeline.archived for instant in span.commits):
        return _whole_table(state, span, settings)  # as Hudi does, which looks for no files then
    storage, timeline = state.storage, span.timeline
    commits = read_commits(storage, timeline, span.commits)
    span, commits = _without_log_compactions(span, commits)
    changes = touched(commits)
    then = replace(state, timeline=timeline)
    view = (
        load_view(storage, timeline, state.config, changes.partitions) if changes.groups else FileSystemView(timeline)
    )
    timeline = view.timeline  # with the history of the files there are
    absent = _missing_files(state, view, commits, changes, span)
    # What readers of today need is not cleaned: it is lost.
    needed = missing_files(replace(view, timeline=state.timeline), absent, snapshot_files()) if absent else []
    if needed:
        now = state.reload()
        if tries and now.timeline != state.timeline:
            return plan_changes(now, begin, end, settings, clock, tries - 1)
        tell_of_missing(storage, needed, settings)
    groups = {entry.group for entry in needed}
    missing = {entry.group: entry.file.name for entry in absent} | cleaned_groups(view, changes)
    if cleaned := {group: name for group, name in missing.items() if group not in groups}:
        # The changes of later commits are still available.
        earliest = max(changes.groups[group] for group in cleaned)
        problem = f"files of {len(cleaned)} file groups were cleaned away, such as {next(iter(cleaned.values()))}"
        if not how.full_scan:
            raise HistoryGone(span.begin, span.end, problem, earliest)
        return _whole_table(state, span, settings)
    slices = _matching_slices(changed_slices(view, changes, span.as_of), state, settings)
    times, schema = _times(span), _schema(state)
    plan = Changes(state, view, schema, slices, times, None, span.as_of)
    if not any(slice_.logs for slice_ in slices):
        return plan
    reader = slice_reader(then, schema, span.as_of, settings)
    # Hudi 1.x merges the versions of the range whatever the rule: a row that it makes is of these alone.
    as_hudi = timeline.layout == 2 and reader.rule.merger is None
    if not (reader.rule.takes_whole_rows or as_hudi):
        return replace(plan, reader=reader)
    first = min(span.times)
    old = {slice_.group: slice_.base for slice_ in slices if slice_.base is not None and _is_old(slice_, first)}
    return replace(
        plan,
        slices=tuple(replace(slice_, base=None) if slice_.group in old else slice_ for slice_ in slices),
        reader=replace(_reader_of_range(reader, times, timeline), whole=WholeSlices(reader.committed, old)),
    )


def read_commits(
    storage: Storage, timeline: Timeline, instants: Iterable[Instant]
) -> list[tuple[Instant, CommitMetadata]]:
    """The commits of a range. Warns CommitNotChecked of one that says nothing."""
    commits = [(instant, read_commit(storage, timeline, instant)) for instant in instants]
    for path in (timeline.path(instant) for instant, commit in commits if commit.says_nothing):
        warnings.warn(CommitNotChecked(path, "there is nothing in it, and its changes are left out"), stacklevel=3)
    return commits


def _without_log_compactions(
    span: Span, commits: list[tuple[Instant, CommitMetadata]]
) -> tuple[Span, list[tuple[Instant, CommitMetadata]]]:
    """The range behind the log compactions that it begins with, whose rows are all from before it.

    By Hudi 1.1 and later these have the time of the log compaction. Behind another commit of the range it is not known
    which of them are from that: all count, as in Hudi.
    """
    count = sum(1 for _ in takewhile(lambda commit: commit[1].operation is Operation.LOG_COMPACT, commits))
    if count:
        span = replace(span, begin=span.position(span.commits[count - 1]), commits=span.commits[count:])
    return span, commits[count:]


def _missing_files(
    state: TableState,
    view: FileSystemView,
    commits: Sequence[tuple[Instant, CommitMetadata]],
    changes: Touched,
    span: Span,
) -> list[Missing]:
    """The files of the slices to be read that are not there, by the commits of the range."""
    published = [published_by(instant, commit) for instant, commit in reversed(commits)]
    return find_missing(
        state.storage,
        state.config,
        view,
        published,
        lambda then: changed_slices(then, changes, span.as_of),
        changes.partitions,
    )


def _reader_of_range(reader: SliceReader, times: CommitTimes, timeline: Timeline) -> SliceReader:
    """A reader that merges the versions of the range only, as Hudi's does.

    A late version, which loses against a row from before the range by its ordering value, so is among the changes.
    """
    committed = replace(reader.committed, after=times.after)
    if times.exact is not None:
        shown = frozenset(times.exact)
        # Completed ones that are not of the range are passed by, as if they were pending.
        hidden = frozenset({*timeline.history, *(instant.requested for instant in timeline.instants)}) - shown
        committed = replace(committed, after="", first_active="", completed=shown, inflight=hidden)
    return replace(reader, committed=committed, stored=times.expression())


def _is_old(slice_: FileSlice, first: str) -> bool:
    """Whether a slice with logs has a base file that is older than the range: none of its rows is of it."""
    return bool(slice_.logs) and slice_.base is not None and slice_.base.instant < first


def _whole_table(state: TableState, span: Span, settings: ReadSettings) -> Changes:
    """All slices of now: of the rows that changed in the range, those that did not change again."""
    state, view = complete_view(state, None, snapshot_files(), settings)
    schema, slices = _schema(state), _matching_slices(merged_slices(view).values(), state, settings)
    reader = slice_reader(state, schema, None, settings) if any(slice_.logs for slice_ in slices) else None
    return Changes(state, view, schema, slices, _times(span), reader, whole=True)


def _times(span: Span) -> CommitTimes:
    return CommitTimes(span.begin, span.end, span.times if span.exact else None)


def _matching_slices(slices: Iterable[FileSlice], state: TableState, settings: ReadSettings) -> tuple[FileSlice, ...]:
    """The slices of which a file fits the pattern of `IncrementalOptions`."""
    pattern, root = settings.incremental.path_glob, state.storage.root
    if not pattern:
        return tuple(slices)
    return tuple(
        slice_
        for slice_ in slices
        if any(matches_file(pattern, file.path, root) for file in (slice_.base, *slice_.logs) if file is not None)
    )


def _schema(state: TableState) -> pa.Schema:
    """The columns of now: Hudi's readers give changes of any time in them."""
    return read_schema(state)


def commits_between(
    state: TableState,
    begin: Point,
    end: Point | None,
    how: IncrementalOptions,
    clock: Clock = utc_now,
    *,
    with_archived: bool = True,
) -> Span:
    """The commits of the range, those that left the timeline among them, hollow ones dealt with.

    with_archived  look for commits in the archive, or the history, where the range may reach back to them
    Raises         as `plan_changes` of a malformed range, HollowCommit; CorruptFile
    """
    timeline = state.timeline
    by_completion = how.by_completion(timeline.layout)  # from table version 8 on the timeline tells it
    completions = completion_times(state.storage, state.config, timeline) if by_completion else {}
    zone = state.config.timezone
    since = _earliest(begin, zone)
    # One that took long may have been completed after begin, and left the timeline since.
    if with_archived and (by_completion or since < timeline.first_commit):
        history = commits_that_left(state.storage, state.config, timeline, since)
        timeline = timeline.with_archived(history.commits)
        if timeline.layout == 1:
            refuse_lost_history(state, timeline, since)
        completions = {**history.completions, **completions} if by_completion else {}
    now = _end_of_range(state, clock)
    low = moment(timeline, begin, completions, now, zone)
    if low < state.config.replaced_at:  # what was before is of another table, of which no row is left
        low = f"{int(state.config.replaced_at) - 1:017d}"
    newest = max([*completions.values(), timeline.newest_commit])
    high = newest if end is None else moment(timeline, end, completions, now, zone, end=True)
    refuse_before(state.config, high, "read up to")
    if end is not None and low > high:
        raise InvalidInput(f"begin {begin!r} is after end {end!r}")
    span, hollow = commit_span(timeline, low, high, completions, _clusterings(state))
    if hollow is None:
        return span
    if how.holes is HolePolicy.BLOCK:
        return before(span, hollow)
    raise HollowCommit(
        f"the {hollow.action} {hollow.requested} is pending, and later commits are completed: a reader who goes on "
        "after those would miss its rows. Wait for it (if its writer is dead, the next write of a single writer rolls "
        f"it back); end before it; or set hoodie.read.timeline.holes.resolution.policy to {HolePolicy.BLOCK} or "
        f"{HolePolicy.USE_TRANSITION_TIME}."
    )


def refuse_lost_history(state: TableState, timeline: Timeline, since: str) -> None:
    """Raises CorruptFile where a commit was made on one since an instant that neither the timeline nor the archive has:
    numbers of archive files do not tell which are lost, as merges leave gaps between them. A commit on which another
    was made cannot be rolled back.

    timeline  with the commits that left it since then
    """
    times = {instant.requested for instant in timeline.instants}
    since = since or timeline.commits[0].requested
    for instant in timeline.commits:
        commit = read_commit(state.storage, timeline, instant)
        if lost := min((time for time in made_of(commit) if since < time and time not in times), default=""):
            raise CorruptFile(
                state.config.history_folder,
                f"commit {lost}, on which {instant.requested} was made, is neither on the timeline nor in the archive, "
                "a file of which is lost",
                advice="Restore it from a copy of the table, or read the changes since a later commit.",
            )


def _clusterings(state: TableState) -> set[str]:
    """Pending replace commits that only move rows, and those that were rolled back since the timeline was loaded."""
    return {
        instant.requested
        for instant in state.timeline.pending_replaces
        if instant.action is Action.CLUSTERING or moves_rows(state.storage, state.timeline, instant)
    }


def _earliest(point: Point, zone: TimelineZone) -> str:
    """An instant that is not later than what a begin means."""
    if is_instant(point):
        return str(point)
    try:
        return query_instant(point, zone)
    except InvalidInput:  # "earliest", "000"; what is malformed, `moment` refuses
        return ""


def _end_of_range(state: TableState, clock: Clock) -> str:
    at = clock()
    return format_time(at.astimezone(dt.UTC) if state.config.timezone is TimelineZone.UTC else at.astimezone())
