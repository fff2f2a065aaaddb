"""What is seen of writes from outside: callbacks, logs, phases. None of it has a secret in it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.errors import WriteConflict
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage import storage_for
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import redacted_path
from hoodie.storage.retry import retry
from hoodie.sync import after_commit
from hoodie.table.settings import Settings, Writers
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.run import with_retries
from support.trips import TRIPS

ROWS = pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "ts": [1, 2]})
LOCKED = {
    "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
}


def new_table(**options: str) -> ArrowTable:
    return ArrowTable.create(MemoryStorage(), {**TRIPS, **{key.replace("__", "."): v for key, v in options.items()}})


# --- callbacks ---


def test_a_callback_hears_of_each_commit_until_it_is_cancelled() -> None:
    heard: list[WriteResult] = []
    table = new_table()
    with hoodie.on_commit(heard.append) as registration:
        first = table.upsert(ROWS)
        table.delete_partitions(["rome"])
    table.upsert(ROWS)
    registration.cancel()
    assert heard[0].instant == first.instant
    assert [str(result.metadata.operation) for result in heard] == ["UPSERT", "DELETE_PARTITION"]
    assert {result.table for result in heard} == {"trips"}
    assert {result.path for result in heard} == {table.storage.root}


def test_a_callback_hears_of_compactions() -> None:
    table = new_table(**{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    table.upsert(ROWS)
    table.upsert(ROWS)
    heard: list[WriteResult] = []
    with hoodie.on_commit(heard.append):
        options = Options({"hoodie.compact.inline.max.delta.commits": "1"})
        assert schedule_compaction(table.storage, Settings.read(options))
        done = compact(table.storage, Settings.of({}))
    assert done is not None
    assert [(r.instant, r.table) for r in heard] == [(done.instant, "trips")]


def test_a_callback_that_raises_fails_no_commit_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(result: WriteResult) -> None:
        raise ZeroDivisionError("of the callback")

    heard: list[WriteResult] = []
    table = new_table()
    with caplog.at_level(logging.ERROR), hoodie.on_commit(broken), hoodie.on_commit(heard.append):
        result = table.upsert(ROWS)
    assert table.snapshot().num_rows == 2
    assert [r.instant for r in heard] == [result.instant]
    (record,) = caplog.records
    assert record.name == "hoodie.write"
    assert "broken" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_a_write_that_fails_is_no_commit() -> None:
    heard: list[WriteResult] = []
    table = new_table()
    table.fail_next(6, None)
    with hoodie.on_commit(heard.append), pytest.raises(OSError, match="refused"):
        table.upsert(ROWS)
    assert heard == []


# --- phases ---


@dataclass
class Clock:
    """Tells the processor time of this process, which other processes do not take from it, and what was slept."""

    slept: float = 0.0

    def perf_counter(self) -> float:
        return time.process_time() + self.slept

    def time_of(self, call: Callable[[], WriteResult | None]) -> tuple[float, float]:
        """Seconds that a call took, and what the phases of its result add up to."""
        began = self.perf_counter()
        result = call()
        wall = self.perf_counter() - began
        assert result is not None
        return wall, sum(result.seconds.values())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What phases go by."""
    made = Clock()
    monkeypatch.setattr("hoodie.writing.result.time", made)
    return made


def test_the_phases_of_every_kind_of_write_add_up_to_its_wall_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    table = hoodie.create_table(
        tmp_path / "t",
        name="trips",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={"hoodie.compact.inline": False, "hoodie.compact.inline.max.delta.commits": 1},
    )
    services = after_commit.clean_and_archive

    def slow(*given: Any) -> object:
        clock.slept += 0.1
        return services(*given)

    monkeypatch.setattr(after_commit, "clean_and_archive", slow)
    for call in (
        lambda: table.bulk_insert(ROWS),
        lambda: table.upsert(ROWS),
        lambda: table.delete(ROWS.slice(0, 1)),
        lambda: table.delete_partitions(["rome"]),
    ):
        wall, phases = clock.time_of(call)
        assert phases == pytest.approx(wall, rel=0.3)
        assert phases > 0.1  # services after the commit are in it
    table.upsert(ROWS)
    planned = table.schedule_compaction()
    wall, phases = clock.time_of(lambda: table.compact(planned))
    assert phases == pytest.approx(wall, rel=0.3)


def test_phases_add_up_to_the_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("hoodie.writing.result.time", SimpleNamespace(perf_counter=lambda: now))
    phases = Phases(_begun=now)
    with phases.time("outer"):
        sleep(2)
        with phases.time("inner"):
            sleep(3)
        with phases.time("outer"):
            sleep(1)
    sleep(2)
    assert phases.whole() == {"outer": 3, "inner": 3, "other": 2}


def test_the_phases_of_a_write_add_up_however_it_is_done(tmp_path: Path, clock: Clock) -> None:
    table = ArrowTable.create(LocalStorage(str(tmp_path)), {**TRIPS, "hoodie.clean.automatic": "false"})
    for write in (table.upsert, table.bulk_insert, table.delete, table.insert_overwrite):
        wall, phases = clock.time_of(lambda: write(ROWS))  # noqa: B023
        assert phases == pytest.approx(wall, rel=0.3), write


# --- logs ---


def messages(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == f"hoodie.{name}"]


def test_a_write_logs_its_begin_its_look_up_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie")
    table = new_table()
    table.upsert(ROWS)
    result = table.upsert(ROWS)
    begin, end = messages(caplog, "write")[-2:]
    assert begin == f"trips: upsert begins at {result.instant} (COPY_ON_WRITE)"
    assert end.startswith(f"trips: UPSERT at {result.instant}: 0 inserted, 2 updated, 0 deleted in 2 files, driver (")
    assert messages(caplog, "index")[-1].startswith("trips: index SIMPLE found 2 of ")


def test_a_failed_write_and_its_leftovers_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie")
    table = new_table()
    table.fail_next(6, None)
    with pytest.raises(OSError, match="refused"):
        table.upsert(ROWS)
    assert "failed with StorageError; rolling it back" in messages(caplog, "write")[-1]


def test_a_conflict_logs_that_the_write_starts_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie")
    settings = Settings.read(Options({**LOCKED, "hoodie.write.num.retries.on.conflict.failures": "1"}))
    done = WriteResult("1", None, None, "driver", {})  # type: ignore[arg-type]
    answers: list[Callable[[], WriteResult]] = [lambda: done]

    def attempt() -> WriteResult:
        if len(answers) == 1 and not messages(caplog, "write"):
            raise WriteConflict("file group 7")
        return answers[0]()

    assert with_retries(settings, attempt) is done
    assert messages(caplog, "write") == [
        "conflict with another writer, the write starts again; 1 attempts are left: file group 7"
    ]


def test_services_log_what_they_did(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie")
    table = new_table(**{"hoodie.clean.automatic": "false"})
    for _ in range(3):
        table.upsert(ROWS)
    done = table.clean({"hoodie.cleaner.commits.retained": "1"})
    assert messages(caplog, "services")[0] == f"trips: clean {done.instant} begins: {len(done.paths)} files"
    assert messages(caplog, "services")[1].startswith(f"trips: clean {done.instant} deleted {len(done.paths)} files in")


def test_waiting_for_a_lock_is_logged_with_its_holder(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG, "hoodie")
    storage = LocalStorage(str(tmp_path))
    first, second = Writers.read(Options(LOCKED)).lock_on(storage), Writers.read(Options(LOCKED)).lock_on(storage)
    assert first.acquire(1)
    assert not second.acquire(0)
    first.release()
    told = messages(caplog, "locks")
    assert told[0].startswith("acquired the lock of table ")
    assert told[1].startswith("could not acquire the lock of table ")
    assert "; it was held by " in told[1]
    assert told[-1].startswith("released the lock of table ")


def test_a_retry_of_storage_is_logged_without_what_the_error_says(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie")
    calls = iter([TimeoutError("https://bucket/?signature=hush"), None])

    def call() -> int:
        if (error := next(calls)) is not None:
            raise error
        return 7

    assert retry(call) == 7
    (told,) = messages(caplog, "storage")
    assert told.startswith("attempt 1 of 5 failed with TimeoutError; trying again in ")
    assert "hush" not in caplog.text


def test_no_handler_is_installed_and_nothing_is_formatted_that_nobody_reads() -> None:
    class Told(Exception):
        pass

    names = ["hoodie", *(f"hoodie.{name}" for name in ("write", "services", "locks", "storage", "index"))]
    assert not any(logging.getLogger(name).handlers for name in names)

    class Result(WriteResult):
        def __str__(self) -> str:
            raise Told

    from hoodie.writing.result import notify_committed

    notify_committed(Result("1", None, None, "driver", {}))  # type: ignore[arg-type]


# --- secrets ---

SECRET = "hush-7f3a"


def test_options_of_a_storage_are_in_no_log_no_result_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    heard: list[WriteResult] = []
    storage = storage_for("memory://secrets/trips", {"token": SECRET, "auto_mkdir": True})
    table = ArrowTable.create(storage, TRIPS)
    with hoodie.on_commit(heard.append):
        result = table.upsert(ROWS, LOCKED)
        table.upsert(ROWS, LOCKED)
        table.clean({"hoodie.cleaner.commits.retained": "1"})
    shown = [
        result,
        *heard,
        table.state(),
        table.state().storage,
        result.after,
        Writers.read(Options(LOCKED)).lock_on(storage),
    ]
    assert not [value for value in shown if SECRET in repr(value) + str(value)]
    assert caplog.text
    assert SECRET not in caplog.text


def test_a_password_in_a_uri_is_not_shown() -> None:
    assert redacted_path("ftp://ann:hush@host/trips") == "ftp://ann:***@host/trips"
    assert redacted_path("abfss://container@account.dfs.core.windows.net/trips").startswith("abfss://container@account")
    assert redacted_path("s3://bucket/a:b@c") == "s3://bucket/a:b@c"
    assert redacted_path("/local/path:x@y") == "/local/path:x@y"
