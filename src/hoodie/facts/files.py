"""The files of a table: which a reader takes, how large they are, and what commits wrote for the rows that changed."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from hoodie.config.read import ReadSettings
from hoodie.facts.sizes import file_sizes, sizes, totals_written
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.reading.complete_view import complete_view
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.points import query_instant
from hoodie.view.published import snapshot_files
from hoodie.view.slices import FileSystemView, committed_slices


@dataclass(frozen=True, slots=True)
class SliceLine:
    """A file slice.

    base     name of the base file; "" for logs only
    current  a snapshot reader takes it
    """

    partition: str
    file_id: str
    base_instant: str
    base: str
    base_bytes: int
    logs: int
    log_bytes: int
    current: bool = True


@dataclass(frozen=True, slots=True)
class Files:
    """File slices, by partition path and file id, older ones of a file group before newer ones."""

    slices: tuple[SliceLine, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """Sizes of a table, in bytes.

    file_groups    those that a snapshot reader takes; `base_files`, `log_files` and their bytes are of their slices
    older_bytes    of files that no snapshot reader takes: cleaning removes them as its policy says
    base_sizes     of base files: smallest, median, 95 %, largest
    small_files    base files up to `hoodie.parquet.small.file.limit`, which take inserts first
    log_share      bytes of logs by bytes of base files: what a compaction would merge
    rows_changed   inserted, updated and deleted by the writes of the active timeline
    rows_written   in the files that its commits wrote, services included
    bytes_written  by them
    amplification  rows written by rows changed; 0.0: nothing changed
    """

    partitions: int
    file_groups: int
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int
    older_files: int
    older_bytes: int
    base_sizes: tuple[int, int, int, int]
    small_files: int
    log_share: float
    rows_changed: int
    rows_written: int
    bytes_written: int
    amplification: float


def files(
    storage: Storage,
    reading: ReadSettings,
    *,
    partitions: Collection[str] | None = None,
    as_of: str | None = None,
    every: bool = False,
) -> Files:
    """The file slices of a table.

    every   the older ones of each file group, too
    Raises  as a read
    """
    _, view, current, moment = _current(storage, reading, partitions, as_of)
    if not every:
        return Files(tuple(_line(slice_) for slice_ in current.values()))
    slices = [one for group in sorted(view.groups) for one in committed_slices(view, group, moment)]
    return Files(tuple(_line(one, current.get(one.group) == one) for one in slices))


def stats(storage: Storage, settings: Settings) -> Stats:
    """Measure a table: one listing of all partitions, and the commits of the active timeline. Raises as a read"""
    state, view, current, _ = _current(storage, settings.reading, None, None)
    files = sizes(current.values(), file_sizes(view), settings.sizing.small_limit)
    bases = np.array(files.base_sizes or [0])
    writes = totals_written(state.commits())
    return Stats(
        partitions=len(files.partitions),
        file_groups=files.groups,
        base_files=len(files.base_sizes),
        base_bytes=files.base_bytes,
        log_files=files.log_files,
        log_bytes=files.log_bytes,
        older_files=files.older_files,
        older_bytes=files.older_bytes,
        base_sizes=(int(bases.min()), int(np.median(bases)), int(np.quantile(bases, 0.95)), int(bases.max())),
        small_files=files.small,
        log_share=round(files.log_bytes / files.base_bytes, 4) if files.base_bytes else 0.0,
        rows_changed=writes.changed,
        rows_written=writes.rows,
        bytes_written=writes.bytes,
        amplification=round(writes.amplification or 0.0, 2),
    )


def _current(
    storage: Storage, reading: ReadSettings, partitions: Collection[str] | None, as_of: str | None
) -> tuple[TableState, FileSystemView, dict[FileGroupId, FileSlice], str | None]:
    """The state and the view of a table, the slices that a reader takes, and `as_of` as an instant."""
    state = load_state(storage)
    moment = None if as_of is None else query_instant(as_of, state.config.timezone)
    taken = snapshot_files(moment)
    state, view = complete_view(state, partitions, taken, reading, moment)
    return state, view, {slice_.group: slice_ for slice_ in taken(view)}, moment


def _line(slice_: FileSlice, current: bool = True) -> SliceLine:
    base = slice_.base
    return SliceLine(
        slice_.group.partition,
        slice_.group.file_id,
        slice_.base_instant,
        base.name if base else "",
        base.size if base else 0,
        len(slice_.logs),
        slice_.log_bytes,
        current,
    )
