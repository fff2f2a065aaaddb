"""What a sync costs: `python bench/hive_sync.py URI [partitions]`, with the address of a metastore.

One from the jars of pyspark: `(cd tests && python -m support.metastore /tmp/metastore)` in another terminal. The first
sync registers all partitions; the second one follows a commit that adds two; the third finds nothing to do.
"""

import sys
import tempfile
import time

import pyarrow as pa

from hoodie.storage.local import LocalStorage
from hoodie.sync.hive import sync_table
from hoodie.table.settings import Settings
from hoodie.testing.storage import CountingStorage
from hoodie.testing.tables import ArrowTable

SETTINGS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
}


def main(uri: str, partitions: int = 10_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = CountingStorage(LocalStorage(f"{folder}/trips"))
        table = ArrowTable.create(storage, SETTINGS)
        begun = time.perf_counter()
        table.insert(days(0, partitions))
        print(f"a table of {partitions:,} partitions, written in {time.perf_counter() - begun:.1f} s")
        settings = Settings.of(
            {
                "hoodie.datasource.hive_sync.metastore.uris": uri,
                "hoodie.datasource.hive_sync.database": f"bench{int(time.time())}",
            }
        )
        sync("the first sync", storage, settings)
        table.insert(days(partitions, 2))
        sync("after a commit that added 2", storage, settings)
        sync("with nothing new", storage, settings)


def days(first: int, count: int) -> pa.Table:
    """One row for each of some partitions."""
    names = [f"day-{number:06d}" for number in range(first, first + count)]
    return pa.table({"id": names, "day": names})


def sync(what: str, storage: CountingStorage, settings: Settings) -> None:
    storage.reset()
    begun = time.perf_counter()
    done = sync_table(storage, settings)
    seconds = time.perf_counter() - begun
    (entry,) = done.entries
    listings = storage.count("list") + storage.count("list_tree")
    print(f"{what}: {seconds:.2f} s, {entry.added:,} added, {sum(done.calls.values())} requests, {listings} listings")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
