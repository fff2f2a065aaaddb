"""Values of partition columns that make no folder, or one within another's, are refused before anything is written."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput
from support.oracles import read_hudi_rs

HIVE = {"hoodie.datasource.write.hive_style_partitioning": True}


def rows(cities: Sequence[str]) -> pa.Table:
    ids = [f"k{number}" for number in range(len(cities))]
    return pa.table({"id": ids, "city": list(cities), "ts": [1] * len(ids)})


def made(path: Path, **options: object) -> hoodie.HoodieTable[hoodie.Rows]:
    return hoodie.create_table(path, name="t", record_key="id", partition_by="city", ordering="ts", options=options)


def cities(table: hoodie.HoodieTable[hoodie.Rows]) -> list[str]:
    return sorted(table.snapshot(columns=["city"]).to_arrow().column("city").to_pylist())


@pytest.mark.parametrize(
    ("options", "value"),
    [
        *[({}, value) for value in ("a//b", "end/", "a/../b", "nul\0", "s3://bucket", "p/.hoodie")],
        *[(HIVE, value) for value in ("a//b", "a/../b", "p/.hoodie")],
    ],
)
def test_a_value_that_makes_no_folder_is_refused(options: dict[str, object], value: str, tmp_path: Path) -> None:
    table = made(tmp_path / "t", **options)
    with pytest.raises(InvalidInput, match="make no folder of the table"):
        table.upsert(rows(["fine", value]))
    assert not list(tmp_path.glob("t/.hoodie/2*"))  # it had not even begun
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("value", [".hoodie", ".", "..", "/abs"])
def test_a_value_that_is_no_folder_name_needs_the_hive_style(value: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="hive_style_partitioning=true holds such values"):
        made(tmp_path / "plain").bulk_insert(rows([value]))
    table = made(tmp_path / "hive", **HIVE)
    table.bulk_insert(rows([value]))
    assert cities(table) == [value]
    assert read_hudi_rs(table.path).column("city").to_pylist() == [value]


def test_partitions_within_partitions_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    told = r"'a/b' would lie inside partition 'a'.*urlencode=true"
    with pytest.raises(InvalidInput, match=told):
        table.upsert(rows(["a/b", "a", "a0"]))
    table.upsert(rows(["a/b"]))
    with pytest.raises(InvalidInput, match=told):
        table.upsert(rows(["a"]))
    with pytest.raises(InvalidInput, match="'a/b/c' would lie inside partition 'a/b'"):
        table.upsert(rows(["a/b/c"]))
    table.upsert(rows(["a/b", "a/c", "ab"]))
    assert cities(table) == sorted(read_hudi_rs(table.path).column("city").to_pylist()) == ["a/b", "a/c", "ab"]
