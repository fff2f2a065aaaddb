"""Times as epoch milliseconds in Spark columns: to and from zones, printed and parsed in Joda patterns.

All of it is arithmetic on bigint, TIMESTAMP_NTZ and dates: Spark's own `date_format` and `to_timestamp` go through the
session's time zone, which would move rows to other partitions from one session to the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from hoodie.config.keygen import TimeUnit
from hoodie.keygen import joda
from hoodie.keygen.joda import Parsing, Token

DAY = 86_400_000
_LIMIT = 2**63 // 1000 - 2 * DAY  # Spark's times reach to 2**63 microseconds; two days' room for any offset


def truncated(numerator: Column, denominator: int) -> Column:
    """Whole division of bigints that rounds toward zero, as Java's. (`/` would go through doubles.)"""
    return F.call_function("div", numerator, F.lit(denominator).cast("bigint"))


def millis_of(number: Column, unit: TimeUnit) -> Column:
    """bigint in the unit -> bigint milliseconds, smaller units truncated toward zero; null beyond Spark's times."""
    scale, rest = divmod(unit.value, TimeUnit.MILLISECONDS.value)
    if rest:
        number = truncated(number, TimeUnit.MILLISECONDS.value // unit.value)
    limit = _LIMIT // max(scale, 1)
    return F.when(number.between(F.lit(-limit), F.lit(limit)), number * F.lit(max(scale, 1)))


def to_zone(millis: Column, zone: str) -> Column:
    """Epoch milliseconds -> what the clocks of the zone ("UTC", "+08:00", a region) show, as if that were UTC."""
    offset = _fixed_offset(zone)
    if offset is not None:
        return millis + F.lit(offset) if offset else millis
    return _shifted(millis, F.from_utc_timestamp, zone)


def from_zone(local: Column, zone: str) -> Column:
    """The reverse of `to_zone`; the earlier time where clocks were set back, null where they skipped it (as Joda)."""
    offset = _fixed_offset(zone)
    if offset is not None:
        return local - F.lit(offset) if offset else local
    millis = _shifted(local, F.to_utc_timestamp, zone)
    return F.when(to_zone(millis, zone) == local, millis)


def printed(local: Column, offset: Column, tokens: Sequence[Token]) -> Column:
    """Milliseconds on a zone's clock, and its offset from UTC in milliseconds, in a Joda pattern. English names.

    tokens  of `joda.output_tokens`
    """
    pieces: list[Column] = []
    plain: list[Token] = []
    for token in tokens:
        in_run = _is_plain(token)
        # One expression prints a letter in one width only.
        if plain and (not in_run or any(_clash(token, before) for before in plain)):
            pieces.append(_plain(local, plain))
            plain = []
        if in_run:
            plain.append(token)
        else:
            pieces.append(_printed(token, local, offset))
    if plain or not pieces:
        pieces.append(_plain(local, plain))
    return F.concat(*pieces) if len(pieces) > 1 else pieces[0]


def parsed(text: Column, parsing: Parsing, zone: str) -> tuple[Column, Column]:
    """A string in a Joda pattern -> epoch milliseconds, and milliseconds on the clock that the string itself means.

    zone     of strings without an offset; "": UTC
    returns  two bigints, null where the string is not in the pattern or no such date
    """

    def group(field: str, missing: str) -> str:
        return f"${parsing.group(field)}" if parsing.group(field) else missing

    # The string is rewritten to ISO in one pass, "--..." if it does not match, and Spark's cast checks the calendar.
    # Months in words and hours of a half day get a mark there, and are put in afterwards.
    month = "#" if parsing.group("monthname") else group("month", "01")
    hour = "@" if parsing.group("halfhour") else group("hour", "00")
    iso = (
        f"{group('year', '2000')}-{month}-{group('day', '01')} "
        f"{hour}:{group('minute', '00')}:{group('second', '00')}.{group('fraction', '0')}"
    )
    regex = rf"(?s){_anchored(parsing)}|\A.*\z"

    def rewritten(replacement: str) -> Column:
        whole = F.regexp_replace(text, F.lit(regex), F.lit(replacement))
        if "#" in replacement:
            whole = F.replace(whole, F.lit("#"), _month_number(text, parsing))
        if "@" in replacement:
            whole = F.replace(whole, F.lit("@"), _hour_number(text, parsing))
        return whole

    clock = F.unix_millis(rewritten(iso + "Z").try_cast("timestamp"))
    if parsing.group("offset"):
        return F.unix_millis(rewritten(iso + group("offset", "")).try_cast("timestamp")), clock
    return from_zone(clock, zone or "UTC"), clock


def clock(local: Column, micros: int = 0) -> Column:
    """Milliseconds on a clock, and some microseconds, as TIMESTAMP_NTZ; the session's zone takes no part."""
    epoch = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return F.timestamp_add("MICROSECOND", local * F.lit(1000) + F.lit(micros), epoch)


def _anchored(parsing: Parsing) -> str:
    return rf"\A{parsing.regex}\z"


def _fixed_offset(zone: str) -> int | None:
    """Milliseconds of "UTC" and "+08:00"; None for a region."""
    if zone == "UTC":
        return 0
    if zone[0] not in "+-":
        return None
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return (minutes if zone[0] == "+" else -minutes) * 60_000


def _shifted(millis: Column, into: Callable[[Column, str], Column], zone: str) -> Column:
    # from_utc_timestamp and to_utc_timestamp shift a number of microseconds; the session's zone takes no part.
    return F.unix_millis(into(F.timestamp_millis(millis), zone))


def _month_number(text: Column, parsing: Parsing) -> Column:
    name = F.lower(F.substring(F.regexp_extract(text, _anchored(parsing), parsing.group("monthname")), 1, 3))
    known = F.array(*[F.lit(month[:3].lower()) for month in joda.MONTHS])
    return _padded(F.array_position(known, name), 2)


def _hour_number(text: Column, parsing: Parsing) -> Column:
    hour = F.regexp_extract(text, _anchored(parsing), parsing.group("halfhour")).try_cast("int")
    hour = F.when(hour.between(1, 12), F.pmod(hour, F.lit(12)))
    if at := parsing.group("half"):
        hour = hour + F.when(F.upper(F.regexp_extract(text, _anchored(parsing), at)) == "PM", 12).otherwise(0)
    return _padded(hour, 2)


# Fields that stand in the ISO form of a time, as regexes of it: without leading zeros, and padded to the full width.
# Each pattern is one expression over the time: an expression per field would make large plans of long patterns.
_ISO_FIELDS = {
    "y": (r"0{0,3}(\d+)", r"(\d{4,})"),
    "M": (r"0?(\d+)", r"(\d\d)"),
    "d": (r"0?(\d+)", r"(\d\d)"),
    "H": (r"0?(\d+)", r"(\d\d)"),
    "m": (r"0?(\d+)", r"(\d\d)"),
    "s": (r"0?(\d+)", r"(\d\d)"),
    "S": (r"(\d)\d\d", r"(\d\d)\d", r"(\d\d\d)"),
}


def _is_plain(token: Token) -> bool:
    widths = {"y": (1, 4), "S": (1, 2, 3)}.get(token.letter, (1, 2))
    return not token.letter or (token.letter in _ISO_FIELDS and token.count in widths)


def _clash(token: Token, before: Token) -> bool:
    return token.letter != "" and token.letter == before.letter and token.count != before.count


def _plain(local: Column, tokens: Sequence[Token]) -> Column:
    letters = {token.letter: token.count for token in tokens if token.letter}
    if not letters:
        return F.lit("".join(token.text for token in tokens))
    if letters.keys() <= {"y", "M", "d"}:
        iso, length = F.date_from_unix_date(_day(local).cast("int")).cast("string"), 10
    else:  # one microsecond more, and the fraction is always six digits, the last three of them 001
        iso, length = clock(local, micros=1).cast("string"), 26
    shape = {letter: found[min(letters.get(letter, 1), len(found)) - 1] for letter, found in _ISO_FIELDS.items()}
    regex = rf"^\+?(-?){shape['y']}-{shape['M']}-{shape['d']}"
    if length > 10:
        regex += rf" {shape['H']}:{shape['m']}:{shape['s']}\.{shape['S']}001"
    groups = {"y": "$1$2"} | {letter: f"${at}" for at, letter in enumerate("MdHmsS", 3)}
    text = "".join(
        groups[token.letter] if token.letter else re.sub(r"([\\$])", r"\\\1", token.text) for token in tokens
    )
    by_regex = F.regexp_replace(iso, F.lit(regex + "$"), F.lit(text))
    if letters.get("y", 4) != 4 or any(letters.get(letter, 2) != 2 for letter in "MdHms"):
        return by_regex
    # Years 0 to 9999 have the fields in fixed places, which is much cheaper to cut than to match.
    places = {"y": 1, "M": 6, "d": 9, "H": 12, "m": 15, "s": 18, "S": 21}
    cut = [
        F.substring(iso, places[token.letter], token.count) if token.letter else F.lit(token.text) for token in tokens
    ]
    return F.when((F.length(iso) == length) & ~iso.startswith("-"), F.concat(*cut)).otherwise(by_regex)


def _printed(token: Token, local: Column, offset: Column) -> Column:
    count = token.count
    date = F.date_from_unix_date(_day(local).cast("int"))
    hour = truncated(F.pmod(local, F.lit(DAY)), 3_600_000)
    match token.letter:
        case "y":
            return _year(F.year(date), count)
        case "Y":
            return _year(_year_of_era(date), count)
        case "x":  # the ISO week belongs to the year of its Thursday
            return _year(F.year(F.date_add(date, F.lit(3) - F.weekday(date))), count)
        case "C":
            return _padded(truncated(_year_of_era(date).cast("bigint"), 100), count, 4)
        case "M" if count > 2:
            return _name(joda.MONTHS, F.month(date), count)
        case "M":
            return _padded(F.month(date), count)
        case "w":
            return _padded(F.weekofyear(date), count)
        case "D":
            return _padded(F.dayofyear(date), count, 3)
        case "d":
            return _padded(F.dayofmonth(date), count)
        case "e":
            return _padded(F.weekday(date) + 1, count)
        case "E":
            return _name(joda.DAYS, F.weekday(date) + 1, count)
        case "a":
            return F.when(hour < 12, "AM").otherwise("PM")
        case "H":
            return _padded(hour, count)
        case "k":  # 1-24
            return _padded(F.pmod(hour - 1, F.lit(24)) + 1, count)
        case "K":  # 0-11
            return _padded(F.pmod(hour, F.lit(12)), count)
        case "h":  # 1-12
            return _padded(F.pmod(hour - 1, F.lit(12)) + 1, count)
        case "m":
            return _padded(F.pmod(truncated(F.pmod(local, F.lit(DAY)), 60_000), F.lit(60)), count)
        case "s":
            return _padded(F.pmod(truncated(F.pmod(local, F.lit(DAY)), 1000), F.lit(60)), count)
        case "S":
            digits = _padded(F.pmod(F.pmod(local, F.lit(DAY)), F.lit(1000)), 3, 3)
            return F.substring(digits, 1, count) if count <= 3 else F.rpad(digits, count, "0")
        case "Z":
            minutes = truncated(F.abs(offset), 60_000)
            colon = ":" if count == 2 else ""
            sign = F.when(offset < 0, "-").otherwise("+")
            ends = _padded(truncated(minutes, 60), 2), _padded(F.pmod(minutes, F.lit(60)), 2)
            return F.concat(sign, ends[0], F.lit(colon), ends[1])
        case letter:
            raise ValueError(f"{letter!r} is not printed")


def _day(local: Column) -> Column:
    """Days since 1970, rounded down: made positive for a division that rounds toward zero."""
    before = _LIMIT // DAY + 3
    return truncated(local + F.lit(before * DAY), DAY) - F.lit(before)


def _year_of_era(date: Column) -> Column:
    year = F.year(date)
    return F.when(year > 0, year).otherwise(F.lit(1) - year)


def _year(year: Column, count: int) -> Column:
    if count == 2:
        return _padded(F.pmod(F.abs(year), F.lit(100)), 2)
    return F.concat(F.when(year < 0, "-").otherwise(""), _padded(F.abs(year), count, 6))


def _name(names: Sequence[str], number: Column, count: int) -> Column:
    words = F.array(*[F.lit(name if count >= 4 else name[:3]) for name in names])
    return F.element_at(words, number)


def _padded(number: Column, width: int, digits: int = 2) -> Column:
    """Zeros in front up to the width.

    digits  that the number can have: where they are more than the width, lpad alone would cut it
    """
    text = number.cast("string")
    if width == 1:
        return text
    padded = F.lpad(text, width, "0")
    return padded if width >= digits else F.when(F.length(text) < width, padded).otherwise(text)
