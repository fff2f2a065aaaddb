"""All options of a write, typed, and how it coordinates with others: its lock, which writers it considers dead, its
batch id, and which partitions of the metadata table it builds that they keep.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol, TypeVar

from hoodie.config.compaction import CompactionAfterCommit, CompactionOptions, compaction, inline_compaction
from hoodie.config.datasource import OF_TABLES
from hoodie.config.locks import BatchOptions, ConcurrencyOptions, FailedWrites, LockOptions, LockProvider, provider_for
from hoodie.config.metadata import MetadataOptions, RequestedPartitions, requested_partitions
from hoodie.config.options import Options, declared
from hoodie.config.read import MergerOptions, ReadSettings
from hoodie.config.services import (
    RECORDED,
    ArchiveOptions,
    CleanOptions,
    ExpiryOptions,
    RollbackOptions,
    ServiceOptions,
    clean_options,
)
from hoodie.config.sync import HiveSyncOptions, ManifestOptions, MetaSyncOptions, check_sync
from hoodie.config.table import TableConfig
from hoodie.config.validators import ValidatorOptions
from hoodie.config.write import (
    COMBINE,
    DROP,
    POLICY,
    BloomOptions,
    BroughtTypeOptions,
    ConsoleOptions,
    DropOptions,
    DuplicatePolicy,
    EngineOptions,
    FileSizing,
    IndexOptions,
    LogOptions,
    MissingColumnOptions,
    WriteOperation,
    WriteOptions,
)
from hoodie.errors import InvalidOption, LockWithoutMode
from hoodie.locks import Lock, lock_by
from hoodie.storage.protocol import Storage

A = TypeVar("A")
B = TypeVar("B")


class MapItems(Protocol):
    """What a kernel makes of each item, in their order; kernel, items and results pickle."""

    def __call__(self, kernel: Callable[[A], B], items: Sequence[A], /) -> list[B]: ...


@dataclass(frozen=True, slots=True)
class Executors:
    """Who builds partitions of the metadata table, where more than `above` bytes of base files are read for them.
    Others are built by this process."""

    run: MapItems
    above: int


@dataclass(frozen=True)
class Writers:
    """What the options say. The defaults are those of a writer that is alone."""

    lock: LockOptions = field(default_factory=LockOptions)
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)
    batch: BatchOptions = field(default_factory=BatchOptions)
    rollback: RollbackOptions = field(default_factory=RollbackOptions)
    metadata: RequestedPartitions = field(default_factory=RequestedPartitions)

    @classmethod
    def read(cls, options: Options) -> Writers:
        """Raises InvalidOption on a malformed value, and on options that say one half of a thing."""
        read = cls(
            options.read(LockOptions),
            options.read(ConcurrencyOptions),
            options.read(BatchOptions),
            options.read(RollbackOptions),
            requested_partitions(options),
        )
        named, numbered = read.batch.application != "", read.batch.batch >= 0
        if named != numbered:
            half, other_half = (0, 1) if named else (1, 0)
            keys = [spec.keys[0] for _, spec in declared(BatchOptions)]
            raise InvalidOption(f"{keys[half]} needs {keys[other_half]}: together they say which batch this is")
        return read

    def warn_of_half(self) -> None:
        """Warn (LockWithoutMode) about a lock whose writer rolls back the writes that others have begun."""
        if self.lock.named_provider is not None and self.concurrency.policy is FailedWrites.EAGER:
            warnings.warn(
                LockWithoutMode(
                    "hoodie.write.lock.provider is set, and hoodie.write.concurrency.mode is SINGLE_WRITER: this "
                    "writer takes the lock, and rolls back what other writers have begun. Several writers need "
                    "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL, each of them; one alone needs no "
                    "lock."
                ),
                stacklevel=2,
            )

    @cached_property
    def provider(self) -> LockProvider | None:
        """Who keeps the lock; None: there is none."""
        return provider_for(self.lock, self.concurrency)

    def lock_on(self, storage: Storage, name: str = "") -> Lock:
        """The table's lock, or another as of `lock_by`; without a provider every caller holds it at all times.

        Raises InvalidOption without an option its provider needs
        """
        if self.provider is None:
            return Lock("lock", None, self.lock)
        return lock_by(self.provider, self.lock, storage, name=name)


@dataclass(frozen=True, slots=True)
class Settings:
    """All options of a write."""

    sizing: FileSizing
    logs: LogOptions
    bloom: BloomOptions
    write: WriteOptions
    engine: EngineOptions
    mergers: tuple[str, ...]  # import paths of the user's own code that may be loaded
    missing: MissingColumnOptions
    dropping: DropOptions
    brought: BroughtTypeOptions
    metadata: MetadataOptions
    validators: ValidatorOptions
    console: ConsoleOptions
    indexes: IndexOptions
    services: ServiceOptions
    expiry: ExpiryOptions
    cleaning: CleanOptions
    archiving: ArchiveOptions
    manifests: ManifestOptions
    hive_sync: HiveSyncOptions
    meta_sync: MetaSyncOptions
    options: Options  # as they were given: an index has options of its own
    describes_table: bool  # some options say what a table is
    writers: Writers

    @classmethod
    def read(cls, options: Options) -> Settings:
        """Raises InvalidOption on a malformed value, or on two that exclude each other."""
        return options.memoized(_remembered)

    @classmethod
    def of(cls, text: Mapping[str, str]) -> Settings:
        """Those of options as text. Raises as `read`"""
        return cls.read(Options(text))

    def cleaning_of(self, table: TableConfig) -> CleanOptions:
        """How a table is cleaned: by the options, else as it keeps itself."""
        recorded = any(key in table.properties for key in RECORDED)
        return clean_options(self.options, table.properties) if recorded else self.cleaning

    def compaction_of(self, table: TableConfig | None) -> CompactionOptions:
        """When a table is compacted: by the options, else as it keeps itself."""
        return compaction(self.options, table.properties if table else {})

    def compacts_after_commit(self, table: TableConfig | None = None) -> CompactionAfterCommit:
        """What a writer does by itself. table: None: by the options alone"""
        return inline_compaction(self.options, table.properties if table else None)

    def drops_existing(self, operation: WriteOperation) -> bool:
        """Whether a write is to leave out rows whose key is there, and to combine those of one key.

        Raises InvalidOption on bulk_insert, which looks no key up: Hudi refuses that, too
        """
        if not self.dropping.duplicates:
            return operation is WriteOperation.INSERT and self.write.duplicates is DuplicatePolicy.DROP
        if operation is WriteOperation.BULK_INSERT:
            raise InvalidOption(f"{DROP}=true: bulk_insert looks no key up; take the operation insert")
        return operation in (WriteOperation.INSERT, WriteOperation.UPSERT)

    def executors(self, run: MapItems | None) -> Executors | None:
        """Who builds what is large, by the options that decide so for writes. run: None: this process builds all"""
        above = self.engine.driver_rewrite if self.engine.driver_batch > 0 else -1
        return None if run is None else Executors(run, above)

    @property
    def reading(self) -> ReadSettings:
        """The settings of the reads that the write makes."""
        return ReadSettings.read(self.options)


def _remembered(options: Options) -> Settings:
    return _settings(tuple(options.items()))


@lru_cache(maxsize=64)
def _settings(items: tuple[tuple[str, str], ...]) -> Settings:
    """Calls that stand for themselves, such as statements, come with the same options again and again."""
    options = Options(dict(items))
    inline_compaction(options)
    hive, meta = options.read(HiveSyncOptions), options.read(MetaSyncOptions)
    check_sync(hive, meta)
    return Settings(
        options.read(FileSizing),
        options.read(LogOptions),
        options.read(BloomOptions),
        options.read(WriteOptions),
        options.read(EngineOptions),
        options.read(MergerOptions).mergers,
        options.read(MissingColumnOptions),
        options.read(DropOptions),
        options.read(BroughtTypeOptions),
        options.read(MetadataOptions),
        options.read(ValidatorOptions),
        options.read(ConsoleOptions),
        options.read(IndexOptions),
        options.read(ServiceOptions),
        options.read(ExpiryOptions),
        options.read(CleanOptions),
        options.read(ArchiveOptions),
        options.read(ManifestOptions),
        hive,
        meta,
        options,
        not OF_TABLES.isdisjoint(options),
        Writers.read(options),
    )


def once_dropped(options: Options) -> Options:
    """The options for the rows that an insert has left."""
    return Options({**without_dropping(options), COMBINE: "true"})


def without_dropping(options: Options) -> Options:
    """The options of a write that says of each row what becomes of it: none of them drops any."""
    return Options({key: value for key, value in options.items() if key not in (DROP, POLICY)})


def for_new_keys(options: Options) -> Options:
    """The options for a table without a record key, which has the key of no new row: no policy has anything to do."""
    return Options({key: value for key, value in options.items() if key != POLICY})
