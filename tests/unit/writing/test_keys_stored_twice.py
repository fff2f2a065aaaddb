"""Updates and deletes of keys of which a base file has several rows, as a bulk insert of duplicates leaves them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.formats.log.blocks import HeaderKey, read_blocks
from hoodie.formats.log.content import decode_positions
from hoodie.table.state import load_state
from support.by_position import rows_by_position
from support.scans import plan_scan

VERSIONS = ("6", "8", "9")
RULES = {
    "commit time": {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    },
    "event time": {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
}
Rows = list[tuple[str, int, int]]


def rows(*given: tuple[str, int, int]) -> pa.Table:
    keys, times, numbers = zip(*given, strict=True)
    return pa.table({"id": list(keys), "ts": pa.array(times, pa.int64()), "n": pa.array(numbers, pa.int64())})


def new(path: Path, version: str, rule: str = "event time") -> hoodie.HoodieTable:
    options = {**RULES[rule], "hoodie.write.table.version": version}
    return hoodie.create_table(
        path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=options
    )


def shown(table: hoodie.HoodieTable) -> Rows:
    """The rows of a snapshot, the same by both ways of reading."""
    merged = ordered(table.snapshot().to_arrow())
    assert ordered(rows_by_position(plan_scan(load_state(table.storage)))) == merged
    return merged


def ordered(found: pa.Table) -> Rows:
    return sorted((row["id"], row["ts"], row["n"]) for row in found.to_pylist())


def positions(table: hoodie.HoodieTable, path: Path) -> list[list[int] | None]:
    """Those that the log blocks tell, file by file."""
    blocks = (block for log in path.glob(".*.log.*") for block in read_blocks(log.read_bytes(), log.name))
    texts = [block.header.get(HeaderKey.RECORD_POSITIONS) for block in blocks]
    decoded = [None if text is None else decode_positions(text) for text in texts]
    return sorted((None if found is None else found.tolist() for found in decoded), key=lambda found: found or [])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rule", RULES)
def test_logs_tell_each_row_of_a_key(tmp_path: Path, version: str, rule: str) -> None:
    """As Hudi 1.x writes them, whose readers leave the other rows as they are."""
    table = new(tmp_path, version, rule)
    table.bulk_insert(rows(("a", 1, 1), ("b", 1, 3), ("a", 1, 2), ("c", 1, 4)))
    table.upsert(rows(("a", 5, 9), ("c", 5, 9)))
    assert positions(table, tmp_path) == [[0, 2, 3]]
    assert shown(table) == [("a", 5, 9), ("a", 5, 9), ("b", 1, 3), ("c", 5, 9)]
    table.delete(["a"])
    assert positions(table, tmp_path) == [[0, 2], [0, 2, 3]]
    assert shown(table) == [("b", 1, 3), ("c", 5, 9)]
    table.compact()
    assert shown(table) == [("b", 1, 3), ("c", 5, 9)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_key_of_two_file_groups_has_the_positions_of_each(tmp_path: Path, version: str) -> None:
    table = new(tmp_path, version)
    table.bulk_insert(rows(("b", 1, 3), ("a", 1, 1), ("a", 1, 2)))
    table.bulk_insert(rows(("a", 1, 5), ("c", 1, 4)))
    table.upsert(rows(("a", 5, 9), ("c", 5, 9)))
    assert positions(table, tmp_path) == [[0, 1], [1, 2]]
    assert shown(table) == [*[("a", 5, 9)] * 3, ("b", 1, 3), ("c", 5, 9)]


def test_a_key_that_one_of_its_file_groups_has_in_a_log_alone_is_not_lost(tmp_path: Path) -> None:
    table = new(tmp_path, "8")
    table.bulk_insert(rows(("b", 1, 3), ("a", 1, 1)))
    table.upsert(rows(("a", 2, 2)))
    table.bulk_insert(rows(("a", 3, 5), ("c", 1, 4)))
    table.delete(["a"])
    assert shown(table) == [("b", 1, 3), ("c", 1, 4)]
    table.upsert(rows(("a", 7, 7)))
    assert shown(table)[:1] == [("a", 7, 7)]


class Sum:
    """A rule that does not give the same row when it merges a row twice."""

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        at = newer.schema.get_field_index("n")
        return newer.set_column(at, "n", pc.add(older["n"], newer["n"]))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_merger_meets_a_repeated_row_of_a_log_once(tmp_path: Path, version: str) -> None:
    merger = {"hoodie.datasource.write.record.merger.impls": f"{__name__}:Sum"}
    options = {"hoodie.write.table.version": version, **merger}
    settings = {"name": "t", "record_key": "id", "ordering": "ts", "table_type": "MERGE_ON_READ"}
    table = hoodie.create_table(tmp_path, **settings, options=options)
    table.bulk_insert(rows(("a", 1, 1), ("b", 1, 3), ("a", 1, 20)))
    for number in (100, 200):
        table.upsert(rows(("a", 5, number)))
    assert positions(table, tmp_path) == [[0, 2], [0, 2]]
    assert ordered(table.snapshot().to_arrow()) == [("a", 5, 301), ("a", 5, 320), ("b", 1, 3)]
    table.compact()
    assert ordered(table.snapshot().to_arrow()) == [("a", 5, 301), ("a", 5, 320), ("b", 1, 3)]
