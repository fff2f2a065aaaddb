"""Where an index has the keys of a batch that stays with the executors, and how many of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from hoodie.index.contract import ByKey, TagKeys
from hoodie.index.pruning import IndexStats
from hoodie.lookup.context import LookupContext, index_context
from hoodie.merge.rows import ROW_POSITION
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.spark.lookup.locate import COST, FILE_ID, HITS, join_cost, locate_on_executors, match_columns
from hoodie.spark.tasks import collect, persist
from hoodie.spark.worker_errors import mark_worker_errors
from hoodie.table.state import TableFiles

TAGS = StructType([StructField(name, StringType()) for name in (RECORD_KEY, PARTITION_PATH, FILE_ID)])

#: Keys up to this many bytes are sent to every executor instead of being shuffled.
BROADCAST_KEYS = 64 * 1024 * 1024

Updates = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class KeyLookup:
    """A batch of keys and where they are.

    rows   of the batch, by partition path
    files  what the index looks at
    hits   record key, partition path and file id of the keys that are found; of an index by file `HITS`, costs among
           them. Evaluated whenever used
    joined of an index by file: a join found them, and they do not say what it cost
    """

    context: LookupContext
    rows: Mapping[str, int]
    files: TableFiles
    hits: DataFrame
    joined: bool = False

    @property
    def key_hits(self) -> DataFrame:
        """The hits, without what they cost."""
        return self.hits.where(F.col(RECORD_KEY).isNotNull()).select(*TAGS.names)

    @property
    def position_hits(self) -> DataFrame:
        """The hits of an index by file with the positions of the keys: see `locate_on_executors`."""
        return self.hits.where(F.col(RECORD_KEY).isNotNull()).select(*TAGS.names, ROW_POSITION)

    def persisted(self) -> KeyLookup:
        """The same, with hits that are evaluated once."""
        return replace(self, hits=persist(self.hits))

    def count(self) -> tuple[Updates, IndexStats]:
        """Keys found per partition path and file id, and what it cost to find them: one job."""
        by = [PARTITION_PATH, FILE_ID, *([COST] if self.context.by_file else [])]
        updates: Updates = {}
        file_costs: dict[tuple[str, str], IndexStats] = {}
        for row in collect(self.hits.groupBy(*by).agg(F.count(RECORD_KEY).alias("keys"))).to_pylist():
            partition, file_id = row[PARTITION_PATH], row[FILE_ID]
            if row.get(COST) is not None:  # of each task that looked into the file
                cost = IndexStats(**json.loads(row[COST])[1])
                file_costs[partition, file_id] = file_costs.get((partition, file_id), IndexStats()) + cost
            else:
                updates.setdefault(partition, {})[file_id] = row["keys"]
        return updates, self._cost(list(file_costs.values()), sum(sum(rows.values()) for rows in updates.values()))

    def _cost(self, file_costs: Sequence[IndexStats], hits: int) -> IndexStats:
        """file_costs  a file each: what those that were looked into cost"""
        look_up, files = self.context.index.look_up, self.files.bases
        if isinstance(look_up, ByKey):
            total = sum(self.rows.values())
            return IndexStats(candidates=total, checked=total, hits=hits)
        key_counts = _requested_counts(self.context, self.rows, self.files)
        if self.joined:
            return join_cost(key_counts, files, hits)
        cost = sum(file_costs, IndexStats())
        pairs = sum(key_counts[partition] * len(part) for partition, part in files.items())
        number, read = sum(len(part) for part in files.values()), sum(cost.files_read > 0 for cost in file_costs)
        return replace(
            cost,
            files=number,
            files_pruned_by_range=number - len(file_costs),
            files_pruned_by_filter=len(file_costs) - read,
            files_read=read,
            candidates=pairs,
            pruned_by_range=pairs - cost.candidates,
        )


def look_up_keys(
    session: SparkSession,
    context: LookupContext,
    frame: DataFrame,
    rows: Mapping[str, int],
    files: TableFiles,
    *,
    keeps_positions: bool = False,
) -> KeyLookup:
    """Look keys up. Nothing runs yet.

    frame   with `_hoodie_record_key` and `_hoodie_partition_path`, no nulls
    rows    of it, by partition path
    files   `context.files` of these partitions
    keeps_positions  as of `locate_on_executors`
    """
    index, joined = context.index, False
    keys = frame.select(RECORD_KEY, PARTITION_PATH)
    if isinstance(index.look_up, ByKey):
        tag = index.look_up.tagger(index_context(context.state, rows, files))
        hits = keys.dropDuplicates(match_columns(index)).mapInArrow(partial(_tag, tag), TAGS)
    elif files.bases:
        small = 100 * sum(rows.values()) <= BROADCAST_KEYS  # a key and its path take about 100 bytes as a row
        key_counts = _requested_counts(context, rows, files)
        hits, joined = locate_on_executors(
            session, context, keys, key_counts, files.bases, broadcast=small, keeps_positions=keeps_positions
        )
    else:
        hits = session.createDataFrame([], HITS)
    return KeyLookup(context, rows, files, hits, joined)


def _requested_counts(context: LookupContext, rows: Mapping[str, int], files: TableFiles) -> Mapping[str, int]:
    """Keys that are asked for in the files of each partition path."""
    return dict.fromkeys(files.bases, sum(rows.values())) if context.index.is_global else rows


def _tag(tag: TagKeys, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        keys = batch.column(RECORD_KEY)
        with mark_worker_errors():
            tags = tag(keys, batch.column(PARTITION_PATH))
        columns = [keys, tags.partitions, tags.file_ids]
        yield pa.RecordBatch.from_arrays(columns, names=TAGS.names).filter(pc.is_valid(tags.file_ids))


def join_hits(frame: DataFrame, hits: DataFrame | None, broadcast: bool, *, drop_new: bool) -> DataFrame:
    """Each row with the id of the file group that holds its key, null for none. A row occurs once a hit.

    hits      as of `KeyLookup.key_hits` or `position_hits`; None: there are none
    drop_new  rows whose key the table does not hold have no effect
    """
    if hits is None:
        return frame.withColumn(FILE_ID, F.lit(None).cast("string"))
    how = "inner" if drop_new else "left"
    return frame.join(F.broadcast(hits) if broadcast else hits, [RECORD_KEY, PARTITION_PATH], how)
