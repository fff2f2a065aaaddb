"""Rows as a dataset of pyarrow's: DuckDB, Polars and pyarrow itself scan it, with their columns and filter."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hoodie.api.arrow.lazy import Fetch
from hoodie.errors import InvalidInput
from hoodie.expressions.scope import Scope
from hoodie.reading.filters.condition import tests_of_sql
from hoodie.reading.filters.predicate import ANY, Test, Tests
from hoodie.reading.filters.selection import filter_columns

#: Texts that pyarrow shows of an expression as SQL has them.
_PLAIN = re.compile(r"[A-Za-z0-9 _.:/-]*", re.A)


class RowsScanner:
    """What pyarrow's `Scanner` does, in the thread that asks for rows: a limit ends the reading.

    pyarrow's own reads on in a thread of its own, and ends the process with an abort where that outlives Python.
    """

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], scan: dict[str, Any]) -> None:
        self._source, self._scan = batches, scan
        self.dataset_schema = schema
        self.projected_schema = self._scanned(schema.empty_table()).projected_schema

    def _scanned(self, rows: pa.Table | pa.RecordBatch) -> ds.Scanner:
        return ds.dataset(rows).scanner(**self._scan)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._source:
            yield from self._scanned(batch).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        batches = []
        for batch in self.to_batches():
            batches.append(batch.slice(0, num_rows))
            num_rows -= batches[-1].num_rows
            if num_rows <= 0:
                break
        return pa.Table.from_batches(batches, self.projected_schema)

    def take(self, indices: Any) -> pa.Table:
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        return sum(batch.num_rows for batch in self.to_batches())


class RowsDataset(ds.Dataset):  # type: ignore[misc]
    """What DuckDB takes for a dataset: `data = rows.dataset(); duckdb.sql("select max(fare) from data group by city")`.

    It scans, and is no more: it has no fragments, and cannot be joined or sorted before it is read.
    """

    def __init__(self, schema: pa.Schema, fetch: Fetch) -> None:
        self._rows_schema, self._fetch = schema, fetch

    def __repr__(self) -> str:
        return f"RowsDataset({', '.join(self._rows_schema.names)})"

    @property
    def schema(self) -> pa.Schema:
        """The columns, as the table has them now, whichever its files have."""
        return self._rows_schema

    def scanner(
        self, columns: Sequence[str] | dict[str, Any] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> Any:
        """The rows as a scanner, which can be read once. Arguments as of `pyarrow.dataset.Dataset.scanner`.

        Files of partitions, and row groups, of which the filter says that they have no such row are not read.
        """
        schema = self._rows_schema
        requested_columns = [] if isinstance(columns, dict) else schema.names if columns is None else list(columns)
        needed = filter_columns(filter, schema, requested_columns) or schema.names[:1]
        if isinstance(columns, dict):
            needed = schema.names
        scan_options = {
            name: value for name, value in options.items() if name in ("batch_size", "use_threads", "memory_pool")
        }
        read = pa.schema([schema.field(name) for name in needed])
        batches = self._fetch(needed, tests_of_arrow(filter, schema))
        if columns is filter is None and set(options) == {"use_threads"}:  # `write_dataset` takes none but pyarrow's
            return ds.Scanner.from_batches(pa.RecordBatchReader.from_batches(read, batches), **scan_options)
        return RowsScanner(read, batches, {"columns": columns, "filter": filter, **scan_options})

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidInput("rows of a table are scanned only: read them first, by to_table() or to_batches()")

    get_fragments = replace_schema = filter = join = join_asof = sort_by = _refuse
    partition_expression = property(_refuse)

    def __reduce__(self) -> NoReturn:
        self._refuse()


def tests_of_arrow(expression: pc.Expression | None, schema: pa.Schema) -> Tests:
    """What an expression of pyarrow's says of single columns, by the text that it shows; nothing where it is no SQL."""
    if expression is None:
        return ANY
    try:
        tests = tests_of_sql(str(expression), Scope({"rows": schema}), "rows")
    except InvalidInput:
        return ANY
    return tuple(tuple(test for test in clause if _is_plain(test)) for clause in tests)


def _is_plain(test: Test) -> bool:
    return test.op != "in" and (not isinstance(test.value, str) or _PLAIN.fullmatch(test.value) is not None)
