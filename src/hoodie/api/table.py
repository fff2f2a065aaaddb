"""HoodieTable, and the calls that open and create one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from hoodie.api.arrow.rows import Rows
from hoodie.api.engine import Engine, Frame
from hoodie.api.handle import Options
from hoodie.api.inputs import Path, as_path, as_session, path_first
from hoodie.api.local_engine import engine_of
from hoodie.api.table_conditions import TableConditions
from hoodie.api.table_frames import TableFrames
from hoodie.api.table_reads import TableReads
from hoodie.api.table_services import TableServices
from hoodie.api.table_writes import TableWrites
from hoodie.config.datasource import check_options, door_options, overridden, write_options
from hoodie.config.driver_options import without_driver_options
from hoodie.config.options import Options as Checked
from hoodie.config.options import as_text
from hoodie.config.read import MergeOptions
from hoodie.errors import InvalidInput
from hoodie.keygen.time_units import partition_columns, partition_options
from hoodie.schema.schema import refuse_names
from hoodie.storage import storage_at
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, redacted_path
from hoodie.table.create import create, with_write_options
from hoodie.table.settings import Settings
from hoodie.table.state import load_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class HoodieTable(
    TableReads[Frame], TableWrites[Frame], TableConditions[Frame], TableServices[Frame], TableFrames[Frame]
):
    """A table at a path; `open_table` and `create_table` make it. It holds no state of the table: every call looks at
    what is there now.

    The subject of a call is given by position, all else by name, `options` last: `hoodie.*` options for this call, over
    those of the table object.
    """

    @overload
    def __init__(
        self: HoodieTable[Rows],
        path: Path | None = None,
        *,
        spark: None = None,
        storage: Storage | None = None,
        storage_options: Options | None = None,
        options: Options | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: HoodieTable[DataFrame],
        path: Path | None = None,
        *,
        spark: SparkSession,
        storage: Storage | None = None,
        storage_options: Options | None = None,
        options: Options | None = None,
    ) -> None: ...
    @typed_errors()
    @path_first
    def __init__(
        self,
        path: Path | None = None,
        *,
        spark: Any = None,
        storage: Storage | None = None,
        storage_options: Options | None = None,
        options: Options | None = None,
    ) -> None:
        checked = check_options({} if options is None else options)
        self.session = as_session(spark)
        self.storage = _storage(path, storage, checked, storage_options)
        self.options = without_driver_options(checked)
        self.engine = cast("Engine[Frame]", engine_of(self.session))

    def __repr__(self) -> str:
        return f"HoodieTable({redacted_path(self.storage.root)!r})"


@overload
def create_table(
    path: Path | None = None,
    *,
    record_key: str | Sequence[str] = (),
    name: str = "",
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] | None = None,
    table_type: str = "",
    keep: str | int | None = None,
    spark: None = None,
    storage: Storage | None = None,
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Rows]: ...
@overload
def create_table(
    path: Path | None = None,
    *,
    record_key: str | Sequence[str] = (),
    name: str = "",
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] | None = None,
    table_type: str = "",
    keep: str | int | None = None,
    spark: SparkSession,
    storage: Storage | None = None,
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[DataFrame]: ...
@typed_errors()
@path_first
def create_table(
    path: Path | None = None,
    *,
    record_key: str | Sequence[str] = (),
    name: str = "",
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] | None = None,
    table_type: str = "",
    keep: str | int | None = None,
    spark: Any = None,
    storage: Storage | None = None,
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Any]:
    """Create a table, or open the one that is at the path with the same settings.

    path             of the table's folder: local, or a URI that fsspec knows
    record_key       column or columns that identify a row; () for none: each row gets a key of its own, upserts insert,
                     and NoRecordKey is warned of
    name             what engines and messages call the table; "": the folder's name
    partition_by     column or columns whose values make the folders; () for none. A time makes a folder for each year,
                     month, day or hour, in UTC: "year(at)", "month(at)", "day(at)", "hour(at)"
    ordering         column, or columns, that tell the newer of two versions of a row: the greater value wins, whichever
                     came last, unless the options name another rule (`hoodie.datasource.write.payload.class`); None for
                     none
    table_type       "COPY_ON_WRITE" or "MERGE_ON_READ"; "": as `hoodie.datasource.write.table.type` says, by default
                     the former
    keep             how much history cleaning leaves for reads as of earlier times: "30 days", "48 hours" or a number
                     of commits. The table keeps it as a setting of its own, for all writers of this library that name
                     no cleaning policy themselves. None: 10 commits
    spark            the session that writes and reads, which gives DataFrames. None: this process does it all by
                     itself and gives `Rows`; PySpark is not needed
    storage          the table's folder as a `hoodie.storage.Storage`, in place of the path
    storage_options  of the fsspec driver of the path, such as key and secret of s3fs; a local path needs none
    options          `hoodie.*` options by Hudi's names; those of writes hold for this object
    Raises           InvalidOption; TableMismatch when the table there has other settings; InvalidInput on a path and
                     a storage at once, or neither; also where an argument and an option contradict each other
    """
    checked = door_options(options, path=path)
    Settings.read(checked)
    checked.read(MergeOptions)
    table: HoodieTable[Any] = HoodieTable(
        path, spark=spark, storage=storage, storage_options=storage_options, options=write_options(checked)
    )
    keys, partitions = (
        _column_list(record_key, "record_key"),
        partition_columns(_column_list(partition_by, "partition_by")),
    )
    ordered = as_text(_column_list(ordering, "ordering"))
    columns = [*keys, *(column.name for column in partitions), ordered]
    _refuse_no_columns(record_key, "record_key")
    for names, argument in ((partition_by, "partition_by"), (ordering, "ordering")):
        if names != "":  # which is none
            _refuse_no_columns(names, argument)
    if not isinstance(name, str):
        raise InvalidInput(f"name={name!r}: expected what engines and messages call the table, as text")
    if not isinstance(table_type, str):
        raise InvalidInput(f"table_type={table_type!r}: expected COPY_ON_WRITE or MERGE_ON_READ")
    # Also as Hudi's options have them: by commas, a partition column with its kind behind a colon.
    refuse_names(part.partition(":")[0].strip() for text in columns for part in text.split(",") if part.strip())
    named = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": as_text(keys),
        **partition_options(partitions, len(keys)),
        "hoodie.datasource.write.precombine.field": ordered,
        "hoodie.datasource.write.table.type": table_type,
    }
    _refuse_contradictions(named, checked)
    settings = overridden(without_driver_options(checked), {key: value for key, value in named.items() if value})
    if "hoodie.table.name" not in settings:
        settings = overridden(settings, {"hoodie.table.name": table.path.rstrip("/").rpartition("/")[2]})
    with_write_options(create(table.storage, settings, own_call=True, keep=keep), checked)
    return table


#: What a call says by an argument, and its options may say, too.
_SAID_TWICE = tuple(f"hoodie.datasource.write.{name}" for name in ("recordkey.field", "precombine.field", "table.type"))


def _refuse_contradictions(named: Mapping[str, str], options: Mapping[str, str]) -> None:
    """Raises InvalidInput where the arguments of a call and its options name two keys, orderings or types."""
    for key in _SAID_TWICE:
        argument, option = (values.get(key, "").replace(" ", "") for values in (named, options))
        if argument and option and argument != option:
            raise InvalidInput(
                f"the call says {argument!r}, and {key} in the options is {option!r}: leave one of them out"
            )


@overload
def open_table(
    path: Path | None = None,
    *,
    spark: None = None,
    storage: Storage | None = None,
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Rows]: ...
@overload
def open_table(
    path: Path | None = None,
    *,
    spark: SparkSession,
    storage: Storage | None = None,
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[DataFrame]: ...
@typed_errors()
@path_first
def open_table(
    path: Path | None = None,
    *,
    spark: Any = None,
    storage: Storage | None = None,
    storage_options: Options | None = None,
    options: Options | None = None,
) -> HoodieTable[Any]:
    """Open a table.

    path             as of `create_table`; with a session also a name that `hoodie.spark.register_table` gave the path,
                     or the name of an entry of the session's catalog that a sync made: "city.trips", "city.trips_ro"
    spark, storage, storage_options  as of `create_table`
    options          `hoodie.*` options for its writes and reads
    Raises           TableNotFound; CorruptFile; UnsupportedTable, also when the catalog's entry has no path or not
                     Spark's properties of a data source table; InvalidOption; TableMismatch when options name other
                     settings than the table has; InvalidInput on a path and a storage at once, or neither
    """
    if as_session(spark) is not None and path is not None:
        from hoodie.spark.names import located

        path = located(spark, as_path(path))
    checked = door_options(options, path=path)
    Settings.read(checked)
    checked.read(MergeOptions)
    table: HoodieTable[Any] = HoodieTable(
        path, spark=spark, storage=storage, storage_options=storage_options, options=checked
    )
    state = load_state(table.storage)
    if checked:
        with_write_options(state, checked)
    return table


def _storage(path: Any, storage: Storage | None, options: Checked, storage_options: Options | None) -> Storage:
    """The table's folder, which is given once. Raises InvalidInput"""
    if isinstance(storage, (str, os.PathLike)):
        raise InvalidInput(f"storage={str(storage)!r} is a path: give it first, without storage=")
    if storage is not None and not hasattr(storage, "list_tree"):
        raise InvalidInput(f"storage={type(storage).__name__}: expected a hoodie.storage.Storage")
    if storage is None:
        return storage_at(as_path(path), options, storage_options)
    if path is not None:
        raise InvalidInput(f"the path {path} and a storage: give one of them")
    return storage


def _column_list(names: object, argument: str) -> list[str]:
    """Columns as a call names them; None: none. Raises InvalidInput on what is neither a name nor a list of names"""
    listed = [names] if isinstance(names, str) else [] if names is None else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(name, str) for name in listed):
        raise InvalidInput(f"{argument}={names!r}: expected a column, or a list of columns")
    return list(listed)


def _refuse_no_columns(names: str | Sequence[str] | None, argument: str) -> None:
    """Raises InvalidInput on a name that is blank, or there twice."""
    columns = [part.strip() for name in _column_list(names, argument) for part in name.split(",")]
    if "" in columns:
        none = ": leave it out for none, which cannot be changed" if argument == "record_key" else ""
        raise InvalidInput(f"{argument}={names!r}: expected columns, and there is one without a name{none}")
    if twice := [column for column in dict.fromkeys(columns) if columns.count(column) > 1]:
        raise InvalidInput(f"{argument}={names!r}: {twice[0]!r} is there twice")
