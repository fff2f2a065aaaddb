"""The options of a table's entries in a Hive metastore, and of its manifests.

Source: docs/format/engines.md 5.
"""

import warnings
from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.options import Options, above_zero, option, positive
from hoodie.errors import InvalidOption, OptionIgnored

_HIVE = "hoodie.datasource.hive_sync."
_PACKAGE = "org.apache.hudi.hive."
HIVE_TOOL = f"{_PACKAGE}HiveSyncTool"
_TOOLS = "hoodie.meta.sync.client.tool.class"
_ASKS_FOR_SYNC = ("hoodie.datasource.meta.sync.enable", f"{_HIVE}enable", f"{_HIVE}mode", f"{_HIVE}use_jdbc", _TOOLS)


class ManifestFormat(StrEnum):
    """A list of the newest base files, for engines that do not know Hudi's tables."""

    SYMLINK = "symlink"
    CSV = "csv"


class TableStrategy(StrEnum):
    """Which entries a Merge-on-Read table gets."""

    ALL = "ALL"
    RO = "RO"
    RT = "RT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """Lists of the newest base files that are kept beside the table."""

    formats: tuple[str, ...] = option(
        "hoodie.sync.manifest",
        (),
        "Lists of the newest base files to write after each commit: symlink (one for each partition, for Presto, "
        "Trino and Athena), csv (one for the table, for BigQuery), or both, separated by a comma.",
        expected="symlink, csv or both",
        check=lambda names: {name.lower() for name in names} <= set(ManifestFormat),
    )

    view: bool = option(
        "hoodie.sync.manifest.view",
        False,
        "A sync also registers a view that engines without Hudi can query, named as the table with _plain: of all file "
        "versions, the rows of the newest files. Its list of these is kept as by csv.",
    )

    @property
    def chosen_formats(self) -> frozenset[ManifestFormat]:
        named = {ManifestFormat(name.lower()) for name in self.formats}
        return frozenset(named | {ManifestFormat.CSV} if self.view else named)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaSyncOptions:
    """Whether and how the table is registered after a commit, whatever the catalog."""

    enabled: bool = option("hoodie.datasource.meta.sync.enable", False, "Sync the metastore after each commit.")
    tools: tuple[str, ...] = option(_TOOLS, (HIVE_TOOL,), "The sync to run: only HiveSyncTool is known.")
    base_path: str = option(
        "hoodie.datasource.meta.sync.base.path",
        "",
        "The table's location as engines are to see it, such as s3a://bucket/table; empty: the path of the table.",
    )
    conditional: bool = option(
        "hoodie.datasource.meta_sync.condition.sync",
        False,
        "Record the last synced instant only when schema, properties or partitions have changed.",
    )
    incremental: bool = option(
        "hoodie.meta.sync.incremental",
        True,
        "Look only at partitions of commits since the last synced one; off: compare all partitions each time.",
    )
    plain_name: bool = option(
        "hoodie.meta.sync.sync_snapshot_with_table_name",
        True,
        "A Merge-on-Read table's snapshot gets the plain table name as well.",
    )
    decode: str = option(
        "hoodie.meta.sync.decode_partition",
        "",
        "Whether partition paths are URL-encoded (true or false); empty: as the table's "
        "hoodie.datasource.write.partitionpath.urlencode says.",
        expected="true, false or nothing",
        check=lambda text: text.strip().lower() in ("", "true", "false"),
    )
    spark_version: str = option(
        "hoodie.meta_sync.spark.version", "", "Recorded as spark.sql.create.version; empty: that of the Spark session."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveSyncOptions:
    """How the table is registered in a Hive metastore."""

    enabled: bool = option(
        f"{_HIVE}enable", False, "As hoodie.datasource.meta.sync.enable: either of the two turns the sync on."
    )
    mode: str = option(
        f"{_HIVE}mode", "hms", "hms: by the metastore's Thrift interface. hiveql, jdbc and glue are refused."
    )
    use_jdbc: bool = option(f"{_HIVE}use_jdbc", False, "Refused when true: only the metastore's interface is spoken.")
    uris: tuple[str, ...] = option(
        f"{_HIVE}metastore.uris",
        ("thrift://localhost:9083",),
        "Addresses of the metastore, separated by commas; the first that answers is used.",
    )
    timeout: int = option(
        "hoodie.sync.metastore.timeout.seconds",
        600,
        "How long the metastore may take for one answer. Hudi has no such option: it reads Hive's.",
        expected="seconds, such as 600",
        check=positive,
    )
    database: str = option(f"{_HIVE}database", "", "Database; empty: hoodie.database.name, or default.")
    table: str = option(f"{_HIVE}table", "", "Table; empty: the table's name.")
    partition_fields: tuple[str, ...] = option(
        f"{_HIVE}partition_fields", (), "Partition columns; not set: those of the table."
    )
    extractor: str = option(
        f"{_HIVE}partition_extractor_class",
        "",
        "How values come from a partition path: MultiPartKeysValueExtractor, HiveStylePartitionValueExtractor, "
        "SinglePartPartitionValueExtractor, SlashEncodedDayPartitionValueExtractor, "
        "SlashEncodedHourPartitionValueExtractor, NonPartitionedExtractor. Empty: by the number of partition columns.",
    )
    base_format: str = option(f"{_HIVE}base_file_format", "PARQUET", "Only PARQUET.")
    old_input_format: bool = option(
        f"{_HIVE}use_pre_apache_input_format", False, "Use the input formats of the package com.uber.hoodie."
    )
    create_database: bool = option(f"{_HIVE}auto_create_database", True, "Make the database if it is missing.")
    skip_ro_suffix: bool = option(
        f"{_HIVE}skip_ro_suffix", False, "The read-optimized entry has the table's name without _ro."
    )
    strategy: TableStrategy = option(
        f"{_HIVE}table.strategy",
        TableStrategy.ALL,
        "Entries of a Merge-on-Read table: ALL, or one entry: RO (read optimized) or RT (snapshot).",
    )
    timestamps: bool = option(
        f"{_HIVE}support_timestamp", False, "Timestamps are timestamp for Hive instead of bigint."
    )
    table_properties: str = option(f"{_HIVE}table_properties", "", "More table properties: lines key=value.")
    serde_properties: str = option(f"{_HIVE}serde_properties", "", "More serde properties: lines key=value.")
    as_datasource: bool = option(
        f"{_HIVE}sync_as_datasource",
        True,
        "Add the properties by which Spark takes the entry for a data source table. Without them a Spark that lacks "
        "Hudi's jar reads all file versions at once.",
    )
    schema_piece: int = above_zero(
        f"{_HIVE}schema_string_length_thresh", 4000, "Characters of Spark's schema in one property."
    )
    managed: bool = option(
        f"{_HIVE}create_managed_table", False, "Make a managed table: dropping it deletes the table's files."
    )
    omit_meta: bool = option(f"{_HIVE}omit_metadata_fields", False, "Leave the _hoodie_* columns out.")
    batch: int = above_zero(f"{_HIVE}batch_num", 1000, "Partitions in one request.")
    comments: bool = option(f"{_HIVE}sync_comment", False, "Columns get the doc of the table's Avro schema as comment.")
    bucket_sync: bool = option(f"{_HIVE}bucket_sync", False, "Has no effect in the mode hms, as in Hudi.")
    bucket_spec: str = option(f"{_HIVE}bucket_sync_spec", "", "Has no effect in the mode hms, as in Hudi.")
    pushdown: bool = option(
        f"{_HIVE}filter_pushdown_enabled",
        False,
        "Has no effect: an incremental sync asks for the touched partitions alone, by name.",
    )
    pushdown_size: int = option(f"{_HIVE}filter_pushdown_max_size", 1000, "Has no effect, as the one before.")
    ignore_exceptions: bool = option(
        f"{_HIVE}ignore_exceptions", False, "Has no effect: a failing sync never fails a commit."
    )
    username: str = option(f"{_HIVE}username", "hive", "For the mode jdbc; not used.")
    password: str = option(f"{_HIVE}password", "hive", "For the mode jdbc; not used.")
    jdbc_url: str = option(f"{_HIVE}jdbcurl", "jdbc:hive2://localhost:10000", "For the mode jdbc; not used.")


SYNC_GROUPS = (ManifestOptions, MetaSyncOptions, HiveSyncOptions)


def check_sync(hive: HiveSyncOptions, meta: MetaSyncOptions) -> None:
    """See that options of the sync can be carried out, before a write begins.

    Raises InvalidOption on another mode, tool or base file format than are known; on two entries
           that would have one name
    """
    if problem := _other_sync(hive, meta):
        raise InvalidOption(f"{problem} hoodie.compat.unsupported=warn writes without a sync.")
    if hive.base_format.upper() != "PARQUET":
        raise InvalidOption(f"{_HIVE}base_file_format={hive.base_format}: only PARQUET")
    if hive.skip_ro_suffix and meta.plain_name and hive.strategy is TableStrategy.ALL:
        raise InvalidOption(
            f"{_HIVE}skip_ro_suffix=true gives the read-optimized entry the table's own name, which "
            "hoodie.meta.sync.sync_snapshot_with_table_name (true by default) gives to the snapshot: set that to false"
        )


def _other_sync(hive: HiveSyncOptions, meta: MetaSyncOptions) -> str:
    """What is asked of the sync that is another mode or tool than is built; "" for nothing."""
    if hive.mode.lower() != "hms" or hive.use_jdbc:
        setting = f"{_HIVE}use_jdbc=true" if hive.use_jdbc else f"{_HIVE}mode={hive.mode}"
        return (
            f"{setting}: only the mode hms is built, which speaks with the metastore itself. Set {_HIVE}mode=hms and "
            f"{_HIVE}metastore.uris=thrift://host:9083."
        )
    if unknown := [tool for tool in meta.tools if tool.rpartition(".")[2] != "HiveSyncTool"]:
        return (
            f"{_TOOLS}={', '.join(unknown)}: only {HIVE_TOOL} is built. Glue, BigQuery and "
            "DataHub have no sync; hoodie.sync.manifest=csv writes what BigQuery reads."
        )
    return ""


def without_other_sync(options: Options) -> Options:
    """The options without what asks for a sync by another mode or tool: such a write is followed by none, and warns."""
    hive, meta = options.read(HiveSyncOptions), options.read(MetaSyncOptions)
    problem = _other_sync(hive, meta)
    if not problem:
        return options
    if hive.enabled or meta.enabled:
        warnings.warn(OptionIgnored(f"{problem} The write is followed by no sync."), stacklevel=2)
    return Options({key: value for key, value in options.items() if key not in _ASKS_FOR_SYNC})
