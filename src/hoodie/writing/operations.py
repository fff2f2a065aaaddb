"""What each operation means for the rows of a batch, and what each table type does to a file group; and which writers
may add to the logs of one file group at a time, each to a file of its own.

What others of these writers do is checked as for optimistic ones: `hoodie.plan.conflict`. Source:
docs/format/table-versions-8-9.md 8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from hoodie.config.locks import ConcurrencyMode
from hoodie.config.options import Options
from hoodie.config.table import TableType
from hoodie.config.write import BucketEngine, DuplicatePolicy, FileSizing, WriteOperation, WriteOptions
from hoodie.errors import InvalidOption
from hoodie.index import bucket
from hoodie.index.choose import bucket_engine
from hoodie.index.consistent_hashing import keeps_metadata
from hoodie.index.contract import Index
from hoodie.model.files import FileSlice
from hoodie.model.instant import Action
from hoodie.plan.write import TaskKind, TaskKinds
from hoodie.table.settings import Settings
from hoodie.table.state import TableState

FindSmallFiles = Callable[[Sequence[FileSlice], FileSizing], Sequence[tuple[FileSlice, int]]]


class Combine(StrEnum):
    """What becomes of rows of one key within a batch."""

    ALL = "all"  # each is written
    LAST = "last"  # the last one is taken
    ORDERED = "ordered"  # the merge rule decides
    UNIQUE = "unique"  # there is one: two are an error
    STORED = "stored"  # as UNIQUE, and the rows are the table's own: it has the key twice


#: Operations that take file groups away; their instants are replace commits.
REPLACING = frozenset(
    {WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE, WriteOperation.DELETE_PARTITION}
)


class Replaces(StrEnum):
    """Which file groups a write takes away."""

    NOTHING = "nothing"
    PARTITIONS = "partitions"  # those of the partitions that the batch writes
    TABLE = "table"


class LateRows(StrEnum):
    """What becomes of rows for a log that have a lesser ordering value than the stored row."""

    AS_READ = "as read"  # the table's rule decides, whenever the log is read
    LOSE = "lose"  # they are not written
    WIN = "win"  # what they replace is deleted before them


@dataclass(frozen=True, slots=True)
class OperationRules:
    """What an operation does with a batch."""

    kinds: TaskKinds  # of its tasks
    locate: bool = False  # keys are looked up in the table
    match: bool = False  # rows that go to an existing file replace stored rows of their key; else they are appended
    delete: bool = False  # rows are keys to be removed
    new_keys: bool = False  # a key that is there fails the write
    bulk: bool = False  # rows are written as they come, to new file groups
    combine: Combine = Combine.ALL
    replaces: Replaces = Replaces.NOTHING
    small_files: FindSmallFiles = lambda slices, sizing: ()
    key_columns: tuple[str, ...] = ()  # that record keys are made of, where they are several
    needs_ordering: bool = False  # though rows of one key are not compared: they are with the stored row
    late_rows: LateRows = LateRows.AS_READ


def small_bases(slices: Sequence[FileSlice], sizing: FileSizing) -> list[tuple[FileSlice, int]]:
    """Base files that may take inserts, with their size, in listing order."""
    return [
        (slice_, slice_.base.size)
        for slice_ in slices
        if slice_.base is not None and slice_.base.size < sizing.small_limit
    ]


def small_bases_without_logs(slices: Sequence[FileSlice], sizing: FileSizing) -> list[tuple[FileSlice, int]]:
    """The smallest base files to which no log belongs: these can be rewritten without a merge.

    A pending compaction leaves its group's slice without a base file, so that such a group is never among them.
    """
    candidates = [(slice_, size) for slice_, size in small_bases(slices, sizing) if not slice_.logs]
    return sorted(candidates, key=_by_size)[: sizing.small_candidates]


def small_slices(slices: Sequence[FileSlice], sizing: FileSizing) -> list[tuple[FileSlice, int]]:
    """File slices whose base file and logs, once compacted, leave room, with the size they will have then."""
    if sizing.small_limit == 0:
        return []
    sizes = [(s, (s.base.size if s.base else 0) + int(sizing.log_ratio * s.log_bytes)) for s in slices]
    return sorted((candidate for candidate in sizes if candidate[1] < sizing.max_size), key=_by_size)


def _by_size(candidate: tuple[FileSlice, int]) -> int:
    return candidate[1]


def no_small_files(slices: Sequence[FileSlice], sizing: FileSizing) -> list[tuple[FileSlice, int]]:
    """Inserts always open new file groups."""
    return []


@dataclass(frozen=True, slots=True)
class TableKind:
    """Where the table types differ. Everything else is one pipeline."""

    action: Action
    small_files: FindSmallFiles
    kinds: TaskKinds


_COPY_ON_WRITE = TableKind(
    Action.COMMIT, small_bases, TaskKinds(insert=TaskKind.CREATE, fill=TaskKind.REWRITE, update=TaskKind.REWRITE)
)
#: Keys are looked up in base files only, so that each must be in one before it is in a log.
_MERGE_ON_READ = TableKind(
    Action.DELTA_COMMIT,
    small_bases_without_logs,
    TaskKinds(insert=TaskKind.CREATE, fill=TaskKind.REWRITE, update=TaskKind.APPEND),
)
_MERGE_ON_READ_ALL_IN_LOGS = TableKind(
    Action.DELTA_COMMIT, small_slices, TaskKinds(insert=TaskKind.APPEND, fill=TaskKind.APPEND, update=TaskKind.APPEND)
)


def kind_of(table: TableType, inserts_to_logs: bool) -> TableKind:
    """How tables of a type are written. inserts_to_logs: the index finds keys in log files, too (`Index.sees_logs`)"""
    if table is TableType.COPY_ON_WRITE:
        return _COPY_ON_WRITE
    return _MERGE_ON_READ_ALL_IN_LOGS if inserts_to_logs else _MERGE_ON_READ


@lru_cache  # made of few values, and asked for by each write
def rules_of(
    operation: WriteOperation,
    options: WriteOptions,
    kind: TableKind,
    *,
    placed_by_key: bool = False,
    only_new: bool = False,
) -> OperationRules:
    """What the operation does, the options considered.

    placed_by_key  each key's file group follows from the key (`ByKey.every_write`): no operation puts it elsewhere
    only_new       the table gives each row a key of its own: there is nothing to look up or to combine
    """
    if only_new:
        operation = WriteOperation.INSERT if operation is WriteOperation.UPSERT else operation
        options = replace(
            options, combine_before_insert=False, duplicates=DuplicatePolicy.NONE, duplicates_on_insert=True
        )
    rules = _rules_of(operation, options, kind)
    if not placed_by_key or operation is WriteOperation.DELETE_PARTITION:
        return rules
    rules = replace(rules, locate=True, bulk=False, small_files=no_small_files)
    if not rules.match and rules.replaces is Replaces.NOTHING and kind.kinds.update is TaskKind.APPEND:
        # A log has each key once: a second row of it is an update.
        combine = Combine.ORDERED if options.combine_before_insert else Combine.LAST
        return replace(rules, match=True, combine=combine)
    return rules


def _rules_of(operation: WriteOperation, options: WriteOptions, kind: TableKind) -> OperationRules:
    on_insert = Combine.ORDERED if options.combine_before_insert else Combine.ALL
    matched = OperationRules(kind.kinds, locate=True, match=True)
    appended = OperationRules(kind.kinds, combine=on_insert, small_files=no_small_files)
    loaded = replace(appended, kinds=replace(kind.kinds, insert=TaskKind.CREATE))  # base files on any table
    match operation:
        case WriteOperation.UPSERT:
            combine = Combine.ORDERED if options.combine_before_upsert else Combine.LAST
            return replace(matched, combine=combine, small_files=kind.small_files)
        case WriteOperation.DELETE:
            return replace(matched, delete=True, combine=Combine.LAST, small_files=no_small_files)
        case WriteOperation.INSERT if options.duplicates is DuplicatePolicy.FAIL:
            combine = Combine.ORDERED if options.combine_before_insert else Combine.UNIQUE
            return replace(matched, new_keys=True, combine=combine, small_files=kind.small_files)
        case WriteOperation.INSERT:
            if options.duplicates_on_insert:
                return replace(appended, small_files=kind.small_files)
            combine = Combine.ORDERED if options.combine_before_insert else Combine.LAST
            return replace(appended, match=True, combine=combine, small_files=kind.small_files)
        case WriteOperation.BULK_INSERT:
            return replace(loaded, bulk=True)
        case WriteOperation.INSERT_OVERWRITE:
            return replace(loaded, replaces=Replaces.PARTITIONS)
        case WriteOperation.INSERT_OVERWRITE_TABLE:
            return replace(loaded, replaces=Replaces.TABLE)
        case WriteOperation.DELETE_PARTITION:
            return replace(loaded, combine=Combine.ALL)


#: Operations whose rows go to logs in this mode. The others write base files, or take file groups away.
APPENDING = frozenset({WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.DELETE})
_MODE = "hoodie.write.concurrency.mode"


def blocking(settings: Settings) -> Settings:
    """The settings of a write that does not add to logs: its new file groups have ids of their own."""
    if not settings.writers.concurrency.non_blocking:
        return settings
    mode = ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL.value
    return replace(settings, options=Options({**settings.options, _MODE: mode}))


def require_logs(state: TableState, index: Index, settings: Settings) -> None:
    """Raises InvalidOption where writers of the mode could not keep out of each other's way: on a table of another
    kind than Hudi has it for."""
    if not settings.writers.concurrency.non_blocking:
        return
    config, lacking = state.config, []
    if not config.merge_on_read:
        lacking.append("it is Copy-on-Write")
    if not state.layout.version.logs_of_writes:
        lacking.append(f"it has version {config.version}, whose log files do not say which write they are of")
    if index.name != bucket.NAME:
        lacking.append(f"its index is {index.name}")
    elif bucket_engine(settings.options, config) is not BucketEngine.SIMPLE or keeps_metadata(
        state.storage, state.timeline
    ):
        lacking.append(f"its buckets are those of {bucket.ENGINE}={BucketEngine.CONSISTENT_HASHING}")
    if lacking:
        raise InvalidOption(
            f"{_MODE}={ConcurrencyMode.NON_BLOCKING_CONCURRENCY_CONTROL} is for Merge-on-Read tables of version 8 or 9 "
            f"with the index BUCKET, engine SIMPLE. {config.name} is none: {'; '.join(lacking)}. Take "
            f"{ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL}"
        )
