"""Commit metadata as the Avro of table versions 8 and 9: the fields of a write stat in all their forms.

Source: docs/format/table-versions-8-9.md; pinned by tests/vectors/v8-v9/commit_metadata.json.
"""

from typing import Any

from hoodie.formats.avro.container import read_one, write_one
from hoodie.formats.timeline import schemas
from hoodie.formats.timeline.commit_json import COUNTERS, read_document, stat_document
from hoodie.model.commit import CommitMetadata, Operation, WriteStat

#: Counters that Hudi has and this library does not fill: they are 0 in every stat of Hudi's, too.
_ZEROS = ("totalLogReadTimeMs", "numUpdates")
#: What a stat of a base file has null, and JSON leaves out.
_OF_LOGS = ("totalLogFiles", "logVersion", "logOffset", "baseFile", "logFiles")


def encode_avro_commit(metadata: CommitMetadata, *, replacing: bool = False) -> bytes:
    """The content of a completed commit or delta commit, or of an inflight write.

    replacing  of a completed replace commit, which names the file groups that it replaced
    """
    record: dict[str, Any] = {
        "partitionToWriteStats": {
            partition: [_stat(stat) for stat in stats] for partition, stats in metadata.stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra),
        "version": None,
        "operationType": metadata.operation.value,
    }
    if not replacing:
        return write_one(schemas.COMMIT_METADATA, record)
    record["partitionToReplaceFileIds"] = {partition: list(ids) for partition, ids in metadata.replaced.items()}
    return write_one(schemas.REPLACE_COMMIT_METADATA, record)


def _stat(stat: WriteStat) -> dict[str, Any]:
    document = stat_document(stat)
    document.pop("recordsStats", None)
    return {
        **dict.fromkeys(_OF_LOGS),
        **document,
        **{key: getattr(stat, name) for key, name in COUNTERS.items()},
        **dict.fromkeys(_ZEROS, 0),
        "prevBaseFile": stat.prev_base_file or None,
    }


def decode_avro_commit(data: bytes, path: str, replacing: bool = False) -> CommitMetadata:
    """The metadata of a completed or inflight commit, delta commit or (replacing) completed replace commit.

    An operation that only a newer Hudi knows reads as UNKNOWN: these files are read, never written again.
    """
    schema = schemas.REPLACE_COMMIT_METADATA if replacing else schemas.COMMIT_METADATA
    record = read_one(data, schema, path)
    if record["operationType"] not in Operation.__members__:
        record["operationType"] = None
    return read_document(record, path)
