"""`hoodie manifest` and `hoodie sync`. The sync itself: tests/services, with a real metastore."""

from pathlib import Path

import pyarrow as pa

from hoodie.api.table import create_table
from support.lake import Terminal


def table(path: Path) -> Path:
    create_table(path, name="trips", record_key="id", partition_by="city").upsert(
        pa.table({"id": ["a", "b"], "city": ["oslo", "rome"]})
    )
    return path


def test_manifests_name_the_files_and_a_second_call_looks_at_no_partition(hoodie: Terminal, tmp_path: Path) -> None:
    path = table(tmp_path / "trips")
    both = ("--format", "symlink", "--format", "csv")
    first = hoodie.result("manifest", path, *both)
    assert (sorted(first["formats"]), first["partitions"], first["files"]) == (["csv", "symlink"], 2, 2)
    lists = [file for file in (path / ".hoodie").rglob("*") if file.is_file() and "manifest" in str(file)]
    said = "\n".join(file.read_text() for file in lists)
    assert all(base.name in said for base in path.rglob("*.parquet"))
    assert hoodie.result("manifest", path, *both)["partitions"] == 0
    assert hoodie.result("manifest", path, *both, "--whole")["partitions"] == 2


def test_without_a_format_nothing_is_written_and_the_command_says_how(hoodie: Terminal, tmp_path: Path) -> None:
    _, err = hoodie.both("manifest", table(tmp_path / "trips"), status=2)
    assert "give --format, or the option hoodie.sync.manifest" in err


def test_an_unknown_format_is_wrong_usage(hoodie: Terminal, tmp_path: Path) -> None:
    _, err = hoodie.both("manifest", table(tmp_path / "trips"), "--format", "parquet", status=2)
    assert "parquet" in err


def test_a_metastore_that_does_not_answer_is_one_line(hoodie: Terminal, tmp_path: Path) -> None:
    uris = "hoodie.datasource.hive_sync.metastore.uris=thrift://127.0.0.1:1"
    _, err = hoodie.both("sync", table(tmp_path / "trips"), "--option", uris, status=3)
    assert "127.0.0.1:1" in err
    assert "Traceback" not in err


def test_a_manifest_says_of_how_many_partitions_it_is(tmp_path: Path, hoodie: Terminal) -> None:
    table = create_table(tmp_path / "t", record_key="id", partition_by="city")
    assert hoodie("manifest", table.path, "--format", "csv") == ["csv of all 0 partitions, 0 files, of an empty table"]
    written = table.upsert(pa.table({"id": [1, 2], "city": ["oslo", "rome"]}))
    (line,) = hoodie("manifest", table.path, "--format", "csv", "--whole")
    assert line == f"csv of all 2 partitions, 2 files, up to {written.instant}"
