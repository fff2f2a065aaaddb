"""A batch staged as Arrow files: written once by the tasks that made its rows, read by those that write base files.

A staged batch is what Spark's cache is not: it survives lost executors, never gives other rows the second time, and is
read column by column. Each task stages one file; a file is a sequence of record batches of one partition path each.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config.write import BloomOptions
from hoodie.formats.parquet.murmur import KeyHashes
from hoodie.index.pruning import IndexStats
from hoodie.lookup.batch import group_batches, one_chunk
from hoodie.lookup.key_lookup import find_in_file
from hoodie.merge.rows import NOT_INSERTED, NOT_MATCHED, ROW_ACTION, RowPositions, with_positions
from hoodie.model.files import BaseFile
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.storage.protocol import Storage, join
from hoodie.writing.batch.duplicates import ARRIVAL

#: Below the table, beside the markers; Hudi's clean-up of markers looks at folders named by instants only.
STAGING = ".hoodie/.temp/staged"

#: A stage that nobody has touched for this long (milliseconds) is a dead writer's.
_STALE = 24 * 3600 * 1000

#: A column of staged hits.
_POSITION = "position"

RowNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """One record batch of a staged file: rows of one partition path."""

    partition: str | None
    file: str  # path relative to the table
    batch: int
    rows: int
    bytes: int
    bad_keys: int = 0  # rows without a record key
    bad_ordering: int = 0  # rows with a null among their ordering values


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Record batches of a staged file that follow one another, whose partition paths are too many to be told."""

    file: str
    batch: int  # the first
    batches: int
    rows: int
    bytes: int
    bad_keys: int = 0
    bad_ordering: int = 0
    bad_paths: int = 0  # rows without a partition path

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> BatchRun:
        """pieces  that follow one another in one file"""
        return cls(
            pieces[0].file,
            pieces[0].batch,
            len(pieces),
            sum(piece.rows for piece in pieces),
            sum(piece.bytes for piece in pieces),
            sum(piece.bad_keys for piece in pieces),
            sum(piece.bad_ordering for piece in pieces),
            sum(piece.rows for piece in pieces if piece.partition is None),
        )

    def pieces(self) -> list[Piece]:
        """Its record batches, to be read. Their rows and partition paths are not known."""
        return [Piece(None, self.file, self.batch + number, 0, 0) for number in range(self.batches)]


def new_stage() -> str:
    """A folder for one batch, relative to the table."""
    return join(STAGING, uuid4().hex)


def remove_stale(storage: Storage, now: int | None = None) -> None:
    """Remove stages of dead writers. Where the storage keeps no times they stay.

    now  milliseconds since 1970; None: by this process's clock
    """
    now = time.time_ns() // 1_000_000 if now is None else now
    for folder, entries in storage.list_tree(STAGING).items():
        if all(entry.mtime and now - entry.mtime > _STALE for entry in entries):
            storage.delete_tree(folder)


def stage_rows(
    storage: Storage, path: str, batches: Iterator[pa.RecordBatch], ordering: Sequence[str], first: int | None = None
) -> list[Piece]:
    """Write one task's rows as a staged file. Memory is bounded, whatever the task's size.

    batches   keyed rows
    ordering  columns whose nulls are counted
    first     number of the first row in the batch: rows take theirs along (`ARRIVAL`); None: they do not
    """
    if first is not None:
        batches = _numbered(batches, first)
    pieces: list[Piece] = []
    with ExitStack() as stack:
        writer: pa.ipc.RecordBatchFileWriter | None = None
        for group in group_batches(batches):
            if writer is None:
                sink = stack.enter_context(storage.open_output(path))
                writer = stack.enter_context(pa.ipc.new_file(sink, group.rows.schema))
            for number, partition in enumerate(group.partitions):
                span = group.range(number)
                rows = group.rows.slice(span.start, span.stop - span.start).combine_chunks()
                batch = rows.to_batches()[0]
                writer.write_batch(batch)
                keys = batch.column(RECORD_KEY).null_count
                unordered = _null_rows(batch, ordering)
                size = without_arrivals(batch).nbytes
                pieces.append(Piece(partition, path, len(pieces), len(batch), size, keys, unordered))
    return pieces


def _numbered(batches: Iterator[pa.RecordBatch], first: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers = pa.array(np.arange(first, first + len(batch), dtype=np.int64))
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], names=[*batch.schema.names, ARRIVAL])
        first += len(batch)


def without_arrivals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without their numbers, if they have some."""
    return batch.drop_columns([ARRIVAL]) if ARRIVAL in batch.schema.names else batch


def _null_rows(batch: pa.RecordBatch, ordering: Sequence[str]) -> int:
    missing = np.zeros(len(batch), dtype=np.bool_)
    for name in ordering:
        first, *rest = name.split(".")
        column = batch.column(first)
        for part in rest:
            column = column.field(part)
        missing |= np.asarray(column.is_null())
    return int(np.count_nonzero(missing))


def read_pieces(
    storage: Storage, pieces: Iterable[Piece], columns: Sequence[str] | None = None
) -> Iterator[tuple[Piece, pa.RecordBatch]]:
    """The rows of pieces, those of one file together. Only the columns asked for are read."""
    by_file: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_file.setdefault(piece.file, []).append(piece)
    for path, part in by_file.items():
        with storage.open_input(path) as source:
            if columns is None:
                reader = pa.ipc.open_file(source)
            else:
                names = pa.ipc.open_file(source).schema.names
                indices = [names.index(name) for name in columns]
                reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=indices))
            for piece in part:
                yield piece, reader.get_batch(piece.batch)


@dataclass(frozen=True, slots=True)
class LookupCall:
    """A base file in which the keys of its partition's pieces are looked up."""

    number: int
    base: BaseFile
    pieces: tuple[Piece, ...]


def locate_staged(
    storage: Storage,
    stage: Storage,
    folder: str,
    pruned: bool,
    bloom: BloomOptions,
    keeps_positions: bool,
    call: LookupCall,
) -> IndexStats:
    """Look the keys of a partition's pieces up in one base file; the hits are staged for the tasks that write.

    storage          of the base file
    stage, folder    where the pieces lie, and the hits are to
    keeps_positions  whether the rows of a hit are to know where in the file their key is
    returns          what it cost; its `hits` are rows of the batch
    """
    keys = [one_chunk(pa.chunked_array([b.column(0)])) for _, b in read_pieces(stage, call.pieces, [RECORD_KEY])]
    record_keys = pa.concat_arrays(keys) if len(keys) > 1 else keys[0]
    hits, positions, cost = find_in_file(storage, call.base, record_keys, pruned, bloom)
    if len(hits):
        write_hits(stage, hits_path(folder, call.number), hits, positions if keeps_positions else None)
    return cost


def hits_path(folder: str, call: int) -> str:
    """Where the hits of a look-up are staged."""
    return f"{folder}/hits-{call}.arrow"


def write_hits(storage: Storage, path: str, rows: RowNumbers, positions: RowPositions | None = None) -> None:
    """Stage numbers of rows, for `read_hits`.

    positions  where in the base file the keys of these rows are, less than 0 where that is not known
    """
    hits = pa.table({"row": pa.array(rows, pa.int64())})
    if positions is not None:
        hits = hits.append_column(_POSITION, pa.array(positions, pa.int64()))
    with storage.open_output(path) as sink, pa.ipc.new_file(sink, hits.schema) as writer:
        writer.write_table(hits)


def read_hits(storage: Storage, path: str) -> tuple[RowNumbers, RowPositions | None]:
    """The rows whose key a base file holds, by their numbers among those of the partition's pieces laid end to end, and
    where in the file the keys are, if that was kept."""
    with storage.open_input(path) as source:
        hits = pa.ipc.open_file(source).read_all()
    return hits.column(0).to_numpy(), hits.column(_POSITION).to_numpy() if _POSITION in hits.column_names else None


@dataclass(frozen=True, slots=True)
class StagedTask:
    """Which of a partition's staged rows a task takes.

    pieces  all of the partition
    own     file with the rows whose key the task's file group holds; "" for none
    taken   files with the rows that any file group holds; the other rows are inserts
    low, high  share of the inserts, in [low, high) of the hashes of their keys; equal: none
    """

    pieces: tuple[Piece, ...]
    own: str
    taken: tuple[str, ...]
    low: float = 0.0
    high: float = 0.0


def rows_of(storage: Storage, task: StagedTask) -> pa.Table:
    """The rows that a task writes, in the order of the batch; with their positions in the base file if known."""
    count = sum(piece.rows for piece in task.pieces)
    chosen = np.zeros(count, dtype=np.bool_)
    positions: RowPositions | None = None
    if task.own:
        hits, stored = read_hits(storage, task.own)
        chosen[hits] = True
        if stored is not None:
            positions = np.full(count, -1, np.int64)
            positions[hits] = stored
    own = chosen.copy()
    if task.high > task.low:
        chosen |= _insert_share(storage, task, count)
    if not chosen.any():
        return pa.table({RECORD_KEY: [], PARTITION_PATH: []})
    parts: list[pa.Table] = []
    start = 0
    for piece, batch in read_pieces(storage, task.pieces):
        here = slice(start, start + piece.rows)
        start += piece.rows
        mask = _with_effect(batch, chosen[here], own[here])
        if not mask.any():
            continue
        part = pa.Table.from_batches([batch if mask.all() else batch.take(pa.array(np.flatnonzero(mask)))])
        parts.append(part if positions is None else with_positions(part, positions[here][mask]))
    if not parts:
        return pa.table({RECORD_KEY: [], PARTITION_PATH: []})
    # Where a merge made a row of two, the rows beside it have all columns of the table.
    return pa.concat_tables(parts, promote_options="permissive")


def _with_effect(
    batch: pa.RecordBatch, chosen: npt.NDArray[np.bool_], own: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Those of the chosen rows that do something: a merge has rows that only update, and rows that are only inserted.

    own  rows whose key the task's file group holds
    """
    if ROW_ACTION not in batch.schema.names:
        return chosen
    actions = batch.column(ROW_ACTION).to_numpy(zero_copy_only=False)
    return chosen & ~np.where(own, np.isin(actions, NOT_MATCHED), np.isin(actions, NOT_INSERTED))


def _insert_share(storage: Storage, task: StagedTask, count: int) -> npt.NDArray[np.bool_]:
    new = np.ones(count, dtype=np.bool_)
    for path in task.taken:
        new[read_hits(storage, path)[0]] = False
    if task.low <= 0.0 and task.high >= 1.0:
        return new
    start = 0
    for piece, batch in read_pieces(storage, task.pieces, [RECORD_KEY]):
        # Rows of one key have one hash, hence one task.
        share = KeyHashes.of(batch.column(0)).first[-1].astype(np.float64) / float(1 << 32)
        new[start : start + piece.rows] &= (share >= task.low) & (share < task.high)
        start += piece.rows
    return new


def by_partition(pieces: Iterable[Piece]) -> Mapping[str, tuple[Piece, ...]]:
    """The pieces of each partition path, in the order in which tasks take them: that of `read_pieces`."""
    partitions: dict[str, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda piece: (piece.file, piece.batch)):
        if piece.partition is not None:
            partitions.setdefault(piece.partition, []).append(piece)
    return {partition: tuple(part) for partition, part in partitions.items()}
