"""Rows that a table without a Spark session gives: read when they are asked for, whole or as a stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from hoodie.api.arrow.frames import pandas_frame
from hoodie.api.arrow.lazy import lazy_frame
from hoodie.api.arrow.preview import rows_summary
from hoodie.display.render import as_html
from hoodie.errors import InvalidInput, MissingPackage
from hoodie.reading.changes.data import change_data_batches, select_changes
from hoodie.reading.changes.data_plan import ChangeData
from hoodie.reading.filters.predicate import Tests
from hoodie.reading.filters.selection import Filters, certain_tests
from hoodie.reading.scan import ScanPlan
from hoodie.reading.snapshot import read_scan
from hoodie.reading.stream import count_rows, scan_batches, with_columns
from hoodie.storage.faults import typed_calls, typed_errors

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from hoodie.api.arrow.dataset import RowsDataset


@typed_calls
class Rows:
    """Rows of a table, not read yet. Each call reads them anew, from the files that were current when it was made.

    Anything that takes Arrow's C stream takes it as it is: `pyarrow.table(rows)`, `polars.DataFrame(rows)`, another
    table's `upsert(rows)`. The errors of reads are raised when rows are asked for: see `snapshot`.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.RecordBatch]],
        table: Callable[[], pa.Table],
        count: Callable[[], int],
        shown: str,
        scan: ScanPlan | None = None,
    ) -> None:
        self.schema = schema
        self.scan = scan
        self._batches, self._table, self._count, self._shown = batches, table, count, shown

    @classmethod
    def of_scan(cls, scan: ScanPlan) -> Rows:
        """The rows of a scan."""
        schema = pa.schema([scan.schema.field(name) for name in scan.columns])
        shown = f"{scan!r}"
        return cls(schema, lambda: scan_batches(scan), lambda: read_scan(scan), lambda: count_rows(scan), shown, scan)

    @classmethod
    def of_change_data(
        cls, plan: ChangeData, columns: Sequence[str] | None = None, filters: Filters | None = None
    ) -> Rows:
        """The rows of a read of change data. columns, filters: over its own columns"""
        selected = select_changes(plan.reader.schema, columns, filters)

        def batches() -> Iterator[pa.RecordBatch]:
            return selected.of(change_data_batches(plan))

        def table() -> pa.Table:
            return pa.Table.from_batches(list(batches()), selected.schema)

        return cls(selected.schema, batches, table, lambda: sum(batch.num_rows for batch in batches()), f"{plan}")

    @classmethod
    def of_table(cls, table: pa.Table) -> Rows:
        """Rows that are here."""
        return cls(
            table.schema, lambda: iter(table.to_batches()), lambda: table, lambda: int(table.num_rows), "in memory"
        )

    def __reduce__(self) -> NoReturn:
        raise InvalidInput(
            "rows are not pickled: send the table and read there, as in table.as_of(instant), or send rows.to_arrow()"
        )

    def __repr__(self) -> str:
        return f"Rows({', '.join(self.schema.names)}; {self._shown})"

    def _repr_html_(self) -> str:
        return as_html(rows_summary(repr(self), self.schema, self.to_batches()))

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # asking for the number would read files

    def count(self) -> int:
        """How many rows there are: by the files' footers, where neither logs nor a filter can change the number."""
        return self._count()

    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows as a stream: one batch of them is in memory at a time, and the logs of one file slice."""
        with typed_errors():
            yield from self._batches()

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows, in no order but that of the files: no more files are opened than have them."""
        if not isinstance(rows, Integral) or isinstance(rows, bool) or rows < 0:
            raise InvalidInput(f"head({rows!r}): expected a number of rows")
        first_batches: list[pa.RecordBatch] = []
        remaining_rows = min(int(rows), sys.maxsize)
        with closing(self.to_batches()) as batches:
            while remaining_rows > 0 and (batch := next(batches, None)) is not None:
                first_batches.append(batch.slice(0, remaining_rows))
                remaining_rows -= first_batches[-1].num_rows
        return pa.Table.from_batches(first_batches, self.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that knows its schema."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """All rows, in memory; threads read the files."""
        return self._table()

    def to_pandas(self, **options: Any) -> Any:
        """All rows as a pandas DataFrame. Whole numbers and truth values among which there are nulls have pandas' own
        types that know these, `Int64` and `boolean`: no digit is lost, and an upsert takes them back.

        options  of `pyarrow.Table.to_pandas`; with `types_mapper` that says the types
        Raises   MissingPackage without pandas
        """
        return pandas_frame(self.to_arrow(), options)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars DataFrame. Raises MissingPackage without Polars"""
        try:
            import polars
        except ModuleNotFoundError as missing:
            raise MissingPackage("polars", "polars", "to_polars") from missing
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def lazy(self) -> pl.LazyFrame:
        """The rows as a LazyFrame of Polars, which reads them when it collects: of the files its query's columns, and
        no row group or partition that its filter rules out. Raises MissingPackage without Polars"""
        return lazy_frame(self.schema, self._fetch)

    def dataset(self) -> RowsDataset:
        """The rows as what DuckDB, Polars and pyarrow scan as a dataset, with their columns and filter:
        `data = rows.dataset()`, then `duckdb.sql("select max(fare) from data where city = 'oslo'")`."""
        # pyarrow's datasets import pandas, and the parser of SQL takes its time: only who asks for them waits.
        from hoodie.api.arrow.dataset import RowsDataset

        return RowsDataset(self.schema, self._fetch)

    def _fetch(self, columns: Sequence[str], tests: Tests) -> Iterator[pa.RecordBatch]:
        """Batches of some columns."""
        with typed_errors():
            if self.scan is not None:
                yield from scan_batches(with_columns(self.scan, columns, certain_tests(tests, self.schema)))
            else:
                yield from (batch.select(list(columns)) for batch in self._batches())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB. They are in memory.

        connection  None: DuckDB's default one
        Raises      MissingPackage without DuckDB
        """
        try:
            import duckdb
        except ModuleNotFoundError as missing:
            raise MissingPackage("duckdb", "duckdb", "to_duckdb") from missing
        if connection is not None and not isinstance(connection, duckdb.DuckDBPyConnection):
            raise InvalidInput(f"connection={connection!r}: expected a connection of DuckDB")
        return (connection or duckdb.default_connection()).from_arrow(self.to_arrow())
