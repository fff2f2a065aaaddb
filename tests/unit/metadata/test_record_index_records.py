"""Entries of the record index: encoded as in the vectors, and byte by byte as real Hudi has them in its tables."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config.table import TimelineZone
from hoodie.formats.hfile.reader import open_hfile
from hoodie.formats.log.blocks import BlockKind, LogBlock, read_blocks
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.metadata.encode import record_delete_block
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.record_index import entries, epoch_millis, places_table, record_index_cells, stored_file_id
from hoodie.metadata.records import decode_records, file_ids
from hoodie.model.files import FileGroupId
from support.metadata_tables import ALL, METADATA, hfiles, table_files

VECTORS = Path(__file__).parents[2] / "vectors"
LOCATIONS = json.loads((VECTORS / "record_index_location.json").read_text())
INDEX = f"{METADATA}record_index/"


@pytest.mark.parametrize("case", LOCATIONS["locations"], ids=lambda case: case["file_id"])
def test_entries_are_encoded_as_in_the_vectors(case: Mapping[str, Any]) -> None:
    group = FileGroupId(case["fields"]["partitionName"], case["file_id"])
    made = entries(places_table(pa.array(["k"]), group), epoch_millis(case["instant_utc"], TimelineZone.UTC))
    rows, values = record_index_cells(made)
    assert (rows.to_pylist(), [value.hex() for value in values.to_pylist()]) == (["k"], [case["log_value_hex"]])
    assert file_ids(made).to_pylist() == [case["file_id"]]


def test_entries_that_real_hudi_wrote_are_encoded_to_the_same_bytes() -> None:
    count = 0
    for name in ALL:
        for path, data in hfiles(name):
            if not path.startswith(INDEX):
                continue
            file = open_hfile(lambda offset, length, data=data: data[offset : offset + length], len(data), path)  # type: ignore[misc]
            own_name = path.rpartition("/")[2] if path.endswith(".hfile") else ""
            for cells in file.cells():
                decoded = decode_records([cells], MetadataPartition.RECORD_INDEX, file.info["schema"].decode(), path)
                rows, values = record_index_cells(decoded, own_name)
                assert rows.to_pylist() == [row.decode() for row in cells.rows]
                assert values.to_pylist() == cells.values()
                count += len(rows)
    assert count == 300


def test_deletes_are_those_that_real_hudi_wrote() -> None:
    blocks = [block for name in ALL for block in delete_blocks(name)]
    assert len(blocks) >= 4
    for block in blocks:
        keys = decode_deletes(block.content).column("record_key").combine_chunks()
        made = record_delete_block(block.header.instant, MetadataPartition.RECORD_INDEX, keys)
        assert bytes(made.content) == bytes(block.content)
        assert sorted(made.header.entries) == sorted(block.header.entries)


def delete_blocks(name: str) -> Iterator[LogBlock]:
    """Those of the record index that hold keys."""
    for path, data in table_files(name).items():
        if path.startswith(INDEX) and ".log." in path and not path.endswith(".crc"):
            blocks = (block for block in read_blocks(data, path) if block.kind is BlockKind.DELETE)
            yield from (block for block in blocks if len(decode_deletes(block.content)))


@pytest.mark.parametrize(
    "file_id", ["19291DDD-6dc2-4efc-8eb0-8e6f129f76c2-0", "19291ddd-6dc2-4efc-8eb0-8e6f129f76c2-007", "x-0"]
)
def test_a_file_id_that_would_not_come_back_from_numbers_is_stored_as_text(file_id: str) -> None:
    assert stored_file_id(file_id).text == file_id
    assert file_ids(entries(places_table(pa.array(["k"]), FileGroupId("p", file_id)), 0)).to_pylist() == [file_id]


def test_entries_of_several_file_groups_keep_their_order() -> None:
    groups = [FileGroupId(path, f"19291ddd-6dc2-4efc-8eb0-8e6f129f76c2-{n}") for path in ("", "a") for n in (0, 1)]
    made = pa.concat_tables(
        [entries(places_table(pa.array([f"{n}/{i}" for i in range(3)]), g), n) for n, g in enumerate(groups)]
    )
    rows, values = record_index_cells(made.take(pa.array([11, 0, 5, 3, 4, 7])))
    assert rows.to_pylist() == ["3/2", "0/0", "1/2", "1/0", "1/1", "2/1"]
    distinct = list(dict.fromkeys(values.to_pylist()))
    assert [distinct.index(value) for value in values.to_pylist()] == [0, 1, 2, 2, 2, 3]
