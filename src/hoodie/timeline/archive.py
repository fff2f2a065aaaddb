"""Instants that left the active timeline: read from the archive of layout 1, or the history of layout 2.

Nothing here is part of a write: the archive is read for `history`, and by the archiver itself.
Source: docs/format/table-and-timeline.md 8.
"""

import datetime as dt
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile
from hoodie.formats.avro.container import read_one
from hoodie.formats.timeline import schemas
from hoodie.formats.timeline.archive_log import commit_of, decode_entries
from hoodie.formats.timeline.commit_avro import decode_avro_commit
from hoodie.formats.timeline.services import clean_metadata_of, decode_clean_metadata
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId
from hoodie.model.instant import COMMITS, Action, Instant, State, format_time
from hoodie.model.plans import CleanMetadata
from hoodie.storage.protocol import Storage, join
from hoodie.timeline.completions import history_files, history_span
from hoodie.timeline.load import modified
from hoodie.timeline.timeline import Timeline

_NAME = re.compile(r"\.commits_\.archive\.(\d+)(_\d+-\d+-\d+)?", re.ASCII)
#: As far apart as an instant, which is in the table's zone, and UTC can be.
_ZONES = dt.timedelta(days=1)
_MERGE_PLAN = "mergeArchivePlan"


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """One instant file that was archived.

    changed  when the instant reached this state, an instant time; "" when its writer did not record it
    column   the entry's field with what the file held; "" for a file without content
    record   that content, as Avro; None without
    path     of the archive file
    """

    instant: Instant
    changed: str
    column: str
    record: Mapping[str, Any] | None
    path: str


def archive_name(number: int) -> str:
    """The name of an archive file. Another writer's may have another write token."""
    return f".commits_.archive.{number}_1-0-1"


def archive_files(storage: Storage, config: TableConfig) -> dict[int, str]:
    """The archive files of layout 1, paths by number, the newest first."""
    folder = config.history_folder
    files = {int(m[1]): join(folder, e.name) for e in storage.list(folder) if (m := _NAME.fullmatch(e.name))}
    return dict(sorted(files.items(), reverse=True))


def read_archive_file(storage: Storage, path: str) -> list[ArchivedEntry]:
    """What an archive file holds, in its order. Raises CorruptFile."""
    return [_entry(record, path) for record in decode_entries(storage.read(path), path)]


def _entry(record: Mapping[str, Any], path: str) -> ArchivedEntry:
    time, action, state = record["commitTime"] or "", record["actionType"] or "", record["actionState"] or "COMPLETED"
    if not (time.isascii() and time.isdigit()) or action not in list(Action) or state not in State.__members__:
        raise CorruptFile(path, f"archived instant {time!r}, {action!r}, {state!r}: unknown kind of instant")
    filled = next((name for name, value in record.items() if isinstance(value, dict)), "")
    instant = Instant(time, Action(action), State[state])
    return ArchivedEntry(instant, record["stateTransitionTime"] or "", filled, record[filled] if filled else None, path)


def archived_among(storage: Storage, path: str, instants: Collection[Instant]) -> set[Instant]:
    """Those of some states of instants that an archive file holds. It is decoded only if it has the time of one of
    them, as text, in its bytes. Raises CorruptFile."""
    data = storage.read(path)
    if not any(time.encode() in data for time in {instant.requested for instant in instants}):
        return set()
    return {entry.instant for entry in (_entry(record, path) for record in decode_entries(data, path))} & {*instants}


def rolled_back_in_archive(storage: Storage, folder: str, instants: frozenset[str]) -> frozenset[str]:
    """Those of the instants that a rollback undid which left the timeline of layout 1.

    Files are read that were written since, each once for all file slices that a write left blocks in.
    """
    undone = frozenset[str]()
    for entry in storage.list(folder):
        written = dt.datetime.fromtimestamp(entry.mtime / 1000, dt.UTC) + _ZONES
        if not _NAME.fullmatch(entry.name) or format_time(written) < min(instants):
            continue
        with suppress(FileNotFoundError, CorruptFile):  # merged meanwhile, or the doctor says what to do about it
            path = join(folder, entry.name)
            undone |= _rolled_back_in(storage, path, entry.size, entry.mtime, instants)  # type: ignore[arg-type]
    return undone & instants


@lru_cache(maxsize=64)
def _rolled_back_in(storage: Storage, path: str, size: int, mtime: int, instants: frozenset[str]) -> frozenset[str]:
    """The file is decoded if it has the time of one of the instants, as text, in its bytes."""
    data = storage.read(path)
    if not any(time.encode() in data for time in instants):
        return frozenset()
    rollbacks = (record["hoodieRollbackMetadata"] or {} for record in decode_entries(data, path))
    return frozenset(time for rollback in rollbacks for time in rollback.get("commitsRollback", ()))


def archived_entries(
    storage: Storage, config: TableConfig, among: Collection[str] | None = None
) -> Iterator[ArchivedEntry]:
    """All archived instant files of layout 1, those of the newest archive file first, in the order of the file.

    among   paths of archive files: others are left out. None: all
    An entry may occur twice: an interrupted archiver runs again, or files are merged while they are read. An unfinished
    merged file of Hudi is skipped: the files it is made of still exist.
    Raises CorruptFile
    """
    for path in archive_files(storage, config).values():
        if among is not None and path not in among:
            continue
        try:
            entries = read_archive_file(storage, path)
        except FileNotFoundError:  # a newer file has taken it in since: read that again
            yield from archived_entries(storage, config, among)
            return
        except CorruptFile:
            if _being_merged(storage, config) == path:
                continue
            raise
        yield from entries


def _being_merged(storage: Storage, config: TableConfig) -> str:
    """The archive file that a merge of smaller ones is to make; "" when none is under way."""
    path = join(config.history_folder, _MERGE_PLAN)
    if not storage.exists(path):
        return ""
    name = read_one(storage.read(path), schemas.MERGE_ARCHIVE_PLAN, path)["mergedArchiveFileName"] or ""
    return join(config.history_folder, name.rpartition("/")[2])


def archived_commits(storage: Storage, config: TableConfig) -> list[tuple[Instant, CommitMetadata]]:
    """Completed commits that left the active timeline, each once, newest first. Reads the whole archive.

    An instant may also be on the active timeline: the archiver was interrupted, or is running. Raises CorruptFile
    """
    if config.layout == 2:
        return _history_commits(storage, config)
    commits: dict[Instant, CommitMetadata] = {}
    for entry in archived_entries(storage, config):
        instant = entry.instant
        if instant.state is State.COMPLETED and instant.action in COMMITS and instant not in commits:
            commits[instant] = commit_of(entry.record or {}, entry.path)
    return sorted(commits.items(), key=lambda item: item[0], reverse=True)


_COLUMNS = ["instantTime", "completionTime", "action", "metadata"]


def newest_archived(storage: Storage, config: TableConfig, before: str) -> str:
    """Time of the newest completed commit that is in the archive only; "" when none is.

    before   the oldest commit of the active timeline: the archiver may have been interrupted between the two
    Raises   CorruptFile
    Archive files are read from the newest on, until one has a commit: cleans and rollbacks are archived separately.
    """
    if config.layout == 2:
        if config.was_upgraded:
            times = [instant.requested for instant, _ in _history_commits(storage, config)]
        else:  # a name has the times of all instants in the file: at least as new as its newest commit
            times = [newest for _, _, newest in _history_spans(storage, config)]
        return max((time for time in times if time < before), default="")
    newest = newest_archived_entry(storage, config, before)
    return "" if newest is None else newest.instant.requested


def newest_archived_entry(storage: Storage, config: TableConfig, before: str) -> ArchivedEntry | None:
    """The entry of the commit that `newest_archived` names, in layout 1."""
    newest: ArchivedEntry | None = None
    file = ""
    for entry in archived_entries(storage, config):
        if newest is not None and entry.path != file:
            break
        file, instant = entry.path, entry.instant
        if instant.state is not State.COMPLETED or instant.action not in COMMITS or instant.requested >= before:
            continue
        if newest is None or newest.instant.requested < instant.requested:
            newest = entry
    return newest


def archived_cleans(storage: Storage, config: TableConfig, after: str) -> Iterator[CleanMetadata]:
    """What completed cleans after an instant did that left the timeline. The archive is read back to the instant only.

    Raises CorruptFile
    """
    if config.layout == 2:
        for path, _, newest in _history_spans(storage, config):
            if newest > after:
                for time, _, action, metadata in _history_columns(storage, path, after):
                    if action is Action.CLEAN and time > after and metadata is not None:
                        yield decode_clean_metadata(metadata, path)
        return
    file, older = "", False
    for entry in archived_entries(storage, config):
        if entry.path != file and older:
            return
        file, instant = entry.path, entry.instant
        if instant.action is not Action.CLEAN or instant.state is not State.COMPLETED:
            continue
        older = older or instant.requested <= after
        if instant.requested > after and entry.record is not None:
            yield clean_metadata_of(entry.record, entry.path)


def replaced_in_archive(
    storage: Storage, config: TableConfig, groups: Collection[FileGroupId], by: str
) -> set[FileGroupId]:
    """Those of the file groups that a commit up to an instant replaced which left the timeline: without their files it
    makes no difference to readers. Reads the archive back to the oldest of them. Raises CorruptFile
    """
    replaced: set[FileGroupId] = set()
    for commit in (_replaces_in_history if config.layout == 2 else _replaces_in_archive)(storage, config, by):
        replaced |= {group for group in groups if group.file_id in commit.replaced.get(group.partition, ())}
        if replaced >= set(groups):
            break
    return replaced


def _replaces_in_archive(storage: Storage, config: TableConfig, by: str) -> Iterator[CommitMetadata]:
    for entry in archived_entries(storage, config):
        instant = entry.instant
        if instant.action is Action.REPLACE_COMMIT and instant.state is State.COMPLETED and instant.requested <= by:
            yield commit_of(entry.record or {}, entry.path)


def _replaces_in_history(storage: Storage, config: TableConfig, by: str) -> Iterator[CommitMetadata]:
    for path, oldest, _ in _history_spans(storage, config):
        if oldest <= by:
            for instant, commit in _history_rows(storage, path):
                if instant.action is Action.REPLACE_COMMIT and instant.requested <= by:
                    yield commit


@dataclass(frozen=True, slots=True)
class CommitsThatLeft:
    """Completed commits that are not on the active timeline.

    commits      with what they did
    completions  when they were completed, by their time
    """

    commits: Mapping[Instant, CommitMetadata] = field(default_factory=dict)
    completions: Mapping[str, str] = field(default_factory=dict)


def commits_that_left(storage: Storage, config: TableConfig, timeline: Timeline, since: str) -> CommitsThatLeft:
    """The commits that left the timeline, of those from an instant on: that are as late, or were completed as late.

    since    an instant, inclusive; "": all
    Files that were not written since are not read: what they hold left the timeline before. Raises CorruptFile
    """
    written = {
        join(config.history_folder, entry.name)
        for entry in storage.list(config.history_folder)
        if not entry.is_dir and modified(entry, config.timezone) >= since
    }
    if not written:
        return CommitsThatLeft()
    active = {instant.requested for instant in timeline.commits}
    commits: dict[Instant, CommitMetadata] = {}
    completions: dict[str, str] = {}
    read = _in_history if config.layout == 2 else _in_archive
    for instant, completed, commit in read(storage, config, written, since):
        if instant.requested not in active and max(instant.requested, completed) >= since:
            commits.setdefault(instant, commit)
            completions.setdefault(instant.requested, completed)
    return CommitsThatLeft(commits, completions)


_Archived = tuple[Instant, str, CommitMetadata]  # when it was completed


def _in_archive(storage: Storage, config: TableConfig, written: Collection[str], since: str) -> Iterator[_Archived]:
    """Commits in some archive files of layout 1. Writers before Hudi 0.15 do not tell when they were completed."""
    for entry in archived_entries(storage, config, written):
        instant = entry.instant
        if instant.state is State.COMPLETED and instant.action in COMMITS:
            yield instant, entry.changed or instant.requested, commit_of(entry.record or {}, entry.path)


def _in_history(storage: Storage, config: TableConfig, written: Collection[str], since: str) -> Iterator[_Archived]:
    """Commits in some files of the history of layout 2."""
    for name in history_files(storage, config.history_folder):
        path = join(config.history_folder, name)
        if path in written:
            for instant, commit in _history_rows(storage, path, since):
                yield instant, instant.completed, commit


def _history_spans(storage: Storage, config: TableConfig) -> Iterator[tuple[str, str, str]]:
    """Files of the history, with the oldest and the newest instant that each may hold: names that Hudi gives when it
    upgrades a table, and when it merges such files, do not tell."""
    for name in history_files(storage, config.history_folder):
        yield join(config.history_folder, name), *(("", "~") if config.was_upgraded else history_span(name))


def _history_commits(storage: Storage, config: TableConfig) -> list[tuple[Instant, CommitMetadata]]:
    commits: dict[Instant, CommitMetadata] = {}
    for name in history_files(storage, config.history_folder):
        commits |= _history_rows(storage, join(config.history_folder, name))
    return sorted(commits.items(), key=lambda item: item[0], reverse=True)


def _history_rows(storage: Storage, path: str, since: str = "") -> Iterator[tuple[Instant, CommitMetadata]]:
    """The completed commits in a file of the history, of those from an instant on. Raises CorruptFile"""
    for time, completed, action, metadata in _history_columns(storage, path, since):
        if action in COMMITS:
            if metadata is None:
                raise CorruptFile(path, f"the {action} {time} is without its metadata")
            commit = decode_avro_commit(metadata, path, action is Action.REPLACE_COMMIT)
            yield Instant(time, action, State.COMPLETED, completed), commit


def _history_columns(storage: Storage, path: str, since: str) -> Iterator[tuple[str, str, Action, bytes | None]]:
    """Time, completion time, action and metadata of the instants in a file of the history, of those from an instant on.

    Raises CorruptFile
    """
    try:
        with storage.open_input(path) as file:
            table = pq.read_table(file, columns=_COLUMNS)
        late = [pc.greater_equal(table.column(name), since).fill_null(True) for name in _COLUMNS[:2]]
        rows = table.filter(pc.or_(*late)).to_pylist()
    except FileNotFoundError as error:
        raise CorruptFile(path, "missing, though the history's manifest lists it") from error
    except (pa.ArrowException, KeyError) as error:
        raise CorruptFile(path, f"no file of the history: {error}") from error
    for row in rows:
        time, completed, action, metadata = (row.get(column) for column in _COLUMNS)
        if not time or not completed or action not in list(Action):
            raise CorruptFile(path, f"an instant {time!r}, {action!r} completed {completed!r}")
        yield time, completed, Action(action), metadata
