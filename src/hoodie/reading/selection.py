"""What a reader asks of a table: columns by name, and which rows to keep."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import InvalidInput

#: Filters as pyarrow.parquet takes them: an expression, or tuples (column, operator, value) in lists of and, or.
Filters: TypeAlias = pc.Expression | Sequence[Any]


def read_filter(filters: Filters | None, schema: pa.Schema) -> tuple[pc.Expression | None, Sequence[str]]:
    """The filter as an expression, and the columns that it may ask for. Raises InvalidInput on a malformed filter."""
    if filters is None:
        return None, ()
    if isinstance(filters, pc.Expression):
        return filters, schema.names  # an expression does not tell which columns are in it
    try:
        expression = pq.filters_to_expression(filters)
        clauses = filters if isinstance(filters[0], list) else [filters]
        return expression, [name for clause in clauses for name, _, _ in clause]
    except (ValueError, TypeError, IndexError, KeyError) as problem:
        raise InvalidInput(f"filters={filters!r}: expected tuples (column, operator, value), {problem}") from problem


def check_columns(names: Iterable[str], schema: pa.Schema) -> None:
    """Raises InvalidInput naming a column that is not in the schema, and the nearest one that is."""
    for name in names:
        if name not in schema.names:
            near = difflib.get_close_matches(str(name), schema.names, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else f" It has {', '.join(schema.names)}."
            raise InvalidInput(f"the table has no column {name!r}.{hint}")
