"""Looking keys up in base files: footer ranges, bloom filters, then the key column itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.config.write import BloomOptions, IndexType
from hoodie.errors import CorruptFile
from hoodie.formats.base_footer import BaseFooter, read_footer
from hoodie.formats.murmur import Indices, KeyHashes
from hoodie.index.pruning import IndexStats, lookup_keys, prune_by_filter, prune_by_range
from hoodie.model.files import BaseFile
from hoodie.model.meta import RECORD_KEY
from hoodie.storage.protocol import Storage

Hits = tuple[Indices, IndexStats]


def find_keys(
    storage: Storage, files: Sequence[BaseFile], keys: pa.Array, index: IndexType, bloom: BloomOptions, pool: Executor
) -> list[Future[Hits]]:
    """Start looking the keys up in the files of their partition, each file by a thread of the pool.

    keys     string[n], no nulls
    returns  per file the positions in `keys` of those it holds, ascending, and what the look-up cost
    """
    if index is IndexType.SIMPLE:
        everything = np.arange(len(keys))
        cost = IndexStats(files=1, candidates=len(keys))
        return [pool.submit(_look_up, storage, file, keys, everything, cost) for file in files]
    footers = list(pool.map(partial(footer_of, storage), files))
    candidates = dict(_in_range(footers, keys, bloom))
    hashes = KeyHashes.of(keys) if candidates else None
    calls: list[Future[Hits]] = []
    for number, (file, footer) in enumerate(zip(files, footers, strict=True)):
        wanted = candidates.get(number, np.empty(0, dtype=np.int64))
        cost = _after_range(len(keys), len(wanted))
        calls.append(pool.submit(_filter_and_look_up, storage, file, footer, keys, hashes, wanted, cost))
    return calls


def find_in_file(storage: Storage, file: BaseFile, keys: pa.Array, index: IndexType, bloom: BloomOptions) -> Hits:
    """As `find_keys`, for one file and by this thread."""
    if index is IndexType.SIMPLE:
        return _look_up(storage, file, keys, np.arange(len(keys)), IndexStats(files=1, candidates=len(keys)))
    footer = footer_of(storage, file)
    wanted = next((found for _, found in _in_range([footer], keys, bloom)), np.empty(0, dtype=np.int64))
    cost = _after_range(len(keys), len(wanted))
    hashes = KeyHashes.of(keys) if len(wanted) else None
    return _filter_and_look_up(storage, file, footer, keys, hashes, wanted, cost)


def _in_range(footers: Sequence[BaseFooter], keys: pa.Array, bloom: BloomOptions) -> list[tuple[int, Indices]]:
    if not bloom.prune_by_ranges:
        return [(number, np.arange(len(keys))) for number in range(len(footers))]
    lows, highs = [f.min_key for f in footers], [f.max_key for f in footers]
    return list(prune_by_range(lows, highs, keys))


def _after_range(keys: int, wanted: int) -> IndexStats:
    """The cost so far of one file whose key range lets `wanted` of the keys pass."""
    return IndexStats(
        files=1, candidates=keys, pruned_by_range=keys - wanted, files_pruned_by_range=int(keys > 0 and wanted == 0)
    )


def _filter_and_look_up(
    storage: Storage,
    file: BaseFile,
    footer: BaseFooter,
    keys: pa.Array,
    hashes: KeyHashes | None,
    wanted: Indices,
    cost: IndexStats,
) -> Hits:
    if hashes is not None and len(wanted):
        kept = prune_by_filter(footer.bloom(file.path), hashes, wanted)
        ruled_out = len(wanted) - len(kept)
        cost = replace(cost, pruned_by_filter=ruled_out, files_pruned_by_filter=int(len(kept) == 0))
        wanted = kept
    return _look_up(storage, file, keys, wanted, cost)


def _look_up(storage: Storage, file: BaseFile, keys: pa.Array, wanted: Indices, cost: IndexStats) -> Hits:
    if len(wanted) == 0:
        return wanted, cost
    wanted = np.sort(wanted)  # pruning gives them in the order of their keys
    asked = keys if len(wanted) == len(keys) else keys.take(pa.array(wanted))
    found = np.zeros(len(asked), dtype=np.bool_)
    with storage.open_input(file.path) as source:
        parquet = open_parquet(source, file.path)
        for group in range(parquet.num_row_groups):  # one row group's keys in memory at a time
            found |= lookup_keys(read_columns(parquet, group, [RECORD_KEY], file.path).column(0), asked)
    hits = wanted[found]
    missed = len(asked) - len(hits)
    return hits, replace(cost, files_read=1, checked=len(asked), false_positives=missed, hits=len(hits))


def footer_of(storage: Storage, file: BaseFile) -> BaseFooter:
    """The footer of a base file. Raises CorruptFile; FileNotFoundError when it is gone."""
    with storage.open_input(file.path) as source:
        return read_footer(source, file.path)


def open_parquet(source: object, path: str, *, pre_buffer: bool = False) -> pq.ParquetFile:
    """The file as Parquet. Raises CorruptFile naming it; OSError of the storage."""
    with damage_of(path):
        # Nanoseconds, pyarrow's choice for INT96, end in 2262.
        return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=pre_buffer)


def read_columns(parquet: pq.ParquetFile, group: int, columns: Sequence[str], path: str) -> pa.Table:
    """Some columns of one row group. Raises as `open_parquet`."""
    with damage_of(path):
        return parquet.read_row_group(group, columns=list(columns))


@contextmanager
def damage_of(path: str) -> Iterator[None]:
    """Raise what Arrow says against a base file's bytes as CorruptFile; faults of the storage pass as they are."""
    try:
        yield
    except (pa.ArrowException, ValueError, OSError) as problem:
        if is_storage_fault(problem):
            raise
        raise CorruptFile(
            path, f"cannot be read as Parquet: {problem}", None, "Restore the file, or roll back its commit."
        ) from problem


def is_storage_fault(problem: Exception) -> bool:
    """Whether an error met while reading Parquet is the storage's. Arrow tells of damage by a bare OSError; a fault of
    the storage has a number or a class of its own."""
    return isinstance(problem, OSError) and (type(problem) is not OSError or problem.errno is not None)
