"""Plans and results of table services as the Avro files of the timeline, in both directions.

Source: docs/format/avro-payloads.md.
"""

from collections.abc import Mapping
from typing import Any

from hoodie.errors import CorruptFile
from hoodie.formats.timeline.forms import (
    FILE,
    FLAG,
    INSIDE,
    INT,
    LONG,
    NAMES,
    OWN_PARTITION,
    PATHS,
    SIZES,
    TEXT,
    TEXTS,
    Form,
    Place,
    PlainType,
    attribute_field,
    mapped,
    nullable_field,
    of_partitions,
    tuple_of,
    unread_field,
    version_field,
)
from hoodie.formats.timeline.schemas import avro_map, optional, record
from hoodie.model.plans import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    InstantRef,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackPartition,
    SavepointMetadata,
)

_EXTRA = nullable_field("extraMetadata", TEXTS, "extra")

# --- cleaning ---

_EARLIEST = ("timestamp", "action", "state")
_ACTION_INSTANT = PlainType(
    record("HoodieActionInstant", *({"name": name, "type": "string"} for name in _EARLIEST)),
    lambda earliest, place: dict(zip(_EARLIEST, earliest, strict=True)),
    lambda instant, place: instant and tuple(instant[name] for name in _EARLIEST),
)
_FILE_INFO = PlainType(
    record("HoodieCleanFileInfo", optional("filePath", "string"), optional("isBootstrapBaseFile", "boolean")),
    lambda name, place: {"filePath": FILE.encode(name, place), "isBootstrapBaseFile": False},
    lambda info, place: FILE.decode(info["filePath"], place),
)


def _clean_plan(names: Mapping[str, tuple[str, ...]], files: Mapping[str, tuple[str, ...]], **values: Any) -> CleanPlan:
    """names: of a plan of version 1"""
    return CleanPlan(files={**names, **files}, **values)


#: The content of both the requested and the inflight clean.
CLEAN_PLAN = Form(
    "HoodieCleanerPlan",
    _clean_plan,
    nullable_field("earliestInstantToRetain", _ACTION_INSTANT, "earliest"),
    attribute_field("lastCompletedCommitTimestamp", TEXT, "last_completed", default=""),
    attribute_field("policy", TEXT, "policy"),
    nullable_field("filesToBeDeletedPerPartition", of_partitions(NAMES), "files")._replace(
        take=lambda plan, place: {}, argument="names"
    ),
    version_field(2),
    nullable_field("filePathsToBeDeletedPerPartition", of_partitions(tuple_of(_FILE_INFO)), "files"),
    nullable_field("partitionsToBeDeleted", tuple_of(INSIDE), "partitions"),
    _EXTRA,
)
encode_clean_plan, decode_clean_plan = CLEAN_PLAN.write, CLEAN_PLAN.read

_CLEANED = Form(
    "HoodieCleanPartitionMetadata",
    CleanedPartition,
    OWN_PARTITION,
    attribute_field("policy", TEXT, "policy"),
    attribute_field("deletePathPatterns", NAMES, "planned"),
    attribute_field("successDeleteFiles", NAMES, "deleted"),
    attribute_field("failedDeleteFiles", NAMES, "failed"),
    nullable_field("isPartitionDeleted", FLAG, "removed"),
)
CLEAN_METADATA = Form(
    "HoodieCleanMetadata",
    CleanMetadata,
    attribute_field("startCleanTime", TEXT, "start"),
    attribute_field("timeTakenInMillis", LONG, "millis"),
    attribute_field("totalFilesDeleted", INT, "files_deleted")._replace(argument=""),
    attribute_field("earliestCommitToRetain", TEXT, "earliest"),
    attribute_field("lastCompletedCommitTimestamp", TEXT, "last_completed", default=""),
    attribute_field("partitionMetadata", of_partitions(_CLEANED), "partitions"),
    version_field(2),
    unread_field("bootstrapPartitionMetadata", ["null", avro_map(_CLEANED.name)], {}, default=None),
    _EXTRA,
)
encode_clean_metadata, decode_clean_metadata = CLEAN_METADATA.write, CLEAN_METADATA.read


def clean_metadata_of(entry: Mapping[str, Any], path: str) -> CleanMetadata:
    """What a record of HoodieCleanMetadata says in the archive. Raises as `decode_clean_metadata`"""
    metadata: CleanMetadata = CLEAN_METADATA.decode(entry, Place(path=path))
    return metadata


# --- rollback ---


def _named_instant(instant: Mapping[str, Any] | None, place: Place) -> InstantRef:
    if instant is None:
        raise CorruptFile(place.path, "a rollback plan that names no instant")
    return InstantRef(instant["commitTime"], instant["action"])


_INSTANT = Form(
    "HoodieInstantInfo",
    InstantRef,
    attribute_field("commitTime", TEXT, "time"),
    attribute_field("action", TEXT, "action"),
)
_REQUEST = Form(
    "HoodieRollbackRequest",
    RollbackRequest,
    attribute_field("partitionPath", INSIDE, "partition"),
    nullable_field("fileId", TEXT, "file_id"),
    nullable_field("latestBaseInstant", TEXT, "base_instant"),
    attribute_field("filesToBeDeleted", PATHS, "delete", default=[]),
    nullable_field("logBlocksToBeDeleted", SIZES, "log_blocks"),
    partition=lambda request: request.partition,
)
ROLLBACK_PLAN = Form(
    "HoodieRollbackPlan",
    RollbackPlan,
    nullable_field("instantToRollback", PlainType(_INSTANT.schema, _INSTANT.encode, _named_instant), "instant"),
    nullable_field("RollbackRequests", tuple_of(_REQUEST), "requests"),
    version_field(),
)
encode_rollback_plan, decode_rollback_plan = ROLLBACK_PLAN.write, ROLLBACK_PLAN.read

_ROLLED_BACK = Form(
    "HoodieRollbackPartitionMetadata",
    RolledBackPartition,
    OWN_PARTITION,
    attribute_field("successDeleteFiles", PATHS, "deleted"),
    attribute_field("failedDeleteFiles", PATHS, "failed"),
    nullable_field("rollbackLogFiles", SIZES, "command_logs"),
    nullable_field("logFilesFromFailedCommit", SIZES, "failed_logs"),
)
ROLLBACK_METADATA = Form(
    "HoodieRollbackMetadata",
    RollbackMetadata,
    attribute_field("startRollbackTime", TEXT, "start"),
    attribute_field("timeTakenInMillis", LONG, "millis"),
    attribute_field("totalFilesDeleted", INT, "files_deleted"),
    attribute_field("commitsRollback", tuple_of(TEXT), "commits"),
    attribute_field("partitionMetadata", of_partitions(_ROLLED_BACK), "partitions"),
    version_field(),
    attribute_field("instantsRollback", tuple_of(_INSTANT), "instants", default=[]),
)
encode_rollback_metadata, decode_rollback_metadata = ROLLBACK_METADATA.write, ROLLBACK_METADATA.read

# --- savepoint and restore ---

_SAVED = PlainType(
    record(
        "HoodieSavepointPartitionMetadata",
        {"name": "partitionPath", "type": "string"},
        {"name": "savepointDataFile", "type": NAMES.schema},
    ),
    lambda names, place: {"partitionPath": place.partition, "savepointDataFile": list(names)},
    lambda entry, place: NAMES.decode(entry["savepointDataFile"], place),
)
SAVEPOINT = Form(
    "HoodieSavepointMetadata",
    SavepointMetadata,
    attribute_field("savepointedBy", TEXT, "by"),
    attribute_field("savepointedAt", LONG, "at"),
    attribute_field("comments", TEXT, "comments"),
    attribute_field("partitionMetadata", of_partitions(_SAVED), "files"),
    version_field(),
)
encode_savepoint, decode_savepoint = SAVEPOINT.write, SAVEPOINT.read

RESTORE_PLAN = Form(
    "HoodieRestorePlan",
    RestorePlan,
    attribute_field("instantsToRollback", tuple_of(_INSTANT), "instants", default=[]),
    version_field(2, 2),
    nullable_field("savepointToRestoreTimestamp", TEXT, "savepoint", empty=False),
)
encode_restore_plan, decode_restore_plan = RESTORE_PLAN.write, RESTORE_PLAN.read

RESTORE_METADATA = Form(
    "HoodieRestoreMetadata",
    RestoreMetadata,
    attribute_field("startRestoreTime", TEXT, "start"),
    attribute_field("timeTakenInMillis", LONG, "millis"),
    attribute_field("instantsToRollback", tuple_of(TEXT), "instants"),
    attribute_field(
        "hoodieRestoreMetadata", mapped(tuple_of(ROLLBACK_METADATA, ["null", ROLLBACK_METADATA.schema])), "rollbacks"
    ),
    version_field(),
    attribute_field("restoreInstantInfo", tuple_of(_INSTANT, _INSTANT.name), "refs", default=[]),
)
encode_restore_metadata, decode_restore_metadata = RESTORE_METADATA.write, RESTORE_METADATA.read
