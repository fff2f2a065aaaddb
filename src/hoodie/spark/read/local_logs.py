"""What the logs of a table change, in a session whose tasks run in the JVM of this machine: threads of the driver read
small logs, so that no Python tasks start for it, and tasks larger ones.

The rows of the logs go to Parquet files in a scratch folder, of which Spark reads the columns and rows that a query
asks for, in one scan with the base files. They are kept, since files of a table never change: a commit only makes those
useless that hold rows of a slice that it wrote to.
"""

import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from operator import attrgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from hoodie.formats.parquet.columns import dictionary_columns
from hoodie.merge.rows import Positions
from hoodie.model.files import FileSlice
from hoodie.reading.scan import ScanPlan
from hoodie.reading.slices.log_scanner import logs_shown_since
from hoodie.reading.slices.reader import SliceReader
from hoodie.reading.slices.slice_changes import SliceChanges
from hoodie.schema.conform import conform
from hoodie.spark.read.kept_changes import Commits, reads_same
from hoodie.spark.tasks import balance, is_classic, local_cores, map_items
from hoodie.spark.types import all_nullable, in_session_zone, to_arrow, to_spark
from hoodie.storage.protocol import in_threads

#: Bytes of logs that share a file: Spark takes the opening of a file for as many.
_FILE_BYTES = 4 * 1024 * 1024
#: The same where a task reads them, which takes some time to start.
_TASK_BYTES = 32 * 1024 * 1024
#: A frame that has not run yet reads its files later: what was read last in so many seconds is not removed.
_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class SliceLogs:
    """What the logs of some slices change.

    slices    with the positions of the rows of their base files that are replaced
    rows      Parquet file of the rows that take their place, and new ones; None: there are none
    size      its bytes
    """

    slices: dict[FileSlice, Positions]
    rows: Path | None
    size: int


@dataclass(slots=True, eq=False)
class _Entry:
    """Logs that were read, and what for."""

    logs: SliceLogs
    reader: SliceReader
    columns: frozenset[str]
    used: float = field(default_factory=time.monotonic)

    def answers(self, reader: SliceReader, slices: frozenset[FileSlice], columns: set[str], commits: Commits) -> bool:
        """Whether it has these columns of some of the slices, and of no others, as the reader would read them."""
        own = self.reader
        if not self.logs.slices.keys() <= slices or not self.columns >= columns or not reads_same(own, reader):
            return False
        if own.committed == reader.committed:
            return True
        shown = logs_shown_since(own.committed, reader.committed, commits())
        return shown is not None and not any(
            (log.group.partition, log.name) in shown for slice_ in self.logs.slices for log in slice_.logs
        )


@dataclass(slots=True, eq=False)
class _Scratch:
    """The files of this process, with which the folder goes: views live longer than Python's objects of a session."""

    entries: list[_Entry] = field(default_factory=list)
    folder: tempfile.TemporaryDirectory[str] | None = None
    count: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)

    def paths(self, count: int) -> list[Path]:
        """Where so many new files go."""
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory(prefix="hoodie-logs-", ignore_cleanup_errors=True)
        self.count += count
        return [Path(self.folder.name) / f"{number}.parquet" for number in range(self.count - count, self.count)]

    def room(self, size: int, limit: int) -> bool:
        """Make room for files of so many bytes, by removing those that were not used for long."""
        held = sum(entry.logs.size for entry in self.entries)
        for entry in sorted(self.entries, key=lambda entry: entry.used):
            if held + size <= limit or time.monotonic() - entry.used < _SECONDS:
                break
            self.entries.remove(entry)
            held -= entry.logs.size
            if entry.logs.rows is not None:
                entry.logs.rows.unlink(missing_ok=True)
        return held + size <= limit


_scratch = _Scratch()


def changes_of_logs(
    session: SparkSession,
    scan: ScanPlan,
    reader: SliceReader,
    slices: Sequence[FileSlice],
    columns: Sequence[str],
    limit: int,
    commits: Commits,
) -> list[SliceLogs] | None:
    """What the logs of slices change, read now unless it is kept; None: the query is to read it, as the files are too
    large for bits of their rows and a temporary folder, or tasks run elsewhere.

    columns  of the table, those that are needed at least
    limit    bytes that are kept
    commits  what the newest commits wrote; asked when there were some since logs were read
    Raises   as `SliceChanges.rows`
    """
    engine = scan.settings.engine
    base_bytes = sum(slice_.base.size for slice_ in slices if slice_.base is not None)
    if sum(slice_.log_bytes for slice_ in slices) > limit or base_bytes > engine.driver_rewrite:
        return None
    if not engine.driver_batch or not _is_here(session):  # 0: the driver is to do nothing
        return None
    commits, names = cache(commits), set(columns)
    scratch = _scratch
    with scratch.turn:
        rest, parts = frozenset(slices), list[SliceLogs]()
        for entry in reversed(scratch.entries):
            if entry.answers(reader, rest, names, commits):
                entry.used = time.monotonic()
                parts.append(entry.logs)
                rest -= entry.logs.slices.keys()
        if not rest:
            return parts
        size = sum(slice_.log_bytes for slice_ in rest)
        if not scratch.room(size, limit):
            return None
        threads, few = local_cores(session), size <= engine.driver_batch
        files = min(len(rest), max(threads, -(-size // (_FILE_BYTES if few else _TASK_BYTES))))
        hands = balance([slice_ for slice_ in slices if slice_ in rest], attrgetter("log_bytes"), files)
        work = list(zip(hands, scratch.paths(len(hands)), strict=True))
        read = partial(_read, reader, columns)
        fresh = in_threads(read, work, threads) if few else map_items(session, read, work)
        scratch.entries += [_Entry(logs, reader, frozenset(columns)) for logs in fresh]
        return [*parts, *fresh]


def forget_changes() -> None:
    """Keep nothing of what was read, so that the next query is as the first. Frames made before can no longer run."""
    global _scratch
    _scratch = _Scratch()


def _is_here(session: SparkSession) -> bool:
    """Whether tasks run in the driver's JVM, which reads files of this process: over Spark Connect nothing tells."""
    return is_classic(session) and local_cores(session) > 0


def _read(reader: SliceReader, columns: Sequence[str], work: tuple[Sequence[FileSlice], Path]) -> SliceLogs:
    slices, path = work
    stored = pa.schema([reader.schema.field(name) for name in columns])
    target = in_session_zone(to_arrow(all_nullable(to_spark(stored))), "UTC")
    replaced: dict[FileSlice, Positions] = {}
    parts: list[pa.Table] = []
    for slice_ in slices:
        changes = SliceChanges(reader, slice_, columns)
        parts += [conform(rows, target) for rows in changes.rows()]
        replaced[slice_] = changes.replaced
    if not parts:
        return SliceLogs(replaced, None, 0)
    table = pa.concat_tables(parts)
    # Not compressed: the file is read once or a few times, from this machine.
    pq.write_table(table, path, compression="none", use_dictionary=dictionary_columns(table), store_schema=False)
    return SliceLogs(replaced, path, path.stat().st_size)
