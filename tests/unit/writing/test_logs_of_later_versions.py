"""Logs of tables of versions 8 and 9: several ordering columns, and what statistics say where change data is logged."""

import pyarrow as pa
import pytest

from hoodie.model.files import LogFile, parse_data_file
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_commit
from support.trips import table_options

TABLE = {
    **table_options("t", "id", partition=""),
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.table.version": "9",
    "hoodie.table.services.enabled": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def rows(*given: tuple[str, int, int, bool]) -> pa.Table:
    names = ("id", "ts", "qty", "_hoodie_is_deleted")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in given])


def held(table: ArrowTable) -> dict[str, tuple[int, int]]:
    return {row["id"]: (row["ts"], row["qty"]) for row in table.snapshot().to_pylist()}


def test_rows_and_deletes_in_logs_are_ordered_by_all_ordering_columns() -> None:
    table = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.datasource.write.precombine.field": "ts,qty"})
    table.upsert(rows(*((key, 5, 5, False) for key in "abcdef")))
    table.upsert(rows(("a", 5, 4, False), ("b", 5, 6, False), ("c", 6, 0, False), ("d", 5, 4, True), ("e", 5, 6, True)))
    expected = {"a": (5, 5), "b": (5, 6), "c": (6, 0), "d": (5, 5), "f": (5, 5)}
    assert held(table) == expected
    table.upsert(rows(("e", 5, 5, False), ("b", 5, 5, False), ("f", 5, 9, True)))
    table.upsert(rows(("f", 5, 8, False), ("a", 5, 6, False)))
    expected |= {"a": (5, 6)}
    del expected["f"]
    before = held(table)
    assert schedule_compaction(table.storage, Settings.read(table.options))
    assert compact(table.storage, Settings.read(table.options))
    assert held(table) == before == expected


@pytest.mark.parametrize("logged", [False, True])
def test_a_log_of_a_table_with_change_data_names_its_slice(logged: bool) -> None:
    """As those of Hudi 1.1 do: readers of change data find what was before in the statistic."""
    options = {
        **TABLE,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.cdc.enabled": str(logged).lower(),
    }
    table = ArrowTable.create(MemoryStorage(), options)
    first = table.upsert(rows(("a", 1, 1, False))).instant
    table.upsert(rows(("a", 2, 2, False)))
    third = table.upsert(rows(("a", 3, 3, False))).instant
    state = table.state()
    (stat,) = read_commit(table.storage, state.timeline, state.timeline.commits[-1]).stats[""]
    (slice_,) = table.slices()
    log = parse_data_file("", stat.path or "", 0)
    assert isinstance(log, LogFile)
    assert (log.base_instant, log.version) == (third, 1)
    assert slice_.base is not None
    if logged:
        assert (stat.prev_commit, stat.base_file) == (first, slice_.base.name)
        assert stat.log_files == tuple(log.name for log in slice_.logs)
    else:
        assert (stat.prev_commit, stat.base_file, stat.log_files) == (third, "", (log.name,))
