"""Logs that tell the positions of their rows: what is written, who reads it, and that by position rows are the same."""

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.formats.log.blocks import HeaderKey, LogBlock, read_blocks
from hoodie.formats.log.content import decode_positions
from hoodie.reading.snapshot import read_scan
from hoodie.storage.local import LocalStorage
from hoodie.testing.tables import ArrowTable
from support.by_position import rows_by_position
from support.oracles import assert_same_rows, read_hudi_rs
from support.scans import plan_scan
from support.trips import TRIPS

OPTIONS = {
    **TRIPS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "SIMPLE",
    "hoodie.parquet.small.file.limit": 0,
}


def batch(ids: range, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:04d}" for number in ids],
            "city": ["oslo" if number % 2 else "rome" for number in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "fare": pa.array([float(ts * number) for number in ids]),
        }
    )


def written(path: Path, **options: object) -> ArrowTable:
    table = ArrowTable.create(LocalStorage(path), {**OPTIONS, **options})
    table.upsert(batch(range(1000), 1))
    table.upsert(batch(range(700, 100, -7), 2))
    table.upsert(batch(range(3, 1000, 50), 3))
    table.delete(batch(range(5, 1000, 90), 4).select(["id", "city"]))
    return table


def blocks_of(table: ArrowTable) -> list[LogBlock]:
    logs = [log for slice_ in table.slices() for log in slice_.logs]
    return [block for log in logs for block in read_blocks(table.storage.read(log.path), log.path)]


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_logs_with_positions_read_the_same_by_key_by_position_and_in_hudi_rs(
    tmp_path: Path, index: str, block_format: str
) -> None:
    table = written(tmp_path / "t", **{"hoodie.index.type": index, "hoodie.logfile.data.block.format": block_format})
    found = [block.header.get(HeaderKey.RECORD_POSITIONS) for block in blocks_of(table)]
    assert len(found) == 4
    for text in found:
        positions = None if text is None else decode_positions(text)
        assert positions is not None
        assert len(positions)
    assert all(
        block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) is None for block in blocks_of(table)
    )
    scan = plan_scan(table.state())
    rows = read_scan(scan)
    assert_same_rows(rows_by_position(scan), rows)
    assert_same_rows(read_hudi_rs(tmp_path / "t"), rows)


def test_the_flag_leaves_positions_out(tmp_path: Path) -> None:
    table = written(tmp_path / "t", **{"hoodie.write.record.positions": "false"})
    assert [block.header.get(HeaderKey.RECORD_POSITIONS) for block in blocks_of(table)] == [None] * 4
    scan = plan_scan(table.state())
    assert_same_rows(rows_by_position(scan), read_scan(scan))
