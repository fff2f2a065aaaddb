"""A read that is planned and not run: which files hold a table's rows."""

from collections.abc import Callable
from typing import Generic

import pyarrow as pa

from hoodie.api.engine import Frame
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.reading.pruning import Pruned
from hoodie.reading.scan import ScanPlan
from hoodie.storage.faults import typed_calls


@typed_calls
class Scan(Generic[Frame]):
    """What a read would read of a table as it was when the scan was made. `HoodieTable.scan` makes it."""

    def __init__(self, plan: ScanPlan, rows: Callable[[], Frame]) -> None:
        self._plan, self._rows = plan, rows

    def rows(self) -> Frame:
        """The rows: a DataFrame of the table's session, or `Rows` without one. Raises as `HoodieTable.snapshot`"""
        return self._rows()

    def explain(self) -> str:
        """The plan as text: what is read, the columns and the filter, what is left out and why, the file slices."""
        return str(self._plan)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, in order: what to read `files` with, of which some may lack columns or have narrower
        types, as in `pyarrow.dataset.dataset(scan.files, schema=scan.schema)`."""
        return pa.schema([self._plan.schema.field(name) for name in self._plan.columns])

    @property
    def files(self) -> tuple[str, ...]:
        """The base files that hold the rows, each in full, by their whole paths: no older versions, and no files of
        writes that failed. For readers of Parquet, such as `polars.scan_parquet` and DuckDB's `read_parquet`, which
        must never be told to read all Parquet files of the folder.

        Raises UnsupportedTable where log files have rows, too, and where files have columns in another way than the
               table now
        """
        return self._plan.files

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition paths that are read, sorted."""
        return self._plan.partitions

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """The file slices that are read, by partition path and file id; those with logs are merged."""
        return self._plan.slices

    @property
    def base_files(self) -> tuple[BaseFile, ...]:
        """The base files that are read."""
        return self._plan.base_files

    @property
    def log_files(self) -> tuple[LogFile, ...]:
        """The log files that are read."""
        return self._plan.log_files

    @property
    def bytes(self) -> int:
        """Bytes of all these files, whole: of base files only some columns are fetched."""
        return self._plan.bytes

    @property
    def pruned(self) -> tuple[Pruned, ...]:
        """What is left out, by reason."""
        return self._plan.pruned

    def __repr__(self) -> str:
        return repr(self._plan)

    def __str__(self) -> str:
        return str(self._plan)

    def _repr_html_(self) -> str:
        return self._plan._repr_html_()
