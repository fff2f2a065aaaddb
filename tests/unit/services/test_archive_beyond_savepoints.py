"""Tables whose timeline has a savepoint's commit, and none of those after it that were archived."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput, InvalidPlan

TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
OPTIONS = {
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.parquet.small.file.limit": "0",
}


def rows(key: str, ts: int) -> pa.Table:
    return pa.table({"id": [key], "ts": [ts]})


def made(path: Path, table_type: str, saved: tuple[int, ...] = (0,)) -> tuple[hoodie.HoodieTable, list[str]]:
    """A table of six commits with a row each, some of them savepoints, of which the last two and these are left."""
    table = hoodie.create_table(
        path, name="t", record_key="id", ordering="ts", table_type=table_type, options={**OPTIONS}
    )
    instants = []
    for number in range(6):
        instants.append(table.upsert(rows(f"k{number}", number)).instant)
        if number in saved:
            table.savepoint()
    left = [instants[number] for number in sorted({*saved, 4, 5})]
    assert sorted(instant.requested for instant, _ in table.history()) == left
    return table, instants


def keys(table: hoodie.HoodieTable, as_of: str | None = None) -> list[str]:
    read = table.snapshot() if as_of is None else table.as_of(as_of)
    return sorted(read.to_arrow()["id"].to_pylist())


ALL = [f"k{number}" for number in range(6)]


@TYPES
def test_what_archived_commits_after_a_savepoint_wrote_is_read_and_written(tmp_path: Path, table_type: str) -> None:
    table, _ = made(tmp_path / "t", table_type)
    assert keys(table) == ALL
    assert table.check(grace=0) == ()
    assert table.upsert(pa.table({"id": ["k0", "k2", "k9"], "ts": [9, 9, 9]})).updated == 2
    assert keys(table) == [*ALL, "k9"]


@TYPES
def test_the_past_between_is_refused(tmp_path: Path, table_type: str) -> None:
    table, instants = made(tmp_path / "t", table_type, saved=(0, 2))
    for number in (0, 2, 4, 5):
        assert keys(table, instants[number]) == ALL[: number + 1]
    for number, before in ((1, 0), (3, 2)):
        with pytest.raises(InvalidInput, match=f"after the savepoint {instants[before]}, up to {instants[3]}"):
            table.as_of(instants[number]).to_arrow()
    for number, begin in enumerate(("earliest", *instants[:4])):  # what was archived is read from the archive
        assert sorted(table.changes(begin).to_arrow()["id"].to_pylist()) == ALL[number:]
    assert sorted(table.changes(instants[0], instants[3]).to_arrow()["id"].to_pylist()) == ALL[1:4]


@TYPES
def test_a_savepoint_that_is_deleted_takes_its_commit_along(tmp_path: Path, table_type: str) -> None:
    table, instants = made(tmp_path / "t", table_type, saved=(0, 2))
    for deleted, left in ((0, [2, 4, 5]), (2, [4, 5])):
        table.delete_savepoint(instants[deleted])
        assert sorted(instant.requested for instant, _ in table.history()) == [instants[number] for number in left]
        assert keys(table) == ALL
        assert sorted(instant.requested for instant, _ in table.history(archived=True)) == instants
        assert sorted(table.changes(instants[2]).to_arrow()["id"].to_pylist()) == ALL[3:]
    assert table.check(grace=0) == ()


def test_a_savepoint_with_all_later_commits_on_the_timeline_leaves_its_commit(tmp_path: Path) -> None:
    table, instants = made(tmp_path / "t", "COPY_ON_WRITE", saved=(4,))
    table.delete_savepoint(instants[4])
    assert sorted(instant.requested for instant, _ in table.history()) == instants[4:]


def test_the_commit_that_shows_the_archived_ones_is_not_rolled_back(tmp_path: Path) -> None:
    table, _ = made(tmp_path / "t", "COPY_ON_WRITE")
    table.rollback()
    with pytest.raises(InvalidPlan, match="a timeline without a commit shows no files"):
        table.rollback()
    assert keys(table) == ALL[:5]
    other, _ = made(tmp_path / "other", "COPY_ON_WRITE", saved=(4,))
    other.rollback()
    assert keys(other) == ALL[:5]
