"""The measured batches are what the tables of figures say they are."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.workload import base_rows, batch_rows
from support.nightly import nightly

N = 10_000


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "updates", "inserts", "updated_days", "inserted_days"),
    [("spread", 900, 100, 10, 1), nightly("recent", 50, 50, 2, 2), nightly("tiny", 1000, 0, 1, 0)],
)
def test_a_batch_has_its_updates_and_inserts_in_its_partitions(
    spark: SparkSession, name: str, updates: int, inserts: int, updated_days: int, inserted_days: int
) -> None:
    base = base_rows(spark, N).select("order_id", "ds", F.lit(True).alias("there"))
    rows = batch_rows(spark, name, N).join(base, ["order_id", "ds"], "left").toArrow()
    there = rows.column("there").to_pylist()
    days = rows.column("ds").to_pylist()
    assert len(set(rows.column("order_id").to_pylist())) == rows.num_rows == updates + inserts
    assert there.count(True) == updates
    assert {day for day, old in zip(days, there, strict=True) if old} == newest(updated_days)
    assert {day for day, old in zip(days, there, strict=True) if not old} == newest(inserted_days)


def newest(days: int) -> set[str]:
    return {f"2024-01-{day:02}" for day in range(11 - days, 11)}
