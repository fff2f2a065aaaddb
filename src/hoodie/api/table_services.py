"""The services of HoodieTable: compaction, cleaning, archiving, expiry, going back, checks."""

from collections.abc import Mapping
from dataclasses import replace

from hoodie.api.engine import Frame
from hoodie.api.handle import Options, TableHandle
from hoodie.api.inputs import Named, as_seconds, checked_flags, extra_of_commit, named_instant
from hoodie.doctor.examine import GRACE, Finding, Remedy, examine
from hoodie.doctor.repair import repair
from hoodie.errors import InvalidInput
from hoodie.locks import Lock
from hoodie.recovery.restore import RestoreResult, restore
from hoodie.recovery.rollback import RollbackResult, rollback
from hoodie.recovery.savepoint import Savepoint, make_savepoint, read_savepoints
from hoodie.report.page import Report, make_report
from hoodie.services.archive import ArchiveResult
from hoodie.services.clean import CleanResult, clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.downgrade import downgrade
from hoodie.services.expiry import ExpiryResult, expire_partitions
from hoodie.services.metadata_upkeep import archive_table
from hoodie.services.savepoint import delete_savepoint
from hoodie.services.upgrade import UpgradeResult, upgrade
from hoodie.storage.faults import typed_calls
from hoodie.sync.hive import SyncResult, sync_table
from hoodie.table.settings import Writers
from hoodie.table.state import load_state
from hoodie.writing.result import WriteResult


@typed_calls
@checked_flags
class TableServices(TableHandle[Frame]):
    """The services of a table. Not one of them needs Spark."""

    def schedule_compaction(
        self, extra_metadata: Mapping[str, str] | None = None, *, options: Options | None = None
    ) -> str | None:
        """Plan a compaction of a Merge-on-Read table: which file slices get their logs merged into a new base file.

        extra_metadata  kept with the plan and with the commit of its compaction
        returns         the plan's instant; None when the trigger asks for none yet, or nothing has logs
        Raises          UnsupportedTable on a Copy-on-Write table; WriteConflict while a write is pending, or another
                        process plans one; LockTimeout
        """
        return schedule_compaction(self.storage, self._settings(options), extra_of_commit(extra_metadata))

    def compact(self, instant: Named | None = None, *, options: Options | None = None) -> WriteResult | None:
        """Carry a planned compaction out, one task for each file slice: by threads of this process when it is small
        (the options `hoodie.spark.driver.*` of writes say what is) or there is no Spark session, else by Spark.

        instant  None: the oldest one that nobody runs
        returns  None when no instant is given and there is none to run
        Raises   InstantNotFound; InvalidPlan naming files that are gone; PlanInUse when another process runs it
        """
        planned = None if instant is None else named_instant(instant, "compact")
        result = compact(self.storage, self._settings(options), planned, self.engine.compaction)
        return None if result is None else replace(result, alone=self.session is None)

    def clean(self, *, dry_run: bool = False, options: Options | None = None) -> CleanResult:
        """Delete files that the cleaning policy does not keep. After a commit that is done automatically.

        dry_run  only say what would go; nothing is changed
        options  `hoodie.cleaner.*`, over those of the table object
        Raises   WriteConflict while a restore is pending; LockTimeout; UnsupportedTable
        """
        return clean(self.storage, self._settings(options), dry_run=dry_run)

    def archive(self, *, dry_run: bool = False, options: Options | None = None) -> ArchiveResult:
        """Move old instants to the archive, if there are more than `hoodie.keep.max.commits`. After a commit that is
        done automatically; `history(archived=True)` has them still.

        dry_run  only say which would go; nothing is changed
        options  `hoodie.keep.*`, over those of the table object
        Raises   as `clean`
        """
        return archive_table(self.storage, self._settings(options), dry_run=dry_run)

    def expire_partitions(self, *, dry_run: bool = False, options: Options | None = None) -> ExpiryResult:
        """Delete the partitions that have expired: all rows of those that nobody has written to for so many days. Hudi
        calls it partition TTL. With `hoodie.partition.ttl.inline=true` that is done after each commit.

        dry_run  only say which would be deleted; nothing is changed
        options  `hoodie.partition.ttl.strategy.*`, over those of the table object; `days.retain` has no default
        Raises   InvalidOption without days; UnsupportedTable; WriteConflict when other writers write to the partitions
                 meanwhile: nothing is deleted then
        """
        after, settings = None if dry_run else self.engine.after_commit, self._settings(options)
        return expire_partitions(self.storage, settings, dry_run=dry_run, after_commit=after, run=self.engine.run)

    def upgrade(self, to: int, *, dry_run: bool = False, options: Options | None = None) -> UpgradeResult:
        """Give the table a later version of the format: 8, which Hudi 1.0 and later read, or 9, for Hudi 1.1 and later.
        Failed writes are rolled back and all logs compacted first; rows stay, and what reads as of earlier instants
        give.

        dry_run  only say what would be done; nothing is changed
        Raises   InvalidOption on another version, or an earlier one; UnsupportedTable when the table could not be
                 written afterwards; WriteConflict when another process writes meanwhile. It has its old version then
        """
        return upgrade(self.storage, self._settings(options), to, dry_run=dry_run, run=self.engine.compaction)

    def downgrade(self, to: int, *, dry_run: bool = False, options: Options | None = None) -> UpgradeResult:
        """Give the table an earlier version of the format: 6, which Hudi 0.14 and later read and most engines, or 8,
        for Hudi 1.0 and later. Failed writes are rolled back and all logs compacted first; rows stay, and what reads as
        of earlier instants give.

        dry_run  only say what would be done; nothing is changed
        Raises   InvalidOption on another version, or a later one; UnsupportedTable when something would be lost, such
                 as the order by several columns, and says what to do; WriteConflict when another process writes
                 meanwhile. It has its old version then
        """
        return downgrade(self.storage, self._settings(options), to, dry_run=dry_run, run=self.engine.compaction)

    def sync(self, *, whole: bool = False, options: Options | None = None) -> SyncResult:
        """Register the table in a Hive metastore, or bring its entries there up to date.

        whole    compare all partitions, not only those of commits since the last sync
        options  `hoodie.datasource.hive_sync.*` and `hoodie.datasource.meta.sync.*`, over those of the table object
        Raises   InvalidOption; MetastoreUnavailable: the next sync goes on; SyncRefused: the metastore has something
                 else of that name, or cannot hold the columns, partitions or names; nothing there has changed
        """
        return sync_table(self.storage, self._settings(options), whole=whole, spark_version=self.engine.spark_version)

    def rollback(
        self, instant: Named | None = None, *, dry_run: bool = False, options: Options | None = None
    ) -> RollbackResult:
        """Undo the newest completed commit, or a pending instant.

        instant  its text, the result of its write, or as `history` has it; None: the newest completed commit. A
                 rollback that died is finished first, and is the result then
        dry_run  only say what would be deleted and undone
        Raises   InstantNotFound; InvalidInput when newer commits, pending instants or a savepoint stand in the way;
                 InvalidPlan when older files that the table needs then are cleaned; WriteConflict
        """
        target = None if instant is None else named_instant(instant, "rollback")
        return rollback(self.storage, self._settings(options), target, dry_run=dry_run, repair=self.engine.repair)

    def savepoint(
        self, instant: Named | None = None, *, comment: str = "", user: str = "", options: Options | None = None
    ) -> Savepoint:
        """Keep the files that a read as of a commit needs, until the savepoint is deleted.

        instant  as of `rollback`; None: the newest completed commit
        Raises   InstantNotFound; InvalidInput when it is a savepoint already; InvalidPlan when cleaning has reached it
        """
        commit = None if instant is None else named_instant(instant, "savepoint")
        if not isinstance(comment, str) or not isinstance(user, str):
            raise InvalidInput(f"comment={comment!r}, user={user!r}: expected texts")
        return make_savepoint(self.storage, self._settings(options), commit, comment, user)

    def delete_savepoint(self, instant: Named, *, options: Options | None = None) -> None:
        """Let the files of a savepoint be cleaned as all others. Raises InstantNotFound when there is none; InvalidPlan
        when commits after it are archived, and files that its own replaced are not cleaned yet"""
        delete_savepoint(self.storage, self._settings(options), named_instant(instant, "delete_savepoint"))

    def savepoints(self) -> list[Savepoint]:
        """The savepoints, oldest first."""
        return read_savepoints(load_state(self.storage))

    def restore(self, instant: Named, *, dry_run: bool = False, options: Options | None = None) -> RestoreResult:
        """Undo all writes after a savepoint. A restore cannot be undone.

        instant  of the savepoint, or the savepoint itself
        dry_run  only say what would go
        Raises   InstantNotFound without such a savepoint; InvalidInput when a newer savepoint stands in the way;
                 InvalidPlan when what it needs is gone; WriteConflict: see docs/recovery.md
        """
        engine, settings = self.engine, self._settings(options)
        target = named_instant(instant, "restore")
        return restore(self.storage, settings, target, dry_run=dry_run, repair=engine.repair, run=engine.run)

    def check(
        self,
        *,
        rows: bool = True,
        whole_table: bool = False,
        all_columns: bool = False,
        grace: float = GRACE,
        engine: str = "",
        options: Options | None = None,
    ) -> tuple[Finding, ...]:
        """Check the invariants of the table. Nothing is changed; `hoodie check` is the same as a command.

        rows         open the data files, too: keys, filters, key ranges, row counts. Costs a read of the key columns
        whole_table  a key must be unique in the table, as with a global index, not only in its partition
        all_columns  read everything: all columns of all base files, with the checksums of their pages
        grace        seconds; pending instants and leftovers that are younger belong to a live process
        engine       hudi-1.x, presto or trino: also what it would not read of this table, or would change
        options      `hoodie.*` options of reads, such as the import paths of mergers that may be loaded
        returns      the findings, the worst first, none of a healthy table: `severity` (NOTE, WARNING, ERROR), `fault`,
                     `where`, `problem`, `advice`, and `remedy`, which `repair` carries out
        Raises       TableNotFound; UnsupportedTable; InvalidInput on another engine

        A table that `open_table` refuses as damaged is examined by `HoodieTable(path)`, which opens nothing.
        """
        return examine(
            self.storage,
            self._read_settings(options),
            rows=rows,
            whole_table=whole_table,
            all_columns=all_columns,
            grace=as_seconds("grace", grace),
            engine=engine,
        )

    def report(self, *, options: Options | None = None) -> Report:
        """One page about the table: its timeline, commits, file sizes, and what cleaning and compaction would do. A
        notebook shows it; `table.report().save("trips.html")` keeps it. No data file is opened.

        options  `hoodie.*` options of its writes, over those of the table object: services would go by them
        Raises   CorruptFile; UnsupportedTable
        """
        return make_report(load_state(self.storage), self._settings(options))

    def repair(
        self, *, dry_run: bool = False, checksum: bool = False, grace: float = GRACE, options: Options | None = None
    ) -> tuple[Remedy, ...]:
        """Do what is safe without a person about what `check` finds in names and sizes: what a write would do by
        itself, and removing what no instant, marker, plan or savepoint can still need.

        dry_run   only say what would be done; nothing is changed
        checksum  write a wrong checksum of hoodie.properties anew: only where its names are known to be right
        grace     as of `check`
        options   `hoodie.write.lock.*` as the table's writers have them, over those of the table object: all is done
                  under the table's lock. Without a lock provider no writer may be at work
        returns   what was done, or would be, in order
        Raises    TableNotFound; UnsupportedTable; CorruptFile when a rollback cannot be planned; LockTimeout: nothing
                  has changed; LockLost. A repair that failed is taken up by the next one
        """
        writers = Writers.read(self._options(options))
        span = as_seconds("grace", grace)
        return repair(self.storage, writers=writers, dry_run=dry_run, checksum=checksum, grace=span)

    def lock(self, name: str = "", *, options: Options | None = None) -> Lock:
        """A lock of the table's lock provider, not acquired yet: `with table.lock("nightly"):`, or `acquire(seconds)`,
        `check()` and `release()`.

        name     an independent lock beside the table's own; "": the one that all writers of the table take
        options  `hoodie.write.lock.*`, over those of the table object; without a provider everybody has the lock
        Raises   InvalidOption; InvalidInput when the name cannot name a file
        """
        if not isinstance(name, str) or "/" in name or name.startswith("."):
            raise InvalidInput(f"{name!r} is not a valid lock name: it becomes the name of a file or a node")
        return self._settings(options).writers.lock_on(self.storage, name)
