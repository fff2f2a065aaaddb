"""Whole tables on real servers, without Spark: histories of writes beside a model, and several writers at once."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from hoodie.doctor.examine import Severity, examine
from hoodie.errors import DamagedLog
from hoodie.testing.strategies import histories, shapes
from hoodie.testing.tables import ArrowTable
from support.histories import History
from support.history_model import BY_ORDERING
from support.stores import Store
from support.writers import BY_STORAGE, TABLE, Worker, check_rows, rows_of, run_at_once

pytestmark = pytest.mark.stores

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
#: Files hold a handful of rows, so that some grow and others are closed.
SMALL = {
    "hoodie.parquet.max.file.size": 6_000,
    "hoodie.parquet.small.file.limit": 5_000,
    "hoodie.copyonwrite.record.size.estimate": 1_000,
    "hoodie.datasource.write.payload.class": BY_ORDERING,
}


@KINDS
def test_a_table_holds_what_a_dict_of_rows_does_after_each_write(store: Store, kind: str) -> None:
    steps_taken = []

    @seed(7)
    @settings(max_examples=3, database=None, phases=[Phase.generate], deadline=None)
    @given(st.data())
    def of_tables(data: st.DataObject) -> None:
        shape = data.draw(shapes(), label="shape")
        history = History(shape, {**SMALL, "hoodie.datasource.write.table.type": kind}, store.new())
        for step in data.draw(histories(shape, least=3, most=5), label="history"):
            history.take(step)
            steps_taken.append(step)
        if history.states:
            history.check_as_of(data.draw(st.sampled_from(sorted(history.states)), label="as of"))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedLog)  # of writers that died, until the next one takes their write back
        of_tables()
    assert len(steps_taken) >= 6


@KINDS
def test_threads_that_write_at_once_lose_nothing(store: Store, kind: str) -> None:
    options: dict[str, Any] = {**TABLE, **BY_STORAGE, "hoodie.datasource.write.table.type": kind}
    storage = store.new()
    ArrowTable.create(storage, options)
    workers = [Worker(f"w{n}", [ArrowTable(storage, options)], random.Random(n)) for n in range(3)]
    run_at_once(workers, writes=4)
    assert [str(error) for worker in workers for error in worker.refused] == []
    check_rows(storage, workers)
    ArrowTable(storage, options).upsert(rows_of(["after"], 1))
    assert [str(found) for found in examine(storage) if found.severity is Severity.ERROR] == []
