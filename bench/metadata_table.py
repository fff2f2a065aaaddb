"""What the metadata table costs and buys, as ratios: listing, keeping, and looking keys up.

`python -m bench.metadata_table [--files 100000 --partitions 1000] [--n 2000000] [--rows 2000000 8000000] [--rounds 12]`
prints three tables in Markdown; `--only` names one of them. No Spark takes part.

- listing: wall time of listing all files where each request to the storage takes 20 ms, from `files`, its checks
  included, against the storage
- keeping: CPU of `tiny`, an upsert of 1,000 rows of one of ten partitions, with a metadata table against without
- keys: what `bench.record_index` prints
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median

import numpy as np
import pyarrow as pa

from bench.record_index import cpu, keys_of, print_table
from hoodie.config.options import Options
from hoodie.metadata.trusted import trusted_listing
from hoodie.services.metadata_table import create_metadata_table
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import DelayingStorage
from hoodie.testing.tables import ArrowTable
from hoodie.view.load import list_folders

_TABLE = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "SIMPLE",
}
_FILES = {"hoodie.metadata.enable": "true"}
#: What is kept in the tables that `tiny` is written to; the first is what the others are compared with.
KEPT: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "files": _FILES,
    "files, record_index": {**_FILES, "hoodie.metadata.record.index.enable": "true"},
    "files, column_stats": {**_FILES, "hoodie.metadata.index.column.stats.enable": "true"},
    "files, bloom_filters": {**_FILES, "hoodie.metadata.index.bloom.filter.enable": "true"},
}
_DAYS = 10
_REQUEST = 0.02  # seconds


def listing(files: int, partitions: int, rounds: int) -> None:
    """Print what listing takes by `files` and by the storage."""
    with tempfile.TemporaryDirectory(prefix="hoodie-listing-") as folder:
        storage = LocalStorage(folder)
        table = ArrowTable.create(storage, _TABLE)
        instant = table.insert(rows(np.arange(10), np.arange(10) % partitions)).instant
        for number in range(partitions):
            path = Path(folder) / f"day{number}"
            path.mkdir(exist_ok=True)
            (path / ".hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=1\n")
            for _ in range(files // partitions):
                (path / f"{uuid.uuid4()}-0_0-0-0_{instant}.parquet").touch()
        create_metadata_table(storage, Options({}))
        slow = DelayingStorage(storage, lambda name, path: _REQUEST)
        spent: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(rounds):
            for by_metadata, times in spent.items():
                state = load_state(slow)
                start = time.perf_counter()
                if by_metadata:
                    listed = trusted_listing(slow, state.config, state.timeline, None)
                    assert listed is not None
                    folders = listed[1]
                else:
                    folders = list_folders(slow)
                times.append(time.perf_counter() - start)
                assert sum(map(len, folders.marked.values())) >= files
    by_files, by_storage = (median(times) for times in spent.values())
    print("| files | partitions | storage, s | `files`, s | ratio |\n|---:|---:|---:|---:|---:|")
    print(f"| {files:,} | {partitions:,} | {by_storage:.2f} | {by_files:.2f} | {by_files / by_storage:.2f} |\n")


def rows(numbers: np.ndarray, days: np.ndarray, ts: int = 0) -> pa.Table:
    columns = {f"c{at}": numbers * at for at in range(8)}
    names = pa.array([f"day{day}" for day in days.tolist()])
    return pa.table({"id": keys_of(numbers), "day": names, "ts": np.full(len(numbers), ts), **columns})


def keeping(count: int, rounds: int) -> None:
    """Print what `tiny` takes with and without a metadata table, its own services after every tenth commit included."""
    folder = Path(tempfile.mkdtemp(prefix="hoodie-keeping-"))
    try:
        tables = {}
        numbers = np.arange(count)
        first = ArrowTable.create(LocalStorage(folder / "0"), _TABLE)
        first.insert(rows(numbers, numbers % _DAYS))
        for number, (name, options) in enumerate(KEPT.items()):
            if number:
                shutil.copytree(folder / "0", folder / str(number))
            tables[name] = ArrowTable(LocalStorage(folder / str(number)), {**_TABLE, **options})
        spent: dict[str, list[float]] = {name: [] for name in KEPT}
        for ts in range(1, rounds + 3):
            some = np.random.default_rng(ts).choice(count // _DAYS, 1_000, replace=False) * _DAYS + ts % _DAYS
            batch = rows(some, some % _DAYS, ts)
            for name, table in tables.items():
                seconds = cpu(lambda table=table, batch=batch: table.upsert(batch))  # type: ignore[misc]
                if ts > 2:  # the first of them build
                    spent[name].append(seconds)
    finally:
        shutil.rmtree(folder)
    base = spent["none"]
    print("| kept | CPU s | ratio |\n|---|---:|---:|")
    for name, times in spent.items():
        print(f"| {name} | {mean(times):.3f} | {mean(times) / mean(base):.2f} |")
    print()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--n", type=int, default=2_000_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 8_000_000])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", choices=["listing", "keeping", "keys"])
    options = parser.parse_args(arguments)
    parts: dict[str, Callable[[], None]] = {
        "listing": lambda: listing(options.files, options.partitions, 3),
        "keeping": lambda: keeping(options.n, options.rounds),
        "keys": lambda: print_table(options.rows),
    }
    for name, run in parts.items():
        if options.only in (None, name):
            run()


if __name__ == "__main__":
    main()
