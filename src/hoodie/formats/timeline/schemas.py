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


def avro_array(items: Any) -> Schema:
    return {"type": "array", "items": items}


def avro_map(values: Any) -> Schema:
    return {"type": "map", "values": values}


def _version(default: int = 1) -> Schema:
    return _field("version", ["int", "null"], default=default)


_STRINGS = avro_array("string")
_TEXTS = avro_map("string")
_LONGS = avro_map("long")
_EXTRA = optional("extraMetadata", _TEXTS)
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
    optional("partitionToWriteStats", avro_map(avro_array(_WRITE_STAT))),
    optional("compacted", "boolean"),
    _EXTRA,
    _version(),
    optional("operationType", "string"),
)

#: Commit metadata from table version 8 on; the archive of version 6 has fewer fields of the same names.
COMMIT_METADATA = record("HoodieCommitMetadata", *_COMMIT_FIELDS, top=True)
REPLACE_COMMIT_METADATA = record(
    "HoodieReplaceCommitMetadata", *_COMMIT_FIELDS, optional("partitionToReplaceFileIds", avro_map(_STRINGS)), top=True
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
