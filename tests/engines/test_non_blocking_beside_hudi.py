"""The library and the real Hudi 1.x add to the logs of one file group at a time."""

from pathlib import Path

import pytest

from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.engine_cases import comparable
from support.hudi_engine import HudiEngine
from support.non_blocking import BY_COMMIT, NON_BLOCKING, begun, due, rows, table
from support.trips import table_options

#: Options of Hudi's writer of the same table.
HUDI = {
    **NON_BLOCKING,
    **table_options("trips", "id", partition="city"),
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.metadata.enable": "false",
    "hoodie.write.auto.upgrade": "false",
}


def _sql(*values: tuple[str, int, str]) -> str:
    every = ", ".join(f"('{key}', 'oslo', CAST({ts} AS BIGINT), '{note}')" for key, ts, note in values)
    columns = "nullif(id, '') id, nullif(city, '') city, nullif(ts, -1L) ts, nullif(note, '') note"  # as ours: nullable
    return f"SELECT {columns} FROM VALUES {every} AS t (id, city, ts, note)"


def _notes(hudi: HudiEngine, there: ArrowTable, path: Path) -> dict[str, str]:
    """What both read."""
    theirs = hudi.read(path, hoodie__metadata__enable="false")
    ours = there.snapshot()
    assert comparable(ours.drop_columns(["_hoodie_file_name", "_hoodie_commit_seqno"])) == comparable(
        [
            {key: value for key, value in row.items() if key not in ("_hoodie_file_name", "_hoodie_commit_seqno")}
            for row in theirs
        ]
    )
    return {row["id"]: row["note"] for row in theirs}


@pytest.mark.parametrize("by_commit", [False, True], ids=["by ordering", "by commit"])
def test_a_slow_writer_of_ours_and_quick_ones_of_hudi(hudi: HudiEngine, by_commit: bool, tmp_path: Path) -> None:
    if hudi.version < "1":
        pytest.skip("Hudi 0.15 has no such writers")
    version = 8 if hudi.version.startswith("1.0") else 9
    path = tmp_path / "trips"
    path.mkdir()
    there = table(version, BY_COMMIT if by_commit else {}, LocalStorage(path))
    options = HUDI if by_commit else {**HUDI, "hoodie.datasource.write.precombine.field": "ts"}
    # Both make the bucket.
    slow = begun(there, rows("a", "b", note="slow"))
    hudi.write(path, _sql(("b", 1, "quick"), ("c", 1, "quick")), options)
    slow.publish()
    assert _notes(hudi, there, path) == {"a": "slow", "b": "quick", "c": "quick"}
    assert [(slice_.base, len(slice_.logs)) for slice_ in there.slices()] == [(None, 2)]
    # A compaction is planned by us while a write of ours waits, and carried out by us after one of Hudi.
    slow = begun(there, rows("c", "d", ts=2, note="slow again"))
    assert schedule_compaction(there.storage, Settings.read(due(there))) is not None
    hudi.write(path, _sql(("a", 3, "quick again")), options)
    slow.publish()
    expected = {"a": "quick again", "b": "quick", "c": "slow again", "d": "slow again"}
    assert _notes(hudi, there, path) == expected
    compact(there.storage, Settings.read(due(there)))
    assert _notes(hudi, there, path) == expected
    assert [(slice_.base is not None, len(slice_.logs)) for slice_ in there.slices()] == [(True, 2)]
    # Hudi compacts what both wrote.
    inline = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    hudi.write(path, _sql(("e", 1, "last")), {**options, **inline})
    assert _notes(hudi, there, path) == {**expected, "e": "last"}
    (only,) = there.slices()
    assert only.base is not None
    assert only.logs == ()
