"""The options of the metadata table."""

from dataclasses import dataclass, field

from hoodie.config.options import Options, above_zero, declared, option
from hoodie.config.write import IndexType, WriteOptions

_ENABLE = "hoodie.metadata.enable"
#: The name of the partition that every metadata table has.
_FILES = "files"
#: The option, and the setting of a table, that names the columns with statistics.
COLUMN_LIST = "hoodie.metadata.index.column.stats.column.list"
#: That of the one which the index RECORD_INDEX asks.
RECORD_INDEX = "record_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataOptions:
    """What becomes of a metadata table."""

    enable: bool = option(
        _ENABLE,
        True,
        "Reads: list files from the metadata table, and leave files out by its column statistics, where the table has "
        "one that is up to date; false: list the storage. Writes keep the file lists of a metadata table; true, if it "
        "is given, builds them on a table without one, and false removes the metadata table first. A new table gets "
        "none unless true is given.",
    )
    delta_commits: int = option(
        "hoodie.metadata.compact.max.delta.commits",
        10,
        "Delta commits of the metadata table after which its file lists are compacted into a base file.",
        expected="a number, such as 10",
        check=lambda value: value > 0,
    )
    column_list: str = option(
        COLUMN_LIST,
        "",
        "Columns of which the metadata table has statistics, by commas; nested ones, dotted, in base files only. "
        "Without it all top-level columns that are neither lists, maps nor structs. The table keeps it.",
    )
    column_stats_groups: int = option(
        "hoodie.metadata.index.column.stats.file.group.count",
        2,
        "File groups that the partition `column_stats` of the metadata table is built with.",
        expected="a number, such as 2",
        check=lambda value: value > 0,
    )
    bloom_filter_groups: int = option(
        "hoodie.metadata.index.bloom.filter.file.group.count",
        4,
        "File groups that the partition `bloom_filters` of the metadata table is built with.",
        expected="a number, such as 4",
        check=lambda value: value > 0,
    )
    fewest_groups: int = above_zero(
        "hoodie.metadata.record.index.min.filegroup.count",
        10,
        "Fewest file groups of a record index that is built; their number is fixed then.",
        aliases=("hoodie.metadata.global.record.level.index.min.filegroup.count",),
    )
    most_groups: int = above_zero(
        "hoodie.metadata.record.index.max.filegroup.count",
        10_000,
        "Most file groups of a record index that is built.",
        aliases=("hoodie.metadata.global.record.level.index.max.filegroup.count",),
    )
    growth: float = above_zero(
        "hoodie.metadata.record.index.growth.factor", 2.0, "For how many times its keys a record index is built."
    )
    group_bytes: int = option(
        "hoodie.metadata.record.index.max.filegroup.size",
        1024 * 1024 * 1024,
        "Bytes that a file group of a record index is to have at most, at 48 bytes a key.",
        check=lambda value: value >= 48,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOptions:
    """Which partitions a metadata table has beside its file lists: a field has its partition's name. One that is not
    given leaves the partition as it is."""

    column_stats: bool = option(
        "hoodie.metadata.index.column.stats.enable",
        False,
        "true builds the partition `column_stats` of the metadata table where the table lacks it, and the file lists "
        "with it: least and greatest values by which reads leave files out. Writes keep it. false removes it.",
    )
    bloom_filters: bool = option(
        "hoodie.metadata.index.bloom.filter.enable",
        False,
        "true builds the partition `bloom_filters` of the metadata table where the table lacks it, and the file lists "
        "with it. Writes keep it. false removes it.",
    )
    record_index: bool = option(
        "hoodie.metadata.record.index.enable",
        False,
        "Where each record key is. true, if it is given, has a write build it on a table without one, as "
        "`hoodie.index.type=RECORD_INDEX` does; false has it removed.",
        aliases=("hoodie.metadata.global.record.level.index.enable",),
    )


@dataclass(frozen=True, slots=True)
class RequestedPartitions:
    """What a write is to make of a metadata table before it begins.

    build    names of partitions that are built where the table lacks them
    remove   names of those that are removed; `hoodie.metadata.enable=false` removes all, elsewhere
    options  how they are built
    """

    build: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    options: MetadataOptions = field(default_factory=MetadataOptions)


def requested_partitions(options: Options) -> RequestedPartitions:
    """What the options say, by those that are given. Raises InvalidOption"""
    settings, indexes = options.read(MetadataOptions), options.read(PartitionOptions)
    if not settings.enable:
        return RequestedPartitions(options=settings)
    stated = [member.name for member, spec in declared(PartitionOptions) if not options.keys().isdisjoint(spec.keys)]
    build = tuple(name for name in stated if getattr(indexes, name))
    remove = tuple(name for name in stated if not getattr(indexes, name))
    if options.read(WriteOptions).index is IndexType.RECORD_INDEX and RECORD_INDEX not in stated:
        build = (*build, RECORD_INDEX)
    if build or _ENABLE in options:
        build = (_FILES, *build)
    return RequestedPartitions(build, remove, settings)


METADATA_GROUPS = (MetadataOptions, PartitionOptions)
