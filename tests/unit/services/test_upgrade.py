"""Tables of version 6 get version 8 or 9: rows, history and earlier states stay, wherever the process dies."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.errors import InvalidOption, UnsupportedTable, WriteConflict
from hoodie.model.instant import Action, State
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services import upgrade as upgrades
from hoodie.services.archive import archive, history
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.downgrade import downgrade
from hoodie.services.upgrade import upgrade
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.table.upgraded_timeline import estimated_completions
from hoodie.testing.storage import Crash, CrashAfter, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.clusterings import PLAN, plan_clustering
from support.nightly import scaled
from support.trips import table_options
from torture.crash import METADATA, TABLE, an_hour_later, batch, rows_of_now

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")


def table(kind: str, **more: str) -> ArrowTable:
    """Some commits, an overwrite, a savepoint; on Merge-on-Read logs, a plan and logs behind it."""
    made = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.datasource.write.table.type": kind, **more})
    made.upsert(batch({"a": ("oslo", 1, "one"), "b": ("oslo", 1, "one"), "c": ("rome", 1, "one")}))
    made.upsert(batch({"a": ("oslo", 2, "two"), "d": ("rome", 2, "two")}))
    make_savepoint(made.storage, Settings.read(made.options))
    made.insert_overwrite(batch({"e": ("bern", 3, "three")}))
    if kind == MOR:
        made.upsert(batch({"b": ("oslo", 4, "logged")}))
        due = Options({**made.options, "hoodie.compact.inline.max.delta.commits": "1"})
        assert schedule_compaction(made.storage, Settings.read(due))
        made.upsert(batch({"b": ("oslo", 5, "behind"), "c": ("rome", 5, "behind")}))
        made.delete(batch({"d": ("rome", 2, "two")}).select(["id", "city"]))
    return made


def states(made: ArrowTable) -> dict[str, Any]:
    """The rows as of each commit that brought some."""
    commits = [commit for commit in made.state().timeline.commits if commit.action is not Action.COMMIT or _cow(made)]
    return {c.requested: sorted(map(str, made.as_of(c.requested).select(["id", "note"]).to_pylist())) for c in commits}


def _cow(made: ArrowTable) -> bool:
    return not made.state().config.merge_on_read


@pytest.mark.parametrize("to", [8, 9])
@pytest.mark.parametrize("kind", [COW, MOR])
def test_rows_and_earlier_states_are_as_before_and_writes_go_on(kind: str, to: int) -> None:
    made = table(kind)
    rows, before = rows_of_now(made), states(made)
    result = upgrade(made.storage, Settings.read(made.options), to)
    assert (result.before, result.version) == (6, to)
    assert rows_of_now(made) == rows
    after = states(made)
    assert {time: after[time] for time in before} == before
    state = made.state()
    assert (state.config.version, state.config.properties["hoodie.table.initial.version"]) == (to, "6")
    assert all(i.state is State.COMPLETED and i.completed > i.requested for i in state.timeline.instants)
    assert not [entry for entry in made.storage.list(".hoodie") if entry.name[:1].isdigit()]
    made.upsert(batch({"a": ("oslo", 9, "nine"), "z": ("kiel", 9, "nine")}))
    assert rows_of_now(made) == rows | {"a": ("oslo", 9, "nine"), "z": ("kiel", 9, "nine")}


def test_a_dry_run_says_what_would_be_done_and_changes_nothing() -> None:
    made = table(MOR)
    before = {path: made.storage.read(path) for path in _paths(made)}
    result = upgrade(made.storage, Settings.read(made.options), 9, dry_run=True)
    assert str(result).startswith("would be upgraded from version 6 to 9, read by Hudi 1.1")
    assert "run planned compactions" in str(result)
    assert result.settings is not None
    assert result.settings["hoodie.table.version"] == "9"
    assert result.settings["hoodie.table.precombine.field"] is None
    assert {path: made.storage.read(path) for path in _paths(made)} == before


def _paths(made: ArrowTable) -> list[str]:
    tree = made.storage.list_tree("")
    return [f"{folder}/{e.name}".lstrip("/") for folder, entries in tree.items() for e in entries if not e.is_dir]


def test_archived_commits_are_in_the_history() -> None:
    made = table(COW, **KEEP)
    for number in range(10, 18):
        made.upsert(batch({"a": ("oslo", number, f"v{number}")}))
    clean(made.storage, Settings.read(made.options))
    beyond = Options({**made.options, "hoodie.archive.beyond.savepoint": "true"})
    assert archive(made.storage, Settings.read(beyond)).instants
    before = [(i.requested, i.action, m.operation) for i, m in history(made.state(), archived=True)]
    assert upgrade(made.storage, Settings.read(made.options), 8).steps
    after = history(made.state(), archived=True)
    assert [(i.requested, i.action, m.operation) for i, m in after] == before
    times = [i.completed for i, _ in after]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)


@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ("OverwriteWithLatestAvroPayload", "COMMIT_TIME_ORDERING"),
        ("DefaultHoodieRecordPayload", "EVENT_TIME_ORDERING"),
    ],
)
@pytest.mark.parametrize("to", [8, 9])
def test_a_table_merges_rows_as_before(payload: str, mode: str, to: int) -> None:
    """Hudi makes a last-write-wins table with an ordering column one by event time."""
    name = f"org.apache.hudi.common.model.{payload}"
    made = table(COW, **{"hoodie.datasource.write.payload.class": name})
    upgrade(made.storage, Settings.read(made.options), to)
    assert made.state().config.properties["hoodie.record.merge.mode"] == mode
    made.upsert(batch({"a": ("oslo", 0, "late")}))
    assert (rows_of_now(made)["a"][2] == "late") == (mode == "COMMIT_TIME_ORDERING")


def test_version_8_becomes_9_by_its_settings_alone() -> None:
    made = table(MOR, **{"hoodie.write.table.version": "8"})
    rows, instants = rows_of_now(made), made.state().timeline.instants
    with pytest.raises(InvalidOption, match="an earlier one: downgrade it"):
        upgrade(made.storage, Settings.read(made.options), 6)
    upgrade(made.storage, Settings.of({**made.options, "hoodie.write.table.version": "9"}), 9)
    again = ArrowTable(made.storage, {**made.options, "hoodie.write.table.version": "9"})
    properties = again.state().config.properties
    assert again.state().timeline.instants == instants
    assert rows_of_now(again) == rows
    assert {"hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id"}.isdisjoint(properties)
    assert properties["hoodie.table.ordering.fields"] == "ts"
    again.upsert(batch({"a": ("oslo", 9, "nine")}))
    assert rows_of_now(again) == rows | {"a": ("oslo", 9, "nine")}


@pytest.mark.parametrize("kind", [COW, MOR])
def test_a_process_that_dies_anywhere_leaves_the_rows_and_the_next_finishes(kind: str) -> None:
    original = table(kind, **METADATA)
    rows = rows_of_now(original)
    calls, versions = 0, set()
    while True:
        storage = original.storage.copy()  # type: ignore[attr-defined]
        made = ArrowTable(storage, original.options)
        try:
            upgrade(CrashAfter(storage, calls), Settings.read(made.options), 9)
        except Crash:
            assert rows_of_now(made) == rows, calls
            storage.clock = an_hour_later  # claims of the dead have ended
            versions.add(made.state().config.version)
            upgrade(storage, Settings.read(made.options), 9)
            assert (rows_of_now(made), made.state().config.version) == (rows, 9), calls
            assert not [entry for entry in storage.list(".hoodie") if entry.name[:1].isdigit()], calls
        else:
            break
        calls += scaled(9, 5) if kind == COW else scaled(23, 11)
    assert versions == {6, 9}


def test_writes_after_an_upgrade_that_died_are_not_lost() -> None:
    made = table(COW)
    calls = next(n for n in range(1, 200) if _dies_copying(made, n))
    storage = made.storage.copy()  # type: ignore[attr-defined]
    with pytest.raises(Crash):
        upgrade(CrashAfter(storage, calls), Settings.read(made.options), 9)
    again = ArrowTable(storage, made.options)
    again.upsert(batch({"q": ("oslo", 9, "since")}))
    rows = rows_of_now(again)
    upgrade(storage, Settings.read(made.options), 9)
    assert rows_of_now(again) == rows
    assert rows["q"] == ("oslo", 9, "since")


def _dies_copying(made: ArrowTable, calls: int) -> bool:
    storage = made.storage.copy()  # type: ignore[attr-defined]
    try:
        upgrade(CrashAfter(storage, calls), Settings.read(made.options), 9)
    except Crash:
        return len(storage.list(".hoodie/timeline")) > 4
    return False


def test_a_pending_write_that_is_alive_stops_the_upgrade() -> None:
    made = table(COW)
    several = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "InProcessLockProvider",
    }
    from hoodie.commit.transaction import begin
    from hoodie.config.write import WriteOperation
    from hoodie.table.settings import Writers

    options = Options({**made.options, **several})
    transaction = begin(made.state(), WriteOperation.UPSERT, Action.COMMIT, writers=Writers.read(options))
    with pytest.raises(WriteConflict, match="is pending"):
        upgrade(made.storage, Settings.read(options), 9)
    assert made.state().config.version == 6
    transaction.end()


def test_a_clean_that_another_process_begins_just_then_is_finished_and_the_version_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = table(COW)
    settings = Settings.read(Options({**made.options, **KEEP}))
    make_ready, deaths = upgrades._make_ready, iter([True, False] * 2)

    def with_a_clean(*arguments: Any) -> None:
        make_ready(*arguments)
        if next(deaths):
            made.upsert(batch({"a": ("oslo", 6, "six")}))
            made.upsert(batch({"a": ("oslo", 7, "seven")}))
            with pytest.raises(Crash):
                clean(CrashAfter(made.storage, 2), settings)

    monkeypatch.setattr(upgrades, "_make_ready", with_a_clean)
    for change, to in ((upgrade, 8), (downgrade, 6)):
        change(made.storage, settings, to)
        state = made.state()
        assert state.config.version == to
        assert len(state.timeline.completed({Action.CLEAN})) == (1 if to == 8 else 2)
        assert rows_of_now(made)["a"] == ("oslo", 7, "seven")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hoodie.populate.meta.fields": "false"}, "populate.meta.fields"),
    ],
)
def test_what_is_not_written_in_a_later_version_is_not_upgraded(change: dict[str, str], says: str) -> None:
    made = table(COW)
    update_properties(made.storage, change)
    with pytest.raises(UnsupportedTable, match=says):
        upgrade(made.storage, Settings.read(made.options), 9)
    assert load_state(made.storage).config.version == 6


@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_a_table_whose_keys_would_change_their_buckets_keeps_its_version(engine: str) -> None:
    """Hudi 1.x hashes keys with commas or colons otherwise than 0.15; others stay where they are."""
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.index.bucket.engine": engine,
    }
    made = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.datasource.write.table.type": MOR, **buckets})
    made.upsert(batch({"a": ("oslo", 1, "one"), "b,c": ("oslo", 1, "one")}))
    settings = Settings.read(made.options)
    upgrade(made.storage, settings, 9)
    downgrade(made.storage, settings, 6)
    write = made.upsert(batch({"d:e": ("rome", 2, "two")}))
    with pytest.raises(UnsupportedTable, match="commas and colons in its keys, such as 'd:e'"):
        upgrade(made.storage, settings, 9)
    rollback(made.storage, settings, write.instant)
    upgrade(made.storage, settings, 9)
    made.upsert(batch({"d:e": ("rome", 3, "three")}))
    with pytest.raises(UnsupportedTable, match="such as 'd:e'"):
        downgrade(made.storage, settings, 6)


def test_completions_come_before_the_next_instant_though_a_copied_table_has_newer_files() -> None:
    copied = "20260101000000000"
    written = {(f"2025010100000{n}000", Action.COMMIT): copied for n in range(3)}
    times = estimated_completions(written)
    assert list(times.values()) == ["20250101000000999", "20250101000001999", copied]
    early = estimated_completions({("20250101000000000", Action.COMMIT): ""})
    assert list(early.values()) == ["20250101000000001"]


def test_logs_that_only_failed_writes_left_after_a_compaction_are_compacted() -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.datasource.write.table.type": MOR})
    made.upsert(batch({"a": ("oslo", 1, "one")}))
    made.upsert(batch({"a": ("oslo", 2, "two")}))
    due = Settings.read(Options({**made.options, "hoodie.compact.inline.max.delta.commits": "1"}))
    compact(made.storage, due, schedule_compaction(made.storage, due))
    made.upsert(batch({"a": ("oslo", 3, "three")}))
    rollback(made.storage, Settings.read(made.options))
    rows = rows_of_now(made)
    assert schedule_compaction(made.storage, due) is None  # nobody wrote since
    assert upgrade(made.storage, Settings.read(made.options), 9).version == 9
    assert rows_of_now(made) == rows


@pytest.mark.parametrize(("version", "to"), [("6", 8), ("8", 9)])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_deletion_of_partitions_that_died_is_no_clustering(version: str, to: int, calls: int) -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.write.table.version": version})
    made.upsert(batch({"a": ("oslo", 1, "one"), "b": ("rome", 1, "one")}))
    rows = rows_of_now(made)
    with pytest.raises(Crash):
        ArrowTable(CrashAfter(made.storage, calls), made.options).delete_partitions(["oslo"])
    assert [i.action for i in made.state().timeline.pending_replaces] == [Action.REPLACE_COMMIT]
    assert upgrade(made.storage, Settings.read(made.options), to).version == to
    ArrowTable(made.storage, TABLE).upsert(batch({"c": ("rome", 2, "two")}))
    assert rows_of_now(made) == rows | {"c": ("rome", 2, "two")}


@pytest.mark.parametrize("inflight", [False, True])
def test_a_clustering_that_hudi_has_planned_is_refused(inflight: bool) -> None:
    made = table(COW)
    plan_clustering(made.storage, ["oslo"], inflight=inflight)
    with pytest.raises(UnsupportedTable, match=f"{PLAN} is pending. Run it, or roll it back, with the engine"):
        upgrade(made.storage, Settings.read(made.options), 8)
    assert made.state().config.version == 6


TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}


def timed(path: Path, generator: str, partition: str) -> pa.Table:
    """A table whose settings of times are known to its writers only, as jobs of Hudi's before 0.13 left them."""
    rows = pa.table({"id": ["a", "b"], "at": [0, 86_400_000], "ts": [1, 1]})
    keys = {
        **table_options("timed", "id", partition=partition, ordering="ts"),
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
    }
    hoodie.hudi.write(rows, path, {**keys, **TIMES})
    storage = LocalStorage(path)
    open_to_writers = dict.fromkeys(TIMES) | {"hoodie.datasource.write.partitionpath.field": None}
    update_properties(storage, open_to_writers)
    return rows


@pytest.mark.parametrize("to", [8, 9])
def test_a_table_whose_writers_know_how_times_are_printed_is_upgraded_without_them(tmp_path: Path, to: int) -> None:
    rows = timed(tmp_path, "TimestampBasedKeyGenerator", "at")
    table = hoodie.open_table(tmp_path)
    assert "timestamp.type" not in str(table.upgrade(to, dry_run=True).settings)
    assert table.upgrade(to).version == to
    assert hoodie.open_table(tmp_path).snapshot().to_arrow().sort_by("id").to_pylist() == rows.to_pylist()
    with pytest.raises(InvalidOption, match=r"timestamp.type is not set.*among the options, as the table's writers"):
        hoodie.open_table(tmp_path).upsert(rows)
    assert hoodie.open_table(tmp_path, options=TIMES).upsert(rows).updated == 2


def test_an_upgrade_takes_how_times_are_printed_from_its_options(tmp_path: Path) -> None:
    rows = timed(tmp_path, "TimestampBasedKeyGenerator", "at")
    result = hoodie.open_table(tmp_path).upgrade(9, options=TIMES)
    assert TIMES.items() <= dict(result.settings or {}).items()
    assert hoodie.open_table(tmp_path).upsert(rows).updated == 2
    other = {**TIMES, "hoodie.keygen.timebased.output.dateformat": "yyyy"}
    assert hoodie.open_table(tmp_path).upgrade(9, options=other).steps == ()


def test_custom_partition_columns_of_unknown_kinds_are_told_and_taken_from_options(tmp_path: Path) -> None:
    rows = timed(tmp_path, "CustomKeyGenerator", "at:TIMESTAMP")
    table = hoodie.open_table(tmp_path)
    with pytest.raises(InvalidOption, match="needs at:SIMPLE or at:TIMESTAMP"):
        table.upgrade(8)
    kinds = {"hoodie.datasource.write.partitionpath.field": "at:TIMESTAMP"}
    assert table.upgrade(8, options={**TIMES, **kinds}).version == 8
    assert hoodie.open_table(tmp_path).upsert(rows).updated == 2
    assert hoodie.open_table(tmp_path).snapshot().count() == 2
