"""Several writers of a table: who gives way, who tries again, who is considered dead, which batches are known."""

import re
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from hoodie.commit import rollback_executor as rollbacks
from hoodie.commit import transaction as transactions
from hoodie.commit.batch_ids import CHECKPOINT
from hoodie.commit.heartbeat import Heartbeat, heartbeat_path, silent_writes
from hoodie.commit.transaction import begin, describe, publish
from hoodie.config.locks import ConcurrencyOptions, FailedWrites
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.doctor.examine import Severity, examine
from hoodie.errors import (
    InvalidOption,
    LockWithoutMode,
    SchemaMismatch,
    UnsupportedTable,
    WriteConflict,
)
from hoodie.formats.timeline.commit_json import decode_commit, encode_inflight
from hoodie.formats.timeline.plans import encode_compaction_plan
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CompactionPlan
from hoodie.services import clean as cleaning
from hoodie.services.clean import clean
from hoodie.services.compaction import schedule as scheduling
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.sync.after_commit import after_commit
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, declared_schema, load_state
from hoodie.testing.storage import Crash, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1, new_time
from hoodie.timeline.transition import create_requested, instant_path, remove_pending, to_inflight
from hoodie.writing import write
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.finish import abandoned_on_error, finish
from hoodie.writing.local import check_batch
from hoodie.writing.result import Phases
from hoodie.writing.run import KNOWN, run, write_batch
from hoodie.writing.write import Write, check, start, writable_state
from support.meanwhile import Meanwhile, calls_of
from support.trips import TRIPS

TABLE = {
    **TRIPS,
    "hoodie.spark.driver.threads": "1",
    "hoodie.table.services.enabled": "false",
    "hoodie.write.num.retries.on.conflict.failures": "0",  # what one attempt says
}
LOCKED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "StorageBasedLockProvider",
}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
PROVIDER = "hoodie.write.lock.provider"
POLICY = "hoodie.cleaner.policy.failed.writes"
KEEP_THE_NEWEST = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}


def rows(*keys: str, city: str = "oslo", note: str = "old", **more: Any) -> pa.Table:
    columns = {"id": list(keys), "city": [city] * len(keys), "ts": [1] * len(keys), "note": [note] * len(keys)}
    return pa.table(columns | {name: [value] * len(keys) for name, value in more.items()})


def table(options: dict[str, str] | None = None, storage: Storage | None = None) -> ArrowTable:
    return ArrowTable.create(storage or MemoryStorage(), {**TABLE, **(options or {})})


def notes(storage: Storage) -> dict[str, str]:
    found = ArrowTable(storage).snapshot().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key occurs twice"
    return {row["id"]: row["note"] for row in found}


AT_FIRST_FILE = calls_of("open_output create_new", ".parquet")


def meanwhile(there: ArrowTable, act: Callable[[], object], **options: str) -> ArrowTable:
    """A second writer of the table, in whose way something comes."""
    return ArrowTable(Meanwhile(there.storage, AT_FIRST_FILE, act), {**there.options, **options})


# --- conflicts ---


@pytest.mark.parametrize("more", [{}, {"extra": 1}], ids=["same columns", "another column"])
def test_the_first_writes_of_a_table_do_not_conflict_if_they_bring_the_same_columns(more: dict[str, int]) -> None:
    there = table(LOCKED)
    batch, settings = rows("b"), Settings.read(there.options)
    second = check_batch(there.storage, WriteOperation.UPSERT, batch.to_reader(), settings, after_commit)
    there.upsert(rows("a", **more))
    if more:
        with pytest.raises(WriteConflict, match="the table's columns were changed just now"):
            run(second)
    else:
        run(second)
    assert notes(there.storage).keys() == ({"a"} if more else {"a", "b"})


def test_a_column_that_another_adds_is_not_hidden_where_a_compaction_ends_meanwhile_as_well() -> None:
    there = table({**LOCKED, **MOR})
    there.upsert(rows("a"))
    there.upsert(rows("a", note="new"))
    planned = schedule_compaction(
        there.storage, Settings.read(ArrowTable(there.storage, {**there.options, **NOW}).options)
    )

    def act() -> None:
        there.upsert(rows("b", city="bern", extra=1))
        compact(there.storage, Settings.read(there.options), planned)

    late = meanwhile(there, act, **{RETRIES: "0"})
    with pytest.raises(WriteConflict, match=r"columns changed meanwhile \(new: extra\)"):
        late.upsert(rows("c", city="rome"))
    assert "extra" in there.snapshot().column_names


def test_a_write_starts_again_where_others_archive_the_commit_that_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    there = table(LOCKED)
    there.upsert(rows("a"))
    settings = Settings.read(ArrowTable(there.storage, {**there.options, RETRIES: "1"}).options)
    late = check_batch(there.storage, WriteOperation.UPSERT, rows("b").to_reader(), settings, after_commit)
    there.upsert(rows("c"))
    schemas = iter([FileNotFoundError("archived"), declared_schema(load_state(there.storage))])

    def looked_at(state: TableState) -> pa.Schema | None:
        if isinstance(schema := next(schemas), FileNotFoundError):
            raise schema
        return schema

    monkeypatch.setattr(write, "declared_schema", looked_at)
    run(late)
    assert notes(there.storage).keys() == {"a", "b", "c"}


@pytest.mark.parametrize("retries", ["0", "1"])
@pytest.mark.parametrize("options", [{}, LOCKED], ids=["no lock", "lock"])
def test_a_write_whose_file_was_cleaned_away_gives_way_to_the_writers_that_made_it_obsolete(
    options: dict[str, str], retries: str
):
    there = table(options)
    there.upsert(rows("a", "b"))

    def others() -> None:
        for note in ("one", "two", "three"):
            there.upsert(rows("a", note=note))
        clean(there.storage, Settings.of({**there.options, **KEEP_THE_NEWEST}))

    storage = Meanwhile(there.storage, calls_of("open_input read_range read", ".parquet"), others)
    late = ArrowTable(storage, {**there.options, RETRIES: retries})
    if retries == "0":
        with pytest.raises(WriteConflict, match=r"a cleaning deleted a file that it was to read \(.*parquet"):
            late.upsert(rows("b", note="late"))
        assert notes(there.storage) == {"a": "three", "b": "old"}
    else:
        late.upsert(rows("b", note="late"))
        assert notes(there.storage) == {"a": "three", "b": "late"}
    assert load_state(there.storage).timeline.pending() == ()


class Torn(WrappedStorage):
    """Its listings of the timeline lack what is completed as a commit, until data files are listed."""

    torn = True

    def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if name in ("list", "list_tree") and not path.startswith(".hoodie"):
            self.torn = False
        if not self.torn or not path.endswith("/timeline"):
            return answer
        if name == "list":
            return [entry for entry in answer if not entry.name.endswith(".commit")]
        if name == "list_some":
            return [entry for entry in answer[0] if not entry.name.endswith(".commit")], answer[1]
        return answer


def test_a_write_that_sees_a_cleaning_and_not_yet_the_compaction_before_it_gives_way() -> None:
    """It sees logs without the base file, old or new: that is no table whose keys cannot be looked up. A listing of a
    folder that is written to may lack the older of two new files."""
    there = ArrowTable.create(MemoryStorage(), {**TABLE, **MOR, "hoodie.write.table.version": "8"})
    there.upsert(rows("a", "b"))
    there.upsert(rows("a", note="one"))
    compact(there.storage, Settings.of(there.options), schedule_compaction(there.storage, Settings.of(NOW)))
    clean(there.storage, Settings.of({**there.options, **KEEP_THE_NEWEST}))
    with pytest.raises(WriteConflict, match="changed while the table was looked at"):
        ArrowTable(Torn(there.storage), {**there.options, POLICY: "NEVER"}).upsert(rows("b", note="late"))
    assert notes(there.storage) == {"a": "one", "b": "old"}


def before_plan_is_read(there: ArrowTable, act: Callable[[], object]) -> Meanwhile:
    """The storage of a write that has begun."""
    is_plan = calls_of("read", (".replacecommit.requested", ".compaction.requested"))

    def when(name: str, path: str) -> bool:
        return is_plan(name, path) and len(load_state(there.storage).timeline.pending()) > 1

    return Meanwhile(there.storage, when, act)


def test_a_write_that_has_begun_goes_on_beside_an_overwrite_that_is_rolled_back():
    there = table(LOCKED)
    there.upsert(rows("a"))
    overwrite = create_requested(there.storage, "20990101000000000", Action.REPLACE_COMMIT, layout=LAYOUT_1)
    storage = before_plan_is_read(there, lambda: remove_pending(there.storage, overwrite, layout=LAYOUT_1))
    ArrowTable(storage, {**there.options, POLICY: "NEVER", RETRIES: "0"}).upsert(rows("a", note="late"))
    assert storage.over
    assert notes(there.storage) == {"a": "late"}


def test_a_write_beside_a_compaction_that_is_taken_back_gives_way():
    there = table(LOCKED)
    there.upsert(rows("a"))
    plan = encode_compaction_plan(CompactionPlan())
    compaction = create_requested(there.storage, "20990101000000000", Action.COMPACTION, plan, layout=LAYOUT_1)
    storage = before_plan_is_read(there, lambda: remove_pending(there.storage, compaction, layout=LAYOUT_1))
    with pytest.raises(WriteConflict, match="another write was rolled back since this one began"):
        ArrowTable(storage, {**there.options, POLICY: "NEVER", RETRIES: "0"}).upsert(rows("a", note="late"))
    assert notes(there.storage) == {"a": "old"}


def test_the_second_of_two_writes_of_a_file_group_gives_way_and_leaves_nothing():
    first = table(LOCKED)
    first.upsert(rows("a", "b"))
    second = meanwhile(first, lambda: first.upsert(rows("a", note="first")))
    with pytest.raises(WriteConflict, match=r"file group oslo/.*num.retries.on.conflict.failures") as caught:
        second.upsert(rows("b", note="second"))
    assert notes(first.storage) == {"a": "first", "b": "old"}
    (lost,) = [i for i in load_state(first.storage).timeline.instants if i.action is Action.ROLLBACK]
    assert lost.state is State.COMPLETED
    assert "instant" in str(caught.value)


def test_a_write_that_gave_way_is_done_again_on_the_table_as_it_is_then():
    first = table(LOCKED)
    first.upsert(rows("a", "b"))
    second = meanwhile(first, lambda: first.upsert(rows("a", note="first")), **{RETRIES: "1"})
    assert second.upsert(rows("b", note="second")).updated == 1
    assert notes(first.storage) == {"a": "first", "b": "second"}


def test_the_number_of_attempts_is_told():
    first = table(LOCKED)
    first.upsert(rows("a"))

    def again() -> None:
        first.upsert(rows("a", note="first"))
        assert isinstance(second.storage, Meanwhile)
        second.storage.over = False

    second = meanwhile(first, again, **{RETRIES: "2"})
    with pytest.raises(WriteConflict) as caught:
        second.upsert(rows("a", note="second"))
    assert caught.value.__notes__[-1] == "3 attempts were made."


def test_writes_of_different_file_groups_go_side_by_side():
    first = table(LOCKED)
    first.upsert(rows("a"))
    first.upsert(rows("c", city="rome"))
    second = meanwhile(first, lambda: first.upsert(rows("a", note="first")))
    second.upsert(rows("c", city="rome", note="second"))
    assert notes(first.storage) == {"a": "first", "c": "second"}


def test_without_a_lock_a_writer_that_another_took_for_dead_is_told():
    first = table()
    first.upsert(rows("a"))
    second = meanwhile(first, lambda: first.upsert(rows("c", city="rome", note="first")))
    with pytest.raises(WriteConflict, match=r"considered this one dead.*OPTIMISTIC_CONCURRENCY_CONTROL, each of them"):
        second.upsert(rows("a", note="second"), {RETRIES: "3"})  # at once: two that try again would take turns
    assert notes(first.storage) == {"a": "old", "c": "first"}


class Failing(WrappedStorage):
    """Fails where a file of an ending is made, after something else was done."""

    def __init__(self, inner: Storage, ending: str, error: type[BaseException], act: Callable[[], object]) -> None:
        super().__init__(inner)
        self.ending, self.error, self.act = ending, error, act

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if name in ("open_output", "create_new") and path.endswith(self.ending):
            self.act()
            raise self.error(2, "No such file or directory", path)
        return call()


@pytest.mark.parametrize("ending", [".parquet", "MERGE"])
@pytest.mark.parametrize("dies", [True, False])
def test_a_file_that_another_writer_without_a_lock_took_away_is_its_rollback(ending: str, dies: bool) -> None:
    first = table()
    first.upsert(rows("a"))

    def other() -> None:
        if dies:  # once it has rolled this write back
            with pytest.raises(Crash):
                ArrowTable(Failing(first.storage, ".parquet", Crash, list), first.options).upsert(rows("c"))
        else:
            first.upsert(rows("c", note="first"))

    second = ArrowTable(Failing(first.storage, ending, FileNotFoundError, other), first.options)
    with pytest.raises(WriteConflict) as caught:
        second.upsert(rows("a", note="second"))
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert "Several writers need hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL" in said
    assert not re.search(r"[a-z] Several writers", said)
    assert notes(first.storage) == ({"a": "old"} if dies else {"a": "old", "c": "first"})


def test_a_file_that_is_gone_while_nobody_else_writes_is_said_to_be_gone() -> None:
    only = table()
    with pytest.raises(FileNotFoundError):
        ArrowTable(Failing(only.storage, ".parquet", FileNotFoundError, list), only.options).upsert(rows("a"))


def test_a_conflict_is_tried_again_three_times_unless_the_options_say_otherwise():
    first = table(LOCKED)
    first.upsert(rows("a", "b"))
    calls = []

    def act() -> None:
        calls.append(1)
        first.upsert(rows("a", note=f"{len(calls)}"))

    class Always(Meanwhile):
        times = 0

        def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
            self.over = len(calls) >= self.times
            return super().mutate(name, path, call)

    options = {key: value for key, value in first.options.items() if key != RETRIES}
    storage = Always(first.storage, AT_FIRST_FILE, act)
    storage.times = 3
    ArrowTable(storage, options).upsert(rows("b", note="late"))
    assert (notes(first.storage), len(calls)) == ({"a": "3", "b": "late"}, 3)
    storage.times, calls[:] = 9, []
    with pytest.raises(WriteConflict):
        ArrowTable(storage, options).upsert(rows("b", note="later"))
    assert len(calls) == 4


def test_a_lock_with_the_mode_of_a_single_writer_is_warned_about():
    half = table({PROVIDER: "StorageBasedLockProvider"})
    with pytest.warns(LockWithoutMode, match="OPTIMISTIC_CONCURRENCY_CONTROL, each of them"):
        half.upsert(rows("a"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table(LOCKED).upsert(rows("a"))
        table().upsert(rows("a"))
        table({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}).upsert(rows("a"))


def test_a_deleted_partition_contradicts_an_update_within():
    first = table(LOCKED)
    first.upsert(rows("a"))
    second = meanwhile(first, lambda: first.delete_partitions(["oslo"]))
    with pytest.raises(WriteConflict, match="DELETE_PARTITION"):
        second.upsert(rows("a", note="second"))
    assert notes(first.storage) == {}


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_gives_way_to_a_pending_overwrite_that_has_announced_its_file_group(version: str) -> None:
    there = table({**LOCKED, "hoodie.write.table.version": version})
    there.upsert(rows("a"))
    (slice_,) = there.slices()

    def act() -> None:
        storage, layout = there.storage, there.state().layout
        storage.write(heartbeat_path(other), b"")
        requested = create_requested(storage, other, Action.REPLACE_COMMIT, layout=layout)
        stat = WriteStat(file_id=slice_.group.file_id, partition="oslo", path=None, prev_commit=slice_.base_instant)
        profile = CommitMetadata(operation=Operation.INSERT_OVERWRITE, stats={"oslo": (stat,)})
        to_inflight(storage, requested, encode_inflight(profile), layout=layout)

    other = "20990101000000000"
    with pytest.raises(WriteConflict, match=rf"contradicts replacecommit at {other} \(inflight\)"):
        meanwhile(there, act, **{RETRIES: "0"}).upsert(rows("a", note="second"))


def test_a_write_that_does_not_know_new_columns_gives_way():
    """It would be the newest commit, and say that the table has no such column."""
    first = table(LOCKED)
    first.upsert(rows("a"))
    wider = rows("c", city="rome", fare=2.5)
    second = meanwhile(first, lambda: first.upsert(wider))
    with pytest.raises(WriteConflict, match="new: fare"):
        second.upsert(rows("a", note="second"))
    keep = {"hoodie.write.missing.columns": "keep"}
    second = meanwhile(first, lambda: first.upsert(rows("d", city="bern", tip=1.0), keep), **{RETRIES: "1"})
    with pytest.raises(SchemaMismatch, match="column 'tip' is missing"):  # when it is made again
        second.upsert(rows("a", note="second", fare=2.5))
    second = meanwhile(first, lambda: first.upsert(rows("e", city="bern", more=1.0), keep), **{RETRIES: "1"})
    second.upsert(rows("a", note="second"), keep)
    assert notes(first.storage)["a"] == "second"
    assert {"fare", "tip", "more"} <= set(first.snapshot().column_names)


def test_a_write_on_rows_that_were_rolled_back_meanwhile_gives_way():
    first = table(LOCKED)
    first.upsert(rows("a"))
    made = first.upsert(rows("b", city="rome"))
    paths = [f".hoodie/{made.instant}.{rest}" for rest in ("commit", "inflight", "commit.requested")]
    second = meanwhile(first, lambda: [first.storage.delete(path) for path in paths])
    with pytest.raises(WriteConflict, match=f"made on rows of {made.instant}, which were rolled back"):
        second.upsert(rows("a", note="second"))


def test_a_table_that_changed_its_kind_meanwhile_is_not_written():
    first = table(LOCKED)
    first.upsert(rows("a"))
    path = ".hoodie/hoodie.properties"

    def upgrade() -> None:
        text = first.storage.read(path) + b"\nhoodie.table.metadata.partitions=files\n"
        first.storage.write(path, text)

    with pytest.raises(WriteConflict, match="metadata partitions changed from none to"):
        meanwhile(first, upgrade).upsert(rows("a", note="second"))


def test_a_write_to_a_slice_that_a_compaction_is_planned_for_meanwhile_gives_way():
    """Its log belongs to the slice that the compaction closes."""
    first = table({**LOCKED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    first.upsert(rows("a"))
    first.upsert(rows("a", note="log"))
    planning = {**first.options, "hoodie.compact.inline.max.delta.commits": "1"}
    planned: list[str | None] = []

    def at_log(name: str, path: str) -> bool:
        return name in ("open_output", "create_new") and ".log." in path and not path.startswith(".hoodie")

    def schedule() -> None:
        planned.append(schedule_compaction(first.storage, Settings.of(planning)))

    plan = Meanwhile(first.storage, at_log, schedule)
    with pytest.raises(WriteConflict, match=r"COMPACT at .*requested"):
        ArrowTable(plan, first.options).upsert(rows("a", note="second"))
    assert planned[0] is not None
    assert notes(first.storage) == {"a": "log"}
    first.upsert(rows("a", note="after"))  # knows of the plan
    assert notes(first.storage) == {"a": "after"}


def test_nothing_begins_while_a_restore_is_pending():
    there = table()
    there.upsert(rows("a"))
    create_requested(there.storage, "20990101000000000", Action.RESTORE, b"", layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match="restore"):
        there.upsert(rows("a", note="new"))


@pytest.mark.parametrize("provider", ["InProcessLockProvider", "StorageBasedLockProvider"])
def test_threads_that_write_the_same_file_group_all_get_through(provider, tmp_path):
    there = table({**LOCKED, "hoodie.write.lock.provider": provider, RETRIES: "30"}, LocalStorage(tmp_path))
    there.upsert(rows(*"abcd"))
    faults: list[BaseException] = []

    def write(key: str) -> None:
        try:
            for turn in range(3):
                there.upsert(rows(key, note=f"{turn}"))
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=write, args=(key,)) for key in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert notes(there.storage) == dict.fromkeys("abcd", "2")


# --- two actions of one moment ---

MOMENT = "20990101000000000"
TAKEN = f"another process took instant {MOMENT} at the same moment"


class AtMoment(WrappedStorage):
    """Does something else, once, before a file of `MOMENT` with this ending is created. It may be remote."""

    def __init__(self, inner: Storage, ending: str, act: Callable[[], object], remote: bool = False) -> None:
        super().__init__(inner)
        self.ending, self.act, self.is_remote = ending, act, remote

    @property
    def remote(self) -> bool:
        return self.is_remote

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if path.endswith(f"/{MOMENT}.{self.ending}"):
            act, self.act = self.act, lambda: None
            act()
        return call()


def take_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """All actions take one time, as far as they see none on the timeline that has it."""
    for module in (transactions, cleaning, scheduling):
        monkeypatch.setattr(module, "new_time", lambda *arguments: max(MOMENT, new_time(*arguments)))


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_of_two_writes_that_take_one_moment_the_later_takes_another(
    state: str, version: str, remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their actions differ, so each could create its instant; their files and markers would not tell them apart."""
    there = table({**MOR, "hoodie.write.table.version": version, "hoodie.metadata.enable": "true"})
    there.upsert(rows("a", "b"))
    take_one_moment(monkeypatch)
    batch, settings = rows("c", note="second"), Settings.read(there.options)
    second = check_batch(there.storage, WriteOperation.INSERT_OVERWRITE, batch.to_reader(), settings, after_commit)
    refusals = []

    def act() -> None:
        try:
            run(second)
        except WriteConflict as refusal:
            refusals.append(str(refusal))

    first = ArrowTable(AtMoment(there.storage, f"deltacommit.{state}", act, remote), {**there.options, RETRIES: "1"})
    first.upsert(rows("a", "f", note="first"))
    if refusals:
        assert notes(there.storage) == {"a": "first", "b": "old", "f": "first"}
        assert TAKEN in refusals[0]
    else:
        assert notes(there.storage) == {"a": "first", "c": "second", "f": "first"}
    # On remote storage the first looks at the timeline while it begins, and may see the second in time to give way.
    assert bool(refusals) is (state == "inflight") or remote
    times = [instant.requested for instant in there.state().timeline.instants]
    assert len(times) == len(set(times))
    assert examine(there.storage, grace=0) == ()


@pytest.mark.parametrize(
    ("options", "ending", "serve"),
    [({**MOR, **NOW}, "compaction.requested", schedule_compaction), (KEEP_THE_NEWEST, "clean.requested", clean)],
)
def test_a_service_that_takes_the_moment_of_a_write_gives_way(
    options: dict[str, str],
    ending: str,
    serve: Callable[[Storage, Settings], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = table(options)
    there.upsert(rows("a"))
    there.upsert(rows("a", note="new"))
    before = there.state().timeline.instants
    take_one_moment(monkeypatch)
    storage = AtMoment(there.storage, ending, lambda: begin(there.state(), WriteOperation.UPSERT, Action.DELTA_COMMIT))
    with pytest.raises(WriteConflict, match="at the same moment"):
        serve(storage, Settings.read(there.options))
    assert there.state().timeline.instants == (*before, Instant(MOMENT, Action.DELTA_COMMIT, State.REQUESTED))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("dead", ["insert_overwrite", "upsert"])
@pytest.mark.parametrize("city", ["oslo", "bern"])
def test_files_of_a_dead_write_are_not_shown_beside_a_completed_one_of_its_time(
    city: str, dead: str, kind: str
) -> None:
    """Hudi's writers without a lock may do that."""
    there = table({"hoodie.datasource.write.table.type": kind, "hoodie.parquet.small.file.limit": "0"})
    there.upsert(rows("a", "b"))
    first = there.storage.snapshot()
    fork = ArrowTable(MemoryStorage(first), there.options)
    act = {"insert_overwrite": ArrowTable.insert_overwrite, "upsert": ArrowTable.upsert}
    (alive,) = {*act} - {dead}
    time = act[alive](there, rows("c", city=city, note="second")).instant
    before = notes(there.storage)
    act[dead](fork, rows("a", "f", note="dead"))
    other = fork.state().timeline.newest
    for path, data in fork.storage.snapshot().items():
        if path not in first and not path.endswith(
            (f"{other}.commit", f"{other}.deltacommit", f"{other}.replacecommit")
        ):
            there.storage.write(path.replace(other, time), data.replace(other.encode(), time.encode()))
    assert len(there.state().timeline.pending()) == 1
    assert notes(there.storage) == before
    there.upsert(rows("g", note="later"))
    assert notes(there.storage) == {**before, "g": "later"}
    assert all(finding.severity < Severity.ERROR for finding in examine(there.storage, grace=0))


# --- who is considered dead ---


def die() -> None:
    raise Crash("the process was killed")


def dead(there: ArrowTable) -> str:
    """A writer dies in the middle; its instant."""
    before = {i.requested for i in load_state(there.storage).timeline.instants}
    with pytest.raises(Crash):
        meanwhile(there, die).upsert(rows("a", note="dead"))
    (left,) = [i for i in load_state(there.storage).timeline.pending() if i.requested not in before]
    return left.requested


def pending(there: ArrowTable) -> list[str]:
    return [i.requested for i in load_state(there.storage).timeline.pending()]


class Time:
    def __init__(self) -> None:
        self.now = 1_000_000_000_000

    def __call__(self) -> int:
        return self.now


def test_lazy_writers_are_rolled_back_once_their_heart_has_stopped():
    time = Time()
    there = table({**LOCKED}, MemoryStorage(clock=time))
    there.upsert(rows("a"))
    gone = dead(there)
    assert there.storage.exists(heartbeat_path(gone))
    time.now += 100_000
    there.upsert(rows("c", city="rome"))
    assert pending(there) == [gone]
    time.now += 100_000
    there.upsert(rows("d", city="rome"))
    assert pending(there) == []
    assert not any(".heartbeat" in path for path in there.storage.snapshot())  # type: ignore[attr-defined]


def test_on_a_storage_that_keeps_no_times_no_writer_with_a_heartbeat_is_considered_dead():
    there = table({**LOCKED}, MemoryStorage(clock=lambda: 0))
    there.upsert(rows("a"))
    gone = dead(there)
    there.upsert(rows("c", city="rome"))
    assert pending(there) == [gone]


def test_a_writer_whose_heart_never_beat_is_dead():
    there = table(LOCKED)
    there.upsert(rows("a"))
    gone = dead(there)
    there.storage.delete(heartbeat_path(gone))
    there.upsert(rows("c", city="rome"))
    assert pending(there) == []


def test_eager_writers_take_everybody_for_dead_and_never_nobody():
    for policy, left in (("EAGER", 0), ("NEVER", 1)):
        there = table({POLICY: policy})
        there.upsert(rows("a"))
        dead(there)
        there.upsert(rows("c", city="rome"))
        assert len(pending(there)) == left
        assert notes(there.storage) == {"a": "old", "c": "old"}


def test_optimistic_writers_are_lazy():
    assert ConcurrencyOptions().policy is FailedWrites.EAGER
    assert Settings.read(Options(LOCKED)).writers.concurrency.policy is FailedWrites.LAZY
    assert Settings.read(Options({**LOCKED, POLICY: "NEVER"})).writers.concurrency.policy is FailedWrites.NEVER


def test_a_heart_beats_while_its_writer_works_and_no_longer():
    there = table({**LOCKED, "hoodie.client.heartbeat.interval_in_ms": "1000"})
    beats: set[int] = set()

    def look() -> None:
        for _ in range(300):  # as long as a busy machine may take
            (entry,) = there.storage.list(".hoodie/.heartbeat")
            beats.add(entry.mtime)
            if len(beats) > 1:
                return
            threading.Event().wait(0.1)

    meanwhile(there, look).upsert(rows("a"))
    assert len(beats) == 2
    assert there.storage.list(".hoodie/.heartbeat") == []


def begun(there: ArrowTable) -> Write:
    settings = Settings.read(there.options)
    state = writable_state(there.storage, settings)
    return start(check(state, WriteOperation.UPSERT, rows("a").schema, settings))


def test_an_interrupted_write_falls_silent():
    """In a notebook the process lives on: a heartbeat that continues would keep the write from being rolled back."""
    there = table({**LOCKED, "hoodie.client.heartbeat.interval_in_ms": "100"})
    there.upsert(rows("a"))
    job = begun(there)
    with pytest.raises(KeyboardInterrupt), abandoned_on_error(job):
        raise KeyboardInterrupt
    before = there.storage.list(".hoodie/.heartbeat")
    threading.Event().wait(0.4)
    assert there.storage.list(".hoodie/.heartbeat") == before != []


def test_a_writer_whose_own_heart_stopped_does_not_publish():
    now = [0.0]
    heart = Heartbeat(MemoryStorage(), "1", 60, 120, monotonic=lambda: now[0], run=lambda every, work: lambda: None)
    heart.start()
    now[0] = 100
    heart.check()
    assert heart.beat()
    now[0] = 221
    assert not heart.beat()
    with pytest.raises(WriteConflict, match="no heartbeat for more than 120 s"):
        heart.check()


def test_the_age_of_a_heartbeat_is_told_by_the_clock_of_the_storage():
    time = Time()  # decades behind this process's
    storage = MemoryStorage(clock=time)
    storage.write(heartbeat_path("1"), b"")
    assert silent_writes(storage, ["1", "2"], ConcurrencyOptions()) == {"2"}
    time.now += 122_000
    assert silent_writes(storage, ["1"], ConcurrencyOptions()) == {"1"}


# --- batches ---


def numbered(application: str, batch: int) -> dict[str, str]:
    return {
        "hoodie.datasource.write.streaming.checkpoint.identifier": application,
        "hoodie.datasource.write.streaming.batch.id": str(batch),
    }


def files(there: ArrowTable) -> dict[str, bytes]:
    assert isinstance(there.storage, MemoryStorage)
    return there.storage.snapshot()


@pytest.mark.parametrize("options", [{}, LOCKED], ids=["alone", "locked"])
def test_a_batch_that_is_sent_again_is_not_written_again(options):
    there = table(options)
    first = there.insert(rows("a"), options=numbered("stream", 0))
    before = files(there)
    again = there.insert(rows("a"), options=numbered("stream", 0))
    assert files(there) == before
    assert (again.instant, again.inserted, again.files, again.route) == (first.instant, 1, first.files, KNOWN)
    assert there.insert(rows("b"), options=numbered("stream", 1)).route != KNOWN
    assert notes(there.storage) == {"a": "old", "b": "old"}


def test_batches_of_each_application_are_counted_apart():
    there = table()
    made = {}
    for application, batch in (("one", 0), ("two", 0), ("one", 1), ("two", 7)):
        made[application, batch] = there.insert(
            rows(f"{application}{batch}"), options=numbered(application, batch)
        ).instant
    assert len(notes(there.storage)) == 4
    for (application, batch), instant in made.items():
        assert there.insert(rows("x"), options=numbered(application, batch)).instant == instant
    assert there.insert(rows("x"), options=numbered("two", 3)).instant == ""  # greater ones were written since
    assert "x" not in notes(there.storage)


def test_a_batch_is_known_when_its_commit_has_left_the_timeline():
    there = table()
    first = there.insert(rows("a"), options=numbered("stream", 4)).instant
    there.insert(rows("b"))
    for rest in ("commit", "inflight", "commit.requested"):
        there.storage.delete(f".hoodie/{first}.{rest}")
    again = there.insert(rows("a"), options=numbered("stream", 4))
    assert (again.instant, again.inserted) == ("", 0)
    assert notes(there.storage) == {"a": "old", "b": "old"}


def test_a_batch_that_two_processes_send_at_once_is_written_once():
    first = table(LOCKED)
    first.upsert(rows("z"))
    batch = numbered("stream", 0)
    done: list[str] = []
    second = meanwhile(first, lambda: done.append(first.insert(rows("a"), options=batch).instant))
    assert second.insert(rows("a", city="rome"), options=batch).instant == done[0]
    assert notes(first.storage) == {"z": "old", "a": "old"}
    assert pending(first) == []


def test_a_batch_whose_write_failed_is_written_when_it_is_sent_again():
    there = table()
    there.upsert(rows("z"))
    batch = numbered("stream", 0)
    with pytest.raises(Crash):
        meanwhile(there, die).insert(rows("a"), options=batch)
    assert there.insert(rows("a"), options=batch).route != KNOWN
    assert notes(there.storage) == {"z": "old", "a": "old"}


def test_the_map_of_batches_has_the_form_of_hudis_streaming_sink():
    there = table()
    instant = there.insert(rows("a"), options=numbered("stream", 12)).instant
    path = f".hoodie/{instant}.commit"
    assert decode_commit(there.storage.read(path), path).extra[CHECKPOINT] == '{"stream": "12"}'


@pytest.mark.parametrize("half", [0, 1])
def test_half_of_a_batchs_name_is_refused(half):
    key, value = list(numbered("stream", 1).items())[half]
    with pytest.raises(InvalidOption, match=f"{key} needs"):
        table().insert(rows("a"), options={key: value})


def test_a_commit_that_is_published_twice_is_refused():
    there = table()
    there.upsert(rows("a"))
    job = begun(there).with_plan(None)
    metadata = describe(job.begun, [], {}, {"schema": job.avro_schema})
    publish(job.begun, metadata)
    with pytest.raises(WriteConflict, match="published already"):
        publish(job.begun, metadata)


def test_a_rollback_that_sleeps_does_not_delete_what_was_published_meanwhile():
    """The first has only its instant when the second considers it dead; the second stops behind a list of markers."""
    there = table()
    there.upsert(rows("a"))
    first = begun(there)
    batch = rows("b", note="first").append_column("_hoodie_record_key", pa.array(["b"]))
    batch = batch.append_column("_hoodie_partition_path", pa.array(["oslo"]))
    work: list[Any] = []

    class Slow(WrappedStorage):
        looks = 0

        def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
            if name == "list_tree" and path.endswith(first.transaction.time):
                self.looks += 1
                if self.looks == 2:
                    work.append(write_batch(first, MemoryBatch(batch), Phases()))
            return call()

        def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
            if len(work) == 1:
                job, outcome = work[0]
                work.append(finish(job, outcome, Phases()))
            return call()

    ArrowTable(Slow(there.storage), there.options).upsert(rows("c", city="rome"))
    assert len(work) == 2
    assert notes(there.storage) == {"a": "old", "b": "first", "c": "old"}


# --- writers without a lock that take back the same failed write ---


def dead_rollback(there: ArrowTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that died, and whose rollback died after its plan was made."""
    begun(there)

    def die(*_: object, **__: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(rollbacks, "execute_rollback", die)
        with pytest.raises(Crash):
            there.upsert(rows("never"))
    (left,) = load_state(there.storage).timeline.pending({Action.ROLLBACK})
    assert left.state is State.REQUESTED


AT_ROLLBACK_PLAN = calls_of("read", ".rollback.requested")


def test_a_rollback_that_another_writer_withdraws_at_this_moment_is_no_error(monkeypatch):
    there = table()
    there.upsert(rows("a"))
    dead_rollback(there, monkeypatch)

    def withdraw() -> None:
        timeline = load_state(there.storage).timeline
        for pending in (*timeline.pending(), *timeline.pending({Action.ROLLBACK})):
            remove_pending(there.storage, pending, layout=LAYOUT_1)

    ArrowTable(Meanwhile(there.storage, AT_ROLLBACK_PLAN, withdraw), there.options).upsert(rows("b"))
    assert notes(there.storage) == {"a": "old", "b": "old"}


def test_a_rollback_that_another_writer_completes_at_this_moment_is_done(monkeypatch):
    there = table()
    there.upsert(rows("a"))
    dead_rollback(there, monkeypatch)
    storage = Meanwhile(there.storage, AT_ROLLBACK_PLAN, lambda: there.upsert(rows("b")))
    ArrowTable(storage, there.options).upsert(rows("c"))
    assert notes(there.storage) == {"a": "old", "b": "old", "c": "old"}


def test_a_rollback_whose_plan_is_gone_is_a_conflict_that_says_what_to_do(monkeypatch):
    there = table()
    there.upsert(rows("a"))
    dead_rollback(there, monkeypatch)

    def lose() -> None:
        (left,) = load_state(there.storage).timeline.pending({Action.ROLLBACK})
        to_inflight(there.storage, left, layout=LAYOUT_1)
        there.storage.delete(instant_path(left, layout=LAYOUT_1))

    with pytest.raises(WriteConflict, match=r"Try again.*hoodie check") as raised:
        ArrowTable(Meanwhile(there.storage, AT_ROLLBACK_PLAN, lose), there.options).upsert(rows("b"))
    assert isinstance(raised.value.__cause__, FileNotFoundError)
    assert notes(there.storage) == {"a": "old"}


def test_a_timeline_file_that_another_writer_removes_during_the_clean_up_is_a_conflict():
    there = table()
    there.upsert(rows("a"))
    begun(there).with_plan(None)

    class Removed(WrappedStorage):
        def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
            if name == "read" and path.endswith(".inflight"):
                self.inner.delete(path)
            return call()

    with pytest.raises(WriteConflict, match="is rolling back the same failed writes") as raised:
        ArrowTable(Removed(there.storage), there.options).upsert(rows("b"))
    assert isinstance(raised.value.__cause__, FileNotFoundError)
    there.upsert(rows("b"))
    assert notes(there.storage) == {"a": "old", "b": "old"}


@pytest.mark.parametrize("newest", ["99991231235959999", "99999999999999999"])
def test_an_instant_after_which_there_is_none_is_refused_by_name(newest):
    there = table()
    there.upsert(rows("a"))
    there.storage.create_new(f".hoodie/{newest}.commit.requested", b"")
    there.storage.create_new(f".hoodie/{newest}.inflight", b"")
    there.storage.create_new(f".hoodie/{newest}.commit", b"")
    with pytest.raises(UnsupportedTable, match=f"instant {newest}, and no instant time comes after it"):
        there.upsert(rows("b"))
    assert {row["id"] for row in there.snapshot().to_pylist()} == {"a"}


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda other: other.upsert(rows("b")), id="write"),
        pytest.param(lambda other: other.upsert(rows("b"), LOCKED), id="one of several writers"),
        pytest.param(lambda other: other.changes("earliest"), id="incremental read"),
        pytest.param(lambda other: other.clean({"hoodie.cleaner.commits.retained": "1"}), id="cleaning"),
    ],
)
def test_an_overwrite_that_is_rolled_back_while_others_look_at_it_fails_none(call):
    there = table()
    for note in ("one", "two", "three"):
        there.upsert(rows("a", note=note))
    overwrite = create_requested(there.storage, "20990101000000000", Action.REPLACE_COMMIT, layout=LAYOUT_1)
    roll_back = partial(remove_pending, there.storage, overwrite, layout=LAYOUT_1)
    call(ArrowTable(Meanwhile(there.storage, calls_of("read", ".replacecommit.requested"), roll_back), there.options))
    assert not there.storage.exists(instant_path(overwrite, LAYOUT_1))
    assert notes(there.storage)["a"] == "three"
