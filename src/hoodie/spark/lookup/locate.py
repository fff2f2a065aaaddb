"""Tag the keys of a batch that stays with the executors with the file group that holds them: one function per index."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hoodie.config.write import BloomOptions
from hoodie.formats.parquet.murmur import KeyHashes
from hoodie.index.contract import ByFile, Index
from hoodie.index.pruning import ABSENT, SEVERAL, IndexStats, prune_by_filter, prune_by_range
from hoodie.lookup.batch import one_chunk, order_by_partition
from hoodie.lookup.context import LookupContext
from hoodie.lookup.key_lookup import FileWithLogs, positions_in_base
from hoodie.merge.rows import ROW_POSITION
from hoodie.model.files import BaseFile
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.exchange import expected_pairs, joins_keys, pair_partitions
from hoodie.reading.slices.base_file_reader import footer_of
from hoodie.spark.read.arrow_files import key_rows
from hoodie.spark.read.base_files import read_parquet
from hoodie.spark.read.route import route_to
from hoodie.spark.tasks import Packed, collect, run_per_item
from hoodie.spark.types import to_arrow
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.storage.protocol import Storage, in_threads

FILE_ID = "_hoodie_file_id"
COST = "_hoodie_index_cost"

#: Keys found by a filter are looked up in the key column once this many have come together, which bounds a task.
_LOOK_UP_AT = 1_000_000
#: Footers are read by driver threads, or where there are more by tasks; each is one request of at most a few MB.
_FOOTER_THREADS = 16
_FOOTERS_OF_DRIVER = 5000
_FOOTERS_OF_TASK = 500
#: Spark's own, where a session does not say.
_SHUFFLE_PARTITIONS = 200
#: Rows of files whose footers are not read: no join is worth it then.
_NO_END = 1 << 60

_Files = Mapping[str, Sequence[BaseFile]]

_KEYS = StructType([StructField(RECORD_KEY, StringType()), StructField(PARTITION_PATH, StringType())])
_RANGE = StructType(
    [
        StructField("place", LongType()),  # of the file among all
        StructField("lowest", StringType()),
        StructField("highest", StringType()),
        StructField("rows", LongType()),
    ]
)
_PAIRS = StructType([*_KEYS.fields, StructField("file", LongType())])
HITS = StructType(
    [
        *_KEYS.fields,
        StructField(FILE_ID, StringType()),
        StructField(COST, StringType()),
        StructField(ROW_POSITION, LongType()),  # of the key in its base file; null or less than 0 where not known
    ]
)


def locate_on_executors(
    session: SparkSession,
    context: LookupContext,
    keys: DataFrame,
    counts: Mapping[str, int],
    files: _Files,
    *,
    broadcast: bool,
    keeps_positions: bool,
) -> tuple[DataFrame, bool]:
    """Where keys of the batch are: `_hoodie_record_key`, `_hoodie_partition_path`, file id; keys not found are absent.

    context    its index is one by file
    keys       the batch's key and partition columns, persisted
    counts     keys asked for in the files of each partition path
    files      base files that a reader sees, per partition path: those of the batch, or with a global index all
    broadcast  whether the keys are few enough to be sent to every executor
    keeps_positions  whether hits are to tell where in their base file the keys are. A key of which the file has several
               rows may then be as many hits of different positions
    returns    `HITS`, and whether a join found them: always with an index that does not prune, else where key ranges
               leave so many pairs of key and file that asking filters costs more. If it did not, what look-ups cost is
               in rows of their own (key null)
    """
    index, storage = context.index, context.state.storage
    assert isinstance(index.look_up, ByFile)
    on = match_columns(index)
    joined = not index.look_up.pruned
    if index.look_up.pruned:
        bloom = context.settings.bloom
        ranges = _key_ranges(session, storage, files) if bloom.prune_by_ranges else _no_ranges(files)
        pairs = sum(
            expected_pairs(key_range.lowest, key_range.highest, counts[part]) for part, key_range in ranges.items()
        )
        joined = joins_keys(pairs, sum(key_range.rows for key_range in ranges.values()), sum(counts.values()))
        if not joined:
            hits = _by_filter(session, storage, keys, counts, files, bloom, ranges, pairs, is_global=index.is_global)
    if joined:
        root = route_to(session, storage, (context.reading or context.settings.reading).route.route).root
        hits = _by_join(session, storage, root, keys, files, on, broadcast, keeps_positions=keeps_positions)
    late = [file for part in files.values() for file in part if isinstance(file, FileWithLogs)]
    if not late:
        return hits, joined
    selected = keys.select(on)
    count = len(late)
    stored = session.range(0, count, 1, count).mapInArrow(partial(_log_only_rows, late), HITS)
    more = stored.join(F.broadcast(selected) if broadcast else selected, on, "left_semi")
    # A key may be in the base file, too; in several rows of it, its position is not known.
    position = F.when(F.count(ROW_POSITION) > 1, F.lit(SEVERAL)).otherwise(F.max(ROW_POSITION))
    return hits.unionByName(more).groupBy(*HITS.names[:-1]).agg(position.cast("long").alias(ROW_POSITION)), joined


def _log_only_rows(files: Sequence[FileWithLogs], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            with mark_worker_errors():
                for keys in files[number].late():
                    yield _hit_rows(keys, files[number], None, pa.nulls(len(keys), pa.int64()))


def match_columns(index: Index) -> list[str]:
    """What a row of the batch and a stored one have in common if they have one key."""
    return [RECORD_KEY] if index.is_global else [RECORD_KEY, PARTITION_PATH]


def _by_join(
    session: SparkSession,
    storage: Storage,
    root: str | None,
    keys: DataFrame,
    files: _Files,
    on: list[str],
    broadcast: bool,
    *,
    keeps_positions: bool,
) -> DataFrame:
    """root  of the table, as Spark's own reader reaches it; None: it does not (`spark.read.route`)"""
    every = [file for part in files.values() for file in part]
    if root is None:
        stored = key_rows(session, storage, every, FILE_ID, ROW_POSITION)
    else:
        stored = read_parquet(session, root, [file.path for file in every], _KEYS).select(
            RECORD_KEY,
            PARTITION_PATH,
            F.substring_index(F.col("_metadata.file_name"), "_", 1).alias(FILE_ID),
            (F.col("_metadata.row_index") if keeps_positions else F.lit(None).cast("long")).alias(ROW_POSITION),
        )
    pairs = keys.select(on)
    hits = stored.join(F.broadcast(pairs) if broadcast else pairs, on, "left_semi")
    return hits.withColumn(COST, F.lit(None).cast("string")).select(*HITS.names)


def join_cost(counts: Mapping[str, int], files: _Files, hits: int) -> IndexStats:
    """What the join of SIMPLE cost: every key of a partition met every file of it."""
    pairs = sum(counts[partition] * len(part) for partition, part in files.items())
    number = sum(len(part) for part in files.values())
    return IndexStats(
        files=number, files_read=number, candidates=pairs, checked=pairs, false_positives=pairs - hits, hits=hits
    )


@dataclass(frozen=True, slots=True, eq=False)
class _KeyRanges:
    """What footers say of the base files of a partition: string[f] bounds, null where they say nothing; all their rows.

    bounded  False: bounds were not looked at, any file may hold any key
    """

    lowest: pa.Array
    highest: pa.Array
    rows: int
    bounded: bool = True


def _no_ranges(files: _Files) -> dict[str, _KeyRanges]:
    return {
        partition: _KeyRanges(
            pa.nulls(len(part), pa.string()), pa.nulls(len(part), pa.string()), _NO_END, bounded=False
        )
        for partition, part in files.items()
    }


def _by_filter(
    session: SparkSession,
    storage: Storage,
    keys: DataFrame,
    counts: Mapping[str, int],
    files: _Files,
    bloom: BloomOptions,
    ranges: Mapping[str, _KeyRanges],
    pairs: float,
    *,
    is_global: bool,
) -> DataFrame:
    """pairs  expected ones of key and file"""
    flat = [file for part in files.values() for file in part]
    bounds = {
        part: (key_range.lowest, key_range.highest) if key_range.bounded else (None, None)
        for part, key_range in ranges.items()
    }
    first, place = {}, 0
    for partition, part in files.items():
        first[partition], place = place, place + len(part)
    search = partial(_candidates, bounds, first, {partition: len(part) for partition, part in files.items()}, is_global)
    hits = keys.select(RECORD_KEY, PARTITION_PATH).mapInArrow(search, _PAIRS)
    # A file with many candidates is looked up by several tasks; the most it can have is its partition's keys.
    most = max((counts[partition] for partition in files), default=0)
    buckets = max(1, -(-most // bloom.keys_per_bucket))
    by = [F.col("file"), *([F.pmod(F.xxhash64(RECORD_KEY), F.lit(buckets))] if buckets > 1 else [])]
    usual = int(session.conf.get("spark.sql.shuffle.partitions", None) or _SHUFFLE_PARTITIONS)
    count = pair_partitions(pairs, usual)
    # Where the session's number does, Spark may put small ones of them together.
    by_file = hits.repartition(count, *by) if count > usual else hits.repartition(*by)
    return by_file.sortWithinPartitions("file").mapInArrow(partial(_check, storage, Packed.of(flat)), HITS)


def _key_ranges(session: SparkSession, storage: Storage, files: _Files) -> dict[str, _KeyRanges]:
    """What the footers of files say. The driver reads them, or tasks where there are many."""
    flat = [file for part in files.values() for file in part]
    if len(flat) <= _FOOTERS_OF_DRIVER:
        rows = in_threads(partial(_range_of, storage), flat, _FOOTER_THREADS)
        read = pa.Table.from_pylist(rows, to_arrow(_RANGE))
    else:
        packs = [flat[start : start + _FOOTERS_OF_TASK] for start in range(0, len(flat), _FOOTERS_OF_TASK)]
        ranges = collect(run_per_item(session, list(enumerate(packs)), partial(_ranges_of, storage), _RANGE))
        read = ranges.sort_by("place")
    partition_ranges, place = {}, 0
    for partition, part in files.items():
        own = read.slice(place, len(part))
        place += len(part)
        lowest, highest = (one_chunk(own.column(name)).cast(pa.string()) for name in ("lowest", "highest"))
        partition_ranges[partition] = _KeyRanges(lowest, highest, pc.sum(own.column("rows")).as_py() or 0)
    return partition_ranges


def _range_of(storage: Storage, file: BaseFile) -> dict[str, object]:
    footer = footer_of(storage, file)
    return {"lowest": footer.min_key, "highest": footer.max_key, "rows": footer.rows}


def _ranges_of(storage: Storage, pack: tuple[int, Sequence[BaseFile]]) -> Iterator[pa.RecordBatch]:
    number, files = pack
    with mark_worker_errors():
        read = in_threads(partial(_range_of, storage), files)
    rows = [key_range | {"place": number * _FOOTERS_OF_TASK + at} for at, key_range in enumerate(read)]
    yield pa.RecordBatch.from_pylist(rows, to_arrow(_RANGE))


def _candidates(
    ranges: Mapping[str, tuple[pa.Array | None, pa.Array | None]],
    first: Mapping[str, int],
    files: Mapping[str, int],
    is_global: bool,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Pairs of key and file that the key ranges do not rule out, and one row with what they did rule out."""
    for arrow in batches:
        for partition, keys in _requested_keys(arrow, files, is_global):
            lows, highs = ranges[partition]
            candidates: Iterable[tuple[int, np.ndarray]]
            if lows is None or highs is None:
                candidates = ((file, np.arange(len(keys))) for file in range(files[partition]))
            else:
                candidates = prune_by_range(lows, highs, keys)
            for file, positions in candidates:
                count = len(positions)
                yield pa.record_batch(
                    [
                        keys.take(pa.array(positions)),
                        pa.repeat(partition, count),
                        pa.repeat(pa.scalar(first[partition] + file, pa.int64()), count),
                    ],
                    names=[RECORD_KEY, PARTITION_PATH, "file"],
                )


def _requested_keys(rows: pa.RecordBatch, files: Iterable[str], is_global: bool) -> Iterator[tuple[str, pa.Array]]:
    """Partitions with files, each with the keys that are asked for there."""
    if is_global:
        yield from ((partition, rows.column(RECORD_KEY)) for partition in files)
        return
    batch = order_by_partition(pa.Table.from_batches([rows]))
    partitions = frozenset(files)
    for number, partition in enumerate(batch.partitions):
        if partition in partitions:
            yield partition, batch.keys(number)


def _check(storage: Storage, files: Packed[BaseFile], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hits among pairs that come ordered by file, then a row of cost for each. One file is open at a time."""
    current: _FileCheck | None = None
    opened = -1
    for batch in batches:
        numbers = batch.column("file").to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(cuts):
            if start == stop:
                continue
            if current is None or opened != int(numbers[start]):
                if current is not None:
                    yield from current.finish()
                opened = int(numbers[start])
                current = _FileCheck(storage, next(files.values_at([opened])))
            yield from current.add(batch.column(RECORD_KEY).slice(start, stop - start))
    if current is not None:
        yield from current.finish()


class _FileCheck:
    """The keys of one file that are still to be looked up."""

    def __init__(self, storage: Storage, file: BaseFile) -> None:
        self.storage, self.file = storage, file
        with mark_worker_errors():
            self.bloom = footer_of(storage, file).bloom(file.path)
        self.waiting: list[pa.Array] = []
        self.count = 0
        self.read = 0
        self.reported_keys: list[pa.Array] = []
        self.cost = IndexStats()

    def add(self, keys: pa.Array) -> Iterator[pa.RecordBatch]:
        survivors = prune_by_filter(self.bloom, KeyHashes.of(keys), np.arange(len(keys)))
        self.cost += IndexStats(candidates=len(keys), pruned_by_filter=len(keys) - len(survivors))
        self.waiting.append(keys.take(pa.array(survivors)))
        self.count += len(survivors)
        if self.count >= _LOOK_UP_AT:
            yield from self._look_up()

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._look_up()
        self.cost += IndexStats(files_read=self.read)
        context = TaskContext.get()  # several tasks may look into a file, and their rows stay apart
        cost = json.dumps([context.partitionId() if context else 0, asdict(self.cost)])
        yield _hit_rows(pa.nulls(1, pa.string()), self.file, cost, pa.nulls(1, pa.int64()))

    def _look_up(self) -> Iterator[pa.RecordBatch]:
        if not self.count:
            return
        waiting_keys = pa.concat_arrays(self.waiting)
        with mark_worker_errors():
            positions = positions_in_base(self.storage, self.file.path, waiting_keys, self.file.size)
        hit_indices = np.flatnonzero(positions != ABSENT)
        hits = len(hit_indices)
        self.cost += IndexStats(checked=len(waiting_keys), hits=hits, false_positives=len(waiting_keys) - hits)
        self.waiting, self.count, self.read = [], 0, 1
        # A key that the batch holds twice is one hit: the rows of the batch are joined with it.
        keys = waiting_keys.take(pa.array(hit_indices))
        new = pc.unique(keys)
        if self.reported_keys:
            new = new.filter(pc.invert(pc.is_in(new, value_set=pa.concat_arrays(self.reported_keys))))
        self.reported_keys.append(new)
        at = hit_indices if len(new) == len(keys) else hit_indices[np.asarray(pc.index_in(new, value_set=keys))]
        yield _hit_rows(new, self.file, None, pa.array(positions[at]))


def _hit_rows(keys: pa.Array, file: BaseFile, cost: str | None, positions: pa.Array) -> pa.RecordBatch:
    count = len(keys)
    return pa.record_batch(
        [
            keys,
            pa.repeat(pa.scalar(file.group.partition, pa.string()), count),
            pa.repeat(pa.scalar(file.group.file_id, pa.string()), count),
            pa.repeat(pa.scalar(cost, pa.string()), count),
            positions,
        ],
        names=HITS.names,
    )
