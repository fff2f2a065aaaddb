"""Changes of slices that a Spark session keeps in its cache, so that a further query does not read the logs again.

Files never change: what was read of some at a moment of the timeline holds for good.
"""

from __future__ import annotations

import threading
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


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What a frame of changes was made of."""

    changes: DataFrame
    reader: SliceReader
    slices: tuple[FileSlice, ...]
    columns: frozenset[str]
    zone: str
    size: int  # bytes of the log files

    def answers(self, reader: SliceReader, slices: tuple[FileSlice, ...], columns: frozenset[str], zone: str) -> bool:
        """Whether the changes of these slices are among its own."""
        if not columns <= self.columns or slices != self.slices or zone != self.zone:
            return False
        return reader.stored is None and self.reader.stored is None and _as_values(reader) == _as_values(self.reader)


_kept: WeakKeyDictionary[SparkSession, list[_Kept]] = WeakKeyDictionary()  # the one used last at the end
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
    files, wanted = tuple(slices), frozenset(columns)
    with _lock:
        kept = _kept.setdefault(session, [])
        found = next((entry for entry in kept if entry.answers(reader, files, wanted, zone)), None)
        if found is None:
            found = _Kept(changes_of(session, reader, slices, columns), reader, files, wanted, zone, size)
        else:
            kept.remove(found)
        kept.append(found)
        while len(kept) > _MOST_KEPT or sum(entry.size for entry in kept) > limit:
            kept.pop(0).changes.unpersist()
        if not found.changes.storageLevel.useMemory:  # it is new, or its user has cleared the session's cache
            found.changes.persist(StorageLevel.MEMORY_AND_DISK)
        return found.changes


def _as_values(reader: SliceReader) -> tuple[object, ...]:
    """What makes two readers read the same; a storage is told by its root."""
    schema = reader.schema.serialize().to_pybytes()
    return reader.storage.root, schema, reader.rule, reader.committed, reader.options, reader.keygen
