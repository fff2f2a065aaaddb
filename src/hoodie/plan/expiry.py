"""Which partitions of a table have expired, by the time of the last write to each.

Source: Hudi's KeepByTimeStrategy; docs/services.md says what differs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from hoodie.model.files import FileSlice
from hoodie.model.instant import format_time, parse_time


def expires_before(now: str, days: int) -> str:
    """The instant time before which a write is too old; "" when that is before the year 1970, hence before every one.

    now   an instant time, of the present
    days  that partitions are kept
    """
    try:
        moment = parse_time(now) - dt.timedelta(days=days)
    except OverflowError:
        return ""
    return format_time(moment) if moment.year >= 1970 else ""


def newest_in_names(slices: Iterable[FileSlice]) -> dict[str, str]:
    """The newest instant in the names of the files of each partition, by partition path.

    slices  what a reader merges of each file group. Names of logs have their own delta commit in layout 2 only
    """
    times: dict[str, str] = {}
    for slice_ in slices:
        own = [slice_.base_instant, *(log.base_instant for log in slice_.logs)]
        times[slice_.group.partition] = max(*own, times.get(slice_.group.partition, ""))
    return times


def expired_before(times: Mapping[str, str], before: str, most: int) -> tuple[str, ...]:
    """The partition paths whose time is earlier, the oldest first.

    times  instant times by partition path
    most   how many at most
    """
    old = sorted((time, partition) for partition, time in times.items() if time < before)
    return tuple(partition for _, partition in old[:most])
