"""format("hudi") of Spark's readers and writers, views, and what they refuse."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch, TableMismatch, TableNotFound
from support.trips import table_options

#: As Hudi's quick start has them.
OPTIONS = {
    **table_options("trips", "uuid", partition="partitionpath", ordering="ts"),
    "hoodie.datasource.write.table.name": "trips",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.insert.shuffle.parallelism": 2,
}
COLUMNS = "uuid string, partitionpath string, ts long, fare double"
TRIPS = [("a", "oslo", 1, 10.0), ("b", "oslo", 1, 20.0), ("c", "rome", 1, 30.0)]


@pytest.fixture
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    hoodie.register(spark)
    yield spark
    hoodie.spark.unregister(spark)


def test_save_modes_and_bad_input_are_typed_errors(registered, tmp_path):
    spark, path = registered, str(tmp_path / "trips")
    df = spark.createDataFrame(TRIPS, COLUMNS)
    writer = df.write.format("hudi").options(**OPTIONS)
    writer.save(path)
    with pytest.raises(TableMismatch):
        df.write.format("hudi").options(**OPTIONS).save(path)
    df.write.format("hudi").options(**OPTIONS).mode("ignore").save(path)
    table = hoodie.open_table(path, spark=spark)
    assert len(table.history()) == 1
    table.savepoint()
    read, slip = spark.read.format("hudi"), {"hoodie.datasource.write.oeration": "upsert"}
    refused = [
        (InvalidInput, lambda: df.write.format("hudi").options(**OPTIONS).mode("overwrite").save(path)),
        (InvalidInput, lambda: df.write.format("hudi").options(**OPTIONS).mode("append").save()),
        (InvalidOption, lambda: df.write.format("hudi").options(**slip).saveAsTable("trips")),
        (InvalidOption, lambda: df.write.format("hudi").options(**OPTIONS).save(path, mode="upsert")),
        (InvalidOption, lambda: df.write.format("hudi").options(**OPTIONS, **slip).mode("append").save(path)),
        (SchemaMismatch, lambda: df.drop("ts").write.format("hudi").options(**OPTIONS).mode("append").save(path)),
        (TableNotFound, lambda: spark.read.format("hudi").load(str(tmp_path / "nowhere"))),
        (InvalidInput, lambda: read.load([path, path])),
        (InvalidInput, lambda: spark.read.format("hudi").schema("uuid string, nope int").load(path)),
        (InvalidOption, lambda: spark.read.format("hudi").option("hoodie.datasource.query.type", "x").load(path)),
        (
            InvalidOption,
            lambda: spark.read.format("hudi").option("hoodie.datasource.query.incremental.format", "cdc").load(path),
        ),
    ]
    for error, act in refused:
        with pytest.raises(error):
            act()
    assert len(table.history()) == 1
    named = "`fare` decimal(10, 2) COMMENT 'in, all', uuid string"
    assert spark.read.format("hudi").schema(named).load(path).columns == ["fare", "uuid"]
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW live USING hudi OPTIONS (path '{path}')")
    columns = "uuid, partitionpath, ts, fare"
    with pytest.raises(Exception, match="InvalidInput: 1 rows have a record key that is null"):
        spark.sql(f"INSERT INTO live ({columns}) VALUES (null, 'oslo', 9, 9.0)")
    spark.sql(f"INSERT INTO live ({columns}) VALUES ('x', 'oslo', 9, 9.0), ('y', 'rome', 9, 8.0)")
    assert hoodie.open_table(path).snapshot().to_arrow().num_rows == 5
    assert not [left for left in (tmp_path / "trips" / ".hoodie" / ".temp").rglob("*") if left.is_file()]
    assert spark.table("live").count() == 5
    df.createOrReplaceTempView("other")
    for name in ("other", "nowhere"):
        with pytest.raises(InvalidInput, match="view"):
            hoodie.spark.refresh_view(spark, name)
    with pytest.raises(Exception, match="no path"):
        spark.sql("CREATE TEMPORARY VIEW nowhere USING hudi")


def test_a_view_shows_its_table_as_it_is_when_a_query_names_it(spark, tmp_path):
    path = str(tmp_path / "trips")
    hoodie.register(spark)
    table = hoodie.create_table(path, spark=spark, name="trips", record_key="id")
    table.upsert(spark.createDataFrame([(1, "a")], "id int, v string"))
    spark.sql(f"CREATE OR REPLACE TEMP VIEW live USING hudi OPTIONS (path '{path}')")
    rows = "SELECT id, v FROM live ORDER BY id"
    assert [tuple(row) for row in spark.sql(rows).collect()] == [(1, "a")]
    spark.sql("CREATE OR REPLACE TEMP VIEW first AS SELECT * FROM live JOIN (SELECT 1 AS id) USING (id)")
    table.upsert(spark.createDataFrame([(2, "b")], "id int, v string"))
    assert spark.table("first").count() == 1  # a view of another's rows stays what it is
    assert [tuple(row) for row in spark.sql(rows).collect()] == [(1, "a"), (2, "b")]
    table.delete(spark.createDataFrame([(1,)], "id int"))
    assert spark.read.table("live").count() == 1
    table.upsert(spark.createDataFrame([(3, "c", 0)], "id int, v string, more int"))
    assert spark.table("live").select("more").count() == 2
    spark.table("live").where("id = 3").createOrReplaceTempView("live")  # another view by now
    table.upsert(spark.createDataFrame([(4, "d")], "id int, v string"), missing="null")
    assert [row.id for row in spark.table("live").collect()] == [3]
    spark.sql(f"CREATE OR REPLACE TEMP VIEW kept USING hudi OPTIONS (path '{path}')")
    spark.sql(f"-- by day; /* old\n/* new */ CREATE OR REPLACE TEMP VIEW `by-day` USING hudi OPTIONS (path '{path}')")
    assert spark.table("kept").count() == spark.table("`by-day`").count() == 3
    table.upsert(spark.createDataFrame([(6, "f")], "id int, v string"), missing="null")
    assert spark.sql("SELECT * FROM `by-day`").count() == spark.table("`by-day`").count() == 4
    table.delete(spark.createDataFrame([(6,)], "id int"))
    assert spark.table("kept").count() == 3
    hoodie.spark.unregister(spark)
    table.upsert(spark.createDataFrame([(5, "e")], "id int, v string"), missing="null")
    assert spark.table("kept").count() == 3  # Spark keeps what it planned
    hoodie.spark.refresh_view(spark, "by-day")
    assert spark.table("`by-day`").count() == 4
    hoodie.spark.refresh_view(spark, "kept")
    assert spark.table("kept").count() == 4


def test_other_formats_are_untouched_and_all_is_given_back(spark, tmp_path):
    df = spark.createDataFrame(TRIPS, COLUMNS)
    hoodie.register(spark)
    hoodie.register(spark)
    df.write.format("parquet").option("compression", "none").partitionBy("partitionpath").save(str(tmp_path / "plain"))
    assert spark.read.format("parquet").schema(COLUMNS).load(str(tmp_path / "plain")).count() == 3
    assert spark.read.parquet(str(tmp_path / "plain")).count() == 3
    by = {name: value for name, value in OPTIONS.items() if "partitionpath" not in name}
    df.write.format("hudi").options(**by).partitionBy("partitionpath").save(str(tmp_path / "t"))
    assert (tmp_path / "t" / "oslo").is_dir()
    two = spark.read.format("hudi").schema("uuid string, fare double").load(str(tmp_path / "t"))
    assert two.columns == ["uuid", "fare"]
    hoodie.spark.unregister(spark)
    methods = [vars(type(df.write))["save"], vars(type(spark.read))["load"], vars(type(df.write))["mode"]]
    assert not any(hasattr(method, "_hoodie_original") for method in methods)


def test_a_session_with_hudis_catalog_and_without_its_jar_works_once_registered(spark: SparkSession) -> None:
    hoodie.spark.unregister(spark)
    spark.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
    try:
        hoodie.register(spark)
        assert spark.sql("SELECT 1").count() == 1
        assert spark.catalog.databaseExists("default")
    finally:
        spark.conf.unset("spark.sql.catalog.spark_catalog")
        hoodie.spark.unregister(spark)


def test_partition_folders_and_patterns_are_loaded(spark: SparkSession, tmp_path: Path) -> None:
    hoodie.register(spark)
    try:
        path = tmp_path.as_uri()
        rows = spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(id, p)")
        options = {
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.hive_style_partitioning": "true",
        }
        rows.write.format("hoodie").options(**options).mode("overwrite").save(path)

        def ids(below: str, **read: str) -> list[int]:
            return sorted(row.id for row in spark.read.options(**read).load(f"{path}{below}", format="Hudi").collect())

        assert ids("/*") == ids("/*/*") == ids("/*/*", recursiveFileLookup="true") == [1, 2]
        assert ids("/p=a") == ids("/p=a/*") == ids("/p=a", basePath=path) == [1]
    finally:
        hoodie.spark.unregister(spark)
