"""Archiving: old instants move off the active timeline, so that a write does not cost more as history grows.

First the archive file is written, whole; then the instants are removed, their pending states before the completed
ones: an instant without its completed file would look like a failed write. An interrupted archiver runs again, and the
newest archive file shows what need not be written again. Source: docs/format/table-services.md 2.
"""

import datetime as dt
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from hoodie.commit.batch_ids import batches_of, newest_batches
from hoodie.commit.markers import delete_markers
from hoodie.config.services import ArchiveOptions
from hoodie.config.table import PROPERTIES_FOLDER, TableConfig, TimelineZone
from hoodie.display.render import Displayed, DisplayedList
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, count_text, summary
from hoodie.formats.timeline.archive_log import commit_record, encode_entries
from hoodie.formats.timeline.commit_json import decode_commit
from hoodie.formats.timeline.plans import COMPACTION_PLAN, REPLACE_PLAN
from hoodie.formats.timeline.services import CLEAN_METADATA, CLEAN_PLAN, ROLLBACK_METADATA
from hoodie.locks import Lock
from hoodie.metadata.table import open_metadata
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.instant import COMMITS, Action, Instant, State, format_time
from hoodie.plan.archive import Cleaning, archiving_is_due, following, instants_to_archive
from hoodie.plan.clean import earliest_retained
from hoodie.services.clean import last_clean, service_state
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Entry, Storage, join, rewrite
from hoodie.table.settings import Settings
from hoodie.table.state import KEEPS_SCHEMA, TableState, load_state
from hoodie.timeline.archive import ArchivedEntry, archive_files, archive_name, archived_among, archived_commits
from hoodie.timeline.history import HistoryEntry, add_to_history
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Clock, comparable_action, new_time, parse_name, utc_now
from hoodie.view.load import data_files, list_partitions, older_file, replaced_by
from hoodie.view.published import all_published, find_missing, snapshot_files

_log = logging.getLogger("hoodie.services")

_MARKERS = ".hoodie/.temp"


@dataclass(frozen=True, slots=True, repr=False)
class ArchiveResult(Displayed):
    """Which instants were archived, or (dry run) would be.

    instants  oldest first
    file      the archive file that was written, relative to the base path; "" for none
    dry_run   nothing was changed
    """

    instants: tuple[Instant, ...] = ()
    file: str = ""
    dry_run: bool = False

    def __str__(self) -> str:
        verb = "would archive" if self.dry_run else "archived"
        where = f" to {self.file}" if self.file else ""
        lines = [f"{verb} {len(self.instants)} instants{where}"]
        lines += [f"  {instant.requested} {instant.action}" for instant in self.instants[:20]]
        lines += [f"  and {len(self.instants) - 20} more"] if len(self.instants) > 20 else []
        return "\n".join(lines)

    def _summary(self) -> ResultSummary:
        rows = ((instant.requested, str(instant.action)) for instant in self.instants)
        return summary(str(self).partition("\n")[0], ("instant", "action"), rows, len(self.instants), compact=True)


class CommitHistory(DisplayedList[tuple[Instant, CommitMetadata]]):
    """Completed commits with what they did, newest first."""

    __slots__ = ()

    def _summary(self) -> ResultSummary:
        rows = (
            (i.requested, str(i.action), str(m.operation), m.inserted, m.updated, m.deleted, m.files, m.bytes_written)
            for i, m in self
        )
        return summary(count_text(len(self), "commit"), _HISTORY_COLUMNS, rows, len(self))


_HISTORY_COLUMNS = (
    *(ShownColumn(name) for name in ("instant", "action", "operation")),
    *(ShownColumn(name, ColumnKind.COUNT) for name in ("inserted", "updated", "deleted", "files")),
    ShownColumn("written", ColumnKind.BYTES),
)


@dataclass(frozen=True, slots=True)
class _StateFile:
    """A file of the active timeline."""

    instant: Instant
    path: str
    changed: str  # when it was written, as an instant time


@typed_errors()
def archive(
    storage: Storage,
    settings: Settings,
    *,
    dry_run: bool = False,
    state: TableState | None = None,
    clock: Clock = utc_now,
) -> ArchiveResult:
    """Move instants that are no longer needed on the active timeline to the archive, when there are enough of them.

    dry_run    only say which
    state      the table's, by `service_state`, if it was loaded just now
    Raises     WriteConflict while a restore is pending; LockTimeout, LockLost; UnsupportedTable; CorruptFile when an
               instant cannot be read; InvalidOption
    """
    started, how = monotonic(), settings.archiving
    state = state or service_state(storage, settings, dry_run)
    if not archiving_is_due(state.timeline, how):
        return ArchiveResult(dry_run=dry_run)
    with settings.writers.lock_on(storage) as lock:
        if lock.real:
            state = load_state(storage)
        chosen = choose(state, settings, clock)
        if dry_run or not chosen:
            return ArchiveResult(chosen, dry_run=dry_run)
        path = move_to_archive(state, chosen, how, lock)
    _log.info(
        "%s: %d instants archived to %s in %.3f s",
        state.config.name,
        len(chosen),
        path or "a file that has them",
        monotonic() - started,
    )
    return ArchiveResult(chosen, path)


def move_to_archive(
    state: TableState, chosen: Iterable[Instant], how: ArchiveOptions, lock: Lock, again: ArchivedEntry | None = None
) -> str:
    """Write instants to the archive, then remove them from the timeline.

    again    an entry that the archive has, to be in the new file, too: the newest file with commits has the newest
    returns  the archive file that was written; "" when the newest one has them
    """
    files = _state_files(state, chosen)
    lock.check()
    if state.layout.version.layout == 2:
        entries, everywhere = _history_entries(state, files), state.config.was_upgraded
        path = add_to_history(state.storage, state.config.history_folder, entries, everywhere=everywhere)
        lock.check()
        _remove(state.storage, files)
        return path
    path = _write(state, files, how.batch, again)
    lock.check()
    _remove(state.storage, files)
    if merged := merge_archive_files(state.storage, state.config, how):
        _log.info("%s: archive files merged into %s", state.config.name, merged)
        path = path and (path if state.storage.exists(path) else merged)
    return path


def choose(state: TableState, settings: Settings, clock: Clock = utc_now) -> tuple[Instant, ...]:
    """The completed instants that may leave the active timeline, oldest first."""
    cleans, timeline = settings.cleaning_of(state.config), state.timeline
    earliest = earliest_retained(timeline, cleans, new_time(state.timeline, state.config.timezone, clock))
    cleaning = Cleaning(
        earliest=earliest.requested if earliest else "",
        last=last_clean(state),
        automatic=cleans.automatic and settings.services.enabled,
    )
    compaction = settings.compaction_of(state.config)
    delta_commits = compaction.delta_commits if state.config.merge_on_read else None
    follow = state.layout.version.layout == 2
    how = settings.archiving
    chosen = instants_to_archive(timeline, how, cleaning, delta_commits, follow_commits=follow)
    rules = (_schema_bound, replaced_bound, _missing_bound, _batch_bound)
    bounds = (rule(state, chosen) for rule in rules)
    bound = min((b for b in bounds if b), default="")
    followed = _followed_bound(state)
    going = tuple(
        i
        for i in chosen
        if not (bound and i.action in COMMITS and i.requested >= bound)
        and not (followed is not None and i.requested >= followed)
    )
    return following(going) if follow else going


def _followed_bound(state: TableState) -> str | None:
    """The newest compaction of the metadata table, "" when there was none; None: the table has no metadata table.

    Readers take a log block of it only while its instant is on the table's timeline. What was compacted needs none.
    """
    metadata = open_metadata(state.storage, state.config, state.timeline)
    if metadata is None:
        return None
    return max((instant.requested for instant in metadata.timeline.completed({Action.COMMIT})), default="")


def _schema_bound(state: TableState, chosen: Iterable[Instant]) -> str:
    """The newest commit that has the table's columns, if it is among the chosen; "" when a later one has."""
    going = {instant for instant in chosen if instant.action in COMMITS}
    if not going:
        return ""
    for instant in reversed(state.timeline.commits):
        metadata = read_commit(state.storage, state.timeline, instant)
        if metadata.schema and metadata.operation not in KEEPS_SCHEMA:
            return instant.requested if instant in going else ""
    return ""


def _batch_bound(state: TableState, chosen: Iterable[Instant]) -> str:
    """The oldest of the chosen that knows a batch which no commit that stays does: it would be written twice."""
    going = [instant for instant in chosen if instant.action in COMMITS]
    maps = [(instant, batches) for instant in going if (batches := batches_of(state, instant))]
    if not maps:
        return ""
    stays = newest_batches(state, all_read=False, among=set(state.timeline.commits).difference(going))
    lost = (i.requested for i, batches in maps if any(stays.get(name, -1) < n for name, n in batches.items()))
    return next(lost, "")


def replaced_bound(state: TableState, chosen: Iterable[Instant]) -> str:
    """The oldest of the chosen whose replaced file groups still have files: without it they would be read again; or
    whose file is empty, where no plan says what it replaced, and older files are there."""

    def files_of(partitions: Collection[str]) -> list[BaseFile | LogFile]:
        return data_files(list_partitions(state.storage, partitions))

    for instant in chosen:
        if instant.action is not Action.REPLACE_COMMIT:
            continue
        commit = replaced_by(state.storage, state.timeline, instant, files_of)
        if commit is None:
            remains = _has_older(state, instant)
        else:
            replaced = commit.replaced
            remains = any(file.group.file_id in replaced.get(file.group.partition, ()) for file in files_of(replaced))
        if remains:
            return instant.requested
    return ""


def _has_older(state: TableState, instant: Instant) -> bool:
    """Whether a committed file of the table is older than an instant. As a rule the first folder has one: the table is
    not listed as a whole."""
    folders = [""]
    while folders:
        entries = state.storage.list(folder := folders.pop())
        if older_file(state.timeline, instant, data_files({folder: entries})):
            return True
        folders += [join(folder, entry.name) for entry in entries if entry.is_dir and entry.name != PROPERTIES_FOLDER]
    return False


def _missing_bound(state: TableState, chosen: Iterable[Instant]) -> str:
    """The oldest of the chosen that published a missing file: without it the loss would go unnoticed, and readers would
    give fewer or older rows. Lists the partitions that the chosen wrote to."""
    going = {instant for instant in chosen if instant.action in COMMITS}
    commits = [commit for commit in all_published(state.storage, state.timeline) if commit.instant in going]
    partitions = {partition for commit in commits for partition in commit.files}
    if not partitions:
        return ""
    view = state.view(partitions)
    lost = find_missing(state.storage, state.config, view, commits, snapshot_files(), partitions)
    return min((missing.instant.requested for missing in lost), default="")


def history(state: TableState, *, archived: bool = False) -> CommitHistory:
    """Completed commits with what they did, newest first.

    archived  also those that left the active timeline. One that is being archived is listed once. Raises CorruptFile
    """
    active = CommitHistory(zip(reversed(state.timeline.commits), state.commits(), strict=True))
    if not archived:
        return active
    identities = {_identity(instant) for instant, _ in active}
    archived_pairs = [
        pair for pair in archived_commits(state.storage, state.config) if _identity(pair[0]) not in identities
    ]
    return CommitHistory(sorted([*active, *archived_pairs], key=lambda pair: pair[0], reverse=True))


# --- files ---


def _state_files(state: TableState, chosen: Iterable[Instant]) -> list[_StateFile]:
    """All files of the chosen instants, by instant, requested before completed."""
    folder, identities = state.timeline.folder, {_identity(instant) for instant in chosen}
    files = []
    for entry in state.storage.list(folder):
        instant = None if entry.is_dir else parse_name(entry.name, state.timeline.layout, folder)
        if instant is not None and _identity(instant) in identities:
            files.append(_StateFile(instant, join(folder, entry.name), _changed_text(state, entry)))
    return sorted(files, key=lambda file: (file.instant.requested, file.instant.state))


def _identity(instant: Instant) -> tuple[str, Action]:
    return instant.requested, comparable_action(instant.action)


def _changed_text(state: TableState, entry: Entry) -> str:
    utc = dt.datetime.fromtimestamp(entry.mtime / 1000, dt.UTC)
    return format_time(utc if state.config.timezone is TimelineZone.UTC else utc.astimezone())


def _write(state: TableState, files: Sequence[_StateFile], batch: int, again: ArchivedEntry | None) -> str:
    """Write the content of timeline files into a new archive file, except what the newest one has already.

    returns  its path; "" when there is nothing to add
    """
    folder, storage = state.config.history_folder, state.storage
    while True:
        archived = archive_files(storage, state.config)
        newest = next(iter(archived.values()), "")
        archived_instants = archived_among(storage, newest, {file.instant for file in files}) if newest else set()
        missing = [file for file in files if file.instant not in archived_instants]
        if not missing:
            return ""
        path = join(folder, archive_name(max(archived, default=0) + 1))
        try:
            entries = [_entry(storage, file) for file in missing] + ([] if again is None else [_copy(again)])
            storage.create_new(path, encode_entries(entries, batch))
        except FileExistsError:  # another process archives: skip what it wrote
            continue
        return path


def _remove(storage: Storage, files: Iterable[_StateFile]) -> None:
    """Remove archived files from the timeline, those of completed instants last."""
    marked = {entry.name for entry in storage.list(_MARKERS)}
    for time in sorted({file.instant.requested for file in files} & marked):
        delete_markers(storage, time)
    for file in sorted(files, key=lambda file: file.instant.state is State.COMPLETED):
        storage.delete(file.path)


# --- entries ---


def _history_entries(state: TableState, files: Iterable[_StateFile]) -> list[HistoryEntry]:
    """What the history of layout 2 holds of files of the timeline."""
    by_identity: dict[tuple[str, Action], list[_StateFile]] = {}
    for file in files:
        by_identity.setdefault(_identity(file.instant), []).append(file)
    entries = []
    for parts in by_identity.values():
        newest = max((part for part in parts if part.instant.state is State.COMPLETED), key=lambda part: part.instant)
        pending = [part for part in parts if part.instant.state is not State.COMPLETED]
        plans = {(part.instant.state, part.instant.action): state.storage.read(part.path) for part in pending}
        instant = newest.instant if newest.instant.completed else replace(newest.instant, completed=newest.changed)
        entries.append(HistoryEntry(instant, state.storage.read(newest.path), plans))
    return entries


def _entry(storage: Storage, file: _StateFile) -> dict[str, object]:
    """The archive's record of a file of the timeline."""
    content = _content(file.instant, storage.read(file.path), file.path)
    return _record(file.instant, file.changed) | ({} if content is None else {content[0]: content[1]})


def _copy(entry: ArchivedEntry) -> dict[str, object]:
    return _record(entry.instant, entry.changed) | ({entry.column: entry.record} if entry.column else {})


def _record(instant: Instant, changed: str) -> dict[str, object]:
    return {
        "commitTime": instant.requested,
        "actionType": instant.action.value,
        "version": 1,
        "actionState": instant.state.name,
        "stateTransitionTime": changed,
    }


def _content(instant: Instant, data: bytes, path: str) -> tuple[str, Mapping[str, object]] | None:
    """The entry's field for a file's content, and the content; None for a file without one, or whose is not kept.

    Raises CorruptFile
    """
    action, completed = instant.action, instant.state is State.COMPLETED
    if action in (Action.COMMIT, Action.DELTA_COMMIT):
        return "hoodieCommitMetadata", commit_record(decode_commit(data, path))
    if not data:
        return None
    if action is Action.REPLACE_COMMIT:
        if instant.state is State.REQUESTED:
            return "hoodieRequestedReplaceMetadata", REPLACE_PLAN.parse(data, path)
        record = commit_record(decode_commit(data, path), replacing=completed)
        return ("hoodieReplaceCommitMetadata" if completed else "HoodieInflightReplaceMetadata"), record
    if action is Action.CLEAN:
        if completed:
            return "hoodieCleanMetadata", CLEAN_METADATA.parse(data, path)
        return "hoodieCleanerPlan", CLEAN_PLAN.parse(data, path)
    if action is Action.ROLLBACK and completed:
        return "hoodieRollbackMetadata", ROLLBACK_METADATA.parse(data, path)
    if action in (Action.COMPACTION, Action.LOG_COMPACTION) and instant.state is State.REQUESTED:
        return "hoodieCompactionPlan", COMPACTION_PLAN.parse(data, path)
    return None


def merge_archive_files(storage: Storage, config: TableConfig, how: ArchiveOptions) -> str:
    """Merge the oldest files that are next to each other and alike in size, if there are enough of them, so that the
    archive of a long life is a few dozen files.

    An archive file is a run of blocks, so that several are one when their bytes stand one behind the other. The run
    takes the name of its newest file, whole, before the others go: a reader sees entries twice for a moment, and none
    is ever missing.
    returns  the path of the merged file; "" when there is nothing to do
    """
    if not how.merge:
        return ""
    files = dict(reversed(archive_files(storage, config).items()))  # the oldest first
    if len(files) < how.merge_files:
        return ""
    sizes = {entry.name: entry.size for entry in storage.list(config.history_folder)}
    chosen = _run({path: sizes.get(path.rpartition("/")[2], 0) for path in files.values()}, how)
    if not chosen:
        return ""
    try:
        data = [storage.read(path) for path in chosen]
    except FileNotFoundError:  # another process has merged them
        return ""
    rewrite(storage, chosen[-1], b"".join(data))
    for path in chosen[:-1]:
        storage.discard(path)
    return chosen[-1]


def _run(sizes: Mapping[str, int], how: ArchiveOptions) -> list[str]:
    """The oldest run of as many files as are merged at once, below the limit together, none of them ten times another:
    so each byte is written again a few times only, however long the table lives."""
    paths = list(sizes)
    for start in range(len(paths) - how.merge_files + 1):
        run = paths[start : start + how.merge_files]
        of_run = [sizes[path] for path in run]
        if sum(of_run) <= how.merge_limit and max(of_run) < 10 * max(min(of_run), 1):
            return run
    return []
