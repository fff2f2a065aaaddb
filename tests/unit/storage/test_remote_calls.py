"""What is done otherwise on a storage whose calls wait for a network, and what holds all the same."""

import pickle
import threading

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InstantNotFound, WriteConflict
from hoodie.model.instant import Action, State
from hoodie.storage.fsspec_store import common_beginnings
from hoodie.storage.protocol import meanwhile
from hoodie.storage.wrapped import RememberingStorage, WrappedStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested, instant_path, to_inflight
from support.trips import table_options

OPTIONS = table_options("t", "id", ordering="ts")


class Remote(WrappedStorage):
    remote = True  # type: ignore[assignment]


def rows(ts: int) -> pa.Table:
    return pa.table({"id": ["a", "b"], "ts": [ts, ts]})


def test_a_call_runs_beside_its_block_on_a_remote_storage_and_when_it_is_asked_for_elsewhere():
    met = threading.Barrier(2, timeout=10)
    with meanwhile(Remote(MemoryStorage()), lambda: met.wait() >= 0) as other:
        assert met.wait() >= 0
        assert other()
    order: list[int] = []
    with meanwhile(MemoryStorage(), lambda: order.append(2)) as later:
        order.append(1)
        later()
    assert order == [1, 2]


def test_where_the_block_fails_its_error_is_raised_and_the_call_beside_it_has_ended():
    done = threading.Event()

    def fail() -> None:
        done.set()
        raise KeyError("beside")

    for storage in (Remote(MemoryStorage()), MemoryStorage()):
        with pytest.raises(ValueError, match="block"), meanwhile(storage, fail):
            raise ValueError("block")
    assert done.is_set()


def test_a_write_on_a_remote_storage_leaves_the_same_kinds_of_files():
    def kinds(storage: MemoryStorage) -> list[str]:
        return sorted(path.rpartition(".")[2] for path in storage.snapshot())

    near, far = MemoryStorage(), MemoryStorage()
    for storage in (near, Remote(far)):
        table = ArrowTable.create(storage, OPTIONS)
        for ts in range(3):
            table.upsert(rows(ts))
        assert table.snapshot().column("ts").to_pylist() == [2, 2]
    assert kinds(near) == kinds(far)


def test_a_write_that_was_rolled_back_before_its_plan_was_written_leaves_no_inflight_file():
    inner = MemoryStorage()
    for storage in (inner, Remote(inner)):
        requested = create_requested(storage, "20240101000000000", Action.COMMIT, layout=LAYOUT_1)
        storage.delete(instant_path(requested, layout=LAYOUT_1))  # what a rollback by another process does
        with pytest.raises(InstantNotFound, match="was rolled back"):
            to_inflight(storage, requested, b"{}", layout=LAYOUT_1)
        assert inner.snapshot() == {}


def test_of_two_writers_at_one_instant_one_begins_on_a_remote_storage_too():
    storage = Remote(MemoryStorage())
    requested = create_requested(storage, "20240101000000000", Action.COMMIT, layout=LAYOUT_1)
    begun = to_inflight(storage, requested, layout=LAYOUT_1)
    with pytest.raises(WriteConflict):
        to_inflight(storage, requested, layout=LAYOUT_1)
    assert storage.exists(instant_path(begun, layout=LAYOUT_1))
    assert begun.state is State.INFLIGHT


def test_settings_of_a_newer_table_never_go_with_the_timeline_of_the_one_before():
    inner = MemoryStorage()
    table = ArrowTable.create(inner, OPTIONS)
    table.upsert(rows(1))
    before = inner.list(".hoodie")

    class ListsEarly(Remote):
        """Its first listing is of before the table was replaced, as when it comes before the settings are read."""

        early = True

        def list(self, folder: str = "") -> list:
            if folder == ".hoodie" and self.early:
                self.early = False
                return before
            return super().list(folder)

    table.replace(pa.table({"id": ["z"], "other": [1], "ts": [1]}), OPTIONS | {"hoodie.table.name": "u"})
    # The next write puts the new settings in place.
    ArrowTable(inner, OPTIONS | {"hoodie.table.name": "u"}).upsert(pa.table({"id": ["y"], "other": [2], "ts": [1]}))
    state = load_state(ListsEarly(inner))
    assert state.config.name == "u"
    assert state.timeline.commits == load_state(inner).timeline.commits


# --- small base files of one write ---


def test_a_small_base_file_is_read_once_and_other_files_as_often_as_asked():
    counting = CountingStorage(
        MemoryStorage({"p/a.parquet": b"base", "p/big.parquet": b"x" * (2 << 20), "p/l": b"log"})
    )
    storage = RememberingStorage(counting)
    for _ in range(3):
        for path, size in (("p/a.parquet", 4), ("p/big.parquet", 2 << 20), ("p/l", 3)):
            with storage.open_input(path, size) as file:
                assert len(file.read()) == size
    assert counting.count("read") == 1
    assert counting.count("open_input") == 6


def test_a_file_that_is_not_of_the_listed_size_is_not_remembered():
    inner = MemoryStorage({"a.parquet": b"longer"})
    storage = RememberingStorage(inner)
    assert storage.open_input("a.parquet", 4).read() == b"longer"
    inner.delete("a.parquet")
    with pytest.raises(FileNotFoundError):
        storage.open_input("a.parquet", 4)


def test_a_storage_that_remembers_is_pickled():
    near = MemoryStorage()
    far = RememberingStorage(Remote(near))
    far.write("f", b"1")
    assert pickle.loads(pickle.dumps(far)).read("f") == b"1"


# --- which listings are made of many folders ---

NAMES = st.lists(st.text("ab=-0.", min_size=1, max_size=5), unique=True, max_size=60)


@given(NAMES, NAMES, st.integers(1, 12))
def test_each_folder_is_listed_by_one_beginning_and_nothing_else_is(names, others, most):
    beside = [f"{name}/" if number % 2 else name for number, name in enumerate(others) if name not in names]
    beginnings = common_beginnings(names, beside, most)
    for name in names:
        assert sum(f"{name}/x".startswith(beginning) for beginning in beginnings) == 1
    assert not any(path.startswith(beginning) for path in beside for beginning in beginnings)


def test_a_thousand_days_take_as_many_listings_as_are_made_at_once():
    days = [
        f"day=2{year:03}-{month:02}-{day:02}" for year in range(3) for month in range(1, 13) for day in range(1, 29)
    ]
    assert 20 <= len(common_beginnings(days, [".hoodie/"], 32)) <= 48
