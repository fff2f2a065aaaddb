"""Of versions with equal ordering values the one that came last wins, whichever way executors take the rows."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.writing.batch import stage
from support import spark_tables
from support.nightly import nightly

SPREAD = {"hoodie.spark.driver.max.batch.bytes": "0", "hoodie.bucket.index.num.buckets": "2"}
VERSIONS, KEYS = 12, 8


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("index", "route"),
    [
        nightly("SIMPLE", "staged"),
        ("BLOOM", "shuffled"),
        nightly("GLOBAL_SIMPLE", ""),
        nightly("GLOBAL_BLOOM", ""),
        nightly("BUCKET", ""),
    ],
)
def test_the_row_that_came_last_wins_on_executors(
    spark: SparkSession, tmp_path: Path, index: str, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if route == "shuffled":
        monkeypatch.setattr(stage, "LARGEST_PARTITION", 0)
    everywhere = index.startswith("GLOBAL")
    table = spark_tables.table(spark, tmp_path / "t", **SPREAD, **{"hoodie.index.type": index})
    for number in (1, 2):  # new keys, then keys that the table has
        # As many Spark partitions as versions: texts of their numbers are in another order.
        rows = spark.range(0, VERSIONS * KEYS, 1, VERSIONS).selectExpr(
            f"concat('k', id % {KEYS}) as id",
            "cast(id % 3 as string) as p" if everywhere else f"cast(id % {KEYS} % 2 as string) as p",
            "1L as ts",
            f"id * {number} as v",
        )
        assert table.upsert(rows).route == "executors"
        stored = hoodie.open_table(table.path).snapshot(columns=["id", "v"]).to_arrow().to_pylist()
        first = (VERSIONS - 1) * KEYS
        assert sorted((row["id"], row["v"]) for row in stored) == [(f"k{k}", (first + k) * number) for k in range(KEYS)]


def test_a_combining_bulk_insert_on_executors_takes_the_row_that_came_last(spark: SparkSession, tmp_path: Path) -> None:
    table = spark_tables.table(spark, tmp_path / "t", **SPREAD, **{"hoodie.combine.before.insert": "true"})
    rows = spark.range(0, VERSIONS * KEYS, 1, VERSIONS).selectExpr(
        f"concat('k', id % {KEYS}) as id", f"cast(id % {KEYS} % 2 as string) as p", "1L as ts", "id as v"
    )
    table.bulk_insert(rows)
    stored = hoodie.open_table(table.path).snapshot(columns=["id", "v"]).to_arrow().to_pylist()
    first = (VERSIONS - 1) * KEYS
    assert sorted((row["id"], row["v"]) for row in stored) == [(f"k{k}", first + k) for k in range(KEYS)]
