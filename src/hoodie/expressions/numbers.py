"""Arithmetic as Spark's: too large a result and a zero divisor fail, decimals are exact and rounded once."""

from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.expressions import kinds
from hoodie.expressions.casts import cast, rescaled, retyped, to_decimal
from hoodie.expressions.kinds import BIGINT, DOUBLE, NULL, is_decimal, is_float, is_integer
from hoodie.expressions.terms import Term, by_distinct, computed, elementwise, null_where, one_array, zero
from hoodie.schema.types import spark_name

#: Digits that Arrow's wide decimals hold, and more than a number of SQL has.
_WIDE, _MOST_DIGITS = 76, 40
_CONTEXT = Context(prec=120, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)
#: Spark divides in so many digits, and rounds the quotient to its type then.
_QUOTIENT = Context(prec=39, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)

_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_BITS = {"&": pc.bit_wise_and, "|": pc.bit_wise_or, "^": pc.bit_wise_xor}


def arithmetic(op: str, left: Term, right: Term) -> Term | None:
    """`+ - * / %`, `div` or `pmod` of two numbers; None: they are none, or `pmod` of decimals."""
    kind = kinds.arithmetic_kind(op, left.kind, right.kind)
    if kind is None or (op == "pmod" and is_decimal(kind)):
        return None
    if NULL in (left.kind, right.kind):
        return Term(kind, lambda block: pa.scalar(None, kind), left.columns | right.columns)
    if (is_decimal(left.kind) or is_decimal(right.kind)) and not (is_float(left.kind) or is_float(right.kind)):
        return _decimals(op, *(_as_decimal(term) for term in (left, right)))
    if op == "div":
        return computed(BIGINT, elementwise(_whole_quotient), cast(left, BIGINT), cast(right, BIGINT), fails=True)
    left, right = cast(left, kind), cast(right, kind)
    if op == "/":
        return computed(kind, elementwise(_quotient), left, right, fails=True)
    if op in ("%", "pmod"):
        return computed(kind, elementwise(_remainder if op == "%" else _positive_remainder), left, right, fails=True)
    if is_float(kind):
        return computed(kind, _PLAIN[op], left, right)
    return computed(kind, _checked_function(_CHECKED[op], op), left, right, fails=True)


def bitwise(op: str, left: Term, right: Term) -> Term | None:
    """`& | ^` of two whole numbers, in the wider of their types; None: they are none."""
    integers = [kind for kind in (left.kind, right.kind) if kind != NULL]
    if not integers or not all(map(is_integer, integers)):
        return None
    kind = kinds.wider_integer(integers[0], integers[-1])
    return computed(kind, elementwise(_BITS[op]), cast(left, kind), cast(right, kind))


def logarithm(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A logarithm of doubles: of zero and of less there is none."""
    return elementwise(lambda number: kernel(null_where(pc.less_equal(number, 0.0), number)))


_natural_logarithm = logarithm(pc.ln)


def logarithm_of_base(base: Any, number: Any) -> Any:
    return pc.divide(_natural_logarithm(number), _natural_logarithm(base))


@elementwise
def power(base: pa.Array, exponent: pa.Array) -> pa.Array:
    """Doubles to the power of doubles, as Java has it: NaN, and 1 to the power of infinity, are NaN."""
    numbers, powers = (side.fill_null(1.0).to_numpy(zero_copy_only=False) for side in (base, exponent))
    with np.errstate(all="ignore"):
        results = np.power(numbers, powers)
    undefined = np.isnan(powers) | (np.isinf(powers) & (np.abs(numbers) == 1))
    nulls = np.asarray(pc.or_(base.is_null(), exponent.is_null()))
    return pa.array(np.where(undefined, np.nan, results), DOUBLE, mask=nulls)


def inverted_bits(term: Term) -> Term | None:
    return computed(term.kind, pc.bit_wise_not, term) if is_integer(term.kind) else None


def negative(term: Term) -> Term:
    """Unary minus."""
    if is_float(term.kind) or is_decimal(term.kind):
        return computed(term.kind, pc.negate, term)
    return computed(term.kind, _checked_function(pc.negate_checked, "-"), term, fails=True)


def absolute_value(term: Term) -> Term:
    if is_float(term.kind) or is_decimal(term.kind):
        return computed(term.kind, pc.abs, term)
    return computed(term.kind, _checked_function(pc.abs_checked, "abs"), term, fails=True)


def _checked_function(function: Callable[..., Any], op: str) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        try:
            return function(*values)
        except pa.ArrowInvalid as problem:
            raise too_large(values[0].type, op) from problem

    return run


def too_large(kind: pa.DataType, op: str) -> InvalidInput:
    return InvalidInput(f"a result of {op!r} is too large for {spark_name(kind)}: cast to a wider type first")


def _refuse_zero(left: pa.Array, right: pa.Array) -> None:
    zeros = pc.and_(pc.equal(right, zero(right.type)), left.is_valid())
    if pc.any(zeros).as_py():
        raise InvalidInput("division by zero: guard it, such as by nullif(divisor, 0)")


def _quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    _refuse_zero(left, right)
    return pc.divide(left, right)


def _whole_quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    _refuse_zero(left, right)
    if pc.any(pc.and_(pc.equal(left, -(2**63)), pc.equal(right, -1))).as_py():
        raise too_large(BIGINT, "div")
    return pc.divide(left, null_where(pc.equal(right, 0), right))


def _positive_remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    rest = _remainder(left, right)
    return pc.if_else(pc.less(rest, zero(rest.type)), _remainder(pc.add(rest, right), right), rest)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    _refuse_zero(left, right)
    nulls = np.asarray(pc.or_(left.is_null(), right.is_null()))
    one, other = (side.fill_null(1).to_numpy(zero_copy_only=False) for side in (left, right))
    with np.errstate(invalid="ignore"):
        computed_values = np.fmod(one, np.where(other == 0, 1, other))
    return pa.array(computed_values, left.type, mask=nulls, from_pandas=False)


# --- decimals ---


def _as_decimal(term: Term) -> Term:
    if is_decimal(term.kind):
        return term
    if isinstance(term.literal, int):  # of a literal its own digits count
        return cast(term, pa.decimal128(max(len(str(abs(term.literal))), 1), 0))
    return cast(term, kinds.decimal_of(term.kind))


def _decimals(op: str, left: Term, right: Term) -> Term:
    kind = kinds.arithmetic_kind(op, left.kind, right.kind)
    assert kind is not None
    kernel = _exact_function(op, left.kind, right.kind, 0 if is_integer(kind) else kind.scale)

    def run(one: pa.Array, other: pa.Array) -> pa.Array:
        if op in ("/", "%", "div"):
            _refuse_zero(one, other)
            other = null_where(pc.equal(other, zero(other.type)), other)
        result = kernel(one, other)
        fitting = _as_bigint(result) if is_integer(kind) else to_decimal(result, kind)
        if fitting.null_count > result.null_count:
            raise too_large(kind, op)
        return fitting

    return computed(kind, elementwise(run), left, right, fails=True)


def _as_bigint(values: pa.Array) -> pa.Array:
    limit = pa.scalar(Decimal(2**63), pa.decimal256(_WIDE, 0)).cast(pa.decimal256(_WIDE, values.type.scale))
    values = values.cast(limit.type)
    outside = pc.or_(pc.greater_equal(values, limit), pc.less(values, pc.negate(limit)))
    return rescaled(null_where(outside, values), 0, "towards_zero").cast(BIGINT)


def _exact_function(
    op: str, left: pa.DataType, right: pa.DataType, digits: int
) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """The result with more digits than are wanted of it, or rounded to those digits behind the point."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    wide = pa.decimal256(p1, s1), pa.decimal256(p2, s2)
    if op in ("+", "-"):
        function = _PLAIN[op]
        return lambda one, other: one_array(function(one.cast(wide[0]), other.cast(wide[1])))
    if op == "*" and p1 + p2 < _WIDE:
        return lambda one, other: one_array(pc.multiply(one.cast(wide[0]), other.cast(wide[1])))
    # Arrow gives quotients s1 + p2 - s2 + 1 digits behind the point, and cuts: one more than wanted is needed to round.
    scale = max(6, s1 + p2 + 1) + 1
    more = max(scale - (s1 + p2 - s2 + 1), 0)
    if op == "/" and p1 - s1 + s2 + scale <= _WIDE and p1 + more <= _WIDE:
        numerator = pa.decimal256(p1 + more, s1 + more)
        return lambda one, other: _divided(one.cast(numerator), other.cast(wide[1]), digits)
    return lambda one, other: _by_pair(op, one, other, digits)


def _divided(left: pa.Array, right: pa.Array, digits: int) -> pa.Array:
    """The quotient. Arrow gives some with wrong digits (see `rescaled`): these are computed anew."""
    result = one_array(pc.divide(left, right))
    behind = result.type.scale - left.type.scale + right.type.scale
    more = pa.scalar(Decimal(1).scaleb(behind), pa.decimal256(behind + 1, 0))
    dividend = pc.multiply(retyped(left, _WIDE - behind - 2, 0), more)
    divisor = retyped(right, right.type.precision, 0)
    product = pc.multiply(retyped(result, _WIDE - right.type.precision - 1, 0), divisor)
    rest = pc.subtract(*(retyped(one_array(side), _WIDE - 1, 0) for side in (dividend, product)))
    none = zero(rest.type)
    wrong = pc.or_(
        pc.greater_equal(pc.abs(rest), pc.abs(divisor.cast(rest.type))),
        pc.and_(pc.not_equal(rest, none), pc.not_equal(pc.less(rest, none), pc.less(dividend, zero(dividend.type)))),
    )
    wrong = pc.fill_null(wrong, False)
    if not pc.any(wrong).as_py():
        return result
    anew = _by_pair("/", left.filter(wrong), right.filter(wrong), digits)
    return one_array(pc.replace_with_mask(result, wrong, anew.cast(result.type)))


def _by_pair(op: str, left: pa.Array, right: pa.Array, digits: int) -> pa.Array:
    """A result of more digits than Arrow's decimals have, and remainders, by each pair of values that occurs.

    digits  behind the point, to which it is rounded
    """
    function: Callable[[Decimal, Decimal], Decimal] = {
        "*": lambda one, other: _CONTEXT.multiply(one, other),
        "/": lambda one, other: _QUOTIENT.divide(one, other),
        "%": lambda one, other: _CONTEXT.remainder(one, other),
        "div": lambda one, other: _CONTEXT.divide_int(one, other),
    }[op]
    results: dict[tuple[Any, Any], Decimal | None] = {}
    decimals: list[Decimal | None] = []
    for pair in zip(left.to_pylist(), right.to_pylist(), strict=True):
        if pair not in results:
            results[pair] = None if None in pair else _rounded(function(*pair), digits)
        decimals.append(results[pair])
    return pa.array(decimals, pa.decimal256(_WIDE, digits))


def _rounded(value: Decimal, digits: int) -> Decimal:
    if value.copy_abs() >= Decimal(10) ** 38:
        raise InvalidInput("a result of decimals is too large: cast them to fewer digits first")
    return value.quantize(Decimal(1).scaleb(-digits), context=_CONTEXT)


# --- rounding ---


def rounded(term: Term, digits: int) -> Term:
    """`round`: half away from zero."""
    kind = term.kind
    if is_integer(kind):
        if digits >= 0:
            return replace(term, literal=None)
        return computed(kind, elementwise(lambda values: _rounded_integers(values, digits)), term, fails=True)
    if is_decimal(kind):
        whole_digits = kind.precision - kind.scale + 1
        scale = min(kind.scale, max(digits, 0))
        target = pa.decimal128(min(38, max(whole_digits + scale, 1 - digits)), scale)

        def of_decimals(values: pa.Array) -> pa.Array:
            wide = values.cast(pa.decimal256(kind.precision, kind.scale))
            result = to_decimal(rescaled(wide, max(digits, -_MOST_DIGITS)) if digits < 0 else values, target)
            if result.null_count > values.null_count:
                raise too_large(target, "round")
            return result

        return computed(target, elementwise(of_decimals), term, fails=True)
    single = kind == pa.float32()

    def of_floats(values: pa.Array) -> pa.Array:
        return by_distinct(values, kind, lambda value: _round_float(value, digits, single))

    return computed(kind, elementwise(of_floats), term)


def _round_float(value: float, digits: int, single: bool) -> float:
    if value != value or value in (float("inf"), float("-inf")):
        return value
    number = Decimal(str(np.float32(value)) if single else repr(value))
    exponent = number.as_tuple().exponent
    if not value or (isinstance(exponent, int) and exponent >= -digits):
        return value + 0.0  # not -0.0
    return float(number.quantize(Decimal(1).scaleb(-digits), context=_CONTEXT)) + 0.0


def _rounded_integers(values: pa.Array, digits: int) -> pa.Array:
    try:
        wide = rescaled(values.cast(pa.decimal256(20, 0)), max(digits, -_MOST_DIGITS))
        return wide.cast(pa.decimal256(_WIDE, 0)).cast(values.type)
    except pa.ArrowInvalid as problem:
        raise too_large(values.type, "round") from problem


def floored(term: Term, up: bool) -> Term:
    """`floor` and `ceil`: bigint, of decimals a decimal without digits behind the point."""
    kind = term.kind
    if is_integer(kind):
        return replace(cast(term, BIGINT), literal=None)
    if is_decimal(kind) and not kind.scale:
        return term
    if is_decimal(kind):
        target = pa.decimal128(min(38, kind.precision - kind.scale + 1), 0)
        mode = "up" if up else "down"
        return computed(target, elementwise(lambda values: to_decimal(values, target, mode)), term)

    def whole(values: pa.Array) -> pa.Array:  # of NaN it is 0, and 2^63 too large, which a cast takes
        numbers = pc.if_else(pc.is_nan(values), 0.0, (pc.ceil if up else pc.floor)(values))
        return pc.if_else(pc.equal(numbers, 2.0**63), float("inf"), numbers)

    return cast(computed(DOUBLE, elementwise(whole), cast(term, DOUBLE)), BIGINT)
