"""Of two writers that do not wait for one another, the one that began first is completed last: what Hudi 1.1.1 reads.

The table is `v9_mor_nbcc` with the completion of the slow writer moved behind that of the quick one; the rows are those
that Hudi read from it then.
"""

import json
from pathlib import Path

import pytest

import hoodie
from hoodie.config.read import ChangeDataOptions, IncrementalOptions, ReadSettings
from hoodie.reading.changes.data import change_data_batches
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from support.hudi_1_tables import unpack

BEFORE, SLOW, QUICK, AFTER = "20261125034204180", "20261125034207356", "20261125034211328", "20261125034222434"
COMPLETED = {BEFORE: "20261125034207086", QUICK: "20261125034222295", SLOW: "20261125034222300"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    there = unpack("v9_mor_nbcc", tmp_path)
    timeline = there / ".hoodie" / "timeline"
    completed = timeline / f"{SLOW}_20261125034221597.deltacommit"
    completed.rename(timeline / f"{SLOW}_{COMPLETED[SLOW]}.deltacommit")
    return str(there)


def read(rows: hoodie.Rows) -> dict[str, str]:
    """The instant of each key's row."""
    return {row["id"]: row["_hoodie_commit_time"] for row in rows.to_arrow().to_pylist()}


def test_the_write_that_began_last_wins_in_a_snapshot(path: str):
    expected = {"k1": QUICK, "k2": SLOW, "k3": BEFORE, "k4": BEFORE, "k5": QUICK, "k6": AFTER}
    assert read(hoodie.open_table(path).snapshot(meta=True)) == expected


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (SLOW, {"k1": SLOW, "k2": SLOW, "k5": BEFORE}),
        (QUICK, {"k1": QUICK, "k2": SLOW, "k5": QUICK}),
        (COMPLETED[QUICK], {"k1": QUICK, "k2": SLOW, "k5": QUICK}),
    ],
)
def test_time_travel_goes_by_when_writes_began(path: str, instant: str, expected: dict[str, str]):
    rows = read(hoodie.open_table(path).as_of(instant, meta=True))
    assert rows == {**expected, "k3": BEFORE, "k4": BEFORE}


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (COMPLETED[BEFORE], COMPLETED[QUICK], {"k1": QUICK, "k5": QUICK}),
        (COMPLETED[QUICK], COMPLETED[SLOW], {"k1": SLOW, "k2": SLOW}),
        ("000", COMPLETED[QUICK], {"k1": QUICK, "k2": BEFORE, "k3": BEFORE, "k4": BEFORE, "k5": QUICK}),
    ],
)
def test_ranges_go_by_when_writes_were_completed(path: str, begin: str, end: str, expected: dict[str, str]):
    assert read(hoodie.open_table(path).changes(begin, end, meta=True)) == expected


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (BEFORE, SLOW, {"k1": SLOW, "k2": SLOW}),
        (SLOW, QUICK, {"k1": QUICK, "k5": QUICK}),
        ("000", SLOW, {"k1": SLOW, "k2": SLOW, "k3": BEFORE, "k4": BEFORE, "k5": BEFORE}),
    ],
)
def test_ranges_go_by_when_writes_began_where_an_option_says_so(
    path: str, begin: str, end: str, expected: dict[str, str]
):
    options = {"hoodie.datasource.read.incr.table.version": "6"}
    found = ArrowTable(LocalStorage(path)).changes(begin, end, options).to_pylist()
    assert {row["id"]: row["_hoodie_commit_time"] for row in found} == expected


def test_change_data_of_a_range_by_beginning_is_what_became_of_the_rows(path: str):
    """The slow write's change of k1 met that of the quick one, which stayed: it changed k2 alone."""
    settings = ReadSettings(incremental=IncrementalOptions(version="6"), change_data=ChangeDataOptions(infer=True))
    for begin, end, keys in ((BEFORE, SLOW, ["k2"]), (SLOW, QUICK, ["k1", "k5"]), (BEFORE, QUICK, ["k1", "k2", "k5"])):
        plan = plan_change_data(load_state(LocalStorage(path)), begin, end, settings)
        changes = [change for batch in change_data_batches(plan) for change in batch.to_pylist()]
        assert sorted(json.loads(change["after"])["id"] for change in changes) == keys
