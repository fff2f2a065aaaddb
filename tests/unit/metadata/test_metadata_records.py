"""Records of the metadata table: keys, values and merging as in the vectors, and all that real Hudi has in its own."""

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import CorruptFile
from hoodie.formats.hfile.cells import HFileCells
from hoodie.formats.log.blocks import read_blocks
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.metadata.keys import (
    MetadataPartition,
    bloom_filter_key,
    column_stats_key,
    file_groups_of,
    hashed,
    hashed_file,
)
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.merging import merged
from hoodie.metadata.read import RecordSelection, read_records
from hoodie.metadata.records import COLUMN_STATS, FILES, RECORD_INDEX, decode_records, deleted_records, file_ids
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.reading.snapshot import read_table
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.view.load import data_files, list_folders
from support.metadata_tables import ALL, WITH_RECORDS, facts, table_files

VECTORS = Path(__file__).parents[2] / "vectors"
KEYS = json.loads((VECTORS / "index_keys.json").read_text())
GROUPS = json.loads((VECTORS / "file_group_of_key.json").read_text())
VALUES = json.loads((VECTORS / "record_values.json").read_text())["rows"]
LOCATIONS = json.loads((VECTORS / "record_index_location.json").read_text())
MERGES = json.loads((VECTORS / "mdt_payload_merge.json").read_text())
SCHEMA = json.loads((VECTORS / "mdt_schema.json").read_text())["with_meta_fields"]

OF_TYPE = {
    1: MetadataPartition.FILES,
    2: MetadataPartition.FILES,
    3: MetadataPartition.COLUMN_STATS,
    4: MetadataPartition.BLOOM_FILTERS,
    5: MetadataPartition.RECORD_INDEX,
}


def metadata_of(name: str) -> MetadataTable:
    storage = MemoryStorage(table_files(name))
    state = load_state(storage)
    found = open_metadata(storage, state.config, state.timeline)
    assert found is not None
    return found


def decoded(row: str, value: bytes, partition: MetadataPartition) -> pa.Table:
    cells = HFileCells(memoryview(value), (row.encode(),), np.array([0]), np.array([len(value)]))
    return decode_records([cells], partition, SCHEMA, "f.hfile")


def bound(value: Mapping[str, Any] | None) -> Any:
    """A least or greatest value, whatever its class."""
    return None if value is None else next((one for one in value.values() if one is not None), None)


# --- keys ---


@pytest.mark.parametrize("case", KEYS["h64"], ids=lambda case: case["text"])
def test_columns_and_partitions_are_hashed_as_in_the_vectors(case: Mapping[str, str]) -> None:
    assert hashed(case["text"]) == case["h64"]


def test_keys_of_statistics_and_filters_are_those_of_the_vectors() -> None:
    for case in KEYS["md5b64"]:
        assert hashed_file(case["text"]) == case["md5b64"]
    for case in (*KEYS["column_stats"], *KEYS["column_stats_from_real_tables"]):
        assert column_stats_key(case["column"], case["partition"], case["file"]) == case["key"]
    for case in KEYS["bloom_filters"]:
        assert bloom_filter_key(case["partition"], case["file"]) == case["key"]


def test_a_key_is_in_the_file_group_of_the_vectors() -> None:
    keys = pa.array([row["key"] for row in GROUPS["rows"]])
    for groups in GROUPS["rows"][0]["group"]:
        assert file_groups_of(keys, int(groups)).tolist() == [row["group"][groups] for row in GROUPS["rows"]]
    for case in KEYS["column_stats_from_real_tables"]:
        assert file_groups_of(pa.array([case["key"]]), case["groups"]).tolist() == [case["group"]]


# --- values ---


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case["what"])
def test_values_are_decoded_as_in_the_vectors(case: Mapping[str, Any]) -> None:
    expected = case["value"]
    records = decoded(case["row_key"], bytes.fromhex(case["value_hex"]), OF_TYPE[expected["type"]])
    assert set(records.column("row").to_pylist()) <= {case["row_key"]}
    if files := expected.get("filesystemMetadata"):
        found = {r["name"]: {"size": r["size"], "isDeleted": r["deleted"]} for r in records.to_pylist()}
        assert found == files
    elif stats := expected.get("ColumnStatsMetadata"):
        (record,) = records.to_pylist()
        names = ("file", "column", "values", "nulls", "size", "uncompressed_size", "deleted")
        fields = (
            "fileName",
            "columnName",
            "valueCount",
            "nullCount",
            "totalSize",
            "totalUncompressedSize",
            "isDeleted",
        )
        assert [record[name] for name in names] == [stats[field] for field in fields]
        for name, field in (("min", "minValue"), ("max", "maxValue")):
            value = bound(record[name])
            value = value.decode("latin-1") if isinstance(value, bytes) else value
            value = str(value) if isinstance(value, Decimal) else value
            assert value == (stats[field] and stats[field]["value"])
    elif bloom := expected.get("BloomFilterMetadata"):
        (record,) = records.to_pylist()
        found = [record["type"], record["instant"], record["filter"].decode(), record["deleted"]]
        assert found == [bloom["type"], bloom["timestamp"], bloom["bloomFilter"], bloom["isDeleted"]]
    else:
        assert len(records) == 0


@pytest.mark.parametrize("case", LOCATIONS["locations"], ids=lambda case: case["file_id"])
def test_locations_are_decoded_as_in_the_vectors(case: Mapping[str, Any]) -> None:
    records = decoded("k", bytes.fromhex(case["log_value_hex"]), MetadataPartition.RECORD_INDEX)
    (record,) = records.to_pylist()
    assert record["partition"] == case["fields"]["partitionName"]
    assert record["instant"] == case["fields"]["instantTime"]
    assert file_ids(records).to_pylist() == [case["file_id"]]


def test_real_delete_blocks_name_their_keys_and_the_first_log_file_none() -> None:
    keys = decode_deletes(bytes.fromhex(LOCATIONS["real_delete_block_content_hex"])).column("record_key")
    assert keys.to_pylist() == LOCATIONS["real_delete_block_keys"]
    (block,) = read_blocks(bytes.fromhex(LOCATIONS["initial_log_file_hex"]), "f.log")
    assert len(decode_deletes(block.content)) == 0


def test_damaged_values_are_errors() -> None:
    value = bytes.fromhex(VALUES[3]["value_hex"])
    for cut in range(len(value)):
        with pytest.raises(CorruptFile):
            decoded("p", value[:cut], MetadataPartition.FILES)
    with pytest.raises(CorruptFile, match="longer or shorter"):
        decoded("p", value + b"\0", MetadataPartition.FILES)
    with pytest.raises(CorruptFile, match="of types"):
        decoded("p", value, MetadataPartition.RECORD_INDEX)


# --- merging ---


def files(entries: Mapping[str, Any]) -> pa.Table:
    rows = [{"row": "p", "name": name, "size": size, "deleted": gone} for name, (size, gone) in entries.items()]
    return pa.Table.from_pylist(rows, schema=FILES)


@pytest.mark.parametrize("number", range(len(MERGES["files"])))
def test_file_lists_are_combined_as_in_the_vectors(number: int) -> None:
    case = MERGES["files"][number]
    for base, logs in (
        (files(case["old"]), [files(case["new"])]),
        (files({}), [files(case["old"]), files(case["new"])]),
    ):
        records = merged(base, logs, MetadataPartition.FILES).to_pylist()
        found = {record["name"]: [record["size"], False] for record in records}
        assert found == {name: entry for name, entry in case["result"].items() if not entry[1]}


def test_a_file_list_of_many_blocks_is_what_one_after_the_other_gives() -> None:
    """Against the rule step by step, on random histories."""
    random = np.random.default_rng(7)
    for _ in range(300):
        base = {name: (0, True) if random.random() < 0.2 else (int(random.integers(1, 9)), False) for name in "abc"}
        base = {name: entry for name, entry in base.items() if random.random() < 0.7}
        logs = [
            {name: (0, True) if random.random() < 0.5 else (int(random.integers(1, 9)), False) for name in "abc"}
            for _ in range(random.integers(0, 6))
        ]
        logs = [{name: entry for name, entry in log.items() if random.random() < 0.7} for log in logs]
        newer: dict[str, tuple[int, bool]] = {}
        for log in logs:
            newer = combined(newer, log)
        expected = {name: size for name, (size, gone) in combined(base, newer).items() if not gone}
        found = merged(files(base), [files(log) for log in logs], MetadataPartition.FILES)
        assert {record["name"]: record["size"] for record in found.to_pylist()} == expected


def combined(old: Mapping[str, tuple[int, bool]], new: Mapping[str, tuple[int, bool]]) -> dict[str, tuple[int, bool]]:
    result = dict(old)
    for name, (size, gone) in new.items():
        if name not in old:
            result[name] = (size, gone)
        elif gone and not old[name][1]:
            del result[name]
        else:
            result[name] = (0, True) if gone else (max(size, old[name][0]), False)
    return result


def stats(entry: Mapping[str, Any] | str, deleted: bool = False) -> pa.Table:
    if isinstance(entry, str):
        entry = {"min": 0, "max": 0, "valueCount": 1, "nullCount": 0, "totalSize": 1, "totalUncompressedSize": 1}
    row = {
        "row": "k",
        "min": None if entry["min"] is None else {"IntWrapper": entry["min"]},
        "max": None if entry["max"] is None else {"IntWrapper": entry["max"]},
        "values": entry["valueCount"],
        "nulls": entry["nullCount"],
        "size": entry["totalSize"],
        "uncompressed_size": entry["totalUncompressedSize"],
        "deleted": deleted,
    }
    return pa.Table.from_pylist([row], schema=COLUMN_STATS)


def test_statistics_are_combined_as_in_the_vectors() -> None:
    for case in MERGES["column_stats"]:
        if case["new"] == "isDeleted":
            records = merged(stats("any"), [stats("any", deleted=True)], MetadataPartition.COLUMN_STATS)
            assert len(records) == 0
        elif case["old"] == "isDeleted":
            logs = [stats("any"), stats("any", deleted=True), stats("any")]
            (record,) = merged(stats("any").slice(0, 0), logs, MetadataPartition.COLUMN_STATS).to_pylist()
            assert record["values"] == 1
        else:
            tables = [stats(case[name]) for name in ("old", "new")]
            (record,) = merged(tables[0], tables[1:], MetadataPartition.COLUMN_STATS).to_pylist()
            (expected,) = stats(case["result"]).to_pylist()
            assert record == expected


def test_the_newer_entry_of_the_record_index_counts_and_tombstones_take_it_away() -> None:
    assert MERGES["record_index"] == MERGES["bloom_filters"] == "new"

    def entry(key: str, partition: str) -> pa.Table:
        return pa.Table.from_pylist([{"row": key, "partition": partition, "deleted": False}], schema=RECORD_INDEX)

    gone = deleted_records(pa.array(["a", "b"]), MetadataPartition.RECORD_INDEX)
    base = pa.concat_tables([entry("a", "old"), entry("b", "old"), entry("c", "old")])
    records = merged(base, [entry("c", "new"), gone, entry("b", "back")], MetadataPartition.RECORD_INDEX)
    assert {record["row"]: record["partition"] for record in records.to_pylist()} == {"b": "back", "c": "new"}


# --- real tables ---


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_every_record_is_as_hudi_reads_it(name: str) -> None:
    table, expected = metadata_of(name), facts(name)["metadata_records"]
    assert table.problem() == ""

    lists: dict[str, dict[str, Any]] = {}
    for record in read_records(table, MetadataPartition.FILES).to_pylist():
        lists.setdefault(record["row"], {})[record["name"]] = {"isDeleted": record["deleted"], "size": record["size"]}
    assert lists == {r["key"]: r["filesystemMetadata"] for r in expected if r["type"] in (1, 2)}

    def value(stat: Mapping[str, Any] | None) -> Any:
        found = None if stat is None else next((member["value"] for member in stat.values() if member), None)
        return float(found.removeprefix("f:")) if isinstance(found, str) and found.startswith("f:") else found

    statistics = {
        record["row"]: {
            "fileName": record["file"],
            "columnName": record["column"],
            "minValue": bound(record["min"]),
            "maxValue": bound(record["max"]),
            "valueCount": record["values"],
            "nullCount": record["nulls"],
            "totalSize": record["size"],
            "totalUncompressedSize": record["uncompressed_size"],
            "isDeleted": record["deleted"],
        }
        for record in read_records(table, MetadataPartition.COLUMN_STATS).to_pylist()
    }
    theirs = {r["key"]: r["ColumnStatsMetadata"] for r in expected if r["type"] == 3}
    live = {key: record for key, record in theirs.items() if not record["isDeleted"]}
    assert statistics == {
        key: {**record, "minValue": value(record["minValue"]), "maxValue": value(record["maxValue"])}
        for key, record in live.items()
    }

    filters = {r["row"]: r for r in read_records(table, MetadataPartition.BLOOM_FILTERS).to_pylist()}
    theirs = {r["key"]: r["BloomFilterMetadata"] for r in expected if r["type"] == 4}
    assert filters.keys() == {key for key, record in theirs.items() if not record["isDeleted"]}
    for key, record in filters.items():
        assert record["filter"].hex() == theirs[key]["bloomFilter"].removeprefix("b:")
        assert (record["type"], record["instant"]) == (theirs[key]["type"], theirs[key]["timestamp"])

    entries = read_records(table, MetadataPartition.RECORD_INDEX)
    theirs = {r["key"]: r["recordIndexMetadata"] for r in expected if r["type"] == 5}
    assert {
        record["row"]: (record["partition"], record["high"], record["low"], record["file_index"], record["instant"])
        for record in entries.to_pylist()
    } == {
        key: tuple(
            r[field] for field in ("partitionName", "fileIdHighBits", "fileIdLowBits", "fileIndex", "instantTime")
        )
        for key, r in theirs.items()
    }


@pytest.mark.parametrize("name", ALL)
def test_the_files_that_real_tables_list_are_those_on_storage(name: str) -> None:
    table = metadata_of(name)
    assert table.problem() == ""
    there = list_folders(MemoryStorage(table_files(name))).marked
    assert sorted(data_files(listed_folders(table).marked), key=str) == sorted(data_files(there), key=str)
    for partition in there:
        only = listed_folders(table, [partition, "no such partition"]).marked
        assert sorted(data_files(only), key=str) == sorted(data_files({partition: there[partition]}), key=str)


@pytest.mark.parametrize("name", ["hudi-0.15/cow_metadata_table", *WITH_RECORDS])
def test_the_record_index_of_real_tables_knows_where_each_row_is(name: str) -> None:
    table = metadata_of(name)
    rows = read_table(load_state(MemoryStorage(table_files(name))))
    places = {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].split("_")[0])
        for row in rows.select(["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]).to_pylist()
    }
    entries = read_records(table, MetadataPartition.RECORD_INDEX)
    columns = [*(entries.column(column).to_pylist() for column in ("row", "partition")), file_ids(entries).to_pylist()]
    assert {key: (partition, file_id) for key, partition, file_id in zip(*columns, strict=True)} == places
    some = frozenset([*list(places)[:3], "no such key"])
    found = read_records(table, MetadataPartition.RECORD_INDEX, RecordSelection(some))
    assert set(found.column("row").to_pylist()) == some - {"no such key"}


def test_statistics_of_one_column_are_found_by_its_prefix() -> None:
    table = metadata_of("mdt_cow")
    every = read_records(table, MetadataPartition.COLUMN_STATS)
    some = read_records(table, MetadataPartition.COLUMN_STATS, RecordSelection(prefixes=(hashed("v"), hashed("ts"))))
    expected = [record for record in every.to_pylist() if record["column"] in ("v", "ts")]
    assert sorted(some.to_pylist(), key=str) == sorted(expected, key=str)
    one = RecordSelection(prefixes=(hashed("ts") + hashed("p1"),))
    assert 0 < len(read_records(table, MetadataPartition.COLUMN_STATS, one)) < len(expected) / 2


def test_bloom_filters_are_the_text_that_footers_have() -> None:
    records = read_records(metadata_of("mdt_cow"), MetadataPartition.BLOOM_FILTERS).to_pylist()
    assert records
    for record in records:
        assert base64.b64decode(record["filter"])
