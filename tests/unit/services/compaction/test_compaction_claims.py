"""Several schedulers, several compactors: a slice is in one plan, a plan is run by one at a time and once in all."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from hoodie.config.options import Options
from hoodie.errors import InstantNotFound, LockLost, PlanInUse, WriteConflict
from hoodie.model.commit import WriteStat
from hoodie.model.instant import Action, State
from hoodie.services.compaction.claim import claimed, runs_unclaimed
from hoodie.services.compaction.job import CompactionJob, begin_compaction
from hoodie.services.compaction.publish import publish_compaction
from hoodie.services.compaction.run import compact, run_on_driver
from hoodie.services.compaction.schedule import pending_compactions, schedule_compaction, unschedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import DelayingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested
from support.compacting import NOW, OPTIONS, SECOND, batch, begun, fill, notes, opened, schedule
from support.instants import next_time

#: A claim whose holder died is free after two seconds: a second, and one more for the clocks of object stores.
SHORT = {"hoodie.write.lock.storage.validity.timeout.secs": "1"}
IN_PROCESS = {"hoodie.write.lock.provider": "InProcessLockProvider"}


@pytest.mark.parametrize("options", [{}, IN_PROCESS], ids=["no lock", "a lock"])
def test_of_two_schedulers_at_once_one_plans_a_slice(storage: MemoryStorage, options: dict[str, str]) -> None:
    slow = DelayingStorage(storage, lambda method, path: 0.02 if method == "list_tree" else 0.0)
    one = {**NOW, **options, "hoodie.compaction.target.io": "0"}  # a slice a plan
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: schedule_compaction(slow, Settings.of(one)), range(4)))
    state = load_state(storage)
    groups = [op.group for _, plan in pending_compactions(state) for op in plan.operations]
    assert len(groups) == len(set(groups)) == 2  # there are two with logs
    assert sum(instant is not None for instant in made) == 2


def test_a_plan_that_is_being_run_is_in_no_other_hands(storage: MemoryStorage) -> None:
    instant = schedule(storage)

    def meanwhile(job: CompactionJob) -> list[WriteStat | None]:
        with pytest.raises(PlanInUse, match=f"compaction {instant} is claimed by another process"):
            compact(storage, Settings.of({}), instant)
        with pytest.raises(PlanInUse):
            unschedule_compaction(storage, Settings.of({}), instant)
        assert compact(storage, Settings.of({})) is None  # there is no other plan
        return run_on_driver(job)

    assert compact(storage, Settings.of({}), instant, run=meanwhile) is not None
    assert notes(storage)["b"] == "second"
    with pytest.raises(InstantNotFound, match="completed already"):
        compact(storage, Settings.of({}), instant)


def test_a_compactor_takes_the_oldest_plan_that_nobody_runs(storage: MemoryStorage) -> None:
    first = schedule(storage, **{"hoodie.compaction.target.io": "0"})
    second = schedule(storage)
    taken = []

    def meanwhile(job: CompactionJob) -> list[WriteStat | None]:
        other = compact(storage, Settings.of({}))
        assert other is not None
        taken.append(other.instant)
        return run_on_driver(job)

    result = compact(storage, Settings.of({}), run=meanwhile)
    assert (result.instant, taken) == (first, [second])


def test_many_compactors_run_each_plan_once(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    fill(storage)
    plans = {schedule(storage, **{"hoodie.compaction.target.io": "0"}) for _ in range(2)}
    done: list[str] = []
    ran: list[str] = []

    def run(job: CompactionJob) -> list[WriteStat | None]:
        ran.append(job.instant.requested)
        return run_on_driver(job)

    def compactor() -> None:
        while pending_compactions(load_state(storage)):
            result = compact(storage, Settings.of({}), run=run)
            if result is not None:
                done.append(result.instant)

    threads = [threading.Thread(target=compactor) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted(ran) == sorted(plans)
    assert notes(storage)["c"] == "second"


@contextmanager
def a_compactor_that_hangs(storage: MemoryStorage, instant: str) -> Iterator[None]:
    """It has the plan, and does not renew its claim: as one whose machine is off the network."""
    with claimed(
        storage, Settings.of({**SHORT, "hoodie.write.lock.storage.renew.interval.secs": "1"}), instant
    ) as claim:
        claim._grant.stop()  # type: ignore[union-attr]
        yield


def test_the_plan_of_a_compactor_that_died_is_run_by_another(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    with a_compactor_that_hangs(storage, instant):
        with pytest.raises(PlanInUse):
            compact(storage, Settings.of(SHORT), instant)
        while compact(storage, Settings.of(SHORT)) is None:
            threading.Event().wait(0.1)
    assert notes(storage)["b"] == "second"


def test_a_run_that_died_under_a_lock_in_zookeeper_is_told_from_one_of_hudi(storage: MemoryStorage) -> None:
    """Its claim is in the storage: here no ZooKeeper answers."""
    instant = schedule(storage)
    in_zookeeper = {**SHORT, "hoodie.write.lock.provider": "ZookeeperBasedLockProvider"}
    with claimed(storage, Settings.of(in_zookeeper), instant):
        assert begin_compaction(storage, Settings.of(SHORT), instant) is not None
        state = load_state(storage)
        assert [runs_unclaimed(state, plan) for plan in state.timeline.pending_compactions] == [False]


def test_a_compactor_that_lost_its_claim_publishes_nothing_and_leaves_the_others_files(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    others = []

    def hangs(job: CompactionJob) -> list[WriteStat | None]:
        stats = run_on_driver(job)
        storage.delete_tree(".hoodie/.locks")  # its claim ended, and another takes it
        other = compact(storage, Settings.of({}), instant)
        assert other is not None
        others.append(other)
        return stats

    with pytest.raises(LockLost):
        compact(storage, Settings.of({}), instant, run=hangs)
    assert set(others[0].files) == {path for path in storage.snapshot() if path.endswith(f"_{instant}.parquet")}
    assert notes(storage)["b"] == "second"


def test_a_compactor_that_lost_its_claim_leaves_the_run_that_took_over(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    others = []

    def hangs(job: CompactionJob) -> list[WriteStat | None]:
        storage.delete_tree(".hoodie/.locks")
        other = begun(storage, instant)
        others.append((other, run_on_driver(other)))
        raise ValueError("found out late")

    with pytest.raises(ValueError, match="found out late"):
        compact(storage, Settings.of({}), instant, run=hangs)
    publish_compaction(*others[0])
    assert notes(storage)["b"] == "second"


def test_a_lock_that_the_publisher_cannot_get_leaves_the_plan(storage: MemoryStorage) -> None:
    from hoodie.errors import LockTimeout
    from hoodie.table.settings import Writers

    instant = schedule(storage)
    before = {path for path in storage.snapshot() if not path.startswith(".hoodie/.locks/")}
    impatient = {**IN_PROCESS, "hoodie.write.lock.wait_time_ms": "10", "hoodie.write.lock.client.num_retries": "0"}
    with Writers.read(Options(IN_PROCESS)).lock_on(storage), pytest.raises(LockTimeout):
        compact(storage, Settings.of(impatient), instant)
    assert set(storage.snapshot()) == before
    assert compact(storage, Settings.of(impatient), instant) is not None


def test_planning_and_publishing_wait_for_the_tables_lock(storage: MemoryStorage) -> None:
    from hoodie.table.settings import Writers

    with ThreadPoolExecutor(1) as pool:
        with Writers.read(Options(IN_PROCESS)).lock_on(storage):
            planning = pool.submit(schedule_compaction, storage, Settings.of({**NOW, **IN_PROCESS}))
            with pytest.raises(TimeoutError):
                planning.result(0.2)
        instant = planning.result()
        assert instant is not None
        with Writers.read(Options(IN_PROCESS)).lock_on(storage):
            running = pool.submit(compact, storage, Settings.of(IN_PROCESS), instant)
            with pytest.raises(TimeoutError):
                running.result(0.2)
            assert load_state(storage).timeline.pending_compactions[0].state is State.INFLIGHT
        assert running.result() is not None


def test_of_several_writers_one_at_work_does_not_keep_a_compaction_from_being_planned(storage: MemoryStorage) -> None:
    create_requested(storage, next_time(storage), Action.DELTA_COMMIT, layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match="is pending"):
        schedule_compaction(storage, Settings.of(NOW))
    several = {**NOW, **IN_PROCESS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    assert schedule_compaction(storage, Settings.of(several)) is not None


def test_a_table_that_has_no_plan_costs_a_scheduler_no_lock(storage: MemoryStorage) -> None:
    before = storage.snapshot()
    assert schedule_compaction(storage, Settings.of({})) is None  # not due
    assert storage.snapshot() == before
    made = ArrowTable.create(MemoryStorage(), OPTIONS)
    opened(made.storage).upsert(batch(SECOND))
    before = made.storage.snapshot()  # type: ignore[attr-defined]
    assert schedule_compaction(made.storage, Settings.of(NOW)) is None  # due, and nothing to do
    assert made.storage.snapshot() == before  # type: ignore[attr-defined]
