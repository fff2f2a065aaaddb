"""Names of tables in several databases: each is a table of its own, in its database's folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import StatementError

KEY = "TBLPROPERTIES (primaryKey = 'id')"


@pytest.fixture
def databases(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Databases `one`, in the warehouse, and `two`, elsewhere."""
    spark.sql("CREATE DATABASE one")
    spark.sql(f"CREATE DATABASE two LOCATION '{tmp_path / 'place of two'}'")
    yield tmp_path
    spark.sql("USE default")
    for name in ("one", "two"):
        hoodie.spark.sql(spark, f"DROP DATABASE {name} CASCADE")


def made(spark: SparkSession, name: str, number: int, rest: str = "") -> None:
    hoodie.spark.sql(spark, f"CREATE TABLE {name} USING hudi {rest} {KEY} AS SELECT {number} AS id")


def ids(spark: SparkSession, name: str) -> list[int]:
    return [row[0] for row in hoodie.spark.sql(spark, f"SELECT id FROM {name}").collect()]


def test_one_name_in_two_databases_is_two_tables(spark: SparkSession, databases: Path) -> None:
    spark.sql("USE one")
    made(spark, "trips", 1)
    spark.sql("USE two")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        ids(spark, "trips")
    made(spark, "trips", 2)
    made(spark, "far", 3, f"LOCATION '{databases / 'far'}'")
    assert (databases / "place of two" / "trips" / ".hoodie").is_dir()
    assert (ids(spark, "trips"), ids(spark, "one.trips"), ids(spark, "spark_catalog.Two.TRIPS")) == ([2], [1], [2])
    assert Path(hoodie.open_table("far", spark=spark).path) == databases / "far"
    spark.sql("USE default")
    for name in ("trips", "far"):
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            ids(spark, name)
    assert ids(spark, "two.far") == [3]
    hoodie.spark.sql(spark, "DROP TABLE IF EXISTS trips")
    hoodie.spark.sql(spark, "DELETE FROM one.trips WHERE id = 2")
    hoodie.spark.sql(spark, "DROP TABLE two.trips")
    assert ids(spark, "one.trips") == [1]
    spark.sql("USE one")
    hoodie.spark.register_table(spark, "rides", str(databases / "far"))
    assert ids(spark, "ONE.rides") == [3]
    spark.sql("USE two")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        ids(spark, "rides")
    with pytest.raises(StatementError, match=r"SCHEMA_NOT_EMPTY.*trips"):
        hoodie.spark.sql(spark, "DROP DATABASE one")
    hoodie.spark.sql(spark, "DROP TABLE one.rides")
    hoodie.spark.sql(spark, "DROP TABLE one.trips")
    hoodie.spark.sql(spark, "DROP DATABASE one")
    spark.sql("CREATE DATABASE one")


def test_a_column_may_be_named_by_table_and_database(spark: SparkSession, databases: Path) -> None:
    spark.sql("USE one")
    made(spark, "trips", 1)
    made(spark, "two.far", 1)
    for query in (
        "SELECT one.trips.id FROM one.trips WHERE `one`.`trips`.id = 1 ORDER BY One.Trips.ID",
        "SELECT spark_catalog.one.trips.* EXCEPT (_hoodie_record_key) FROM trips WHERE one.trips.id < 2",
        "SELECT two.far.id FROM one.trips JOIN two.far ON one.trips.id = two.far.id",
        "SELECT f.id FROM two.far f WHERE EXISTS (SELECT 1 FROM one.trips WHERE one.trips.id = f.id)",
    ):
        assert hoodie.spark.sql(spark, query).selectExpr("id").collect() == [(1,)], query


@pytest.mark.nightly
def test_tables_of_one_name_may_stand_in_one_query(spark: SparkSession, databases: Path) -> None:
    made(spark, "one.trips", 1)
    made(spark, "two.trips", 1)
    spark.sql("CREATE TABLE two.plain USING parquet AS SELECT 1 AS id")
    made(spark, "one.plain", 1)
    spark.sql("USE one")
    for query in (
        "SELECT One.trips.id FROM one.trips JOIN two.trips ON one.trips.id = two.trips.id",
        "SELECT two.trips.id FROM trips JOIN two.trips ON spark_catalog.one.trips.id = two.trips.id",
        "SELECT one.plain.id FROM one.plain JOIN two.plain ON one.plain.id = two.plain.id",
        "SELECT trips.id FROM one.trips WHERE EXISTS (SELECT trips.id FROM two.trips WHERE two.trips.id = 1)",
    ):
        assert hoodie.spark.sql(spark, query).selectExpr("id").collect() == [(1,)], query


@pytest.mark.nightly
def test_a_change_may_name_columns_by_table_and_database(spark: SparkSession, databases: Path) -> None:
    spark.sql("USE one")
    for name in ("one.trips", "two.trips"):
        hoodie.spark.sql(
            spark,
            f"CREATE TABLE {name} USING hudi {KEY} AS "
            "SELECT CAST(id AS INT) AS id, 'a' AS v, named_struct('n', CAST(id AS INT)) AS s FROM range(3)",
        )
    spark.sql("CREATE TABLE two.plain USING parquet AS SELECT 1 AS id, 'p' AS v")

    def rows(name: str) -> list[tuple[int, str]]:
        return [tuple(row) for row in hoodie.spark.sql(spark, f"SELECT id, v FROM {name} ORDER BY id").collect()]

    for statement, left in (
        (
            "UPDATE one.trips SET one.trips.v = concat(One.Trips.v, 'b') WHERE spark_catalog.one.trips.s.n = 1",
            [(0, "a"), (1, "ab"), (2, "a")],
        ),
        (
            "UPDATE trips SET v = concat(`one`.trips.v, (SELECT max(two.plain.v) FROM two.plain)) WHERE trips.id = 0",
            [(0, "ap"), (1, "ab"), (2, "a")],
        ),
        ("DELETE FROM one.trips WHERE one.trips.id = 2 AND one.trips.v = 'a'", [(0, "ap"), (1, "ab")]),
        (
            "MERGE INTO one.trips USING two.plain ON one.trips.id = two.plain.id "
            "WHEN MATCHED AND one.trips.v = 'ab' THEN UPDATE SET one.trips.v = two.plain.v",
            [(0, "ap"), (1, "p")],
        ),
        (
            "MERGE INTO one.trips USING two.trips ON one.trips.id = two.trips.id "
            "WHEN MATCHED AND two.trips.id = 1 THEN UPDATE SET v = concat(one.trips.v, two.trips.v) "
            "WHEN NOT MATCHED AND two.trips.v = 'a' THEN INSERT (id, v, s) VALUES (two.trips.id, v, two.trips.s) "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
            [(0, "ap"), (1, "pa"), (2, "a")],
        ),
        (
            "MERGE INTO one.trips USING two.trips ON one.trips.id = two.trips.id "
            "WHEN MATCHED AND two.trips.id = 2 THEN UPDATE SET *",
            [(0, "ap"), (1, "pa"), (2, "a")],
        ),
    ):
        hoodie.spark.sql(spark, statement)
        assert rows("one.trips") == left, statement
    assert rows("two.trips") == [(0, "a"), (1, "a"), (2, "a")]
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        hoodie.spark.sql(spark, "DELETE FROM one.trips AS t WHERE one.trips.id = 2")


def test_a_name_that_is_taken_and_a_database_that_is_not_there_are_refused(
    spark: SparkSession, databases: Path
) -> None:
    spark.sql("CREATE TABLE one.plain USING parquet AS SELECT 7 AS id")
    for rest in ("", f"LOCATION '{databases / 'plain'}'"):
        with pytest.raises(StatementError, match=r"TABLE_OR_VIEW_ALREADY_EXISTS.*format parquet"):
            made(spark, "one.plain", 1, rest)
        with pytest.raises(StatementError, match="SCHEMA_NOT_FOUND"):
            made(spark, "three.trips", 1, rest)
    assert not (databases / "plain").exists()
    hoodie.spark.sql(spark, f"CREATE TABLE IF NOT EXISTS one.plain (id INT) USING hudi {KEY}")
    assert ids(spark, "one.plain") == [7]
    made(spark, "two.trips", 1, f"LOCATION '{databases / 'trips'}'")
    with pytest.raises(StatementError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        hoodie.spark.sql(spark, "CREATE TABLE two.trips USING parquet AS SELECT 8 AS id")
    with pytest.raises(StatementError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        made(spark, "two.trips", 2, f"LOCATION '{databases / 'other'}'")
    hoodie.spark.sql(spark, "CREATE TABLE IF NOT EXISTS two.trips USING parquet AS SELECT 8 AS id")
    assert ids(spark, "two.trips") == [1]


def test_a_temporary_view_goes_before_a_table_of_its_name(spark: SparkSession, databases: Path) -> None:
    spark.sql("USE two")
    made(spark, "trips", 1)
    made(spark, "far", 2, f"LOCATION '{databases / 'far'}'")
    for name in ("trips", "far"):
        spark.range(5, 6).createOrReplaceTempView(name)
        assert ids(spark, name) == [5]
        assert ids(spark, f"two.{name}") == [1 if name == "trips" else 2]
        spark.catalog.dropTempView(name)
        assert ids(spark, name) == [1 if name == "trips" else 2]
