"""Key generators from properties; partition paths as text; Joda patterns taken apart."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.config.keygen import TimestampType, TimeUnit
from hoodie.errors import InvalidOption
from hoodie.formats.java.properties import parse_properties
from hoodie.keygen import joda
from hoodie.keygen.keygen import (
    FieldKind,
    KeyGenerator,
    Kind,
    PartitionField,
    escape_path,
    following_stored_keys,
    key_generator,
    partition_values,
    stored_key_generator,
    unescape_path,
)
from hoodie.keygen.timebased import TimestampSettings

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "keygen.json").read_text())
KEY = "hoodie.datasource.write.recordkey.field"
PARTITION = "hoodie.datasource.write.partitionpath.field"
CLASS = "hoodie.datasource.write.keygenerator.class"
TYPE = "hoodie.datasource.write.keygenerator.type"
PACKAGE = "org.apache.hudi.keygen."
TIME = "hoodie.keygen.timebased."
OLD_TIME = "hoodie.deltastreamer.keygen.timebased."
TIMED = {KEY: "id", PARTITION: "ts", TYPE: "TIMESTAMP", TIME + "output.dateformat": "yyyy/MM/dd"}


@pytest.mark.parametrize(
    ("keys", "partitions", "kind"),
    [
        ("id", "", Kind.NON_PARTITION),
        ("id,b", "", Kind.NON_PARTITION),
        ("id", "city", Kind.SIMPLE),
        ("id,b", "city", Kind.COMPLEX),
        ("id", "city,day", Kind.COMPLEX),
        ("id", "city:SIMPLE", Kind.CUSTOM),
    ],
)
def test_the_generator_is_inferred_from_the_columns(keys: str, partitions: str, kind: Kind) -> None:
    keygen = key_generator({KEY: keys, PARTITION: partitions})
    assert keygen.kind is kind
    assert keygen.record_keys == tuple(keys.split(","))
    assert [field.name for field in keygen.partition_fields] == [p.split(":")[0] for p in partitions.split(",") if p]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SimpleKeyGenerator", Kind.SIMPLE),
        ("SimpleAvroKeyGenerator", Kind.SIMPLE),
        ("ComplexKeyGenerator", Kind.COMPLEX),
        ("NonpartitionedKeyGenerator", Kind.NON_PARTITION),
        ("GlobalDeleteKeyGenerator", Kind.GLOBAL_DELETE),
    ],
)
def test_a_class_names_the_generator(name: str, kind: Kind) -> None:
    table_has = {"hoodie.table.keygenerator.class": PACKAGE + name, "hoodie.table.recordkey.fields": " id "}
    keygen = key_generator({**table_has, "hoodie.table.partition.fields": "city"})
    assert (keygen.kind, keygen.record_keys) == (kind, ("id",))
    assert bool(keygen.partition_fields) == (kind in (Kind.SIMPLE, Kind.COMPLEX))


def test_a_type_names_the_generator() -> None:
    assert key_generator({KEY: "id", PARTITION: "city", "hoodie.table.keygenerator.type": "complex_avro"}).kind is (
        Kind.COMPLEX
    )


def test_switches_are_read() -> None:
    keygen = key_generator({
        KEY: "id", PARTITION: "city", TYPE: "COMPLEX", "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "TRUE", "hoodie.write.complex.keygen.new.encoding": "false",
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true",
    })  # fmt: skip
    assert keygen == KeyGenerator(
        Kind.COMPLEX, ("id",), (PartitionField("city"),), True, True, True, None, consistent_timestamps=True
    )


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({TYPE: "GLOBAL_DELETE"}, "no record key: set hoodie.datasource.write.recordkey.field"),
        ({KEY: "id,b", PARTITION: "city", TYPE: "SIMPLE"}, "SIMPLE key generator takes one column; use COMPLEX"),
        ({KEY: "id", PARTITION: "city,day", TYPE: "SIMPLE"}, "SIMPLE key generator takes one column"),
        ({KEY: "id", TYPE: "SIMPLE"}, "NON_PARTITION for none"),
        ({KEY: "id", CLASS: "com.example.MyKeys"}, "expected org.apache.hudi.keygen. and one of SimpleKeyGenerator"),
        ({KEY: "id", TYPE: "EASY"}, "'EASY': expected one of SIMPLE, COMPLEX"),
        ({KEY: "id", TYPE: "COMPLEX", CLASS: PACKAGE + "SimpleKeyGenerator"}, "contradicts"),
        ({KEY: "id", "hoodie.table.recordkey.fields": "uuid"}, "recordkey.field='id' contradicts .*'uuid'"),
        ({KEY: "id", PARTITION: "a", "hoodie.table.partition.fields": "b"}, "contradicts"),
        ({KEY: "id", PARTITION: "city", TYPE: "CUSTOM"}, "needs city:SIMPLE or city:TIMESTAMP"),
        ({KEY: "id", PARTITION: "city:SOME"}, "'city:SOME'.*expected column:SIMPLE"),
        (TIMED, "timestamp.type is not set.*one of UNIX_TIMESTAMP"),
        ({**TIMED, TIME + "timestamp.type": "SECONDS"}, "timestamp.type='SECONDS': expected one of UNIX_TIMESTAMP"),
        ({**TIMED, TIME + "timestamp.type": "DATE_STRING"}, "input.dateformat is not set: DATE_STRING needs"),
        ({**TIMED, TIME + "timestamp.type": "MIXED"}, "input.dateformat is not set: MIXED needs"),
        ({**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "timestamp.scalar.time.unit": "WEEKS"}, "NANOSECONDS"),
        ({**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "timezone": "Mars/Base"}, "'Mars/Base': expected a zone"),
        ({**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "output.timezone": "UTC+8"}, "'UTC.8': expected a zone"),
        ({**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "output.timezone": "GMT+25:00"}, "expected a zone"),
        ({**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "output.dateformat": ""}, "output.dateformat is not set"),
        ({**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "output.dateformat": "yyyy z"}, "'z' is not supported"),
        ({**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "output.dateformat": "yyT"}, "'T' is not a pattern"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_options_is_said(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        key_generator(properties)


def test_table_and_option_may_say_the_same_in_other_words() -> None:
    keygen = key_generator({
        KEY: "id", "hoodie.table.recordkey.fields": "id",
        PARTITION: "city:SIMPLE,ts:timestamp", "hoodie.table.partition.fields": "city,ts",
        CLASS: PACKAGE + "CustomAvroKeyGenerator", "hoodie.table.keygenerator.class": PACKAGE + "CustomKeyGenerator",
        TIME + "timestamp.type": "UNIX_TIMESTAMP", TIME + "output.dateformat": "yyyy",
    })  # fmt: skip
    assert keygen.partition_fields == (PartitionField("city"), PartitionField("ts", FieldKind.TIMESTAMP))
    assert keygen.timestamp == TimestampSettings(
        TimestampType.UNIX_TIMESTAMP, TimeUnit.SECONDS, (), "", "", "yyyy"
    )  # fmt: skip


@pytest.mark.parametrize("prefix", [TIME, OLD_TIME])
def test_time_settings_are_read_under_both_names(prefix: str) -> None:
    keygen = key_generator({
        KEY: "id", PARTITION: "ts", CLASS: PACKAGE + "TimestampBasedKeyGenerator",
        prefix + "timestamp.type": "DATE_STRING", prefix + "input.dateformat": "yyyyMMdd; yyyy-MM-dd HH:mm:ss",
        prefix + "input.dateformat.list.delimiter.regex": ";", prefix + "input.timezone": "Asia/Kolkata",
        prefix + "output.timezone": "GMT-3:30", prefix + "output.dateformat": "yyyy/MM/dd",
    })  # fmt: skip
    assert keygen.partition_fields == (PartitionField("ts", FieldKind.TIMESTAMP),)
    assert keygen.timestamp == TimestampSettings(
        TimestampType.DATE_STRING, None, ("yyyyMMdd", "yyyy-MM-dd HH:mm:ss"), "Asia/Kolkata", "-03:30", "yyyy/MM/dd"
    )


def test_microseconds_since_the_epoch_are_a_type_of_hudi_1() -> None:
    keygen = key_generator({**TIMED, TIME + "timestamp.type": "EPOCHMICROSECONDS"})
    assert keygen.timestamp is not None
    assert keygen.timestamp.unit is TimeUnit.MICROSECONDS


def test_one_zone_for_both_wins_and_may_be_empty() -> None:
    times = {**TIMED, TIME + "timestamp.type": "SCALAR", TIME + "output.timezone": "Asia/Kolkata"}
    for zone, expected in [("GMT", "UTC"), ("Europe/Paris", "Europe/Paris"), ("GMT+0800", "+08:00"), ("", "")]:
        settings = key_generator({**times, TIME + "timezone": zone}).timestamp
        assert (settings.input_zone, settings.output_zone) == (expected, expected)


def test_a_real_tables_properties_are_enough_to_read_and_not_to_write() -> None:
    file = Path(__file__).parents[2] / "fixtures" / "properties" / "v6_timestamp_keygen.properties"
    properties = parse_properties(file.read_bytes(), file.name)
    assert stored_key_generator(properties).timestamp is None
    with pytest.raises(InvalidOption, match="UNIX_TIMESTAMP"):
        key_generator(properties)
    complete = key_generator({**properties, TIME + "timestamp.type": "DATE_STRING"})
    assert complete.timestamp is not None
    assert complete.timestamp.input_formats == ("yyyy-MM-dd'T'HH:mm:ss.SSSZ",)


def test_custom_fields_of_a_stored_table_may_be_untyped() -> None:
    stored = stored_key_generator({KEY: "id", PARTITION: "a,b", TYPE: "CUSTOM"})
    assert {field.kind for field in stored.partition_fields} == {FieldKind.UNKNOWN}
    assert partition_values("x/y", stored) == (None, None)


def test_single_complex_keys_follow_those_of_the_table() -> None:
    plain = KeyGenerator(Kind.COMPLEX, ("id",))
    prefixed = following_stored_keys(plain, ["id:1", "id:2"])
    assert prefixed.writes_pairs
    assert following_stored_keys(prefixed, ["1"]) == plain
    assert following_stored_keys(plain, ["id:1", "2"]) == plain
    assert following_stored_keys(prefixed, []) == prefixed
    assert following_stored_keys(KeyGenerator(Kind.SIMPLE, ("id",)), ["id:1"]).prefix_single_key is False


def test_pairs_are_written_for_compound_keys_and_global_deletes() -> None:
    assert KeyGenerator(Kind.NON_PARTITION, ("a", "b")).writes_pairs
    assert KeyGenerator(Kind.GLOBAL_DELETE, ("a",)).writes_pairs
    assert not KeyGenerator(Kind.CUSTOM, ("a",), prefix_single_key=True).writes_pairs


def vector_keygen(vector: dict[str, Any]) -> KeyGenerator:
    fields = tuple(PartitionField(name) for name in vector["partition_fields"])
    return KeyGenerator(
        Kind.COMPLEX, ("id",), fields, hive_style=vector["hive_style"], url_encode=vector["url_encode"]
    )  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS["partition_paths"], ids=lambda vector: vector["path"])
def test_values_come_back_from_the_paths_of_hudi(vector: dict[str, Any]) -> None:
    values = [None if value in (None, "") else str(value) for value in vector["row"].values()]
    assert partition_values(vector["path"], vector_keygen(vector)) == tuple(values)


def test_paths_that_do_not_fit_say_nothing() -> None:
    two = KeyGenerator(Kind.COMPLEX, ("id",), (PartitionField("a"), PartitionField("b")))
    hive = KeyGenerator(Kind.COMPLEX, ("id",), two.partition_fields, hive_style=True)
    assert partition_values("x/y/z", two) == (None, None)
    for path in ("a=1", "b=1/a=2", "1/2", ""):
        assert partition_values(path, hive) == (None, None)
    assert partition_values("a=2024/01/17/b=x=y", hive) == ("2024/01/17", "x=y")


def test_a_formatted_time_is_not_the_columns_value() -> None:
    custom = KeyGenerator(
        Kind.CUSTOM, ("id",), (PartitionField("c"), PartitionField("t", FieldKind.TIMESTAMP)), hive_style=True
    )
    assert partition_values("c=CN/t=2025-06-05", custom) == ("CN", None)


def test_values_that_sql_escaped_come_back_though_the_table_does_not_say_so() -> None:
    (by_sql, _, _) = VECTORS["real_tables"]
    names = [part.split("=")[0] for part in by_sql["path_prefix_verified"].split("/")]
    keygen = KeyGenerator(Kind.COMPLEX, ("id",), tuple(map(PartitionField, names)), hive_style=True)
    assert partition_values(by_sql["path_prefix_verified"], keygen)[names.index("part_timestamp")] == (
        "2023-03-10 12:30:00"
    )


def test_escaped_values_are_those_of_hudi() -> None:
    for vector in VECTORS["partition_paths"]:
        values = list(vector["row"].values())
        if vector["url_encode"] and len(values) == 1 and values[0]:
            prefix = f"{vector['partition_fields'][0]}=" if vector["hive_style"] else ""
            assert prefix + escape_path(values[0]) == vector["path"]
    assert escape_path("%2F\x00\x1f\x7f:\u0080 }|<>") == "%252F%00%1F%7F%3A\u0080 }|<>"


@given(st.text(st.characters() | st.sampled_from("%/=:2F0aA")))
def test_escaping_is_undone(value: str) -> None:
    assert unescape_path(escape_path(value)) == value
    assert not set(escape_path(value)) & set("/=:\x00\x7f\n")


def test_only_whole_escapes_are_undone() -> None:
    assert unescape_path("a%2Fb%3ac%%2x%2") == "a/b:c%%2x%2"


@pytest.mark.parametrize("vector", [v for v in VECTORS["timestamp_based"] if v["type"] == "DATE_STRING"], ids=str)
def test_hudis_strings_match_their_patterns(vector: dict[str, Any]) -> None:
    parsings = [joda.parsing(pattern) for pattern in vector["input_format"].split(",")]
    found = next(match for each in parsings if (match := re.fullmatch(each.regex, vector["value"], re.ASCII)))
    assert found.group(1) in ("2020", "2023")


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("yyyyMMdd", ["y4", "M2", "d2"]),
        ("yyyy-MM", ["y4", "-", "M2"]),
        ("HH'T'mm", ["H2", "T", "m2"]),
        ("h 'o''clock'", ["h1", " ", "o'clock"]),
        ("''yy", ["'", "y2"]),
        ("yyyy'unclosed", ["y4", "unclosed"]),
        ("\u5e74MM", ["\u5e74", "M2"]),
        ("", []),
    ],
)
def test_patterns_are_taken_apart(pattern: str, parts: list[str]) -> None:
    found = [f"{token.letter}{token.count}" if token.letter else token.text for token in joda.tokens(pattern)]
    assert found == parts


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("yy-MM-dd", "'yy' is not supported; use fields among yyyy"),
        ("yyyy-DDD", "'DDD' is not supported"),
        ("EEE, dd MMM yyyy", "'EEE' is not supported"),
        ("yyyy-MM-dd ZZZ", "'ZZZ' is not supported"),
        ("yyyy-MM-dd yyyy", "the year occurs twice"),
        ("HH hh", "the hour occurs twice"),
        ("hh HH", "the hour occurs twice"),
        ("MM MMM", "the month occurs twice"),
        ("MMM MM", "the month occurs twice"),
        ("'today'", "it has no date"),
        ("yyyyTHH", "'T' is not a pattern letter"),
    ],
)
def test_patterns_that_cannot_be_read_are_named(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem) as caught:
        joda.parsing(pattern)
    assert repr(pattern) in str(caught.value)


def test_a_year_takes_four_digits_only_before_another_number() -> None:
    assert re.fullmatch(joda.parsing("yyyyMMdd").regex, "2020041", re.ASCII)
    assert not re.fullmatch(joda.parsing("yyyyMMdd").regex, "12020-04-01", re.ASCII)
    assert re.fullmatch(joda.parsing("yyyy-MM-dd").regex, "12020-4-1", re.ASCII)
    assert joda.parsing("dd MMMM yyyy hh a").fields == ("day", "monthname", "year", "halfhour", "half")


@pytest.mark.parametrize(
    ("pattern", "zone", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "UTC", "1970-01-01T00:00:00.001+0000"),
        ("yyyyMMdd", "America/New_York", "19691231"),
        ("dd MMM yyyy hh:mm a Z", "+05:30", "01 Jan 1970 05:30 AM +0530"),
        ("d MMMM Y H SSSSSS ZZ", "-03:30", "31 December 1969 20 001000 -03:30"),
    ],
)
def test_a_null_string_is_the_first_millisecond_in_the_first_format(pattern: str, zone: str, text: str) -> None:
    settings = TimestampSettings(TimestampType.DATE_STRING, None, (pattern, "yyyy"), zone, "Asia/Tokyo", "yyyy")
    assert settings.text_for_null == text
    assert re.fullmatch(joda.parsing(pattern).regex, text)


def test_timestamps_as_text_are_in_the_zone_of_the_options_else_utc() -> None:
    zone, output = "hoodie.keygen.timebased.timezone", "hoodie.keygen.timebased.output.timezone"
    assert key_generator({KEY: "id"}).zone == "UTC"
    assert key_generator({KEY: "id", zone: "GMT+8:00", output: "America/New_York"}).zone == "+08:00"
    assert key_generator({KEY: "id", output: "America/New_York"}).zone == "America/New_York"
    with pytest.raises(InvalidOption, match="expected a zone such as UTC"):
        key_generator({KEY: "id", zone: "Nowhere/Land"})
