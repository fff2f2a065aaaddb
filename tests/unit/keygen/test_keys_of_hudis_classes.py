"""Keys and paths of a record of all types and of real tables, against those of Hudi's own classes."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.keygen import TimestampType, TimeUnit
from hoodie.errors import SchemaMismatch
from hoodie.formats.java.properties import parse_properties
from hoodie.keygen.arrow_keys import RowKeys, partition_path, record_key
from hoodie.keygen.keygen import FieldKind, KeyGenerator, Kind, PartitionField, key_generator
from hoodie.keygen.timebased import TimestampSettings

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "keygen.json").read_text())
ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSZ"


def simple(*fields: str) -> tuple[PartitionField, ...]:
    return tuple(PartitionField(name) for name in fields)


def timed(settings: TimestampSettings, name: str = "p", **more: Any) -> KeyGenerator:
    return KeyGenerator(
        Kind.TIMESTAMP, ("id",), (PartitionField(name, FieldKind.TIMESTAMP),), timestamp=settings, **more
    )


TS = datetime(2023, 3, 10, 12, 30, tzinfo=UTC)
RECORD = pa.table({
    "id": ["k1"], "a": [""], "b": pa.array([7], pa.int32()), "d": [date(2023, 3, 10)],
    "ts": pa.array([TS], pa.timestamp("us", "UTC")),
    "tm": pa.array([TS.replace(microsecond=123_000)], pa.timestamp("us", "UTC")), "tm_long": [1678451400123],
    "dec": pa.array([Decimal("50.00")], pa.decimal128(10, 2)), "db": pa.array([Decimal("1e-7")], pa.decimal128(10, 7)),
    "bin": [b"\xca\xfe\x00"], "dbl": [10000000.0], "flt": pa.array([1.1], pa.float32()), "bo": [True],
    "st": [{"x": "n"}], "nb": pa.array([None], pa.int32()), "nid": pa.array([None], pa.string()),
    "offset_text": ["2020-04-01T13:01:33.428-05:00"],
})  # fmt: skip


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


def test_a_record_of_all_types_has_the_keys_and_paths_of_hudis_classes() -> None:
    results = {result["case"]: result for result in VECTORS["class_run"]["results"]}
    assert results.pop("ts|MIXED number")["error"]  # columns that a timestamp type cannot read are refused
    keys = {}
    for case in results:
        keygen, about_key = class_run_case(case)
        keys[case] = (record_key if about_key else partition_path)(RECORD, keygen)[0].as_py()
    expected = {
        case: result["result"] and result["result"].replace("[]", "").replace("tm=", "tm_long=")
        for case, result in results.items()
    }
    expected["complex|id null,b"] = expected["complex|id null,b"].replace("id:", "nid:")
    assert keys == expected


def test_partitions_of_real_tables_made_by_sql_and_by_the_custom_generator() -> None:
    by_sql, by_custom, prefixed = VECTORS["real_tables"]
    values = {
        "part_str": "electronics", "part_int": 2023, "part_date": date(2023, 3, 10), "part_bigint": 10000000002,
        "part_decimal": Decimal("50.00"), "part_timestamp": "2023-03-10 12:30:00", "part_bool": False,
    }  # fmt: skip
    sql = KeyGenerator(Kind.COMPLEX, ("id",), simple(*values), hive_style=True, url_encode=True)
    rows = pa.table({name: [value] for name, value in values.items()})
    assert partition_path(rows, sql).to_pylist() == [by_sql["path_prefix_verified"]]
    fields = by_custom["partition_fields"]
    properties = {
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": fields,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    custom = dict(zip([field.split(":")[0] for field in fields.split(",")], by_custom["values"], strict=True))
    rows = pa.table({name: [value] for name, value in custom.items()})
    assert partition_path(rows, key_generator(properties)).to_pylist() == [by_custom["path"]]
    key = record_key(pa.table({"id": ["id4"]}), KeyGenerator(Kind.COMPLEX, ("id",), prefix_single_key=True))
    assert key.to_pylist() == [prefixed["record_key_in_file"]]


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


def test_keys_and_paths_in_real_tables_are_made_again(fixture_table: Callable[[str], Path]) -> None:
    for name, missing in REAL_TABLES.items():
        folder = fixture_table(name)
        properties = parse_properties((folder / ".hoodie" / "hoodie.properties").read_bytes(), "hoodie.properties")
        keygen = key_generator({**properties, **missing})
        files = sorted(file for file in folder.rglob("*.parquet") if ".hoodie" not in str(file))
        assert files, name
        for file in files:
            rows = pq.ParquetFile(file).read()
            assert record_key(rows, keygen).to_pylist() == rows["_hoodie_record_key"].to_pylist(), name
            assert partition_path(rows, keygen).to_pylist() == rows["_hoodie_partition_path"].to_pylist(), name


def test_units_are_truncated_toward_zero() -> None:
    output = "yyyy-MM-dd'T'HH:mm:ss.SSS"
    for unit, value, path in (
        ("MICROSECONDS", -1, "1970-01-01T00:00:00.000"),
        ("NANOSECONDS", -1_999_999, "1969-12-31T23:59:59.999"),
        ("MINUTES", 25, "1970-01-01T00:25:00.000"),
    ):
        settings = TimestampSettings(TimestampType.SCALAR, TimeUnit[unit], (), "", "UTC", output)
        assert partition_path(pa.table({"p": [value]}), timed(settings)).to_pylist() == [path]


def test_a_timestamp_is_its_microseconds_whatever_its_zone() -> None:
    numbers = [1678451400000001, 1710037800000000, -1, 317147356800000000]
    for zone in (None, "UTC", "America/New_York"):
        rows = pa.table({"p": pa.array(numbers, pa.timestamp("us", zone))})
        assert record_key(rows, KeyGenerator(Kind.SIMPLE, ("p",))).to_pylist() == [str(number) for number in numbers]


def test_consistent_timestamps_are_escaped_in_paths() -> None:
    keygen = KeyGenerator(
        Kind.SIMPLE, ("ts",), simple("ts"), url_encode=True, consistent_timestamps=True, zone="America/New_York"
    )
    assert partition_path(RECORD, keygen).to_pylist() == ["2023-03-10 07%3A30%3A00.0"]


def test_odd_column_names_are_found() -> None:
    rows = pa.table({"a `b": [1], "s t": [{"c d": "x"}]})
    key = record_key(rows, KeyGenerator(Kind.COMPLEX, ("a `b", "s t.c d")))
    assert key.to_pylist() == ["a `b:1,s t.c d:x"]


def test_columns_without_a_text_form_are_refused_even_without_rows() -> None:
    kinds = {"a": pa.list_(pa.int32()), "m": pa.map_(pa.string(), pa.int32()), "s": pa.struct([("x", pa.int32())])}
    rows = pa.schema(kinds.items()).empty_table()
    for name in kinds:
        with pytest.raises(SchemaMismatch, match=f"column '{name}' is"):
            RowKeys((), KeyGenerator(Kind.SIMPLE, (name,)))(rows)
