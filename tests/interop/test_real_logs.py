"""Log files that Hudi wrote: decoded, compared with independent decoders, and encoded to the same bytes."""

import io
import json
import struct
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hoodie.formats.avro.rows import decode_rows, encode_rows
from hoodie.formats.avro.schema import from_avro
from hoodie.formats.log.blocks import (
    BlockKind,
    LogBlock,
    encode_block,
    read_block_headers,
    read_blocks,
)
from hoodie.formats.log.content import data_rows, rollback_block
from hoodie.formats.log.delete_block import DELETES, ORDERING_COLUMN, OrderingClass, decode_deletes, encode_deletes

TESTS = Path(__file__).parents[1]
LOGS = sorted(path for path in (TESTS / "fixtures" / "logs").rglob(".*") if path.is_file())
AVRO = (BlockKind.AVRO_DATA, BlockKind.CDC_DATA)


def vector(name: str) -> Any:
    return json.loads((TESTS / "vectors" / name).read_text())


def blocks_of_kind(*kinds: BlockKind) -> list[Any]:
    found = [(path, block) for path in LOGS for block in read_blocks(path.read_bytes(), str(path))]
    return [
        pytest.param(block, id=f"{path.parent.name}-{block.kind.name}") for path, block in found if block.kind in kinds
    ]


def test_there_are_log_files_of_each_kind() -> None:
    kinds = {block.kind for path in LOGS for block in read_blocks(path.read_bytes(), str(path))}
    assert kinds == set(BlockKind) - {BlockKind.CORRUPT, BlockKind.HFILE_DATA}


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parent.name)
def test_a_log_file_is_encoded_to_the_bytes_it_was_decoded_from(path: Path) -> None:
    data = path.read_bytes()
    assert b"".join(map(encode_block, read_blocks(data, str(path)))) == data


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parent.name)
def test_both_ways_to_walk_a_log_file_find_the_same_blocks(path: Path) -> None:
    data = path.read_bytes() * 3
    forward = list(read_blocks(data, str(path)))
    assert len(forward) == 3
    heads = list(read_block_headers(lambda offset, length: data[offset : offset + length], len(data), str(path)))
    for head, block in zip(heads, forward, strict=True):
        assert (head.kind, head.header, head.offset) == (block.kind, block.header, block.offset)
        assert data[head.content_offset : head.content_offset + head.content_length] == block.content


@pytest.mark.parametrize("block", blocks_of_kind(*AVRO))
def test_rows_are_those_that_fastavro_reads_and_encode_to_the_same_bytes(block: LogBlock) -> None:
    schema_json = block.header.schema
    assert schema_json is not None
    rows = decode_rows(block.content, schema_json, "log")
    rows.validate(full=True)
    content = bytes(block.content)
    assert rows.to_pylist(maps_as_pydicts="strict") == list(fastavro_rows(content, schema_json))
    assert encode_rows(rows, schema_json)[4:] == content[4:]  # the first 4 are the block version, 2 in an old table
    if block.kind is BlockKind.AVRO_DATA:
        assert rows.schema.equals(from_avro(schema_json, "log"))


@pytest.mark.parametrize("block", blocks_of_kind(*AVRO))
def test_some_columns_are_those_columns_of_all(block: LogBlock) -> None:
    schema_json = block.header.schema
    assert schema_json is not None
    every = decode_rows(block.content, schema_json)
    for name in every.column_names:
        assert decode_rows(block.content, schema_json, columns=[name]) == every.select([name])
    assert decode_rows(block.content, schema_json, columns=[]).num_rows == every.num_rows


@pytest.mark.parametrize("block", blocks_of_kind(BlockKind.DELETE))
def test_a_delete_block_is_encoded_to_the_bytes_it_was_decoded_from(block: LogBlock) -> None:
    deletes = decode_deletes(block.content)
    assert encode_deletes(deletes) == bytes(block.content)


def test_a_parquet_block_gives_its_rows() -> None:
    (block,) = (param.values[0] for param in blocks_of_kind(BlockKind.PARQUET_DATA))
    rows = data_rows(block, "log")
    assert rows.num_rows > 0
    assert rows.column_names[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert set(rows["_hoodie_commit_time"].to_pylist()) == {block.header.instant}
    assert data_rows(block, "log", ["_hoodie_record_key"]) == rows.select(["_hoodie_record_key"])


@pytest.mark.parametrize("case", vector("log_blocks.json")["files"], ids=lambda case: case["block"]["type"])
def test_the_vectors_of_log_blocks(case: dict[str, Any]) -> None:
    data, expected = bytes.fromhex(case["file_hex"]), case["block"]
    (block,) = read_blocks(data, case["file"])
    assert encode_block(block) == data
    assert block.kind.name.removesuffix("_DATA") == expected["type"]
    assert block.version == expected["format_version"]
    (head,) = read_block_headers(lambda offset, length: data[offset : offset + length], len(data), case["file"])
    assert (head.content_offset, head.content_length) == (expected["content_offset"], expected["content_length"])
    names = {
        "INSTANT_TIME": block.header.instant,
        "SCHEMA": block.header.schema,
        "TARGET_INSTANT_TIME": block.header.target,
    }
    for key, value in expected["header"].items():
        assert key == "COMMAND_BLOCK_TYPE" or names[key] == value
    if expected["type"] == "AVRO":
        assert data_rows(block, case["file"]).to_pylist() == case["content"]["records"]
    elif expected["type"] == "PARQUET":
        assert data_rows(block, case["file"]).to_pylist() == case["content"]["parquet_rows"]
    elif expected["type"] == "DELETE":
        deletes = decode_deletes(block.content)
        assert deletes["record_key"].to_pylist() == [record["recordKey"] for record in case["content"]["records"]]
        assert set(deletes["ordering_class"].to_pylist()) == {case["content"]["ordering_val_union_branch"]}
        assert set(deletes["ordering_integer"].to_pylist()) == {0}
    else:
        ours = rollback_block(block.header.instant, str(block.header.target))
        assert dict(ours.header.entries) == dict(block.header.entries)
        assert len(encode_block(ours)) == len(data)


def test_the_vector_of_delete_ordering_values() -> None:
    case = vector("delete_block_ordering.json")
    content = bytes.fromhex(case["content_hex"])
    deletes = decode_deletes(content)
    assert deletes.schema == DELETES
    assert encode_deletes(deletes) == content
    for row, expected in zip(deletes.to_pylist(), case["records"], strict=True):
        assert (row["record_key"], row["partition"]) == (expected["recordKey"], expected["partitionPath"])
        found = OrderingClass(row["ordering_class"])
        wrapper = "" if found is OrderingClass.NULL else found.name.title().replace("_", "") + "Wrapper"
        assert wrapper == (expected["wrapper"] or "")
        held = {name: value for name, value in row.items() if name.startswith("ordering_") and value is not None}
        del held["ordering_class"]
        if expected["wrapper"] is None:
            assert not held
        else:
            (value,) = held.values()
            assert list(held) == [ORDERING_COLUMN[found]]
            assert _as_vector(value, found) == expected["value"]


def _as_vector(value: Any, found: OrderingClass) -> str:
    if found is OrderingClass.BOOLEAN:
        return str(bool(value))
    return value.hex() if isinstance(value, bytes) else str(value)


def test_the_vector_of_a_file_with_a_block_cut_short() -> None:
    case = vector("log_scan.json")
    data = bytes.fromhex(case["file_hex"])
    blocks = list(read_blocks(data, case["file_name"]))
    heads = list(read_block_headers(lambda offset, length: data[offset : offset + length], len(data), "log"))
    assert b"".join(map(encode_block, blocks)) == data
    for block, head, at, expected in zip(blocks, heads, case["blocks"], case["read_blocks"], strict=True):
        assert block.kind.name.removesuffix("_DATA") == at["type"] == expected["type"]
        assert (block.offset, head.end) == (at["offset"], expected["end"])
        assert [head.content_offset, head.content_length] == expected["content"]
        if expected["type"] == "DELETE":
            deletes = decode_deletes(block.content)
            rows = zip(deletes["record_key"], deletes["ordering_class"], deletes["ordering_integer"], strict=True)
            found = [
                [key.as_py(), OrderingClass(kind.as_py()).name.lower(), value.as_py()] for key, kind, value in rows
            ]
            assert found == expected["records"]


def fastavro_rows(content: bytes, schema_json: str) -> Any:
    schema = fastavro.parse_schema(json.loads(schema_json))
    _, count = struct.unpack_from(">ii", content)
    source = io.BytesIO(content)
    source.seek(8)
    for _ in range(count):
        source.seek(4, io.SEEK_CUR)
        yield fastavro.schemaless_reader(source, schema)
