"""Histories of tables of each index against a dict of rows: writes, writers that die, compactions, rollbacks."""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.config.options import Options
from hoodie.errors import DamagedLog, InvalidInput, InvalidPlan, WriteConflict
from hoodie.model.instant import Action
from hoodie.recovery.rollback import rollback
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, Dying, MemoryStorage
from hoodie.testing.tables import REFUSED, ArrowTable
from support.index_entries import INDEXES, Entry
from support.nightly import by_day, scaled
from support.trips import TRIPS

KEYS, CITIES = "abcd", "xyz"
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}
ROWS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(CITIES), min_size=1)
FAULTS = st.none() | st.tuples(st.integers(0, 25), st.sampled_from([None, Dying.BEFORE, Dying.AFTER]))
NOTHING = st.none()
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), ROWS, FAULTS),
        st.tuples(st.just("upsert"), ROWS, NOTHING),
        st.tuples(st.just("delete"), ROWS, FAULTS),
        st.tuples(st.just("overwrite"), st.sampled_from(CITIES), st.sets(st.sampled_from(KEYS), min_size=1)),
        st.tuples(st.just("drop"), st.sampled_from(CITIES), NOTHING),
        st.tuples(st.sampled_from(["rollback", "plan", "compact"]), NOTHING, NOTHING),
    ),
    min_size=2,
    max_size=7,
)
numbers = itertools.count()

Identity = tuple[str, str]  # partition, "" with a global index; key
State = dict[Identity, tuple[str, int]]  # -> partition, version


#: By day both types for what keeps entries of its own or finds keys in logs; the others share their look-up.
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
BOTH = ("BUCKET", "HBASE", "RECORD_INDEX")
ONCE = {("BLOOM", TYPES[0]), ("SIMPLE", TYPES[1]), ("GLOBAL_BLOOM", TYPES[1]), ("own, global", TYPES[0])}
CASES = by_day(itertools.product(INDEXES, TYPES), lambda case: case[0].name in BOTH or (case[0].name, case[1]) in ONCE)


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest) -> Iterator[tuple[Entry, Mapping[str, str]]]:
    """An index and the options that choose it. All tables of the module share what it keeps outside of them."""
    index: Entry = request.param
    with index.service() as more:
        yield index, {**index.options, **more}


def table_of(rows: State) -> pa.Table:
    cities, versions = zip(*rows.values(), strict=True)
    keys = [key for _, key in rows]
    return pa.table({"id": keys, "city": cities, "v": pa.array(versions, pa.int64()), "ts": versions})


def seen(table: ArrowTable, is_global: bool) -> State:
    rows = table.snapshot().to_pylist()
    found = {("" if is_global else row["city"], row["id"]): (row["_hoodie_partition_path"], row["v"]) for row in rows}
    assert len(found) == len(rows), "a key occurs twice"
    return found


@pytest.mark.parametrize(
    ("subject", "table_type"), CASES, indirect=["subject"], ids=lambda value: getattr(value, "name", value)
)
@settings(max_examples=scaled(4, 15))
@given(steps=STEPS, format=st.sampled_from(["6", "8", "9"]))
def test_a_table_holds_what_a_dict_of_rows_does(
    subject: tuple[Entry, Mapping[str, str]], table_type: str, steps: list[tuple[str, object, object]], format: str
) -> None:
    index, chosen = subject
    options = {**TRIPS, **chosen, "hoodie.datasource.write.table.type": table_type}
    table = ArrowTable.create(MemoryStorage(), {**options, "hoodie.write.table.version": format})
    history = History(table, options, index.is_global)
    for version, (kind, what, more) in enumerate(steps, 1):
        getattr(history, kind)(version, what, more)


class History:
    """A table and the rows that it should hold, step by step."""

    def __init__(self, table: ArrowTable, options: Mapping[str, str], is_global: bool) -> None:
        self.table, self.options, self.is_global = table, Options(options), is_global
        self.example = next(numbers)  # keys of no other example: an index may be shared
        self.state: State = {}
        self.before: dict[str, State] = {}  # by instant of each write

    def rows(self, what: Mapping[str, str], version: int) -> State:
        return {
            ("" if self.is_global else city, f"{self.example}-{key}"): (city, version) for key, city in what.items()
        }

    def upsert(self, version: int, what: Mapping[str, str], fault: tuple[int, Dying | None] | None) -> None:
        rows = self.rows(what, version)
        self.try_to("upsert", table_of(rows), {**self.state, **rows}, fault)

    def delete(self, version: int, what: Mapping[str, str], fault: tuple[int, Dying | None] | None) -> None:
        rows = self.rows(what, version)
        left = {key: row for key, row in self.state.items() if key not in rows}
        self.try_to("delete", table_of(rows).select(["id", "city"]), left, fault)

    def try_to(self, act: str, rows: pa.Table, after: State, fault: tuple[int, Dying | None] | None) -> None:
        if fault:
            self.table.fail_next(*fault)
        with warnings.catch_warnings(), suppress(Crash, *REFUSED):
            warnings.simplefilter("ignore", DamagedLog)
            getattr(self.table, act)(rows)
        self.holds_one_of(self.state, after)

    def overwrite(self, version: int, city: str, keys: set[str]) -> None:
        rows = self.rows(dict.fromkeys(sorted(keys), city), version)
        left = {key: row for key, row in self.state.items() if row[0] != city}
        rows = {key: row for key, row in rows.items() if key not in left}  # nothing looks them up
        if rows:
            self.table.insert_overwrite(table_of(rows))
            self.holds_one_of({**left, **rows})

    def drop(self, version: int, city: str, _: None) -> None:
        if any(slice_.group.partition == city for slice_ in self.table.slices()):
            self.table.delete_partitions([city])
            self.holds_one_of({key: row for key, row in self.state.items() if row[0] != city})

    def plan(self, *_: object) -> None:
        if self.table.state().config.merge_on_read:
            with suppress(InvalidPlan, WriteConflict):  # a dead writer is in the way
                schedule_compaction(self.table.storage, Settings.of({**self.options, **NOW}))
            self.holds_one_of(self.state)

    def compact(self, *_: object) -> None:
        for planned in self.table.state().timeline.pending_compactions:
            compact(self.table.storage, Settings.read(self.options), planned.requested)
            self.holds_one_of(self.state)

    def rollback(self, *_: object) -> None:
        commits = self.commits()
        if not commits:
            return
        with suppress(InvalidInput, InvalidPlan):
            rollback(self.table.storage, Settings.read(self.options))
            for gone in commits - self.commits():  # none: a rollback that died was finished
                self.state = self.before.pop(gone, self.state)  # a compaction changes no row
        assert seen(self.table, self.is_global) == self.state

    def commits(self) -> set[str]:
        return {instant.requested for instant in self.table.state().timeline.commits}

    def holds_one_of(self, *states: State) -> None:
        found = seen(self.table, self.is_global)
        assert found in states
        compactions = {instant.requested for instant in self.table.state().timeline.completed({Action.COMMIT})}
        merges = compactions if self.table.state().config.merge_on_read else set()
        for instant in self.commits() - self.before.keys() - merges:
            self.before[instant] = self.state
        self.state = found
