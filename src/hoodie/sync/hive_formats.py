"""Entries for engines that have Hive's own formats alone: all file versions, the list of the newest, and their view.

A view of the rows whose file is on the list is right in each of them, where a table over symlink manifests is not:
Hive and Spark take its text files for data. Hudi's own sync to BigQuery does the same. Pure rules.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hoodie.config.sync import HiveSyncOptions
from hoodie.errors import SyncRefused
from hoodie.model.meta import META_COLUMNS
from hoodie.storage.protocol import join
from hoodie.sync.columns import hive_columns
from hoodie.sync.entry import OUTPUT, SERDE, SyncedEntry

#: The folder of the list that has names, and nothing else.
NAMES_FOLDER = ".hoodie/manifest"

_FILE_NAME = "_hoodie_file_name"
_TEXT = ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat")
_TEXT_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_PARQUET = ("org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat", OUTPUT)


def plain_entries(
    table: str,
    database: str,
    base: str,
    schema: pa.Schema,
    partition_fields: Sequence[str],
    comments: Mapping[str, str],
    hive: HiveSyncOptions,
) -> list[SyncedEntry]:
    """The three entries, the view last.

    table   name of the table's entry
    base    the table's location, as a URI
    schema  meta columns first
    Raises  SyncRefused on a table whose rows do not say which file they are in, and on columns that Hive cannot hold
    """
    view_name, all_versions, newest = f"{table}_plain", f"{table}_plain_versions", f"{table}_plain_manifest"
    if _FILE_NAME not in schema.names:
        raise SyncRefused(
            f"{database}.{view_name}",
            f"the table has no column {_FILE_NAME} (hoodie.populate.meta.fields=false), by which the view tells the "
            "newest files. Sync without hoodie.sync.manifest.view",
        )
    columns, keys = hive_columns(schema, partition_fields, timestamps=hive.timestamps)
    column_comments = comments if hive.comments else {}
    versions = _entry(
        database, all_versions, "versions", base, columns, _PARQUET, SERDE, keys=keys, comments=column_comments
    )
    listed = _entry(database, newest, "manifest", join(base, NAMES_FOLDER), {"file_name": "string"}, _TEXT, _TEXT_SERDE)
    shown = {name: kind for name, kind in {**columns, **keys}.items() if not (hive.omit_meta and name in META_COLUMNS)}
    query = (
        f"SELECT {', '.join(f'`{name}`' for name in shown)} FROM `{database}`.`{all_versions}` "
        f"WHERE `{_FILE_NAME}` IN (SELECT `file_name` FROM `{database}`.`{newest}`)"
    )
    view = _entry(database, view_name, "view", "", shown, _TEXT, _TEXT_SERDE, comments=column_comments, query=query)
    return [versions, listed, view]


def _entry(
    database: str,
    name: str,
    kind: str,
    location: str,
    columns: Mapping[str, str],
    formats: tuple[str, str],
    serde: str,
    *,
    keys: Mapping[str, str] | None = None,
    comments: Mapping[str, str] | None = None,
    query: str = "",
) -> SyncedEntry:
    return SyncedEntry(
        database=database,
        name=name,
        input_format=formats[0],
        output_format=formats[1],
        serde_class=serde,
        location=location,
        columns=columns,
        keys=keys or {},
        comments=comments or {},
        properties={PLAIN_MARK: kind} if query else {PLAIN_MARK: kind, "EXTERNAL": "TRUE"},
        serde={"serialization.format": "1"},
        managed=False,
        plain=kind,
        query=query,
    )


#: The property by which a sync knows such an entry for its own.
PLAIN_MARK = "hoodie.sync.hive_formats"
