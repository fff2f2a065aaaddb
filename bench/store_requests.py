"""Requests of whole operations to an S3 server on loopback, each taking 20 ms longer: python -m bench.store_requests

Prints, for each operation, the requests by kind, how many were made one after the other, and the time in round trips
of 20 ms, which has this process's own work and the server's in it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from bench.s3_server import BUCKET, RecordingServer
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.services.clean import CLEANS
from hoodie.storage import FsspecStorage, LocalStorage
from hoodie.storage.protocol import Storage, in_threads, join
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import COMMITS
from hoodie.view.published import PUBLISHED

KINDS = ("LIST", "GET", "HEAD", "PUT", "POST", "DELETE")
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": "false",
}
WITHOUT_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.store_requests", description=__doc__)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds that each request takes longer")
    parser.add_argument("--partitions", type=int, default=1000)
    given = parser.parse_args(arguments)
    with RecordingServer() as server:
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            table = made(FsspecStorage(f"s3://{BUCKET}/{kind.lower()}", server.options), kind)
            quiet = ArrowTable(table.storage, {**table.options, **WITHOUT_SERVICES})
            quiet.upsert(five_rows(19))  # this process now knows the commits
            measure(server, given.delay, f"{kind}: upsert of five rows", lambda t=quiet: t.upsert(five_rows(20)))
            measure(server, given.delay, f"{kind}: the same, and cleaning", lambda t=table: t.upsert(five_rows(21)))
            cold()
            measure(server, given.delay, f"{kind}: in a new process", lambda t=quiet: t.upsert(five_rows(22)))
            measure(server, given.delay, f"{kind}: snapshot", lambda t=table: t.snapshot())
        storage = day_partitions(server, given.partitions)
        measure(server, given.delay, f"plan of a snapshot of {given.partitions} partitions", lambda: plan(storage))


def measure(server: RecordingServer, delay: float, name: str, call: Callable[[], object]) -> None:
    """Make the call and print what it asked of the server."""
    with server.recorded(delay) as requests:
        begin = time.perf_counter()
        call()
        wall = time.perf_counter() - begin
    kinds = "  ".join(f"{kind} {requests.kinds[kind]:3}" for kind in KINDS if kind != "POST")
    print(f"{name:44} {kinds}   in a row {requests.sequential:3}   wall {wall / delay:6.1f} round trips")


def made(storage: Storage, kind: str) -> ArrowTable:
    """A table of 12 commits in one partition, made on disk and copied."""
    options = OPTIONS | {"hoodie.datasource.write.table.type": kind}
    with tempfile.TemporaryDirectory() as folder:
        table = ArrowTable.create(LocalStorage(folder), options)
        table.insert(pa.table({"id": [f"k{n}" for n in range(100)], "p": ["a"] * 100, "ts": [0] * 100}))
        for ts in range(1, 12):
            table.upsert(five_rows(ts))
        copy(table.storage, storage)
    return ArrowTable(storage, options)


def copy(one: Storage, other: Storage) -> None:
    """All files."""
    paths = [join(folder, entry.name) for folder, entries in one.list_tree().items() for entry in entries]
    in_threads(lambda path: other.write(path, one.read(path)), paths)


def five_rows(ts: int) -> pa.Table:
    """Rows of five of the table's keys."""
    return pa.table({"id": [f"k{n}" for n in range(5)], "p": ["a"] * 5, "ts": [ts] * 5})


def day_partitions(server: RecordingServer, count: int) -> FsspecStorage:
    """A table of so many partitions, a day each, of one commit."""
    storage = FsspecStorage(f"s3://{BUCKET}/days{count}", server.options)
    days = [f"2{n // 336:03}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}" for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        table = ArrowTable.create(LocalStorage(folder), OPTIONS | WITHOUT_SERVICES)
        table.bulk_insert(pa.table({"id": [f"k{n}" for n in range(count)], "p": days, "ts": [0] * count}))
        copy(table.storage, storage)
    return storage


def plan(storage: Storage) -> int:
    """Plan a snapshot: file slices in it."""
    scan = plan_read(load_state(storage), Read())
    return len(scan.base_slices) + len(scan.log_slices)


def cold() -> None:
    """Forget what this process knows of commits, as a new one would."""
    for memory in (COMMITS, PUBLISHED, CLEANS):
        memory.forget()


if __name__ == "__main__":
    main()
