"""Looking keys up in base files: footer ranges, bloom filters, then the key column itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.config.write import BloomOptions
from hoodie.formats.parquet.base_footer import BaseFooter, stored_filter, stored_filter_text, stored_key_range
from hoodie.formats.parquet.columns import open_parquet, read_columns
from hoodie.formats.parquet.hashed_keys import MANY_KEYS, HashedKeys
from hoodie.formats.parquet.murmur import Indices, KeyHashes
from hoodie.index.pruning import (
    ABSENT,
    IndexStats,
    KeySpan,
    lookup_keys,
    lookup_positions,
    lookup_rows,
    prune_by_filter,
    prune_by_range,
)
from hoodie.merge.rows import Mask
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.instant import Action
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.slices.base_file_reader import footer_of
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableFiles, TableState
from hoodie.timeline.load import read_commit

#: Positions in the keys, the positions of these keys' rows in the file (`ABSENT` and less: not known), and the cost.
_Hits = tuple[Indices, Indices, IndexStats]

#: So many keys are tested against a filter, however few rows the file has: it may be far away. Testing more of them
#: than the file has rows takes longer than reading all of its keys.
_FEW_KEYS = 10_000
#: Keys that are tested against a filter before all are.
_SAMPLE = 64
#: Bytes of keys that are read as fast as a sample is tested against a filter.
_FEW_KEY_BYTES = 256 * 1024
#: To decode a filter is worth it, where nothing says that it rules keys out, for a file with so many rows a key.
_WORTH_A_FILTER = 16


@dataclass(frozen=True, slots=True)
class FileWithLogs(BaseFile):
    """A base file beside which logs hold keys that it lacks, and that are to be found all the same.

    late  gives these keys, string[n] again and again; reads the logs
    """

    late: Callable[[], Iterable[pa.Array]] = field(default=tuple, compare=False, repr=False)


def find_keys(
    storage: Storage,
    files: Sequence[BaseFile],
    keys: pa.Array,
    pruned: bool,
    bloom: BloomOptions,
    pool: Executor,
    stored: Mapping[str, BaseFooter] | None = None,
) -> list[Future[_Hits]]:
    """Start looking the keys up in files, each file by a thread of the pool. Logs are not read: see `find_late`.

    keys     string[n], no nulls
    pruned   by the key ranges and bloom filters of all files first (BLOOM); else the keys of each file are read, unless
             its footer tells, once the file is open, that it holds none of them (SIMPLE)
    stored   footers that need not be read, by path of the file
    returns  per file the positions in `keys` of those it holds, ascending, those of their rows, and the cost
    """
    by_path = stored or {}
    footers = list(pool.map(lambda file: by_path.get(file.path) or footer_of(storage, file), files)) if pruned else None
    return [pool.submit(look_up) for look_up in _look_ups(storage, files, footers, keys, bloom)]


def find_in_file(storage: Storage, file: BaseFile, keys: pa.Array, pruned: bool, bloom: BloomOptions) -> _Hits:
    """As `find_keys`, for one file and by this thread; what logs beside it hold is found as well."""
    footers = [footer_of(storage, file)] if pruned else None
    (look_up,) = _look_ups(storage, [file], footers, keys, bloom)
    return _with_late(file, keys, look_up())


def keys_in_base(storage: Storage, path: str, keys: pa.Array, size: int | None = None) -> Mask:
    """Which of the keys a base file holds, by its key column."""
    mask: Mask = positions_in_base(storage, path, keys, size) != ABSENT
    return mask


def positions_in_base(storage: Storage, path: str, keys: pa.Array, size: int | None = None) -> Indices:
    """Where in a base file the rows with the keys are, by its key column.

    keys     string[n], no nulls; a key may occur twice
    size     of the file in bytes, where it is known
    returns  int64[n], aligned with keys: position of the row, `ABSENT` or `SEVERAL`
    """
    return lookup_positions(rows_in_base(storage, path, keys, size), keys)


def rows_in_base(storage: Storage, path: str, keys: pa.Array, size: int | None = None) -> tuple[Indices, Indices]:
    """The rows of a base file that have one of the keys, by its key column: as `lookup_rows`."""
    hashed = HashedKeys.of(keys) if len(keys) > MANY_KEYS else None
    with storage.open_input(path, size) as source:
        return _rows(open_parquet(source, path), path, keys, hashed)


def _places(parquet: pq.ParquetFile, path: str, keys: pa.Array, indices: Indices, hashed: HashedKeys | None) -> Indices:
    """Where in a base file the rows with some of the keys are: as `positions_in_base`.

    hashed  of all keys, where these are many: for all files
    """
    if hashed is None or len(indices) <= MANY_KEYS:
        likely_keys = keys if len(indices) == len(keys) else keys.take(pa.array(indices))
        return lookup_positions(_rows(parquet, path, likely_keys, None), likely_keys)
    return lookup_positions(_rows(parquet, path, keys, hashed), keys)[indices]


def _rows(parquet: pq.ParquetFile, path: str, keys: pa.Array, hashed: HashedKeys | None) -> tuple[Indices, Indices]:
    matches, rows, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for group in range(parquet.num_row_groups if len(keys) else 0):  # one row group's keys in memory at a time
        stored = read_columns(parquet, group, [RECORD_KEY], path).column(0)
        here = lookup_rows(stored, keys) if hashed is None else _rows_near(hashed, stored, keys)
        matches.append(here[0])
        rows.append(here[1] + start)
        start += len(stored)
    return np.concatenate(matches), np.concatenate(rows)


def _rows_near(hashed: HashedKeys, stored: pa.ChunkedArray, keys: pa.Array) -> tuple[Indices, Indices]:
    """As `lookup_rows`, which is given no more of the keys than may be among those stored."""
    near = hashed.find(stored)
    matches, rows = lookup_rows(stored, keys.take(pa.array(near)))
    return near[matches], rows


def _look_up_if_likely(
    storage: Storage, file: BaseFile, keys: pa.Array, span: KeySpan, hashed: HashedKeys | None
) -> _Hits:
    """Look up in one file those of the keys that are in its range, which is compared once the file is open; none of
    them if its bloom filter rules out a sample, and then nearly all."""
    with storage.open_input(file.path, file.size) as source:
        parquet = open_parquet(source, file.path)
        bounds = stored_key_range(parquet.metadata)
        within = None if bounds is None else span.within(*bounds)
        in_range = np.arange(len(keys)) if within is None else within
        # Beside this process keys are read soon: a filter that rules nothing out must not cost as much.
        few = 0 < len(in_range) * _WORTH_A_FILTER <= parquet.metadata.num_rows
        tested = few and (storage.remote or _keys_outweigh_filter(parquet.metadata))
        indices = _unless_ruled_out(parquet.metadata, file.path, keys, in_range) if tested else in_range
        places = _places(parquet, file.path, keys, indices, hashed)
    hits = np.flatnonzero(places != ABSENT)
    cost = IndexStats(
        files=1,
        files_read=int(len(indices) > 0),
        files_pruned_by_range=int(len(in_range) == 0),
        files_pruned_by_filter=int(len(in_range) > len(indices) == 0),
        candidates=len(keys),
        pruned_by_range=len(keys) - len(in_range),
        pruned_by_filter=len(in_range) - len(indices),
        checked=len(indices),
        false_positives=len(indices) - len(hits),
        hits=len(hits),
    )
    return indices[hits], places[hits], cost


def _unless_ruled_out(footer: pq.FileMetaData, path: str, keys: pa.Array, indices: Indices) -> Indices:
    """Some of the keys, or those of them that a file's filter lets pass. A sample decides whether all are tested: most
    often files hold some of the keys, and then all of their own are read anyway."""
    filter = stored_filter(footer, path)
    if filter is None:
        return indices
    sample = keys.take(pa.array(indices[:: 1 + len(indices) // _SAMPLE]))
    if len(prune_by_filter(filter, KeyHashes.of(sample), np.arange(len(sample)))):
        return indices
    return np.sort(prune_by_filter(filter, KeyHashes.of(keys), indices))


def _keys_outweigh_filter(footer: pq.FileMetaData) -> bool:
    """Whether a file's keys take at least twice the bytes of its filter, and are not few."""
    stored = stored_filter_text(footer)
    at = footer.schema.names.index(RECORD_KEY) if RECORD_KEY in footer.schema.names else -1
    if stored is None or at < 0:
        return True
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    size: int = sum(group.column(at).total_uncompressed_size for group in groups)
    return size > max(2 * len(stored[0]), _FEW_KEY_BYTES)


def _look_ups(
    storage: Storage,
    files: Sequence[BaseFile],
    footers: Sequence[BaseFooter] | None,
    keys: pa.Array,
    bloom: BloomOptions,
) -> list[Callable[[], _Hits]]:
    """The look-ups, one a file; the key ranges of all files are compared at once. `footers` None: nothing is pruned."""
    hashed = HashedKeys.of(keys) if len(keys) > MANY_KEYS else None
    if footers is None and (span := KeySpan.of(keys)) is not None:
        return [partial(_look_up_if_likely, storage, file, keys, span, hashed) for file in files]
    every = np.arange(len(keys))
    if footers is None:
        return [partial(_look_up, storage, file, None, keys, None, every, hashed) for file in files]
    candidates: dict[int, Indices] = dict.fromkeys(range(len(files)), every)
    if bloom.prune_by_ranges:
        candidates = dict(prune_by_range([f.min_key for f in footers], [f.max_key for f in footers], keys))
    hashes = KeyHashes.of(keys) if candidates else None
    return [
        partial(_look_up, storage, file, footer, keys, hashes, candidates.get(number, every[:0]), hashed)
        for number, (file, footer) in enumerate(zip(files, footers, strict=True))
    ]


def _look_up(
    storage: Storage,
    file: BaseFile,
    footer: BaseFooter | None,
    keys: pa.Array,
    hashes: KeyHashes | None,
    indices: Indices,
    hashed: HashedKeys | None,
) -> _Hits:
    """Look up in one file those of the keys that its key range lets pass. footer, hashes: None: without its filter"""
    passed = len(indices)
    cost = IndexStats(
        files=1,
        candidates=len(keys),
        pruned_by_range=len(keys) - passed,
        files_pruned_by_range=int(len(keys) > 0 and passed == 0),
    )
    if footer is not None and hashes is not None and 0 < passed <= max(footer.rows, _FEW_KEYS):
        indices = prune_by_filter(footer.bloom(file.path), hashes, indices)
        ruled_out = passed - len(indices)
        cost = replace(cost, pruned_by_filter=ruled_out, files_pruned_by_filter=int(len(indices) == 0))
    positions = np.empty(0, np.int64)
    if len(indices):
        indices = np.sort(indices)  # pruning gives them in the order of their keys
        with storage.open_input(file.path, file.size) as source:
            places = _places(open_parquet(source, file.path), file.path, keys, indices, hashed)
        hits, positions = indices[places != ABSENT], places[places != ABSENT]
        missed = len(indices) - len(hits)
        cost = replace(cost, files_read=1, checked=len(indices), false_positives=missed, hits=len(hits))
        indices = hits
    return indices, positions, cost


def find_late(file: FileWithLogs, keys: pa.Array) -> Indices:
    """Positions of the keys, rising, that logs hold and the base file beside them lacks. keys: those it lacks"""
    mask = np.zeros(len(keys), dtype=np.bool_)
    for late in file.late():
        mask |= lookup_keys(late, keys)
    return np.flatnonzero(mask)


def _with_late(file: BaseFile, keys: pa.Array, hits: _Hits) -> _Hits:
    """The hits in a base file and those in the logs beside it."""
    indices, positions, cost = hits
    if not isinstance(file, FileWithLogs) or len(indices) == len(keys):
        return hits
    lacking = np.delete(np.arange(len(keys)), indices)
    late = lacking[find_late(file, keys.take(pa.array(lacking)))]
    rows = np.concatenate([indices, late])
    order, places = np.argsort(rows), np.concatenate([positions, np.full(len(late), ABSENT)])
    return rows[order], places[order], replace(cost, hits=len(rows))


def may_hold_deleted(state: TableState, files: TableFiles) -> bool:
    """Whether one of the base files may hold keys that a log beside it deletes: its file group has logs, or had some
    before a pending compaction, and a delta commit since the base file counts deletes or is archived.

    An index that looks into base files finds such a key. Alone that does no harm: an upsert brings the row back in its
    file group. But a row that was inserted since is in another file group, and of the two hits only that one counts.
    """
    if not state.config.merge_on_read:
        return False
    slices = files.groups
    logged: dict[FileGroupId, str] = {}
    for base in (base for part in files.bases.values() for base in part):
        slice_ = slices.get(base.group)
        if slice_ is None or slice_.logs or slice_.base_instant != base.instant:
            logged[base.group] = base.instant
    if not logged:
        return False
    first = min(logged.values())
    if first < min((instant.requested for instant in state.timeline.commits), default=first):
        return True
    for instant in state.timeline.completed({Action.DELTA_COMMIT}):
        if instant.requested <= first:
            continue
        for partition, stats in read_commit(state.storage, state.timeline, instant).stats.items():
            if any(stat.num_deletes and FileGroupId(partition, stat.file_id) in logged for stat in stats):
                return True
    return False
