"""Values in another type, as Spark's CAST has them: null where a value does not fit, which CAST itself refuses."""

import datetime as dt
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput
from hoodie.expressions import kinds
from hoodie.expressions.kinds import BIGINT, BOOL, DATE, DOUBLE, NULL, TEXT, TIMESTAMP, is_decimal, is_float, is_integer
from hoodie.expressions.terms import Term, by_distinct, computed, elementwise, null_where, zero
from hoodie.keygen.arrow_keys import text_of
from hoodie.schema.conform import cut_off
from hoodie.schema.types import spark_name

Kernel = Callable[[pa.Array], pa.Array]

_EXACT = Context(prec=120, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_WHOLE = re.compile(r"[+-]?\d+", re.A)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.A)
_HEX = re.compile(r"[+-]?0x(?=\.?[0-9a-f])[0-9a-f]*\.?[0-9a-f]*p[+-]?\d+", re.A)
_DAY = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.A)
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?\s*(\S*))?)?", re.A)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2}(?=:|$)|\d\d)(?::(\d{1,2})|(\d{2}))?", re.A)
#: The short names of zones that Spark takes, as Java's `ZoneId.SHORT_IDS`, but for those that the zone database has.
_SHORT_ZONES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
#: White space and control characters, which Spark trims off texts that it casts.
_BLANKS = "".join(map(chr, range(33))) + "\x7f"


def cast(term: Term, kind: pa.DataType, *, safe: bool = False) -> Term:
    """CAST; `safe` is TRY_CAST. Raises InvalidInput on types between which there is none"""
    if term.kind == kind:
        return term
    kernel = kernel_of(term.kind, kind)
    if kernel is None:
        raise InvalidInput(f"there is no cast from {spark_name(term.kind)} to {spark_name(kind)}")
    if safe or _always_fits(term.kind, kind):
        return computed(kind, elementwise(kernel), term)
    return computed(kind, elementwise(lambda values: _refusing(values, kernel(values), kind)), term, fails=True)


def _refusing(values: pa.Array, fitting: pa.Array, kind: pa.DataType) -> pa.Array:
    if fitting.null_count > values.null_count:
        bad = values.filter(pc.and_(values.is_valid(), fitting.is_null()))[0]
        raise InvalidInput(
            f"the value {bad.as_py()!r} ({spark_name(values.type)}) cannot be cast to {spark_name(kind)}; "
            "TRY_CAST gives null in its place"
        )
    return fitting


def _always_fits(have: pa.DataType, kind: pa.DataType) -> bool:
    if have in (NULL, BOOL) or kind == TEXT:
        return True
    if is_integer(have):
        return is_float(kind) or kind in (BOOL, TIMESTAMP) or (is_integer(kind) and kind.bit_width >= have.bit_width)
    if is_float(have) or is_decimal(have):
        return is_float(kind) or kind == BOOL
    return kinds.is_time(have) and (kinds.is_time(kind) or is_float(kind) or kind == BIGINT)


def kernel_of(have: pa.DataType, kind: pa.DataType) -> Kernel | None:
    """What casts an array, null where a value does not fit; None: there is no such cast."""
    if have == kind:
        return lambda values: values
    if have == NULL:
        return lambda values: pa.nulls(len(values), kind)
    if kind == TEXT:
        return _to_text(have)
    if kinds.is_text_kind(have):
        return _of_text(kind)
    if have == BOOL and kinds.is_number(kind):
        return lambda values: _numbers(values.cast(pa.int32()), kind)
    if kinds.is_number(have) and kind == BOOL:
        return lambda values: pc.not_equal(values, zero(have))
    if kinds.is_number(have) and kinds.is_number(kind):
        return lambda values: _numbers(values, kind)
    if kinds.is_time(have) and kinds.is_time(kind):
        return lambda values: _times(values, kind)
    if have == TIMESTAMP and kinds.is_number(kind):
        return lambda values: _to_seconds(values, kind)
    if kinds.is_number(have) and kind == TIMESTAMP:
        return _of_seconds
    return None


# --- numbers ---


def _numbers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    have = values.type
    if is_integer(have):
        if is_integer(kind):
            low, high = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
            if kind.bit_width >= have.bit_width:
                return values.cast(kind)
            outside = pc.or_(pc.less(values, low), pc.greater(values, high))
            return null_where(outside, values).cast(kind)
        if is_float(kind):
            return values.cast(kind, safe=False)
        return to_decimal(values.cast(pa.decimal256(20, 0)), kind)
    if is_float(have):
        return _of_floats(values, kind)
    if is_decimal(kind):
        return to_decimal(values, kind)
    if is_float(kind):
        return values.cast(TEXT).cast(DOUBLE).cast(kind, safe=False)  # rounds once, as Java's doubleValue
    wide = to_decimal(values, pa.decimal128(38, 0), "towards_zero")
    low, high = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    outside = pc.or_(
        pc.less(wide, pa.scalar(Decimal(low), wide.type)), pc.greater(wide, pa.scalar(Decimal(high), wide.type))
    )
    return null_where(outside, wide).cast(kind)


def _of_floats(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if is_float(kind):
        return values.cast(kind, safe=False)
    if is_decimal(kind):
        digits = (lambda value: str(np.float32(value))) if values.type == pa.float32() else repr
        return by_distinct(values, kind, lambda value: _quantized(Decimal(digits(value)), kind))
    numbers = values.cast(DOUBLE).fill_null(0).to_numpy(zero_copy_only=False)
    most = 2 ** (kind.bit_width - 1) - 1
    whole_part = np.trunc(numbers)
    with np.errstate(invalid="ignore"):
        fits = (whole_part >= -most - 1) & (whole_part <= float(most))  # 2^63 is the greatest bigint, as in Java
    beyond = whole_part >= 2.0**63
    computed_values = np.where(beyond, most, np.where(fits & ~beyond, whole_part, 0).astype(np.int64))
    mask = ~fits | np.asarray(values.is_null())
    return pa.array(computed_values, BIGINT, mask=mask).cast(kind)


def _quantized(value: Decimal, kind: pa.DataType) -> Decimal | None:
    """The number with the digits of a decimal, half away from zero; None: it does not fit."""
    if not value.is_finite() or (value and value.adjusted() >= kind.precision - kind.scale):
        return None
    rounded = (value or Decimal(0)).quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    return rounded if len(rounded.as_tuple().digits) <= kind.precision or not rounded else None


def to_decimal(values: pa.Array, kind: pa.DataType, mode: str = "half_towards_infinity") -> pa.Array:
    """Decimals in another decimal type, rounded; null where there are too many digits before the point."""
    have = values.type
    if have == kind:
        return values
    wide = values.cast(
        pa.decimal256(
            min(76, max(have.precision, 1) + max(kind.scale - have.scale, 0) + 1), max(have.scale, kind.scale)
        )
    )
    if have.scale > kind.scale:
        wide = rescaled(wide, kind.scale, mode)
    limit = Decimal(1).scaleb(kind.precision - kind.scale, context=_EXACT)
    if wide.type.precision - wide.type.scale > kind.precision - kind.scale:
        bound = pa.scalar(limit, pa.decimal256(76, 0) if limit >= 1 else pa.decimal256(76, 38))
        outside = pc.greater_equal(pc.abs(wide), bound.cast(wide.type))
        wide = null_where(outside, wide)
    return wide.cast(kind)


def rescaled(values: pa.Array, scale: int, mode: str = "half_towards_infinity") -> pa.Array:
    """Wide decimals in fewer digits behind the point; fewer than none: rounded to tens, hundreds and so on."""
    exact = retyped(values, _MOST, values.type.scale)
    if mode == "half_towards_infinity":
        half = pa.scalar(Decimal(5).scaleb(-scale - 1, context=_EXACT), exact.type)
        exact = pc.if_else(pc.less(exact, zero(exact.type)), pc.subtract(exact, half), pc.add(exact, half))
    cut = cut_off(exact, scale, safe=False).cast(pa.decimal256(_MOST, min(scale, exact.type.scale)), safe=False)
    if mode in ("up", "down"):
        again, one = cut.cast(exact.type), pa.scalar(Decimal(1).scaleb(-scale), cut.type)
        beyond = pc.less(again, exact) if mode == "up" else pc.greater(again, exact)
        moved = pc.add(cut, one) if mode == "up" else pc.subtract(cut, one)
        cut = pc.if_else(beyond, retyped(moved, _MOST, scale), cut)
    return cut


#: One digit less than Arrow's wide decimals hold, so that a sum of two has a type.
_MOST = 75


def retyped(values: pa.Array, precision: int, scale: int) -> pa.Array:
    """Wide decimals with the same digits, of which another number may be, and stand behind the point."""
    kind = pa.decimal256(precision, scale)
    return pa.Array.from_buffers(kind, len(values), values.buffers(), values.null_count, values.offset)


# --- text ---


def _to_text(have: pa.DataType) -> Kernel | None:
    if is_float(have):
        return lambda values: text_of(values, "").cast(TEXT)
    if is_decimal(have) and have.scale > 6:
        return lambda values: by_distinct(values, TEXT, lambda value: format(value, "f"))
    if arrow.is_timestamp(have):
        return lambda values: by_distinct(values, TEXT, _shown_time)
    if arrow.is_binary(have):
        return lambda values: by_distinct(values, TEXT, lambda value: value.decode("utf-8", "replace"))
    if have == DATE:
        return _shown_days
    if kinds.is_number(have) or have == BOOL:
        return lambda values: values.cast(TEXT)
    return None


def _shown_days(values: pa.Array) -> pa.Array:
    """Years of more than four digits have a sign."""
    texts = values.cast(TEXT)
    late = pc.greater(values, pa.scalar(dt.date.max, DATE))
    return pc.if_else(late, pc.binary_join_element_wise("+", texts, ""), texts)


def _shown_time(value: dt.datetime) -> str:
    text = f"{value:%Y-%m-%d %H:%M:%S}".rjust(19, "0")
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


def _of_text(kind: pa.DataType) -> Kernel | None:
    if arrow.is_binary(kind):
        return lambda values: values.cast(kind)
    reader = _reader(kind)
    return (
        None if reader is None else lambda values: by_distinct(values, kind, lambda text: reader(text.strip(_BLANKS)))
    )


def _reader(kind: pa.DataType) -> Callable[[str], Any] | None:
    """What reads a trimmed text; None: no such value."""
    if kind == BOOL:
        return lambda text: True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    if is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return lambda text: n if _WHOLE.fullmatch(text) and -most <= (n := int(text)) < most else None
    if is_float(kind):
        return _read_float
    if is_decimal(kind):
        return lambda text: _quantized(Decimal(text), kind) if _NUMBER.fullmatch(text) else None
    if arrow.is_date(kind):
        return read_date
    if arrow.is_timestamp(kind):
        return read_time if kind.tz is not None else lambda text: read_time(text, zoned=False)
    return None


def _read_float(text: str) -> float | None:
    lower = text.lower()
    if lower.lstrip("+-") in ("inf", "infinity") and len(lower) - len(lower.lstrip("+-")) <= 1:
        return float(lower)
    if lower == "nan":
        return float("nan")
    if lower[-1:] in ("d", "f"):
        lower = lower[:-1]
    if _HEX.fullmatch(lower):
        try:
            return float.fromhex(lower)
        except OverflowError:
            return float("-inf" if lower[0] == "-" else "inf")
    return float(lower) if _NUMBER.fullmatch(lower) else None


def read_date(text: str) -> dt.date | None:
    """A date as Spark reads one: a year, month and day or fewer of these, and what stands behind a T or a blank.

    Raises InvalidInput on a year that Spark has and Python has not
    """
    day, _, rest = text.replace("T", " ", 1).partition(" ")
    parts = _DAY.fullmatch(day)
    if parts is None or (rest and parts[3] is None):
        return None
    year = int(parts[1])
    try:
        date = dt.date(2000 + year % 400, int(parts[2] or 1), int(parts[3] or 1))  # a year with the same days
    except ValueError:
        return None
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise _beyond(text)
    return date.replace(year)


def _beyond(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r}: without Spark there are the years 1 to 9999 only; give the condition to a session")


def read_time(text: str, zoned: bool = True) -> dt.datetime | None:
    """A time, in UTC where the text names no zone, which stands behind seconds; of a clock alone, that of today."""
    if zoned and ":" in text[:4]:
        text = f"{dt.datetime.now(dt.UTC).date()} {text.removeprefix('T')}"
    day, *clock = re.split("[T ]", text, maxsplit=1)
    date = read_date(day)
    parts = _CLOCK.fullmatch(clock[0]) if clock else None
    if date is None or (clock and parts is None):
        return None
    try:
        if parts is None:
            at = dt.datetime(date.year, date.month, date.day)
        else:
            micros = int((parts[4] or "0").ljust(6, "0")[:6])
            at = dt.datetime(
                date.year, date.month, date.day, int(parts[1]), int(parts[2] or 0), int(parts[3] or 0), micros
            )
            offset = _offset(parts[5] or "Z", at)
            if offset is None:
                return None
            at -= offset if zoned else dt.timedelta()
    except OverflowError as problem:
        raise _beyond(text) from problem
    except ValueError:
        return None
    return at.replace(tzinfo=dt.UTC) if zoned else at


def _offset(zone: str, at: dt.datetime) -> dt.timedelta | None:
    """What the clocks of a zone are ahead of UTC; None: there is no such zone."""
    if zone in ("Z", "UTC", "GMT", "UT"):
        return dt.timedelta()
    parts = _OFFSET.fullmatch(zone)
    if parts is None:
        try:
            return ZoneInfo(_SHORT_ZONES.get(zone, zone)).utcoffset(at)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None
    minutes = int(parts[3] or parts[4] or 0)
    offset = dt.timedelta(hours=int(parts[2]), minutes=minutes)
    if minutes > 59 or offset > dt.timedelta(hours=18):
        return None
    return offset if parts[1] == "+" else -offset


# --- times ---


def _to_seconds(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Seconds since 1970: whole ones, rounded down, and fractions as a double has them."""
    micros, nulls = values.cast(BIGINT).fill_null(0).to_numpy(zero_copy_only=False), np.asarray(values.is_null())
    if is_integer(kind):
        return _numbers(pa.array(np.floor_divide(micros, 1_000_000), BIGINT, mask=nulls), kind)
    return _numbers(pa.array(micros / 1e6, DOUBLE, mask=nulls), kind)


def _of_seconds(values: pa.Array) -> pa.Array:
    """The times so many seconds after 1970; of whole numbers that are too large the last or the first there is."""
    if is_decimal(values.type):
        micros = to_decimal(values, pa.decimal128(38, 6), "towards_zero")
        return _numbers(micros.view(pa.decimal128(38, 0)), BIGINT).cast(TIMESTAMP)
    if is_float(values.type):
        return _of_floats(pc.multiply(values.cast(DOUBLE), 1e6), BIGINT).cast(TIMESTAMP)
    seconds, most = values.cast(BIGINT).fill_null(0).to_numpy(zero_copy_only=False), 2**63 - 1
    over, under = seconds > most // 1_000_000, seconds < -(most // 1_000_000)
    micros = np.where(over, most, np.where(under, -most - 1, np.where(over | under, 0, seconds) * 1_000_000))
    return pa.array(micros, BIGINT, mask=np.asarray(values.is_null())).cast(TIMESTAMP)


def _times(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Dates and times, on the clocks of UTC."""
    have = values.type
    if arrow.is_date(kind):
        days = np.floor_divide(values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), 86_400_000_000)
        return pa.array(days.astype(np.int32), pa.int32(), mask=np.asarray(values.is_null())).cast(DATE)
    if arrow.is_date(have):
        values = values.cast(pa.timestamp("us"))
        return values if kind.tz is None else values.cast(BIGINT).cast(TIMESTAMP)
    return values.cast(BIGINT).cast(kind)
