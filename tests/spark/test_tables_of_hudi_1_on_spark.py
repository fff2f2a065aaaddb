"""Tables of Hudi 1.x through Spark, where its route differs: logs with some columns only, ranges, change data."""

import json
from pathlib import Path
from typing import Any

import hoodie
from support.hudi_1_tables import UNNOTED, noted, sorted_rows, unpack

PARTIAL = "v9_mor_merge_into_partial"
BEGIN = "20261123122039105"  # after it rows with some columns only were written


def rows_of(frame: Any) -> list[dict[str, Any]]:
    kept = frame.drop(*UNNOTED)
    return sorted_rows([row.asDict(recursive=True) for row in kept.collect()])


def test_rows_with_some_columns_only_are_merged(spark: Any, tmp_path: Path) -> None:
    path = unpack(PARTIAL, tmp_path)
    expected = noted(PARTIAL, "snapshot")
    table = hoodie.open_table(str(path), spark=spark)
    assert rows_of(table.snapshot()) == expected
    names = sorted((row["id"], row["name"]) for row in expected)
    assert sorted(map(tuple, table.snapshot().select("id", "name").collect())) == names
    keys = {"hoodie.merge.use.record.positions": False}
    assert rows_of(hoodie.open_table(str(path), spark=spark, options=keys).snapshot()) == expected
    assert rows_of(table.changes(BEGIN)) == [row for row in expected if row["id"] == "k1"]  # whole, with all columns


def test_ranges_and_change_data_are_those_that_hudi_gives(spark: Any, tmp_path: Path) -> None:
    fills = "v9_mor_payload_partial"
    begin, end = "20261123123448220", "20261123123453771"
    changes = hoodie.open_table(str(unpack(fills, tmp_path / "fills")), spark=spark).changes(begin, end)
    assert rows_of(changes) == noted(fills, f"incremental {begin} {end}")
    logged = "v9_mor_cdc"
    table = hoodie.open_table(str(unpack(logged, tmp_path / "logged")), spark=spark)
    found = []
    for row in table.changes("earliest", "20261123124411521", cdc=True).collect():
        change = row.asDict()
        found.append({**change, **{side: json.loads(change[side] or "null") for side in ("before", "after")}})
    assert sorted_rows(found) == noted(logged, "cdc 000 20261123124411521")
