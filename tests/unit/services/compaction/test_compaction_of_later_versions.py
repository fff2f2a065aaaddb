"""Compactions of tables of versions 8 and 9, whose logs are named after the writes that make them."""

import pytest

from hoodie.model.files import LogFile
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction, unschedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.view.load import data_files, list_partitions
from torture.crash import MERGE_ON_READ, TABLE, batch, rows_of_now

VERSIONS = pytest.mark.parametrize("version", ["8", "9"])
DUE = {"hoodie.compact.inline.max.delta.commits": "1"}


def made(version: str) -> ArrowTable:
    """A key that a log deletes, and another that a log updates."""
    options = {**TABLE, **MERGE_ON_READ, "hoodie.write.table.version": version}
    table = ArrowTable.create(MemoryStorage(), options)
    table.upsert(batch({"a": ("oslo", 1, "one"), "x": ("oslo", 1, "one")}))
    table.upsert(batch({"a": ("oslo", 2, "two")}))
    table.delete(batch({"x": ("oslo", 1, "one")}).select(["id", "city"]))
    return table


def schedule(table: ArrowTable) -> str:
    instant = schedule_compaction(table.storage, Settings.of({**table.options, **DUE}))
    assert instant is not None
    return instant


def came_back(version: str) -> tuple[ArrowTable, str]:
    """The same, compacted at an instant, and a key that came back beside the plan."""
    table = made(version)
    instant = schedule(table)
    table.upsert(batch({"x": ("oslo", 10, "back")}))
    compact(table.storage, Settings.read(table.options), instant)
    return table, instant


@VERSIONS
def test_a_key_that_comes_back_while_its_delete_is_compacted_occurs_once(version: str) -> None:
    table, _ = came_back(version)
    assert rows_of_now(table) == {"a": ("oslo", 2, "two"), "x": ("oslo", 10, "back")}
    result = table.upsert(batch({"x": ("oslo", 11, "again"), "y": ("oslo", 1, "new")}))
    assert (result.updated, result.inserted) == (1, 1)
    assert rows_of_now(table)["x"] == ("oslo", 11, "again")


@VERSIONS
def test_a_key_that_came_back_beside_an_archived_compaction_occurs_once(version: str) -> None:
    table, instant = came_back(version)
    for ts in range(5):
        table.upsert(batch({"o": ("rome", ts, "other")}))
    table.archive(
        {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    )
    assert table.state().timeline.commits[0].requested > instant
    table.upsert(batch({"x": ("oslo", 11, "again")}))
    assert rows_of_now(table)["x"] == ("oslo", 11, "again")
    assert table.snapshot().num_rows == 3


@VERSIONS
def test_logs_written_beside_a_plan_keep_their_own_names_and_the_plan_can_be_withdrawn(version: str) -> None:
    table = made(version)
    instant = schedule(table)
    written = table.upsert(batch({"a": ("oslo", 5, "beside")})).instant
    logs = [file for file in data_files(list_partitions(table.storage)) if isinstance(file, LogFile)]
    assert {log.version for log in logs} == {1}
    assert written in {log.base_instant for log in logs}
    assert instant not in {log.base_instant for log in logs}
    unschedule_compaction(table.storage, Settings.read(table.options), instant)
    assert rows_of_now(table) == {"a": ("oslo", 5, "beside")}
    compact(table.storage, Settings.read(table.options), schedule(table))
    assert {row["note"] for row in table.read_optimized().to_pylist()} == {"beside"}
