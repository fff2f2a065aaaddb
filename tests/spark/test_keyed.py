"""Record keys and partition paths of rows, against Hudi's (tests/vectors/keygen.json, real tables) and Joda-Time."""

from __future__ import annotations

import json
import time
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import hoodie
from hoodie.config.keygen import TimestampType, TimeUnit
from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from hoodie.formats.java.properties import parse_properties
from hoodie.keygen.keygen import FieldKind, KeyGenerator, Kind, PartitionField, escape_path, key_generator
from hoodie.keygen.timebased import TimestampSettings
from hoodie.spark.record_keys import (
    missing_columns,
    ordering_value,
    partition_path,
    record_key,
)
from support.keygen_vectors import GENERATORS, timestamp_settings

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "keygen.json").read_text())

SQL_TYPES: dict[type, T.DataType] = {str: T.StringType(), int: T.LongType(), bool: T.BooleanType()}
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"


@contextmanager
def session(spark: SparkSession, **settings: str) -> Iterator[None]:
    """Settings for a while; `__` stands for the dots of a name."""
    keys = {name.replace("__", "."): value for name, value in settings.items()}
    before = {key: spark.conf.get(key) for key in keys}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, old)


def in_modes(spark: SparkSession) -> Iterator[str]:
    """ANSI mode and session zone, which must not matter."""
    for ansi, zone in [("true", "UTC"), ("false", "America/New_York")]:
        with session(spark, spark__sql__ansi__enabled=ansi, spark__sql__session__timeZone=zone):
            yield f"ansi {ansi}, {zone}"


def one_row(spark: SparkSession, row: dict[str, Any]) -> DataFrame:
    fields = [T.StructField(name, SQL_TYPES.get(type(value), T.StringType())) for name, value in row.items()]
    schema = T.StructType(fields or [T.StructField("none", T.StringType())])
    return spark.createDataFrame([tuple(row.values()) or (None,)], schema)


def collected(frames: list[tuple[DataFrame, Column]]) -> list[Any]:
    """The value of each one-row frame's expression: one job."""
    parts = [frame.select(F.lit(at).alias("at"), value.alias("v")) for at, (frame, value) in enumerate(frames)]
    rows = reduce(DataFrame.unionAll, parts).coalesce(1).collect()
    return [row.v for row in sorted(rows, key=lambda row: row.at)]


def simple(*fields: str) -> tuple[PartitionField, ...]:
    return tuple(PartitionField(name) for name in fields)


def timed(settings: TimestampSettings, name: str = "p", **more: Any) -> KeyGenerator:
    return KeyGenerator(
        Kind.TIMESTAMP, ("id",), (PartitionField(name, FieldKind.TIMESTAMP),), timestamp=settings, **more
    )


def test_record_keys_are_those_of_hudi(spark: SparkSession) -> None:
    frames, bad = [], []
    for vector in VECTORS["record_keys"]:
        kind, prefix = GENERATORS[vector["generator"]]
        keygen = KeyGenerator(kind, tuple(vector["key_fields"]), prefix_single_key=prefix)
        frame = one_row(spark, vector["row"])
        frames.append((frame, record_key(frame.schema, keygen)))
        bad.append((frame, record_key(frame.schema, keygen).isNull()))
    assert collected(frames) == [vector["record_key"] for vector in VECTORS["record_keys"]]
    assert collected(bad) == [vector["error"] for vector in VECTORS["record_keys"]]


def test_partition_paths_are_those_of_hudi(spark: SparkSession) -> None:
    frames = []
    for vector in VECTORS["partition_paths"]:
        fields = simple(*vector["partition_fields"])
        keygen = KeyGenerator(
            Kind.COMPLEX, ("id",), fields, hive_style=vector["hive_style"], url_encode=vector["url_encode"]
        )
        frame = one_row(spark, vector["row"])
        frames.append((frame, partition_path(frame.schema, keygen)))
    assert collected(frames) == [vector["path"] for vector in VECTORS["partition_paths"]]


def test_escaping_is_the_same_in_spark_as_in_python(spark: SparkSession) -> None:
    texts = [chr(code) + "x" for code in range(1, 0x180)] + ["\x00", "%25%", "a%2Fb/\U0001f600?", "\ufeff="]
    frame = spark.createDataFrame([(text,) for text in texts], "p string")
    path = partition_path(frame.schema, KeyGenerator(Kind.SIMPLE, ("id",), simple("p"), url_encode=True))
    assert {row.p: row.v for row in frame.select("p", path.alias("v")).collect()} == {
        text: escape_path(text) for text in texts
    }


def test_timestamp_based_paths_are_those_of_hudi_whatever_the_session(spark: SparkSession) -> None:
    vectors = VECTORS["timestamp_based"]
    for mode in in_modes(spark):
        frames = []
        for vector in vectors:
            frame = one_row(spark, {"p": vector["value"]})
            if vector["value"] is None:
                frame = spark.createDataFrame([(None,)], "p bigint")
            frames.append((frame, partition_path(frame.schema, timed(timestamp_settings(vector)))))
        assert collected(frames) == [vector["path"] for vector in vectors], mode


def java_value(kind: str, text: str) -> tuple[str, str]:
    """A SQL type and literal for a vector's value."""
    if kind != "decimal":
        return kind, f"{kind}('{text}')"
    number, scale = text.split("(")[0].split(), text
    digits = Decimal(number[0])
    places = int(scale.split("scale ")[1].rstrip(")")) if "scale" in scale else -int(digits.as_tuple().exponent)
    return f"decimal(20,{places})", f"cast('{digits:f}' as decimal(20,{places}))"


def test_values_become_text_as_in_java_with_ansi_on_and_off(spark: SparkSession) -> None:
    # A negative scale is no Spark type; tests/unit/index/test_virtual_keys.py has that vector.
    vectors = [vector for vector in VECTORS["to_string"] if "scale -1" not in vector["type"]]
    assert len(vectors) == len(VECTORS["to_string"]) - 1
    literals = [java_value(vector["type"], vector["value"])[1] for vector in vectors]
    for mode in in_modes(spark):
        frame = spark.range(1).select(*[F.expr(literal).alias(f"c{at}") for at, literal in enumerate(literals)])
        keys = [record_key(frame.schema, KeyGenerator(Kind.SIMPLE, (name,))) for name in frame.columns]
        assert list(frame.select(*keys).collect()[0]) == [vector["string"] for vector in vectors], mode


def test_small_decimals_are_those_of_bigdecimal(spark: SparkSession) -> None:
    values = [sign * Decimal(unscaled).scaleb(-12) for sign in (1, -1) for unscaled in (0, 1, 12, 100, 999_999, 10**6)]
    values += [Decimal(unscaled).scaleb(-12) for unscaled in (999_999_9, 123_456_789_012_345)]
    value_of = spark._jvm.java.lang.String.valueOf  # type: ignore[union-attr]
    java = [str(value_of(value.quantize(Decimal("1e-12")))) for value in values]
    frame = spark.createDataFrame([(at, value) for at, value in enumerate(values)], "at int, d decimal(24,12)")
    key = record_key(frame.schema, KeyGenerator(Kind.SIMPLE, ("d",)))
    for mode in in_modes(spark):
        rows = frame.select("at", key.alias("v")).coalesce(1).collect()
        assert [row.v for row in sorted(rows, key=lambda row: row.at)] == java, mode
    assert {"0E-12", "-1.2E-11", "9.99999E-7", "0.000001000000"} <= set(java)


RECORD_COLUMNS = (
    "id string, a string, b int, d date, ts timestamp, tm timestamp, tm_long bigint, dec decimal(10,2), "
    "db decimal(10,7), bin binary, dbl double, flt float, bo boolean, st struct<x: string>, nb int, nid string, "
    "offset_text string"
)
TS = datetime(2023, 3, 10, 12, 30, tzinfo=UTC)
RECORD = (
    "k1", "", 7, date(2023, 3, 10), TS, TS.replace(microsecond=123_000), 1678451400123, Decimal("50.00"),
    Decimal("0.0000001"), b"\xca\xfe\x00", 10000000.0, 1.1, True, ("n",), None, None,
)  # fmt: skip


def class_run_case(case: str) -> tuple[KeyGenerator, bool]:
    """The key generator of a case of Hudi's own classes, and whether the case is about the key (else the path)."""
    kind, _, rest = case.partition("|")
    if kind == "simple_key":
        field, consistent = rest.split("|consistent=")
        # Spark has no timestamps of milliseconds: the raw one is a long.
        field = "tm_long" if (field, consistent) == ("tm", "false") else field
        return KeyGenerator(Kind.SIMPLE, (field,), consistent_timestamps=consistent == "true"), True
    keys = {
        "complex|id,a,b": (Kind.COMPLEX, ("id", "a", "b")),
        "complex|a,id (spaces)": (Kind.COMPLEX, ("a", "id")),
        "complex single|id": (Kind.COMPLEX, ("id",)),
        "complex|a only-empty + null": (Kind.COMPLEX, ("a", "nid")),
        "complex|id null,b": (Kind.COMPLEX, ("nid", "b")),
        "complex|st.x,b": (Kind.COMPLEX, ("st.x", "b")),
        "global_delete|id": (Kind.GLOBAL_DELETE, ("id",)),
        "nonpart|id": (Kind.NON_PARTITION, ("id",)),
        "nonpart|id,b": (Kind.NON_PARTITION, ("id", "b")),
        "custom key 2": (Kind.CUSTOM, ("id", "b")),
    }
    if case in keys:
        return KeyGenerator(*keys[case]), True
    if kind in ("part_complex", "part_simple"):
        fields, hive, encode = rest.split("|")
        return KeyGenerator(
            Kind.COMPLEX, ("id",), simple(*fields.replace("(empty)", "").split(",")),
            hive_style=hive == "hive=true", url_encode=encode == "enc=true",
        ), False  # fmt: skip
    if case in ("nonpart path", "custom empty"):
        return KeyGenerator(Kind.CUSTOM, ("id",)), False
    millis = TimestampSettings(TimestampType.EPOCHMILLISECONDS, TimeUnit.MILLISECONDS, (), "", "UTC", "yyyy/MM/dd")
    strings = TimestampSettings(TimestampType.DATE_STRING, None, (ISO,), "", "", "yyyyMMddHH")
    to_hours = replace(millis, output_format="yyyy/MM/dd HH")
    scalar = replace(millis, type=TimestampType.SCALAR)
    custom = (PartitionField("tm_long", FieldKind.TIMESTAMP), PartitionField("id"))
    return {
        "ts|date field SCALAR DAYS": timed(replace(scalar, unit=TimeUnit.DAYS), "d"),
        "ts|date field EPOCHMILLISECONDS": timed(millis, "d"),
        "ts|tm EPOCHMILLISECONDS hive enc": timed(
            replace(millis, output_format="yyyy/MM/dd HH:mm"), "tm_long", hive_style=True, url_encode=True
        ),
        "ts|ts(micros) consistent": timed(to_hours, "ts", consistent_timestamps=True),
        "ts|ts(micros) SCALAR MICROSECONDS": timed(
            replace(to_hours, type=TimestampType.SCALAR, unit=TimeUnit.MICROSECONDS), "ts"
        ),
        "ts|b=null UNIX": timed(
            replace(
                millis,
                type=TimestampType.UNIX_TIMESTAMP,
                unit=TimeUnit.SECONDS,
                output_format="yyyy-MM-dd HH:mm:ss",
            ),
            "nb",
        ),
        "ts|id=null DATE_STRING": timed(
            replace(strings, output_zone="UTC", output_format="yyyy-MM-dd", input_formats=("yyyyMMdd",)), "nid"
        ),
        "ts|MIXED string": timed(
            replace(strings, type=TimestampType.MIXED, output_format="yyyy/MM/dd", output_zone="UTC"), "offset_text"
        ),
        "ts|DATE_STRING offset default zones": timed(strings, "offset_text"),
        "ts|DATE_STRING offset zones set empty": timed(strings, "offset_text"),
        "custom|d:TIMESTAMP,id:SIMPLE": KeyGenerator(
            Kind.CUSTOM, ("id",), custom, hive_style=True, timestamp=replace(millis, output_format="yyyyMMdd")
        ),
    }[case], False  # fmt: skip


def test_a_record_of_all_types_has_the_keys_and_paths_of_hudis_classes(spark: SparkSession) -> None:
    schema = T.StructType.fromDDL(RECORD_COLUMNS)
    frame = spark.createDataFrame([(*RECORD, "2020-04-01T13:01:33.428-05:00")], schema)
    results = {result["case"]: result for result in VECTORS["class_run"]["results"]}
    assert results.pop("ts|MIXED number")["error"]  # test_columns_that_a_timestamp_type_cannot_read_are_refused
    columns = []
    for case in results:
        keygen, about_key = class_run_case(case)
        columns.append((record_key if about_key else partition_path)(schema, keygen))
    (row,) = frame.select(*columns).collect()
    expected = {
        case: result["result"] and result["result"].replace("[]", "").replace("tm=", "tm_long=")
        for case, result in results.items()
    }
    expected["complex|id null,b"] = expected["complex|id null,b"].replace("id:", "nid:")
    assert dict(zip(results, row, strict=True)) == expected


def test_partitions_of_real_tables_made_by_sql_and_by_the_custom_generator(spark: SparkSession) -> None:
    by_sql, by_custom, prefixed = VECTORS["real_tables"]
    values = {
        "part_str": "electronics", "part_int": 2023, "part_date": date(2023, 3, 10), "part_bigint": 10000000002,
        "part_decimal": Decimal("50.00"), "part_timestamp": "2023-03-10 12:30:00", "part_bool": False,
    }  # fmt: skip
    ddl = (
        "part_str string, part_int int, part_date date, part_bigint bigint, part_decimal decimal(10,2), "
        "part_timestamp string, part_bool boolean"
    )
    sql = spark.createDataFrame([tuple(values.values())], ddl)
    sql_path = partition_path(
        sql.schema, KeyGenerator(Kind.COMPLEX, ("id",), simple(*values), hive_style=True, url_encode=True)
    )
    fields = by_custom["partition_fields"]
    properties = {
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": fields,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    custom = one_row(spark, dict(zip([f.split(":")[0] for f in fields.split(",")], by_custom["values"], strict=True)))
    custom_path = partition_path(custom.schema, key_generator(properties))
    keyed = one_row(spark, {"id": "id4"})
    key = record_key(keyed.schema, KeyGenerator(Kind.COMPLEX, ("id",), prefix_single_key=True))
    assert collected([(sql, sql_path), (custom, custom_path), (keyed, key)]) == [
        by_sql["path_prefix_verified"],
        by_custom["path"],
        prefixed["record_key_in_file"],
    ]


REAL_TABLES = {
    "cow_complex_key_hive_style": {},
    "cow_url_encoded": {},
    "cow_types": {},
    "v6_cow_complexkeygen_hivestyle": {},
    "v6_cow_timestamp_keygen": {
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.timezone": "UTC",
    },
}


def test_keys_and_paths_in_real_tables_are_made_again(
    spark: SparkSession, fixture_table: Callable[[str], Path]
) -> None:
    frames = []
    for name, missing in REAL_TABLES.items():
        folder = fixture_table(name)
        properties = parse_properties((folder / ".hoodie" / "hoodie.properties").read_bytes(), "hoodie.properties")
        keygen = key_generator({**properties, **missing})
        files = sorted(str(file) for file in folder.rglob("*.parquet") if ".hoodie" not in str(file))
        frame = spark.read.parquet(*files)
        right = record_key(frame.schema, keygen).eqNullSafe(F.col("_hoodie_record_key"))
        right &= partition_path(frame.schema, keygen).eqNullSafe(F.col("_hoodie_partition_path"))
        frames.append(frame.select(F.lit(name).alias("name"), right.alias("right")))
    counts = reduce(DataFrame.unionAll, frames).groupBy("name").agg(F.count("*").alias("n"), F.min("right").alias("ok"))
    found = {row.name: (row.n > 0, row.ok) for row in counts.collect()}
    assert found == dict.fromkeys(REAL_TABLES, (True, True))


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


@pytest.mark.nightly
def test_times_are_printed_as_joda_prints_them_whatever_the_session(spark: SparkSession) -> None:
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
    frame = spark.createDataFrame([(millis,) for millis in INSTANTS], "p bigint")
    paths = [partition_path(frame.schema, timed(each)).alias(f"v{at}") for at, each in enumerate(settings)]
    for mode in in_modes(spark):
        found = {
            (row.p, each.output_zone, each.output_format): path
            for row in frame.select("p", *paths).collect()
            for each, path in zip(settings, list(row)[1:], strict=True)
        }
        assert found == expected, mode


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


def test_strings_are_read_as_joda_reads_them_whatever_the_session(spark: SparkSession) -> None:
    settings = [
        TimestampSettings(TimestampType.DATE_STRING, None, formats, zone, "UTC", TO_MILLIS)
        for formats in INPUTS
        for zone in ("UTC", "America/New_York")
    ]
    expected = {
        text: [joda_parsed(spark, text, each.input_formats, each.input_zone) for each in settings] for text in TEXTS
    }
    frame = spark.createDataFrame([(text,) for text in TEXTS], "p string")
    paths = [partition_path(frame.schema, timed(each)).alias(f"v{at}") for at, each in enumerate(settings)]
    for mode in in_modes(spark):
        rows = frame.select("p", *paths).collect()
        assert {row.p: list(row)[1:] for row in rows} == expected, mode


def test_a_string_that_no_format_takes_has_no_partition(spark: SparkSession) -> None:
    settings = TimestampSettings(TimestampType.DATE_STRING, None, ("yyyyMMdd",), "UTC", "UTC", "yyyy")
    frame = spark.createDataFrame([("20200401",), ("April",), (None,), ("",)], "p string")
    rows = frame.select("p", partition_path(frame.schema, timed(settings)).isNull().alias("bad")).collect()
    assert {row.p: row.bad for row in rows} == {"20200401": False, "April": True, None: False, "": True}


def test_numbers_of_any_type_and_size_make_a_time_or_no_partition(spark: SparkSession) -> None:
    values = {
        "i": ("int", 1_705_485_600, "2024/01/17/10"), "l": ("bigint", 2**62, None),
        "d": ("double", -1.9, "1969/12/31/23"), "n": ("double", float("nan"), "1970/01/01/00"),
        "big": ("double", 1e300, None), "f": ("float", 86_400.5, "1970/01/02/00"),
        "dec": ("decimal(20,3)", Decimal("-0.999"), "1970/01/01/00"), "huge": ("decimal(30,0)", Decimal(10**25), None),
        "day": ("date", date(1970, 1, 2), "1970/01/01/00"), "null": ("smallint", None, "1970/01/01/00"),
    }  # fmt: skip
    ddl = ", ".join(f"{name} {kind}" for name, (kind, _, _) in values.items())
    frame = spark.createDataFrame([tuple(value for _, value, _ in values.values())], ddl)
    settings = TimestampSettings(
        TimestampType.UNIX_TIMESTAMP, TimeUnit.SECONDS, (), "", "UTC", "yyyy/MM/dd/HH"
    )  # fmt: skip
    for mode in in_modes(spark):
        (row,) = frame.select(*[partition_path(frame.schema, timed(settings, name)) for name in values]).collect()
        assert list(row) == [path for _, _, path in values.values()], mode


def test_units_are_truncated_toward_zero(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(-1, -1_999_999, 25)], "a bigint, b bigint, c bigint")
    output = "yyyy-MM-dd'T'HH:mm:ss.SSS"
    paths = [
        partition_path(
            frame.schema, timed(TimestampSettings(TimestampType.SCALAR, TimeUnit[unit], (), "", "UTC", output), name)
        )
        for name, unit in [("a", "MICROSECONDS"), ("b", "NANOSECONDS"), ("c", "MINUTES")]
    ]
    (row,) = frame.select(*paths).collect()
    assert list(row) == ["1970-01-01T00:00:00.000", "1969-12-31T23:59:59.999", "1970-01-01T00:25:00.000"]


def test_consistent_timestamps_are_those_of_java_in_the_zone_of_the_options(spark: SparkSession) -> None:
    instants = [TS, TS.replace(microsecond=120_999), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)]
    frame = spark.createDataFrame(list(enumerate(instants)), "at int, p timestamp")
    keygen = KeyGenerator(
        Kind.SIMPLE, ("p",), simple("p"), url_encode=True, consistent_timestamps=True, zone="America/New_York"
    )
    with session(spark, spark__sql__session__timeZone="Asia/Tokyo"):
        key, path = record_key(frame.schema, keygen), partition_path(frame.schema, keygen)
        rows = sorted(frame.select("at", key.alias("k"), path.alias("p")).collect())
    assert zoneinfo.ZoneInfo("America/New_York").utcoffset(TS.replace(tzinfo=None)) is not None
    assert [row.k for row in rows] == ["2023-03-10 07:30:00.0", "2023-03-10 07:30:00.12", "1969-12-31 19:00:00.0"]
    assert rows[0].p == "2023-03-10 07%3A30%3A00.0"


def test_a_local_timestamp_is_its_microseconds(spark: SparkSession) -> None:
    texts = ["2023-03-10 12:30:00.000001", "2024-03-10 02:30:00", "1969-12-31 23:59:59.999999", "+12020-01-01 00:00:00"]
    frame = spark.range(1).select(*[F.lit(text).cast("timestamp_ntz").alias(f"p{at}") for at, text in enumerate(texts)])
    keys = [record_key(frame.schema, KeyGenerator(Kind.SIMPLE, (name,))) for name in frame.columns]
    for mode in in_modes(spark):
        (row,) = frame.select(*keys).collect()
        assert list(row) == ["1678451400000001", "1710037800000000", "-1", "317147356800000000"], mode


def test_odd_column_names_are_found(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, ("x",))], "`a ``b` int, `s t` struct<`c d`: string>")
    keygen = KeyGenerator(Kind.COMPLEX, ("a `b", "s t.c d"))
    (row,) = frame.select(record_key(frame.schema, keygen), ordering_value(frame.schema, "s t.c d")).collect()
    assert tuple(row) == ("a `b:1,s t.c d:x", "x")


def test_a_nested_value_below_a_null_is_null(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None, 5)], "st struct<x: string>, b int")
    keygen = KeyGenerator(Kind.COMPLEX, ("st.x", "b"), simple("st.x"))
    (row,) = frame.select(
        record_key(frame.schema, keygen), partition_path(frame.schema, keygen), ordering_value(frame.schema, "b")
    ).collect()
    assert tuple(row) == ("st.x:__null__,b:5", "__HIVE_DEFAULT_PARTITION__", 5)


def test_all_missing_columns_are_named_at_once(spark: SparkSession) -> None:
    schema = T.StructType.fromDDL("ID int, city string, st struct<x: int>")
    keygen = KeyGenerator(Kind.COMPLEX, ("id", "st.y"), simple("city", "day"))
    assert missing_columns(schema, keygen, ("st.x", "ts")) == [
        "record key column 'id' is missing (there is 'ID')",
        "record key column 'st.y' is missing (there is 'st')",
        "partition column 'day' is missing",
        "ordering column 'ts' is missing",
    ]
    with pytest.raises(SchemaMismatch, match="'id' is missing"):
        record_key(schema, keygen)


def test_columns_without_a_text_form_are_refused(spark: SparkSession) -> None:
    schema = T.StructType.fromDDL("a array<int>, m map<string, int>, s struct<x: int>")
    for name in schema.names:
        with pytest.raises(SchemaMismatch, match=f"column '{name}' is"):
            record_key(schema, KeyGenerator(Kind.SIMPLE, (name,)))
        with pytest.raises(SchemaMismatch, match=f"column '{name}' is"):
            ordering_value(schema, name)


def test_columns_that_a_timestamp_type_cannot_read_are_refused(spark: SparkSession) -> None:
    schema = T.StructType.fromDDL("n int, s string, b boolean")
    strings = TimestampSettings(TimestampType.MIXED, None, ("yyyy",), "", "", "yyyy")
    numbers = TimestampSettings(TimestampType.UNIX_TIMESTAMP, TimeUnit.SECONDS, (), "", "", "yyyy")
    for settings, name in [(strings, "n"), (numbers, "s"), (numbers, "b")]:
        with pytest.raises(InvalidInput, match=f"partition column '{name}' is .*{settings.type}"):
            partition_path(schema, timed(settings, name))


def test_a_field_without_time_settings_is_refused(spark: SparkSession) -> None:
    schema = T.StructType.fromDDL("p int")
    for kind in (FieldKind.TIMESTAMP, FieldKind.UNKNOWN):
        with pytest.raises(InvalidOption, match="partition column 'p'"):
            partition_path(schema, KeyGenerator(Kind.CUSTOM, ("id",), (PartitionField("p", kind),)))


@pytest.mark.parametrize(("options", "key"), [
    ({}, "2023-03-10 12:30:00.0"), ({"hoodie.keygen.timebased.timezone": "GMT+1:00"}, "2023-03-10 13:30:00.0"),
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
        table = hoodie.open_table(spark, path)
        frame = spark.createDataFrame([(1_678_451_400,)], "s bigint").selectExpr("timestamp_seconds(s) at", "1L v")
        for near in ("1000000", "0"):
            result = table.upsert(frame, options={"hoodie.spark.driver.max.batch.bytes": near})
            assert (result.inserted, result.updated) == (0, 1), result.route
        table.upsert(rows)
        frame.createOrReplaceTempView("late")
        spark.sql(f"CREATE TABLE stamped (at timestamp, v bigint) USING hudi LOCATION '{path}'")
        hoodie.sql(spark, "MERGE INTO stamped t USING late s ON t.at = s.at WHEN MATCHED THEN UPDATE SET *")
        assert [row[0] for row in table.snapshot().select("_hoodie_record_key").collect()] == [key]
    finally:
        hoodie.sql(spark, "DROP TABLE IF EXISTS stamped")
        spark.conf.set("spark.sql.session.timeZone", before)
        monkeypatch.undo()
        time.tzset()
