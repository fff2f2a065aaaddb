"""Who reads and writes the rows of a table: threads of this process, or Spark. All else of a table is the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from hoodie.config.options import Options
from hoodie.config.read import ReadRoute, ReadSettings
from hoodie.config.write import WriteOperation
from hoodie.lookup.index_follow import RepairJob
from hoodie.lookup.point_read import ReadStats
from hoodie.reading.scan_plan import Read
from hoodie.services.compaction.job import RunTasks
from hoodie.storage.protocol import Storage
from hoodie.table.settings import MapItems, Settings
from hoodie.table.state import TableState
from hoodie.writing.finish import AfterCommit
from hoodie.writing.result import Validate
from hoodie.writing.run import IncomingBatch

#: What an engine gives rows as: `Rows`, or a DataFrame of Spark's.
Frame = TypeVar("Frame")
FrameOut = TypeVar("FrameOut", covariant=True)


@dataclass(frozen=True, slots=True)
class KeyedRows(Generic[Frame]):
    """The rows of some keys, and what it cost to find them."""

    rows: Frame
    stats: ReadStats


class RowReader(Protocol[FrameOut]):
    """Gives the rows of a read, not read yet."""

    def __call__(self, state: TableState, read: Read, settings: ReadSettings) -> FrameOut: ...


class Checker(Protocol):
    """Sees that rows, whatever they are given as, fit their table.

    new  the table as it will be, when it is not made yet
    """

    def __call__(
        self, storage: Storage, operation: WriteOperation, rows: Any, settings: Settings, new: TableState | None = None
    ) -> IncomingBatch: ...


class KeyQueries(Protocol[Frame]):
    """Asks a table about the keys of rows, as `HoodieReadClient` says: the columns that keys are made of, or the keys
    as reads have them."""

    def read(self, keys: Any, columns: Sequence[str] | None = None, meta: bool = True) -> KeyedRows[Frame]: ...

    def filter_exists(self, rows: Any) -> Frame: ...

    def tag_location(self, rows: Any) -> Frame: ...


@dataclass(frozen=True, slots=True)
class Engine(Generic[Frame]):
    """What a table asks of the one who moves its rows.

    check         see that a batch fits its table; takes what people have as rows
    read          rows
    keys          asks about keys
    after_commit  the services that run automatically after a commit
    rows          Arrow rows that are here, as rows of the engine
    compaction    carries out the tasks of a compaction; None: threads of this process
    repair        puts entries of an index again; None: threads of this process
    run           what a kernel makes of each of some items; None: threads of this process
    spark_version of the session, "" without one: what a metastore is told of the table's columns for Spark goes by it
    validate      checks a commit before it is published; None: the engine evaluates no SQL
    route         who reads base files where a table lies, for `str` of a scan; None: this process, never Spark
    meta          reads give the five meta columns unless they are told not to: jobs of Hudi's on Spark rely on them
    """

    check: Checker
    read: RowReader[Frame]
    keys: Callable[[Storage, Options], KeyQueries[Frame]]
    after_commit: AfterCommit
    rows: Callable[[pa.Table], Frame]
    compaction: RunTasks | None = None
    repair: Callable[[RepairJob], Sequence[int]] | None = None
    run: MapItems | None = None
    spark_version: str = ""
    validate: Validate | None = None
    route: Callable[[Storage, ReadRoute], object] | None = None
    meta: bool = False
