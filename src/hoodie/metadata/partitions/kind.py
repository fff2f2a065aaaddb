"""What a partition of the metadata table is made of, for writes: what an action on the table changes in it, how its
records are stored, and what it begins with.

Reads know all partitions (`hoodie.metadata.records`, `hoodie.metadata.merging`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.config.metadata import MetadataOptions
from hoodie.config.table import TableConfig
from hoodie.formats.hfile.writer import BLOCK_SIZE
from hoodie.metadata.changes import FileChanges, KeyChanges
from hoodie.metadata.keys import MetadataPartition
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileSlice
from hoodie.model.table_version import TableVersion
from hoodie.storage.protocol import Storage
from hoodie.timeline.timeline import Timeline

#: The keys of the rows that a snapshot reader has of a file slice: string[n].
SliceKeys = Callable[[FileSlice], pa.ChunkedArray]
#: How keys of some slices of a table are read, those in logs included.
ReadKeys = Callable[[Storage, TableConfig, Timeline, Sequence[FileSlice]], SliceKeys]


@dataclass(frozen=True, slots=True)
class Change:
    """What an action does to a table, before it is completed.

    storage, config, timeline  of the table, loaded just now, the instant pending
    instant                    of the action, 17 digits
    files                      what it changes in the file lists
    commit                     of a write, a compaction or a clustering; None: a clean or a rollback
    keys                       which keys a write changed; None: it does not say
    compacted                  a rollback takes back what is part of base files of the metadata table by now
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    instant: str
    files: FileChanges
    commit: CommitMetadata | None = None
    keys: KeyChanges | None = None
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class Building:
    """A table whose metadata table, or a partition of it, is built.

    storage, config, timeline  of the table; nothing is pending
    instant                    of the delta commit that is about to be written
    files                      all files of completed instants: `added` by partition path
    options                    of the write, or the call, that builds
    read_keys                  None: of slices without logs only
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    instant: str
    files: FileChanges
    options: MetadataOptions
    read_keys: ReadKeys | None = None


def _accepted(records: pa.Table) -> None:
    """Any records may be in one file group."""


@dataclass(frozen=True, slots=True)
class InitialContent:
    """What a partition begins with, as work for tasks; all of it pickles.

    groups   how many file groups it has, for good. `keys.file_groups_of` says which one a record's key belongs to
    shares   of the table's files, each little enough for one task
    records  those of a share, of the schema `records.SCHEMAS`, a part at a time. Raises CorruptFile, UnsupportedTable
    check    looks at all records of a file group. Raises UnsupportedTable where they cannot be in one
    """

    groups: int
    shares: Sequence[Any]
    records: Callable[[Any], Iterable[pa.Table]]
    check: Callable[[pa.Table], None] = _accepted


def never(version: TableVersion) -> bool:
    """In no version of the table."""
    return False


def always(version: TableVersion) -> bool:
    """In each version of the table."""
    return True


def untyped_or_typed(version: TableVersion) -> bool:
    """In versions whose statistics have a form that is written here: that of version 8 is another one."""
    return version.types_statistics or not version.defines_indexes


def where_typed(version: TableVersion) -> bool:
    """In versions whose statistics say the types of their values."""
    return version.types_statistics


def where_defined(version: TableVersion) -> bool:
    """In versions with index definitions."""
    return version.defines_indexes


@dataclass(frozen=True, slots=True)
class PartitionKind:
    """A partition that writes keep.

    partition      its name and folder
    prefix         of its file ids, which go on with a number: `files-0000-0`
    records        what an action changes in it: a table of `records.SCHEMAS`. Two records of one key are combined
                   already. Raises CorruptFile, UnsupportedTable where it is not known: the partition is removed then
    first          what it begins with
    cells          rows and values of cells, string[n] and binary[n], sorted by the rows' bytes; of records, the name of
                   the base file that they are for, "" in a log block, and the schema that they are written by
    settings       what the table's settings keep of the options that it is built with, for all later writes
    differences    what is wrong in it, one line each: in its records, deleted ones left out, beside the table's files
    deletes_apart  whether keys of records that are `deleted` stand in a block of their own, in a table of a version;
                   else they are records as others
    is_of          whether metadata tables of tables of a version have it, as it is written here
    block_size     bytes of a data block of its base files
    """

    partition: MetadataPartition
    prefix: str
    records: Callable[[Change], pa.Table]
    first: Callable[[Building], InitialContent]
    cells: Callable[[pa.Table, str, str], tuple[pa.Array, pa.Array]]
    settings: Callable[[MetadataOptions], Mapping[str, str]] = lambda options: {}
    differences: Callable[[Building, pa.Table], Iterable[str]] = lambda building, records: ()
    deletes_apart: Callable[[TableVersion], bool] = never
    is_of: Callable[[TableVersion], bool] = always
    block_size: int = BLOCK_SIZE

    def file_id(self, number: int) -> str:
        """The id of a file group."""
        return f"{self.prefix}-{number:04}-0"
