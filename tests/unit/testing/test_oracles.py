"""The comparison that other tests lean on tells every difference, and only differences."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from support.oracles import (
    assert_same_rows,
    expected_changes,
    expected_rows,
    fixture_facts,
    fixture_names,
    read_hudi_rs,
    read_hudi_rs_changes,
    read_hudi_rs_optimized,
)

ROWS = pa.table(
    {"k": ["a", "b"], "v": [1.5, float("nan")], "m": pa.array([[("x", 1), ("y", 2)], None], pa.map_("string", "int64"))}
)


def test_order_of_rows_columns_and_map_entries_does_not_matter() -> None:
    other = pa.table(
        {
            "m": pa.array([None, [("y", 2), ("x", 1)]], pa.map_("string", "int32")),
            "v": [float("nan"), 1.5],
            "k": ["b", "a"],
        }
    )
    assert_same_rows(other, ROWS)


def test_one_moment_in_two_zones_is_the_same() -> None:
    moment = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)
    columns = [
        pa.table({"t": pa.array([moment], pa.timestamp(*kind))}) for kind in [("us", "UTC"), ("ns", "Asia/Tokyo")]
    ]
    assert_same_rows(*columns)


@pytest.mark.parametrize(
    ("actual", "told"),
    [
        (ROWS.slice(1), r"\('a',\): 0 times, expected 1"),
        (pa.concat_tables([ROWS, ROWS.slice(0, 1)]), r"\('a',\): 2 times, expected 1"),
        (ROWS.set_column(1, "v", pa.array([1.5, None])), r"\('b',\): v=None \(expected 'NaN'\)"),
        (ROWS.set_column(1, "v", pa.array([2.5, float("nan")])), r"\('a',\): v=2.5 \(expected 1.5\)"),
        (ROWS.drop_columns(["m"]), r"missing \['m'\], unexpected \[\]"),
        (ROWS.append_column("n", ROWS.column("k")), r"unexpected \['n'\]"),
    ],
)
def test_a_difference_is_told_by_key_and_column(actual: pa.Table, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_same_rows(actual, ROWS, sort_by=["k"])


def test_an_ignored_column_may_differ_or_be_missing() -> None:
    assert_same_rows(ROWS.drop_columns(["v"]), ROWS, ignore=["v"], sort_by=["k"])


def test_noted_values_get_the_types_of_the_table() -> None:
    rows = expected_rows("cow_types")
    assert rows.schema.field("c_dec38").type == pa.decimal128(38, 10)
    assert rows.schema.field("c_ts").type == pa.timestamp("us", "UTC")
    row = next(row for row in rows.to_pylist() if row["id"] == "t0011")
    assert isinstance(row["c_dec9"], Decimal)
    assert isinstance(row["c_bin"], bytes)
    assert isinstance(row["c_struct"]["n"]["w"], list)
    assert rows.num_rows == 120


def test_each_table_has_its_rows_or_is_one_that_no_reader_told_us_about() -> None:
    assert len(fixture_names()) == 47
    assert all(expected_rows(name).num_columns for name in fixture_names("hudi-0.15"))
    untold = {name for name in fixture_names("hudi-tables") if not _told(name)}
    assert untold == {
        "v3_mor_stock_ticks",
        "v5_cow_nonpartitioned",
        "v6_mor_nested_types",
        "v6_mor_payload_partial_update",
    }


def _told(name: str) -> bool:
    try:
        return expected_rows(name).num_rows > 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", ["cow_types", "mor_types", "mor_deletes", "mor_compacted", "v6_mor_with_services"])
def test_the_two_oracles_agree_on_tables_of_hudi(name: str, fixture_table: Callable[[str], Path]) -> None:
    assert_same_rows(read_hudi_rs(fixture_table(name)), expected_rows(name))


def test_the_oracles_agree_on_base_files_and_on_changes(fixture_table: Callable[[str], Path]) -> None:
    assert_same_rows(read_hudi_rs_optimized(fixture_table("mor_logs")), expected_rows("mor_logs", "read_optimized"))
    path = fixture_table("cow_upserts_delete")
    for change in expected_changes("cow_upserts_delete"):
        assert_same_rows(read_hudi_rs_changes(path, change.after, change.up_to), change.rows)


def test_the_past_is_read_as_of_an_instant(fixture_table: Callable[[str], Path]) -> None:
    first = fixture_facts("mor_logs")["steps"][0]["instant"]
    rows = read_hudi_rs(fixture_table("mor_logs"), ["_hoodie_commit_time"], as_of=first)
    assert set(rows.column(0).to_pylist()) == {first}
