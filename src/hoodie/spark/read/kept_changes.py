"""Changes of slices that a Spark session keeps in its cache, so that a further query does not read the logs again.

Files never change: what was read of some at a moment of the timeline holds for good.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hoodie.model.files import FileSlice
from hoodie.reading.file_slice_reader import SliceReader
from hoodie.spark.read.positioned_slices import changes_of

#: Frames kept in a session: Spark looks at all of them when it plans a query.
_MOST_KEPT = 16


@dataclass(frozen=True, slots=True)
class _Kept:
    changes: DataFrame
    columns: frozenset[str]
    size: int  # bytes of the log files


_kept: WeakKeyDictionary[SparkSession, OrderedDict[tuple[bytes, frozenset[str]], _Kept]] = WeakKeyDictionary()
_lock = threading.Lock()


def kept_changes(
    session: SparkSession, reader: SliceReader, slices: Sequence[FileSlice], columns: Sequence[str], limit: int
) -> DataFrame | None:
    """The changes of slices, which the session keeps once a query has read them; None when they are too large.

    columns  those that are needed at least
    limit    bytes of log files whose changes the session keeps; those of the least recent queries give way
    """
    size = sum(log.size for slice_ in slices for log in slice_.logs)
    if size > limit:
        return None
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    what = hashlib.sha256(pickle.dumps((reader, tuple(slices), zone))).digest()
    wanted = frozenset(columns)
    with _lock:
        kept = _kept.setdefault(session, OrderedDict())
        for key, entry in kept.items():
            if key[0] == what and wanted <= entry.columns:
                kept.move_to_end(key)
                return entry.changes if _is_kept(entry.changes) else _keep(entry.changes)
        changes = _keep(changes_of(session, reader, slices, columns))
        kept[what, wanted] = _Kept(changes, wanted, size)
        while len(kept) > _MOST_KEPT or sum(entry.size for entry in kept.values()) > limit:
            kept.popitem(last=False)[1].changes.unpersist()
        return changes


def _keep(changes: DataFrame) -> DataFrame:
    return changes.persist(StorageLevel.MEMORY_AND_DISK)


def _is_kept(changes: DataFrame) -> bool:
    """Whether the session still has it: its user may have cleared the cache."""
    return changes.storageLevel.useMemory
