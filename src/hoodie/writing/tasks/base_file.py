"""Writing base files: rows in, Parquet with the footer that an index needs out."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.commit.markers import MarkerKind, create_marker, marker_path
from hoodie.config.table import LoggedImages
from hoodie.config.write import BloomOptions, FileSizing, LogOptions
from hoodie.errors import InstantNotFound
from hoodie.formats.parquet.base_footer import BaseFooter, footer_metadata, java_min_max
from hoodie.formats.parquet.bloom import BloomFilter, BloomKind, add_keys, empty_filter
from hoodie.formats.parquet.columns import dictionary_columns, rows_at_once, statistics_columns
from hoodie.model.commit import WriteStat
from hoodie.model.files import BaseFile, FileGroupId, base_file_name
from hoodie.model.instant import Instant
from hoodie.model.meta import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.schema.conform import conform
from hoodie.schema.encoded import as_schema, constant, joined, without_unused_values
from hoodie.storage.protocol import OutputFile, Storage
from hoodie.table.partition_metadata import ensure_partition
from hoodie.timeline.timeline import LAYOUT_1, TimelineLayout
from hoodie.timeline.transition import is_pending
from hoodie.writing.tasks.stored_rows import StoredRows

#: A filter sized for its file covers at most this many keys: 3.6 MB in the footer at the default probability. Twice as
#: many keys in it still give 2 false positives in 10,000.
MAX_SIZED_ENTRIES = 500_000
MIN_SIZED_ENTRIES = 1_000
#: A filter of so many rows is made anew where one of larger rows will do: each time the keys are four times as many.
_MOST_ROWS = 4


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """What every task of one write needs; pickles to executors."""

    storage: Storage
    instant: str
    schema: pa.Schema  # of base files: the five meta columns first
    avro_schema: str  # the same as Avro JSON
    sizing: FileSizing
    bloom: BloomOptions
    logs: LogOptions
    cdc: LoggedImages | None = None  # what change logs hold; None: the table has none
    stored: StoredRows | None = None  # where logs are appended and the rows that are there decide what is
    new_keys: bool = False  # record keys may lack the instant: `keygen.generated_keys`
    pending: Instant | None = None  # the write's, where attempts of a task may outlive it: they look whether it is over
    layout: TimelineLayout = LAYOUT_1  # of the table: what its version asks of names and statistics


class BaseFileWriter:
    """One new base file: `append` row groups, then `close`. Leaving the `with` block by an error leaves no file."""

    def __init__(
        self,
        spec: WriteSpec,
        group: FileGroupId,
        token: str,
        *,
        base: BaseFooter | None = None,
        base_path: str = "",
        expected_rows: int = 0,
    ) -> None:
        """
        base           footer of the version that this one replaces, and its path: filter and key range are carried on
        expected_rows  what a new filter is sized for
        """
        self.spec, self.group, self.token = spec, group, token
        self.name = base_file_name(group.file_id, token, spec.instant)
        self.rows = 0
        self.closed_size = 0
        self._base, self._expected = base, expected_rows
        self._marker_kind = MarkerKind.MERGE if base else MarkerKind.CREATE
        self._carried = None if base is None else self._carried_filter(base, base_path)
        self._keys: list[pa.Array] = []
        self._pending: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None
        self.pending_bytes = 0

    def __enter__(self) -> Self:
        if self._base is None:  # else there are files: a metafile that was lost, the write has restored
            ensure_partition(self.spec.storage, self.group.partition, self.spec.instant)
        self._stack = ExitStack()
        self._sink = self._stack.enter_context(open_marked(self.spec, self.file().path, self._marker_kind))
        return self

    def _parquet(self, rows: pa.Table) -> pq.ParquetWriter:
        """The file's writer, made when the first rows are there to say how columns are best encoded."""
        if self._writer is None:
            self._writer = self._stack.enter_context(
                pq.ParquetWriter(
                    self._sink,
                    rows.schema,
                    compression=self.spec.sizing.codec.value,
                    use_dictionary=dictionary_columns(rows, (COMMIT_SEQNO, RECORD_KEY)),
                    write_statistics=statistics_columns(rows),
                    write_batch_size=rows_at_once(rows),
                    write_page_index=True,  # Spark and Trino leave out pages by it
                    store_schema=False,
                    store_decimal_as_integer=False,
                    use_compliant_nested_type=True,
                    write_page_checksum=True,  # under 1 % of a write; Hudi's writers store them, too
                )
            )
        return self._writer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:  # whatever fails in here, the output is told, and takes the file away
            if error is not None:
                self._stack.__exit__(kind, error, trace)
                if isinstance(error, InstantNotFound):  # another file of this attempt found that the write is over
                    self.spec.storage.delete(marker_path(self.spec.instant, self.file().path, self._marker_kind))
                return
            self.flush()
            writer = self._parquet(self.spec.schema.empty_table())
            writer.add_key_value_metadata(self._footer())
            writer.close()
            self.closed_size = self._sink.tell()
        take_back_if_over(self.spec, self.file().path, self._marker_kind)

    def append(self, rows: pa.Table, new_keys: pa.Array | pa.ChunkedArray | None = None) -> None:
        """Rows of the file's schema, in file order; columns of few values may be encoded.

        new_keys  the keys among them that the replaced version does not hold; None: all
        """
        if rows.num_rows == 0:
            return
        keys = rows.column(RECORD_KEY) if new_keys is None or self._carried is None else new_keys
        self._keys.extend(keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys])
        self._pending.append(rows)
        self.pending_bytes += rows.nbytes
        self.rows += rows.num_rows
        if self.pending_bytes >= self.spec.sizing.block_size:
            self.flush()

    @property
    def pending(self) -> Sequence[pa.Table]:
        """Rows that are not in a row group yet."""
        return self._pending

    def file(self) -> BaseFile:
        """The file, after the `with` block."""
        return BaseFile(self.group, self.spec.instant, self.token, self.closed_size, self.name)

    def stat(self) -> WriteStat:
        """The statistic of a file of new rows, after the `with` block."""
        file = self.file()
        return WriteStat(
            file_id=file.group.file_id,
            path=file.path,
            partition=file.group.partition,
            num_writes=self.rows,
            num_inserts=self.rows,
            total_write_bytes=file.size,
            file_size=file.size,
        )

    def flush(self) -> None:
        """Write the rows that are pending as a row group."""
        if not self._pending:
            return
        rows = joined(self._pending, self.spec.schema)
        at, name = rows.schema.get_field_index(FILE_NAME), constant(self.name, len(rows))
        rows = without_unused_values(rows.set_column(at, self.spec.schema.field(FILE_NAME).with_type(name.type), name))
        per_group = max(1, len(rows) * self.spec.sizing.block_size // max(self.pending_bytes, 1))
        writer = self._parquet(rows)
        writer.write_table(as_schema(rows, writer.schema), row_group_size=per_group)
        self._pending, self.pending_bytes = [], 0

    def _footer(self) -> dict[str, str]:
        keys = pa.chunked_array(self._keys, pa.string())
        bounds = java_min_max(keys)
        if self._base is not None and self._carried is not None:  # rows that stayed are in the old range
            old = (self._base.min_key, self._base.max_key)
            bounds = java_min_max(pa.array([key for key in (*(bounds or ()), *old) if key is not None], pa.string()))
        low, high = bounds or (None, None)
        metadata = {"parquet.avro.schema": self.spec.avro_schema, "writer.model.name": "avro"}
        if self._base is not None and self._carried is not None and not len(keys):
            return metadata | footer_metadata(low, high, self._base)
        bloom = self._new_filter(len(keys)) if self._carried is None else self._carried
        return metadata | footer_metadata(low, high, add_keys(bloom, keys, self.spec.bloom.max_entries))

    def _carried_filter(self, base: BaseFooter, path: str) -> BloomFilter | None:
        """That of the version before; None where it has none or no key range, or far too few bits for the keys."""
        bloom = None if base.min_key is None or base.max_key is None else base.bloom(path)
        if bloom is None or (bloom.entries and 3 * bloom.entries * len(bloom.rows) < self._expected):
            return None
        # A filter that grew with its file has a row for each so many keys, and each key is tested against all of them.
        most = 0 if self.spec.bloom.entries else min(self._expected, MAX_SIZED_ENTRIES)
        return bloom if len(bloom.rows) < _MOST_ROWS or not 0 < bloom.entries * _MOST_ROWS <= most else None

    def _new_filter(self, keys: int) -> BloomFilter:
        options = self.spec.bloom
        sized = min(max(self._expected, keys, MIN_SIZED_ENTRIES), MAX_SIZED_ENTRIES)
        return empty_filter(BloomKind(options.kind.value), options.entries or sized, options.fpp)


def open_marked(spec: WriteSpec, path: str, kind: MarkerKind) -> AbstractContextManager[OutputFile]:
    """A new data file with its marker, which comes first: a file without one would outlive a crash."""
    create_marker(spec.storage, spec.instant, path, kind)
    return spec.storage.open_output(path)


def take_back_if_over(spec: WriteSpec, path: str, kind: MarkerKind) -> None:
    """Remove the file that this attempt has just finished if its write is over: nobody else would.

    Spark gives attempts up that go on for a while, on a machine that is cut off or for the seconds until a Python
    worker is killed. What such a one finishes before the write ends, the write's end finds by its marker.
    Raises  InstantNotFound when the write is over
    """
    if spec.pending is None or is_pending(spec.storage, spec.pending, spec.layout):
        return
    spec.storage.delete(path)
    spec.storage.delete(marker_path(spec.instant, path, kind))
    raise InstantNotFound(f"instant {spec.instant} is over: {path}, of a task that was given up, is taken back")


def stamp(rows: pa.Table, keys: pa.Array, partition: str, spec: WriteSpec, token: str, first: int = 0) -> pa.Table:
    """Rows of the user's columns with the five meta columns of this write in front.

    keys   string[n], record keys
    first  number of the first row within (instant, task), for the sequence number
    """
    count = rows.num_rows
    prefix = f"{spec.instant}_{token.split('-')[0]}_"
    numbers = pc.cast(pa.array(np.arange(first, first + count)), pa.string())
    meta = {
        COMMIT_TIME: pa.repeat(spec.instant, count),
        COMMIT_SEQNO: pc.binary_join_element_wise(prefix, numbers, ""),
        RECORD_KEY: keys,
        PARTITION_PATH: pa.repeat(partition, count),
        FILE_NAME: pa.nulls(count, pa.string()),
    }
    columns = conform(
        rows.drop_columns([RECORD_KEY, PARTITION_PATH]), pa.schema(list(spec.schema)[len(META_COLUMNS) :])
    )
    return pa.Table.from_arrays([*(meta[name] for name in META_COLUMNS), *columns.columns], schema=spec.schema)
