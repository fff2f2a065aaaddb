"""Times in partition paths and decimals in keys against Joda-Time and Java, and one key for one time on all routes."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

import hoodie
from hoodie.config.keygen import TimestampType, TimeUnit
from hoodie.keygen.arrow_keys import partition_path, record_key
from hoodie.keygen.keygen import FieldKind, KeyGenerator, Kind, PartitionField
from hoodie.keygen.timebased import TimestampSettings
from support.nightly import nightly

ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"


def paths_of(values: pa.Array, settings: TimestampSettings) -> list[str | None]:
    field = PartitionField("p", FieldKind.TIMESTAMP)
    keygen = KeyGenerator(Kind.TIMESTAMP, ("id",), (field,), timestamp=settings)
    paths: list[str | None] = partition_path(pa.table({"p": values}), keygen).to_pylist()
    return paths


def test_small_decimals_are_those_of_bigdecimal(spark: SparkSession) -> None:
    values = [sign * Decimal(unscaled).scaleb(-12) for sign in (1, -1) for unscaled in (0, 1, 12, 100, 999_999, 10**6)]
    values += [Decimal(unscaled).scaleb(-12) for unscaled in (999_999_9, 123_456_789_012_345)]
    value_of = spark._jvm.java.lang.String.valueOf  # type: ignore[union-attr]
    java = [str(value_of(value.quantize(Decimal("1e-12")))) for value in values]
    keys = record_key(pa.table({"d": pa.array(values, pa.decimal128(24, 12))}), KeyGenerator(Kind.SIMPLE, ("d",)))
    assert keys.to_pylist() == java
    assert {"0E-12", "-1.2E-11", "9.99999E-7", "0.000001000000"} <= set(java)


PATTERNS = [
    "yyyy-MM-dd HH:mm:ss.SSS", "yyyy/MM/dd/hh a", "yy-M-d H:m:s", "YYYY 'o''clock' K k h", "xxxx-'W'ww-e", "EEE, MMM d",
    "EEEE MMMM dd", "yyyy-DDD", "C S SS SSSSSS", "Z ZZ", "D DD", "yyyyMMddHH",
]  # fmt: skip
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Europe/Paris", "+08:00", "-03:30"]
INSTANTS = [
    0, -1, 1, 999, -62_135_596_800_000 + 86_400_000 * 400, 253_402_300_800_000, 1_710_054_000_000, 1_710_053_999_999,
    1_730_611_800_000, 1_704_067_199_999, 1_704_067_200_000, 951_782_400_000, -2_000_000_000_000, 1_672_531_199_001,
    1_747_102_000_000, 1_735_603_200_123,
]  # fmt: skip


def joda_zone(spark: SparkSession, zone: str) -> Any:
    return spark._jvm.org.joda.time.DateTimeZone.forID(zone)  # type: ignore[union-attr]


def test_times_are_printed_as_joda_prints_them(spark: SparkSession) -> None:
    joda = spark._jvm.org.joda.time  # type: ignore[union-attr]
    settings = [
        TimestampSettings(TimestampType.EPOCHMILLISECONDS, TimeUnit.MILLISECONDS, (), "", zone, pattern)
        for zone in ZONES
        for pattern in (PATTERNS if zone in ("UTC", "America/New_York") else PATTERNS[:1])
    ]
    expected = {
        (millis, each.output_zone, each.output_format): str(
            joda.DateTime(millis, joda_zone(spark, each.output_zone)).toString(each.output_format)
        )
        for millis in INSTANTS
        for each in settings
    }
    found = {
        (millis, each.output_zone, each.output_format): path
        for each in settings
        for millis, path in zip(INSTANTS, paths_of(pa.array(INSTANTS), each), strict=True)
    }
    assert found == expected


TEXTS = [
    "2020-04-01T13:01:33.428-05:00", "2020-04-01T13:01:33.428+0530", "2020-04-01T13:01:33.4Z", "2020-4-1t3:1:3.42+05",
    "2020-02-30T00:00:00.000Z", "2020-04-01", "2020-04-01 23:30:00", "2020-04-01 24:00:00", "2024-03-10 02:30:00",
    "2024-11-03 01:30:00", "20200401", "2020041", "12 January 2021", "03 feb 2021", "3 May 2021", "04/01/2020 12:05 AM",
    "04/01/2020 12:05 pm", "4/1/2020 11:05 PM", "04/01/2020 13:05 PM", "x20200401", "20200401 ", "", "2020-04-01 1:2:3",
    "1969-12-31 23:59:59", "12020-01-01",
]  # fmt: skip
TO_MILLIS = "yyyy-MM-dd'T'HH:mm:ss.SSS"
INPUTS = [
    (ISO,), ("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd"), ("yyyyMMdd",), ("dd MMM yyyy",), ("MM/dd/yyyy hh:mm a",),
    ("yyyy-MM-dd HH:mm:ss", ISO, "yyyyMMdd"),
]  # fmt: skip


def joda_parsed(spark: SparkSession, text: str, formats: tuple[str, ...], zone: str) -> str | None:
    """What Hudi does with a string: the first format that takes all of it; printed in UTC."""
    joda = spark._jvm.org.joda.time  # type: ignore[union-attr]
    for pattern in formats:
        formatter = joda.format.DateTimeFormat.forPattern(pattern).withZone(joda_zone(spark, zone))
        with suppress(IllegalArgumentException):  # malformed, or no such date or time
            return str(formatter.parseDateTime(text).withZone(joda_zone(spark, "UTC")).toString(TO_MILLIS))
    return None


@pytest.mark.nightly
def test_strings_are_read_as_joda_reads_them(spark: SparkSession) -> None:
    settings = [
        TimestampSettings(TimestampType.DATE_STRING, None, formats, zone, "UTC", TO_MILLIS)
        for formats in INPUTS
        for zone in ("UTC", "America/New_York")
    ]
    expected = {
        text: [joda_parsed(spark, text, each.input_formats, each.input_zone) for each in settings] for text in TEXTS
    }
    paths = [paths_of(pa.array(TEXTS), each) for each in settings]
    assert {text: list(row) for text, *row in zip(TEXTS, *paths, strict=True)} == expected


@pytest.mark.nightly
@pytest.mark.parametrize(("options", "key"), [
    nightly({}, "2023-03-10 12:30:00.0"), ({"hoodie.keygen.timebased.timezone": "GMT+1:00"}, "2023-03-10 13:30:00.0"),
])  # fmt: skip
def test_a_timestamp_as_a_key_is_one_key_on_all_routes_and_in_all_zones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], key: str
) -> None:
    moment = pa.array([datetime(2023, 3, 10, 12, 30, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    rows = pa.table({"at": moment, "v": [0]})
    hoodie.register(spark)
    options = {**options, "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"}
    path = str(tmp_path / "t")
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        hoodie.create_table(path, name="t", record_key="at", options=options).upsert(rows)
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        table = hoodie.open_table(path, spark=spark)
        frame = spark.createDataFrame([(1_678_451_400,)], "s bigint").selectExpr("timestamp_seconds(s) at", "1L v")
        for near in ("1000000", "0"):
            result = table.upsert(frame, options={"hoodie.spark.driver.max.batch.bytes": near})
            assert (result.inserted, result.updated) == (0, 1), result.route
        table.upsert(rows)
        frame.createOrReplaceTempView("late")
        spark.sql(f"CREATE TABLE stamped (at timestamp, v bigint) USING hudi LOCATION '{path}'")
        hoodie.spark.sql(spark, "MERGE INTO stamped t USING late s ON t.at = s.at WHEN MATCHED THEN UPDATE SET *")
        assert [row[0] for row in table.snapshot().select("_hoodie_record_key").collect()] == [key]
    finally:
        hoodie.spark.sql(spark, "DROP TABLE IF EXISTS stamped")
        spark.conf.set("spark.sql.session.timeZone", before)
        monkeypatch.undo()
        time.tzset()
