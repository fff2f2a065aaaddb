"""What a writer that says nothing, or little, about compaction does after its commits."""

import json
import logging
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.config.compaction import CompactionAfterCommit, inline_compaction
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidOption, OptionIgnored, ServiceFailed
from hoodie.model.instant import Action
from hoodie.services.compaction.claim import claimed
from hoodie.services.compaction.inline import _warned, compact_inline
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.sync import after_commit
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.write import check, start, writable_state
from support.compacting import NOW, OPTIONS, Rows, batch, fill, notes, opened, schedule

VECTOR = json.loads((Path(__file__).parents[3] / "vectors" / "compaction_by_default.json").read_text())
INLINE, SCHEDULE = "hoodie.compact.inline", "hoodie.compact.schedule.inline"
ASYNC = "hoodie.datasource.compaction.async.enable"
BATCH = {
    "hoodie.datasource.write.streaming.checkpoint.identifier": "job",
    "hoodie.datasource.write.streaming.batch.id": "0",
}


@pytest.fixture(autouse=True)
def nothing_warned_of() -> None:
    _warned.clear()


def update(number: int) -> Any:
    return batch({"a": ("oslo", number, f"note {number}")})


def compactions(storage: Storage) -> list[str]:
    return [instant.requested for instant in load_state(storage).timeline.completed({Action.COMMIT})]


def pending(storage: Storage) -> list[str]:
    return [instant.requested for instant in load_state(storage).timeline.pending_compactions]


def upserts(storage: Storage, count: int, options: Mapping[str, str] | None = None) -> list[tuple[bool, bool]]:
    """Upserts of one key, and after each whether a compaction is planned, and whether one is completed."""
    seen = []
    table = opened(storage, {})
    for number in range(count):
        table.upsert(update(number), options)
        done = bool(compactions(storage))
        seen.append((done or bool(pending(storage)), done))
    return seen


@pytest.mark.parametrize("case", VECTOR["cases"], ids=lambda case: str(case["options"]))
def test_a_writer_compacts_when_hudis_does(case: dict[str, Any]) -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    seen = upserts(storage, 7, case["options"])
    assert [number for number, (planned, _) in enumerate(seen, 1) if planned] == case["planned"]
    assert [number for number, (_, done) in enumerate(seen, 1) if done] == case["compacted"]
    assert notes(storage) == {"a": "note 6"}


def test_a_writer_that_plans_only_need_not_say_that_it_does_not_compact() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    assert upserts(storage, 6, {SCHEDULE: "true"})[-2:] == [(True, False), (True, False)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, CompactionAfterCommit(run=True)),
        ({ASYNC: "true"}, CompactionAfterCommit(run=True)),
        ({INLINE: "false"}, CompactionAfterCommit(run=True)),  # a stream of Hudi's compacts beside itself then
        ({INLINE: "false", ASYNC: "false"}, CompactionAfterCommit(run=False)),
        ({INLINE: "true"}, CompactionAfterCommit(run=True, explicit=True)),
        ({SCHEDULE: "true"}, CompactionAfterCommit(run=False, schedule=True, explicit=True)),
        ({"hoodie.datasource.write.streaming.disable.compaction": "true"}, CompactionAfterCommit(run=False)),
    ],
)
def test_a_stream_compacts_after_its_batches_unless_it_says_no_twice(
    options: dict[str, str], expected: CompactionAfterCommit
) -> None:
    assert inline_compaction(Options({**options, **BATCH})) == expected


def test_the_tables_own_setting_holds_for_calls_and_streams_that_say_nothing() -> None:
    never = {INLINE: "false"}
    assert not inline_compaction(Options(), never).run
    assert not inline_compaction(Options(BATCH), never).run
    assert inline_compaction(Options({INLINE: "true"}), never).run
    assert inline_compaction(Options({SCHEDULE: "true"}), {INLINE: "true"}).schedule
    with pytest.raises(InvalidOption, match="both true"):
        inline_compaction(Options({SCHEDULE: "true", INLINE: "true"}))


def test_a_table_keeps_what_it_was_created_with(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    hoodie.create_table(
        path, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        options={INLINE: True, "hoodie.compact.inline.max.delta.commits": 2},
    )  # fmt: skip
    for number in range(2):
        hoodie.open_table(path).upsert(update(number))
    storage = hoodie.open_table(path).storage
    assert len(compactions(storage)) == 1
    plans_only = hoodie.open_table(path, options={SCHEDULE: True})
    for number in range(2, 4):
        plans_only.upsert(update(number))
    assert (len(compactions(storage)), len(pending(storage))) == (1, 1)
    quiet = str(tmp_path / "quiet")
    hoodie.create_table(
        quiet, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        options={INLINE: False},
    )  # fmt: skip
    for number in range(6):
        hoodie.hudi.write(update(number), quiet)
    storage = hoodie.open_table(quiet).storage
    assert compactions(storage) == []
    hoodie.open_table(quiet).upsert(update(9), options={INLINE: True})
    assert len(compactions(storage)) == 1


def test_services_that_are_off_compact_nothing() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    assert upserts(storage, 6, {"hoodie.table.services.enabled": "false", INLINE: "true"})[-1] == (False, False)


def test_a_copy_on_write_table_has_nothing_to_compact_and_its_writer_goes_on(
    recwarn: pytest.WarningsRecorder,
) -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, {**OPTIONS, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"})
    upserts(storage, 3, {INLINE: "true", "hoodie.compact.inline.max.delta.commits": "1"})
    assert notes(storage) == {"a": "note 2"}
    assert not [warned for warned in recwarn if issubclass(warned.category, ServiceFailed)]


def test_inserts_alone_list_no_table_to_find_no_logs() -> None:
    inner = MemoryStorage()
    ArrowTable.create(inner, OPTIONS)
    for number in range(6):
        opened(inner, {}).insert(batch({f"k{number}": ("oslo", 1, "new")}))
    storage = CountingStorage(inner)
    assert compact_inline(storage, Settings.of({}), state=load_state(inner)) is False
    assert not storage.calls


def test_a_plan_of_others_is_left_to_them_until_one_is_due() -> None:
    storage = MemoryStorage()
    fill(storage)  # three delta commits
    table = opened(storage, {})
    instant = schedule(storage)
    table.upsert(update(5))
    assert pending(storage) == [instant]
    table.upsert(update(6))
    assert pending(storage) == []
    assert compactions(storage)[0] == instant
    assert notes(storage)["a"] == "note 6"


def test_a_plan_that_a_compactor_runs_stays_with_it_and_the_write_goes_on() -> None:
    storage = MemoryStorage()
    fill(storage)
    table = opened(storage, {})
    instant = schedule(storage)
    with claimed(storage, Settings.of({}), instant):
        for number in range(5, 9):
            table.upsert(update(number))
        assert instant in pending(storage)
    assert notes(storage)["a"] == "note 8"


def test_a_plan_that_hudi_runs_is_left_to_it_until_it_has_written_nothing_for_an_hour() -> None:
    """Hudi claims nothing. A run that was taken over while it wrote completed the plan a second time, by files that
    were removed: Hudi could no longer write to the table."""
    time = 1_700_000_000_000
    storage = MemoryStorage(clock=lambda: time)
    fill(storage)
    table = opened(storage, {})
    instant = schedule(storage)
    inflight, marked = f".hoodie/{instant}.compaction.inflight", f".hoodie/.temp/{instant}/oslo"
    storage.create_new(inflight, b"")
    time += 3_000_000
    storage.create_new(f"{marked}/f_0-1-2_{instant}.parquet.marker.CREATE", b"")
    time += 3_000_000
    for number in range(5, 9):
        table.upsert(update(number))
        assert instant in pending(storage)
    time += 1_000_000
    table.upsert(update(9))
    assert instant in compactions(storage)
    assert notes(storage)["a"] == "note 9"


def test_a_pending_write_of_another_puts_the_compaction_off_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    fill(storage)
    never = Options({"hoodie.cleaner.policy.failed.writes": "NEVER"})
    state = writable_state(storage, Settings.read(never))
    start(check(state, WriteOperation.UPSERT, update(1).schema, Settings.read(never)))
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, "hoodie.services"):
        warnings.simplefilter("error", ServiceFailed)
        assert compact_inline(storage, Settings.of(NOW)) is False
    assert "no compaction is planned" in caplog.text
    assert pending(storage) == compactions(storage) == []


@pytest.mark.parametrize("finished", [False, True])
def test_a_plan_that_another_writer_takes_first_is_left_to_it_without_a_word(
    monkeypatch: pytest.MonkeyPatch, finished: bool
) -> None:
    storage = MemoryStorage()
    fill(storage)
    with ExitStack() as other, warnings.catch_warnings():
        warnings.simplefilter("error", ServiceFailed)

        def planned(storage: Storage, settings: Settings) -> str | None:
            instant = schedule_compaction(storage, settings)
            assert instant is not None
            if finished:
                compact(storage, settings, instant)
            else:
                other.enter_context(claimed(storage, settings, instant))
            return instant

        monkeypatch.setattr("hoodie.services.compaction.inline.schedule_compaction", planned)
        assert compact_inline(storage, Settings.of(NOW)) is False
        assert len(compactions(storage)) == finished
        assert len(pending(storage)) == (not finished)


def test_a_compaction_that_fails_leaves_the_commit_and_is_run_after_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    upserts(storage, 4)

    def fails(*arguments: Any, **more: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("hoodie.services.compaction.run.run_operation", fails)
        with pytest.warns(ServiceFailed, match="no space left"):
            assert opened(storage, {}).upsert(update(7)).updated == 1
    (instant,) = pending(storage)
    opened(storage, {}).upsert(update(8))
    assert compactions(storage) == [instant]
    assert notes(storage) == {"a": "note 8"}


def test_the_writers_of_one_table_compact_it_and_lose_no_row() -> None:
    locked = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "InProcessLockProvider",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
    }
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    rows: Rows = dict.fromkeys("ab", ("oslo", 1, "first"))
    opened(storage, {}).upsert(batch(rows), locked)
    # An instant of another writer that is open: it does not stand in the way here.
    state = writable_state(storage, Settings.read(Options(locked)))
    start(check(state, WriteOperation.UPSERT, update(1).schema, Settings.read(Options(locked))))
    for number in range(2, 7):
        opened(storage, {}).upsert(update(number), locked)
    assert len(compactions(storage)) == 1
    assert notes(storage) == {"a": "note 6", "b": "first"}


def test_the_manifests_are_written_again_after_a_compaction_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(after_commit, "_manifests", lambda storage, options, instant, **more: written.append(instant))
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    upserts(storage, 5)
    assert len(written) == 6


def test_compactions_that_no_other_process_does_are_warned_of_once() -> None:
    options = {ASYNC: "true", "hoodie.compact.inline.max.delta.commits": "2"}
    storage = MemoryStorage()
    fill(storage)  # three delta commits
    table = opened(storage, {})
    table.upsert(update(4), {**options, INLINE: "false"})
    assert _warned == set()
    with pytest.warns(OptionIgnored, match="leaves compaction to another process"):
        table.upsert(update(5), options)
    assert _warned == {storage.root}
    table.upsert(update(6), options)
    assert not compactions(storage)
