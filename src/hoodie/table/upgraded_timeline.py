"""The timeline of a table of version 6 in the form of versions 8 and 9: copied beside the old one, which stays until
the settings say which of the two holds.

A copy that is not finished means nothing, and is made again from the start.
Source: docs/format/table-versions-8-9.md 12.
"""

import dataclasses
import datetime as dt
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hoodie.config.table import PROPERTIES_FOLDER, TableConfig
from hoodie.errors import CorruptFile
from hoodie.formats.avro.container import write_one
from hoodie.formats.timeline.archive_log import commit_of
from hoodie.formats.timeline.plans import COMPACTION_PLAN, REPLACE_PLAN, decode_replace_plan
from hoodie.formats.timeline.services import CLEAN_METADATA, CLEAN_PLAN, ROLLBACK_METADATA, SAVEPOINT
from hoodie.model.instant import COMMITS, Action, Instant, State, format_time, parse_time
from hoodie.model.table_version import VERSIONS
from hoodie.storage.protocol import Storage, join
from hoodie.table.state import TableState
from hoodie.timeline.archive import ArchivedEntry, archived_entries
from hoodie.timeline.history import HistoryEntry, add_to_history
from hoodie.timeline.load import commit_content, modified
from hoodie.timeline.stopped_upgrade import COPIED
from hoodie.timeline.timeline import LAYOUT_1, TimelineLayout, comparable_action, layout_of, parse_name
from hoodie.timeline.transition import completed_content, inflight_content

_MILLI = dt.timedelta(milliseconds=1)
#: What the archive of layout 1 holds as a record, and the history as a file.
_ARCHIVED = {
    "hoodieCleanMetadata": CLEAN_METADATA.document,
    "hoodieRollbackMetadata": ROLLBACK_METADATA.document,
    "hoodieSavePointMetadata": SAVEPOINT.document,
    "hoodieCleanerPlan": CLEAN_PLAN.document,
    "hoodieCompactionPlan": COMPACTION_PLAN.document,
    "hoodieRequestedReplaceMetadata": REPLACE_PLAN.document,
}


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the old timeline. changed: when it was written, as an instant."""

    name: str
    instant: Instant
    changed: str


def files_of_layout_1(storage: Storage, config: TableConfig) -> list[_File]:
    """The instants' files in `.hoodie`, whichever version the table has; the completed ones last."""
    files = []
    for entry in storage.list(PROPERTIES_FOLDER):
        instant = None if entry.is_dir else parse_name(entry.name, 1, PROPERTIES_FOLDER)
        if instant is not None:
            files.append(_File(entry.name, instant, modified(entry, config.timezone)))
    return sorted(files, key=lambda file: (file.instant.state, file.instant.requested, file.name))


def copy_timeline(state: TableState, target: TableConfig) -> int:
    """Put the instants of a table of layout 1, archived ones included, where layout 2 has them; how many files.

    target   the table's settings afterwards
    Raises   CorruptFile on an instant that cannot be read; nothing of the old timeline has changed
    """
    storage, layout = state.storage, layout_of(target)
    storage.delete_tree(layout.folder)  # of an upgrade that died: it may lack what was written since
    storage.create_new(join(layout.folder, COPIED), b"")
    files = files_of_layout_1(storage, state.config)
    archived = _newest_first(archived_entries(storage, state.config))
    active = {(file.instant.requested, comparable_action(file.instant.action)) for file in files}
    archived_only = {key: entries for key, entries in archived.items() if key not in active}
    changed = {
        (entry.instant.requested, comparable_action(entry.instant.action)): entry.changed
        for entries in archived_only.values()
        for entry in entries
        if entry.instant.state is State.COMPLETED
    }
    completed = [file for file in files if file.instant.state is State.COMPLETED]
    changed |= {(file.instant.requested, comparable_action(file.instant.action)): file.changed for file in completed}
    completions = estimated_completions(changed, [file.instant.requested for file in files])
    for file in files:
        _copy(storage, file, layout, completions)
    history = [_history_entry(entries, completions) for entries in archived_only.values()]
    add_to_history(storage, target.history_folder, [entry for entry in history if entry is not None])
    return len(files)


def estimated_completions(
    written: Mapping[tuple[str, Action], str], others: Iterable[str] = ()
) -> dict[tuple[str, Action], str]:
    """When instants were completed, as far as known: when their file was written, but before the next instant
    began. Logs belong to the slice that was newest when they were completed: a copied table would lose that.

    written  by instant; "" where it is not known
    others   request times of further instants
    """
    times = sorted({time for time, _ in written} | set(others))
    following = dict(itertools.pairwise(times))
    taken, completions = set(times), dict[tuple[str, Action], str]()
    for key in sorted(written, key=lambda key: (key[0], key[1] is Action.SAVEPOINT)):
        earliest = _later(key[0])
        completed = max(earliest, written[key][:17])
        if key[0] in following:
            completed = max(earliest, min(completed, _later(following[key[0]], -1)))
        while completed in taken:
            completed = _later(completed)
        taken.add(completed)
        completions[key] = completed
    return completions


def _later(time: str, millis: int = 1) -> str:
    return format_time(parse_time(time) + millis * _MILLI)


def _copy(storage: Storage, file: _File, layout: TimelineLayout, completions: Mapping[tuple[str, Action], str]) -> None:
    instant = file.instant
    data = storage.read(join(PROPERTIES_FOLDER, file.name))
    path = LAYOUT_1.path(instant)
    if instant.state is State.COMPLETED:
        new_instant = dataclasses.replace(
            instant, completed=completions[instant.requested, comparable_action(instant.action)]
        )
        if instant.action in COMMITS:
            data = completed_content(commit_content(data, path, instant), instant.action, layout)
    else:
        new_instant = instant
        if instant.action is Action.REPLACE_COMMIT and _is_clustering(storage, instant):
            new_instant = dataclasses.replace(instant, action=Action.CLUSTERING)
        if instant.action in COMMITS and instant.state is State.INFLIGHT and data:
            data = inflight_content(commit_content(data, path, instant), layout)
        if instant.action is Action.CLEAN and instant.state is State.INFLIGHT and not layout.version.clean_has_plan:
            data = b""
    storage.create_new(layout.path(new_instant), data)


def _is_clustering(storage: Storage, instant: Instant) -> bool:
    path = LAYOUT_1.path(dataclasses.replace(instant, state=State.REQUESTED))
    try:
        return decode_replace_plan(storage.read(path), path).clustering is not None
    except (CorruptFile, FileNotFoundError):
        return False


def _newest_first(entries: Iterable[ArchivedEntry]) -> dict[tuple[str, Action], list[ArchivedEntry]]:
    """Archived entries by instant; an interrupted archiver has put some there twice."""
    by_instant: dict[tuple[str, Action], dict[Instant, ArchivedEntry]] = {}
    for entry in entries:
        key = entry.instant.requested, comparable_action(entry.instant.action)
        by_instant.setdefault(key, {}).setdefault(entry.instant, entry)
    return {key: list(group.values()) for key, group in by_instant.items()}


def _history_entry(
    entries: Iterable[ArchivedEntry], completions: Mapping[tuple[str, Action], str]
) -> HistoryEntry | None:
    """None: it was never completed."""
    completion: ArchivedEntry | None = None
    plans: dict[tuple[State, Action], bytes] = {}
    for entry in entries:
        if entry.instant.state is State.COMPLETED:
            completion = entry
        elif entry.column in _ARCHIVED and entry.record is not None:
            content = write_one(_ARCHIVED[entry.column], entry.record)
            plans[entry.instant.state, entry.instant.action] = content
    if completion is None:
        return None
    instant = completion.instant
    completed = completions[instant.requested, comparable_action(instant.action)]
    layout = TimelineLayout(VERSIONS[8])
    if instant.action in COMMITS:
        content = completed_content(commit_of(completion.record or {}, completion.path), instant.action, layout)
    else:
        has_record = completion.column in _ARCHIVED and completion.record is not None
        content = (
            write_one(_ARCHIVED[completion.column], completion.record) if has_record and completion.record else b""
        )
    return HistoryEntry(dataclasses.replace(instant, completed=completed), content, plans)
