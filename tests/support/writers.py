"""Threads that write into the same tables, each its own keys, so that each knows what the tables must hold of them."""

import random
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie.errors import HoodieError
from hoodie.services.clean import clean
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.trips import TRIPS

TABLE = {
    **TRIPS,
    "hoodie.spark.driver.threads": "2",
    "hoodie.cleaner.commits.retained": "2",
}
ALONE: dict[str, str] = {}
IN_PROCESS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.num.retries.on.conflict.failures": "20",
}
BY_STORAGE = {**IN_PROCESS, "hoodie.write.lock.provider": "StorageBasedLockProvider"}


class Shaken(WrappedStorage):
    """Lets other threads in at some calls."""

    def __init__(self, inner: Storage, seed: int) -> None:
        super().__init__(inner)
        self.chance = random.Random(seed)

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if self.chance.random() < 0.3:
            time.sleep(self.chance.random() * 0.003)
        return call()

    observe = mutate


@dataclass
class Worker:
    """A thread's writes: it alone writes its keys, so it knows what the table must hold of them.

    acknowledged  (table, key) -> ts
    in_doubt      (table, key) -> ts of writes that were refused, 0 of deletes
    """

    name: str
    tables: list[ArrowTable]
    chance: random.Random
    acknowledged: dict[tuple[int, str], int] = field(default_factory=dict)
    in_doubt: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    written: int = 0
    refused: list[HoodieError] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def run(self, barrier: threading.Barrier, count: int) -> None:
        barrier.wait()
        for ts in range(1, count + 1):
            try:
                with typed_errors():
                    self.step(ts)
                self.written += 1
            except HoodieError as error:
                self.refused.append(error)
            except BaseException:
                self.broken.append(traceback.format_exc())

    def step(self, ts: int) -> None:
        number = self.chance.randrange(len(self.tables))
        table = self.tables[number]
        keys = [f"{self.name}-{n}" for n in self.chance.sample(range(6), 3)]
        if self.chance.random() < 0.1:
            clean(table.storage, Settings.read(table.options))
            return
        deleting = self.chance.random() < 0.2
        write = table.delete if deleting else table.upsert
        try:
            write(rows_of(keys, ts))
        except Exception:
            for key in keys:
                self.in_doubt.setdefault((number, key), set()).add(0 if deleting else ts)
            raise
        for key in keys:
            self.acknowledged.pop((number, key), None)
            if not deleting:
                self.acknowledged[number, key] = ts

    def may_hold(self, number: int, key: str) -> set[int]:
        """What the table may have of a key, 0 for no row.

        With a lock that is what was acknowledged last, as no write is refused. Without one a refused write may be seen
        for a moment before it is withdrawn; another writer who read it then keeps its rows, and publishes them later:
        the row is there, beside that of a later write of the key that did not find it.
        """
        return {self.acknowledged.get((number, key), 0), *self.in_doubt.get((number, key), ())}


def rows_of(keys: list[str], ts: int) -> pa.Table:
    cities = ["oslo" if key[-1] < "3" else "rome" for key in keys]
    return pa.table({"id": keys, "city": cities, "ts": [ts] * len(keys)})


def run_at_once(workers: Sequence[Worker], writes: int) -> None:
    """Let each do so many writes, in a thread of its own. Errors that are not ours are raised, as text."""
    barrier = threading.Barrier(len(workers))
    threads = [threading.Thread(target=worker.run, args=(barrier, writes)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(500)
    assert not any(thread.is_alive() for thread in threads)
    assert [text for worker in workers for text in worker.broken] == []
    assert sum(worker.written for worker in workers) > 0


def check_rows(storage: Storage, owners: Sequence[Worker], place: int = 0) -> None:
    """The table has what its writers may expect, each key once, and nothing else.

    place  of the table among the `tables` of each
    """
    found: dict[str, list[int]] = {}
    for row in ArrowTable(storage).snapshot().to_pylist():
        found.setdefault(row["id"], []).append(row["ts"])
    for worker in owners:
        for key in (f"{worker.name}-{n}" for n in range(6)):
            versions = found.pop(key, [0])
            assert set(versions) <= worker.may_hold(place, key), key
            assert len(versions) == 1 or (place, key) in worker.in_doubt, f"{key} occurs twice"
    assert not found
