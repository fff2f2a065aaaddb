"""A damaged log has one finding, and the way out that it names gives the rows back, or keeps those that are there."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.doctor.findings import Fault, Finding, Severity
from hoodie.errors import CorruptFile, DamagedLog

EachVersion = pytest.mark.parametrize("version", ["6", "9"])
COMPACT = {"hoodie.compact.inline.max.delta.commits": "1"}


def three_commits(path: Path, version: str, metadata: str = "false") -> tuple[HoodieTable[Rows], Path]:
    """A base file and two logs; the newer log."""
    options = {"hoodie.write.table.version": version, "hoodie.compact.inline": "false"}
    options["hoodie.metadata.enable"] = metadata
    table = hoodie.create_table(path, record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=options)
    for number in range(3):
        table.upsert(pa.table({"id": ["a", "b", "c"][number:], "ts": [number] * (3 - number)}))
    return table, sorted(path.glob(".*.log.*"))[-1]


def rows(table: HoodieTable[Rows]) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in table.to_arrow(columns=["id", "ts"]).to_pylist())


def damage(log: Path, how: str) -> None:
    data = bytearray(log.read_bytes())
    if how == "cut":
        data = data[: len(data) // 2]
    elif how == "empty":
        data = bytearray()
    elif how == "grown":  # no block begins there, so that the one before counts as damaged
        data += b"garbage"
    else:
        data[{"magic": 0, "length": 7, "header": 30}[how]] ^= 0xFF
    log.write_bytes(data)


def only(table: HoodieTable[Rows]) -> Finding:
    (finding,) = table.check(grace=0)
    return finding


@EachVersion
@pytest.mark.parametrize("how", ["cut", "empty", "grown", "magic", "length", "header"])
@pytest.mark.filterwarnings("ignore::hoodie.errors.DamagedLog")
def test_published_rows_come_back_from_a_copy_and_not_by_a_compaction(version: str, how: str, tmp_path: Path) -> None:
    table, log = three_commits(tmp_path / "t", version)
    whole, right = log.read_bytes(), rows(table)
    damage(log, how)
    finding = only(table)
    assert (finding.severity, finding.where) == (Severity.ERROR, log.name)
    assert "restore it from a copy of the table" in finding.advice.lower()
    assert "compact the slice" not in finding.advice
    log.write_bytes(whole)
    assert not table.check(grace=0)
    assert rows(table) == right


@EachVersion
@pytest.mark.parametrize("how", ["cut", "empty", "grown", "magic", "length", "header"])
def test_no_compaction_leaves_published_rows_out(version: str, how: str, tmp_path: Path) -> None:
    table, log = three_commits(tmp_path / "t", version)
    whole, right = log.read_bytes(), rows(table)
    assert table.schedule_compaction(options=COMPACT)
    damage(log, how)
    with pytest.raises(CorruptFile) as refusal:
        table.compact()
    assert refusal.value.path == log.name
    log.write_bytes(whole)
    assert table.compact()
    assert rows(table) == right
    assert not table.check(grace=0)


@EachVersion
@pytest.mark.parametrize("how", ["magic", "length", "header"])
@pytest.mark.filterwarnings("ignore::hoodie.errors.DamagedLog")
def test_a_rollback_is_advised_where_it_helps(version: str, how: str, tmp_path: Path) -> None:
    table, log = three_commits(tmp_path / "t", version)
    damage(log, how)
    advised = "roll its commit back" in only(table).advice
    table.rollback()
    assert advised == (not table.check(grace=0))
    if advised:
        assert rows(table) == [("a", 0), ("b", 1), ("c", 1)]


@EachVersion
@pytest.mark.parametrize("rest", [3, 20, 400])
def test_what_a_dead_writer_appended_goes_by_a_compaction(version: str, rest: int, tmp_path: Path) -> None:
    table, log = three_commits(tmp_path / "t", version)
    right = rows(table)
    log.write_bytes(log.read_bytes() + log.read_bytes()[:rest])
    finding = only(table)
    assert (finding.severity, finding.fault) == (Severity.WARNING, Fault.DAMAGED)
    assert "compact the slice" in finding.advice
    table.schedule_compaction(options=COMPACT)
    with pytest.warns(DamagedLog):
        table.compact()
    assert not table.check(grace=0)
    assert rows(table) == right


@EachVersion
def test_a_block_of_a_commit_behind_what_was_published_is_found(version: str, tmp_path: Path) -> None:
    table, log = three_commits(tmp_path / "t", version)
    log.write_bytes(log.read_bytes() * 2)
    finding = only(table)
    assert (finding.severity, finding.fault, finding.where) == (Severity.ERROR, Fault.SIZE, log.name)


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("rest", [0, 0.5])
@pytest.mark.filterwarnings("ignore::hoodie.errors.DamagedLog")
def test_a_log_that_is_shorter_than_it_was_published_is_not_read_nor_written_to(
    version: str, metadata: str, rest: float, tmp_path: Path
) -> None:
    """Hudi 0.15 and 1.2 read the older rows and say nothing."""
    table, log = three_commits(tmp_path / "t", version, metadata)
    whole, right = log.read_bytes(), rows(table)
    log.write_bytes(whole[: int(len(whole) * rest)])
    table = hoodie.open_table(tmp_path / "t")
    files = sorted((tmp_path / "t").iterdir())
    for act in (rows, lambda table: table.upsert(pa.table({"id": ["a"], "ts": [9]}))):
        with pytest.raises(CorruptFile, match=rf"{log.name}: it has {log.stat().st_size} bytes, and .*published"):
            act(table)
    assert sorted((tmp_path / "t").iterdir()) == files
    ignoring = table.snapshot(options={"hoodie.read.ignore.missing.files": "true"})
    assert ignoring.to_arrow().num_rows == 3
    log.write_bytes(whole)
    assert rows(table) == right
