"""Reads as of an instant whose files were cleaned are refused: they would give fewer rows, and say nothing."""

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie import open_table
from hoodie.config.options import Options
from hoodie.errors import CorruptFile, DamagedLog, InvalidInput, InvalidPlan, NoRowsYet
from hoodie.model.instant import Action
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.upgrade import upgrade
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash, CrashAfter, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.trips import table_options

OPTIONS = {
    **table_options("t", "id", ordering="ts"),
    "hoodie.table.services.enabled": "false",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
OVERWRITES = {"hoodie.parquet.small.file.limit": "0"}


def history(commits: int = 7, **options: str) -> tuple[ArrowTable, list[str]]:
    """A table whose every commit changes the one file group, and the instants."""
    table = ArrowTable.create(MemoryStorage(), {**OPTIONS, **options})
    return table, [table.upsert(pa.table({"id": ["a"], "ts": [n]})).instant for n in range(commits)]


def values(table: ArrowTable, instants: list[str]) -> list[int | None]:
    """The value as of each instant; None: refused."""
    found: list[int | None] = []
    for instant in instants:
        try:
            found.append(table.as_of(instant)["ts"].to_pylist()[0])
        except InvalidInput:
            found.append(None)
    return found


def test_the_table_as_of_cleaned_commits_is_refused_and_as_of_others_right():
    table, instants = history()
    assert values(table, instants) == [0, 1, 2, 3, 4, 5, 6]
    table.clean()
    # The cleaner keeps the version before the oldest commit that it retains.
    assert values(table, instants) == [None, None, None, None, 4, 5, 6]
    with pytest.raises(InvalidInput, match=f"cleaning removed .*Take {instants[5]} or a later"):
        table.as_of(instants[0])


def test_a_completed_clean_whose_file_is_empty_refuses_as_its_plan_says():
    table, instants = history()
    table.clean()
    timeline = table.state().timeline
    (path,) = (timeline.path(clean) for clean in timeline.completed({Action.CLEAN}))
    table.storage.write(path, b"")  # as a writer leaves it that dies while it publishes
    assert values(table, instants) == [None, None, None, None, 4, 5, 6]
    table.storage.delete(path + ".requested")
    with pytest.raises(CorruptFile, match=r"\.clean"):
        table.as_of(instants[0])


def test_versions_that_a_count_left_can_be_read():
    table, instants = history(**{"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"})
    table.clean()
    assert all(value in (None, number) for number, value in enumerate(values(table, instants)))
    assert values(table, instants)[0] is None
    assert values(table, instants)[-1] == 6


def test_files_that_nobody_cleaned_can_be_read_as_of_any_instant():
    table, instants = history(3)
    table.upsert(pa.table({"id": ["b"], "ts": [9]}), options=OVERWRITES)
    for _ in range(5):
        table.upsert(pa.table({"id": ["b"], "ts": [9]}))
    table.clean()
    assert values(table, instants)[-1] == 2
    with pytest.warns(NoRowsYet, match=f"has no rows yet: its first commit is {instants[0]}"):
        assert table.as_of("19700101000000000").num_rows == 0


def test_a_savepoint_is_kept_and_can_be_read():
    table, instants = history(3)
    make_savepoint(table.storage, Settings.read(table.options))
    more = [table.upsert(pa.table({"id": ["a"], "ts": [n]})).instant for n in range(3, 9)]
    table.clean()
    assert values(table, [*instants, *more]) == [None, None, 2, None, None, None, 6, 7, 8]


def test_logs_that_went_with_their_slice_are_missed():
    table, instants = history(1, **MERGE_ON_READ)
    for number in range(1, 7):
        instants.append(table.upsert(pa.table({"id": ["a"], "ts": [number]})).instant)
        schedule_compaction(
            table.storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
        )
        compact(table.storage, Settings.read(table.options))
    table.clean()
    found = values(table, instants)
    assert found[0] is None
    assert found[-1] == 6
    assert all(value in (None, number) for number, value in enumerate(found))


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_clean_that_is_under_way_takes_logs_before_their_base_file(version: str):
    table, instants = history(3, **MERGE_ON_READ, **{"hoodie.write.table.version": version})
    for number in range(3, 7):
        schedule_compaction(
            table.storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
        )
        compact(table.storage, Settings.read(table.options))
        instants.append(table.upsert(pa.table({"id": ["a"], "ts": [number]})).instant)
    for calls in range(20):
        storage = table.storage.copy()
        try:
            clean(CrashAfter(storage, calls), Settings.read(table.options))
        except Crash:
            found = values(ArrowTable(storage, table.options), instants)
            assert all(value in (None, number) for number, value in enumerate(found)), f"after {calls} calls: {found}"
        else:
            break
    assert found[0] is None
    assert found[-1] == 6


def test_instants_that_are_archived_are_refused():
    table, instants = history(9)
    table.clean()
    assert table.archive().instants
    with pytest.raises(InvalidInput, match=r"active timeline begins at .* Cleaning keeps the latest \d+ commits"):
        table.as_of(instants[0])
    assert values(table, instants)[-1] == 8


def test_the_reader_without_a_session_says_so_as_well(tmp_path):
    table = ArrowTable.create(LocalStorage(tmp_path), OPTIONS)
    first = table.upsert(pa.table({"id": ["a"], "ts": [0]})).instant
    for number in range(1, 6):
        table.upsert(pa.table({"id": ["a"], "ts": [number]}))
    assert open_table(tmp_path).snapshot(as_of=first).to_arrow().num_rows == 1
    table.clean()
    with pytest.raises(InvalidInput, match="cleaning removed"):
        open_table(tmp_path).snapshot(as_of=first).to_arrow()


def test_cleans_that_were_archived_before_the_commits_they_reach_are_known():
    """Cleans are archived separately from commits, which a savepoint holds on the timeline."""
    options = {"hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2"}
    table, instants = history(1, **options)
    make_savepoint(table.storage, Settings.read(table.options))
    for n in range(1, 7):
        instants.append(table.upsert(pa.table({"id": ["a"], "ts": [n]})).instant)
        table.clean()
        table.archive()
    timeline = table.state().timeline
    assert [commit.requested for commit in timeline.commits] == instants
    assert timeline.completed({Action.CLEAN})[0].requested > instants[4]
    assert values(table, instants) == [0, None, None, None, None, 5, 6]
    with pytest.raises(InvalidInput, match=f"cleaning removed .*Take {instants[6]} or a later"):
        table.as_of(instants[2])
    with pytest.raises(InvalidPlan, match="keeps nothing older"):
        make_savepoint(table.storage, Settings.read(table.options), instants[2])


@pytest.mark.parametrize("version", ["8", "9"])
def test_cleans_that_are_in_the_history_alone_are_known(version: str):
    options = {"hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table, instants = history(0, **options, **{"hoodie.write.table.version": version})
    for n in range(8):
        instants.append(table.upsert(pa.table({"id": ["a"], "ts": [n]})).instant)
        table.clean()
        table.archive()
    assert table.state().timeline.completed({Action.CLEAN})[0].requested > instants[2]
    assert values(table, instants) == [*[None] * 6, 6, 7]


@pytest.mark.parametrize("version", ["8", "9"])
def test_file_groups_whose_overwrite_is_in_the_history_alone_are_not_in_the_way(version: str):
    table, _ = history(2, **{"hoodie.write.table.version": version})
    overwritten = table.insert_overwrite(pa.table({"id": ["b"], "ts": [2]})).instant
    instants = [table.upsert(pa.table({"id": [f"c{n}"], "ts": [n]}), OVERWRITES).instant for n in range(4)]
    keep = {**table.options, "hoodie.keep.min.commits": "2", "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}
    assert table.clean(keep).paths
    table.archive(keep)
    assert overwritten not in {commit.requested for commit in table.state().timeline.commits}
    assert [len(table.as_of(instant)) for instant in (overwritten, *instants)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
def test_file_groups_whose_overwrite_is_archived_are_not_in_the_way(policy: str):
    table, _ = history(2)
    overwritten = table.insert_overwrite(pa.table({"id": ["b"], "ts": [2]})).instant
    instants = [table.upsert(pa.table({"id": [f"c{n}"], "ts": [n]}), OVERWRITES).instant for n in range(4)]
    options = {**table.options, "hoodie.keep.min.commits": "2", "hoodie.cleaner.policy": policy}
    assert table.clean(options).paths
    table.archive(options)
    assert overwritten not in {commit.requested for commit in table.state().timeline.commits}
    assert [len(table.as_of(instant)) for instant in instants[2:]] == [4, 5]
    make_savepoint(table.storage, Settings.read(table.options), instants[2])


def test_a_savepoint_is_read_though_a_compaction_that_it_saw_planned_was_completed_and_cleaned():
    table, _ = history(2, **MERGE_ON_READ)
    planning = Options({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
    schedule_compaction(table.storage, Settings.read(planning))
    saved = table.upsert(pa.table({"id": ["b"], "ts": [2]}), OVERWRITES).instant
    make_savepoint(table.storage, Settings.read(table.options))
    table.insert_overwrite_table(pa.table({"id": ["c"], "ts": [3]}))
    compact(table.storage, Settings.read(table.options))
    assert table.clean({**table.options, "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}).paths
    assert sorted(table.as_of(saved)["id"].to_pylist()) == ["a", "b"]


def test_partitions_that_nobody_cleaned_can_be_read_as_of_any_instant(tmp_path):
    table = hoodie.create_table(
        tmp_path, name="t", record_key="id", partition_by="p", options={"hoodie.cleaner.commits.retained": "1"}
    )
    first = table.upsert(pa.table({"id": ["a", "b"], "p": ["x", "y"], "n": [0, 0]})).instant
    for n in range(1, 4):
        table.upsert(pa.table({"id": ["b"], "p": ["y"], "n": [n]}))
    assert table.as_of(first, partitions=["x"]).to_arrow()["n"].to_pylist() == [0]
    with pytest.raises(InvalidInput, match="cleaning removed y/"):
        table.as_of(first).to_arrow()


def test_a_read_as_of_an_instant_needs_no_policy_of_cleaning_that_can_be_read(tmp_path: Path):
    """It is in the text of an error alone."""
    table = hoodie.create_table(tmp_path, record_key="id")
    written = table.upsert(pa.table({"id": [1]}))
    with (tmp_path / ".hoodie/hoodie.properties").open("a") as file:
        file.write("hoodie.cleaner.policy=odd\n")
    assert open_table(tmp_path).as_of(written).count() == 1


@pytest.mark.parametrize("version", [8, 9])
def test_commits_that_were_archived_before_an_upgrade_are_read_with_what_their_logs_have(version: int):
    """The names of such logs do not have their instants, so that the history is not asked for them."""
    table, instants = history(**MERGE_ON_READ)
    table.archive()
    assert load_state(table.storage).timeline.first_commit > instants[1]
    upgrade(table.storage, Settings.read(Options(OPTIONS)), version)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedLog)
        assert values(table, instants) == [0, 1, 2, 3, 4, 5, 6]
