"""Comparisons, truth and nulls as Spark has them: NaN equals itself and is the greatest number, 0.0 equals -0.0."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput
from hoodie.expressions import kinds
from hoodie.expressions.casts import cast, kernel_of
from hoodie.expressions.chains import balanced
from hoodie.expressions.kinds import BOOL, NULL
from hoodie.expressions.terms import NOTHING, Block, Term, Value, computed, elementwise, spread
from hoodie.schema.types import spark_name

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_UNKNOWN = Term(BOOL, lambda block: pa.scalar(None, BOOL))


def comparison(op: str, left: Term, right: Term) -> Term:
    """`= <> < <= > >=`, and `<=>`. Raises InvalidInput on two types that are not compared"""
    if op in _EQUALITY and _is_plain_nested(left.kind) and spark_name(left.kind) == spark_name(right.kind):
        return computed(BOOL, elementwise(_EQUALITY[op]), left, right)
    one, other, kind = comparable_terms(left, right)
    if op == "<=>":
        return _null_safe_equal(one, other, kind)
    if kind == NULL:
        return _UNKNOWN
    return computed(BOOL, comparator(op, kind), one, other)


def _is_plain_nested(kind: pa.DataType) -> bool:
    """Whether values are lists or structs, and none within is a map: maps are not compared."""
    return bool(arrow.is_nested(kind)) and "map<" not in spark_name(kind)


def _same(one: Any, other: Any) -> bool:
    """Whether two values of Python's are equal; within lists and structs null equals null."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(map(_same, one.values(), other.values()))
    return bool(one == other or (one != one and other != other))


def _of_nested(result: Callable[[Any, Any], bool | None]) -> Callable[[pa.Array, pa.Array], pa.Array]:
    return lambda left, right: pa.array(map(result, left.to_pylist(), right.to_pylist()), BOOL)


_EQUALITY = {
    "=": _of_nested(lambda one, other: None if one is None or other is None else _same(one, other)),
    "<>": _of_nested(lambda one, other: None if one is None or other is None else not _same(one, other)),
    "<=>": _of_nested(_same),
}


def comparable_terms(left: Term, right: Term) -> tuple[Term, Term, pa.DataType]:
    """Two terms in the type in which they are compared."""
    kind = kinds.common_kind(left.kind, right.kind)
    if kind is None or (arrow.is_nested(kind)):
        nested = arrow.is_nested(left.kind) or arrow.is_nested(right.kind)
        advice = "compare what is in them" if nested else "cast one of them"
        raise InvalidInput(f"{spark_name(left.kind)} and {spark_name(right.kind)} cannot be compared: {advice}")
    return cast(left, kind), cast(right, kind), kind


def comparator(op: str, kind: pa.DataType) -> Callable[..., Value]:
    """What compares two values of a type."""
    function = _COMPARE[op]
    return elementwise(lambda left, right: _of_floats(op, left, right)) if kinds.is_float(kind) else function


def _of_floats(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
    plain, nan_left, nan_right = _COMPARE[op](left, right), pc.is_nan(left), pc.is_nan(right)
    if not (pc.any(nan_left).as_py() or pc.any(nan_right).as_py()):
        return plain
    exact = {
        "=": pc.and_(nan_left, nan_right),
        "<>": pc.xor(nan_left, nan_right),
        "<": pc.and_not(nan_right, nan_left),
        "<=": nan_right,
        ">": pc.and_not(nan_left, nan_right),
        ">=": nan_left,
    }[op]
    return pc.if_else(pc.or_(nan_left, nan_right), exact, plain)


def _null_safe_equal(left: Term, right: Term, kind: pa.DataType) -> Term:
    """`<=>`: nulls are equal."""
    equal = comparator("=", kind)

    def run(one: pa.Array, other: pa.Array) -> pa.Array:
        both = pc.and_(one.is_null(), other.is_null())
        return both if kind == NULL else pc.if_else(both, pa.scalar(True), pc.fill_null(equal(one, other), False))

    return computed(BOOL, elementwise(run), left, right)


def condition(term: Term, what: str) -> Term:
    """A term as one that is true, false or unknown. Raises InvalidInput on another type, null itself among them"""
    if term.kind != BOOL:
        raise InvalidInput(f"{what} is {spark_name(term.kind)}: expected a condition, which is true or false")
    return term


def negated(term: Term) -> Term:
    return computed(BOOL, pc.invert, term)


def every(left: Term, right: Term) -> Term:
    """AND. The right side is asked for rows alone of which the left one is not false, if it may fail."""
    return _lazy(pc.and_kleene, False, left, right)


def any_true(left: Term, right: Term) -> Term:
    """OR."""
    return _lazy(pc.or_kleene, True, left, right)


def _lazy(function: Callable[..., Any], decided: bool, left: Term, right: Term) -> Term:
    if not right.fails:
        return computed(BOOL, function, left, right)

    def run(block: Block) -> Value:
        first = spread(left.run(block), block.length)
        open_ = np.asarray(pc.fill_null(pc.not_equal(first, pa.scalar(decided)), True))
        if not open_.any():
            return first
        if open_.all():
            return function(first, spread(right.run(block), block.length))
        places = pa.array(np.flatnonzero(open_))
        rows = block.take(places)
        answers = spread(right.run(rows), rows.length)
        at = np.full(block.length, -1, np.int64)
        at[open_] = np.arange(rows.length)
        second = answers.take(pa.array(at, mask=~open_))
        return pc.if_else(pa.array(open_), function(first, second), first)

    return Term(BOOL, run, left.columns | right.columns, True)


def in_list(term: Term, options: Sequence[Term]) -> Term:
    """IN a list, all in one type: unknown where it is not among them and one of these, or itself, is null."""
    kind: pa.DataType | None = term.kind
    for option in options:
        kind = None if kind is None else kinds.common_kind(kind, option.kind)
    if kind is None or arrow.is_nested(kind):
        raise InvalidInput(f"in (…): {spark_name(term.kind)} cannot be compared with all of the list: cast it")
    operand = cast(term, kind)
    values, rest = _split_constants(options, kind)
    in_order = any(option.fails for option in rest)  # none behind the one that is equal is asked
    parts = [comparison("=", operand, option) for option in (options if in_order else rest)]
    if len(values) and not in_order:
        parts.insert(0, computed(BOOL, elementwise(lambda rows: member(rows, values)), operand))
    return balanced(parts, any_true)


def _split_constants(options: Sequence[Term], kind: pa.DataType) -> tuple[pa.Array, list[Term]]:
    """The constants among some terms, in a type, and the other terms. Literals of a type are cast in one call: programs
    write lists of thousands."""
    literals: dict[pa.DataType, list[Term]] = {}
    rest: list[Term] = []
    for option in options:
        is_plain = option.literal is not None and not option.fails and kind != NULL
        (literals.setdefault(option.kind, []) if is_plain else rest).append(option)
    values = [pa.array([], kind)]
    for have, terms in literals.items():
        kernel = kernel_of(have, kind)
        array = None if kernel is None else kernel(pa.array([term.literal for term in terms], have))
        if array is None or array.null_count:
            rest += terms
        else:
            values.append(array)
    others = []
    for term in (cast(option, kind) for option in rest):
        if term.columns or term.fails or kind == NULL:
            others.append(term)
        else:
            values.append(spread(term.run(NOTHING), 1))
    return pa.concat_arrays(values), others


def member(values: pa.Array, options: pa.Array) -> pa.Array:
    """bool[n]: whether values are among others; null where that is unknown."""
    if not len(options):
        return pa.repeat(pa.scalar(False), len(values))
    if kinds.is_float(values.type):
        values, options = _one_nan_one_zero(values), _one_nan_one_zero(options)
    held = pc.is_in(values, value_set=options.drop_null())
    unknown = pa.scalar(None, BOOL)
    held = pc.if_else(values.is_valid(), held, unknown)
    return pc.if_else(held, held, unknown) if options.null_count else held


def _one_nan_one_zero(values: pa.Array) -> pa.Array:
    """Floats of which those that are equal have the same bits."""
    zero = pa.scalar(0.0).cast(values.type)
    return pc.if_else(pc.is_nan(values), pa.scalar(float("nan")).cast(values.type), pc.add(values, zero))
