"""Partitions of the metadata table that writes keep: their records in cells, as real Hudi wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.formats.hfile.reader import open_hfile
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.metadata.encode import base_file, data_block, delete_block, record_cells
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.records import decode_records
from support.metadata_tables import BY_HBASE, METADATA, table_files
from unit.metadata.test_metadata_changes import cells_in

VECTORS = Path(__file__).parents[2] / "vectors"
INDEXES = (MetadataPartition.COLUMN_STATS, MetadataPartition.BLOOM_FILTERS, MetadataPartition.RECORD_INDEX)


def decoded(content: bytes, partition: MetadataPartition, path: str) -> pa.Table:
    file = open_hfile(lambda offset, length: content[offset : offset + length], len(content), path)
    return decode_records(file.cells(), partition, file.info["schema"].decode(), path)


@pytest.mark.parametrize("partition", INDEXES)
def test_records_become_the_cells_that_hudi_wrote(partition: MetadataPartition) -> None:
    compared = 0
    for name in BY_HBASE:
        for path, data in table_files(name).items():
            if not path.startswith(f"{METADATA}{partition}/") or path.endswith(".crc"):
                continue
            if path.endswith(".hfile"):
                records = decoded(data, partition, path)
                ours = base_file(*record_cells(partition, records, path.rpartition("/")[2]))
                assert cells_in(ours) == cells_in(data)
                compared += 1
            elif ".log." in path:
                for block in read_blocks(data, path):
                    if block.kind is BlockKind.HFILE_DATA:
                        content = bytes(block.content)
                        records = decoded(content, partition, path)
                        ours_block = data_block(block.header.instant, *record_cells(partition, records))
                        assert cells_in(bytes(ours_block.content)) == cells_in(content)
                        compared += 1
    assert compared >= 10


def test_keys_are_deleted_by_the_block_that_hudi_wrote() -> None:
    vector = json.loads((VECTORS / "record_index_location.json").read_text())
    block = delete_block("1", MetadataPartition.RECORD_INDEX, pa.array(vector["real_delete_block_keys"]))
    assert block.kind is BlockKind.DELETE
    assert bytes(block.content).hex() == vector["real_delete_block_content_hex"]
