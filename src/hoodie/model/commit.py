"""What a commit did: write statistics per file, and the commit's own metadata."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial

from hoodie.display.render import Displayed
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, bytes_text, count_text, summary
from hoodie.model.files import FileGroupId


class Operation(StrEnum):
    """The kind of write, as the commit metadata names it."""

    INSERT = "INSERT"
    INSERT_PREPPED = "INSERT_PREPPED"
    UPSERT = "UPSERT"
    UPSERT_PREPPED = "UPSERT_PREPPED"
    BULK_INSERT = "BULK_INSERT"
    BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
    DELETE = "DELETE"
    DELETE_PREPPED = "DELETE_PREPPED"
    BOOTSTRAP = "BOOTSTRAP"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    CLUSTER = "CLUSTER"
    DELETE_PARTITION = "DELETE_PARTITION"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    COMPACT = "COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    LOG_COMPACT = "LOG_COMPACT"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WriteStat(Displayed):
    """What one write did to one file. Counts are rows, sizes bytes, times milliseconds."""

    file_id: str  # "" in the insert profile of an inflight commit
    path: str | None  # relative to the base path; None in an inflight profile
    partition: str | None
    prev_commit: str = "null"  # the word "null" for a new file group
    num_writes: int = 0  # rows in the new file, copied ones included
    num_deletes: int = 0
    num_updates: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    file_size: int = 0
    write_errors: int = 0
    log_records: int = 0
    log_files_compacted: int = 0
    log_size_compacted: int = 0
    updated_records_compacted: int = 0
    log_blocks: int = 0
    corrupt_log_blocks: int = 0
    rollback_blocks: int = 0
    min_event_time: int | None = None
    max_event_time: int | None = None
    scan_time: int = 0
    upsert_time: int = 0
    create_time: int = 0
    cdc_stats: Mapping[str, int] | None = None
    prev_base_file: str = field(default="", compare=False)  # name of the one it replaces; only Avro has it
    # only in the stats of a log write
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None  # name of the slice's base file, "" for none
    log_files: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the write made: the data file, and the change logs beside it."""
        return (*((self.path,) if self.path else ()), *(self.cdc_stats or ()))

    def _summary(self) -> ResultSummary:
        rows = f"{self.num_inserts} inserted, {self.num_updates} updated, {self.num_deletes} deleted"
        written = bytes_text(self.total_write_bytes)
        return summary(f"WriteStat({self.path or self.partition or self.file_id}: {rows}, {written} written)")


@dataclass(frozen=True, kw_only=True, repr=False)
class CommitMetadata(Displayed):
    """The content of a completed commit, delta commit or replace commit."""

    operation: Operation
    stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)  # by partition path
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # partition path -> replaced file ids
    extra: Mapping[str, str] = field(default_factory=dict)  # "schema": Avro JSON of the user's columns
    compacted: bool = False

    @cached_property
    def schema(self) -> str:
        """Avro JSON of the user's columns, "" when the commit carries none."""
        return self.extra.get("schema", "")

    @property
    def says_nothing(self) -> bool:
        """Whether it is as that of an empty file: which files were written is lost."""
        return self == CommitMetadata(operation=Operation.UNKNOWN)

    @property
    def all_stats(self) -> tuple[WriteStat, ...]:
        """The statistics of all partitions."""
        return tuple(stat for part in self.stats.values() for stat in part)

    @property
    def paths(self) -> frozenset[str]:
        """The files of all partitions that were made, relative to the base path; change logs are among them."""
        return frozenset(path for stat in self.all_stats for path in stat.paths)

    @property
    def inserted(self) -> int:
        """Rows, as the statistics count them."""
        return sum(stat.num_inserts for stat in self.all_stats)

    @property
    def updated(self) -> int:
        return sum(stat.num_updates for stat in self.all_stats)

    @property
    def deleted(self) -> int:
        return sum(stat.num_deletes for stat in self.all_stats)

    @property
    def rows_written(self) -> int:
        """Rows in the files that were written, copied ones included."""
        return sum(stat.num_writes for stat in self.all_stats)

    @property
    def files(self) -> int:
        """How many files were written."""
        return sum(len(part) for part in self.stats.values())

    @property
    def bytes_written(self) -> int:
        return sum(stat.total_write_bytes for stat in self.all_stats)

    def _summary(self) -> ResultSummary:
        title = (
            f"CommitMetadata({self.operation}: {self.inserted} inserted, {self.updated} updated, {self.deleted} "
            f"deleted in {count_text(self.files, 'file')}, {bytes_text(self.bytes_written)} written)"
        )
        rows = (
            (
                partition,
                len(part),
                sum(stat.num_inserts for stat in part),
                sum(stat.num_updates for stat in part),
                sum(stat.num_deletes for stat in part),
                sum(stat.total_write_bytes for stat in part),
            )
            for partition, part in self.stats.items()
        )
        return summary(title, _BY_PARTITION, rows, len(self.stats), compact=True)


_BY_PARTITION = (
    ShownColumn("partition"),
    *(ShownColumn(name, ColumnKind.COUNT) for name in ("files", "inserted", "updated", "deleted")),
    ShownColumn("written", ColumnKind.BYTES),
)


def inflight_profile(
    operation: Operation, groups: Iterable[tuple[FileGroupId, str | None, int, int]]
) -> CommitMetadata:
    """The workload profile of a write, as the metadata of its inflight instant.

    groups  file groups that it writes to: each with the base instant of the slice at hand (None: the group is new), the
            rows whose key is new, and those whose key it holds
    """
    inserts, updates = Counter[str](), defaultdict[str, list[WriteStat]](list)
    planned = partial(WriteStat, path=None, partition=None)
    for group, base_instant, new, old in groups:
        inserts[group.partition] += new
        if base_instant is not None:
            updates[group.partition].append(planned(file_id=group.file_id, prev_commit=base_instant, num_updates=old))
    stats = {partition: (planned(file_id="", num_inserts=n), *updates[partition]) for partition, n in inserts.items()}
    return CommitMetadata(operation=operation, stats=stats)
