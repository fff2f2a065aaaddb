"""A writer whose view of the timeline is archived before it begins."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.config.write import WriteOperation
from hoodie.errors import WriteConflict
from hoodie.model.instant import Action
from hoodie.table.job import check, start
from hoodie.table.semantics import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable

OPTIONS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
LOCKED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
ROWS = pa.table({"id": ["a"], "v": [1]})


def test_a_writer_whose_commits_were_archived_is_refused_and_leaves_nothing() -> None:
    storage = MemoryStorage()
    table = ArrowTable.create(storage, OPTIONS)
    table.upsert(ROWS)
    checked = check(load_state(storage), WriteOperation.UPSERT, ROWS.schema, Settings.read(LOCKED))
    (seen,) = checked.state.timeline.commits
    table.upsert(ROWS)
    for path in [path for path in storage.snapshot() if path.startswith(f".hoodie/{seen.requested}.")]:
        storage.delete(path)  # as an archiver would
    with pytest.raises(WriteConflict, match="moved on"):
        start(checked)
    assert not load_state(storage).timeline.pending({Action.COMMIT})
    assert table.snapshot().num_rows == 1
