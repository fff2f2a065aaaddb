"""Keys and partition paths that Spark makes of rows and those made of the same rows in Arrow: the same strings."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hoodie.config.keygen import TimestampType, TimeUnit
from hoodie.keygen import arrow_keys
from hoodie.keygen.keygen import FieldKind, KeyGenerator, Kind, PartitionField
from hoodie.keygen.timebased import TimestampSettings
from hoodie.spark import record_keys
from hoodie.spark.local_frame import local_frame
from hoodie.spark.types import to_spark

pytestmark = pytest.mark.nightly


UTC = dt.UTC
STAMPS = [
    dt.datetime(1, 1, 3), dt.datetime(1883, 11, 18, 17), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 12, 30, 1, 123_456), dt.datetime(2024, 11, 3, 5, 59),
    dt.datetime(9999, 12, 30), None,
]  # fmt: skip
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "s": (pa.string(), ["", "a", "a/b", "%2F", "é", "x=y:z", None, "日本"]),
    "n": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 7, None, 42]),
    "i": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31), 7, None, 42]),
    "b": (pa.bool_(), [True, False, None] * 2 + [True, False]),
    "f": (pa.float32(), [0.0, -0.0, 1.5, 1e10, 1.1e-5, float("nan"), float("-inf"), None]),
    "d": (pa.float64(), [0.1, 1e7, 9999999.0, 1e-3, 123456789.125, 5e-324, float("inf"), None]),
    "dec": (pa.decimal128(24, 12), [None, *(Decimal(n).scaleb(-12) for n in (0, 1, -12, 999_999, 10**6, 10**13, 5))]),
    "y": (pa.binary(), [b"", b"\x00", b"\xca\xfe", b"a", None, b"\xff", b"1", b"2"]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31), None] * 2),
    "at": (pa.timestamp("us", "UTC"), [each and each.replace(tzinfo=UTC) for each in STAMPS]),
    "local": (pa.timestamp("us"), STAMPS),
}
UNITS = [
    (TimestampType.UNIX_TIMESTAMP, TimeUnit.SECONDS),
    (TimestampType.EPOCHMILLISECONDS, TimeUnit.MILLISECONDS),
    (TimestampType.SCALAR, TimeUnit.MICROSECONDS),
    (TimestampType.SCALAR, TimeUnit.DAYS),
]
OUTPUTS = ["yyyy/MM/dd", "yyyy-MM-dd'T'HH:mm:ss.SSSZZ", "xxxx-'W'ww-e EEE dd MMM yy D", "hh a KK kk C Y"]
TEXTS = [
    "2020-04-01T13:01:33.428-05:00", "2020-04-01T13:01:33.428+0530", "2020-4-1t3:1:3.42+05",
    "2020-02-30T00:00:00.000Z", "2020-04-01", "2020-04-01 23:30:00", "2020-04-01 24:00:00", "2024-03-10 02:30:00",
    "2024-11-03 01:30:00", "20200401", "2020041", "12 January 2021", "03 feb 2021", "04/01/2020 12:05 AM",
    "4/1/2020 11:05 PM", "04/01/2020 13:05 PM", "",
    "1969-12-31 23:59:59", "12020-01-01", "20-01-01", None,
]  # fmt: skip
INPUTS = [
    ("yyyy-MM-dd'T'HH:mm:ss.SSSZ",), ("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd"), ("yyyyMMdd",), ("dd MMM yyyy",),
    ("MM/dd/yyyy hh:mm a",),
]  # fmt: skip


def compare(spark: SparkSession, rows: pa.Table, cases: dict[str, tuple[KeyGenerator, bool]]) -> None:
    """One job for all cases; a case is a key generator, and whether its key (else its path) is looked at."""
    frame = local_frame(spark, rows, to_spark(rows.schema)).coalesce(1)
    columns = []
    for at, (keygen, about_key) in enumerate(cases.values()):
        made = (record_keys.record_key if about_key else record_keys.partition_path)(frame.schema, keygen)
        columns.append(made.alias(f"c{at}"))
    by_spark = frame.select(*columns).toArrow()
    for at, (name, (keygen, about_key)) in enumerate(cases.items()):
        made = (arrow_keys.record_key if about_key else arrow_keys.partition_path)(rows, keygen)
        assert made.to_pylist() == by_spark.column(at).to_pylist(), name


def test_keys_and_paths_of_all_types_are_those_of_spark(spark: SparkSession) -> None:
    chosen = random.Random(5)
    rows = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
    cases: dict[str, tuple[KeyGenerator, bool]] = {}
    for name in COLUMNS:
        fields = (PartitionField(name),)
        for hive, encode, consistent in ((False, False, False), (True, True, False), (False, True, True)):
            keygen = KeyGenerator(
                Kind.COMPLEX, (name,), fields, hive_style=hive, url_encode=encode, consistent_timestamps=consistent
            )
            cases[f"{name} path {hive} {encode} {consistent}"] = (keygen, False)
        cases[f"{name} key"] = (
            KeyGenerator(Kind.SIMPLE, (name,), consistent_timestamps=True, zone="America/New_York"),
            True,
        )
        cases[f"{name} millis"] = (KeyGenerator(Kind.GLOBAL_DELETE, (name,), millis=(name,)), True)
    for at in range(8):
        names = tuple(chosen.sample(list(COLUMNS), 3))
        cases[f"compound {at} {names}"] = (KeyGenerator(Kind.COMPLEX, names), True)
    compare(spark, rows, cases)


def test_time_based_paths_are_those_of_spark(spark: SparkSession) -> None:
    rows = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
    cases: dict[str, tuple[KeyGenerator, bool]] = {}
    numbers = ("n", "i", "d", "dec", "day", "at", "local")
    for at, name in enumerate(numbers):
        for kind, unit in UNITS:
            for zone in ("", "America/New_York", "+05:30"):
                output = OUTPUTS[(at + len(cases)) % len(OUTPUTS)]
                settings = TimestampSettings(kind, unit, (), "", zone, output)
                field = PartitionField(name, FieldKind.TIMESTAMP)
                keygen = KeyGenerator(Kind.CUSTOM, ("s",), (field,), timestamp=settings, url_encode=at % 2 == 0)
                cases[f"{name} {kind} {unit} {zone} {output}"] = (keygen, False)
    compare(spark, rows, cases)


def test_texts_are_read_as_times_as_spark_reads_them(spark: SparkSession) -> None:
    rows = pa.table({"p": pa.array(TEXTS, pa.string())})
    cases: dict[str, tuple[KeyGenerator, bool]] = {}
    for formats in INPUTS:
        for into, out in (("", ""), ("UTC", "America/New_York"), ("America/New_York", "UTC"), ("+05:30", "")):
            settings = TimestampSettings(
                TimestampType.DATE_STRING, None, formats, into, out, "yyyy-MM-dd HH:mm:ss.SSSZ"
            )
            field = PartitionField("p", FieldKind.TIMESTAMP)
            cases[f"{formats} {into} {out}"] = (
                KeyGenerator(Kind.TIMESTAMP, ("p",), (field,), timestamp=settings),
                False,
            )
    compare(spark, rows, cases)
