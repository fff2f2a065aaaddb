"""On Spark, too, nothing is written to file groups that a clustering of Hudi's is to replace: executors, SQL, jobs."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import WriteConflict
from hoodie.storage import LocalStorage
from support import spark_tables
from support.clusterings import PLAN, WITHDRAW, plan_clustering
from support.nightly import nightly
from support.trips import table_options

SPREAD = {"hoodie.spark.driver.max.batch.bytes": "0"}
FIRST = [("a", "oslo", 1, 1.0), ("b", "rome", 1, 2.0)]
LATER = [("a", "oslo", 2, 9.0)]
NEW = [("x", "oslo", 2, 5.0), ("y", "bern", 2, 6.0)]
Rows = list[tuple[str, str, int, float]]


def frame(spark: SparkSession, rows: Rows) -> DataFrame:
    return spark.createDataFrame(rows, "id string, city string, ts long, price double")


def clustered(spark: SparkSession, path: Path, table_type: str, **options: object) -> HoodieTable[DataFrame]:
    table = spark_tables.table(spark, path, table_type, partition_by="city", **options)
    table.upsert(frame(spark, FIRST))
    plan_clustering(LocalStorage(str(path)), ["oslo"])
    return table


def stored(path: Path | str) -> Rows:
    rows = hoodie.open_table(str(path)).snapshot(columns=["id", "city", "ts", "price"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("table_type", "index"),
    [
        ("COPY_ON_WRITE", "BLOOM"),
        nightly("MERGE_ON_READ", "SIMPLE"),
        nightly("COPY_ON_WRITE", "GLOBAL_SIMPLE"),
        nightly("MERGE_ON_READ", "BUCKET"),
    ],
)
def test_executors_keep_out_of_file_groups_under_a_pending_clustering(
    spark: SparkSession, tmp_path: Path, table_type: str, index: str
) -> None:
    options = {**SPREAD, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1"}
    table = clustered(spark, tmp_path / "t", table_type, **options)
    for write in (table.upsert, table.delete, table.insert_overwrite):
        with pytest.raises(WriteConflict, match=PLAN):
            write(frame(spark, LATER))
    new = NEW[1:] if index == "BUCKET" else NEW
    assert table.upsert(frame(spark, new)).route == "executors"
    assert stored(table.path) == sorted([*FIRST, *new])
    table.upsert(frame(spark, LATER), options=WITHDRAW)
    assert stored(table.path) == sorted([*LATER, FIRST[1], *new])
    assert not [i for i in (tmp_path / "t" / ".hoodie").iterdir() if i.name.startswith(PLAN)]


@pytest.mark.nightly
def test_statements_and_jobs_keep_out_of_file_groups_under_a_pending_clustering(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = clustered(spark, tmp_path / "t", "MERGE_ON_READ")
    name = f"hudi.`{table.path}`"
    job: Mapping[str, str] = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    frame(spark, LATER).createOrReplaceTempView("later")
    acts: list[Callable[[], object]] = [
        lambda: hoodie.spark.sql(spark, f"UPDATE {name} SET price = 0 WHERE id = 'a'"),
        lambda: hoodie.spark.sql(spark, f"DELETE FROM {name} WHERE id = 'a'"),
        lambda: hoodie.spark.sql(
            spark,
            f"MERGE INTO {name} t USING later s ON t.id = s.id AND t.city = s.city WHEN MATCHED THEN UPDATE SET *",
        ),
        lambda: hoodie.spark.sql(spark, f"TRUNCATE TABLE {name} PARTITION (city = 'oslo')"),
        lambda: hoodie.spark.sql(spark, f"INSERT OVERWRITE {name} SELECT * FROM later"),
        lambda: table.delete(where="id = 'a'"),
        lambda: hoodie.hudi.write(
            frame(spark, LATER),
            table.path,
            {
                **job,
                "hoodie.datasource.write.partitionpath.field": "city",
                "hoodie.datasource.write.precombine.field": "ts",
            },
        ),
    ]
    for act in acts:
        with pytest.raises(WriteConflict, match=PLAN):
            act()
    assert stored(table.path) == FIRST


def test_the_data_source_and_streams_keep_out_of_file_groups_under_a_pending_clustering(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = clustered(spark, tmp_path / "t", "COPY_ON_WRITE")
    hoodie.register(spark)
    job = table_options("t", "id", partition="city", ordering="ts")
    with pytest.raises(Exception, match=PLAN):
        frame(spark, LATER).write.format("hudi").options(**job).mode("append").save(table.path)
    assert stored(table.path) == FIRST
    folder = str(tmp_path / "arriving")
    frame(spark, LATER).write.parquet(folder)
    arriving = spark.readStream.schema("id string, city string, ts long, price double").parquet(folder)
    stream = arriving.writeStream.foreachBatch(table.stream_upsert("arriving"))
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    with pytest.raises(Exception, match=PLAN):
        query.awaitTermination(120)
    assert stored(table.path) == FIRST
