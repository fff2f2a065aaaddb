"""The options of a write: how files grow, how keys are found, how duplicates are treated, where a write runs."""

import os
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hoodie.config.options import GiB, MiB, above_zero, bytes_option, from_zero, not_negative, option
from hoodie.errors import InvalidInput
from hoodie.model.commit import Operation


class IndexType(StrEnum):
    """How a key finds its file group."""

    AUTO = "AUTO"
    BLOOM = "BLOOM"
    SIMPLE = "SIMPLE"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BUCKET = "BUCKET"
    HBASE = "HBASE"
    RECORD_INDEX = "RECORD_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "RECORD_INDEX"  # what Hudi 1.1 and later call it


class BucketEngine(StrEnum):
    """How a bucket index assigns keys to buckets."""

    SIMPLE = "SIMPLE"
    CONSISTENT_HASHING = "CONSISTENT_HASHING"


class BulkInsertSort(StrEnum):
    """How bulk_insert orders rows before they are written."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"

    @property
    def by_key(self) -> bool:
        """Whether rows are sorted by partition path and key."""
        return self in (BulkInsertSort.GLOBAL_SORT, BulkInsertSort.PARTITION_SORT)

    @property
    def by_path(self) -> bool:
        """Whether the rows of a partition path come to one Spark partition."""
        return not self.by_key and self is not BulkInsertSort.NONE


class FilterType(StrEnum):
    """The kind of bloom filter that base files carry."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


class Codec(StrEnum):
    """How Parquet pages are compressed."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    GZIP = "gzip"
    UNCOMPRESSED = "none"


class LogFormat(StrEnum):
    """How the rows of a log block are laid out."""

    AVRO = "avro"
    PARQUET = "parquet"


#: Options by which an insert leaves out rows whose key is there.
DROP = "hoodie.datasource.write.insert.drop.duplicates"
POLICY = "hoodie.datasource.insert.dup.policy"
COMBINE = "hoodie.combine.before.insert"


class DuplicatePolicy(StrEnum):
    """What an insert does about keys that are there."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class MissingColumns(StrEnum):
    """What a write does about columns of the table that its batch lacks."""

    REFUSE = "refuse"
    NULL = "null"
    KEEP = "keep"


class WriteOperation(StrEnum):
    """What `hoodie.hudi.write` does with a batch."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"

    @cached_property
    def recorded(self) -> Operation:
        """The word that the commit metadata has for it."""
        return Operation[self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizing:
    """How large base files grow, in bytes."""

    max_size: int = bytes_option("hoodie.parquet.max.file.size", 120 * MiB, "A base file is closed at about this size.")
    small_limit: int = bytes_option(
        "hoodie.parquet.small.file.limit",
        100 * MiB,
        "Base files below this size take inserts first; 0: none do.",
        least=0,
    )
    block_size: int = bytes_option(
        "hoodie.parquet.block.size",
        120 * MiB,
        "A row group holds at most this many bytes, counted before encoding; also bounds what a task buffers.",
    )
    codec: Codec = option(
        "hoodie.parquet.compression.codec",
        Codec.ZSTD,
        "Page compression: zstd, snappy, gzip or uncompressed. Hudi's default, gzip, costs about 40 times the CPU.",
    )
    record_size: int = bytes_option(
        "hoodie.copyonwrite.record.size.estimate",
        1024,
        "Estimated bytes of a record in a base file, until a commit is large enough to measure it.",
    )
    measure_threshold: float = from_zero(
        "hoodie.record.size.estimation.threshold",
        1.0,
        "The record size is measured on the newest commit that wrote more bytes than this many small-file limits.",
    )
    auto_split: bool = option(
        "hoodie.copyonwrite.insert.auto.split",
        True,
        "Derive the rows of a new file group from its maximum size and the record size.",
    )
    split_size: int = above_zero(
        "hoodie.copyonwrite.insert.split.size", 500_000, "Rows of a new file group when auto.split is off."
    )
    small_candidates: int = above_zero(
        "hoodie.merge.small.file.group.candidates.limit",
        1,
        "Merge-on-Read: at most this many small file groups of a partition take inserts in one write, the smallest "
        "first; each is rewritten.",
    )
    log_ratio: float = above_zero(
        "hoodie.logfile.to.parquet.compression.ratio",
        0.35,
        "Bytes in a base file for one byte of log: estimates the size of a file group after its next compaction.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The log files of Merge-on-Read tables."""

    max_size: int = bytes_option(
        "hoodie.logfile.max.size", 1 * GiB, "After this many bytes a write continues in another log file."
    )
    block_size: int = option(
        "hoodie.logfile.data.block.max.size",
        256 * MiB,
        "The rows of one block take at most this many bytes, encoded; a single row may take more.",
        expected=f"bytes up to {GiB}, as blocks of 2 GiB cannot be read",
        check=lambda value: 0 < value <= GiB,
    )
    block_format: LogFormat = option(
        "hoodie.logfile.data.block.format",
        LogFormat.AVRO,
        "avro or parquet: the latter is smaller and compressed like base files.",
    )
    record_positions: bool = option(
        "hoodie.write.record.positions",
        True,
        "Log blocks tell the positions of their rows in the base file, where the look-up of a write found them: "
        "readers then need not compare keys.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomOptions:
    """The bloom filter in each base file's footer, and how the BLOOM index uses it."""

    entries: int = option(
        "hoodie.index.bloom.num_entries",
        0,
        "Keys a filter is sized for. 0: the rows of the file at hand, so that small files carry small filters "
        "(Hudi's fixed default is 60000).",
        expected="a number of keys, such as 60000",
        check=not_negative,
    )
    fpp: float = option(
        "hoodie.index.bloom.fpp",
        1e-9,
        "False positive rate of a filter at its designed number of keys.",
        expected="a probability, such as 0.000001",
        check=lambda value: 0 < value < 1,
    )
    kind: FilterType = option(
        "hoodie.bloom.index.filter.type",
        FilterType.DYNAMIC_V0,
        "DYNAMIC_V0 grows with the keys added later; SIMPLE does not.",
    )
    max_entries: int = above_zero(
        "hoodie.bloom.index.filter.dynamic.max.entries", 100_000, "A dynamic filter stops growing at this many keys."
    )
    prune_by_ranges: bool = option(
        "hoodie.bloom.index.prune.by.ranges",
        True,
        "Skip files whose range of keys does not hold a key; turn off for random keys.",
    )
    use_metadata: bool = option(
        "hoodie.bloom.index.use.metadata",
        False,
        "Take filters, and ranges of keys, from the partitions `bloom_filters` and `column_stats` of the metadata "
        "table, and read the footers only of files that have none there. Spark's executors read the footers of all.",
    )
    keys_per_bucket: int = above_zero(
        "hoodie.bloom.index.keys.per.bucket", 10_000_000, "Most pairs of key and file that one task looks up."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a batch is treated."""

    index: IndexType = option(
        "hoodie.index.type",
        IndexType.AUTO,
        "BLOOM drops files by key range and bloom filter, SIMPLE by key range and, for few keys, by filter, and reads "
        "the keys of the rest; "
        "GLOBAL_BLOOM and GLOBAL_SIMPLE find a key in any partition; BUCKET takes a hash of the key; HBASE asks a "
        "server; RECORD_INDEX, global, asks the record index of the metadata table, and builds it where there is none: "
        "GLOBAL_RECORD_LEVEL_INDEX is the same. "
        "AUTO: what the table was created with, BUCKET on a table of buckets, else SIMPLE.",
    )
    combine_before_insert: bool = option(COMBINE, False, "Combine rows of one key within an insert, too.")
    combine_before_upsert: bool = option(
        "hoodie.combine.before.upsert",
        True,
        "Combine rows of one key within an upsert by the ordering field; off: the last one of each key is taken.",
    )
    duplicates_on_insert: bool = option(
        "hoodie.merge.allow.duplicate.on.inserts",
        True,
        "An insert into a small file appends without looking for its key; off: an existing key is updated.",
    )
    duplicates: DuplicatePolicy = option(
        POLICY,
        DuplicatePolicy.NONE,
        "none: an insert does not look at keys that are there; drop: it leaves rows of such keys out, and combines "
        "those of one key; fail: one of them fails it, as two rows of one key do that are not combined.",
    )
    bulk_sort: BulkInsertSort = option(
        "hoodie.bulkinsert.sort.mode",
        BulkInsertSort.NONE,
        "NONE writes rows as they come, PARTITION_SORT sorts within each Spark partition, GLOBAL_SORT over all. "
        "PARTITION_PATH_REPARTITION brings the rows of a partition path to one Spark partition, with AND_SORT behind "
        "it one path after another.",
    )
    bulk_parallelism: int = from_zero(
        "hoodie.bulkinsert.shuffle.parallelism", 0, "Most Spark partitions of a bulk_insert; 0: Spark's choice."
    )
    withdraw_clusterings: bool = option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        False,
        "A write to a file group that a pending clustering of Hudi is to replace rolls the clustering's plan back "
        "first; off: it is refused.",
    )
    auto_commit: bool = option(
        "hoodie.auto.commit", True, "HoodieWriteClient: a write is committed at once; off: by commit()."
    )
    metadata_prefix: str = option(
        "hoodie.datasource.write.commitmeta.key.prefix",
        "_",
        "Write options with this prefix are kept in the commit's metadata.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtTypeOptions:
    """What becomes of columns of Arrow rows that have another type than the table's."""

    read_text: bool = option(
        "hoodie.write.read.text",
        False,
        "Text of Arrow, pandas, Polars and DuckDB rows is read as the date, time, number or truth value that its "
        "column of the table holds, as CAST reads it. Else it is refused. Not an option of Hudi.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingColumnOptions:
    """What becomes of a batch that lacks columns of the table, nested ones included."""

    missing: MissingColumns = option(
        "hoodie.write.missing.columns",
        MissingColumns.REFUSE,
        "refuse: nothing is written; null: the batch's rows are null there; keep: an upsert leaves the stored values "
        "there, and new keys are null. Not an option of Hudi.",
    )
    nulls: bool = option(
        "hoodie.write.set.null.for.missing.columns",
        False,
        "Rows of a batch that lacks columns are null there, as by `hoodie.write.missing.columns=null`.",
    )
    reconcile: bool = option(
        "hoodie.datasource.write.reconcile.schema",
        False,
        "As `hoodie.write.set.null.for.missing.columns`. With it and without, columns of the table keep their order, "
        "and their types unless the batch widens one; new ones are appended.",
    )

    @property
    def policy(self) -> MissingColumns:
        """What all of them say together."""
        if self.missing is MissingColumns.REFUSE and (self.nulls or self.reconcile):
            return MissingColumns.NULL
        return self.missing


def missing_options(missing: str | None) -> dict[str, str]:
    """The options that the argument `missing` of a call stands for; None: it says nothing.

    Raises InvalidInput on another word than refuse, null or keep
    """
    if missing is None:
        return {}
    words = [word.value for word in MissingColumns]
    if missing not in words:
        raise InvalidInput(f"missing={missing!r}: expected one of {', '.join(map(repr, words))}")
    return {
        "hoodie.write.missing.columns": str(missing),
        "hoodie.write.set.null.for.missing.columns": "false",
        "hoodie.datasource.write.reconcile.schema": "false",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOptions:
    """Rows that a write leaves out."""

    duplicates: bool = option(
        DROP,
        False,
        "An insert or upsert leaves out rows whose key is there, and combines those of one key.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """Settings of single indexes. The buckets of a table change only by clustering, with CONSISTENT_HASHING."""

    own: str = option(
        "hoodie.index.class",
        "",
        "Import path, `package.module:attribute`, of a function that makes an index of your own; it overrides "
        "`hoodie.index.type`. Never read from a table.",
    )
    bloom_moves: bool = option(
        "hoodie.bloom.index.update.partition.path",
        True,
        "GLOBAL_BLOOM: a record with another partition than the stored one is deleted there and inserted in the new "
        "one; off: it is updated where it is.",
    )
    simple_moves: bool = option(
        "hoodie.simple.index.update.partition.path", True, "GLOBAL_SIMPLE: as for GLOBAL_BLOOM."
    )
    record_moves: bool = option(
        "hoodie.record.index.update.partition.path",
        False,
        "RECORD_INDEX: as for GLOBAL_BLOOM. Off by default, as in Hudi.",
    )
    buckets: int = above_zero(
        "hoodie.bucket.index.num.buckets",
        256,
        "BUCKET: buckets of each partition, a file group each. Stored in a table that is created for it. With the "
        "engine CONSISTENT_HASHING: what a new partition begins with.",
    )
    hash_fields: tuple[str, ...] = option(
        "hoodie.bucket.index.hash.field",
        (),
        "BUCKET: the columns of the record key that the bucket follows from; not set: all of them.",
    )
    engine: BucketEngine = option(
        "hoodie.index.bucket.engine",
        BucketEngine.SIMPLE,
        "BUCKET: SIMPLE, or CONSISTENT_HASHING, whose buckets Hudi's clustering splits and merges (Merge-on-Read). On "
        "a table that keeps hashing metadata it is CONSISTENT_HASHING.",
    )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """When a write runs in threads of the driver and when on Spark's executors. Not options of Hudi."""

    driver_batch: int = bytes_option(
        "hoodie.spark.driver.max.batch.bytes",
        256 * MiB,
        "A batch up to this size is collected to the driver as Arrow; 0: every write runs on executors.",
        aliases=("hoodie.spark.near.max.batch.bytes",),
        least=0,
    )
    driver_rewrite: int = bytes_option(
        "hoodie.spark.driver.max.rewrite.bytes",
        2 * GiB,
        "Driver threads rewrite at most this many bytes of base files; above it executors do.",
        aliases=("hoodie.spark.near.max.rewrite.bytes",),
        least=0,
    )
    driver_threads: int = from_zero(
        "hoodie.spark.driver.threads",
        0,
        "Driver threads that write a batch; 0: one per core.",
        aliases=("hoodie.spark.near.threads",),
    )

    @cached_property
    def threads(self) -> int:
        """Threads that write a batch."""
        return self.driver_threads or os.cpu_count() or 1


WRITE_GROUPS = (
    FileSizing,
    LogOptions,
    BloomOptions,
    WriteOptions,
    MissingColumnOptions,
    BroughtTypeOptions,
    DropOptions,
    IndexOptions,
    EngineOptions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """What is shown in a terminal or a notebook."""

    progress: bool = option(
        "hoodie.console.progress",
        True,
        "A call of more than two seconds says on standard error how far it is; writes and compactions show a bar in "
        "terminals and notebooks that have the package tqdm. Not an option of Hudi.",
    )
