"""What changed since an instant: which rows are told, which files are opened for it, what is refused."""

import datetime as dt
import itertools
import json
import time
import warnings
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie import create_table, open_table
from hoodie.commit.heartbeat import heartbeat_path
from hoodie.config.options import read_options
from hoodie.config.read import HolePolicy, IncrementalOptions
from hoodie.errors import (
    HistoryGone,
    HollowCommit,
    InstantNotFound,
    InvalidInput,
    InvalidOption,
    MissingFile,
    MissingFileIgnored,
)
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State, parse_time
from hoodie.reading.changes.plan import plan_changes
from hoodie.reading.scan import ScanKind
from hoodie.reading.snapshot import read_scan
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Crash, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.points import query_instant
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested
from hoodie.view.incremental import touched
from support.scans import plan_scan
from support.trips import TRIPS

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
BOTH = pytest.mark.parametrize("kind", [COPY_ON_WRITE, MERGE_ON_READ])
HOLES = "hoodie.read.timeline.holes.resolution.policy"
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "InProcessLockProvider",
}
FULL_SCAN = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}
BY_ORDERING = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"

Row = tuple[str, str, int, str | None]  # id, city, ts, note


def made(kind: str, storage: Storage | None = None, **options: str) -> ArrowTable:
    return ArrowTable.create(
        storage or MemoryStorage(clock=itertools.count(1_900_000_000_000, 1000).__next__),
        {
            **TRIPS,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.spark.driver.threads": "1",
            "hoodie.parquet.small.file.limit": "0",
            **options,
        },
    )


def batch(*rows: Row) -> pa.Table:
    schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def files(table: ArrowTable) -> list[str]:
    assert isinstance(table.storage, MemoryStorage)
    return list(table.storage.snapshot())


def notes(rows: pa.Table) -> dict[str, str | None]:
    assert len(set(rows.column("id").to_pylist())) == rows.num_rows
    return dict(zip(rows.column("id").to_pylist(), rows.column("note").to_pylist(), strict=True))


@BOTH
def test_a_pull_has_each_row_written_since_once_and_as_it_is_now(kind: str) -> None:
    table = made(kind)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("b", "oslo", 1, "b1"), ("c", "rome", 1, "c1"))).instant
    second = table.upsert(batch(("a", "oslo", 2, "a2"), ("d", "oslo", 2, "d2"))).instant
    third = table.upsert(batch(("a", "oslo", 3, "a3"), ("c", "rome", 3, "c3"))).instant
    assert notes(table.changes(first)) == {"a": "a3", "c": "c3", "d": "d2"}
    assert notes(table.changes(first, second)) == {"a": "a2", "d": "d2"}
    assert notes(table.changes(second, third)) == {"a": "a3", "c": "c3"}
    for word in ("earliest", "EARLIEST", " Earliest"):
        assert notes(table.changes(word, first)) == {"a": "a1", "b": "b1", "c": "c1"}
    assert notes(table.changes("000")) == notes(table.snapshot())
    assert notes(table.changes(third)) == {}
    assert table.changes(third).schema == table.snapshot().schema
    assert notes(table.changes(second, second)) == {}


@BOTH
def test_a_deleted_row_is_not_told(kind: str) -> None:
    table = made(kind)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("b", "oslo", 1, "b1"))).instant
    second = table.upsert(batch(("a", "oslo", 2, "a2"), ("b", "oslo", 2, "b2"))).instant
    table.delete(batch(("a", "oslo", 0, None)).select(["id", "city"]))
    assert notes(table.changes(first)) == {"b": "b2"}
    assert notes(table.changes(second)) == {}
    assert notes(table.changes(first, second)) == {"a": "a2", "b": "b2"}
    table.upsert(batch(("a", "oslo", 4, "a4")))
    assert notes(table.changes(second)) == {"a": "a4"}


@BOTH
def test_rows_that_an_overwrite_took_away_are_not_told(kind: str) -> None:
    table = made(kind)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("c", "rome", 1, "c1"))).instant
    second = table.upsert(batch(("a", "oslo", 2, "a2"), ("b", "oslo", 2, "b2"), ("c", "rome", 2, "c2"))).instant
    third = table.insert_overwrite(batch(("a", "oslo", 3, "a3"))).instant
    assert notes(table.changes(first)) == {"a": "a3", "c": "c2"}
    assert notes(table.changes(second)) == {"a": "a3"}
    assert notes(table.changes(first, second)) == {"a": "a2", "b": "b2", "c": "c2"}
    table.delete_partitions(["oslo"])
    assert notes(table.changes(first)) == {"c": "c2"}
    assert notes(table.changes(first, third)) == {"a": "a3", "c": "c2"}


@BOTH
def test_a_write_that_died_is_not_told_before_or_after_it_is_taken_back(kind: str) -> None:
    table = made(kind)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("b", "oslo", 1, "b1"))).instant
    for calls in (1, 2, 3, 4):
        table.fail_next(calls, Dying.AFTER)
        with pytest.raises(Crash):
            table.upsert(batch(("a", "oslo", 2, "dead")))
        assert notes(table.changes(first)) == {}
    table.upsert(batch(("b", "oslo", 3, "b3")))
    assert notes(table.changes(first)) == {"b": "b3"}


# --- Merge-on-Read ---


def compacted(table: ArrowTable) -> str:
    options = {**table.options, "hoodie.compact.inline.max.delta.commits": "1"}
    assert schedule_compaction(table.storage, Settings.of(options)) is not None
    done = compact(table.storage, Settings.of(options))
    return done.instant


def test_rows_stay_told_once_they_were_compacted() -> None:
    table = made(MERGE_ON_READ)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("b", "oslo", 1, "b1"), ("c", "rome", 1, "c1"))).instant
    second = table.upsert(batch(("a", "oslo", 2, "a2"))).instant
    moved = compacted(table)
    third = table.upsert(batch(("b", "oslo", 3, "b3"))).instant
    assert notes(table.changes(first)) == {"a": "a2", "b": "b3"}
    assert notes(table.changes(first, moved)) == {"a": "a2"}
    assert notes(table.changes(second, moved)) == {}
    assert notes(table.changes(moved, third)) == {"b": "b3"}


def test_a_late_row_is_told_by_the_range_that_brought_it_and_loses_where_a_newer_one_is_in_it() -> None:
    """As Hudi's reader has it: only versions of the range meet. tests/interop has its rows."""
    table = made(MERGE_ON_READ, **{"hoodie.datasource.write.payload.class": BY_ORDERING})
    first = table.upsert(batch(("a", "oslo", 5, "a5"))).instant
    second = table.upsert(batch(("a", "oslo", 9, "a9"))).instant
    table.upsert(batch(("a", "oslo", 7, "late")))
    assert notes(table.changes(second)) == {"a": "late"}
    assert notes(table.changes(first)) == {"a": "a9"}
    assert notes(table.snapshot()) == {"a": "a9"}


def test_a_row_made_of_several_versions_is_told_whole() -> None:
    table = made(MERGE_ON_READ, **{"hoodie.datasource.write.payload.class": PARTIAL})
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    table.upsert(batch(("a", "oslo", 2, None)))
    assert notes(table.changes(first)) == notes(table.snapshot()) == {"a": "a1"}


def test_base_files_from_before_the_range_are_not_opened_for_their_logs() -> None:
    table = made(MERGE_ON_READ)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("b", "oslo", 1, "b1"))).instant
    table.upsert(batch(("a", "oslo", 2, "a2")))
    (slice_,) = plan_changes(table.state(), first).slices
    assert slice_.base is None
    assert len(slice_.logs) == 1


# --- cost ---


@BOTH
def test_only_the_file_groups_that_changed_are_opened(kind: str) -> None:
    table = made(kind, **{"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "2"})
    cities = [f"city{number}" for number in range(6)]
    first = table.upsert(batch(*[(f"{city}-{n}", city, 1, "old") for city in cities for n in range(8)])).instant
    table.upsert(batch(("city2-0", "city2", 2, "new"), ("city4-1", "city4", 2, "new")))
    counting = CountingStorage(table.storage)
    state = load_state(counting)
    counting.reset()
    plan = plan_changes(state, first)
    assert counting.count("list_tree") == 0
    assert counting.count("list", "city2") == counting.count("list", "city4") == 1
    assert counting.count("list") == 2
    assert counting.count("read", ".hoodie") == 2  # the commit, and the one that tells the columns, the same here
    assert len(plan.slices) == 2
    assert len(table.slices()) == 24
    counting.reset()
    assert len(read_scan(plan_scan(state, ScanKind.CHANGES, begin=first))) == 2
    opened = {folder for (method, folder) in counting.calls if method in ("open_input", "read", "read_range")}
    assert opened == {".hoodie", "city2", "city4"}
    assert sum(counting.count("open_input", city) for city in cities) <= 2


def test_a_range_without_commits_opens_nothing() -> None:
    table = made(COPY_ON_WRITE)
    last = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    counting = CountingStorage(table.storage)
    state = load_state(counting)
    counting.reset()
    assert len(read_scan(plan_scan(state, ScanKind.CHANGES, begin=last))) == 0
    assert {method for method, _ in counting.calls} == {"read"}  # of the columns


def test_a_table_that_was_never_written_has_no_changes() -> None:
    table = made(COPY_ON_WRITE)
    assert table.changes("earliest").num_rows == 0
    assert table.changes("2001-01-01").num_rows == 0


def commit(operation: Operation, groups: Sequence[str], replaced: Sequence[str] = ()) -> CommitMetadata:
    stats = tuple(WriteStat(file_id=group, path=f"p/{group}", partition="p") for group in groups)
    return CommitMetadata(operation=operation, stats={"p": stats}, replaced={"p": tuple(replaced)} if replaced else {})


def at(time: str) -> Instant:
    return Instant(time, Action.COMMIT, State.COMPLETED)


def test_groups_that_only_a_compaction_or_a_delete_wrote_are_not_touched() -> None:
    changes = touched(
        [
            (at("1"), commit(Operation.UPSERT, ["a"])),
            (at("2"), commit(Operation.COMPACT, ["a", "b"])),
            (at("3"), commit(Operation.DELETE, ["c"])),
        ]
    )
    assert changes.groups == {FileGroupId("p", "a"): "1"}


def test_a_clustering_is_touched_where_it_took_touched_groups_in() -> None:
    changes = touched(
        [
            (at("1"), commit(Operation.UPSERT, ["a", "b"])),
            (at("2"), commit(Operation.CLUSTER, ["new"], ["a"])),
            (at("3"), commit(Operation.INSERT_OVERWRITE, ["over"], ["b"])),
        ]
    )
    assert set(changes.groups) == {FileGroupId("p", "new"), FileGroupId("p", "over")}
    untouched = touched([(at("2"), commit(Operation.CLUSTER, ["new"], ["a"]))])
    assert untouched.groups == {}


# --- hollow commits ---


@pytest.fixture
def hollow() -> tuple[ArrowTable, list[str], bytes]:
    """Three commits to three partitions; the second is pending again. Its completed content."""
    table = made(COPY_ON_WRITE)
    instants = [table.upsert(batch((city, city, 1, city))).instant for city in ("bern", "oslo", "rome")]
    path = f".hoodie/{instants[1]}.commit"
    content = table.storage.read(path)
    table.storage.delete(path)
    return table, instants, content


def test_a_hollow_commit_fails_a_pull_by_default(hollow: tuple[ArrowTable, list[str], bytes]) -> None:
    table, (first, second, third), _ = hollow
    # Also a range without commits, as in Hudi 0.15.0 and 1.0.2: who goes on from its end would miss the hollow one.
    for begin, end in (("earliest", None), (first, None), (first, third), (third, None), (third, third)):
        with pytest.raises(HollowCommit, match=f"commit {second} is pending"):
            table.changes(begin, end)
    assert notes(table.changes("earliest", first)) == {
        "bern": "bern"
    }  # nothing is missed by those who go on from there
    with pytest.raises(InvalidOption, match="FAIL, BLOCK, USE_TRANSITION_TIME"):
        table.changes(first, options={HOLES: "WAIT"})
    assert read_options(IncrementalOptions, {}).holes is HolePolicy.FAIL


def test_a_pull_may_stop_before_a_hollow_commit(hollow: tuple[ArrowTable, list[str], bytes]) -> None:
    table, (first, _, third), _ = hollow
    assert notes(table.changes("earliest", options={HOLES: "BLOCK"})) == {"bern": "bern"}
    assert notes(table.changes(first, third, options={HOLES: "BLOCK"})) == {}
    assert notes(table.changes(third, options={HOLES: "BLOCK"})) == {}


@BOTH
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_changes_and_keys_are_refused_beside_a_commit_whose_completed_file_is_lost(kind: str, version: str) -> None:
    table = made(kind, **{"hoodie.write.table.version": version})
    instants = [table.upsert(batch(("a", "oslo", ts, note))).instant for ts, note in enumerate(("old", "lost", "new"))]
    lost = table.state().timeline.path(table.state().timeline.commits[1])
    content = table.storage.read(lost)
    table.storage.delete(lost)
    opened = open_table(storage=table.storage)
    keys = batch(("a", "oslo", 0, "")).select(["id", "city"])
    with pytest.raises(HollowCommit if version == "6" else MissingFile, match=instants[1]):
        opened.changes("earliest")
    for read in (opened.get, opened.absent):
        with pytest.raises(MissingFile, match=f"{instants[1]}.* published this file, and it is missing"):
            read(keys)
    with pytest.warns(MissingFileIgnored, match=instants[1]):
        assert opened.get(keys, options={"hoodie.read.ignore.missing.files": "true"}).rows.to_arrow().num_rows == 1
    assert notes(table.changes("earliest", instants[0])) == {"a": "old"}
    table.storage.write(lost, content)
    assert notes(table.changes(instants[0])) == {"a": "new"}


@BOTH
def test_by_transition_time_a_commit_is_told_after_those_that_were_completed_before_it(kind: str) -> None:
    table = made(kind)
    table.upsert(batch(("b", "bern", 1, "b1"), ("o", "oslo", 1, "o1"), ("r", "rome", 1, "r1")))
    instants = [table.upsert(batch((city[0], city, 2, city))).instant for city in ("bern", "oslo")]
    suffix = "commit" if kind == COPY_ON_WRITE else "deltacommit"
    slow = f".hoodie/{instants[1]}.{suffix}"
    content = table.storage.read(slow)
    table.storage.delete(slow)
    table.storage.write(heartbeat_path(instants[1]), b"")
    instants.append(table.upsert(batch(("r", "rome", 2, "rome")), SEVERAL).instant)
    by_transition = {HOLES: "USE_TRANSITION_TIME"}
    assert notes(table.changes(instants[0], options=by_transition)) == {"r": "rome"}
    table.storage.create_new(slow, content)
    assert notes(table.changes(instants[2], options=by_transition)) == {"o": "oslo"}
    assert notes(table.changes(instants[0], instants[2], options=by_transition)) == {"r": "rome"}
    assert notes(table.changes(instants[0], options=by_transition)) == {"o": "oslo", "r": "rome"}
    assert notes(table.changes(instants[2])) == {}


def test_by_transition_time_a_slow_commit_that_is_archived_since_is_among_the_changes() -> None:
    table = made(COPY_ON_WRITE)
    ticks = count(time.time_ns() // 1_000_000 + 60_000)  # each write later than all before, and than the instants
    table.storage.clock = lambda: next(ticks)
    table.upsert(batch(("b", "bern", 1, "b1")))
    slow, quick = (table.upsert(batch((key, "oslo", 2, key))).instant for key in "sq")
    path = f".hoodie/{slow}.commit"
    content = table.storage.read(path)
    table.storage.delete(path)
    table.storage.create_new(path, content)
    last = [table.upsert(batch(("c", "oslo", 3, note))).instant for note in "xyz"]
    by_transition = {HOLES: "USE_TRANSITION_TIME"}
    assert notes(table.changes(quick, options=by_transition)) == {"s": "s", "c": "z"}
    table.archive({**table.options, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    assert [commit.requested for commit in table.state().timeline.commits] == last[1:]
    assert notes(table.changes(quick, options=by_transition)) == {"s": "s", "c": "z"}
    assert notes(table.changes(last[0], options=by_transition)) == {"c": "z"}
    assert notes(table.changes("earliest", options=by_transition)) == notes(table.snapshot())


def test_by_transition_time_an_earlier_end_does_not_see_what_a_later_compaction_did() -> None:
    table = made(MERGE_ON_READ)
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    second = table.upsert(batch(("a", "oslo", 2, "a2"))).instant
    compacted(table)
    third = table.upsert(batch(("a", "oslo", 3, "a3"))).instant
    by_transition = {HOLES: "USE_TRANSITION_TIME"}
    assert notes(table.changes(first, second, options=by_transition)) == {"a": "a2"}
    assert notes(table.changes(second, third, options=by_transition)) == {"a": "a3"}


def test_an_end_before_two_compactions_of_a_file_group_sees_neither() -> None:
    table = made(MERGE_ON_READ, **{"hoodie.write.table.version": "9"})
    times = [table.upsert(batch(("a", "oslo", 0, "a0"))).instant]
    for number in (1, 2):
        times.append(table.upsert(batch(("a", "oslo", number, f"a{number}"))).instant)
        compacted(table)
    assert notes(table.changes("earliest", times[0])) == {"a": "a0"}
    assert notes(table.changes(times[0], times[1])) == {"a": "a1"}


def test_a_pending_compaction_is_no_hollow_commit() -> None:
    table = made(MERGE_ON_READ)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("b", "oslo", 1, "b1"))).instant
    second = table.upsert(batch(("a", "oslo", 2, "a2"))).instant
    options = {**table.options, "hoodie.compact.inline.max.delta.commits": "1"}
    assert schedule_compaction(table.storage, Settings.of(options)) is not None
    last = table.upsert(batch(("b", "oslo", 3, "b3"))).instant
    assert notes(table.changes(first)) == {"a": "a2", "b": "b3"}
    assert notes(table.changes(second, last)) == {"b": "b3"}


def test_a_pending_write_that_is_the_newest_is_no_hollow_commit() -> None:
    table = made(COPY_ON_WRITE)
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    create_requested(table.storage, "99990101000000000", Action.COMMIT, layout=LAYOUT_1)
    assert notes(table.changes("earliest")) == {"a": "a1"}
    with pytest.raises(InstantNotFound, match="is a commit that is pending"):
        table.changes(first, "99990101000000000")


# --- bad input, and what is gone ---


@pytest.mark.parametrize("text", ["yesterday", "", "2024-13-01", "202", "-1", "202401010000000000", "2024-01-01T"])
def test_a_begin_or_end_of_another_form_is_refused(text: str) -> None:
    table = made(COPY_ON_WRITE)
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    with pytest.raises(InvalidInput, match="neither an instant nor a point in time"):
        table.changes(text)
    with pytest.raises(InvalidInput, match="neither an instant nor a point in time"):
        table.changes(first, text)


def test_an_instant_that_the_table_does_not_have_is_a_point_in_time() -> None:
    table = made(COPY_ON_WRITE)
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    second = table.upsert(batch(("b", "oslo", 2, "b2"))).instant
    between = f"{int(first) + 1:017d}"
    assert between < second
    assert notes(table.changes(between)) == {"b": "b2"}
    assert notes(table.changes("20010101000000000")) == {"a": "a1", "b": "b2"}
    assert notes(table.changes("20010101000000")) == {"a": "a1", "b": "b2"}
    assert notes(table.changes("earliest", between)) == {"a": "a1"}
    assert notes(table.changes(first, between)) == {}


def test_a_begin_or_end_is_a_datetime_a_date_or_text_with_a_zone() -> None:
    table = made(COPY_ON_WRITE)
    first = parse_time(table.upsert(batch(("a", "oslo", 1, "a1"))).instant).replace(tzinfo=dt.UTC)
    second = parse_time(table.upsert(batch(("b", "oslo", 2, "b2"))).instant).replace(tzinfo=dt.UTC)
    oslo = dt.timezone(dt.timedelta(hours=1))
    text = first.isoformat(timespec="milliseconds").replace("+00:00", "Z")  # without them, the end of its second
    for begin in (first, first.astimezone(oslo), first.replace(tzinfo=None), text):
        assert notes(table.changes(begin)) == {"b": "b2"}
        assert notes(table.changes("earliest", begin)) == {"a": "a1"}
    assert notes(table.changes(dt.date(2001, 1, 1), second.astimezone(oslo))) == {"a": "a1", "b": "b2"}


def test_a_point_in_time_need_not_be_an_instant() -> None:
    table = made(COPY_ON_WRITE)
    table.upsert(batch(("a", "oslo", 1, "a1")))
    assert notes(table.changes("2001-01-01")) == {"a": "a1"}
    assert notes(table.changes("2001-01-01", "2001-01-01 12:00:00.000")) == {}
    now = dt.datetime.now(dt.UTC) + dt.timedelta(milliseconds=2)
    assert notes(table.changes("2001-01-01 00:00:00", f"{now:%Y-%m-%d}")) == {}  # its midnight
    assert notes(table.changes("earliest", f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M:%S}.000")) in ({}, {"a": "a1"})


def test_a_beginning_of_a_time_is_before_all_instants_that_begin_so() -> None:
    table = made(COPY_ON_WRITE)
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    for begin in ("0000", "2001", "20010203", first[:4], first[:10], first[:14], first[:16]):
        assert notes(table.changes(begin)) == {"a": "a1"}
    assert query_instant("2026112510030016") < "20261125100300160"  # also before the first of them
    for end in (first[:4], first[:8], first[:14]):
        assert notes(table.changes("2001", end)) == {}


def test_a_range_ends_in_the_future_and_does_not_begin_there() -> None:
    table = made(COPY_ON_WRITE)
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    for end in ("2999-01-01 00:00:00", "2999", "29990101000000000"):
        assert notes(table.changes("2001", end)) == {"a": "a1"}
        assert notes(table.changes(first, end)) == {}
    with pytest.raises(InvalidInput, match="is in the future: it is 20"):
        table.changes("2999-01-01")
    with pytest.raises(InvalidInput, match="is in the future"):
        table.changes("29990101000000000")


def test_a_begin_after_the_end_is_refused() -> None:
    table = made(COPY_ON_WRITE)
    first, second = (table.upsert(batch(("a", "oslo", n, "a"))).instant for n in (1, 2))
    with pytest.raises(InvalidInput, match=f"begin '{second}' is after end '{first}'"):
        table.changes(second, first)


@BOTH
def test_files_that_were_cleaned_away_are_an_error_or_a_full_scan(kind: str) -> None:
    table = made(kind)
    first = table.upsert(batch(("a", "oslo", 1, "a1"), ("b", "oslo", 1, "b1"), ("c", "rome", 1, "c1"))).instant
    if kind == MERGE_ON_READ:
        table.upsert(batch(("a", "oslo", 2, "a2")))
        compacted(table)
    second = table.upsert(batch(("a", "oslo", 3, "a3"))).instant
    old = [path for path in files(table) if path.startswith("oslo/") and f"_{first}" in path]
    for path in old:
        table.storage.delete(path)
    for end in (first,):
        with pytest.raises(HistoryGone, match="1 file groups were cleaned away, such as") as told:
            table.changes("earliest", end)
        assert (told.value.begin, told.value.end, told.value.earliest) == ("", first, first)
    assert notes(table.changes("earliest", first, options=FULL_SCAN)) == {"b": "b1", "c": "c1"}
    assert notes(table.changes(first, second))["a"] == "a3"
    assert notes(table.changes("earliest")) == notes(table.snapshot())


def test_the_changes_of_a_path_are_read_with_columns_filters_and_options(tmp_path: Path) -> None:
    table = made(COPY_ON_WRITE, LocalStorage(tmp_path))
    first = table.upsert(batch(("a", "oslo", 1, "a1"))).instant
    table.upsert(batch(("b", "oslo", 2, "b2"), ("c", "rome", 2, "c2")))
    rows = open_table(str(tmp_path)).changes(first, columns=["note"], filters=[("city", "=", "rome")]).to_arrow()
    assert rows.to_pylist() == [{"note": "c2"}]
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        open_table(str(tmp_path)).changes(first, columns=["nope"]).to_arrow()
    with pytest.raises(InvalidOption, match="unknown option"):
        open_table(str(tmp_path), options={"hoodie.read.timeline.holes.resolution.polcy": "FAIL"}).changes(
            first
        ).to_arrow()


def test_change_data_beside_a_log_that_a_task_left_after_its_write_was_rolled_back(tmp_path: Path) -> None:
    options = {"hoodie.compact.inline": "false", "hoodie.read.cdc.infer": "true"}
    table = create_table(tmp_path / "t", record_key="id", table_type=MERGE_ON_READ, options=options)
    writes = [table.upsert(pa.table({"id": [1], "n": [n]})) for n in (1, 2, 3)]
    logs = {path: path.read_bytes() for path in tmp_path.rglob(".*.log.*")}
    table.rollback(writes[-1].instant)
    for path in tmp_path.rglob(".*.log.*"):  # the timeline alone tells of it
        path.unlink()
    for path, content in logs.items():
        path.write_bytes(content)
    table.upsert(pa.table({"id": [1], "n": [4]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = table.changes(writes[0].instant, cdc=True).to_arrow()
    images = [[json.loads(image)["n"] for image in rows.column(name).to_pylist()] for name in ("before", "after")]
    assert images == [[1, 2], [2, 4]]
