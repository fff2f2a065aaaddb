"""The options that say what identifies a row, and which partition it belongs to."""

from dataclasses import dataclass
from enum import Enum, StrEnum

from hoodie.config.options import option


class TimestampType(StrEnum):
    """What the values of a timestamp-based partition field are."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"  # seconds
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"  # Hudi has it from 1.0 on
    SCALAR = "SCALAR"  # a number in its own unit
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"  # as DATE_STRING; Hudi, too, fails on its numbers


class TimeUnit(Enum):
    """Java's time units; the value is nanoseconds."""

    NANOSECONDS = 1
    MICROSECONDS = 1_000
    MILLISECONDS = 1_000_000
    SECONDS = 1_000_000_000
    MINUTES = 60_000_000_000
    HOURS = 3_600_000_000_000
    DAYS = 86_400_000_000_000


class PartitionUnit(StrEnum):
    """The units of time that a table's folders may be of."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOptions:
    """What identifies a row, and how rows are assigned to partitions."""

    record_key: tuple[str, ...] = option(
        "hoodie.datasource.write.recordkey.field", (), "Columns that identify a row, separated by commas.",
        aliases=("hoodie.table.recordkey.fields",),
    )  # fmt: skip
    partition: tuple[str, ...] = option(
        "hoodie.datasource.write.partitionpath.field", (),
        "Partition columns, separated by commas; with the CUSTOM generator each as `column:SIMPLE` or "
        "`column:TIMESTAMP`.",
        aliases=("hoodie.table.partition.fields",),
    )  # fmt: skip
    generator_class: str = option(
        "hoodie.datasource.write.keygenerator.class", "",
        "A class of org.apache.hudi.keygen; inferred from the columns where it is not set.",
        aliases=("hoodie.table.keygenerator.class",),
    )  # fmt: skip
    generator_type: str = option(
        "hoodie.datasource.write.keygenerator.type", "", "The key generator by its short name, such as SIMPLE.",
        aliases=("hoodie.table.keygenerator.type",),
    )  # fmt: skip
    hive_style: bool = option(
        "hoodie.datasource.write.hive_style_partitioning", False, "Partition folders are `column=value`."
    )
    url_encode: bool = option(
        "hoodie.datasource.write.partitionpath.urlencode", False, "Escape special characters in partition values."
    )
    plain_single_key: bool = option(
        "hoodie.write.complex.keygen.new.encoding", True,
        "false: the COMPLEX generator writes a single key as `column:value`. Rows of an existing table decide.",
    )  # fmt: skip
    consistent_timestamps: bool = option(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", False,
        "Timestamps in keys and paths as text instead of microseconds, in hoodie.keygen.timebased.timezone, else UTC.",
    )  # fmt: skip


_PREFIX = "hoodie.keygen.timebased."


def _old(name: str) -> tuple[str, ...]:
    return (f"hoodie.deltastreamer.keygen.timebased.{name}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOptions:
    """How the TIMESTAMP key generator reads and prints times."""

    type: str = option(
        _PREFIX + "timestamp.type", "", "What the values are: " + ", ".join(TimestampType) + ".",
        aliases=_old("timestamp.type"),
    )  # fmt: skip
    unit: TimeUnit = option(
        _PREFIX + "timestamp.scalar.time.unit", TimeUnit.SECONDS, "The unit of SCALAR numbers.",
        aliases=_old("timestamp.scalar.time.unit"),
    )  # fmt: skip
    input_formats: str = option(
        _PREFIX + "input.dateformat", "", "Joda patterns of strings, tried in order.",
        aliases=_old("input.dateformat"),
    )  # fmt: skip
    delimiter: str = option(
        _PREFIX + "input.dateformat.list.delimiter.regex", ",", "Separates the input patterns.",
        aliases=_old("input.dateformat.list.delimiter.regex"),
    )  # fmt: skip
    input_zone: str = option(
        _PREFIX + "input.timezone", "", "Zone of strings without an offset; UTC where not set.",
        aliases=_old("input.timezone"),
    )  # fmt: skip
    output_zone: str = option(
        _PREFIX + "output.timezone", "", "Zone to print in; where not set UTC, for strings the zone they were read in.",
        aliases=_old("output.timezone"),
    )  # fmt: skip
    zone: str = option(
        _PREFIX + "timezone", "", "Sets both zones, whatever their own options say.",
        aliases=_old("timezone"),
    )  # fmt: skip
    output_format: str = option(
        _PREFIX + "output.dateformat", "", "Joda pattern of the path; `hh` is the 12-hour clock.",
        aliases=_old("output.dateformat"),
    )  # fmt: skip
    partition_unit: str = option(
        "hoodie.write.partition.time.unit", "",
        'What a table made with `partition_by="day(at)"` says of itself: its time column is a timestamp, and its '
        "folders are of this unit: year, month, day or hour. The options beside it say the same to Hudi.",
        check=lambda unit: unit in ("", *PartitionUnit), expected=", ".join(PartitionUnit),
    )  # fmt: skip
