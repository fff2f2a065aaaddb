"""What readers see of a table, in files and bytes, and what commits wrote for the rows that they changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileSlice
from hoodie.table.state import KEEPS_SCHEMA
from hoodie.view.slices import FileSystemView


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What readers see of a partition, in bytes and files.

    small  base files up to `hoodie.parquet.small.file.limit`: they take inserts first
    """

    path: str
    groups: int
    base_bytes: int
    logs: int
    log_bytes: int
    small: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """What readers see of a table, in bytes and files.

    partitions    those that have file groups, by path
    base_sizes    bytes of the base files
    older_files, older_bytes  of files that no reader of the newest state needs: older versions and leftovers
    """

    partitions: tuple[PartitionFacts, ...]
    base_sizes: tuple[int, ...]
    older_files: int
    older_bytes: int

    @property
    def groups(self) -> int:
        """File groups."""
        return sum(part.groups for part in self.partitions)

    @property
    def base_bytes(self) -> int:
        return sum(self.base_sizes)

    @property
    def log_files(self) -> int:
        return sum(part.logs for part in self.partitions)

    @property
    def log_bytes(self) -> int:
        return sum(part.log_bytes for part in self.partitions)

    @property
    def small(self) -> int:
        """Small base files."""
        return sum(part.small for part in self.partitions)


@dataclass(frozen=True, slots=True)
class WrittenTotals:
    """Rows and bytes that commits wrote.

    changed  rows inserted, updated and deleted by writes. Services change none: what they write counts as written
    rows     in the files that were written, copied ones included
    """

    changed: int
    rows: int
    bytes: int

    @property
    def amplification(self) -> float | None:
        """Rows written for each row that changed; None where none did."""
        return self.rows / self.changed if self.changed else None


def sizes(slices: Iterable[FileSlice], files: Mapping[str, int], small_limit: int) -> Sizes:
    """The sizes of a table.

    slices       that a reader takes
    files        bytes of all data files by path (`file_sizes`)
    small_limit  bytes
    """
    by_partition: dict[str, list[FileSlice]] = {}
    read = set[str]()
    for file_slice in slices:
        by_partition.setdefault(file_slice.group.partition, []).append(file_slice)
        read.update(log.path for log in file_slice.logs)
        if file_slice.base is not None:
            read.add(file_slice.base.path)
    older = [files[path] for path in files.keys() - read]
    partitions = tuple(_partition(path, part, small_limit) for path, part in sorted(by_partition.items()))
    bases = tuple(s.base.size for part in by_partition.values() for s in part if s.base is not None)
    return Sizes(partitions, bases, len(older), sum(older))


def file_sizes(view: FileSystemView) -> dict[str, int]:
    """The bytes of all data files by path, whether readers see them or not."""
    files: dict[str, int] = {}
    for group in view.groups.values():
        files |= {base.path: base.size for base in group.bases}
        files |= {log.path: log.size for log in (*group.logs, *group.changes)}
    return files


def totals_written(commits: Iterable[CommitMetadata]) -> WrittenTotals:
    """What commits wrote and changed."""
    changed = rows = size = 0
    for commit in commits:
        if commit.operation not in KEEPS_SCHEMA:  # a compaction counts the rows of the writes before it
            changed += commit.inserted + commit.updated + commit.deleted
        rows += commit.rows_written
        size += commit.bytes_written
    return WrittenTotals(changed, rows, size)


def _partition(path: str, slices: Iterable[FileSlice], small_limit: int) -> PartitionFacts:
    slices = list(slices)
    bases = [file_slice.base.size for file_slice in slices if file_slice.base is not None]
    logs = [log.size for file_slice in slices for log in file_slice.logs]
    small = sum(size <= small_limit for size in bases)
    return PartitionFacts(path, len(slices), sum(bases), len(logs), sum(logs), small)
