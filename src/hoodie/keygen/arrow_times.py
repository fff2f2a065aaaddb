"""Times as epoch milliseconds in Arrow columns: numbers and text read as times, and printed in Joda patterns.

Work in Python is done once for each text, day or second that occurs, whichever the pattern needs.
"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.keygen import TimeUnit
from hoodie.keygen import calendar, joda
from hoodie.keygen.calendar import DAY, Millis
from hoodie.keygen.joda import Parsing, Token

_LIMIT = 2**63 // 1000 - 2 * DAY  # Spark's times reach to 2**63 microseconds; two days' room for any offset
#: Milliseconds in which a letter's value stays the same.
_GRAIN = {"S": 1, "s": 1_000, "m": 60_000, "H": 3_600_000, "h": 3_600_000, "k": 3_600_000, "K": 3_600_000,
          "a": 3_600_000}  # fmt: skip

_Mask = npt.NDArray[np.bool_]


def millis_of(numbers: pa.Array, unit: TimeUnit) -> pa.Array:
    """Numbers in a unit -> milliseconds, cut off toward zero; null for null, and beyond Spark's times."""
    scale, rest = divmod(unit.value, TimeUnit.MILLISECONDS.value)
    values, nulls = _values(numbers)
    if rest:
        step = TimeUnit.MILLISECONDS.value // unit.value
        values = np.where(values < 0, -(-values // step), values // step)
    scale = max(scale, 1)
    limit = _LIMIT // scale
    beyond = (values < -limit) | (values > limit)
    return pa.array(np.where(beyond, 0, values) * scale, pa.int64(), mask=nulls | beyond)


def format_times(millis: pa.Array, local: pa.Array, tokens: Sequence[Token]) -> pa.Array:
    """Times in a Joda pattern, with English names.

    millis  int64[n], epoch milliseconds
    local   the same on the clocks of the zone to print in
    tokens  of `joda.output_tokens`
    returns large_string[n]; null for null
    """
    clock, nulls = _values(local)
    nulls = nulls | np.asarray(millis.is_null())
    letters = {token.letter for token in tokens if token.letter}
    grain = min((_GRAIN.get(letter, DAY) for letter in letters), default=DAY)
    coarse = clock // grain * grain
    offsets = clock - _values(millis)[0] if "Z" in letters else np.zeros_like(clock)
    pairs = np.unique(np.stack([coarse, offsets], axis=1), axis=0, return_inverse=True)
    texts: list[str | None] = ["".join(_format_token(token, *pair) for token in tokens) for pair in pairs[0].tolist()]
    return pa.array(texts or [None], pa.large_string()).take(pa.array(pairs[1].reshape(-1), mask=nulls))


def parse_times(texts: pa.Array, parsing: Parsing, zone: str) -> tuple[pa.Array, pa.Array]:
    """Strings in a Joda pattern -> epoch milliseconds, and milliseconds on the clock that a string itself means.

    zone     of strings without an offset; "": UTC
    returns  two of int64[n], null where a string is not in the pattern or no such date
    """
    encoded = texts.dictionary_encode()
    regex = re.compile(parsing.regex, re.ASCII)
    pairs = [_parsed(text, regex, parsing, zone or "UTC") for text in encoded.dictionary.to_pylist()]
    columns = [pa.array([None if pair is None else pair[at] for pair in pairs], pa.int64()) for at in (0, 1)]
    millis, clock = (pc.take(column, encoded.indices) for column in columns)
    return millis, clock


def in_zone(millis: pa.Array, zone: str) -> pa.Array:
    """Epoch milliseconds as the clocks of a zone show them."""
    values, nulls = _values(millis)
    return pa.array(calendar.to_zone(values, zone), pa.int64(), mask=nulls)


def _values(numbers: pa.Array) -> tuple[Millis, _Mask]:
    """The numbers, 0 for null, and which are null."""
    return numbers.fill_null(0).to_numpy(zero_copy_only=False), np.asarray(numbers.is_null())


def _parsed(text: str, regex: re.Pattern[str], parsing: Parsing, zone: str) -> tuple[int, int] | None:
    match = regex.fullmatch(text)
    if match is None:
        return None
    parts = dict(zip(parsing.fields, match.groups(), strict=True))
    year = parts.get("year", "2000")
    if not 4 <= len(year) <= 6:  # what Spark takes for a year
        return None
    month = int(parts.get("month", "1"))
    if "monthname" in parts:
        month = [name[:3].lower() for name in joda.MONTHS].index(parts["monthname"][:3].lower()) + 1
    day = calendar.day_of(int(year), month, int(parts.get("day", "1")))
    hour = _hour(parts)
    minute, second = int(parts.get("minute", "0")), int(parts.get("second", "0"))
    if day is None or hour is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int(parts.get("fraction", "0").ljust(3, "0"))
    clock = day * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + fraction
    if abs(clock) > _LIMIT:
        return None
    if "offset" in parts:
        ahead = _offset(parts["offset"])
        return None if ahead is None else (clock - ahead, clock)
    millis = calendar.from_zone(clock, zone)
    return None if millis is None else (millis, clock)


def _hour(parts: dict[str, str]) -> int | None:
    if "halfhour" not in parts:
        return int(parts.get("hour", "0"))
    hour = int(parts["halfhour"])
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if parts.get("half", "").upper() == "PM" else 0)


def _offset(text: str) -> int | None:
    """Milliseconds of "Z", "+05", "+0530" and "-05:30"; None beyond 18 hours, where Java's end."""
    if text in ("Z", "z"):
        return 0
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or "0")
    if minutes > 59 or hours * 60 + minutes > 18 * 60:
        return None
    ahead = (hours * 60 + minutes) * 60_000
    return ahead if text[0] == "+" else -ahead


def _format_token(token: Token, local: int, offset: int) -> str:
    if not token.letter:
        return token.text
    count = token.count
    day, of_day = divmod(local, DAY)
    year, month, of_month = calendar.date_of(day)
    hour = of_day // 3_600_000
    weekday = (day + 3) % 7  # 0: Monday
    match token.letter:
        case "y":
            return _year(year, count)
        case "Y":
            return _year(year if year > 0 else 1 - year, count)
        case "x":  # the ISO week belongs to the year of its Thursday
            return _year(calendar.date_of(day + 3 - weekday)[0], count)
        case "C":
            return _padded((year if year > 0 else 1 - year) // 100, count)
        case "M" if count > 2:
            return _name(joda.MONTHS[month - 1], count)
        case "M":
            return _padded(month, count)
        case "w":
            thursday = day + 3 - weekday
            return _padded((thursday - _new_year(thursday)) // 7 + 1, count)
        case "D":
            return _padded(day - _new_year(day) + 1, count)
        case "d":
            return _padded(of_month, count)
        case "e":
            return _padded(weekday + 1, count)
        case "E":
            return _name(joda.DAYS[weekday], count)
        case "a":
            return "AM" if hour < 12 else "PM"
        case "H":
            return _padded(hour, count)
        case "k":  # 1-24
            return _padded((hour - 1) % 24 + 1, count)
        case "K":  # 0-11
            return _padded(hour % 12, count)
        case "h":  # 1-12
            return _padded((hour - 1) % 12 + 1, count)
        case "m":
            return _padded(of_day // 60_000 % 60, count)
        case "s":
            return _padded(of_day // 1000 % 60, count)
        case "S":
            return f"{of_day % 1000:03d}"[:count].ljust(count, "0")
        case "Z":
            minutes = abs(offset) // 60_000
            colon = ":" if count == 2 else ""
            return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}{colon}{minutes % 60:02d}"
        case letter:
            raise ValueError(f"{letter!r} is not printed")


def _new_year(day: int) -> int:
    first_day = calendar.day_of(calendar.date_of(day)[0], 1, 1)
    assert first_day is not None
    return first_day


def _year(year: int, count: int) -> str:
    if count == 2:
        return _padded(abs(year) % 100, 2)
    return ("-" if year < 0 else "") + _padded(abs(year), count)


def _name(name: str, count: int) -> str:
    return name if count >= 4 else name[:3]


def _padded(number: int, width: int) -> str:
    return str(number).rjust(width, "0")
