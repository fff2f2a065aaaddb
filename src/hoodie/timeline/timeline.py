"""The timeline as a value: its instants and the names of their files, which of them a reader sees, and the time of the
next.

Source: docs/format/table-and-timeline.md 5.2, 5.3, 7 and 9.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

from hoodie.config.table import PROPERTIES_FOLDER, TableConfig, TimelineZone
from hoodie.display.short import Short
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import COMMITS, WRITES, Action, Instant, State, format_time, parse_time
from hoodie.model.table_version import VERSIONS, TableVersion

Clock = Callable[[], dt.datetime]

_REQUESTED = attrgetter("requested")
_STAMPS = "stamps"  # among what is derived of a timeline
_NO_STAMP = (0, 0)


_NAMES = {
    1: re.compile(r"(?P<time>\d+)(?P<action>\.\w+)(?P<state>\.\D+)?", re.ASCII),
    2: re.compile(r"(?P<time>\d+)(?:_(?P<completed>\d+))?(?P<action>\.\w+)(?P<state>\.\D+)?", re.ASCII),
}
# What Hudi writes on HDFS before it renames: the name with a UUID behind.
_HALF_WRITTEN = re.compile(r"\d+(_\d+)?\.[a-z.]+\.[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
#: The action under which a pending one completes.
COMPLETES_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}


#: What an instant is whose name ends so. A commit has an end of its own while it is inflight, a savepoint no request.
_KINDS: dict[tuple[str, str | None], tuple[Action, State]] = {
    **{(f".{action}", ".requested"): (action, State.REQUESTED) for action in set(Action) - {Action.SAVEPOINT}},
    **{(f".{action}", ".inflight"): (action, State.INFLIGHT) for action in set(Action) - {Action.COMMIT}},
    **{(f".{action}", None): (action, State.COMPLETED) for action in set(Action) - COMPLETES_AS.keys()},
    (".inflight", None): (Action.COMMIT, State.INFLIGHT),
}


def comparable_action(action: Action) -> Action:
    """The word that all states of an instant share."""
    return COMPLETES_AS.get(action, action)


def instant_file_name(instant: Instant, layout: int = 1) -> str:
    """The name of an instant's file, without folder.

    layout  1: `<time>.<action>`; 2: a completed one is `<time>_<completed>.<action>`
    """
    if instant.state is State.COMPLETED:
        time = f"{instant.requested}_{instant.completed}" if layout == 2 else instant.requested
        return f"{time}.{comparable_action(instant.action)}"
    if instant.action is Action.COMMIT and instant.state is State.INFLIGHT:
        return f"{instant.requested}.inflight"
    return f"{instant.requested}.{instant.action}.{instant.state.name.lower()}"


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """Where the instants of a table lie and what their files are called: what a writer needs of them. Pickles.

    version  of the table
    folder   of the active timeline, relative to the base path
    zone     in which completion times are given
    """

    version: TableVersion = VERSIONS[6]
    folder: str = PROPERTIES_FOLDER
    zone: TimelineZone = TimelineZone.UTC

    @property
    def stamps_completion(self) -> bool:
        """Whether the name of a completed instant says when that was; commits are Avro then, else JSON."""
        return self.version.layout == 2

    def path(self, instant: Instant) -> str:
        """The path of an instant's file, relative to the base path; of a completed one with its completion time."""
        return f"{self.folder}/{instant_file_name(instant, self.version.layout)}"

    def parse(self, name: str) -> Instant | None:
        """The instant of a file in the folder. Raises and returns as `parse_name`."""
        return parse_name(name, self.version.layout, self.folder)


#: The layout of table version 6.
LAYOUT_1 = TimelineLayout()


def layout_of(config: TableConfig) -> TimelineLayout:
    """The layout of a table's timeline."""
    return TimelineLayout(VERSIONS[config.version], config.timeline_folder, config.timezone)


#: Names of timeline files whose instants are remembered, of all tables.
_REMEMBERED = 2_000


def parse_name(name: str, layout: int, folder: str) -> Instant | None:
    """The instant of a file in the timeline's folder; None for a known companion.

    Companions: names that do not start with a digit (hoodie.properties, checksums, temporary files) and Hudi's half
    written ones on HDFS. A completed instant of layout 2 whose name has no completion time keeps it "".

    Raises CorruptFile on any other name: what looks like an instant must not be ignored.
    """
    if not name[:1].isdigit():
        return None
    instant = _parsed(name, layout)
    if instant is None:
        if _HALF_WRITTEN.fullmatch(name):
            return None
        raise CorruptFile(
            f"{folder}/{name}",
            "looks like an instant, but its kind is unknown",
            advice="If it does not belong to the table, move it away; else read it with the library that wrote it.",
        )
    return instant


@lru_cache(_REMEMBERED)
def _parsed(name: str, layout: int) -> Instant | None:
    """A writer lists its timeline several times a commit, and all names but a few are those of the listing before."""
    match = _NAMES[layout].fullmatch(name)
    kind = match and _KINDS.get((match["action"], match["state"]))
    completed = (layout == 2 and match and match["completed"]) or ""
    if not (match and kind) or (completed and kind[1] is not State.COMPLETED):
        return None
    return Instant(match["time"], *kind, completed)


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def moment_of(instant: str, zone: TimelineZone) -> dt.datetime:
    """The moment of an instant time of a table in a zone, in UTC."""
    moment = parse_time(instant)
    return moment.replace(tzinfo=dt.UTC) if zone is TimelineZone.UTC else moment.astimezone(dt.UTC)


def new_time(timeline: Timeline, zone: TimelineZone, clock: Clock) -> str:
    """An instant time after all on the timeline, in the table's zone, even when the clock was set back."""
    return time_after(timeline.newest, zone, clock)


def time_after(newest: str, zone: TimelineZone, clock: Clock) -> str:
    """An instant time after another, "" for none, in the table's zone, even when the clock was set back.

    Raises UnsupportedTable when there is none: `newest` is the end of the year 9999, or no date
    """
    now = clock()
    candidate = format_time((now if zone is TimelineZone.UTC else now.astimezone()).replace(tzinfo=None))
    if candidate > newest:
        return candidate
    try:
        return format_time(parse_time(newest) + dt.timedelta(milliseconds=1))
    except (OverflowError, ValueError) as error:
        raise UnsupportedTable(
            f"the timeline holds instant {newest}, and no instant time comes after it ({error}). A writer's clock was "
            "wrong, or the instant was made by hand: every new instant must be greater. Read the table and write "
            "its rows into a new one."
        ) from error


@dataclass(frozen=True, slots=True, repr=False)
class Visible(Short):
    """The completed writes and pending compactions up to some instant: what decides whether a data file counts.

    completed  instants of completed writes, in the active timeline or (layout 2) the history
    open       instants of pending compactions: their slices take logs, their base files do not count yet
    pending    instants of other pending writes of the active timeline
    first      the oldest of `completed` and `open` in the active timeline from which on none is archived; "" when there
               is none
    archived   whether an instant before `first` counts as completed: up to table version 6, where the archive is not
               consulted
    """

    completed: frozenset[str]
    open: frozenset[str]
    pending: frozenset[str]
    first: str
    archived: bool

    def committed(self, base_instant: str) -> bool:
        """Whether a file slice of that base instant counts."""
        if base_instant in self.completed or base_instant in self.open:
            return True
        # Files of a pending write are never read, even when it is older than all that is completed.
        return self.archived and base_instant < self.first and base_instant not in self.pending


@dataclass(frozen=True, repr=False)
class Timeline(Short):
    """The active timeline.

    instants  the highest state of each instant, ordered by time; a completed compaction is a COMMIT
    layout    1: up to table version 6; 2: from version 8, completed instants carry their completion time
    folder    of the files, relative to the base path
    names     file names of completed instants that do not follow from the instant (layout 2: written by version 6)
    history   layout 2: completion time of instants that left the active timeline, as far as loaded
    stamps    size and modification time of completed instants' files, as the listing had them
    archived  what commits did whose files left the timeline, and which are among `instants` all the same: those that a
              range was asked about (`with_archived`)
    folders   names of the folders that lie beside the instants, as the listing showed them
    files     names of the files, those of earlier states included, as the listing showed them
    repeated  times whose instants may be completed once more after a rollback, under the same name
    """

    instants: tuple[Instant, ...] = ()
    layout: int = 1
    folder: str = ".hoodie"
    names: Mapping[Instant, str] = field(default_factory=dict)
    history: Mapping[str, str] = field(default_factory=dict)
    stamps: Mapping[Instant, tuple[int, int]] = field(default_factory=dict, compare=False)
    archived: Mapping[Instant, CommitMetadata] = field(default_factory=dict, compare=False, repr=False)
    folders: frozenset[str] = field(default=frozenset(), compare=False)
    files: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    repeated: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    #: What was derived from these fields: a write asks for its commits some thirty times.
    _known: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def follow(self, older: Timeline, same: int) -> None:
        """Derive what was derived of an earlier timeline from that, whose first instants are these, files included.

        same  number of these instants
        """
        first = self.instants[same].requested if same < len(self.instants) else "~"
        for key, chosen in older._known.items():
            if isinstance(key, tuple):
                before = chosen[: bisect_left(chosen, first, key=_REQUESTED)]
                self._known[key] = (*before, *self._chosen_from(same, *key))
        if _STAMPS in older._known:
            count = bisect_left(older.commits, first, key=_REQUESTED)
            later = (self.stamps.get(instant, _NO_STAMP) for instant in self.commits[count:])
            self._known[_STAMPS] = (*older._known[_STAMPS][:count], *later)

    def path(self, instant: Instant) -> str:
        """The path of an instant's file, relative to the base path."""
        return f"{self.folder}/{self.names.get(instant) or instant_file_name(instant, self.layout)}"

    def lacks_folder(self, name: str) -> bool:
        """Whether the listing has shown that a folder does not exist; later layouts have their instants elsewhere."""
        return self.layout == 1 and name not in self.folders

    def completed(self, actions: Iterable[Action] = COMMITS) -> tuple[Instant, ...]:
        """Completed instants, oldest first; by default those that publish rows."""
        return self._chosen(frozenset(actions), True)

    def pending(self, actions: Iterable[Action] = WRITES) -> tuple[Instant, ...]:
        """Requested and inflight instants, oldest first; by default those that write data files."""
        return self._chosen(frozenset(actions), False)

    def _chosen(self, actions: frozenset[Action], completed: bool) -> tuple[Instant, ...]:
        if (actions, completed) not in self._known:
            self._known[actions, completed] = tuple(self._chosen_from(0, actions, completed))
        instants: tuple[Instant, ...] = self._known[actions, completed]
        return instants

    def _chosen_from(self, position: int, actions: frozenset[Action], completed: bool) -> Iterator[Instant]:
        instants = self.instants[position:]
        return (i for i in instants if i.action in actions and (i.state is State.COMPLETED) is completed)

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed commits, delta commits and replace commits, oldest first."""
        return self.completed()

    @cached_property
    def commit_stamps(self) -> tuple[tuple[int, int], ...]:
        """Size and modification time of the files of `commits`; (0, 0) where the listing had none."""
        if _STAMPS not in self._known:
            self._known[_STAMPS] = tuple(self.stamps.get(instant, _NO_STAMP) for instant in self.commits)
        stamps: tuple[tuple[int, int], ...] = self._known[_STAMPS]
        return stamps

    @property
    def first_commit(self) -> str:
        """Time of the commit from which on none is archived; "" when there is none. Commits of savepoints stay, and
        those between and after them may be archived: they count only where there are no others."""
        return self._oldest(instant.requested for instant in self.commits)

    def _oldest(self, times: Iterable[str]) -> str:
        unique_times = set(times)
        saved = {instant.requested for instant in self.instants if instant.action is Action.SAVEPOINT}
        return min(unique_times - saved, default="") or max(unique_times, default="")

    @cached_property
    def pending_compactions(self) -> tuple[Instant, ...]:
        return self.pending({Action.COMPACTION})

    @cached_property
    def pending_replaces(self) -> tuple[Instant, ...]:
        """Pending replace commits, clusterings among them."""
        return self.pending({Action.REPLACE_COMMIT, Action.CLUSTERING})

    @property
    def newest_commit(self) -> str:
        """Time of the newest completed commit; "" when there is none."""
        return max((instant.requested for instant in self.commits), default="")

    @property
    def newest(self) -> str:
        """The greatest time of any instant, completion times included; "" when there is none. New ones come after."""
        if self.layout == 1:  # no completion times, and they are in order
            return self.instants[-1].requested if self.instants else ""
        return max((max(instant.requested, instant.completed) for instant in self.instants), default="")

    def find(self, time: str, action: Action) -> Instant | None:
        """The instant of a time whose action is, or completes as, the given one."""
        comparable = comparable_action(action)
        same = (i for i in self.instants if i.requested == time and comparable_action(i.action) is comparable)
        return next(same, None)

    def with_archived(self, commits: Mapping[Instant, CommitMetadata]) -> Timeline:
        """The timeline as if these commits were still on it."""
        if not commits:
            return self
        return replace(self, instants=tuple(sorted({*self.instants, *commits})), archived=dict(commits))

    def still(self, now: Timeline) -> Timeline:
        """This timeline of some time ago, without the instants that were rolled back or archived since.

        now  the timeline as it is now; what is new in it is left out
        """
        keys = {(instant.requested, comparable_action(instant.action)) for instant in now.instants}
        return replace(
            self,
            instants=tuple(i for i in self.instants if (i.requested, comparable_action(i.action)) in keys),
            files=frozenset(),  # no listing shows it like this
        )

    def completions(self) -> dict[str, str]:
        """Layout 2: completion times of all known writes, by instant."""
        return {**self.history, **{instant.requested: instant.completed for instant in self.commits}}

    def visible(self, as_of: str | None = None) -> Visible:
        """What counts for a reader at `as_of` (inclusive; a request time in both layouts); None: now."""
        if as_of is not None:
            return self._visible(as_of)
        if Visible not in self._known:
            self._known[Visible] = self._visible(None)
        visible: Visible = self._known[Visible]
        return visible

    def _visible(self, as_of: str | None) -> Visible:
        def cut(times: Iterable[str]) -> frozenset[str]:
            return frozenset(time for time in times if as_of is None or time <= as_of)

        completed = cut(instant.requested for instant in self.commits)
        compactions = cut(instant.requested for instant in self.pending_compactions)
        return Visible(
            completed=completed | cut(self.history),
            open=compactions,
            pending=frozenset(i.requested for i in self.pending()) - compactions,
            first=self._oldest(completed | compactions),
            archived=self.layout == 1,
        )
