"""The files of a table: which a reader takes, how large they are, and what commits wrote for the rows that changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from hoodie.cli.output import Block, Grid, size
from hoodie.config.options import Options
from hoodie.config.write import FileSizing
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.reading.complete_view import complete_view
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, load_state
from hoodie.timeline.points import query_instant
from hoodie.view.missing import snapshot_files
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
    rows_changed   inserted, updated and deleted by the commits of the active timeline
    rows_written   in the files that they wrote
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
    options: Options,
    *,
    partitions: Collection[str] | None = None,
    as_of: str | None = None,
    every: bool = False,
) -> Files:
    """The file slices of a table.

    every   the older ones of each file group, too
    Raises  as a read
    """
    _, view, current, moment = _current(storage, options, partitions, as_of)
    if not every:
        return Files(tuple(_line(slice_) for slice_ in current.values()))
    slices = [one for group in sorted(view.groups) for one in committed_slices(view, group, moment)]
    return Files(tuple(_line(one, current.get(one.group) == one) for one in slices))


def stats(storage: Storage, options: Options) -> Stats:
    """Measure a table: one listing of all partitions, and the commits of the active timeline. Raises as a read"""
    state, view, current, _ = _current(storage, options, None, None)
    bases = [slice_.base for slice_ in current.values() if slice_.base is not None]
    logs = [log for slice_ in current.values() for log in slice_.logs]
    every = {base.path: base.size for found in view.groups.values() for base in found.bases}
    every |= {log.path: log.size for found in view.groups.values() for log in found.logs}
    taken = {base.path for base in bases} | {log.path for log in logs}
    sizes = np.array([base.size for base in bases] or [0])
    small = options.read(FileSizing).small_limit
    written = [stat for commit in state.commits() for part in commit.stats.values() for stat in part]
    changed = sum(stat.num_inserts + stat.num_updates + stat.num_deletes for stat in written)
    rows = sum(stat.num_writes for stat in written)
    base_bytes, log_bytes = sum(base.size for base in bases), sum(log.size for log in logs)
    return Stats(
        partitions=len({group.partition for group in current}),
        file_groups=len(current),
        base_files=len(bases),
        base_bytes=base_bytes,
        log_files=len(logs),
        log_bytes=log_bytes,
        older_files=len(every.keys() - taken),
        older_bytes=sum(every[path] for path in every.keys() - taken),
        base_sizes=(int(sizes.min()), int(np.median(sizes)), int(np.quantile(sizes, 0.95)), int(sizes.max())),
        small_files=sum(base.size <= small for base in bases),
        log_share=round(log_bytes / base_bytes, 4) if base_bytes else 0.0,
        rows_changed=changed,
        rows_written=rows,
        bytes_written=sum(stat.total_write_bytes for stat in written),
        amplification=round(rows / changed, 2) if changed else 0.0,
    )


def text(found: Files) -> Sequence[Block]:
    if not found.slices:
        return ["no files"]
    header = ("partition", "file id", "instant", "base", "logs", "log size", "")
    rows = [
        (
            line.partition,
            line.file_id,
            line.base_instant,
            size(line.base_bytes) if line.base else "-",
            line.logs,
            size(line.log_bytes) if line.logs else "-",
            "" if line.current else "older",
        )
        for line in found.slices
    ]
    return [Grid(header, rows)]


def stats_text(found: Stats) -> Sequence[Block]:
    smallest, median, high, largest = map(size, found.base_sizes)
    rows = (
        ("partitions", f"{found.partitions}"),
        ("file groups", f"{found.file_groups}"),
        ("base files", f"{found.base_files}, {size(found.base_bytes)}; {found.small_files} take inserts first"),
        ("their sizes", f"from {smallest}, median {median}, 95 % {high}, to {largest}"),
        ("log files", f"{found.log_files}, {size(found.log_bytes)}: {found.log_share:.0%} of the base files"),
        ("older files", f"{found.older_files}, {size(found.older_bytes)}"),
        ("rows changed", f"{found.rows_changed} by the commits of the active timeline"),
        ("rows written", f"{found.rows_written}: {found.amplification} for each that changed"),
        ("bytes written", size(found.bytes_written)),
    )
    return [f"{name:15}{value}" for name, value in rows]


def _current(
    storage: Storage, options: Options, partitions: Collection[str] | None, as_of: str | None
) -> tuple[TableState, FileSystemView, dict[FileGroupId, FileSlice], str | None]:
    """The state and the view of a table, the slices that a reader takes, and `as_of` as an instant."""
    state = load_state(storage)
    moment = None if as_of is None else query_instant(as_of, state.config.timezone)
    taken = snapshot_files(moment)
    state, view = complete_view(state, partitions, taken, options, moment)
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
        sum(log.size for log in slice_.logs),
        current,
    )
