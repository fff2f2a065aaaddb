"""`partition_by="day(at)"`: what it says, what it becomes on disk, and which times a folder holds."""

import datetime as dt

import pytest

from hoodie.config.keygen import PartitionUnit
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.keygen.keygen import Kind, key_generator
from hoodie.keygen.time_units import (
    UNIT,
    PartitionColumn,
    folder_bounds,
    partition_columns,
    partition_names,
    partition_options,
)
from hoodie.schema.schema import refuse_names

MICRO = dt.timedelta(microseconds=1)


def test_a_unit_stands_around_its_column() -> None:
    day = PartitionColumn("at", PartitionUnit.DAY)
    assert partition_columns(["city", " Day( at ) "]) == (PartitionColumn("city"), day)
    assert partition_columns(["at:TIMESTAMP", "a.b"]) == (PartitionColumn("at:TIMESTAMP"), PartitionColumn("a.b"))
    assert partition_columns(["city, day(at)"]) == (PartitionColumn("city"), day)
    assert partition_columns(["hour(a.b)"]) == (PartitionColumn("a.b", PartitionUnit.HOUR),)
    for bad, words in (("week(at)", "week is no unit of time"), ("day(at", "expected a column"), ("day()", "expected")):
        with pytest.raises(InvalidInput, match=words):
            partition_columns([bad])
    with pytest.raises(InvalidInput, match="one unit of time"):
        partition_columns(["year(at)", "month(at)"])


@pytest.mark.parametrize(("columns", "keys", "kind"), [("day(at)", 1, Kind.TIMESTAMP), ("day(at)", 2, Kind.CUSTOM)])
def test_the_options_are_those_of_hudis_generators(columns: str, keys: int, kind: Kind) -> None:
    options = partition_options(partition_columns([columns]), keys)
    names = ",".join("abc"[:keys])
    keygen = key_generator({**options, "hoodie.datasource.write.recordkey.field": names})
    assert keygen.kind is kind
    assert keygen.timestamp is not None
    assert keygen.timestamp.output_format == "yyyy-MM-dd"
    assert partition_names(["at"], options) == ("day(at)",)
    other = {**options, "hoodie.datasource.write.recordkey.field": names, UNIT: "hour"}
    with pytest.raises(InvalidOption, match="folders of this table are times"):
        key_generator(other)
    with pytest.raises(InvalidOption, match="expected year, month, day, hour"):
        key_generator({**other, UNIT: "week"})


def test_a_column_beside_the_time_keeps_its_values() -> None:
    options = partition_options(partition_columns(["at", "month(seen)"]), 1)
    assert options["hoodie.datasource.write.partitionpath.field"] == "at:SIMPLE,seen:TIMESTAMP"
    assert partition_names(["at", "seen"], options) == ("at", "month(seen)")
    assert partition_options(partition_columns(["at"]), 1) == {"hoodie.datasource.write.partitionpath.field": "at"}


@pytest.mark.parametrize(
    ("text", "unit", "first", "after"),
    [
        ("2024", "year", dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)),
        ("2024-12", "month", dt.datetime(2024, 12, 1), dt.datetime(2025, 1, 1)),
        ("2024-02", "month", dt.datetime(2024, 2, 1), dt.datetime(2024, 3, 1)),
        ("2024-02-29", "day", dt.datetime(2024, 2, 29), dt.datetime(2024, 3, 1)),
        ("2024-02-29-23", "hour", dt.datetime(2024, 2, 29, 23), dt.datetime(2024, 3, 1)),
    ],
)
def test_a_folder_says_the_times_of_its_rows(text: str, unit: str, first: dt.datetime, after: dt.datetime) -> None:
    assert folder_bounds(text, PartitionUnit(unit)) == (first, after - MICRO)


@pytest.mark.parametrize("text", ["", "oslo", "2024-13", "2024-02-30", "9999-12-31", "__HIVE_DEFAULT_PARTITION__"])
def test_a_folder_of_another_name_says_nothing(text: str) -> None:
    assert folder_bounds(text, PartitionUnit.DAY) is None


def test_names_that_no_table_can_have_are_refused_with_one_that_it_can() -> None:
    refuse_names(["id", "a.b", "_x1"])
    for name, plain in (("Straße & Nr.", "Strasse_Nr"), ("größe", "groesse"), ("order id", "order_id"), ("2x", "_2x")):
        with pytest.raises(InvalidInput, match=f"such as to '{plain}'"):
            refuse_names(["id", name])
    with pytest.raises(InvalidInput, match=r"'名' needs another name: letters A to Z, digits and underscores"):
        refuse_names(["名"])
