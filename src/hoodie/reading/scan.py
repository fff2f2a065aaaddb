"""A read as a value: which slices of a table, which columns and rows of them, and what is left out and why.

Every read of rows is planned here, into a `Scan`, and run from it: by `hoodie.reading.snapshot` as Arrow, by
`hoodie.spark.read` as a DataFrame. What it needs to know it learns here, once: the files that readers of the instant
take, whether all of them are there and were not cleaned, the table's columns, how logs are merged.

Source: docs/format/table-services.md 8 (queries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.options import Options
from hoodie.display.render import as_html
from hoodie.display.summary import Column, Kind, summary
from hoodie.errors import InvalidInput, UnsupportedTable
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.model.meta import COMMIT_TIME
from hoodie.reading.change_plan import CommitTimes, plan_changes
from hoodie.reading.column_types import mislabelled
from hoodie.reading.complete_view import complete_view
from hoodie.reading.file_slice_reader import SliceReader, slice_reader
from hoodie.reading.partition_tests import slices_that_may_pass
from hoodie.reading.predicate import ANY, Tests, both
from hoodie.reading.selection import Filters, RowFilter, check_columns, read_filter
from hoodie.reading.table_schema import read_schema
from hoodie.table.state import TableState
from hoodie.timeline.points import Point, query_instant
from hoodie.timeline.timeline import Visible
from hoodie.view.missing import read_optimized_files, snapshot_files
from hoodie.view.slices import FileSystemView, merged_slices

#: Slices that `str` of a scan names.
_MOST_NAMED = 50


class ScanKind(StrEnum):
    """What a read gives of a table."""

    SNAPSHOT = "snapshot"
    AS_OF = "as_of"
    READ_OPTIMIZED = "read_optimized"
    CHANGES = "changes"


class PruneReason(StrEnum):
    """Why files of a table are not read."""

    NOT_ASKED = "in partitions that were not asked for"
    FILTERED = "in partitions that the filter rules out"
    NOT_WRITTEN = "in partitions that no commit of the range wrote to"
    UNCHANGED = "of file groups that the range did not change"
    OLDER = "base files from before the range"
    LOGS = "log files, which a read-optimized query leaves out"
    LATER = "written after the instant"
    UNCOMMITTED = "of writes that are not completed"
    REPLACED = "of replaced file groups"
    SUPERSEDED = "superseded by a newer file slice"
    CHANGE_DATA = "change data, which is not merged"


@dataclass(frozen=True, slots=True)
class Pruned:
    """Files that a scan leaves out for one reason.

    partitions  those that the files lie in and of which nothing at all is read
    files       None: their partitions are not even listed, so nobody counted
    bytes       of the files; None as well
    """

    reason: PruneReason
    partitions: int | None = None
    files: int | None = None
    bytes: int | None = None

    def __str__(self) -> str:
        if self.files is None:
            return f"files {self.reason}: not listed"
        whole = f", {_count(self.partitions or 0, 'whole partition')}" if self.partitions else ""
        return f"{_count(self.files, 'file')} ({self.bytes} bytes{whole}) {self.reason}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scan:
    """A read that has been planned: nothing of the rows is read yet.

    state       the table that is read: as it was given, or newer if files went away while it was planned
    schema      all columns of the table, meta columns first where it has them
    columns     those wanted, in order
    read        those that are read of files: `columns`, and what filters ask for. Merges add what their rule needs
    slices      by partition path and file id, as they are read: those with logs are merged
    asked       the partition paths that were listed: those asked for, or that the range wrote to; None: all
    filter      rows to keep, of the merged rows. None: all
    tests       what is known of the filter column by column: partitions that cannot pass are not among `slices`, and
                row groups of base files without logs that cannot are not read
    as_of       instant, inclusive; None: now
    times       changes: the rows that count, by their commit time
    reader      how slices with logs are read; None: there are none
    mislabelled base files that Spark's own reader would read as other values (`column_types.mislabelled`); none
                where the scan was not planned for Spark
    options     `hoodie.*` options of the read
    route       who reads the base files for Spark; "": nobody asked
    view        the files that were looked at
    view_as_of  the last instant that counts in the view; None: all of its timeline
    """

    kind: ScanKind
    state: TableState
    schema: pa.Schema
    columns: tuple[str, ...]
    read: tuple[str, ...]
    slices: tuple[FileSlice, ...]
    asked: frozenset[str] | None = None
    filter: pc.Expression | None = None
    as_of: str | None = None
    times: CommitTimes | None = None
    reader: SliceReader | None = None
    mislabelled: frozenset[BaseFile] = frozenset()
    tests: Tests = field(default=ANY, kw_only=True)
    options: Options = field(default_factory=Options)
    route: str = field(default="", kw_only=True)
    view: FileSystemView = field(kw_only=True)
    view_as_of: str | None = field(default=None, kw_only=True)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths that are read, sorted."""
        return tuple(sorted({slice_.group.partition for slice_ in self.slices}))

    @property
    def plain(self) -> tuple[FileSlice, ...]:
        """The slices without logs: their base file is all."""
        return tuple(slice_ for slice_ in self.slices if not slice_.logs)

    @property
    def logged(self) -> tuple[FileSlice, ...]:
        """The slices whose logs are merged."""
        return tuple(slice_ for slice_ in self.slices if slice_.logs)

    @property
    def base_files(self) -> tuple[BaseFile, ...]:
        return tuple(slice_.base for slice_ in self.slices if slice_.base is not None)

    @property
    def log_files(self) -> tuple[LogFile, ...]:
        return tuple(log for slice_ in self.slices for log in slice_.logs)

    @property
    def base_bytes(self) -> int:
        """Bytes of the base files, whole: of their columns only `read` are fetched."""
        return sum(file.size for file in self.base_files)

    @property
    def log_bytes(self) -> int:
        """Bytes of the log files."""
        return sum(file.size for file in self.log_files)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return self.base_bytes + self.log_bytes

    @property
    def files(self) -> tuple[str, ...]:
        """The base files that hold the rows, each in full: no older versions, and no files of writes that failed. For
        readers of Parquet, such as `polars.scan_parquet` and DuckDB's `read_parquet`.

        Raises UnsupportedTable where log files have rows, too, and of changes, which are some rows of their files
        """
        if self.logged:
            raise UnsupportedTable(
                f"{self.state.config.name}: {_count(len(self.log_files), 'log file')} would be left out by a reader of "
                "Parquet. Read the rows themselves (hoodie.read_arrow, HoodieTable.snapshot), compact the table, or "
                'plan the scan with kind="read_optimized" to have the rows without those of logs'
            )
        if self.times is not None:
            raise UnsupportedTable("the files of changes hold other rows, too: read the changes themselves")
        root = self.state.storage.root
        return tuple(f"{root.rstrip('/')}/{file.path}" for file in self.base_files)

    @property
    def rows_kept(self) -> pc.Expression | None:
        """Which of the merged rows the scan gives, by the columns `read`; None: all."""
        if self.times is None:
            return self.filter
        counting = self.times.expression()
        return counting if self.filter is None else self.filter & counting

    @property
    def pruned(self) -> tuple[Pruned, ...]:
        """What is left out, by reason. Counted anew each time, out of the listing that the scan was planned by."""
        files: dict[PruneReason, list[BaseFile | LogFile]] = {}
        for file, reason in _left_out(self):
            files.setdefault(reason, []).append(file)
        read = set(self.partitions)
        unlisted = _unlisted(self)
        found = [] if unlisted is None else [Pruned(unlisted)]
        for reason in PruneReason:
            if reason in files:
                left = files[reason]
                whole = {file.group.partition for file in left} - read
                found.append(Pruned(reason, len(whole), len(left), sum(file.size for file in left)))
        return tuple(found)

    def __repr__(self) -> str:
        return f"Scan({self._what()}: {self._slices()}, {self._files()})"

    def __str__(self) -> str:
        lines = [
            f"{self._what()} of {self.state.config.name}: {self._slices()}",
            f"reads {self._files()}; {_count(len(self.logged), 'slice')} merged with logs",
            f"columns: {', '.join(self.read) or 'none'} ({len(self.read)} of {len(self.schema)})",
        ]
        if self.filter is not None:
            lines.append(f"filter on the rows read: {self.filter}")
        if self.route:
            lines.append(f"base files read by {self.route}")
        if self.mislabelled:
            lines.append(f"{_count(len(self.mislabelled), 'base file')} read by Python, for their timestamps' labels")
        lines += [f"pruned: {part}" for part in self.pruned]
        lines += [f"  {_told(slice_)}" for slice_ in self.slices[:_MOST_NAMED]]
        if len(self.slices) > _MOST_NAMED:
            lines.append(f"  and {len(self.slices) - _MOST_NAMED} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        by_partition: dict[str, list[FileSlice]] = {}
        for slice_ in self.slices:
            by_partition.setdefault(slice_.group.partition, []).append(slice_)
        rows = (
            (
                partition,
                len(slices),
                sum(s.base.size for s in slices if s.base is not None),
                sum(len(s.logs) for s in slices),
                sum(log.size for s in slices for log in s.logs),
            )
            for partition, slices in by_partition.items()
        )
        return as_html(summary(repr(self), _COLUMNS, rows, len(by_partition)))

    def _what(self) -> str:
        if self.times is not None:
            return f"changes in ({self.times.after or 'earliest'}, {self.times.up_to}]"
        if self.as_of is not None:
            return f"{self.kind} {self.as_of}"
        return str(self.kind)

    def _slices(self) -> str:
        return f"{_count(len(self.slices), 'file slice')} in {_count(len(self.partitions), 'partition')}"

    def _files(self) -> str:
        return (
            f"{_count(len(self.base_files), 'base file')} of {self.base_bytes} bytes and "
            f"{_count(len(self.log_files), 'log file')} of {self.log_bytes} bytes"
        )


_COLUMNS = (
    Column("partition"),
    Column("file slices", Kind.COUNT),
    Column("base files", Kind.BYTES),
    Column("logs", Kind.COUNT),
    Column("log bytes", Kind.BYTES),
)


def plan_scan(
    state: TableState,
    kind: ScanKind | str = ScanKind.SNAPSHOT,
    *,
    columns: Sequence[str] | None = None,
    partitions: Collection[str] | None = None,
    filters: Filters | None = None,
    as_of: Point | None = None,
    begin: Point | None = None,
    end: Point | None = None,
    options: Options | None = None,
    for_spark: bool = False,
    tests: Tests = ANY,
) -> Scan:
    """Plan a read of a table.

    kind        a snapshot with `as_of` is one as of that instant
    columns     names of top-level columns, in the order wanted; None: all, meta columns first where the table has them
    partitions  partition paths to look at, others are not listed; None: all. Not for changes
    filters     rows to keep; may name columns that are not among `columns`
    as_of       a point in time (`query_instant`), inclusive; None: now
    begin, end  of changes: see `plan_changes`
    options     `hoodie.*` options of reads
    for_spark   find out which base files Spark's own Parquet reader would read as other values; what that costs: see
                `mislabelled`
    tests       of rows that the caller drops itself, with those of `filters`. Not for changes
    Raises      InvalidInput on an unknown column or kind, a malformed filter or instant, and as of an instant before
                the first commit, or whose files were cleaned; UnsupportedTable when there is no rule to merge the
                table's rows; MissingFile when a file is gone that a commit published; CorruptFile; as `plan_changes`
    """
    kind = _kind(kind, partitions, as_of, begin, end)
    if kind is ScanKind.CHANGES:
        assert begin is not None  # `_kind` saw to it
        scan = _plan_changes(state, begin, end, columns, filters, options)
    else:
        scan = _plan_state(state, kind, columns, partitions, filters, as_of, options, tests)
    if for_spark and scan.base_files:
        scan = replace(scan, mislabelled=mislabelled(scan.state, scan.base_files, scan.schema, scan.read))
    return replace(scan, options=options or Options())


def _plan_state(
    state: TableState,
    kind: ScanKind,
    columns: Sequence[str] | None,
    partitions: Collection[str] | None,
    filters: Filters | None,
    as_of: Point | None,
    options: Options | None,
    tests: Tests,
) -> Scan:
    """The rows at one moment."""
    moment = None if as_of is None else query_instant(as_of, state.config.timezone)
    taken = read_optimized_files(moment) if kind is ScanKind.READ_OPTIMIZED else snapshot_files(moment)
    state, view = complete_view(state, partitions, taken, options, moment)
    schema = read_schema(state, view, moment)
    wanted, read, rows = _selected(schema, columns, filters)
    tests = tests if rows is None else both(rows.tests, tests)
    slices = tuple(slices_that_may_pass(taken(view), tests, schema, state.config.properties))
    reader = slice_reader(state, schema, moment, options) if any(slice_.logs for slice_ in slices) else None
    return Scan(
        kind,
        state,
        schema,
        wanted,
        read,
        slices,
        asked=None if partitions is None else frozenset(partitions),
        filter=None if rows is None else rows.expression,
        tests=tests,
        as_of=moment,
        reader=reader,
        view=view,
        view_as_of=moment,
    )


def _plan_changes(
    state: TableState,
    begin: Point,
    end: Point | None,
    columns: Sequence[str] | None,
    filters: Filters | None,
    options: Options | None,
) -> Scan:
    """The rows that a range of commits wrote. Their commit times are read as well, to tell them from the others."""
    plan = plan_changes(state, begin, end, options)
    wanted, read, rows = _selected(plan.schema, columns, filters)
    return Scan(
        ScanKind.CHANGES,
        plan.state,
        plan.schema,
        wanted,
        tuple(dict.fromkeys([*read, COMMIT_TIME])),
        plan.slices,
        asked=None if plan.whole else frozenset(group.partition for group in plan.view.groups),
        filter=None if rows is None else rows.expression,
        tests=ANY if rows is None else rows.tests,
        times=plan.times,
        reader=plan.reader,
        view=plan.view,
        view_as_of=plan.as_of,
    )


def _kind(
    kind: ScanKind | str,
    partitions: Collection[str] | None,
    as_of: Point | None,
    begin: Point | None,
    end: Point | None,
) -> ScanKind:
    """The kind of a read, seen to fit what else is asked."""
    try:
        found = ScanKind(kind)
    except ValueError as problem:
        raise InvalidInput(f"kind {kind!r}: expected one of {', '.join(ScanKind)}") from problem
    if found is ScanKind.CHANGES:
        if begin is None:
            raise InvalidInput("changes need begin: an instant, which is not included, or 'earliest'")
        if partitions is not None or as_of is not None:
            raise InvalidInput("changes take begin and end, no partitions and no as_of")
        return found
    if begin is not None or end is not None:
        raise InvalidInput(f"begin and end are for changes, this is a read of kind {found}: take as_of")
    if found is ScanKind.AS_OF and as_of is None:
        raise InvalidInput("a read of kind as_of needs as_of: an instant, which is included")
    return ScanKind.AS_OF if found is ScanKind.SNAPSHOT and as_of is not None else found


def _selected(
    schema: pa.Schema, columns: Sequence[str] | None, filters: Filters | None
) -> tuple[tuple[str, ...], tuple[str, ...], RowFilter | None]:
    """The columns wanted, those that are read, and the filter. Raises InvalidInput."""
    wanted = tuple(schema.names if columns is None else columns)
    rows = read_filter(filters, schema)
    read = tuple(dict.fromkeys([*wanted, *(rows.columns if rows else ())]))
    check_columns(read, schema)
    return wanted, read, rows


def _left_out(scan: Scan) -> Iterator[tuple[BaseFile | LogFile, PruneReason]]:
    """The files of the view that are not read, each with the reason that comes first."""
    view, as_of = scan.view, scan.view_as_of
    visible, current = view.timeline.visible(as_of), merged_slices(view, as_of)
    read = {slice_.group: slice_ for slice_ in scan.slices}
    for group, files in view.groups.items():
        taken, newest = read.get(group), current.get(group)
        names = _names(taken)
        replaced = view.replaced.get(group)
        gone = replaced is not None and (as_of is None or replaced <= as_of)
        every: tuple[BaseFile | LogFile, ...] = (*files.bases, *files.logs, *files.changes)
        for file in every:
            if file.name in names:
                continue
            if isinstance(file, LogFile) and file.cdc:
                yield file, PruneReason.CHANGE_DATA
            elif gone:
                yield file, PruneReason.REPLACED
            elif file.name in _names(newest):
                yield file, _reason_of_newest(scan, file, taken)
            else:
                yield file, _reason_of_other(file, visible, as_of)


def _reason_of_newest(scan: Scan, file: BaseFile | LogFile, taken: FileSlice | None) -> PruneReason:
    """Why a file of the slice that a snapshot reader would take is not read."""
    if scan.kind is ScanKind.CHANGES:
        return PruneReason.UNCHANGED if taken is None else PruneReason.OLDER
    if taken is None and scan.tests != ANY:
        return PruneReason.FILTERED
    return PruneReason.LOGS if isinstance(file, LogFile) else PruneReason.SUPERSEDED


def _reason_of_other(file: BaseFile | LogFile, visible: Visible, as_of: str | None) -> PruneReason:
    """Why no snapshot reader takes a file."""
    instant = file.instant if isinstance(file, BaseFile) else file.base_instant
    if as_of is not None and instant > as_of:
        return PruneReason.LATER
    if instant in visible.open or not visible.committed(instant):
        return PruneReason.UNCOMMITTED
    return PruneReason.SUPERSEDED


def _unlisted(scan: Scan) -> PruneReason | None:
    """Why there are partitions that were not listed; None: all were."""
    if scan.asked is None:
        return None
    return PruneReason.NOT_WRITTEN if scan.kind is ScanKind.CHANGES else PruneReason.NOT_ASKED


def _names(slice_: FileSlice | None) -> frozenset[str]:
    if slice_ is None:
        return frozenset()
    base = () if slice_.base is None else (slice_.base.name,)
    return frozenset({*base, *(log.name for log in slice_.logs)})


def _told(slice_: FileSlice) -> str:
    base = "no base file" if slice_.base is None else f"base file {slice_.base.instant} of {slice_.base.size} bytes"
    logs = f", {_count(len(slice_.logs), 'log file')} of {sum(log.size for log in slice_.logs)} bytes"
    return f"{slice_.group.partition or '(no partition)'}: {slice_.group.file_id}: {base}{logs if slice_.logs else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
