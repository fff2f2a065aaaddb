"""Files of the archive of layout 1: log files whose blocks hold one Avro record for each archived instant file.

A block's content is that of a data block: int32 version (3), int32 count, then per record int32 length and Avro binary.
Integers are big-endian.
Source: docs/format/table-and-timeline.md 8.1, docs/format/avro-payloads.md (HoodieArchivedMetaEntry).
"""

import io
import json
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import fastavro

from hoodie.errors import CorruptLogBlock, DamagedLog
from hoodie.formats.avro.container import MALFORMED, parsed_schema
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock, encode_block, read_blocks
from hoodie.formats.timeline.commit_json import COUNTERS, read_document
from hoodie.formats.timeline.plans import COMPACTION_PLAN, REPLACE_PLAN
from hoodie.formats.timeline.schemas import NAMESPACE, STAT_FIELDS, optional, record, with_java_strings
from hoodie.formats.timeline.services import CLEAN_METADATA, CLEAN_PLAN, ROLLBACK_METADATA, SAVEPOINT
from hoodie.model.commit import CommitMetadata, Operation, WriteStat

_Record = Mapping[str, Any]

_HEAD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_VERSION = 3

# --- the schema ---

_VERSION_FIELD = {"name": "version", "type": ["int", "null"], "default": 1}
_STAT = record("HoodieWriteStat", *(optional(name, kind) for name, kind in STAT_FIELDS.items()))
_COMMIT_FIELDS = (
    optional("partitionToWriteStats", {"type": "map", "values": {"type": "array", "items": _STAT}}),
    optional("extraMetadata", {"type": "map", "values": "string"}),
    _VERSION_FIELD,
    optional("operationType", "string"),
)
_COMMIT = record("HoodieCommitMetadata", *_COMMIT_FIELDS)
_REPLACED = {"type": "map", "values": {"type": "array", "items": "string"}}
_REPLACE_COMMIT = record(
    "HoodieReplaceCommitMetadata", *_COMMIT_FIELDS, optional("partitionToReplaceFileIds", _REPLACED)
)
_INDEX_INFO = record(
    "HoodieIndexPartitionInfo",
    _VERSION_FIELD,
    optional("metadataPartitionPath", "string"),
    optional("indexUptoInstant", "string"),
)
_INDEX_COMMIT = record(
    "HoodieIndexCommitMetadata",
    _VERSION_FIELD,
    optional("operationType", "string"),
    optional("indexPartitionInfos", {"type": "array", "items": _INDEX_INFO}),
)

#: In the order of Hudi's record. The column that it never fills, hoodieCompactionMetadata, is left out.
_COLUMNS: dict[str, Any] = {
    "hoodieCommitMetadata": _COMMIT,
    "hoodieCleanMetadata": CLEAN_METADATA.document,
    "hoodieRollbackMetadata": ROLLBACK_METADATA.document,
    "hoodieSavePointMetadata": SAVEPOINT.document,
    "commitTime": "string",
    "actionType": "string",
    "version": None,
    "hoodieCompactionPlan": COMPACTION_PLAN.document,
    "hoodieCleanerPlan": CLEAN_PLAN.document,
    "actionState": "string",
    "hoodieReplaceCommitMetadata": _REPLACE_COMMIT,
    "hoodieRequestedReplaceMetadata": REPLACE_PLAN.document,
    "HoodieInflightReplaceMetadata": _COMMIT,
    "hoodieIndexCommitMetadata": _INDEX_COMMIT,
    "stateTransitionTime": "string",
}


def _each_name_once(schema: Any, seen: set[str]) -> Any:
    """The schema with later occurrences of a record as its name: Avro defines a name once."""
    if isinstance(schema, list):
        return [_each_name_once(branch, seen) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "record":
        if schema["name"] in seen:
            return schema["name"]
        seen.add(schema["name"])
        fields = [{**field, "type": _each_name_once(field["type"], seen)} for field in schema["fields"]]
        return {"type": "record", "name": schema["name"], "fields": fields}
    return {key: _each_name_once(value, seen) if key in ("items", "values") else value for key, value in schema.items()}


@cache
def entry_schema() -> str:
    """The schema of an entry as JSON, as block headers have it."""
    fields = [_VERSION_FIELD if kind is None else optional(name, kind) for name, kind in _COLUMNS.items()]
    schema = _each_name_once(record("HoodieArchivedMetaEntry", *fields), set())
    named = {"type": "record", "name": schema["name"], "namespace": NAMESPACE, "fields": schema["fields"]}
    return json.dumps(with_java_strings(named), separators=(",", ":"))


# --- blocks ---


def encode_entries(entries: Sequence[_Record], batch: int) -> bytes:
    """The content of an archive file.

    entries  records of `entry_schema`, absent columns null
    batch    entries in a block
    """
    header = BlockMap(((HeaderKey.SCHEMA, entry_schema()),))
    blocks = []
    for first in range(0, len(entries), batch):
        part = entries[first : first + batch]
        pieces = [_HEAD.pack(_VERSION, len(part))]
        for entry in part:
            body = io.BytesIO()
            fastavro.schemaless_writer(body, parsed_schema(entry_schema()), dict(entry), strict_allow_default=True)
            pieces += (_LENGTH.pack(body.tell()), body.getvalue())
        blocks.append(encode_block(LogBlock(BlockKind.AVRO_DATA, header, b"".join(pieces))))
    return b"".join(blocks)


def decode_entries(data: bytes, path: str) -> Iterator[dict[str, Any]]:
    """The entries of an archive file in order, columns as `entry_schema` has them, whatever release wrote them.

    What a writer that died left behind another's blocks is skipped with the warning DamagedLog: the instants are still
    on the timeline, which are deleted only once they are in the archive. So is an empty file, which may have lost some.
    Raises CorruptLogBlock
    """
    if not data:
        problem = "the file is empty: its writer died, or instants of the history are lost"
        warnings.warn(DamagedLog(path, 0, problem), stacklevel=2)
    for block in read_blocks(data, path):
        if block.kind is BlockKind.CORRUPT:
            warnings.warn(DamagedLog(path, block.offset, "a block of the archive that was cut short"), stacklevel=2)
        elif block.kind is BlockKind.AVRO_DATA:
            yield from _entries(block, path)


def with_java_headers(data: bytes, path: str) -> bytes | None:
    """An archive file with Java strings in the schemas of its blocks, without which the upgrade by Hudi 1.x fails
    half-way; None when it has them. Raises CorruptLogBlock"""
    blocks = list(read_blocks(data, path))
    renamed = [_with_java_header(block, path) for block in blocks]
    return None if renamed == blocks else b"".join(map(encode_block, renamed))


def _with_java_header(block: LogBlock, path: str) -> LogBlock:
    if block.kind is not BlockKind.AVRO_DATA or block.header.schema is None:
        return block
    try:
        schema = json.loads(block.header.schema)
        schema_json = with_java_strings(schema)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptLogBlock(path, f"a block of the archive with a malformed schema: {error}", block.offset) from error
    if schema_json == schema:
        return block
    text = json.dumps(schema_json, separators=(",", ":"))
    entries = tuple((key, text if key == HeaderKey.SCHEMA else value) for key, value in block.header.entries)
    return replace(block, header=BlockMap(entries))


def _entries(block: LogBlock, path: str) -> Iterator[dict[str, Any]]:
    content, at = memoryview(block.content), _HEAD.size
    if block.header.schema is None or len(content) < at:
        raise CorruptLogBlock(path, "a block of the archive without schema or content", block.offset)
    version, count = _HEAD.unpack_from(content)
    if not 1 <= version <= _VERSION or count < 0:
        raise CorruptLogBlock(path, f"{count} archived entries in a data block of version {version}", block.offset)
    for number in range(count):
        length = _LENGTH.unpack_from(content, at)[0] if at + _LENGTH.size <= len(content) else -1
        at += _LENGTH.size
        if not 0 <= length <= len(content) - at:
            raise CorruptLogBlock(path, f"archived entry {number} of {count} does not fit its block", block.offset)
        body = io.BytesIO(content[at : at + length])
        try:
            entry = fastavro.schemaless_reader(body, parsed_schema(block.header.schema), parsed_schema(entry_schema()))
        except MALFORMED as error:
            problem = f"archived entry {number} of {count} is malformed: {type(error).__name__}: {error}"
            raise CorruptLogBlock(path, problem, block.offset) from error
        at += length
        if not isinstance(entry, dict):
            raise CorruptLogBlock(path, f"archived entry {number} of {count} is no record", block.offset)
        yield entry
    if at != len(content):
        raise CorruptLogBlock(path, f"{len(content) - at} bytes after the last archived entry", block.offset)


# --- commits ---

_NAMES = {"fileId": "file_id", "path": "path", "prevCommit": "prev_commit", "partitionPath": "partition"}
_STAT_VALUES = {**_NAMES, **{key: name for key, name in COUNTERS.items() if key in STAT_FIELDS}}
_ROLLING_STAT = "ROLLING_STAT"  # a key that Hudi adds to what it archives


def commit_record(metadata: CommitMetadata, *, replacing: bool = False) -> _Record:
    """The metadata of a commit, or an inflight one's profile, as the archive keeps it.

    replacing  with the file groups that a completed replace commit took away
    """
    record: dict[str, Any] = {
        "partitionToWriteStats": {path: [_stat(stat) for stat in stats] for path, stats in metadata.stats.items()},
        "extraMetadata": {**metadata.extra, _ROLLING_STAT: ""},
        "version": None,
        "operationType": (Operation.COMPACT if metadata.compacted else metadata.operation).value,
    }
    if replacing:
        record["partitionToReplaceFileIds"] = {path: list(ids) for path, ids in metadata.replaced.items()}
    return record


def _stat(stat: WriteStat) -> _Record:
    return {**dict.fromkeys(STAT_FIELDS), **{key: getattr(stat, name) for key, name in _STAT_VALUES.items()}}


def commit_of(record: _Record, path: str) -> CommitMetadata:
    """The metadata that an archived commit keeps: what only log writes have in their statistics is lost.

    path    of the archive file, for errors
    Raises  CorruptFile
    """
    commit = read_document(record, path)
    extra = {key: value for key, value in commit.extra.items() if (key, value) != (_ROLLING_STAT, "")}
    return replace(commit, extra=extra, compacted=commit.operation in (Operation.COMPACT, Operation.LOG_COMPACT))
