"""Tables of ours by their names in Spark's own calls: `table`, `insertInto`, `saveAsTable`, `writeTo`, the catalog."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import HoodieError, InvalidInput, StatementError, TableMismatch
from hoodie.spark.own_sql import spark_sql, spark_table

OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database of its own, current, and its folder."""
    folder = tmp_path_factory.mktemp("lake by name")
    hoodie.register(spark)
    spark.sql(f"CREATE DATABASE lake_by_name LOCATION '{folder}'")
    spark.sql("USE lake_by_name")
    yield folder
    spark.sql("USE default")
    spark.sql("DROP DATABASE lake_by_name CASCADE")
    hoodie.spark.unregister(spark)


def rows(spark: SparkSession, *ids: int, ts: int = 1, city: str = "oslo") -> DataFrame:
    return spark.createDataFrame([(i, ts, f"v{i}", city) for i in ids], "id int, ts long, v string, city string")


def content(spark: SparkSession, name: str) -> list[tuple[int, str]]:
    return sorted((row.id, row.v) for row in spark.table(name).select("id", "v").collect())


def ids(spark: SparkSession, name: str) -> list[int]:
    return [number for number, _ in content(spark, name)]


def test_a_table_is_saved_read_and_found_by_its_name(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    save = rows(spark, 1, 2).write.format("hudi").options(**OPTIONS)
    save.saveAsTable("saved")
    assert (lake / "saved" / ".hoodie").is_dir()
    assert ids(spark, "saved") == ids(spark, "lake_by_name.saved") == [1, 2]
    with pytest.raises(StatementError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        save.saveAsTable("saved")
    save.mode("ignore").saveAsTable("saved")
    rows(spark, 2, 3, ts=2).write.mode("append").saveAsTable("saved")
    assert ids(spark, "saved") == [1, 2, 3]
    rows(spark, 9).write.format("hudi").mode("overwrite").saveAsTable("saved")
    assert ids(spark, "saved") == [9]
    assert [row.partition for row in spark.sql("SHOW PARTITIONS saved").collect()] == ["city=oslo"]
    rows(spark, 9).select("city", "id", "ts", "v").write.format("hudi").mode("overwrite").saveAsTable("saved")
    assert spark.table("saved").columns[-4:] == ["id", "ts", "v", "city"]  # partition columns stay last
    rows(spark, 4).write.format("hudi").mode("overwrite").partitionBy("v").saveAsTable("saved")
    rows(spark, 5).writeTo("saved").using("hudi").tableProperty("primaryKey", "id,ts").createOrReplace()
    assert [row.partition for row in spark.sql("SHOW PARTITIONS saved").collect()] == ["v=v5"]
    assert spark.table("saved").first()["_hoodie_record_key"] == "id:5,ts:1"

    save.option("path", str(tmp_path / "far")).saveAsTable("far")
    assert (tmp_path / "far" / ".hoodie").is_dir()
    assert spark.catalog.tableExists("far")
    assert {"saved", "far"} <= {table.name for table in spark.catalog.listTables()}
    assert {"saved", "far"} <= {row.tableName for row in spark.sql("SHOW TABLES").collect()}
    spark.sql("DROP TABLE far")
    assert hoodie.open_table(str(tmp_path / "far"), spark=spark).count() == 2
    spark.sql("DROP TABLE saved")
    assert not (lake / "saved").exists()


def test_partitions_of_tables_made_by_name_lie_in_folders_as_hudi_names_them(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    """As `CREATE TABLE` makes them, by both calls: asked of Hudi 0.15.0 and 1.2.0. A table that is there stays so."""
    rows(spark, 1).write.format("hudi").options(**OPTIONS).saveAsTable("folders_saved")
    create = rows(spark, 1).writeTo("folders_created").using("hudi").tableProperty("primaryKey", "id")
    create.partitionedBy(F.col("city")).create()
    for name in ("folders_saved", "folders_created"):
        assert spark.table(name).first()["_hoodie_partition_path"] == "city=oslo"
    plain = rows(spark, 1).write.format("hudi").options(**OPTIONS, path=str(tmp_path / "folders_plain"))
    plain.save()
    plain.mode("append").saveAsTable("folders_plain")
    named = rows(spark, 1).write.format("hudi").options(**OPTIONS)
    named.option("hoodie.datasource.write.hive_style_partitioning", "false").saveAsTable("folders_bare")
    for name in ("folders_plain", "folders_bare"):
        assert spark.table(name).first()["_hoodie_partition_path"] == "oslo"


def test_a_save_that_fails_leaves_no_entry(spark: SparkSession, lake: Path) -> None:
    misspelt = {"hoodie.datasource.write.recordkey.feild": "id"}
    with pytest.raises(HoodieError, match="recordkey"):
        rows(spark, 1).write.format("hudi").options(**misspelt).saveAsTable("misspelt")
    assert not spark.catalog.tableExists("misspelt")
    rows(spark, 1).write.saveAsTable("plain")
    with pytest.raises(StatementError, match=r"TABLE_OR_VIEW_ALREADY_EXISTS.*format parquet"):
        rows(spark, 1).write.format("hudi").options(**OPTIONS).mode("overwrite").saveAsTable("plain")
    with pytest.raises(StatementError, match="SCHEMA_NOT_FOUND"):
        rows(spark, 1).write.format("hudi").options(**OPTIONS).saveAsTable("nowhere.trips")
    assert ids(spark, "plain") == [1]


def test_rows_are_inserted_by_place_or_by_name(spark: SparkSession, lake: Path) -> None:
    rows(spark, 1).write.format("hudi").options(**OPTIONS).saveAsTable("filled")
    rows(spark, 2).selectExpr("id AS a", "ts AS b", "v AS c", "city AS d").write.insertInto("filled")
    rows(spark, 3).select("city", "v", "ts", "id").writeTo("filled").append()
    assert content(spark, "filled") == [(1, "v1"), (2, "v2"), (3, "v3")]
    rows(spark, 4, city="rome").writeTo("filled").append()
    rows(spark, 5).writeTo("filled").overwritePartitions()
    assert ids(spark, "filled") == [4, 5]
    rows(spark, 6).write.mode("overwrite").insertInto("filled")
    assert ids(spark, "filled") == [6]
    rows(spark, 7).write.insertInto("filled", overwrite=True)
    rows(spark, 8).writeTo("filled").overwrite(F.lit(True))
    assert ids(spark, "filled") == [8]
    with pytest.raises(InvalidInput, match="overwritePartitions"):
        rows(spark, 9).writeTo("filled").overwrite(F.col("id") > 1)
    rows(spark, 1).write.saveAsTable("by_spark")
    rows(spark, 2).write.insertInto("by_spark")
    rows(spark, 3).writeTo("by_spark_too").using("parquet").create()
    assert (ids(spark, "by_spark"), ids(spark, "by_spark_too")) == ([1, 2], [3])


def test_partition_columns_stand_behind_the_others_as_in_sparks_own_tables(spark: SparkSession, lake: Path) -> None:
    source = rows(spark, 1).select("id", "city", "ts", "v")
    source.write.format("hudi").option("primaryKey", "id").partitionBy("city").saveAsTable("saved_by_city")
    source.writeTo("made_by_city").using("hudi").tableProperty("primaryKey", "id").partitionedBy(F.col("city")).create()
    for name in ("saved_by_city", "made_by_city"):
        assert spark.table(name).columns[5:] == ["id", "ts", "v", "city"]
        rows(spark, 2).write.insertInto(name)
        assert content(spark, name) == [(1, "v1"), (2, "v2")]


def test_write_to_makes_tables_with_hudis_properties(spark: SparkSession, lake: Path) -> None:
    def writer(*numbers: int) -> object:
        made = rows(spark, *numbers).writeTo("made").using("hudi").partitionedBy(F.col("city"))
        return (
            made.tableProperty("primaryKey", "id").tableProperty("preCombineField", "ts").tableProperty("type", "mor")
        )

    with pytest.raises(StatementError, match="TABLE_OR_VIEW_NOT_FOUND"):
        writer(1).replace()  # type: ignore[attr-defined]
    writer(1).create()  # type: ignore[attr-defined]
    table = hoodie.open_table("made", spark=spark)
    assert (lake / "made" / "city=oslo").is_dir()
    assert "MERGE_ON_READ" in (lake / "made" / ".hoodie" / "hoodie.properties").read_text()
    table.upsert(rows(spark, 2))
    with pytest.raises(StatementError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        writer(3).create()  # type: ignore[attr-defined]
    writer(3).createOrReplace()  # type: ignore[attr-defined]
    assert ids(spark, "made") == [3]


def test_options_of_a_read_by_name_count(spark: SparkSession, lake: Path) -> None:
    rows(spark, 1).write.format("hudi").options(**OPTIONS).saveAsTable("told")
    first = hoodie.open_table("told", spark=spark).history()[-1][0].requested
    rows(spark, 2).writeTo("told").append()
    assert spark.read.option("as.of.instant", first).table("told").count() == 1
    changes = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": first}
    assert [row.id for row in spark.read.options(**changes).table("told").collect()] == [2]


def test_an_entry_is_read_and_written_where_python_is_not_asked(spark: SparkSession, lake: Path) -> None:
    """What Spark does with an entry by itself: a Scala cell, another door of the session."""
    spark.sql(
        "CREATE TABLE known (id INT, ts BIGINT, s STRUCT<a_b: ARRAY<INT>> COMMENT 'its', city STRING) USING hudi "
        "PARTITIONED BY (city) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql("INSERT INTO known VALUES (1, 1, named_struct('a_b', array(1, 2)), 'oslo')")
    assert spark_table(spark, "known").select("id", "s").collect() == [(1, ([1, 2],))]
    spark_sql(spark, "INSERT INTO known (id, ts, city) VALUES (2, 1, 'rome')")
    assert spark_sql(spark, "SELECT id FROM known ORDER BY id").collect() == [(1,), (2,)]
    information = spark_sql(spark, "SHOW TABLE EXTENDED LIKE 'known'").first()["information"]
    assert "Provider: hudi" in information
    assert "primaryKey=id" in information
    assert f"Location: file:{lake}/known" in information
    assert [column.name for column in spark.catalog.listColumns("known")][:1] == ["_hoodie_commit_time"]


@pytest.mark.nightly  # two sessions with a metastore, each in a process of its own
def test_tables_and_views_are_there_in_the_next_session_with_a_metastore(tmp_path: Path) -> None:
    first = """
        spark.sql("CREATE TABLE kept (id INT, city STRING) USING hudi PARTITIONED BY (city) "
                  "TBLPROPERTIES (primaryKey = 'id')")
        spark.sql("INSERT INTO kept VALUES (1, 'oslo')")
        spark.sql("CREATE VIEW seen AS SELECT id FROM kept")
    """
    second = """
        spark.sql("INSERT INTO kept VALUES (2, 'rome')")
        assert spark.table("kept").count() == spark.sql("SELECT * FROM seen").count() == 2
        assert [row.tableName for row in spark.sql("SHOW TABLES").collect()] == ["kept", "seen"]
        spark.sql("ALTER TABLE kept ADD COLUMNS (more INT)")
        spark.sql("DROP TABLE kept")
    """
    start = f"""
        import hoodie
        conf = {{
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": "{tmp_path / "warehouse"}",
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={tmp_path / "derby"};create=true",
        }}
        spark = hoodie.spark.local_session("metastore", cores=2, memory="1g", **conf)
        hoodie.register(spark)
    """
    for steps in (first, second):
        program = textwrap.dedent(start) + textwrap.dedent(steps)
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
    assert not (tmp_path / "warehouse" / "kept").exists()


def test_registered_names_are_tables_of_the_catalog(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id")
    table.insert(rows(spark, 1))
    hoodie.spark.register_table(spark, "named", tmp_path / "t")
    try:
        assert ids(spark, "named") == [1]
        assert spark.catalog.tableExists("named")
        assert spark.catalog.tableExists("lake_by_name.named")
        assert not spark.catalog.tableExists("default.named")
        assert "named" in [found.name for found in spark.catalog.listTables()]
        assert [row.tableName for row in spark.sql("SHOW TABLES IN lake_by_name LIKE 'name*|x'").collect()] == ["named"]
        assert "named" not in [row.tableName for row in spark.sql("SHOW TABLES IN default").collect()]
        rows(spark, 2).write.insertInto("named")
        assert ids(spark, "named") == [1, 2]
    finally:
        hoodie.spark.unregister_table(spark, "named")
    assert not spark.catalog.tableExists("named")


def test_a_location_with_a_table_gets_an_entry_of_it(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id").insert(rows(spark, 1))
    attach = f"CREATE TABLE {{}} USING hudi LOCATION '{tmp_path / 't'}' TBLPROPERTIES (primaryKey = 'id')"
    spark.sql(attach.format("attached"))
    assert ids(spark, "attached") == [1]
    assert "v" in [column.name for column in spark.catalog.listColumns("attached")]
    with pytest.raises(StatementError, match="already"):
        spark.sql(attach.format("attached"))
    spark.sql(attach.format("IF NOT EXISTS attached"))
    with pytest.raises(TableMismatch, match="primaryKey"):
        spark.sql(attach.format("attached_too").replace("'id'", "'v'"))
    assert not spark.catalog.tableExists("attached_too")
    spark.sql(f"CREATE TABLE attached_by_path (id INT, v STRING) USING hudi LOCATION '{tmp_path / 't'}'")
    assert spark.sql("DELETE FROM attached_by_path WHERE id = 9").first()["num_deleted_rows"] == 0
    information = spark_sql(spark, "SHOW TABLE EXTENDED LIKE 'attached_by_path'").first()["information"]
    assert "primaryKey=id" in information
    spark.sql("DROP TABLE attached_by_path")
    spark.sql("DROP TABLE attached")
    assert (tmp_path / "t" / ".hoodie").is_dir()
    spark.sql(attach.format("attached"))
    spark.sql("DROP TABLE attached PURGE")
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_texts_of_a_comment_that_follow_each_other_are_one(spark: SparkSession, lake: Path) -> None:
    """As Spark takes them for its own tables."""
    columns = "(id INT COMMENT 'a' 'b', x INT)"
    comments: dict[str, list[str]] = {}
    for name, kind in (("commented", "hudi TBLPROPERTIES (primaryKey = 'id')"), ("commented_own", "parquet")):
        for statement in (
            f"CREATE TABLE {name} {columns} USING {kind} COMMENT 'c' 'd'",
            f"ALTER TABLE {name} ALTER COLUMN x COMMENT 'it''s' \n'f'",
            f"COMMENT ON TABLE {name} IS 'g' 'h'",
        ):
            spark.sql(statement)
        described = spark.sql(f"DESCRIBE EXTENDED {name}").collect()
        comments[name] = [
            row["data_type"] if row["col_name"] == "Comment" else row["comment"]
            for row in described
            if row["col_name"] in ("id", "x", "Comment")
        ]
    assert comments["commented"] == comments["commented_own"] == ["ab", "it'sf", "gh"]
    with pytest.raises(StatementError, match="quotes of two kinds"):
        spark.sql("ALTER TABLE commented ALTER COLUMN x COMMENT 'e' \"f\"")
