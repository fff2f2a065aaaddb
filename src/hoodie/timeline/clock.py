"""The times of new instants."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from hoodie.config.table import TimelineZone
from hoodie.model.instant import next_time, parse_time
from hoodie.timeline.timeline import Timeline

Clock = Callable[[], dt.datetime]


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def moment_of(instant: str, zone: TimelineZone) -> dt.datetime:
    """The moment of an instant time of a table in a zone, in UTC."""
    moment = parse_time(instant)
    return moment.replace(tzinfo=dt.UTC) if zone is TimelineZone.UTC else moment.astimezone(dt.UTC)


def new_time(timeline: Timeline, zone: TimelineZone, clock: Clock) -> str:
    """An instant time after all on the timeline, in the table's zone, even when the clock was set back."""
    return time_after(timeline.newest, zone, clock)


def time_after(newest: str, zone: TimelineZone, clock: Clock) -> str:
    """An instant time after another, "" for none, in the table's zone."""
    now = clock()
    local = now if zone is TimelineZone.UTC else now.astimezone().replace(tzinfo=None)
    return next_time(local.replace(tzinfo=None), newest)
