"""Changes and change data of commits that left the timeline: in the archive of version 6, the history of 8 and 9."""

from __future__ import annotations

import itertools

import pytest

from hoodie.config.options import Options
from hoodie.reading.changes.data import change_data_batches
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.services.archive import archive
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from torture.crash import TABLE, batch

KEEP = {
    "hoodie.clean.automatic": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.table.cdc.enabled": "true",
}


def ranges(table: ArrowTable, times: list[str]) -> list[list[str]]:
    """What each range of two commits, and that of all, tells: the changes, and the change data."""
    told = []
    for begin, end in [("earliest", times[-1]), *itertools.pairwise(times)]:
        rows = table.changes(begin, end).select(["_hoodie_commit_time", "id", "note"]).to_pylist()
        data = change_data_batches(plan_change_data(table.state(), begin, end))
        told += [sorted(map(str, rows)), sorted(str(row) for part in data for row in part.to_pylist())]
    return told


@pytest.mark.parametrize(("version", "kind"), [("6", "MERGE_ON_READ"), ("8", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ")])
def test_a_range_tells_the_same_once_its_commits_are_archived(version: str, kind: str) -> None:
    more = {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    table = ArrowTable.create(MemoryStorage(), {**TABLE, **KEEP, **more})
    times = [
        table.upsert(batch({"a": ("oslo", number, f"v{number}"), f"k{number}": ("rome", number, "new")})).instant
        for number in range(6)
    ]
    times.append(table.delete(batch({"k1": ("rome", 9, "")}).select(["id", "city"])).instant)
    if kind == "MERGE_ON_READ":
        due = Options({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
        assert schedule_compaction(table.storage, Settings.read(due))
        assert compact(table.storage, Settings.read(due))
    before = ranges(table, times)
    assert all(before[:-2])  # a delete brings no row, and is told by change data alone
    assert before[-1]
    archived = {instant.requested for instant in archive(table.storage, Settings.read(table.options)).instants}
    assert archived.issuperset(times[:4])
    assert ranges(table, times) == before
