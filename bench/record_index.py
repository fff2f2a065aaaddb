"""What the record index costs and buys: tagging few random keys beside SIMPLE, building it, and keeping it.

`python -m bench.record_index [--rows 2000000 8000000] [--keys 1000] [--groups 16] [--rounds 3]` prints a table in
Markdown: CPU seconds of this process over all threads, medians of rounds, and bytes. No Spark takes part.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from hoodie.config.write import BloomOptions, IndexType
from hoodie.index.choose import make_index
from hoodie.index.contract import ByFile
from hoodie.lookup.batch import locate, locate_by_key, order_by_partition
from hoodie.lookup.context import index_context
from hoodie.lookup.record_index import with_record_index
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.services.metadata_table import create_metadata_table
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable

_AT_ONCE = 500_000


def keys_of(numbers: np.ndarray) -> pa.Array:
    """string[n]: keys that are in no order, 20 characters each."""
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    return pa.array([f"{number:020d}" for number in mixed.tolist()])


def make_table(path: Path, rows: int, groups: int) -> ArrowTable:
    options = {
        "hoodie.table.name": "indexed",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "value",
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": str(-(-rows // groups)),
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.table.services.enabled": "false",
    }
    table = ArrowTable.create(LocalStorage(path), options)
    for start in range(0, rows, _AT_ONCE):
        numbers = np.arange(start, min(rows, start + _AT_ONCE))
        table.insert(pa.table({"id": keys_of(numbers), "value": numbers}))
    return table


def tag(table: ArrowTable, kind: IndexType, batch: pa.Table) -> int:
    """As a write on the driver does it, the listing of files included: how many keys are found."""
    state, ordered = table.state(), order_by_partition(batch)
    index = make_index(kind, {}, state.config)
    if kind is IndexType.RECORD_INDEX:
        index = with_record_index(index, state)
    if isinstance(index.look_up, ByFile):
        assert kind is not IndexType.RECORD_INDEX
        with ThreadPoolExecutor() as pool:
            return locate(state.storage, ordered, state.files().bases, index, BloomOptions(), pool).stats.hits
    return locate_by_key(ordered, index.look_up.tagger(index_context(state, [""], state.files()))).stats.hits


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 8_000_000])
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    print_table(options.rows, options.keys, options.groups, options.rounds)


def print_table(sizes: Sequence[int], keys: int = 1_000, groups: int = 16, rounds: int = 5) -> None:
    """A line for each size of the table. The first look-up of a process decodes the indexes of the files: it stands
    apart, and the median is of the others."""
    print(
        "| rows | SIMPLE, CPU s | RECORD_INDEX, CPU s | ratio | first look-up, ratio | building it, CPU s | its bytes |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for rows in sizes:
        folder = Path(tempfile.mkdtemp(prefix="hoodie-record-index-"))
        try:
            print(line(folder, rows, keys, groups, rounds), flush=True)
        finally:
            shutil.rmtree(folder)


def line(folder: Path, rows: int, count: int, groups: int, rounds: int) -> str:
    table = make_table(folder, rows, groups)
    asked = Settings.of({**table.options, "hoodie.metadata.record.index.enable": "true"})
    built = cpu(lambda: create_metadata_table(table.storage, asked))
    spent: dict[IndexType, list[float]] = {IndexType.SIMPLE: [], IndexType.RECORD_INDEX: []}
    for number in range(rounds + 1):
        numbers = np.random.default_rng(number).choice(rows, count, replace=False)
        batch = pa.table({RECORD_KEY: keys_of(numbers), PARTITION_PATH: pa.array([""] * count)})
        for kind, times in spent.items():
            hits: list[int] = []
            times.append(cpu(lambda kind=kind, batch=batch, hits=hits: hits.append(tag(table, kind, batch))))  # type: ignore[misc]
            assert hits == [count]
    simple, indexed = (median(times[1:]) for times in spent.values())
    first = spent[IndexType.RECORD_INDEX][0]
    size = sum(path.stat().st_size for path in (folder / ".hoodie/metadata/record_index").iterdir())
    ratios = f"{indexed / simple:.2f} | {first / simple:.2f}"
    return f"| {rows:,} | {simple:.2f} | {indexed:.3f} | {ratios} | {built:.1f} | {size:,} |"


if __name__ == "__main__":
    main()
