"""Values that are assigned to columns: in their types, where nothing of what they mean is lost."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput, sentence
from hoodie.expressions import kinds
from hoodie.expressions.casts import cast, kernel_of
from hoodie.expressions.kinds import NULL, is_decimal, is_float, is_integer, is_number, is_text_kind, is_time
from hoodie.expressions.reader import read_expression
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Term, computed, elementwise, literal, spread
from hoodie.schema.conform import conform
from hoodie.schema.leaves import with_leaves
from hoodie.schema.schema import stored_form
from hoodie.schema.types import is_list, spark_name


@dataclass(frozen=True, slots=True)
class StructValue:
    """A struct of which a clause sets fields: each field's value, in the order of the struct's type."""

    fields: Mapping[str, Any]


def assigned_value(value: Any, column: pa.Field, scope: Scope, *, exact: bool = False) -> Term | str:
    """What a clause assigns to a column, as `assigned`. Raises as `value_term`

    exact   of a field of a struct
    """
    if not isinstance(value, StructValue):
        return assigned(value_term(value, scope, column.type), column, exact=exact)
    fields, terms = list(column.type), list[Term]()
    for field in fields:
        path = field.with_name(f"{column.name}.{field.name}")
        term = assigned_value(value.fields[field.name], path, scope, exact=True)
        if isinstance(term, str):
            return term
        terms.append(term)

    def struct(*values: pa.Array) -> pa.Array:
        typed = [part.cast(field.type) for part, field in zip(values, fields, strict=True)]
        return pa.StructArray.from_arrays(typed, fields=fields)

    return computed(column.type, elementwise(struct), *terms)


def value_term(value: Any, scope: Scope, column: pa.DataType | None = None) -> Term:
    """What a clause assigns: SQL text, or a plain value of Python's. Raises InvalidInput

    column  the type of the column, which a list that tells none has, and by which a dict is a map
    """
    if isinstance(value, str):
        return _expression(value, scope)
    if isinstance(value, pa.Scalar):
        return Term(value.type, lambda block: value)
    scalar = plain_scalar(value, column)
    if arrow.is_null(scalar.type):
        return literal(None, NULL)
    if arrow.is_nested(scalar.type):
        return Term(scalar.type, lambda block: scalar)
    stored = stored_form(pa.schema([pa.field("value", scalar.type)])).field(0).type
    if scalar.type == pa.int64() and -(2**31) <= value < 2**31:
        stored = pa.int32()
    return literal(scalar.cast(stored).as_py(), stored)


def plain_scalar(value: Any, column: pa.DataType | None) -> pa.Scalar:
    """A plain value of Python's as one of Arrow's. Arguments and errors as `value_term`"""
    try:
        scalar = scalar_of(value) if column is None else _scalar_for(value, column)
        if arrow.is_timestamp(scalar.type):
            scalar = scalar.cast(pa.timestamp("us", scalar.type.tz))  # fails where nanoseconds would be lost
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise InvalidInput(f"the value {value!r} is no SQL text and has no Arrow type: {problem}") from problem
    return scalar


def _scalar_for(value: Any, column: pa.DataType) -> pa.Scalar:
    if arrow.is_map(column) and isinstance(value, dict):
        items = pa.array(list(value.values()))
        return pa.scalar(
            list(value.items()), pa.map_(pa.string(), items.type) if items.null_count < len(items) else column
        )
    untyped = is_list(column) and isinstance(value, list) and not any(part is not None for part in value)
    return pa.scalar(value, column) if untyped else scalar_of(value)


def scalar_of(value: Any) -> pa.Scalar:
    """A plain value as one of Arrow's, also pandas' NA and NaT, which are null, and numpy's days and minutes, which
    Arrow does not take."""
    try:
        return pa.scalar(value)
    except (pa.ArrowException, TypeError, ValueError):
        of_numpy = getattr(getattr(value, "dtype", None), "kind", "") == "M"
        return pa.array([value.item() if of_numpy else value], from_pandas=True)[0]


def _expression(text: str, scope: Scope) -> Term:
    try:
        return read_expression(text, scope)
    except InvalidInput as problem:
        if not (hint := quotes_hint(text)):
            raise
        raise InvalidInput(f"{sentence(problem)} {hint}") from problem


def quotes_hint(value: object) -> str:
    """What to write for a value that was read as SQL and is likely meant as a text; "" for what is not."""
    if not isinstance(value, str) or _WORDS.fullmatch(value) is None:
        return ""
    quoted = value.replace("'", "''")
    return f"A value that is text stands in quotes: \"'{quoted}'\""


#: What may well be meant as a text, and not as an expression: words, with nothing between them that reckons.
_WORDS = re.compile(r"\w[\w' -]*")


def assigned(term: Term, column: pa.Field, *, exact: bool = False) -> Term | str:
    """The term in the type of its column; text: why it would lose its meaning, such as text for a number. A number that
    the column cannot hold is an InvalidInput once it is evaluated.

    exact   so is one that whole numbers, or decimals, have to cut or round; within nested values all are
    """
    kind = pa.timestamp("us", column.type.tz) if arrow.is_timestamp(column.type) else column.type
    if term.kind == kind:
        return term
    if term.kind == NULL:
        return cast(term, kind) if not arrow.is_nested(kind) else Term(kind, lambda block: pa.nulls(block.length, kind))
    if arrow.is_fixed_size_binary(kind) and arrow.is_binary(term.kind):
        return _conformed(term, column, term.kind)
    if arrow.is_nested(kind) or arrow.is_nested(term.kind):
        shape = _shape(term.kind, kind)
        return _misfit(term, column) if shape is None else _conformed(term, column, shape)
    if not _assignable(term.kind, kind):
        return _misfit(term, column)
    numbers = is_number(term.kind) and (is_integer(kind) or is_decimal(kind))
    if not numbers or _holds_all(kind, term.kind):
        return cast(term, kind)
    run = partial(_number, kind=kind, path=column.name, exact=exact)
    return computed(kind, elementwise(run), term, fails=True)


def _number(values: pa.Array, kind: pa.DataType, path: str, *, exact: bool = True) -> pa.Array:
    to, back = kernel_of(values.type, kind), kernel_of(kind, values.type)
    assert to is not None
    assert back is not None
    fitting = to(values)
    if exact and not is_float(kind):
        fitting = pc.if_else(pc.equal(back(fitting), values), fitting, pa.scalar(None, kind))
    if fitting.null_count > values.null_count:
        bad = values.filter(pc.and_(values.is_valid(), fitting.is_null()))[0].as_py()
        raise InvalidInput(f"column {path} is {spark_name(kind)}, and cannot hold the value {bad}")
    return fitting


def _shape(have: pa.DataType, kind: pa.DataType) -> pa.DataType | None:
    """The type of nested values with the numbers of the column's, and its types for what has none; None: they would
    lose their meaning."""
    if have in (NULL, kind):
        return kind
    if not (arrow.is_nested(have) or arrow.is_nested(kind)):
        numbers = is_number(have) and is_number(kind)
        fits = _assignable(kinds.evaluated_kind(have), kinds.evaluated_kind(kind))
        return kind if numbers else have if fits else None
    if is_list(have) and is_list(kind):
        element = _shape(have.value_type, kind.value_type)
        return None if element is None else pa.list_(element)
    if arrow.is_map(have) and arrow.is_map(kind):
        key, value = _shape(have.key_type, kind.key_type), _shape(have.item_type, kind.item_type)
        return None if key is None or value is None else pa.map_(key, value)
    if not (arrow.is_struct(have) and arrow.is_struct(kind)) or {f.name for f in have} != {f.name for f in kind}:
        return None
    types = [_shape(child.type, kind.field(child.name).type) for child in have]
    return None if None in types else pa.struct(list(zip(have.names, types, strict=True)))


def _misfit(term: Term, column: pa.Field) -> str:
    return f"column {column.name!r} is {spark_name(column.type)}, and the value {spark_name(term.kind)}"


def _conformed(term: Term, column: pa.Field, shape: pa.DataType) -> Term:
    field = pa.field(column.name, column.type)
    schema = pa.schema([field])

    def run(block: Any) -> pa.Array:
        values = spread(term.run(block), block.length)
        values = with_leaves(values, shape, column.name, _leaf)
        return conform(pa.Table.from_arrays([values], [column.name]), schema).column(0).combine_chunks()

    return Term(column.type, run, term.columns, True)


def _leaf(values: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    return pa.nulls(len(values), kind) if arrow.is_null(values.type) else _number(values, kind, path)


def _assignable(value: pa.DataType, column: pa.DataType) -> bool:
    if is_text_kind(column):
        return not arrow.is_binary(value)
    if value == column:
        return True
    return (is_number(value) and is_number(column)) or (is_time(value) and is_time(column))


def _holds_all(column: pa.DataType, value: pa.DataType) -> bool:
    """Whether a column of one type holds each value of another, and equal ones are equal in both."""
    if value in (NULL, column):
        return True
    if is_integer(value) and is_integer(column):
        return bool(value.bit_width <= column.bit_width)
    if is_decimal(value) and is_decimal(column):
        return bool(column.precision - column.scale >= value.precision - value.scale and column.scale >= value.scale)
    return is_float(value) and column == kinds.DOUBLE


def equal_alike(column: pa.DataType, value: pa.DataType) -> bool:
    """Whether a value equals one of a column where it does so once it is cast to the column's type."""
    return _holds_all(column, value) or (is_integer(value) and is_integer(column))
