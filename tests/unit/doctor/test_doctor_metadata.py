"""The doctor compares the file lists of a metadata table with the storage."""

import pytest

from hoodie.doctor.examine import examine
from hoodie.doctor.findings import Fault
from hoodie.doctor.repair import repair
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


def test_a_metadata_table_that_is_kept_has_no_finding() -> None:
    assert lists(table()) == []


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (leave_behind, "it is behind: 1 instants"),
        (lose_a_file_of_an_older_slice, "is in files, and not on the storage"),
    ],
)
def test_one_that_differs_from_the_storage_is_found_and_removed_by_a_repair(harm, says) -> None:
    made = table()
    harm(made)
    (problem,) = lists(made)
    assert says in problem
    repair(made.storage, dry_run=False)
    assert lists(made) == []
    assert made.state().config.metadata_partitions == ()
    assert not made.storage.list(METADATA[:-1])
