"""From requested to completed: one exclusive create a step."""

import pytest

from hoodie.config.table import TableConfig
from hoodie.errors import InstantNotFound, WriteConflict
from hoodie.model.instant import Action, Instant, State
from hoodie.testing.storage import Crash, CrashAfter, MemoryStorage
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import (
    back_to_requested,
    complete,
    create_requested,
    remove_pending,
    to_inflight,
    uncomplete,
)

V6 = TableConfig(name="t", version=6, layout=1)


def files(storage):
    return {path.removeprefix(".hoodie/"): data for path, data in storage.snapshot().items()}


@pytest.mark.parametrize(
    ("action", "left"),
    [
        (Action.COMMIT, ["1.commit", "1.commit.requested", "1.inflight"]),
        (Action.DELTA_COMMIT, ["1.deltacommit", "1.deltacommit.inflight", "1.deltacommit.requested"]),
        (Action.COMPACTION, ["1.commit", "1.compaction.inflight", "1.compaction.requested"]),
        (Action.LOG_COMPACTION, ["1.deltacommit", "1.logcompaction.inflight", "1.logcompaction.requested"]),
        (Action.REPLACE_COMMIT, ["1.replacecommit", "1.replacecommit.inflight", "1.replacecommit.requested"]),
        (Action.ROLLBACK, ["1.rollback", "1.rollback.inflight", "1.rollback.requested"]),
    ],
)
def test_the_files_of_all_states_stay(action, left):
    storage = MemoryStorage()
    instant = to_inflight(
        storage, create_requested(storage, "1", action, b"plan", layout=LAYOUT_1), b"profile", layout=LAYOUT_1
    )
    done = complete(storage, instant, b"done", layout=LAYOUT_1)
    assert sorted(files(storage)) == left
    assert sorted(files(storage).values()) == [b"done", b"plan", b"profile"]
    assert load_timeline(storage, V6).instants == (done,)
    assert done.state is State.COMPLETED


def test_a_savepoint_begins_without_being_requested():
    storage = MemoryStorage()
    complete(
        storage,
        to_inflight(storage, Instant("1", Action.SAVEPOINT, State.REQUESTED), layout=LAYOUT_1),
        b"done",
        layout=LAYOUT_1,
    )
    assert sorted(files(storage)) == ["1.savepoint", "1.savepoint.inflight"]


def test_of_two_writers_only_one_takes_an_instant():
    storage = MemoryStorage()
    first = create_requested(storage, "1", Action.COMMIT, layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match=r"1\.commit\.requested"):
        create_requested(storage, "1", Action.COMMIT, layout=LAYOUT_1)
    to_inflight(storage, first, layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match=r"1\.inflight"):
        to_inflight(storage, first, layout=LAYOUT_1)
    complete(storage, first, b"a", layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match=r"1\.commit "):
        complete(storage, first, b"b", layout=LAYOUT_1)
    assert files(storage)["1.commit"] == b"a"


def test_a_step_needs_the_one_before():
    storage = MemoryStorage()
    instant = Instant("1", Action.COMMIT, State.REQUESTED)
    with pytest.raises(InstantNotFound):
        to_inflight(storage, instant, layout=LAYOUT_1)
    create_requested(storage, "1", Action.COMMIT, layout=LAYOUT_1)
    with pytest.raises(InstantNotFound):
        complete(storage, instant, b"", layout=LAYOUT_1)
    assert sorted(files(storage)) == ["1.commit.requested"]


def test_an_instant_that_was_rolled_back_meanwhile_cannot_complete():
    storage = MemoryStorage()
    instant = to_inflight(storage, create_requested(storage, "1", Action.COMMIT, layout=LAYOUT_1), layout=LAYOUT_1)
    remove_pending(storage, instant, layout=LAYOUT_1)
    with pytest.raises(InstantNotFound):
        complete(storage, instant, b"", layout=LAYOUT_1)
    assert files(storage) == {}


def test_a_compaction_goes_back_to_its_plan():
    storage = MemoryStorage()
    instant = to_inflight(
        storage, create_requested(storage, "1", Action.COMPACTION, b"plan", layout=LAYOUT_1), layout=LAYOUT_1
    )
    requested = back_to_requested(storage, instant, layout=LAYOUT_1)
    assert back_to_requested(storage, requested, layout=LAYOUT_1) == requested
    assert files(storage) == {"1.compaction.requested": b"plan"}
    to_inflight(storage, requested, layout=LAYOUT_1)


def test_taking_back_a_completion_dies_anywhere_without_losing_the_instant():
    for writes in range(5):
        storage = MemoryStorage({".hoodie/1.commit": b"done"})
        instant = Instant("1", Action.COMMIT, State.COMPLETED)
        try:
            uncomplete(CrashAfter(storage, writes), instant, layout=LAYOUT_1)
        except Crash:
            assert load_timeline(storage, V6).instants == (instant,)
            uncomplete(storage, instant, layout=LAYOUT_1)
        assert load_timeline(storage, V6).instants == (Instant("1", Action.COMMIT, State.INFLIGHT),)
        assert sorted(files(storage)) == ["1.commit.requested", "1.inflight"]


def test_removing_a_pending_instant_twice_is_as_once():
    storage = MemoryStorage()
    instant = create_requested(storage, "1", Action.COMMIT, layout=LAYOUT_1)
    to_inflight(storage, instant, layout=LAYOUT_1)
    with pytest.raises(Crash):
        remove_pending(CrashAfter(storage, 1), instant, layout=LAYOUT_1)
    assert load_timeline(storage, V6).instants == (instant,)
    remove_pending(storage, instant, layout=LAYOUT_1)
    remove_pending(storage, instant, layout=LAYOUT_1)
    assert files(storage) == {}
