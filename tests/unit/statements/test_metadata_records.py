"""`hudi_metadata`: records in the columns that the real Hudi has, and as it read them."""

import zipfile
from pathlib import Path

import pyarrow.compute as pc
import pytest

from hoodie.errors import UnsupportedTable
from hoodie.statements.metadata_records import metadata_records
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.metadata_tables import FOLDER, WITH_RECORDS, facts, table_files
from support.trips import TRIPS


def plain(value: object) -> object:
    """A value as the fixtures have it: maps as objects, floating numbers and binaries with a letter before them."""
    match value:
        case bytes():
            return f"b:{value.hex()}"
        case float():
            return f"f:{value}"
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return {name: plain(item) for name, item in value}
    return value


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_the_records_are_those_that_hudi_reads(name: str) -> None:
    rows = metadata_records(load_state(MemoryStorage(table_files(name)))).to_pylist()
    ours = {(row["type"], row["key"]): plain(row) for row in rows}
    theirs = {(row["type"], row["key"]): row for row in facts(name)["metadata_records"]}
    assert ours.keys() == theirs.keys()
    assert {key: row for key, row in ours.items() if row != theirs[key]} == {}


def test_records_of_version_9_have_its_fields_and_those_of_partitions(tmp_path: Path) -> None:
    with zipfile.ZipFile(FOLDER / "v9_mor_statistics.zip") as archive:
        archive.extractall(tmp_path)
    records = metadata_records(load_state(LocalStorage(tmp_path / "v9_mor_statistics")))
    statistics = records.filter(pc.is_valid(records.column("ColumnStatsMetadata")))
    assert set(statistics.column("type").to_pylist()) == {3, 6}  # of files and of partitions
    (first,) = (row for row in statistics.slice(0, 1).to_pylist())
    assert first["ColumnStatsMetadata"]["valueType"]["typeOrdinal"] is not None
    assert "member11" in first["ColumnStatsMetadata"]["minValue"]


def test_without_a_metadata_table_it_is_said() -> None:
    table = ArrowTable.create(MemoryStorage(), TRIPS)
    with pytest.raises(UnsupportedTable, match="CALL create_metadata_table builds one"):
        metadata_records(load_state(table.storage))
