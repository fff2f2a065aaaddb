"""Small archive files become larger ones: history stays what it was, whatever dies in between."""

import random
from itertools import count

import pytest

from hoodie.config.services import ArchiveOptions
from hoodie.formats.timeline.archive_log import commit_record, encode_entries
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.services.archive import history, merge_archive_files
from hoodie.storage.protocol import Entry
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import Crash, CrashAfter, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.archive import archive_files, archive_name, archived_commits, archived_entries
from support.trips import TRIPS, WRITES, rows

FOUR = ArchiveOptions(merge_files=4)


def entry(number: int, size: int = 1) -> dict[str, object]:
    metadata = CommitMetadata(operation=Operation.UPSERT, extra={"note": random.Random(number).randbytes(size).hex()})
    return {
        "commitTime": f"2026010100{number:07}",
        "actionType": "commit",
        "version": 1,
        "actionState": "COMPLETED",
        "stateTransitionTime": f"2026010100{number:07}",
        "hoodieCommitMetadata": commit_record(metadata),
    }


def archived(sizes: list[int]) -> tuple[MemoryStorage, TableState]:
    """A table with as many archive files, of two commits each."""
    storage = MemoryStorage()
    ArrowTable.create(storage, TRIPS)
    for number, size in enumerate(sizes, 1):
        content = encode_entries([entry(10 * number, size), entry(10 * number + 1, size)], 10)
        storage.write(f".hoodie/archived/{archive_name(number)}", content)
    return storage, load_state(storage)


def commits(state: TableState) -> list[str]:
    return [instant.requested for instant, _ in archived_commits(state.storage, state.config)]


def test_files_that_are_alike_become_one_and_no_entry_is_lost() -> None:
    storage, state = archived([1] * 6)
    before = commits(state)
    assert merge_archive_files(storage, state.config, FOUR) == f".hoodie/archived/{archive_name(4)}"
    assert list(archive_files(storage, state.config)) == [6, 5, 4]
    assert commits(state) == before
    assert len(list(archived_entries(storage, state.config))) == 12
    assert merge_archive_files(storage, state.config, FOUR) == ""


@pytest.mark.parametrize(
    ("sizes", "how"),
    [
        ([1] * 3, FOUR),
        ([50_000, 1, 1, 1], FOUR),
        ([1] * 9, ArchiveOptions()),
        ([1] * 20, ArchiveOptions(merge=False)),
        ([9_000] * 4, ArchiveOptions(merge_files=4, merge_limit=9_000)),
    ],
    ids=["few", "of different sizes", "nine", "off", "above the limit"],
)
def test_other_files_stay(sizes: list[int], how: ArchiveOptions) -> None:
    storage, state = archived(sizes)
    before = storage.snapshot()
    assert merge_archive_files(storage, state.config, how) == ""
    assert storage.snapshot() == before


def test_a_merge_that_dies_anywhere_loses_nothing_and_is_done_again() -> None:
    for calls in count():
        storage, state = archived([1] * 5)
        before = commits(state)
        try:
            merge_archive_files(CrashAfter(storage, calls), state.config, FOUR)
        except Crash:
            assert commits(state) == before, calls
            merge_archive_files(storage, state.config, FOUR)
            assert commits(state) == before, calls
        else:
            assert calls > 3
            return


def test_a_reader_beside_a_merge_misses_nothing() -> None:
    storage, state = archived([1] * 5)
    before = commits(state)

    class Listed(WrappedStorage):
        merged = False

        def list(self, folder: str = "") -> list[Entry]:
            entries = self.inner.list(folder)
            if folder.endswith("archived") and not self.merged:
                self.merged = True
                merge_archive_files(storage, state.config, FOUR)
            return entries

    assert [instant.requested for instant, _ in archived_commits(Listed(storage), state.config)] == before


def test_the_archive_of_a_long_life_is_a_few_files() -> None:
    options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.archive.merge.files.batch.size": "4",
    }
    storage = MemoryStorage()
    ArrowTable.create(storage, TRIPS)
    table = ArrowTable(storage, {**WRITES, **options})
    written = [table.upsert(rows("a", ts=ts)).instant for ts in range(1, 61)]
    state = load_state(storage)
    assert len(archive_files(storage, state.config)) <= 9
    assert [instant.requested for instant, _ in history(state, archived=True)] == written[::-1]
