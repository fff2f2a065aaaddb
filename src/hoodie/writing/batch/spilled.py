"""A staged batch whose rows must be tagged before they are handed to partitions: those of a global index, which may
send them elsewhere, of an index that records writes, which wants to know of each row whether its key was there, and of
any index that is asked by key.

The batch is split by hashes of its keys, so that all rows of a key are in one part. Each part is in memory in its turn,
is tagged as a batch that fits into memory is, and staged again.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import ceil

import numpy as np
import pyarrow as pa

from hoodie.formats.parquet.murmur import KeyHashes
from hoodie.index.pruning import IndexStats
from hoodie.lookup.batch import order_by_partition
from hoodie.model.files import FileGroupId
from hoodie.model.meta import RECORD_KEY
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableFiles
from hoodie.writing.batch.memory import TaggedBatch, tag_on_driver, tagger, thread_pool
from hoodie.writing.batch.stage import Stage, StagedHits
from hoodie.writing.batch.staging import Piece, hits_path, read_pieces, stage_rows, write_hits
from hoodie.writing.write import Write

_PARTS = 128  # files that are open at once
_PARTS_OF_ANY = 3  # where no size is given that fits into memory


def tag_staged(write: Write, stage: Stage, files: TableFiles) -> tuple[Stage, StagedHits, TableFiles]:
    """Tag a batch part by part, and stage it once more. Raises as `tag_on_driver`

    files    `Write.files_of` of the batch's partitions
    returns  the rows where they go, without those that have no effect; which of them a file group holds; and what a
             writer sees of the partitions that the rows, and their keys, are in
    """
    most = write.settings.engine.driver_batch
    size = sum(piece.bytes for piece in stage.pieces)
    count = max(1, min(_PARTS, ceil(size / most))) if most else _PARTS_OF_ANY
    pieces: list[Piece] = []
    laid: dict[str, int] = {}  # rows by partition path
    hits: dict[FileGroupId, list[np.ndarray]] = {}
    cost = IndexStats()
    tag = tagger(write, stage.measured().rows, files)
    with thread_pool(write.settings) as pool:
        for number, rows in enumerate(_parts(stage, count)):
            tagged = _with_effect(tag_on_driver(write, rows, files, pool, tag))
            files, cost = tagged.files, cost + tagged.located.stats
            batch = tagged.batch
            starts = dict(zip(batch.partitions, batch.offsets.tolist(), strict=False))
            for place, positions in tagged.located.by_place():
                offset = laid.get(place.partition, 0) - starts[place.partition]
                hits.setdefault(place, []).append(positions + offset)
            for path, rows_of_path in zip(batch.partitions, np.diff(batch.offsets).tolist(), strict=True):
                laid[path] = laid.get(path, 0) + rows_of_path
            # Names in the order of the parts: positions are counted so.
            path = f"{stage.folder}/tagged-{number:03d}.arrow"
            pieces += stage_rows(stage.storage, path, iter(batch.rows.to_batches()), ())
    groups: dict[FileGroupId, tuple[int, str]] = {}
    for call, (place, parts) in enumerate(hits.items()):
        positions = np.concatenate(parts)
        groups[place] = (len(positions), hits_path(stage.folder, call))
        write_hits(stage.storage, groups[place][1], positions)
    return replace(stage, pieces=tuple(pieces)), StagedHits.of(groups, cost), files


def _parts(stage: Stage, count: int) -> Iterator[pa.Table]:
    """The rows of a batch, all of a key in one part; parts have about the same size."""
    if count == 1:
        yield stage.rows()
        return
    paths = [f"{stage.folder}/part-{number:03d}.arrow" for number in range(count)]
    _split(stage, paths)
    for path in paths:
        with stage.storage.open_input(path) as source:
            rows = pa.ipc.open_file(source).read_all()
        stage.storage.discard(path)
        if rows.num_rows:
            yield rows


def _split(stage: Stage, paths: Sequence[str]) -> None:
    with ExitStack() as stack:
        writers: list[pa.ipc.RecordBatchFileWriter] = []
        for _, batch in read_pieces(stage.storage, stage.pieces):
            if not writers:
                writers = [stack.enter_context(_writer(stage.storage, path, batch.schema, stack)) for path in paths]
            parts = KeyHashes.of(batch.column(RECORD_KEY)).first[0] % np.uint32(len(paths))
            order = np.argsort(parts, kind="stable")
            bounds = np.searchsorted(parts[order], np.arange(len(paths) + 1))
            for number, writer in enumerate(writers):
                if bounds[number] < bounds[number + 1]:
                    writer.write_batch(batch.take(pa.array(order[bounds[number] : bounds[number + 1]])))


def _writer(storage: Storage, path: str, schema: pa.Schema, stack: ExitStack) -> pa.ipc.RecordBatchFileWriter:
    return pa.ipc.new_file(stack.enter_context(storage.open_output(path)), schema)


def _with_effect(tagged: TaggedBatch) -> TaggedBatch:
    """The rows that are located or inserted."""
    effective = tagged.insert.copy()
    effective[tagged.located.rows] = True
    if effective.all():
        return tagged
    moved = np.cumsum(effective) - 1
    batch = order_by_partition(tagged.batch.rows.filter(pa.array(effective)))
    located = replace(tagged.located, rows=moved[tagged.located.rows])
    return replace(tagged, batch=batch, located=located, insert=tagged.insert[effective])
