"""Whole tables on real servers, without Spark: histories of writes beside a model, and several writers at once."""

import random
from typing import Any

import pytest

from hoodie.doctor.examine import Severity, examine
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.snapshot import read_table
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from support.oracles import META, assert_same_rows, expected_rows
from support.real_tables import files_of
from support.store_histories import steps_of_histories
from support.stores import Store
from support.writers import BY_STORAGE, TABLE, Worker, check_rows, rows_of, run_at_once

pytestmark = pytest.mark.stores

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


@KINDS
def test_a_table_holds_what_a_dict_of_rows_does_after_each_write(store: Store, kind: str) -> None:
    assert steps_of_histories(store.new, kind, examples=3, longest=5, number=7) >= 6


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


@pytest.mark.parametrize(
    "name", ["cow_upserts_delete", "cow_schema_evolution", "mor_logs", "mor_deletes", "mor_parquet_log_blocks"]
)
def test_a_table_that_hudi_wrote_is_read_and_written(store: Store, name: str) -> None:
    storage = store.new()
    for path, content in files_of(f"hudi-0.15/{name}").items():
        storage.write(path, content)
    found = read_table(load_state(storage))
    assert_same_rows(found, expected_rows(name))
    gone = found.slice(0, 1).drop_columns(list(META))
    ArrowTable(storage, {}).delete(gone)
    kept = read_table(load_state(storage)).column(RECORD_KEY).to_pylist()
    assert sorted(kept) == sorted(found.column(RECORD_KEY).to_pylist()[1:])
