"""The rows of a batch on executors with their file groups, where Spark's shuffle brings them to their tasks.

A global index may have rows move to another partition, or be updated in the one where their key lies: the kernel that
decides (`writing.relocation`) sees all rows of a key together. Where no row of the batch is in doubt, the rows stay as
they are, and only keys have been shuffled.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, ByteType, StringType, StructField, StructType

from hoodie.index.contract import ByFile, ByKey, RecordWrites, TagKeys
from hoodie.index.pruning import IndexStats
from hoodie.lookup.batch import numbered_groups, one_chunk
from hoodie.lookup.context import index_context
from hoodie.lookup.key_lookup import may_hold_deleted
from hoodie.merge.rows import KEY_STATUS, ROW_POSITION, KeyStatus, as_array
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import PartitionProfile
from hoodie.schema.conform import conform
from hoodie.spark.lookup.hits import BROADCAST_KEYS, TAGS, KeyLookup, join_hits, look_up_keys
from hoodie.spark.lookup.locate import FILE_ID, HITS
from hoodie.spark.tasks import bin_pack, collect, persist, run_per_item
from hoodie.spark.types import all_nullable, in_session_zone, to_arrow, to_spark
from hoodie.spark.worker_errors import mark_worker_errors, raise_worker_errors
from hoodie.spark.write.executors import STATS, reports_of, task_report
from hoodie.spark.write.staging import SparkStage
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableFiles
from hoodie.writing.batch.duplicates import ARRIVAL, combine
from hoodie.writing.batch.stage import profile
from hoodie.writing.index_updates import TaskResult, record_files
from hoodie.writing.operations import OperationRules
from hoodie.writing.relocation import (
    GONE_NOW,
    UNREAD,
    Hits,
    RelocationRule,
    StoredReader,
    resolve_locations,
    stored_reader,
    stored_rows,
)
from hoodie.writing.write import Write

_HITS = "_hoodie_hits"
_FILE_BYTES = 128 << 20


@dataclass(frozen=True, slots=True, eq=False)
class LocatedRows:
    """Rows with the id of their file group, null for new ones.

    frame    the rows, with their key statuses and positions in base files where these are asked for
    files    what a writer sees of the partitions that rows go to
    total    rows that are to arrive at tasks
    """

    frame: DataFrame
    profile: Mapping[str, PartitionProfile]
    files: TableFiles
    cost: IndexStats
    total: int
    persisted_frames: tuple[DataFrame, ...] = ()

    def release(self) -> None:
        for frame in self.persisted_frames:
            frame.unpersist()


def tag_rows(session: SparkSession, staged: SparkStage, write: Write, files: TableFiles) -> LocatedRows:
    """Find the file group of each row. files: what a writer sees: `Write.files_of` of the batch's partitions"""
    frame, measured, look_up = staged.frame(session, arrivals=True), staged.measured(), write.index.look_up
    delete = write.operation_rules.delete
    nothing_there = isinstance(look_up, ByFile) and not files.bases
    # With a global index rows of one key may name several partitions, even where the table has none of them.
    if not write.operation_rules.locate or (nothing_there and not write.index.is_global):
        unlocated = _with_statuses(join_hits(frame, None, False, drop_new=delete), write)
        return LocatedRows(unlocated, profile(measured, {}, not delete), files, IndexStats(), measured.total)
    if isinstance(look_up, ByKey) and look_up.names_new:
        return _by_hash(staged, frame, write, look_up.tagger(index_context(write.state, measured.rows, files)), files)
    placed = write.keeps_positions and isinstance(look_up, ByFile)
    lookup = look_up_keys(session, write, frame, measured.rows, files, keeps_positions=placed).persisted()
    if isinstance(look_up, ByFile) and not write.index.is_global and may_hold_deleted(write.state, files):
        lookup = _without_deleted(lookup, write)
    updates, cost = lookup.count()
    if isinstance(look_up, ByKey):
        hits = [FileGroupId(partition, file_id) for partition, ids in updates.items() for file_id in ids]
        files = write.files_of_hits(files, hits)
    if write.index.is_global:
        doubts = _doubts(frame, lookup.key_hits)
        if doubts.limit(1).count():
            resolved = _relocated_rows(session, frame, lookup.key_hits, doubts, write)
            counted, total = _counts(resolved)
            return LocatedRows(resolved, _profile_of(counted), files, cost, total, (resolved, doubts, lookup.hits))
        doubts.unpersist()
    located = join_hits(
        frame, lookup.position_hits if placed else lookup.key_hits, _fits_broadcast(updates), drop_new=delete
    )
    if placed:
        located = located.withColumn(ROW_POSITION, F.coalesce(ROW_POSITION, F.lit(-1).cast("long")))
    return LocatedRows(
        _with_statuses(located, write),
        profile(measured, updates, not delete),
        files,
        cost,
        measured.total,
        (lookup.hits,),
    )


def _without_deleted(lookup: KeyLookup, write: Write) -> KeyLookup:
    """The look-up without hits of keys that a log deleted where another file group of the partition holds them; of keys
    that no file group holds now, one hit stays."""
    key = [RECORD_KEY, PARTITION_PATH]
    counted = lookup.key_hits.groupBy(*key).agg(F.min(FILE_ID).alias("first"), F.max(FILE_ID).alias("last"))
    several = persist(counted.where("first <> last").select(*key, "first"))
    try:
        with raise_worker_errors():
            paths = [row[0] for row in several.select(PARTITION_PATH).distinct().collect()]
        if not paths:
            return lookup
        stored = stored_reader(write.state, paths, replace(write.relocation_rule, moves=False), write.settings.reading)
        ambiguous_hits = lookup.key_hits.join(several, key, "left_semi").repartition(PARTITION_PATH, FILE_ID)
        schema = StructType([*TAGS.fields, StructField("live", BooleanType())])
        read = persist(ambiguous_hits.mapInArrow(partial(_read_stored, stored, pa.schema([])), schema))
        alive = read.groupBy(*key).agg(F.max("live").alias("alive"))
        dead = read.where("not live").join(alive, key).join(several, key).where(f"alive or {FILE_ID} <> first")
        hits = lookup.hits.join(dead.select(*TAGS.names), TAGS.names, "left_anti").select(*HITS.names)
        rest = replace(lookup, hits=hits).persisted()
        with raise_worker_errors():
            rest.hits.count()  # while what it is made from is in the cache
        lookup.hits.unpersist()
        read.unpersist()
        return rest
    finally:
        several.unpersist()


def _fits_broadcast(updates: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether the hits may be sent to every executor; one takes about 200 bytes as a row."""
    return 200 * sum(sum(rows.values()) for rows in updates.values()) <= BROADCAST_KEYS


def _with_statuses(frame: DataFrame, write: Write) -> DataFrame:
    if not write.keeps_statuses:
        return frame
    return frame.withColumn(
        KEY_STATUS, F.when(F.col(FILE_ID).isNull(), int(KeyStatus.INSERT)).otherwise(int(KeyStatus.UPDATE)).cast("byte")
    )


# --- an index by hash: each row is tagged as it stands ---


def _by_hash(staged: SparkStage, frame: DataFrame, write: Write, tag: TagKeys, files: TableFiles) -> LocatedRows:
    groups = files.groups
    schema = all_nullable(frame.schema).add(FILE_ID, StringType())
    only = {group.file_id for group in groups} if write.operation_rules.delete else None
    tagged = frame.to(all_nullable(frame.schema)).mapInArrow(partial(_tag_rows, tag, only), schema)
    start = time.perf_counter()
    counted, total = _counts(tagged)
    hits = sum(n for (path, file_id), n in counted.items() if FileGroupId(path, file_id) in groups)
    cost = IndexStats(candidates=total, checked=total, hits=hits, seconds=time.perf_counter() - start)
    return LocatedRows(_with_statuses(tagged, write), _profile_of(counted), files, cost, total)


def _tag_rows(tag: TagKeys, only: set[str] | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """only  file ids of the rows that are kept; None: all"""
    for batch in batches:
        with mark_worker_errors():
            ids = tag(batch.column(RECORD_KEY), batch.column(PARTITION_PATH)).file_ids
        rows = pa.RecordBatch.from_arrays([*batch.columns, ids], names=[*batch.schema.names, FILE_ID])
        yield rows if only is None else rows.filter(pc.is_in(ids, value_set=pa.array(sorted(only), pa.string())))


def _counts(frame: DataFrame) -> tuple[dict[tuple[str, str], int], int]:
    """Rows per partition path and file id, "" for new ones, and in all."""
    counted = collect(frame.groupBy(PARTITION_PATH, FILE_ID).count()).to_pylist()
    counts = {(row[PARTITION_PATH], row[FILE_ID] or ""): row["count"] for row in counted}
    return counts, sum(counts.values())


def _profile_of(counted: Mapping[tuple[str, str], int]) -> dict[str, PartitionProfile]:
    inserts: dict[str, int] = {}
    updates: dict[str, dict[str, int]] = {}
    for (path, file_id), count in counted.items():
        part = updates.setdefault(path, {})
        if file_id:
            part[file_id] = count
        else:
            inserts[path] = count
    return {path: PartitionProfile(inserts.get(path, 0), part) for path, part in updates.items()}


# --- rows that a global index may have go elsewhere ---


def _doubts(frame: DataFrame, hits: DataFrame) -> DataFrame:
    """Keys that are found in several file groups, or in another partition than a row says; or whose rows do not agree.
    Persisted."""
    own, stored = F.col("own"), F.col(PARTITION_PATH)
    keys = frame.select(RECORD_KEY, F.col(PARTITION_PATH).alias("own"))
    met = keys.join(hits, RECORD_KEY, "left")
    counted = met.groupBy(RECORD_KEY).agg(
        F.min(own).alias("first"),
        F.max(own).alias("last"),
        F.min(FILE_ID).alias("one"),
        F.max(FILE_ID).alias("other"),
        F.coalesce(F.max(stored != own), F.lit(False)).alias("elsewhere"),
    )
    several = F.coalesce(F.col("one") != F.col("other"), F.lit(False))
    return persist(counted.where((F.col("first") != F.col("last")) | several | F.col("elsewhere")).select(RECORD_KEY))


def _relocated_rows(
    session: SparkSession, frame: DataFrame, hits: DataFrame, doubts: DataFrame, write: Write
) -> DataFrame:
    """The rows where a global index has them go. Persisted."""
    how = write.relocation_rule
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    looked_at = all_nullable(to_spark(pa.schema([how.schema.field(name) for name in how.columns[1:]])))
    arrow = in_session_zone(to_arrow(looked_at), zone)
    stored_type = StructType([StructField(field.name, field.dataType) for field in looked_at.fields])
    has_columns = bool(looked_at.fields)
    of_doubts = hits.join(doubts, RECORD_KEY, "left_semi")
    read = StructType(
        [*TAGS.fields, StructField("live", BooleanType()), *([StructField("row", stored_type)] if has_columns else [])]
    )
    if write.is_certain and not has_columns:
        met = hits.withColumn("live", F.lit(None).cast("boolean"))
    else:
        with raise_worker_errors():
            paths = [row[0] for row in of_doubts.select(PARTITION_PATH).distinct().collect()]
        stored = stored_reader(write.state, paths, how, write.settings.reading)
        looked_up = of_doubts.repartition(PARTITION_PATH, FILE_ID).mapInArrow(
            partial(_read_stored, stored, arrow), read
        )
        certain = hits.join(doubts, RECORD_KEY, "left_anti").withColumn("live", F.lit(None).cast("boolean"))
        if has_columns:
            certain = certain.withColumn("row", F.lit(None).cast(stored_type))
        met = looked_up.unionByName(certain)
    names = [name for name in read.names if name in met.columns and name != RECORD_KEY]
    of_key = met.groupBy(RECORD_KEY).agg(F.collect_list(F.struct(*names)).alias(_HITS))
    # A rule that makes rows makes them of all the table's columns.
    whole = how.schema if not write.rule.takes_whole_rows and not how.delete else None
    keys = [StructField(name, StringType()) for name in (RECORD_KEY, PARTITION_PATH)]
    frame_columns = StructType([field for field in frame.schema if field.name != ARRIVAL])
    rows = all_nullable(frame_columns) if whole is None else all_nullable(StructType([*to_spark(whole).fields, *keys]))
    out = StructType([*rows.fields, StructField(KEY_STATUS, ByteType()), StructField(FILE_ID, StringType())])
    together = frame.to(all_nullable(frame.schema)).join(of_key, RECORD_KEY, "left").repartition(RECORD_KEY)
    kernel = partial(_resolve_rows, how, write.operation_rules, whole, in_session_zone(to_arrow(out), zone))
    return persist(together.mapInArrow(kernel, out))


def _read_stored(
    stored: StoredReader, columns: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Hits with whether their file group holds the key still, and the row that it holds."""
    hit_batches = list(batches)
    if not hit_batches:
        return
    hits = pa.Table.from_batches(hit_batches)
    pairs = hits.group_by([PARTITION_PATH, FILE_ID]).aggregate([]).to_pylist()
    for pair in pairs:
        here = pc.and_(pc.equal(hits[PARTITION_PATH], pair[PARTITION_PATH]), pc.equal(hits[FILE_ID], pair[FILE_ID]))
        part = hits.filter(here)
        keys = one_chunk(part.column(RECORD_KEY))
        with mark_worker_errors():
            rows = stored_rows(stored, FileGroupId(pair[PARTITION_PATH], pair[FILE_ID]), keys)
        at = pc.index_in(keys, value_set=as_array(rows.column(RECORD_KEY)).cast(keys.type))
        arrays: list[Any] = [one_chunk(part.column(name)) for name in TAGS.names] + [pc.is_valid(at)]
        if len(columns):
            values = conform(rows, columns, drop_extra=True).take(at)
            arrays.append(pa.StructArray.from_arrays([one_chunk(c) for c in values.columns], fields=list(columns)))
        yield pa.RecordBatch.from_arrays(arrays, names=[*TAGS.names, "live", *(["row"] if len(columns) else [])])


def _resolve_rows(
    how: RelocationRule,
    operation_rules: OperationRules,
    whole: pa.Schema | None,
    out: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """All rows of some keys, with their hits -> the rows with their file groups and key statuses.

    whole  all columns of the table, if rows are to have them
    """
    row_batches = [batch for batch in batches if len(batch)]
    if not row_batches:
        return
    with mark_worker_errors():
        key_rows = pa.Table.from_batches(row_batches)
        rows = combine(key_rows.drop_columns([_HITS]), how.rule, operation_rules, (RECORD_KEY,))
        if whole is not None:
            keys = [rows.schema.field(name) for name in (RECORD_KEY, PARTITION_PATH)]
            rows = conform(rows, pa.schema([*(f.with_nullable(True) for f in whole), *keys]), drop_extra=True)
        hits = _hits_of(key_rows, as_array(rows.column(RECORD_KEY)))
        resolved = resolve_locations(rows, hits, how)
        ids = pa.array([place.file_id for place in hits.places], pa.string())
        at = pa.array(resolved.groups, mask=resolved.groups < 0)
        placed = resolved.rows.append_column(KEY_STATUS, pa.array(resolved.statuses)).append_column(
            FILE_ID, ids.take(at)
        )
        resolved_rows = conform(placed, out)
    yield from resolved_rows.to_batches()


def _hits_of(key_rows: pa.Table, keys: pa.Array) -> Hits:
    first = pc.index_in(keys, value_set=as_array(key_rows.column(RECORD_KEY)))
    lists = as_array(key_rows.column(_HITS)).take(first)
    rows = np.repeat(np.arange(len(keys)), pc.fill_null(pc.list_value_length(lists), 0).to_numpy())
    flat = lists.flatten()
    paths, ids = (pc.struct_field(flat, name) for name in (PARTITION_PATH, FILE_ID))
    groups, places = numbered_groups(paths, ids)
    live = pc.struct_field(flat, "live")
    stored = np.where(np.asarray(pc.fill_null(live, False)), np.arange(len(flat)), GONE_NOW)
    stored = np.where(np.asarray(live.is_null()), UNREAD, stored).astype(np.int64)
    has_rows = flat.type.get_field_index("row") >= 0
    table_rows = pa.Table.from_struct_array(pc.struct_field(flat, "row")) if has_rows else pa.table({})
    return Hits(rows.astype(np.int64), groups, tuple(places), stored, table_rows)


# --- an index that learns ---


def record_executor_writes(session: SparkSession, write: Write, stats: Sequence[WriteStat]) -> tuple[pa.Table, ...]:
    """Tell the index of the files that the winning attempts of a bulk insert wrote, in tasks of their own.

    returns  what it is to be given once the write is published
    """
    record_writes = write.index.record_writes
    if record_writes is None or not stats:
        return ()
    packs = bin_pack(stats, lambda stat: stat.file_size, _FILE_BYTES)
    call = partial(_record_writes, write.storage, write.begun.time, record_writes)
    return reports_of(run_per_item(session, packs, call, STATS)).later


def _record_writes(
    storage: Storage, instant: str, record_writes: RecordWrites, stats: Sequence[WriteStat]
) -> Iterator[pa.RecordBatch]:
    with mark_worker_errors():
        index_updates = record_files(storage, instant, stats, record_writes)
    for later in index_updates:
        yield task_report(0, 0, TaskResult((), later))
