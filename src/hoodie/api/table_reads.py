"""The reads of HoodieTable: its rows, its columns, its history."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.api.engine import Frame, KeyedRows
from hoodie.api.handle import Options, TableHandle
from hoodie.api.inputs import Moment, checked_flags, instant_of, keys_as_rows
from hoodie.api.partition_paths import partition_paths
from hoodie.api.scan import Scan
from hoodie.facts.detail import TableDetail, detail
from hoodie.metadata.display_rows import metadata_rows
from hoodie.metadata.keys import MetadataPartition
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileSlice, FileSlices
from hoodie.model.instant import Instant
from hoodie.reading.complete_view import complete_view
from hoodie.reading.filters.predicate import held_filters
from hoodie.reading.filters.selection import Filters
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.stream import count_rows
from hoodie.reading.table_schema import read_schema
from hoodie.schema.schema import without_meta_fields
from hoodie.services.archive import history
from hoodie.storage.faults import typed_calls
from hoodie.table.state import load_state
from hoodie.view.published import snapshot_files
from hoodie.view.slices import merged_slices


@typed_calls
@checked_flags
class TableReads(TableHandle[Frame]):
    """The reads of a table."""

    def snapshot(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        partitions: Iterable[Any] | None = None,
        as_of: Moment | None = None,
        optimized: bool = False,
        meta: bool | None = None,
        options: Options | None = None,
    ) -> Frame:
        """The latest rows: a DataFrame of the session, the five `_hoodie_*` columns first, or without one `Rows`.

        columns     read these columns only, in this order. With Spark, where no file slice has logs, `select` on the
                    result does the same; slices with logs are merged by Python functions, into which Spark pushes no
                    selection
        filters     rows to keep: a condition such as "amount > 3 and city in ('oslo', 'rome')", an expression of
                    pyarrow's (without Spark), or tuples `("city", "=", "oslo")`: a list, all of which hold, or a list
                    of such lists, one of which holds. May name other columns than `columns`; partitions that
                    cannot have such rows are not opened
        partitions  read these only: partition paths, such as ["2024-01-31"], or values of the partition column, such as
                    [date(2024, 1, 31)]; of several columns tuples, or dicts by name. Other files are not even opened
        as_of       the rows as they were then, as in the method of that name
        optimized   only the newest base files, without what is in logs: on a Copy-on-Write table the same rows
        meta        whether the five `_hoodie_*` columns come first where `columns` names none. None: with Spark, where
                    jobs of Hudi's rely on them, and not without
        options     `hoodie.*` options of reads, over those of the table object
        """
        read = self._read(columns, filters, partitions, as_of, optimized, meta)
        return self.engine.read(load_state(self.storage), read, self._read_settings(options))

    def as_of(
        self,
        instant: Moment,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        partitions: Iterable[Any] | None = None,
        meta: bool | None = None,
        options: Options | None = None,
    ) -> Frame:
        """The rows as they were at an instant.

        instant  `yyyyMMddHHmmss[SSS]`; `yyyy-MM-dd[ HH:mm[:ss[.SSS]]]`, perhaps with `T`, and `Z` or an offset; a
                 datetime or a date; or the result of a write. What names no zone is local, as in Python
        columns, filters, partitions, meta, options  as in `snapshot`
        Raises   InvalidInput when it has another form, is before the first commit, or its files were cleaned
        """
        return self.snapshot(
            columns=columns, filters=filters, partitions=partitions, as_of=instant, meta=meta, options=options
        )

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        partitions: Iterable[Any] | None = None,
        as_of: Moment | None = None,
        optimized: bool = False,
        meta: bool | None = None,
        options: Options | None = None,
    ) -> Scan[Frame]:
        """A read that is planned and not run: which files hold the rows, and which are left out and why. Print it, ask
        its attributes, or take its `rows()`. Arguments and errors as of `snapshot`, which is `scan().rows()`.
        """
        settings, state = self._read_settings(options), load_state(self.storage)
        read = self._read(columns, filters, partitions, as_of, optimized, meta)
        plan = plan_read(state, read, settings, for_spark=self.engine.route is not None)
        if self.engine.route is not None:
            plan = replace(plan, route=str(self.engine.route(self.storage, settings.route.route)))
        return Scan(plan, partial(self.engine.read, state, read, settings))

    def changes(
        self,
        begin: Moment,
        end: Moment | None = None,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        cdc: bool = False,
        meta: bool | None = None,
        options: Options | None = None,
    ) -> Frame:
        """The rows that changed in (begin, end], each once and as it was at the end; deleted ones are not among them.

        begin    an instant or a point in time as of `as_of`, which is not included; or "earliest"
        end      an instant, which is included, or a point in time; None: now
        columns, filters, meta  as in `snapshot`; `_hoodie_commit_time` says when a row changed. With `cdc` columns and
                 filters are over its four columns, which are the same whatever `meta` says
        cdc      each change of each row instead, deletes included: `op` (i, u or d), `ts_ms` (the instant of the
                 commit), `before` and `after`, the row's columns as JSON text or, by `hoodie.read.cdc.images`, as
                 structs; null where there is no row. For tables with `hoodie.table.cdc.enabled`; of others only with
                 `hoodie.read.cdc.infer`
        options  `hoodie.read.timeline.holes.resolution.policy`,
                 `hoodie.datasource.read.incr.fallback.fulltablescan.enable` (not with `cdc`) and `hoodie.read.cdc.*`,
                 over those of the table object
        Raises   InvalidInput when begin or end is malformed or in the future, or begin after end; InstantNotFound;
                 HistoryGone when commits are archived or files cleaned; HollowCommit when a pending commit would be
                 missed; UnsupportedTable with `cdc` on a table that logs no change data

        Only the commits of the range and the file groups that they changed are looked at.
        """
        first, last = instant_of(begin), instant_of(end)
        read = Read(
            kind=ScanKind.CHANGES,
            begin=first,
            end=last,
            columns=columns,
            filters=filters,
            cdc=cdc,
            meta=self._meta(meta),
        )
        return self.engine.read(load_state(self.storage), read, self._read_settings(options))

    def get(
        self,
        keys: Any,
        *,
        columns: Sequence[str] | None = None,
        meta: bool | None = None,
        options: Options | None = None,
    ) -> KeyedRows[Frame]:
        """The rows of keys, as a snapshot has them, found by the table's index; keys that are not there are left out.

        keys     rows as `upsert` takes them: the key and partition columns, or `_hoodie_record_key` and
                 `_hoodie_partition_path`; other columns are ignored. A global index needs no partition. Or a list of
                 the values of a key of one column
        columns, meta  as in `snapshot`
        returns  `rows`, and `stats`: files pruned and opened, row groups and rows read
        Raises   SchemaMismatch naming columns that are missing; InvalidInput on rows without a key, or an unknown
                 column; UnsupportedTable
        """
        rows = keys_as_rows(keys, self.storage)
        return self.engine.keys(self.storage, self._options(options)).read(rows, columns, self._meta(meta))

    def absent(self, keys: Any, *, options: Options | None = None) -> Frame:
        """The rows whose key the table does not hold: what an insert of the batch may add. Duplicates in it stay.

        keys    rows as for `get`; their other columns are kept
        Raises  as `get`
        A key whose row was deleted is not held, whether or not a file still has it.
        """
        return self.engine.keys(self.storage, self._options(options)).filter_exists(keys_as_rows(keys, self.storage))

    def count(self, *, filters: Filters | None = None, options: Options | None = None) -> int:
        """How many rows there are now: by the footers of files, where neither logs nor a filter can change the number.

        filters, options  as in `snapshot`
        """
        read = Read(columns=[], filters=filters)
        return count_rows(plan_read(load_state(self.storage), read, self._read_settings(options)))

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # a table without rows is a table

    @property
    def schema(self) -> pa.Schema:
        """The table's columns now, without the five `_hoodie_*` ones."""
        state = load_state(self.storage)
        return without_meta_fields(read_schema(state))

    def info(self, *, options: Options | None = None) -> TableDetail:
        """What the table is and how large: its settings, columns, partitions, files and bytes, commits and what is
        pending. No data file is opened."""
        return detail(load_state(self.storage), self._read_settings(options))

    def metadata(self, partition: str = MetadataPartition.FILES.value) -> Frame:
        """What the metadata table says, which writers keep beside the rows: a DataFrame of the session, or `Rows`
        without one.

        partition  "files": partition, file, size; "column_stats": partition, file, column, min and max as text, values,
                   nulls, size, uncompressed_size; "partition_stats" (version 9): the same without file;
                   "bloom_filters": partition, file, type, instant, filter (base64);
                   "record_index": record_key, partition, file_id, instant_time
        Raises     UnsupportedTable when the table has none; InvalidInput on a partition that it does not have;
                   CorruptFile when it is damaged
        Warns      MetadataTableIgnored when it is out of date: the rows are those that it has
        """
        state = load_state(self.storage)
        return self.engine.rows(metadata_rows(state.storage, state.config, state.timeline, partition))

    def history(self, *, archived: bool = False) -> list[tuple[Instant, CommitMetadata]]:
        """Completed commits of the active timeline with what they did, newest first.

        archived  those that were archived as well. The whole archive is read; it keeps of the statistics of log writes
                  what those of base files have
        """
        return history(load_state(self.storage), archived=archived)

    def file_slices(
        self, *, partitions: Iterable[Any] | None = None, options: Options | None = None
    ) -> list[FileSlice]:
        """The file slices that a reader sees, ordered by partition path and file id. Raises MissingFile

        partitions, options  as in `snapshot`
        """
        paths = None if partitions is None else partition_paths(partitions, self.storage)
        _, view = complete_view(load_state(self.storage), paths, snapshot_files(), self._read_settings(options))
        return FileSlices(merged_slices(view).values())

    def _read(
        self,
        columns: Sequence[str] | None,
        filters: Filters | None,
        partitions: Iterable[Any] | None,
        as_of: Moment | None,
        optimized: bool,
        meta: bool | None,
    ) -> Read:
        return Read(
            kind=ScanKind.READ_OPTIMIZED if optimized else ScanKind.SNAPSHOT,
            columns=columns,
            filters=held_filters(filters),
            partitions=None if partitions is None else partition_paths(partitions, self.storage),
            as_of=instant_of(as_of),
            meta=self._meta(meta),
        )

    def _meta(self, meta: bool | None) -> bool:
        return self.engine.meta if meta is None else meta
