"""What a Joda date pattern means: its tokens, which of them can be printed or parsed here, and a pattern as a regex."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from hoodie.errors import InvalidOption

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_LETTERS = "GCYxwyDMdEaKhHkmsSezZ"
_PRINTED = "CYxwyDMdEaKhHkmsSeZ"
_NUMBERS = "CYxwyDdeKhHkmsS"  # and M up to MM
_PARSED = {"y": "year", "Y": "year", "M": "month", "d": "day", "H": "hour", "h": "hour", "a": "half",
           "m": "minute", "s": "second", "S": "fraction", "Z": "offset"}  # fmt: skip
_PIECE = re.compile(r"(?P<letters>([A-Za-z])\2*)|(?P<quote>'')|'(?P<quoted>(?:[^']|'')*)(?:'|$)|(?P<plain>[^A-Za-z'])")


@dataclass(frozen=True, slots=True)
class Token:
    """A run of `count` equal pattern letters, or literal text (letter "")."""

    letter: str
    count: int = 0
    text: str = ""

    @property
    def is_number(self) -> bool:
        return self.letter != "" and (self.letter in _NUMBERS or (self.letter == "M" and self.count <= 2))


@dataclass(frozen=True, slots=True)
class Parsing:
    """How a string in a pattern is parsed.

    regex   of the whole string (to be anchored); Java's and Python's (re.ASCII); one group for each field
    fields  what each group holds: year, month, monthname, day, hour, halfhour (1-12), half (AM or PM), minute,
            second, fraction (one to three digits), offset ("Z", "+hh", "+hhmm" or "+hh:mm")
    """

    regex: str
    fields: tuple[str, ...]

    def group(self, field: str) -> int:
        """The number of the field's group, from 1; 0: the pattern does not have it."""
        return self.fields.index(field) + 1 if field in self.fields else 0


def tokens(pattern: str) -> tuple[Token, ...]:
    """The pattern's tokens, in order: `'T'` and non-letters are literal text, `''` is a quote.

    Raises InvalidOption on a letter that Joda does not know.
    """
    pieces: list[Token] = []
    for piece in _PIECE.finditer(pattern):
        if run := piece["letters"]:
            if run[0] not in _LETTERS:
                raise InvalidOption(f"date pattern {pattern!r}: {run[0]!r} is not a pattern letter; quote text as 'T'")
            pieces.append(Token(run[0], len(run)))
        elif piece["quote"]:
            pieces.append(Token("", text="'"))
        else:
            pieces.append(Token("", text=piece["plain"] or piece["quoted"].replace("''", "'")))
    return tuple(pieces)


def output_tokens(pattern: str) -> tuple[Token, ...]:
    """The tokens of a pattern to print with. Raises InvalidOption on eras and zone names, which are not supported."""
    parts = tokens(pattern)
    for token in parts:
        if token.letter and (token.letter not in _PRINTED or (token.letter == "Z" and token.count > 2)):
            raise InvalidOption(
                f"output date pattern {pattern!r}: {token.letter * token.count!r} is not supported (eras, zone names)"
            )
    return parts


def parsing(pattern: str) -> Parsing:
    """How to read a string in this pattern as Joda does: numbers may be shorter than in the pattern, a year longer
    unless a number follows it, words in any case.

    Raises InvalidOption on a field that needs the clock (two-digit years), a calendar (weeks, days of the year) or
    names of weekdays and zones, and on a field that occurs twice.
    """
    parts = tokens(pattern)
    regex = ""
    fields: list[str] = []
    for position, token in enumerate(parts):
        if not token.letter:
            regex += re.escape(token.text)
            continue
        field = _PARSED.get(token.letter, "")
        if not field or (field == "year" and token.count == 2) or (field == "offset" and token.count > 2):
            raise InvalidOption(
                f"input date pattern {pattern!r}: {token.letter * token.count!r} is not supported; "
                "use fields among yyyy, MM, MMM, dd, HH, hh, a, mm, ss, SSS, Z"
            )
        if field in fields or (field == "hour" and "halfhour" in fields) or f"{field}name" in fields:
            raise InvalidOption(f"input date pattern {pattern!r}: the {field} occurs twice")
        field = {"h": "halfhour", "M": "month" if token.count < 3 else "monthname"}.get(token.letter, field)
        number_follows = position + 1 < len(parts) and parts[position + 1].is_number
        regex += _regex(field, token.count, number_follows)
        fields.append(field)
    if not {"year", "month", "monthname", "day", "hour", "halfhour"} & set(fields):
        raise InvalidOption(f"input date pattern {pattern!r}: it has no date")
    return Parsing(f"(?i)(?:{regex})", tuple(fields))


def joda_text(time: datetime, pattern: str) -> str:
    """A time with a zone in a pattern that `parsing` accepts, as Joda prints it."""
    offset = int((time.utcoffset() or timedelta()).total_seconds()) // 60
    colon = ":" if any(token.letter == "Z" and token.count == 2 for token in tokens(pattern)) else ""
    values = {
        "y": time.year, "Y": time.year, "M": time.month, "d": time.day, "H": time.hour, "h": (time.hour - 1) % 12 + 1,
        "m": time.minute, "s": time.second,
    }  # fmt: skip
    text = ""
    for token in tokens(pattern):
        if not token.letter:
            text += token.text
        elif token.letter == "S":
            text += f"{time.microsecond:06d}"[: token.count].ljust(token.count, "0")
        elif token.letter == "Z":
            text += f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}{colon}{abs(offset) % 60:02d}"
        elif token.letter == "a":
            text += "AM" if time.hour < 12 else "PM"
        elif token.letter == "M" and token.count > 2:
            text += MONTHS[time.month - 1][: None if token.count > 3 else 3]
        else:
            text += str(values[token.letter]).rjust(token.count, "0")
    return text


def _regex(field: str, count: int, number_follows: bool) -> str:
    # Possessive quantifiers: Joda takes as many digits as it may and never gives one back.
    match field:
        case "year":
            return rf"(\d{{1,{count}}}+)" if number_follows else r"(\d{1,9}+)"
        case "fraction":  # below milliseconds is dropped, as Joda does
            return rf"(\d{{1,{min(count, 3)}}}+)" + (rf"\d{{0,{count - 3}}}+" if count > 3 else "")
        case "offset":
            return r"(Z|[+-]\d\d(?::?\d\d)?)"
        case "half":
            return "(AM|PM)"
        case "monthname":
            return "(" + "|".join(f"{name}|{name[:3]}" for name in MONTHS) + ")"
        case _:
            return r"(\d{1,2}+)"
