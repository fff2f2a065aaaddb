"""What every index keeps: a key is found where it is, after each kind of write, and a failed one leaves no trace. It
needs pytest.

An index of your own is put to it by a class in your tests:

    from hoodie.testing.index_suite import Entry, IndexSuite

    class TestMyIndex(IndexSuite):
        @pytest.fixture
        def index(self):
            return Entry("mine", {"hoodie.index.class": "my_indexes:make"}, is_global=True)

Call `pytest.register_assert_rewrite("hoodie.testing.index_suite")` in your conftest.py to see values in failures.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from hoodie.errors import DamagedLog
from hoodie.recovery.rollback import rollback
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, Dying, MemoryStorage
from hoodie.testing.tables import REFUSED, ArrowTable
from hoodie.writing.result import WriteResult

_OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.spark.driver.threads": "1",
}
ROLLED_BACK_IN_HBASE = {"hoodie.index.hbase.rollback.sync": "true"}
_Row = tuple[str, int, str]  # city, ts, note
#: A writer that died in its own compaction holds the claim on it for a minute.
BY_HAND = {"hoodie.compact.inline": "false"}
_Rows = Mapping[str, _Row]
FIRST: _Rows = {"a": ("oslo", 1, "a1"), "b": ("oslo", 1, "b1"), "c": ("bern", 1, "c1"), "d:4": ("bern", 1, "d1")}


@dataclass(frozen=True)
class Entry:
    """An index, and how a table gets it.

    options    that choose it
    is_global  a key is in one partition of the table
    service    what has to run beside the table, giving further options
    """

    name: str
    options: Mapping[str, str]
    is_global: bool = False
    service: Callable[[], AbstractContextManager[Mapping[str, str]]] = field(default=lambda: nullcontext({}))


@dataclass(frozen=True)
class Subject:
    """A table with the index, and what it must hold."""

    index: Entry
    table: ArrowTable
    storage: Storage

    def upsert(self, rows: _Rows, **options: str) -> WriteResult:
        return self.table.upsert(batch(rows), options=options)

    def holds(self, rows: _Rows) -> None:
        snapshot = self.table.snapshot()
        stored_rows = {
            (row["id"], row["_hoodie_partition_path"]): (row["city"], row["ts"], row["note"])
            for row in snapshot.to_pylist()
        }
        assert len(stored_rows) == snapshot.num_rows, "a key occurs twice in a partition"
        assert stored_rows == {(key, row[0]): row for key, row in rows.items()}


class IndexSuite:
    """Subclass it under a name that pytest collects, and give it the fixture `index`, an `Entry`."""

    @pytest.fixture
    def index(self) -> Entry:
        raise NotImplementedError("a fixture `index` that gives an Entry")

    @pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
    def table_type(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    def subject(self, index: Entry, table_type: str) -> Iterator[Subject]:
        storage = MemoryStorage()
        with index.service() as more:
            options = {**_OPTIONS, "hoodie.datasource.write.table.type": table_type, **index.options, **more}
            yield Subject(index, ArrowTable.create(storage, options), storage)

    def test_keys_are_found_after_an_insert_by_upsert(self, subject: Subject) -> None:
        assert counts(subject.upsert(FIRST)) == (4, 0, 0)
        subject.holds(FIRST)
        changed = {key: (row[0], 2, row[2] + "+") for key, row in FIRST.items()}
        result = subject.upsert({**changed, "e": ("bern", 2, "e1")})
        subject.holds({**changed, "e": ("bern", 2, "e1")})
        assert result.inserted + result.updated == 5
        assert result.index.hits >= 4
        assert result.index.candidates >= 5
        assert result.index.seconds > 0
        groups = {slice_.group for slice_ in subject.table.slices()}
        subject.upsert(changed)
        assert {slice_.group for slice_ in subject.table.slices()} == groups

    @pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
    def test_keys_are_found_after_a_write_that_looked_none_up(self, subject: Subject, operation: str) -> None:
        getattr(subject.table, operation)(batch(FIRST))
        changed = {key: (row[0], 2, row[2] + "+") for key, row in FIRST.items()}
        subject.upsert(changed)
        subject.holds(changed)

    def test_a_deleted_key_is_new_again(self, subject: Subject) -> None:
        subject.upsert(FIRST)
        result = subject.table.delete(batch({"a": FIRST["a"], "x": ("oslo", 0, "")}).select(["id", "city"]))
        assert result.deleted >= 1
        remaining_rows = {key: row for key, row in FIRST.items() if key != "a"}
        subject.holds(remaining_rows)
        subject.upsert({"a": ("oslo", 5, "again")})
        subject.holds({**remaining_rows, "a": ("oslo", 5, "again")})

    def test_the_delete_of_keys_that_are_nowhere_changes_nothing(self, subject: Subject) -> None:
        subject.table.delete(batch(FIRST).select(["id", "city"]))
        subject.upsert(FIRST)
        subject.table.delete(batch({"x": ("oslo", 0, ""), "y": ("kyiv", 0, "")}).select(["id", "city"]))
        subject.holds(FIRST)

    def test_keys_of_an_overwritten_partition_are_new_again(self, subject: Subject) -> None:
        subject.upsert(FIRST)
        subject.table.insert_overwrite(batch({"n": ("oslo", 1, "n1")}))
        remaining_rows = {"n": ("oslo", 1, "n1"), "c": FIRST["c"], "d:4": FIRST["d:4"]}
        subject.holds(remaining_rows)
        subject.upsert({"a": ("oslo", 2, "a2"), "n": ("oslo", 2, "n2")})
        subject.holds({**remaining_rows, "a": ("oslo", 2, "a2"), "n": ("oslo", 2, "n2")})
        subject.table.delete_partitions(["bern"])
        subject.upsert({"c": ("bern", 3, "c3")})
        subject.holds({"a": ("oslo", 2, "a2"), "n": ("oslo", 2, "n2"), "c": ("bern", 3, "c3")})

    def test_a_key_that_comes_with_another_partition(self, subject: Subject) -> None:
        subject.upsert(FIRST)
        result = subject.upsert({"a": ("bern", 2, "a2"), "b": ("kyiv", 2, "b2")})
        moved = {("a", "bern"): ("bern", 2, "a2"), ("b", "kyiv"): ("kyiv", 2, "b2")}
        old = {("a", "oslo"): FIRST["a"], ("b", "oslo"): FIRST["b"]}
        same = {("c", "bern"): FIRST["c"], ("d:4", "bern"): FIRST["d:4"]}
        stored_rows = {
            (r["id"], r["_hoodie_partition_path"]): (r["city"], r["ts"], r["note"])
            for r in subject.table.snapshot().to_pylist()
        }
        assert stored_rows == {**moved, **same, **({} if subject.index.is_global else old)}
        if subject.index.is_global:
            assert counts(result) == (2, 0, 2)
            subject.upsert({"a": ("oslo", 3, "back"), "b": ("kyiv", 3, "stays")})  # back to where it was deleted
            subject.holds({**FIRST, "a": ("oslo", 3, "back"), "b": ("kyiv", 3, "stays")})
            subject.table.delete(batch({"a": ("?", 0, "")}).select(["id"]))
            subject.upsert({"a": ("bern", 4, "new")})
            subject.holds({**FIRST, "a": ("bern", 4, "new"), "b": ("kyiv", 3, "stays")})

    def test_keys_are_found_while_a_compaction_is_pending_and_after_it(self, subject: Subject, table_type: str) -> None:
        subject.upsert(FIRST)
        two = {"a": ("oslo", 2, "a2"), "e": ("oslo", 2, "e2")}
        subject.upsert(two)
        subject.table.delete(batch({"c": FIRST["c"]}).select(["id", "city"]))
        expected = {**FIRST, **two}
        del expected["c"]
        if table_type == "MERGE_ON_READ":
            instant = schedule_compaction(
                subject.storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"})
            )
            assert instant is not None
            during = {"a": ("oslo", 3, "a3"), "c": ("bern", 3, "c3"), "f": ("oslo", 3, "f3")}
            subject.upsert(during)
            expected |= during
            subject.holds(expected)
            compact(subject.storage, Settings.of({}), instant)
            subject.holds(expected)
        after = {key: (row[0], 9, "after") for key, row in expected.items()}
        subject.upsert(after)
        subject.holds(after)

    @pytest.mark.parametrize(
        "dying", [Dying.AFTER, Dying.TORN, None], ids=lambda dying: dying.name if dying else "refused"
    )
    def test_a_write_that_fails_anywhere_leaves_keys_to_be_found(self, subject: Subject, dying: Dying | None) -> None:
        subject.upsert(FIRST)
        expected = dict(FIRST)
        city = "bern" if subject.index.is_global else "oslo"
        for calls in (2, 7, 11, 14, 17, 20):
            change = {"a": (city, 1000 * calls, f"w{calls}"), f"n{calls}": ("oslo", calls, "new")}
            subject.table.fail_next(calls, dying)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DamagedLog)
                try:
                    subject.upsert(change, **BY_HAND)
                except (Crash, *REFUSED):
                    stored_rows = {row["id"]: row for row in subject.table.snapshot().to_pylist()}
                    assert (f"n{calls}" in stored_rows) == (stored_rows["a"]["note"] == f"w{calls}"), (
                        "half of a write is seen"
                    )
                    if f"n{calls}" in stored_rows:
                        expected |= change
                else:
                    expected |= change
                city = {"bern": "oslo", "oslo": "bern"}[city] if subject.index.is_global else city
                again = {key: (row[0], 1000 * calls + 1, "again") for key, row in expected.items()}
                subject.upsert(again, **BY_HAND)
            expected = again
            subject.holds(expected)

    def test_a_failed_write_that_moved_or_deleted_keys_has_done_neither(self, subject: Subject) -> None:
        subject.upsert(FIRST)
        for calls in range(0, 16, 3):
            subject.table.fail_next(calls, None)
            try:
                subject.table.delete(batch({"a": FIRST["a"]}).select(["id", "city"]))
            except REFUSED:
                subject.upsert(FIRST)
                subject.holds(FIRST)
            else:
                return

    def test_keys_are_found_where_a_rollback_by_call_leaves_them(self, subject: Subject) -> None:
        options = {**subject.table.options, **ROLLED_BACK_IN_HBASE}
        first = subject.upsert(FIRST).instant
        city = "bern" if subject.index.is_global else "oslo"
        writes: list[Callable[[], WriteResult]] = [
            lambda: subject.upsert({"a": ("oslo", 2, "a2"), "n": ("oslo", 2, "n2")}),
            lambda: subject.table.delete(batch({"b": FIRST["b"]}).select(["id", "city"])),
            lambda: subject.upsert({"a": (city, 3, "moved"), "b": ("oslo", 3, "b3")}),
        ]
        for write in writes:
            rollback(subject.storage, Settings.of(options), write().instant)
            subject.holds(FIRST)
            again = {key: (row[0], 9, "again") for key, row in FIRST.items()}
            rollback(subject.storage, Settings.of(options), subject.upsert({**again, "n": ("oslo", 9, "n9")}).instant)
        rollback(subject.storage, Settings.of(options), first)
        subject.holds({})
        assert subject.upsert(FIRST).inserted == 4
        subject.holds(FIRST)


def batch(rows: _Rows) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(list(rows), pa.string()),
            "city": pa.array([row[0] for row in rows.values()], pa.string()),
            "ts": pa.array([row[1] for row in rows.values()], pa.int64()),
            "note": pa.array([row[2] for row in rows.values()], pa.string()),
        }
    )


def counts(result: WriteResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted
