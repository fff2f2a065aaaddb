"""Reading the timeline: the folder of instants, what single instants hold, and what this process remembers of both.

An instant's completed file does not change. It is known by the table, the instant, its size and modification time: a
compaction that was rolled back is completed again under the same name. A storage in memory has no place of its own, and
some storages keep no modification times: nothing of them is remembered. The timelines that were listed last are
remembered, too: the next listing of a table reads the names that are new.

What decodes Avro is imported where it is needed: names and JSON are enough to look at most timelines.

Source: docs/format/table-and-timeline.md 5.2, 5.3, 8.2 and 9.
"""

import dataclasses
import datetime as dt
import re
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from operator import attrgetter, itemgetter
from typing import Generic, TypeVar

from hoodie.config.table import TableConfig, TimelineZone
from hoodie.errors import CorruptFile, ListingStale
from hoodie.formats.timeline.commit_json import decode_commit
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State, format_time
from hoodie.model.plans import CompactionOperation, CompactionPlan, PlannedSlice, ReplacePlan
from hoodie.storage.protocol import Entry, Storage
from hoodie.timeline.late_listings import unlisted
from hoodie.timeline.stopped_upgrade import UPGRADED_FOLDER, refuse_stopped_upgrade
from hoodie.timeline.timeline import Timeline, comparable_action, parse_name

K = TypeVar("K")
T = TypeVar("T")
_Key = tuple[str, Instant, int, int]


#: Tables of which something is remembered beside what instants hold.
_TABLES = 8
#: The place of a timeline, and the actions whose files were asked for.
_Place = tuple[str, str, frozenset[Action] | None]
#: Values that are added before those of instants that left the timeline are forgotten: that looks through all.
_PRUNED_EVERY = 64


class _Recent(Generic[K, T]):
    """The values that were used last, as many as their keys weigh. For all threads."""

    def __init__(self, most: int = _TABLES, weight: Callable[[K], int] = lambda key: 1) -> None:
        """most  of the weights together; the newest value is remembered, whatever its own"""
        self._most, self._weight, self._total = most, weight, 0
        self._values: OrderedDict[K, T] = OrderedDict()
        self._turn = threading.Lock()

    def _get(self, key: K) -> T | None:
        with self._turn:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def _put(self, key: K, value: T) -> None:
        with self._turn:
            if key not in self._values:
                self._total += self._weight(key)
            self._values[key] = value
            self._values.move_to_end(key)
            while self._total > self._most and len(self._values) > 1:
                self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        del self._values[key]
        self._total -= self._weight(key)

    def __len__(self) -> int:
        with self._turn:
            return len(self._values)

    def forget(self) -> None:
        """Forget everything, as a new process."""
        with self._turn:
            self._values.clear()
            self._total = 0


class Memory(_Recent[_Key, T]):
    """The newest used of what files of completed instants hold, up to a number of bytes of files. For all threads.

    What is no longer on a table's timeline, as it was archived or rolled back, is forgotten now and then: a process
    that writes for months stays as small as its timelines are.
    """

    def __init__(self, most: int) -> None:
        """most  bytes of the files whose content is remembered"""
        super().__init__(most, itemgetter(2))
        self._added = 0

    def get(self, storage: Storage, timeline: Timeline, instant: Instant) -> T | None:
        """What the instant's file holds, if it is remembered."""
        key = _key(storage, timeline, instant)
        return None if key is None else self._get(key)

    def put(self, storage: Storage, timeline: Timeline, instant: Instant, value: T) -> None:
        """Remember what the instant's file holds, as the timeline has listed it."""
        key = _key(storage, timeline, instant)
        if key is None:
            return
        self._put(key, value)
        self._added += 1
        if self._added % _PRUNED_EVERY == 0:
            with self._turn:
                for key in [k for k in self._values if k[0] == storage.root and k[1] not in timeline.stamps]:
                    self._drop(key)

    def get_or_read(self, storage: Storage, timeline: Timeline, instant: Instant, read: Callable[[], T]) -> T:
        """What the instant's file holds; `read` reads it, unless it is remembered. Raises as `read`."""
        value = self.get(storage, timeline, instant)
        if value is None:
            value = read()
            self.put(storage, timeline, instant, value)
        return value


class Grown(_Recent[str, tuple[tuple[Instant, ...], tuple[tuple[int, int], ...], T]]):
    """What was made of all commits of a table, for as long as these are still on its timeline, with the same files:
    so it costs only the commits that have come since."""

    def get(self, storage: Storage, timeline: Timeline) -> tuple[int, T] | None:
        """The number of the oldest commits that something is remembered of, and what."""
        if (remembered := self._get(storage.root)) is None:
            return None
        commits, stamps, value = remembered
        count = len(commits)
        same = timeline.commits[:count] == commits and timeline.commit_stamps[:count] == stamps
        return (count, value) if same else None

    def put(self, storage: Storage, timeline: Timeline, value: T) -> None:
        """Remember what was made of all commits of a timeline."""
        stamps = timeline.commit_stamps
        if not storage.root.startswith("memory:") and all(mtime for _, mtime in stamps):
            self._put(storage.root, (timeline.commits, stamps, value))


def _key(storage: Storage, timeline: Timeline, instant: Instant) -> _Key | None:
    size, mtime = timeline.stamps.get(instant, (0, 0))
    if not mtime or storage.root.startswith("memory:"):
        return None
    return storage.root, instant, size, mtime


class ListedTimelines(_Recent[_Place, tuple[Timeline, dict[str, Entry]]]):
    """The timeline of each of a few tables, and the entries of its completed instants' files."""

    def within(
        self,
        storage: Storage,
        folder: str,
        layout: int,
        sizes: Mapping[str, Entry],
        stamped: Collection[Action] | None = None,
    ) -> Timeline:
        """The timeline as it was, if the files of its completed instants are still the same; else an empty one.

        sizes    entries of all files of completed instants, or of those of some actions
        stamped  these actions
        """
        timeline, entries = self._get(_place(storage, folder, stamped)) or (None, {})
        if timeline is None or timeline.layout != layout or not entries.items() <= sizes.items():
            return Timeline(layout=layout)
        return timeline

    def keep(
        self,
        storage: Storage,
        timeline: Timeline,
        sizes: Mapping[str, Entry],
        stamped: Collection[Action] | None = None,
    ) -> None:
        """Remember a timeline of layout 1. A storage in memory has no place of its own, and where a file has no
        modification time another one of its size looks like it."""
        entries = {name: entry for name, entry in sizes.items() if name[:1].isdigit()}
        timed = all(entry.mtime for entry in entries.values())
        if timeline.layout == 1 and timed and not storage.root.startswith("memory:"):
            self._put(_place(storage, timeline.folder, stamped), (timeline, entries))


def _place(storage: Storage, folder: str, stamped: Collection[Action] | None) -> _Place:
    return storage.root, folder, None if stamped is None else frozenset(stamped)


#: What completed commits say: of up to 32 MiB of commit files.
COMMITS: Memory[CommitMetadata] = Memory(32 * 1024 * 1024)

#: The timelines that were listed last, of layout 1.
LISTED = ListedTimelines()

_FOLDER = ".hoodie"


def list_timeline(storage: Storage) -> list[Entry]:
    """The listing of the folder where most tables have their timeline, made while the settings are being read that say
    which one it is: where each call waits for a network."""
    return storage.list(_FOLDER)


_PENDING = re.compile(r".*\.(requested|inflight)")
#: What plans are called that are carried out again under the same name after a rollback.
_REPEATED = ("compaction.requested", "clustering.requested", "replacecommit.requested")


def _named_only(before: Timeline, stamped: Collection[Action] | None) -> tuple[Set[str], re.Pattern[str]]:
    """The files of a timeline whose size and time the storage is not asked for, by name, and what further ones are
    called: those that were completed before and cannot be completed again; those of instants that are not completed,
    whose sizes do not matter, and of actions that are not `stamped`, whose names say all."""
    names: Set[str] = before.files
    if before.repeated:
        names = {name for name in before.files if name.partition(".")[0] not in before.repeated}
    if stamped is None:
        return names, _PENDING
    ends = "|".join(stamped)
    says_all = rf"(?=.*_|{_PENDING.pattern}\Z)" if before.layout == 2 else ""  # else its time is that of its completion
    return names, re.compile(rf"(?s)(?!.*\.({ends})\Z){says_all}\d.*")


#: The order of instants, without a call of theirs for each comparison.
_ORDER = attrgetter("requested", "action", "state", "completed")
_REQUESTED = attrgetter("requested")


def load_timeline(
    storage: Storage,
    config: TableConfig,
    listed: list[Entry] | None = None,
    before: Timeline | None = None,
    stamped: Collection[Action] | None = None,
) -> Timeline:
    """The active timeline, with one listing; no instant is opened. The history is not read: see `with_history`.

    listed  what `list_timeline` gave just now
    before  of the same table, loaded earlier in this call: what it says of completed instants is not asked for again
    stamped actions whose completed files' size and time are asked for, as they are read more than once; None: all
    Raises UnsupportedTable on a stopped upgrade; CorruptFile on a name that looks like an instant of an unknown kind;
           ListingStale when an instant is missing that this process had completed before
    """
    folder, layout = config.timeline_folder, config.layout
    usable = before is not None and before.layout == layout == 1 and before.folder == folder and not before.archived
    older = before if before is not None and usable else Timeline(layout=layout)
    ready = listed is not None and folder == _FOLDER
    listing = (listed or [], []) if ready else storage.list_some(folder, *_named_only(older, stamped))
    entries, others = _with_own_files(storage, folder, *listing) if storage.remote else listing
    sizes = {entry.name: entry for entry in entries if not entry.is_dir}
    files = frozenset(sizes).union(others)
    fresh = (files - older.files) | (sizes.keys() & older.files)
    if not usable:
        older = LISTED.within(storage, folder, layout, sizes, stamped)
        fresh = files - older.files
    earlier_stamps = older.stamps
    if not older.files <= files:  # some went away
        older, fresh = Timeline(layout=layout), files
    folders = frozenset([entry.name for entry in entries if entry.is_dir])
    if layout == 1 and UPGRADED_FOLDER in folders:
        refuse_stopped_upgrade(storage, files)
    timeline = _extended(older, config, fresh, sizes, earlier_stamps, folders, files)
    if not usable:
        LISTED.keep(storage, timeline, sizes, stamped)
    return timeline


def _extended(
    older: Timeline,
    config: TableConfig,
    fresh: Set[str],
    sizes: Mapping[str, Entry],
    earlier_stamps: Mapping[Instant, tuple[int, int]],
    folders: frozenset[str],
    files: frozenset[str],
) -> Timeline:
    """A timeline with files that were added to it: these are looked at, and the instants before them stay.

    fresh           names of the files
    sizes           entries of those of completed instants, save those whose size and time are known
    earlier_stamps  sizes and times that are known
    """
    layout, folder = config.layout, config.timeline_folder
    instants = [(n, instant) for n in fresh if (instant := parse_name(n, layout, folder)) is not None]
    first = min((instant.requested for _, instant in instants), default="~")
    at = bisect_left(older.instants, first, key=_REQUESTED)
    highest = {(i.requested, comparable_action(i.action)): i for i in older.instants[at:]}
    stamps, names, repeated = dict(older.stamps), dict[Instant, str](), set(older.repeated)
    for name, instant in instants:
        state, key = instant.state, (instant.requested, comparable_action(instant.action))
        if name.endswith(_REPEATED):
            repeated.add(instant.requested)
        if state is State.COMPLETED:
            if layout == 2 and not instant.completed:
                instant = dataclasses.replace(instant, completed=modified(sizes[name], config.timezone))
                names[instant] = name
            if stamp := sizes[name][1:3] if name in sizes else earlier_stamps.get(instant):
                stamps[instant] = stamp
        # A clean that two processes carried out may have been completed twice: the later one counts.
        lower = highest.get(key)
        if lower is None or (state, instant.completed) > (lower.state, lower.completed):
            highest[key] = instant
    timeline = Timeline(
        (*older.instants[:at], *sorted(highest.values(), key=_ORDER)),
        layout,
        folder,
        names=names,
        stamps=stamps,
        folders=folders,
        files=files,
        repeated=frozenset(repeated),
    )
    timeline.follow(older, at)
    return timeline


def _with_own_files(
    storage: Storage, folder: str, entries: list[Entry], others: list[str]
) -> tuple[list[Entry], list[str]]:
    """The files of the timeline, those among them that this process has just completed. Raises ListingStale"""
    if missing := unlisted(storage, folder, {*others, *(entry.name for entry in entries)}):
        entries, others = storage.list(folder), []  # made after all of them: what it lacks now, the storage lists late
        late = set(missing).intersection(unlisted(storage, folder, {entry.name for entry in entries}))
        if late:
            raise ListingStale(min(late))
    return entries, others


def modified(entry: Entry, zone: TimelineZone) -> str:
    """When a file was last written, as an instant: the completion time of what version 6 completed."""
    utc = dt.datetime.fromtimestamp(entry.mtime / 1000, dt.UTC)
    return format_time(utc if zone is TimelineZone.UTC else utc.astimezone())


def completion_times(storage: Storage, config: TableConfig, timeline: Timeline) -> dict[str, str]:
    """When each completed commit was completed, by its time. Layout 1: when its file was last written.

    Copying a table changes these times in layout 1.
    """
    if timeline.layout == 2:
        return {instant.requested: instant.completed for instant in timeline.commits}
    written = {entry.name: modified(entry, config.timezone) for entry in storage.list(timeline.folder)}
    names = {instant.requested: timeline.path(instant).rpartition("/")[2] for instant in timeline.commits}
    return {time: written[name] for time, name in names.items() if name in written}


def read_commit(storage: Storage, timeline: Timeline, instant: Instant) -> CommitMetadata:
    """What a completed commit did, or an inflight one plans; an empty file is a commit without stats.

    A completed one is read once in this process, see `COMMITS`.
    Raises FileNotFoundError when it was archived or rolled back meanwhile; CorruptFile
    """
    if instant in timeline.archived:
        return timeline.archived[instant]

    def read() -> CommitMetadata:
        path = timeline.path(instant)
        return commit_content(storage.read(path), path, instant)

    return COMMITS.get_or_read(storage, timeline, instant, read)


#: How an Avro container begins; other commit files are JSON.
AVRO_MAGIC = b"Obj\x01"


def commit_content(data: bytes, path: str, instant: Instant) -> CommitMetadata:
    """The metadata in the file of a completed or inflight write, in whichever form it is.

    path    of the file, for errors
    Raises  CorruptFile
    """
    if not data.startswith(AVRO_MAGIC):
        return decode_commit(data, path)
    from hoodie.formats.timeline.commit_avro import decode_avro_commit

    replacing = instant.state is State.COMPLETED and comparable_action(instant.action) is Action.REPLACE_COMMIT
    return decode_avro_commit(data, path, replacing)


def remember_commit(
    storage: Storage, timeline: Timeline, instant: Instant, metadata: CommitMetadata, size: int
) -> None:
    """Remember a commit that this process has just completed, so that it need not be read.

    timeline  listed after that
    size      bytes that the file was created with
    """
    if timeline.stamps.get(instant, (-1, 0))[0] == size:
        COMMITS.put(storage, timeline, instant, metadata)


def read_compaction_plan(storage: Storage, timeline: Timeline, instant: Instant) -> CompactionPlan:
    """The plan of a pending compaction or log compaction; of an archived one, the file groups that it compacted."""
    from hoodie.formats.timeline.plans import decode_compaction_plan

    if instant in timeline.archived:
        return _plan_carried_out(timeline.archived[instant])
    path = timeline.path(dataclasses.replace(instant, state=State.REQUESTED, completed=""))
    return decode_compaction_plan(storage.read(path), path)


def _plan_carried_out(commit: CommitMetadata) -> CompactionPlan:
    """The file groups that a compaction compacted; what their slices were is not known."""
    groups = (FileGroupId(part, stat.file_id) for part, stats in commit.stats.items() for stat in stats)
    return CompactionPlan(
        operations=tuple(
            CompactionOperation(group=group, base_instant="", base_file="", log_files=()) for group in groups
        )
    )


def read_replace_plan(storage: Storage, timeline: Timeline, instant: Instant) -> ReplacePlan:
    """The plan of a pending replace commit; empty unless it is a clustering or deletes partitions."""
    from hoodie.formats.timeline.plans import decode_replace_plan

    path = timeline.path(dataclasses.replace(instant, state=State.REQUESTED, completed=""))
    return decode_replace_plan(storage.read(path), path)


def still_pending(storage: Storage, timeline: Timeline, instant: Instant) -> ReplacePlan | None:
    """The same; None: the replace commit was rolled back since the timeline was loaded. Where its plan alone is lost
    nobody can carry it out: it is empty."""
    try:
        return read_replace_plan(storage, timeline, instant)
    except FileNotFoundError:
        return ReplacePlan() if storage.exists(timeline.path(instant)) else None


def clustering_inputs(storage: Storage, timeline: Timeline, time: str) -> frozenset[FileGroupId] | None:
    """The file groups that the plan of a clustering names, completed or not; None: it is no clustering, or its plan is
    lost or cannot be read."""
    from hoodie.formats.timeline.plans import decode_replace_plan

    for action in (Action.REPLACE_COMMIT, Action.CLUSTERING):  # the second in layout 2, unless version 6 planned it
        path = timeline.path(Instant(time, action, State.REQUESTED))
        with suppress(FileNotFoundError, CorruptFile):
            if (plan := decode_replace_plan(storage.read(path), path)).clustering is not None:
                return frozenset(slice_.group for slice_ in plan.slices)
    return None


def moves_rows(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """Whether a pending replace commit is a clustering; also once it was rolled back since the timeline was loaded."""
    plan = still_pending(storage, timeline, instant)
    return plan is None or plan.clustering is not None


def pending_plans(storage: Storage, timeline: Timeline) -> dict[Instant, tuple[PlannedSlice, ...]]:
    """The file slices that pending compactions, log compactions and clusterings are to read."""
    plans: dict[Instant, tuple[PlannedSlice, ...]] = {
        instant: read_compaction_plan(storage, timeline, instant).operations
        for instant in timeline.pending({Action.COMPACTION, Action.LOG_COMPACTION})
    }
    for instant in timeline.pending_replaces:
        if (plan := still_pending(storage, timeline, instant)) is not None and plan.clustering is not None:
            plans[instant] = plan.slices
    return plans
