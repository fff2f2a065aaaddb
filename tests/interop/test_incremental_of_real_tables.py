"""Changes of real tables are those that Hudi itself gave when they were made, and those that hudi-rs reads."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
import pytest

from hoodie import open_table
from hoodie.errors import HistoryGone, UnsupportedTable
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.nightly import by_day
from support.oracles import (
    META,
    Changes,
    assert_same_rows,
    expected_changes,
    expected_rows,
    fixture_facts,
    fixture_names,
    read_hudi_rs_changes,
)

Unpack = Callable[[str], Path]

FULL_SCAN = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": True}
#: hudi-rs does not read the versions of the first two, nor the maps of the third. It does not join the slice that a
#: pending compaction opened to the one before it.
NOT_IN_HUDI_RS = {"v3_mor_stock_ticks", "v5_cow_nonpartitioned", "v6_mor_nested_types", "mor_pending_compaction"}
#: By day every other one: what Hudi itself noted is compared for all.
IN_HUDI_RS = [name for name in fixture_names() if name not in NOT_IN_HUDI_RS]


def noted(kind: str) -> list[str]:
    return [name for name in fixture_names("hudi-0.15") if name.startswith(kind) and expected_changes(name)]


@pytest.mark.parametrize("name", [*noted("cow"), *noted("mor")])
def test_changes_are_those_that_hudi_gives(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    for change in expected_changes(name):
        rows = open_table(path).changes(change.after, change.up_to, meta=True).to_arrow()
        assert_same_rows(rows.select(change.rows.column_names), change.rows)
        assert tuple(rows.column_names[:5]) == META


@pytest.mark.parametrize("name", by_day(IN_HUDI_RS, IN_HUDI_RS[::2].__contains__))
def test_changes_are_those_that_hudi_rs_reads(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    state = load_state(LocalStorage(path))
    if not state.config.meta_fields:
        return
    commits = state.timeline.commits
    ranges = [*pairwise(commits), (commits[0], commits[-1]), (commits[0], None)]
    for after, up_to in ranges:
        # In layout 2 ranges are about completion; an instant stands for the moment when it was completed.
        theirs = read_hudi_rs_changes(
            path, after.completed or after.requested, up_to and (up_to.completed or up_to.requested)
        )
        try:
            ours = open_table(path).changes(after.requested, up_to and up_to.requested, meta=True).to_arrow()
        except HistoryGone:  # hudi-rs goes on without the files that were cleaned
            assert name == "cow_savepoint"
            continue
        if ours.num_rows or theirs.num_rows:
            both = [column for column in ours.column_names if column in theirs.column_names]
            assert_same_rows(ours.select(both), theirs.select(both))


def test_a_range_reaches_back_to_commits_that_are_archived(fixture_table: Unpack) -> None:
    path, snapshot = fixture_table("cow_archived"), expected_rows("cow_archived")
    newest_archived = fixture_facts("cow_archived")["steps"][-5]["instant"]
    for begin in ("earliest", "000", "2026-11-21", fixture_facts("cow_archived")["steps"][3]["instant"]):
        after = begin if begin.startswith("20261") else ""
        expected = snapshot.filter(pc.greater(snapshot["_hoodie_commit_time"], after))
        assert_same_rows(open_table(path).changes(begin, meta=True).to_arrow(), expected)
    active = fixture_facts("cow_archived")["completed_instants"]
    with pytest.raises(HistoryGone, match="were cleaned away"):  # as they were then
        open_table(path).changes("earliest", fixture_facts("cow_archived")["steps"][3]["instant"], meta=True).to_arrow()
    rows = open_table(path).changes(newest_archived, meta=True).to_arrow()
    assert set(rows.column("_hoodie_commit_time").to_pylist()) <= set(active)
    assert rows.num_rows > open_table(path).changes(active[0], meta=True).to_arrow().num_rows


def test_files_that_were_cleaned_are_an_error_that_names_where_to_begin(fixture_table: Unpack) -> None:
    path = fixture_table("cow_savepoint")
    instants = fixture_facts("cow_savepoint")["completed_instants"]
    (failed,) = [read for read in fixture_facts("cow_savepoint")["incremental"] if "error" in read]
    with pytest.raises(HistoryGone, match="were cleaned away, such as") as told:
        open_table(path).changes(failed["begin_exclusive"], failed["end_inclusive"], meta=True).to_arrow()
    assert told.value.earliest in instants
    snapshot = expected_rows("cow_savepoint")
    expected = snapshot.filter(pc.greater(snapshot["_hoodie_commit_time"], told.value.earliest))
    assert expected.num_rows
    assert_same_rows(open_table(path).changes(told.value.earliest, meta=True).to_arrow(), expected)


@pytest.mark.parametrize("name", ["cow_archived", "cow_savepoint"])
def test_a_full_scan_gives_the_rows_with_a_commit_time_in_the_range(name: str, fixture_table: Unpack) -> None:
    snapshot = expected_rows(name)
    path = fixture_table(name)
    for read in fixture_facts(name)["incremental"]:
        if "error" in read:
            rows = (
                open_table(path, options=FULL_SCAN)
                .changes(read["begin_exclusive"], read["end_inclusive"], meta=True)
                .to_arrow()
            )
            times = snapshot.column("_hoodie_commit_time")
            inside = pc.and_(pc.greater(times, read["begin_exclusive"]), pc.less_equal(times, read["end_inclusive"]))
            assert_same_rows(rows, snapshot.filter(inside))


def test_a_full_scan_is_not_made_where_the_range_is_there(fixture_table: Unpack) -> None:
    path = fixture_table("mor_event_time")
    change: Changes = expected_changes("mor_event_time")[2]  # late rows, which the snapshot does not have
    assert_same_rows(
        open_table(path, options=FULL_SCAN).changes(change.after, change.up_to, meta=True).to_arrow(), change.rows
    )
    assert change.rows.num_rows == 40


def test_a_table_without_commit_times_has_no_changes_to_tell(fixture_table: Unpack) -> None:
    with pytest.raises(UnsupportedTable, match=r"hoodie\.populate\.meta\.fields=false"):
        open_table(fixture_table("cow_no_meta_fields")).changes("earliest", meta=True).to_arrow()
