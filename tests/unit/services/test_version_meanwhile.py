"""A table gets another version of the format while a writer is at work that has looked at it before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.doctor.examine import Severity, examine
from hoodie.doctor.findings import Fault, Mend
from hoodie.doctor.repair import repair
from hoodie.errors import InstantNotFound, TableMismatch, UnsupportedTable, WriteConflict
from hoodie.services.downgrade import downgrade
from hoodie.services.upgrade import upgrade
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit
from hoodie.table.downgraded_timeline import copy_down
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.local import check_batch
from hoodie.writing.run import run
from torture.crash import TABLE, batch, rows_of_now

SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "InProcessLockProvider",
}
pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")


def change(storage: Storage, options: Options, to: int) -> None:
    (upgrade if to == 9 else downgrade)(storage, Settings.read(options), to)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("before", "to"), [(6, 9), (9, 6)])
def test_a_write_is_made_in_the_new_version(before: int, to: int, kind: str) -> None:
    given = {**TABLE, **SEVERAL, "hoodie.datasource.write.table.type": kind}
    made = ArrowTable.create(MemoryStorage(), {**given, "hoodie.write.table.version": str(before)})
    made.options = Options({key: value for key, value in made.options.items() if key != "hoodie.write.table.version"})
    made.upsert(batch({"a": ("oslo", 1, "one")}))
    rows = batch({"a": ("oslo", 2, "two"), "b": ("oslo", 2, "two")})
    write = check_batch(
        made.storage, WriteOperation.UPSERT, rows.to_reader(), Settings.read(made.options), after_commit
    )
    change(made.storage, made.options, to)
    run(write)
    assert rows_of_now(made) == {"a": ("oslo", 2, "two"), "b": ("oslo", 2, "two")}
    assert made.state().config.version == to
    names = [entry.name for entry in made.storage.list(".hoodie") if entry.name[:1].isdigit()]
    assert bool(names) == (to == 6)
    assert bool(made.storage.list(".hoodie/timeline")) == (to == 9)


def test_a_write_without_a_lock_is_refused_and_leaves_nothing() -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.write.num.retries.on.conflict.failures": "0"})
    made.upsert(batch({"a": ("oslo", 1, "one")}))
    rows = batch({"b": ("oslo", 2, "two")})
    write = check_batch(
        made.storage, WriteOperation.UPSERT, rows.to_reader(), Settings.read(made.options), after_commit
    )
    upgrade(made.storage, Settings.read(made.options), 9)
    files = {folder: [e.name for e in entries] for folder, entries in made.storage.list_tree("").items()}
    with pytest.raises(WriteConflict, match="has version 9 now, and had 6"):
        run(write)
    assert {folder: [e.name for e in entries] for folder, entries in made.storage.list_tree("").items()} == files
    assert rows_of_now(made) == {"a": ("oslo", 1, "one")}


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on a write dies where it would be published, and its process with it."""

    def begin() -> None:
        def die(*_: object, **__: object) -> None:
            raise Crash

        monkeypatch.setattr("hoodie.writing.finish.publish_seen", die)

    return begin


def files(made: ArrowTable) -> list[str]:
    tree = made.storage.list_tree("")
    return [f"{folder}/{e.name}" for folder, entries in tree.items() for e in entries if not e.is_dir]


KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def table_of_9(kind: str) -> ArrowTable:
    given = {**TABLE, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": "9"}
    made = ArrowTable.create(MemoryStorage(), given)
    made.options = Options({key: value for key, value in made.options.items() if key != "hoodie.write.table.version"})
    for ts in (1, 2):
        made.upsert(batch({"a": ("oslo", ts, "before")}))
    return made


BEFORE, LATE = {"a": ("oslo", 2, "before")}, batch({"a": ("oslo", 9, "late"), "b": ("kiel", 9, "late")})


@KINDS
def test_a_write_of_before_a_downgrade_that_died_is_rolled_back_by_the_next(
    kind: str, dying: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table_of_9(kind)
    write = check_batch(
        made.storage, WriteOperation.UPSERT, LATE.to_reader(), Settings.read(made.options), after_commit
    )
    downgrade(made.storage, Settings.read(made.options), 6)
    dying()
    with pytest.raises(Crash):
        run(write)
    monkeypatch.undo()
    instant = max(name for name in files(made) if name.startswith(".hoodie/timeline/")).split("/")[-1][:17]
    assert rows_of_now(made) == BEFORE  # readers do without it
    (finding,) = [f for f in examine(made.storage) if f.fault is Fault.DOWNGRADE]
    assert (finding.severity, finding.remedy and finding.remedy.mend) == (Severity.WARNING, Mend.MOVE_BACK)
    repaired = ArrowTable(made.storage.copy(), made.options)  # type: ignore[attr-defined]
    for there, act in (
        (repaired, lambda: repair(repaired.storage, dry_run=False, grace=0)),
        (made, lambda: made.upsert(batch({"c": ("oslo", 3, "next")}))),
    ):
        act()
        assert not [name for name in files(there) if instant in name and ".rollback" not in name]
        assert not there.storage.list(".hoodie/timeline")
        assert not [f for f in examine(there.storage, grace=1e9) if f.severity is not Severity.NOTE]
    assert rows_of_now(repaired) == BEFORE
    assert rows_of_now(made) == {**BEFORE, "c": ("oslo", 3, "next")}


@KINDS
def test_a_write_that_begins_and_dies_amid_a_downgrade_is_rolled_back_by_the_next(
    kind: str, dying: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table_of_9(kind)

    def copy(*arguments: Any) -> None:
        copy_down(*arguments)
        dying()
        with pytest.raises(Crash):
            made.upsert(LATE)
        monkeypatch.undo()

    monkeypatch.setattr("hoodie.services.downgrade.copy_down", copy)
    downgrade(made.storage, Settings.read(made.options), 6)
    instant = max(name for name in files(made) if name.endswith(".requested")).split("/")[-1][:17]
    assert [name for name in files(made) if instant in name and not name.startswith(".hoodie/")]
    assert rows_of_now(made) == BEFORE
    made.upsert(batch({"c": ("oslo", 3, "next")}))
    assert not [name for name in files(made) if instant in name and ".rollback" not in name]
    assert rows_of_now(made) == {**BEFORE, "c": ("oslo", 3, "next")}


@pytest.mark.parametrize("moved", ["requested", "inflight", "deltacommit"])
def test_instants_that_an_upgrade_of_hudis_has_moved_are_no_late_writes(moved: str) -> None:
    """It moves an instant's files one by one: readers would miss the rows of one that is not moved back."""
    made = table_of_9("MERGE_ON_READ")
    downgrade(made.storage, Settings.read(made.options), 6)
    newest = made.state().timeline.commits[-2].requested
    for name in [f"{newest}.deltacommit{state}" for state in (".requested", ".inflight", "")]:
        made.storage.write(f".hoodie/timeline/{name}", made.storage.read(f".hoodie/{name}"))
        made.storage.delete(f".hoodie/{name}")
        if name.endswith(moved):
            break
    with pytest.raises(UnsupportedTable, match="stopped half-way"):
        made.snapshot()
    with pytest.raises(UnsupportedTable, match="stopped half-way"):
        made.upsert(LATE)


@KINDS
@pytest.mark.parametrize(("before", "to"), [(6, 8), (6, 9), (8, 9), (9, 8), (9, 6), (8, 6)])
def test_objects_of_before_go_on_in_the_new_version_and_a_job_that_names_the_old_one_is_told(
    before: int, to: int, kind: str, tmp_path: Path
) -> None:
    job = {**TABLE, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": str(before)}
    path = str(tmp_path)
    table = hoodie.create_table(path, table_type=kind, options=job)
    client = hoodie.hudi.HoodieWriteClient(path)
    table.upsert(batch({"a": ("oslo", 1, "one")}))
    began = client.start_commit()
    other = hoodie.open_table(path)
    (other.upgrade if to > before else other.downgrade)(to)
    with pytest.raises((InstantNotFound, WriteConflict)):
        client.commit(began, client.upsert(LATE, began))
    table.upsert(batch({"b": ("oslo", 2, "two")}))
    time = client.start_commit()
    client.commit(time, client.upsert(batch({"a": ("oslo", 3, "three")}), time))
    there = sorted(file for file in tmp_path.rglob("*") if file.is_file())
    with pytest.raises(TableMismatch, match=f"is '{to}' in the table.*Leave hoodie.write.table.version unset"):
        hoodie.hudi.write(batch({"d": ("oslo", 4, "four")}), path, job)
    assert sorted(file for file in tmp_path.rglob("*") if file.is_file()) == there
    rows = hoodie.open_table(path).snapshot().to_arrow().to_pylist()
    assert sorted((row["id"], row["note"]) for row in rows) == [("a", "three"), ("b", "two")]
