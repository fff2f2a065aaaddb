"""Restoring to a savepoint: all that came later goes, newest first, wherever the restore dies."""

import io
from contextlib import suppress
from pathlib import Path

import fastavro
import pytest

from hoodie.commit.markers import MarkerKind, create_marker
from hoodie.commit.rollback_executor import roll_back
from hoodie.commit.transaction import clean_up
from hoodie.config.options import Options
from hoodie.errors import HoodieError, InstantNotFound, InvalidInput, InvalidPlan, LockTimeout, WriteConflict
from hoodie.formats.timeline.services import decode_restore_metadata, decode_restore_plan
from hoodie.model.files import BaseFile, LogFile, parse_data_file
from hoodie.model.instant import COMMITS, WRITES, Action, Instant, State
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint, savepointed_files
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.savepoint import delete_savepoint
from hoodie.storage.protocol import Storage, join, split
from hoodie.table.settings import Settings, Writers
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested, instant_path, to_inflight
from support import undoing
from support.nightly import WAYS_TO_DIE
from support.undoing import (
    COW,
    FIRST,
    LATER,
    MOR,
    NOW,
    SECOND,
    THIRD,
    as_clustering,
    batch,
    compacted,
    data_files,
    dying,
    dying_before_publishing,
    newest,
    opened,
    read,
    read_rs,
    table,
    upsert,
)  # fmt: skip

THEN = {**FIRST, **SECOND}


def cow_history() -> tuple[MemoryStorage, str]:
    """A savepoint with an upsert, an overwrite, a deletion of a partition and a failed write after it."""
    storage = table(COW)
    saved = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    opened(storage).insert_overwrite(batch(LATER))
    opened(storage).delete_partitions(["rome"])
    upsert(storage, THIRD)
    fail(storage)
    return storage, saved


def mor_history() -> tuple[MemoryStorage, str]:
    """A savepoint of a table with logs; after it delta commits, a compaction that is completed and one that is pending
    and has logs already, an overwrite, a commit that was rolled back, and a failed write."""
    storage = table(MOR)
    saved = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    compacted(storage)
    upsert(storage, LATER)
    rollback(storage, Settings.of({}))
    upsert(storage, {"b": ("oslo", 5, "fourth"), "e": ("bern", 5, "fourth")})
    opened(storage).insert_overwrite(batch({"x": ("rome", 6, "over")}))
    schedule_compaction(storage, Settings.of(NOW))
    upsert(storage, LATER)
    fail(storage)
    return storage, saved


def fail(storage: MemoryStorage) -> None:
    """A write that dies right before it is published."""
    dying_before_publishing(storage, lambda inner: upsert(inner, THIRD))


HISTORIES = {"cow": cow_history, "mor": mor_history}


@pytest.fixture(scope="module")
def history(request: pytest.FixtureRequest) -> tuple[MemoryStorage, str]:
    return HISTORIES[request.param]()


def later_files(storage: Storage, savepoint: str) -> set[str]:
    """Data files of slices that came after the savepoint."""
    found = (parse_data_file(*split(path), 0) for path in data_files(storage))
    return {
        file.path
        for file in found
        if (isinstance(file, BaseFile) and file.instant > savepoint)
        or (isinstance(file, LogFile) and file.base_instant > savepoint)
    }


@pytest.mark.parametrize("history", HISTORIES, indirect=True)
def test_a_restored_table_is_as_it_was_and_nothing_of_later_slices_is_left(history, tmp_path: Path):
    storage, saved = history[0].copy(), history[1]
    kept = savepointed_files(load_state(storage))
    planned = restore(storage, Settings.of({}), saved, dry_run=True)
    result = restore(storage, Settings.of({}), saved)
    assert planned.plan == result.plan
    assert read(storage) == THEN
    assert read_rs(storage, tmp_path / "restored") == THEN
    assert later_files(storage, saved) == set()
    assert kept <= data_files(storage)
    assert not storage.list_tree(".hoodie/.temp")
    left = [each for each in load_state(storage).timeline.instants if each.requested > saved]
    assert left == [Instant(result.instant, Action.RESTORE, State.COMPLETED)]
    upsert(storage, LATER)
    assert read(storage) == {**THEN, **LATER}
    assert read_rs(storage, tmp_path / "later") == {**THEN, **LATER}


@pytest.mark.parametrize("history", HISTORIES, indirect=True)
def test_a_dry_run_says_what_goes_and_changes_nothing(history):
    storage, saved = history
    before = storage.snapshot()
    result = restore(storage, Settings.of({}), saved, dry_run=True)
    assert storage.snapshot() == before
    assert set(result.deletes) == later_files(storage, saved)
    times = [each.time for each in result.plan.instants]
    assert times == sorted(times, reverse=True)
    assert set(times) == {each.requested for each in load_state(storage).timeline.instants if each.action in WRITES} - {
        each.requested for each in load_state(storage).timeline.commits if each.requested <= saved
    }


@pytest.mark.parametrize("history", HISTORIES, indirect=True)
def test_the_plan_and_the_outcome_are_on_the_timeline_as_hudi_has_them(history):
    storage, saved = history[0].copy(), history[1]
    result = restore(storage, Settings.of({}), saved)
    done = Instant(result.instant, Action.RESTORE, State.COMPLETED)
    requested = storage.read(instant_path(Instant(result.instant, Action.RESTORE, State.REQUESTED), layout=LAYOUT_1))
    assert decode_restore_plan(requested, "plan") == result.plan
    assert decode_restore_metadata(storage.read(instant_path(done, layout=LAYOUT_1)), "outcome") == result.metadata
    assert storage.size(instant_path(Instant(result.instant, Action.RESTORE, State.INFLIGHT), layout=LAYOUT_1)) == 0
    (plan,) = fastavro.reader(io.BytesIO(requested))
    assert (plan["version"], plan["savepointToRestoreTimestamp"]) == (2, saved)
    (outcome,) = fastavro.reader(io.BytesIO(storage.read(instant_path(done, layout=LAYOUT_1))))
    assert outcome["instantsToRollback"] == [each.time for each in result.plan.instants]
    for instant in outcome["instantsToRollback"]:
        (rolled_back,) = outcome["hoodieRestoreMetadata"][instant]
        assert rolled_back["commitsRollback"] == [instant]


@pytest.mark.parametrize("how", WAYS_TO_DIE)
@pytest.mark.parametrize("history", HISTORIES, indirect=True)
def test_a_restore_that_dies_anywhere_goes_on_when_it_is_called_again(history, how: Dying):
    storage, saved = history
    states = {repr(sorted(rows.items())) for rows in whole_states(storage, saved)}
    # The first calls, of the timeline, in all three ways; of the others every second, in one of them.
    some = dying(
        how, storage, lambda inner: restore(inner, Settings.of({}), saved), first=list(Dying).index(how) + 4, step=6
    )
    assert len(some) > 4
    for died in [*dying_early(how, storage, saved), *some[:-1]]:
        assert repr(sorted(read(died).items())) in states
        restoring = load_state(died).timeline.pending({Action.RESTORE})
        if restoring:
            with pytest.raises(WriteConflict, match="is being restored"):
                upsert(died, LATER)
        restore(died, Settings.of({}), saved)
        assert read(died) == THEN
        assert later_files(died, saved) == set()
        again = died.snapshot()
        assert restore(died, Settings.of({}), saved).instant == ""  # idempotent
        assert died.snapshot() == again


def dying_early(how: Dying, storage: MemoryStorage, saved: str) -> list[MemoryStorage]:
    left = []
    for calls in range(4):
        died = storage.copy()
        with pytest.raises(Crash):
            restore(CrashAfter(died, calls, how), Settings.of({}), saved)
        left.append(died)
    return left


def whole_states(storage: MemoryStorage, saved: str) -> list:
    """The rows after each number of commits, as readers of then saw them."""
    times = [each.requested for each in load_state(storage).timeline.commits if each.requested >= saved]
    found = []
    for time in times:
        rows = opened(storage).as_of(time).to_pylist()
        found.append({row["id"]: (row["city"], row["ts"], row["note"]) for row in rows})
    return found


def test_a_restore_dying_again_and_again_still_ends():
    storage, saved = mor_history()
    for _ in range(200):
        try:
            restore(CrashAfter(storage, 5), Settings.of({}), saved)
        except Crash:
            continue
        break
    restore(storage, Settings.of({}), saved)
    assert read(storage) == THEN
    assert later_files(storage, saved) == set()


@pytest.mark.parametrize("how", WAYS_TO_DIE)
def test_a_clustering_is_taken_back_with_its_plan(how: Dying):
    storage = table({**COW, "hoodie.write.table.version": "9"})
    saved = make_savepoint(storage, Settings.of({})).instant
    before = read(storage)
    as_clustering(storage, opened(storage).insert_overwrite_table(batch(LATER)).instant)
    for died in dying(how, storage, lambda inner: restore(inner, Settings.of({}), saved)):
        restore(died, Settings.of({}), saved)
        assert read(died) == before
        assert later_files(died, saved) == set()
        assert [i.action for i in load_state(died).timeline.instants if i.requested > saved] == [Action.RESTORE]


def test_a_restore_that_goes_on_knows_where_a_commit_without_profile_wrote():
    storage = table(MOR)
    saved = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    last = newest(storage)
    storage.write(
        instant_path(Instant(last.requested, last.action, State.INFLIGHT), layout=LAYOUT_1), b""
    )  # as some writers leave it
    tried = 0
    for died in dying(Dying.BEFORE, storage, lambda inner: restore(inner, Settings.of({}), saved)):
        if load_state(died).timeline.find(last.requested, last.action) == Instant(
            last.requested, last.action, State.INFLIGHT
        ):
            tried += 1
            counting = CountingStorage(died)
            restore(counting, Settings.of({}), saved)
            assert counting.count("list_tree", "") == 0  # nothing has to be searched for
            assert read(died) == THEN
            assert later_files(died, saved) == set()
    assert tried > 2


def test_there_and_back_again():
    storage = table(MOR)
    first = make_savepoint(storage, Settings.of({})).instant
    for _ in range(2):
        upsert(storage, THIRD)
        compact(storage, Settings.of({}), schedule_compaction(storage, Settings.of(NOW)))
        upsert(storage, LATER)
        restore(storage, Settings.of({}), first)
        assert read(storage) == THEN
    delete_savepoint(storage, Settings.of({}), first)
    upsert(storage, LATER)
    assert read(storage) == {**THEN, **LATER}


def test_slices_of_withdrawn_commits_do_not_come_back_when_the_timeline_moves_on():
    # A file that is older than the active timeline counts as committed: what a restore leaves behind would be read.
    storage, saved = mor_history()
    restore(storage, Settings.of({}), saved)
    upsert(storage, LATER)
    expected = read(storage)
    last = newest(storage).requested
    for path in list(storage.snapshot()):
        name = path.removeprefix(".hoodie/")
        if path.startswith(".hoodie/2") and name < last:
            storage.delete(path)
    assert {each.requested for each in load_state(storage).timeline.instants} == {last}
    assert read(storage) == expected


@pytest.mark.parametrize("provider", ["InProcessLockProvider", "StorageBasedLockProvider"])
def test_the_lock_of_the_options_is_held_and_given_back(provider: str):
    options = {
        "hoodie.write.lock.provider": provider,
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.wait_time_ms": "0",
        "hoodie.write.lock.client.num_retries": "0",
    }
    storage = table(MOR)
    saved = make_savepoint(storage, Settings.of(options)).instant
    for _ in range(2):
        opened(storage).upsert(batch(THIRD), options=options)
    with Writers.read(Options(options)).lock_on(storage):
        before = read(storage)
        for call in (
            lambda: rollback(storage, Settings.of(options)),
            lambda: restore(storage, Settings.of(options), saved),
            lambda: delete_savepoint(storage, Settings.of(options), saved),
        ):
            with pytest.raises(LockTimeout):
                call()
        assert read(storage) == before
    rollback(storage, Settings.of(options))
    restore(storage, Settings.of(options), saved)
    delete_savepoint(storage, Settings.of(options), saved)
    opened(storage).upsert(batch(LATER), options=options)
    assert read(storage) == {**THEN, **LATER}


# --- what is refused, with nothing changed ---


def refused(storage: MemoryStorage, kind: type[HoodieError], match: str, savepoint: str) -> None:
    undoing.refused(storage, kind, match, lambda dry_run: restore(storage, Settings.of({}), savepoint, dry_run=dry_run))


def test_a_table_is_restored_to_savepoints_only():
    storage = table()
    first = load_state(storage).timeline.commits[0].requested
    refused(storage, InstantNotFound, "is not a savepoint", first)


def test_a_newer_savepoint_stands_in_the_way():
    storage = table()
    first = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    second = make_savepoint(storage, Settings.of({})).instant
    refused(storage, InvalidInput, f"{second} are newer savepoints", first)
    delete_savepoint(storage, Settings.of({}), second)
    restore(storage, Settings.of({}), first)
    assert read(storage) == THEN


def test_a_savepoint_whose_files_are_gone_is_refused():
    storage = table()
    saved = make_savepoint(storage, Settings.of({}))
    upsert(storage, THIRD)
    storage.delete(min(saved.files))
    refused(storage, InvalidPlan, f"1 files of the savepoint are missing, such as {min(saved.files)}", saved.instant)


def test_a_savepoint_with_archived_commits_after_it_is_refused(monkeypatch: pytest.MonkeyPatch):
    storage = table()
    saved = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    monkeypatch.setattr("hoodie.recovery.restore.newest_archived", lambda *_: saved[:-3] + "9999")
    refused(storage, InvalidPlan, "are archived", saved)


def test_an_older_write_that_is_pending_is_refused_and_an_older_compaction_stays():
    storage = table(MOR)
    planned = schedule_compaction(storage, Settings.of(NOW))
    upsert(storage, THIRD)
    saved = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, LATER)
    expected = {**THEN, **THIRD}
    pending = storage.copy()
    create_requested(
        pending, planned[:-3] + "999" if planned[-3:] != "999" else planned, Action.DELTA_COMMIT, layout=LAYOUT_1
    )
    if load_state(pending).timeline.pending({Action.DELTA_COMMIT})[0].requested < saved:
        refused(pending, WriteConflict, "is older than the savepoint", saved)
    restore(storage, Settings.of({}), saved)
    assert read(storage) == expected
    compact(storage, Settings.of({}), planned)
    assert read(storage) == expected


def test_another_restore_that_is_pending_has_to_end_first():
    storage = table()
    first = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    (died, *_) = [
        each
        for each in dying(Dying.BEFORE, storage, lambda inner: restore(inner, Settings.of({}), first))
        if load_state(each).timeline.pending({Action.RESTORE})
    ]
    refused_once = died.snapshot()
    with pytest.raises(WriteConflict, match=f"a restore to {first}"):
        restore(died, Settings.of({}), "20990101000000000")
    assert died.snapshot() == refused_once


def test_an_older_writer_that_wrote_into_a_later_slice_is_not_undone_unseen():
    storage = table(MOR)
    saved = make_savepoint(storage, Settings.of({})).instant
    compacted(storage)
    upsert(storage, SECOND)
    log = next(path for path in later_files(storage, saved) if ".log." in path)
    own = newest(storage).requested
    older = load_state(storage).timeline.commits[0].requested
    storage.write(log, storage.read(log).replace(own.encode(), older.encode()))
    refused(storage, InvalidPlan, "an older commit wrote to it", saved)


def test_a_writer_that_comes_in_during_a_restore_leaves_it_to_be_called_again():
    storage = table()
    saved = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    died = next(
        each
        for each in dying(Dying.BEFORE, storage, lambda inner: restore(inner, Settings.of({}), saved))
        if load_state(each).timeline.pending({Action.RESTORE})
    )

    class Writing(type(died)):  # type: ignore[misc]
        """Another process begins a write once the first commit is gone."""

        def delete(self, path: str) -> bool:
            if path.endswith(".commit.requested") and not self.exists(".hoodie/20990101000000000.commit.requested"):
                create_requested(self, "20990101000000000", Action.COMMIT, layout=LAYOUT_1)
            return super().delete(path)

    racing = Writing(died.snapshot())
    with pytest.raises(WriteConflict, match="call restore"):
        restore(racing, Settings.of({}), saved)
    restore(racing, Settings.of({}), saved)
    assert read(racing) == THEN


def test_a_rollback_that_died_before_the_restore_is_finished_first():
    storage = table(MOR)
    saved = make_savepoint(storage, Settings.of({})).instant
    fail(storage)
    (pending,) = load_state(storage).timeline.pending(COMMITS)
    left = dying(Dying.BEFORE, storage, lambda inner: roll_back(inner, pending, "20990101000000000", layout=LAYOUT_1))
    for died in left[1:-1]:
        restore(died, Settings.of({}), saved)
        assert read(died) == THEN
        assert not load_state(died).timeline.pending()


def test_a_compaction_that_was_running_goes_with_its_files_and_logs():
    storage = table(MOR)
    saved = make_savepoint(storage, Settings.of({})).instant
    planned = schedule_compaction(storage, Settings.of(NOW))
    assert planned is not None
    begun = to_inflight(storage, Instant(planned, Action.COMPACTION, State.REQUESTED), layout=LAYOUT_1)
    group = opened(storage).slices()[0].group
    half = join(group.partition, f"{group.file_id}_1-1-1_{planned}.parquet")
    create_marker(storage, begun.requested, half, MarkerKind.MERGE)
    storage.write(half, b"half")
    upsert(storage, THIRD)
    assert any(f"_{planned}.log" in path for path in data_files(storage))
    restore(storage, Settings.of({}), saved)
    assert not any(planned in path for path in storage.snapshot())
    assert read(storage) == THEN


def test_an_empty_restore_writes_nothing():
    storage = table()
    saved = make_savepoint(storage, Settings.of({})).instant
    before = storage.snapshot()
    result = restore(storage, Settings.of({}), saved)
    assert (result.instant, result.plan.instants) == ("", ())
    assert storage.snapshot() == before
    with suppress(HoodieError):
        clean_up(load_state(storage))
    assert ArrowTable(storage).snapshot().num_rows == 3
