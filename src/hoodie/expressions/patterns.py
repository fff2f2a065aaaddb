"""Regular expressions and formats of dates, as Java has them, in Python's: each value that occurs is looked at once."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.expressions.casts import cast
from hoodie.expressions.kinds import TEXT, TIMESTAMP
from hoodie.expressions.terms import Term, by_distinct, computed, elementwise
from hoodie.expressions.texts import java_regex
from hoodie.expressions.times import days_after


def of_constants(kind: pa.DataType, function: Callable[..., Any], value: Term, *others: Term) -> Term | None:
    """What a function of Python's makes of each value and the constants behind it; None: one of these is no constant"""
    constants = [other.literal for other in others]
    if None in constants:
        return None
    run = elementwise(lambda values: by_distinct(values, kind, lambda one: function(one, *constants)))
    return computed(kind, run, value, fails=True)


# --- parts of a text ---


def part_of(text: str, separator: str, place: int) -> str:
    """`split_part`."""
    if not place:
        raise InvalidInput("split_part: there is no part 0: count from 1, or from -1 backwards")
    parts = text.split(separator) if separator else [text]
    at = place - 1 if place > 0 else place
    return parts[at] if -len(parts) <= at < len(parts) else ""


def up_to_separator(text: str, separator: str, count: int) -> str:
    """`substring_index`."""
    if not separator or not count:
        return ""
    if count > 0:
        return separator.join(text.split(separator, count)[:count])
    parts = text.rsplit(separator, -count)
    return separator.join(parts[1:]) if len(parts) > -count else text


def translated(text: str, characters: str, by: str) -> str:
    """`translate`: of a character that is named twice the first counts."""
    pairs = [(ord(one), by[at : at + 1]) for at, one in enumerate(characters)]
    return text.translate(dict(reversed(pairs)))


def place_from(text: str, part: str, start: int) -> int:
    """`locate` from a place on."""
    return (text.find(part, start - 1) + 1 if part else 1) if start > 0 else 0


# --- regular expressions ---

_END = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"
_LINES = {".": ("s", r"[^\n\r\x85\u2028\u2029]"), "$": ("m", _END)}
_OUTSIDE = {r"\z": r"\Z", r"\Z": _END}
_REPLACEMENT = re.compile(r"\\(.)|\$(\d)", re.S)


def _regex(pattern: str) -> re.Pattern[str]:
    """Raises InvalidInput on what Python reads in another way than Java"""
    plain = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "", pattern, flags=re.S)
    other = (
        re.search(r"\(\?[is]*[^is:=!<>)]", pattern)  # flags
        or re.search(r"\{(?!\d)", plain)
        or re.search(r"\[[^\]]*(?:--|\|\||~~)", pattern)
        or {"b", "B", "0"} & {*re.findall(r"\\(.)", pattern, re.S)}
    )
    if other:
        raise InvalidInput(
            f"the regular expression {pattern!r} has a part that needs Spark, such as \\b, flags other than i and s, "
            "or a { that stands for itself: write it in another way"
        )
    try:
        return re.compile(java_regex(pattern, _LINES, _OUTSIDE), re.ASCII)
    except (re.error, ValueError, OverflowError) as problem:
        raise InvalidInput(f"the regular expression {pattern!r} cannot be read: {problem}") from problem


def _matches(regex: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As Java finds them: what follows an empty match begins one character further."""
    at = 0
    while at <= len(text) and (match := regex.search(text, at)):
        yield match
        at = match.end() + (match.end() == match.start())


def replaced(text: Term, pattern: Term, by: Term) -> Term | None:
    """`regexp_replace`."""
    if not isinstance(pattern.literal, str) or not isinstance(by.literal, str):
        return None
    regex, replacement = _regex(pattern.literal), by.literal
    groups = [int(digit) for _, digit in _REPLACEMENT.findall(replacement) if digit]
    if (
        set(_REPLACEMENT.sub("", replacement)) & {"$", "\\"}
        or max(groups, default=0) > regex.groups
        or regex.groups > 9
    ):
        raise InvalidInput(
            f"regexp_replace: the replacement {replacement!r} names a group that {pattern.literal!r} does not have, or "
            "has a $ or \\ that stands for itself: put a \\ before it"
        )

    def value(text: str) -> str:
        parts, at = list[str](), 0
        for match in _matches(regex, text):
            of_match = [match[0], *match.groups("")]
            by_group = _REPLACEMENT.sub(lambda part: part[1] or of_match[int(part[2])], replacement)  # noqa: B023
            parts += [text[at : match.start()], by_group]
            at = match.end()
        return "".join([*parts, text[at:]])

    return of_constants(TEXT, value, text)


def extracted_group(text: Term, pattern: Term, group: Term) -> Term | None:
    """`regexp_extract`: empty where nothing matches."""
    if not isinstance(pattern.literal, str) or not isinstance(group.literal, int):
        return None
    regex, number = _regex(pattern.literal), group.literal
    if not 0 <= number <= regex.groups:
        raise InvalidInput(f"regexp_extract: {pattern.literal!r} has {regex.groups} groups, and none is {number}")
    return of_constants(TEXT, lambda value: ((match := regex.search(value)) and match[number]) or "", text)


def split(text: Term, pattern: Term) -> Term | None:
    """`split`."""
    if not pattern.literal or not isinstance(pattern.literal, str):
        return None
    regex = _regex(pattern.literal)

    def parts(value: str) -> list[str]:
        matches = [match for match in _matches(regex, value) if match.end()]
        ends = [0, *(match.end() for match in matches)]
        starts = [*(match.start() for match in matches), len(value)]
        return [value[end:start] for end, start in zip(ends, starts, strict=True)]

    return of_constants(pa.list_(TEXT), parts, text)


# --- formats of dates and times ---

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: Letters of a format: the field that they are, and the fewest digits that it has.
_NUMBERS = {
    "yyyy": ("year", 4), "MM": ("month", 2), "M": ("month", 1), "dd": ("day", 2), "d": ("day", 1), "HH": ("hour", 2),
    "H": ("hour", 1), "mm": ("minute", 2), "m": ("minute", 1), "ss": ("second", 2), "s": ("second", 1),
}  # fmt: skip
_NAMES: dict[str, Callable[[dt.datetime], str]] = {
    "MMM": lambda time: _MONTHS[time.month - 1][:3],
    "MMMM": lambda time: _MONTHS[time.month - 1],
    "E": lambda time: _DAYS[time.weekday()][:3],
    "EEEE": lambda time: _DAYS[time.weekday()],
    "SSS": lambda time: f"{time.microsecond // 1000:03}",
    "SSSSSS": lambda time: f"{time.microsecond:06}",
}
_LETTERS = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^\[\]{}#'A-Za-z]", re.S)


def _letters(name: str, form: str, names: Collection[str]) -> list[str]:
    """The letters of a format, and the texts between them, which begin with a quote. Raises InvalidInput"""
    parts, at = list[str](), 0
    for match in _LETTERS.finditer(form):
        plain = match[0][1:-1].replace("''", "'") or "'" if match[0].startswith("'") else match[0]
        if match.start() != at or (match[1] and plain not in names):
            break
        parts.append(plain if match[1] else f"'{plain}")
        at = match.end()
    if at != len(form):
        raise InvalidInput(
            f"{name}: the format {form!r} needs Spark from {form[at:]!r} on. Without Spark it consists of "
            f"{', '.join(names)}, signs, and text in single quotes"
        )
    return parts


def formatted(time: Term, form: Term) -> Term | None:
    """`date_format`."""
    if not isinstance(form.literal, str):
        return None
    parts = _letters("date_format", form.literal, [*_NUMBERS, *_NAMES])

    def text(part: str, value: dt.datetime) -> str:
        if part.startswith("'"):
            return part[1:]
        if part in _NAMES:
            return _NAMES[part](value)
        field, digits = _NUMBERS[part]
        return f"{getattr(value, field):0{digits}}"

    return of_constants(TEXT, lambda value: "".join(text(part, value) for part in parts), cast(time, TIMESTAMP))


def next_day(day: Term, name: Term) -> Term | None:
    """`next_day`: the first one after a date that is called so."""
    if not isinstance(name.literal, str):
        return None
    text = name.literal.capitalize()
    place = next((at for at, one in enumerate(_DAYS, 1) if text in (one, one[:3], one[:2])), None)
    if place is None:
        raise InvalidInput(f"next_day: {name.literal!r} is no day of the week, such as 'Monday', 'Mon' or 'Mo'")
    return days_after(day, lambda values: pc.subtract(7, pc.day_of_week(values, week_start=place)))


def parsed_time(text: Term, form: Term) -> Term | None:
    """`to_timestamp` and `to_date` of a format, still as a time."""
    if not isinstance(form.literal, str):
        return None
    parts = _letters("to_timestamp", form.literal, [*_NUMBERS])
    fields = [_NUMBERS[part][0] for part in parts if part in _NUMBERS]
    touching = any({*pair} <= {*_NUMBERS} and {*pair} & {"M", "d", "H", "m", "s"} for pair in pairwise(parts))
    if len({*fields}) < len(fields) or "year" not in fields or touching:
        raise InvalidInput(
            f"to_timestamp: expected a year in the format {form.literal!r}, each field once, and two digits of each "
            "where nothing parts them"
        )
    digits = {part: r"(\d{1,2})" if least == 1 else rf"(\d{{{least}}})" for part, (_, least) in _NUMBERS.items()}
    regex = re.compile("".join(re.escape(part[1:]) if part[0] == "'" else digits[part] for part in parts), re.ASCII)

    def time(value: str) -> dt.datetime:
        try:
            numbers = map(int, regex.fullmatch(value).groups())  # type: ignore[union-attr]
            return dt.datetime(**{"month": 1, "day": 1, **dict(zip(fields, numbers, strict=True))}, tzinfo=dt.UTC)
        except (AttributeError, ValueError):
            raise InvalidInput(f"the text {value!r} is no date or time of the format {form.literal!r}") from None

    return of_constants(TIMESTAMP, time, text)
