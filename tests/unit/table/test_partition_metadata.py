"""Partition paths in which readers would not find the rows are refused."""

import pytest

from hoodie.errors import InvalidInput
from hoodie.model.files import METAFILE
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.partition_metadata import ensure_partition, require_partition_paths
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


def test_two_tasks_that_make_one_partition_at_a_time_do_not_refuse_each_other() -> None:
    class MadeMeanwhile(WrappedStorage):
        """Another task makes the partition right after this one has looked for it."""

        def exists(self, path: str) -> bool:
            there = self.inner.exists(path)
            if path.endswith(METAFILE) and not there:
                self.inner.create_new(path, b"commitTime=1\npartitionDepth=1\n")
            return there

    storage = MemoryStorage()
    ensure_partition(MadeMeanwhile(storage), "oslo", INSTANT)
    assert storage.read(f"oslo/{METAFILE}").startswith(b"commitTime=1")
