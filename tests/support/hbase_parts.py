"""A table's settings and timeline, and calls of its HBase index: what tests of the index alone share."""

import pyarrow as pa

from hoodie.config.table import from_properties
from hoodie.index.contract import IndexContext, Placed
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.timeline import Timeline

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
MOVES = {"hoodie.hbase.index.update.partition.path": "true"}

CONFIG = from_properties(
    {
        "hoodie.table.name": "trips",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.timeline.timezone": "UTC",
    }
)
FIRST, SECOND, THIRD = "20240101000000001", "20240101000000002", "20240101000000003"
A, B = FileGroupId("p=a", "11111111-0"), FileGroupId("p=b", "22222222-0")


def index_context(*completed, pending=()):
    instants = [Instant(time, Action.COMMIT, State.COMPLETED) for time in completed]
    instants += [Instant(time, Action.COMMIT, State.INFLIGHT) for time in pending]
    return IndexContext(MemoryStorage(), CONFIG, Timeline(tuple(sorted(instants))))


def placed(instant, group, inserted=(), moved=(), deleted=(), looked_up=True):
    columns = [pa.array(list(keys), pa.string()) for keys in (inserted, moved, deleted)]
    return Placed(instant, group, *columns, looked_up)


def write(index, *parts):
    later = index.record_writes(parts)
    if later is not None:
        index.finalize(parts[0].instant, later)


def where(index, keys, table):
    tags = index.look_up.tagger(table)(pa.array(keys, pa.string()), pa.array(["?"] * len(keys)))
    found = zip(tags.partitions.to_pylist(), tags.file_ids.to_pylist(), strict=True)
    return [None if file_id is None else FileGroupId(path, file_id) for path, file_id in found]


def rows(*values, ts=1):
    """values  (id, city, fare)"""
    ids, cities, fares = zip(*values, strict=True)
    return pa.table({"id": ids, "city": cities, "fare": pa.array(fares, pa.int64()), "ts": [ts] * len(ids)})


def content(table):
    return sorted((row["id"], row["city"], row["fare"]) for row in table.snapshot().to_pylist())
