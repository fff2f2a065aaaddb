"""How far an upsert is from what nothing can do without: reading and writing the files it changes, with Arrow alone.

The upsert runs without Spark, by its own threads; so does the rest. With random keys a batch is in every file of its
partitions, so these are the files that change.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq

import hoodie
from bench.cases import Bench, Case, Contender, Phases, size
from bench.peers import rows_of


def cases(bench: Bench) -> Iterator[Case]:
    """A case for each batch that many files share the work of."""
    for batch in ("spread", "recent"):
        changes = rows_of(bench.workload.batch(batch))
        days = set(changes.column("ds").unique().to_pylist())
        files = [Path(path) for path in _files(bench.base_table()) if Path(path).parent.name in days]
        options = {"hoodie.index.type": "SIMPLE"}

        def upsert(folder: Path, changes: object = changes, options: dict[str, str] = options) -> Phases:
            return hoodie.open_table(str(folder / "table"), options=options).upsert(changes).seconds

        contenders = (
            Contender("read and write", lambda folder: None, partial(_copy, files), _not_compared),
            Contender("upsert without Spark", bench.copy_of_base_table, upsert, _not_compared),
        )
        yield Case(f"floor: {batch}", size(bench.workload.batch(batch)), contenders)


def _files(table: Path) -> list[str]:
    files: list[str] = ds.dataset(table, exclude_invalid_files=True).files
    return files


def _copy(files: list[Path], folder: Path) -> Phases:
    """Write the rows of files again, as they are."""

    def copy(number: int) -> None:
        read = pq.ParquetFile(files[number])
        codec = read.metadata.row_group(0).column(0).compression
        pq.write_table(read.read(), folder / f"{number}.parquet", compression=codec)

    with ThreadPoolExecutor() as pool:
        list(pool.map(copy, range(len(files))))
    return {}


def _not_compared(folder: Path) -> object:
    """The cases of the same batches compare rows."""
    return None
