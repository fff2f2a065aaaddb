"""What tagging with the HBase index costs beside HBase itself: `python bench/hbase_tagging.py [keys] [batch]`.

The stand-in for HBase serves in a process of its own. Half of the keys asked for are in the index. Time "of its own" is
the CPU time of the tagging process: requests and answers in Thrift's form, and all that becomes of them.
"""

import subprocess
import sys
import time

import numpy as np
import pyarrow as pa

from hoodie.config.table import from_properties
from hoodie.hbase.client import Rate
from hoodie.hbase.index import make_entries
from hoodie.index.contract import IndexContext, Placed
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.timeline import Timeline

INSTANT = "20240101000000000"
CONFIG = from_properties(
    {
        "hoodie.table.name": "orders",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
    }
)
ROUNDS = 3


def main(keys: int = 200_000, batch: int = 1000) -> None:
    Rate.take = lambda self, rows: None  # type: ignore[method-assign]  # how long tasks wait is the options' choice
    serving = [sys.executable, "-m", "hoodie.testing.hbase", "--table", "orders_index"]
    with subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        measure(port, keys, batch)
        server.stdin.close()
        print(f"the server's own calls, all rounds and the filling: {float(server.stdout.read()):.2f} s")


def measure(port: str, count: int, batch: int) -> None:
    options = {
        "hoodie.index.hbase.thrift.host": "127.0.0.1",
        "hoodie.index.hbase.thrift.port": port,
        "hoodie.index.hbase.table": "orders_index",
        "hoodie.index.hbase.get.batch.size": str(batch),
        "hoodie.index.hbase.put.batch.size": str(batch),
    }
    rng = np.random.default_rng(7)
    keys = pa.array([bytes(row).hex() for row in rng.integers(0, 256, (count, 16), np.uint8)])
    index = make_entries(options, CONFIG)
    assert index.record_writes is not None
    nothing = pa.array([], pa.string())
    groups = [FileGroupId(f"2024-03-{day:02d}", f"{day:08d}-0000-0000-0000-000000000000-0") for day in range(1, 29)]
    begun, cpu = time.perf_counter(), time.process_time()
    index.record_writes(
        [
            Placed(INSTANT, group, keys.take(pa.array(np.arange(2 * n, count, 2 * len(groups)))), nothing, nothing)
            for n, group in enumerate(groups)
        ]
    )
    show("put and read back", count // 2, time.perf_counter() - begun, time.process_time() - cpu)
    timeline = Timeline((Instant(INSTANT, Action.COMMIT, State.COMPLETED),))
    tag = index.look_up.tagger(IndexContext(MemoryStorage(), CONFIG, timeline))  # type: ignore[union-attr]
    partitions = pa.repeat("2024-03-01", count)
    for _ in range(ROUNDS):
        begun, cpu = time.perf_counter(), time.process_time()
        tags = tag(keys, partitions)
        show("tagging", count, time.perf_counter() - begun, time.process_time() - cpu)
        assert tags.cost.hits == (count + 1) // 2


def show(what: str, keys: int, wall: float, own: float) -> None:
    print(f"{what}: {keys:,} keys, {own:.2f} s of its own ({1e6 * own / keys:.1f} us a key), {wall:.2f} s in all")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
