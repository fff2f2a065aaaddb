"""Histories of a table whose index is in HBase, against a dict of rows: writes, writers that die, rollbacks."""

from __future__ import annotations

import itertools
import warnings
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import DamagedLog, InvalidInput, InvalidPlan
from hoodie.table.rollback_commit import rollback
from hoodie.testing.storage import Crash, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable, StorageError

KEYS, CITIES = "abcd", "xyz"
ROWS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(CITIES), min_size=1)
FAULTS = st.none() | st.tuples(st.integers(0, 25), st.sampled_from([None, Dying.BEFORE, Dying.AFTER]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), ROWS, FAULTS),
        st.tuples(st.just("upsert"), ROWS, st.none()),
        st.tuples(st.just("delete"), ROWS, FAULTS),
        st.tuples(st.just("overwrite"), st.sampled_from(CITIES), st.sets(st.sampled_from(KEYS), min_size=1)),
        st.tuples(st.just("drop"), st.sampled_from(CITIES), st.none()),
        st.tuples(st.just("rollback"), st.none(), st.none()),
    ),
    min_size=2,
    max_size=7,
)
numbers = itertools.count()

State = dict[str, tuple[str, int]]  # key -> partition, version


def table_of(rows: State) -> pa.Table:
    cities, versions = zip(*rows.values(), strict=True)
    return pa.table({"id": list(rows), "city": cities, "v": pa.array(versions, pa.int64()), "ts": versions})


@pytest.fixture(scope="module")
def index_table(hbase) -> str:
    return hbase.create_table()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@settings(max_examples=20)
@given(steps=STEPS)
def test_a_table_holds_what_a_dict_of_rows_does(hbase, index_table, table_type, steps):
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.hbase.index.update.partition.path": "true",
        **hbase.options(index_table),
    }
    table = ArrowTable.create(MemoryStorage(), options)
    example = next(numbers)  # all examples share one index
    state: State = {}
    before: list[State] = []
    for version, (kind, what, more) in enumerate(steps, 1):
        after = dict(state)
        if kind in ("upsert", "delete"):
            rows = {f"{example}-{key}": (city, version) for key, city in what.items()}
            for key, row in rows.items():
                if kind == "upsert":
                    after[key] = row
                else:
                    after.pop(key, None)
            if more:
                table.fail_next(*more)
            act = table.upsert if kind == "upsert" else table.delete
            given_rows = table_of(rows) if kind == "upsert" else table_of(rows).select(["id", "city"])
            with warnings.catch_warnings(), suppress(Crash, StorageError):
                warnings.simplefilter("ignore", DamagedLog)
                act(given_rows)
        elif kind == "overwrite":
            keys = {f"{example}-{key}" for key in more}
            keys -= {key for key, (city, _) in state.items() if city != what}  # nothing looks them up
            if not keys:
                continue
            after = {key: row for key, row in state.items() if row[0] != what}
            after |= dict.fromkeys(sorted(keys), (what, version))
            table.insert_overwrite(table_of({key: after[key] for key in sorted(keys)}))
        elif kind == "drop":
            if all(slice_.group.partition != what for slice_ in table.slices()):
                continue
            after = {key: row for key, row in state.items() if row[0] != what}
            table.delete_partitions([what])
        elif kind == "rollback" and before:
            try:
                rollback(table.storage, options)
            except (InvalidInput, InvalidPlan):
                continue
            after = before.pop()
            state = after
        found = {row["id"]: (row["_hoodie_partition_path"], row["v"]) for row in table.snapshot().to_pylist()}
        assert len(found) == len(table.snapshot()), "a key occurs twice"
        assert found in (state, after)
        if kind != "rollback" and len(table.state().timeline.commits) > len(before):
            before.append(state)
        state = found
