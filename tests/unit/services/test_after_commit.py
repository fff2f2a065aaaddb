"""Services after each commit: their cost stays the same, and a commit stands whatever becomes of them."""

import warnings
from collections.abc import Callable
from statistics import mean

import pyarrow as pa
import pytest

from hoodie.config.options import Options
from hoodie.errors import InvalidOption, LockTimeout, ServiceFailed
from hoodie.model.instant import Action
from hoodie.plan.clean import CHECKPOINT
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import Serviced, clean_and_archive
from hoodie.table.settings import Settings, Writers
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import nightly
from support.trips import TRIPS, WRITES

RETAINED = {"hoodie.cleaner.commits.retained": 2}
SMALL = {**RETAINED, "hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 8}


def rows(key: str, city: str, ts: int) -> pa.Table:
    return pa.table({"id": [key], "city": [city], "ts": pa.array([ts], pa.int64())})


def timeline_files(storage: Storage) -> int:
    return sum(not entry.is_dir for entry in storage.list(".hoodie"))


def update_one_of_four(table: ArrowTable, number: int) -> None:
    city = f"city{number % 4}"
    table.upsert(rows(city, city, number))


def insert_only(table: ArrowTable, number: int) -> None:
    table.insert(rows(f"k{number}", f"city{number % 4}", number))


def overwrite_one_of_four(table: ArrowTable, number: int) -> None:
    table.insert_overwrite(rows(f"k{number}", f"city{number % 4}", number))


@pytest.mark.parametrize(
    ("step", "policy", "keep", "commits"),
    [
        nightly(update_one_of_four, "KEEP_LATEST_COMMITS", 5, 120),
        (overwrite_one_of_four, "KEEP_LATEST_COMMITS", 2, 45),
        (insert_only, "KEEP_LATEST_COMMITS", 2, 75),
        (insert_only, "KEEP_LATEST_FILE_VERSIONS", 2, 60),
    ],
)
def test_a_commit_costs_the_same_after_many(
    step: Callable[[ArrowTable, int], None], policy: str, keep: int, commits: int
) -> None:
    """Counted, not timed: calls of a commit with its services, and files on the timeline."""
    inner = MemoryStorage()
    ArrowTable.create(inner, TRIPS)
    storage = CountingStorage(inner)
    options = {"hoodie.keep.min.commits": keep, "hoodie.keep.max.commits": keep + 2, **RETAINED}
    table = ArrowTable(storage, {**WRITES, **options, "hoodie.cleaner.policy": policy})
    calls, files, listed = [], [], []
    for number in range(commits):
        storage.reset()
        step(table, number)
        calls.append(storage.count())
        listed.append(storage.count("list_tree", ""))
        files.append(timeline_files(inner))
    third = commits // 3
    early, late = calls[third : 2 * third], calls[-third:]
    assert mean(late) <= 1.05 * mean(early)
    assert max(late) <= 1.25 * max(early)
    # Properties, cleans, and commits with those that no clean has been recorded of.
    assert max(files) <= 1 + 3 * (keep + 3) + 3 * (keep + 4 + CHECKPOINT)
    assert max(files[-third:]) <= max(files[third : 2 * third]) + 3
    assert not any(listed[third:]), "no commit lists the whole table"
    assert table.snapshot().num_rows == (commits if step is insert_only else 4)


def test_nothing_is_looked_at_while_there_is_nothing_to_do() -> None:
    inner = MemoryStorage()
    ArrowTable.create(inner, TRIPS)
    table = ArrowTable(inner, WRITES)
    for number in range(5):
        update_one_of_four(table, number)
    storage = CountingStorage(inner)
    done = clean_and_archive(storage, Settings.read(Options()), "1")
    assert (done.cleaned, done.archived) == (None, None)
    assert storage.count("list") == 1
    assert storage.count("list", ".hoodie") == 1
    storage.reset()
    off = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    clean_and_archive(storage, Settings.read(Options(off)), "1")
    assert storage.count() == 0


def test_every_failure_of_a_service_is_a_warning() -> None:
    class Broken(CountingStorage):
        def list(self, folder: str = "") -> list:  # type: ignore[type-arg]
            raise RuntimeError("a driver's own error")

    inner = MemoryStorage()
    ArrowTable.create(inner, TRIPS)
    with pytest.warns(ServiceFailed, match="77 is committed, but .* failed: RuntimeError: a driver's own error"):
        assert clean_and_archive(Broken(inner), Settings.read(Options()), "77") == Serviced()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ServiceFailed)
        with pytest.raises(ServiceFailed):
            clean_and_archive(Broken(inner), Settings.read(Options()), "77")


def test_bad_options_of_services_are_refused_before_a_write() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, TRIPS)
    table = ArrowTable(storage, WRITES)
    with pytest.raises(InvalidOption, match=r"hoodie\.keep\.min\.commits='0'"):
        table.upsert(rows("a", "oslo", 1), options={"hoodie.keep.min.commits": "0"})
    assert not load_state(storage).timeline.instants


def test_rollbacks_are_archived_too() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, TRIPS)
    table = ArrowTable(storage, {**WRITES, **SMALL})
    for number in range(12):
        table.fail_next(3, None)
        with pytest.raises(OSError, match="refused"):
            update_one_of_four(table, number)
        update_one_of_four(table, number)
    assert 5 <= len(load_state(storage).timeline.completed({Action.ROLLBACK})) <= 9
    assert table.snapshot().num_rows == 4


def test_services_take_the_lock_of_the_table() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, TRIPS)
    table = ArrowTable(storage, {**WRITES, "hoodie.table.services.enabled": "false"})
    for number in range(8):
        table.upsert(rows("a", "oslo", number))
    locked = {
        "hoodie.write.lock.provider": "InProcessLockProvider",
        "hoodie.write.lock.wait_time_ms": "1",
        "hoodie.write.lock.client.num_retries": "0",
    }
    before = storage.snapshot()
    calls = (table.clean, table.archive)
    with Writers.read(Options(locked)).lock_on(storage):
        for call in calls:
            with pytest.raises(LockTimeout):
                call({**SMALL, "hoodie.keep.max.commits": 6, **locked})
        with pytest.warns(ServiceFailed, match="LockTimeout"):
            clean_and_archive(
                storage, Settings.read(Options({**{key: str(value) for key, value in SMALL.items()}, **locked})), "1"
            )
    assert storage.snapshot() == before
    for call in calls:
        call({**SMALL, "hoodie.keep.max.commits": 6, **locked})
    assert storage.snapshot() != before
