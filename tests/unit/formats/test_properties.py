"""Java properties files: what Java's reader makes of them, and what Hudi's writer stores."""

import datetime as dt
from pathlib import Path

import pytest

from hoodie.errors import CorruptFile, InvalidInput
from hoodie.formats.java.properties import (
    CHECKSUM,
    parse_properties,
    render_properties,
    table_checksum,
    verify_checksum,
)

REAL = Path(__file__).parents[2] / "fixtures" / "properties"
NOW = dt.datetime(2024, 7, 7, 5, 3, 2, tzinfo=dt.UTC)


def parse(text: str) -> dict[str, str]:
    return parse_properties(text.encode("iso-8859-1"), "t/.hoodie/hoodie.properties")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a \t\f= \t\f b ", {"a": "b "}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("  \ta=b", {"a": "b"}),
        ("#a=b\n! c=d\n  # e=f\n\n \n", {}),
        ("a=1\nb=2\rc=3\r\nd=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a=1\na=2", {"a": "2"}),
        ("a\\=\\:\\ b=c", {"a=: b": "c"}),
        ('schema={"type"\\:"record"}', {"schema": '{"type":"record"}'}),
        ("a=\\t\\n\\r\\f\\\\\\x\\#", {"a": "\t\n\r\f\\x#"}),
        ("a=\\u00e9\\u00E9", {"a": "éé"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=\\u0000", {"a": "\0"}),
        ("a=\xe9", {"a": "é"}),
        ("a=\\\\u0041", {"a": "\\u0041"}),
        ("a=one \\\n   two", {"a": "one two"}),
        ("a=one\\\r\n#two", {"a": "one#two"}),
        ("a=one\\\\\nb=two", {"a": "one\\", "b": "two"}),
        ("a=one\\\n\nb=two", {"a": "one", "b": "two"}),
        ("# no continuation \\\na=b", {"a": "b"}),
        ("a=one\\\n", {"a": "one"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a=b\0", "NUL"),
        ("PAR1\0\0", "NUL"),
        ("a=\\u12", "malformed escape"),
        ("a=\\u12g4", "malformed escape"),
        ("a=\\u", "malformed escape"),
        ("a=b\\", "ends within an escape"),
        ("a=\\ud83d", "surrogate"),
        ("a=\\ude00\\ud83d", "surrogate"),
    ],
)
def test_bytes_that_are_no_properties_are_corrupt_and_named(text: str, problem: str) -> None:
    with pytest.raises(CorruptFile, match=problem) as raised:
        parse(text)
    assert raised.value.path == "t/.hoodie/hoodie.properties"


def test_a_file_is_stored_as_java_stores_it() -> None:
    values = {"a key:=": " lead  trail ", "schema": '{"type":"record"}', "é": "日😀", "c": "#!\t\\\n"}
    assert render_properties(values, "Properties saved on 2024-07-07T05:03:02Z", NOW).decode("ascii") == (
        "#Properties saved on 2024-07-07T05:03:02Z\n"
        "#Sun Jul 07 05:03:02 UTC 2024\n"
        "a\\ key\\:\\==\\ lead  trail \n"
        'schema={"type"\\:"record"}\n'
        "\\u00E9=\\u65E5\\uD83D\\uDE00\n"
        "c=\\#\\!\\t\\\\\\n\n"
    )


def test_a_comment_of_several_lines_stays_a_comment() -> None:
    assert parse_properties(render_properties({"a": "1"}, "one\nb=2\r\nc=3\rd=4", NOW), "p") == {"a": "1"}


def test_half_a_surrogate_pair_is_not_stored() -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        render_properties({"a": "\ud83d"}, "x", NOW)


@pytest.mark.parametrize("name", ["v3_mor", "v6_mor", "v6_timestamp_keygen", "v9_cow"])
def test_a_real_table_verifies_and_is_stored_with_the_same_lines(name: str) -> None:
    data = (REAL / f"{name}.properties").read_bytes()
    values = parse_properties(data, name)
    verify_checksum(values, name)
    assert values["hoodie.table.version"] == name[1]
    again = render_properties(values, "x", NOW)
    assert entry_lines(again) == entry_lines(data)


def test_a_real_partition_metafile_is_stored_with_the_same_lines() -> None:
    data = (REAL / "partition_metadata").read_bytes()
    values = parse_properties(data, "p")
    assert values.keys() == {"commitTime", "partitionDepth"}
    again = render_properties(values, "partition metadata", NOW)
    assert again.splitlines()[0] == data.splitlines()[0]
    assert entry_lines(again) == entry_lines(data)


def test_the_checksum_covers_database_and_table_name() -> None:
    assert table_checksum("default", "v6_trips_8i1u") == "3843273058"
    assert table_checksum("", "t") != table_checksum("t", "")


def test_a_wrong_checksum_is_corrupt_and_a_missing_one_is_not() -> None:
    names = {"hoodie.database.name": "default", "hoodie.table.name": "v6_trips_8i1u"}
    verify_checksum(names, "p")
    verify_checksum({**names, CHECKSUM: "3843273058"}, "p")
    with pytest.raises(CorruptFile, match="3843273058"):
        verify_checksum({**names, CHECKSUM: "3843273059"}, "p")


def entry_lines(data: bytes) -> list[bytes]:
    return sorted(line for line in data.splitlines() if not line.startswith(b"#"))
