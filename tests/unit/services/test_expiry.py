"""Expiry of partitions: which go, by call and after a commit, whatever dies or writes in between."""

from functools import partial

import pytest

from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidOption, ServiceFailed, WriteConflict
from hoodie.model.commit import Operation
from hoodie.model.instant import Action
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.expiry import expire_partitions
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.instants import aged
from support.meanwhile import Meanwhile, calls_of
from support.nightly import each_call
from support.trips import TRIPS, WRITES, rows

DAYS = "hoodie.partition.ttl.strategy.days.retain"
INLINE = {"hoodie.partition.ttl.inline": "true", DAYS: "30"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def made(storage: Storage, **options: str) -> ArrowTable:
    given = {key.replace("__", "."): value for key, value in options.items()}
    return ArrowTable.create(storage, {**TRIPS, **WRITES, **QUIET, **given})


def two_cities(**options: str) -> MemoryStorage:
    """Oslo was written to 40 days ago, Rome now."""
    storage = MemoryStorage()
    table = made(storage, **options)
    old = table.upsert(rows("a", "b", city="oslo")).instant
    table.upsert(rows("c", city="rome"))
    return aged(storage, [old], 40)


def cities(storage: Storage) -> set[str]:
    return set(ArrowTable(storage).snapshot().column("city").to_pylist())


def expire(storage: Storage, days: int = 30, **options: str) -> tuple[str, ...]:
    given = {key.replace("__", "."): value for key, value in options.items()}
    return expire_partitions(storage, Settings.of({**WRITES, **given, DAYS: str(days)})).partitions


def test_partitions_that_nobody_wrote_to_for_so_long_go_by_one_replace_commit() -> None:
    storage = two_cities()
    done = expire_partitions(storage, Settings.of({DAYS: "30"}))
    assert done.partitions == ("oslo",)
    assert cities(storage) == {"rome"}
    state = load_state(storage)
    assert state.timeline.commits[-1].requested == done.instant
    assert state.timeline.commits[-1].action is Action.REPLACE_COMMIT
    assert next(state.commits()).operation is Operation.DELETE_PARTITION
    assert set(next(state.commits()).replaced) == {"oslo"}
    assert expire(storage) == ()  # there is nothing to do any more, and no commit
    assert len(load_state(storage).timeline.commits) == 3
    assert expire(two_cities(), days=50) == ()


def test_a_dry_run_says_which_and_changes_nothing() -> None:
    storage = two_cities()
    before = storage.snapshot()
    done = expire_partitions(storage, Settings.of({DAYS: "30"}), dry_run=True)
    assert (done.partitions, done.instant) == (("oslo",), "")
    assert "would delete 1 partitions" in str(done)
    assert storage.snapshot() == before


def test_without_days_the_call_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"days\.retain is not set"):
        expire_partitions(two_cities(), Settings.of({}))
    with pytest.raises(InvalidOption, match="expected days, such as 30"):
        expire_partitions(two_cities(), Settings.of({DAYS: "0"}))


def test_an_update_in_a_log_keeps_a_partition() -> None:
    """Hudi goes by base files alone, and deletes rows that were updated today."""
    storage = MemoryStorage()
    table = made(storage, **MOR)
    first = table.upsert(rows("a", city="oslo")).instant
    table.upsert(rows("a", city="oslo", ts=2))
    storage = aged(storage, [first], 40)
    assert expire(storage) == ()
    # Also when the commit is archived, and only the log itself tells.
    more = made(storage, **{**MOR, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **QUIET})
    later = [more.upsert(rows("c", city="rome", ts=ts)).instant for ts in range(1, 6)]
    more.archive(
        {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    )
    assert load_state(storage).timeline.first_commit >= later[0]
    assert expire(storage) == ()
    assert cities(storage) == {"oslo", "rome"}


def test_a_plan_to_compact_keeps_no_partition_and_brings_none_back() -> None:
    storage = MemoryStorage()
    table = made(storage, **MOR)
    old = [table.upsert(rows("a", "b", city="oslo", ts=ts)).instant for ts in (1, 2)]
    table.upsert(rows("c", city="rome"))
    storage = aged(storage, old, 40)
    planned = schedule_compaction(storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"}))
    assert planned is not None
    assert expire(storage) == ("oslo",)
    assert cities(storage) == {"rome"}
    compact(storage, Settings.of({}), planned)
    assert cities(storage) == {"rome"}
    ArrowTable(storage, {**WRITES, **QUIET}).upsert(rows("a", city="oslo", ts=3))
    assert sorted(ArrowTable(storage).snapshot().column("id").to_pylist()) == ["a", "c"]


def test_creation_times_are_those_of_the_metafiles() -> None:
    storage = MemoryStorage()
    table = made(storage)
    first = table.upsert(rows("a", city="oslo")).instant
    table.upsert(rows("a", city="oslo", ts=2))
    storage = aged(storage, [first], 40)
    assert expire(storage) == ()
    by_creation = "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"
    assert expire(storage, **{"hoodie.partition.ttl.strategy.class": by_creation}) == ("oslo",)
    with pytest.raises(InvalidOption, match="KeepByTimeStrategy or KeepByCreationTimeStrategy"):
        expire(storage, **{"hoodie.partition.ttl.strategy.class": "com.acme.Mine"})


def test_only_the_selected_partitions_expire_and_at_most_so_many() -> None:
    storage = MemoryStorage()
    table = made(storage)
    old = [table.upsert(rows(city, city=city)).instant for city in ("oslo", "rome", "bern")]
    storage = aged(storage, old, 40)
    selected = {"hoodie.partition.ttl.strategy.partition.selected": "bern, nowhere"}
    assert expire(storage, **selected) == ("bern",)
    assert expire(storage, **selected) == ()
    assert expire(storage, **{"hoodie.partition.ttl.strategy.max.delete.partitions": "1"}) == ("oslo",)
    assert cities(storage) == {"rome"}


def test_a_table_without_partitions_has_none_that_expire() -> None:
    storage = MemoryStorage()
    table = made(storage, **{"hoodie.datasource.write.partitionpath.field": ""})
    storage = aged(storage, [table.upsert(rows("a")).instant], 40)
    assert expire(storage) == ()


def test_after_a_commit_expired_partitions_go_if_the_options_say_so() -> None:
    storage = two_cities()
    ArrowTable(storage, {**WRITES, **QUIET}).upsert(rows("d", city="bern"))
    assert cities(storage) == {"oslo", "rome", "bern"}
    stream = {"hoodie.datasource.write.streaming.checkpoint.identifier": "s", "_note": "mine"}
    table = ArrowTable(storage, {**WRITES, **QUIET, **INLINE, **stream})
    table.upsert(rows("d", city="bern", ts=2), {"hoodie.datasource.write.streaming.batch.id": "1"})
    assert cities(storage) == {"rome", "bern"}
    assert "_note" not in next(load_state(storage).commits()).extra
    table = ArrowTable(storage, {**WRITES, **QUIET, **INLINE})
    table.upsert(rows("d", city="bern", ts=3), {"hoodie.table.services.enabled": "false"})
    assert len(load_state(storage).timeline.commits) == 6


def test_an_expiry_that_fails_leaves_the_write_as_it_is() -> None:
    storage = two_cities()
    table = ArrowTable(storage, {**WRITES, **QUIET, "hoodie.partition.ttl.inline": "true"})
    with pytest.warns(ServiceFailed, match=r"days\.retain is not set"):
        table.upsert(rows("d", city="bern"))
    assert cities(storage) == {"oslo", "rome", "bern"}


@pytest.mark.parametrize("operation", [WriteOperation.UPSERT, WriteOperation.INSERT])
def test_a_partition_that_another_writer_writes_to_meanwhile_stays(operation: WriteOperation) -> None:
    storage = two_cities()
    other = ArrowTable(storage, {**WRITES, **QUIET})
    write = partial(other.write, operation, rows("a", "x", city="oslo", ts=9))
    shared = Meanwhile(storage, calls_of("create_new", "replacecommit.requested"), write)
    with pytest.raises(WriteConflict):
        expire(shared)
    assert set(ArrowTable(storage).snapshot().column("id").to_pylist()) >= {"a", "b", "c", "x"}
    assert not load_state(storage).timeline.pending()


@pytest.mark.parametrize("dying", list(Dying))
def test_an_expiry_that_dies_anywhere_leaves_the_partitions_whole_or_gone(dying: Dying) -> None:
    for writes in each_call():
        storage = two_cities()
        try:
            expire(CrashAfter(storage, writes, dying))
        except Crash:
            assert cities(storage) in ({"oslo", "rome"}, {"rome"})
            assert expire(storage) in (("oslo",), ())
            assert cities(storage) == {"rome"}
            assert not load_state(storage).timeline.pending()
        else:
            assert writes > 3
            return
