"""Columns altered by a commit of their own: what reads and writes make of files from before and after it."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.commit.transaction import begin
from hoodie.doctor.findings import Fault, Mend, Severity
from hoodie.errors import CorruptFile, HudiCannotRead, SchemaMismatch, UnsupportedTable, WriteConflict
from hoodie.schema.by_id import Add, Change, Comment, Drop, Move, Position, Rename, Retype
from hoodie.services.alter_columns import alter_columns
from hoodie.table.settings import Settings
from hoodie.table.state import load_state

ROWS = pa.table(
    {
        "id": ["a", "b"],
        "n": pa.array([1, 2], pa.int32()),
        "name": ["x", "y"],
        "s": [{"u": 1, "v": "p"}, {"u": 2, "v": "q"}],
        "ts": [1, 1],
    }
)


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    made = hoodie.create_table(
        tmp_path / "t", name="t", record_key="id", ordering="ts", table_type=request.param, spark=None
    )
    made.insert(ROWS)
    return made


def alter(table: HoodieTable, *changes: Change, on_read: bool = True) -> str | None:
    return alter_columns(table.storage, changes, Settings.of({}), on_read=on_read)


def rows(table: HoodieTable) -> list[dict[str, object]]:
    read = table.snapshot().to_arrow()
    named = read.select([name for name in read.column_names if not name.startswith("_hoodie_")])
    return sorted(named.to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (Rename(("n",), "two words"), r"'two words' needs another name.*'two_words'"),
        (Rename(("s", "u"), "größe"), r"'s\.größe' needs another name"),
        (Rename(("n",), "_hoodie_n"), "the table's own"),
        (Add(("1st",), pa.field("", pa.int32())), "'1st' needs another name"),
        (Add(("m",), pa.field("", pa.struct({"a b": pa.int32()}))), r"'m\.a b' needs another name"),
    ],
    ids=str,
)
def test_a_name_that_no_writer_takes_is_refused(table: HoodieTable, change: Change, problem: str) -> None:
    with pytest.raises(SchemaMismatch, match=problem):
        alter(table, change)
    table.upsert(ROWS)


def test_rows_of_before_and_after_are_one_table(table: HoodieTable) -> None:
    alter(table, Rename(("n",), "count"), Retype(("count",), pa.string()))
    alter(table, Drop(("name",)), Add(("s", "w"), pa.field("", pa.float64()), Position(after="u")))
    alter(table, Add(("name",), pa.field("", pa.int64())), Move(("name",), Position(after="id")))
    table.upsert(
        pa.table({"id": ["b"], "name": [7], "count": ["many"], "s": [{"u": 3, "w": 0.5, "v": "r"}], "ts": [2]})
    )
    assert rows(table) == [
        {"id": "a", "name": None, "count": "1", "s": {"u": 1, "w": None, "v": "p"}, "ts": 1},
        {"id": "b", "name": 7, "count": "many", "s": {"u": 3, "w": 0.5, "v": "r"}, "ts": 2},
    ]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_columns_of_tables_of_later_versions_are_altered(kind: str, version: int, tmp_path: Path) -> None:
    table = hoodie.create_table(
        tmp_path / "t",
        name="t",
        record_key="id",
        ordering="ts",
        table_type=kind,
        spark=None,
        options={"hoodie.write.table.version": version},
    )
    table.insert(ROWS)
    alter(table, Rename(("n",), "count"))
    alter(table, Drop(("s",)), Add(("more",), pa.field("", pa.int64()), Position(after="id")))
    table.upsert(pa.table({"id": ["b"], "more": [7], "count": pa.array([3], pa.int32()), "name": ["z"], "ts": [2]}))
    assert rows(table) == [
        {"id": "a", "more": None, "count": 1, "name": "x", "ts": 1},
        {"id": "b", "more": 7, "count": 3, "name": "z", "ts": 2},
    ]
    timeline = load_state(table.storage).timeline
    assert [instant.action for instant in timeline.instants if instant not in timeline.commits] == []
    assert list((tmp_path / "t/.hoodie").glob("2*")) == []  # all of them are in its folder `timeline`


@pytest.mark.parametrize("version", [6, 8, 9])
def test_columns_stay_as_they_were_altered_once_that_is_archived(version: int, tmp_path: Path) -> None:
    keep = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.cleaner.commits.retained": 1}
    options = {"hoodie.write.table.version": version, **keep}
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="name", ordering="ts", options=options)
    table.insert(ROWS)
    altered = alter(table, Rename(("n",), "count"))
    later = table.snapshot(filters="id = 'b'").to_arrow()
    for _ in range(5):
        table.upsert(later)
    assert altered not in {instant.requested for instant, _ in table.history()}
    assert [row["count"] for row in rows(table)] == [1, 2]
    alter(table, Rename(("count",), "n"))
    assert [row["n"] for row in rows(table)] == [1, 2]


@pytest.mark.parametrize("version", [8, 9])
def test_columns_are_read_by_a_history_that_hudi_1_x_names(version: int, tmp_path: Path) -> None:
    """By the instant of the ALTER and the time of its completion."""
    options = {"hoodie.write.table.version": version}
    table = hoodie.create_table(tmp_path / "t", record_key="id", ordering="ts", options=options)
    table.insert(ROWS)
    instant = alter(table, Rename(("n",), "count"))
    folder = tmp_path / "t/.hoodie/.schema"
    (own,) = folder.glob("*.schemacommit")
    own.rename(folder / f"{instant}_{int(str(instant)) + 5}.schemacommit")
    assert [row["count"] for row in rows(table)] == [1, 2]
    alter(table, Rename(("count",), "n"))
    assert [row["n"] for row in rows(table)] == [1, 2]


def test_versions_are_kept_newest_first_as_hudi_keeps_them(table: HoodieTable, tmp_path: Path) -> None:
    instants = [alter(table, Rename((old,), new)) for old, new in (("n", "m"), ("m", "o"))]
    folder = tmp_path / "t/.hoodie/.schema"
    newest = json.loads((folder / f"{instants[1]}.schemacommit").read_text())["schemas"]
    assert [version["version_id"] for version in newest] == [int(str(instants[1])), int(str(instants[0])), 0]
    assert [[column["name"] for column in version["fields"]][6] for version in newest] == ["o", "m", "n"]
    action = "commit" if table.storage.exists(f".hoodie/{instants[0]}.commit") else "deltacommit"
    commit = json.loads((tmp_path / f"t/.hoodie/{instants[0]}.{action}").read_text())
    assert commit["operationType"] == "ALTER_SCHEMA"
    assert commit["partitionToWriteStats"] == {}
    assert json.loads(commit["extraMetadata"]["latest_schema"]) == newest[1]


def test_columns_at_the_end_wider_numbers_and_comments_go_without_ids(table: HoodieTable, tmp_path: Path) -> None:
    changes = [Add(("more",), pa.field("", pa.string())), Retype(("n",), pa.int64()), Comment(("name",), "who")]
    assert alter(table, *changes, on_read=False)
    assert not (tmp_path / "t/.hoodie/.schema").exists()
    row = {"id": ["b"], "n": [2**40], "name": ["z"], "s": [{"u": 2, "v": "q"}], "ts": [2], "more": ["m"]}
    table.upsert(pa.table(row))
    assert [(row["n"], row["name"], row["more"]) for row in rows(table)] == [(1, "x", None), (2**40, "z", "m")]


def test_what_is_so_already_makes_no_commit(table: HoodieTable) -> None:
    assert alter(table, Comment(("name",), "who"))
    assert alter(table, Comment(("name",), "who")) is None


def test_a_change_that_needs_ids_is_refused_where_readers_may_not_know_them(table: HoodieTable) -> None:
    commits = len(table.history())
    for change in (Rename(("n",), "m"), Drop(("n",)), Retype(("n",), pa.string()), Move(("n",), Position(after="ts"))):
        with pytest.raises(UnsupportedTable, match=r"hoodie\.schema\.on\.read\.enable=true"):
            alter(table, change, on_read=False)
    with pytest.raises(SchemaMismatch, match="no column nothing"):
        alter(table, Drop(("nothing",)))
    assert len(table.history()) == commits
    assert rows(table) == ROWS.to_pylist()


def test_a_column_of_a_type_without_a_word_stays_where_others_change(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", spark=None)
    with pytest.warns(HudiCannotRead):
        table.insert(pa.table({"id": ["a"], "at": pa.array([5], pa.timestamp("us"))}))
    before = rows(table)
    assert alter(table, Comment(("id",), "key"), on_read=False)
    assert rows(table) == before
    with pytest.raises(SchemaMismatch, match="keeps no id for"):
        alter(table, Rename(("at",), "when"))


def test_columns_that_another_writer_changes_meanwhile_are_not_taken_back(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin_late(*arguments: Any, **named: Any) -> Any:
        table.upsert(ROWS.append_column("more", pa.array([1, 2])))
        return begin(*arguments, **named)

    monkeypatch.setattr("hoodie.services.alter_columns.begin", begin_late)
    with pytest.raises(WriteConflict):
        alter(table, Rename(("n",), "m"))
    assert {"n", "more"} <= rows(table)[0].keys()
    assert not load_state(table.storage).timeline.pending()


def test_a_lost_version_of_the_columns_is_missed(table: HoodieTable) -> None:
    """Files written since would be read by the version before: as nulls, which a write would keep."""
    alter(table, Rename(("n",), "m"))
    newest = alter(table, Rename(("m",), "count"))
    table.upsert(ROWS.rename_columns(["id", "count", "name", "s", "ts"]).slice(0, 1))
    table.storage.delete(f".hoodie/.schema/{newest}.schemacommit")
    again = HoodieTable(storage=table.storage)
    lost = rf"lacks version {newest} of the columns.*Restore"
    with pytest.raises(CorruptFile, match=lost):
        rows(again)
    with pytest.raises(CorruptFile, match=lost):
        again.upsert(ROWS.rename_columns(["id", "count", "name", "s", "ts"]))
    (finding,) = again.check(grace=0)
    assert finding.severity is Severity.ERROR
    assert f"lacks version {newest}" in finding.problem


@pytest.mark.parametrize("harm", ["cut", "empty", "gone"])
def test_a_damaged_history_of_the_columns_is_written_anew(table: HoodieTable, harm: str, tmp_path: Path) -> None:
    alter(table, Rename(("n",), "m"))
    newest = alter(table, Rename(("m",), "count"), Rename(("s", "u"), "w"))
    table.upsert(
        pa.table({"id": ["a"], "count": pa.array([5], pa.int32()), "name": ["z"], "s": [{"w": 3, "v": "r"}], "ts": [2]})
    )
    before = rows(table)
    file = tmp_path / f"t/.hoodie/.schema/{newest}.schemacommit"
    whole = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(whole[: len(whole) // 2] if harm == "cut" else b"")
    again = hoodie.open_table(tmp_path / "t")
    with pytest.raises(CorruptFile, match=r"`hoodie check --repair` writes it anew"):
        rows(again)
    (finding,) = again.check(grace=0)
    assert (finding.fault, finding.remedy and finding.remedy.mend) == (Fault.COLUMNS, Mend.COLUMNS)
    assert len(again.repair(grace=0)) == 1
    assert json.loads(file.read_bytes()) == json.loads(whole)
    assert not again.check(grace=0)
    assert rows(hoodie.open_table(tmp_path / "t")) == before


def test_a_version_of_the_columns_that_nothing_has_is_not_made_up(table: HoodieTable, tmp_path: Path) -> None:
    alter(table, Rename(("n",), "m"))
    alter(table, Rename(("m",), "count"))
    for file in (tmp_path / "t/.hoodie/.schema").glob("*.schemacommit"):
        file.write_bytes(b"")
    first = table.history()[-1][0]
    (completed,) = (tmp_path / "t/.hoodie").glob(f"{first.requested}.*commit")
    completed.write_bytes(b"")
    again = hoodie.open_table(tmp_path / "t")
    (finding,) = (finding for finding in again.check(grace=0) if finding.fault is Fault.COLUMNS)
    assert finding.remedy is None
    assert "version 0" in finding.advice
