"""Partitions of the metadata table that writes keep: their records in cells, as real Hudi wrote them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.formats.hfile.reader import open_hfile
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.metadata.changes import changes_of_commit
from hoodie.metadata.encode import base_file, data_block, record_cells, record_delete_block
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.bloom_filters import BLOOM_FILTERS
from hoodie.metadata.partitions.column_stats import COLUMN_STATS
from hoodie.metadata.partitions.kind import Change, PartitionKind
from hoodie.metadata.records import decode_records
from hoodie.model.instant import State
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.load import read_commit
from support.metadata_tables import ALL, BY_HBASE, METADATA, table_files
from unit.metadata.test_metadata_changes import WRITES, cells_in

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
    block = record_delete_block("1", MetadataPartition.RECORD_INDEX, pa.array(vector["real_delete_block_keys"]))
    assert block.kind is BlockKind.DELETE
    assert bytes(block.content).hex() == vector["real_delete_block_content_hex"]


def blocks_by_instant(name: str, partition: MetadataPartition) -> dict[str, pa.Table]:
    """The records of a partition in log blocks."""
    blocks: dict[str, list[pa.Table]] = {}
    for path, data in table_files(name).items():
        if path.startswith(f"{METADATA}{partition}/") and ".log." in path and not path.endswith(".crc"):
            for block in read_blocks(data, path):
                if block.kind is BlockKind.HFILE_DATA:
                    blocks.setdefault(block.header.instant, []).append(decoded(bytes(block.content), partition, path))
    return {instant: pa.concat_tables(parts) for instant, parts in blocks.items()}


def change_of(state: TableState, time: str) -> Change | None:
    """A commit of a table by real Hudi, as it was before it was completed."""
    for instant in state.timeline.instants:
        if instant.requested == time and instant.state is State.COMPLETED and instant.action in WRITES:
            commit = read_commit(state.storage, state.timeline, instant)
            return Change(state.storage, state.config, state.timeline, time, changes_of_commit(commit), commit)
    return None


def rows_of(records: pa.Table) -> dict[str, dict[str, Any]]:
    return {record["row"]: record for record in records.to_pylist()}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", [COLUMN_STATS, BLOOM_FILTERS], ids=lambda kind: str(kind.partition))
def test_commits_change_partitions_as_hudi_wrote_it(kind: PartitionKind, name: str) -> None:
    state = load_state(MemoryStorage(table_files(name)))
    compared = 0
    for time, theirs in blocks_by_instant(name, kind.partition).items():
        change = change_of(state, time)
        if change is None:
            continue
        ours = rows_of(kind.records(change))
        assert ours.keys() == rows_of(theirs).keys()
        for row, record in rows_of(theirs).items():
            assert ours[row] == record
            compared += 1
    has_any = str(kind.partition) in state.config.metadata_partitions
    assert compared or not has_any or "with_services" in name
