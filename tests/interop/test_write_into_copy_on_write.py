"""Copy-on-Write tables that Hudi wrote go on being good tables after the library wrote into them, or refuse it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie import HoodieTable, WriteResult, open_table
from hoodie.errors import InvalidOption, TableMismatch, UnsupportedTable
from hoodie.formats.parquet.base_footer import read_footer
from hoodie.formats.parquet.bloom import might_contain
from hoodie.formats.timeline.commit_json import decode_commit
from support.oracles import META, assert_same_rows, expected_rows, fixture_facts, fixture_names, read_hudi_rs

Unpack = Callable[[str], Path]


@dataclass(frozen=True)
class Case:
    """A table that may be written.

    key      `_hoodie_record_key` of the row that is updated; None: the first of the table
    new_key  columns of the row that is inserted, and its record key
    change   columns of both rows that get other values
    """

    new_key: Mapping[str, Any]
    new_record_key: str
    change: Mapping[str, Any]
    key: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


BY_ID = Case({"id": "new"}, "new", {"qty": 4242, "note": "geändert"})
PUBLIC = Case({"id": 99}, "99", {"intField": 4242, "name": "Zoë"})
#: On Copy-on-Write Hudi leaves the payload class to the options of each write.
EVENT_TIME = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
TIMES = {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"}

CASES = {
    "cow_archived": BY_ID,
    "cow_clustering": BY_ID,
    "cow_cdc": BY_ID,
    "cow_complex_key_hive_style": Case({"id": "new"}, "id:new,shop:0", {"qty": 4242}, "id:k00000,shop:0"),
    "cow_event_time": Case({"id": "new"}, "new", {"qty": 4242, "ts": 10**9}, options=EVENT_TIME),
    "cow_insert_overwrite": BY_ID,
    "cow_metadata_table": Case(BY_ID.new_key, "new", BY_ID.change, options={"hoodie.metadata.enable": "false"}),
    "cow_savepoint": BY_ID,
    "cow_schema_evolution": Case({"id": "new"}, "new", {"qty": 4242, "extra": "more"}),
    "cow_soft_delete_flag": BY_ID,
    "cow_types": Case({"id": "new"}, "new", {"c_int": 4242, "c_str": "geändert", "c_bin": b"\x00\xff"}, "t0011"),
    "cow_upserts_delete": BY_ID,
    "cow_url_encoded": BY_ID,
    "v6_cow_complexkeygen_hivestyle": Case(
        {"id": 99, "name": "Zoë"}, "id:99,name:Zoë", {"intField": 4242}, "id:1,name:Alice"
    ),
    "v6_cow_nonpartitioned": PUBLIC,
    "v6_cow_overwrite_table": PUBLIC,
    "v6_cow_simplekeygen": PUBLIC,
    "v6_cow_timestamp_keygen": Case(PUBLIC.new_key, "99", PUBLIC.change, options=TIMES),
}

REFUSED = {
    "cow_no_meta_fields": "hoodie.populate.meta.fields=false.* read only",
    "v5_cow_nonpartitioned": "table version 5 can be read, but only 6, 8, 9 are written",
}
LATER = ("v8_cow_simplekeygen", "v9_cow_txns")


def test_each_copy_on_write_table_is_written_or_refused() -> None:
    assert {*CASES, *REFUSED, *LATER} == {name for name in fixture_names() if "cow" in name}


@pytest.mark.parametrize("name", CASES)
def test_an_upsert_changes_one_row_and_adds_one(name: str, fixture_table: Unpack) -> None:
    path, case = fixture_table(name), CASES[name]
    before = expected_rows(name)
    table = open_table(str(path), options=case.options)
    key = case.key or before.column("_hoodie_record_key")[0].as_py()
    result = table.upsert(changed_and_new(table, key, case))

    assert (result.inserted, result.updated, result.deleted) == (1, 1, 0)
    after = assert_read_alike(table)
    row = row_of(before, key)
    updated, new = row_of(after, key), row_of(after, case.new_record_key)
    assert user_values(updated) == user_values(row) | dict(case.change)
    assert user_values(new) == user_values(row) | dict(case.change) | dict(case.new_key)
    assert updated["_hoodie_partition_path"] == new["_hoodie_partition_path"] == row["_hoodie_partition_path"]
    assert updated["_hoodie_commit_time"] == new["_hoodie_commit_time"] == result.instant
    written = pc.is_in(after.column("_hoodie_record_key"), pa.array([key, case.new_record_key]))
    others = before.filter(pc.not_equal(before.column("_hoodie_record_key"), key))
    assert_same_rows(after.filter(pc.invert(written)), others, ignore=["_hoodie_file_name"])
    assert_files_are_sound(path, result)
    assert_commit_tells_of(path, result)


def test_a_refused_table_keeps_its_metadata_table(fixture_table: Unpack) -> None:
    path = fixture_table("cow_metadata_table")
    properties = path / ".hoodie/hoodie.properties"
    bad = "cdc.enabled=true\nhoodie.table.cdc.supplemental.logging.mode=ALL"
    properties.write_text(without_checksum(properties.read_text()).replace("cdc.enabled=false", bad))
    files = contents(path)
    table = open_table(str(path), options={"hoodie.metadata.enable": "false"})
    with pytest.raises(UnsupportedTable, match="cdc"):
        table.upsert(table.snapshot())
    assert contents(path) == files


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_this_library_would_harm_is_refused(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    files = contents(path)
    table = open_table(str(path))
    with pytest.raises(UnsupportedTable, match=f"(?s){REFUSED[name]}"):
        table.upsert(table.snapshot())
    assert contents(path) == files


@pytest.mark.filterwarnings("ignore::hoodie.errors.MetadataTableDropped")
@pytest.mark.parametrize("name", LATER)
def test_a_table_of_a_later_version_gets_its_rows_once_more(name: str, fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table(name)))
    before = table.snapshot().to_arrow()
    assert table.upsert(before).updated == before.num_rows
    assert_same_rows(table.snapshot().to_arrow(), before)


def test_the_metadata_table_goes_before_the_first_write_without_it(fixture_table: Unpack) -> None:
    path = fixture_table("cow_metadata_table")
    assert (path / ".hoodie/metadata/.hoodie/hoodie.properties").exists()
    table = open_table(str(path), options={"hoodie.metadata.enable": "false"})
    table.upsert(table.snapshot().to_arrow().slice(0, 1))
    assert not (path / ".hoodie/metadata").exists()
    properties = (path / ".hoodie/hoodie.properties").read_text()
    assert not [line for line in properties.splitlines() if line.startswith("hoodie.table.metadata.partitions")]
    assert "hoodie.table.recordkey.fields=id" in properties
    # From then on every writer may write, and hudi-rs lists folders.
    open_table(str(path)).upsert(table.snapshot().to_arrow().slice(0, 1))
    assert_read_alike(table)


def test_rows_that_are_late_by_event_time_lose(fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table("cow_event_time")), options=EVENT_TIME)
    stored = {row["id"]: row for row in expected_rows("cow_event_time").to_pylist()}
    late, equal, newer = "k00000", "k00001", "k00002"
    moved = [
        changed(rows_of(table, key), {"ts": stored[key]["ts"] + by, "note": "written again"})
        for key, by in ((late, -1), (equal, 0), (newer, 1))
    ]
    result = table.upsert(pa.concat_tables(moved))
    assert (result.inserted, result.deleted) == (0, 0)
    after = assert_read_alike(table)
    assert user_values(row_of(after, late)) == user_values(stored[late])
    assert row_of(after, late)["_hoodie_commit_time"] == stored[late]["_hoodie_commit_time"]
    assert user_values(row_of(after, equal)) == user_values(stored[equal]) | {"note": "written again"}
    assert user_values(row_of(after, newer)) == user_values(stored[newer]) | {
        "note": "written again",
        "ts": stored[newer]["ts"] + 1,
    }


def test_the_last_write_wins_where_the_payload_is_the_default(fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table("cow_upserts_delete")))
    table.upsert(changed(rows_of(table, "k00000"), {"ts": 1, "note": "late"}))
    row = row_of(assert_read_alike(table), "k00000")
    assert (row["ts"], row["note"]) == (1, "late")


def test_the_delete_flag_of_a_row_deletes(fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table("cow_soft_delete_flag")))
    before = expected_rows("cow_soft_delete_flag")
    gone, stays, absent = "k00000", "k00001", "never there"
    deleted = changed(rows_of(table, gone), {"_hoodie_is_deleted": True})
    kept = changed(rows_of(table, stays), {"_hoodie_is_deleted": False})
    result = table.upsert(pa.concat_tables([deleted, kept, changed(deleted, {"id": absent})]))
    assert (result.inserted, result.updated, result.deleted) == (0, 1, 1)
    after = assert_read_alike(table)
    assert set(after.column("id").to_pylist()) == set(before.column("id").to_pylist()) - {gone}
    assert_files_are_sound(Path(table.path), result, exact=False)


def test_rows_of_hudi_are_deleted_by_key(fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table("cow_complex_key_hive_style")))
    key = "id:k00000,shop:0"
    result = table.delete(rows_of(table, key).select(["id", "shop", "ds", "region"]))
    assert (result.inserted, result.updated, result.deleted) == (0, 0, 1)
    after = assert_read_alike(table)
    before = expected_rows("cow_complex_key_hive_style")
    left = before.filter(pc.not_equal(before.column("_hoodie_record_key"), key))
    assert_same_rows(after, left, ignore=["_hoodie_file_name"])


def test_a_clustered_file_takes_the_update_and_the_files_before_it_stay_hidden(fixture_table: Unpack) -> None:
    path = fixture_table("cow_clustering")
    table = open_table(str(path))
    replaced = {file.name.split("_")[0] for file in path.glob("*/*.parquet")} - file_ids(table)
    assert replaced
    result = table.upsert(changed(rows_of(table, "k00000"), {"note": "after clustering"}))
    assert not {stat.file_id for stat in result.stats} & replaced
    assert not file_ids(table) & replaced
    assert assert_read_alike(table).num_rows == 240


def test_a_savepoint_keeps_its_rows(fixture_table: Unpack) -> None:
    path = fixture_table("cow_savepoint")
    steps = fixture_facts("cow_savepoint")["steps"]
    (savepoint,) = [step["instant"] for step in steps if step["op"] == "savepoint"]
    before = open_table(path).snapshot(as_of=savepoint, meta=True).to_arrow()
    table = open_table(str(path))
    table.upsert(changed(rows_of(table, "k00000"), {"note": "after the savepoint"}))
    assert (path / f".hoodie/{savepoint}.savepoint").exists()
    assert_same_rows(open_table(path).snapshot(as_of=savepoint, meta=True).to_arrow(), before)
    assert_same_rows(read_hudi_rs(path, as_of=savepoint), before)


def test_instants_of_the_archive_stay_where_they_are(fixture_table: Unpack) -> None:
    path = fixture_table("cow_archived")
    archive = {name: data for name, data in contents(path).items() if "/archived/" in name}
    assert archive
    table = open_table(str(path))
    table.upsert(rows_of(table, "k00000"))
    now = contents(path)
    assert {name: now.get(name) for name in archive} == archive


def test_the_time_settings_that_a_table_lacks_come_with_the_write(fixture_table: Unpack) -> None:
    path = fixture_table("v6_cow_timestamp_keygen")
    untold = open_table(str(path))
    with pytest.raises(InvalidOption, match=r"hoodie\.keygen\.timebased\.timestamp\.type"):
        untold.upsert(untold.snapshot())
    told = untold.upsert(changed(rows_of(untold, "1"), {"ts_str": "2031-12-30T23:59:59.000Z"}), options=TIMES)
    assert told.inserted == 1
    assert set(told.metadata.stats) == {"2031/12/30/23"}
    assert_read_alike(untold)
    wrong = {**TIMES, "hoodie.keygen.timebased.output.dateformat": "yyyy"}
    with pytest.raises(TableMismatch, match=r"output.dateformat.*yyyy/MM/dd/HH"):
        untold.upsert(untold.snapshot(), options=wrong)


# --- what the tests do with tables ---


def rows_of(table: HoodieTable, key: str) -> pa.Table:
    rows = table.snapshot(meta=True).to_arrow()
    return rows.filter(pc.equal(rows["_hoodie_record_key"], key)).drop_columns(list(META))


def changed(rows: pa.Table, changes: Mapping[str, Any]) -> pa.Table:
    for name, value in changes.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array([value] * len(rows), rows.schema.field(at).type))
    return rows


def changed_and_new(table: HoodieTable, key: str, case: Case) -> pa.Table:
    """The row of a key with the case's changes, and the same under the new key."""
    row = changed(rows_of(table, key), case.change)
    return pa.concat_tables([row, changed(row, case.new_key)])


def assert_read_alike(table: HoodieTable) -> pa.Table:
    """Arrow and hudi-rs read the same rows, which are returned."""
    rows = table.snapshot(meta=True).to_arrow()
    assert_same_rows(read_hudi_rs(table.path), rows)
    return rows


def assert_files_are_sound(path: Path, result: WriteResult, exact: bool = True) -> None:
    """The filter of each written file has all of its keys, and the range of keys is theirs.

    exact  the range is no wider than needed: no key was deleted
    """
    assert result.files
    for name in result.files:
        rows = pq.read_table(path / name, columns=list(META))
        keys = rows.column("_hoodie_record_key")
        with (path / name).open("rb") as file:
            footer = read_footer(file, name)
        bloom = footer.bloom(name)
        assert bloom is not None
        assert might_contain(bloom, keys).all()
        ordered = sorted(keys.to_pylist(), key=lambda key: key.encode("utf-16-be"))
        assert footer.min_key is not None
        assert footer.max_key is not None
        assert footer.min_key <= ordered[0]
        assert footer.max_key >= ordered[-1]
        if exact:
            assert (footer.min_key, footer.max_key) == (ordered[0], ordered[-1])
        assert set(rows.column("_hoodie_file_name").to_pylist()) == {name.rpartition("/")[2]}


def assert_commit_tells_of(path: Path, result: WriteResult) -> None:
    """The commit file parses, and its statistics are those of the files."""
    data = (path / f".hoodie/{result.instant}.commit").read_bytes()
    assert decode_commit(data, "commit") == result.metadata
    told = json.loads(data)
    assert told["operationType"] == "UPSERT"
    columns = [each["name"] for each in json.loads(told["extraMetadata"]["schema"])["fields"]]
    assert set(columns) - set(META) == set(open_table(path).snapshot(meta=True).to_arrow().column_names) - set(META)
    stats = [stat for part in told["partitionToWriteStats"].values() for stat in part]
    assert {stat["path"] for stat in stats} == set(result.files)
    for stat in stats:
        file = path / stat["path"]
        assert stat["fileSizeInBytes"] == file.stat().st_size
        assert stat["numWrites"] == pq.read_metadata(file).num_rows
        assert stat["fileId"] == file.name.split("_")[0]
    later = sorted(file.name for file in (path / ".hoodie").glob("*.commit"))
    assert later[-1] == f"{result.instant}.commit"
    assert not (path / f".hoodie/.temp/{result.instant}").exists()


def row_of(rows: pa.Table, key: str) -> dict[str, Any]:
    """The row with a record key; it is there once."""
    (row,) = rows.filter(pc.equal(rows.column("_hoodie_record_key"), key)).to_pylist()
    return dict(row)


def user_values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in META}


def file_ids(table: HoodieTable) -> set[str]:
    return {slice_.group.file_id for slice_ in table.file_slices()}


def without_checksum(properties: str) -> str:
    return "".join(line for line in properties.splitlines(True) if not line.startswith("hoodie.table.checksum"))


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
