"""Clocks of writers differ: in versions 8 and 9 a commit keeps the lock until they are past its completion."""

import datetime as dt

import pytest

from hoodie.config.options import Options
from hoodie.config.table import TimelineZone
from hoodie.locks import Lock, Refused
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.table.settings import Settings, Writers
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import moment_of
from torture.crash import TABLE, batch

NOW = dt.datetime(2026, 1, 1, 12, 0, 0, tzinfo=dt.UTC)
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.time.generator.max_expected_clock_skew_ms": "300",
}


@pytest.mark.parametrize(("ahead", "waited"), [(0.0, 0.2), (0.15, 0.35), (-0.15, 0.05), (-0.5, None), (60.0, 0.4)])
def test_a_moment_is_outlasted_by_as_much_as_clocks_differ_and_no_far_one_is(
    ahead: float, waited: float | None
) -> None:
    slept: list[float] = []
    lock = Lock("lock", lambda seconds: Refused("another"), skew=0.2, sleep=slept.append)
    lock.outlast(NOW + dt.timedelta(seconds=ahead), lambda: NOW)
    assert slept == ([] if waited is None else [pytest.approx(waited)])


@pytest.mark.parametrize("provider", ["", "InProcessLockProvider"])
def test_writers_with_one_clock_do_not_wait(provider: str) -> None:
    lock = Writers.read(Options({"hoodie.write.lock.provider": provider})).lock_on(MemoryStorage())
    lock.sleep = lambda seconds: pytest.fail(f"waits {seconds} s")
    lock.outlast(NOW, lambda: NOW)


@pytest.mark.parametrize(("version", "waits"), [("6", False), ("8", True), ("9", True)])
def test_commits_and_plans_of_compactions_are_outlasted(
    version: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments: list[dt.datetime] = []
    monkeypatch.setattr(Lock, "outlast", lambda lock, moment, _: moments.append(moment) or lock.check())
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.write.table.version": version}
    table = ArrowTable.create(MemoryStorage(), {**TABLE, **SEVERAL, **more})
    table.upsert(batch({"a": ("oslo", 1, "one")}))
    table.upsert(batch({"a": ("oslo", 2, "two")}))
    planned = schedule_compaction(
        table.storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
    )
    assert planned is not None
    times = [commit.completed for commit in table.state().timeline.commits] + [planned]
    assert moments == [moment_of(time, TimelineZone.UTC) for time in (times if waits else ())]
