"""Dates and times as Spark computes with them, on the clocks of UTC."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput
from hoodie.expressions.casts import cast
from hoodie.expressions.kinds import BIGINT, DATE, DOUBLE, INT, TIMESTAMP, is_integer, is_text_kind, is_time
from hoodie.expressions.terms import Term, computed, elementwise, literal

_DAY = 86_400_000_000
#: Microseconds of a unit of INTERVAL; of `month` and `year` months.
_MICROS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
_MICROS |= {"day": _DAY, "week": 7 * _DAY}
_MONTHS = {"month": 1, "year": 12}
#: The units of `'…' DAY TO SECOND` and its like, and what those behind the first stay below.
_RANGES: tuple[tuple[str, ...], ...] = (("year", "month"), ("day", "hour", "minute", "second"))
_LIMITS = {"month": 12, "hour": 24, "minute": 60, "second": 60}
_ONCE = literal(1, BIGINT)
_NUMBER = re.compile(r"([+-]?\d+)(?:\.(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class Interval:
    """An INTERVAL: months and microseconds.

    of_clock  it is of hours or less, and makes a time of a date
    """

    months: int = 0
    micros: int = 0
    of_clock: bool = False

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.micros, self.of_clock)

    def __add__(self, other: Interval) -> Interval:
        """Raises InvalidInput on months and days, which Spark does not add either"""
        if (self.months and other.micros) or (self.micros and other.months):
            raise InvalidInput("an interval of years or months has no days or hours: add one behind the other")
        return Interval(self.months + other.months, self.micros + other.micros, self.of_clock or other.of_clock)


def span(number: str, unit: str) -> Interval:
    """Raises InvalidInput on a unit or number that is none"""
    name = unit.lower().removesuffix("s")
    match = _NUMBER.fullmatch(number.strip())
    if match is None or name not in _MICROS | _MONTHS or (match[2] and name != "second"):
        raise InvalidInput(f"interval {number} {unit}: expected a whole number of years, months, days, hours and so on")
    if name in _MONTHS:
        return Interval(months=int(match[1]) * _MONTHS[name])
    fraction = int((match[2] or "")[:6].ljust(6, "0")) * (-1 if match[1].startswith("-") else 1)
    return Interval(micros=int(match[1]) * _MICROS[name] + fraction, of_clock=_MICROS[name] < _DAY)


def spans(text: str, first: str, last: str) -> Interval:
    """`'1-2' YEAR TO MONTH` and `'1 02:03:04.5' DAY TO SECOND`. Raises InvalidInput on another text or other units"""
    units = next((names for names in _RANGES if first in names), _RANGES[0])
    units = units[units.index(first) : units.index(last) + 1] if {first, last} <= {*units} else ()
    separators = {"month": "-", "hour": " ", "minute": ":", "second": ":"}
    rest = "".join(rf"{separators[unit]}(\d\d?)" for unit in units[1:])
    fraction = r"(?:\.(\d{1,6}))?" if last == "second" else "()"
    match = re.fullmatch(rf"([+-]?)(\d{{1,9}}){rest}{fraction}", text.strip()) if len(units) > 1 else None
    sign, *numbers, micros = match.groups() if match else ("", "", "")
    if not match or any(int(number) >= _LIMITS[unit] for number, unit in zip(numbers[1:], units[1:], strict=True)):
        raise InvalidInput(f"interval {text!r} {first} to {last}: expected such as '1-2' year to month")
    parts = (span(number, unit) for number, unit in zip(numbers, units, strict=True))
    whole = sum(parts, Interval(micros=int((micros or "").ljust(6, "0"))))
    return -whole if sign == "-" else whole


def plus_interval(term: Term, by: Interval, times: Term = _ONCE) -> Term | None:
    """A date or time plus so many times an interval; None: it is none."""
    kind = term.kind
    if arrow.is_date(kind) and (by.of_clock or (by.micros and times is not _ONCE)):
        return plus_interval(cast(term, TIMESTAMP), by, times)

    def months(count: pa.Array) -> pa.Array:
        return _in_range(lambda: pc.multiply_checked(count, by.months))

    def date(values: pa.Array, count: pa.Array) -> pa.Array:
        return _add_days(_add_months(values, months(count)), by.micros // _DAY)

    def run(values: pa.Array, count: pa.Array) -> pa.Array:
        micros = values.cast(BIGINT)
        if by.months:
            days = _floor(micros, _DAY)
            within = pc.subtract(micros, pc.multiply(days, _DAY))
            moved_ = _add_months(days.cast(INT).cast(DATE), months(count)).cast(INT).cast(BIGINT)
            micros = _in_range(lambda: pc.add_checked(pc.multiply_checked(moved_, _DAY), within))
        return _in_range(lambda: pc.add_checked(micros, pc.multiply_checked(count, by.micros))).cast(kind)

    if not is_time(kind) or not is_integer(times.kind):
        return None
    function = date if arrow.is_date(kind) else run
    return computed(kind, elementwise(function), term, cast(times, BIGINT), fails=True)


def plus_days(term: Term, days: Term, sign: int = 1) -> Term | None:
    """A date and a number of days; None: they are none."""
    if not arrow.is_date(term.kind) or not is_integer(days.kind) or days.kind == BIGINT:
        return None
    return computed(
        DATE,
        elementwise(lambda values, count: _add_days(values, pc.multiply(count.cast(BIGINT), sign))),
        term,
        days,
        fails=True,
    )


def days_after(term: Term, count: Callable[[pa.Array], pa.Array]) -> Term:
    """Dates and as many days as a function makes of them."""
    return computed(DATE, elementwise(lambda values: _add_days(values, count(values))), cast(term, DATE), fails=True)


def _add_days(values: pa.Array, days: Any) -> pa.Array:
    return _in_range(lambda: pc.add_checked(values.cast(INT).cast(BIGINT), days).cast(INT).cast(DATE))


def _in_range(make: Callable[[], pa.Array]) -> pa.Array:
    try:
        return make()
    except (pa.ArrowInvalid, OverflowError) as problem:
        raise InvalidInput("a date or time is out of range") from problem


def add_months(term: Term, months: Term) -> Term | None:
    if not arrow.is_date(term.kind) or not is_integer(months.kind):
        return None
    return computed(DATE, elementwise(_add_months), term, months, fails=True)


def _add_months(values: pa.Array, months: Any) -> pa.Array:
    """The day of the month, or its last."""
    if isinstance(months, int) and not months:
        return values
    nulls = np.asarray(values.is_null())
    count: Any = months
    if isinstance(months, pa.Array):
        nulls = nulls | np.asarray(months.is_null())
        count = months.cast(BIGINT).fill_null(0).to_numpy(zero_copy_only=False)
    days = values.cast(INT).fill_null(0).to_numpy(zero_copy_only=False).astype("datetime64[D]")
    month = days.astype("datetime64[M]")
    day = (days - month.astype("datetime64[D]")).astype(np.int64)
    target = month + count
    last = ((target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(np.int64) - 1
    computed_values = target.astype("datetime64[D]").astype(np.int64) + np.minimum(day, last)
    return _in_range(lambda: pa.array(computed_values, BIGINT, mask=nulls).cast(INT).cast(DATE))


def days_between(end: Term, start: Term) -> Term:
    """`datediff`."""
    return computed(
        INT, lambda one, other: pc.subtract(one.cast(INT), other.cast(INT)), cast(end, DATE), cast(start, DATE)
    )


def _floor(micros: pa.Array, step: int) -> pa.Array:
    numbers = micros.fill_null(0).to_numpy(zero_copy_only=False) // step
    return pa.array(numbers, BIGINT, mask=np.asarray(micros.is_null()))


def units(term: Term, micros: int) -> Term:
    """How many units of so many microseconds lie between the year 1970 and a time, rounded down."""
    return computed(BIGINT, elementwise(lambda values: _floor(values.cast(BIGINT), micros)), term)


def unix_timestamp(term: Term) -> Term:
    """Seconds since 1970 began, rounded towards it."""
    seconds = elementwise(lambda values: pc.divide(values.cast(BIGINT), _MICROS["second"]))
    return computed(BIGINT, seconds, cast(term, TIMESTAMP))


def plus_units(term: Term, unit: str, count: Term) -> Term | None:
    """`dateadd` of a unit; None: the term is no time, the count no whole number, or there is no such unit."""
    name, number = ("month", "3") if unit.lower() == "quarter" else (unit.lower(), "1")
    if name not in _MICROS | _MONTHS or not is_integer(count.kind):
        return None
    return plus_interval(
        cast(term, TIMESTAMP) if arrow.is_date(term.kind) else term, span(number, name), cast(count, INT)
    )


def units_between(start: Term, end: Term, unit: str) -> Term | None:
    """`datediff` of a unit: how many whole ones; None: the terms are no times, or there is no such unit."""
    name = unit.lower()
    of_months = {**_MONTHS, "quarter": 3}.get(name)
    if not (is_time(start.kind) and is_time(end.kind) and (of_months or name in _MICROS)):
        return None

    def months(start: pa.Array, end: pa.Array) -> pa.Array:
        nulls = np.asarray(pc.or_(start.is_null(), end.is_null()))
        micros = [values.cast(BIGINT).fill_null(0).to_numpy() for values in (start, end)]
        (first, clock), (last, last_clock) = (np.divmod(values, _DAY) for values in micros)
        last = last + ((last < first) & (last_clock > clock)) - ((last > first) & (last_clock < clock))
        begun, ended = (days.astype("datetime64[D]").astype("datetime64[M]") for days in (first, last))
        day, last_day = (
            first - begun.astype("datetime64[D]").astype(int),
            last - ended.astype("datetime64[D]").astype(int),
        )
        return pc.divide(pa.array((ended - begun).astype(int) * 32 + last_day - day, BIGINT, mask=nulls), 32)

    def whole(one: pa.Array, other: pa.Array) -> pa.Array:
        count = months(one, other) if of_months else pc.subtract(other.cast(BIGINT), one.cast(BIGINT))
        return pc.divide(count, of_months or _MICROS[name])

    return computed(BIGINT, elementwise(whole), cast(start, TIMESTAMP), cast(end, TIMESTAMP))


def of_units(term: Term, micros: int) -> Term:
    """The reverse of `units`."""
    return computed(
        TIMESTAMP,
        elementwise(lambda values: _in_range(lambda: pc.multiply_checked(values, micros)).cast(TIMESTAMP)),
        term,
        fails=True,
    )


def _last_day(values: pa.Array) -> pa.Array:
    first = pc.floor_temporal(values, unit="month").cast(DATE)
    return _add_days(_add_months(first, 1), -1)


#: What `extract` and the functions of these names give of a date; all are int.
PARTS: dict[str, Callable[[pa.Array], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "dayofmonth": pc.day,
    "dayofyear": pc.day_of_year,
    "dayofweek": lambda values: pc.day_of_week(values, week_start=7, count_from_zero=False),
    "weekday": lambda values: pc.day_of_week(values, week_start=1, count_from_zero=True),
    "weekofyear": pc.iso_week,
    "week": pc.iso_week,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
#: Names that `extract` has beside these.
_FIELDS = {
    **dict.fromkeys(("y", "years", "yr", "yrs"), "year"),
    "qtr": "quarter",
    **dict.fromkeys(("mon", "mons", "months"), "month"),
    **dict.fromkeys(("w", "weeks"), "week"),
    **dict.fromkeys(("d", "days"), "day"),
    **{"dow": "dayofweek", "doy": "dayofyear"},
    **dict.fromkeys(("h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("s", "sec", "seconds", "secs"), "second"),
}
_SECONDS = pa.decimal128(8, 6)
_OF_TIMES = ("hour", "minute", "second")


def part(name: str, term: Term) -> Term | None:
    """A part of a date or time; None: the name or the type is none."""
    function = PARTS.get(name)
    if function is None:
        return None
    target = TIMESTAMP if name in _OF_TIMES else DATE
    if not (arrow.is_date(term.kind) or arrow.is_timestamp(term.kind) or is_text_kind(term.kind)):
        return None
    return computed(INT, elementwise(lambda values: function(values).cast(INT)), cast(term, target))


def extracted(name: str, term: Term) -> Term | None:
    """EXTRACT, which gives seconds with their fraction; None: the name or the type is none."""
    field = _FIELDS.get(name, name)
    whole = part(field, term)
    if whole is None or field != "second":
        return whole

    def run(values: pa.Array) -> pa.Array:
        micros = values.cast(BIGINT)
        within = pc.subtract(micros, pc.multiply(_floor(micros, 60_000_000), 60_000_000))
        return pc.multiply(within.cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.000001"), pa.decimal128(7, 6))).cast(
            _SECONDS
        )

    return computed(_SECONDS, elementwise(run), cast(term, TIMESTAMP))


@elementwise
def make_date(*parts: pa.Array) -> pa.Array:
    """`make_date`."""
    days = zip(*(numbers.to_pylist() for numbers in parts), strict=True)
    try:
        return pa.array([None if None in day else dt.date(*day) for day in days], DATE)
    except (ValueError, OverflowError) as problem:
        raise InvalidInput(f"make_date: {problem}") from problem


def months_between(end: Term, start: Term, in_8_digits: bool) -> Term:
    """Months, and what is left of days and seconds as a part of 31 days, unless both are the same day or the last."""

    def run(one: pa.Array, other: pa.Array) -> pa.Array:
        nulls = np.asarray(pc.or_(one.is_null(), other.is_null()))
        micros = np.array([values.cast(BIGINT).fill_null(0).to_numpy() for values in (one, other)])
        days = (micros // _DAY).astype("datetime64[D]")
        month = days.astype("datetime64[M]")
        day = (days - month.astype("datetime64[D]")).astype(int)
        last = day + 1 == ((month + 1).astype("datetime64[D]") - month.astype("datetime64[D]")).astype(int)
        seconds = np.subtract(*(day * 86_400 + micros % _DAY // 1_000_000))
        months = np.subtract(*month.astype(int))
        parts = months + np.where((day[0] == day[1]) | last.all(0), 0, seconds) / (31 * 86_400)
        return pa.array(np.floor(parts * 1e8 + 0.5) / 1e8 if in_8_digits else parts, DOUBLE, mask=nulls)

    return computed(DOUBLE, elementwise(run), cast(end, TIMESTAMP), cast(start, TIMESTAMP))


def last_day(term: Term) -> Term:
    return computed(DATE, elementwise(_last_day), cast(term, DATE))


_CLOCK = ("hour", "minute", "second", "millisecond", "microsecond")
_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **{name: name for name in ("quarter", "week", *_CLOCK)},
    **dict.fromkeys(("day", "dd"), "day"),
}


def cut_down(term: Term, unit: str, kind: pa.DataType) -> Term:
    """`trunc` of a date and `date_trunc` of a time, which give null where Spark knows no such unit."""
    name = _UNITS.get(unit.lower())
    if name is None or (kind == DATE and name in ("day", *_CLOCK)):
        return computed(kind, elementwise(lambda values: pa.nulls(len(values), kind)), term)
    if kind == DATE:
        return computed(
            DATE, elementwise(lambda values: pc.floor_temporal(values, unit=name).cast(DATE)), cast(term, DATE)
        )

    def run(values: pa.Array) -> pa.Array:
        plain = values.cast(BIGINT).cast(pa.timestamp("us"))
        return pc.floor_temporal(plain, unit=name).cast(BIGINT).cast(TIMESTAMP)

    return computed(TIMESTAMP, elementwise(run), cast(term, TIMESTAMP))
