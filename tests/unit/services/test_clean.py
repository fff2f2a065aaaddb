"""Cleaning of tables without Spark: what goes, what stays, where it looks, and whatever dies in between."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from hoodie.config.services import CleanOptions, CleanPolicy
from hoodie.doctor.examine import examine
from hoodie.errors import CorruptFile, InvalidOption, MetafileMissing, ServiceFailed, UnsupportedTable, WriteConflict
from hoodie.formats.timeline.services import decode_clean_metadata, decode_clean_plan, encode_clean_plan
from hoodie.model.files import BaseFile, FileGroupId, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CleanMetadata, CleanPlan
from hoodie.plan.clean import CHECKPOINT, earliest_retained, emptied, files_to_delete, scope_of
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.clean import CLEANS, clean, resume_clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.savepoint import delete_savepoint
from hoodie.storage.protocol import Storage, join
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable, FailsAt
from hoodie.timeline.timeline import LAYOUT_1, Timeline, utc_now
from hoodie.timeline.transition import create_requested, to_inflight
from hoodie.view.load import build_view, load_view
from support.instants import next_time
from support.meanwhile import Meanwhile, calls_of
from support.nightly import each_call
from support.trips import TRIPS, WRITES, rows

RETAINED = "hoodie.cleaner.commits.retained"
OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
NOW = {"hoodie.compact.inline": "false", "hoodie.compact.inline.max.delta.commits": "1"}


def made(storage: Storage, options: Mapping[str, str] | None = None, **table: str) -> ArrowTable:
    ArrowTable.create(storage, {**TRIPS, **{key.replace("__", "."): value for key, value in table.items()}})
    return ArrowTable(storage, {**WRITES, **(options or {})})


def updated(table: ArrowTable, times: int, city: str = "oslo", key: str = "a") -> list[str]:
    return [table.upsert(rows(key, city=city, ts=ts)).instant for ts in range(1, times + 1)]


def data_files(storage: Storage, partition: str | None = None) -> set[str]:
    tree = storage.list_tree("", skip=(".hoodie",))
    paths = {(folder, entry.name) for folder, entries in tree.items() for entry in entries}
    return {join(*p) for p in paths if parse_data_file(*p, 0) and (partition is None or p[0] == partition)}


def cleans(storage: Storage) -> list[CleanMetadata]:
    timeline = load_state(storage).timeline
    paths = [timeline.path(instant) for instant in timeline.completed({Action.CLEAN})]
    return [decode_clean_metadata(storage.read(path), path) for path in paths]


def versions(paths: Iterable[str]) -> list[str]:
    return sorted(path.rpartition("_")[2].removesuffix(".parquet") for path in paths)


# --- what goes ---


def test_what_retained_commits_need_stays_and_the_rest_goes() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "2"})
    instants = updated(table, 5)
    # The earliest retained commit is the fourth; who reads the changes since then needs the one before, too.
    assert versions(data_files(storage)) == instants[2:]
    for ts, instant in enumerate(instants[2:], 3):
        assert table.as_of(instant).column("ts").to_pylist() == [ts]
    assert [done.earliest for done in cleans(storage)] == instants[2:4]
    assert [done.files_deleted for done in cleans(storage)] == [1, 1]


def test_plans_are_hudis() -> None:
    storage = MemoryStorage()
    instants = updated(made(storage, {RETAINED: "1"}), 3)
    timeline = load_state(storage).timeline
    (done,) = timeline.completed({Action.CLEAN})
    requested, inflight = (timeline.path(replace(done, state=state)) for state in (State.REQUESTED, State.INFLIGHT))
    assert storage.read(requested) == storage.read(inflight)
    plan = decode_clean_plan(storage.read(requested), requested)
    (gone,) = plan.files["oslo"]
    assert gone.endswith(f"_{instants[0]}.parquet")
    assert plan == CleanPlan(
        policy="KEEP_LATEST_COMMITS",
        earliest=(instants[2], "commit", "COMPLETED"),
        last_completed=instants[2],
        files={"oslo": (gone,)},
    )
    (metadata,) = cleans(storage)
    assert metadata.partitions["oslo"].deleted == metadata.partitions["oslo"].planned == (gone,)
    assert done.requested == metadata.start > instants[2]


def test_only_so_many_versions_stay() -> None:
    storage = MemoryStorage()
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "2"}
    table = made(storage, policy)
    instants = updated(table, 4)
    assert versions(data_files(storage)) == instants[2:]
    table.insert_overwrite(rows("b", ts=9))
    assert len(data_files(storage)) == 1, "replaced file groups have no versions to keep"
    assert table.snapshot().column("id").to_pylist() == ["b"]


def test_fewer_files_than_versions_all_stay() -> None:
    storage = MemoryStorage()
    table = made(storage, {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", **OFF})
    instants = updated(table, 2)
    assert table.clean().files == {}
    assert versions(data_files(storage)) == instants


def timeline_of(*times: str, pending: str = "") -> Timeline:
    done = [Instant(time, Action.COMMIT, State.COMPLETED) for time in times]
    begun = [Instant(pending, Action.DELTA_COMMIT, State.REQUESTED)] if pending else []
    return Timeline(tuple(sorted([*done, *begun])))


def shifted(hours: int) -> dt.datetime:
    return utc_now() + dt.timedelta(hours=hours)


def test_hours_are_counted_from_now() -> None:
    day = "20240301"
    timeline = timeline_of(f"{day}000000000", f"{day}030000000", f"{day}060000000")
    for hours, kept in ((1, "06"), (2, "06"), (5, "03"), (6, "03"), (9, "00")):
        options = CleanOptions(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours=hours)
        found = earliest_retained(timeline, options, f"{day}080000000")
        assert found.requested == f"{day}{kept}0000000", hours
    storage = MemoryStorage()
    table = made(storage, {"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS", "hoodie.cleaner.hours.retained": "5"})
    updated(table, 4)
    # All are of the last five hours; later none is, and reads as of the newest commit and what it came from stay.
    for later, there in ((4, 4), (6, 2)):
        clean(storage, Settings.read(table.options), clock=partial(shifted, later))
        assert len(data_files(storage)) == there
    assert table.snapshot().num_rows == 1


def test_the_logs_of_a_slice_go_with_it() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1", **NOW}, **{k.replace(".", "__"): v for k, v in MOR.items()})
    updated(table, 3)
    assert cleans(storage) == [], "appending to logs replaces nothing"
    before = data_files(storage)
    schedule_compaction(storage, Settings.read(table.options))
    compact(storage, Settings.read(table.options))
    last = updated(table, 2)
    assert len(before) == 3
    assert not before & data_files(storage)
    assert table.snapshot().column("ts").to_pylist() == [2]
    assert table.as_of(last[0]).num_rows == 1


def test_replaced_file_groups_go_once_the_replacement_is_old_enough() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1"})
    table.upsert(rows("a"))
    first = data_files(storage)
    table.insert_overwrite(rows("b"))
    table.clean(options={"hoodie.cleaner.incremental.mode": "false"})
    assert first < data_files(storage), "a read as of the replacement does not need them, but one right before does"
    table.upsert(rows("c", city="rome"))
    assert not first & data_files(storage)
    assert sorted(table.snapshot().column("id").to_pylist()) == ["b", "c"]


def test_a_partition_without_files_goes_as_a_whole() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1"})
    table.upsert(rows("a"))
    table.upsert(rows("b", city="rome"))
    table.delete_partitions(["oslo"])
    table.upsert(rows("c", city="rome"))
    assert storage.list("oslo") == []
    (done,) = cleans(storage)
    assert done.partitions["oslo"].removed
    assert not done.partitions.get("rome")
    table.upsert(rows("d"))
    assert sorted(table.snapshot().column("id").to_pylist()) == ["b", "c", "d"]


def test_the_folder_of_a_table_without_partitions_stays() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, {k: v for k, v in TRIPS.items() if "partition" not in k})
    table = ArrowTable(storage, {**WRITES, RETAINED: "1"})
    table.upsert(rows("a"))
    table.insert_overwrite_table(rows("b"))
    table.upsert(rows("c"))
    assert storage.exists(".hoodie_partition_metadata")
    assert sorted(table.snapshot().column("id").to_pylist()) == ["b", "c"]


# --- what stays ---


def test_files_of_savepoints_stay_until_the_savepoint_goes() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1"})
    updated(table, 1, "rome")
    instants = updated(table, 2)
    make_savepoint(storage, Settings.of({}), instants[1])
    updated(table, 3, "rome")
    later = updated(table, 4)
    assert versions(data_files(storage, "oslo")) == [instants[1], later[2], later[3]]
    assert cleans(storage)[-1].extra == {"savepointed_timestamps": instants[1]}
    updated(table, 3, "rome")  # what comes next looks here only, if nothing tells otherwise
    delete_savepoint(storage, Settings.of({}), instants[1])
    table.upsert(rows("z", city="bern"))
    assert versions(data_files(storage, "oslo")) == [later[3]]
    assert cleans(storage)[-1].extra == {}


def test_what_a_pending_write_began_from_stays() -> None:
    one = CleanOptions(commits=1)
    for pending, kept in (("", "5"), ("6", "5"), ("4", "3"), ("2", "1"), ("0", None)):
        found = earliest_retained(timeline_of("1", "3", "5", pending=pending), one, "9")
        assert (found and found.requested) == kept, pending


def test_the_slices_of_a_pending_compaction_stay() -> None:
    for policy in CleanPolicy:
        storage = MemoryStorage()
        options = {"hoodie.cleaner.policy": policy.value, RETAINED: "1", "hoodie.cleaner.fileversions.retained": "1"}
        table = made(storage, {**options, **NOW}, **{k.replace(".", "__"): v for k, v in MOR.items()})
        updated(table, 3)
        schedule_compaction(storage, Settings.read(table.options))
        planned = data_files(storage)
        table.upsert(rows("a", ts=7))
        table.upsert(rows("a", ts=8))
        table.clean(options={"hoodie.cleaner.incremental.mode": "false"})
        assert planned < data_files(storage)
        assert compact(storage, Settings.read(table.options)) is not None
        assert table.snapshot().column("ts").to_pylist() == [8]


def test_a_pending_compaction_of_a_replaced_group_has_its_files_still() -> None:
    storage = MemoryStorage()
    options = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    table = made(storage, {**options, **NOW}, **{k.replace(".", "__"): v for k, v in MOR.items()})
    updated(table, 2)
    schedule_compaction(storage, Settings.read(table.options))
    planned = data_files(storage)
    table.insert_overwrite(rows("b"))
    table.clean()
    assert planned < data_files(storage)
    assert compact(storage, Settings.read(table.options)) is not None
    assert table.snapshot().column("id").to_pylist() == ["b"]
    table.clean()
    assert len(data_files(storage)) == 1


def test_versions_that_a_pending_compaction_opened_are_not_counted() -> None:
    storage = MemoryStorage()
    table = made(storage, {**OFF, **NOW}, **{k.replace(".", "__"): v for k, v in MOR.items()})
    for ts in range(1, 4):
        table.upsert(rows("a", ts=2 * ts - 1))
        table.upsert(rows("a", ts=2 * ts))
        schedule_compaction(storage, Settings.read(table.options))
        if ts < 3:
            compact(storage, Settings.read(table.options))
    state = load_state(storage)
    view = load_view(storage, state.timeline, state.config)
    (group,) = view.groups
    assert len(view.groups[group].bases) == 3
    pending = {path for path in data_files(storage) if view.groups[group].bases[-1].instant in path}
    for keep, gone in ((3, 0), (2, 1), (1, 2)):
        options = CleanOptions(policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions=keep)
        files = files_to_delete(view, options, None, pending)
        assert len({name for name in files.get("oslo", ()) if name.endswith(".parquet")}) == gone


# --- where it looks ---


def test_a_clean_lists_only_partitions_where_files_were_replaced() -> None:
    inner = MemoryStorage()
    options = {RETAINED: "2"}
    table = made(inner, options)
    cities = [f"city{number}" for number in range(20)]
    table.insert(pa.concat_tables([rows(city, city=city) for city in cities]))
    storage = CountingStorage(inner)
    table = ArrowTable(storage, table.options)
    for ts in range(3):
        table.upsert(rows("city0", city="city0", ts=ts + 2))
    storage.reset()
    table.upsert(rows("city1", city="city1", ts=9))
    assert len(cleans(inner)) == 1 + 1
    assert storage.count("list_tree", "") == 0
    assert [city for city in cities if storage.count("list", city)] == ["city0", "city1"]


def test_inserts_alone_make_no_clean_look_anywhere() -> None:
    inner = MemoryStorage()
    table = made(inner, {RETAINED: "1"})
    storage = CountingStorage(inner)
    counted = ArrowTable(storage, table.options)
    counted.insert(rows("first"))
    looked = []
    for number in range(2 * CHECKPOINT + 2):
        storage.reset()
        counted.insert(rows(f"k{number}", city=f"city{number}"))
        looked.append((storage.count("list_tree", ""), sum(storage.count("list", f"city{n}") for n in range(number))))
    assert set(looked) == {(0, 0)}
    # Now and then a clean is recorded, so that commits are looked at once, and may be archived.
    assert [done.files_deleted for done in cleans(inner)] == [0, 0]
    timeline = load_state(inner).timeline
    scope = scope_of(timeline, CleanOptions(commits=1), timeline.commits[-1], cleans(inner)[-1], (), all_active=True)
    assert scope.commits is not None
    assert len(scope.commits) < CHECKPOINT


def test_a_clean_that_was_off_looks_everywhere_once() -> None:
    inner = MemoryStorage()
    table = made(inner, {**OFF, RETAINED: "1", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"})
    updated(table, 3)
    updated(table, 6, "rome")
    table.archive()
    storage = CountingStorage(inner)
    on = ArrowTable(storage, {**WRITES, RETAINED: "1"})
    on.upsert(rows("z", city="bern"))
    assert storage.count("list_tree", "") == 1
    assert len(data_files(inner, "oslo")) == 1
    assert len(data_files(inner, "rome")) == 1
    storage.reset()
    on.upsert(rows("y", city="bern"))
    assert storage.count("list_tree", "") == 0


def test_a_clean_waits_for_its_number_of_commits() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1", "hoodie.clean.max.commits": "3"})
    made_by = []
    for ts in range(9):
        table.upsert(rows("a", ts=ts))
        made_by.append(len(cleans(storage)))
    assert made_by == [0, 0, 1, 1, 1, 2, 2, 2, 3]


def test_fewer_commits_are_kept_when_asked() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "3"})
    instants = updated(table, 6)
    assert versions(data_files(storage)) == instants[2:]
    result = table.clean(options={RETAINED: "1"})
    assert versions(data_files(storage)) == instants[4:]
    assert versions(result.paths) == instants[2:4]
    assert table.clean(options={RETAINED: "1"}).instant == ""


# --- what a person sees ---


def test_a_dry_run_tells_what_would_go_and_changes_nothing() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1", **OFF})
    instants = updated(table, 4)
    before = storage.snapshot()
    told = table.clean(dry_run=True)
    assert storage.snapshot() == before
    assert told.dry_run
    assert versions(told.paths) == instants[:2]
    done = table.clean()
    assert (done.paths, done.earliest) == (told.paths, told.earliest)
    assert str(told).startswith("clean (nothing to do): would delete 2 files") or "would delete 2 files" in str(told)
    assert f"clean {done.instant}: deleted 2 files in 1 partitions" in str(done)
    assert instants[3] in str(done)


def test_bad_options_are_refused_before_anything_is_written() -> None:
    storage = MemoryStorage()
    table = made(storage)
    before = storage.snapshot()
    for options in ({RETAINED: "0"}, {"hoodie.cleaner.policy": "KEEP_ALL"}, {"hoodie.clean.automatic": "maybe"}):
        with pytest.raises(InvalidOption, match=r"hoodie\.clean"):
            table.upsert(rows("a"), options=options)
        with pytest.raises(InvalidOption, match=r"hoodie\.clean"):
            table.clean(options=options)
    assert storage.snapshot() == before


def test_a_table_that_is_not_written_is_not_cleaned() -> None:
    storage = MemoryStorage()
    made(storage, OFF)
    text = storage.read(".hoodie/hoodie.properties").replace(b"hoodie.table.version=6", b"hoodie.table.version=5")
    storage.write(".hoodie/hoodie.properties", text)
    for dry_run in (False, True):
        with pytest.raises(UnsupportedTable, match="version 5"):
            clean(storage, Settings.of({}), dry_run=dry_run)


def test_no_clean_while_a_restore_is_pending() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1", **OFF})
    updated(table, 3)
    create_requested(storage, "9" * 17, Action.RESTORE, b"", layout=LAYOUT_1)
    before = storage.snapshot()
    for dry_run in (False, True):
        with pytest.raises(WriteConflict, match="restore"):
            table.clean(dry_run=dry_run)
    assert storage.snapshot() == before


def test_a_clean_that_fails_after_a_commit_is_a_warning() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1"})
    instants = updated(table, 3)
    (done,) = load_state(storage).timeline.completed({Action.CLEAN})
    storage.write(f".hoodie/{done.requested}.clean", b"Obj\x01 broken")
    with pytest.warns(ServiceFailed, match="is committed, but cleaning after it failed: CorruptFile"):
        result = table.upsert(rows("a", ts=9))
    assert table.snapshot().column("ts").to_pylist() == [9]
    assert result.instant > instants[-1]


def test_services_can_be_turned_off() -> None:
    storage = MemoryStorage()
    table = made(storage, {RETAINED: "1", "hoodie.table.services.enabled": "false"})
    updated(table, 4)
    assert len(data_files(storage)) == 4
    assert not cleans(storage)


# --- whatever dies ---


def cleanable() -> MemoryStorage:
    """Three versions of a file group to delete, and a partition of which nothing is left."""
    storage = MemoryStorage()
    table = made(storage, OFF)
    table.upsert(rows("x", city="rome"))
    table.delete_partitions(["rome"])
    updated(table, 5)
    return storage


@pytest.mark.parametrize("dying", list(Dying))
def test_a_clean_that_dies_anywhere_is_finished_by_the_next(dying: Dying) -> None:
    before = cleanable()
    expected = ArrowTable(before).snapshot()
    kept = {path for path in data_files(before) if path.startswith("oslo")}
    kept = set(sorted(kept, key=lambda path: path.rpartition("_")[2])[-2:])
    for writes in each_call():
        storage = before.copy()
        finished = True
        try:
            clean(CrashAfter(storage, writes, dying), Settings.of({RETAINED: "1"}))
        except Crash:
            finished = False
            table = ArrowTable(storage, {**WRITES, RETAINED: "1"})
            assert table.snapshot().equals(expected)
            pending = load_state(storage).timeline.pending({Action.CLEAN})
            result = table.clean()
            assert result.finished == tuple(instant.requested for instant in pending)
        assert not load_state(storage).timeline.pending({Action.CLEAN})
        assert data_files(storage) == kept
        assert storage.list("rome") == []
        assert ArrowTable(storage).snapshot().equals(expected)
        assert sum("oslo" in done.partitions for done in cleans(storage)) == 1
        if finished:
            break
    assert writes >= 8


def test_a_storage_that_refuses_a_call_leaves_a_clean_to_finish() -> None:
    before = cleanable()
    refused = 0
    for at in range(12):
        storage = before.copy()
        try:
            clean(FailsAt(storage, at), Settings.of({RETAINED: "1"}))
        except OSError:
            refused += 1
            clean(storage, Settings.of({RETAINED: "1"}))
        assert len(data_files(storage)) == 2
    assert refused > 5


def test_a_pending_clean_is_finished_after_the_next_commit() -> None:
    storage = cleanable()
    with pytest.raises(Crash):
        clean(CrashAfter(storage, 3), Settings.of({RETAINED: "1"}))
    pending = load_state(storage).timeline.pending({Action.CLEAN})
    assert pending
    ArrowTable(storage, {**WRITES, RETAINED: "100"}).upsert(rows("a", ts=99))
    done = load_state(storage).timeline.completed({Action.CLEAN})
    assert [instant.requested for instant in done] == [instant.requested for instant in pending]


def test_a_clean_by_a_dead_writer_without_a_plan_is_removed() -> None:
    storage = cleanable()
    at = next_time(storage)
    to_inflight(storage, create_requested(storage, at, Action.CLEAN, layout=LAYOUT_1), layout=LAYOUT_1)
    result = clean(storage, Settings.of({RETAINED: "1"}))
    assert result.finished == (at,)
    assert len(result.paths) == 4
    assert not load_state(storage).timeline.pending({Action.CLEAN})


def planned(storage: MemoryStorage) -> Instant:
    """A clean of everything that went no further than its plan."""
    with pytest.raises(Crash):
        clean(CrashAfter(storage, 1), Settings.of({RETAINED: "1"}))
    (pending,) = load_state(storage).timeline.pending({Action.CLEAN})
    return pending


def test_a_savepoint_made_since_the_plan_keeps_its_files() -> None:
    storage = cleanable()
    pending = planned(storage)
    instant = load_state(storage).timeline.commits[3].requested  # its files are in the plan
    files = {path for path in data_files(storage) if instant in path}
    path = f".hoodie/{pending.requested}.clean.requested"
    plan = storage.read(path)
    storage.delete(path)  # else the savepoint is refused
    make_savepoint(storage, Settings.of({}), instant)
    storage.write(path, plan)
    done = resume_clean(storage, pending, Settings.of({}))
    assert files
    assert files < data_files(storage)
    assert done is not None
    assert set(done.partitions["oslo"].failed) == {path.rpartition("/")[2] for path in files}


def test_a_partition_that_was_written_to_since_the_plan_stays() -> None:
    storage = cleanable()
    pending = planned(storage)
    table = ArrowTable(storage, {**WRITES, **OFF})
    table.upsert(rows("new", city="rome"))
    resume_clean(storage, pending, Settings.of({}))
    assert "new" in table.snapshot().column("id").to_pylist()
    storage.delete("rome/.hoodie_partition_metadata")  # as if the clean had died between its two looks
    with pytest.warns(MetafileMissing):
        assert "new" in table.snapshot().column("id").to_pylist()
    storage.delete(f".hoodie/{pending.requested}.clean")
    resume_clean(storage, replace(pending, state=State.INFLIGHT), Settings.of({}))
    assert storage.exists("rome/.hoodie_partition_metadata")
    assert "new" in table.snapshot().column("id").to_pylist()


@pytest.mark.parametrize("version", ["6", "8"])
@pytest.mark.parametrize("metadata", ["false", "true"])
def test_a_completed_clean_whose_file_is_empty_is_written_again_and_no_row_goes(version: str, metadata: str) -> None:
    storage = MemoryStorage()
    table = made(storage, {**OFF, "hoodie.metadata.enable": metadata}, hoodie__table__version=version)
    table.upsert(rows("x", city="rome"))
    table.delete_partitions(["rome"])
    updated(table, 5)
    table.clean({RETAINED: "1"})
    (cleaned,) = cleans(storage)
    state = load_state(storage)
    (path,) = (state.timeline.path(instant) for instant in state.timeline.completed({Action.CLEAN}))
    storage.write(path, b"")  # as a writer leaves it that dies while it publishes
    table.upsert(rows("new", city="rome"))
    before = table.snapshot()
    assert table.clean({RETAINED: "2"}, dry_run=True).finished == (cleaned.start,)
    assert storage.read(path) == b""
    assert table.clean({RETAINED: "2"}).finished == (cleaned.start,)
    again = cleans(storage)[0]
    assert (again.earliest, again.partitions.keys()) == (cleaned.earliest, cleaned.partitions.keys())
    assert table.snapshot().equals(before)
    assert examine(storage, grace=0) == ()
    assert table.clean({RETAINED: "2"}).finished == ()


def test_a_clean_that_stands_still_until_others_archive_the_one_before_it_looks_again() -> None:
    table = made(MemoryStorage(), {**OFF, RETAINED: "1"})
    updated(table, 3)
    assert table.clean().paths
    state = table.state()
    for _ in range(4):
        updated(table, 2)
        assert table.clean().paths
    table.archive({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    CLEANS.forget()  # as another process
    updated(table, 2)
    assert clean(table.storage, Settings.read(table.options), state=state).paths


def test_a_partition_stays_while_somebody_writes() -> None:
    storage = cleanable()
    pending = planned(storage)
    create_requested(storage, next_time(storage), Action.COMMIT, layout=LAYOUT_1)
    counting = CountingStorage(storage)
    done = resume_clean(counting, pending, Settings.of({}))
    assert counting.count("delete", "rome") == 1, "the data file alone"
    assert storage.exists("rome/.hoodie_partition_metadata")
    assert done is not None
    assert not done.partitions["rome"].removed


def test_a_writer_who_begins_while_its_partition_goes_gets_it_back() -> None:
    storage = cleanable()

    def begin() -> None:  # the writer saw the metafile there right before
        create_requested(storage, next_time(storage), Action.COMMIT, layout=LAYOUT_1)

    beside = Meanwhile(storage, calls_of("delete", ".hoodie_partition_metadata"), begin)
    done = resume_clean(beside, planned(storage), Settings.of({}))
    assert storage.exists("rome/.hoodie_partition_metadata")
    assert done is not None
    assert not done.partitions["rome"].removed


def test_the_base_path_is_never_an_emptied_partition() -> None:
    file = BaseFile(FileGroupId("", "f-0"), "1", "0-0-0", 1, "f-0_0-0-0_1.parquet")
    other = BaseFile(FileGroupId("oslo", "g-0"), "1", "0-0-0", 1, "g-0_0-0-0_1.parquet")
    view = build_view(timeline_of("1"), [file, other])
    assert emptied(view, {"": (file.name,), "oslo": (other.name,)}) == ("oslo",)


def test_a_plan_to_delete_anything_but_data_files_is_refused() -> None:
    for partition, name in (
        (".hoodie", "hoodie.properties"),
        ("oslo", ".hoodie_partition_metadata"),
        ("", "notes.txt"),
    ):
        storage = cleanable()
        storage.write("notes.txt", b"mine")
        at = next_time(storage)
        plan = CleanPlan(policy="KEEP_LATEST_COMMITS", files={partition: (name,)})
        create_requested(storage, at, Action.CLEAN, encode_clean_plan(plan, storage.root), layout=LAYOUT_1)
        before = storage.snapshot()
        with pytest.raises(CorruptFile, match="not a data file"):
            clean(storage, Settings.of({}))
        assert storage.snapshot() == before


def test_without_commits_there_is_nothing_to_clean() -> None:
    storage = MemoryStorage()
    table = made(storage)
    assert table.clean().instant == ""
    assert table.clean(options={"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}).files == {}
    assert scope_of(Timeline(), CleanOptions(), None, None, (), all_active=False).commits == ()


def test_more_hours_than_there_ever_were_keep_every_commit():
    timeline = Timeline(tuple(Instant(f"2024010100000{n}000", Action.COMMIT, State.COMPLETED) for n in range(3)))
    options = CleanOptions(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours=10**9)
    assert earliest_retained(timeline, options, "20240101000010000") == timeline.commits[0]
