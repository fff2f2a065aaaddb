"""What cannot be opened, made or written is refused with an error that says why, and the table stays as it was."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import (
    CorruptFile,
    HoodieError,
    InvalidInput,
    InvalidOption,
    TableMismatch,
    TableNotFound,
    UnsupportedTable,
)
from support.trips import table_options
from support.untouched import files, untouched


def rows() -> pa.Table:
    return pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "ts": [1, 1], "note": ["x", "y"]})


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """A table with two rows in two partitions."""
    path = tmp_path / "t"
    made = hoodie.create_table(path, name="t", record_key="id", partition_by="city", ordering="ts")
    made.insert(rows())
    return made


# --- the path and its table ---


def test_a_path_without_a_table_is_told_so(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "missing"):
        with pytest.raises(TableNotFound, match="create_table"):
            hoodie.open_table(str(path))
    assert files(tmp_path) == {}
    assert not (tmp_path / "missing").exists()


def test_a_folder_of_plain_parquet_is_told_apart_from_one_where_a_table_can_be_made(tmp_path):
    (tmp_path / "day=1").mkdir()
    pq.write_table(rows(), tmp_path / "day=1" / "a.parquet")
    with pytest.raises(TableNotFound, match=r"holds Parquet files, and is no Hudi table\. .* create one in an empty"):
        hoodie.open_table(str(tmp_path))
    with pytest.raises(TableMismatch, match="holds Parquet files"):
        hoodie.create_table(str(tmp_path), record_key="id")


def test_a_folder_inside_a_table_is_told_as_a_part_of_it(tmp_path):
    lake = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=["city", "note"])
    lake.insert(rows())
    part = f"holds a part of the Hudi table that should be at {lake.path}, and is"
    for folder in ("oslo/x", "oslo"):
        with pytest.raises(TableNotFound, match=part):
            hoodie.open_table(tmp_path / "t" / folder)
        with pytest.raises(TableMismatch, match=part):
            hoodie.create_table(tmp_path / "t" / folder, record_key="id")


def test_a_table_with_other_settings_is_not_taken_for_the_callers(table):
    same: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "city", "ordering": "ts"}
    assert hoodie.create_table(table.path, **same).path == table.path
    for change, names in {
        "name": ("other", ["hoodie.table.name", "'t'", "'other'"]),
        "record_key": ("note", ["hoodie.table.recordkey.fields", "'id'", "'note'"]),
        "partition_by": (["city", "note"], ["hoodie.table.partition.fields", "'city'", "'city,note'"]),
        "ordering": ("note", ["hoodie.table.precombine.field", "'ts'", "'note'"]),
        "table_type": ("MERGE_ON_READ", ["hoodie.table.type", "COPY_ON_WRITE", "MERGE_ON_READ"]),
    }.items():
        with untouched(table, table.path, *names[1], error=TableMismatch):
            hoodie.create_table(table.path, **{**same, change: names[0]})


@pytest.mark.parametrize(
    ("key", "value", "there"),
    [
        ("hoodie.table.name", "other", "hoodie.table.name"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ", "COPY_ON_WRITE"),
        ("hoodie.datasource.write.recordkey.field", "note", "id"),
        ("hoodie.datasource.write.partitionpath.field", "note", "city"),
        ("hoodie.datasource.write.precombine.field", "note", "ts"),
        ("hoodie.datasource.write.hive_style_partitioning", True, "hive_style_partitioning"),
        ("hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.ComplexKeyGenerator", "Simple"),
        ("hoodie.datasource.write.keygenerator.type", "COMPLEX", "Simple"),
    ],
)
def test_options_that_contradict_the_table_are_refused(table, key, value, there):
    with untouched(table, there, str(value), error=TableMismatch):
        hoodie.open_table(table.path, options={key: value})
    with untouched(table, there, str(value), error=TableMismatch):
        table.upsert(rows(), options={key: value})
    with untouched(table, there, str(value), error=TableMismatch):
        hoodie.hudi.write(rows(), table.path, {key: value})
    with untouched(table, there, str(value), error=TableMismatch):
        table.delete_partitions(["oslo"], options={key: value})


def test_options_that_repeat_what_the_table_is_are_fine(table):
    repeated = {
        **table_options("t", "id", partition="city", ordering="ts"),
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.datasource.write.keygenerator.type": "SIMPLE",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.datasource.write.hive_style_partitioning": False,
    }
    assert hoodie.open_table(table.path, options=repeated).upsert(rows()).updated == 2


def test_storage_options_that_are_no_options_by_name_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="storage_options='key': expected options of the driver by name"):
        hoodie.open_table(tmp_path, storage_options="key")


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("hoodie.parquet.max.file.sice", ["hoodie.parquet.max.file.size"]),
        ("hoodie.datasource.write.recordkey.fields", ["hoodie.datasource.write.recordkey.field"]),
        ("hoodie.bulkinsert.sort.modes", ["hoodie.bulkinsert.sort.mode"]),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest_name(table, tmp_path, key, names):
    with untouched(table, key, *names, error=InvalidOption):
        table.upsert(rows(), options={key: "1"})
    with untouched(table, key, *names, error=InvalidOption):
        hoodie.open_table(table.path, options={key: "1"})
    with pytest.raises(InvalidOption):
        hoodie.create_table(str(tmp_path / "new"), name="n", record_key="id", options={key: "1"})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("hoodie.parquet.max.file.size", "100MB", "bytes, such as"),
        ("hoodie.parquet.max.file.size", 0, "bytes, such as"),
        ("hoodie.index.type", "HBASE2", "BLOOM, SIMPLE"),
        ("hoodie.combine.before.upsert", "yes", "true or false"),
        ("hoodie.index.bloom.fpp", "1.5", "a probability"),
        ("hoodie.bulkinsert.sort.mode", "sorted", "GLOBAL_SORT"),
        ("hoodie.datasource.write.payload.class", "com.example.Mine", "com.example.Mine"),
    ],
)
def test_a_bad_option_value_is_refused_with_what_was_expected(table, tmp_path, key, value, expected):
    with untouched(table, str(value), expected, error=HoodieError):
        table.upsert(rows(), options={key: value})
    with pytest.raises(HoodieError):
        hoodie.create_table(str(tmp_path / "new"), name="n", record_key="id", options={key: value})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"hoodie.table.version": "5"}, "version 5"),
        ({"hoodie.table.version": "10"}, "version 10"),
        (
            {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "ALL"},
            "hoodie.table.cdc.supplemental.logging.mode",
        ),
        ({"hoodie.compaction.payload.class": "com.example.Mine"}, "com.example.Mine"),
        ({"hoodie.populate.meta.fields": "false"}, "hoodie.populate.meta.fields"),
    ],
)
def test_a_table_that_only_others_can_write_is_refused_with_the_reason(table, change, name):
    properties = Path(table.path, ".hoodie/hoodie.properties")
    lines = [line for line in properties.read_text().splitlines() if line.partition("=")[0] not in change]
    properties.write_text("\n".join([*lines, *(f"{key}={value}" for key, value in change.items())]) + "\n")
    for operation in (table.upsert, table.bulk_insert, table.delete, table.explain_upsert):
        with untouched(table, name, error=UnsupportedTable):
            operation(rows())
    with untouched(table, name, error=UnsupportedTable):
        table.delete_partitions(["oslo"])


def test_tables_of_earlier_versions_are_not_written(fixture_table):
    table = hoodie.open_table(str(fixture_table("v5_cow_nonpartitioned")))
    with untouched(table, "version 5", "can be read", error=UnsupportedTable):
        table.upsert(rows())


# --- corrupt files ---


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("content", [b"", b"\x00\x01garbage", b"hoodie.table.name=t\nhoodie.table.checksum=1\n"])
def test_corrupt_table_properties_are_named_and_are_not_no_table(table, content, monkeypatch):
    monkeypatch.setattr("hoodie.table.properties._PAUSE", 0.0)
    damage(Path(table.path, ".hoodie/hoodie.properties"), lambda _: content)
    for call in (
        lambda: hoodie.open_table(table.path),
        lambda: table.upsert(rows()),
        lambda: table.snapshot().to_arrow(),
        lambda: hoodie.create_table(table.path, name="t", record_key="id"),
    ):
        with untouched(table, "hoodie.properties", error=CorruptFile):
            call()


@pytest.mark.parametrize("change", [lambda data: data[: len(data) // 2], lambda data: b"Obj\x01" + data[4:]])
def test_a_corrupt_commit_file_is_named(table, change):
    (commit,) = Path(table.path, ".hoodie").glob("*.commit")
    damage(commit, change)
    for call in (
        lambda: table.upsert(rows()),
        lambda: table.delete(rows()),
        lambda: table.snapshot().to_arrow(),
        table.history,
    ):
        with untouched(table, commit.name, error=CorruptFile):
            call()
