"""Record keys and partition paths of Arrow rows, against Hudi's (tests/vectors/keygen.json)."""

import json
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.config.keygen import TimestampType, TimeUnit
from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from hoodie.keygen import calendar
from hoodie.keygen.arrow_keys import partition_path, record_key, type_at
from hoodie.keygen.keygen import FieldKind, KeyGenerator, Kind, PartitionField, lacking_columns
from hoodie.keygen.timebased import TimestampSettings
from support.keygen_vectors import GENERATORS, timestamp_settings

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "keygen.json").read_text())

TYPES: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}


def one_row(row: dict[str, Any]) -> pa.Table:
    return pa.table({name: pa.array([value], TYPES.get(type(value), pa.string())) for name, value in row.items()})


def timed(settings: TimestampSettings, **more: Any) -> KeyGenerator:
    field = PartitionField("p", FieldKind.TIMESTAMP)
    return KeyGenerator(Kind.TIMESTAMP, ("id",), (field,), timestamp=settings, **more)


def path_of(values: pa.Array, settings: TimestampSettings, **more: Any) -> list[str | None]:
    found: list[str | None] = partition_path(pa.table({"p": values}), timed(settings, **more)).to_pylist()
    return found


@pytest.mark.parametrize("vector", VECTORS["record_keys"], ids=lambda vector: f"{vector['generator']} {vector['row']}")
def test_record_keys_are_those_of_hudi(vector: dict[str, Any]) -> None:
    kind, prefix = GENERATORS[vector["generator"]]
    keygen = KeyGenerator(kind, tuple(vector["key_fields"]), prefix_single_key=prefix)
    if not vector["row"]:
        with pytest.raises(SchemaMismatch):
            record_key(pa.table({"none": [None]}), keygen)
        return
    assert record_key(one_row(vector["row"]), keygen).to_pylist() == [vector["record_key"]]


@pytest.mark.parametrize("vector", VECTORS["partition_paths"], ids=lambda vector: str(vector["row"]))
def test_partition_paths_are_those_of_hudi(vector: dict[str, Any]) -> None:
    fields = tuple(PartitionField(name) for name in vector["partition_fields"])
    keygen = KeyGenerator(
        Kind.COMPLEX, ("id",), fields, hive_style=vector["hive_style"], url_encode=vector["url_encode"]
    )
    row = one_row(vector["row"]) if vector["row"] else pa.table({"none": pa.nulls(1)})
    assert partition_path(row, keygen).to_pylist() == [vector["path"]]


@pytest.mark.parametrize("vector", VECTORS["timestamp_based"], ids=str)
def test_timestamp_based_paths_are_those_of_hudi(vector: dict[str, Any]) -> None:
    value = vector["value"]
    kind = pa.int64() if value is None else TYPES[type(value)]
    assert path_of(pa.array([value], kind), timestamp_settings(vector)) == [vector["path"]]


def test_numbers_of_any_type_and_size_make_a_time_or_no_partition() -> None:
    seconds = TimestampSettings(TimestampType.UNIX_TIMESTAMP, TimeUnit.SECONDS, (), "", "UTC", "yyyy/MM/dd/HH")
    for values, expected in [
        (pa.array([1_705_485_600, None], pa.int32()), ["2024/01/17/10", "1970/01/01/00"]),
        (pa.array([2**62, -(2**62)], pa.int64()), [None, None]),
        (pa.array([-1.9, float("nan"), 1e300, None]), ["1969/12/31/23", "1970/01/01/00", None, "1970/01/01/00"]),
        (pa.array([Decimal("-0.999")], pa.decimal128(20, 3)), ["1970/01/01/00"]),
        (pa.array([Decimal(10**25)], pa.decimal128(30, 0)), [None]),
        (pa.array([date(1970, 1, 2)]), ["1970/01/01/00"]),
    ]:
        assert path_of(values, seconds) == expected, values.type


def test_a_string_that_no_format_takes_has_no_partition() -> None:
    settings = TimestampSettings(TimestampType.DATE_STRING, None, ("yyyyMMdd",), "UTC", "UTC", "yyyy")
    assert path_of(pa.array(["20200401", "April", None, ""]), settings) == ["2020", None, "1970", None]


def test_columns_that_a_timestamp_type_cannot_read_are_refused() -> None:
    strings = TimestampSettings(TimestampType.MIXED, None, ("yyyy",), "", "", "yyyy")
    numbers = TimestampSettings(TimestampType.UNIX_TIMESTAMP, TimeUnit.SECONDS, (), "", "", "yyyy")
    for settings, values in [(strings, [1]), (numbers, ["x"]), (numbers, [True])]:
        with pytest.raises(InvalidInput, match=f"partition column 'p' is .*{settings.type}"):
            path_of(pa.array(values), settings)
    for kind in (FieldKind.TIMESTAMP, FieldKind.UNKNOWN):
        with pytest.raises(InvalidOption, match="partition column 'p'"):
            partition_path(pa.table({"p": [1]}), KeyGenerator(Kind.CUSTOM, ("id",), (PartitionField("p", kind),)))


def test_all_missing_columns_are_named_at_once() -> None:
    schema = pa.schema([("ID", pa.int32()), ("city", pa.string()), ("st", pa.struct([("x", pa.int32())]))])
    keygen = KeyGenerator(Kind.COMPLEX, ("id", "st.y"), (PartitionField("city"), PartitionField("day")))
    assert lacking_columns(schema.names, lambda name: type_at(schema, name) is not None, keygen, ("st.x", "ts")) == [
        "record key column 'id' is missing (there is 'ID')",
        "record key column 'st.y' is missing (there is 'st')",
        "partition column 'day' is missing",
        "ordering column 'ts' is missing",
    ]


def test_consistent_timestamps_are_those_of_java_in_a_zone() -> None:
    moment = datetime(2023, 3, 10, 12, 30, tzinfo=UTC)
    instants = [moment, moment.replace(microsecond=120_999), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None]
    rows = pa.table({"p": pa.array(instants, pa.timestamp("us", "UTC"))})
    keygen = KeyGenerator(Kind.SIMPLE, ("p",), consistent_timestamps=True, zone="America/New_York")
    assert record_key(rows, keygen).to_pylist() == [
        "2023-03-10 07:30:00.0", "2023-03-10 07:30:00.12", "1969-12-31 19:00:00.0", None,
    ]  # fmt: skip


# --- the calendar ---


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_clocks_at_the_ends_of_pythons_calendar_show_the_day_beyond(zone: str) -> None:
    ends = pa.array([-62_135_596_800_000, -62_135_510_400_000, 253_402_214_400_000, 253_402_300_799_000], pa.int64())
    shown = pc.local_timestamp(ends.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", zone))).cast(pa.int64())
    assert calendar.to_zone(ends.to_numpy(), zone).tolist() == shown.to_pylist()


def test_a_date_that_stands_for_none_costs_its_own_year_only() -> None:
    calendar._changes.cache_clear()
    calendar.to_zone(np.array([1_700_000_000_000, 253_402_214_400_000], np.int64), "Europe/Berlin")
    assert calendar._changes.cache_info().misses == 2


DAYS = st.integers(-719_162, 2_932_896)
ZONES = st.sampled_from(["America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"])


@given(DAYS)
def test_dates_are_those_of_python(day: int) -> None:
    known = date(1970, 1, 1) + timedelta(days=day)
    assert calendar.date_of(day) == (known.year, known.month, known.day)
    assert calendar.day_of(known.year, known.month, known.day) == day


def test_dates_that_are_none_and_far_ones() -> None:
    assert calendar.day_of(2023, 2, 29) is calendar.day_of(2024, 13, 1) is calendar.day_of(2024, 4, 31) is None
    assert calendar.date_text(calendar.day_of(12020, 1, 1) or 0) == "+12020-01-01"
    assert calendar.date_text(calendar.day_of(-1, 3, 1) or 0) == "-0001-03-01"


@given(st.lists(st.integers(-2_208_988_800_000, 4_102_444_800_000), min_size=1, max_size=20), ZONES)
def test_clocks_of_a_zone_are_those_of_python(millis: list[int], zone: str) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = []
    for one in millis:
        local = (epoch + timedelta(milliseconds=one)).astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=UTC)
        expected.append((local - epoch) // timedelta(milliseconds=1))
    found = calendar.to_zone(np.array(millis, np.int64), zone)
    assert found.tolist() == expected
    for one, local in zip(millis, expected, strict=True):
        back = calendar.from_zone(local, zone)
        assert back is not None
        assert back <= one
        assert calendar.to_zone(np.array([back], np.int64), zone).tolist() == [local]


def test_clock_times_that_were_skipped_have_no_instant() -> None:
    skipped = datetime(2024, 3, 10, 2, 30, tzinfo=UTC)
    assert calendar.from_zone(int(skipped.timestamp() * 1000), "America/New_York") is None


def test_the_smallest_floats_have_the_two_digits_of_java() -> None:
    rows = pa.table({"d": [5e-324, 2e-323, 1e23, -1e-5], "f": pa.array([1e-45, 3e-45, 1e10, 0.5], pa.float32())})
    keys = [record_key(rows, KeyGenerator(Kind.SIMPLE, (name,))).to_pylist() for name in ("d", "f")]
    assert keys == [["4.9E-324", "2.0E-323", "1.0E23", "-1.0E-5"], ["1.4E-45", "2.8E-45", "1.0E10", "0.5"]]
