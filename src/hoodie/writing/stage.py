"""A staged batch as a whole: where it lies, what is in it, and which of its rows each task of a plan takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import InvalidInput
from hoodie.model.files import FileGroupId
from hoodie.plan.write import PartitionProfile, WritePlan, WriteTask
from hoodie.storage.protocol import Storage
from hoodie.table.partition_metadata import require_partition_paths
from hoodie.writing.driver import refuse_bad_keys
from hoodie.writing.staging import Piece, StagedTask, by_partition, read_pieces

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
        """All of it, in this process."""
        batches = [batch for _, batch in read_pieces(self.storage, self.pieces)]
        return pa.Table.from_batches(batches)

    def release(self) -> None:
        """Remove the staged files."""
        self.storage.delete_tree(self.folder)


def require_sound(measured: Measured, ordering: Sequence[str]) -> None:
    """Refuse a staged batch with rows that cannot be written. Raises InvalidInput saying how many.

    ordering  columns whose nulls were counted
    """
    refuse_bad_keys(measured.bad_keys, measured.bad_paths)
    require_partition_paths(measured.rows)
    if measured.bad_ordering:
        raise InvalidInput(f"{measured.bad_ordering} rows have no ordering value: {', '.join(ordering)} is null.")


def profile(measured: Measured, updates: Mapping[str, Mapping[str, int]], insert: bool) -> dict[str, PartitionProfile]:
    """The workload profile; insert False: rows without location have no effect (delete).

    updates  hits by partition path and file id. A row whose key is in the table several times counts as often, and may
             so hide an insert
    """
    made = {}
    for partition, rows in measured.rows.items():
        there = updates.get(partition, {})
        inserts = max(0, rows - sum(there.values())) if insert else 0
        if inserts or there:
            made[partition] = PartitionProfile(inserts, dict(there), insert and bool(there) and not inserts)
    return made


def reads_stay_few(pieces: Sequence[Piece], readers: Mapping[str, int]) -> bool:
    """Whether `readers` tasks of each partition may all read that partition's rows: few bytes in all, and so few in
    each partition that a task can hold its keys."""
    sizes: dict[str, int] = {}
    for piece in pieces:
        sizes[piece.partition or ""] = sizes.get(piece.partition or "", 0) + piece.bytes
    reads = sum(size * readers.get(partition, 0) for partition, size in sizes.items())
    total = sum(sizes.values())
    return max(sizes.values(), default=0) <= LARGEST_PARTITION and reads <= max(_FEW_READS * total, FEW_BYTES)


def staged_tasks(
    stage: Stage, plan: WritePlan, hits: Mapping[FileGroupId, str], delete: bool
) -> list[tuple[WriteTask, StagedTask]]:
    """The tasks of a plan with the staged rows that each takes.

    hits  where the hits of each file group are staged
    """
    pieces = by_partition(stage.pieces)
    taken: dict[str, tuple[str, ...]] = {}
    for group, path in hits.items():
        taken[group.partition] = (*taken.get(group.partition, ()), path)
    shares = {} if delete else plan.insert_shares()
    return [
        (
            task,
            StagedTask(
                pieces[task.group.partition],
                hits.get(task.group, ""),
                taken.get(task.group.partition, ()),
                *shares.get(task.number, (0.0, 0.0)),
            ),
        )
        for task in (*plan.tasks, *plan.spare)
    ]


def hits_path(folder: str, call: int) -> str:
    """Where the hits of a look-up are staged."""
    return f"{folder}/hits-{call}.arrow"
