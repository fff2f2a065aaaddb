"""How time values become partition paths: the settings of Hudi's timestamp-based key generator."""

import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from hoodie.config.keygen import PartitionUnit, TimeOptions, TimestampType, TimeUnit
from hoodie.config.options import declared, read_options
from hoodie.errors import InvalidOption
from hoodie.keygen import joda

#: Joda patterns of folders of a unit of time. One level each: readers count levels.
FOLDERS = {
    PartitionUnit.YEAR: "yyyy",
    PartitionUnit.MONTH: "yyyy-MM",
    PartitionUnit.DAY: "yyyy-MM-dd",
    PartitionUnit.HOUR: "yyyy-MM-dd-HH",
}


@dataclass(frozen=True, slots=True)
class TimestampSettings:
    """How a timestamp-based partition field is read and printed.

    unit           of numbers; None for strings (DATE_STRING, MIXED)
    input_formats  Joda patterns, tried in order; strings only
    input_zone     "UTC", "+08:00" or a region id; "": the offset in the string, UTC where it has none
    output_zone    as input_zone; "": UTC for numbers, for strings the zone they were read in
    output_format  a Joda pattern
    partition_unit of the folders of a column that is a timestamp for certain; None: it may be anything
    """

    type: TimestampType
    unit: TimeUnit | None
    input_formats: tuple[str, ...]
    input_zone: str
    output_zone: str
    output_format: str
    partition_unit: PartitionUnit | None = None

    @property
    def text_for_null(self) -> str:
        """The string that Hudi takes a null string to be: millisecond 1 of the epoch in the first input format."""
        time = datetime(1970, 1, 1, microsecond=1000, tzinfo=UTC).astimezone(
            _tzinfo(self.input_zone or self.output_zone or "UTC")
        )
        return joda.joda_text(time, self.input_formats[0])


def timestamp_settings(properties: Mapping[str, str]) -> TimestampSettings:
    """The settings in `hoodie.keygen.timebased.*` (or the older `hoodie.deltastreamer.keygen.timebased.*`).

    Raises InvalidOption on what is missing, or a type, pattern or zone that cannot be carried out.
    """
    time_options = read_options(TimeOptions, properties)
    keys = {option_field.name: spec.keys[0] for option_field, spec in declared(TimeOptions)}
    name = time_options.type.strip()
    if not name:
        raise InvalidOption(
            f"{keys['type']} is not set, and the key generator prints times: give it and {keys['output_format']} among "
            f"the options, as the table's writers have them. It is one of {', '.join(TimestampType)}"
        )
    if name not in TimestampType.__members__:
        raise InvalidOption(f"{keys['type']}={name!r}: expected one of {', '.join(TimestampType)}")
    if not time_options.output_format:
        raise InvalidOption(f"{keys['output_format']} is not set: expected a Joda pattern, such as yyyy/MM/dd")
    joda.output_tokens(time_options.output_format)
    kind = TimestampType(name)
    formats: tuple[str, ...] = ()
    if kind in (TimestampType.DATE_STRING, TimestampType.MIXED):
        formats = _split(time_options.input_formats, time_options.delimiter, keys["delimiter"])
        if not formats:
            raise InvalidOption(f"{keys['input_formats']} is not set: {kind} needs the Joda patterns of its strings")
        for pattern in formats:
            joda.parsing(pattern)
    units = {
        TimestampType.UNIX_TIMESTAMP: TimeUnit.SECONDS,
        TimestampType.EPOCHMILLISECONDS: TimeUnit.MILLISECONDS,
        TimestampType.EPOCHMICROSECONDS: TimeUnit.MICROSECONDS,
        TimestampType.SCALAR: time_options.unit,
    }
    settings = TimestampSettings(
        kind,
        units.get(kind),
        formats,
        _chosen_zone(properties, "input_zone"),
        output_zone(properties),
        time_options.output_format,
        PartitionUnit(time_options.partition_unit) if time_options.partition_unit else None,
    )
    _refuse_other_folders(settings, keys["partition_unit"])
    return settings


def _refuse_other_folders(settings: TimestampSettings, key: str) -> None:
    """Raises InvalidOption where folders of a unit of time would have other names than these have."""
    unit = settings.partition_unit
    if unit is None:
        return
    expected = (TimestampType.SCALAR, TimeUnit.MICROSECONDS, "UTC", FOLDERS[unit])
    texts = (settings.type, settings.unit, settings.output_zone, settings.output_format)
    if texts != expected:
        raise InvalidOption(
            f"{key}={unit}: the folders of this table are times in microseconds, in UTC and in the pattern "
            f"{FOLDERS[unit]}; leave the options hoodie.keygen.timebased.* out"
        )


def output_zone(properties: Mapping[str, str]) -> str:
    """The zone that times are printed in: "UTC", "+08:00" or a region id; "" where the options name none.

    Raises InvalidOption on what is no zone
    """
    return _chosen_zone(properties, "output_zone")


def _chosen_zone(properties: Mapping[str, str], name: str) -> str:
    time_options = read_options(TimeOptions, properties)
    keys = {option_field.name: spec.keys for option_field, spec in declared(TimeOptions)}
    chosen = "zone" if any(key in properties for key in keys["zone"]) else name
    return _zone(keys[chosen][0], getattr(time_options, chosen))


def _tzinfo(zone: str) -> tzinfo:
    if zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
        return timezone(offset if zone[0] == "+" else -offset)
    return zoneinfo.ZoneInfo(zone)


def _split(text: str, delimiter: str, key: str) -> tuple[str, ...]:
    try:
        parts = re.split(delimiter, text)
    except re.error as error:
        raise InvalidOption(f"{key}={delimiter!r}: expected a regular expression ({error})") from error
    return tuple(part.strip() for part in parts if part is not None and part.strip())


def _zone(key: str, text: str) -> str:
    """The zone in one spelling: "" (not set), "UTC", "+08:00", or a region id."""
    text = text.strip()
    if not text or text in ("UTC", "GMT", "Z", "Etc/UTC", "Zulu"):
        return "UTC" if text else ""
    if match := re.fullmatch(r"GMT([+-])(\d{1,2})(?::?([0-5]\d))?", text):
        sign, hours, minutes = match[1], int(match[2]), match[3] or "00"
        if hours <= 23:
            return f"{sign}{hours:02d}:{minutes}"
    try:
        return zoneinfo.ZoneInfo(text).key
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        # Java would silently take UTC, and rows would land in other folders than meant.
        raise InvalidOption(f"{key}={text!r}: expected a zone such as UTC, America/New_York or GMT+8:00") from None
