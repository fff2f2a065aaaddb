"""Avro schemas of the timeline's plans and results, with Hudi's names, field order, unions and defaults.

Source: docs/format/avro-payloads.md. A reader resolves by full name, so the namespace must match.
"""

from typing import Any

Schema = dict[str, Any]

NAMESPACE = "org.apache.hudi.avro.model"
_JAVA_STRING = "avro.java.string"


def with_java_strings(schema: Any) -> Any:
    """A schema as Hudi's own classes write it: Hudi 1.x casts what it reads of the timeline to Java strings, and gets
    other objects where a schema does not say so.

    Docs, and defaults that Hudi has inside of types, where no reader looks, are left out.
    """
    if schema == "string":
        return {"type": "string", _JAVA_STRING: "String"}
    if isinstance(schema, list):
        return [with_java_strings(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    converted = dict(schema)
    if schema["type"] == "record":
        converted["fields"] = [{**field, "type": with_java_strings(field["type"])} for field in schema["fields"]]
    for inner in ("items", "values"):
        if inner in schema:
            converted[inner] = with_java_strings(schema[inner])
    return {**converted, _JAVA_STRING: "String"} if schema["type"] == "map" else converted


def record(name: str, *fields: Schema, top: bool = False) -> Schema:
    nested = {"type": "record", "name": name, "fields": list(fields)}
    if not top:
        return nested
    schema: Schema = with_java_strings({"type": "record", "name": name, "namespace": NAMESPACE, "fields": list(fields)})
    return schema


def _field(name: str, kind: Any, **more: Any) -> Schema:
    return {"name": name, "type": kind, **more}


def optional(name: str, kind: Any) -> Schema:
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
_EXTRA = optional("extraMetadata", _TEXTS)
_METRICS = optional("metrics", _map("double"))
_INSTANT_INFO = record("HoodieInstantInfo", _field("commitTime", "string"), _field("action", "string"))

COMPACTION_PLAN = record(
    "HoodieCompactionPlan",
    optional(
        "operations",
        _array(
            record(
                "HoodieCompactionOperation",
                _field("baseInstantTime", ["null", "string"]),
                optional("deltaFilePaths", _STRINGS),
                optional("dataFilePath", "string"),
                _field("fileId", ["null", "string"]),
                optional("partitionPath", "string"),
                _METRICS,
                optional("bootstrapFilePath", "string"),
            )
        ),
    ),
    _EXTRA,
    _version(),
    optional(
        "strategy",
        record(
            "HoodieCompactionStrategy",
            optional("compactorClassName", "string"),
            optional("strategyParams", _TEXTS),
            _version(),
        ),
    ),
    _field("preserveHoodieMetadata", ["boolean", "null"], default=False),
    top=True,
)

_SLICE_INFO = record(
    "HoodieSliceInfo",
    optional("dataFilePath", "string"),
    optional("deltaFilePaths", _STRINGS),
    _field("fileId", ["null", "string"]),
    optional("partitionPath", "string"),
    optional("bootstrapFilePath", "string"),
    _version(),
)

_CLUSTERING_GROUP = record(
    "HoodieClusteringGroup",
    optional("slices", _array(_SLICE_INFO)),
    _METRICS,
    _field("numOutputFileGroups", ["int", "null"], default=1),
    _EXTRA,
    _version(),
)

REQUESTED_REPLACE = record(
    "HoodieRequestedReplaceMetadata",
    optional("operationType", "string"),
    optional(
        "clusteringPlan",
        record(
            "HoodieClusteringPlan",
            optional("inputGroups", _array(_CLUSTERING_GROUP)),
            optional(
                "strategy",
                record(
                    "HoodieClusteringStrategy",
                    optional("strategyClassName", "string"),
                    optional("strategyParams", _TEXTS),
                    _version(),
                ),
            ),
            _EXTRA,
            _version(),
            optional("preserveHoodieMetadata", "boolean"),
        ),
    ),
    _EXTRA,
    _version(),
    top=True,
)

CLEANER_PLAN = record(
    "HoodieCleanerPlan",
    optional(
        "earliestInstantToRetain",
        record(
            "HoodieActionInstant", _field("timestamp", "string"), _field("action", "string"), _field("state", "string")
        ),
    ),
    _field("lastCompletedCommitTimestamp", "string", default=""),
    _field("policy", "string"),
    optional("filesToBeDeletedPerPartition", _map(_STRINGS)),
    _version(),
    optional(
        "filePathsToBeDeletedPerPartition",
        _map(
            _array(
                record(
                    "HoodieCleanFileInfo", optional("filePath", "string"), optional("isBootstrapBaseFile", "boolean")
                )
            )
        ),
    ),
    optional("partitionsToBeDeleted", _STRINGS),
    _EXTRA,
    top=True,
)

CLEAN_METADATA = record(
    "HoodieCleanMetadata",
    _field("startCleanTime", "string"),
    _field("timeTakenInMillis", "long"),
    _field("totalFilesDeleted", "int"),
    _field("earliestCommitToRetain", "string"),
    _field("lastCompletedCommitTimestamp", "string", default=""),
    _field(
        "partitionMetadata",
        _map(
            record(
                "HoodieCleanPartitionMetadata",
                _field("partitionPath", "string"),
                _field("policy", "string"),
                _field("deletePathPatterns", _STRINGS),
                _field("successDeleteFiles", _STRINGS),
                _field("failedDeleteFiles", _STRINGS),
                optional("isPartitionDeleted", "boolean"),
            )
        ),
    ),
    _version(),
    optional("bootstrapPartitionMetadata", _map("HoodieCleanPartitionMetadata")),
    _EXTRA,
    top=True,
)

ROLLBACK_PLAN = record(
    "HoodieRollbackPlan",
    optional("instantToRollback", _INSTANT_INFO),
    optional(
        "RollbackRequests",
        _array(
            record(
                "HoodieRollbackRequest",
                _field("partitionPath", "string"),
                optional("fileId", "string"),
                optional("latestBaseInstant", "string"),
                _field("filesToBeDeleted", _STRINGS, default=[]),
                optional("logBlocksToBeDeleted", _LONGS),
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
            record(
                "HoodieRollbackPartitionMetadata",
                _field("partitionPath", "string"),
                _field("successDeleteFiles", _STRINGS),
                _field("failedDeleteFiles", _STRINGS),
                optional("rollbackLogFiles", _LONGS),
                optional("logFilesFromFailedCommit", _LONGS),
            )
        ),
    ),
    _version(),
    _field("instantsRollback", _array(_INSTANT_INFO), default=[]),
)

ROLLBACK_METADATA = record("HoodieRollbackMetadata", *_ROLLBACK_FIELDS, top=True)

SAVEPOINT_METADATA = record(
    "HoodieSavepointMetadata",
    _field("savepointedBy", "string"),
    _field("savepointedAt", "long"),
    _field("comments", "string"),
    _field(
        "partitionMetadata",
        _map(
            record(
                "HoodieSavepointPartitionMetadata",
                _field("partitionPath", "string"),
                _field("savepointDataFile", _STRINGS),
            )
        ),
    ),
    _version(),
    top=True,
)

RESTORE_PLAN = record(
    "HoodieRestorePlan",
    _field("instantsToRollback", _array(_INSTANT_INFO), default=[]),
    _version(2),
    optional("savepointToRestoreTimestamp", "string"),
    top=True,
)

RESTORE_METADATA = record(
    "HoodieRestoreMetadata",
    _field("startRestoreTime", "string"),
    _field("timeTakenInMillis", "long"),
    _field("instantsToRollback", _STRINGS),
    _field("hoodieRestoreMetadata", _map(_array(["null", record("HoodieRollbackMetadata", *_ROLLBACK_FIELDS)]))),
    _version(),
    _field("restoreInstantInfo", _array("HoodieInstantInfo"), default=[]),
    top=True,
)

#: The fields of a write stat in every version of the table, by name: their Avro types.
STAT_FIELDS = {
    **dict.fromkeys(("fileId", "path", "prevCommit"), "string"),
    **dict.fromkeys(("numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors"), "long"),
    "partitionPath": "string",
    **dict.fromkeys(
        (
            "totalLogRecords",
            "totalLogFiles",
            "totalUpdatedRecordsCompacted",
            "numInserts",
            "totalLogBlocks",
            "totalCorruptLogBlock",
            "totalRollbackBlocks",
            "fileSizeInBytes",
        ),
        "long",
    ),
}
_WRITE_STAT = record(
    "HoodieWriteStat",
    *(optional(name, kind) for name, kind in STAT_FIELDS.items()),
    optional("logVersion", "int"),
    optional("logOffset", "long"),
    optional("baseFile", "string"),
    optional("logFiles", _STRINGS),
    optional("cdcStats", _LONGS),
    optional("prevBaseFile", "string"),
    optional("minEventTime", "long"),
    optional("maxEventTime", "long"),
    optional(
        "runtimeStats",
        record(
            "HoodieRuntimeStats",
            *(optional(name, "long") for name in ("totalScanTime", "totalCreateTime", "totalUpsertTime")),
        ),
    ),
    optional("totalLogFilesCompacted", "long"),
    optional("totalLogReadTimeMs", "long"),
    optional("totalLogSizeCompacted", "long"),
    optional("tempPath", "string"),
    optional("numUpdates", "long"),
)

_COMMIT_FIELDS = (
    optional("partitionToWriteStats", _map(_array(_WRITE_STAT))),
    optional("compacted", "boolean"),
    _EXTRA,
    _version(),
    optional("operationType", "string"),
)

#: Commit metadata from table version 8 on; the archive of version 6 has fewer fields of the same names.
COMMIT_METADATA = record("HoodieCommitMetadata", *_COMMIT_FIELDS, top=True)
REPLACE_COMMIT_METADATA = record(
    "HoodieReplaceCommitMetadata", *_COMMIT_FIELDS, optional("partitionToReplaceFileIds", _map(_STRINGS)), top=True
)

#: A row of the history of layout 2.
LSM_INSTANT = record(
    "HoodieLSMTimelineInstant",
    *(optional(name, "string") for name in ("instantTime", "completionTime", "action")),
    *(optional(name, "bytes") for name in ("metadata", "plan")),
    _field("version", "int", default=1),
    top=True,
)

#: Beside the archive of layout 1 while a writer merges small archive files into one.
MERGE_ARCHIVE_PLAN = record(
    "HoodieMergeArchiveFilePlan",
    _version(),
    optional("candidate", _STRINGS),
    optional("mergedArchiveFileName", "string"),
    top=True,
)
