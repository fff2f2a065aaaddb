"""What each operation means for the rows of a batch, and what each table type does to a file group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hoodie.config.options import read_options
from hoodie.config.table import TableType
from hoodie.config.write import BloomOptions, FileSizing, SpreadOptions, WriteOperation, WriteOptions
from hoodie.model.files import FileSlice
from hoodie.model.instant import Action

SmallFiles = Callable[[Sequence[FileSlice], FileSizing], Sequence[tuple[FileSlice, int]]]


@dataclass(frozen=True, slots=True)
class Settings:
    """All options of a write."""

    sizing: FileSizing
    bloom: BloomOptions
    write: WriteOptions
    spread: SpreadOptions

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Settings:
        """Raises InvalidOption on a malformed value."""
        return cls(
            read_options(FileSizing, options),
            read_options(BloomOptions, options),
            read_options(WriteOptions, options),
            read_options(SpreadOptions, options),
        )


class Combine(StrEnum):
    """What becomes of rows of one key within a batch."""

    ALL = "all"  # each is written
    LAST = "last"  # the last one is taken
    ORDERED = "ordered"  # the merge rule decides


#: Operations that take file groups away; their instants are replace commits.
REPLACING = frozenset(
    {WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE, WriteOperation.DELETE_PARTITION}
)


class Replaces(StrEnum):
    """Which file groups a write takes away."""

    NOTHING = "nothing"
    PARTITIONS = "partitions"  # those of the partitions that the batch writes
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Semantics:
    """What an operation does with a batch."""

    locate: bool = False  # keys are looked up in the table
    match: bool = False  # rows that go to an existing file replace stored rows of their key; else they are appended
    delete: bool = False  # rows are keys to be removed
    bulk: bool = False  # rows are written as they come, to new file groups
    combine: Combine = Combine.ALL
    replaces: Replaces = Replaces.NOTHING
    small_files: SmallFiles = lambda slices, sizing: ()


def cow_small_files(slices: Sequence[FileSlice], sizing: FileSizing) -> list[tuple[FileSlice, int]]:
    """Base files that may take inserts, with their size, in listing order."""
    return [
        (slice_, slice_.base.size)
        for slice_ in slices
        if slice_.base is not None and slice_.base.size < sizing.small_limit
    ]


def no_small_files(slices: Sequence[FileSlice], sizing: FileSizing) -> list[tuple[FileSlice, int]]:
    """Inserts always open new file groups."""
    return []


@dataclass(frozen=True, slots=True)
class TableKind:
    """Where the table types differ. Everything else is one pipeline."""

    action: Action
    small_files: SmallFiles


KINDS = {TableType.COPY_ON_WRITE: TableKind(Action.COMMIT, cow_small_files)}


def semantics_of(operation: WriteOperation, options: WriteOptions, kind: TableKind) -> Semantics:
    """What the operation does, the options considered."""
    on_insert = Combine.ORDERED if options.combine_before_insert else Combine.ALL
    appended = Semantics(combine=on_insert, small_files=no_small_files)
    match operation:
        case WriteOperation.UPSERT:
            combine = Combine.ORDERED if options.combine_before_upsert else Combine.LAST
            return Semantics(locate=True, match=True, combine=combine, small_files=kind.small_files)
        case WriteOperation.DELETE:
            return Semantics(locate=True, match=True, delete=True, combine=Combine.LAST, small_files=no_small_files)
        case WriteOperation.INSERT:
            if options.duplicates_on_insert:
                return replace(appended, small_files=kind.small_files)
            combine = Combine.ORDERED if options.combine_before_insert else Combine.LAST
            return Semantics(match=True, combine=combine, small_files=kind.small_files)
        case WriteOperation.BULK_INSERT:
            return replace(appended, bulk=True)
        case WriteOperation.INSERT_OVERWRITE:
            return replace(appended, replaces=Replaces.PARTITIONS)
        case WriteOperation.INSERT_OVERWRITE_TABLE:
            return replace(appended, replaces=Replaces.TABLE)
        case WriteOperation.DELETE_PARTITION:
            return Semantics(small_files=no_small_files)
