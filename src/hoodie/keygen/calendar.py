"""Epoch milliseconds and what clocks and calendars show: zones, and the proleptic Gregorian calendar of any year."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import numpy as np
import numpy.typing as npt

DAY = 86_400_000

Millis = npt.NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERA = 146_097  # days of 400 years, after which the calendar repeats, weekdays included
#: Days since 1970 of 0001-01-01 and 9999-12-31: the ends of Python's calendar.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
#: Seconds between two looks at a zone's offset. No zone has changed its clocks twice in a shorter time.
_STEP = 6 * 3600


def date_of(day: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970; the year before 1 is 0."""
    day += 719_468  # since 0000-03-01
    era, of_era = divmod(day, _ERA)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153  # from March
    month_of_year = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month_of_year <= 2), month_of_year, of_year - (153 * month + 2) // 5 + 1


def day_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970; None where there is no such date."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * _ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days if date_of(days) == (year, month, day) else None


def date_text(day: int) -> str:
    """`yyyy-MM-dd` as Spark writes it: years beyond four digits have a sign."""
    year, month, of_month = date_of(day)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{of_month:02d}"


def clock_text(local: int) -> str:
    """`yyyy-MM-dd HH:mm:ss.S` of milliseconds on a clock, as Java's Timestamp writes it."""
    day, rest = divmod(local, DAY)
    seconds, millis = divmod(rest, 1000)
    fraction = f"{millis:03d}".rstrip("0") or "0"
    return f"{date_text(day)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction}"


def to_zone(millis: Millis, zone: str) -> Millis:
    """Epoch milliseconds -> what the clocks of the zone show, as if that were UTC.

    zone  "UTC", "+08:00", a region id
    """
    if zone == "UTC" or not len(millis):
        return millis
    if zone[:1] in ("+", "-"):
        return millis + _fixed(zone)
    starts, offsets = _offsets(zone, millis)
    local: Millis = millis + offsets[np.searchsorted(starts, millis, side="right") - 1]
    return local


def from_zone(local: int, zone: str) -> int | None:
    """The reverse for one time; the earlier one where clocks were set back, None where they skipped it (as Joda)."""
    if zone == "UTC":
        return local
    if zone[:1] in ("+", "-"):
        return local - _fixed(zone)
    candidates = []
    for near in (local - DAY, local + DAY):
        at = np.array([near], np.int64)
        candidates.append(local - int(to_zone(at, zone)[0] - near))
    for millis in sorted(candidates):
        if int(to_zone(np.array([millis], np.int64), zone)[0]) == local:
            return millis
    return None


def _fixed(zone: str) -> int:
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return (minutes if zone[0] == "+" else -minutes) * 60_000


def _offsets(zone: str, millis: Millis) -> tuple[Millis, Millis]:
    """When offsets begin to hold, ascending, and these offsets, in milliseconds, in the years of the given times: a
    date of the year 9999 that stands for none does not cost the years until then."""
    years = np.unique((millis // DAY).astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64)) + 1970
    changes = [change for year in years.tolist() for change in _changes(zone, year)]
    starts, offsets = zip(*changes, strict=True)
    return np.array(starts, np.int64), np.array(offsets, np.int64)


@lru_cache(maxsize=4096)
def _changes(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """The offset at the start of a year in UTC, and those that begin in it: (epoch milliseconds, offset in them)."""
    first, end = day_of(year, 1, 1), day_of(year + 1, 1, 1)
    assert first is not None
    assert end is not None
    # Python's dates end: the rules of other years are those of the same year of an era that it knows. So are those of
    # its first and last year, where the clocks of a zone may show a day that it does not know.
    shift = 0
    while first + shift <= FIRST_DAY:
        shift += _ERA
    while end + shift >= LAST_DAY:
        shift -= _ERA
    clock = _tzinfo(zone)
    changes = _year_of_changes(clock, (first + shift) * 86_400, (end + shift) * 86_400)
    return tuple((start * 1000 - shift * DAY, offset * 1000) for start, offset in changes)


def _year_of_changes(zone: tzinfo, first: int, end: int) -> Iterator[tuple[int, int]]:
    offset = _offset_at(zone, first)
    yield first, offset
    for low in range(first, end, _STEP):
        high = min(low + _STEP, end - 1)
        after = _offset_at(zone, high)
        if after == offset:
            continue
        below = low
        while high - below > 1:
            middle = (below + high) // 2
            if _offset_at(zone, middle) == offset:
                below = middle
            else:
                high = middle
        offset = after
        yield high, offset


def _offset_at(zone: tzinfo, second: int) -> int:
    """Seconds that a zone's clocks are ahead of UTC at a time."""
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _tzinfo(zone: str) -> tzinfo:
    return UTC if zone == "UTC" else zoneinfo.ZoneInfo(zone)
