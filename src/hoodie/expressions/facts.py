"""What a condition says of single columns: comparisons with constants, by which files are left out."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from sqlglot import exp

from hoodie.expressions import kinds
from hoodie.expressions.casts import cast
from hoodie.expressions.chains import operands
from hoodie.expressions.kinds import BOOL, DATE, TEXT, is_integer
from hoodie.expressions.reader import LOGIC, Reader, tree_of
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import NOTHING, Name, Term

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

#: A column, an operator of `predicate.Test`, and the value that it is compared with.
Fact = tuple[Name, str, Any]


def facts_of(text: str, scope: Scope) -> list[Fact]:
    """Facts of which each must hold for the condition to be true, as far as they are plain to see: whole numbers, text,
    truth values and dates. Raises InvalidInput as `read_condition`"""
    return list(_facts(Reader(text, scope), tree_of(text, scope)))


def _facts(reader: Reader, node: Any) -> Iterator[Fact]:
    while isinstance(node, exp.Paren):
        node = node.this
    if node.args.get("negate"):
        return
    if isinstance(node, exp.And):
        for part in operands(node):
            yield from _facts(reader, part)
    elif isinstance(node, exp.Between):
        yield from _compared(reader, ">=", node.this, node.args["low"])
        yield from _compared(reader, "<=", node.this, node.args["high"])
    elif isinstance(node, exp.In) and node.expressions and isinstance(node.this, exp.Column):
        yield from _among(reader, node)
    elif (op := LOGIC.get(type(node))) in _MIRRORED and op is not None:
        left, right = node.left, node.right
        yield from _compared(reader, op, left, right)
        yield from _compared(reader, _MIRRORED[op], right, left)


def _compared(reader: Reader, op: str, column: Any, other: Any) -> Iterator[Fact]:
    if isinstance(column, exp.Column):
        name, value = _constant(reader, reader.term(column), reader.term(other))
        if name is not None and value is not None:
            yield name, op, value


def _among(reader: Reader, node: Any) -> Iterator[Fact]:
    column = reader.term(node.this)
    if not _is_ruled(column.kind):
        return
    constants = [_constant(reader, column, reader.term(one)) for one in node.expressions]
    values = [value for name, value in constants if name is not None]
    if len(values) == len(constants):
        yield next(iter(column.columns)), "in", [value for value in values if value is not None]


def _constant(reader: Reader, column: Term, other: Term) -> tuple[Name | None, Any]:
    """The column and the value of a term beside it; no name: it is no constant, or not one of the column's kind."""
    top_level = len(column.columns) == 1 and next(iter(column.columns))
    if not top_level or other.columns or other.fails or column.kind != _declared(reader, top_level):
        return None, None
    kind = kinds.common_kind(column.kind, other.kind)
    if kind is None or not ((is_integer(column.kind) and is_integer(kind)) or kind == column.kind):
        return None, None
    if not _is_ruled(kind):
        return None, None
    typed = cast(other, kind)
    if typed.fails:
        return None, None
    value = typed.run(NOTHING)
    return (top_level, value.as_py()) if isinstance(value, pa.Scalar) else (None, None)


def _is_ruled(kind: pa.DataType) -> bool:
    """Whether constants of a type rule files out."""
    return is_integer(kind) or kind in (TEXT, BOOL, DATE)


def _declared(reader: Reader, name: Name) -> pa.DataType | None:
    schema = reader.scope.tables.get(name[0])
    return None if schema is None else schema.field(name[1]).type
