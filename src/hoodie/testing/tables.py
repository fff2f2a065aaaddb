"""A table driven without Spark: rows come as Arrow, pass the same kernels, and are read back as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from hoodie.config.datasource import overridden
from hoodie.config.options import Options as Checked
from hoodie.config.options import as_text
from hoodie.config.read import ReadSettings
from hoodie.config.write import WriteOperation
from hoodie.errors import StorageFailed
from hoodie.model.files import FileSlice
from hoodie.reading.scan import ScanKind
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.snapshot import read_scan, read_table
from hoodie.services.archive import ArchiveResult, archive
from hoodie.services.clean import CleanResult, clean
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.sync.after_commit import after_commit
from hoodie.table.create import create
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import CrashAfter, Dying
from hoodie.timeline.points import Point
from hoodie.view.slices import merged_slices
from hoodie.writing.local import check_batch
from hoodie.writing.replacement import replacement
from hoodie.writing.result import WriteResult
from hoodie.writing.run import delete_partitions, run

T = TypeVar("T")
Options = Mapping[str, Any]


class StorageError(OSError):
    """The storage refused one call, as `FailsAt` was told to."""


#: What a planted refusal comes out as: raw, or typed out of a call that people make.
REFUSED = (StorageError, StorageFailed)


class FailsAt(WrappedStorage):
    """Refuses its mutating call number `at` (0 is the first) with a StorageError; all others go through."""

    def __init__(self, inner: Storage, at: int) -> None:
        super().__init__(inner)
        self.remaining = at

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        self.remaining -= 1
        if self.remaining == -1:
            raise StorageError(f"{name} of {path}: refused")
        return call()


class ArrowTable:
    """A table in a storage, as `HoodieTable` is one at a path: the same operations on `pyarrow.Table`s, and no Spark.

    It holds no state of the table but the fault that `fail_next` plants.
    """

    def __init__(self, storage: Storage, options: Options | None = None) -> None:
        """options  of all writes, as `HoodieTable` takes them"""
        self.storage = storage
        self.options = Checked({key: as_text(value) for key, value in (options or {}).items()})
        self._faulty: Callable[[Storage], Storage] | None = None

    @classmethod
    def create(cls, storage: Storage, options: Options) -> ArrowTable:
        """Make the table. Options of the table and of its writes may stand together."""
        table = cls(storage, options)
        create(storage, table.options)
        return table

    # --- writing ---

    def upsert(self, rows: pa.Table, options: Options | None = None) -> WriteResult:
        return self.write(WriteOperation.UPSERT, rows, options)

    def insert(self, rows: pa.Table, options: Options | None = None) -> WriteResult:
        return self.write(WriteOperation.INSERT, rows, options)

    def bulk_insert(self, rows: pa.Table, options: Options | None = None) -> WriteResult:
        return self.write(WriteOperation.BULK_INSERT, rows, options)

    def delete(self, keys: pa.Table, options: Options | None = None) -> WriteResult:
        """keys  the key and partition columns, or `_hoodie_record_key` and `_hoodie_partition_path`"""
        return self.write(WriteOperation.DELETE, keys, options)

    def insert_overwrite(self, rows: pa.Table, options: Options | None = None) -> WriteResult:
        return self.write(WriteOperation.INSERT_OVERWRITE, rows, options)

    def insert_overwrite_table(self, rows: pa.Table, options: Options | None = None) -> WriteResult:
        return self.write(WriteOperation.INSERT_OVERWRITE_TABLE, rows, options)

    def delete_partitions(self, partitions: Sequence[str], options: Options | None = None) -> WriteResult:
        storage, settings = self._storage(), Settings.read(self._options(options))
        result = delete_partitions(storage, partitions, settings)
        after_commit(storage, settings, result.instant, result.after)
        return result

    def write(self, operation: WriteOperation, rows: pa.Table, options: Options | None = None) -> WriteResult:
        """One write of user rows; columns `_hoodie_*` of a table that was read are dropped.

        Raises  as `HoodieTable.upsert`; what `fail_next` planted
        """
        write_options, storage = self._options(options), self._storage()
        return run(check_batch(storage, operation, rows.to_reader(), Settings.read(write_options), after_commit))

    def replace(self, rows: pa.Table, options: Options) -> WriteResult:
        """Put a new table with the rows in place of this one, as `hoodie.hudi.write` does with mode overwrite.

        options  of the new table and of its writes
        """
        write_options = Checked({key: as_text(value) for key, value in options.items()})
        storage, settings = self._storage(), Settings.read(write_options)
        new = replacement(storage, settings)
        operation = WriteOperation.INSERT_OVERWRITE_TABLE
        batch = check_batch(storage, operation, rows.to_reader(), settings, after_commit, new.state)
        return run(batch, replacing=new)

    # --- services ---

    def clean(self, options: Options | None = None, *, dry_run: bool = False) -> CleanResult:
        return clean(self._storage(), Settings.read(self._options(options)), dry_run=dry_run)

    def archive(self, options: Options | None = None, *, dry_run: bool = False) -> ArchiveResult:
        return archive(self._storage(), Settings.read(self._options(options)), dry_run=dry_run)

    def fail_next(self, calls: int, dying: Dying | None) -> None:
        """Let the next write fail at a mutating call of its storage.

        calls  that go through before; a write with fewer succeeds
        dying  the process dies there (`Crash`); None: the storage refuses that one call (StorageError), and the writer
               lives on to take its write back
        """
        self._faulty = lambda storage: FailsAt(storage, calls) if dying is None else CrashAfter(storage, calls, dying)

    # --- reading ---

    def snapshot(self) -> pa.Table:
        """The latest rows, the five `_hoodie_*` columns first."""
        return read_table(self.state())

    def as_of(self, instant: str) -> pa.Table:
        """The rows as they were at an instant, inclusive."""
        return read_table(self.state(), as_of=instant)

    def read_optimized(self) -> pa.Table:
        """The rows of the newest base files, logs left out."""
        return read_scan(plan_read(self.state(), Read(kind=ScanKind.READ_OPTIMIZED)))

    def changes(self, begin: Point, end: Point | None = None, options: Options | None = None) -> pa.Table:
        """The rows that changed in (begin, end]."""
        settings = ReadSettings.read(self._options(options))
        return read_scan(plan_read(self.state(), Read(kind=ScanKind.CHANGES, begin=begin, end=end), settings))

    def state(self) -> TableState:
        return load_state(self.storage)

    def slices(self) -> list[FileSlice]:
        """The file slices that a reader sees."""
        return list(merged_slices(self.state().view()).values())

    def _options(self, options: Options | None) -> Checked:
        return overridden(self.options, {key: as_text(value) for key, value in (options or {}).items()})

    def _storage(self) -> Storage:
        """The storage of one write: the next one has the fault no more."""
        faulty, self._faulty = self._faulty, None
        return self.storage if faulty is None else faulty(self.storage)
