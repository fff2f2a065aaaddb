"""An instant: one state of one action on the timeline, and the form of its time."""

import datetime as dt
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Action(StrEnum):
    """What an instant does. The value is the word in its file name."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"

    __hash__ = str.__hash__  # a commit hashes instants by the thousand, and an enum's own hash is a call in Python


class State(IntEnum):
    """How far an instant has come; a greater state replaces a smaller one."""

    REQUESTED = 1
    INFLIGHT = 2
    COMPLETED = 3

    __hash__ = int.__hash__


#: Completed actions that publish rows: "commits timeline" in the format's words.
COMMITS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
#: Actions that write data files, pending ones included: "write timeline".
WRITES = COMMITS | {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One state of one action. Field order is sort order; all fields take part, so a tie means equal."""

    requested: str  # "yyyyMMddHHmmssSSS" in the table's timezone; instants compare as strings
    action: Action
    state: State
    completed: str = ""  # same form; "" until completed, and in table versions that do not record it


def format_time(moment: dt.datetime) -> str:
    """The instant time of a moment: 17 digits, milliseconds truncated."""
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def parse_time(instant: str) -> dt.datetime:
    """The moment of an instant time, without a zone.

    14 digits mean the last millisecond of that second; digits past the 17th are a suffix of the metadata table.
    Raises ValueError on anything else.
    """
    if not instant.isdigit() or len(instant) not in (14, 17, 20):
        raise ValueError(f"{instant!r} is not an instant time: expected yyyyMMddHHmmssSSS")
    millis = int(instant[14:17]) if len(instant) > 14 else 999
    # Asked for each block of a log: strptime takes ten times as long.
    month, day, hour, minute, second = (int(instant[at : at + 2]) for at in range(4, 14, 2))
    return dt.datetime(int(instant[:4]), month, day, hour, minute, second, millis * 1000)


def time_before(now: str, *, days: int = 0, hours: int = 0) -> str:
    """The instant time so long before another; "" when that is before the year 1970, hence before every commit."""
    try:
        moment = parse_time(now) - dt.timedelta(days=days, hours=hours)
    except OverflowError:
        return ""
    return format_time(moment) if moment.year >= 1970 else ""
