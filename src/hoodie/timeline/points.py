"""Points in time as people write them, as instants of a table."""

import datetime as dt
import re

from hoodie.config.table import TimelineZone
from hoodie.errors import InvalidInput, clause
from hoodie.model.instant import format_time

#: A point in time: text, a datetime or date of Python, or a number as `time.time()` gives it.
Point = str | dt.date | float

_INSTANT = re.compile(r"\d{14}|\d{17}", re.ASCII)
_BEGINNING = re.compile(r"\d{4,17}", re.ASCII)
#: Seconds or milliseconds since 1970. No table has instants of the years that such a text would be the beginning of.
_EPOCH = re.compile(r"(1\d{9})(\d{3})?", re.ASCII)
_ISO = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[ T](?P<minute>\d\d:\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s?(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_EXPECTED = (
    "expected yyyyMMddHHmmss[SSS] or its beginning from the year on, yyyy-MM-dd[ HH:mm[:ss[.SSS]]] with Z or +HH:MM "
    "behind it, seconds or milliseconds since 1970, a datetime or a date"
)


def is_instant(text: Point) -> bool:
    """Whether it has the form of an instant."""
    return isinstance(text, str) and _INSTANT.fullmatch(text) is not None


def query_instant(point: Point, zone: TimelineZone = TimelineZone.UTC) -> str:
    """The instant that a query means, inclusive.

    point    `yyyyMMddHHmmss[SSS]`; the beginning of one, which is before all instants that begin so; ISO text such as
             `2024-01-31`, `2024-01-31 12:30:45.678` or `2024-01-31T12:30:45Z`; seconds (10 digits) or milliseconds (13
             digits) since 1970, as in Hudi 1.2, also as a number; a datetime or a date. What names no zone is local, as
             in Python
    zone     the table's
    returns  without milliseconds, as text, the end of that second or minute; a date is its midnight
    Raises   InvalidInput
    """
    if isinstance(point, str) and _INSTANT.fullmatch(point):
        return point if len(point) == 17 else f"{point}999"
    number = f"{point * 1000:.0f}" if isinstance(point, float) else str(point)
    if epoch := _EPOCH.fullmatch(number):
        point = dt.datetime.fromtimestamp(int(epoch[1]), dt.UTC).replace(microsecond=int(epoch[2] or 0) * 1000)
    elif isinstance(point, str) and _BEGINNING.fullmatch(point):
        return f"{max(0, int(point.ljust(17, '0')) - 1):017}"  # ranges begin after what is given
    try:
        return format_time(_in_zone(_moment(point), zone))
    except (ValueError, OverflowError) as problem:  # the latter beyond the calendar, in the table's zone
        words = "; ".join(filter(None, (clause(problem), _EXPECTED)))
        raise InvalidInput(f"{point!r} is not a point in time: {words}") from problem


def _moment(point: Point) -> dt.datetime:
    """Raises ValueError, without words on what is neither a date nor text of this form"""
    if isinstance(point, dt.date):
        return point if isinstance(point, dt.datetime) else dt.datetime.combine(point, dt.time())
    if not isinstance(point, str) or (parts := _ISO.fullmatch(point)) is None:
        raise ValueError
    text = point[: parts.end("day")]
    if parts["minute"]:
        second, fraction = parts["second"] or "59", (parts["fraction"] or "999").ljust(3, "0")[:3]
        text += f"T{parts['minute']}:{second}.{fraction}"
    if parts["zone"]:
        text += "+00:00" if parts["zone"] in "Zz" else parts["zone"]
    return dt.datetime.fromisoformat(text)


def _in_zone(moment: dt.datetime, zone: TimelineZone) -> dt.datetime:
    """In the table's zone. A naive moment is local, as in Python."""
    moment = dt.datetime.combine(moment.date(), moment.time(), moment.tzinfo)  # pandas' Timestamp knows no local time
    return moment.astimezone(dt.UTC) if zone is TimelineZone.UTC else moment.astimezone()
