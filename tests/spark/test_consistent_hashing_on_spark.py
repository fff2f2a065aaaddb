"""A table of Hudi's consistent-hashing buckets, written by Spark's executors and asked by key."""

import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.index.consistent_hashing import INITIAL, METADATA, encode_ring, first_ring
from support.nightly import nightly

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "buckets" / "consistent_mor.zip"
COLUMNS = "id string, part string, ts bigint, v double, name string"


@pytest.mark.parametrize("limit", [nightly("0"), "268435456"])
def test_keys_keep_to_their_buckets_wherever_the_write_runs(limit: str, spark: SparkSession, tmp_path: Path) -> None:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    path = str(tmp_path / "consistent_mor")
    table = hoodie.open_table(path, spark=spark, options={"hoodie.spark.driver.max.batch.bytes": limit})
    before = {row.id: row.part for row in table.snapshot().select("id", "part").collect()}
    old = [(key, part, 50, 0.5, "again") for key, part in before.items()]
    new = [(f"n{number}", "p9", 50, 0.5, "new") for number in range(40)]
    batch = spark.createDataFrame(old + new, COLUMNS)
    metadata = tmp_path / "consistent_mor" / METADATA / "p9" / f"{INITIAL}.hashing_meta"
    table.explain_upsert(batch)
    assert not metadata.exists()
    table.upsert(batch)
    table.upsert(batch)
    after = table.snapshot().collect()
    assert sorted(row.id for row in after) == sorted([*before, *(key for key, *_ in new)])
    assert metadata.read_bytes() == encode_ring(first_ring("p9", 2))
    client = hoodie.hudi.HoodieReadClient(path, {"hoodie.spark.driver.max.batch.bytes": limit}, spark=spark)
    assert client.filter_exists(spark.createDataFrame([*new[:2], ("absent", "p8", 1, 0.5, "")], COLUMNS)).count() == 1
