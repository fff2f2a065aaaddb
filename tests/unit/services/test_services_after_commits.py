"""Cleaning and archiving: every way to commit runs them, and a person sees what they did."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.conflict_check import WITHOUT_LOCK
from hoodie.errors import ServiceFailed
from hoodie.model.instant import Action
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.oracles import read_hudi_rs

OPTIONS = {
    "hoodie.cleaner.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
}


def test_every_way_to_commit_cleans_and_archives(tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    table = hoodie.create_table(path, name="trips", record_key="id", partition_by="city", options=OPTIONS)

    def rows(number: int) -> pa.Table:
        return pa.table({"id": ["a"], "city": ["oslo"], "ts": [number]})

    def cleans() -> list[str]:
        return [instant.requested for instant in load_state(table.storage).timeline.completed({Action.CLEAN})]

    instants = [table.upsert(rows(number)).instant for number in range(2)]
    assert cleans() == []

    client = hoodie.hudi.HoodieWriteClient(path, {**OPTIONS, "hoodie.auto.commit": False})
    instant = client.start_commit()
    result = client.upsert(rows(3), instant)
    assert cleans() == [], "nothing is committed yet"
    client.commit(instant, result)
    assert len(cleans()) == 1
    assert len(table.history()) == 3

    written = hoodie.hudi.write(rows(4), path, OPTIONS)
    assert written is not None
    instants += [instant, written.instant]
    assert len(cleans()) == 2
    assert [i.requested for i, _ in table.history()] == instants[:1:-1]
    assert [i.requested for i, _ in table.history(archived=True)] == instants[::-1]
    assert table.snapshot().to_arrow().column("ts").to_pylist() == [4]
    assert read_hudi_rs(path).column("ts").to_pylist() == [4]

    told = table.archive(options={"hoodie.keep.max.commits": 2, "hoodie.keep.min.commits": 1}, dry_run=True)
    assert told.dry_run
    assert table.clean(dry_run=True).files == {}

    last = Path(path, ".hoodie", f"{cleans()[-1]}.clean")
    last.write_bytes(b"no Avro at all")
    with pytest.warns(ServiceFailed, match="cleaning after it failed: CorruptFile"):
        table.upsert(rows(7))
    assert table.snapshot().to_arrow().column("ts").to_pylist() == [7]


@pytest.mark.parametrize("several", [False, True])
def test_a_service_that_another_writer_disturbed_says_that_several_need_a_lock(
    monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    def archived_by_another(*args: object) -> None:
        raise FileNotFoundError(".hoodie/20260101000000000.commit")

    monkeypatch.setattr("hoodie.sync.after_commit.archive", archived_by_another)
    mode = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"} if several else {}
    options = {**OPTIONS, "hoodie.clean.automatic": False, **mode}
    table = hoodie.create_table(storage=MemoryStorage(), name="trips", record_key="id", options=options)
    rows = pa.table({"id": ["a"], "ts": [1]})
    for _ in range(OPTIONS["hoodie.keep.max.commits"]):
        table.upsert(rows)
    with pytest.warns(ServiceFailed, match="archiving after it failed: FileGone") as told:
        table.upsert(rows)
    assert [WITHOUT_LOCK in str(warning.message) for warning in told] == [not several]
