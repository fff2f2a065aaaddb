"""What a rollback costs with the HBase index: `python -m bench.hbase_rollback [rows] [changed]`.

A table of `rows` rows in ten partitions takes an upsert of `changed` rows, half of them new, which is then rolled back.
The stand-in for HBase serves in a process of its own. Batches have 1,000 keys, but for the load; tasks send one batch
of puts a second, and ten of gets.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

import hoodie

T = TypeVar("T")


def main(rows: int = 500_000, changed: int = 10_000) -> None:
    serving = [sys.executable, "-m", "hoodie.testing.hbase", "--table", "orders_index"]
    with subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        try:
            with tempfile.TemporaryDirectory() as folder:
                measure(f"{folder}/orders", port, rows, changed)
        finally:
            server.stdin.close()
            server.stdout.read()  # it prints how long its calls took


def measure(path: str, port: str, rows: int, changed: int) -> None:
    options = {
        "hoodie.index.type": "HBASE",
        "hoodie.index.hbase.thrift.host": "127.0.0.1",
        "hoodie.index.hbase.thrift.port": port,
        "hoodie.index.hbase.table": "orders_index",
        "hoodie.index.hbase.get.batch.size": 1000,
        "hoodie.index.hbase.put.batch.size": 1000,
    }
    table = hoodie.create_table(
        path, name="orders", record_key="id", partition_by="region", ordering="ts", options=options
    )
    rng = np.random.default_rng(7)
    large = {"hoodie.index.hbase.get.batch.size": 20_000, "hoodie.index.hbase.put.batch.size": 20_000}
    seconds("load", lambda: table.upsert(orders(np.arange(rows), 1), options=large))
    numbers = np.concatenate([rng.choice(rows, changed // 2, replace=False), np.arange(rows, rows + changed // 2)])
    written = seconds("upsert", lambda: table.upsert(orders(numbers, 2)))
    seconds("rollback", lambda: table.rollback(written.instant))
    assert table.count() == rows
    seconds("the same upsert again", lambda: table.upsert(orders(numbers, 3)))
    assert table.count() == rows + changed // 2


def seconds(what: str, run: Callable[[], T]) -> T:
    wall, own = time.perf_counter(), time.process_time()
    result = run()
    print(
        f"{what}: {time.perf_counter() - wall:.2f} s, {time.process_time() - own:.2f} s of CPU of this process",
        flush=True,
    )
    return result


def orders(numbers: np.ndarray[Any, Any], ts: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([f"o{number:09d}" for number in numbers.tolist()]),
            "region": pa.array([f"r{number % 10}" for number in numbers.tolist()]),
            "ts": pa.array(np.full(len(numbers), ts, np.int64)),
            "amount": pa.array(numbers * 0.5),
        }
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
