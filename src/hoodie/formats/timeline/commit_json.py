"""Commit metadata as the JSON of table version 6, keys and their order as Hudi writes them.

Source: docs/format/commit-metadata.md (HoodieCommitMetadata, HoodieWriteStat, HoodieDeltaWriteStat).
"""

import json
from collections.abc import Mapping
from typing import Any

from hoodie.errors import CorruptFile
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import file_name, inside

#: Operations whose commit replaces file groups: their JSON names the replaced ones, be there none.
_REPLACING = frozenset(
    {Operation.CLUSTER, Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION}
)

_WRITTEN = {
    "numWrites": "num_writes",
    "numDeletes": "num_deletes",
    "numUpdateWrites": "num_updates",
    "numInserts": "num_inserts",
    "totalWriteBytes": "total_write_bytes",
    "totalWriteErrors": "write_errors",
}
_COMPACTED = {
    "totalLogRecords": "log_records",
    "totalLogFilesCompacted": "log_files_compacted",
    "totalLogSizeCompacted": "log_size_compacted",
    "totalUpdatedRecordsCompacted": "updated_records_compacted",
    "totalLogBlocks": "log_blocks",
    "totalCorruptLogBlock": "corrupt_log_blocks",
    "totalRollbackBlocks": "rollback_blocks",
    "fileSizeInBytes": "file_size",
}
#: JSON key -> field, for the counters of every stat.
COUNTERS = {**_WRITTEN, **_COMPACTED}
TIMES = {"totalScanTime": "scan_time", "totalUpsertTime": "upsert_time", "totalCreateTime": "create_time"}
_LONG = range(-(1 << 63), 1 << 63)


def decode_commit(data: bytes, path: str) -> CommitMetadata:
    """The metadata in a completed or inflight instant file of layout 1.

    An empty file is a commit without stats. Keys that are unknown are ignored, as is `recordsStats`: column ranges that
    only writers of the metadata table use.

    path    of the instant file, for errors
    Raises  CorruptFile on anything but commit JSON, and on a path that leaves the table
    """
    if not data:
        return CommitMetadata(operation=Operation.UNKNOWN)
    try:
        top = json.loads(data)
    except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are a ValueError, too
        raise CorruptFile(path, f"not commit metadata in JSON: {error}") from error
    if not isinstance(top, dict):
        raise CorruptFile(path, "not commit metadata: expected a JSON object")
    return read_document(top, path)


def read_document(top: Mapping[str, Any], path: str) -> CommitMetadata:
    """The metadata in parsed JSON, or in the Avro record of later table versions, which has the same names.

    Raises CorruptFile as `decode_commit`
    """
    at = _Reader(path)
    stats = {
        inside(partition, path): tuple(at.stat(stat) for stat in at.items(entries, partition))
        for partition, entries in at.mapping(top, "partitionToWriteStats").items()
    }
    replaced = {
        inside(partition, path): tuple(at.file_id(file_id) for file_id in at.items(entries, partition))
        for partition, entries in at.mapping(top, "partitionToReplaceFileIds").items()
    }
    extra = {
        key: at.typed(value, str, key) for key, value in at.mapping(top, "extraMetadata").items() if value is not None
    }
    return CommitMetadata(
        operation=at.operation(top.get("operationType")),
        stats=stats,
        replaced=replaced,
        extra=extra,
        compacted=bool(at.optional(top, "compacted", bool)),
    )


def encode_commit(metadata: CommitMetadata, *, whole: bool = False) -> bytes:
    """The content of a completed commit, delta commit or replace commit.

    whole  with what commits of version 6 do not say: what tasks tell the driver
    """
    top = _document(metadata)
    if whole:
        for partition, stats in metadata.stats.items():
            for document, stat in zip(top["partitionToWriteStats"][partition], stats, strict=True):
                document["prevBaseFile"] = stat.prev_base_file or None
    if metadata.replaced or metadata.operation in _REPLACING:
        top["partitionToReplaceFileIds"] = {partition: list(ids) for partition, ids in metadata.replaced.items()}
    return _bytes(top)


def encode_inflight(profile: CommitMetadata) -> bytes:
    """The content of an inflight commit, delta commit or replace commit: a workload profile (`inflight_profile`)."""
    return _bytes(_document(profile))


def _bytes(top: Mapping[str, Any]) -> bytes:
    return json.dumps(top, separators=(",", ":")).encode("ascii")


def _document(metadata: CommitMetadata) -> dict[str, Any]:
    return {
        "partitionToWriteStats": {
            partition: [stat_document(stat) for stat in stats] for partition, stats in metadata.stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra),
        "operationType": metadata.operation.value,
    }


def stat_document(stat: WriteStat) -> dict[str, Any]:
    """What a write did to a file, in the names of JSON."""
    planned = stat.path is None  # the profile of an inflight commit: nothing was measured yet
    record: dict[str, Any] = {
        "fileId": stat.file_id,
        "path": stat.path,
        "cdcStats": None if stat.cdc_stats is None else dict(stat.cdc_stats),
        "prevCommit": stat.prev_commit,
        **{key: getattr(stat, name) for key, name in _WRITTEN.items()},
        "tempPath": None,
        "partitionPath": stat.partition,
        **{key: getattr(stat, name) for key, name in _COMPACTED.items()},
        "minEventTime": stat.min_event_time,
        "maxEventTime": stat.max_event_time,
        "runtimeStats": None if planned else {key: getattr(stat, name) for key, name in TIMES.items()},
    }
    if stat.log_version is not None:
        # A reader takes `baseFile` for "this was a log write", so a base file's stat must not have it.
        record |= {
            "logVersion": stat.log_version,
            "logOffset": stat.log_offset or 0,
            "baseFile": stat.base_file or "",
            "logFiles": list(stat.log_files),
            "recordsStats": {"val": None},
        }
    return record


class _Reader:
    """Typed access to parsed JSON; every surprise is CorruptFile."""

    def __init__(self, path: str) -> None:
        self.path = path

    def typed(self, value: Any, kind: type, what: str) -> Any:
        if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value not in _LONG)):
            raise CorruptFile(self.path, f"{what} is {str(value)[:80]!r}, expected {kind.__name__}")
        return value

    def optional(self, document: Mapping[str, Any], key: str, kind: type) -> Any:
        value = document.get(key)
        return None if value is None else self.typed(value, kind, key)

    def mapping(self, document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        return self.optional(document, key, dict) or {}

    def items(self, value: Any, what: str) -> list[Any]:
        return list(self.typed(value, list, repr(what)))

    def operation(self, word: Any) -> Operation:
        if word is None:
            return Operation.UNKNOWN
        try:
            return Operation(word)
        except ValueError:
            raise CorruptFile(self.path, f"operationType {word!r} is unknown", advice="A newer writer?") from None

    def file_id(self, value: Any) -> str:
        text: str = self.typed(value, str, "fileId")
        if "/" in text:
            raise CorruptFile(self.path, f"fileId {text!r} is no file id")
        return inside(text, self.path)

    def stat(self, document: Any) -> WriteStat:
        self.typed(document, dict, "write stat")
        values: dict[str, Any] = {name: self.optional(document, key, int) or 0 for key, name in COUNTERS.items()}
        times = self.mapping(document, "runtimeStats")
        values |= {name: self.optional(times, key, int) or 0 for key, name in TIMES.items()}
        path, partition = self.optional(document, "path", str), self.optional(document, "partitionPath", str)
        cdc, before = self.optional(document, "cdcStats", dict), self.optional(document, "prevBaseFile", str)
        if (version := self.optional(document, "logVersion", int)) is not None:
            base = self.optional(document, "baseFile", str)
            names = self.items(document.get("logFiles") or [], "logFiles")
            values |= {
                "log_version": version,
                "log_offset": self.optional(document, "logOffset", int) or 0,
                "base_file": file_name(base, self.path) if base else "",
                "log_files": tuple(file_name(self.typed(name, str, "logFiles"), self.path) for name in names),
            }
        return WriteStat(
            file_id=self.file_id(document.get("fileId")),
            path=None if path is None else inside(path, self.path),
            partition=None if partition is None else inside(partition, self.path),
            prev_commit=self.optional(document, "prevCommit", str) or "null",
            min_event_time=self.optional(document, "minEventTime", int),
            max_event_time=self.optional(document, "maxEventTime", int),
            prev_base_file=file_name(before, self.path) if before else "",
            cdc_stats=None
            if cdc is None
            else {inside(key, self.path): self.typed(size, int, key) for key, size in cdc.items()},
            **values,
        )
