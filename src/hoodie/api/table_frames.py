"""The rows of HoodieTable as frames of other libraries, and what a notebook shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.api.arrow.preview import table_summary
from hoodie.api.arrow.rows import Rows
from hoodie.api.engine import Frame
from hoodie.api.handle import Options, TableHandle
from hoodie.api.inputs import checked_flags
from hoodie.api.local_engine import read_local
from hoodie.display.render import as_html
from hoodie.reading.filters.selection import Filters
from hoodie.reading.scan_plan import Read
from hoodie.storage.faults import typed_calls
from hoodie.table.state import load_state

if TYPE_CHECKING:
    import polars as pl

    from hoodie.api.arrow.dataset import RowsDataset


@typed_calls
@checked_flags
class TableFrames(TableHandle[Frame]):
    """The newest rows, which this process reads, without the five `_hoodie_*` columns unless `meta` asks for them.

    Arguments of all: `columns`, `filters` and `options` as of `snapshot`.
    """

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        meta: bool = False,
        options: Options | None = None,
    ) -> pa.Table:
        """The rows in memory."""
        return self._rows(columns, filters, meta, options).to_arrow()

    def to_pandas(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        meta: bool = False,
        options: Options | None = None,
    ) -> Any:
        """The rows as a pandas DataFrame, as of `Rows.to_pandas`."""
        return self._rows(columns, filters, meta, options).to_pandas()

    def to_polars(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        meta: bool = False,
        options: Options | None = None,
    ) -> pl.DataFrame:
        """The rows as a Polars DataFrame."""
        return self._rows(columns, filters, meta, options).to_polars()

    def lazy(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        meta: bool = False,
        options: Options | None = None,
    ) -> pl.LazyFrame:
        """The rows of this moment as a LazyFrame of Polars, as of `Rows.lazy`."""
        return self._rows(columns, filters, meta, options).lazy()

    def dataset(
        self,
        *,
        columns: Sequence[str] | None = None,
        filters: Filters | None = None,
        meta: bool = False,
        options: Options | None = None,
    ) -> RowsDataset:
        """The rows of this moment as what DuckDB and pyarrow scan, as of `Rows.dataset`."""
        return self._rows(columns, filters, meta, options).dataset()

    def _repr_html_(self) -> str:
        return as_html(table_summary(self.storage, self._options(None)))

    def _rows(
        self, columns: Sequence[str] | None, filters: Filters | None, meta: bool, options: Options | None
    ) -> Rows:
        read = Read(columns=columns, filters=filters, meta=meta)
        return read_local(load_state(self.storage), read, self._read_settings(options))
