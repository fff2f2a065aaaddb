"""Tables without a record key by DataFrames and SQL, written by threads of the driver and by executors."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import InvalidInput
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.generated_keys import NewKeys
from hoodie.keygen.keygen import key_generator
from hoodie.model.meta import RECORD_KEY
from hoodie.spark.columns import content_hash
from hoodie.spark.keyed import KeyedFrame
from support.nightly import nightly

pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.NoRecordKey")

#: Each batch is written by executors.
SPREAD = {"hoodie.spark.driver.max.batch.bytes": "0", "hoodie.spark.driver.max.rewrite.bytes": "0"}
TABLE = {"hoodie.table.name": "t", "hoodie.datasource.write.partitionpath.field": "p"}


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> Iterator[None]:
    hoodie.register(spark)
    yield
    hoodie.spark.unregister(spark)


def rows(spark: SparkSession, count: int = 400) -> DataFrame:
    return spark.range(0, count, 1, 2).selectExpr("id", "cast(id % 2 as string) as p", "map('k', id) as m")


def held(spark: SparkSession, path: Path) -> list[tuple[str, int]]:
    found = spark.read.format("hudi").load(str(path)).select(RECORD_KEY, "id").collect()
    return sorted((row[0], row[1]) for row in found)


@pytest.mark.parametrize("sort", ["NONE", "GLOBAL_SORT"])
def test_executors_load_each_row_with_a_key_of_its_own(spark: SparkSession, tmp_path: Path, sort: str) -> None:
    options = {**TABLE, **SPREAD, "hoodie.bulkinsert.sort.mode": sort}
    rows(spark).write.format("hudi").options(**options).mode("append").save(str(tmp_path))
    found = held(spark, tmp_path)
    assert len({key for key, _ in found}) == len(found)
    assert sorted(number for _, number in found) == list(range(400))


def test_rows_are_numbered_after_the_shuffle_by_which_they_are_sorted(spark: SparkSession) -> None:
    """A task that runs again may see its rows in another order: by new numbers they would go elsewhere, or nowhere."""
    frame = rows(spark, 8)
    make_keys = NewKeys(RowKeys(tuple(frame.columns), key_generator(TABLE)))
    sortable, number = KeyedFrame.of(frame, make_keys, frame.columns).without_new_keys()
    assert {row[RECORD_KEY] for row in sortable.collect()} == {None}
    assert isinstance(number, NewKeys)
    hashes = sortable.select("id", content_hash(sortable).alias("hash"))
    assert sorted(hashes.collect()) == sorted(hashes.repartition(3).collect())


def test_rows_with_stored_keys_are_updated_and_deleted(spark: SparkSession, tmp_path: Path) -> None:
    for number, options in enumerate([{}, SPREAD]):
        path = tmp_path / str(number)
        table = hoodie.create_table(path, spark=spark, name="t", partition_by="p", options=options)
        assert table.insert(rows(spark)).inserted == 400
        assert table.upsert(rows(spark)).inserted == 400
        few = table.snapshot().where("id < 10")
        result = table.upsert(few.withColumn("id", F.col("id") + 1000))
        assert (result.inserted, result.updated) == (0, 20)
        assert table.delete(table.snapshot().where("id between 10 and 399")).deleted == 780
        found = held(spark, path)
        assert [number for _, number in sorted(found, key=lambda row: row[1])] == [
            1000 + n for n in range(10) for _ in "ab"
        ]
        with pytest.raises(InvalidInput, match="rows to delete are named by"):
            table.delete(rows(spark))


@pytest.mark.parametrize("kind", [nightly("cow"), "mor"])
def test_sql_makes_and_changes_a_table_without_a_key(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    name = f"keyless_{kind}"
    hoodie.spark.sql(
        spark,
        f"CREATE TABLE {name} (id BIGINT, name STRING, ts BIGINT) USING hudi "
        f"TBLPROPERTIES (type = '{kind}', preCombineField = 'ts') LOCATION '{tmp_path}'",
    )
    hoodie.spark.sql(spark, f"INSERT INTO {name} VALUES (1, 'a', 1), (1, 'a', 1), (2, 'b', 5), (3, 'c', 3)")
    hoodie.spark.sql(spark, f"UPDATE {name} SET name = 'up' WHERE id = 2")
    hoodie.spark.sql(spark, f"DELETE FROM {name} WHERE id = 3")
    hoodie.spark.sql(
        spark,
        f"MERGE INTO {name} t USING (SELECT id, 'm' AS name, 7L AS ts FROM VALUES (1L), (9L) AS v(id)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *",
    )
    found = spark.read.format("hudi").load(str(tmp_path)).select("id", "name", "ts").collect()
    assert sorted(map(tuple, found)) == [(1, "m", 1), (1, "m", 1), (2, "up", 5), (9, "m", 7)]
    assert len({key for key, _ in held(spark, tmp_path)}) == 4
    with pytest.raises(InvalidInput, match="give the merge a condition"):
        hoodie.open_table(str(tmp_path), spark=spark).merge(rows(spark)).when_matched_delete().execute()
    hoodie.spark.sql(spark, f"DROP TABLE {name}")
