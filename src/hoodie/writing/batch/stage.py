"""A staged batch as a whole: where it lies, what is in it, and which of its rows each task of a plan takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.errors import InvalidInput
from hoodie.index.contract import ByFile
from hoodie.index.pruning import IndexStats
from hoodie.lookup.key_lookup import may_hold_deleted
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.plan.write import PartitionProfile, WritePlan, WriteTask
from hoodie.storage.protocol import Storage
from hoodie.table.partition_metadata import require_partition_paths
from hoodie.table.state import TableFiles, TableState
from hoodie.writing.batch.arrow import refuse_bad_keys
from hoodie.writing.batch.duplicates import in_order_of_arrival
from hoodie.writing.batch.staging import (
    LookupCall,
    Piece,
    StagedTask,
    by_partition,
    hits_path,
    locate_staged,
    read_hits,
    read_pieces,
)
from hoodie.writing.write import Write

#: Staged bytes that the tasks of a write may read in all, as a multiple of the batch, or at least this many.
_FEW_READS = 4
FEW_BYTES = 1 << 30
#: Staged bytes of one partition, at most.
LARGEST_PARTITION = 1 << 29


@dataclass(frozen=True, slots=True)
class Measured:
    """What one pass over the batch found, by partition path."""

    rows: Mapping[str, int]
    bytes: int  # about as many as the batch takes as Arrow
    bad_keys: int  # rows whose key is null or empty
    bad_paths: int  # rows without a partition path
    bad_ordering: int  # rows with a null among their ordering values

    @property
    def total(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class StagedHits:
    """The rows of a stage whose key a file group holds.

    updates  how many, by partition path and file id
    paths    where their positions are staged
    cost     of the look-up
    """

    updates: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    paths: Mapping[FileGroupId, str] = field(default_factory=dict)
    cost: IndexStats = field(default_factory=IndexStats)

    @classmethod
    def of(cls, groups: Mapping[FileGroupId, tuple[int, str]], cost: IndexStats) -> StagedHits:
        """groups  rows, and where their positions are staged"""
        updates: dict[str, dict[str, int]] = {}
        for group, (count, _) in groups.items():
            updates.setdefault(group.partition, {})[group.file_id] = count
        return cls(updates, {group: path for group, (_, path) in groups.items()}, cost)


@dataclass(frozen=True, slots=True)
class Stage:
    """A batch that lies staged in a folder of a storage: the table's, or one of this process alone."""

    storage: Storage
    folder: str
    pieces: tuple[Piece, ...]

    def measured(self) -> Measured:
        """Its size by partition path, and its bad rows."""
        rows: dict[str, int] = {}
        for piece in self.pieces:
            if piece.partition is not None:
                rows[piece.partition] = rows.get(piece.partition, 0) + piece.rows
        return Measured(
            rows,
            sum(piece.bytes for piece in self.pieces),
            sum(piece.bad_keys for piece in self.pieces),
            sum(piece.rows for piece in self.pieces if piece.partition is None),
            sum(piece.bad_ordering for piece in self.pieces),
        )

    def rows(self) -> pa.Table:
        """All of it, in this process, in the order of the batch."""
        batches = [batch for _, batch in read_pieces(self.storage, self.pieces)]
        return in_order_of_arrival(pa.Table.from_batches(batches))

    def release(self) -> None:
        """Remove the staged files."""
        self.storage.delete_tree(self.folder)


def require_sound(measured: Measured, ordering: Sequence[str], config: TableConfig) -> None:
    """Refuse a staged batch with rows that cannot be written. Raises InvalidInput saying how many.

    ordering  columns whose nulls were counted
    """
    refuse_bad_keys(measured.bad_keys, measured.bad_paths, config)
    require_partition_paths(measured.rows)
    if measured.bad_ordering:
        raise InvalidInput(f"{measured.bad_ordering} rows have no ordering value: {', '.join(ordering)} is null.")


def profile(measured: Measured, updates: Mapping[str, Mapping[str, int]], insert: bool) -> dict[str, PartitionProfile]:
    """The workload profile; insert False: rows without location have no effect (delete).

    updates  hits by partition path and file id. A row whose key is in the table several times counts as often, and may
             so hide an insert
    """
    profiles = {}
    for partition, rows in measured.rows.items():
        hits = updates.get(partition, {})
        inserts = max(0, rows - sum(hits.values())) if insert else 0
        if inserts or hits:
            profiles[partition] = PartitionProfile(inserts, dict(hits), insert and bool(hits) and not inserts)
    return profiles


def reads_stay_few(pieces: Sequence[Piece], readers: Mapping[str, int]) -> bool:
    """Whether `readers` tasks of each partition may all read that partition's rows: few bytes in all, and so few in
    each partition that a task can hold its keys."""
    sizes: dict[str, int] = {}
    for piece in pieces:
        sizes[piece.partition or ""] = sizes.get(piece.partition or "", 0) + piece.bytes
    reads = sum(size * readers.get(partition, 0) for partition, size in sizes.items())
    total = sum(sizes.values())
    return max(sizes.values(), default=0) <= LARGEST_PARTITION and reads <= max(_FEW_READS * total, FEW_BYTES)


def lookup_calls(stage: Stage, bases: Mapping[str, Sequence[BaseFile]]) -> list[LookupCall]:
    """The base files of the partitions of a stage, by partition path, each with the pieces of its partition."""
    pieces = by_partition(stage.pieces)
    files = [base for path, part in bases.items() if path in pieces for base in part]
    return [LookupCall(number, base, pieces[base.group.partition]) for number, base in enumerate(files)]


def staged_lookup(write: Write, stage: Stage) -> Callable[[LookupCall], IndexStats]:
    """What looks the keys of a partition up in one base file, and stages the hits; picklable. As `locate_staged`."""
    look_up = write.index.look_up
    assert isinstance(look_up, ByFile)
    return partial(
        locate_staged,
        write.state.storage,
        stage.storage,
        stage.folder,
        look_up.pruned,
        write.settings.bloom,
        write.keeps_positions,
    )


def staged_hits(stage: Stage, calls: Sequence[LookupCall], costs: Iterable[tuple[int, IndexStats]]) -> StagedHits:
    """What the calls found, by their numbers."""
    groups, total = {}, IndexStats()
    for number, cost in costs:
        total += cost
        if cost.hits:
            groups[calls[number].base.group] = (cost.hits, hits_path(stage.folder, number))
    return StagedHits.of(groups, total)


def lies_deleted(state: TableState, files: TableFiles, stage: Stage, hits: StagedHits) -> bool:
    """Whether a hit may be of a key that a log deleted, and that is in another file group: each row is tagged then."""
    return may_hold_deleted(state, files) and _ambiguous(stage, hits)


def _ambiguous(stage: Stage, hits: StagedHits) -> bool:
    """Whether a row's key is in several file groups of its partition."""
    by_partition: dict[str, list[str]] = {}
    for group, path in hits.paths.items():
        by_partition.setdefault(group.partition, []).append(path)
    for paths in by_partition.values():
        if len(paths) > 1:
            rows = np.concatenate([read_hits(stage.storage, path)[0] for path in paths])
            if not np.diff(np.sort(rows)).all():
                return True
    return False


def staged_tasks(stage: Stage, plan: WritePlan, hits: StagedHits, delete: bool) -> list[tuple[WriteTask, StagedTask]]:
    """The tasks of a plan with the staged rows that each takes."""
    pieces = by_partition(stage.pieces)
    taken: dict[str, tuple[str, ...]] = {}
    for group, path in hits.paths.items():
        taken[group.partition] = (*taken.get(group.partition, ()), path)
    shares = {} if delete else plan.insert_shares()
    return [
        (
            task,
            StagedTask(
                pieces[task.group.partition],
                hits.paths.get(task.group, ""),
                taken.get(task.group.partition, ()),
                *shares.get(task.number, (0.0, 0.0)),
            ),
        )
        for task in (*plan.tasks, *plan.spare)
    ]
