"""A read as a value: which slices of a table, which columns and rows of them, and what is left out and why.

Every read of rows is planned into a `Scan` (`hoodie.reading.scan_plan`), and run from it: by `hoodie.reading.snapshot`
as Arrow, by `hoodie.spark.read` as a DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.display.render import as_html
from hoodie.display.summary import ColumnKind, ShownColumn, count_text, summary
from hoodie.errors import UnsupportedTable
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.reading.changes.plan import CommitTimes
from hoodie.reading.filters.partitions import slices_that_may_pass
from hoodie.reading.filters.predicate import ANY, Tests, passing_both
from hoodie.reading.filters.selection import kept_rows
from hoodie.reading.pruning import Pruned, PruneReason, by_reason, left_out
from hoodie.reading.slices.reader import SliceReader
from hoodie.schema.conform import written_columns
from hoodie.table.state import TableState
from hoodie.view.slices import FileSystemView

if TYPE_CHECKING:
    from hoodie.reading.filters.condition import SqlCondition

#: Slices that `str` of a scan names.
_MOST_NAMED = 50


class ScanKind(StrEnum):
    """What a read gives of a table."""

    SNAPSHOT = "snapshot"
    AS_OF = "as_of"
    READ_OPTIMIZED = "read_optimized"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScanPlan:
    """A read that has been planned: nothing of the rows is read yet.

    state       the table that is read: as it was given, or newer if files went away while it was planned
    schema      all columns of the table, meta columns first where it has them
    columns     those wanted, in order
    read        those that are read of files: `columns`, and what filters ask for. Merges add what their rule needs
    slices      by partition path and file id, as they are read: those with logs are merged
    folders     the partition paths that were listed: those asked for, or that the range wrote to; None: all
    filter      rows to keep, of the merged rows. None: all
    tests       what is known of the filter column by column: partitions that cannot pass are not among `slices`, and
                row groups of base files without logs that cannot are not read, nor base files below logs whose rows
                win in any case
    as_of       instant, inclusive; None: now
    times       changes: the rows that count, by their commit time
    reader      how slices with logs are read; None: there are none
    mislabelled base files that Spark's own reader would read as other values (`column_types.mislabelled_files`); none
                where the scan was not planned for Spark
    settings    of the read
    route       who reads the base files for Spark; "": nobody asked
    view        the files that were looked at
    view_as_of  the last instant that counts in the view; None: all of its timeline
    listed      whether the metadata table listed the files, and not the storage
    ruled_out   file groups of which no row can pass the filter, by the metadata table's column statistics
    statistics  which of some slices can hold rows that pass tests, by these; None: there are none to go by
    """

    kind: ScanKind
    state: TableState
    schema: pa.Schema
    columns: tuple[str, ...]
    read: tuple[str, ...]
    slices: tuple[FileSlice, ...]
    folders: frozenset[str] | None = None
    filter: pc.Expression | SqlCondition | None = None
    as_of: str | None = None
    times: CommitTimes | None = None
    reader: SliceReader | None = None
    mislabelled: frozenset[BaseFile] = frozenset()
    tests: Tests = field(default=ANY, kw_only=True)
    settings: ReadSettings = DEFAULT_READ
    route: str = field(default="", kw_only=True)
    view: FileSystemView = field(kw_only=True)
    view_as_of: str | None = field(default=None, kw_only=True)
    listed: bool = field(default=False, kw_only=True)
    ruled_out: frozenset[FileGroupId] = field(default=frozenset(), kw_only=True)
    statistics: Callable[[Sequence[FileSlice], Tests], tuple[FileSlice, ...]] | None = field(default=None, kw_only=True)

    def with_tests(self, tests: Tests) -> ScanPlan:
        """The scan of rows that pass tests, too, which its reader drops itself. Not of changes."""
        tests = passing_both(self.tests, tests)
        candidates = tuple(slices_that_may_pass(self.slices, tests, self.schema, self.state.config.properties))
        slices = candidates if self.statistics is None or tests == ANY else self.statistics(candidates, tests)
        groups = {slice_.group for slice_ in candidates}.difference(slice_.group for slice_ in slices)
        reader = self.reader if any(slice_.logs for slice_ in slices) else None
        reader = reader if reader is None else replace(reader, tests=tests)
        return replace(self, tests=tests, slices=slices, reader=reader, ruled_out=self.ruled_out | groups)

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths that are read, sorted."""
        return tuple(sorted({slice_.group.partition for slice_ in self.slices}))

    @property
    def base_slices(self) -> tuple[FileSlice, ...]:
        """The slices without logs: their base file is all."""
        return tuple(slice_ for slice_ in self.slices if not slice_.logs)

    @property
    def log_slices(self) -> tuple[FileSlice, ...]:
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
        readers of Parquet, such as `polars.scan_parquet` and DuckDB's `read_parquet`. Files from before a change of the
        table's columns lack some of them, or have narrower types: `Scan.schema` is what to read them with.

        Raises UnsupportedTable where log files have rows, too, of changes, which are some rows of their files, and
               where files have columns in another way than the table now
        """
        if self.log_slices:
            logs = count_text(len(self.log_files), "log file")
            raise UnsupportedTable(
                f"{self.state.config.name}: {logs} would be left out by a reader of Parquet. "
                "Read the rows themselves (HoodieTable.snapshot), compact the table, or "
                "plan the scan with optimized=True to have the rows without those of logs"
            )
        if self.times is not None:
            raise UnsupportedTable("the files of changes hold other rows, too: read the changes themselves")
        schema = pa.schema([self.schema.field(name) for name in self.read])
        if altered := next((file.path for file in self.base_files if written_columns(schema, file.instant)), None):
            raise UnsupportedTable(
                f"{self.state.config.name}: {altered} was written before columns of the table were renamed, retyped or "
                "replaced (schema-on-read), and a reader of Parquet would take them by their names there. Read the "
                "rows themselves (HoodieTable.snapshot)"
            )
        root = self.state.storage.root
        return tuple(f"{root.rstrip('/')}/{file.path}" for file in self.base_files)

    @property
    def rows_kept(self) -> pc.Expression | None:
        """Which of the merged rows count, by their commit time; None: all. The filter is asked besides."""
        return None if self.times is None else self.times.expression()

    @property
    def keeps_all(self) -> bool:
        """Whether the scan gives all of the merged rows."""
        return self.times is None and self.filter is None

    def matching_rows(self, rows: pa.Table) -> pa.Table:
        """Those of merged rows, in the columns `read`, that the scan gives."""
        return kept_rows(kept_rows(rows, self.rows_kept), self.filter)

    @property
    def pruned(self) -> tuple[Pruned, ...]:
        """What is left out, by reason. Counted anew each time, out of the listing that the scan was planned by."""
        unlisted = self._unlisted()
        files = left_out(self.view, self.view_as_of, self.slices, self._reason_of_newest)
        return (*([] if unlisted is None else [Pruned(unlisted)]), *by_reason(files, self.partitions))

    def __repr__(self) -> str:
        return f"Scan({self._description()}: {self._slices()}, {self._files()})"

    def __str__(self) -> str:
        lines = [
            f"{self._description()} of {self.state.config.name}: {self._slices()}",
            f"reads {self._files()}; {count_text(len(self.log_slices), 'slice')} merged with logs",
            f"columns: {', '.join(self.read) or 'none'} ({len(self.read)} of {len(self.schema)})",
        ]
        if self.filter is not None:
            lines.append(f"filter on the rows read: {self.filter}")
        if self.listed:
            lines.append("files listed by the metadata table")
        if self.route:
            lines.append(f"base files read by {self.route}")
        if self.mislabelled:
            lines.append(
                f"{count_text(len(self.mislabelled), 'base file')} read by Python, for their timestamps' labels"
            )
        lines += [f"pruned: {part}" for part in self.pruned]
        lines += [f"  {_slice_text(slice_)}" for slice_ in self.slices[:_MOST_NAMED]]
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
                sum(s.log_bytes for s in slices),
            )
            for partition, slices in by_partition.items()
        )
        return as_html(summary(repr(self), _COLUMNS, rows, len(by_partition)))

    def _reason_of_newest(self, file: BaseFile | LogFile, taken: FileSlice | None) -> PruneReason:
        """Why a file of the slice that a snapshot reader would take is not read."""
        if self.kind is ScanKind.CHANGES:
            return PruneReason.UNCHANGED if taken is None else PruneReason.OLDER
        if file.group in self.ruled_out:
            return PruneReason.STATISTICS
        if taken is None and self.tests != ANY:
            return PruneReason.FILTERED
        return PruneReason.LOGS if isinstance(file, LogFile) else PruneReason.SUPERSEDED

    def _unlisted(self) -> PruneReason | None:
        """Why there are partitions that were not listed; None: all were."""
        if self.folders is None:
            return None
        return PruneReason.NOT_WRITTEN if self.kind is ScanKind.CHANGES else PruneReason.NOT_ASKED

    def _description(self) -> str:
        if self.times is not None:
            return f"changes in ({self.times.after or 'earliest'}, {self.times.up_to}]"
        if self.as_of is not None:
            return f"{self.kind} {self.as_of}"
        return str(self.kind)

    def _slices(self) -> str:
        return f"{count_text(len(self.slices), 'file slice')} in {count_text(len(self.partitions), 'partition')}"

    def _files(self) -> str:
        return (
            f"{count_text(len(self.base_files), 'base file')} of {self.base_bytes} bytes and "
            f"{count_text(len(self.log_files), 'log file')} of {self.log_bytes} bytes"
        )


_COLUMNS = (
    ShownColumn("partition"),
    ShownColumn("file slices", ColumnKind.COUNT),
    ShownColumn("base files", ColumnKind.BYTES),
    ShownColumn("logs", ColumnKind.COUNT),
    ShownColumn("log bytes", ColumnKind.BYTES),
)


def _slice_text(slice_: FileSlice) -> str:
    base = "no base file" if slice_.base is None else f"base file {slice_.base.instant} of {slice_.base.size} bytes"
    logs = f", {count_text(len(slice_.logs), 'log file')} of {slice_.log_bytes} bytes"
    return f"{slice_.group.partition or '(no partition)'}: {slice_.group.file_id}: {base}{logs if slice_.logs else ''}"
