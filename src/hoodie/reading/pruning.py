"""Files that a read leaves out, and why."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from hoodie.display.summary import count_text
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.timeline.timeline import Visible
from hoodie.view.slices import FileSystemView, merged_slices


class PruneReason(StrEnum):
    """Why files of a table are not read."""

    NOT_ASKED = "in partitions that were not asked for"
    FILTERED = "in partitions that the filter rules out"
    STATISTICS = "of file slices that column statistics rule out"
    NOT_WRITTEN = "in partitions that no commit of the range wrote to"
    UNCHANGED = "of file groups that the range did not change"
    OLDER = "base files from before the range"
    LOGS = "log files, which a read-optimized query leaves out"
    LATER = "written after the instant"
    UNCOMMITTED = "of writes that are not completed"
    REPLACED = "of replaced file groups"
    SUPERSEDED = "superseded by a newer file slice"
    CHANGE_DATA = "change data, which is not merged"


@dataclass(frozen=True, slots=True)
class Pruned:
    """Files that a scan leaves out for one reason.

    partitions  those that the files lie in and of which nothing at all is read
    files       None: their partitions are not even listed, so nobody counted
    bytes       of the files; None as well
    """

    reason: PruneReason
    partitions: int | None = None
    files: int | None = None
    bytes: int | None = None

    def __str__(self) -> str:
        if self.files is None:
            return f"files {self.reason}: not listed"
        whole = f", {count_text(self.partitions or 0, 'whole partition')}" if self.partitions else ""
        return f"{count_text(self.files, 'file')} ({self.bytes} bytes{whole}) {self.reason}"


def left_out(
    view: FileSystemView,
    as_of: str | None,
    taken: Iterable[FileSlice],
    reason_of_newest: Callable[[BaseFile | LogFile, FileSlice | None], PruneReason],
) -> Iterator[tuple[BaseFile | LogFile, PruneReason]]:
    """The files of a view that are not read, each with the reason that comes first.

    as_of             the last instant that counts; None: all of the timeline
    taken             the slices that are read
    reason_of_newest  why a file of the slice that a snapshot reader would take is not read, by what is read of its
                      file group
    """
    visible, current = view.timeline.visible(as_of), merged_slices(view, as_of)
    read = {slice_.group: slice_ for slice_ in taken}
    for group, files in view.groups.items():
        own, newest = read.get(group), current.get(group)
        names = _names(own)
        replaced = view.replaced.get(group)
        is_replaced = replaced is not None and (as_of is None or replaced <= as_of)
        every: tuple[BaseFile | LogFile, ...] = (*files.bases, *files.logs, *files.changes)
        for file in every:
            if file.name in names:
                continue
            if isinstance(file, LogFile) and file.cdc:
                yield file, PruneReason.CHANGE_DATA
            elif is_replaced:
                yield file, PruneReason.REPLACED
            elif file.name in _names(newest):
                yield file, reason_of_newest(file, own)
            else:
                yield file, _reason_of_other(file, visible, as_of)


def by_reason(
    files: Iterable[tuple[BaseFile | LogFile, PruneReason]], partitions_read: Collection[str]
) -> Iterator[Pruned]:
    """Files counted by the reason why they are not read."""
    files_by_reason: dict[PruneReason, list[BaseFile | LogFile]] = {}
    for file, reason in files:
        files_by_reason.setdefault(reason, []).append(file)
    for reason in PruneReason:
        if unread := files_by_reason.get(reason):
            whole = {file.group.partition for file in unread}.difference(partitions_read)
            yield Pruned(reason, len(whole), len(unread), sum(file.size for file in unread))


def _reason_of_other(file: BaseFile | LogFile, visible: Visible, as_of: str | None) -> PruneReason:
    """Why no snapshot reader takes a file."""
    instant = file.base_instant
    if as_of is not None and instant > as_of:
        return PruneReason.LATER
    if instant in visible.open or not visible.committed(instant):
        return PruneReason.UNCOMMITTED
    return PruneReason.SUPERSEDED


def _names(slice_: FileSlice | None) -> frozenset[str]:
    if slice_ is None:
        return frozenset()
    base = () if slice_.base is None else (slice_.base.name,)
    return frozenset({*base, *(log.name for log in slice_.logs)})
