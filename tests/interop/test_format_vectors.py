"""What real tables of versions 8 and 9 hold, and names and times of all versions, against tests/vectors.

tests/vectors/README.md says what each file pins, and which test uses it.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.table import from_properties
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.java.properties import parse_properties, table_checksum, verify_checksum
from hoodie.formats.java.strings import string_hashes
from hoodie.formats.log.blocks import encode_block, read_blocks
from hoodie.formats.log.content import data_rows
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.formats.timeline.commit_avro import decode_avro_commit
from hoodie.formats.timeline.plans import decode_compaction_plan, decode_replace_plan
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId, base_file_name, log_file_name, parse_data_file
from hoodie.model.instant import Action, Instant, State, format_time, parse_time
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline, instant_file_name, parse_name
from hoodie.view.slices import FileSystemView, committed_slices, group_files

VECTORS = Path(__file__).parents[1] / "vectors"
GROUP = FileGroupId("p", "f")


def vector(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


# --- instants ---


@pytest.mark.parametrize("case", vector("v8-v9/instant_names.json")["names"], ids=lambda case: case["name"])
def test_the_name_of_an_instant_file_gives_its_instant(case: dict[str, Any]) -> None:
    if "action" not in case:  # the local file system puts a dot before the names of its checksum files
        assert parse_name(f".{case['name']}", 2, "timeline") is None
        with pytest.raises(CorruptFile):
            parse_name(case["name"], 2, "timeline")
        return
    is_legacy = case.get("note") == "legacy file, JSON content"
    completed = "" if is_legacy else case["completion"] or ""
    expected = Instant(case["requested"], Action(case["action"]), State[case["state"]], completed)
    assert parse_name(case["name"], 2, "timeline") == expected
    assert instant_file_name(expected, layout=1 if is_legacy else 2) == case["name"]


@pytest.mark.parametrize("case", vector("instant_time.json")["vectors"], ids=lambda case: case["instant"])
def test_an_instant_time_is_a_moment(case: dict[str, Any]) -> None:
    moment = parse_time(case["instant"])
    assert moment.isoformat(timespec="milliseconds") == case.get("datetime", case.get("parse_as"))
    if "datetime" in case:
        assert format_time(moment) == case["instant"]


def test_instant_times_of_14_and_17_digits_sort_as_strings() -> None:
    times = vector("instant_time.json")["ordering"]
    assert sorted(Instant(time, Action.COMMIT, State.COMPLETED) for time in reversed(times)) == [
        Instant(time, Action.COMMIT, State.COMPLETED) for time in times
    ]


# --- hoodie.properties ---


@pytest.mark.parametrize("case", vector("v8-v9/properties.json")["tables"], ids=lambda case: case["description"])
def test_the_properties_of_a_real_table_are_understood(case: dict[str, Any]) -> None:
    values = case["properties"]
    database, _, name = case["checksum_input"].partition(".")
    assert table_checksum(database, name) == case["checksum"] == values["hoodie.table.checksum"]
    verify_checksum(values, "hoodie.properties")
    if values.get("hoodie.table.base.file.format") == "HFILE":
        with pytest.raises(UnsupportedTable, match="HFILE"):
            from_properties(values)
        return
    config = from_properties(values)
    assert config.name == name
    assert (str(config.version), str(config.layout)) == (values["hoodie.table.version"], "2")
    assert config.timeline_folder == ".hoodie/timeline"


# --- commits and plans ---


@pytest.mark.parametrize("case", vector("v8-v9/commit_metadata.json")["files"], ids=lambda case: case["description"])
def test_a_real_file_of_the_timeline_is_decoded(case: dict[str, Any]) -> None:
    data, name, decoded = base64.b64decode(case["base64"]), case["file_name"], case["decoded"]
    if name.endswith(".compaction.requested"):
        (operation,) = decoded["operations"]
        (found,) = decode_compaction_plan(data, name).operations
        assert (found.group.partition, found.group.file_id) == (operation["partitionPath"], operation["fileId"])
        assert (found.base_instant, found.base_file) == (operation["baseInstantTime"], operation["dataFilePath"])
        assert list(found.log_files) == operation["deltaFilePaths"]
    elif name.endswith(".replacecommit.requested"):
        assert decoded["clusteringPlan"] is None
        assert decode_replace_plan(data, name).clustering is None
    else:
        replacing = name.endswith(".replacecommit")
        assert as_decoded(decode_avro_commit(data, name, replacing)) == expected_commit(decoded)


_STAT_FIELDS = {
    "fileId": "file_id",
    "path": "path",
    "partitionPath": "partition",
    "prevCommit": "prev_commit",
    "numWrites": "num_writes",
    "numDeletes": "num_deletes",
    "numUpdateWrites": "num_updates",
    "numInserts": "num_inserts",
    "totalWriteBytes": "total_write_bytes",
    "fileSizeInBytes": "file_size",
    "totalLogRecords": "log_records",
    "totalLogFilesCompacted": "log_files_compacted",
    "totalUpdatedRecordsCompacted": "updated_records_compacted",
    "totalLogBlocks": "log_blocks",
    "logVersion": "log_version",
    "logOffset": "log_offset",
    "baseFile": "base_file",
}


def as_decoded(metadata: CommitMetadata) -> dict[str, Any]:
    stats = {
        partition: [
            {theirs: getattr(stat, ours) for theirs, ours in _STAT_FIELDS.items()} | {"logFiles": list(stat.log_files)}
            for stat in found
        ]
        for partition, found in metadata.stats.items()
    }
    replaced = {partition: list(file_ids) for partition, file_ids in metadata.replaced.items()}
    return {
        "stats": stats,
        "replaced": replaced,
        "extra": dict(metadata.extra),
        "operation": metadata.operation.value,
        "compacted": metadata.compacted,
    }


def expected_commit(decoded: dict[str, Any]) -> dict[str, Any]:
    stats = {
        partition: [
            {field: stat[field] for field in _STAT_FIELDS} | {"logFiles": stat["logFiles"] or []} for stat in found
        ]
        for partition, found in decoded["partitionToWriteStats"].items()
    }
    return {
        "stats": stats,
        "replaced": decoded.get("partitionToReplaceFileIds", {}),
        "extra": decoded["extraMetadata"],
        "operation": decoded["operationType"],
        "compacted": decoded["compacted"],
    }


# --- the history ---


def test_the_history_of_a_real_table_knows_when_its_instants_completed() -> None:
    files = {file["name"]: file for file in vector("v8-v9/lsm_history.json")["files"]}
    (stored,) = (file for file in files.values() if "base64" in file)  # the one that the first manifest lists
    contents = {
        stored["name"]: base64.b64decode(stored["base64"]),
        "manifest_1": files["manifest_1"]["text"].encode(),
        "_version_": b"1",
    }
    storage = MemoryStorage({f".hoodie/timeline/history/{name}": data for name, data in contents.items()})
    config = from_properties(vector("v8-v9/properties.json")["tables"][0]["properties"])
    timeline = load_timeline(storage, config)
    assert not timeline.history
    expected = {row["instantTime"]: row["completionTime"] for row in stored["rows"]}
    assert with_history(storage, config, timeline, expected.keys()).history == expected
    newest = max(expected)
    assert with_history(storage, config, timeline, [newest]).history == {newest: expected[newest]}


# --- file slices ---


@pytest.mark.parametrize("case", vector("v8-v9/file_slicing.json")["cases"], ids=lambda case: case["name"])
def test_a_log_file_belongs_to_the_slice_that_began_before_its_commit_completed(case: dict[str, Any]) -> None:
    compaction = case.get("compaction", "").partition(" ")[0]  # "50 (completed 60)"
    bases = [*case["base_instants"], *([compaction] if compaction else [])]
    opened = case.get("pending_compaction")
    instants = [Instant(time, Action.COMMIT, State.COMPLETED, time) for time in bases]
    if opened:
        instants.append(Instant(opened, Action.COMPACTION, State.REQUESTED))
    files = [parse_data_file("p", base_file_name("f", "0-0-0", time), 10) for time in bases]
    expected: dict[str, list[str]] = {time: [] for time in [*bases, *([opened] if opened else [])]}
    for log in case["logs"]:
        state = State.COMPLETED if log["completion"] else State.INFLIGHT
        instants.append(Instant(log["instant"], Action.DELTA_COMMIT, state, log["completion"] or ""))
        name = log_file_name("f", log["instant"], 1, "0-0-0")
        files.append(parse_data_file("p", name, 10))
        if log["completion"]:  # files of a pending delta commit are dropped by snapshot readers
            expected.setdefault(log["slice"].partition(" ")[0], []).append(name)
    view = FileSystemView(
        Timeline(tuple(sorted(instants)), layout=2),
        group_files([file for file in files if file is not None]),
        compacting={GROUP: opened} if opened else {},
    )
    found = {slice_.base_instant: [log.name for log in slice_.logs] for slice_ in committed_slices(view, GROUP)}
    assert found == expected


# --- log files ---


@pytest.mark.parametrize("case", vector("v8-v9/log_files.json")["files"], ids=lambda case: case["description"])
def test_a_real_log_file_is_decoded_and_encoded_to_the_same_bytes(case: dict[str, Any]) -> None:
    data = base64.b64decode(case["base64"])
    blocks = list(read_blocks(data, case["file_name"]))
    assert b"".join(map(encode_block, blocks)) == data
    for block, expected in zip(blocks, case["blocks"], strict=True):
        assert (block.kind.value, block.version) == (expected["block_type"], expected["log_format_version"])
        assert len(block.content) == expected["content_length"]
        header = {int(key): value for key, value in dict(block.header.entries).items()}
        assert header == {entry["ordinal"]: entry["value"] for entry in expected["header"]}
        if "records" in expected:
            rows = data_rows(block, case["file_name"]).to_pylist()
            assert json.loads(json.dumps(rows, default=str)) == expected["records"]
        else:
            deletes = decode_deletes(block.content)
            assert deletes["record_key"].to_pylist() == [found["recordKey"] for found in expected["deletes"]]
            assert deletes["partition"].to_pylist() == [found["partitionPath"] for found in expected["deletes"]]
            assert deletes["ordering_integer"].to_pylist() == [0] * len(expected["deletes"])


# --- whole tables ---


@pytest.mark.parametrize("case", vector("v8-v9/minimal_tables.json")["tables"], ids=lambda case: case["name"])
def test_a_minimal_table_gives_its_rows(case: dict[str, Any], tmp_path: Path) -> None:
    for folder in case["folders"]:
        (tmp_path / folder).mkdir(parents=True)
    for file in case["files"]:
        path = tmp_path / file["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(file["base64"]) if "base64" in file else file.get("text", "").encode())
        assert path.stat().st_size == file["size"]
    verify_checksum(parse_properties((tmp_path / ".hoodie/hoodie.properties").read_bytes(), "p"), "p")
    names = list(case["rows"][0])
    assert (
        hoodie.open_table(str(tmp_path)).snapshot(columns=names).to_arrow().sort_by(names[0]).to_pylist()
        == case["rows"]
    )


# --- hashes ---


def test_the_hash_of_a_record_key_is_that_of_java() -> None:
    rows = vector("file_group_of_key.json")["rows"]
    assert string_hashes(pa.array([row["key"] for row in rows])).tolist() == [row["hash"] for row in rows]
