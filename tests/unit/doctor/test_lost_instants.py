"""Instants whose files are lost, and not those of writes that failed: no repair and no write deletes their rows."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.commit import lost
from hoodie.commit.rollback_executor import roll_back
from hoodie.doctor.examine import Fault, Severity
from hoodie.errors import CorruptFile, InvalidInput, MissingFile, MissingFileIgnored, StorageFailed
from hoodie.services.compaction.schedule import unschedule_compaction
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from support.clusterings import plan_clustering
from support.nightly import covering

NOW = {"hoodie.compact.inline.max.delta.commits": "1"}
TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t"


def filled(path: Path, table_type: str, version: str = "6") -> HoodieTable[Rows]:
    """Three commits. The first one's rows in rome are in no later file, those in oslo in files of each."""
    options = {"hoodie.write.table.version": version}
    table = hoodie.create_table(path, record_key="id", partition_by="city", table_type=table_type, options=options)
    for number, cities in enumerate((["oslo", "rome"], ["oslo"], ["oslo"])):
        table.upsert(pa.table({"id": range(len(cities)), "city": cities, "n": [number] * len(cities)}))
    return table


def data_files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if re.search(r"\.parquet$|\.log\.", file.name)}


def instants(path: Path) -> list[list[Path]]:
    """The files of each instant, oldest first."""
    timeline = path / ".hoodie" / "timeline"
    folder = timeline if timeline.is_dir() else timeline.parent
    files = sorted(file for file in folder.iterdir() if file.name[:2] == "20")
    return [[file for file in files if file.name[:17] == time] for time in sorted({file.name[:17] for file in files})]


def completion(path: Path) -> Path:
    """The completed file of the first commit."""
    return next(file for file in instants(path)[0] if file.suffix in (".commit", ".deltacommit"))


@TYPES
@pytest.mark.parametrize("cdc", [False, True])
@pytest.mark.parametrize("version", ["6", "9"])
def test_changes_by_completion_are_refused_beside_a_lost_commit(
    path: Path, version: str, table_type: str, cdc: bool
) -> None:
    """In version 6, too, where such a reader passes over commits that are pending."""
    table = filled(path, table_type, version)
    policy = {"hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME", "hoodie.read.cdc.infer": "true"}
    assert table.changes("000", cdc=cdc, options=policy).to_arrow().num_rows
    lost = completion(path)
    lost.unlink()
    with pytest.raises(MissingFile, match=lost.name[:17]):
        table.changes("000", cdc=cdc, options=policy).to_arrow()


@TYPES
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_write_is_not_rolled_back_when_later_ones_wrote_to_its_files(
    path: Path, table_type: str, version: str
) -> None:
    table = filled(path, table_type, version)
    before, rows = data_files(path), table.to_arrow().sort_by("id")
    lost = completion(path)
    content = lost.read_bytes()
    lost.unlink()
    (finding,) = (found for found in table.check(grace=0) if found.severity is Severity.ERROR)
    where = f".hoodie/{lost.name}" if version == "6" else f".hoodie/timeline/{lost.name[:17]}"
    assert (finding.fault, finding.remedy) == (Fault.HOLLOW, None)
    assert finding.where.startswith(where)
    assert list(table.repair(dry_run=False, grace=0)) == []
    refused = pytest.raises(CorruptFile, match=r"completed file of this \w+ is lost.*Restore the file from a copy")
    with refused:
        table.upsert(pa.table({"id": [5], "city": ["oslo"], "n": [5]}))
    for dry_run in (True, False):
        with refused:
            table.rollback(lost.name[:17], dry_run=dry_run)
    assert data_files(path) == before
    lost.write_bytes(content)
    assert not list(table.check(grace=0))
    assert table.to_arrow().sort_by("id") == rows
    assert table.upsert(pa.table({"id": [5], "city": ["oslo"], "n": [5]})).inserted == 1


@TYPES
@pytest.mark.parametrize("version", ["6", "9"])
def test_the_check_says_how_the_newest_write_comes_back_where_it_has_files_and_no_markers(
    path: Path, table_type: str, version: str
) -> None:
    """Nothing else tells that it was completed; a person may remove markers."""
    table = filled(path, table_type, version)
    rows = table.to_arrow().sort_by("id")
    lost = next(file for file in instants(path)[-1] if file.suffix in (".commit", ".deltacommit"))
    lost.unlink()
    (finding,) = table.check(grace=0)
    assert finding.fault is Fault.STALE
    (created,) = re.findall(r"create (\S+) empty", finding.advice)
    (path / created).touch()
    assert table.to_arrow().sort_by("id") == rows


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("user", ["compaction", "clustering", "deltacommit"])
def test_logs_of_a_write_are_not_deleted_when_a_plan_or_a_later_write_builds_on_it(
    path: Path, user: str, version: str
) -> None:
    """The plan names its logs; the write was made on it, though in layout 2 logs do not name their slice."""
    table = filled(path, "MERGE_ON_READ", version)
    if user == "compaction":
        table.schedule_compaction(options=NOW)
    elif user == "clustering":
        plan_clustering(table.storage, ["oslo"])
    before, rows = data_files(path), table.to_arrow().sort_by("id")
    lost = next(file for file in instants(path)[1 if user == "deltacommit" else 2] if file.suffix == ".deltacommit")
    content = lost.read_bytes()
    lost.unlink()
    (finding,) = (found for found in table.check(grace=0) if found.severity is Severity.ERROR)
    assert (finding.fault, finding.remedy) == (Fault.HOLLOW, None)
    assert re.search(f"{user} \\d+ builds on it", finding.problem)
    assert list(table.repair(dry_run=False, grace=0)) == []
    with pytest.raises(CorruptFile, match=rf"completed file of this deltacommit is lost: {user} \d+ builds on it"):
        table.upsert(pa.table({"id": [5], "city": ["rome"], "n": [5]}))
    with pytest.raises(MissingFile):
        table.to_arrow()
    assert data_files(path) == before
    lost.write_bytes(content)
    assert table.to_arrow().sort_by("id") == rows


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_write_was_completed_whose_logs_a_compaction_has_read(path: Path, version: str) -> None:
    """Its other rows are in no later file."""
    table = filled(path, "MERGE_ON_READ", version)
    write = table.upsert(pa.table({"id": [0, 7], "city": ["oslo", "bern"], "n": [7, 7]}))
    assert table.compact(table.schedule_compaction(options=NOW))
    before, rows = data_files(path), table.to_arrow().sort_by("id")
    (lost,) = (path / ".hoodie" / "timeline").glob(f"{write.instant}_*.deltacommit")
    content = lost.read_bytes()
    lost.unlink()
    (finding,) = table.check(grace=0)
    assert (finding.severity, finding.fault, finding.remedy) == (Severity.ERROR, Fault.HOLLOW, None)
    with pytest.raises(MissingFile):
        table.to_arrow()
    with pytest.raises(CorruptFile, match="completed file of this deltacommit is lost: commit"):
        table.upsert(pa.table({"id": [5], "city": ["rome"], "n": [5]}))
    assert data_files(path) == before
    lost.write_bytes(content)
    assert table.to_arrow().sort_by("id") == rows


@TYPES
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_read_is_refused_when_a_later_commit_was_made_on_one_whose_file_is_lost(
    path: Path, table_type: str, version: str
) -> None:
    table = filled(path, table_type, version)
    completion(path).unlink()
    with pytest.raises(MissingFile, match=r"read what is left with hoodie\.read\.ignore\.missing\.files=true"):
        table.to_arrow()
    with pytest.warns(MissingFileIgnored):
        left = table.snapshot(options={"hoodie.read.ignore.missing.files": "true"}).to_arrow()
    assert "rome" not in left["city"].to_pylist()


def test_a_plan_that_nobody_has_run_yet_costs_a_read_no_look_at_later_commits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(path, "MERGE_ON_READ")
    table.schedule_compaction(options=NOW)
    table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [9]}))
    monkeypatch.setattr(lost, "read_commit", None)  # a look would call it
    assert sorted(hoodie.open_table(path).to_arrow()["n"].to_pylist()) == [0, 9]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_compaction_is_not_run_again_nor_withdrawn_when_later_writes_build_on_it(path: Path, version: str) -> None:
    """They name its base file. In version 6 the table could not be read without that."""
    table = filled(path, "MERGE_ON_READ", version)
    instant = table.schedule_compaction(options=NOW)
    assert instant is not None
    table.compact()
    table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [9]}))
    before, rows = data_files(path), table.to_arrow().sort_by("id")
    (lost,) = path.rglob(f"{instant}*.commit")
    lost.unlink()
    (finding,) = table.check(grace=0)
    assert (finding.severity, finding.fault) == (Severity.ERROR, Fault.HOLLOW)
    with pytest.raises(MissingFile, match=r"\.commit: compaction"):
        table.to_arrow()
    for act in (
        table.compact,
        lambda: table.rollback(instant),
        lambda: unschedule_compaction(table.storage, Settings.of({}), instant),
    ):
        with pytest.raises(CorruptFile, match=r"file of this compaction is lost: deltacommit \d+ builds on it"):
            act()
    assert data_files(path) == before
    named = re.search(r"create (\S+) empty", finding.advice)
    assert named
    (path / named[1]).touch()
    assert table.to_arrow().sort_by("id") == rows


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_compaction_is_not_withdrawn_when_its_rows_are_in_nothing_else(path: Path, version: str) -> None:
    table = filled(path, "MERGE_ON_READ", version)
    instant = table.schedule_compaction(options=NOW)
    assert instant is not None
    table.compact()
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    table.upsert(pa.table({"id": [7], "city": ["bern"], "n": [7]}))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    rows = table.to_arrow().sort_by("id")
    (lost,) = path.rglob(f"{instant}*.commit")
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(CorruptFile, match=r"completed file .*is lost"):
        unschedule_compaction(table.storage, Settings.of({}), instant)
    lost.write_bytes(content)
    assert table.to_arrow().sort_by("id") == rows


def test_logs_whose_compaction_has_lost_its_plan_are_not_left_out(path: Path) -> None:
    """Version 6: they carry the compaction's instant, and belong to no slice without it."""
    table = filled(path, "MERGE_ON_READ")
    table.schedule_compaction(options=NOW)
    table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [9]}))
    (plan,) = path.glob(".hoodie/*.compaction.requested")
    content, rows = plan.read_bytes(), table.to_arrow().sort_by("id")
    plan.unlink()
    with pytest.raises(MissingFile, match=f"{plan.name}: compaction .* is missing"):
        table.to_arrow()
    with pytest.raises(MissingFile, match=plan.name):
        table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [10]}))
    assert table.snapshot(optimized=True).count() == 2
    assert {finding.where for finding in table.check(grace=0)} == {f".hoodie/{plan.name}"}
    plan.write_bytes(content)
    assert table.to_arrow().sort_by("id") == rows


def test_a_base_file_that_a_commit_names_beside_its_log_is_looked_for(path: Path) -> None:
    table = filled(path, "MERGE_ON_READ")
    last = completion(path).with_name(instants(path)[-1][0].name[:17] + ".deltacommit")
    last.write_text(re.sub(r'("baseFile" ?: ?"[^"]{8})-', r"\1x", last.read_text()))
    os.utime(last, (0, last.stat().st_mtime + 1))  # another one of its size, or the commit is taken as it is remembered
    with pytest.raises(MissingFile):
        table.to_arrow()
    (finding,) = table.check(grace=0)
    assert (finding.severity, finding.fault) == (Severity.ERROR, Fault.MISSING)
    assert "names it, and it is missing: reads are refused" in finding.problem


@TYPES
@pytest.mark.parametrize("version", ["6", "9"])
def test_an_empty_file_in_place_of_the_lost_one_gives_the_rows_back(path: Path, table_type: str, version: str) -> None:
    table = filled(path, table_type, version)
    rows = table.to_arrow().sort_by("id")
    completion(path).unlink()
    (finding,) = (found for found in table.check(grace=0) if found.severity is Severity.ERROR)
    named = re.search(r"create (\S+) empty", finding.advice)
    assert named
    (path / named[1]).touch()
    assert table.to_arrow().sort_by("id") == rows
    assert table.upsert(pa.table({"id": [5], "city": ["oslo"], "n": [5]})).inserted == 1


@TYPES
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_that_has_a_savepoint_was_completed(path: Path, table_type: str, version: str) -> None:
    table = filled(path, table_type, version)
    saved = table.savepoint()
    before = data_files(path)
    lost = next(file for file in instants(path)[-1] if file.suffix in (".commit", ".deltacommit"))
    content = lost.read_bytes()
    lost.unlink()
    (finding,) = (found for found in table.check(grace=0) if found.severity is Severity.ERROR)
    assert f"savepoint {saved.instant} keeps its files" in finding.problem
    assert list(table.repair(dry_run=False, grace=0)) == []
    with pytest.raises(CorruptFile, match="keeps its files"):
        table.upsert(pa.table({"id": [5], "city": ["oslo"], "n": [5]}))
    with pytest.raises(MissingFile):
        table.to_arrow()
    assert data_files(path) == before
    lost.write_bytes(content)
    assert not table.check(grace=0)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_compaction_whose_input_was_cleaned_was_completed(path: Path, version: str) -> None:
    """Its base files are all that is left of the rows, though nothing was written behind it."""
    table = filled(path, "MERGE_ON_READ", version)
    rows = table.to_arrow().sort_by("id")
    table.schedule_compaction(options=NOW)
    table.compact()
    newest_only = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    cleaned = table.clean(options=newest_only)
    before = data_files(path)
    (lost,) = (file for files in instants(path) for file in files if file.suffix == ".commit")
    lost.unlink()
    oslo = pa.table({"id": [0], "city": ["oslo"], "n": [5]})
    for call in (table.to_arrow, lambda: table.upsert(oslo)):
        with pytest.raises(MissingFile, match=rf"{lost.name[:17]}\S*\.commit: compaction"):
            call()
    (finding,) = table.check(grace=0)
    assert (finding.fault, finding.remedy) == (Fault.HOLLOW, None)
    assert f"clean {cleaned.instant} removed what it was to read" in finding.problem
    assert list(table.repair(dry_run=False, grace=0)) == []
    for call in (lambda: table.rollback(lost.name[:17]), table.compact):
        with pytest.raises(CorruptFile, match="removed what it was to read"):
            call()
    assert data_files(path) == before
    named = re.search(r"create (\S+) empty", finding.advice)
    assert named
    (path / named[1]).touch()
    assert table.to_arrow().sort_by("id") == rows
    assert table.upsert(oslo).updated == 1


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_lost_compaction_is_one_finding_though_its_input_was_cleaned(path: Path, version: str) -> None:
    table = filled(path, "MERGE_ON_READ", version)
    table.schedule_compaction(options=NOW)
    table.compact()
    table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [5]}))
    assert table.clean(options={"hoodie.cleaner.commits.retained": "1"}).paths
    next(file for files in instants(path) for file in files if file.suffix == ".commit").unlink()
    assert [finding.fault for finding in table.check(grace=0)] == [Fault.HOLLOW]


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_table_that_lost_its_timeline_is_not_an_empty_one(path: Path, version: str, metadata: str) -> None:
    options = {"hoodie.write.table.version": version, "hoodie.metadata.enable": metadata}
    table = hoodie.create_table(path, record_key="id", partition_by="city", options=options)
    assert table.to_arrow().num_rows == 0
    rows = pa.table({"id": [1], "city": ["rome"], "n": [5]})
    table.upsert(rows)
    for file in instants(path)[0]:
        file.unlink()
    before = data_files(path)
    for call in (table.to_arrow, lambda: table.upsert(rows), lambda: table.bulk_insert(rows)):
        with pytest.raises(CorruptFile, match=r"no instant.*Restore the instants from a copy"):
            call()
    for read in (False, True):
        (finding,) = table.check(grace=0, rows=read)
        assert (finding.severity, finding.fault, finding.remedy) == (Severity.ERROR, Fault.MISSING, None)
    table.repair(dry_run=False, grace=0)
    assert data_files(path) == before
    assert instants(path) == []


@pytest.mark.parametrize("version", ["6", "9"])
def test_two_cleans_whose_contents_were_swapped_are_found_and_hide_no_rows(path: Path, version: str) -> None:
    options = {"hoodie.write.table.version": version, "hoodie.clean.automatic": "false"}
    table = hoodie.create_table(path, record_key="id", options={**options, "hoodie.archive.automatic": "false"})
    commits = []
    for number in range(8):
        commits.append(table.upsert(pa.table({"id": [1], "n": [number]})).instant)
        if number in (3, 7):
            table.clean(options={"hoodie.clean.commits.retained": "1"})
    first, second = sorted(file for file in (path / ".hoodie").rglob("*.clean") if "metadata" not in file.parts)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.raises(CorruptFile, match="the content is that of the clean"):
        table.snapshot(as_of=commits[4]).to_arrow()
    assert table.to_arrow().num_rows == 1
    findings = [finding for finding in table.check(grace=0) if finding.fault is Fault.UNREADABLE]
    assert [path / finding.where for finding in findings] == [first, second]
    table.repair(dry_run=False, grace=0)
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    assert not table.check(grace=0)
    with pytest.raises(InvalidInput):
        table.snapshot(as_of=commits[4]).to_arrow()


def swap_files(history: Path) -> None:
    first, second, *_ = sorted(history.glob("*.parquet"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def set_back(history: Path) -> None:
    """As `_version_` is in a copy of the table that was made earlier."""
    version = history / "_version_"
    version.write_text(str(int(version.read_text()) - 1))


def restore_manifest(history: Path) -> None:
    (history / f"manifest_{(history / '_version_').read_text()}").unlink()
    set_back(history)


@pytest.mark.parametrize(
    ("harm", "table_type", "version"),
    covering(
        {
            "two files are swapped": (swap_files, "it lacks instants that are in its name"),
            "an older _version_": (set_back, "no manifest of the history lists it.*Delete _version_"),
            "an older state": (restore_manifest, "no manifest of the history lists it.*restore the newest manifest"),
        },
        ["COPY_ON_WRITE", "MERGE_ON_READ"],
        ["8", "9"],
        pairs=True,
    ),
)
def test_a_history_that_is_not_the_newest_hides_no_rows(
    path: Path, tmp_path: Path, harm: tuple[Callable[[Path], None], str], table_type: str, version: str
) -> None:
    """A repair deleted the files of all instants that it lacks, as of writes that were never published."""
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    options |= {"hoodie.write.table.version": version, "hoodie.archive.automatic": "false"}
    options |= {"hoodie.metadata.enable": str(version == "9").lower(), "hoodie.metadata.compact.max.delta.commits": "1"}
    table = hoodie.create_table(path, record_key="id", partition_by="city", table_type=table_type, options=options)
    every = pa.table({"id": range(9), "city": [f"c{number}" for number in range(9)]})
    for number in range(9):
        table.upsert(every.slice(number, 1))
        table.archive()
    rows, history = table.to_arrow().sort_by("id"), path / ".hoodie/timeline/history"
    shutil.copytree(history, tmp_path / "copy")
    damage, says = harm
    damage(history)
    before = data_files(path)
    for call in (table.to_arrow, lambda: table.upsert(every)):
        with pytest.raises(CorruptFile, match=says):
            call()
    assert {finding.fault for finding in table.check(grace=0)} == {Fault.HISTORY, Fault.UNEXAMINED}
    table.repair(dry_run=False, grace=0)
    assert data_files(path) == before
    shutil.rmtree(history)
    (tmp_path / "copy").rename(history)
    assert table.to_arrow().sort_by("id") == rows
    assert not table.check(grace=0)


@TYPES
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_table_that_lost_its_history_is_refused_and_its_rows_stay(path: Path, table_type: str, version: str) -> None:
    table = filled(path, table_type, version)
    for number in range(4):
        table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [number]}))
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    table.clean(options=keep)
    assert table.archive(options=keep).instants
    rows = table.to_arrow().sort_by("id")
    history = path / ".hoodie" / "timeline" / "history"
    history.rename(path.parent / "away")
    before = data_files(path)
    for call in (table.to_arrow, lambda: table.upsert(pa.table({"id": [1], "city": ["rome"], "n": [5]}))):
        with pytest.raises(CorruptFile, match=r"history: no manifest.*Restore the folder from a copy"):
            call()
    (finding,) = (found for found in table.check(grace=0) if found.severity is Severity.ERROR)
    assert (finding.fault, finding.where, finding.remedy) == (Fault.HISTORY, ".hoodie/timeline/history", None)
    table.repair(dry_run=False, grace=0)
    assert data_files(path) == before
    shutil.rmtree(history, ignore_errors=True)
    (path.parent / "away").rename(history)
    assert table.to_arrow().sort_by("id") == rows
    assert not table.check(grace=0)


@TYPES
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_missing_file_of_a_savepoint_is_one_finding(path: Path, table_type: str, version: str) -> None:
    table = filled(path, table_type, version)
    saved = table.savepoint()
    (path / max(name for name in data_files(path) if name.startswith("rome"))).unlink()
    (finding,) = (found for found in table.check(grace=0) if found.severity is Severity.ERROR)
    assert finding.fault is Fault.MISSING
    assert f"cannot be restored to the savepoint {saved.instant}" in finding.problem


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_rollback_without_its_plan_is_told_with_a_way_out(path: Path, version: str) -> None:
    table = filled(path, "COPY_ON_WRITE", version)
    table.rollback()
    begun, *rest = (file for file in instants(path)[-1] if file.name.endswith(".inflight"))
    assert not rest
    for file in instants(path)[-1]:
        if file != begun:
            file.unlink()
    with pytest.raises(CorruptFile, match=r"this rollback has lost its plan\. Delete this file") as refused:
        table.rollback()
    (path / refused.value.path).unlink()
    table.rollback()
    assert not table.check(grace=0)
    assert table.to_arrow()["n"].to_pylist() == [0, 0]


def test_a_folder_with_the_name_of_an_instants_file_is_told(path: Path) -> None:
    table = filled(path, "COPY_ON_WRITE")
    begun = next(file for file in instants(path)[-1] if file.name.endswith(".inflight"))
    content = begun.read_bytes()
    begun.unlink()
    begun.mkdir()
    with pytest.raises(StorageFailed, match=r"\.inflight is a folder, where the table has a file: move it away"):
        table.rollback()
    finding = table.check(grace=0)[0]
    assert (finding.severity, finding.fault, finding.where) == (
        Severity.ERROR,
        Fault.UNKNOWN_NAME,
        f".hoodie/{begun.name}",
    )
    begun.rmdir()
    begun.write_bytes(content)
    table.rollback()
    assert not table.check(grace=0)


@TYPES
@pytest.mark.parametrize("version", ["6", "9"])
def test_two_commits_that_have_the_content_of_each_other_are_told(path: Path, version: str, table_type: str) -> None:
    table = filled(path, table_type, version)
    last = sorted(file for file in path.glob(".hoodie/**/*commit") if "metadata" not in file.parts)[-2:]
    contents = [file.read_bytes() for file in last]
    for file, content in zip(last, reversed(contents), strict=True):
        file.write_bytes(content)
    told = {finding.where for finding in table.check(grace=0) if "is another" in finding.problem}
    in_blocks = table_type == "MERGE_ON_READ" and version == "6"
    assert told == {str(file.relative_to(path)) for file in (sorted(path.glob("oslo/.*.log*")) if in_blocks else last)}


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_repair_leaves_the_files_of_a_commit_that_has_the_content_of_another_one(path: Path, version: str) -> None:
    """They are no lost attempts of what wrote the other commit's files."""
    table = filled(path, "COPY_ON_WRITE", version)
    *_, other, last = sorted(path.glob(".hoodie/**/*.commit"))
    last.write_bytes(other.read_bytes())
    before = data_files(path)
    told = {finding.where: finding for finding in table.check(grace=0) if finding.fault is Fault.ORPHAN}
    assert [finding.remedy for finding in told.values()] == [None]
    assert "restore that from a copy" in next(iter(told.values())).advice
    table.repair(dry_run=False, grace=0)
    assert data_files(path) == before


@pytest.mark.parametrize("version", ["6", "9"])
def test_change_data_is_of_a_lost_attempt_only_beside_that_which_its_commit_names(path: Path, version: str) -> None:
    options = {"hoodie.write.table.version": version, "hoodie.table.cdc.enabled": "true"}
    table = hoodie.create_table(path, record_key="id", options=options)
    for number in range(3):
        table.upsert(pa.table({"id": [1], "n": [number]}))
    log = max(path.glob(".*.cdc"))
    attempt = log.with_name(re.sub(r"\.log\.\d+_", ".log.9_", log.name))
    attempt.write_bytes(log.read_bytes())
    assert [remedy.target for remedy in table.repair(dry_run=False, grace=0)] == [attempt.name]
    *_, other, last = sorted(path.glob(".hoodie/**/*.commit"))
    last.write_bytes(other.read_bytes())
    assert any(finding.where == log.name for finding in table.check(grace=0))
    table.repair(dry_run=False, grace=0)
    assert log.exists()


@pytest.mark.parametrize("lost", ["all", "one"])
def test_files_of_instants_that_were_completed_are_no_leftovers(path: Path, tmp_path: Path, lost: str) -> None:
    table = filled(path, "COPY_ON_WRITE")
    rows = table.to_arrow().sort_by("id")
    shutil.copytree(path / ".hoodie", tmp_path / "copy")
    for files in instants(path)[1:2] if lost == "one" else instants(path):
        for file in files:
            file.unlink()
    before = data_files(path)
    (finding,) = (found for found in table.check(grace=0) if found.fault in (Fault.ORPHAN, Fault.MISSING))
    assert (finding.severity, finding.remedy) == (Severity.ERROR, None)
    table.repair(dry_run=False, grace=0)
    assert data_files(path) == before
    shutil.copytree(tmp_path / "copy", path / ".hoodie", dirs_exist_ok=True)
    assert not list(table.check(grace=0))
    assert table.to_arrow().sort_by("id") == rows


def test_a_published_file_that_a_rollback_of_another_write_deleted_is_missing(path: Path) -> None:
    table = filled(path, "MERGE_ON_READ")
    lost = completion(path)
    lost.unlink()
    state = load_state(table.storage)
    write = next(instant for instant in state.timeline.instants if instant.requested == lost.name[:17])
    roll_back(table.storage, write, "20990101000000000", layout=state.layout)  # though later logs belong to its files
    assert {found.fault for found in table.check(grace=0)} == {Fault.MISSING}
    with pytest.raises(MissingFile):
        table.to_arrow()


@TYPES
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_file_that_a_task_left_after_its_write_was_rolled_back_is_not_of_a_lost_history(
    path: Path, table_type: str, version: str
) -> None:
    options = {"hoodie.write.table.version": version}
    table = hoodie.create_table(path, record_key="id", table_type=table_type, options=options)
    first = table.upsert(pa.table({"id": [1], "n": [1]}))
    files = {name: (path / name).read_bytes() for name in data_files(path)}
    table.rollback(first.instant)
    table.upsert(pa.table({"id": [2], "n": [2]}))
    for name, content in files.items():
        (path / name).write_bytes(content)
    assert table.to_arrow().to_pylist() == [{"id": 2, "n": 2}]
    assert all(finding.severity is not Severity.ERROR for finding in table.check(grace=0))


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_file_that_a_task_left_with_its_marker_is_not_of_a_lost_history(path: Path, version: str) -> None:
    """No rollback names its write. An archived one has no markers."""
    table = hoodie.create_table(path, record_key="id", options={"hoodie.write.table.version": version})
    table.upsert(pa.table({"id": [2], "n": [2]}))
    (name,) = data_files(path)
    stray = "f-0_0-0-0_20200101000000000.parquet"
    shutil.copy(path / name, path / stray)
    with pytest.raises(CorruptFile, match="no manifest of the history"):
        table.to_arrow()
    marker = path / ".hoodie" / ".temp" / "20200101000000000" / f"{stray}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    assert table.to_arrow().to_pylist() == [{"id": 2, "n": 2}]
    assert all(finding.severity is not Severity.ERROR for finding in table.check(grace=0))
    table.repair(dry_run=False, grace=0)
    assert data_files(path) == {name}
    assert not table.check(grace=0)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_plan_that_is_left_of_an_archived_compaction_is_found_and_deleted(path: Path, version: str) -> None:
    options = {
        "hoodie.write.table.version": version,
        "hoodie.compact.inline": "false",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
    }
    now = {"hoodie.compact.inline.max.delta.commits": "1"}
    table = hoodie.create_table(path, record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=options)
    plan: dict[Path, bytes] = {}
    for number in range(12):
        table.upsert(pa.table({"id": ["a", "b"], "ts": [number, number]}))
        if number in (2, 7):
            table.schedule_compaction(options=now)
            table.compact()
            plan = plan or {file: file.read_bytes() for file in path.glob(".hoodie/**/*.compaction.*")}
    assert len(plan) == 2
    assert not any(file.exists() for file in plan)  # they were archived
    rows = sorted(table.to_arrow().column("ts").to_pylist())
    for file, data in plan.items():
        file.write_bytes(data)
    again = hoodie.open_table(path)
    findings = again.check(grace=0)
    assert [(path / finding.where, finding.advice) for finding in findings] == [
        (file, "It can be deleted") for file in sorted(plan)
    ]
    again.repair(grace=0)
    assert not any(file.exists() for file in plan)
    assert sorted(hoodie.open_table(path).to_arrow().column("ts").to_pylist()) == rows
    assert not again.check(grace=0)


@pytest.mark.parametrize("version", ["6", "8"])
def test_a_compaction_is_not_lost_whose_time_a_write_without_a_lock_has_too(path: Path, version: str) -> None:
    """Later commits say that they were made on that time: they mean the write."""
    table = filled(path, "MERGE_ON_READ", version)
    planned = str(table.schedule_compaction(options=NOW))
    (plan,) = path.glob(f".hoodie/**/{planned}.compaction.requested")
    content = plan.read_bytes()
    unschedule_compaction(table.storage, Settings.of({}), planned)
    write = table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [8]})).instant
    plan.with_name(f"{write}.compaction.requested").write_bytes(content)
    plan.with_name(f"{write}.compaction.inflight").write_bytes(b"")
    table.upsert(pa.table({"id": [0], "city": ["oslo"], "n": [9]}))
    again = hoodie.open_table(path)
    assert sorted(again.to_arrow().column("n").to_pylist()) == [0, 9]
    assert not [finding for finding in again.check(grace=0) if finding.fault is Fault.HOLLOW]
