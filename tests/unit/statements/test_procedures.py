"""CALL: the procedures of Hudi 0.15, with its parameters, columns and answers on a table that it wrote."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.errors import HoodieError, InstantNotFound, InvalidOption, StatementError
from hoodie.model.instant import Action
from hoodie.statements.call import called_rows, parse_call, unknown
from hoodie.statements.cutting import Text
from hoodie.statements.procedures.procedure import Called, Procedure
from hoodie.statements.procedures.registry import PROCEDURES
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.instants import aged
from support.trips import TRIPS, rows

TESTS = Path(__file__).parents[2]
RECORDED = json.loads((TESTS / "vectors" / "procedures.json").read_text())
THEIRS: dict[str, Any] = RECORDED["procedures"]
#: Those that came later.
LATER: dict[str, Any] = json.loads((TESTS / "vectors" / "procedures_of_1_2.json").read_text())["procedures"]
#: Instants of the table: its newest commit, and its newest rollback.
NEWEST, ROLLBACK = "20261125091108825", "20261125091123533"


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    with zipfile.ZipFile(TESTS / "fixtures" / "procedures.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "trips"


def answer(call: str, path: Path) -> list[dict[str, Any]]:
    """The rows of a procedure that needs no session, by column."""
    name, procedure, arguments = parse_call(Text.of(f"CALL {call}"))
    called = Called(None, name, str(path), arguments, Options())  # type: ignore[arg-type]
    return [dict(zip(columns(procedure), row, strict=True)) for row in called_rows(procedure, called)]


def columns(procedure: Procedure) -> list[str]:
    return [name for name, _ in typed(procedure)]


def typed(procedure: Procedure) -> list[tuple[str, str]]:
    return re.findall(r"`?([^`,]+?)`? (string|int|long|double|boolean)(?:, |$)", procedure.columns)


def test_every_procedure_has_hudis_columns() -> None:
    for name, theirs in (THEIRS | LATER).items():
        if name != "help":
            expected = [(column, kind.replace("integer", "int")) for column, kind in theirs["columns"]]
            assert typed(PROCEDURES[name]) == expected, name


def test_every_procedure_has_hudis_arguments_in_their_order() -> None:
    kinds = {"string": str, "integer": int, "long": int, "boolean": bool}
    for name, theirs in (THEIRS | LATER).items():
        if name == "help":
            continue
        ours = [(key, parameter.kind) for key, parameter in PROCEDURES[name].parameters.items()]
        expected = [(row[0], kinds[row[1]]) for row in theirs["parameters"]]
        assert ours in (expected, [*expected, ("path", str)]), name
        needed = {row[0] for row in theirs["parameters"] if row[-1] == "true"} - {"table", "schema_file_path"}
        needed -= {"partition_path"} if name == "show_fsview_latest" else set()  # Hudi 1.x takes all partitions
        assert needed <= {key for key, one in PROCEDURES[name].parameters.items() if one.required}, name


@pytest.mark.parametrize("call", [
    call for call, rows in RECORDED["answers"].items()
    if isinstance(rows, list) and not call.startswith((
        "commits_compare", "copy_to", "export_instants", "run_clean", "show_archived", "show_fs_path",
        "show_metadata_table_stats", "repair_add_partition_meta",
    ))
])  # fmt: skip
def test_the_answer_is_hudis(call: str, trips: Path) -> None:
    rows = answer(call.format(newest=NEWEST, rollback=ROLLBACK, path=trips, folder=trips.parent), trips)
    expected = json.loads(json.dumps(RECORDED["answers"][call]).replace("$path", str(trips)))
    assert in_order(call, rows) == in_order(call, expected)


def in_order(call: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hudi gives some rows in the order of a hash map. A time of completion is that of a file: the copy has another."""
    rows = [{key: value for key, value in row.items() if key != "state_transition_time"} for row in rows]
    hashed = ("show_fsview", "show_table_properties", "stats_file_sizes", "validate_metadata", "repair_migrate")
    return sorted(rows, key=str) if call.startswith((*hashed, "show_metadata_table_files")) else rows


def test_archived_commits_have_no_limit_of_days(trips: Path) -> None:
    commits = answer("show_archived_commits(table => 'trips')", trips)
    assert [row["total_records_written"] for row in commits][-1] == 3
    assert commits[0]["commit_time"] > commits[-1]["commit_time"]
    some = answer(f"show_archived_commits('trips', 10, '{commits[0]['commit_time']}')", trips)
    assert some == commits[:1]
    files = answer("show_archived_commits_metadata(table => 'trips', limit => 100)", trips)
    assert sum(row["num_writes"] for row in files) == sum(row["total_records_written"] for row in commits)


def test_what_is_in_a_folder(trips: Path) -> None:
    theirs = RECORDED["answers"]["show_fs_path_detail(path => '{path}')"][0]
    (row,) = answer(f"show_fs_path_detail(path => '{trips}')", trips)
    assert [row[key] for key in ("file_num", "storage_size", "storage_path")] == [
        theirs["file_num"],
        theirs["storage_size"],
        f"file:{trips}",
    ]
    inside = answer(f"show_fs_path_detail(path => '{trips}', is_sub => true)", trips)
    assert sum(each["storage_size"] for each in inside) == row["storage_size"]
    assert [each["storage_size"] for each in inside] == sorted((each["storage_size"] for each in inside), reverse=True)


def test_instants_are_exported(trips: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (row,) = answer(f"export_instants(table => 'trips', local_folder => '{folder}')", trips)
    assert row == {"export_detail": f"Exported 11 Instants to {folder}"}
    assert (folder / f"{NEWEST}.deltacommit").read_bytes() == (trips / ".hoodie" / f"{NEWEST}.deltacommit").read_bytes()
    answer(f"export_instants('trips', '{tmp_path / 'one'}', 1, 'rollback', true)", trips)
    assert [file.name for file in (tmp_path / "one").iterdir()] == [f"{ROLLBACK}.rollback"]
    with pytest.raises(StatementError, match="sleep: expected"):
        answer(f"export_instants('trips', '{folder}', 1, 'sleep')", trips)


def test_the_metadata_table_is_built_shown_and_removed(trips: Path) -> None:
    stats = {row["stat_key"]: int(row["stat_value"]) for row in answer("show_metadata_table_stats('trips')", trips)}
    assert stats["files.baseFileCount"] == 2
    assert stats["files.logFileCount"] == 20
    answer("run_compaction(op => 'run', table => 'trips')", trips)
    assert answer("delete_metadata_table('trips')", trips)[0]["result"].startswith("Removed")
    with pytest.raises(StatementError, match="has no metadata table: CALL create_metadata_table"):
        answer("show_metadata_table_files('trips')", trips)
    with pytest.raises(StatementError, match="has no metadata table"):
        answer("delete_metadata_table('trips')", trips)
    assert answer("create_metadata_table('trips')", trips)[0]["result"].startswith("Created")
    assert len(answer("show_metadata_table_partitions('trips')", trips)) == 3
    assert answer("validate_metadata_table_files('trips')", trips) == []
    with pytest.raises(StatementError, match="the table has a metadata table"):
        answer("create_metadata_table('trips')", trips)


def test_a_compaction_that_a_job_of_hudi_runs_is_taken_over_only_by_its_time(trips: Path) -> None:
    (plan,) = (row for row in answer("show_compaction('trips')", trips) if row["state"] == "REQUESTED")
    (trips / ".hoodie" / f"{plan['timestamp']}.compaction.inflight").touch()
    assert answer("run_compaction(op => 'run', table => 'trips')", trips) == [{**plan, "state": "INFLIGHT"}]
    named = f"run_compaction(op => 'run', table => 'trips', timestamp => {plan['timestamp']})"
    assert answer(named, trips) == [{**plan, "state": "COMPLETED"}]


def test_a_file_that_is_no_parquet_is_named(trips: Path) -> None:
    (trips / "city=oslo" / "half.parquet").write_bytes(b"PAR1 and no more")
    assert answer(f"show_invalid_parquet(path => '{trips}')", trips) == [
        {"path": f"file:{trips}/city=oslo/half.parquet"}
    ]
    for name in ("show_invalid_parquet", "show_fs_path_detail"):
        with pytest.raises(StatementError, match=r"trps.*there are no files"):
            answer(f"{name}(path => '{trips.parent}/trps')", trips)


def test_metafiles_of_partitions_come_back(trips: Path) -> None:
    metafile = trips / "city=oslo" / ".hoodie_partition_metadata"
    metafile.unlink()
    call = "repair_add_partition_meta(table => 'trips')"
    assert [(row["metadata_is_present"], row["action"]) for row in answer(call, trips)] == [
        ("No", "None"),
        ("Yes", "None"),
        ("Yes", "None"),
    ]
    assert not metafile.exists()
    repaired = answer("repair_add_partition_meta(table => 'trips', dry_run => false)", trips)
    assert [row["action"] for row in repaired] == ["Repaired", "None", "None"]
    assert metafile.exists()


def test_a_plan_of_a_clean_that_cannot_be_read_goes(trips: Path) -> None:
    pending = trips / ".hoodie" / "20261125091200000.clean.requested"
    pending.write_bytes(b"no Avro")
    assert answer("repair_corrupted_clean_files('trips')", trips) == [{"result": True}]
    assert not pending.exists()
    assert (trips / ".hoodie" / "20261125091114549.clean.requested").exists()


def test_a_plan_of_a_clean_of_a_later_version_that_cannot_be_read_goes(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", record_key="id", options={"hoodie.write.table.version": 9})
    table.upsert(pa.table({"id": ["a"]}))
    pending = tmp_path / "t/.hoodie/timeline/20991125091200000.clean.requested"
    pending.write_bytes(b"no Avro")
    assert answer("repair_corrupted_clean_files('trips')", tmp_path / "t") == [{"result": True}]
    assert not pending.exists()


def test_properties_are_put_in_place_whole_or_not_at_all(trips: Path, tmp_path: Path) -> None:
    file = trips / ".hoodie" / "hoodie.properties"
    before = file.read_text()
    new = tmp_path / "new.properties"
    new.write_text(before.replace("hoodie.table.version=6", "hoodie.table.version=60"))
    with pytest.raises(HoodieError, match="version 60"):
        answer(f"repair_overwrite_hoodie_props('trips', '{new}')", trips)
    assert file.read_text() == before
    new.write_text(before.replace("hoodie.archivelog.folder=archived\n", "") + "mine=1\n")
    rows = {row["property"]: row for row in answer(f"repair_overwrite_hoodie_props('trips', '{new}')", trips)}
    assert rows["mine"] == {"property": "mine", "old_value": None, "new_value": "1"}
    assert rows["hoodie.archivelog.folder"]["new_value"] is None
    assert "mine=1" in file.read_text()


def test_markers_of_a_pending_write_stay(trips: Path) -> None:
    folder = trips / ".hoodie" / ".temp" / NEWEST
    folder.mkdir(parents=True)
    (folder / "a.parquet.marker.CREATE").touch()
    assert answer(f"delete_marker('trips', '{NEWEST}')", trips) == [{"delete_marker_result": True}]
    assert not folder.exists()
    (trips / ".hoodie" / "20261125091300000.deltacommit.requested").touch()
    with pytest.raises(StatementError, match="is pending"):
        answer("delete_marker('trips', '20261125091300000')", trips)


def test_savepoints_go_by_the_newest_without_an_instant(trips: Path) -> None:
    assert answer("delete_savepoint('trips')", trips) == [{"delete_savepoint_result": True}]
    with pytest.raises(StatementError, match="has no savepoint"):
        answer("rollback_to_savepoint('trips')", trips)


def test_a_table_gets_a_later_version_and_an_earlier_one(trips: Path) -> None:
    for word in ("SIX", "6"):
        for name in ("upgrade_table", "downgrade_table"):
            assert answer(f"{name}('trips', '{word}')", trips) == [{"result": True}]
    before = hoodie.open_table(str(trips)).snapshot().to_arrow().sort_by("id").to_pylist()
    assert answer("upgrade_table('trips', 'EIGHT')", trips) == [{"result": True}]
    table = hoodie.open_table(str(trips))
    assert table.snapshot().to_arrow().sort_by("id").to_pylist() == before
    assert "hoodie.table.version=8" in (trips / ".hoodie/hoodie.properties").read_text()
    for call in ("upgrade_table('trips', 'SIX')", "downgrade_table('trips', 'NINE')"):
        with pytest.raises(StatementError, match="has version 8"):
            answer(call, trips)
    assert answer("downgrade_table('trips', 'SIX')", trips) == [{"result": True}]
    assert table.snapshot().to_arrow().sort_by("id").to_pylist() == before
    assert "hoodie.table.version=6" in (trips / ".hoodie/hoodie.properties").read_text()
    with pytest.raises(StatementError, match="expected a number"):
        answer("upgrade_table('trips', 'next')", trips)
    with pytest.raises(InvalidOption, match="version 10: expected one of"):
        answer("upgrade_table('trips', '10')", trips)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_services_run_with_hudis_arguments(version: int, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(3), pa.int64())})
    path = tmp_path / "trips"
    options = {"hoodie.write.table.version": version}
    table = hoodie.create_table(str(path), name="trips", record_key="id", options=options)
    commits = [table.upsert(rows).instant for _ in range(4)]
    (row,) = answer("run_clean(table => 'trips', retain_commits => 1, options => 'hoodie.clean.max.commits=1')", path)
    assert row["total_files_deleted"] == 2
    assert row["earliest_commit_to_retain"] == commits[-1]
    assert answer("run_clean(table => 'trips', retain_commits => 1)", path) == []
    assert answer("archive_commits(table => 'trips', min_commits => 2, max_commits => 3, retain_commits => 1)", path)
    assert len(table.history()) < 4
    with pytest.raises(StatementError, match="expected 'key=value"):
        answer("run_clean(table => 'trips', options => 'fast')", path)


def test_run_ttl_deletes_the_partitions_that_expired(tmp_path: Path) -> None:
    storage = MemoryStorage()
    table = ArrowTable.create(storage, TRIPS)
    old = table.upsert(rows("a", city="oslo")).instant
    table.upsert(rows("b", city="rome"))
    for path, data in aged(storage, [old], 40).snapshot().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    with pytest.raises(InvalidOption, match=r"days\.retain is not set"):
        answer("run_ttl(table => 'trips')", tmp_path)
    selected = "options => 'hoodie.partition.ttl.strategy.partition.selected=rome'"
    assert answer(f"run_ttl('trips', 'KEEP_BY_TIME', 30, {selected})", tmp_path) == []
    assert answer("run_ttl(table => 'trips', retain_days => 30)", tmp_path) == [{"deleted_partitions": "oslo"}]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("run_clustering(table => 'trips', op => 'schedule')", "plans and runs no clustering"),
        ("run_bootstrap('t', 'COPY_ON_WRITE', '/a', '/b', 'id')", "no table on top of Parquet files"),
        ("show_bootstrap_mapping('trips')", "no bootstrap index"),
        ("repair_migrate_partition_meta('trips', false)", "nothing to migrate"),
    ],
)
def test_what_is_not_done_says_why(call: str, reason: str, trips: Path) -> None:
    with pytest.raises(StatementError, match=reason):
        answer(call, trips)


def test_a_misspelt_name_is_not_answered_with_something_destructive() -> None:
    assert "Did you mean show_commits?" in str(unknown("show_commitz"))
    assert "Did you mean create_savepoint?" in str(unknown("creat_savepoint"))
    for name, procedure in PROCEDURES.items():
        if procedure.destructive:
            assert "Did you mean" not in str(unknown(f"{name}z")), name


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("show_commit_files('trips')", "needs instant_time"),
        ("show_commits('trips', nothing => 1)", "has no argument 'nothing'"),
        ("show_commits('trips', limit => 'many')", "expected a literal, int"),
        ("show_commits('trips', limit => -1)", "expected 0 or more"),
        ("show_commits('trips', table => 'trips')", "given twice"),
        ("show_savepoints('a', 'b', 'c')", "takes 2 arguments"),
        ("run_compaction(op => 'walk', table => 'trips')", "expected schedule, run"),
        ("repair_deduplicate('trips', 'city=oslo', '/out', true, 'some')", "expected insert_type"),
    ],
)
def test_a_bad_argument_is_named(call: str, problem: str, trips: Path) -> None:
    with pytest.raises(StatementError, match=problem):
        answer(call, trips)


def test_an_instant_that_is_no_commit_is_named(trips: Path) -> None:
    with pytest.raises(InstantNotFound, match="20010101000000000 is no completed commit"):
        answer("show_commit_files('trips', 10, '20010101000000000')", trips)


@pytest.fixture
def cleaned(tmp_path: Path) -> tuple[Path, list[str]]:
    """A table of two partitions whose commits are cleaned and archived, and the times of its commits."""
    options = {"hoodie.clean.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="p", options=options)
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    return tmp_path / "t", [table.upsert(rows).instant for _ in range(6)]


def test_the_timeline_is_shown_with_the_times_of_its_states(cleaned: tuple[Path, list[str]]) -> None:
    path, commits = cleaned
    shown = answer("show_timeline(table => 't', limit => 100, showArchived => true)", path)
    active = [row for row in shown if row["timeline_type"] == "ACTIVE"]
    timeline = load_state(LocalStorage(path)).timeline
    assert [(row["instant_time"], row["action"]) for row in active] == [
        (instant.requested, instant.action.value) for instant in reversed(timeline.instants)
    ]
    assert {row["instant_time"] for row in shown if row["action"] == "commit"} == set(commits)
    assert len(shown) > len(active)
    newest = next(row for row in active if row["action"] == "commit")
    at = newest["instant_time"]
    assert newest["requested_time"] == f"{at[4:6]}-{at[6:8]} {at[8:10]}:{at[10:12]}:{at[12:14]}"
    assert newest["requested_time"] <= newest["inflight_time"] <= newest["completed_time"]
    between = answer(f"show_timeline('t', '', 100, true, '', '{commits[1]}', '{commits[2]}')", path)
    assert {row["instant_time"] for row in between if row["action"] == "commit"} == set(commits[1:3])


def test_the_timeline_says_what_is_pending_and_what_a_rollback_took_back(trips: Path) -> None:
    shown = answer("show_timeline('trips')", trips)
    pending = [row for row in shown if row["state"] == "REQUESTED"]
    assert [(row["action"], row["inflight_time"], row["completed_time"]) for row in pending] == [
        ("compaction", None, None)
    ]
    (rollback,) = [row for row in shown if row["instant_time"] == ROLLBACK]
    assert rollback["rollback_info"] == "Rolled back: 20261125091117487"


def test_cleans_are_shown_with_what_they_planned_and_did(cleaned: tuple[Path, list[str]]) -> None:
    path, _ = cleaned
    timeline = load_state(LocalStorage(path)).timeline
    times = [instant.requested for instant in reversed(timeline.instants) if instant.action is Action.CLEAN]
    cleans = answer("show_cleans('t')", path)
    assert [row["clean_time"] for row in cleans] == times
    assert {(row["action"], row["total_files_deleted"], row["version"]) for row in cleans} == {("clean", 2, 2)}
    assert all(row["earliest_commit_to_retain"] <= row["last_completed_commit_timestamp"] for row in cleans)
    assert len(answer("show_cleans('t', 100, true)", path)) > len(cleans)  # those of the archive
    files = answer("show_cleans_metadata('t', 2)", path)
    assert [(row["clean_time"], row["partition_path"], row["success_delete_files"]) for row in files] == [
        (times[0], "a", 1),
        (times[0], "b", 1),
    ]
    plans = answer("show_clean_plans('t', 1)", path)
    assert [(row["plan_time"], row["state"], row["total_partitions_to_clean"]) for row in plans] == [
        (times[0], "COMPLETED", 2)
    ]
    with pytest.raises(StatementError, match="show_cleans has those of the archive"):
        answer("show_clean_plans('t', 1, true)", path)


def test_the_newest_slices_of_all_partitions_are_shown_where_none_is_named(trips: Path) -> None:
    everywhere = answer("show_fsview_latest('trips')", trips)
    assert {row["partition"] for row in everywhere} == {"city=oslo", "city=paris", "city=rome"}
    assert [row for row in everywhere if row["partition"] == "city=oslo"] == answer(
        "show_fsview_latest(table => 'trips', partition_path => 'city=oslo')", trips
    )
