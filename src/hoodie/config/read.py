"""The options of reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from hoodie.config.metadata import MetadataOptions
from hoodie.config.options import GiB, MiB, Options, option
from hoodie.config.write import EngineOptions


class QueryType(StrEnum):
    """What `hoodie.hudi.read` gives of a table."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class IncrementalFormat(StrEnum):
    """What an incremental query returns of changed rows."""

    LATEST_STATE = "latest_state"
    CDC = "cdc"


class ChangeImages(StrEnum):
    """The form of the images in change data."""

    JSON = "json"
    STRUCT = "struct"


class ReadRoute(StrEnum):
    """Who reads base files for Spark."""

    AUTO = "auto"
    SPARK = "spark"
    ARROW = "arrow"


class HolePolicy(StrEnum):
    """What an incremental query does about a pending commit that is older than a completed one."""

    FAIL = "FAIL"
    BLOCK = "BLOCK"
    USE_TRANSITION_TIME = "USE_TRANSITION_TIME"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    """How much memory a task takes to merge the logs of a file slice into its base file."""

    max_bytes: int = option(
        "hoodie.memory.merge.max.size",
        1 * GiB,
        "Rows of logs that a merge holds in memory; more are spilled to local disk.",
        expected="bytes, such as 1073741824",
        check=lambda size: size > 0,
    )
    spill_folder: str = option(
        "hoodie.memory.spillable.map.path",
        "",
        "Local folder for spilled rows; not set: the system's folder for temporary files.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionOptions:
    """How Spark reads file slices with logs."""

    by_position: bool = option(
        "hoodie.merge.use.record.positions",
        True,
        "true: Spark's own Parquet reader reads base files, without the rows whose positions the logs replace; so "
        "columns and filters of a query reach the files. Where the headers of log blocks do not tell the positions, "
        "keys are compared. false: Python tasks read base files and logs, and merge them by key.",
    )
    cache_limit: int = option(
        "hoodie.spark.read.cache.max.log.bytes",
        1024 * MiB,
        "The Spark session keeps what a snapshot read of up to so many bytes of log files, in its cache (memory and "
        "disk) or in Parquet files in a temporary folder, for further queries of the same files; the least recent ones "
        "give way. 0: nothing is kept, and each query reads the logs, on executors.",
        expected="bytes, such as 1073741824",
        check=lambda size: size >= 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteOptions:
    """How Spark comes by the rows of base files."""

    route: ReadRoute = option(
        "hoodie.spark.read.route",
        ReadRoute.AUTO,
        "Who reads base files for Spark. spark: its own Parquet reader, for which its Java side needs a connector to "
        "the table's storage; arrow: Python tasks, by the driver that the rest of the library uses, with the "
        "`storage_options` of the table; auto: the first where there is a connector (s3a:// for s3://), else the "
        "second. Not an option of Hudi.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergerOptions:
    """Code of the user's own that reads and writes may load to merge rows."""

    mergers: tuple[str, ...] = option(
        "hoodie.datasource.write.record.merger.impls",
        (),
        "Import path, `package.module:Class`, of a Python class that decides which version of a row wins, in place of "
        "the payload class. Recorded in the table when it is created, and named again by each write, and each read "
        "that merges rows: code is never loaded because a table's files ask for it.",
        aliases=("hoodie.write.record.merge.custom.implementation.classes",),
    )


#: Versions of tables, as Hudi's options name them -> whether positions of reads are when commits were completed.
_POSITIONS = {"6": False, "8": True, "9": True, "SIX": False, "EIGHT": True, "NINE": True}


def _is_version(value: str) -> bool:
    return not value or value.strip().upper() in _POSITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalOptions:
    """How changes since an instant are read."""

    holes: HolePolicy = option(
        "hoodie.read.timeline.holes.resolution.policy",
        HolePolicy.FAIL,
        "A commit that is pending while later ones are completed would be missed by a reader who goes on after those. "
        "FAIL: an error; BLOCK: changes up to the pending commit only; USE_TRANSITION_TIME: begin and end are about "
        "when commits were completed, not when they began.",
    )
    full_scan: bool = option(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        False,
        "When commits are archived or their files cleaned: read the whole table as it is now, and take the rows with a "
        "commit time in the range. Rows that changed again after its end are missing then.",
    )
    path_glob: str = option(
        "hoodie.datasource.read.incr.path.glob",
        "",
        "Only changes in files whose path fits the pattern: `day=2024-01-*/*`. `*` is any characters.",
    )
    version: str = option(
        "hoodie.datasource.read.incr.table.version",
        "",
        "The table version whose order of commits begin and end are about: 6: when they began; 8 or 9: when they were "
        "completed. By default the table's own.",
        expected="6, 8 or 9",
        check=_is_version,
    )

    def by_completion(self, layout: int) -> bool:
        """Whether begin and end are about when commits were completed. layout: of the table's timeline"""
        if self.holes is HolePolicy.USE_TRANSITION_TIME:
            return True
        return _POSITIONS[self.version.strip().upper()] if self.version else layout == 2

    def by_instant(self) -> IncrementalOptions:
        """These, with begin and end about when commits began where they do not say."""
        return self if self.version else replace(self, version="6")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDataOptions:
    """How change data is read."""

    images: ChangeImages = option(
        "hoodie.read.cdc.images",
        ChangeImages.JSON,
        "json: the rows before and after a change as JSON text, as Hudi gives them; struct: as structs of the table's "
        "columns. Hudi has no such option.",
    )
    infer: bool = option(
        "hoodie.read.cdc.infer",
        False,
        "A table whose writers log no change data (hoodie.table.cdc.enabled=false) refuses a read of it. true: it is "
        "computed by comparing file slices, which reads all of those that changed. Hudi has no such option.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFileOptions:
    """What a read does about published files that are missing."""

    ignore: bool = option(
        "hoodie.read.ignore.missing.files",
        False,
        "A data file that a completed commit published and that is missing fails a read that needs it (`MissingFile`), "
        "as does a log that is shorter than it was published (`CorruptFile`). true: the read has what is left, older "
        "versions of rows among it, and warns of each such file (`MissingFileIgnored`, `DamagedLog`). Writes are "
        "refused all the same. Hudi has no such option.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """What `hoodie.hudi.read` is to read."""

    query: QueryType = option(
        "hoodie.datasource.query.type",
        QueryType.SNAPSHOT,
        "snapshot: the latest rows; read_optimized: those of base files; incremental: rows that changed.",
        aliases=("hoodie.datasource.view.type",),
    )
    begin: str = option(
        "hoodie.datasource.read.begin.instanttime", "", "Incremental: changes after this instant; `earliest`: all."
    )
    end: str = option(
        "hoodie.datasource.read.end.instanttime", "", "Incremental: changes up to this instant; not set: all since."
    )
    base_path: str = option(
        "basePath", "", "The table's path, where the path that is read is one of its partitions or a pattern."
    )
    as_of: str = option("as.of.instant", "", "Snapshot, read_optimized: the rows as they were at this instant.")
    format: IncrementalFormat = option(
        "hoodie.datasource.query.incremental.format",
        IncrementalFormat.LATEST_STATE,
        "latest_state: each changed row as it is at the end of the range; cdc: each change of each row, with the row "
        "before and after.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Where a stream of a table's changes begins, and how much a micro-batch takes."""

    start: str = option(
        "hoodie.datasource.streaming.startOffset",
        "earliest",
        "`readStream`: earliest: all changes; latest: those of commits to come; or an instant, which is not included. "
        "Where a query has a checkpoint, it goes on from there.",
    )
    most_commits: int = option(
        "hoodie.datasource.streaming.max.commits.per.trigger",
        0,
        "`readStream`: commits that a micro-batch takes at most; 0: all since the last. Not an option of Hudi.",
        expected="a number of commits, such as 10",
        check=lambda count: count >= 0,
    )
    version: str = option(
        "hoodie.datasource.read.streaming.table.version",
        "",
        "`readStream`: as `hoodie.datasource.read.incr.table.version`, whose value it takes by default.",
        expected="6, 8 or 9",
        check=_is_version,
    )


READ_GROUPS = (
    MergeOptions,
    RouteOptions,
    PositionOptions,
    MergerOptions,
    IncrementalOptions,
    ChangeDataOptions,
    MissingFileOptions,
    StreamOptions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """All options of a read, typed."""

    mergers: MergerOptions = field(default_factory=MergerOptions)
    merging: MergeOptions = field(default_factory=MergeOptions)
    positions: PositionOptions = field(default_factory=PositionOptions)
    route: RouteOptions = field(default_factory=RouteOptions)
    incremental: IncrementalOptions = field(default_factory=IncrementalOptions)
    change_data: ChangeDataOptions = field(default_factory=ChangeDataOptions)
    missing: MissingFileOptions = field(default_factory=MissingFileOptions)
    metadata: MetadataOptions = field(default_factory=MetadataOptions)
    engine: EngineOptions = field(default_factory=EngineOptions)

    @classmethod
    def read(cls, options: Options) -> ReadSettings:
        """Raises InvalidOption on a malformed value"""
        return cls(
            mergers=options.read(MergerOptions),
            merging=options.read(MergeOptions),
            positions=options.read(PositionOptions),
            route=options.read(RouteOptions),
            incremental=options.read(IncrementalOptions),
            change_data=options.read(ChangeDataOptions),
            missing=options.read(MissingFileOptions),
            metadata=options.read(MetadataOptions),
            engine=options.read(EngineOptions),
        )


#: The settings of a read without options.
DEFAULT_READ = ReadSettings()
