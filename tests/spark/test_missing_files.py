"""Every way that Spark has to a table misses a published file that is gone, and sees a partition without metafile."""

import warnings
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import MetafileMissing, MissingFile, MissingFileIgnored
from support.nightly import nightly

COLUMNS = "id string, city string, ts bigint"
LEFT = {"hoodie.read.ignore.missing.files": "true"}
EXECUTORS = {"hoodie.spark.driver.max.batch.bytes": "0", "hoodie.spark.driver.max.rewrite.bytes": "0"}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> hoodie.HoodieTable:
    made = hoodie.create_table(
        str(tmp_path / "t"), spark=spark, name="t", record_key="id", partition_by="city", ordering="ts",
        table_type="MERGE_ON_READ",
    )  # fmt: skip
    made.upsert(spark.createDataFrame([("a", "x", 1), ("b", "y", 1)], COLUMNS))
    made.upsert(spark.createDataFrame([("a", "x", 2)], COLUMNS))
    return made


def test_a_missing_file_fails_every_read_and_write_that_needs_it(spark: SparkSession, table: hoodie.HoodieTable):
    first = table.history()[-1][0].requested
    keys = spark.createDataFrame([("a", "x", 3)], COLUMNS)
    (log,) = next(slice_.logs for slice_ in table.file_slices() if slice_.logs)
    Path(table.path, log.path).unlink()
    reader, left = (
        hoodie.hudi.HoodieReadClient(table.path, spark=spark),
        hoodie.hudi.HoodieReadClient(table.path, LEFT, spark=spark),
    )
    spread = hoodie.hudi.HoodieReadClient(table.path, EXECUTORS, spark=spark)
    for call in (
        table.snapshot,
        lambda: table.snapshot(partitions=["x"]),
        lambda: table.changes(first),
        table.file_slices,
        lambda: reader.read(keys),
        lambda: reader.filter_exists(keys),
        lambda: reader.tag_location(keys),
        lambda: spread.read(keys),
        lambda: spread.filter_exists(keys),
        lambda: table.explain_upsert(keys),
        lambda: table.upsert(keys),
        lambda: table.upsert(keys, options=EXECUTORS),
        lambda: table.delete(keys.select("id", "city")),
        lambda: hoodie.hudi.read(table.path, spark=spark),
    ):
        with pytest.raises(MissingFile):
            call()
    assert table.snapshot(partitions=["y"]).count() == 1
    assert table.snapshot(optimized=True).count() == 2
    assert table.as_of(first).count() == 2
    with pytest.warns(MissingFileIgnored):
        assert hoodie.open_table(table.path, spark=spark, options=LEFT).snapshot().where("ts = 1").count() == 2
    with pytest.warns(MissingFileIgnored):
        assert left.read(keys).rows.select("ts").collect()[0].ts == 1
    table.insert_overwrite(keys)
    assert table.snapshot().count() == 2


@pytest.mark.parametrize("options", [nightly({}, id="driver"), pytest.param(EXECUTORS, id="executors")])
def test_a_lost_metafile_doubles_no_key(spark: SparkSession, table: hoodie.HoodieTable, options: dict[str, str]):
    metafile = Path(table.path, "x", ".hoodie_partition_metadata")
    metafile.unlink()
    with pytest.warns(MetafileMissing):
        assert table.snapshot().count() == 2
    with pytest.warns(MetafileMissing):
        table.upsert(spark.createDataFrame([("a", "x", 3)], COLUMNS), options=options)
    assert metafile.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetafileMissing)
        assert sorted(row.ts for row in table.snapshot().collect()) == [1, 3]
