"""One write on the timeline, driven without Spark: what a reader sees when a writer dies, what the next one does."""

import datetime as dt
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hoodie.commit.transaction import Transaction, abandon, begin, clean_up, describe, publish
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import HoodieError, WriteConflict
from hoodie.formats.timeline.services import decode_rollback_metadata
from hoodie.model.instant import Action, State
from hoodie.reading.snapshot import read_slices_arrow
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage, is_temporary
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.create import create
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Dying, MemoryStorage
from hoodie.timeline.timeline import LAYOUT_1, new_time
from hoodie.timeline.transition import create_requested
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.planning import TaskResults
from hoodie.writing.result import Phases
from hoodie.writing.run import write_batch
from hoodie.writing.write import Write, check, replaced_groups, start, with_transaction, writable_state
from support import undoing
from support.nightly import WAYS_TO_DIE, covering
from support.oracles import read_hudi_rs
from support.trips import TRIPS

Rows = dict[str, tuple[str, int, str]]

BEFORE: Rows = {"a": ("oslo", 1, "old"), "b": ("oslo", 1, "old"), "c": ("rome", 1, "old")}
CHANGES: Rows = {"a": ("oslo", 2, "new"), "c": ("rome", 2, "new"), "d": ("bern", 2, "new")}
AFTER: Rows = BEFORE | CHANGES
LATER: Rows = {"b": ("oslo", 3, "later"), "e": ("bern", 3, "later")}


def batch(rows: Rows) -> pa.Table:
    """Rows as they arrive: the user's columns, record key, partition path."""
    keys = list(rows)
    cities, stamps, notes = ([row[i] for row in rows.values()] for i in range(3))
    columns = {"id": keys, "city": cities, "ts": pa.array(stamps, pa.int64()), "note": notes}
    return pa.table(columns | {"_hoodie_record_key": keys, "_hoodie_partition_path": cities})


def prepared(storage: Storage, rows: Rows, operation: WriteOperation = WriteOperation.UPSERT) -> Write:
    """A write that has its instant and no more."""
    settings = Settings.read(Options({"hoodie.spark.driver.threads": "1"}))
    state = writable_state(storage, settings)
    return start(check(state, operation, batch(rows).schema.remove(5).remove(4), settings))


def write(storage: Storage, rows: Rows, operation: WriteOperation = WriteOperation.UPSERT) -> str:
    """A whole write; its instant."""
    job = prepared(storage, rows, operation)
    job, outcome = write_batch(job, MemoryBatch(batch(rows)), Phases())
    finish(job, outcome)
    return job.begun.time


def finish(job: Write, outcome: TaskResults) -> None:
    groups = replaced_groups(job, outcome.partitions)
    publish(job.begun, describe(job.begun, outcome.stats, groups, {"schema": job.avro_schema}))


def read(storage: Storage) -> Rows:
    """What a snapshot reader sees. A key that occurs twice fails."""
    state = load_state(storage)
    view = load_view(storage, state.timeline, state.config)
    if not state.timeline.commits:
        return {}
    schema = with_meta_fields(table_schema(state, view))
    rows = read_slices_arrow(storage, merged_slices(view).values(), schema).to_pylist()
    found = {row["id"]: (row["city"], row["ts"], row["note"]) for row in rows}
    assert len(found) == len(rows), "a key occurs twice"
    return found


def table(rows: Rows | None = None) -> MemoryStorage:
    """A table in memory that holds the rows."""
    storage = MemoryStorage()
    create(storage, TRIPS)
    if rows:
        write(storage, rows)
    return storage


def instants(storage: Storage) -> list[tuple[str, Action, State]]:
    return [(i.requested, i.action, i.state) for i in load_state(storage).timeline.instants]


def leftovers(storage: MemoryStorage, instant: str) -> list[str]:
    """Files that bear the instant, in name or folder, temporary files apart."""
    return [path for path in storage.snapshot() if instant in path and not is_temporary(path.rpartition("/")[2])]


def dump(storage: MemoryStorage, folder: Path) -> Path:
    for path, data in storage.snapshot().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


OPERATIONS: Mapping[WriteOperation, Rows] = {
    WriteOperation.UPSERT: AFTER,
    WriteOperation.BULK_INSERT: BEFORE | {"x": ("oslo", 5, "x"), "y": ("bern", 5, "y")},
    WriteOperation.INSERT_OVERWRITE: {"x": ("oslo", 5, "x"), "c": BEFORE["c"], "y": ("bern", 5, "y")},
}


@pytest.mark.parametrize(("dying", "operation"), covering(Dying, list(OPERATIONS)))
def test_a_writer_that_dies_anywhere_leaves_the_old_rows_or_the_new(operation, dying):
    after = OPERATIONS[operation]
    changes = CHANGES if operation is WriteOperation.UPSERT else {"x": ("oslo", 5, "x"), "y": ("bern", 5, "y")}
    left = undoing.dying(dying, table(BEFORE), lambda storage: write(storage, changes, operation))
    assert len(left) > 8  # requested, inflight, markers, metafile, files, completed, markers again
    seen = []
    for storage in left:
        found = read(storage)
        assert found in (BEFORE, after)
        seen.append(found == after)
        write(storage, LATER)
        assert read(storage) == (after if seen[-1] else BEFORE) | LATER
    assert seen == sorted(seen)  # once it is there it stays
    assert not seen[0]
    assert seen[-1]


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_the_next_write_leaves_nothing_of_a_dead_one_but_a_rollback(dying):
    before = table(BEFORE)
    old = {time for time, _, _ in instants(before)}
    for storage in undoing.dying(dying, before, lambda storage: write(storage, CHANGES))[:-1]:
        dead = [i for i in load_state(storage).timeline.pending() if i.requested not in old]
        write(storage, LATER)
        rolled_back = [time for time, action, state in instants(storage) if action is Action.ROLLBACK and state]
        assert len(rolled_back) == len(dead)
        for instant in dead:
            assert leftovers(storage, instant.requested) == []
            path = f".hoodie/{rolled_back[0]}.rollback"
            metadata = decode_rollback_metadata(storage.read(path), path)
            assert metadata.commits == (instant.requested,)
            assert fastavro.is_avro(io.BytesIO(storage.read(path)))


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_a_rollback_that_died_anywhere_is_taken_up_and_ends_as_one(dying):
    dead = table(BEFORE)
    job = prepared(dead, CHANGES)
    write_batch(job, MemoryBatch(batch(CHANGES)), Phases())  # data files and markers, not published
    failed = job.begun.time
    assert len(leftovers(dead, failed)) > 6
    left = undoing.dying(dying, dead, lambda storage: clean_up(load_state(storage)))
    assert len(left) > 8
    for storage in left:
        assert read(storage) == BEFORE
        write(storage, LATER)
        assert read(storage) == BEFORE | LATER
        assert leftovers(storage, failed) == []
        rollbacks = [state for _, action, state in instants(storage) if action is Action.ROLLBACK]
        assert rollbacks == [State.COMPLETED]


def test_rolling_back_twice_is_as_once():
    storage = table(BEFORE)
    job = prepared(storage, CHANGES)
    job, _ = write_batch(job, MemoryBatch(batch(CHANGES)), Phases())
    clean_up(load_state(storage))
    once = storage.snapshot()
    clean_up(load_state(storage))
    assert storage.snapshot() == once


def test_several_dead_writes_are_rolled_back_one_by_one():
    storage = table(BEFORE)
    dead = []
    for rows in (CHANGES, LATER):
        settings = Settings.read(Options())
        state = writable_state(storage, settings)
        checked = check(state, WriteOperation.UPSERT, batch(rows).schema.remove(5).remove(4), settings)
        # As two writers at once would leave it: neither cleaned up after the other.
        requested = create_requested(
            storage,
            new_time(state.timeline, state.config.timezone, lambda: dt.datetime.now(dt.UTC)),
            Action.COMMIT,
            layout=LAYOUT_1,
        )
        job = with_transaction(checked, Transaction(state, requested, WriteOperation.UPSERT))
        write_batch(job, MemoryBatch(batch(rows)), Phases())
        dead.append(requested.requested)
    write(storage, LATER)
    assert read(storage) == BEFORE | LATER
    assert [leftovers(storage, instant) for instant in dead] == [[], []]
    assert [action for _, action, _ in instants(storage)].count(Action.ROLLBACK) == 2


def test_a_writer_that_fails_rolls_itself_back():
    storage = table(BEFORE)
    job = prepared(storage, CHANGES)
    write_batch(job, MemoryBatch(batch(CHANGES)), Phases())
    assert abandon(job.begun)
    assert not abandon(job.begun)  # another writer may have been faster
    assert read(storage) == BEFORE
    assert leftovers(storage, job.begun.time) == []


def test_a_write_that_was_published_is_not_rolled_back_by_its_own_writer():
    # The answer to the publication got lost: the writer sees an error, readers see the commit.
    storage = table(BEFORE)
    job = prepared(storage, CHANGES)
    job, outcome = write_batch(job, MemoryBatch(batch(CHANGES)), Phases())
    finish(job, outcome)
    published = storage.snapshot()
    assert not abandon(job.begun)
    assert storage.snapshot() == published
    assert read(storage) == AFTER


class NoCleaning(WrappedStorage):
    """Cannot remove folders."""

    def delete_tree(self, folder: str, paths: object = None) -> None:
        raise PermissionError(folder)


def test_markers_that_cannot_be_removed_do_not_fail_a_write_that_readers_see():
    storage = table(BEFORE)
    write(NoCleaning(storage), CHANGES)
    assert read(storage) == AFTER
    write(storage, LATER)
    assert read(storage) == AFTER | LATER


def test_instants_increase_when_the_clock_goes_back():
    storage = table(BEFORE)
    newest = load_state(storage).timeline.newest
    state = load_state(storage)
    transaction = begin(state, WriteOperation.UPSERT, Action.COMMIT, lambda: dt.datetime(1999, 1, 1, tzinfo=dt.UTC))
    assert transaction.time > newest


def test_two_writers_that_take_the_same_instant_do_not_both_go_on():
    storage = table(BEFORE)
    state = load_state(storage)
    noon = dt.datetime(2999, 1, 1, 12, tzinfo=dt.UTC)
    begin(state, WriteOperation.UPSERT, Action.COMMIT, lambda: noon)
    with pytest.raises(WriteConflict, match="another writer took instant"):
        begin(state, WriteOperation.UPSERT, Action.COMMIT, lambda: noon)


def test_files_of_a_lost_task_attempt_are_gone_before_the_commit():
    storage = table(BEFORE)
    job = prepared(storage, CHANGES)
    job, outcome = write_batch(job, MemoryBatch(batch(CHANGES)), Phases())
    (won,) = [stat for stat in outcome.stats if stat.path and stat.path.startswith("bern/")]
    assert won.path is not None
    lost = won.path.replace("_2-0-0_", "_2-0-9_").replace("_0-0-0_", "_0-0-9_")
    assert lost != won.path
    storage.write(lost, storage.read(won.path))
    marker = next(path for path in storage.snapshot() if path.endswith(f"{won.path}.marker.CREATE"))
    storage.write(marker.replace(won.path, lost), b"")
    finish(job, outcome)
    assert lost not in storage.snapshot()
    assert read(storage) == AFTER


def test_statistics_that_name_a_file_group_twice_are_not_published():
    storage = table(BEFORE)
    job = prepared(storage, CHANGES)
    job, outcome = write_batch(job, MemoryBatch(batch(CHANGES)), Phases())
    with pytest.raises(HoodieError, match="written twice"):
        describe(job.begun, [*outcome.stats, outcome.stats[0]], {}, {})
    assert read(storage) == BEFORE


def test_hudi_rs_reads_the_same_rows_after_a_rollback(tmp_path):
    for number, dying in enumerate(Dying):
        left = undoing.dying(dying, table(BEFORE), lambda storage: write(storage, CHANGES))
        for storage in (left[len(left) // 2], left[-2]):
            found: Sequence[Mapping[str, Any]] = read_hudi_rs(dump(storage.copy(), tmp_path / f"{number}")).to_pylist()
            assert {row["id"]: (row["city"], row["ts"], row["note"]) for row in found} == read(storage)
            write(storage, LATER)
            found = read_hudi_rs(dump(storage, tmp_path / f"{number}-{id(storage)}")).to_pylist()
            assert {row["id"]: (row["city"], row["ts"], row["note"]) for row in found} == read(storage)
