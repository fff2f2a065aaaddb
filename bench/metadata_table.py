"""What the metadata table costs and buys, as ratios: listing, keeping, and looking keys up.

`python -m bench.metadata_table [--files 100000 --partitions 1000] [--n 2000000] [--rows 2000000 8000000] [--rounds 12]`
prints four tables in Markdown; `--only` names one of them. No Spark takes part.

- listing: listing all files where each request to the storage takes 20 ms, from `files`, its checks included, against
  the storage, which is asked for each folder, 32 at once: wall time, CPU, requests
- keeping: CPU of `tiny`, an upsert of 1,000 rows of one of ten partitions, with a metadata table against without
- inserts: the same with 1,000 new keys
- keys: what `bench.record_index` prints
"""

import argparse
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import mean, median

import numpy as np
import pyarrow as pa

from bench.record_index import cpu, keys_of, print_table
from hoodie.metadata.trusted import trusted_listing
from hoodie.services.metadata_table import create_metadata_table
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Entry, in_threads, join
from hoodie.table.settings import Settings
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


class RemoteFolders(DelayingStorage):
    """A local folder as a store of folders across a network, with requests at once as the library's own have it."""

    def __init__(self, inner: LocalStorage) -> None:
        self.requests: Counter[str] = Counter()
        super().__init__(inner, self._wait)

    def _wait(self, name: str, path: str) -> float:
        self.requests[name] += 1
        return _REQUEST

    @property
    def remote(self) -> bool:
        return True

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, list[Entry]]:
        tree: dict[str, list[Entry]] = {}
        level = [folder]
        while level:
            below = []
            for path, entries in zip(level, in_threads(self.list, level), strict=True):
                below += [join(path, entry.name) for entry in entries if entry.is_dir and entry.name not in skip]
                if files := [entry for entry in entries if not entry.is_dir]:
                    tree[path] = files
            level = below
        return dict(sorted(tree.items()))


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
        create_metadata_table(storage, Settings.of({}))
        slow = RemoteFolders(storage)
        spent: dict[bool, list[tuple[float, float, int]]] = {True: [], False: []}
        for _ in range(rounds):
            for by_metadata, times in spent.items():
                state = load_state(slow)
                slow.requests.clear()
                start, busy = time.perf_counter(), time.process_time()
                if by_metadata:
                    listed = trusted_listing(slow, state.config, state.timeline, None)
                    assert listed is not None
                    folders = listed[1]
                else:
                    folders = list_folders(slow)
                count = sum(1 for entries in folders.marked.values() for _ in entries)
                took = time.perf_counter() - start
                times.append((took, time.process_time() - busy, slow.requests.total()))
                assert count >= files
    # The least of the rounds: what else runs on the machine only adds to it.
    by_files, by_storage = ([min(column) for column in zip(*times, strict=True)] for times in spent.values())
    print("| files | partitions | | storage | `files` | ratio |\n|---:|---:|---|---:|---:|---:|")
    for number, name in enumerate(("wall, s", "CPU, s", "requests")):
        stored, listed_by = by_storage[number], by_files[number]
        print(f"| {files:,} | {partitions:,} | {name} | {stored:,.4g} | {listed_by:.2g} | {listed_by / stored:.2g} |")
    print()


def rows(numbers: np.ndarray, days: np.ndarray, ts: int = 0) -> pa.Table:
    columns = {f"c{at}": numbers * at for at in range(8)}
    names = pa.array([f"day{day}" for day in days.tolist()])
    return pa.table({"id": keys_of(numbers), "day": names, "ts": np.full(len(numbers), ts), **columns})


def keeping(count: int, rounds: int, *, new: bool = False) -> None:
    """Print what `tiny` takes with and without a metadata table, its own services after every tenth commit included.

    new  of keys that the table does not have
    """
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
            some += new * ts * count
            batch = rows(some, some % _DAYS, ts)
            for name, table in tables.items():
                seconds = cpu(lambda table=table, batch=batch: table.upsert(batch))  # type: ignore[misc]
                if ts > 2:  # the first of them build
                    spent[name].append(seconds)
    finally:
        shutil.rmtree(folder)
    base = spent["none"]
    print(f"| kept, {'inserts' if new else 'updates'} | CPU s | median | mean |\n|---|---:|---:|---:|")
    for name, times in spent.items():
        ratios = median(times) / median(base), mean(times) / mean(base)
        print(f"| {name} | {mean(times):.3f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    print()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--n", type=int, default=2_000_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 8_000_000])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", choices=["listing", "keeping", "inserts", "keys"])
    options = parser.parse_args(arguments)
    parts: dict[str, Callable[[], None]] = {
        "listing": lambda: listing(options.files, options.partitions, 5),
        "keeping": lambda: keeping(options.n, options.rounds),
        "inserts": lambda: keeping(options.n, options.rounds, new=True),
        "keys": lambda: print_table(options.rows),
    }
    for name, run in parts.items():
        if options.only in (None, name):
            run()


if __name__ == "__main__":
    main()
