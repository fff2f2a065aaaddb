"""What tagging costs on a table of many small file groups, by index, size of the batch and order of the keys.

`python -m bench.indexes [--groups 200] [--rows 2000000] [--rounds 3]` prints a table in Markdown: seconds (median of
rounds, wall and CPU over all processes), base files whose key column was read, and keys looked up there in vain. The
rival is Spark's own join of the batch's keys with the key column of the table's files.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.meter import Meter
from hoodie.config.write import BloomOptions, IndexType
from hoodie.index.choose import make_index
from hoodie.index.contract import ByKey
from hoodie.index.pruning import IndexStats
from hoodie.lookup.batch import locate, locate_by_key, order_by_partition
from hoodie.lookup.context import index_context
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.spark.session import local_session
from hoodie.storage.local import LocalStorage
from hoodie.table.state import TableState
from hoodie.testing.tables import ArrowTable

ORDERS = ("time", "random")
INDEXES = (IndexType.BLOOM, IndexType.SIMPLE, IndexType.GLOBAL_BLOOM, IndexType.BUCKET)
#: Of a batch, the share of keys that the table does not have.
_NEW = 0.2


@dataclass(frozen=True)
class Table:
    """A table without partitions, each file group with as many rows; `keys` in the order in which they came."""

    path: Path
    state: TableState
    keys: pa.Array

    def batch(self, count: int, order: str) -> pa.Table:
        """Keys of the newest rows, or of any; and new ones that follow, or are anywhere."""
        old = int(count * (1 - _NEW))
        if order == "time":
            at = np.arange(len(self.keys) - old, len(self.keys))
        else:
            at = np.random.default_rng(1).choice(len(self.keys), old, replace=False)
        new = made_keys(len(self.keys), count - old, order)
        keys = pa.concat_arrays([self.keys.take(pa.array(at)), new])
        return pa.table({RECORD_KEY: keys, PARTITION_PATH: pa.array([""] * len(keys))})


def made_keys(first: int, count: int, order: str) -> pa.Array:
    """string[count]: a time and a number, or 32 random hexadecimal digits."""
    if order == "time":
        return pa.array([f"20260101-{number:012d}" for number in range(first, first + count)])
    rng = np.random.default_rng(first)
    return pa.array([bytes(row).hex() for row in rng.integers(0, 256, (count, 16), np.uint8)])


def make_table(path: Path, groups: int, rows: int, order: str, buckets: bool) -> Table:
    keys = made_keys(0, rows, order)
    options = {
        "hoodie.table.name": "tagged",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": str(-(-rows // groups)),
        "hoodie.index.type": "BUCKET" if buckets else "AUTO",
        "hoodie.bucket.index.num.buckets": str(groups),
    }
    table = ArrowTable.create(LocalStorage(path), options)
    table.insert(pa.table({"id": keys, "value": np.arange(rows)}))
    return Table(path, table.state(), keys)


def tag(table: Table, kind: IndexType, batch: pa.Table) -> IndexStats:
    """As a write on the driver does it, the listing of files included."""
    index = make_index(
        kind, {"hoodie.bucket.index.num.buckets": str(len(table.state.slices()[""]))}, table.state.config
    )
    ordered = order_by_partition(batch)
    files = table.state.files()
    if isinstance(index.look_up, ByKey):
        return locate_by_key(ordered, index.look_up.tagger(index_context(table.state, ordered.partitions, files))).stats
    with ThreadPoolExecutor() as pool:
        return locate(table.state.storage, ordered, files.bases, index, BloomOptions(), pool).stats


def join(spark: SparkSession, table: Table, batch: pa.Table) -> IndexStats:
    paths = [str(table.path / base.path) for part in table.state.files().bases.values() for base in part]
    stored = spark.read.parquet(*paths).select(RECORD_KEY, "_metadata.file_name")
    hits = stored.join(spark.createDataFrame(batch.select([RECORD_KEY])), RECORD_KEY).toArrow()
    count = len(batch) * len(paths)
    return IndexStats(files_read=len(paths), checked=count, hits=len(hits), false_positives=count - len(hits))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[1_000, 50_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="hoodie-indexes-"))
    spark = local_session("indexes", cores=2, memory="2g")
    print(f"{options.rows:,} rows in {options.groups} file groups, {options.rounds} rounds\n")
    print("| keys | batch | index | wall s | of the join | CPU s | of the join | files read | false positives |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
    try:
        for order in ORDERS:
            table = make_table(folder / order, options.groups, options.rows, order, buckets=False)
            dealt = make_table(folder / f"{order}-buckets", options.groups, options.rows, order, buckets=True)
            for count in options.batches:
                batch = table.batch(count, order)
                ways: dict[str, Callable[[], IndexStats]] = {"Spark's join": partial(join, spark, table, batch)}
                for kind in INDEXES:
                    of = dealt if kind is IndexType.BUCKET else table
                    ways[kind.value] = partial(tag, of, kind, batch)
                compare(order, count, ways, options.rounds)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def compare(order: str, count: int, ways: dict[str, Callable[[], IndexStats]], rounds: int) -> None:
    """Measure the ways in turns, and print a line for each."""
    walls: dict[str, list[float]] = {name: [] for name in ways}
    cpus: dict[str, list[float]] = {name: [] for name in ways}
    costs: dict[str, IndexStats] = {}
    for number in range(rounds + 1):
        for name, way in ways.items():
            with Meter() as meter:
                costs[name] = way()
            if number:  # the first round warms up
                walls[name].append(meter.reading.wall)
                cpus[name].append(meter.reading.cpu)
    wall, cpu = (median(found["Spark's join"]) for found in (walls, cpus))
    for name, cost in costs.items():
        own_wall, own_cpu = median(walls[name]), median(cpus[name])
        print(
            f"| {order} | {count:,} | {name} | {own_wall:.3f} | {own_wall / wall:.2f} | {own_cpu:.2f} | "
            f"{own_cpu / cpu:.2f} | {cost.files_read} | {cost.false_positives:,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
