"""Tables whose columns Hudi renamed, retyped, moved, dropped and added again: all reads have Hudi's rows."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.doctor.findings import Mend
from hoodie.errors import CorruptFile, UnsupportedTable, WriteConflict
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit
from hoodie.reading.snapshot import read_scan
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.altered_tables import NAMES, comparable, reads, snapshot, unpack
from support.nightly import by_day
from support.scans import plan_scan

SEVERAL = {
    "hoodie.auto.commit": "false",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}


@pytest.mark.parametrize("name", by_day(NAMES, lambda name: "compacted" not in name))
def test_every_read_of_altered_columns_has_hudis_rows(name: str, tmp_path: Path) -> None:
    state = load_state(LocalStorage(unpack(name, tmp_path)))
    count = 0
    for kind, arguments, rows in reads(name):
        scan = plan_scan(state, kind, **arguments)  # type: ignore[arg-type]
        assert comparable(read_scan(scan)) == rows, (kind, arguments)
        count += 1
    assert count > 10


def test_filters_columns_and_keys_go_by_the_names_and_types_of_now(tmp_path: Path) -> None:
    types = hoodie.open_table(unpack("cow_types", tmp_path))
    rows = types.snapshot(columns=["amount", "id"], filters="amount = '13'").to_arrow()
    assert rows.to_pylist() == [{"amount": "13", "id": "k3"}]
    assert types.snapshot(filters="d = '2024-01-03'", meta=True).to_arrow().column("id").to_pylist() == ["k3"]
    columns = hoodie.open_table(unpack("cow_columns", tmp_path))
    found = columns.snapshot(columns=["a", "old_a", "b"], filters="a = 1.5").to_arrow()
    assert found.to_pylist() == [{"a": 1.5, "old_a": 1, "b": 77}]
    client = hoodie.hudi.HoodieReadClient(unpack("mor_columns", tmp_path))
    keyed = client.read(pa.table({"id": ["k1", "k2"]}), columns=["id", "a", "b", "s"]).rows
    wanted = [row for row in snapshot("mor_columns") if row["_hoodie_record_key"] in ("k1", "k2")]
    assert sorted(keyed.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {name: row[name] for name in ("id", "a", "b", "s")} for row in wanted
    ]


def test_the_files_of_altered_columns_are_not_handed_to_readers_of_parquet(tmp_path: Path) -> None:
    path = unpack("cow_types", tmp_path)
    with pytest.raises(UnsupportedTable, match="schema-on-read"):
        _ = hoodie.open_table(path).scan().files
    assert hoodie.open_table(path).scan(columns=["id", "ts"]).files  # columns that no file has in another way


@pytest.mark.parametrize("name", ["cow_types", "mor_types", "cow_columns", "mor_columns", "mor_planned"])
def test_writes_carry_the_columns_ids_on(name: str, tmp_path: Path) -> None:
    table = hoodie.open_table(unpack(name, tmp_path))
    model = {row["id"]: row for row in user_rows(table)}
    typed = user_columns(table)
    changed = {**typed.filter(pa.compute.equal(typed["id"], "k1")).to_pylist()[0], "ts": 20}
    added = {**changed, "id": "k9", "ts": 21}
    table.upsert(pa.Table.from_pylist([changed, added], schema=typed.schema))
    table.delete(pa.Table.from_pylist([row for row in typed.to_pylist() if row["id"] == "k3"], schema=typed.schema))
    model |= {"k1": {**model["k1"], "ts": 20}, "k9": {**model["k1"], "ts": 21, "id": "k9"}}
    del model["k3"]
    assert user_rows(table) == [model[key] for key in sorted(model)]
    if name.startswith("mor"):
        if name != "mor_planned":  # which has a plan
            table.schedule_compaction()
        table.compact()
        assert user_rows(table) == [model[key] for key in sorted(model)]
    commits = load_state(LocalStorage(str(table.path)))
    newest = {version(commit.extra.get("latest_schema")) for commit in commits.recent_commits(2)}
    assert newest == {max(history(table))}


def test_a_compaction_that_is_older_than_the_columns_keeps_every_row(tmp_path: Path) -> None:
    table = hoodie.open_table(unpack("mor_planned", tmp_path))
    before = comparable(table.snapshot(meta=True).to_arrow())
    assert before == snapshot("mor_planned")
    instant = table.compact()
    assert instant is not None
    assert comparable(table.snapshot(meta=True).to_arrow()) == before
    plan = next(file.name[:17] for file in (tmp_path / "mor_planned" / ".hoodie").glob("*.compaction.requested"))
    (file,) = (tmp_path / "mor_planned").rglob(f"*_{plan}.parquet")
    assert int(plan) < min(number for number in history(table) if number)
    # It has the columns of its instant, by which it is read even when its commit is archived.
    names = pq.read_schema(file).names
    assert ("a" in names, "amount" in names) == (True, False)
    assert "latest_schema" not in (tmp_path / "mor_planned" / ".hoodie" / f"{plan}.commit").read_text()


def test_a_write_that_changes_altered_columns_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = hoodie.open_table(unpack("cow_columns", tmp_path))
    before = digests(tmp_path)
    rows = user_columns(table)
    wider = rows.set_column(rows.column_names.index("b"), "b", rows["b"].cast(pa.int64()))
    for changing, column in ((rows.append_column("more", rows["id"]), "more"), (wider, "b")):
        with pytest.raises(UnsupportedTable, match=rf"altered by Hudi .* would change {column}\."):
            table.upsert(changing)
    assert digests(tmp_path) == before


def test_an_alter_beside_a_write_is_a_conflict_even_where_names_and_types_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "cow_columns"
    table = hoodie.open_table(unpack("cow_columns", tmp_path))
    client = hoodie.hudi.HoodieWriteClient(str(path), SEVERAL)
    instant = client.start_commit()
    typed = user_columns(table)
    result = client.upsert(typed.slice(0, 1), instant)
    drop_and_add_again(path, "b")
    with pytest.raises(WriteConflict, match="columns changed"):
        client.commit(instant, result)


def test_a_missing_history_of_the_columns_is_damage(tmp_path: Path) -> None:
    path = unpack("mor_types", tmp_path)
    for file in (Path(path) / ".hoodie" / ".schema").iterdir():
        file.unlink()
    with pytest.raises(CorruptFile, match=r"altered .* no history"):
        hoodie.open_table(path).snapshot(meta=True).to_arrow()


@pytest.mark.parametrize("text", [b"\xff", b"[]", b"{}", b'{"schemas": [{}]}', b'{"schemas": [{"version_id": 1}]}'])
def test_a_damaged_history_of_the_columns_is_named(tmp_path: Path, text: bytes) -> None:
    path = unpack("mor_types", tmp_path)
    newest = max((Path(path) / ".hoodie" / ".schema").glob("*.schemacommit"))
    newest.write_bytes(text)
    with pytest.raises(CorruptFile, match=newest.name):
        hoodie.open_table(path).snapshot(meta=True).to_arrow()


def test_the_history_of_a_write_that_failed_does_not_count(tmp_path: Path) -> None:
    path = unpack("mor_types", tmp_path)
    (Path(path) / ".hoodie" / ".schema" / "20991231000000000.schemacommit").write_text("half")
    assert comparable(hoodie.open_table(path).snapshot(meta=True).to_arrow()) == snapshot("mor_types")


def user_columns(table: HoodieTable[Any]) -> pa.Table:
    rows = table.snapshot(meta=True).to_arrow()
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])


def user_rows(table: HoodieTable[Any]) -> list[dict[str, Any]]:
    return sorted(user_columns(table).to_pylist(), key=lambda row: str(row["id"]))


def version(text: str | None) -> int:
    return int(json.loads(text or "{}").get("version_id", -1))


def history(table: HoodieTable[Any]) -> list[int]:
    newest = max((Path(table.path) / ".hoodie" / ".schema").glob("*.schemacommit"))
    return [item["version_id"] for item in json.loads(newest.read_text())["schemas"]]


def digests(path: Path) -> dict[str, str]:
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in path.rglob("*") if file.is_file()}


def drop_and_add_again(path: Path, name: str) -> None:
    """As Hudi's ALTER TABLE, drop and add: the column has another id then."""
    last = max((path / ".hoodie").glob("*.commit"))
    commit = decode_commit(last.read_bytes(), last.name)
    latest = json.loads(commit.extra["latest_schema"])
    at = int(last.name[:17]) + 1
    latest |= {"version_id": at, "max_column_id": latest["max_column_id"] + 1}
    for field in latest["fields"]:
        field["id"] = latest["max_column_id"] if field["name"] == name else field["id"]
    extra = {**commit.extra, "latest_schema": json.dumps(latest)}
    old = json.loads(max((path / ".hoodie" / ".schema").glob("*.schemacommit")).read_text())
    (path / ".hoodie" / ".schema" / f"{at}.schemacommit").write_text(json.dumps({"schemas": [latest, *old["schemas"]]}))
    altered = type(commit)(operation=type(commit.operation).ALTER_SCHEMA, extra=extra)
    for suffix, data in ((".requested", b""), ("", encode_commit(altered))):
        (path / ".hoodie" / f"{at}.commit{suffix}").write_bytes(data)
    (path / ".hoodie" / f"{at}.inflight").write_bytes(b"")


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("name", by_day(NAMES, lambda name: "compacted" not in name))
def test_a_repair_writes_the_history_of_the_columns_as_hudi_had_it(name: str, every: bool, tmp_path: Path) -> None:
    path = Path(unpack(name, tmp_path))
    files = sorted(path.glob(".hoodie/.schema/*.schemacommit"))
    history = json.loads(files[-1].read_bytes())
    for file in files if every else files[-1:]:
        file.write_bytes(b"")
    table = hoodie.open_table(path)
    (remedy,) = table.repair(grace=0)
    assert remedy.mend is Mend.COLUMNS
    assert json.loads(files[-1].read_bytes()) == history
    assert comparable(hoodie.open_table(path).to_arrow(meta=True)) == snapshot(name)
