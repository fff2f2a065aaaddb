"""An index of a user's own comes from the options of a write, its answers are checked; others are chosen by rule."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

from hoodie.config.options import Options
from hoodie.errors import (
    HoodieError,
    IndexOutOfDate,
    InvalidInput,
    InvalidOption,
    ServiceFailed,
    TableMismatch,
    UnsupportedTable,
)
from hoodie.index.bucket import bucket_of
from hoodie.lookup.index_choice import Named, choose_index, named_index
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support import own_indexes
from support.own_indexes import Diary
from support.trips import table_options

OPTIONS = {
    **table_options("trips", "id,line", partition="city", ordering="ts"),
    "hoodie.spark.driver.threads": "1",
}
ROWS = pa.table({"id": ["a", "b"], "line": [1, 2], "city": ["oslo", "bern"], "ts": [1, 1]})
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}


def made(**options: str) -> ArrowTable:
    return ArrowTable.create(MemoryStorage(), {**OPTIONS, **options})


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ("support.own_indexes:too_many", "partitions has 3 rows for 1 keys, too many"),
        ("support.own_indexes:too_few", "partitions has 0 rows for 1 keys, too few"),
        ("support.own_indexes:no_index", r"made str, expected a hoodie\.index\.contract\.Index"),
        ("support.own_indexes:not_callable", "is str, expected a function"),
        ("support.own_indexes:not_there", "cannot be imported"),
        ("no_such_module:make", "cannot be imported"),
        ("own_indexes", "expected an import path such as"),
        ("org.apache.hudi.index.simple.HoodieSimpleIndex", "name the index by its type"),
    ],
)
def test_an_index_that_does_not_keep_the_contract_is_refused(index: str, problem: str) -> None:
    table = made()
    table.upsert(ROWS)
    before = table.snapshot()
    with pytest.raises(HoodieError, match=problem) as raised:
        table.upsert(ROWS.slice(0, 1), options={"hoodie.index.class": index})
    assert isinstance(raised.value, (InvalidInput, InvalidOption))
    assert table.snapshot().equals(before)


def test_an_index_is_never_loaded_because_a_table_asks_for_it() -> None:
    table = made(**{"hoodie.index.class": "support.own_indexes:exact"})
    assert "own_indexes" not in table.storage.read(".hoodie/hoodie.properties").decode()
    assert chosen(ArrowTable(table.storage), {}) == ("SIMPLE", "the default")


def test_hudis_class_of_the_hbase_index_names_it() -> None:
    """For writes, for rollbacks and for `hoodie index rebuild`."""
    options = {"hoodie.index.class": "org.apache.hudi.index.hbase.SparkHoodieHBaseIndex"}
    assert named_index(made().state(), Settings.of(options)) == Named("HBASE", "hoodie.index.class names it")


def chosen(table: ArrowTable, options: Mapping[str, str]) -> tuple[str, str]:
    found = choose_index(table.state(), Settings.read(Options(options)))
    return found.index.name, found.why


def test_an_index_that_is_not_named_is_the_tables_own() -> None:
    assert chosen(made(), {}) == ("SIMPLE", "the default")
    assert chosen(made(), {"hoodie.index.type": "BLOOM"}) == ("BLOOM", "hoodie.index.type names it")
    recorded = made(**{"hoodie.index.type": "GLOBAL_BLOOM"})
    assert chosen(recorded, {}) == ("GLOBAL_BLOOM", "the table was created with it")
    assert chosen(recorded, {"hoodie.index.type": "SIMPLE"})[0] == "SIMPLE"
    of_buckets = made()
    of_buckets.upsert(ROWS, options=BUCKET)
    assert chosen(of_buckets, {"hoodie.bucket.index.num.buckets": "4"}) == (
        "BUCKET",
        "the table's files are those of buckets",
    )


def test_a_table_that_was_created_for_buckets_keeps_their_number() -> None:
    table = made(**BUCKET)
    later = ArrowTable(table.storage)
    later.upsert(ROWS)
    assert {bucket_of(slice_.group.file_id) is not None for slice_ in later.slices()} == {True}
    with pytest.raises(TableMismatch, match=r"num\.buckets=8: trips has 4 buckets for good"):
        later.upsert(ROWS, options={"hoodie.bucket.index.num.buckets": "8"})
    with pytest.raises(TableMismatch, match=r"hash\.field=line: trips has id,line, which cannot change"):
        later.upsert(ROWS, options={"hoodie.bucket.index.hash.field": "line"})
    with pytest.raises(UnsupportedTable, match="are those of a bucket index"):
        later.upsert(ROWS, options={"hoodie.index.type": "BLOOM"})


def test_a_hash_field_outside_the_record_key_is_refused_when_the_table_is_made() -> None:
    with pytest.raises(InvalidOption, match=r"city is not in the record key of trips, which is id, line"):
        made(**BUCKET, **{"hoodie.bucket.index.hash.field": "city"})


def test_rows_are_dealt_out_by_the_hash_fields() -> None:
    table = made(**BUCKET, **{"hoodie.bucket.index.hash.field": "line"})
    rows = pa.table({"id": list("abcdef"), "line": [7] * 6, "city": ["oslo"] * 6, "ts": [1] * 6})
    table.upsert(rows)
    assert len(table.slices()) == 1
    assert table.upsert(rows).updated == 6


def test_two_file_groups_of_one_bucket_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(**BUCKET)
    table.upsert(ROWS)
    monkeypatch.setattr("hoodie.index.bucket._by_bucket", lambda *_: {})  # as a writer that does not look
    table.upsert(ROWS)
    monkeypatch.undo()
    with pytest.raises(UnsupportedTable, match="has two file groups"):
        table.upsert(ROWS)


def test_the_other_engine_is_refused_by_what_it_keeps() -> None:
    table = made(**BUCKET)
    table.storage.create_new(".hoodie/.bucket_index/consistent_hashing_metadata/oslo/0.hashing_meta", b"{}")
    with pytest.raises(UnsupportedTable, match="CONSISTENT_HASHING"):
        table.upsert(ROWS)


# --- what an index hears ---

DIARY = {"hoodie.index.class": "support.own_indexes:diary"}


@pytest.fixture
def diary() -> Iterator[Diary]:
    """The index's own, blank; the table's tasks run one by one."""
    yield own_indexes.diary
    own_indexes.diary.heard.clear()
    own_indexes.diary.fails.clear()


def left_pending(table: ArrowTable) -> str:
    """The instant of a write that died before it was published."""
    table.fail_next(3, Dying.BEFORE)
    with pytest.raises(Crash):
        table.upsert(ROWS)
    return table.state().timeline.pending()[-1].requested


def test_an_index_hears_of_each_step_of_a_write(diary: Diary) -> None:
    at = made().upsert(ROWS, options=DIARY).instant
    assert diary.heard == [("learn", at), ("learn", at), ("settle", at)]


def test_an_index_hears_of_a_write_that_failed(diary: Diary) -> None:
    table = made()
    diary.fails = {"learn"}
    with pytest.raises(LookupError, match="learn is too much"):
        table.upsert(ROWS, options=DIARY)
    (_, at), *_ = diary.heard
    assert diary.heard[-1] == ("rolled back", at)
    assert not table.state().timeline.commits


def test_a_write_whose_index_cannot_catch_up_leaves_nothing_pending(diary: Diary) -> None:
    table = made()
    diary.fails = {"catch up"}
    several = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }
    with pytest.raises(LookupError, match="catch up is too much"):
        table.upsert(ROWS, options={**DIARY, **several})
    assert not table.state().timeline.pending()
    assert not table.storage.list(".hoodie/.heartbeat")
    diary.fails.clear()
    table.upsert(ROWS, options={**DIARY, **several})
    assert table.snapshot().num_rows == 2


def test_an_index_hears_of_a_write_that_the_next_one_rolled_back(diary: Diary) -> None:
    table = made()
    dead = left_pending(table)
    now = table.upsert(ROWS, options=DIARY).instant
    assert diary.heard[0] == ("rolled back", dead)
    assert diary.heard[-1] == ("settle", now)


def test_an_index_hears_of_a_rollback_and_a_restore_newest_first(diary: Diary) -> None:
    table = made()
    kept, second, third, last = (table.upsert(ROWS).instant for _ in range(4))
    rollback(table.storage, Settings.of(DIARY), last)
    assert diary.heard == [("rolled back", last)]
    dead = left_pending(table)
    rollback(table.storage, Settings.of(DIARY), dead)
    assert diary.heard[1:] == [("rolled back", dead)]
    make_savepoint(table.storage, Settings.of({}), kept)
    restore(table.storage, Settings.of(DIARY), kept)
    assert diary.heard[2:] == [("rolled back", third), ("rolled back", second)]


def test_a_rollback_stands_though_the_index_does_not_take_it(diary: Diary) -> None:
    table = made()
    at = table.upsert(ROWS).instant
    diary.fails = {"rolled back"}
    with pytest.warns(IndexOutOfDate, match="rolled back is too much"):
        rollback(table.storage, Settings.of(DIARY), at)
    assert table.snapshot().num_rows == 0
    dead = left_pending(table)
    with pytest.warns(IndexOutOfDate, match=dead):
        table.upsert(ROWS, options=DIARY)
    assert table.snapshot().num_rows == 2


def test_a_commit_stands_though_the_index_does_not_take_it(diary: Diary) -> None:
    table = made()
    diary.fails = {"settle"}
    with pytest.warns(ServiceFailed, match="settle is too much"):
        table.upsert(ROWS, options=DIARY)
    assert table.snapshot().num_rows == 2


def test_a_rollback_with_an_index_that_is_not_there_changes_nothing() -> None:
    table = made()
    table.upsert(ROWS)
    before = dict(table.storage.snapshot())
    with pytest.raises(InvalidOption, match="cannot be imported"):
        rollback(table.storage, Settings.of({"hoodie.index.class": "support.own_indexes:not_there"}))
    assert table.storage.snapshot() == before
