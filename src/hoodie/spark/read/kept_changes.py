"""Changes of slices that a Spark session keeps in its cache, so that a further query does not read the logs again.

Files never change: what was read of one at a moment of the timeline holds for good, and after further commits for all
slices that these did not write to. A frame is read when its first user runs; a slice whose files are cleaned by then
fails only those who ask for that slice.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hoodie.model.files import FileSlice
from hoodie.reading.slices.log_scanner import logs_shown_since
from hoodie.reading.slices.reader import SliceReader
from hoodie.spark.read.positioned_slices import changes_among, changes_of
from hoodie.view.published import PublishedNames

#: Frames kept in a session: Spark looks at all of them when it plans a query.
_MOST_KEPT = 16
#: Those of them that answer one query beside what it reads itself: each is a scan of its own.
_MOST_PARTS = 3

Commits = Callable[[], Iterable[PublishedNames]]


@dataclass(frozen=True, slots=True, eq=False)
class _CachedChanges:
    """What a frame of changes was made of."""

    changes: DataFrame
    reader: SliceReader
    slices: dict[FileSlice, int]  # with their numbers in the frame
    columns: frozenset[str]
    zone: str

    @property
    def size(self) -> int:
        return _size(self.slices)

    def holds(
        self, reader: SliceReader, slices: Iterable[FileSlice], columns: Iterable[str], zone: str, commits: Commits
    ) -> list[FileSlice]:
        """Those of some slices whose changes it has, as the reader would read them."""
        if not reads_same(self.reader, reader) or not self.columns.issuperset(columns) or zone != self.zone:
            return []
        held_slices = [slice_ for slice_ in slices if slice_ in self.slices]
        if not held_slices or reader.committed == self.reader.committed:
            return held_slices
        shown = logs_shown_since(self.reader.committed, reader.committed, commits())
        if shown is None:
            return []
        return [
            slice_ for slice_ in held_slices if not any((log.group.partition, log.name) in shown for log in slice_.logs)
        ]

    def of(self, slices: Iterable[FileSlice], columns: Sequence[str]) -> DataFrame:
        numbers = [self.slices[slice_] for slice_ in slices]
        return changes_among(self.changes, len(self.slices), numbers, columns)


_entries: WeakKeyDictionary[SparkSession, list[_CachedChanges]] = WeakKeyDictionary()  # the one used last at the end
_lock = threading.Lock()


def kept_changes(
    session: SparkSession,
    reader: SliceReader,
    slices: Sequence[FileSlice],
    columns: Sequence[str],
    limit: int,
    commits: Commits,
) -> DataFrame | None:
    """The changes of slices, which the session keeps once a query has read them; None when they are too large.

    columns  those that are needed at least
    limit    bytes of log files whose changes the session keeps; those of the least recent queries give way
    commits  what the newest commits wrote; asked when there were some since the logs were read
    """
    if _size(slices) > limit:
        return None
    zone = session.conf.get("spark.sql.session.timeZone") or "UTC"
    commits = cache(commits)
    with _lock:
        entries = _entries.setdefault(session, [])
        parts: list[tuple[_CachedChanges, list[FileSlice]]] = []
        rest = list(slices)
        while rest and len(parts) < _MOST_PARTS:
            holding = [(entry, entry.holds(reader, rest, columns, zone, commits)) for entry in entries]
            best = max(holding, key=lambda part: _size(part[1]), default=None)
            if best is None or not best[1]:
                break
            parts.append(best)
            taken = set(best[1])
            rest = [slice_ for slice_ in rest if slice_ not in taken]
        if sum(entry.size for entry, _ in parts) + _size(rest) > limit:
            parts, rest = [], list(slices)  # what is kept has too much besides
        if rest:
            numbers = {slice_: number for number, slice_ in enumerate(rest)}
            read = changes_of(session, reader, rest, columns, each_alone=True)
            parts.append((_CachedChanges(read, reader, numbers, frozenset(columns), zone), rest))
        for entry, _ in parts:
            if entry in entries:
                entries.remove(entry)
            entries.append(entry)
        while len(entries) > _MOST_KEPT or sum(entry.size for entry in entries) > limit:
            entries.pop(0).changes.unpersist()
        for entry, _ in parts:
            if not entry.changes.storageLevel.useMemory:  # it is new, or its user has cleared the session's cache
                entry.changes.persist(StorageLevel.MEMORY_AND_DISK)
        return reduce(DataFrame.unionAll, [entry.of(entry_slices, columns) for entry, entry_slices in parts])


def _size(slices: Iterable[FileSlice]) -> int:
    """Bytes of the log files."""
    return sum(slice_.log_bytes for slice_ in slices)


def reads_same(one: SliceReader, other: SliceReader) -> bool:
    """Whether two readers read the same of the same blocks; a storage is known by its root."""
    return one.stored is None and other.stored is None and _as_values(one) == _as_values(other)


def _as_values(reader: SliceReader) -> tuple[object, ...]:
    schema = reader.schema.serialize().to_pybytes()
    return reader.storage.root, schema, reader.rule, reader.options, reader.keygen
