"""Paths as jobs read them: a partition's, or a pattern over folders and files. Where Hudi 0.15 was asked, the rows are
those that it gave."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput, InvalidOption, TableNotFound
from hoodie.reading.filters.path_globs import matches_file, matches_folder

OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
CHANGES = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
GLOB = "hoodie.datasource.read.incr.path.glob"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    hoodie.hudi.write(pa.table({"id": [1, 2, 3], "p": ["a", "b", "c"]}), path, OPTIONS)
    return path


def ids(path: str | Path, options: dict[str, str] | None = None) -> list[int]:
    return sorted(hoodie.hudi.read(str(path), options).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("below", "rows"),
    [
        ("", [1, 2, 3]),
        ("/", [1, 2, 3]),
        ("/*", [1, 2, 3]),
        ("/*/*", [1, 2, 3]),
        ("/*/*.parquet", [1, 2, 3]),
        ("/p=a", [1]),
        ("/p=a/", [1]),
        ("/p=a/*", [1]),
        ("/p={a,b}", [1, 2]),
        ("/p=[bc]/*", [2, 3]),
        ("/p=?", [1, 2, 3]),
    ],
)
def test_a_path_into_the_table_gives_the_rows_of_its_partitions(table: Path, below: str, rows: list[int]) -> None:
    assert ids(f"{table}{below}") == rows
    assert ids(f"{table}{below}", {"basePath": str(table)}) == rows
    assert ids(f"file://{table}{below}") == rows


@pytest.mark.parametrize("below", ["/p=z", "/p=z*", "/p=a/x*", "/*/*/*", "/p=a/p=b"])
def test_a_path_that_is_no_partition_is_refused(table: Path, below: str) -> None:
    with pytest.raises(InvalidInput, match=r"none of its 3 partitions is .* such as 'p=a', 'p=b', 'p=c'"):
        ids(f"{table}{below}")


def test_a_table_without_partitions_has_files_only(tmp_path: Path) -> None:
    hoodie.hudi.write(pa.table({"id": [1]}), tmp_path, {"hoodie.datasource.write.recordkey.field": "id"})
    assert ids(f"{tmp_path}/*") == ids(f"{tmp_path}/*.parquet") == [1]
    with pytest.raises(InvalidInput, match="none of its 1 partitions is 'nope'"):
        ids(tmp_path / "nope")


def test_folders_above_partitions_mean_all_below(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "y": ["2024", "2024", "2025"], "m": ["01", "02", "01"]})
    hoodie.hudi.write(
        rows,
        tmp_path,
        {
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "y,m",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        },
    )
    assert ids(tmp_path / "2024") == [1, 2]
    assert ids(tmp_path / "*" / "01") == [1, 3]
    assert ids(f"{tmp_path}/*/*/*") == [1, 2, 3]


def test_where_there_is_no_table_the_path_is_named(table: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "other", tmp_path / "*", tmp_path / "other" / "*"):
        with pytest.raises(TableNotFound):
            ids(path)
    with pytest.raises(InvalidInput, match="is not below basePath"):
        ids(tmp_path / "other", {"basePath": str(table)})


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [("p=a/*", [1]), ("/p=a/*", [1]), ("*", [1, 2, 3]), ("p=a", []), ("p=*/*", [1, 2, 3]), ("{table}/p=a/*", [1])],
)
def test_a_pattern_leaves_out_the_changes_in_other_files(table: Path, pattern: str, rows: list[int]) -> None:
    assert ids(table, {**CHANGES, GLOB: pattern.replace("{table}", str(table))}) == rows


def test_changes_are_read_of_a_table(table: Path) -> None:
    assert ids(f"{table}/*/*", CHANGES) == [1, 2, 3]
    with pytest.raises(InvalidOption, match="changes are read of the table, not of 'p=a'"):
        ids(table / "p=a", CHANGES)
    with pytest.raises(InvalidOption, match="change data is of all files"):
        ids(table, {**CHANGES, "hoodie.datasource.query.incremental.format": "cdc", GLOB: "p=a/*"})


def test_what_sparks_file_formats_take_has_no_effect(table: Path) -> None:
    assert ids(table, {"pathGlobFilter": "*.csv", "recursiveFileLookup": "true"}) == [1, 2, 3]


def test_patterns_are_those_of_hadoop() -> None:
    assert matches_folder("2024-0[1-3]", "2024-02")
    assert not matches_folder("2024-0[^1-3]", "2024-02")
    assert matches_folder(r"a\*b", "a*b")
    assert matches_file("p=a/*", "p=a/x/y.parquet", "/t")
    assert not matches_file("p=?", "p=a/y.parquet", "/t")
