"""Tables by their names in the session's catalog. The entries of a real metastore: tests/services."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidInput, StatementError, TableNotFound, UnsupportedTable
from hoodie.sources.register import register, unregister
from hoodie.spark.own_sql import spark_sql


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Merge-on-Read table with a log, and entries of it in Spark's own catalog as a sync would make them."""
    folder = tmp_path_factory.mktemp("lake")
    table = hoodie.create_table(
        folder / "trips", spark=spark, name="trips", record_key="id", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.upsert(spark.createDataFrame([("a", 1), ("b", 1)], "id string, ts long"))
    table.upsert(spark.createDataFrame([("a", 2)], "id string, ts long"))
    register(spark)
    spark.sql("CREATE DATABASE city")
    for name, optimized in (("trips", "false"), ("trips_ro", "true")):
        spark_sql(
            spark,
            f"CREATE TABLE city.{name} (id string, ts bigint) USING hudi "
            f"OPTIONS ('hoodie.query.as.ro.table' '{optimized}') LOCATION '{folder / 'trips'}'",
        )
    spark.sql(f"CREATE TABLE city.orders USING parquet LOCATION '{folder / 'orders'}' AS SELECT 1 AS n")
    yield folder
    unregister(spark)
    spark.sql("DROP DATABASE city CASCADE")


def test_a_table_opens_by_the_name_of_its_entry(spark: SparkSession, lake: Path) -> None:
    table = hoodie.open_table("city.trips", spark=spark)
    assert Path(table.path.removeprefix("file://")) == lake / "trips"
    assert table.count() == 2
    assert hoodie.open_table("CITY.Trips_ro", spark=spark).path == table.path


def test_sql_reads_each_entry_as_it_is_meant(spark: SparkSession, lake: Path) -> None:
    query = "SELECT id, ts FROM city.{} ORDER BY id"
    assert hoodie.spark.sql(spark, query.format("trips")).collect() == [("a", 2), ("b", 1)]
    assert hoodie.spark.sql(spark, query.format("trips_ro")).collect() == [("a", 1), ("b", 1)]
    assert hoodie.spark.sql(spark, "SELECT t.id FROM city.trips t JOIN city.orders o ON t.ts = o.n").collect() == [
        ("b",)
    ]
    hoodie.spark.sql(spark, "UPDATE city.trips SET ts = 3 WHERE id = 'b'")
    assert hoodie.spark.sql(spark, query.format("trips")).collect() == [("a", 2), ("b", 3)]
    with pytest.raises(StatementError, match="newest base files alone"):
        hoodie.spark.sql(spark, "DELETE FROM city.trips_ro WHERE id = 'a'")
    with pytest.raises(StatementError, match="is an entry of the session's catalog already"):
        hoodie.spark.sql(spark, "CREATE TABLE city.trips (id string) USING hudi TBLPROPERTIES (primaryKey = 'id')")


def test_what_is_no_table_of_ours_is_refused_by_its_name(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(UnsupportedTable, match=r"city\.orders is a table of the format parquet"):
        hoodie.open_table("city.orders", spark=spark)
    for name in ("city.nothing", "nowhere.trips"):
        with pytest.raises(TableNotFound, match=name):
            hoodie.open_table(name, spark=spark)
    spark.range(1).createOrReplaceTempView("seen")
    with pytest.raises(UnsupportedTable, match="seen is a view"):
        hoodie.open_table("seen", spark=spark)


def test_a_folder_and_an_entry_of_one_name_are_told_apart(
    spark: SparkSession, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hoodie.create_table("city.trips", spark=spark, name="other", record_key="id")
    with pytest.raises(InvalidInput, match=r"also an entry of the session's catalog.*'\./city\.trips'"):
        hoodie.open_table("city.trips", spark=spark)
    assert hoodie.open_table("./city.trips", spark=spark).path == str(tmp_path / "city.trips")


def test_dropping_an_entry_leaves_the_table(spark: SparkSession, lake: Path) -> None:
    spark_sql(spark, f"CREATE TABLE city.gone (id string, ts bigint) USING hudi LOCATION '{lake / 'trips'}'")
    hoodie.spark.sql(spark, "DROP TABLE city.gone")
    assert not spark.catalog.tableExists("city.gone")
    assert hoodie.open_table(lake / "trips", spark=spark).count() == 2
