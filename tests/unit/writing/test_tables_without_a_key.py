"""Tables without a record key: each row gets a key of its own, as in Hudi since 0.14, and is found again by it."""

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import (
    HoodieError,
    InvalidInput,
    InvalidOption,
    NoRecordKey,
    SchemaMismatch,
    TableMismatch,
    UnsupportedTable,
)
from hoodie.formats.java.properties import parse_properties
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.generated_keys import NewKeys, with_instant
from hoodie.keygen.keygen import key_generator
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from support.keyless_cases import CASES, COLUMNS, Case, Step, as_stored, recorded
from support.oracles import assert_same_rows, read_hudi_rs

ROWS = pa.table({"id": [1, 1, 2, 3], "name": ["a", "a", "b", "c"], "ts": [1, 1, 5, 3]})
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
#: Each batch passes through temporary files.
STAGED = {"hoodie.spark.driver.max.batch.bytes": "0"}

pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.NoRecordKey")

Table = hoodie.HoodieTable[Any]


def made(path: Path, table_type: str = "COPY_ON_WRITE", by: str = "", **options: object) -> Table:
    return hoodie.create_table(path, name="t", partition_by=by or (), table_type=table_type, options=options)


def stored(table: Table, instants: list[str] | None = None) -> list[list[Any]]:
    rows = table.snapshot(meta=True).to_arrow()
    return as_stored(rows.to_pylist(), instants or sorted(set(rows["_hoodie_commit_time"].to_pylist())))


def keys(table: Table) -> list[str]:
    return sorted(table.snapshot(meta=True).to_arrow()[RECORD_KEY].to_pylist())


@pytest.mark.parametrize("name", CASES)
def test_the_rows_are_those_of_hudi_after_each_step(tmp_path: Path, name: str) -> None:
    instants: list[str] = []
    for step, expected in zip(CASES[name].steps, recorded(name), strict=True):
        if expected is None:
            before = keys(hoodie.open_table(tmp_path))
            with pytest.raises(HoodieError):
                write(tmp_path, CASES[name], step)
            assert keys(hoodie.open_table(tmp_path)) == before
            continue
        write(tmp_path, CASES[name], step)
        table = hoodie.open_table(tmp_path)
        instants = sorted({*instants, *table.snapshot(meta=True).to_arrow()["_hoodie_commit_time"].to_pylist()})
        assert stored(table, instants) == expected, step


def write(path: Path, case: Case, step: Step) -> None:
    rows = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in step.rows])
    if step.stored:
        rows = hoodie.open_table(path).snapshot(filters=step.stored, meta=True).to_arrow()
        if step.name:
            names = pa.array([step.name] * rows.num_rows)
            rows = rows.set_column(rows.schema.get_field_index("name"), "name", names)
    hoodie.hudi.write(rows, path, step.all_options(case))


def test_the_properties_are_those_of_hudi(tmp_path: Path) -> None:
    made(tmp_path, by="name")
    held = parse_properties((tmp_path / ".hoodie" / "hoodie.properties").read_bytes(), "")
    assert "hoodie.table.recordkey.fields" not in held
    assert held["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.SimpleKeyGenerator"


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("options", [{}, STAGED], ids=["memory", "staged"])
def test_rows_are_kept_updated_and_deleted_by_their_keys(
    tmp_path: Path, table_type: str, options: dict[str, str]
) -> None:
    table = made(tmp_path, table_type, "name", **{"hoodie.compact.inline.max.delta.commits": 1}, **options)
    for write in (table.insert, table.upsert, table.bulk_insert):
        write(ROWS)
    assert len(set(keys(table))) == 12
    rows = table.snapshot(filters="id = 1", meta=True).to_arrow()
    update = rows.set_column(rows.schema.get_field_index("ts"), "ts", pa.array([7] * 6)).slice(0, 4)
    result = table.upsert(update)
    assert (result.inserted, result.updated) == (0, 4)
    assert table.delete(where="id = 3").deleted == 3
    assert table.delete(table.snapshot(filters="id = 2", meta=True).to_arrow()).deleted == 3
    assert sorted(table.snapshot(meta=True).to_arrow()["ts"].to_pylist()) == [1, 1, 7, 7, 7, 7]
    if table_type == "MERGE_ON_READ":
        table.schedule_compaction()
        table.compact()
        assert sorted(table.snapshot(optimized=True, meta=True).to_arrow()["ts"].to_pylist()) == [1, 1, 7, 7, 7, 7]


def test_an_upsert_inserts_the_rows_that_bring_no_key(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.insert(ROWS)
    rows = table.snapshot(filters="id = 2", meta=True).to_arrow()
    new = pa.Table.from_pylist([{"id": 9, "name": "n", "ts": 9}], pa.schema([rows.field(n) for n in COLUMNS]))
    result = table.upsert(pa.concat_tables([rows, new], promote_options="default"))
    assert (result.inserted, result.updated) == (1, 1)
    assert keys(table)[-1] == f"{result.instant}_0_0"


def test_each_attempt_of_a_write_has_keys_of_its_own_instant(tmp_path: Path) -> None:
    table = made(tmp_path)
    client = hoodie.hudi.HoodieWriteClient(tmp_path)
    given_up = client.start_commit()
    client.upsert(ROWS, given_up)
    client.rollback(given_up)
    result = table.upsert(ROWS)
    assert keys(table) == [f"{result.instant}_0_{number}" for number in range(4)]


def test_many_rows_have_as_many_keys_in_however_many_files(tmp_path: Path) -> None:
    count = 3_000
    rows = pa.table({"v": pa.array(range(count)), "p": pa.array([str(n % 3) for n in range(count)])})
    for number, options in enumerate([{}, STAGED]):
        table = made(
            tmp_path / str(number),
            by="p",
            **{"hoodie.parquet.max.file.size": 40_000, "hoodie.parquet.small.file.limit": 0},
            **options,
        )
        for write in (table.insert, table.bulk_insert):
            result = write(rows.to_reader(max_chunksize=700))
            instant = result.instant
            found = table.snapshot(columns=[RECORD_KEY, "v"]).to_arrow()
            new = found.filter(pc.starts_with(found[RECORD_KEY], instant))
            assert {f"{instant}_0_{n}" for n in range(count)} == set(new[RECORD_KEY].to_pylist())
            assert sorted(new["v"].to_pylist()) == list(range(count))


def test_a_table_made_without_a_key_is_warned_of_before_it_is_made(tmp_path: Path) -> None:
    with pytest.warns(NoRecordKey, match="each row gets a key of its own"):
        made(tmp_path / "t")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoRecordKey)
        made(tmp_path / "t")  # it is there
        with pytest.raises(NoRecordKey):
            made(tmp_path / "other")
        with pytest.raises(NoRecordKey):
            hoodie.hudi.write(ROWS, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("table_type", TYPES)
def test_an_overwrite_makes_a_table_without_a_key_in_place_of_another(tmp_path: Path, table_type: str) -> None:
    hoodie.hudi.write(ROWS, tmp_path, {"hoodie.datasource.write.recordkey.field": "id"})
    hoodie.hudi.write(ROWS, tmp_path, {"hoodie.datasource.write.table.type": table_type}, mode="overwrite")
    assert len(keys(hoodie.open_table(tmp_path))) == 4


def test_what_needs_a_key_is_refused_and_says_why(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.insert(ROWS)
    before = keys(table)
    with pytest.raises(InvalidInput, match="rows to delete are named by _hoodie_record_key"):
        table.delete(ROWS)
    with pytest.raises(InvalidOption, match=r"combine\.before.insert=true: t has no record key"):
        table.insert(ROWS, options={"hoodie.combine.before.insert": "true"})
    with pytest.raises(InvalidOption, match=r"drop\.duplicates=true: t has no record key"):
        table.insert(ROWS, options={"hoodie.datasource.write.insert.drop.duplicates": "true"})
    with pytest.raises(SchemaMismatch, match="t has no record key: its rows are named by"):
        hoodie.hudi.HoodieReadClient(tmp_path).filter_exists(ROWS)
    with pytest.raises((InvalidOption, UnsupportedTable), match="record key"):
        table.insert(ROWS, options={"hoodie.index.type": "BUCKET"})
    with pytest.raises(TableMismatch, match="the record key is '' in the table, not 'id'"):
        hoodie.hudi.write(ROWS, tmp_path, {"hoodie.datasource.write.recordkey.field": "id"})
    assert keys(table) == before


def test_no_table_without_a_key_is_made_for_an_index_that_needs_one(tmp_path: Path) -> None:
    with pytest.raises((InvalidOption, UnsupportedTable), match="record key"):
        made(tmp_path / "t", **{"hoodie.index.type": "BUCKET"})
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_rows_keep_their_partition_unless_the_index_moves_them(tmp_path: Path, index: str) -> None:
    table = made(tmp_path, by="name", **{"hoodie.index.type": index})
    table.insert(ROWS)
    rows = table.snapshot(filters="id = 2", meta=True).to_arrow()
    moved = rows.set_column(rows.schema.get_field_index("name"), "name", pa.array(["z"]))
    if not index.startswith("GLOBAL"):
        with pytest.raises(InvalidInput, match="a row keeps its partition"):
            table.upsert(moved)
        return
    table.upsert(moved)
    there = table.snapshot(filters="id = 2", meta=True).to_arrow()
    assert there.select([RECORD_KEY, PARTITION_PATH]).to_pylist() == [
        {RECORD_KEY: rows[RECORD_KEY][0].as_py(), PARTITION_PATH: "z"}
    ]


def test_services_keep_the_keys(tmp_path: Path) -> None:
    table = made(
        tmp_path,
        **{"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": 1, "hoodie.keep.min.commits": 2},
    )
    for _ in range(4):
        table.upsert(ROWS)
    before = keys(table)
    table.clean()
    table.archive()
    assert keys(table) == before
    assert len(before) == 16


def test_hudi_rs_reads_the_rows(tmp_path: Path) -> None:
    table = made(tmp_path, by="name")
    table.insert(ROWS)
    table.delete(where="id = 3")
    assert_same_rows(read_hudi_rs(tmp_path), table.snapshot(meta=True).to_arrow())


# --- the rule ---


def test_tasks_number_their_rows_each_by_itself_and_an_attempt_does_so_again() -> None:
    make_keys = NewKeys(RowKeys(("v",), key_generator({})))
    parts = [pa.table({"v": [1, 2]}), pa.table({"v": [3]})]

    def attempt(task: int, *, backwards: bool = False) -> list[str]:
        keyed = map(make_keys.of_task(task), reversed(parts) if backwards else parts)
        return [key for part in keyed for key in with_instant(part.column(RECORD_KEY), "20260101").to_pylist()]

    assert attempt(0) == ["20260101_0_0", "20260101_0_1", "20260101_0_2"]
    assert attempt(7) == attempt(7, backwards=True) == ["20260101_7_0", "20260101_7_1", "20260101_7_2"]


def test_only_rows_without_a_key_are_numbered() -> None:
    rows = pa.table({"v": [1, 2, 3], RECORD_KEY: ["k", None, None], PARTITION_PATH: ["", "", ""]})
    keyed = NewKeys(RowKeys(("v",), None)).of_task(1)(rows)
    assert with_instant(keyed.column(RECORD_KEY), "2026").to_pylist() == ["k", "2026_1_0", "2026_1_1"]
