"""Avro schemas of the timeline's plans and results, with Hudi's names, field order, unions and defaults.

Source: docs/format/avro-payloads.md. A reader resolves by full name, so the namespace must match.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

NAMESPACE = "org.apache.hudi.avro.model"


def _record(name: str, *fields: Schema, top: bool = False) -> Schema:
    nested = {"type": "record", "name": name, "fields": list(fields)}
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": list(fields)} if top else nested


def _field(name: str, kind: Any, **more: Any) -> Schema:
    return {"name": name, "type": kind, **more}


def _optional(name: str, kind: Any) -> Schema:
    return _field(name, ["null", kind], default=None)


def _array(items: Any) -> Schema:
    return {"type": "array", "items": items}


def _map(values: Any) -> Schema:
    return {"type": "map", "values": values}


def _version(default: int = 1) -> Schema:
    return _field("version", ["int", "null"], default=default)


_STRINGS = _array("string")
_TEXTS = _map("string")
_LONGS = _map("long")
_EXTRA = _optional("extraMetadata", _TEXTS)
_METRICS = _optional("metrics", _map("double"))
_INSTANT_INFO = _record("HoodieInstantInfo", _field("commitTime", "string"), _field("action", "string"))

COMPACTION_PLAN = _record(
    "HoodieCompactionPlan",
    _optional(
        "operations",
        _array(
            _record(
                "HoodieCompactionOperation",
                _field("baseInstantTime", ["null", "string"]),
                _optional("deltaFilePaths", _STRINGS),
                _optional("dataFilePath", "string"),
                _field("fileId", ["null", "string"]),
                _optional("partitionPath", "string"),
                _METRICS,
                _optional("bootstrapFilePath", "string"),
            )
        ),
    ),
    _EXTRA,
    _version(),
    _optional(
        "strategy",
        _record(
            "HoodieCompactionStrategy",
            _optional("compactorClassName", "string"),
            _optional("strategyParams", _TEXTS),
            _version(),
        ),
    ),
    _field("preserveHoodieMetadata", ["boolean", "null"], default=False),
    top=True,
)

_SLICE_INFO = _record(
    "HoodieSliceInfo",
    _optional("dataFilePath", "string"),
    _optional("deltaFilePaths", _STRINGS),
    _field("fileId", ["null", "string"]),
    _optional("partitionPath", "string"),
    _optional("bootstrapFilePath", "string"),
    _version(),
)

_CLUSTERING_GROUP = _record(
    "HoodieClusteringGroup",
    _optional("slices", _array(_SLICE_INFO)),
    _METRICS,
    _field("numOutputFileGroups", ["int", "null"], default=1),
    _EXTRA,
    _version(),
)

REQUESTED_REPLACE = _record(
    "HoodieRequestedReplaceMetadata",
    _optional("operationType", "string"),
    _optional(
        "clusteringPlan",
        _record(
            "HoodieClusteringPlan",
            _optional("inputGroups", _array(_CLUSTERING_GROUP)),
            _optional(
                "strategy",
                _record(
                    "HoodieClusteringStrategy",
                    _optional("strategyClassName", "string"),
                    _optional("strategyParams", _TEXTS),
                    _version(),
                ),
            ),
            _EXTRA,
            _version(),
            _optional("preserveHoodieMetadata", "boolean"),
        ),
    ),
    _EXTRA,
    _version(),
    top=True,
)

CLEANER_PLAN = _record(
    "HoodieCleanerPlan",
    _optional(
        "earliestInstantToRetain",
        _record(
            "HoodieActionInstant",
            _field("timestamp", "string"),
            _field("action", "string"),
            _field("state", "string"),
        ),
    ),
    _field("lastCompletedCommitTimestamp", "string", default=""),
    _field("policy", "string"),
    _optional("filesToBeDeletedPerPartition", _map(_STRINGS)),
    _version(),
    _optional(
        "filePathsToBeDeletedPerPartition",
        _map(
            _array(
                _record(
                    "HoodieCleanFileInfo",
                    _optional("filePath", "string"),
                    _optional("isBootstrapBaseFile", "boolean"),
                )
            )
        ),
    ),
    _optional("partitionsToBeDeleted", _STRINGS),
    _EXTRA,
    top=True,
)

CLEAN_METADATA = _record(
    "HoodieCleanMetadata",
    _field("startCleanTime", "string"),
    _field("timeTakenInMillis", "long"),
    _field("totalFilesDeleted", "int"),
    _field("earliestCommitToRetain", "string"),
    _field("lastCompletedCommitTimestamp", "string", default=""),
    _field(
        "partitionMetadata",
        _map(
            _record(
                "HoodieCleanPartitionMetadata",
                _field("partitionPath", "string"),
                _field("policy", "string"),
                _field("deletePathPatterns", _STRINGS),
                _field("successDeleteFiles", _STRINGS),
                _field("failedDeleteFiles", _STRINGS),
                _optional("isPartitionDeleted", "boolean"),
            )
        ),
    ),
    _version(),
    _optional("bootstrapPartitionMetadata", _map("HoodieCleanPartitionMetadata")),
    _EXTRA,
    top=True,
)

ROLLBACK_PLAN = _record(
    "HoodieRollbackPlan",
    _optional("instantToRollback", _INSTANT_INFO),
    _optional(
        "RollbackRequests",
        _array(
            _record(
                "HoodieRollbackRequest",
                _field("partitionPath", "string"),
                _optional("fileId", "string"),
                _optional("latestBaseInstant", "string"),
                _field("filesToBeDeleted", _STRINGS, default=[]),
                _optional("logBlocksToBeDeleted", _LONGS),
            )
        ),
    ),
    _version(),
    top=True,
)

_ROLLBACK_FIELDS = (
    _field("startRollbackTime", "string"),
    _field("timeTakenInMillis", "long"),
    _field("totalFilesDeleted", "int"),
    _field("commitsRollback", _STRINGS),
    _field(
        "partitionMetadata",
        _map(
            _record(
                "HoodieRollbackPartitionMetadata",
                _field("partitionPath", "string"),
                _field("successDeleteFiles", _STRINGS),
                _field("failedDeleteFiles", _STRINGS),
                _optional("rollbackLogFiles", _LONGS),
                _optional("logFilesFromFailedCommit", _LONGS),
            )
        ),
    ),
    _version(),
    _field("instantsRollback", _array(_INSTANT_INFO), default=[]),
)

ROLLBACK_METADATA = _record("HoodieRollbackMetadata", *_ROLLBACK_FIELDS, top=True)

SAVEPOINT_METADATA = _record(
    "HoodieSavepointMetadata",
    _field("savepointedBy", "string"),
    _field("savepointedAt", "long"),
    _field("comments", "string"),
    _field(
        "partitionMetadata",
        _map(
            _record(
                "HoodieSavepointPartitionMetadata",
                _field("partitionPath", "string"),
                _field("savepointDataFile", _STRINGS),
            )
        ),
    ),
    _version(),
    top=True,
)

RESTORE_PLAN = _record(
    "HoodieRestorePlan",
    _field("instantsToRollback", _array(_INSTANT_INFO), default=[]),
    _version(2),
    _optional("savepointToRestoreTimestamp", "string"),
    top=True,
)

RESTORE_METADATA = _record(
    "HoodieRestoreMetadata",
    _field("startRestoreTime", "string"),
    _field("timeTakenInMillis", "long"),
    _field("instantsToRollback", _STRINGS),
    _field("hoodieRestoreMetadata", _map(_array(["null", _record("HoodieRollbackMetadata", *_ROLLBACK_FIELDS)]))),
    _version(),
    _field("restoreInstantInfo", _array("HoodieInstantInfo"), default=[]),
    top=True,
)

_WRITE_STAT = _record(
    "HoodieWriteStat",
    *(_optional(name, "string") for name in ("fileId", "path", "prevCommit")),
    *(
        _optional(name, "long")
        for name in ("numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors")
    ),
    _optional("partitionPath", "string"),
    *(
        _optional(name, "long")
        for name in (
            "totalLogRecords",
            "totalLogFiles",
            "totalUpdatedRecordsCompacted",
            "numInserts",
            "totalLogBlocks",
            "totalCorruptLogBlock",
            "totalRollbackBlocks",
            "fileSizeInBytes",
        )
    ),
    _optional("logVersion", "int"),
    _optional("logOffset", "long"),
    _optional("baseFile", "string"),
    _optional("logFiles", _STRINGS),
    _optional("cdcStats", _LONGS),
    _optional("prevBaseFile", "string"),
    _optional("minEventTime", "long"),
    _optional("maxEventTime", "long"),
    _optional(
        "runtimeStats",
        _record(
            "HoodieRuntimeStats",
            *(_optional(name, "long") for name in ("totalScanTime", "totalCreateTime", "totalUpsertTime")),
        ),
    ),
    _optional("totalLogFilesCompacted", "long"),
    _optional("totalLogReadTimeMs", "long"),
    _optional("totalLogSizeCompacted", "long"),
    _optional("tempPath", "string"),
    _optional("numUpdates", "long"),
)

_COMMIT_FIELDS = (
    _optional("partitionToWriteStats", _map(_array(_WRITE_STAT))),
    _optional("compacted", "boolean"),
    _EXTRA,
    _version(),
    _optional("operationType", "string"),
)

#: Commit metadata from table version 8 on; the archive of version 6 has fewer fields of the same names.
COMMIT_METADATA = _record("HoodieCommitMetadata", *_COMMIT_FIELDS, top=True)
REPLACE_COMMIT_METADATA = _record(
    "HoodieReplaceCommitMetadata",
    *_COMMIT_FIELDS,
    _optional("partitionToReplaceFileIds", _map(_STRINGS)),
    top=True,
)

#: Beside the archive of layout 1 while a writer merges small archive files into one.
MERGE_ARCHIVE_PLAN = _record(
    "HoodieMergeArchiveFilePlan",
    _version(),
    _optional("candidate", _STRINGS),
    _optional("mergedArchiveFileName", "string"),
    top=True,
)
