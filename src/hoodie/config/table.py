"""The settings in `hoodie.properties` as a typed value, and whether this library may read or write such a table.

Source: docs/format/table-and-timeline.md 2 and 9 (HoodieTableConfig).
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache

from hoodie.config.options import option, read_options
from hoodie.errors import CorruptFile, InvalidInput, InvalidOption, UnsupportedTable
from hoodie.model.table_version import VERSIONS, WRITTEN

_EARLIER = ("com.uber.hoodie", "org.apache.hudi")
_PAYLOADS = "org.apache.hudi.common.model"

EMPTY_PAYLOAD = f"{_PAYLOADS}.EmptyHoodieRecordPayload"


def payload_name(name: str) -> str:
    """The full name of a payload class, by its name alone or with the package of any release."""
    package, _, simple = name.strip().rpartition(".")
    folders = ("", *_EARLIER, *(f"{part}.{folder}" for part in _EARLIER for folder in ("payload", "common.model")))
    return f"{_PAYLOADS}.{simple}" if package in folders else name.strip()


def key_generator_name(name: str) -> str:
    """The name without its package of a key generator of any release; others as they are."""
    package, _, simple = name.strip().rpartition(".")
    folders = ("", *_EARLIER, *(f"{part}.keygen" for part in _EARLIER))
    return simple if package in folders else name.strip()


NEWEST_VERSION = 9

PROPERTIES_FOLDER = ".hoodie"
PROPERTIES_FILE = f"{PROPERTIES_FOLDER}/hoodie.properties"

_NAME = "hoodie.table.name"
BOOTSTRAP = "hoodie.bootstrap.base.path"
REPLACED = "hoodie.table.replaced.at"
#: The version that a table had, while a downgrade of it is not finished. Not a property of Hudi.
DOWNGRADED_FROM = "hoodie.table.downgraded.from"
CDC = "hoodie.table.cdc.enabled"
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"


class TableType(StrEnum):
    """Whether an update rewrites base files or goes to logs beside them."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class LoggedImages(StrEnum):
    """What the change logs of a table hold beside the operation and the key of a row."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class TimelineZone(StrEnum):
    """The zone in which instant times are given."""

    LOCAL = "LOCAL"
    UTC = "UTC"


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """The settings of a table. Field names are given as stored: `a.b` is field b of the column a.

    As long as a table's settings stay, the calls of a process have one value of them, which keeps what follows.
    """

    name: str = option(_NAME, "", "Name of the table.")
    database: str = option("hoodie.database.name", "", "Name of its database; may be empty.")
    version: int = option("hoodie.table.version", 0, "Format version of the table.")
    type: TableType = option("hoodie.table.type", TableType.COPY_ON_WRITE, "COPY_ON_WRITE or MERGE_ON_READ.")
    record_key: tuple[str, ...] = option("hoodie.table.recordkey.fields", (), "Fields of the record key.")
    partition_by: tuple[str, ...] = option("hoodie.table.partition.fields", (), "Fields of the partition path.")
    ordering: tuple[str, ...] = option(
        "hoodie.table.ordering.fields",
        (),
        "Fields that order the versions of a row.",
        aliases=("hoodie.table.precombine.field",),
    )
    key_generator: str = option(
        "hoodie.table.keygenerator.class",
        "",
        "Java class, or from version 8 type, of the key generator; empty: inferred from the fields.",
        aliases=("hoodie.table.keygenerator.type",),
    )
    hive_style: bool = option(
        "hoodie.datasource.write.hive_style_partitioning", False, "Partition folders are named column=value."
    )
    url_encode: bool = option(
        "hoodie.datasource.write.partitionpath.urlencode", False, "Partition values are URL-encoded."
    )
    drop_partition_columns: bool = option(
        "hoodie.datasource.write.drop.partition.columns", False, "Partition columns are left out of data files."
    )
    meta_fields: bool = option("hoodie.populate.meta.fields", True, "Rows carry the five _hoodie_ columns.")
    payload_class: str = option(
        "hoodie.compaction.payload.class",
        "",
        "Java class that decides which version of a row wins; empty: the default.",
        aliases=("hoodie.table.legacy.payload.class",),
    )
    merge_mode: str = option("hoodie.record.merge.mode", "", "From version 8: EVENT_TIME_ORDERING and so on.")
    merge_strategy: str = option(
        "hoodie.record.merge.strategy.id",
        "",
        "UUID of the merge strategy.",
        aliases=("hoodie.compaction.record.merger.strategy",),
    )
    base_format: str = option("hoodie.table.base.file.format", "PARQUET", "Format of base files.")
    layout: int = option("hoodie.timeline.layout.version", 0, "1: up to version 6; 2: from version 8.")
    timezone: TimelineZone = option(
        "hoodie.table.timeline.timezone", TimelineZone.LOCAL, "Zone of instant times: LOCAL or UTC."
    )
    timeline_path: str = option("hoodie.timeline.path", "timeline", "Layout 2: folder of instants below .hoodie.")
    history_path: str = option("hoodie.timeline.history.path", "history", "Layout 2: folder below the timeline.")
    archive_path: str = option("hoodie.archivelog.folder", "archived", "Layout 1: archived instants, below .hoodie.")
    create_schema: str = option("hoodie.table.create.schema", "", "Avro JSON of the columns at creation.")
    metadata_partitions: tuple[str, ...] = option(
        "hoodie.table.metadata.partitions", (), "Partitions of the metadata table that readers trust."
    )
    metadata_inflight: tuple[str, ...] = option(
        "hoodie.table.metadata.partitions.inflight", (), "Partitions of the metadata table being built."
    )
    cdc: bool = option(CDC, False, "Writers log change data.")
    cdc_mode: str = option(CDC_MODE, LoggedImages.DATA_BEFORE_AFTER.value, "What they log of it.")
    base_format_metafile: bool = option(
        "hoodie.partition.metafile.use.base.format", False, "Partition metafiles are Parquet."
    )
    replaced_at: str = option(
        REPLACED, "", "Instant of the overwrite that replaced the table before; empty: none. Not a property of Hudi."
    )
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # all of them, as stored

    @cached_property
    def has_metadata_table(self) -> bool:
        """Whether there is a metadata table, or one that was begun."""
        return bool(self.metadata_partitions or self.metadata_inflight)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Without the types of fields that have one, such as `ts:timestamp`."""
        return tuple(name.partition(":")[0] for name in self.partition_by)

    @property
    def pinned_columns(self) -> frozenset[str]:
        """Columns that keep their type: those of the key, the partitions and the ordering."""
        return frozenset((*self.record_key, *self.partition_columns, *self.ordering))

    @cached_property
    def merge_on_read(self) -> bool:
        return self.type is TableType.MERGE_ON_READ

    @property
    def logged_images(self) -> LoggedImages:
        """What its change logs hold. Raises UnsupportedTable on a word that Hudi does not know either."""
        word = self.cdc_mode.strip().upper().removeprefix("CDC_")  # so Hudi 0.13 named them
        try:
            return LoggedImages("OP_KEY_ONLY" if word == "OP_KEY" else word)
        except ValueError:
            raise UnsupportedTable(
                f"{self.name}: {CDC_MODE}={self.cdc_mode!r}: expected one of {', '.join(LoggedImages)}"
            ) from None

    @property
    def was_upgraded(self) -> bool:
        """Whether the table began with an earlier form of its timeline.

        The metadata table that Hudi builds after such an upgrade may lack logs for good: those that were written behind
        the plan of a compaction. Names of the history's files do not tell what is in them.
        """
        began = self.properties.get("hoodie.table.initial.version", "")
        return began.isdigit() and int(began) in VERSIONS and VERSIONS[int(began)].layout < self.layout

    @cached_property
    def timeline_folder(self) -> str:
        """Folder of the active timeline, relative to the base path."""
        return PROPERTIES_FOLDER if self.layout == 1 else f"{PROPERTIES_FOLDER}/{self.timeline_path}"

    @property
    def history_folder(self) -> str:
        """Folder of instants that left the active timeline, relative to the base path."""
        if self.layout == 1:
            return f"{PROPERTIES_FOLDER}/{self.archive_path}"
        return f"{self.timeline_folder}/{self.history_path}"


def from_properties(properties: Mapping[str, str], path: str = PROPERTIES_FILE) -> TableConfig:
    """The settings that the entries of a `hoodie.properties` give.

    path    for errors
    Raises  CorruptFile on a missing or malformed entry; UnsupportedTable when the entries are of a version or a base
            file format that this library does not know, so their meaning may differ
    """
    return _config(tuple(properties.items()), path)


@lru_cache(maxsize=64)
def _config(entries: tuple[tuple[str, str], ...], path: str) -> TableConfig:
    properties = dict(entries)
    if not properties.get(_NAME):
        raise CorruptFile(path, f"{_NAME} is missing")
    try:
        config = read_options(TableConfig, properties)
    except InvalidOption as error:
        raise CorruptFile(path, str(error)) from error
    if not 0 <= config.version <= NEWEST_VERSION:
        what = "that of a coming Hudi, whose logs are Parquet" if config.version == NEWEST_VERSION + 1 else "unknown"
        raise UnsupportedTable(
            f"{path}: table version {config.version} is {what}; versions up to {NEWEST_VERSION} can be read. "
            "Update this library, or read the table with the Hudi release that wrote it."
        )
    if config.base_format.upper() != "PARQUET":
        raise UnsupportedTable(f"{path}: base files are {config.base_format}; only PARQUET can be read.")
    layout = config.layout or VERSIONS[config.version].layout  # tables older than the entry have layout 1's names
    if layout not in (1, 2) or (VERSIONS[config.version].layout == 2) != (layout == 2):
        raise UnsupportedTable(f"{path}: timeline layout {layout} does not go with table version {config.version}.")
    for folder in (config.timeline_path, config.history_path, config.archive_path):
        if folder.startswith("/") or not {"", ".", ".."}.isdisjoint(folder.split("/")):
            raise CorruptFile(path, f"{folder!r} is not a folder inside the table")
    return dataclasses.replace(config, layout=layout, properties=properties)


def require_readable(config: TableConfig) -> None:
    """Raise UnsupportedTable, saying why, unless the rows of such a table can be read."""
    if config.version == 7:
        raise UnsupportedTable(
            f"{config.name}: version 7 is a table amid an upgrade from 6 to 8; "
            "finish it with the Hudi release that started it."
        )
    if config.drop_partition_columns:
        raise UnsupportedTable(
            f"{config.name}: its files lack the partition columns "
            "(hoodie.datasource.write.drop.partition.columns=true), which this library cannot read."
        )


def require_unicode(what: str, text: str) -> None:
    """Refuse a path or name that no file of the table can hold. Raises InvalidInput"""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{what} is {text!r}, which is no Unicode text, and files of the table would hold it: take a name whose "
            "bytes are UTF-8"
        ) from None


def require_writable(config: TableConfig, payloads: Collection[str]) -> None:
    """Raise UnsupportedTable, saying what to do, unless this library can write the table without harm to others.

    payloads  full names of the payload classes whose rule the caller can apply; no class at all is the default one
    """
    require_readable(config)
    if config.version not in WRITTEN:
        raise UnsupportedTable(
            f"{config.name}: table version {config.version} can be read, but only {', '.join(map(str, WRITTEN))} are "
            "written. Hudi 0.14 and 0.15 upgrade a table at their next write."
        )
    if before := config.properties.get(DOWNGRADED_FROM):
        raise UnsupportedTable(
            f"{config.name}: its downgrade from version {before} stopped before its logs had the names of version "
            f"{config.version}. `hoodie downgrade PATH --to {config.version}` finishes it; the newest rows can be read"
        )
    if config.cdc:
        _ = config.logged_images  # a word that says nothing is refused
    if not config.meta_fields:
        raise UnsupportedTable(
            f"{config.name}: hoodie.populate.meta.fields=false: rows are stored without their keys, so that no key can "
            "be looked up; such a table is read only."
        )
    if config.payload_class and payload_name(config.payload_class) not in payloads:
        raise UnsupportedTable(
            f"{config.name}: payload class {config.payload_class} is not known here, so which version of a row wins is "
            f"not either. Known: {', '.join(sorted(payloads))}."
        )
