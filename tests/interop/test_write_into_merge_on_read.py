"""Merge-on-Read tables that Hudi wrote take updates, inserts and deletes, and are read alike by others afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import HoodieError, UnsupportedTable
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.index.bucket import HashFields, bucket_of, buckets_of
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action
from hoodie.storage.local import LocalStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import by_day
from support.oracles import META, assert_same_rows, fixture_names, read_hudi_rs

Unpack = Callable[[str], Path]

NO_METADATA_TABLE = {"hoodie.metadata.enable": "false"}


@dataclass(frozen=True)
class Case:
    """What to change in a row, the ordering value among it, and the key of a new one."""

    change: Mapping[str, Any]
    new_key: Mapping[str, Any]
    new_record_key: str
    options: Mapping[str, str] = field(default_factory=dict)
    counted: tuple[int, int] = (1, 1)  # inserted and updated


BUCKETS = {"hoodie.bucket.index.num.buckets": "4"}
BY_ID = Case({"qty": 4242, "note": "geändert", "ts": 10**9}, {"id": "new"}, "new")
TRIP = Case({"fare": 1.25, "ts": 10**15}, {"uuid": "new"}, "new")
PUBLIC = Case({"intField": 4242, "longField": 10**15}, {"id": 99}, "99")

CASES = {
    "mor_bucket_index": replace(BY_ID, options=BUCKETS, counted=(0, 2)),  # a key is in its bucket, new or not
    "mor_compacted": BY_ID,
    "mor_complex_key_hive_style": Case(BY_ID.change, {"id": "new", "shop": 77}, "id:new,shop:77"),
    "mor_deletes": BY_ID,
    "mor_event_time": BY_ID,
    "mor_inflight": BY_ID,
    "mor_logs": BY_ID,
    "mor_nonpartitioned": BY_ID,
    "mor_parquet_log_blocks": BY_ID,
    "mor_pending_compaction": BY_ID,
    "mor_rolled_back": BY_ID,
    "mor_schema_evolution": BY_ID,
    "mor_types": Case({"c_int": 4242, "c_str": "geändert", "ts": 10**9}, {"id": "new"}, "new"),
    "v6_mor_avro_8_inserts_1_update": TRIP,
    "v6_mor_avro_8_inserts_3_deletes": TRIP,
    "v6_mor_logical_types_metadata_table": Case({"rider": "Zoë"}, {"_row_key": "new"}, "new", NO_METADATA_TABLE),
    "v6_mor_nested_types": Case({"col_int": 4242}, {"uuid": "new"}, "new", NO_METADATA_TABLE),
    "v6_mor_parquet_log_rollback": PUBLIC,
    "v6_mor_parquet_log_simplekeygen": PUBLIC,
    "v6_mor_payload_default": Case({"rider": "Zoë"}, {"_event_lsn": 99}, "99"),
    "v6_mor_payload_partial_update": Case({"rider": "Zoë"}, {"_event_lsn": 99}, "99"),
    "v6_mor_with_services": Case({"name": "Zoë"}, {"id": "new"}, "new", NO_METADATA_TABLE),
}
REFUSED = {
    "v3_mor_stock_ticks": "table version 3 can be read",
}
LATER = ("v8_mor_avro_8_inserts_3_updates_1_delete", "v9_mor_txns")

#: It passes logs by that lie at a pending compaction's instant, and does not read the second even as Hudi left it.
NOT_IN_HUDI_RS = {"mor_pending_compaction", "v6_mor_nested_types"}


def test_each_merge_on_read_table_is_written_or_refused() -> None:
    assert {*CASES, *REFUSED, *LATER} == {name for name in fixture_names() if "mor" in name}


def opened(path: Path, options: Mapping[str, str]) -> ArrowTable:
    return ArrowTable(LocalStorage(path), {"hoodie.spark.driver.threads": "1", **options})


def user_rows(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([name for name in META if name in rows.column_names])


def changed(row: pa.Table, changes: Mapping[str, Any]) -> pa.Table:
    for name, value in changes.items():
        at = row.schema.get_field_index(name)
        row = row.set_column(at, row.schema.field(at), pa.array([value] * len(row), row.schema.field(at).type))
    return row


#: By day Parquet goes into tables of other types, other columns and logs of it already.
IN_PARQUET = ("mor_types", "mor_schema_evolution", "mor_parquet_log_blocks", "mor_deletes", "v6_mor_nested_types")


@pytest.mark.parametrize(
    ("name", "block_format"),
    by_day(product(CASES, ("avro", "parquet")), lambda case: (case[1] == "parquet") == (case[0] in IN_PARQUET)),
)
def test_an_update_an_insert_and_a_delete(name: str, block_format: str, fixture_table: Unpack) -> None:
    path, case = fixture_table(name), CASES[name]
    table = opened(path, {**case.options, "hoodie.logfile.data.block.format": block_format})
    before = table.snapshot()
    row, doomed = before.slice(0, 1), before.slice(before.num_rows - 1)
    key, gone = (found["_hoodie_record_key"][0].as_py() for found in (row, doomed))
    updated = changed(user_rows(row), case.change)
    result = table.upsert(pa.concat_tables([updated, changed(updated, case.new_key)]))
    assert (result.inserted, result.updated) == case.counted
    deleted = table.delete(doomed.select(["_hoodie_record_key", "_hoodie_partition_path"]))
    assert (deleted.deleted, len(deleted.files)) == (1, 1)
    assert ".log." in deleted.files[0]

    after = table.snapshot()
    left = pc.is_in(before["_hoodie_record_key"], pa.array([key, gone]))
    fresh = pc.is_in(after["_hoodie_record_key"], pa.array([key, case.new_record_key]))
    assert_same_rows(after.filter(pc.invert(fresh)), before.filter(pc.invert(left)), ignore=["_hoodie_file_name"])
    new = after.filter(fresh)
    assert set(new["_hoodie_commit_time"].to_pylist()) == {result.instant}
    assert set(new["_hoodie_record_key"].to_pylist()) == {key, case.new_record_key}
    for found in user_rows(new).to_pylist():
        wanted = user_rows(row).to_pylist()[0] | dict(case.change)
        assert found in (wanted, wanted | dict(case.new_key))
    if name not in NOT_IN_HUDI_RS:
        assert_same_rows(read_hudi_rs(path), after, ignore=["_hoodie_file_name"])


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_written_without_harm_is_refused(name: str, fixture_table: Unpack) -> None:
    table = opened(fixture_table(name), {})
    with pytest.raises(UnsupportedTable, match=REFUSED[name]):
        table.upsert(user_rows(table.snapshot()))


@pytest.mark.filterwarnings("ignore::hoodie.errors.MetadataTableDropped")
@pytest.mark.parametrize("name", LATER)
def test_a_table_of_a_later_version_gets_its_rows_once_more(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    table = opened(path, {})
    before = table.snapshot()
    result = table.upsert(user_rows(before))
    assert (result.inserted, result.updated) == (0, before.num_rows)
    assert_same_rows(user_rows(table.snapshot()), user_rows(before))
    assert_same_rows(read_hudi_rs(path), table.snapshot(), ignore=["_hoodie_file_name"])


def test_what_a_dead_hudi_writer_appended_is_taken_back_by_command_blocks(fixture_table: Unpack) -> None:
    path = fixture_table("mor_inflight")
    table = opened(path, {})
    (dead,) = table.state().timeline.pending()
    logs = {file: file.read_bytes() for file in path.rglob(".*.log.*")}
    before = table.snapshot()
    table.upsert(changed(user_rows(before.slice(0, 1)), BY_ID.change))
    assert [i.action for i in table.state().timeline.instants].count(Action.ROLLBACK) == 1
    assert all(file.read_bytes() == data for file, data in logs.items())  # Hudi may have appended to older files
    assert_same_rows(read_hudi_rs(path), table.snapshot(), ignore=["_hoodie_file_name"])
    assert table.snapshot().num_rows == before.num_rows
    commands = [
        block.header.target
        for file in path.rglob(".*.log.*_1-0-1")
        for block in read_blocks(file.read_bytes(), str(file))
        if block.kind is BlockKind.COMMAND
    ]
    assert commands == [dead.requested] * 3  # no markers are left: found by the inflight file


def test_updates_of_a_group_under_hudis_pending_compaction_go_to_its_slice(fixture_table: Unpack) -> None:
    path = fixture_table("mor_pending_compaction")
    table = opened(path, {})
    (pending,) = table.state().timeline.pending_compactions
    before = table.snapshot()
    result = table.upsert(changed(user_rows(before), {"note": "geändert", "ts": 10**9}))
    assert (result.updated, result.inserted) == (before.num_rows, 0)
    assert pending.requested in {stat.prev_commit for stat in result.stats}
    assert set(table.snapshot()["note"].to_pylist()) == {"geändert"}
    slices = {slice_.group: slice_ for slice_ in table.slices()}
    for stat in result.stats:
        logs = {log.name for log in slices[FileGroupId(stat.partition or "", stat.file_id)].logs}
        assert set(stat.log_files) <= logs


def test_new_keys_of_a_bucket_table_go_to_the_logs_of_their_buckets_and_new_partitions_get_base_files(
    fixture_table: Unpack,
) -> None:
    path = fixture_table("mor_bucket_index")
    table = opened(path, BUCKETS)
    before = table.snapshot()
    rows = user_rows(before.slice(0, 4))
    new = changed(rows, {"note": "new"}).set_column(0, rows.schema.field(0), pa.array([f"n{n}" for n in range(4)]))
    elsewhere = changed(new, {"ds": "2031-01-01"})
    result = table.upsert(pa.concat_tables([new, elsewhere]))
    for stat in result.stats:
        assert (stat.log_version is None) == (stat.partition == "2031-01-01")
    keys = pa.concat_tables([new, elsewhere]).column("id")
    places = {(row["id"], row["ds"]): int(row["_hoodie_file_name"][:8]) for row in table.snapshot().to_pylist()}
    for key, bucket in zip(
        keys.to_pylist()[:4], buckets_of(keys.combine_chunks(), HashFields(("id",)), 4)[:4].tolist(), strict=True
    ):
        assert places[key, "2031-01-01"] == bucket
        assert places[key, rows["ds"][0].as_py()] == bucket
    after = table.snapshot()
    assert after.num_rows == before.num_rows + 8
    assert_same_rows(read_hudi_rs(path), after, ignore=["_hoodie_file_name"])
    assert {bucket_of(slice_.group.file_id) for slice_ in table.slices()} == {0, 1, 2, 3}


def test_the_number_of_buckets_that_nothing_records_is_found_from_the_keys(fixture_table: Unpack) -> None:
    path = fixture_table("mor_bucket_index")
    table = opened(path, {})
    before = table.snapshot()
    result = table.upsert(user_rows(before))
    assert (result.inserted, result.updated) == (0, before.num_rows)
    after = table.snapshot()
    assert_same_rows(read_hudi_rs(path), after, ignore=["_hoodie_file_name"])
    assert sorted(after.column("_hoodie_record_key").to_pylist()) == sorted(
        before.column("_hoodie_record_key").to_pylist()
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hoodie.bucket.index.num.buckets": "8"}, "would not be in bucket"),
        ({"hoodie.bucket.index.num.buckets": "3"}, "has more buckets"),
        ({**BUCKETS, "hoodie.index.type": "SIMPLE"}, "are those of a bucket index. SIMPLE would not find"),
        ({**BUCKETS, "hoodie.bucket.index.hash.field": "note"}, "note is not in the record key"),
        ({**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "has files and no hashing metadata"),
    ],
)
def test_a_bucket_table_is_not_written_in_another_way(
    options: Mapping[str, str], problem: str, fixture_table: Unpack
) -> None:
    path = fixture_table("mor_bucket_index")
    table = opened(path, options)
    rows = user_rows(table.snapshot())
    before = sorted(path.rglob("*"))
    with pytest.raises(HoodieError, match=problem):
        table.upsert(rows)
    assert sorted(path.rglob("*")) == before
