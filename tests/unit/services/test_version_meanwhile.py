"""A table gets another version of the format while a writer is at work that has looked at it before."""

from __future__ import annotations

import pytest

from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import WriteConflict
from hoodie.services.downgrade import downgrade
from hoodie.services.upgrade import upgrade
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.local import check_batch
from hoodie.writing.run import run
from torture.crash import TABLE, batch, rows_of_now

SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "InProcessLockProvider",
}
pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")


def change(storage: Storage, options: Options, to: int) -> None:
    (upgrade if to == 9 else downgrade)(storage, options, to)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("before", "to"), [(6, 9), (9, 6)])
def test_a_write_is_made_in_the_new_version(before: int, to: int, kind: str) -> None:
    given = {**TABLE, **SEVERAL, "hoodie.datasource.write.table.type": kind}
    made = ArrowTable.create(MemoryStorage(), {**given, "hoodie.write.table.version": str(before)})
    made.options = Options({key: value for key, value in made.options.items() if key != "hoodie.write.table.version"})
    made.upsert(batch({"a": ("oslo", 1, "one")}))
    rows = batch({"a": ("oslo", 2, "two"), "b": ("oslo", 2, "two")})
    write = check_batch(made.storage, WriteOperation.UPSERT, rows.to_reader(), made.options, after_commit)
    change(made.storage, made.options, to)
    run(write)
    assert rows_of_now(made) == {"a": ("oslo", 2, "two"), "b": ("oslo", 2, "two")}
    assert made.state().config.version == to
    names = [entry.name for entry in made.storage.list(".hoodie") if entry.name[:1].isdigit()]
    assert bool(names) == (to == 6)
    assert bool(made.storage.list(".hoodie/timeline")) == (to == 9)


def test_a_write_without_a_lock_is_refused_and_leaves_nothing() -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.write.num.retries.on.conflict.failures": "0"})
    made.upsert(batch({"a": ("oslo", 1, "one")}))
    rows = batch({"b": ("oslo", 2, "two")})
    write = check_batch(made.storage, WriteOperation.UPSERT, rows.to_reader(), made.options, after_commit)
    upgrade(made.storage, made.options, 9)
    files = {folder: [e.name for e in entries] for folder, entries in made.storage.list_tree("").items()}
    with pytest.raises(WriteConflict, match="has version 9 now, and had 6"):
        run(write)
    assert {folder: [e.name for e in entries] for folder, entries in made.storage.list_tree("").items()} == files
    assert rows_of_now(made) == {"a": ("oslo", 1, "one")}
