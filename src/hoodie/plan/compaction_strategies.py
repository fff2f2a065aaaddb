"""Which file slices a compaction takes, and in which order: Hudi's strategies, and functions of the user's own.

Source: docs/format/table-services.md 5 (org.apache.hudi.table.action.compact.strategy).
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import cast

from hoodie.config.compaction import CompactionOptions
from hoodie.config.import_path import imported
from hoodie.errors import InvalidOption
from hoodie.model.files import FileSlice

OPTION = "hoodie.compaction.strategy"

_MB = 1024 * 1024
_DAY = re.compile(r"(\d{1,4})[/-](\d{1,2})[/-](\d{1,2})", re.ASCII)
_PACKAGE = "org.apache.hudi.table.action.compact.strategy."


@dataclass(frozen=True, slots=True)
class Planning:
    """What a strategy goes by, besides the slices.

    max_file_size  bytes that a base file is taken to get where there is none yet
    today          in the table's time zone
    """

    options: CompactionOptions
    max_file_size: int
    today: dt.date


#: The slices to compact, in the order in which they are. Given are the candidates, each once, by partition and file id.
Select = Callable[[Sequence[FileSlice], Planning], Iterable[FileSlice]]
#: The partition paths to look at, in order, of all that the table has.
Partitions = Callable[[Sequence[str], Planning], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to choose. Both functions are pure."""

    name: str
    select: Select
    partitions: Partitions = lambda partitions, planning: partitions


def io_mb(slice_: FileSlice, max_file_size: int) -> tuple[int, int]:
    """MB that a compaction of the slice reads and writes, each rounded down."""
    base = slice_.base
    read = slice_.bytes
    return read // _MB, (base.size if base else max_file_size) // _MB


# --- Hudi's strategies ---


def bounded_io(slices: Sequence[FileSlice], planning: Planning) -> list[FileSlice]:
    """In the order given, up to and including the slice with which the target IO is reached."""
    remaining_io = planning.options.target_io
    taken = []
    for slice_ in slices:
        taken.append(slice_)
        remaining_io -= sum(io_mb(slice_, planning.max_file_size))
        if remaining_io <= 0:
            break
    return taken


def log_file_size(slices: Sequence[FileSlice], planning: Planning) -> list[FileSlice]:
    """Those with at least the threshold of log bytes, most first, within the target IO."""
    least = planning.options.size_threshold
    sized = [(slice_.log_bytes, slice_) for slice_ in slices]
    enough = sorted([pair for pair in sized if pair[0] >= least], key=itemgetter(0), reverse=True)
    return bounded_io([slice_ for _, slice_ in enough], planning)


def log_file_number(slices: Sequence[FileSlice], planning: Planning) -> list[FileSlice]:
    """Those with at least the threshold of log files, most first, within the target IO."""
    least = planning.options.number_threshold
    enough = [slice_ for slice_ in slices if len(slice_.logs) >= least]
    return bounded_io(sorted(enough, key=lambda slice_: len(slice_.logs), reverse=True), planning)


def day_based(slices: Sequence[FileSlice], planning: Planning) -> list[FileSlice]:
    """Those of the newest days, newest first."""
    by_day = _by_day(slices)
    return [slice_ for part in by_day[: planning.options.target_days] for slice_ in part[1]]


def newest_partitions(partitions: Sequence[str], planning: Planning) -> list[str]:
    """As many as day-based takes, newest first; compared as text, whatever they are named after."""
    return _descending(partitions)[: planning.options.target_days]


def recent(slices: Sequence[FileSlice], planning: Planning) -> list[FileSlice]:
    """Those of days since the target number of days ago, that day included, newest first."""
    since = _since(planning)
    return [slice_ for day, part in _by_day(slices) if day >= since for slice_ in part]


def recent_partitions(partitions: Sequence[str], planning: Planning) -> list[str]:
    """Those that `recent` takes, newest first."""
    since = _since(planning)
    return [partition for partition in _descending(partitions) if partition_day(partition) >= since]


def older(slices: Sequence[FileSlice], planning: Planning) -> list[FileSlice]:
    """Those that `recent` leaves, in the order given."""
    since = _since(planning)
    return [slice_ for slice_ in slices if partition_day(slice_.group.partition) < since]


def older_partitions(partitions: Sequence[str], planning: Planning) -> list[str]:
    """Those that `recent_partitions` leaves, newest first."""
    since = _since(planning)
    return [partition for partition in _descending(partitions) if partition_day(partition) < since]


def partition_day(partition: str) -> dt.date:
    """The day that a partition path such as 2024/01/31 or year=2024/month=01/day=31 stands for.

    Raises InvalidOption when it is none: the strategy is not for such a table
    """
    text = "/".join(part.partition("=")[2] or part for part in partition.split("/"))
    if match := _DAY.fullmatch(text):
        try:
            return dt.date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            pass
    raise InvalidOption(
        f"{OPTION}: partition {partition!r} is no day (yyyy/MM/dd), which the strategy goes by; take one that does not "
        "look at days, such as LogFileSizeBasedCompactionStrategy"
    )


def _since(planning: Planning) -> dt.date:
    return planning.today - dt.timedelta(days=min(planning.options.target_days, planning.today.toordinal() - 1))


def _descending(partitions: Sequence[str]) -> list[str]:
    return sorted(partitions, key=lambda partition: partition.replace("/", "-"), reverse=True)


def _by_day(slices: Sequence[FileSlice]) -> list[tuple[dt.date, list[FileSlice]]]:
    """The slices of each partition, in the order given, with its day; newest day first."""
    parts: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        parts.setdefault(slice_.group.partition, []).append(slice_)
    dated = [(partition_day(partition), part) for partition, part in parts.items()]
    return sorted(dated, key=lambda pair: pair[0], reverse=True)


_STRATEGIES = (
    Strategy("LogFileSizeBasedCompactionStrategy", log_file_size),
    Strategy("LogFileNumBasedCompactionStrategy", log_file_number),
    Strategy("BoundedIOCompactionStrategy", bounded_io),
    Strategy("UnBoundedCompactionStrategy", lambda slices, planning: slices),
    Strategy("DayBasedCompactionStrategy", day_based, newest_partitions),
    Strategy("BoundedPartitionAwareCompactionStrategy", recent, recent_partitions),
    Strategy("UnBoundedPartitionAwareCompactionStrategy", older, older_partitions),
)


def _short(name: str) -> str:
    return name.removeprefix(_PACKAGE).removesuffix("CompactionStrategy").removesuffix("Based")


_BY_NAME = {_short(strategy.name): strategy for strategy in _STRATEGIES}


# --- by name ---


def strategy_named(name: str) -> Strategy:
    """The strategy that an option's value names.

    name    Hudi's class, full or short (`DayBasedCompactionStrategy`, `DayBased`); or `package.module:function`
    Raises  InvalidOption
    """
    if ":" in name:
        return Strategy(name, partial(_own, name, load_strategy(name)))
    if (strategy := _BY_NAME.get(_short(name))) is not None:
        return strategy
    raise InvalidOption(
        f"{OPTION}={name!r}: expected one of {', '.join(strategy.name for strategy in _STRATEGIES)}, or the import "
        "path 'package.module:function' of a function; a Java class of one's own cannot be run here"
    )


def load_strategy(path: str) -> Select:
    """The function that an import path names. Raises InvalidOption when there is none."""
    function = imported(path, f"{OPTION}={path!r}", "function")
    if not callable(function):
        raise InvalidOption(f"{OPTION}={path!r} is no function(slices, planning)")
    return cast(Select, function)


def _own(name: str, select: Select, slices: Sequence[FileSlice], planning: Planning) -> list[FileSlice]:
    answer = select(slices, planning)
    if not isinstance(answer, Iterable):
        raise InvalidOption(f"{OPTION}={name!r} returned {type(answer).__name__}, expected some of the slices")
    return list(answer)
