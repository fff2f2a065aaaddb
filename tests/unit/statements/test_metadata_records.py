"""`hudi_metadata`: records in the columns that the real Hudi has, and as it read them."""

from __future__ import annotations

import pytest

from hoodie.errors import UnsupportedTable
from hoodie.statements.metadata_records import metadata_records
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.metadata_tables import WITH_RECORDS, facts, table_files
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


def test_without_a_metadata_table_it_is_said() -> None:
    table = ArrowTable.create(MemoryStorage(), TRIPS)
    with pytest.raises(UnsupportedTable, match="CALL create_metadata_table builds one"):
        metadata_records(load_state(table.storage))
