"""Which files a reader or a writer sees: file groups and their slices, out of the timeline and a listing.

Pure rules; `hoodie.view.load` lists and reads. Source: docs/format/table-and-timeline.md 6 and 7.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import Action
from hoodie.timeline.timeline import Timeline, Visible


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """All files of one file group on storage, committed or not."""

    bases: tuple[BaseFile, ...] = ()  # oldest first
    logs: tuple[LogFile, ...] = ()  # in the order in which a reader takes them
    changes: tuple[LogFile, ...] = ()  # change data (.cdc): beside the slices, never merged


@dataclass(frozen=True, slots=True)
class FileSystemView:
    """The input of the rules.

    replaced    the instant of the completed replace commit that took a file group's place; the later one of two
    compacting  the pending compaction that a file group is in
    clustering  the pending clustering that a file group is an input of
    unmarked    partitions that lost their metafile
    """

    timeline: Timeline
    groups: Mapping[FileGroupId, GroupFiles] = field(default_factory=dict)
    replaced: Mapping[FileGroupId, str] = field(default_factory=dict)
    compacting: Mapping[FileGroupId, str] = field(default_factory=dict)
    clustering: Mapping[FileGroupId, str] = field(default_factory=dict)
    unmarked: frozenset[str] = frozenset()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths with data files, sorted."""
        return tuple(sorted({group.partition for group in self.groups}))


def group_files(files: Iterable[BaseFile | LogFile]) -> dict[FileGroupId, GroupFiles]:
    """The files by file group, ordered by partition path and file id."""
    files_of: dict[FileGroupId, list[BaseFile | LogFile]] = defaultdict(list)
    for file in files:
        files_of[file.group].append(file)
    return {group: _ordered(files_of[group]) for group in sorted(files_of, key=_PLACE)}


#: The order of file groups, without a call of theirs for each comparison.
_PLACE = attrgetter("partition", "file_id")


def _ordered(files: list[BaseFile | LogFile]) -> GroupFiles:
    """The files of one file group."""
    first = files[0]
    if len(files) == 1 and isinstance(first, BaseFile):  # as most groups of large tables
        return GroupFiles((first,))
    bases = [file for file in files if isinstance(file, BaseFile)]
    logs = sorted((file for file in files if isinstance(file, LogFile)), key=lambda log: log.order)
    return GroupFiles(
        # Attempts of one task can leave two files of one instant, until its commit removes the losers.
        tuple(sorted(bases, key=lambda base: (base.instant, base.name))),
        tuple(log for log in logs if not log.cdc),
        tuple(log for log in logs if log.cdc),
    )


def committed_slices(view: FileSystemView, group: FileGroupId, as_of: str | None = None) -> tuple[FileSlice, ...]:
    """The committed slices of a file group, oldest first, replaced or not.

    A pending compaction of the group counts as a slice, possibly without files: new logs belong to it. Its base
    file may be half written. Layout 2 leaves logs of pending delta commits out; in layout 1 the name does not show
    them, and the log reader drops their blocks, as it does with blocks written after `as_of`.
    """
    files = view.groups.get(group, GroupFiles())
    return _slices(view, group, files, view.timeline.visible(as_of), _completions(view))


def latest_base_files(view: FileSystemView, as_of: str | None = None) -> dict[FileGroupId, BaseFile]:
    """The newest committed base file of each file group, from instants up to `as_of` (inclusive; None: now).

    Left out: base files of a compaction or clustering that is pending; file groups replaced by then.
    """
    newest = {}
    for group, slices in _slices_by_group(view, as_of):
        bases = [slice_.base for slice_ in slices if slice_.base and not _opened(view, slice_)]
        if bases:
            newest[group] = bases[-1]
    return newest


def latest_slices(view: FileSystemView) -> dict[FileGroupId, FileSlice]:
    """The slice of each file group that a writer adds to, the empty one that a pending compaction opens included."""
    return {
        group: replace(slices[-1], base=None) if _opened(view, slices[-1]) else slices[-1]
        for group, slices in _slices_by_group(view, None)
        if slices
    }


def merged_slices(view: FileSystemView, as_of: str | None = None) -> dict[FileGroupId, FileSlice]:
    """What a snapshot reader merges, per file group, from instants up to `as_of` (inclusive; None: now).

    The newest slice; one that a pending compaction opened is joined to the slice before it. Its logs come last then,
    as they will once the compaction is done: in layout 2 those of a slow writer may have the earlier instants.
    """
    newest = {}
    for group, slices in _slices_by_group(view, as_of):
        merged = _merged(view, slices)
        if merged is not None:
            newest[group] = merged
    return newest


def slice_before(view: FileSystemView, group: FileGroupId, instant: str) -> FileSlice | None:
    """What a snapshot reader merged of one file group just before an instant, be it replaced by now; None: nothing.

    Its logs may hold later blocks as well, in layout 2 those of the instant, too.
    """
    slices = committed_slices(view, group)
    if view.timeline.layout == 1:
        return _merged(view, tuple(slice_ for slice_ in slices if slice_.base_instant < instant))
    # A slice may have begun after the instant, and before that was completed: a compaction did, which left it out.
    end = _completions(view).get(instant, instant)
    own = [slice_ for slice_ in slices if slice_.base is not None and slice_.base_instant == instant]
    return _merged(view, tuple(slice_ for slice_ in slices if slice_.base_instant < end and slice_ not in own))


def _merged(view: FileSystemView, slices: tuple[FileSlice, ...]) -> FileSlice | None:
    if not slices:
        return None
    last = slices[-1]
    if not _opened(view, last):
        return last
    before = slices[-2] if len(slices) > 1 else replace(last, base=None, logs=())
    last = replace(before, logs=before.logs + last.logs)
    return None if last.base is None and not last.logs else last


def _slices_by_group(view: FileSystemView, as_of: str | None) -> Iterator[tuple[FileGroupId, tuple[FileSlice, ...]]]:
    """The committed slices of every file group that is not replaced by then."""
    visible = view.timeline.visible(as_of)
    completions = _completions(view)
    for group, files in view.groups.items():
        replaced = view.replaced.get(group)
        if replaced is None or (as_of is not None and replaced > as_of):
            yield group, _slices(view, group, files, visible, completions)


def _completions(view: FileSystemView) -> Mapping[str, str]:
    return view.timeline.completions() if view.timeline.layout == 2 else {}


def _opened(view: FileSystemView, slice_: FileSlice) -> bool:
    """Whether a slice is the one that the pending compaction of its group opened."""
    return view.compacting.get(slice_.group) == slice_.base_instant


def _slices(
    view: FileSystemView, group: FileGroupId, files: GroupFiles, visible: Visible, completions: Mapping[str, str]
) -> tuple[FileSlice, ...]:
    bases = {base.instant: base for base in files.bases if visible.committed(base.instant)}
    starts = bases.keys() | (visible.open & {view.compacting.get(group, "")})
    logs = [log for log in files.logs if visible.committed(log.base_instant)]
    if view.timeline.layout == 1 and not starts.issuperset(log.base_instant for log in logs):
        # Logs from before a downgrade by Hudi have the instant of their delta commit in their name.
        named = {instant.requested for instant in view.timeline.completed({Action.DELTA_COMMIT})}
        starts.update(log.base_instant for log in logs if log.base_instant not in named)
    logs_of = _logs_of(logs, starts, completions)
    starts.update(logs_of)
    return tuple(FileSlice(group, start, bases.get(start), tuple(logs_of.get(start, ()))) for start in sorted(starts))


def _logs_of(
    logs: Iterable[LogFile], starts: Iterable[str], completions: Mapping[str, str]
) -> dict[str, list[LogFile]]:
    """The logs by the base instant of their slice, the newest that began before their delta commit completed.

    logs         that count, in order; those of version 6 have the base instant in their name, whenever written
    starts       the base instants of the group; a log that completed before all of them begins its own slice
    completions  layout 2: when a delta commit completed
    """
    logs_of: dict[str, list[LogFile]] = defaultdict(list)
    ordered = sorted(starts)
    for log in logs:
        position = bisect_right(ordered, completions.get(log.base_instant, log.base_instant))
        if position == 0:
            ordered.insert(0, log.base_instant)
            position = 1
        logs_of[ordered[position - 1]].append(log)
    return logs_of
