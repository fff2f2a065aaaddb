"""The page of all options, docs/configuration.md, made from their declarations.

`python -m tools.docs.options_page` prints it.
"""

import dataclasses
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from hoodie.config.compaction import CompactionOptions, InlineCompaction
from hoodie.config.compat import CompatOptions
from hoodie.config.datasource import ALL_GROUPS, ChangeLogOptions, DatasourceOptions, TableOptions, VersionOptions
from hoodie.config.hbase import HBaseOptions
from hoodie.config.keygen import KeyOptions, TimeOptions
from hoodie.config.locks import BatchOptions, ConcurrencyOptions, LockOptions
from hoodie.config.metadata import MetadataOptions, PartitionOptions
from hoodie.config.options import Declared, GiB, KiB, MiB, as_text, declared
from hoodie.config.read import (
    ChangeDataOptions,
    IncrementalOptions,
    MergeOptions,
    MergerOptions,
    MissingFileOptions,
    PositionOptions,
    QueryOptions,
    RouteOptions,
    StreamOptions,
)
from hoodie.config.services import ArchiveOptions, CleanOptions, ExpiryOptions, RollbackOptions, ServiceOptions
from hoodie.config.sync import HiveSyncOptions, ManifestOptions, MetaSyncOptions
from hoodie.config.validators import ValidatorOptions
from hoodie.config.write import (
    BloomOptions,
    BroughtTypeOptions,
    ConsoleOptions,
    DropOptions,
    EngineOptions,
    FileSizing,
    IndexOptions,
    LogOptions,
    MissingColumnOptions,
    WriteOptions,
)

Row = tuple[dataclasses.Field[object], Declared]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading of the page with the options below it.

    main     whether it is part of the main tables; the others are for special cases
    aliases  whether to name the other keys that an option is read from
    """

    title: str
    text: str
    groups: tuple[type, ...]
    main: bool = True
    aliases: bool = True


SECTIONS = (
    Section(
        title="The table",
        text="Stored in `hoodie.properties` when the table is created. Later writes may repeat but not change them.",
        groups=(TableOptions, ChangeLogOptions),
    ),
    Section(
        title="Keys and partitions",
        text="What identifies a row, and which folder it goes to. Stored with the table; its later writes use "
        "what is stored. Examples: "
        "[writing](writing.md#key-generators).",
        groups=(KeyOptions,),
    ),
    Section(
        title="The write",
        text="What a write does with a batch. `hoodie.datasource.write.operation` and `partitions.to.delete` are for "
        "`hoodie.hudi.write`; the methods of a table say what they do by their names.",
        groups=(DatasourceOptions, WriteOptions),
    ),
    Section(
        title="Metadata table",
        text="For reads and writes: see [the metadata table](metadata.md).",
        groups=(MetadataOptions, PartitionOptions),
    ),
    Section(
        title="Rows left out, and checks before a commit",
        text="Rows whose key is there, and queries that a commit has to pass. More: "
        "[writing](writing.md#checks-before-a-commit).",
        groups=(DropOptions, ValidatorOptions),
        main=False,
    ),
    Section(title="File sizes and encoding", text="How base files grow, in bytes.", groups=(FileSizing,)),
    Section(title="Log files", text="For Merge-on-Read tables.", groups=(LogOptions,)),
    Section(
        title="Bloom filters",
        text="Each base file carries a filter of its keys, whatever the index. The BLOOM index reads them.",
        groups=(BloomOptions,),
    ),
    Section(
        title="Indexes",
        text="Settings of single indexes: see [indexes](indexes.md).",
        groups=(IndexOptions,),
        main=False,
    ),
    Section(
        title="Version of the format",
        text="Which engines read a table: see [versions](writing.md#beside-other-writers).",
        groups=(VersionOptions,),
        main=False,
    ),
    Section(
        title="Missing columns",
        text="What becomes of a batch that lacks columns of the table. The argument `missing` of a call goes before "
        "them: see [writing](writing.md#columns-that-a-batch-lacks).",
        groups=(MissingColumnOptions, BroughtTypeOptions),
        main=False,
    ),
    Section(
        title="Queries",
        text="What `hoodie.hudi.read` is to read, by the options of Hudi's data source; `table.changes` "
        "takes all but the first five. More: [incremental pull](incremental.md).",
        groups=(QueryOptions, IncrementalOptions, ChangeDataOptions),
        main=False,
    ),
    Section(
        title="Streams of changes",
        text='For `spark.readStream.format("hudi")`. More: [streaming](streaming.md).',
        groups=(StreamOptions,),
        main=False,
    ),
    Section(
        title="Missing files",
        text="What a read does when a data file is missing that a completed commit published. "
        "More: [reading](reading.md#missing-files).",
        groups=(MissingFileOptions,),
        main=False,
    ),
    Section(
        title="Reading on Spark",
        text="Who reads base files. More: [object stores](object-stores.md#who-reads).",
        groups=(RouteOptions,),
        main=False,
    ),
    Section(
        title="Reading logs",
        text="How much memory a task takes to merge the logs of a Merge-on-Read file slice into its base file.",
        groups=(MergeOptions, PositionOptions),
        main=False,
    ),
    Section(
        title="Compaction",
        text="When the logs of a Merge-on-Read table are merged into new base files, and how much of them at a time: "
        "`table.schedule_compaction()` and `table.compact()`.",
        groups=(InlineCompaction, CompactionOptions),
        main=False,
    ),
    Section(
        title="Cleaning and archiving",
        text="What runs automatically after a commit, and by `table.clean()` and `table.archive()`. More: "
        "[services](services.md).",
        groups=(ServiceOptions, CleanOptions, ArchiveOptions),
        main=False,
    ),
    Section(
        title="Partitions that expire",
        text="Hudi's partition TTL: what runs after a commit, and by `table.expire_partitions()`. More: "
        "[services](services.md#partitions-that-expire).",
        groups=(ExpiryOptions,),
        main=False,
    ),
    Section(
        title="Manifests",
        text="Lists of the newest base files, for engines that do not know Hudi's tables: [sync](sync.md#manifests).",
        groups=(ManifestOptions,),
        main=False,
    ),
    Section(
        title="Sync to a Hive metastore",
        text="After a commit, or by `table.sync()`: [sync](sync.md).",
        groups=(MetaSyncOptions, HiveSyncOptions),
        main=False,
    ),
    Section(
        title="Rollback",
        text="How a rollback finds the files of a failed write: [recovery](recovery.md).",
        groups=(RollbackOptions,),
        main=False,
    ),
    Section(
        title="Several writers",
        text="What happens when several writers work at once, and which batches are recognised as written: "
        "[concurrency](concurrency.md).",
        groups=(ConcurrencyOptions, BatchOptions),
        main=False,
    ),
    Section(
        title="Locks",
        text="The lock between concurrent writers: [concurrency](concurrency.md).",
        groups=(LockOptions,),
        main=False,
    ),
    Section(
        title="A merger of your own",
        text="A Python class in place of a payload class.",
        groups=(MergerOptions,),
        main=False,
    ),
    Section(
        title="Driver and executors",
        text="Where a write runs. These are not options of Hudi. Background: [driver and "
        "executors](design/driver-and-executors.md).",
        groups=(EngineOptions,),
        main=False,
    ),
    Section(
        title="In a console",
        text="What is shown while a call runs: see [notebooks](notebook.md#progress).",
        groups=(ConsoleOptions,),
        main=False,
    ),
    Section(
        title="HBase",
        text="Where the index HBASE is kept, and how large its requests are. Background: [indexes](indexes.md#hbase).",
        groups=(HBaseOptions,),
        main=False,
    ),
    Section(
        title="Options of Hudi without effect",
        text="All of Hudi's options, and what becomes of each: [coming from Hudi](coming-from-hudi.md).",
        groups=(CompatOptions,),
        main=False,
    ),
    Section(
        title="Time-based partition paths",
        text="For the TIMESTAMP key generator, and for the `TIMESTAMP` columns of the CUSTOM one; stored with the "
        "table. Each is also read under its older name, `hoodie.deltastreamer.keygen.timebased.` and the same ending. "
        "The patterns are those of Joda-Time.",
        groups=(TimeOptions,),
        main=False,
        aliases=False,
    ),
)

#: Options of the main tables' groups that few people need: they stand in a table of their own.
SELDOM = frozenset(
    {
        "hoodie.metadata.index.column.stats.file.group.count",
        "hoodie.metadata.index.bloom.filter.file.group.count",
        "hoodie.metadata.index.column.stats.column.list",
        "hoodie.metadata.index.bloom.filter.enable",
        "hoodie.bloom.index.use.metadata",
        "hoodie.metadata.index.column.stats.enable",
        "hoodie.database.name",
        "hoodie.write.complex.keygen.new.encoding",
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        "hoodie.datasource.write.commitmeta.key.prefix",
        "hoodie.copyonwrite.insert.auto.split",
        "hoodie.copyonwrite.insert.split.size",
        "hoodie.record.size.estimation.threshold",
        "hoodie.metadata.compact.max.delta.commits",
        "hoodie.metadata.record.index.enable",
        "hoodie.metadata.record.index.min.filegroup.count",
        "hoodie.metadata.record.index.max.filegroup.count",
        "hoodie.metadata.record.index.growth.factor",
        "hoodie.metadata.record.index.max.filegroup.size",
        "hoodie.merge.small.file.group.candidates.limit",
        "hoodie.logfile.to.parquet.compression.ratio",
        "hoodie.bloom.index.filter.type",
        "hoodie.bloom.index.filter.dynamic.max.entries",
        "hoodie.bloom.index.keys.per.bucket",
    }
)

_INTRODUCTION = """\
# Configuration

<!-- Generated from the option declarations: python -m tools.docs.options_page > docs/configuration.md -->

Options have Hudi's names. They go to `hoodie.create_table` and `hoodie.open_table` (for all writes of that object), to
a single write (`table.upsert(df, options={...})`), to `hoodie.hudi.HoodieWriteClient` and to `hoodie.hudi.write`.

- Options of Hudi that are not on this page are known by name. Those that need no effect here are accepted; those that
  ask for something that would not happen are refused, all in one error: [coming from Hudi](coming-from-hudi.md). So
  is a misspelt name; one that is like none of Hudi's is named in the warning `UnknownOptions`.
- Where an option has several names, any of them will do. An option of a call counts over the table object's, whichever
  names the two use; two names of one option with different values in one place are an error.
- Values are text, as in a properties file, or Python values: `True`, `104857600`, `["a", "b"]`.
- Sizes are whole numbers of bytes. Lists are separated by commas. Words such as `SIMPLE` may be in any case.
- Keys with the prefix of `hoodie.datasource.write.commitmeta.key.prefix` are free: they are kept with the commit.
"""

_TABLE_HEAD = "| key | default | meaning |\n|---|---|---|"


def page() -> str:
    """The page as Markdown.

    Raises ValueError when an option group is on no section or on two, or `SELDOM` has a key that no section has
    """
    placed = [group for section in SECTIONS for group in section.groups]
    if sorted(map(repr, placed)) != sorted(map(repr, ALL_GROUPS)):
        raise ValueError("each group of hoodie.config.datasource.ALL_GROUPS needs one section of SECTIONS")
    main = [row for section in SECTIONS if section.main for row in _options(section)]
    seldom = [row for row in main if _key(row) in SELDOM]
    if len(seldom) != len(SELDOM):
        raise ValueError(f"no section has {sorted(SELDOM - set(map(_key, seldom)))}")
    parts = [
        *(_section(section, _main(section)) for section in SECTIONS if section.main),
        _section(Section(title="Seldom needed", text="Details of the groups above.", groups=()), seldom),
        *(_section(section, _options(section)) for section in SECTIONS if not section.main),
    ]
    return "\n".join([_INTRODUCTION, *parts])


def _options(section: Section) -> list[Row]:
    return [row for group in section.groups for row in declared(group)]


def _main(section: Section) -> list[Row]:
    return [row for row in _options(section) if _key(row) not in SELDOM]


def _key(row: Row) -> str:
    return row[1].keys[0]


def _section(section: Section, options: Iterable[Row]) -> str:
    rows = "\n".join(_row(*row, section.aliases) for row in options)
    return f"## {section.title}\n\n{section.text}\n\n{_TABLE_HEAD}\n{rows}\n"


def _row(option_field: dataclasses.Field[object], spec: Declared, aliases: bool) -> str:
    key, *others = spec.keys
    meaning = spec.help + _words(option_field, spec.help)
    if aliases and others:
        meaning += f" Also read from {', '.join(f'`{other}`' for other in others)}."
    cells = (f"`{key}`", _default(option_field.default, spec.expected.startswith("bytes")), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _words(option_field: dataclasses.Field[object], help: str) -> str:
    """The values of an option that takes one of a few words, unless its text names them all."""
    if not isinstance(option_field.default, Enum):
        return ""
    words = [_word(member) for member in type(option_field.default)]
    if all(word.lower() in help.lower() for word in words):
        return ""
    return f" One of {', '.join(words)}."


def _word(member: Enum) -> str:
    """The member as Hudi writes it: names are accepted in any case."""
    return member.name.lower() if isinstance(member.value, str) and member.value.islower() else member.name


def _default(value: object, is_size: bool) -> str:
    if isinstance(value, Enum):
        return f"`{_word(value)}`"
    if value in ("", ()):
        return "not set"
    return f"`{as_text(value)}`{_size(value) if is_size and isinstance(value, int) else ''}"


def _size(value: int) -> str:
    for unit, name in ((GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")):
        if value and value % unit == 0:
            return f" ({value // unit} {name})"
    return ""


if __name__ == "__main__":
    sys.stdout.write(page())
