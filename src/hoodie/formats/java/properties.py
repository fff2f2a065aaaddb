"""Java `.properties` bytes and dictionaries, and the checksum that `hoodie.properties` carries.

Source: java.util.Properties (load, store) and Hudi's HoodieTableConfig; pinned by files of real tables.
"""

import datetime as dt
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from hoodie.errors import CorruptFile, InvalidInput

CHECKSUM = "hoodie.table.checksum"
_DATABASE = "hoodie.database.name"
_TABLE = "hoodie.table.name"

_BLANK = " \t\f"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n]|\Z)")
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WORDS = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"} | {mark: f"\\{mark}" for mark in "=:#!"}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_properties(data: bytes, path: str) -> dict[str, str]:
    """The entries of a `.properties` file, in the file's order; of a key that occurs twice the last one counts.

    Raises CorruptFile naming `path` and the byte on a NUL byte, an escape cut short or half a surrogate pair.
    """
    return dict(_parsed(data, path))


@lru_cache(maxsize=64)  # a write reads the settings of its table several times
def _parsed(data: bytes, path: str) -> Mapping[str, str]:
    if (at := data.find(0)) >= 0:
        raise CorruptFile(path, "not a properties file: it holds a NUL byte", at)
    values: dict[str, str] = {}
    for at, line in _logical_lines(data.decode("iso-8859-1"), path):
        match = _KEY.match(line)
        assert match is not None  # it matches the empty string
        separator = _SEPARATOR.match(line, match.end())
        assert separator is not None
        values[_unescape(match[0], path, at)] = _unescape(line[separator.end() :], path, at)
    return values


def render_properties(values: Mapping[str, str], comment: str, now: dt.datetime) -> bytes:
    """The bytes that Hudi stores for the entries, in their order: two comment lines, then one line for each.

    comment  the first line, such as "Properties saved on 2024-07-07T05:13:02Z" or "partition metadata"
    now      the date of the second line; a time without a zone counts as UTC
    Raises   InvalidInput on text with half a surrogate pair
    """
    lines = ["#" + re.sub(r"\r\n?|\n", "\n#", comment), "#" + _java_date(now)]
    lines += [f"{_escape(key, spaces=True)}={_escape(value, spaces=False)}" for key, value in values.items()]
    text = "\n".join(lines) + "\n"
    return _UNPRINTABLE.sub(_as_unicode_escape, text).encode("ascii")


def table_checksum(database: str, table: str) -> str:
    """The value of `hoodie.table.checksum`: it covers the two names and nothing else."""
    return str(zlib.crc32(f"{database}.{table}".encode()))


def verify_checksum(properties: Mapping[str, str], path: str) -> None:
    """Raise CorruptFile if the properties carry a checksum and it is not that of their names."""
    stored = properties.get(CHECKSUM)
    if stored is None:
        return
    expected = table_checksum(properties.get(_DATABASE, ""), properties.get(_TABLE, ""))
    if stored.strip() != expected:
        advice = "Restore the file from hoodie.properties.backup, or from the table it was copied from."
        raise CorruptFile(path, f"{CHECKSUM} is {stored}, the table's names give {expected}", advice=advice)


def _logical_lines(text: str, path: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, blanks and leading blanks, continued lines joined; each with its first byte."""
    begun = 0
    parts: list[str] = []
    for match in _LINE.finditer(text):
        line = match[0].rstrip("\r\n").lstrip(_BLANK)
        if not parts:
            if not line or line[0] in "#!":
                continue
            begun = match.start()
        slashes = len(line) - len(line.rstrip("\\"))
        parts.append(line[:-1] if slashes % 2 else line)
        if slashes % 2:
            if match.end() == len(text) and not match[0].endswith(("\r", "\n")):
                raise CorruptFile(path, "the file ends within an escape", len(text) - 1)
            continue
        yield begun, "".join(parts)
        parts = []
    if parts:
        yield begun, "".join(parts)


def _unescape(text: str, path: str, at: int) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        word = match[1]
        return chr(int(word[1:], 16)) if len(word) > 1 else _LETTERS.get(word, word)

    result, end = [], 0
    while (slash := text.find("\\", end)) >= 0:
        match = _ESCAPE.match(text, slash)
        if match is None:
            raise CorruptFile(path, f"malformed escape {text[slash : slash + 6]!r}", at)
        result += [text[end:slash], plain(match)]
        end = match.end()
    joined = "".join([*result, text[end:]])
    try:
        # Java escapes UTF-16 units: a character above U+FFFF is two escapes.
        return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise CorruptFile(path, "an escape is half of a surrogate pair", at) from None


def _escape(text: str, *, spaces: bool) -> str:
    """spaces  escape all of them, as in a key; else only one in front, which a reader would drop"""
    escaped = "".join(_WORDS.get(char, char) for char in text)
    if spaces:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


_UNPRINTABLE = re.compile(r"[^\n\x20-\x7e]")


def _as_unicode_escape(match: re.Match[str]) -> str:
    try:
        units = match[0].encode("utf-16-be")
    except UnicodeEncodeError:
        raise InvalidInput(f"{match[0]!r} is half of a surrogate pair, which no file of the table can hold") from None
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


def _java_date(now: dt.datetime) -> str:
    """`java.util.Date.toString`, whatever the locale."""
    zone = now.tzname() or "UTC"
    return f"{_DAYS[now.weekday()]} {_MONTHS[now.month - 1]} {now:%d %H:%M:%S} {zone} {now.year}"
