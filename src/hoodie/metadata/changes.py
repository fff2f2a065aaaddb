"""What an action on a table changes in its file lists, by what its instant says.

Pure rules. Source: docs/format/metadata-table.md 4.2 and 7.4; pinned by the metadata tables of real Hudi in
tests/fixtures.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hoodie.metadata.keys import ALL_PARTITIONS, partition_id
from hoodie.metadata.records import FILES
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.instant import Instant
from hoodie.model.plans import CleanMetadata, RollbackMetadata
from hoodie.storage.protocol import split


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Changes of the file lists. Partitions are given by their paths.

    partitions  that the list of all partitions gets
    removed     that it loses
    added       names of files that are there now, and their bytes
    deleted     names of files that are gone
    """

    partitions: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    deleted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def records(self) -> pa.Table:
        """The entries of lists, of the schema `records.FILES`."""
        entries = [(ALL_PARTITIONS, partition_id(path), 0, False) for path in self.partitions]
        entries += [(ALL_PARTITIONS, partition_id(path), 0, True) for path in self.removed]
        for path, files in self.added.items():
            entries += [(partition_id(path), name, size, False) for name, size in files.items()]
        for path, names in self.deleted.items():
            entries += [(partition_id(path), name, 0, True) for name in names]
        rows, names, sizes, deleted = zip(*entries, strict=True) if entries else ((), (), (), ())
        columns = [
            pa.array(rows, pa.string()),
            pa.array(names, pa.string()),
            pa.array(sizes, pa.int64()),
            pa.array(np.array(deleted, np.bool_)),
        ]
        return pa.Table.from_arrays(columns, schema=FILES)


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """What a write changes in the record index, as far as the write knows.

    inserted   keys that it put into file groups that did not hold them, of the schema `record_index.PLACES`
    deleted    keys that it took from file groups; one that it inserted elsewhere may be among them
    looked_up  it has looked all of them up in the record index: where the other commits were `commits`
    commits    the completed commits of the timeline that it knows of
    """

    inserted: pa.Table
    deleted: pa.Table
    looked_up: bool = False
    commits: tuple[Instant, ...] = ()


def changes_of_commit(metadata: CommitMetadata) -> FileChanges:
    """A commit, delta commit, replace commit or compaction: the files that its statistics name, change logs included.

    Replaced file groups stay in the lists until cleaning deletes their files.
    """
    added: dict[str, dict[str, int]] = {}
    for partition, stats in metadata.stats.items():
        files = added.setdefault(partition, {})
        for stat in stats:
            sizes = {stat.path: stat.file_size} if stat.path else {}
            for path, size in {**sizes, **(stat.cdc_stats or {})}.items():
                name = split(path)[1]
                files[name] = max(size, files.get(name, 0))
    return FileChanges(partitions=tuple(metadata.stats), added=added)


def of_clean(metadata: CleanMetadata, saved: Collection[str] = ()) -> FileChanges:
    """A clean: the files that it was to delete, by this run or an earlier one that died.

    saved  names of planned files that a savepoint has saved since
    """
    stay = frozenset(saved)
    deleted = {
        partition: tuple(name for name in part.planned if name not in stay)
        for partition, part in metadata.partitions.items()
    }
    removed = tuple(partition for partition, part in metadata.partitions.items() if part.removed)
    return FileChanges(removed=removed, deleted={partition: names for partition, names in deleted.items() if names})


def of_rollback(metadata: RollbackMetadata, listed: Mapping[str, Collection[str]] | None = None) -> FileChanges:
    """A rollback: the log files with its command blocks, and those of the failed write, which stay.

    listed  files that it deleted and that are in the lists all the same, by partition path
    """
    added: dict[str, dict[str, int]] = {}
    for partition, part in metadata.partitions.items():
        if part.command_logs:  # the failed write's own logs count from here on: its commit has left the lists
            added[partition] = {**part.failed_logs, **part.command_logs}
    deleted = {partition: tuple(sorted(names)) for partition, names in (listed or {}).items() if names}
    return FileChanges(added=added, deleted=deleted)


def of_listing(partitions: Iterable[str], files: Iterable[BaseFile | LogFile]) -> FileChanges:
    """All of a table's files, as they are listed."""
    added: dict[str, dict[str, int]] = {}
    for file in files:
        added.setdefault(file.group.partition, {})[file.name] = file.size
    return FileChanges(partitions=tuple(sorted(partitions)), added=added)
