"""Two writers add to the logs of one file group at a time: what they leave alone, and where they give way."""

import itertools
from functools import partial

import pytest

from hoodie.api.write_client import HoodieWriteClient
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidOption, WriteConflict
from hoodie.index.bucket import shared_file_id
from hoodie.model.instant import State
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.upgrade import upgrade
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from hoodie.writing.write import as_merge, as_update
from support.non_blocking import BY_COMMIT, MODE, TABLE, begun, due, notes, rows, table

#: What Hudi calls the file group of the first bucket.
FIRST = "00000000-0000-0000-0000-000000000000-0"
VERSIONS = pytest.mark.parametrize("version", [8, 9])


@VERSIONS
def test_two_writers_add_to_the_logs_of_one_file_group(version: int):
    there = table(version)
    there.upsert(rows("a", "b"))
    slow, quick = begun(there, rows("a", ts=2, note="slow")), begun(there, rows("b", ts=2, note="quick"))
    quick.publish()
    slow.publish()
    (only,) = there.slices()
    assert (only.group.file_id, only.base, len(only.logs)) == (FIRST, None, 3)
    assert notes(there) == {"a": "slow", "b": "quick"}
    assert there.state().timeline.pending() == ()


@VERSIONS
def test_two_writers_make_a_bucket_at_the_same_time(version: int):
    there = table(version)
    slow, quick = begun(there, rows("a", note="slow")), begun(there, rows("b", note="quick"))
    quick.publish()
    slow.publish()
    assert [(slice_.group.file_id, len(slice_.logs)) for slice_ in there.slices()] == [(FIRST, 2)]
    assert notes(there) == {"a": "slow", "b": "quick"}


def test_first_rows_count_as_inserted_and_those_of_a_bucket_that_is_there_as_updated():
    there = table()
    first, second = there.upsert(rows("a", "b")), there.upsert(rows("b", "c"))
    assert [(result.inserted, result.updated) for result in (first, second)] == [(2, 0), (0, 2)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_of_equal_versions_the_write_that_began_last_wins_whichever_is_completed_last(order: tuple[int, ...]):
    """As Hudi 1.1.1 reads it: tests/interop/test_slow_writers_of_hudi_1.py."""
    for options in ({}, BY_COMMIT):
        there = table(options=options)
        waiting = [begun(there, rows("a", note=word)) for word in ("first", "second", "third")]
        for number in order:
            waiting[number].publish()
        assert notes(there) == {"a": "third"}
        assert schedule_compaction(there.storage, Settings.read(due(there))) is not None
        assert notes(there) == {"a": "third"}
        compact(there.storage, Settings.read(due(there)))
        assert notes(there) == {"a": "third"}
        assert there.slices()[0].base is not None


def test_a_write_that_is_completed_after_a_compaction_was_planned_adds_to_the_slice_after_it():
    """A snapshot says the same before the compaction is done and after it."""
    there = table(options=BY_COMMIT)
    slow, quick = begun(there, rows("a", note="slow")), begun(there, rows("a", note="quick"))
    quick.publish()
    assert schedule_compaction(there.storage, Settings.read(due(there))) is not None
    assert notes(there) == {"a": "quick"}
    slow.publish()
    planned = notes(there)
    compact(there.storage, Settings.read(due(there)))
    assert (planned, notes(there)) == ({"a": "slow"}, {"a": "slow"})
    (only,) = there.slices()
    assert only.base is not None
    assert [log.base_instant for log in only.logs] == [slow.instant]


def test_a_compaction_that_is_planned_and_done_while_a_writer_works_is_no_conflict():
    there = table()
    there.upsert(rows("a", "b"))
    slow = begun(there, rows("a", ts=2, note="slow"))
    schedule_compaction(there.storage, Settings.read(due(there)))
    compact(there.storage, Settings.read(due(there)))
    slow.publish()
    assert notes(there) == {"a": "slow", "b": "old"}


def test_a_failed_write_takes_only_its_own_logs_back():
    there = table()
    slow, quick = begun(there, rows("a", note="slow")), begun(there, rows("b", note="quick"))
    quick.publish()
    slow.fail()
    assert notes(there) == {"b": "quick"}
    assert there.upsert(rows("a", note="again")).inserted == 0
    assert notes(there) == {"a": "again", "b": "quick"}


def test_what_a_slow_writer_changed_is_among_the_changes_after_those_of_a_quick_one():
    there = table()
    there.upsert(rows("a", "b"))
    slow, quick = begun(there, rows("a", ts=2, note="slow")), begun(there, rows("b", ts=2, note="quick"))
    quick.publish()
    seen = max(instant.completed for instant in there.state().timeline.commits)
    slow.publish()
    assert there.changes(seen).column("note").to_pylist() == ["slow"]


# --- where a writer gives way ---


@pytest.mark.parametrize("slow_one", ["upsert", "overwrite"])
def test_a_write_into_a_file_group_that_an_overwrite_replaces_gives_way(slow_one: str):
    there = table()
    there.upsert(rows("a"))
    slow = begun(there, rows("a", ts=2, note="late"))
    overwrite = begun(there, rows("b", note="instead"), WriteOperation.INSERT_OVERWRITE)
    first, second = (overwrite, slow) if slow_one == "upsert" else (slow, overwrite)
    if second is slow:
        overwrite = partial(there.insert_overwrite, rows("b", note="instead"))
    first.publish()
    with pytest.raises(WriteConflict, match="contradicts"):
        second.publish()
    second.fail()
    assert notes(there) == ({"b": "instead"} if slow_one == "upsert" else {"a": "late"})


def test_rows_after_an_overwrite_go_to_the_file_groups_that_it_made():
    there = table()
    there.upsert(rows("a"))
    there.insert_overwrite(rows("b", note="instead"))
    there.upsert(rows("c", note="after"))
    assert notes(there) == {"b": "instead", "c": "after"}


def test_rows_after_a_deleted_partition_go_to_a_file_group_that_readers_see():
    there = table()
    there.upsert(rows("a"))
    there.delete_partitions(["oslo"])
    slow, quick = begun(there, rows("b", note="slow")), begun(there, rows("c", note="quick"))
    quick.publish()
    slow.publish()
    assert notes(there) == {"b": "slow", "c": "quick"}
    assert [slice_.group.file_id for slice_ in there.slices()] == [shared_file_id(0, [FIRST])]


def test_rows_that_are_filled_up_from_stored_ones_give_way_to_changes_of_these():
    there = table()
    there.upsert(rows("a"))
    keeping = {"hoodie.write.missing.columns": "keep"}
    slow = begun(there, rows("a", ts=2).drop_columns(["note"]), options=keeping)
    begun(there, rows("a", ts=2, note="quick")).publish()
    with pytest.raises(WriteConflict):
        slow.publish()
    slow.fail()
    assert notes(there) == {"a": "quick"}


def test_rows_of_merges_and_updates_are_made_of_stored_ones():
    write = begun(table(), rows("a")).write
    assert write.unseeing
    assert not as_merge(write).unseeing
    assert not as_update(write).unseeing


def test_two_writes_in_steps_add_to_one_file_group_too(tmp_path):
    table(storage=LocalStorage(tmp_path))
    options = {**TABLE, "hoodie.auto.commit": "false"}
    one, other = (HoodieWriteClient(str(tmp_path), options) for _ in range(2))
    first, second = one.start_commit(), other.start_commit()
    late, early = one.upsert(rows("a", note="one"), first), other.upsert(rows("b", note="other"), second)
    other.commit(second, early)
    one.commit(first, late)
    assert notes(ArrowTable(LocalStorage(tmp_path))) == {"a": "one", "b": "other"}


def test_a_bucket_that_a_writer_of_another_mode_makes_at_the_same_time_is_a_conflict():
    there = table()
    slow = begun(there, rows("a", note="slow"))
    begun(there, rows("b", note="quick"), options={MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}).publish()
    with pytest.raises(WriteConflict):
        slow.publish()
    slow.fail()
    assert notes(there) == {"b": "quick"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}, "it is Copy-on-Write"),
        ({"hoodie.write.table.version": "6"}, "it has version 6, whose log files"),
        ({"hoodie.index.type": "SIMPLE"}, "its index is SIMPLE"),
        ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "engine=CONSISTENT_HASHING"),
    ],
)
def test_the_mode_is_refused_where_writers_would_be_in_each_others_way(options: dict[str, str], why: str):
    there = ArrowTable.create(table().storage.__class__(), {**table().options, **options})
    with pytest.raises(InvalidOption, match=f"NON_BLOCKING_CONCURRENCY_CONTROL is for .*{why}.*OPTIMISTIC"):
        there.upsert(rows("a"))
    assert there.state().timeline.instants == ()


def test_a_table_that_was_upgraded_takes_writers_of_the_mode():
    there = table(6, {MODE: "SINGLE_WRITER", "hoodie.write.lock.provider": ""})
    there.upsert(rows("a", "b"))
    upgrade(there.storage, Settings.of(there.options), 9)
    several = ArrowTable(there.storage, table().options)
    slow, quick = begun(several, rows("a", ts=2, note="slow")), begun(several, rows("b", ts=2, note="quick"))
    quick.publish()
    slow.publish()
    assert notes(several) == {"a": "slow", "b": "quick"}
    assert all(i.state is State.COMPLETED for i in several.state().timeline.commits)
