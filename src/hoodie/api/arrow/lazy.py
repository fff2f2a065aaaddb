"""Rows that Polars reads when it needs them: the columns, filter and limit of its query reach the files."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.errors import MissingPackage
from hoodie.reading.filters.predicate import ANY, Test, Tests

if TYPE_CHECKING:
    import polars as pl

#: Gives the batches of some columns, of rows that pass tests, and perhaps of others.
Fetch = Callable[[Sequence[str], Tests], Iterator[pa.RecordBatch]]

_OPS = {"Eq": "=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = dt.date(1970, 1, 1)


def lazy_frame(schema: pa.Schema, fetch: Fetch) -> pl.LazyFrame:
    """A LazyFrame of rows. Raises MissingPackage without Polars"""
    try:
        import polars
        from polars.io.plugins import register_io_source
    except ModuleNotFoundError as missing:
        raise MissingPackage("polars", "polars", "lazy") from missing
    shown = polars.from_arrow(schema.empty_table())
    assert isinstance(shown, polars.DataFrame)

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        requested_columns = list(shown.schema) if columns is None else columns
        needed = list(
            dict.fromkeys([*requested_columns, *(predicate.meta.root_names() if predicate is not None else ())])
        )
        needed = needed or list(shown.schema)[:1]  # rows are counted by a column that they have
        remaining_limit = limit
        for batch in fetch(needed, tests_of_polars(predicate)):
            frame = polars.from_arrow(batch)
            assert isinstance(frame, polars.DataFrame)
            if predicate is not None:
                frame = frame.filter(predicate)
            if remaining_limit is not None:
                frame = frame.head(remaining_limit)
                remaining_limit -= frame.height
            yield frame.select(requested_columns) if requested_columns else frame
            if remaining_limit == 0:
                return

    return register_io_source(source, schema=shown.schema)


def tests_of_polars(predicate: Any) -> Tests:
    """What an expression of Polars' says of single columns; nothing where its form is not known."""
    if predicate is None:
        return ANY
    import polars

    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except (ValueError, polars.exceptions.PolarsError):  # functions of Python's have no such form
        return ANY
    return (tuple(_tests(tree)),)


def _tests(tree: Any) -> Iterator[Test]:
    node = tree.get("BinaryExpr") if isinstance(tree, dict) else None
    if not isinstance(node, dict):
        return
    left, op, right = node.get("left"), node.get("op"), node.get("right")
    if op == "And":
        yield from _tests(left)
        yield from _tests(right)
    elif op in _OPS:
        for column, value, word in ((left, right, _OPS[op]), (right, left, _MIRRORED[_OPS[op]])):
            name = column.get("Column") if isinstance(column, dict) else None
            constant = _constant(value)
            if isinstance(name, str) and constant is not None:
                yield Test(name, word, constant)


def _constant(tree: Any) -> Any:
    """A whole number, text, truth value or date; None: it is none of these."""
    literal = tree.get("Literal") if isinstance(tree, dict) else None
    scalar = next(iter(literal.values())) if isinstance(literal, dict) and len(literal) == 1 else None
    if not isinstance(scalar, dict) or len(scalar) != 1:
        return None
    kind, value = next(iter(scalar.items()))
    if kind == "Date" and isinstance(value, int):
        return _EPOCH + dt.timedelta(days=value)
    if kind == "Boolean" and isinstance(value, bool):
        return value
    if kind.startswith(("Int", "UInt")) and isinstance(value, int):
        return value
    return value if kind.startswith("String") and isinstance(value, str) else None
