"""Changes and change data of commits that left the timeline: in the archive of version 6, the history of 8 and 9."""

import itertools

import pytest

from hoodie.config.options import Options
from hoodie.doctor.examine import Fault, examine
from hoodie.errors import CorruptFile
from hoodie.reading.changes.data import change_data_batches
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.services.archive import archive
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.archive import read_archive_file
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


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("lost", range(1, 4))
def test_a_lost_file_of_the_archive_is_no_shorter_range(lost: int, kind: str) -> None:
    """In versions 8 and 9 a manifest lists the files; the archive of version 6 has none."""
    options = {**TABLE, **KEEP, "hoodie.datasource.write.table.type": kind, "hoodie.archive.merge.enable": "false"}
    options["hoodie.keep.max.commits"] = "4"
    table = ArrowTable.create(MemoryStorage(), options)
    times = []
    for n in range(12):
        times.append(table.upsert(batch({f"k{n}": ("oslo", n, f"v{n}")})).instant)
        archive(table.storage, Settings.read(table.options))
    assert table.changes("earliest").num_rows == 12
    files = [f".hoodie/archived/{entry.name}" for entry in table.storage.list(".hoodie/archived")]
    path = next(path for path in files if f"archive.{lost}_" in path)
    inside = {entry.instant.requested for entry in read_archive_file(table.storage, path)}
    table.storage.delete(path)
    begin = max([time for time in times if time < min(inside)], default="")
    with pytest.raises(CorruptFile, match="is neither on the timeline nor in the archive") as error:
        table.changes(begin or str(int(times[0]) - 1))
    assert error.value.path == ".hoodie/archived"
    assert table.changes(max(inside)).num_rows
    findings = examine(table.storage, all_columns=True, grace=0)
    if lost == 1:  # nothing is older: that it was archived only the range says
        assert not findings
    else:
        assert [(finding.fault, finding.where) for finding in findings] == [(Fault.HISTORY, ".hoodie/archived")]
