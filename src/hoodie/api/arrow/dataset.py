"""Rows as a dataset of pyarrow's: DuckDB, Polars and pyarrow itself scan it, with their columns and filter."""

import re
from collections.abc import Sequence
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
    ) -> ds.Scanner:
        """The rows as a scanner, which can be read once. Arguments as of `pyarrow.dataset.Dataset.scanner`.

        Files of partitions, and row groups, of which the filter says that they have no such row are not read.
        """
        schema = self._rows_schema
        needed = schema.names
        if columns is None or not isinstance(columns, dict):
            requested_columns = schema.names if columns is None else list(columns)
            needed = filter_columns(filter, schema, requested_columns) or schema.names[:1]
        scan_options = {
            name: value for name, value in options.items() if name in ("batch_size", "use_threads", "memory_pool")
        }
        read = pa.schema([schema.field(name) for name in needed])
        batches = self._fetch(needed, tests_of_arrow(filter, schema))
        reader = pa.RecordBatchReader.from_batches(read, batches)
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter, **scan_options)

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
