"""The doctor on tables that Hudi wrote: it has nothing to say of those that are as they should be."""

from pathlib import Path

import pytest

import hoodie
from hoodie.doctor.examine import Fault, examine
from hoodie.doctor.repair import repair
from hoodie.errors import CorruptFile
from hoodie.storage.local import LocalStorage
from support.hudi_1_tables import table_names, unpack
from support.nightly import by_day
from support.oracles import fixture_names, unpack_table

#: A write that died is in it, on purpose.
UNFINISHED = "mor_inflight"


@pytest.mark.parametrize("name", by_day(fixture_names(), fixture_names()[::2].__contains__))
def test_a_real_table_is_healthy(fixture_table, name):
    found = examine(LocalStorage(fixture_table(name)), grace=0)
    assert [finding.fault for finding in found] == ([Fault.STALE] if name == UNFINISHED else [])


def test_a_write_of_hudi_that_died_is_found_and_rolled_back(fixture_table):
    storage = LocalStorage(fixture_table(UNFINISHED))
    (remedy,) = repair(storage, grace=0)
    assert remedy.target == "20261121034551101"
    assert [finding.fault for finding in examine(storage, grace=0)] == [Fault.STALE]  # that was the dry run
    assert repair(storage, grace=0, dry_run=False) == (remedy,)
    assert examine(storage, grace=0) == ()


def emptied(path: Path) -> str:
    """Empty the file of a table's newest replace commit; its instant."""
    completed = max(path.glob(".hoodie/**/*.replacecommit"))
    completed.write_bytes(b"")
    return completed.name[:17]


@pytest.mark.parametrize("table", ["cow_clustering", "v9_cow_clustering"])
def test_rows_count_once_where_hudis_plan_names_what_its_clustering_replaced(table: str, tmp_path: Path) -> None:
    """Hudi 0.15 and 1.2 read each row of these twice."""
    path = (unpack if table in table_names() else unpack_table)(table, tmp_path)
    rows = hoodie.open_table(path).to_arrow().num_rows
    emptied(path)
    again = hoodie.open_table(path)
    assert again.to_arrow().num_rows == rows
    assert [finding.fault for finding in again.check(grace=0)] == [Fault.EMPTY]


@pytest.mark.parametrize("table", ["cow_insert_overwrite", "v8_cow_overwrite", "v9_cow_overwrite"])
def test_rows_that_an_empty_overwrite_of_hudi_may_have_replaced_are_not_read(table: str, tmp_path: Path) -> None:
    """Hudi 0.15 and 1.2 read them beside the new ones."""
    path = (unpack if table in table_names() else unpack_table)(table, tmp_path)
    instant = emptied(path)
    with pytest.raises(CorruptFile, match=f"{instant}.*it is empty.*`hoodie check` says how"):
        hoodie.open_table(path).to_arrow()
