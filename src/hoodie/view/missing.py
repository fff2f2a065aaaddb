"""Files that completed commits published, that a reader or writer needs, and that are missing.

The rule: if the file existed, would it be in a slice that is used? So superseded, replaced and hidden files (of an
instant that does not count) are not missing; without a missing file an older version would show, or nothing. Files
that a cleaning on the timeline removed are left out. Pure rules, except `find_missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from hoodie.config.table import TableConfig
from hoodie.formats.timeline.services import decode_clean_metadata, decode_clean_plan
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.storage.protocol import Storage, join
from hoodie.storage.together import in_threads
from hoodie.timeline.load import with_history
from hoodie.timeline.timeline import Timeline
from hoodie.view.published import Published
from hoodie.view.slices import FileSystemView, GroupFiles, group_files, latest_base_files, merged_slices

#: The slices that a reader or writer uses of a view.
Taken = Callable[[FileSystemView], Iterable[FileSlice]]


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing published file, and the commit that names it."""

    file: BaseFile | LogFile
    instant: Instant

    @property
    def path(self) -> str:
        """Relative to the table's base path."""
        return self.file.path

    @property
    def group(self) -> FileGroupId:
        return self.file.group


def snapshot_files(as_of: str | None = None) -> Taken:
    """The slices that a snapshot reader uses."""
    return lambda view: merged_slices(view, as_of).values()


def read_optimized_files(as_of: str | None = None) -> Taken:
    """The slices that a reader of base files alone uses."""
    return lambda view: _base_slices(view, as_of)


def writer_files(view: FileSystemView) -> Iterator[FileSlice]:
    """The slices that a writer builds on: those that readers merge, and the base files in which keys are looked up."""
    yield from merged_slices(view).values()
    yield from _base_slices(view, None)


def _base_slices(view: FileSystemView, as_of: str | None) -> Iterator[FileSlice]:
    for group, base in latest_base_files(view, as_of).items():
        yield FileSlice(group, base.instant, base)


def find_missing(
    storage: Storage,
    config: TableConfig,
    view: FileSystemView,
    commits: Iterable[Published],
    taken: Taken,
    partitions: Collection[str] | None = None,
) -> list[Missing]:
    """The missing files of a view, by path.

    commits     whose files are checked, newest first
    partitions  those that the view is of; None: all
    Raises      CorruptFile

    Storage is read only when files look missing: cleanings on the timeline, and (layout 2) the history of instants
    that left it.
    """
    absent = named_and_absent(view, commits, partitions)
    if not absent:
        return []
    times = {entry.file.instant if isinstance(entry.file, BaseFile) else entry.file.base_instant for entry in absent}
    view = replace(view, timeline=with_history(storage, config, view.timeline, times))
    missing = missing_files(view, absent, taken)
    if not missing:
        return []
    cleaned = cleaned_files(storage, view.timeline)
    return [entry for entry in missing if entry.path not in cleaned]


def named_and_absent(
    view: FileSystemView, commits: Iterable[Published], partitions: Collection[str] | None = None
) -> list[Missing]:
    """The data files that commits name and the listing lacks, needed or not."""
    present_by_folder: dict[str, set[str]] = {}
    for group, files in view.groups.items():
        present = present_by_folder.setdefault(group.partition, set())
        present.update(base.name for base in files.bases)
        present.update(log.name for log in (*files.logs, *files.changes))
    only = None if partitions is None else frozenset(partitions)
    absent: dict[tuple[str, str], Instant] = {}
    beside: dict[tuple[str, str], Instant] = {}
    for commit in commits:
        for by_partition, kept in ((commit.files, absent), (commit.base_files, beside)):
            for partition, names in by_partition.items():
                if only is None or partition in only:
                    present = present_by_folder.get(partition, set())
                    kept |= {(partition, name): commit.instant for name in names if name not in present}
    found = []
    for (partition, name), instant in {**beside, **absent}.items():
        file = parse_data_file(partition, name, 0)
        if file is not None and not (isinstance(file, LogFile) and file.cdc):
            found.append(Missing(file, instant))
    return found


def missing_files(view: FileSystemView, absent: Iterable[Missing], taken: Taken) -> list[Missing]:
    """Those of the absent files that would be used if they existed; by path."""
    by_group: dict[FileGroupId, dict[str, Missing]] = {}
    for entry in absent:
        by_group.setdefault(entry.group, {})[entry.file.name] = entry
    trial: dict[FileGroupId, GroupFiles] = {}
    for group, lost in by_group.items():
        files = view.groups.get(group, GroupFiles())
        trial[group] = group_files([*files.bases, *files.logs, *(entry.file for entry in lost.values())])[group]
    missing: dict[str, Missing] = {}
    for slice_ in taken(replace(view, groups=trial)):
        lost = by_group[slice_.group]
        for entry in lost.values():
            if isinstance(entry.file, BaseFile):
                # Another attempt's file of the same instant is not the published one.
                needed = slice_.base is not None and slice_.base.instant == entry.file.instant
            else:
                needed = any(log.name == entry.file.name for log in slice_.logs)
            if needed:
                missing[entry.path] = entry
    return [missing[path] for path in sorted(missing)]


def cleaned_files(storage: Storage, timeline: Timeline) -> set[str]:
    """Paths of the files that cleanings on the timeline removed, or are about to."""

    def read(instant: Instant) -> Iterable[str]:
        done = instant.state is State.COMPLETED
        path = timeline.path(instant if done else replace(instant, state=State.REQUESTED))
        try:
            data = storage.read(path)
        except FileNotFoundError:  # archived since the timeline was loaded
            return ()
        if not data:
            return ()
        if not done:
            planned = decode_clean_plan(data, path).files
            return [join(partition, name) for partition, names in planned.items() for name in names]
        return [
            join(partition, name)
            for partition, part in decode_clean_metadata(data, path).partitions.items()
            for name in (*part.planned, *part.deleted, *part.failed)
        ]

    cleans = [instant for instant in timeline.instants if instant.action is Action.CLEAN]
    return {path for paths in in_threads(read, cleans) for path in paths}
