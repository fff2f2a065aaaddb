"""The doctor compares the file lists of a metadata table with the storage."""

from typing import Any

import pytest

from hoodie.doctor.examine import examine
from hoodie.doctor.findings import Fault
from hoodie.doctor.repair import repair
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.table import open_metadata
from hoodie.reading.snapshot import read_table
from hoodie.services.metadata_table import create_metadata_table
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from unit.metadata.test_metadata_keeping import METADATA, rows, snapshot_of, table


def lists(made: ArrowTable) -> list[str]:
    return [finding.problem for finding in examine(made.storage, rows=False) if finding.fault is Fault.LISTS]


def leave_behind(made: ArrowTable) -> None:
    """Another writer commits, and does not keep the metadata table."""
    before = snapshot_of(made.storage)
    made.upsert(rows(("c", "oslo")))
    for path in snapshot_of(made.storage):
        if path.startswith(METADATA):
            made.storage.delete(path)
    for path, data in before.items():
        if path.startswith(METADATA):
            made.storage.write(path, data)


def lose_a_file_of_an_older_slice(made: ArrowTable) -> None:
    oldest = made.state().timeline.instants[0].requested
    made.upsert(rows(("a", "oslo"), ts=2))
    (path,) = [path for path in snapshot_of(made.storage) if oldest in path and path.startswith("oslo/")]
    made.storage.delete(path)


def copy_a_partition(made: ArrowTable) -> None:
    for path, data in snapshot_of(made.storage).items():
        if path.startswith("oslo/"):
            made.storage.write(f"oslo - copy/{path.removeprefix('oslo/')}", data)


def cut_a_file(made: ArrowTable) -> None:
    path = next(path for path in snapshot_of(made.storage) if path.startswith("oslo/") and path.endswith(".parquet"))
    made.storage.write(path, made.storage.read(path)[:-9])


def test_a_metadata_table_that_is_kept_has_no_finding() -> None:
    assert lists(table()) == []


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lose_a_file_of_an_older_slice, "is in files, and not on the storage"),
        (copy_a_partition, "is on the storage, and not in files"),
        (cut_a_file, "bytes, and"),
    ],
)
def test_where_the_commits_say_what_it_lists_a_repair_leaves_it(harm: Any, says: str) -> None:
    """Without it readers would take the rows of the copy."""
    made = table()
    harm(made)
    (finding,) = [finding for finding in examine(made.storage, rows=False) if finding.fault is Fault.UNLIKE]
    assert says in finding.problem
    assert "the commits say so" in finding.problem
    repair(made.storage, dry_run=False)
    assert made.state().config.metadata_partitions == ("files",)
    assert lists(made) == []
    if harm is copy_a_partition:
        assert read_table(made.state()).num_rows == 2


def test_one_that_is_behind_is_found_and_removed_by_a_repair() -> None:
    made = table()
    leave_behind(made)
    (problem,) = lists(made)
    assert "it is behind: 1 instants" in problem
    repair(made.storage, dry_run=False)
    assert lists(made) == []
    assert made.state().config.metadata_partitions == ()
    assert not made.storage.list(METADATA[:-1])


def test_files_of_a_write_that_was_rolled_back_may_stay_in_its_lists() -> None:
    """As where Hudi 1.2 builds it when it rolls back. No reader looks for a file of an instant that never was."""
    made = table("MOR", **{"hoodie.metadata.enable": "false", "hoodie.write.table.version": "9"})
    made.upsert(rows(("a", "oslo"), ts=2))
    undone = made.state().timeline.newest_commit
    create_metadata_table(made.storage, Settings.of({}))
    for path in snapshot_of(made.storage):
        if undone in path:
            made.storage.delete(path)
    state = made.state()
    folders = listed_folders(open_metadata(state.storage, state.config, state.timeline))
    assert any(undone in entry.name for entries in folders.marked.values() for entry in entries)
    assert examine(made.storage, grace=0) == ()
    assert read_table(made.state())["ts"].to_pylist() == [1, 1]
