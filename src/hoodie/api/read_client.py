"""HoodieReadClient: which keys a table has, and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from hoodie.api.arrow.rows import Rows
from hoodie.api.engine import Engine, Frame, KeyedRows
from hoodie.api.inputs import Path, as_path, as_session, path_first
from hoodie.api.local_engine import engine_of
from hoodie.config.datasource import door_options
from hoodie.config.driver_options import without_driver_options
from hoodie.config.hudi_options import Purpose
from hoodie.config.read import MergeOptions
from hoodie.model.plans import CompactionPlan
from hoodie.services.compaction.schedule import pending_compactions
from hoodie.storage import storage_at
from hoodie.storage.faults import typed_calls
from hoodie.table.settings import Settings
from hoodie.table.state import load_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@typed_calls
class HoodieReadClient(Generic[Frame]):
    """Asks a table about keys, by the index that its writers use. Nothing is written.

    `HoodieReadClient(path, spark=spark)` gives DataFrames, and its larger batches stay with Spark's tasks;
    `HoodieReadClient(path)` needs no Spark, gives `Rows`, and holds a batch in memory.
    """

    @overload
    def __init__(
        self: HoodieReadClient[Rows],
        path: Path,
        options: Mapping[str, Any] | None = None,
        *,
        spark: None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: HoodieReadClient[DataFrame],
        path: Path,
        options: Mapping[str, Any] | None = None,
        *,
        spark: SparkSession,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None: ...
    @path_first
    def __init__(
        self,
        path: Path,
        options: Mapping[str, Any] | None = None,
        *,
        spark: Any = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """
        options          `hoodie.*` options: of the index, and of reads
        path, spark, storage_options  as of `create_table`
        Raises           InvalidOption; TableNotFound
        """
        self.session, path = as_session(spark), as_path(path)
        checked = door_options(options, Purpose.READ, path)
        self.storage, self.options = storage_at(path, checked, storage_options), without_driver_options(checked)
        Settings.read(self.options)
        self.options.read(MergeOptions)
        self.engine = cast("Engine[Frame]", engine_of(self.session))
        load_state(self.storage)

    def filter_exists(self, df: Any) -> Frame:
        """The rows whose key the table does not hold: what an insert of the batch may add. Duplicates in it stay.

        df       the key and partition columns, and any others, which are kept; or `_hoodie_record_key` and
                 `_hoodie_partition_path` in place of these. A global index needs no partition. A DataFrame of the
                 session, or what speaks Arrow
        Raises   SchemaMismatch naming columns that are missing; InvalidInput on rows without a key; UnsupportedTable
        A key whose row was deleted is not held, whether or not a file still has it.
        """
        return self.engine.keys(self.storage, self.options).filter_exists(df)

    def read(self, keys: Any, *, columns: Sequence[str] | None = None) -> KeyedRows[Frame]:
        """The rows of keys, as a snapshot has them; keys that are not there are left out.

        keys     as for `filter_exists`; other columns are ignored
        columns  of the table, in the order wanted; None: all, the five meta columns first
        returns  `rows`, and `stats`: files pruned and opened, false positives, and for keys that were
                 brought to the driver row groups and rows; of others the rows are not read yet
        Raises   as `filter_exists`; InvalidInput on an unknown column
        Only files that hold one of the keys are opened for rows, and of these the row groups that can hold one.
        """
        return self.engine.keys(self.storage, self.options).read(keys, columns)

    def tag_location(self, df: Any) -> Frame:
        """The rows with the file group that an upsert would find their key in.

        df       as for `filter_exists`
        returns  its columns, `_hoodie_record_key`, `_hoodie_partition_path` (with a global index that of the file
                 group), `_hoodie_file_id` and `_hoodie_instant_time`, the slice's base instant; the last two are null
                 for a new key. A key that is in two file groups gives two rows. As for an upsert, a deleted key whose
                 row waits in a base file for compaction has a place
        Raises   as `filter_exists`
        """
        return self.engine.keys(self.storage, self.options).tag_location(df)

    def get_pending_compactions(self) -> list[tuple[str, CompactionPlan]]:
        """The compactions that are planned or being run, with their plans; oldest first."""
        return [(instant.requested, plan) for instant, plan in pending_compactions(load_state(self.storage))]
