"""Partitions by a unit of time: `partition_by="day(at)"`, as settings of Hudi's timestamp-based key generator.

Source: docs/format/records-and-keys.md 1.3.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hoodie.config.keygen import PartitionUnit, TimestampType, TimeUnit
from hoodie.errors import InvalidInput
from hoodie.keygen.timebased import FOLDERS

#: The table property that says that the time column of the partition path is a timestamp, and which unit its folders
#: are of. What Hudi's key generator goes by stands beside it.
UNIT = "hoodie.write.partition.time.unit"

_EPOCH = dt.datetime(1970, 1, 1)
_CALL = re.compile(r"\s*(\w+)\s*\(\s*([^()\s]+)\s*\)\s*")
_TIMES = "hoodie.keygen.timebased."
_GENERATOR = "hoodie.datasource.write.keygenerator.class"
#: Patterns of the folders, as Python has them.
_PYTHON = {
    PartitionUnit.YEAR: "%Y",
    PartitionUnit.MONTH: "%Y-%m",
    PartitionUnit.DAY: "%Y-%m-%d",
    PartitionUnit.HOUR: "%Y-%m-%d-%H",
}


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A partition column as people name it. unit: of its folders, where it is a time; None: its values are folders"""

    name: str
    unit: PartitionUnit | None = None


def partition_columns(names: Sequence[str]) -> tuple[PartitionColumn, ...]:
    """The partition columns of `partition_by`.

    names   columns, one of which may be within `year(...)`, `month(...)`, `day(...)` or `hour(...)`; a text may have
            several, with commas between
    Raises  InvalidInput on another function, and on two units
    """
    columns = tuple(_column(name.strip()) for text in names for name in text.split(","))
    timed = [column for column in columns if column.unit is not None]
    if len(timed) > 1:
        raise InvalidInput(
            f"partition_by={list(names)!r}: a table has folders of one unit of time. Take the finest one: filters on "
            "the column leave out the folders of other years, months and days as well"
        )
    return columns


def partition_options(columns: Sequence[PartitionColumn], keys: int) -> dict[str, str]:
    """The options of a write whose rows are in these partitions.

    keys  number of columns of the record key: Hudi's generator for times alone takes one
    """
    timed = [column for column in columns if column.unit is not None]
    if not timed:
        return {"hoodie.datasource.write.partitionpath.field": ",".join(column.name for column in columns)}
    unit = timed[0].unit
    assert unit is not None
    alone = len(columns) == 1 and keys <= 1
    fields = [c.name if alone else f"{c.name}:{'SIMPLE' if c.unit is None else 'TIMESTAMP'}" for c in columns]
    return {
        "hoodie.datasource.write.partitionpath.field": ",".join(fields),
        _GENERATOR: f"org.apache.hudi.keygen.{'TimestampBased' if alone else 'Custom'}KeyGenerator",
        f"{_TIMES}timestamp.type": TimestampType.SCALAR.value,
        f"{_TIMES}timestamp.scalar.time.unit": TimeUnit.MICROSECONDS.name,
        f"{_TIMES}timezone": "UTC",
        f"{_TIMES}output.dateformat": FOLDERS[unit],
        UNIT: unit.value,
    }


def partition_names(columns: Sequence[str], properties: Mapping[str, str]) -> tuple[str, ...]:
    """The partition columns of a table, as `partition_by` takes them."""
    typed = properties.get("hoodie.datasource.write.partitionpath.field", "")
    times = [text.partition(":")[0].strip() for text in typed.split(",") if text.strip().endswith(":TIMESTAMP")]
    unit, names = properties.get(UNIT, ""), [name.partition(":")[0] for name in columns]
    return tuple(f"{unit}({name})" if unit and name in (times or names) else name for name in names)


def folder_bounds(text: str, unit: PartitionUnit) -> tuple[dt.datetime, dt.datetime] | None:
    """The first and the last microsecond, in UTC and without a zone, of the times in a folder; None: it is no such
    folder's name.

    Before 1970 a time within the last millisecond of a unit is in the next one's folder: Java cuts microseconds to
    milliseconds towards zero."""
    try:
        first = dt.datetime.strptime(text, _PYTHON[unit])
        match unit:
            case PartitionUnit.YEAR:
                after = first.replace(year=first.year + 1)
            case PartitionUnit.MONTH:
                after = (first + dt.timedelta(days=31)).replace(day=1)
            case PartitionUnit.DAY:
                after = first + dt.timedelta(days=1)
            case _:
                after = first + dt.timedelta(hours=1)
        low = first - dt.timedelta(microseconds=999) if first <= _EPOCH else first
    except (ValueError, OverflowError):  # another writer's folder, or the end of Python's calendar
        return None
    return low, after - dt.timedelta(microseconds=1)


def _column(name: str) -> PartitionColumn:
    match = _CALL.fullmatch(name)
    if match is None:
        if "(" in name or ")" in name:
            raise InvalidInput(f"partition_by={name!r}: expected a column, or such as day(at)")
        return PartitionColumn(name)
    try:
        return PartitionColumn(match[2], PartitionUnit(match[1].lower()))
    except ValueError:
        raise InvalidInput(
            f"partition_by={name!r}: {match[1]} is no unit of time: expected year, month, day or hour, such as "
            f"day({match[2]})"
        ) from None
