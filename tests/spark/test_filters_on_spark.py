"""Filters and streams of one table: Spark's rows are those that the table gives without a session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidInput
from hoodie.model.meta import META_COLUMNS

ROWS = pa.table(
    {
        "id": list(range(12)),
        "city": ["oslo", "rome", "bern"] * 4,
        "ts": [1] * 12,
        "amount": [None if n % 5 == 0 else n * 1.5 for n in range(12)],
        "note": ["", "it's", None, "a`b"] * 3,
    }
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in base files and in logs, some of them deleted."""
    where = tmp_path_factory.mktemp("filters") / "t"
    table = hoodie.create_table(
        where, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.upsert(ROWS)
    changed = ROWS.slice(2, 4).set_column(2, "ts", pa.array([2] * 4)).set_column(3, "amount", pa.array([100.0] * 4))
    table.upsert(changed)
    table.delete(ROWS.slice(11))
    return where


READS: dict[str, Callable[[Any, str], Any]] = {
    "text": lambda table, _: table.snapshot(filters="amount > 10 and city in ('oslo', 'bern')"),
    "nulls": lambda table, _: table.snapshot(filters="amount is null or note is null", columns=["id"]),
    "quoted": lambda table, _: table.snapshot(filters="note like 'it%' or not (amount < 100)", columns=["id"]),
    "tuples": lambda table, _: table.snapshot(filters=[("amount", ">=", 6), ("city", "!=", "rome")], columns=["id"]),
    "either": lambda table, _: table.snapshot(filters=[[("id", "in", [1, 2])], [("note", "not in", ["", "it's"])]]),
    "as of": lambda table, first: table.as_of(first, filters="amount < 7", partitions=["rome", "bern"]),
    "changes": lambda table, first: table.changes(first, columns=["id"], filters="city = 'oslo'"),
    "optimized": lambda table, _: table.snapshot(optimized=True, filters="ts = 1 and id > 8", columns=["id", "ts"]),
}


def test_spark_keeps_the_rows_that_are_kept_without_it(spark: SparkSession, path: Path) -> None:
    with_spark, without = hoodie.open_table(path, spark=spark), hoodie.open_table(path)
    first = without.history()[-1][0].requested
    every = None
    expected = {}
    for name, read in READS.items():
        expected[name] = sorted(read(without, first).to_arrow().column("id").to_pylist())
        rows = read(with_spark, first)
        own = [column for column in rows.columns if column not in META_COLUMNS]
        assert own == read(without, first).schema.names, name
        ids = rows.selectExpr(f"'{name}' as name", "id")
        every = ids if every is None else every.unionAll(ids)
    assert every is not None
    found: dict[str, list[int]] = {name: [] for name in READS}
    for name, number in every.collect():  # one job for all
        found[name].append(number)
    assert {name: sorted(ids) for name, ids in found.items()} == expected
    assert expected["nulls"] == [0, 2, 6, 10]
    assert expected["changes"] == [3]
    assert all(expected.values())


def test_filters_that_spark_cannot_take_are_refused(spark: SparkSession, path: Path) -> None:
    table = hoodie.open_table(path, spark=spark)
    with pytest.raises(InvalidInput, match="Spark takes no expression of pyarrow"):
        table.snapshot(filters=pc.field("id") > 3)
    with pytest.raises(InvalidInput, match="amont"):
        table.snapshot(filters=[("amont", ">", 3)])
    with pytest.raises(InvalidInput, match="nope"):
        table.snapshot(filters="id > 3", columns=["nope"])
