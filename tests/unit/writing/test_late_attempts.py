"""Attempts of tasks that Spark has given up and that go on: whenever they finish a file, it does not stay."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.commit.transaction import abandon
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import InstantNotFound
from hoodie.model.files import FileGroupId
from hoodie.plan.write import TaskKind, WriteTask
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, is_temporary, remove_with_temporaries, temporary_beside
from hoodie.table.create import create
from hoodie.table.settings import Settings
from hoodie.table.state import load_state, writer_keygen
from hoodie.writing.finish import finish
from hoodie.writing.planning import TaskResults
from hoodie.writing.result import Phases
from hoodie.writing.tasks.run import new_file_id, run_task, write_stream
from hoodie.writing.write import Write, check, start
from support.keyed_rows import keyed
from support.meanwhile import Meanwhile, calls_of
from support.trips import table_options

OPTIONS = table_options("t", "id", partition="p", ordering="ts")
ROWS = pa.table({"id": ["a", "b", "c"], "p": ["x", "y", "y"], "ts": [1, 1, 1]})


def begun(storage: Storage, operation: WriteOperation = WriteOperation.BULK_INSERT, **options: str) -> Write:
    """A write that is going to spread."""
    create(storage, {**OPTIONS, **options})
    state = load_state(storage)
    return start(check(state, operation, ROWS.schema, Settings.read(Options()))).with_plan(None)


def attempt(job: Write, number: int) -> TaskResults:
    """What one attempt of the only task writes: a file in each of two partitions."""
    state = job.state
    rows = keyed(ROWS, writer_keygen(state)).to_batches()
    stats = write_stream(job.spec(lingering=True), job.rule, iter(rows), f"0-1-{number}")
    return TaskResults(stats, frozenset("xy"), TaskResults.nothing(frozenset()).index, "executors")


def files(path: Path) -> set[str]:
    """Data files and markers, by path relative to the table."""
    found = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    return {f for f in found if (not f.startswith(".hoodie/") and not f.endswith("_metadata")) or "/.temp/" in f}


def with_storage(job: Write, storage: Storage) -> Write:
    return replace(job, transaction=replace(job.begun, state=replace(job.begun.state, storage=storage)))


def test_an_attempt_that_begins_after_the_commit_leaves_nothing(tmp_path):
    job = begun(LocalStorage(tmp_path))
    outcome = attempt(job, 1)
    finish(job, outcome, Phases())
    published = {stat.path for stat in outcome.stats}
    assert files(tmp_path) == published
    with pytest.raises(InstantNotFound, match="is over"):
        attempt(job, 2)
    assert files(tmp_path) == published


def test_an_attempt_that_goes_on_after_the_rollback_leaves_nothing(tmp_path):
    job = begun(LocalStorage(tmp_path))
    attempt(job, 1)
    assert abandon(job.begun)
    with pytest.raises(InstantNotFound, match="is over"):
        attempt(job, 2)
    assert files(tmp_path) == set()


def test_a_file_finished_right_before_the_commit_is_removed_after_it(tmp_path):
    job = begun(LocalStorage(tmp_path))
    outcome = attempt(job, 1)
    storage = Meanwhile(LocalStorage(tmp_path), calls_of("create_new", ".commit"), lambda: attempt(job, 2))
    finish(with_storage(job, storage), outcome, Phases())
    assert files(tmp_path) == {stat.path for stat in outcome.stats}


def test_a_file_finished_right_before_the_instant_is_rolled_back_is_removed(tmp_path):
    job = begun(LocalStorage(tmp_path))
    attempt(job, 1)
    storage = Meanwhile(LocalStorage(tmp_path), calls_of("delete", ".inflight"), lambda: attempt(job, 2))
    assert abandon(with_storage(job, storage).transaction)
    assert files(tmp_path) == set()


def test_a_log_file_finished_after_the_commit_does_not_stay(tmp_path):
    job = begun(
        LocalStorage(tmp_path),
        WriteOperation.UPSERT,
        **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    )
    finish(job, TaskResults.nothing(frozenset()), Phases())
    state = job.state
    rows = keyed(ROWS, writer_keygen(state)).slice(0, 1)
    task = WriteTask(0, FileGroupId("x", new_file_id()), TaskKind.APPEND, None, 1, 0)
    with pytest.raises(InstantNotFound, match="is over"):
        run_task(job.spec(lingering=True), job.rule, job.operation_rules, task, rows, "0-1-2")
    assert files(tmp_path) == set()


def test_removing_a_file_takes_the_temporary_ones_of_killed_writers_along_and_no_others(tmp_path):
    storage = LocalStorage(tmp_path)
    ours, others = temporary_beside("p/one.parquet"), temporary_beside("p/two.parquet")
    for path in (ours, others, "p/one.parquet", "p/two.parquet"):
        storage.write(path, b"rows")
        assert is_temporary(path[2:]) == path.endswith(".tmp")
    remove_with_temporaries(storage, ["p/one.parquet", "q/never.parquet"])
    assert sorted(entry.name for entry in storage.list("p")) == sorted([others[2:], "two.parquet"])
