"""HoodieTable: the object that people hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from hoodie.api.engine import Engine, Frame
from hoodie.api.handle import Options
from hoodie.api.inputs import Path, session_and_path
from hoodie.api.local_engine import engine_of
from hoodie.api.rows import Rows
from hoodie.api.table_conditions import TableConditions
from hoodie.api.table_reads import TableReads
from hoodie.api.table_services import TableServices
from hoodie.api.table_writes import TableWrites
from hoodie.config.datasource import check_options, door_options, overridden, write_options
from hoodie.config.driver_options import without_driver_options
from hoodie.config.options import as_text
from hoodie.config.read import MergeOptions
from hoodie.storage import storage_at
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import redacted
from hoodie.table.create import create
from hoodie.table.overrides import completed
from hoodie.table.settings import Settings
from hoodie.table.state import load_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class HoodieTable(TableReads[Frame], TableWrites[Frame], TableConditions[Frame], TableServices[Frame]):
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
        self.session, path, _ = session_and_path(session, path)
        given = check_options(options or {})
        self.storage, self.options = storage_at(path, given, storage_options), without_driver_options(given)
        self.engine = cast("Engine[Frame]", engine_of(self.session))

    def __repr__(self) -> str:
        return f"HoodieTable({redacted(self.storage.root)!r})"


@overload
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
    ordering         column that tells the newer of two versions of a row: the greater value wins, whichever came last,
                     unless the options name another rule (`hoodie.datasource.write.payload.class`)
    storage_options  of the fsspec driver of the path, such as key and secret of s3fs; a local path needs none
    options          `hoodie.*` options by Hudi's names; those of writes hold for this object
    Raises           InvalidOption; TableMismatch when the table there has other settings
    """
    session, path, _ = session_and_path(session, path)
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
    settings = overridden(without_driver_options(given), {key: value for key, value in named.items() if value})
    table: HoodieTable[Any] = HoodieTable(session, path, storage_options=storage_options, options=write_options(given))
    completed(create(table.storage, settings, own_call=True), given)
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

    session, path    as of `create_table`; with a session also a name that `register_table` gave the path, or the name
                     of an entry of the session's catalog that a sync made: "city.trips", "city.trips_ro"
    storage_options  as of `create_table`
    options          `hoodie.*` options for its writes and reads
    Raises           TableNotFound; CorruptFile; UnsupportedTable, also when the catalog's entry has no path or not
                     Spark's properties of a data source table; InvalidOption; TableMismatch when options name other
                     settings than the table has
    """
    session, path, _ = session_and_path(session, path)
    if session is not None:
        from hoodie.spark.names import located

        path = located(session, path)
    given = door_options(options, path=path)
    Settings.read(given)
    given.read(MergeOptions)
    table: HoodieTable[Any] = HoodieTable(session, path, storage_options=storage_options, options=given)
    completed(load_state(table.storage), given)
    return table


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
