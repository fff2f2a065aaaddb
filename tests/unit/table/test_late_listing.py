"""A storage that lists late: what a listing lacks, or still has, never makes rows fewer or older in silence."""

import builtins
import itertools
from collections.abc import Callable, Collection

import pytest

from hoodie.errors import HoodieError, ListingStale, MissingFile, ServiceFailed, WriteConflict
from hoodie.services.clean import clean
from hoodie.storage import WrappedStorage
from hoodie.storage.protocol import Entry, join
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline import late_listings
from support.undoing import COW, FIRST, MOR, SECOND, THIRD, batch, read, upsert

_numbers = itertools.count()
LOCK = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
KINDS = pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])


class LateListing(WrappedStorage):
    """Listings lack the hidden files; all else is as it is. One that a network stands before."""

    remote = True

    def __init__(self) -> None:
        super().__init__(MemoryStorage())
        self.number = next(_numbers)
        self.hides: Callable[[str], bool] = lambda path: False
        self.lingering: dict[str, Entry] = {}  # that were deleted, by path
        self.then: Callable[[], object] | None = None  # what happens between a listing of the timeline and its answer

    @property
    def root(self) -> str:
        return f"late://{self.number}/table"

    def list(self, folder: str = "") -> list[Entry]:
        shown = [entry for entry in super().list(folder) if not self.hides(join(folder, entry.name))]
        known = {entry.name for entry in shown}
        gone = [e for path, e in self.lingering.items() if path == join(folder, e.name) and e.name not in known]
        if folder == ".hoodie" and (then := self.then):
            self.then = None
            then()
        return sorted([*shown, *gone])

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        tree = super().list_tree(folder, skip)
        for path, entry in self.lingering.items():
            parent = path.removesuffix(entry.name).rstrip("/")
            if parent == folder or parent.startswith(join(folder, "")):
                tree.setdefault(parent, []).append(entry)
        shown = {at: [e for e in found if not self.hides(join(at, e.name))] for at, found in tree.items()}
        return {at: sorted(found) for at, found in shown.items() if found}

    def paths(self) -> set[str]:
        """Of all files."""
        return {join(at, entry.name) for at, found in self.inner.list_tree().items() for entry in found}

    def hide_new(self, begin: str = "", end: str = "") -> None:
        """Listings lack the files made from now on whose path begins and ends so."""
        before = self.paths()
        self.hides = lambda path: path not in before and path.startswith(begin) and path.endswith(end)

    def catch_up(self) -> None:
        self.hides = lambda path: False


@pytest.fixture
def storage() -> LateListing:
    return LateListing()


@KINDS
def test_a_data_file_that_a_listing_lacks_is_asked_for_by_its_name(
    storage: LateListing, options: dict[str, str]
) -> None:
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)
    before = storage.paths()
    storage.hide_new("oslo/")
    upsert(storage, SECOND)
    hidden = {path for path in storage.paths() - before if path.startswith("oslo/")}
    assert hidden
    calls = [
        lambda: read(storage),
        lambda: ArrowTable(storage, {"hoodie.read.ignore.missing.files": "true"}).snapshot(),
        lambda: upsert(storage, THIRD),
    ]
    for call in calls:
        with pytest.raises(ListingStale, match=r"oslo/.*its listing does not show it"):
            call()
    storage.catch_up()
    assert read(storage) == {**FIRST, **SECOND}
    for path in hidden:
        storage.inner.delete(path)
    with pytest.raises(MissingFile):
        read(storage)


@KINDS
@pytest.mark.parametrize("end", ["", "commit"], ids=["all", "completed"])
def test_a_process_does_not_overlook_what_it_has_written_itself(
    storage: LateListing, options: dict[str, str], end: str
) -> None:
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)
    table = ArrowTable(storage, {**options, **LOCK})  # under a lock nobody looks once more after the commit
    before = storage.paths()
    storage.hide_new(end="commit")
    with pytest.warns(ServiceFailed, match="is committed, but"):
        table.upsert(batch(SECOND))
    storage.hides = lambda path: path not in before and path.endswith(end)
    for call in (lambda: read(storage), lambda: table.upsert(batch(THIRD)), lambda: upsert(storage, THIRD)):
        with pytest.raises(ListingStale, match="commit"):
            call()
    storage.catch_up()
    assert read(storage) == {**FIRST, **SECOND}
    table.upsert(batch(THIRD))
    assert read(storage) == {**FIRST, **SECOND, **THIRD}


@KINDS
def test_a_commit_that_looks_pending_is_not_rolled_back_and_nobody_builds_on_the_state_before(
    storage: LateListing, options: dict[str, str]
) -> None:
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)
    instant = upsert(storage, SECOND)
    late_listings.forget()  # another process
    storage.hides = lambda path: path.startswith(f".hoodie/{instant}.") and path.endswith("commit")
    with pytest.raises(ListingStale, match=instant):
        upsert(storage, THIRD)
    storage.catch_up()
    assert read(storage) == {**FIRST, **SECOND}
    upsert(storage, THIRD)
    assert read(storage) == {**FIRST, **SECOND, **THIRD}


@KINDS
@pytest.mark.parametrize(("end", "error"), [("commit", ListingStale), ("", WriteConflict)], ids=["completed", "all"])
def test_a_write_without_a_lock_that_does_not_see_itself_is_withdrawn(
    storage: LateListing, options: dict[str, str], end: str, error: type[HoodieError]
) -> None:
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)

    storage.hide_new(".hoodie/", end)
    with pytest.raises(error):
        upsert(storage, SECOND)
    storage.catch_up()
    assert read(storage) == FIRST
    upsert(storage, SECOND)
    assert read(storage) == {**FIRST, **SECOND}


@KINDS
def test_a_commit_of_another_thread_during_a_listing_is_no_late_listing(
    storage: LateListing, options: dict[str, str]
) -> None:
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)
    table = ArrowTable(storage, {**options, **LOCK})

    def another_thread() -> None:
        storage.hide_new(end="commit")  # else the write's own services see it listed
        with pytest.warns(ServiceFailed):
            table.upsert(batch(SECOND))
        storage.catch_up()

    storage.then = another_thread
    assert read(storage) == {**FIRST, **SECOND}


@KINDS
def test_files_that_a_listing_still_has_are_not_read(storage: LateListing, options: dict[str, str]) -> None:
    ArrowTable.create(storage, options)
    for rows in (FIRST, SECOND, THIRD):
        upsert(storage, rows)
    before = {join(at, e.name): e for at, found in storage.inner.list_tree().items() for e in found}
    upsert(storage, THIRD)
    clean(storage, Settings.of({"hoodie.clean.commits.retained": "1"}))
    storage.lingering = {path: entry for path, entry in before.items() if not storage.exists(path)}
    assert read(storage) == {**FIRST, **SECOND, **THIRD}
    upsert(storage, SECOND)
    assert set(read(storage)) == {"a", "b", "c", "d"}
