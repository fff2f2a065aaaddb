"""Compaction of tables that Hudi wrote: its plans run, its compactions done again, its logs compacted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

from hoodie import open_table
from hoodie.commit.transaction import clean_up
from hoodie.errors import InvalidPlan, WriteConflict
from hoodie.model.commit import WriteStat
from hoodie.model.instant import Action
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction, unschedule_compaction, validate_compaction
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_commit, read_compaction_plan
from hoodie.view.load import load_view
from hoodie.view.slices import latest_base_files, merged_slices
from support import compacting
from support.nightly import by_day
from support.oracles import (
    assert_same_rows,
    expected_rows,
    fixture_facts,
    fixture_names,
    read_hudi_rs,
    read_hudi_rs_optimized,
)

Fixture = Callable[[str], Path]

#: Some of the tables have a metadata table, which this library removes before it writes.
OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
}
FILE_NAME = "_hoodie_file_name"

OTHERS = {
    "v3_mor_stock_ticks",  # versions that are not written
    "v8_mor_avro_8_inserts_3_updates_1_delete",
    "v9_mor_txns",
    "v6_mor_payload_default",  # nothing to compact: their logs are in replaced file groups
    "v6_mor_payload_partial_update",
    "mor_inflight",  # a write is pending
}
COMPACTED = [name for name in fixture_names() if "mor" in name and name not in OTHERS]


def group_count(path: Path) -> int:
    state = load_state(LocalStorage(path))
    return len(merged_slices(load_view(state.storage, state.timeline, state.config)))


def assert_read_alike(path: Path, rows: pa.Table) -> None:
    """All readers find these rows, in base files alone; only the names of files are new."""
    ours = open_table(path).snapshot(meta=True).to_arrow()
    assert_same_rows(ours, rows, ignore=[FILE_NAME])
    assert_same_rows(read_hudi_rs(path), ours)
    assert_same_rows(read_hudi_rs_optimized(path), ours)
    state = load_state(LocalStorage(path))
    view = load_view(state.storage, state.timeline, state.config)
    slices = {
        (s.partition_path, s.file_id): (s.base_file_name, tuple(s.log_file_names))
        for s in HudiTableBuilder.from_base_uri(str(path)).build().get_file_slices()
    }
    bases = latest_base_files(view)
    assert slices == {(group.partition, group.file_id): (base.name, ()) for group, base in bases.items()}


@pytest.mark.parametrize("name", by_day(COMPACTED, sorted(COMPACTED)[::2].__contains__))
def test_the_logs_of_a_table_are_compacted(name: str, fixture_table: Fixture) -> None:
    path = fixture_table(name)
    storage = LocalStorage(path)
    rows = open_table(path).snapshot(meta=True).to_arrow()
    assert rows.num_rows > 0
    compact(storage, Settings.of(OPTIONS))  # what is pending
    instant = schedule_compaction(storage, Settings.of(OPTIONS))
    assert instant is not None
    assert validate_compaction(storage, instant) == []
    assert_same_rows(open_table(path).snapshot(meta=True).to_arrow(), rows, ignore=[FILE_NAME])
    result = compact(storage, Settings.of(OPTIONS), instant)
    assert result.files
    assert_read_alike(path, rows)
    assert schedule_compaction(storage, Settings.of(OPTIONS)) is None


def test_a_plan_of_hudi_is_run(fixture_table: Fixture) -> None:
    path = fixture_table("mor_pending_compaction")
    storage = LocalStorage(path)
    rows = open_table(path).snapshot(meta=True).to_arrow()
    assert_same_rows(rows, expected_rows("mor_pending_compaction"))
    (pending,) = load_state(storage).timeline.pending_compactions
    assert validate_compaction(storage) == []
    result = compact(storage, Settings.of(OPTIONS))
    assert (result.instant, len(result.files)) == (pending.requested, 3)
    after = open_table(path).snapshot(meta=True).to_arrow()
    assert_same_rows(after, rows, ignore=[FILE_NAME])
    assert_same_rows(read_hudi_rs(path), after)
    assert all((path / name).name.endswith(f"_{pending.requested}.parquet") for name in result.files)
    # Logs that Hudi wrote after it had made the plan are in the new slices now.
    state = load_state(storage)
    slices = merged_slices(load_view(storage, state.timeline, state.config))
    assert {slice_.base_instant for slice_ in slices.values() if slice_.logs} == {pending.requested}


@pytest.mark.parametrize("name", ["mor_compacted", "v6_mor_with_services"])
def test_a_compaction_done_again_says_and_writes_what_hudi_did(name: str, fixture_table: Fixture) -> None:
    path = fixture_table(name)
    storage = LocalStorage(path)
    timeline = load_state(storage).timeline
    (commit,) = timeline.completed({Action.COMMIT})
    theirs = read_commit(storage, timeline, commit)
    written = {}
    for stat in stats_of(theirs.stats):
        written[stat.file_id] = pq.read_table(path / (stat.path or ""))
        (path / (stat.path or "")).unlink()
    storage.delete(timeline.path(commit))

    result = compact(storage, Settings.of(OPTIONS), commit.requested)
    ours = {stat.file_id: stat for stat in stats_of(result.metadata.stats)}
    assert {file_id: comparable(stat) for file_id, stat in ours.items()} == {
        stat.file_id: comparable(stat) for stat in stats_of(theirs.stats)
    }
    assert result.metadata.extra == theirs.extra
    assert (result.metadata.operation, result.metadata.compacted) == (theirs.operation, theirs.compacted)
    for file_id, stat in ours.items():
        rows = pq.read_table(path / (stat.path or ""))
        assert rows.schema.names == written[file_id].schema.names
        assert rows.drop_columns([FILE_NAME]).to_pylist() == written[file_id].drop_columns([FILE_NAME]).to_pylist()


def stats_of(stats: object) -> list[WriteStat]:
    return [stat for part in stats.values() for stat in part]  # type: ignore[attr-defined]


def comparable(stat: WriteStat) -> WriteStat:
    """Without the name and the size of the file, and how long it took."""
    return replace(stat, path="", file_size=0, total_write_bytes=0, scan_time=0, upsert_time=0, create_time=0)


@pytest.mark.parametrize("name", ["mor_pending_compaction", "mor_compacted"])
def test_a_plan_is_the_one_that_hudi_made(name: str, fixture_table: Fixture) -> None:
    path = fixture_table(name)
    storage = LocalStorage(path)
    state = load_state(storage)
    (file,) = (path / ".hoodie").glob("*.compaction.requested")
    made = file.name.partition(".")[0]
    instant = next(i for i in state.timeline.instants if i.requested == made)
    theirs = read_compaction_plan(storage, state.timeline, replace(instant, action=Action.COMPACTION))
    for later in (entry for entry in (path / ".hoodie").iterdir() if entry.name[:17].isdigit() and entry.name >= made):
        later.unlink()  # the table as it was when Hudi planned
    planned = schedule_compaction(storage, Settings.of(OPTIONS))
    assert planned is not None
    state = load_state(storage)
    ours = read_compaction_plan(storage, state.timeline, state.timeline.pending_compactions[0])
    assert {operation.group: operation for operation in ours.operations} == {
        operation.group: operation for operation in theirs.operations
    }
    sizes = [operation.metrics["TOTAL_LOG_FILES_SIZE"] for operation in theirs.operations]
    assert sizes == [operation.metrics["TOTAL_LOG_FILES_SIZE"] for operation in ours.operations]
    assert (ours.strategy, ours.preserve_meta, dict(ours.extra)) == (
        theirs.strategy,
        theirs.preserve_meta,
        dict(theirs.extra),
    )


def test_a_table_with_a_pending_write_is_compacted_once_that_is_rolled_back(fixture_table: Fixture) -> None:
    path = fixture_table("mor_inflight")
    storage = LocalStorage(path)
    rows = open_table(path).snapshot(meta=True).to_arrow()
    with pytest.raises(WriteConflict, match="is pending"):
        schedule_compaction(storage, Settings.of(OPTIONS))
    clean_up(load_state(storage))
    assert compact(storage, Settings.of(OPTIONS), schedule_compaction(storage, Settings.of(OPTIONS))) is not None
    assert_read_alike(path, rows)


def test_file_groups_of_logs_only_get_a_base_file_that_other_readers_see(fixture_table: Fixture) -> None:
    path = fixture_table("mor_bucket_index")
    storage = LocalStorage(path)
    groups = group_count(path)
    rows = open_table(path).snapshot(meta=True).to_arrow()
    compact(storage, Settings.of(OPTIONS), schedule_compaction(storage, Settings.of(OPTIONS)))
    assert group_count(path) == groups
    assert_read_alike(path, rows)
    assert_same_rows(
        read_hudi_rs(path, fixture_facts("mor_bucket_index")["snapshot"]["columns"]),
        open_table(path).snapshot(meta=True).to_arrow(),
    )


def test_a_plan_of_hudi_that_has_logs_by_now_cannot_be_withdrawn(fixture_table: Fixture) -> None:
    path = fixture_table("mor_pending_compaction")
    storage = LocalStorage(path)
    (pending,) = load_state(storage).timeline.pending_compactions
    with pytest.raises(InvalidPlan, match="Run it instead"):
        unschedule_compaction(storage, Settings.of(OPTIONS), pending.requested)
    assert_same_rows(open_table(path).snapshot(meta=True).to_arrow(), expected_rows("mor_pending_compaction"))


def test_hudis_pending_plan_is_continued_with_an_upsert_beside_it(fixture_table: Fixture) -> None:
    path = fixture_table("mor_pending_compaction")
    table = ArrowTable(LocalStorage(path), OPTIONS)
    rows = table.snapshot()
    columns = [name for name in rows.column_names if not name.startswith("_hoodie_")]
    at = columns.index("note")
    changed = rows.select(columns).slice(0, 2).set_column(at, "note", pa.array(["beside", "beside"]))
    assert table.upsert(changed).updated == 2
    beside = table.snapshot()
    assert beside.num_rows == rows.num_rows
    assert compact(table.storage, Settings.of(OPTIONS)) is not None
    assert_same_rows(table.snapshot(), beside, ignore=[FILE_NAME])
    assert_same_rows(read_hudi_rs(path), table.snapshot())


def test_a_table_of_ours_with_plans_and_newer_commits_is_read_by_others(tmp_path: Path) -> None:
    """As Hudi's own: hudi-rs leaves out logs that wait for a pending compaction, and has all else."""
    storage = LocalStorage(tmp_path)
    compacting.fill(storage)
    first = compacting.schedule(storage, **{"hoodie.compaction.target.io": "0"})
    second = compacting.schedule(storage)
    table = compacting.opened(storage)
    table.upsert(compacting.batch({**compacting.LATER, "x": ("oslo", 10, "back")}))
    table.delete(compacting.keys(d="bern"))
    there = {"a": "later", "b": "second", "c": "later", "e": "later", "x": "back"}
    without_logs = {"a": "first", "b": "second", "c": "second", "e": "later"}
    for instant, seen in ((first, {**there, "c": "second"}), (second, there)):
        assert compacting.notes(storage) == there
        assert compacting.notes_of(read_hudi_rs(tmp_path)) == without_logs
        compact(storage, Settings.of({}), instant)
        without_logs = seen
    assert_same_rows(read_hudi_rs(tmp_path), table.snapshot())
