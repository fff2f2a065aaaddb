"""The options of `hoodie.write` and `create_table` that name the table and what to do with a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.compaction import COMPACTION_GROUPS
from hoodie.config.hbase import HBASE_GROUPS
from hoodie.config.keygen import KeyOptions, TimeOptions
from hoodie.config.locks import LOCK_GROUPS
from hoodie.config.options import alias_sets, as_text, check_known, declared, option, override, refuse_two_aliases
from hoodie.config.read import READ_GROUPS, QueryOptions
from hoodie.config.rollback import ROLLBACK_GROUPS
from hoodie.config.services import SERVICE_GROUPS
from hoodie.config.write import WRITE_GROUPS, WriteOperation, WriteOptions

DEFAULT_PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What a table is, given when it is created; later writes may repeat but not change it."""

    name: str = option("hoodie.table.name", "", "Name of the table.", aliases=("hoodie.datasource.write.table.name",))
    database: str = option("hoodie.database.name", "", "Name of its database; may be empty.")
    type: str = option(
        "hoodie.datasource.write.table.type",
        "COPY_ON_WRITE",
        "COPY_ON_WRITE: an update rewrites base files; MERGE_ON_READ: it appends to logs beside them.",
        aliases=("hoodie.table.type",),
    )
    ordering: str = option(
        "hoodie.datasource.write.precombine.field",
        "",
        "Column that orders the versions of a row.",
        aliases=("hoodie.table.precombine.field",),
    )
    payload: str = option(
        "hoodie.datasource.write.payload.class",
        DEFAULT_PAYLOAD,
        "Class that decides which version of a row wins: OverwriteWithLatestAvroPayload (the last write), "
        "DefaultHoodieRecordPayload (the greatest ordering value), …",
        aliases=("hoodie.compaction.payload.class",),
    )


class SqlInsert(StrEnum):
    """What INSERT INTO does."""

    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasourceOptions:
    """What `hoodie.write` does with a batch."""

    operation: WriteOperation = option(
        "hoodie.datasource.write.operation",
        WriteOperation.UPSERT,
        "upsert, insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table or delete_partition.",
    )
    sql_insert: SqlInsert = option(
        "hoodie.spark.sql.insert.into.operation",
        SqlInsert.INSERT,
        "What INSERT INTO of `hoodie.sql` does: insert, upsert or bulk_insert. A setting of the session: `SET …`.",
    )
    partitions_to_delete: tuple[str, ...] = option(
        "hoodie.datasource.write.partitions.to.delete",
        (),
        "Partition paths that delete_partition removes, separated by commas.",
    )


ALL_GROUPS = (
    TableOptions,
    KeyOptions,
    TimeOptions,
    DatasourceOptions,
    *WRITE_GROUPS,
    *READ_GROUPS,
    QueryOptions,
    *COMPACTION_GROUPS,
    *ROLLBACK_GROUPS,
    *SERVICE_GROUPS,
    *LOCK_GROUPS,
    *HBASE_GROUPS,
)

_ALIASES = alias_sets(ALL_GROUPS)
_PREFIX = next(spec for found, spec in declared(WriteOptions) if found.name == "metadata_prefix").keys[0]


def check_options(options: Mapping[str, object], groups: tuple[type, ...] = ALL_GROUPS) -> dict[str, str]:
    """The options as text, all of them known. Keys with the commit metadata's prefix pass as they are.

    Raises InvalidOption naming an unknown key and the nearest known one, or two aliases of one option with different
           values
    """
    prefix = str(options.get(_PREFIX, "_"))
    check_known(options, groups, also=[prefix] if prefix else [])
    checked = {key: as_text(value) for key, value in options.items()}
    refuse_two_aliases(checked, _ALIASES)
    return checked


def overridden(options: Mapping[str, str], by: Mapping[str, str]) -> dict[str, str]:
    """Options with those of a call over them: an option of the call counts by whichever alias either names it."""
    return override(options, by, _ALIASES)


def write_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options that are about writes; what the table is, its properties say."""
    about_table = {
        key for group in (TableOptions, KeyOptions, TimeOptions) for _, spec in declared(group) for key in spec.keys
    }
    return {key: value for key, value in options.items() if key not in about_table}
