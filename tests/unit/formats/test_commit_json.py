"""Commit metadata as JSON: keys, order, and what is refused."""

import json

import pytest

from hoodie.errors import CorruptFile
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit, encode_inflight
from hoodie.model.commit import CommitMetadata, Operation, WriteStat, inflight_profile
from hoodie.model.files import FileGroupId

BASE_KEYS = [
    "fileId",
    "path",
    "cdcStats",
    "prevCommit",
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "totalWriteBytes",
    "totalWriteErrors",
    "tempPath",
    "partitionPath",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
    "minEventTime",
    "maxEventTime",
    "runtimeStats",
]
LOG_KEYS = ["logVersion", "logOffset", "baseFile", "logFiles", "recordsStats"]


def stat(**more):
    return WriteStat(**{"file_id": "f", "path": "p/f.parquet", "partition": "p", **more})


def written(metadata):
    return json.loads(encode_commit(metadata))


def test_the_stat_of_a_base_file_has_the_base_keys_only():
    top = written(CommitMetadata(operation=Operation.INSERT, stats={"p": (stat(num_inserts=3),)}))
    assert list(top) == ["partitionToWriteStats", "compacted", "extraMetadata", "operationType"]
    (found,) = top["partitionToWriteStats"]["p"]
    assert list(found) == BASE_KEYS
    assert found["prevCommit"] == "null"
    assert found["runtimeStats"] == {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0}


def test_the_stat_of_a_log_file_adds_the_log_keys():
    log = stat(path="p/.f_1.log.1_0-0-0", log_version=1, log_offset=0, base_file="", log_files=(".f_1.log.1_0-0-0",))
    (found,) = written(CommitMetadata(operation=Operation.UPSERT, stats={"p": (log,)}))["partitionToWriteStats"]["p"]
    assert list(found) == BASE_KEYS + LOG_KEYS
    assert found["recordsStats"] == {"val": None}


@pytest.mark.parametrize(
    ("operation", "has"),
    [
        (Operation.CLUSTER, True),
        (Operation.INSERT_OVERWRITE, True),
        (Operation.INSERT_OVERWRITE_TABLE, True),
        (Operation.DELETE_PARTITION, True),
        (Operation.UPSERT, False),
        (Operation.COMPACT, False),
    ],
)
def test_a_replacing_operation_names_replaced_groups_even_when_there_are_none(operation, has):
    assert ("partitionToReplaceFileIds" in written(CommitMetadata(operation=operation))) is has


def test_an_empty_file_is_a_commit_without_stats():
    assert decode_commit(b"", "x") == CommitMetadata(operation=Operation.UNKNOWN)


def test_unknown_keys_and_a_missing_operation_are_no_fault():
    data = b'{"partitionToWriteStats":{"p":[{"fileId":"f","path":"p/f","future":{"a":1}}]},"compacted":null,"more":[]}'
    (found,) = decode_commit(data, "x").stats["p"]
    assert (found.file_id, found.path, found.prev_commit, found.num_writes) == ("f", "p/f", "null", 0)


def test_names_of_log_files_lose_the_folders_that_old_writers_gave_them():
    stat = b'{"fileId":"f","path":"p/l","logVersion":1,"logFiles":["/x/p/l"],"baseFile":"/x/p/b"}'
    data = b'{"partitionToWriteStats":{"p":[' + stat + b"]}}"
    (found,) = decode_commit(data, "x").stats["p"]
    assert (found.base_file, found.log_files, found.log_offset) == ("b", ("l",), 0)


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'"x"',
        b"[" * 100_000,
        b'{"partitionToWriteStats":[]}',
        b'{"partitionToWriteStats":{"p":{}}}',
        b'{"partitionToWriteStats":{"p":[1]}}',
        b'{"partitionToWriteStats":{"p":[{}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":null}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"a/b"}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","numWrites":"1"}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","numWrites":true}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","numWrites":1.5}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","numWrites":9223372036854775808}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","path":"/etc/passwd"}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","path":"p/../../x"}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","logVersion":1,"logFiles":[".."]}]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","cdcStats":{"../x":1}}]}}',
        b'{"partitionToWriteStats":{"../p":[]}}',
        b'{"partitionToReplaceFileIds":{"/p":["f"]}}',
        b'{"partitionToReplaceFileIds":{"p":["../f"]}}',
        b'{"partitionToReplaceFileIds":{"p":"f"}}',
        b'{"extraMetadata":{"a":1}}',
        b'{"operationType":"NEW_ONE"}',
        b'{"operationType":7}',
        b'{"compacted":"yes"}',
    ],
)
def test_anything_but_commit_metadata_is_corrupt(data):
    with pytest.raises(CorruptFile, match=r"^\.hoodie/1\.commit"):
        decode_commit(data, ".hoodie/1.commit")


def test_an_inflight_profile_has_one_insert_stat_per_partition_and_one_per_updated_group():
    profile = inflight_profile(
        Operation.UPSERT,
        [
            (FileGroupId("p", "f"), "1", 0, 2),
            (FileGroupId("p", "new"), None, 4, 0),
            (FileGroupId("q", "g"), "2", 0, 3),
        ],
    )
    top = json.loads(encode_inflight(profile))
    assert list(top) == ["partitionToWriteStats", "compacted", "extraMetadata", "operationType"]
    assert top["extraMetadata"] == {}
    seen = {
        partition: [(s["fileId"], s["prevCommit"], s["numInserts"], s["numUpdateWrites"]) for s in stats]
        for partition, stats in top["partitionToWriteStats"].items()
    }
    assert seen == {"p": [("", "null", 4, 0), ("f", "1", 0, 2)], "q": [("", "null", 0, 0), ("g", "2", 0, 3)]}
    for stats in top["partitionToWriteStats"].values():
        for found in stats:
            assert list(found) == BASE_KEYS
            assert (found["path"], found["partitionPath"], found["runtimeStats"]) == (None, None, None)
    assert decode_commit(encode_inflight(profile), "x") == profile
