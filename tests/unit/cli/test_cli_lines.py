"""Many tables: a line each, in an order, those that meet a condition, and a summary that names tables."""

import shutil
from pathlib import Path

import pytest

from hoodie.storage.local import LocalStorage
from support.compacting import schedule
from support.lake import Terminal, unpacked


@pytest.fixture
def tables(lake: Path) -> Path:
    """Two Merge-on-Read tables, and a Copy-on-Write one."""
    unpacked("cow_types", lake)
    return lake


def test_stats_of_many_tables_are_a_line_each(tables: Path, hoodie: Terminal) -> None:
    lines = hoodie("stats", f"{tables}/*")
    header, *rows = lines[:-1]
    assert header.split() == [
        *("table", "base_files", "base_bytes", "small_files", "log_files", "log_bytes", "log_share"),
        *("older_bytes", "amplification"),
    ]
    assert [row.split()[0] for row in rows] == [str(tables / name) for name in ("a", "b", "cow_types")]
    assert lines[-1].startswith("== 3 tables: 3 fine (")
    assert hoodie("stats", tables / "a")[0].split()[0] == "partitions"  # of one table all there is


def test_tables_are_sorted_by_a_field(tables: Path, hoodie: Terminal) -> None:
    def order(*words: str) -> list[str]:
        document = hoodie.document("stats", f"{tables}/*", *words)
        return [Path(table["path"]).name for table in document["tables"]]

    assert order("--sort", "log_share") == ["a", "b", "cow_types"]
    assert order("--sort", "-log_files")[0] == "cow_types"
    assert order("--sort", "-table") == ["cow_types", "b", "a"]
    assert order("--sort", "table") == order()
    _, err = hoodie.both("stats", f"{tables}/*", "--sort", "logshare", status=2)
    assert "--sort logshare: no such field. There are table, partitions," in err


def test_a_condition_chooses_tables_and_failed_ones_stay(tables: Path, hoodie: Terminal) -> None:
    (tables / "b" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.version=x\n")
    out, err = hoodie.both("stats", f"{tables}/*", "--where", "log_files > 2 and table like '%/a'", status=3)
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == [str(tables / "a"), str(tables / "b")]
    assert lines[2].endswith("failed")
    assert lines[3:-1] == [f"== failed: {tables}/b"]
    assert lines[-1].startswith("== 2 of 3 tables: 1 fine, 1 failed (")
    assert err.startswith(f"hoodie: {tables}/b: ")
    _, err = hoodie.both("stats", f"{tables}/*", "--where", "log_files >", status=2)
    assert "--where 'log_files >'" in err
    _, err = hoodie.both("stats", f"{tables}/*", "--where", "logs > 2", status=2)
    assert "there is no column 'logs'. Did you mean 'log_share'? The fields are table, partitions," in err
    _, err = hoodie.both("stats", f"{tables}/*", "--where", "zzzzzz > 2", status=2)
    assert "there is no column 'zzzzzz'. The fields are table, partitions," in err
    assert err.count("log_share") == 1
    _, err = hoodie.both("stats", f"{tables}/*", "--where", "log_share", status=2)
    assert "--where 'log_share': the condition 'log_share' is double: expected a condition" in err


def test_a_condition_on_tables_is_the_sql_of_filters(tables: Path, hoodie: Terminal) -> None:
    shown = hoodie("stats", f"{tables}/*", "--where", "log_files * 2 > base_files and right(table, 2) = '/a'")
    assert [Path(line.split()[0]).name for line in shown[1:-1]] == ["a"]


def test_the_doctor_says_a_line_a_table_and_findings_in_full(tables: Path, hoodie: Terminal) -> None:
    shutil.copytree(tables / "a", tables / "c")
    next((tables / "c" / "rome").glob(".*.log.*")).unlink()
    lines = hoodie("doctor", f"{tables}/*", "--quick", status=1)
    assert lines[0].split() == ["table", "healthy", "errors", "warnings", "notes", "findings"]
    rows = {Path(line.split()[0]).name: line.split()[1:] for line in lines[1:5]}
    assert rows["a"][:2] == ["yes", "0"]
    assert rows["c"] == ["no", "1", "0", "0", "missing", "file"]
    assert lines[5] == f"== {tables}/c"
    assert lines[6].startswith("ERROR missing file: rome/")
    assert lines[-2] == f"== with findings: {tables}/c"
    assert lines[-1].startswith("== 4 tables: 3 fine, 1 with findings (")
    shown = hoodie("doctor", f"{tables}/*", "--quick", "--where", "healthy = true", "--sort", "-table")
    assert [Path(line.split()[0]).name for line in shown[1:4]] == ["cow_types", "b", "a"]
    assert shown[-1].startswith("== 3 of 4 tables: 3 fine (")


def test_plans_of_many_tables_are_a_line_each(tables: Path, hoodie: Terminal) -> None:
    planned = schedule(LocalStorage(tables / "b"))
    lines = hoodie("compaction", "plan", f"{tables}/*", "--sort", "plans")
    assert lines[0].split()[:4] == ["table", "plans", "oldest", "state"]
    assert lines[1].split()[:4] == [str(tables / "b"), "1", planned, "requested"]
    assert lines[2].split()[1] == "0"
    shown = hoodie("compaction", "plan", f"{tables}/*", "--where", "plans > 0")
    assert shown[-1].startswith("== 1 of 3 tables: 1 fine (")


def test_the_path_of_a_table_that_failed_is_named_once(tables: Path, hoodie: Terminal) -> None:
    for command in ("stats", "info"):
        _, err = hoodie.both(command, tables / "a", tables / "nowhere", status=3)
        assert err.startswith(f"hoodie: {tables}/nowhere: no table here")
