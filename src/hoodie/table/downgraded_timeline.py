"""The timeline of a table of version 8 or 9 in the form of version 6: copied beside the one that holds until the
settings say otherwise, with logs under the names that version 6 has for them.

In version 6 the instant in a log's name is that of its slice's base file, in version 8 that of its write. What the
instants say of logs is changed with their names; the logs themselves follow once the settings name version 6, since
readers of either version take them by the names of their own. A copy that is not finished means nothing, and is made
again from the start. Source: docs/format/table-versions-8-9.md 12.5.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hoodie.config.table import DOWNGRADED_FROM, PROPERTIES_FOLDER, TableConfig, from_properties
from hoodie.errors import CorruptFile
from hoodie.formats.avro.container import read_one
from hoodie.formats.log.blocks import (
    BlockHead,
    BlockKind,
    BlockMap,
    HeaderKey,
    LogBlock,
    encode_block,
    read_block_headers,
)
from hoodie.formats.timeline.archive_log import commit_record, encode_entries
from hoodie.formats.timeline.internal_schema import SCHEMA_COMMIT, SCHEMA_FOLDER, decode_version
from hoodie.formats.timeline.plans import decode_compaction_plan, encode_compaction_plan
from hoodie.formats.timeline.services import (
    CLEAN_METADATA,
    CLEAN_PLAN,
    ROLLBACK_METADATA,
    SAVEPOINT,
    decode_savepoint,
    encode_savepoint,
)
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.model.files import FileSlice, LogFile, log_file_name, parse_data_file
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.storage.protocol import Storage, in_threads, join, split
from hoodie.storage.wrapped import set_modified
from hoodie.table.altered_columns import history_path
from hoodie.table.properties import update_properties
from hoodie.table.state import TableState, columns_by_id
from hoodie.table.upgraded_timeline import files_of_layout_1
from hoodie.timeline.archive import archive_files, archive_name
from hoodie.timeline.history import history_rows
from hoodie.timeline.load import commit_content
from hoodie.timeline.stopped_upgrade import COPIED, UPGRADED_FOLDER, late_writes, move_back
from hoodie.timeline.timeline import LAYOUT_1, comparable_action, moment_of, parse_name
from hoodie.timeline.transition import completed_content, inflight_content
from hoodie.view.slices import FileSystemView, committed_slices

#: In the timeline folder, beside `COPIED`: what is to be done with logs once the settings name version 6.
_LOGS = ".logs_of_downgrade"
#: Archived instants in one archive file.
_ARCHIVED = 500
_LAYOUT_1 = {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}
#: Bytes of a header entry beside its text.
_ENTRY = 8
_COLUMNS = {
    Action.CLEAN: ("hoodieCleanMetadata", CLEAN_METADATA.document),
    Action.ROLLBACK: ("hoodieRollbackMetadata", ROLLBACK_METADATA.document),
    Action.SAVEPOINT: ("hoodieSavePointMetadata", SAVEPOINT.document),
}


@dataclass(frozen=True, slots=True)
class MovedLog:
    """A log with its name in version 6. previous: of the slice's logs, those before it, by their new names."""

    old: str
    new: LogFile
    slice: FileSlice
    previous: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogNames:
    """What version 6 calls the logs of a table.

    logs     of all slices, by path: those that keep their name, too
    orphans  paths of logs whose write was never completed: no reader sees them, and one of version 6 might
    partial  paths of logs with rows that have some columns only, which version 6 cannot say
    """

    logs: Mapping[str, MovedLog] = field(default_factory=dict)
    orphans: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()

    def name(self, partition: str, name: str) -> str:
        """The name of a file of a partition in version 6."""
        moved = self.logs.get(join(partition, name))
        return name if moved is None else moved.new.name


def log_names(storage: Storage, view: FileSystemView) -> LogNames:
    """The names that version 6 has for the logs of a view of all partitions, in the order in which they are merged.

    The headers of all logs are read. Raises CorruptLogBlock
    """
    visible = view.timeline.visible()
    named = [log for files in view.groups.values() for log in files.logs]
    headers = dict(zip(named, in_threads(lambda log: _heads(storage, log.path, log.size), named), strict=True))
    logs: dict[str, MovedLog] = {}
    orphans: list[str] = []
    for group, files in view.groups.items():
        orphans += [log.path for log in files.logs if not visible.committed(log.base_instant)]
        for slice_ in committed_slices(view, group):
            stay = [log.version for log in slice_.logs if log.base_instant == slice_.base_instant]
            number = max(stay, default=0)
            previous: tuple[str, ...] = ()
            for log in slice_.logs:
                new = log
                if log.base_instant != slice_.base_instant:
                    number += 1
                    name = log_file_name(group.file_id, slice_.base_instant, number, log.token)
                    size = log.size - sum(_shorter(head, slice_.base_instant) for head in headers[log])
                    new = LogFile(group, slice_.base_instant, number, log.token, size, name)
                logs[log.path] = MovedLog(log.path, new, slice_, previous)
                previous = (*previous, new.name)
    partial = tuple(log.path for log, heads in headers.items() if any(map(_is_partial, heads)))
    return LogNames(logs, tuple(orphans), partial)


def copy_down(state: TableState, target: TableConfig, names: LogNames, batch: int) -> None:
    """Put the instants of a table of layout 2, archived ones included, where version 6 has them.

    target   the table's settings afterwards
    names    of its logs
    batch    archived instants in one block
    Raises   CorruptFile on an instant that cannot be read; nothing that readers look at has changed
    """
    storage = state.storage
    discard_copy(storage, state.config, target)
    changes = {
        "logs": [[log.old, log.new.path] for log in names.logs.values() if log.old != log.new.path],
        "orphans": names.orphans,
    }
    storage.write(join(state.layout.folder, _LOGS), json.dumps(changes).encode())
    storage.write(join(state.layout.folder, COPIED), b"")
    for instant, path in _timeline_files(state):
        data = _content(state, instant, storage.read(path), path, names)
        new_path = join(PROPERTIES_FOLDER, split(LAYOUT_1.path(_of_version_6(instant)))[1])
        storage.create_new(new_path, data)
        if instant.completed:
            moment = moment_of(instant.completed, state.config.timezone)
            set_modified(storage, new_path, int(moment.timestamp() * 1000))
    rows = history_rows(storage, state.config.history_folder, _ARCHIVED)
    for number, part in enumerate(rows, 1):
        entries = [entry for row in part for entry in _archived(row, state.config.history_folder, names)]
        storage.create_new(join(target.history_folder, archive_name(number)), encode_entries(entries, batch))
    _copy_column_history(state)


def _copy_column_history(state: TableState) -> None:
    """Give the history of altered columns the name that Hudi 0.15 looks for: Hudi 1.x has another."""
    for text in columns_by_id(state).values():
        version = decode_version(text, SCHEMA_FOLDER)["version_id"]
        path = history_path(state.storage, state.config, state.timeline, version)
        instant = split(path)[1].removesuffix(SCHEMA_COMMIT).partition("_")[0]
        state.storage.write(f"{SCHEMA_FOLDER}/{instant}{SCHEMA_COMMIT}", state.storage.read(path))


def discard_copy(storage: Storage, config: TableConfig, target: TableConfig) -> None:
    """Remove the instants of layout 1, archived ones included, of a table whose timeline is of layout 2."""
    for file in files_of_layout_1(storage, config):
        storage.discard(join(PROPERTIES_FOLDER, file.name))
    for path in archive_files(storage, target).values():
        storage.discard(path)


def abandon_downgrade(state: TableState) -> None:
    """Remove a copy that was begun for a downgrade that is given up."""
    discard_copy(state.storage, state.config, from_properties({**state.config.properties, **_LAYOUT_1}))
    for name in (_LOGS, COPIED):
        state.storage.discard(join(state.layout.folder, name))


def complete_downgrade(storage: Storage, folder: str) -> None:
    """Give logs the names of version 6, and remove the timeline of before. A repetition after a crash goes on.

    folder  of that timeline
    """
    path = join(folder, _LOGS)
    if storage.exists(path):
        changes = json.loads(storage.read(path))
        for old, new in changes["logs"]:
            _rename(storage, old, new)
        for orphan in changes["orphans"]:
            storage.discard(orphan)
    # Writes without a lock may have begun since the instants were copied: their files are not to be forgotten.
    move_back(storage, late_writes(storage, [entry.name for entry in storage.list(PROPERTIES_FOLDER)], copied=True))
    entries = storage.list(folder)
    for entry in entries:
        if entry.is_dir:
            storage.delete_tree(join(folder, entry.name))
        elif entry.name not in (COPIED, _LOGS):
            storage.discard(join(folder, entry.name))
    storage.delete_tree(folder)  # the mark that its instants are copies, last of all


def finish_downgrade(storage: Storage, config: TableConfig) -> None:
    """Do what a downgrade still has to do once the settings name version 6; the caller holds the table's lock."""
    complete_downgrade(
        storage, join(PROPERTIES_FOLDER, config.properties.get("hoodie.timeline.path") or UPGRADED_FOLDER)
    )
    update_properties(storage, {DOWNGRADED_FROM: None})


# --- instants ---


def _timeline_files(state: TableState) -> Iterator[tuple[Instant, str]]:
    """The files of the active timeline, of an instant that was completed twice the later one; completed ones last."""
    folder, layout = state.timeline.folder, state.timeline.layout
    files: dict[tuple[str, Action, State], tuple[Instant, str]] = {}
    instants = {(i.requested, comparable_action(i.action)): i for i in state.timeline.instants}
    for entry in state.storage.list(folder):
        instant = None if entry.is_dir else parse_name(entry.name, layout, folder)
        if instant is None:
            continue
        if instant.state is State.COMPLETED:  # whose completion the timeline knows, if its name does not
            instant = (
                instants[instant.requested, comparable_action(instant.action)] if not instant.completed else instant
            )
        key = (instant.requested, instant.action, instant.state)
        if key not in files or files[key][0].completed < instant.completed:
            files[key] = (instant, join(folder, entry.name))
    return iter(sorted(files.values(), key=lambda file: (file[0].state, file[0].requested, file[1])))


def _of_version_6(instant: Instant) -> Instant:
    action = Action.REPLACE_COMMIT if instant.action is Action.CLUSTERING else instant.action
    return dataclasses.replace(instant, action=action)


def _content(state: TableState, instant: Instant, data: bytes, path: str, names: LogNames) -> bytes:
    """What the file of an instant holds in version 6."""
    action = _of_version_6(instant).action
    if action in COMMITS:
        if instant.state is State.REQUESTED:
            return data if action is Action.REPLACE_COMMIT else b""
        if not data:
            return data
        commit = commit_content(data, path, instant)
        if instant.state is State.INFLIGHT:
            return inflight_content(commit, LAYOUT_1)
        return completed_content(_with_names(commit, names), action, LAYOUT_1)
    if action is Action.CLEAN and instant.state is State.INFLIGHT and not data:
        requested = dataclasses.replace(instant, state=State.REQUESTED)
        return state.storage.read(state.layout.path(requested))
    if action in (Action.COMPACTION, Action.LOG_COMPACTION) and instant.state is State.REQUESTED:
        plan = decode_compaction_plan(data, path)
        operations = tuple(
            dataclasses.replace(
                operation, log_files=tuple(names.name(operation.group.partition, log) for log in operation.log_files)
            )
            for operation in plan.operations
        )
        return encode_compaction_plan(dataclasses.replace(plan, operations=operations))
    if action is Action.SAVEPOINT and instant.state is State.COMPLETED:
        savepoint = decode_savepoint(data, path)
        files = {part: tuple(names.name(part, name) for name in of_part) for part, of_part in savepoint.files.items()}
        return encode_savepoint(dataclasses.replace(savepoint, files=files))
    return data


def _with_names(commit: CommitMetadata, names: LogNames) -> CommitMetadata:
    stats = {part: tuple(_stat(stat, names) for stat in of_part) for part, of_part in commit.stats.items()}
    return dataclasses.replace(commit, stats=stats)


def _stat(stat: WriteStat, names: LogNames) -> WriteStat:
    """In version 6 the statistic of a log names its slice."""
    moved = names.logs.get(stat.path or "")
    if moved is None:
        return stat
    return dataclasses.replace(
        stat,
        path=moved.new.path,
        file_size=moved.new.size,
        total_write_bytes=moved.new.size,
        prev_commit=moved.slice.base_instant,
        log_version=moved.new.version,
        log_offset=stat.log_offset or 0,
        base_file=moved.slice.base.name if moved.slice.base else "",
        log_files=(*moved.previous, moved.new.name),
    )


def _archived(row: Mapping[str, object], path: str, names: LogNames) -> Iterator[dict[str, object]]:
    """The entries that the archive of version 6 has of an instant in the history."""
    time, completed, word, data = (row[name] for name in ("instantTime", "completionTime", "action", "metadata"))
    if not isinstance(time, str) or not isinstance(completed, str) or word not in list(Action):
        raise CorruptFile(path, f"an instant {time!r}, {word!r} completed {completed!r}")
    action = Action(str(word))
    plan = row["plan"]
    if isinstance(plan, bytes) and action is Action.CLEAN:
        planned = {"hoodieCleanerPlan": CLEAN_PLAN.parse(plan, path)}
        yield _entry(time, action, State.REQUESTED, completed, planned)
    content: dict[str, Mapping[str, object]] = {}
    if isinstance(data, bytes) and action in COMMITS:
        instant = Instant(time, action, State.COMPLETED, completed)
        replacing = action is Action.REPLACE_COMMIT
        commit = _with_names(commit_content(data, path, instant), names)
        column = "hoodieReplaceCommitMetadata" if replacing else "hoodieCommitMetadata"
        content = {column: commit_record(commit, replacing=replacing)}
    elif isinstance(data, bytes) and action in _COLUMNS:
        column, schema = _COLUMNS[action]
        content = {column: read_one(data, schema, path)}
    yield _entry(time, action, State.COMPLETED, completed, content)


def _entry(time: str, action: Action, state: State, completed: str, content: Mapping[str, object]) -> dict[str, object]:
    return {
        "commitTime": time,
        "actionType": action.value,
        "version": 1,
        "actionState": state.name,
        "stateTransitionTime": completed,
        **content,
    }


# --- logs ---


def _heads(storage: Storage, path: str, size: int) -> list[BlockHead]:
    return list(read_block_headers(lambda at, length: storage.read_range(path, at, at + length), size, path))


def _rename(storage: Storage, old: str, new: str) -> None:
    """Copy a log under another name, a block at a time, without what version 6 does not know; then remove it."""
    if not storage.exists(old):
        return
    log = parse_data_file(*split(new), 0)
    assert isinstance(log, LogFile)
    with storage.open_output(new) as out:  # also over one that is there: a process may have died within it
        for head in _heads(storage, old, storage.size(old)):
            out.write(_block(storage, old, head, log.base_instant))
    storage.delete(old)


def _is_partial(head: BlockHead) -> bool:
    return (head.header.get(HeaderKey.IS_PARTIAL) or "").lower() == "true"


def _block(storage: Storage, path: str, head: BlockHead, base_instant: str) -> bytes:
    header = _header(head.header, base_instant)
    if head.kind is BlockKind.CORRUPT or header == head.header:
        return storage.read_range(path, head.offset, head.end)
    content = storage.read_range(path, head.content_offset, head.content_offset + head.content_length)
    return encode_block(LogBlock(head.kind, header, content, version=head.version))


def _header(header: BlockMap, base_instant: str) -> BlockMap:
    """Without what version 6 has not. Its positions are of the base file of the slice, which the name says."""
    of = header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
    leave = {HeaderKey.IS_PARTIAL, HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS}
    if of != base_instant:
        leave.add(HeaderKey.RECORD_POSITIONS)
    return BlockMap(tuple((key, value) for key, value in header.entries if key not in leave))


def _shorter(head: BlockHead, base_instant: str) -> int:
    """How many bytes a block loses."""
    if head.kind is BlockKind.CORRUPT:
        return 0
    stays = _header(head.header, base_instant).entries
    return sum(_ENTRY + len(value.encode()) for key, value in head.header.entries if (key, value) not in stays)
