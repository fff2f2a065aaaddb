"""A table of version 9 with partial updates, written and read by Hudi 1.1: late rows, and the commit times of rows."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.reading.scan import ScanKind
from hoodie.reading.snapshot import read_scan, read_table
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import MemoryStorage
from support.by_position import rows_by_position
from support.scans import plan_scan

FIXTURES = Path(__file__).parents[1] / "fixtures" / "hudi-1.x"
SEEN = json.loads((FIXTURES / "v9_mor_payload_partial.json").read_text())
COLUMNS = list(SEEN["snapshot"][0])


@pytest.fixture(scope="module")
def state() -> TableState:
    with zipfile.ZipFile(FIXTURES / "v9_mor_payload_partial.zip") as archive:
        files = {name.partition("/")[2]: archive.read(name) for name in archive.namelist() if name[-1] != "/"}
    return load_state(MemoryStorage(files))


def by_id(rows: pa.Table | list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = rows.select(COLUMNS).to_pylist() if isinstance(rows, pa.Table) else rows
    return {row["id"]: row for row in found}


@pytest.mark.parametrize("view", [view for view in SEEN if view.startswith("as_of")])
def test_the_rows_at_each_instant_have_hudis_values_and_commit_times(state: TableState, view: str) -> None:
    assert by_id(read_table(state, as_of=view.split()[1])) == by_id(SEEN[view])


def test_a_late_row_that_adds_nothing_leaves_the_row_and_its_commit_time(state: TableState) -> None:
    rows = by_id(SEEN["snapshot"])
    first, late, _, _ = (instant.requested for instant in state.timeline.commits)
    assert rows["k3"]["_hoodie_commit_time"] == first  # a row of the second commit came late
    assert by_id(read_table(state)) == by_id(rows_by_position(plan_scan(state))) == rows
    assert by_id(read_scan(plan_scan(state, ScanKind.CHANGES, begin="earliest")))["k3"] == rows["k3"]
    assert (
        by_id(read_scan(plan_scan(state, ScanKind.CHANGES, begin=first)))["k3"]["name"] == "late"
    )  # a range merges its own versions only
    assert "k3" not in by_id(read_scan(plan_scan(state, ScanKind.CHANGES, begin=late)))
