"""Writers of NON_BLOCKING_CONCURRENCY_CONTROL whose steps a test mixes: each has an instant and files, and waits."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie.commit.transaction import abandon
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.finish import finish
from hoodie.writing.local import check_batch
from hoodie.writing.planning import TaskResults
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.run import write_batch
from hoodie.writing.write import Write, start
from support.keyed_rows import keyed
from support.trips import TRIPS

MODE = "hoodie.write.concurrency.mode"
NON_BLOCKING = {
    MODE: "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
TABLE = {
    **TRIPS,
    **NON_BLOCKING,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.write.num.retries.on.conflict.failures": "0",
    "hoodie.spark.driver.threads": "1",
    "hoodie.table.services.enabled": "false",
}
#: No ordering column: what is merged last wins.
BY_COMMIT = {"hoodie.datasource.write.precombine.field": "", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}


def table(version: int = 9, options: Mapping[str, str] | None = None, storage: Storage | None = None) -> ArrowTable:
    """A table without rows; services run when a test calls them."""
    given = {**TABLE, "hoodie.write.table.version": str(version), **(options or {})}
    return ArrowTable.create(storage or MemoryStorage(), given)


def rows(*keys: str, ts: int = 1, city: str = "oslo", note: str = "old") -> pa.Table:
    count = len(keys)
    return pa.table({"id": list(keys), "city": [city] * count, "ts": [ts] * count, "note": [note] * count})


@dataclass
class Waiting:
    """A write that has written its files and is not published."""

    write: Write
    outcome: TaskResults

    @property
    def instant(self) -> str:
        return self.write.begun.time

    def publish(self) -> WriteResult:
        return finish(self.write, self.outcome, Phases())

    def fail(self) -> None:
        """Its writer notices that something is wrong, and takes it back."""
        abandon(self.write.begun)


def begun(
    there: ArrowTable,
    batch: pa.Table,
    operation: WriteOperation = WriteOperation.UPSERT,
    options: Mapping[str, str] | None = None,
) -> Waiting:
    """A write up to before its publication."""
    given = Options({**there.options, **(options or {})})
    incoming = check_batch(there.storage, operation, batch.to_reader(), Settings.read(given), lambda *_: None)
    write = start(incoming.write)
    assert incoming.write.keygen is not None
    write, outcome = write_batch(write, MemoryBatch(keyed(batch, incoming.write.keygen)), Phases())
    return Waiting(write, outcome)


def due(there: ArrowTable) -> Options:
    """Options by which a compaction of the table is due at once."""
    return Options({**there.options, "hoodie.compact.inline.max.delta.commits": "1"})


def notes(there: ArrowTable) -> dict[str, str]:
    found = there.snapshot().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key occurs twice"
    return {row["id"]: row["note"] for row in found}
