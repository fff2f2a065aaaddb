"""Writers whose view of the timeline is archived while they are at work."""

import pyarrow as pa
import pytest

from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import WriteConflict
from hoodie.model.instant import Instant
from hoodie.table.settings import Settings
from hoodie.table.state import load_state, writer_keygen
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.finish import finish
from hoodie.writing.result import Phases
from hoodie.writing.run import write_batch
from hoodie.writing.write import Write, check, start
from support.keyed_rows import keyed

OPTIONS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
LOCKED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
ROWS = pa.table({"id": ["a"], "v": [1]})
WIDER = pa.table({"id": ["b"], "v": [1], "w": [1]})
WIDEST = pa.table({"id": ["c"], "v": [1], "x": [1]})


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS).upsert(ROWS)
    return storage


def other(storage: MemoryStorage, rows: pa.Table) -> None:
    ArrowTable(storage, LOCKED).insert(rows, options={"hoodie.parquet.small.file.limit": "0"})


def archive(storage: MemoryStorage, instant: Instant) -> None:
    """As an archiver takes an instant away that is none of the newest."""
    for path in [path for path in storage.snapshot() if path.startswith(f".hoodie/{instant.requested}.")]:
        storage.delete(path)


def written(job: Write, rows: pa.Table) -> None:
    state = job.state
    phases = Phases()
    job, outcome = write_batch(job, MemoryBatch(keyed(rows, writer_keygen(state))), phases)
    finish(job, outcome, phases)


def ids(storage: MemoryStorage) -> set[str]:
    return set(ArrowTable(storage).snapshot().column("id").to_pylist())


def test_a_write_begins_though_the_commits_it_was_checked_on_are_archived(storage: MemoryStorage) -> None:
    checked = check(load_state(storage), WriteOperation.INSERT, ROWS.schema, Settings.read(Options(LOCKED)))
    (seen,) = checked.state.timeline.commits
    other(storage, pa.table({"id": ["b"], "v": [1]}))
    archive(storage, seen)
    written(start(checked), pa.table({"id": ["c"], "v": [1]}))
    assert ids(storage) == {"a", "b", "c"}


def test_a_write_is_published_though_the_commits_it_began_on_are_archived(storage: MemoryStorage) -> None:
    job = start(check(load_state(storage), WriteOperation.INSERT, WIDER.schema, Settings.read(Options(LOCKED))))
    (seen,) = job.state.timeline.commits
    other(storage, WIDER)
    archive(storage, seen)
    written(job, pa.table({"id": ["c"], "v": [1], "w": [1]}))
    assert ids(storage) == {"a", "b", "c"}


def test_a_write_that_may_hide_columns_is_refused_when_it_cannot_be_told_since_when_they_are_there(
    storage: MemoryStorage,
) -> None:
    job = start(check(load_state(storage), WriteOperation.INSERT, WIDEST.schema, Settings.read(Options(LOCKED))))
    (seen,) = job.state.timeline.commits
    other(storage, WIDER)
    archive(storage, seen)
    with pytest.raises(WriteConflict, match="columns changed"):
        written(job, WIDEST)
    assert ids(storage) == {"a", "b"}
