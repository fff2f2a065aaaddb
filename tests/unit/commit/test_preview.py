"""The rows of a table as a commit would leave them, before it is published."""

import pickle

import pyarrow as pa
import pytest

from hoodie.commit.preview import preview
from hoodie.commit.transaction import describe
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.reading.snapshot import read_table
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import COMMITS
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.result import Phases
from hoodie.writing.run import write_batch
from hoodie.writing.write import check, replaced_groups, start, writable_state
from support.trips import TRIPS, rows


def ids(storage: Storage) -> list[str]:
    return sorted(read_table(load_state(storage)).column("id").to_pylist())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("operation", "expected"),
    [(WriteOperation.UPSERT, ["a", "b", "c"]), (WriteOperation.INSERT_OVERWRITE_TABLE, ["b", "c"])],
)
def test_it_has_the_commit_and_all_others_do_not(kind: str, operation: WriteOperation, expected: list[str]) -> None:
    storage = MemoryStorage()
    table = ArrowTable.create(storage, {**TRIPS, "hoodie.datasource.write.table.type": kind})
    table.upsert(rows("a", "b"))
    settings = Settings.read(Options())
    batch = rows("b", "c", ts=2)
    write = start(check(writable_state(storage, settings), operation, batch.schema, settings))
    keys = {"_hoodie_record_key": ["b", "c"], "_hoodie_partition_path": ["oslo", "oslo"]}
    keyed = pa.table({**{name: batch.column(name) for name in batch.column_names}, **keys})
    write, outcome = write_batch(write, MemoryBatch(keyed), Phases())
    extra = {"schema": write.avro_schema}
    metadata = describe(write.begun, outcome.stats, replaced_groups(write, outcome.partitions), extra)
    COMMITS.forget()
    seen = preview(write.begun, metadata)
    assert ids(seen) == expected
    assert ids(storage) == ["a", "b"]
    again = pickle.loads(pickle.dumps((seen.path, seen.data)))  # type: ignore[attr-defined]
    assert again == (seen.path, seen.data)  # type: ignore[attr-defined]
    table.upsert(rows("d"))  # rolls the pending write back
    assert ids(storage) == ["a", "b", "d"]
