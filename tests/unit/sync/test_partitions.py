"""Partition values out of paths, and which partitions of an entry change."""

import pytest

from hoodie.errors import InvalidOption, SyncRefused
from hoodie.sync.partitions import extractor_name, partition_events, partition_name, values_of, without_scheme

MULTI, HIVE, SINGLE = (
    "MultiPartKeysValueExtractor",
    "HiveStylePartitionValueExtractor",
    "SinglePartPartitionValueExtractor",
)
DAY, HOUR = "SlashEncodedDayPartitionValueExtractor", "SlashEncodedHourPartitionValueExtractor"


@pytest.mark.parametrize(
    ("extractor", "path", "fields", "values"),
    [
        (MULTI, "a/b", "x,y", ("a", "b")),
        (MULTI, "x=a/y=b", "x,y", ("a", "b")),
        (MULTI, "x=__HIVE_DEFAULT_PARTITION__", "x", ("__HIVE_DEFAULT_PARTITION__",)),
        (HIVE, "x=a", "x", ("a",)),
        (HIVE, "x=a/b", "x", ("a/b",)),
        (SINGLE, "2024/03/01", "x", ("2024-03-01",)),
        (SINGLE, "oslo", "x", ("oslo",)),
        (DAY, "2024/3/1", "x", ("2024-03-01",)),
        (DAY, "y=2024/m=3/d=1", "x", ("2024-03-01",)),
        (HOUR, "2024/03/01/9", "x", ("2024-03-01-09",)),
        ("NonPartitionedExtractor", "any", "", ()),
    ],
)
def test_values_of_a_path(extractor: str, path: str, fields: str, values: tuple[str, ...]) -> None:
    assert values_of(path, extractor, list(filter(None, fields.split(",")))) == values


@pytest.mark.parametrize(
    ("extractor", "path"),
    [
        (MULTI, "x=a=b"),
        (MULTI, "a/b"),
        (MULTI, ""),
        (HIVE, "a"),
        (HIVE, "x="),
        (HIVE, "x=a=b"),
        (DAY, "2024/3"),
        (DAY, "2024/March/1"),
        (DAY, "2024/3/1/9"),
        (HOUR, "2024/3/1"),
    ],
)
def test_a_path_of_another_form_is_refused(extractor: str, path: str) -> None:
    with pytest.raises(SyncRefused, match="partition"):
        values_of(path, extractor, ["x"])


def test_url_encoded_values_are_decoded() -> None:
    assert values_of("x=a%2Fb", HIVE, ["x"], decode=True) == ("a/b",)
    assert values_of("x=a%2Fb", HIVE, ["x"]) == ("a%2Fb",)


@pytest.mark.parametrize(
    ("given", "fields", "hive_style", "name"),
    [
        ("", [], False, "NonPartitionedExtractor"),
        ("", ["x"], False, SINGLE),
        ("", ["x"], True, HIVE),
        ("", ["x", "y"], True, MULTI),
        ("org.apache.hudi.hive.MultiPartKeysValueExtractor", ["x"], False, MULTI),
        (DAY, ["x"], False, DAY),
    ],
)
def test_which_extractor_is_taken(given: str, fields: list[str], hive_style: bool, name: str) -> None:
    assert extractor_name(given, fields, hive_style=hive_style) == name


def test_an_unknown_extractor_is_refused() -> None:
    with pytest.raises(InvalidOption, match="expected one of"):
        extractor_name("com.example.Mine", ["x"], hive_style=False)


def test_a_metastore_names_partitions_with_escaped_values_and_lower_case_columns() -> None:
    assert partition_name(["City", "day"], ["são/paulo: x", "1"]) == "city=são%2Fpaulo%3A x/day=1"


def location(path: str) -> str:
    return f"s3a://bucket/t/{path}"


def test_missing_partitions_are_added_moved_ones_altered() -> None:
    there = {("a",): "s3://bucket/t/a/", ("b",): "s3a://bucket/other/b"}
    storage = {("a",): "a", ("b",): "b", ("c",): "c"}
    events = partition_events(storage, there, whole=False, location=location)
    assert (events.add, events.alter, events.drop) == ({("c",): "c"}, {("b",): "b"}, ())


def test_what_the_table_lacks_goes_in_a_whole_comparison_alone() -> None:
    there = {("a",): location("a"), ("b",): location("b")}
    assert partition_events({("a",): "a"}, there, whole=True, location=location).drop == (("b",),)
    assert not partition_events({("a",): "a"}, there, whole=False, location=location)
    dropped = partition_events({("a",): "a"}, there, whole=False, dropped=[("b",), ("z",)], location=location)
    assert dropped.drop == (("b",),)


def test_a_partition_that_was_deleted_and_written_again_stays() -> None:
    events = partition_events({("a",): "a"}, {("a",): location("a")}, whole=False, dropped=[("a",)], location=location)
    assert not events


@pytest.mark.parametrize("one", ["file:/a/b", "file:///a/b", "/a/b", "file:///a/b/"])
def test_the_scheme_makes_no_other_place(one: str) -> None:
    assert without_scheme(one) == "/a/b"


def test_a_bucket_is_a_part_of_the_place() -> None:
    assert without_scheme("s3://x/a") == without_scheme("s3a://x/a") != without_scheme("s3a://y/a")
