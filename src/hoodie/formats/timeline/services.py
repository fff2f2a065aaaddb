"""Plans and results of table services as the Avro files of the timeline, in both directions.

`decode_*` take the bytes and the path of the file, for errors; they raise CorruptFile on anything but one record of the
right name, and on a path that leaves the table. `encode_*` take `root`, the table's base path, where Hudi stores
absolute paths. Source: docs/format/avro-payloads.md.
"""

from hoodie.errors import CorruptFile
from hoodie.formats.avro.container import read_one, write_one
from hoodie.formats.timeline import schemas
from hoodie.formats.timeline.commit_json import read_document
from hoodie.formats.timeline.parts import (
    Record,
    file_name_sizes,
    file_names,
    inside_partitions,
    ref,
    ref_record,
    with_root,
)
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import absolute_path, inside
from hoodie.model.plans import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackPartition,
    SavepointMetadata,
)

# --- cleaning ---


def encode_clean_plan(plan: CleanPlan, root: str) -> bytes:
    """The content of both the requested and the inflight clean."""
    files = {
        partition: [{"filePath": absolute_path(root, partition, name), "isBootstrapBaseFile": False} for name in names]
        for partition, names in plan.files.items()
    }
    record = {
        "earliestInstantToRetain": plan.earliest
        and dict(zip(("timestamp", "action", "state"), plan.earliest, strict=True)),
        "lastCompletedCommitTimestamp": plan.last_completed,
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": files,
        "partitionsToBeDeleted": list(plan.partitions),
        "extraMetadata": dict(plan.extra),
    }
    return write_one(schemas.CLEANER_PLAN, record)


def decode_clean_plan(data: bytes, path: str) -> CleanPlan:
    record = read_one(data, schemas.CLEANER_PLAN, path)
    earliest = record["earliestInstantToRetain"]
    files = {key: names(names, path) for key, names in (record["filesToBeDeletedPerPartition"] or {}).items()}
    for key, infos in (record["filePathsToBeDeletedPerPartition"] or {}).items():
        files[key] = file_names((info["filePath"] or "" for info in infos), path)
    return CleanPlan(
        policy=record["policy"],
        earliest=None if earliest is None else (earliest["timestamp"], earliest["action"], earliest["state"]),
        last_completed=record["lastCompletedCommitTimestamp"],
        files=inside_partitions(files, path),
        partitions=tuple(inside(partition, path) for partition in record["partitionsToBeDeleted"] or ()),
        extra=record["extraMetadata"] or {},
    )


def encode_clean_metadata(metadata: CleanMetadata) -> bytes:
    partitions = {
        partition: {
            "partitionPath": partition,
            "policy": cleaned.policy,
            "deletePathPatterns": list(cleaned.planned),
            "successDeleteFiles": list(cleaned.deleted),
            "failedDeleteFiles": list(cleaned.failed),
            "isPartitionDeleted": cleaned.removed,
        }
        for partition, cleaned in metadata.partitions.items()
    }
    record = {
        "startCleanTime": metadata.start,
        "timeTakenInMillis": metadata.millis,
        "totalFilesDeleted": metadata.files_deleted,
        "earliestCommitToRetain": metadata.earliest,
        "lastCompletedCommitTimestamp": metadata.last_completed,
        "partitionMetadata": partitions,
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": dict(metadata.extra),
    }
    return write_one(schemas.CLEAN_METADATA, record)


def decode_clean_metadata(data: bytes, path: str) -> CleanMetadata:
    return clean_metadata_of(read_one(data, schemas.CLEAN_METADATA, path), path)


def clean_metadata_of(record: Record, path: str) -> CleanMetadata:
    """What a record of HoodieCleanMetadata says, in a file of the timeline or of the archive."""
    partitions = {
        partition: CleanedPartition(
            policy=entry["policy"],
            planned=file_names(entry["deletePathPatterns"], path),
            deleted=file_names(entry["successDeleteFiles"], path),
            failed=file_names(entry["failedDeleteFiles"], path),
            removed=bool(entry["isPartitionDeleted"]),
        )
        for partition, entry in record["partitionMetadata"].items()
    }
    return CleanMetadata(
        start=record["startCleanTime"],
        millis=record["timeTakenInMillis"],
        earliest=record["earliestCommitToRetain"],
        last_completed=record["lastCompletedCommitTimestamp"],
        partitions=inside_partitions(partitions, path),
        extra=record["extraMetadata"] or {},
    )


# --- rollback ---


def encode_rollback_plan(plan: RollbackPlan, root: str) -> bytes:
    requests = [
        {
            "partitionPath": request.partition,
            "fileId": request.file_id,
            "latestBaseInstant": request.base_instant,
            "filesToBeDeleted": [absolute_path(root, request.partition, name) for name in request.delete],
            "logBlocksToBeDeleted": with_root(request.log_blocks, root, request.partition),
        }
        for request in plan.requests
    ]
    record = {"instantToRollback": ref_record(plan.instant), "RollbackRequests": requests, "version": 1}
    return write_one(schemas.ROLLBACK_PLAN, record)


def decode_rollback_plan(data: bytes, path: str) -> RollbackPlan:
    record = read_one(data, schemas.ROLLBACK_PLAN, path)
    if record["instantToRollback"] is None:
        raise CorruptFile(path, "a rollback plan that names no instant")
    requests = tuple(
        RollbackRequest(
            partition=inside(entry["partitionPath"], path),
            file_id=entry["fileId"] or "",
            base_instant=entry["latestBaseInstant"] or "",
            delete=file_names(entry["filesToBeDeleted"], path),
            log_blocks=file_name_sizes(entry["logBlocksToBeDeleted"], path),
        )
        for entry in record["RollbackRequests"] or ()
    )
    return RollbackPlan(instant=ref(record["instantToRollback"]), requests=requests)


def encode_rollback_metadata(metadata: RollbackMetadata, root: str) -> bytes:
    return write_one(schemas.ROLLBACK_METADATA, _rollback_record(metadata, root))


def decode_rollback_metadata(data: bytes, path: str) -> RollbackMetadata:
    return _rollback(read_one(data, schemas.ROLLBACK_METADATA, path), path)


def _rollback_record(metadata: RollbackMetadata, root: str) -> Record:
    partitions = {
        partition: {
            "partitionPath": partition,
            "successDeleteFiles": [absolute_path(root, partition, name) for name in rolled_back.deleted],
            "failedDeleteFiles": [absolute_path(root, partition, name) for name in rolled_back.failed],
            "rollbackLogFiles": with_root(rolled_back.command_logs, root, partition),
            "logFilesFromFailedCommit": with_root(rolled_back.failed_logs, root, partition),
        }
        for partition, rolled_back in metadata.partitions.items()
    }
    return {
        "startRollbackTime": metadata.start,
        "timeTakenInMillis": metadata.millis,
        "totalFilesDeleted": metadata.files_deleted,
        "commitsRollback": list(metadata.commits),
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [ref_record(ref) for ref in metadata.instants],
    }


def _rollback(record: Record, path: str) -> RollbackMetadata:
    partitions = {
        partition: RolledBackPartition(
            deleted=file_names(entry["successDeleteFiles"], path),
            failed=file_names(entry["failedDeleteFiles"], path),
            command_logs=file_name_sizes(entry["rollbackLogFiles"], path),
            failed_logs=file_name_sizes(entry["logFilesFromFailedCommit"], path),
        )
        for partition, entry in record["partitionMetadata"].items()
    }
    return RollbackMetadata(
        start=record["startRollbackTime"],
        millis=record["timeTakenInMillis"],
        files_deleted=record["totalFilesDeleted"],
        commits=tuple(record["commitsRollback"]),
        partitions=inside_partitions(partitions, path),
        instants=tuple(ref(entry) for entry in record["instantsRollback"]),
    )


# --- savepoint and restore ---


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    partitions = {
        partition: {"partitionPath": partition, "savepointDataFile": list(names)}
        for partition, names in metadata.files.items()
    }
    record = {
        "savepointedBy": metadata.by,
        "savepointedAt": metadata.at,
        "comments": metadata.comments,
        "partitionMetadata": partitions,
        "version": 1,
    }
    return write_one(schemas.SAVEPOINT_METADATA, record)


def decode_savepoint(data: bytes, path: str) -> SavepointMetadata:
    record = read_one(data, schemas.SAVEPOINT_METADATA, path)
    files = {key: file_names(entry["savepointDataFile"], path) for key, entry in record["partitionMetadata"].items()}
    return SavepointMetadata(
        by=record["savepointedBy"],
        at=record["savepointedAt"],
        comments=record["comments"],
        files=inside_partitions(files, path),
    )


def encode_restore_plan(plan: RestorePlan) -> bytes:
    record = {
        "instantsToRollback": [ref_record(ref) for ref in plan.instants],
        "version": 2,
        "savepointToRestoreTimestamp": plan.savepoint or None,
    }
    return write_one(schemas.RESTORE_PLAN, record)


def decode_restore_plan(data: bytes, path: str) -> RestorePlan:
    record = read_one(data, schemas.RESTORE_PLAN, path)
    return RestorePlan(
        instants=tuple(ref(entry) for entry in record["instantsToRollback"]),
        savepoint=record["savepointToRestoreTimestamp"] or "",
    )


def encode_restore_metadata(metadata: RestoreMetadata, root: str) -> bytes:
    rollbacks = {
        instant: [_rollback_record(rollback, root) for rollback in found]
        for instant, found in metadata.rollbacks.items()
    }
    record = {
        "startRestoreTime": metadata.start,
        "timeTakenInMillis": metadata.millis,
        "instantsToRollback": list(metadata.instants),
        "hoodieRestoreMetadata": rollbacks,
        "version": 1,
        "restoreInstantInfo": [ref_record(ref) for ref in metadata.refs],
    }
    return write_one(schemas.RESTORE_METADATA, record)


def decode_restore_metadata(data: bytes, path: str) -> RestoreMetadata:
    record = read_one(data, schemas.RESTORE_METADATA, path)
    return RestoreMetadata(
        start=record["startRestoreTime"],
        millis=record["timeTakenInMillis"],
        instants=tuple(record["instantsToRollback"]),
        rollbacks={
            instant: tuple(_rollback(rollback, path) for rollback in entry if rollback is not None)
            for instant, entry in record["hoodieRestoreMetadata"].items()
        },
        refs=tuple(ref(entry) for entry in record["restoreInstantInfo"]),
    )


# --- commits, from table version 8 on ---


def decode_avro_commit(data: bytes, path: str, replacing: bool = False) -> CommitMetadata:
    """The metadata of a completed or inflight commit, delta commit or (replacing) completed replace commit.

    An operation that only a newer Hudi knows reads as UNKNOWN: these files are read, never written again.
    """
    schema = schemas.REPLACE_COMMIT_METADATA if replacing else schemas.COMMIT_METADATA
    record = read_one(data, schema, path)
    if record["operationType"] not in Operation.__members__:
        record["operationType"] = None
    return read_document(record, path)
