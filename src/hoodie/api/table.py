"""HoodieTable: the object that people hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from hoodie.api.engine import Engine, Frame
from hoodie.api.handle import Options
from hoodie.api.inputs import as_path
from hoodie.api.local_engine import LOCAL
from hoodie.api.rows import Rows
from hoodie.api.table_reads import TableReads
from hoodie.api.table_services import TableServices
from hoodie.api.table_writes import TableWrites
from hoodie.config.datasource import check_options, overridden, write_options
from hoodie.config.options import as_text, Options
from hoodie.config.read import MergeOptions
from hoodie.config.write import WriteOperation
from hoodie.doctor.examine import GRACE, Finding, Remedy, examine
from hoodie.doctor.repair import repair
from hoodie.locks import Lock, lock_for
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileSlice, FileSlices
from hoodie.model.instant import Instant
from hoodie.reading.complete_view import complete_view
from hoodie.reading.scan import Scan, ScanKind, plan_scan
from hoodie.reading.selection import Filters
from hoodie.recovery.restore import RestoreResult, restore
from hoodie.recovery.rollback import RollbackResult, rollback
from hoodie.recovery.savepoint import Savepoint, delete_savepoint, make_savepoint, read_savepoints
from hoodie.report.make import Report, make_report
from hoodie.services.archive import ArchiveResult, archive, history
from hoodie.services.clean import CleanResult, clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.spark.after_commit import after_commit
from hoodie.spark.compaction import carry_out
from hoodie.spark.index_repair import put_again
from hoodie.spark.read import incremental, snapshot
from hoodie.spark.worker_errors import typed_calls
from hoodie.spark.write.explain import WriteExplanation, explain
from hoodie.spark.write.run import check_batch, run
from hoodie.storage import storage_for
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import redacted
from hoodie.table.create import create
from hoodie.table.overrides import completed
from hoodie.table.settings import Settings
from hoodie.table.state import load_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Path: TypeAlias = str | os.PathLike[str]


class HoodieTable(TableReads[Frame], TableWrites[Frame], TableServices[Frame]):
    """A table at a path; `open_table` and `create_table` make it. It holds no state of the table: every call looks at
    what is there now.

    Of every call the subject is given by position, all else by name, `options` last: `hoodie.*` options for this call,
    over those of the table object.
    """

    @overload
    def __init__(
        self: HoodieTable[Rows],
        session: Path,
        *,
        storage_options: Options | None = None,
        options: Options | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: HoodieTable[Rows],
        *,
        path: Path,
        storage_options: Options | None = None,
        options: Options | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: HoodieTable[DataFrame],
        session: SparkSession,
        path: Path,
        *,
        storage_options: Options | None = None,
        options: Options | None = None,
    ) -> None: ...
    @typed_errors()
    def __init__(
        self,
        session: Any = None,
        path: Any = None,
        *,
        storage_options: Options | None = None,
        options: Options | None = None,
    ) -> None:
        self.session, path = _session_and_path(session, path)
        self.storage = storage_for(path, storage_options)
        self.options = options or {}
        self.engine = cast("Engine[Frame]", _engine_of(self.session))

    def __repr__(self) -> str:
        return f"HoodieTable({redacted(self.storage.root)!r})"


    # --- writing ---

    def upsert(self, df: DataFrame, *, options: Options | None = None) -> WriteResult:
        """Insert rows whose key is new, and merge the others into the rows that are there.

        df       the table's columns; new nullable ones are added to the table, missing nullable ones are null
        options  for this write, over those of the table object
        Raises   InvalidInput, SchemaMismatch: nothing has changed; WriteConflict: another writer was faster
        """
        return self._write(WriteOperation.UPSERT, df, options)

    def insert(self, df: DataFrame, *, options: Options | None = None) -> WriteResult:
        """Add rows without looking their keys up: small files are filled first. A key that is there occurs twice then.

        Raises as `upsert`
        """
        return self._write(WriteOperation.INSERT, df, options)

    def bulk_insert(self, df: DataFrame, *, options: Options | None = None) -> WriteResult:
        """Load rows into new files as they come, sorted by `hoodie.bulkinsert.sort.mode`. Raises as `upsert`."""
        return self._write(WriteOperation.BULK_INSERT, df, options)

    def delete(self, keys: DataFrame, *, options: Options | None = None) -> WriteResult:
        """Delete rows by key; keys that are not there are ignored.

        keys    the key and partition columns (others are ignored), or `_hoodie_record_key` and
                `_hoodie_partition_path` as reads have them
        Raises  as `upsert`
        """
        return self._write(WriteOperation.DELETE, keys, options)

    def insert_overwrite(self, df: DataFrame, *, options: Options | None = None) -> WriteResult:
        """Put the rows in place of all rows of the partitions that they are in. Raises as `upsert`."""
        return self._write(WriteOperation.INSERT_OVERWRITE, df, options)

    def insert_overwrite_table(self, df: DataFrame, *, options: Options | None = None) -> WriteResult:
        """Put the rows in place of all rows of the table. Raises as `upsert`."""
        return self._write(WriteOperation.INSERT_OVERWRITE_TABLE, df, options)

    def delete_partitions(self, partitions: Sequence[str], *, options: Options | None = None) -> WriteResult:
        """Delete all rows of partitions.

        partitions  partition paths, such as "2024-01-31" or "city=oslo"
        Raises      InvalidInput naming those that the table does not have
        """
        given = self._options(options)
        result = delete_partitions(self.storage, partitions, given)
        after_commit(self.session, self.storage, given, result.instant, result.after)
        return result

    def explain_upsert(self, df: DataFrame, *, options: Options | None = None) -> WriteExplanation:
        """What `upsert` would do: the workload profile, the tasks, where they would run. Nothing is written.

        Raises as `upsert`
        """
        return explain(check_batch(self.session, self.storage, WriteOperation.UPSERT, df, self._options(options)))

    # --- compaction ---

    def schedule_compaction(
        self, extra_metadata: Mapping[str, str] | None = None, *, options: Options | None = None
    ) -> str | None:
        """Plan a compaction of a Merge-on-Read table: which file slices get their logs merged into a new base file.

        extra_metadata  kept with the plan and with the commit of its compaction
        returns         the plan's instant; None when the trigger asks for none yet, or nothing has logs
        Raises          UnsupportedTable on a Copy-on-Write table; WriteConflict while a write is pending, or another
                        process plans one; LockTimeout
        """
        return schedule_compaction(self.storage, self._options(options), extra_metadata)

    def compact(self, instant: str | None = None, *, options: Options | None = None) -> WriteResult | None:
        """Carry a planned compaction out, one task for each file slice: by threads of the driver when it is small (the
        options `hoodie.spark.driver.*` of writes say what is), else by Spark.

        instant  None: the oldest one that nobody runs
        returns  None when no instant is given and there is none to run
        Raises   InstantNotFound; InvalidPlan naming files that are gone; PlanInUse when another process runs it
        """
        run = partial(carry_out, self.session)
        return compact(self.storage, self._options(options), instant, run)

    # --- cleaning and archiving ---

    def clean(self, *, dry_run: bool = False, options: Options | None = None) -> CleanResult:
        """Delete files that the cleaning policy does not keep. After a commit that is done automatically.

        dry_run  only say what would go; nothing is changed
        options  `hoodie.cleaner.*`, over those of the table object
        Raises   WriteConflict while a restore is pending; LockTimeout; UnsupportedTable
        """
        return clean(self.storage, self._options(options), dry_run=dry_run)

    def archive(self, *, dry_run: bool = False, options: Options | None = None) -> ArchiveResult:
        """Move old instants to the archive, if there are more than `hoodie.keep.max.commits`. After a commit that is
        done automatically; `history(archived=True)` has them still.

        dry_run  only say which would go; nothing is changed
        options  `hoodie.keep.*`, over those of the table object
        Raises   as `clean`
        """
        return archive(self.storage, self._options(options), dry_run=dry_run)

    # --- going back ---

    def rollback(
        self, instant: str | None = None, *, dry_run: bool = False, options: Options | None = None
    ) -> RollbackResult:
        """Take back the newest completed commit, or an instant that is pending.

        instant  None: the newest completed commit. A rollback that died is finished first, and is the result then
        dry_run  only say what would be deleted and undone
        Raises   InstantNotFound; InvalidInput when newer commits, pending instants or a savepoint stand in the way;
                 InvalidPlan when older files that the table needs then are cleaned; WriteConflict
        """
        repair = partial(put_again, self.session)
        return rollback(self.storage, self._options(options), instant, dry_run=dry_run, repair=repair)

    def savepoint(
        self, instant: str | None = None, *, comment: str = "", user: str = "", options: Options | None = None
    ) -> Savepoint:
        """Keep the files that a read as of a commit needs, until the savepoint is deleted.

        instant  None: the newest completed commit
        Raises   InstantNotFound; InvalidInput when it is a savepoint already; InvalidPlan when cleaning has reached it
        """
        return make_savepoint(self.storage, self._options(options), instant, comment, user)

    def delete_savepoint(self, instant: str, *, options: Options | None = None) -> None:
        """Let the files of a savepoint be cleaned as all others. Raises InstantNotFound when there is none."""
        delete_savepoint(self.storage, self._options(options), instant)

    def savepoints(self) -> list[Savepoint]:
        """The savepoints, oldest first."""
        return read_savepoints(load_state(self.storage))

    def restore(self, instant: str, *, dry_run: bool = False, options: Options | None = None) -> RestoreResult:
        """Take all writes after a savepoint back. There is no way back from that.

        instant  of the savepoint
        dry_run  only say what would go
        Raises   InstantNotFound without such a savepoint; InvalidInput when a newer savepoint stands in the way;
                 InvalidPlan when what it needs is gone; WriteConflict: see docs/recovery.md
        """
        repair = partial(put_again, self.session)
        return restore(self.storage, self._options(options), instant, dry_run=dry_run, repair=repair)

    # --- examining ---

    def examine(
        self, *, rows: bool = True, whole_table: bool = False, grace: float = GRACE, options: Options | None = None
    ) -> tuple[Finding, ...]:
        """Whether what must always hold of a table does. Nothing is changed; `hoodie doctor` is the same as a command.

        rows         open the data files, too: keys, filters, key ranges, row counts. Costs a read of the key columns
        whole_table  a key must be unique in the table, as with a global index, not only in its partition
        grace        seconds; pending instants and leftovers that are younger belong to a live process
        options      `hoodie.*` options of reads, such as the import paths of mergers that may be loaded
        returns      the findings, the worst first, none of a healthy table: `severity` (NOTE, WARNING, ERROR), `fault`,
                     `where`, `problem`, `advice`, and `remedy`, which `repair` carries out
        Raises       TableNotFound; UnsupportedTable

        A table that `open_table` refuses as damaged is examined by `HoodieTable(spark, path)`, which opens nothing.
        """
        return examine(self.storage, self._options(options), rows=rows, whole_table=whole_table, grace=grace)

    def report(self, *, options: Options | None = None) -> Report:
        """One page about the table: its timeline, commits, file sizes, and what cleaning and compaction would do. A
        notebook shows it; `table.report().save("trips.html")` keeps it. No data file is opened.

        options  `hoodie.*` options of its writes, over those of the table object: services would go by them
        Raises   CorruptFile; UnsupportedTable
        """
        return make_report(load_state(self.storage), self._options(options))

    def repair(
        self, *, dry_run: bool = False, checksum: bool = False, grace: float = GRACE, options: Options | None = None
    ) -> tuple[Remedy, ...]:
        """Do what is safe without a person about what `examine` finds in names and sizes: what a write would do by
        itself, and removing what no instant, marker, plan or savepoint can still need.

        dry_run   only say what would be done; nothing is changed
        checksum  write a wrong checksum of hoodie.properties anew: only where its names are known to be right
        grace     as of `examine`
        options   `hoodie.write.lock.*` as the table's writers have them, over those of the table object: all is done
                  under the table's lock. Without a lock provider no writer may be at work
        returns   what was done, or would be, in order
        Raises    TableNotFound; UnsupportedTable; CorruptFile when a rollback cannot be planned; LockTimeout: nothing
                  has changed; LockLost. A repair that failed is taken up by the next one
        """
        given = self._options(options)
        return repair(self.storage, options=given, dry_run=dry_run, checksum=checksum, grace=grace)

    def lock(self, name: str = "", *, options: Options | None = None) -> Lock:
        """A lock of the table's lock provider, not acquired yet: `with table.lock("nightly"):`, or `acquire(seconds)`,
        `check()` and `release()`.

        name     an independent lock beside the table's own; "": the one that all writers of the table take
        options  `hoodie.write.lock.*`, over those of the table object; without a provider everybody has the lock
        Raises   InvalidOption; InvalidInput when the name cannot name a file
        """
        return lock_for(self._options(options), self.storage, name=name)

    # --- reading ---

    def snapshot(
        self,
        *,
        partitions: Collection[str] | None = None,
        columns: Sequence[str] | None = None,
        options: Options | None = None,
    ) -> DataFrame:
        """The latest rows, the five `_hoodie_*` columns first.

        partitions  read these partition paths only, such as ["2024-01-31"]; other files are not even opened
        columns     read these columns only, in this order. Where no file slice has logs, `select` on the result does
                    the same; slices with logs are merged by Python functions, into which Spark pushes no selection
        options     `hoodie.*` options of reads, over those of the table object
        """
        given = self._options(options)
        return snapshot.snapshot(self.session, load_state(self.storage), None, partitions, columns, given)

    def read_optimized(
        self,
        *,
        partitions: Collection[str] | None = None,
        columns: Sequence[str] | None = None,
        as_of: str | None = None,
        options: Options | None = None,
    ) -> DataFrame:
        """The rows of the newest base files, without what is in logs: on a Copy-on-Write table the same as `snapshot`.

        partitions, columns, options  as in `snapshot`
        as_of                         only base files up to this instant, as in the method of that name
        """
        moment = None if as_of is None else query_instant(as_of)
        given = self._options(options)
        return snapshot.read_optimized(self.session, load_state(self.storage), moment, partitions, columns, given)

    def as_of(
        self,
        instant: str,
        *,
        partitions: Collection[str] | None = None,
        columns: Sequence[str] | None = None,
        options: Options | None = None,
    ) -> DataFrame:
        """The rows as they were at an instant.

        instant  `yyyyMMddHHmmss[SSS]` or `yyyy-MM-dd[ HH:mm:ss[.SSS]]` in the table's time zone (UTC unless another
                 writer made the table)
        partitions, columns, options  as in `snapshot`
        Raises   InvalidInput when it has another form
        """
        moment, given = query_instant(instant), self._options(options)
        return snapshot.snapshot(self.session, load_state(self.storage), moment, partitions, columns, given)

    def explain_snapshot(
        self,
        *,
        partitions: Collection[str] | None = None,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        as_of: str | None = None,
        kind: str = ScanKind.SNAPSHOT,
        options: Options | None = None,
    ) -> Scan:
        """What a read would read: its file slices and their bytes, and the files that it leaves out and why. No rows
        are read. Print it, or ask its attributes.

        partitions, columns, as_of  as in `snapshot`, `as_of`
        filters  as `read_arrow` takes them
        kind     "snapshot", "as_of" or "read_optimized"
        options  `hoodie.*` options of reads, over those of the table object
        Raises   InvalidInput on an unknown kind, column or filter; as the read
        """
        return plan_scan(
            load_state(self.storage),
            kind,
            columns=columns,
            partitions=partitions,
            filters=filters,
            as_of=as_of,
            options=self._options(options),
            for_spark=True,
        )

    def changes(
        self,
        begin: str,
        end: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        options: Options | None = None,
    ) -> DataFrame:
        """The rows that changed in (begin, end], each once and as it was at the end; deleted ones are not among them.

        begin    an instant of the table, which is not included; `yyyy-MM-dd[ HH:mm:ss[.SSS]]`; or "earliest"
        end      an instant, which is included, or a point in time; None: now
        columns  as in `snapshot`
        options  `hoodie.read.timeline.holes.resolution.policy` and
                 `hoodie.datasource.read.incr.fallback.fulltablescan.enable`, over those of the table object
        Raises   InvalidInput when begin or end is malformed or in the future, or begin after end; InstantNotFound;
                 HistoryGone when commits are archived or files cleaned; HollowCommit when a pending commit would be
                 missed

        Only the commits of the range and the file groups that they changed are looked at.
        """
        state = load_state(self.storage)
        return incremental.changes(self.session, state, begin, end, columns, self._options(options))

    def history(self, *, archived: bool = False) -> list[tuple[Instant, CommitMetadata]]:
        """Completed commits of the active timeline with what they did, newest first.

        archived  those that were archived as well. The whole archive is read; it keeps of the statistics of log writes
                  what those of base files have
        """
        return history(load_state(self.storage), archived=archived)

    def file_slices(
        self, *, partitions: Collection[str] | None = None, options: Options | None = None
    ) -> list[FileSlice]:
        """The file slices that a reader sees, ordered by partition path and file id. Raises MissingFile

        partitions, options  as in `snapshot`
        """
        _, view = complete_view(load_state(self.storage), partitions, snapshot_files(), self._options(options))
        return FileSlices(merged_slices(view).values())

    def _options(self, options: Options | None) -> dict[str, str]:
        return overridden(self.options, check_options(options or {}))

    def _write(self, operation: WriteOperation, df: DataFrame, options: Options | None) -> WriteResult:
        return run(check_batch(self.session, self.storage, operation, df, self._options(options)))


@typed_errors()
def create_table(
    session: Path,
    *,
    name: str,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] = (),
    ordering: str = "",
    table_type: str = "COPY_ON_WRITE",
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Rows]: ...
@overload
def create_table(
    *,
    path: Path,
    name: str,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] = (),
    ordering: str = "",
    table_type: str = "COPY_ON_WRITE",
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Rows]: ...
@overload
def create_table(
    session: SparkSession,
    path: Path,
    *,
    name: str,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] = (),
    ordering: str = "",
    table_type: str = "COPY_ON_WRITE",
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[DataFrame]: ...
@typed_errors()
def create_table(
    session: Any = None,
    path: Any = None,
    *,
    name: str,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] = (),
    ordering: str = "",
    table_type: str = "COPY_ON_WRITE",
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Any]:
    """Create a table, or open the one that is at the path with the same settings.

    session          writes and reads by Spark, and gives DataFrames. Without one, `create_table(path, ...)`, this
                     process does it all by itself and gives `Rows`: PySpark is not needed
    path             of the table's folder: local, or a URI that fsspec knows
    record_key       column or columns that identify a row
    partition_by     column or columns whose values make the folders; () for none
    ordering         column that tells the newer of two versions of a row; needed by upsert's combining of duplicates
    storage_options  of the fsspec driver of the path, such as key and secret of s3fs; a local path needs none
    options          `hoodie.*` options by Hudi's names; those of writes hold for this object
    Raises           InvalidOption; TableMismatch when the table there has other settings
    """
    given = door_options(options, path=path)
    Settings.read(given)
    given.read(MergeOptions)
    named = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": as_text(_listed(record_key)),
        "hoodie.datasource.write.partitionpath.field": as_text(_listed(partition_by)),
        "hoodie.datasource.write.precombine.field": ordering,
        "hoodie.datasource.write.table.type": table_type,
    }
    settings = overridden(given, {key: value for key, value in named.items() if value})
    table: HoodieTable[Any] = HoodieTable(session, path, storage_options=storage_options, options=write_options(given))
    completed(create(table.storage, settings), given)
    return table


@overload
def open_table(
    session: Path, *, storage_options: Options | None = None, options: Options | None = None
) -> HoodieTable[Rows]: ...
@overload
def open_table(
    *, path: Path, storage_options: Options | None = None, options: Options | None = None
) -> HoodieTable[Rows]: ...
@overload
def open_table(
    session: SparkSession, path: Path, *, storage_options: Options | None = None, options: Options | None = None
) -> HoodieTable[DataFrame]: ...
@typed_errors()
def open_table(
    session: Any = None,
    path: Any = None,
    *,
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Any]:
    """Open a table.

    session, path    as of `create_table`
    storage_options  as of `create_table`
    options          `hoodie.*` options for its writes and reads
    Raises           TableNotFound; CorruptFile; UnsupportedTable; InvalidOption; TableMismatch when options name other
                     settings than the table has
    """
    given = door_options(options, path=path)
    Settings.read(given)
    given.read(MergeOptions)
    table: HoodieTable[Any] = HoodieTable(session, path, storage_options=storage_options, options=given)
    completed(load_state(table.storage), given)
    return table


def _session_and_path(session: Any, path: Any) -> tuple[Any, str]:
    """What was given as `(path)`, `(path=path)` or `(session, path)`."""
    if path is None:
        session, path = None, session
    if session is not None and not hasattr(session, "createDataFrame"):
        raise InvalidInput(f"expected a SparkSession before the path, not {type(session).__name__}")
    return session, as_path(path)


def _engine_of(session: Any) -> Engine[Any]:
    if session is None:
        return LOCAL
    from hoodie.api.spark_engine import spark_engine  # PySpark is not loaded where no session is given

    return spark_engine(session)


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
