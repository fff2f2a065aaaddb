"""Partition paths in which readers would not find the rows are refused."""

from __future__ import annotations

import pytest

from hoodie.errors import InvalidInput
from hoodie.table.partitions import METAFILE, ensure_partition, require_partition_paths
from hoodie.testing.storage import CountingStorage, MemoryStorage

INSTANT = "20240101000000000"


@pytest.mark.parametrize(
    "path", [".hoodie", "a/.hoodie", ".", "..", "a/../b", "/a", "a/", "a//b", "nul\0"], ids=lambda path: repr(path)
)
def test_a_path_that_is_no_folder_of_the_table_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="1 partition values make no folder of the table"):
        require_partition_paths(["fine", path])
    storage = MemoryStorage()
    with pytest.raises(InvalidInput):
        ensure_partition(storage, path, INSTANT)
    assert not storage.snapshot()


def test_paths_side_by_side_are_taken() -> None:
    require_partition_paths([""])
    require_partition_paths(["a", "ab", "b/c", "b/d", "b c/d", "city=..", "a.hoodie", ".hoodie_x", "..."])


@pytest.mark.parametrize("paths", [["a", "a/b"], ["a/b/c", "x", "a"], ["a/b", "a/b/c"]])
def test_paths_within_each_other_are_refused(paths: list[str]) -> None:
    with pytest.raises(InvalidInput, match="would lie inside partition"):
        require_partition_paths(paths)


@pytest.mark.parametrize(("there", "new"), [("a", "a/b"), ("a", "a/b/c"), ("a/b", "a"), ("a/b/c", "a")])
def test_a_new_partition_may_not_hide_another(there: str, new: str) -> None:
    storage = MemoryStorage()
    ensure_partition(storage, there, INSTANT)
    before = storage.snapshot()
    with pytest.raises(InvalidInput, match="would lie inside partition"):
        ensure_partition(storage, new, INSTANT)
    assert storage.snapshot() == before


def test_a_partition_that_is_there_costs_one_look() -> None:
    storage = CountingStorage(MemoryStorage())
    ensure_partition(storage, "a/b", INSTANT)
    assert storage.exists(f"a/b/{METAFILE}")
    storage.reset()
    ensure_partition(storage, "a/b", INSTANT)
    assert storage.count() == 1
