"""Reading the timeline: the folder of instants, what single instants hold, and the history of layout 2.

What decodes Avro and Parquet is imported where it is needed: names and JSON are enough to look at most timelines.

Source: docs/format/table-and-timeline.md 5.2, 5.3, 8.2 and 9.
"""

import dataclasses
import datetime as dt
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from operator import attrgetter
from typing import TYPE_CHECKING

from hoodie.config.table import TableConfig, TimelineZone
from hoodie.errors import CorruptFile, ListingStale
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State, format_time
from hoodie.model.plans import CompactionOperation, CompactionPlan, PlannedSlice, ReplacePlan
from hoodie.storage.protocol import Entry, Storage
from hoodie.timeline.layout import COMPLETES_AS, commit_content, parse_name
from hoodie.timeline.memory import Listed, Memory, unlisted
from hoodie.timeline.stopped_upgrade import UPGRADED_FOLDER, refuse_stopped_upgrade
from hoodie.timeline.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa

#: What completed commits say: of up to 32 MiB of commit files.
COMMITS: Memory[CommitMetadata] = Memory(32 * 1024 * 1024)

#: The timelines that were listed last, of layout 1.
LISTED = Listed()

_FOLDER = ".hoodie"
_HISTORY_NAME = re.compile(r"(\d+)_(\d+)_\d+\.parquet", re.ASCII)
MANIFEST = re.compile(r"manifest_(\d+)", re.ASCII)
VERSION_FILE = "_version_"


def list_timeline(storage: Storage) -> list[Entry]:
    """The listing of the folder where most tables have their timeline, made while the settings are being read that say
    which one it is: where each call waits for a network."""
    return storage.list(_FOLDER)


_PENDING = (".requested", ".inflight")
#: What plans are called that are carried out again under the same name after a rollback.
_REPEATED = ("compaction.requested", "clustering.requested", "replacecommit.requested")


def _sized(before: Timeline, stamped: Collection[Action] | None) -> Callable[[Set[str]], Set[str]]:
    """The files of a timeline whose size and time the storage is asked for: not those of instants that are not
    completed, whose sizes do not matter, nor of those that were completed before, and cannot be completed again, nor
    of actions that are not `stamped`, whose names say all."""
    same: Set[str] = before.files
    if before.repeated:
        same = {name for name in same if name.partition(".")[0] not in before.repeated}
    if stamped is None:
        return lambda names: {name for name in names - same if not name.endswith(_PENDING)}
    ends = tuple(f".{action}" for action in stamped)

    def sized(names: Set[str]) -> Set[str]:
        return {
            name
            for name in names - same
            if name.endswith(ends)
            or not name[:1].isdigit()  # a folder perhaps
            or (before.layout == 2 and "_" not in name and not name.endswith(_PENDING))  # its time is its completion
        }

    return sized


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
    names = _sized(older, stamped)
    listing = (listed, []) if listed is not None and folder == _FOLDER else storage.list_some(folder, names)
    entries, others = _shown(storage, folder, *listing)
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
    highest = {(i.requested, COMPLETES_AS.get(i.action, i.action)): i for i in older.instants[at:]}
    stamps, names, repeated = dict(older.stamps), dict[Instant, str](), set(older.repeated)
    for name, instant in instants:
        state, key = instant.state, (instant.requested, COMPLETES_AS.get(instant.action, instant.action))
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


def _shown(storage: Storage, folder: str, entries: list[Entry], others: list[str]) -> tuple[list[Entry], list[str]]:
    """The files of the timeline, those among them that this process has just completed. Raises ListingStale"""
    if storage.remote and (missing := unlisted(storage, folder, {*others, *(entry.name for entry in entries)})):
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
    """The same; None: the replace commit was rolled back since the timeline was loaded."""
    try:
        return read_replace_plan(storage, timeline, instant)
    except FileNotFoundError:
        if storage.exists(timeline.path(instant)):  # its plan alone is lost
            raise
        return None


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


# --- history of layout 2 ---


def with_history(storage: Storage, config: TableConfig, timeline: Timeline, instants: Collection[str]) -> Timeline:
    """The timeline, knowing also when `instants` completed that left it. Layout 1 keeps no such record.

    Opens only files of the history whose range may hold one of them. Raises CorruptFile
    """
    recorded_times = {instant.requested for instant in timeline.instants} | timeline.history.keys()
    times = sorted(set(instants) - recorded_times)
    if timeline.layout == 1 or not times:
        return timeline
    history = dict(timeline.history)
    for name in history_files(storage, config.history_folder):
        oldest, newest = history_span(name)
        inside = [time for time in times if oldest <= time <= newest]
        if inside:
            history |= _completions(storage, f"{config.history_folder}/{name}", inside)
    return dataclasses.replace(timeline, history=history)


def history_version(storage: Storage, folder: str) -> int | None:
    """The number of the current manifest; None: there is no history. Raises CorruptFile"""
    try:
        version = storage.read(f"{folder}/{VERSION_FILE}").decode("ascii", "replace").strip()
    except FileNotFoundError:
        numbers = [int(m[1]) for e in storage.list(folder) if not e.is_dir and (m := MANIFEST.fullmatch(e.name))]
        return max(numbers, default=None)
    if not re.fullmatch(r"\d+", version, re.ASCII):
        raise CorruptFile(f"{folder}/{VERSION_FILE}", f"{version!r} is not a version of the history")
    return int(version)


def history_span(name: str) -> tuple[str, str]:
    """The oldest and the newest instant in a file of the history, by its name.

    A name that an upgrade by Hudi 1.0 gave has the newest first.
    """
    first, last, _ = name.split("_", 2)
    return min(first, last), max(first, last)


def history_files(storage: Storage, folder: str, version: int | None = None) -> list[str]:
    """Names of the files that a manifest lists; others are unfinished or obsolete.

    version  None: the current one
    Raises   CorruptFile
    """
    return list(history_sizes(storage, folder, version))


def history_sizes(storage: Storage, folder: str, version: int | None = None) -> dict[str, int]:
    """As `history_files`, with the bytes that the manifest says; -1: it does not."""
    version = history_version(storage, folder) if version is None else version
    if version is None:
        return {}
    path = f"{folder}/manifest_{version}"
    try:
        sizes = {file["fileName"]: file.get("fileLen", -1) for file in json.loads(storage.read(path))["files"]}
    except FileNotFoundError as error:
        raise CorruptFile(f"{folder}/{VERSION_FILE}", f"names version {version}, but {path} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFile(path, f"no manifest of the history: {error!r}") from error
    for name in sizes:
        if not isinstance(name, str) or not _HISTORY_NAME.fullmatch(name):
            raise CorruptFile(path, f"{name!r} is not a file of the history")
    return sizes


def read_history(storage: Storage, path: str, columns: Sequence[str]) -> "pa.Table":
    """Some columns of a file of the history. Raises CorruptFile when it is missing, or cannot be read"""
    import pyarrow as pa  # here: only the history of layout 2 is Parquet
    import pyarrow.parquet as pq

    from hoodie.formats.parquet.columns import is_storage_fault

    try:
        with storage.open_input(path) as file:
            return pq.read_table(file, columns=columns)
    except FileNotFoundError as error:
        raise CorruptFile(path, "missing, though the history's manifest lists it") from error
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if is_storage_fault(error):
            raise
        raise CorruptFile(path, f"no file of the history: {str(error).strip()}") from error


def _completions(storage: Storage, path: str, instants: list[str]) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = read_history(storage, path, ["instantTime", "completionTime"])
    rows = rows.filter(pc.is_in(rows.column(0), pa.array(instants, pa.string())))
    times, completed = (column.to_pylist() for column in rows.columns)
    if None in times or None in completed:
        raise CorruptFile(path, "an instant without completion time")
    return dict(zip(times, completed, strict=True))
