"""Files beside the data that are damaged: readers of other engines fail on them, so that the doctor finds each."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.doctor.findings import Fault, Finding, Severity
from support.nightly import covering

EachVersion = pytest.mark.parametrize("version", ["6", "8", "9"])


def new_table(path: Path, version: str, **options: str) -> HoodieTable[Rows]:
    """Three commits in two partitions, with a metadata table."""
    options = {"hoodie.write.table.version": version, "hoodie.metadata.enable": "true"} | {
        f"hoodie.{name.replace('_', '.')}": value for name, value in options.items()
    }
    table = hoodie.create_table(
        path, record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ", options=options
    )
    for number in range(3):
        table.upsert(rows(number))
    return table


def rows(number: int) -> pa.Table:
    return pa.table({"id": ["a", "b"], "ts": [number, number], "city": ["oslo", "bern"]})


def damage(file: Path, content: bytes | float | None) -> None:
    """Replace a file's content; a part of it, or nothing."""
    if content is None:
        file.unlink()
    else:
        data = file.read_bytes()
        file.write_bytes(data[: int(len(data) * content)] if isinstance(content, float) else content)


def errors(table: HoodieTable[Rows], **how: bool) -> list[Finding]:
    return [finding for finding in table.check(grace=0, **how) if finding.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("file", "content", "version"),
    covering(
        ["hoodie.properties", "*.deltacommit"], {"cut": 0.6, "empty": b"", "garbage": b"garbage", "lost": None}, "689"
    ),
)
def test_the_metadata_table_is_examined_as_a_table(
    file: str, content: bytes | float | None, version: str, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", version)
    before = table.to_arrow().num_rows
    damaged = max((tmp_path / "t/.hoodie/metadata/.hoodie").rglob(file))
    if content is None and file == "*.deltacommit":
        pytest.skip("an instant without its completed file is pending")
    damage(damaged, content)
    (finding,) = errors(table)
    assert finding.fault is Fault.LISTS
    assert str(damaged.relative_to(tmp_path / "t")) in finding.problem
    assert table.repair(grace=0)
    assert not errors(table)
    table.upsert(rows(7))
    assert table.to_arrow().num_rows == before
    assert not errors(table)


@pytest.mark.parametrize("content", [b"garbage", 0.6, b"commitTime=20260101000000000\n"])
def test_a_damaged_metafile_of_a_partition_is_written_anew(content: bytes | float, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "6")
    metafile = tmp_path / "t/oslo/.hoodie_partition_metadata"
    damage(metafile, content)
    (finding,) = errors(table)
    assert (finding.fault, finding.where) == (Fault.INVISIBLE, "oslo")
    assert table.repair(grace=0)
    assert "partitionDepth=1" in metafile.read_text()
    assert not errors(table)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("name", [".temp", ".heartbeat", ".locks", "metadata", "timeline"])
def test_a_file_where_the_table_has_a_folder_is_told(name: str, version: str, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", version)
    folder = tmp_path / "t/.hoodie" / name
    if folder.is_dir():
        folder.rename(tmp_path / "away")
    folder.touch()
    (finding,) = table.check(grace=0)
    assert (finding.severity, finding.fault, finding.where) == (Severity.ERROR, Fault.MISPLACED, f".hoodie/{name}")
    folder.unlink()
    if (tmp_path / "away").is_dir():
        (tmp_path / "away").rename(folder)
    assert not errors(table)


@pytest.mark.parametrize("content", [None, b""])
def test_a_metafile_is_restored_though_another_table_lies_in_the_partition(
    content: bytes | None, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", "6")
    new_table(tmp_path / "t/oslo/in", "6")
    metafile = tmp_path / "t/oslo/.hoodie_partition_metadata"
    damage(metafile, content)
    assert table.repair(grace=0)
    assert "partitionDepth=1" in metafile.read_text()
    assert [finding.fault for finding in errors(table)] == [Fault.MISPLACED]


def test_versions_of_a_file_that_were_swapped_are_found(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", record_key="id", ordering="ts")
    for number in range(3):
        table.upsert(rows(number))
    before = table.to_arrow()
    older, newer = sorted((tmp_path / "t").glob("*.parquet"), key=lambda file: file.stem.rpartition("_")[2])[1:]
    aside = tmp_path / "aside"

    def swap() -> None:
        older.rename(aside)
        newer.rename(older)
        aside.rename(newer)

    swap()
    (finding,) = (found for found in errors(table) if found.fault is not Fault.SIZE)  # where they differ in size, too
    assert (finding.fault, finding.where) == (Fault.DAMAGED, newer.name)
    assert older.name in finding.problem
    swap()
    assert not table.check(grace=0)
    assert table.to_arrow() == before


@EachVersion
def test_logs_of_two_file_groups_that_were_swapped_are_found(version: str, tmp_path: Path) -> None:
    """They update by position: each key is still there once, in the other file group."""
    options = {"hoodie.write.table.version": version, "hoodie.parquet.small.file.limit": "0"}
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type="MERGE_ON_READ", options=options)
    for keys in (["a", "b"], ["c", "d"]):
        table.bulk_insert(pa.table({"id": keys, "n": [1, 1]}))
    table.upsert(pa.table({"id": ["a", "b", "c", "d"], "n": [2, 2, 2, 2]}))
    assert not table.check(grace=0)
    first, second = (tmp_path / "t").glob(".*.log.*")
    aside = tmp_path / "aside"
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    swapped = {found.where: found for found in errors(table) if found.fault is Fault.DAMAGED}
    assert swapped.keys() == {first.name, second.name}
    for finding, other in ((swapped[first.name], second), (swapped[second.name], first)):
        assert other.name[1:].partition("_")[0] in finding.problem


@pytest.mark.parametrize("content", [None, 0])
def test_a_lost_compaction_plan_is_found_where_logs_belong_to_it(content: int | None, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "6", compact_inline_max_delta_commits="1", compact_inline="false")
    earlier = table.schedule_compaction()
    plans = sorted((tmp_path / "t/.hoodie").glob("*.compaction.requested"))
    assert earlier is not None
    assert len(plans) == 1
    table.upsert(rows(8))
    whole = plans[0].read_bytes()
    if content is None:
        plans[0].unlink()
    else:  # another table's: it names none of these file groups
        other = new_table(tmp_path / "o", "6", compact_inline_max_delta_commits="1", compact_inline="false")
        other.schedule_compaction()
        (swapped,) = (tmp_path / "o/.hoodie").glob("*.compaction.requested")
        plans[0].write_bytes(swapped.read_bytes())
    finding = next(finding for finding in errors(table) if "readers miss their rows" in finding.problem)
    assert finding.fault is Fault.PLAN
    assert finding.where == f".hoodie/{plans[0].name}"
    plans[0].write_bytes(whole)
    assert not errors(table)


@EachVersion
@pytest.mark.parametrize("logs_belong_to_it", [False, True])
def test_a_compaction_that_began_and_lost_its_plan_goes_unless_logs_belong_to_it(
    version: str, logs_belong_to_it: bool, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", version, compact_inline_max_delta_commits="1", compact_inline="false")
    before = table.to_arrow()
    assert table.schedule_compaction() is not None
    (plan,) = (tmp_path / "t/.hoodie").rglob("*.compaction.requested")
    if logs_belong_to_it:
        table.upsert(rows(8))
    plan.rename(plan.with_suffix(".inflight"))
    (finding,) = (found for found in errors(table) if found.fault is Fault.HALF)
    assert finding.where.endswith(f"/{plan.stem}.inflight")
    if logs_belong_to_it and version == "6":
        assert finding.remedy is None
        assert "were written for the base files that it makes" in finding.advice
    else:
        assert table.repair(grace=0)
        assert not errors(table)
        assert table.to_arrow().num_rows == before.num_rows
        assert set(table.to_arrow()["ts"].to_pylist()) == {8 if logs_belong_to_it else 2}
        assert table.compact(table.schedule_compaction())


def test_a_repair_goes_on_with_what_shows_once_the_timeline_can_be_read(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", "6", compact_inline_max_delta_commits="1", compact_inline="false")
    assert table.schedule_compaction() is not None
    (plan,) = (tmp_path / "t/.hoodie").glob("*.compaction.requested")
    damage(plan, 0.5)
    base = next((tmp_path / "t/oslo").glob("*.parquet"))
    orphan = base.with_name(f"{base.name.rpartition('_')[0]}_99990101000000000.parquet")
    orphan.write_bytes(base.read_bytes())
    assert orphan.name not in {finding.where for finding in table.check(grace=0)}  # data files cannot be examined
    done = table.repair(dry_run=False, grace=0)
    assert [remedy.target for remedy in done] == [f".hoodie/{plan.name}", f"oslo/{orphan.name}"]
    assert not table.check(grace=0)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_damaged_archive_is_found(version: str, tmp_path: Path) -> None:
    keep = {"keep_min_commits": "2", "keep_max_commits": "3", "clean_commits_retained": "1"}
    table = new_table(tmp_path / "t", version, **keep)
    for number in range(5):
        table.upsert(rows(10 + number))
    pattern = ".commits_.archive.*" if version == "6" else "*.parquet"
    archive = min(file for file in (tmp_path / "t/.hoodie").rglob(pattern) if "metadata" not in file.parts)
    data = archive.read_bytes()
    assert not table.check(grace=0, all_columns=True)
    damage(archive, 0.6)
    found = [finding for finding in table.check(grace=0) if finding.fault is Fault.HISTORY]
    assert [finding.where for finding in found] == [str(archive.relative_to(tmp_path / "t"))]
    assert "from a copy of the table" in found[0].advice
    middle = len(data) // 2 if version == "6" else 40  # a footer behind is half of the other one
    archive.write_bytes(data[:middle] + bytes(byte ^ 255 for byte in data[middle : middle + 40]) + data[middle + 40 :])
    assert any(finding.fault is Fault.HISTORY for finding in table.check(grace=0, all_columns=True))
    archive.write_bytes(b"")
    assert [finding.where for finding in table.check(grace=0) if finding.fault is Fault.HISTORY] == [found[0].where]


@pytest.mark.parametrize(("content", "file"), covering([b"", b"garbage", 0.6], ["_version_", "manifest_*"]))
def test_a_history_without_whole_manifest_is_found(file: str, content: bytes | float, tmp_path: Path) -> None:
    keep = {"keep_min_commits": "2", "keep_max_commits": "3", "clean_commits_retained": "1"}
    table = new_table(tmp_path / "t", "9", **keep)
    for number in range(5):
        table.upsert(rows(10 + number))
    damaged = max((tmp_path / "t/.hoodie/timeline/history").glob(file))
    before, whole = table.to_arrow().sort_by("id"), damaged.read_bytes()
    damage(damaged, content)
    if content == 0.6 and file == "_version_":
        pytest.skip("one digit cannot be cut")
    (finding,) = errors(table)
    assert (finding.fault, finding.where) == (Fault.HISTORY, str(damaged.relative_to(tmp_path / "t")))
    if file == "_version_":
        assert table.repair(grace=0)
    else:
        damaged.write_bytes(whole)
    assert not errors(table)
    assert table.to_arrow().sort_by("id") == before
    table.upsert(rows(20))
    assert not errors(table)


def test_a_metadata_table_of_another_version_than_the_table_is_found(tmp_path: Path) -> None:
    """Hudi 1.2.0 makes it so when it runs a clustering of a table of version 6 and is not told the version."""
    table = new_table(tmp_path / "t", "6")
    before = table.to_arrow().num_rows
    inside = tmp_path / "t/.hoodie/metadata/.hoodie"
    (inside / "timeline").mkdir()
    for file in inside.glob("*.deltacommit*"):
        file.rename(inside / "timeline" / file.name)
    (finding,) = errors(table)
    assert finding.fault is Fault.LISTS
    assert "version 6" in finding.problem
    assert table.repair(grace=0)
    assert not errors(table)
    assert table.to_arrow().num_rows == before


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("other", ["20991231235959999", "19700101000000000"])
@pytest.mark.parametrize("key", ["new", "a"])
def test_rows_of_an_instant_that_was_renamed_are_missed(key: str, version: str, other: str, tmp_path: Path) -> None:
    """Readers go by the instants in the names of data files, or in logs. An operator mends half of what a wrong clock
    left."""
    table = new_table(tmp_path / "t", version)
    table.upsert(pa.table({"id": [key], "ts": [4], "city": ["oslo" if key == "a" else "rome"]}))
    timeline = [file for file in (tmp_path / "t/.hoodie").rglob("*commit*") if "metadata" not in file.parts]
    last = max(file.name for file in timeline)[:17]
    for file in timeline:
        if file.name.startswith(last):
            file.rename(file.with_name(file.name.replace(last, other, 1)))
    (found,) = [finding for finding in errors(table) if finding.fault is Fault.ORPHAN]
    assert f"{other} names it, and it is of instant {last}" in found.problem
    table.repair(dry_run=False)
    assert any(finding.fault is Fault.ORPHAN for finding in errors(table))
