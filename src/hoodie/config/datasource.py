"""The options of `hoodie.hudi.write` and `create_table` that name the table and what to do with a batch."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.compaction import COMPACTION_GROUPS
from hoodie.config.compat import CompatOptions, Unsupported, without_unused
from hoodie.config.hbase import HBaseOptions
from hoodie.config.hudi_options import Purpose
from hoodie.config.keygen import KeyOptions, TimeOptions
from hoodie.config.locks import LOCK_GROUPS
from hoodie.config.metadata import METADATA_GROUPS
from hoodie.config.options import (
    Options,
    alias_sets,
    as_text,
    declared,
    group_keys,
    option,
    override,
    read_options,
    refuse_two_aliases,
)
from hoodie.config.properties_file import default_options, read_properties_file
from hoodie.config.read import READ_GROUPS, QueryOptions
from hoodie.config.services import SERVICE_GROUPS, RollbackOptions
from hoodie.config.sync import SYNC_GROUPS, without_other_sync
from hoodie.config.table import CDC, CDC_MODE, LoggedImages, TableConfig, TableType
from hoodie.config.validators import ValidatorOptions
from hoodie.config.write import COMBINE, WRITE_GROUPS, ConsoleOptions, DuplicatePolicy, WriteOperation, WriteOptions
from hoodie.errors import InvalidOption
from hoodie.model.table_version import DEFAULT_VERSION, VERSIONS, WRITTEN

_OPERATION = "hoodie.datasource.write.operation"
_INSERT_MODE = "hoodie.sql.insert.mode"
_INSERTS = (WriteOperation.INSERT, WriteOperation.UPSERT, WriteOperation.BULK_INSERT)
_DUPLICATES = "hoodie.datasource.insert.dup.policy"
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
        aliases=("hoodie.table.type", "hoodie.datasource.write.storage.type"),
    )
    ordering: str = option(
        "hoodie.datasource.write.precombine.field",
        "",
        "Column that orders the versions of a row; in a table of version 9 several, separated by commas.",
        aliases=("hoodie.table.precombine.field", "hoodie.table.ordering.fields", "hoodie.payload.ordering.field"),
    )
    payload: str = option(
        "hoodie.datasource.write.payload.class",
        DEFAULT_PAYLOAD,
        "Class that decides which version of a row wins: OverwriteWithLatestAvroPayload (the last write), "
        "DefaultHoodieRecordPayload (the greatest ordering value), …",
        aliases=("hoodie.compaction.payload.class",),
    )
    merge_mode: str = option(
        "hoodie.write.record.merge.mode",
        "",
        "The same in words of Hudi 1.x: COMMIT_TIME_ORDERING is OverwriteWithLatestAvroPayload, EVENT_TIME_ORDERING "
        "DefaultHoodieRecordPayload, CUSTOM a merger of your own.",
        aliases=("hoodie.record.merge.mode",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOptions:
    """The version of the format that a table is made in; a write may name the one that its table has."""

    version: int = option(
        "hoodie.write.table.version",
        DEFAULT_VERSION,
        "Version of the table format: "
        + "; ".join(f"{number} (read by {VERSIONS[number].engines})" for number in WRITTEN)
        + ". A table keeps the version that it was made with.",
        expected=f"one of {', '.join(map(str, WRITTEN))}",
        check=lambda value: value in WRITTEN,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLogOptions:
    """Whether a table's writers log change data, given when it is created."""

    enabled: bool = option(
        CDC,
        False,
        "Writers log what became of each row beside the base files that they rewrite, for `table.changes(cdc=True)`.",
    )
    images: LoggedImages = option(
        CDC_MODE,
        LoggedImages.DATA_BEFORE_AFTER,
        "What change logs hold. DATA_BEFORE_AFTER: the row before and after; DATA_BEFORE: the row before; OP_KEY_ONLY: "
        "its key. What they do not hold a reader takes from base files, which must still be there.",
    )


#: Options that say what a table is: all that a write may add to its properties is among them.
OF_TABLES = frozenset[str]().union(
    *map(group_keys, (KeyOptions, TimeOptions, TableOptions, VersionOptions, ChangeLogOptions))
)


class SqlInsert(StrEnum):
    """What INSERT INTO does."""

    AUTO = "auto"
    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"


class InsertMode(StrEnum):
    """What INSERT INTO makes of a key that is there, in the words of older releases."""

    UPSERT = "upsert"
    STRICT = "strict"
    NON_STRICT = "non-strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasourceOptions:
    """What `hoodie.hudi.write` does with a batch."""

    operation: WriteOperation = option(
        "hoodie.datasource.write.operation",
        WriteOperation.UPSERT,
        "upsert, insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table or delete_partition. Where it "
        "is not set, tables without a record key take bulk_insert.",
    )
    sql_insert: SqlInsert = option(
        "hoodie.spark.sql.insert.into.operation",
        SqlInsert.AUTO,
        "What INSERT INTO does: insert, upsert or bulk_insert; auto: upsert on a table with an ordering column, else "
        "insert. `hoodie.datasource.write.operation` comes first.",
    )
    insert_mode: InsertMode = option(
        "hoodie.sql.insert.mode",
        InsertMode.UPSERT,
        "Where no option names the operation of INSERT INTO. upsert: as auto; strict: on Copy-on-Write a key that is "
        "there is an error, on Merge-on-Read as upsert; non-strict: insert.",
    )
    sql_bulk: bool = option(
        "hoodie.sql.bulk.insert.enable", False, "INSERT INTO loads in bulk, with `hoodie.sql.insert.mode=non-strict`."
    )
    partitions_to_delete: tuple[str, ...] = option(
        "hoodie.datasource.write.partitions.to.delete",
        (),
        "Partition paths that delete_partition removes, separated by commas; * stands for any text. Without them those "
        "that its rows are in go.",
    )


ALL_GROUPS = (
    TableOptions,
    VersionOptions,
    KeyOptions,
    TimeOptions,
    ChangeLogOptions,
    DatasourceOptions,
    *WRITE_GROUPS,
    ValidatorOptions,
    *READ_GROUPS,
    *METADATA_GROUPS,
    QueryOptions,
    *COMPACTION_GROUPS,
    RollbackOptions,
    *SERVICE_GROUPS,
    *SYNC_GROUPS,
    *LOCK_GROUPS,
    HBaseOptions,
    ConsoleOptions,
    CompatOptions,
)

_ALIASES = alias_sets(ALL_GROUPS)
_PREFIX = next(spec for option_field, spec in declared(WriteOptions) if option_field.name == "metadata_prefix").keys[0]
_NAME, _OLDER_NAME = next(spec for option_field, spec in declared(TableOptions) if option_field.name == "name").keys
_PATH_KEYS = ("path", "hoodie.base.path")
_MODES = next(spec for option_field, spec in declared(TableOptions) if option_field.name == "merge_mode").keys


def check_options(options: Mapping[str, object], purpose: Purpose = Purpose.BOTH) -> Options:
    """The options that have an effect, as text. Keys with the commit metadata's prefix pass as they are.

    options  those of a Hudi job, perhaps: ones that Hudi knows and that need no effect here are named in the log and
             left out; None is the same as not given
    purpose  what they are given for: an option of writes asks for nothing in a read
    Raises   InvalidOption naming all unknown keys and all options that ask for something that would not happen; or two
             aliases of one option with different values
    """
    _require_named(options)
    texts = {key: as_text(value) for key, value in options.items() if value is not None}
    if not texts:
        return Options()
    prefix = texts.get(_PREFIX, "_")
    checked = without_unused(texts, _ALIASES, (prefix,) if prefix else (), purpose)
    if _NAME in checked:  # as in Hudi: the other name is what older releases read it from
        checked.pop(_OLDER_NAME, None)
    refuse_two_aliases(checked, _ALIASES)
    typed = Options(with_payload(checked, _MODES))
    return without_other_sync(typed) if typed.read(CompatOptions).unsupported is Unsupported.WARN else typed


def _require_named(options: object) -> None:
    """Raises InvalidOption on what are no values by their names."""
    if not isinstance(options, Mapping):
        raise InvalidOption(f"options={options!r}: expected a dict, such as {{'hoodie.index.type': 'BUCKET'}}")
    if other := [key for key in options if not isinstance(key, str)]:
        raise InvalidOption(f"an option is named by text, such as 'hoodie.index.type', and not by {other[0]!r}")


def door_options(
    options: Mapping[str, object] | None,
    purpose: Purpose = Purpose.BOTH,
    path: object = None,
    props: str | os.PathLike[str] | None = None,
) -> Options:
    """The options of a call that stands for itself: its own, over those of a properties file, over the machine's.

    options, purpose  as of `check_options`
    path              of the table; None: not known yet
    props             path of a properties file
    Raises            as `check_options`, `read_properties_file` and `of_path`
    """
    _require_named({} if options is None else options)
    own_options = {key: as_text(value) for key, value in (options or {}).items() if value is not None}
    files = default_options()
    if props is not None:
        named = {key: (value, os.fspath(props)) for key, value in read_properties_file(props).items()}
        defaults = overridden({key: value for key, (value, _) in files.items()}, dict.fromkeys(named, ""))
        files = {key: files[key] for key in defaults if key in files and key not in named} | named
    texts = {key: value for key, (value, _) in files.items()}
    try:
        checked = check_options(overridden(texts, own_options), purpose)
    except InvalidOption as problem:
        sources = sorted({where for key, (_, where) in files.items() if key not in own_options and key in str(problem)})
        if sources:
            raise InvalidOption(f"{problem} (Options of {', '.join(sources)} are among them.)") from problem
        raise
    return checked if path is None else of_path(checked, path)


def of_path(options: Mapping[str, str], path: object) -> Options:
    """The options of a call for a table at that path; jobs name the path in the options, too.

    Raises InvalidOption when an option names another one
    """
    for key in _PATH_KEYS:
        if key in options and _bare_path(options[key]) != _bare_path(str(path)):
            raise InvalidOption(f"{key}={options[key]!r}, but the table is at {str(path)!r}: give one path")
    return Options({key: value for key, value in options.items() if key not in _PATH_KEYS})


def _bare_path(path: str) -> str:
    return path.strip().removeprefix("file://").rstrip("/")


def overridden(options: Mapping[str, str], by: Mapping[str, str]) -> Options:
    """Options with those of a call over them: an option of the call counts by whichever alias either names it."""
    return override(options, by, _ALIASES)


def sql_insert(options: Mapping[str, str], table: TableConfig) -> tuple[WriteOperation, dict[str, str]]:
    """What an INSERT INTO of a table does, and options for it beside those, as in Hudi 0.15: rows of one key within a
    statement are combined where the table has a record key and an ordering column.

    Raises InvalidOption on an operation that takes no rows, and where bulk loading meets a mode that looks at keys
    """
    typed = read_options(DatasourceOptions, options)
    ordered = bool(table.ordering and table.record_key)  # without a key no two rows are versions of one
    combined = {COMBINE: "true"} if ordered and COMBINE not in options else {}
    if _OPERATION in options:
        if typed.operation not in _INSERTS:
            raise InvalidOption(f"{_OPERATION}={typed.operation}: INSERT INTO does {', '.join(_INSERTS)}")
        return typed.operation, combined
    if typed.sql_insert is not SqlInsert.AUTO:
        return WriteOperation(typed.sql_insert.value), combined
    if typed.insert_mode is InsertMode.NON_STRICT:
        return WriteOperation.BULK_INSERT if typed.sql_bulk else WriteOperation.INSERT, combined
    if typed.sql_bulk and _INSERT_MODE in options:
        raise InvalidOption(
            f"hoodie.sql.bulk.insert.enable=true looks at no keys, and {_INSERT_MODE}={typed.insert_mode.value} does: "
            f"set {_INSERT_MODE}=non-strict"
        )
    if typed.insert_mode is InsertMode.STRICT and table.type is TableType.COPY_ON_WRITE:
        return WriteOperation.INSERT, combined | {_DUPLICATES: DuplicatePolicy.FAIL.value}
    return WriteOperation.UPSERT if ordered else WriteOperation.INSERT, combined


def operation_for(options: Options, *, has_record_key: bool) -> WriteOperation:
    """What a write of the data source does: as in Hudi, rows of a table without a record key are loaded in bulk."""
    if _OPERATION not in options and not has_record_key:
        return WriteOperation.BULK_INSERT
    return options.read(DatasourceOptions).operation


def version_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options that say which version of the format a new table gets."""
    names = {key for _, spec in declared(VersionOptions) for key in spec.keys}
    return {key: value for key, value in options.items() if key in names}


def write_options(options: Mapping[str, str]) -> Options:
    """Those of the options that are about writes; what the table is, its properties say."""
    about_table = {
        key
        for group in (TableOptions, VersionOptions, ChangeLogOptions, KeyOptions, TimeOptions)
        for _, spec in declared(group)
        for key in spec.keys
    }
    return Options({key: value for key, value in options.items() if key not in about_table})


_PAYLOADS = {
    "COMMIT_TIME_ORDERING": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "EVENT_TIME_ORDERING": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
_CUSTOM = "CUSTOM"  # what merges is named by options of its own
_PAYLOAD_KEYS = ("hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class")


def with_payload(options: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The options with the payload class in place of the merge mode.

    keys    names of the merge mode
    Raises  InvalidOption on an unknown mode, or one that contradicts the payload class
    """
    classes = {key: options[key].strip().upper() for key in keys if options.get(key, "").strip()}
    rest = {key: value for key, value in options.items() if key not in keys}
    for key, mode in classes.items():
        if mode == _CUSTOM:
            continue
        if mode not in _PAYLOADS:
            raise InvalidOption(f"{key}={options[key]!r}: expected one of {', '.join([*_PAYLOADS, _CUSTOM])}")
        payload = _PAYLOADS[mode]
        for other in _PAYLOAD_KEYS:
            if other in rest and rest[other].rpartition(".")[2] != payload.rpartition(".")[2]:
                raise InvalidOption(f"{key}={options[key]!r} means {other}={payload!r}, not {rest[other]!r}")
        rest.setdefault(_PAYLOAD_KEYS[0], payload)
    return rest
