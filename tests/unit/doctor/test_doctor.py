"""The doctor: each fault planted in a healthy table is found, told with a place and an advice, mended if possible."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.cli.main import main
from hoodie.config.options import Options
from hoodie.config.services import ArchiveOptions
from hoodie.doctor.examine import Fault, Finding, Severity, examine
from hoodie.doctor.findings import Mend, Remedy
from hoodie.doctor.repair import repair
from hoodie.errors import CorruptFile, InvalidOption, LockLost, TableNotFound
from hoodie.formats.parquet.base_footer import BLOOM, BLOOM_TYPE, MAX_KEY, MIN_KEY, footer_metadata
from hoodie.formats.parquet.bloom import BloomKind, empty_filter
from hoodie.formats.timeline.plans import encode_compaction_plan
from hoodie.formats.timeline.services import encode_savepoint
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CompactionPlan, SavepointMetadata
from hoodie.plan.compaction import operation_of
from hoodie.recovery.rollback import rollback
from hoodie.services.archive import move_to_archive
from hoodie.services.clean import clean
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, temporary_beside
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.properties import BACKUP, PROPERTIES
from hoodie.table.settings import Settings, Writers
from hoodie.testing.storage import CountingStorage, Crash, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.archive import rolled_back_in_archive
from hoodie.timeline.timeline import new_time, utc_now
from support.clusterings import plan_clustering
from support.meanwhile import Meanwhile, calls_of
from support.trips import TRIPS

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def batch(*keys: str, ts: int = 1) -> pa.Table:
    """Rows of these keys; the city of a key is its first letter."""
    return pa.table({"id": list(keys), "city": [key[0] for key in keys], "ts": [ts] * len(keys)})


def healthy(**options: str) -> ArrowTable:
    """A table of two partitions and three commits."""
    table = ArrowTable.create(MemoryStorage(), {**TRIPS, **options})
    table.upsert(batch("a1", "a2", "b1"))
    table.upsert(batch("a1", ts=2))
    table.upsert(batch("b2", ts=3))
    return table


def look(table: ArrowTable, **how: Any) -> tuple[Finding, ...]:
    return examine(table.storage, grace=0, **how)


def faults(table: ArrowTable, **how: Any) -> list[Fault]:
    return [finding.fault for finding in look(table, **how)]


def file(table: ArrowTable, ending: str, at: int = -1) -> str:
    """Path of a file of the table, the newest by name."""
    paths = sorted(path for path in table.storage.snapshot() if path.endswith(ending))  # type: ignore[attr-defined]
    return paths[at]


def live_base(table: ArrowTable, partition: str = "a") -> str:
    (slice_,) = (s for s in table.slices() if s.group.partition == partition)
    assert slice_.base is not None
    return slice_.base.path


def rewrite(table: ArrowTable, path: str, change: Callable[[pa.Table, dict[str, str]], pa.Table]) -> None:
    """Change the rows and the footer of a base file; its commit's statistics follow in size, not in rows."""
    storage = table.storage
    source = pq.ParquetFile(io.BytesIO(storage.read(path)))
    footer = {k.decode(): v.decode() for k, v in source.metadata.metadata.items()}
    rows = change(source.read(), footer)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(footer)
    old = storage.size(path)
    storage.write(path, sink.getvalue())
    for name in [p for p in storage.snapshot() if p.endswith((".commit", ".deltacommit"))]:  # type: ignore[attr-defined]
        text = storage.read(name).decode()
        if path in text:
            storage.write(
                name, text.replace(f'"fileSizeInBytes":{old}', f'"fileSizeInBytes":{len(sink.getvalue())}').encode()
            )


def test_a_healthy_table_has_no_findings():
    table = healthy()
    assert look(table) == look(table, whole_table=True) == ()
    merged = healthy(**MERGE_ON_READ)
    assert any(slice_.logs for slice_ in merged.slices())
    assert look(merged) == ()


def test_a_path_without_a_table_is_said_to_be_none():
    with pytest.raises(TableNotFound):
        examine(MemoryStorage())


# --- the settings ---


def test_a_wrong_checksum_is_found_and_written_anew_only_on_request():
    table = healthy()
    right = table.storage.read(PROPERTIES)
    table.storage.write(PROPERTIES, right.replace(b"hoodie.table.checksum=", b"hoodie.table.checksum=9"))
    assert faults(table) == [Fault.CHECKSUM]
    assert repair(table.storage, dry_run=False, grace=0) == ()
    assert faults(table) == [Fault.CHECKSUM]
    assert [remedy.mend for remedy in repair(table.storage, dry_run=False, checksum=True, grace=0)] == [Mend.CHECKSUM]
    assert look(table) == ()
    assert len(table.snapshot()) == 4


@pytest.mark.parametrize("damage", [b"", b"\0" * 20, b"hoodie.table.version=6\n", b"hoodie.table.name=x\\u00"])
def test_damaged_settings_are_found(damage):
    table = healthy()
    table.storage.write(PROPERTIES, damage)
    assert faults(table) == [Fault.PROPERTIES]


def test_settings_that_contradict_themselves_are_found():
    table = healthy()
    table.storage.write(PROPERTIES, table.storage.read(PROPERTIES).replace(b"COPY_ON_WRITE", b"SOMETHING"))
    (found,) = look(table)
    assert (found.fault, "SOMETHING" in found.problem) == (Fault.PROPERTIES, True)


def test_a_change_of_settings_that_died_is_found_and_settled():
    table = healthy()
    whole = table.storage.read(PROPERTIES)
    table.storage.write(BACKUP, whole)
    table.storage.write(PROPERTIES, b"")
    assert Fault.BACKUP in faults(table)
    assert [remedy.mend for remedy in repair(table.storage, dry_run=False, grace=0)] == [Mend.RECOVER]
    assert look(table) == ()
    assert table.storage.read(PROPERTIES) == whole


# --- the timeline ---


def test_a_file_that_looks_like_an_instant_is_found():
    table = healthy()
    table.storage.write(".hoodie/20240101000000000.mystery", b"")
    (error, *notes) = look(table)
    assert (error.severity, error.fault, error.where) == (
        Severity.ERROR,
        Fault.UNKNOWN_NAME,
        ".hoodie/20240101000000000.mystery",
    )
    assert [note.fault for note in notes] == [Fault.UNEXAMINED]


def test_no_repair_of_a_table_deletes_rows_of_one_that_shares_its_folders(tmp_path: Path):
    """As Hudi makes them: a table in a folder of another one's partitions, each with files in folders of both."""
    parts = {"hoodie.datasource.write.partitionpath.field": "city,id"}
    keys = {"hoodie.datasource.write.recordkey.field": "id,ts"}
    outer = ArrowTable.create(LocalStorage(tmp_path / "t"), {**TRIPS, **keys, **parts})
    outer.upsert(batch("a1"))
    inner = ArrowTable.create(
        LocalStorage(tmp_path / "i"), {**TRIPS, **keys, "hoodie.datasource.write.partitionpath.field": "id"}
    )
    inner.upsert(batch("a3"))
    for folder in (".hoodie", "a3"):
        (tmp_path / "i" / folder).rename(tmp_path / "t" / "a" / folder)
    inner = ArrowTable(LocalStorage(tmp_path / "t" / "a"), inner.options)
    inner.upsert(batch("a1", "a2", ts=2))
    outer.upsert(batch("a1", ts=3))
    before = set(tmp_path.rglob("*.parquet"))
    for table, where in ((outer, "a"), (inner, "a1")):
        found = [finding for finding in look(table) if finding.fault is Fault.MISPLACED]
        assert [finding.where for finding in found] == [where]
        orphans = [finding for finding in look(table) if finding.fault is Fault.ORPHAN]
        assert [(finding.remedy, "other table's" in finding.advice) for finding in orphans] == [(None, True)]
        repair(table.storage, dry_run=False, grace=0)
    assert set(tmp_path.rglob("*.parquet")) == before


def test_a_completed_instant_of_0_bytes_is_found():
    table = healthy()
    table.storage.write(path := file(table, ".commit"), b"")
    assert (Fault.EMPTY, path) in [(f.fault, f.where) for f in look(table)]


def test_an_empty_plan_of_a_clean_or_rollback_is_found_and_removed():
    for name in ("clean", "rollback"):
        table = healthy()
        table.storage.write(path := f".hoodie/99990101000000000.{name}.requested", b"")
        assert (Fault.EMPTY, path) in [(f.fault, f.where) for f in look(table)]
        assert [remedy.target for remedy in repair(table.storage, dry_run=False, grace=0)] == [path]
        assert look(table) == ()


def test_a_clean_by_hudi_1_of_a_table_of_version_6_is_no_finding():
    """Its inflight file is empty."""
    table = healthy()
    for ts in (3, 4):
        table.upsert(batch("a1", ts=ts))
    table.clean({"hoodie.cleaner.commits.retained": "1"})
    table.storage.write(file(table, ".clean.inflight"), b"")
    assert look(table) == ()


@pytest.mark.parametrize("ending", [".commit", ".inflight"])
def test_a_damaged_instant_is_found(ending):
    table = healthy()
    table.storage.write(path := file(table, ending), b'{"partitionToWriteStats":')
    assert (Fault.UNREADABLE, path) in [(f.fault, f.where) for f in look(table)]


def test_an_inflight_instant_that_nobody_requested_is_found():
    table = healthy()
    table.storage.write(".hoodie/99990101000000000.inflight", b"")
    assert faults(table) == [Fault.STALE]
    table.storage.write(".hoodie/99990101000000001.replacecommit.inflight", b"")
    assert Fault.HALF in faults(table)


def died(table: ArrowTable, calls: int, **options: Any) -> None:
    table.fail_next(calls, Dying.BEFORE)
    with pytest.raises(Crash):
        table.upsert(batch("a1", "a9", "c1", ts=9), options=options)


def test_a_write_that_died_is_found_and_rolled_back():
    for kind in ({}, MERGE_ON_READ):
        table = healthy(**kind)
        before = table.snapshot()
        died(table, 4)
        assert faults(table) == [Fault.STALE]
        assert repair(table.storage, grace=0)[0].mend is Mend.ROLL_BACK
        assert faults(table) == [Fault.STALE]
        repair(table.storage, dry_run=False, grace=0)
        assert look(table) == ()
        assert table.snapshot().equals(before)
        assert table.state().timeline.instants[-1].action is Action.ROLLBACK


def test_a_write_that_is_under_way_is_no_finding_within_the_grace():
    table = healthy()
    died(table, 4)
    assert examine(table.storage) == ()
    assert repair(table.storage, dry_run=False) == ()
    assert table.state().timeline.instants[-1].state is State.INFLIGHT


def test_a_hollow_instant_is_found():
    table = healthy()
    times = [instant.requested for instant in table.state().timeline.commits]
    hollow = str(int(times[0]) + 1)
    assert hollow not in times
    table.storage.write(f".hoodie/{hollow}.commit.requested", b"")
    (found,) = look(table)
    assert (found.fault, found.where) == (Fault.HOLLOW, f".hoodie/{hollow}.commit.requested")


def test_a_rollback_that_died_is_found_and_finished():
    table = healthy()
    died(table, 4)
    storage = MemoryStorage(table.storage.snapshot())  # type: ignore[attr-defined]
    for calls in range(1, 7):
        table.storage = storage.copy()
        table.fail_next(calls, Dying.BEFORE)
        with pytest.raises(Crash):
            table.upsert(batch("z1"))
        if table.state().timeline.pending({Action.ROLLBACK}):
            assert Fault.STALE in faults(table)
            assert Mend.RESUME in [remedy.mend for remedy in repair(table.storage, dry_run=False, grace=0)]
            assert [f for f in look(table) if f.severity > Severity.NOTE] == []


def test_a_compaction_that_waits_is_no_finding_and_one_that_died_is():
    table = healthy(**MERGE_ON_READ)
    instant = schedule_compaction(table.storage, Settings.read(table.options))
    assert look(table) == ()
    table.storage.write(f".hoodie/{instant}.compaction.inflight", b"")
    assert faults(table) == [Fault.STALE]


@pytest.mark.parametrize(
    ("version", "action"), [("6", Action.CLUSTERING), ("8", Action.COMPACTION), ("9", Action.LOG_COMPACTION)]
)
def test_a_plan_that_never_ran_is_found_once_archiving_is_held_back_by_it(version: str, action: Action):
    table = healthy(**MERGE_ON_READ, **{"hoodie.write.table.version": version})
    state = table.state()
    time = new_time(state.timeline, state.config.timezone, utc_now)
    if action is Action.CLUSTERING:
        path = plan_clustering(table.storage, ["a"], instant=time)
    else:
        path = state.layout.path(Instant(time, action, State.REQUESTED))
        plan = CompactionPlan(operations=tuple(operation_of(s, 1) for s in table.slices() if s.logs))
        table.storage.write(path, encode_compaction_plan(plan))
    rows = batch("c1")
    for _ in range(30):
        table.upsert(rows)
    assert look(table) == ()
    table.upsert(rows)
    (finding,) = look(table)
    assert (finding.fault, finding.severity, finding.where) == (Fault.STALE, Severity.WARNING, path)
    assert finding.problem.startswith(f"a {action} was planned 0 h ago and is not run: archiving stops there, 31")
    assert ("hoodie compaction run" in finding.advice) == (action is Action.COMPACTION)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["overwrite", "clustering"])
@pytest.mark.parametrize("mended_by", ["repair", "write"])
def test_a_replacement_whose_plan_is_lost_hides_no_rows_and_is_rolled_back(mended_by: str, kind: str, version: str):
    """Hudi 0.15 neither reads nor writes such a table."""
    table = healthy(**{"hoodie.write.table.version": version})
    rows = table.snapshot()
    if kind == "overwrite":
        table.fail_next(3, Dying.BEFORE)
        with pytest.raises(Crash):
            table.insert_overwrite(batch("z1"))
        (pending,) = table.state().timeline.pending()
        plan = table.state().layout.path(replace(pending, state=State.REQUESTED))
    else:
        plan = plan_clustering(table.storage, ["a"], inflight=True)
        (pending,) = table.state().timeline.pending()
    assert pending.state is State.INFLIGHT
    table.storage.delete(plan)
    assert table.snapshot() == rows
    (finding,) = [finding for finding in look(table) if finding.severity is Severity.ERROR]
    assert (finding.fault, finding.where) == (Fault.HALF, table.state().timeline.path(pending))
    assert finding.remedy == Remedy(Mend.ROLL_BACK, pending.requested)
    if mended_by == "repair":
        repair(table.storage, dry_run=False, grace=0)
        assert look(table) == ()
        assert table.snapshot() == rows
    else:
        table.upsert(batch("z2"))
        assert len(table.snapshot()) == len(rows) + 1


def test_a_plan_whose_files_are_gone_is_found():
    table = healthy(**MERGE_ON_READ)
    instant = schedule_compaction(table.storage, Settings.read(table.options))
    (slice_,) = (s for s in table.slices() if s.logs)
    table.storage.delete(slice_.logs[0].path)
    found = {finding.fault: finding for finding in look(table)}
    assert found[Fault.PLAN].where == f".hoodie/{instant}.compaction.requested"
    assert slice_.logs[0].path in found[Fault.PLAN].problem
    assert found[Fault.MISSING].where == slice_.logs[0].path


# --- leftovers ---


def test_markers_heartbeats_and_temporary_files_that_were_left_are_found_and_removed():
    table = healthy()
    time = table.state().timeline.newest_commit
    left = {
        f".hoodie/.temp/{time}": f".hoodie/.temp/{time}/a/x_0-0-0_{time}.parquet.marker.CREATE",
        f".hoodie/.heartbeat/{time}": f".hoodie/.heartbeat/{time}",
        (inside := temporary_beside(f".hoodie/{time}.commit")): inside,
        (beside := temporary_beside("a/x.parquet")): beside,
    }
    for path in left.values():
        table.storage.write(path, b"")
    assert {finding.where for finding in look(table)} == set(left)
    assert {finding.severity for finding in look(table)} == {Severity.NOTE}
    assert examine(table.storage) == ()
    repair(table.storage, dry_run=False, grace=0)
    assert look(table) == ()
    assert not set(left.values()) & set(table.storage.snapshot())  # type: ignore[attr-defined]


def test_locks_of_dead_processes_are_found():
    table = healthy()
    table.storage.write(lease := ".hoodie/.locks/table.0000000001", b"{}")
    table.storage.write(endless := ".hoodie/lock", b"")
    assert [(f.severity, f.fault, f.where) for f in look(table)] == [
        (Severity.WARNING, Fault.LOCK, endless),
        (Severity.NOTE, Fault.LOCK, lease),
    ]
    assert [remedy.target for remedy in repair(table.storage, dry_run=False, grace=0)] == [lease]


LOCKED = {
    "hoodie.write.lock.wait_time_ms": "0",
    "hoodie.write.lock.client.num_retries": "0",
}


@pytest.mark.parametrize("provider", ["StorageBasedLockProvider", "FileSystemBasedLockProvider"])
def test_a_repair_takes_the_lock_of_the_tables_writers_and_gives_it_back(provider, tmp_path, capsys):
    table = ArrowTable.create(LocalStorage(tmp_path), TRIPS)
    table.upsert(batch("a1"))
    table.storage.write(beside := temporary_beside("a/x.parquet"), b"")
    options = {"hoodie.write.lock.provider": provider, **LOCKED}
    given = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    repairing = ["doctor", str(tmp_path), "--grace", "0", "--repair", "--yes", *given]
    with Writers.read(Options(options)).lock_on(table.storage):
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert main(repairing) == 3
        assert "lock of table" in capsys.readouterr().err
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert main(repairing) == 0
    assert not table.storage.exists(beside)
    lock = Writers.read(Options(options)).lock_on(table.storage)
    assert lock.acquire(0)
    lock.release()


def test_a_repair_does_not_delete_its_own_lock_nor_any_file_once_that_is_lost():
    table = healthy()
    left = [temporary_beside("a/x.parquet"), temporary_beside("a/y.parquet")]
    for path in left:
        table.storage.write(path, b"")
    options = {"hoodie.write.lock.provider": "StorageBasedLockProvider", **LOCKED}
    done = repair(table.storage, writers=Writers.read(Options(options)), dry_run=False, grace=-1)
    assert {remedy.target for remedy in done} == set(left)
    for path in left:
        table.storage.write(path, b"")
    # Another writer takes the lock over as soon as the first file is deleted.
    take_over = partial(table.storage.write, ".hoodie/.locks/table.0000000099", b"")
    stolen = Meanwhile(table.storage, calls_of("delete", ""), take_over)
    with pytest.raises(LockLost):
        repair(stolen, writers=Writers.read(Options(options)), dry_run=False, grace=0)
    assert sum(table.storage.exists(path) for path in left) == 1


class Locked(WrappedStorage):
    """Keeps the paths of the locks that are taken."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.locks: list[str] = []

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if name == "create_new" and path.startswith(".hoodie/.locks/"):
            self.locks.append(path)
        return call()


def test_a_repair_with_a_lock_that_needs_an_option_names_the_one_that_is_missing():
    with pytest.raises(InvalidOption, match=r"hoodie\.write\.lock\.zookeeper\.base_path"):
        repair(
            healthy().storage,
            writers=Writers.read(Options({"hoodie.write.lock.provider": "ZookeeperBasedLockProvider"})),
        )


def test_a_repair_among_several_writers_takes_the_lock_that_they_take():
    storage = Locked(healthy().storage)
    mode = Options({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
    repair(storage, writers=Writers.read(mode), dry_run=False)
    assert storage.locks


def test_a_savepoint_that_died_is_found_and_removed():
    table = healthy()
    table.storage.write(path := f".hoodie/{table.state().timeline.newest_commit}.savepoint.inflight", b"")
    assert [(f.severity, f.fault, f.where) for f in look(table)] == [(Severity.NOTE, Fault.STALE, path)]
    repair(table.storage, dry_run=False, grace=0)
    assert look(table) == ()


# --- data files ---


def test_a_published_file_that_is_gone_is_found():
    table = healthy()
    table.storage.delete(path := live_base(table))
    (found,) = look(table)
    assert (found.severity, found.fault, found.where) == (Severity.ERROR, Fault.MISSING, path)


def test_an_older_version_that_is_gone_is_found_unless_a_clean_took_it():
    table = healthy()
    old = sorted(path for path in table.storage.snapshot() if path.startswith("a/") and path.endswith(".parquet"))  # type: ignore[attr-defined]
    gone = next(path for path in old if path != live_base(table))
    table.storage.delete(gone)
    (found,) = look(table)
    assert (found.fault, found.where, "earlier instants" in found.problem) == (Fault.MISSING, gone, True)


def test_a_file_that_a_savepoint_keeps_and_that_is_gone_is_found():
    table = healthy()
    time = table.state().timeline.commits[0].requested
    metadata = SavepointMetadata(by="me", at=0, files={"a": ("gone_0-0-0_20240101000000000.parquet",)})
    table.storage.write(f".hoodie/{time}.savepoint.inflight", b"")
    table.storage.write(f".hoodie/{time}.savepoint", encode_savepoint(metadata))
    (found,) = look(table)
    assert (found.fault, found.where) == (Fault.MISSING, "a/gone_0-0-0_20240101000000000.parquet")


def test_an_orphan_of_no_instant_is_found_and_removed():
    table = healthy()
    path = live_base(table)
    orphan = path.rpartition("_")[0] + "_99990101000000000.parquet"
    table.storage.write(orphan, table.storage.read(path))
    (found,) = look(table)
    assert (found.severity, found.fault, found.where) == (Severity.WARNING, Fault.ORPHAN, orphan)
    before = table.snapshot()
    assert [remedy.target for remedy in repair(table.storage, dry_run=False, grace=0)] == [orphan]
    assert look(table) == ()
    assert table.snapshot().equals(before)


class BeforeCall(WrappedStorage):
    """Another writer does its work just before a listing, or before a file is opened, counted from 1."""

    def __init__(self, inner: Storage, calls: str, number: int, work: Callable[[], object]) -> None:
        super().__init__(inner)
        self.calls, self.number, self.work = calls, number, work

    def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        self.number -= name.startswith(self.calls)
        if self.number == 0 and name.startswith(self.calls):
            self.work()
        return call()


@pytest.mark.parametrize(("calls", "kind"), [("list", MERGE_ON_READ), ("open", {}), ("read", {})])
@pytest.mark.parametrize("version", ["6", "9"])
def test_nothing_is_wrong_while_another_writer_publishes_plans_cleans_and_archives(
    version: str, calls: str, kind: dict[str, str]
):
    few = {"hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = healthy(**kind, **few, **{"hoodie.write.table.version": version})
    for number in range(1, 100):
        other = ArrowTable(table.storage.copy(), table.options)

        def work(other: ArrowTable = other) -> None:
            for ts in (4, 5):
                other.upsert(batch("a1", "c1", ts=ts))
            if kind:
                schedule_compaction(other.storage, Settings.read(other.options))

        seen = BeforeCall(other.storage, calls, number, work)
        assert list(examine(seen)) == [], f"before {calls} {number}"
        if seen.number > 0:
            return


@pytest.mark.parametrize("calls", ["list", "open", "read"])
def test_a_metadata_table_is_not_wrong_while_another_process_cleans(calls: str):
    table = healthy(
        **{
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.clean.automatic": "false",
            "hoodie.cleaner.commits.retained": "1",
        }
    )
    for number in range(1, 100):
        other = table.storage.copy()
        seen = BeforeCall(other, calls, number, partial(clean, other, Settings.read(table.options)))
        assert list(examine(seen)) == [], f"before {calls} {number}"
        if seen.number > 0:
            return
    raise AssertionError("more calls than expected")


def test_a_lost_attempt_beside_a_published_file_is_found_and_removed():
    table = healthy()
    path = live_base(table)
    lost = path.replace("_0-0-0_", "_0-0-7_")
    assert lost != path
    table.storage.write(lost, table.storage.read(path))
    found = look(table)
    assert (found[0].severity, found[0].fault, found[0].where) == (Severity.ERROR, Fault.ORPHAN, lost)
    assert [remedy.target for remedy in repair(table.storage, dry_run=False, grace=0)] == [lost]
    assert look(table) == ()


def test_a_log_that_its_commit_does_not_name_is_found():
    table = healthy(**MERGE_ON_READ)
    (slice_,) = (s for s in table.slices() if s.logs)
    log = slice_.logs[0]
    lost = log.path.rpartition("_")[0] + "_5-5-5"
    table.storage.write(lost, table.storage.read(log.path))
    (found,) = look(table)
    assert (found.fault, found.where) == (Fault.ORPHAN, lost)


def test_a_file_that_two_commits_name_is_found():
    table = healthy()
    path = file(table, ".commit")
    later = path.replace(table.state().timeline.newest_commit, "99990101000000000")
    table.storage.write(later, table.storage.read(path))
    assert Fault.TWICE in faults(table)


def test_a_file_of_another_size_than_was_published_is_found():
    table = healthy()
    path = live_base(table)
    table.storage.write(path, table.storage.read(path)[:-3])
    assert [(f.fault, f.where) for f in look(table)] == [(Fault.DAMAGED, path)]
    assert faults(table, rows=False) == [Fault.SIZE]


def test_a_file_of_other_rows_than_were_published_is_found():
    table = healthy()
    rewrite(table, path := live_base(table), lambda rows, footer: rows.slice(0, 1))
    assert [(f.fault, f.where) for f in look(table)] == [(Fault.COUNT, path)]


def test_a_partition_without_metafile_is_found():
    table = healthy()
    table.storage.delete("a/.hoodie_partition_metadata")
    (found,) = look(table)
    assert (found.severity, found.fault, found.where) == (Severity.ERROR, Fault.INVISIBLE, "a")
    assert found.remedy == Remedy(Mend.METAFILE, "a")
    repair(table.storage, dry_run=False, grace=0)
    assert look(table) == ()
    assert table.storage.exists("a/.hoodie_partition_metadata")


@pytest.mark.parametrize("cut", [0, 3, 300])
def test_a_damaged_base_file_is_found(cut):
    table = healthy()
    path = live_base(table)
    table.storage.write(path, table.storage.read(path)[:cut])
    (damaged,) = (found for found in look(table) if (found.fault, found.where) == (Fault.DAMAGED, path))
    assert "Restore it from a copy of the table" in damaged.advice


def test_a_damaged_log_is_found():
    table = healthy(**MERGE_ON_READ)
    (slice_,) = (s for s in table.slices() if s.logs)
    path = slice_.logs[0].path
    table.storage.write(path, table.storage.read(path)[:-20])
    assert [(f.fault, f.where) for f in look(table)] == [(Fault.SIZE, path)]
    table.storage.write(path, b"#HODIE" + table.storage.read(path))
    assert (Severity.ERROR, Fault.DAMAGED) in [(f.severity, f.fault) for f in look(table)]


def test_a_column_that_is_damaged_is_found_when_all_of_it_is_read():
    table = healthy()
    path = live_base(table)
    data = bytearray(table.storage.read(path))
    column = next(
        column
        for number in range(8)
        if (column := pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(number)).path_in_schema == "ts"
    )
    data[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 3] ^= 1
    table.storage.write(path, bytes(data))
    assert look(table) == ()  # no key is in it
    (found,) = look(table, all_columns=True)
    assert (found.severity, found.fault, found.where) == (Severity.ERROR, Fault.DAMAGED, path)
    with pytest.raises(CorruptFile, match="CRC"):  # nor does an update write it into a new file
        table.upsert(batch("a1", ts=9))
    merged = healthy(**MERGE_ON_READ)
    assert look(merged, all_columns=True) == ()


def test_an_older_version_is_read_with_all_columns():
    table = healthy()
    old = min(path for path in table.storage.snapshot() if path.startswith("a/") and path.endswith(".parquet"))
    data = bytearray(table.storage.read(old))
    data[10] ^= 0xFF
    table.storage.write(old, bytes(data))
    assert look(table) == ()
    assert [finding.where for finding in look(table, all_columns=True)] == [old]


def test_half_a_base_file_of_a_compaction_that_died_is_no_damage():
    table = healthy(**MERGE_ON_READ)
    bases = [slice_.base for slice_ in table.slices() if slice_.logs]
    instant = schedule_compaction(table.storage, Settings.read(table.options))
    table.storage.write(f".hoodie/{instant}.compaction.inflight", b"")
    for base in bases:
        table.storage.write(base.path.replace(base.instant, instant), table.storage.read(base.path)[:500])
    assert bases
    assert [finding.fault for finding in look(table, all_columns=True)] == [Fault.STALE]


def test_a_stray_file_is_a_note():
    table = healthy()
    for path in ("a/copy of x.parquet", "a/notes.txt", "a/.DS_Store", "readme", "_tmp/x"):
        table.storage.write(path, b"x")
    found = {finding.where: finding for finding in look(table)}
    assert found.keys() == {"a/copy of x.parquet", "readme"}
    assert {(f.severity, f.fault, f.remedy) for f in found.values()} == {(Severity.NOTE, Fault.STRAY, None)}
    assert "1 more such files" in found["a/copy of x.parquet"].problem


def test_a_block_of_an_instant_that_the_timeline_rolled_back_is_no_damage():
    table = healthy(**MERGE_ON_READ)
    (slice_,) = (s for s in table.slices() if s.logs)
    log = slice_.logs[0]
    block = table.storage.read(log.path)
    _, written, begun = (commit.requested for commit in table.state().timeline.commits)
    assert written.encode() in block
    table.upsert(batch("a2", ts=5))
    undone = table.state().timeline.newest_commit
    rollback(table.storage, Settings.of({}))
    for path in [path for path in table.storage.snapshot() if path.startswith("a/.") and ".log." in path]:
        if path != log.path:  # nothing in the logs tells of the rollback
            table.storage.delete(path)
    late = block.replace(written.encode(), undone.encode())  # of a task that wrote after the rollback
    table.storage.write(log.path.rpartition("_")[0] + "_9-9-9", late)
    assert table.state().timeline.newest_commit == begun
    table.upsert(batch("b1", ts=7))
    assert faults(table) == []
    before, state = table.storage.snapshot(), table.state()
    with Writers().lock_on(table.storage) as lock:
        move_to_archive(state, state.timeline.completed({Action.ROLLBACK}), ArchiveOptions(), lock)
    assert not any(".rollback" in path for path in table.storage.snapshot())
    assert faults(table) == []  # the archive tells of it
    counting, archive = CountingStorage(table.storage), table.state().config.history_folder
    for _ in range(2):  # file slices in which the write left blocks
        assert rolled_back_in_archive(counting, archive, frozenset({undone, "20240101"})) == {undone}
    assert counting.count("read") == 1
    for path in [path for path in before if ".rollback" in path or "/archived/" in path]:
        table.storage.discard(path)
    for path in [path for path in table.storage.snapshot() if "/archived/" in path]:
        table.storage.delete(path)
    assert faults(table) == [Fault.DAMAGED]


# --- keys ---


def test_a_filter_that_lacks_keys_is_found():
    table = healthy()

    def forget(rows: pa.Table, footer: dict[str, str]) -> pa.Table:
        footer |= footer_metadata(None, None, empty_filter(BloomKind.DYNAMIC_V0, 10, 0.01))
        return rows

    rewrite(table, path := live_base(table), forget)
    (found,) = look(table)
    assert (found.fault, found.where) == (Fault.FILTER, path)
    assert "2 of 2 keys" in found.problem


def test_a_key_range_that_lacks_keys_is_found():
    table = healthy()

    def narrow(rows: pa.Table, footer: dict[str, str]) -> pa.Table:
        footer[MAX_KEY] = "a1"
        assert {BLOOM, BLOOM_TYPE, MIN_KEY} <= footer.keys()
        return rows

    rewrite(table, path := live_base(table), narrow)
    (found,) = look(table)
    assert (found.fault, found.where) == (Fault.RANGE, path)


def test_rows_without_key_or_of_another_partition_are_found():
    for column, value in (("_hoodie_record_key", None), ("_hoodie_partition_path", "b")):
        table = healthy()

        def spoil(rows: pa.Table, footer: dict[str, str], column: str = column, value: str | None = value) -> pa.Table:
            at = rows.schema.get_field_index(column)
            values = [value, *rows.column(column).to_pylist()[1:]]
            return rows.set_column(at, rows.schema.field(column), pa.array(values, pa.string()))

        rewrite(table, path := live_base(table), spoil)
        assert [(f.fault, f.where) for f in look(table)] == [(Fault.KEY, path)]


@pytest.mark.parametrize("kind", [{}, MERGE_ON_READ])
def test_a_key_in_two_file_groups_is_found(kind):
    table = healthy(**kind)
    table.bulk_insert(batch("a1", "a7", ts=5))
    (found,) = look(table)
    assert (found.fault, found.where) == (Fault.DUPLICATE, "a")
    assert "1 keys" in found.problem
    assert "'a1'" in found.problem


def test_a_key_in_two_partitions_is_found_where_the_table_is_the_scope():
    table = healthy()
    table.upsert(pa.table({"id": ["a1"], "city": ["b"], "ts": [7]}))
    assert look(table) == ()
    assert faults(table, whole_table=True) == [Fault.DUPLICATE]


# --- the command ---


def test_the_command_tells_mends_on_request_and_says_by_its_status(tmp_path, capsys):
    table = ArrowTable.create(LocalStorage(tmp_path), TRIPS)
    table.upsert(batch("a1"))
    assert main(["doctor", str(tmp_path), "--grace", "0"]) == 0
    assert capsys.readouterr().out == "Healthy.\n"
    died(table, 4)
    everything = ["doctor", str(tmp_path), "--grace", "0", "--repair"]
    assert main(["doctor", str(tmp_path)]) == 0
    assert main(everything) == 1
    assert "Would do, with --yes:\n  roll the failed write back" in capsys.readouterr().out
    assert main([*everything, "--yes"]) == 0
    assert "Done:\n  roll the failed write back" in capsys.readouterr().out
    assert main(everything) == 0
    assert main(["doctor", str(tmp_path), "--quick"]) == 0


def test_findings_have_a_place_and_say_what_to_do():
    table = healthy()
    table.storage.delete(live_base(table))
    table.storage.write(".hoodie/99990101000000000.inflight", json.dumps({}).encode())
    for finding in look(table):
        text = str(finding)
        assert finding.where in text
        assert finding.advice
        assert not finding.problem.endswith(".")
