"""Looking keys up in base files: footer ranges, bloom filters, then the key column itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ParamSpec

import numpy as np
import pyarrow as pa

from hoodie.config.write import BloomOptions
from hoodie.formats.parquet.base_footer import BaseFooter
from hoodie.formats.parquet.columns import open_parquet, read_columns
from hoodie.formats.parquet.murmur import Indices, KeyHashes
from hoodie.index.pruning import IndexStats, lookup_keys, prune_by_filter, prune_by_range
from hoodie.model.files import BaseFile
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.base_file_reader import footer_of
from hoodie.storage.protocol import Storage

Hits = tuple[Indices, IndexStats]

#: So many keys are tested against a filter, however few rows the file has: it may be far away.
_FEW_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class FileWithLogs(BaseFile):
    """A base file beside which logs hold keys that it lacks, and that are to be found all the same.

    late  gives these keys, string[n] again and again; reads the logs
    """

    late: Callable[[], Iterable[pa.Array]] = field(default=tuple, compare=False, repr=False)


def find_keys(
    storage: Storage, files: Sequence[BaseFile], keys: pa.Array, pruned: bool, bloom: BloomOptions, pool: Executor
) -> list[Future[Hits]]:
    """Start looking the keys up in files, each file by a thread of the pool.

    keys     string[n], no nulls
    pruned   by key ranges and bloom filters first (BLOOM); else the keys of each file are read (SIMPLE)
    returns  per file the positions in `keys` of those it holds, ascending, and what the look-up cost
    """
    if not pruned:
        everything = np.arange(len(keys))
        cost = IndexStats(files=1, candidates=len(keys))
        return [
            pool.submit(_and_in_logs, file, keys, _look_up, storage, file, keys, everything, cost) for file in files
        ]
    footers = list(pool.map(partial(footer_of, storage), files))
    candidates = dict(_in_range(footers, keys, bloom))
    hashes = KeyHashes.of(keys) if candidates else None
    calls: list[Future[Hits]] = []
    for number, (file, footer) in enumerate(zip(files, footers, strict=True)):
        wanted = candidates.get(number, np.empty(0, dtype=np.int64))
        cost = _after_range(len(keys), len(wanted))
        calls.append(
            pool.submit(
                _and_in_logs, file, keys, _filter_and_look_up, storage, file, footer, keys, hashes, wanted, cost
            )
        )
    return calls


def find_in_file(storage: Storage, file: BaseFile, keys: pa.Array, pruned: bool, bloom: BloomOptions) -> Hits:
    """As `find_keys`, for one file and by this thread."""
    return _and_in_logs(file, keys, _find_in_base, storage, file, keys, pruned, bloom)


def _find_in_base(storage: Storage, file: BaseFile, keys: pa.Array, pruned: bool, bloom: BloomOptions) -> Hits:
    if not pruned:
        return _look_up(storage, file, keys, np.arange(len(keys)), IndexStats(files=1, candidates=len(keys)))
    footer = footer_of(storage, file)
    wanted = next((found for _, found in _in_range([footer], keys, bloom)), np.empty(0, dtype=np.int64))
    cost = _after_range(len(keys), len(wanted))
    hashes = KeyHashes.of(keys) if len(wanted) else None
    return _filter_and_look_up(storage, file, footer, keys, hashes, wanted, cost)


P = ParamSpec("P")


def _and_in_logs(
    file: BaseFile, keys: pa.Array, look_up: Callable[P, Hits], *arguments: P.args, **named: P.kwargs
) -> Hits:
    """What a look-up in the base file finds, and what logs beside it hold."""
    hits, cost = look_up(*arguments, **named)
    if not isinstance(file, FileWithLogs):
        return hits, cost
    found = np.zeros(len(keys), dtype=np.bool_)
    found[hits] = True
    for late in file.late():
        found |= lookup_keys(late, keys)
    hits = np.flatnonzero(found)
    return hits, replace(cost, hits=len(hits))


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
    if hashes is not None and len(wanted) and not _dearer_than_reading(len(wanted), footer):
        kept = prune_by_filter(footer.bloom(file.path), hashes, wanted)
        ruled_out = len(wanted) - len(kept)
        cost = replace(cost, pruned_by_filter=ruled_out, files_pruned_by_filter=int(len(kept) == 0))
        wanted = kept
    return _look_up(storage, file, keys, wanted, cost)


def _dearer_than_reading(wanted: int, footer: BaseFooter) -> bool:
    """Whether testing so many keys against a file's filter would take longer than reading all of its keys."""
    return wanted > max(footer.rows, _FEW_KEYS)


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
