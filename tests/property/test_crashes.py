"""Crashes in short form: each operation dies at some of its calls, in one of three ways in turn. `make torture
ARGS=crash` does all of them."""

import pytest

from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import nightly, scaled
from torture.crash import MERGE_ON_READ, TABLE, Case, batch, report, rows_of_now, torture, views
from torture.operations import (
    CASES,
    CHANGES,
    FIRST,
    LATER_VERSIONS,
    LATER_WITH_METADATA_TABLE,
    OVERWRITE,
    SERVICES,
    WITH_RECORD_INDEX,
    WRITES,
    make,
    two_commits,
    upsert,
)

#: Hearts and leases of the dead end with an error in their thread.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

#: The longer operations have many calls alike; those with a metadata table and of later versions repeat the others.
STRIDE, REPEATED = scaled(13, 3), scaled(31, 9)
#: Of those with a metadata table, which repeat the others.
LONG = {
    f"{name}, metadata table"
    for name in (
        "upsert, and the timeline moves on",
        "delete, Merge-on-Read",
        "clean, Merge-on-Read",
        "bulk_insert",
        "insert_overwrite",
        "insert_overwrite_table",
        "upsert beside a planned compaction",
        "rollback of a commit",
        "upsert, Copy-on-Write",
        "upsert, several writers",
        "delete, Copy-on-Write",
        "schedule a compaction",
        "archive",
        "rollback, Merge-on-Read",
        "restore",
        "restore, Merge-on-Read",
        "delete_partitions",
        "upsert with automatic clean and archive",
    )
}
#: Those of later versions that the default suite runs: what is otherwise there, once each.
BY_DAY = {
    f"{name}, version {version}"
    for version, names in {
        8: ("delete, Merge-on-Read", "clean", "savepoint"),
        9: ("create", "upsert beside a planned compaction", "archive"),
    }.items()
    for name in names
}
BY_DAY |= {"upsert, Merge-on-Read, metadata table, version 9"}
#: The others with a record index repeat those with a metadata table.
SHORT = {f"{name}, record index" for name in ("first write",)}
RARE = LONG | (
    {case.name for case in (*LATER_VERSIONS, *LATER_WITH_METADATA_TABLE, *WITH_RECORD_INDEX)} - BY_DAY - SHORT
)


@pytest.mark.parametrize(
    "case", [case if case.name not in RARE else nightly(case) for case in CASES], ids=lambda case: case.name
)
def test_a_process_that_dies_anywhere_leaves_the_table_as_before_or_after(case):
    repeated = case not in (*WRITES, *SERVICES)
    outcome = torture(
        case, 1 if case.name in ("create", "savepoint") else REPEATED if repeated else STRIDE, in_turn=True
    )
    assert outcome.points > 0
    assert outcome.failures == ()


def test_a_process_that_dies_while_it_takes_back_what_another_left_leaves_the_same():
    case = next(case for case in CASES if case.name == "upsert, Merge-on-Read")
    assert torture(case, STRIDE, in_turn=True, twice=True).failures == ()


# --- the torture itself: it must be able to fail ---


def half_an_overwrite(table: ArrowTable) -> None:
    """Two commits for one: between them readers see a table that never was."""
    table.delete_partitions(["rome"])
    table.insert_overwrite(batch(OVERWRITE))


def careless(table: ArrowTable) -> None:
    """Files go before the instant that says so."""
    for slice_ in table.slices():
        assert slice_.base is not None
        table.storage.delete(slice_.base.path)
    table.insert_overwrite_table(batch(OVERWRITE))


def untidy(table: ArrowTable) -> None:
    """A data file of an instant that nobody announced."""
    base = next(iter(table.slices())).base
    ahead = base.path.replace(base.instant, "99990101000000000")
    table.storage.write(ahead, table.storage.read(base.path))
    upsert(table)
    table.storage.delete(ahead)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        nightly(half_an_overwrite, "neither before nor after"),
        (careless, "MissingFile"),
        nightly(untidy, "the doctor found"),
    ],
)
def test_an_operation_that_is_not_atomic_is_found_out(act, says):
    failures = torture(Case("broken", two_commits, act), 5).failures
    assert any(says in failure.problem for failure in failures), failures


def test_an_operation_that_loses_rows_of_later_writes_is_found_out():
    def lose(table: ArrowTable) -> None:
        table.insert_overwrite_table(batch(FIRST))

    failures = torture(Case("broken", two_commits, upsert, also=lose), 4, in_turn=True).failures
    assert any("changed the rows" in failure.problem for failure in failures)


def test_the_table_of_crash_points_tells_operations_points_and_failures():
    outcome = torture(Case("schema only", make, upsert), 6, in_turn=True)
    lines = report([outcome]).splitlines()
    assert lines[2].startswith(f"| schema only | {outcome.points} | 0 |")
    assert lines[-1].startswith(f"| all | {outcome.points} | 0 |")


# --- what happens in between, one by one ---


@pytest.mark.parametrize("options", [{}, MERGE_ON_READ])
def test_a_lost_answer_to_the_publication_is_no_lost_commit(options):
    """The writer dies after the one call that publishes: readers see the commit, and the next write builds on it."""
    storage = MemoryStorage()
    table = ArrowTable(storage, {**TABLE, **options})
    two_commits(table)
    before, number = rows_of_now(table), 0
    while rows_of_now(table) == before:
        storage_of_this = storage.copy()
        with pytest.raises(Crash):
            upsert(ArrowTable(CrashAfter(storage_of_this, number, Dying.AFTER), table.options))
        table = ArrowTable(storage_of_this, table.options)
        number += 1
    assert rows_of_now(table) == before | CHANGES
    assert views(table).optimized is not None
    table.upsert(batch({"q": ("oslo", 50, "q")}))
    assert rows_of_now(table) == before | CHANGES | {"q": ("oslo", 50, "q")}
