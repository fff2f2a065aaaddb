"""`spark.sql` after `hoodie.register`: it takes our statements, and leaves all others to Spark as they are."""

import datetime
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import InvalidInput, StatementError
from hoodie.spark.own_sql import forget_foreign, spark_sql, takes_sql
from support.nightly import nightly

KEY = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
_names = itertools.count()


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database of its own, current, and the folder of its tables without a location."""
    folder = tmp_path_factory.mktemp("lake of sql")
    hoodie.register(spark)
    spark.sql(f"CREATE DATABASE lake_of_sql LOCATION '{folder}'")
    spark.sql("USE lake_of_sql")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id, 'p' AS v")
    yield folder
    spark.sql("USE default")
    spark.sql("DROP DATABASE lake_of_sql CASCADE")
    hoodie.spark.unregister(spark)


@pytest.fixture
def trips(spark: SparkSession, lake: Path) -> str:
    """The name of a table of three rows, in its database's folder."""
    name = f"trips_{next(_names)}"
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city) {KEY}")
    done = spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1, 'oslo'), (2, 'b', 1, 'oslo'), (3, 'c', 1, 'rome')")
    assert done.first()["num_inserted_rows"] == 3
    return name


def ids(frame: object) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())  # type: ignore[attr-defined]


def test_settings_of_the_session_say_which_rows_a_read_has(spark: SparkSession, lake: Path, trips: str) -> None:
    """As in Hudi 0.15 and 1.2."""
    first = hoodie.open_table(lake / trips).history()[0][0].requested
    spark.sql(f"UPDATE {trips} SET v = 'z', ts = 2 WHERE id = 1")
    settings = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": first}
    for name, value in settings.items():
        spark.sql(f"SET {name} = {value}")
    try:
        reader = spark.read.format("hudi")
        for rows in (spark.sql(f"SELECT * FROM {trips}"), spark.table(trips), reader.load(str(lake / trips))):
            assert ids(rows) == [1]
        assert ids(reader.option("hoodie.datasource.query.type", "snapshot").load(str(lake / trips))) == [1, 2, 3]
        assert ids(spark.sql(f"SELECT * FROM {trips} TIMESTAMP AS OF '2999-01-01'")) == [1, 2, 3]
        assert spark.sql(f"UPDATE {trips} SET v = 'y' WHERE id = 3").first()["num_updated_rows"] == 1
    finally:
        for name in settings:
            spark.sql(f"RESET {name}")


def test_arguments_of_a_statement_are_values_of_it(spark: SparkSession, trips: str) -> None:
    moment = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)
    assert ids(spark.sql(f"SELECT * FROM {trips} WHERE id > :low AND v <> :v", args={"low": 1, "v": "b'\\"})) == [2, 3]
    assert ids(spark.sql(f"SELECT * FROM {trips} WHERE id = ? OR v = ?", [1, "c"])) == [1, 3]
    assert ids(
        spark.sql("SELECT * FROM {t} WHERE id IN (SELECT id FROM {df})".replace("{t}", trips), df=spark.range(2, 9))
    ) == [2, 3]
    spark.sql(f"UPDATE {trips} SET v = :v, ts = :ts WHERE id = :id", {"v": "it's :id", "ts": 2, "id": 1})
    assert spark.sql(f"SELECT v FROM {trips} WHERE id = 1").first()[0] == "it's :id"
    spark.sql(
        f"INSERT INTO {trips} SELECT CAST(id AS INT), ? AS v, ts, city FROM {{rows}}",
        ["new"],
        rows=spark.createDataFrame([(5, 1, "bern")], "id long, ts long, city string"),
    )
    spark.sql(
        f"MERGE INTO {trips} t USING {{s}} s ON t.id = s.id WHEN MATCHED AND s.id = :id THEN DELETE",
        {"id": 3},
        s=spark.range(10),
    )
    assert ids(spark.sql(f"SELECT * FROM {trips} WHERE v <> {{text}} AND ts < :t", {"t": 9}, text="a")) == [1, 2, 5]
    assert spark.sql(
        f"SELECT :m AS m, :d AS d, :n AS n, :x AS x FROM {trips}",
        {"m": moment, "d": moment.date(), "n": None, "x": [1.5]},
    ).first()[1:] == (moment.date(), None, [1.5])
    commits = [instant.requested for instant, _ in hoodie.open_table(trips, spark=spark).history()]
    assert ids(spark.sql(f"SELECT * FROM {trips} TIMESTAMP AS OF :t", {"t": commits[-1]})) == [1, 2, 3]
    with pytest.raises(StatementError, match="write the expression into the statement"):
        spark.sql(f"DELETE FROM {trips} WHERE id = :id", {"id": F.lit(1)})
    assert [view for view in spark.catalog.listTables() if view.isTemporary and "pyspark" in view.name] == []


@pytest.mark.nightly
def test_an_identifier_clause_names_a_table(spark: SparkSession, trips: str) -> None:
    name = {"t": f"lake_of_sql.{trips}", "k": 1}
    assert ids(spark.sql("SELECT id FROM IDENTIFIER(:t) WHERE id > :k", name)) == [2, 3]
    assert spark.sql("UPDATE IDENTIFIER(:t) SET v = 'z' WHERE id = :k", name).first()["num_updated_rows"] == 1
    assert spark.sql("INSERT INTO IDENTIFIER(:t) VALUES (4, 'd', 1, 'bern')", name).first()["num_inserted_rows"] == 1
    merge = "MERGE INTO IDENTIFIER(?) t USING (SELECT ? AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert spark.sql(merge, [trips, 3]).first()["num_deleted_rows"] == 1
    assert spark.sql(f"DELETE FROM IDENTIFIER('{trips}') WHERE IDENTIFIER('id') = 2").first()["num_deleted_rows"] == 1
    assert hoodie.spark.sql(spark, f"UPDATE IDENTIFIER('`{trips}`') SET v = 'y'").first()["num_updated_rows"] == 2
    assert ids(spark.sql(f"SELECT * FROM {trips}")) == [1, 4]
    assert ids(spark.sql("SELECT * FROM IDENTIFIER(:t)", {"t": "plain"})) == [1]
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        spark.sql("SELECT * FROM IDENTIFIER(:t)")


def test_what_is_not_ours_is_sparks_with_the_same_arguments(spark: SparkSession, lake: Path) -> None:
    assert spark.sql("SELECT id + :n AS n FROM plain", args={"n": 1}).first()[0] == 2
    assert spark.sql("SELECT ? AS a, '{b}' AS b", args=[3]).first() == (3, "{b}")
    assert spark.sql("SELECT * FROM {df} JOIN plain USING (id)", df=spark.range(3)).count() == 1
    assert spark.sql("SELECT * FROM plain WHERE v = {v}", v="p").count() == 1
    assert spark.sql("WITH q AS (SELECT * FROM plain) SELECT * FROM q, (SELECT 1) r").count() == 1
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELEC 1")
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELECT 1; SELECT 2")
    with pytest.raises(AnalysisException):
        spark.sql("CALL lake.system.expire_snapshots('t')")
    with pytest.raises(UnsupportedOperationException, match="UPDATE"):
        spark.sql("UPDATE plain SET id = 2")


def test_a_foreign_statement_asks_the_catalog_once(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = """WITH q AS (SELECT p.id, count(*) AS n FROM plain p JOIN lake_of_sql.plain o ON p.id = o.id GROUP BY p.id)
               SELECT q.id, CASE WHEN q.n > 1 THEN 'many' ELSE 'one' END AS kind FROM q, plain WHERE q.id IN (1, 2)"""
    spark.sql(query)
    from hoodie.statements.run import answer

    with monkeypatch.context() as patched:
        patched.setattr("hoodie.statements.names.named_table", lambda *names: pytest.fail(str(names)))
        assert answer(spark, query) is None


def test_a_form_that_is_not_ours_to_read_is_sparks_on_a_table_of_another_format(
    spark: SparkSession, trips: str
) -> None:
    replaces = "INSERT INTO {} REPLACE WHERE id = 1 SELECT id, v FROM {}"
    with pytest.raises(AnalysisException):
        spark.sql(replaces.format("plain", trips))
    with pytest.raises(StatementError, match="INSERT with REPLACE"):
        spark.sql(replaces.format(trips, "plain"))


def test_a_catalog_that_cannot_be_asked_is_left_to_spark(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AnalysisException("no permission")

    forget_foreign(spark)
    monkeypatch.setattr("hoodie.statements.names.named_table", refuse)
    assert spark.sql("SELECT id FROM plain").count() == 1


def test_rows_of_ours_go_into_tables_of_others(spark: SparkSession, lake: Path, trips: str, tmp_path: Path) -> None:
    copy = f"{trips}_copy"
    spark.sql(f"CREATE TABLE {copy} USING parquet AS SELECT id, v FROM {trips} WHERE id < 3")
    spark.sql(f"INSERT INTO {copy} (id, v) SELECT id, '{{x}}' FROM {trips} WHERE id = 3")
    spark.sql(f"INSERT INTO {copy} SELECT id, v FROM (TABLE {trips}) WHERE id = 1")
    spark.sql(f"WITH q AS (SELECT * FROM {trips}) INSERT INTO {copy} SELECT id + :n, v FROM q WHERE id = 3", {"n": 4})
    assert ids(spark.sql(f"SELECT * FROM {copy}")) == [1, 1, 2, 3, 7]
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'out'}' USING parquet SELECT id FROM {trips}")
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3
    spark.sql(
        f"CREATE TABLE {trips}_of_plain USING hudi TBLPROPERTIES (primaryKey = 'id') "
        f"AS SELECT * FROM {copy} WHERE id = 2"
    )
    assert ids(spark.sql(f"TABLE {trips}_of_plain")) == [2]


def test_explain_and_cache_know_the_tables(spark: SparkSession, trips: str) -> None:
    assert "Scan parquet" in spark.sql(f"EXPLAIN FORMATTED SELECT id FROM {trips}").first()[0]
    with pytest.raises(StatementError, match="explain_upsert"):
        spark.sql(f"EXPLAIN UPDATE {trips} SET v = 'x'")
    spark.sql(f"CACHE TABLE {trips}")
    assert "InMemoryTableScan" in spark.sql(f"EXPLAIN SELECT id FROM {trips}").first()[0]
    spark.sql(f"DELETE FROM {trips} WHERE id = 1")
    assert ids(spark.sql(f"SELECT * FROM {trips}")) == [2, 3]
    spark.sql(f"UNCACHE TABLE {trips}")
    assert "InMemoryTableScan" not in spark.sql(f"EXPLAIN SELECT id FROM {trips}").first()[0]
    spark.sql(f"CACHE LAZY TABLE {trips}_kept OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT * FROM {trips}")
    assert ids(spark.table(f"{trips}_kept")) == [2, 3]
    spark.catalog.dropTempView(f"{trips}_kept")
    spark.sql(f"REFRESH TABLE {trips}")


@pytest.mark.parametrize("every", [False, nightly(True)])
def test_a_temporary_view_of_a_table_takes_changes_for_it(
    spark: SparkSession, lake: Path, trips: str, every: bool
) -> None:
    """Hudi refuses them, or fails on its own columns."""
    path = str(lake / trips)
    spark.read.format("hudi").load(path).createOrReplaceTempView("v_frame")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v_query AS SELECT * FROM {trips}")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v_using USING hudi OPTIONS (path '{path}')")
    views = ("v_frame", "v_query", "v_using") if every else ("v_query",)
    for ts, view in enumerate(views, 2):
        merged = spark.sql(
            f"MERGE INTO {view} t USING (SELECT {ts + 8} AS id, '{view}' AS v, {ts}L AS ts, 'bern' AS city UNION ALL "
            f"SELECT 1, '{view}', {ts}L, 'oslo') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *"
        ).first()
        assert (merged["num_updated_rows"], merged["num_inserted_rows"]) == (1, 1)
        assert spark.sql(f"SELECT v FROM {view} WHERE id = 1").first()["v"] == view
        assert spark.sql(f"UPDATE {view} SET v = upper(v) WHERE id = 1").first()["num_updated_rows"] == 1
        assert spark.sql(f"SELECT v FROM {trips} WHERE id = 1").first()["v"] == view.upper()
        assert spark.sql(f"DELETE FROM {view} WHERE id = {ts + 8}").first()["num_deleted_rows"] == 1
        assert ids(spark.sql(f"SELECT * FROM {view}")) == [1, 2, 3]
    spark.sql("DELETE FROM v_frame WHERE id = 9")
    spark.sql("UPDATE v_using SET v = 'b' WHERE id = 2")
    spark.sql("INSERT INTO v_query VALUES (7, 'g', 1, 'bern')")
    assert ids(spark.sql(f"SELECT * FROM {trips}")) == ids(spark.sql("SELECT * FROM v_query")) == [1, 2, 3, 7]


def test_a_view_of_some_rows_takes_no_changes(spark: SparkSession, lake: Path, trips: str) -> None:
    rows = spark.read.format("hudi").load(str(lake / trips))
    rows.createOrReplaceTempView("some_trips")
    rows.where("id > 1").createOrReplaceTempView("some_trips")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW some_more AS SELECT * FROM {trips} WHERE id > 1")
    then = spark.read.format("hudi").option("as.of.instant", "2999-01-01").load(str(lake / trips))
    then.createOrReplaceTempView("trips_then")
    spark.read.format("hudi").load(str(lake / trips / "city=oslo")).createOrReplaceTempView("trips_of_oslo")
    for view in ("some_trips", "some_more", "trips_then", "trips_of_oslo"):
        for change in (f"UPDATE {view} SET id = 9", f"DELETE FROM {view}", f"INSERT INTO {view} SELECT * FROM {view}"):
            with pytest.raises(StatementError, match=f"{view} is a view of rows of a Hudi table, and takes no changes"):
                spark.sql(change)
        spark.catalog.dropTempView(view)
    rows.createOrReplaceGlobalTempView("trips_of_all")
    spark.sql(f"CREATE VIEW some_that_stay AS SELECT * FROM {trips} WHERE id > 1")
    for view in ("global_temp.trips_of_all", "some_that_stay"):
        with pytest.raises(StatementError, match=f"{view} is a view of rows"):
            spark.sql(f"DELETE FROM {view} WHERE id = 1")
    spark.sql("DROP VIEW some_that_stay")
    spark.range(3).createOrReplaceTempView("numbers")
    with pytest.raises((AnalysisException, UnsupportedOperationException)):
        spark.sql("UPDATE numbers SET id = 9")  # Spark's own error
    assert spark.sql(f"SELECT * FROM {trips}").count() == 3


@pytest.mark.parametrize("view", ["createOrReplaceTempView", "createOrReplaceGlobalTempView"])
def test_an_insert_into_a_view_of_rows_writes_no_files_of_the_table(
    view: str, spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id", ordering="ts")
    table.upsert(pa.table({"id": [1, 2], "ts": [1, 1]}))
    getattr(table.snapshot(columns=["id", "ts"]), view)("rows_of_t")
    name = "rows_of_t" if view == "createOrReplaceTempView" else "global_temp.rows_of_t"
    for what in ("INTO", "OVERWRITE"):
        with pytest.raises(AnalysisException, match="UNSUPPORTED_INSERT"):
            spark_sql(spark, f"INSERT {what} {name} VALUES (3L, 1L)")
        with pytest.raises(StatementError, match="view of rows of a Hudi table"):
            spark.sql(f"INSERT {what} {name} VALUES (3L, 1L)")
    assert ids(table.snapshot()) == [1, 2]


@pytest.mark.nightly
def test_a_new_session_makes_tables_and_views_beside_the_one_that_is_active(spark: SparkSession, lake: Path) -> None:
    hoodie.register(other := spark.newSession())
    assert takes_sql()
    other.sql("USE lake_of_sql")
    other.sql(f"CREATE TABLE of_other (id INT, ts BIGINT) USING hudi {KEY}")
    spark.sql("INSERT INTO of_other VALUES (1, 1)")
    other.sql(f"CREATE TEMPORARY VIEW of_its_own USING hudi OPTIONS (path '{lake / 'of_other'}')")
    assert ids(other.table("of_other")) == ids(other.sql("SELECT * FROM of_its_own")) == [1]
    active = SparkSession.getActiveSession()
    assert not active.catalog.tableExists("of_its_own")


@pytest.mark.nightly
def test_threads_and_new_sessions_have_the_tables(spark: SparkSession, trips: str) -> None:
    other = spark.newSession()
    other.sql("USE lake_of_sql")
    assert ids(other.sql(f"SELECT * FROM {trips}")) == ids(other.table(trips)) == [1, 2, 3]
    other.sql(f"DELETE FROM {trips} WHERE id = 1")
    names = [f"{trips}_{number}" for number in range(3)]

    def fill(name: str) -> list[int]:
        spark.sql(f"CREATE TABLE {name} (id INT, ts INT) USING hudi {KEY}")
        spark.sql(f"INSERT INTO {name} SELECT id, 1 FROM {trips}")
        return ids(spark.sql(f"SELECT * FROM {name} JOIN plain USING (id) RIGHT JOIN {name} USING (id)"))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(fill, names)) == [[2, 3]] * 3


def test_sql_is_sparks_where_it_is_not_asked_for(spark: SparkSession, lake: Path, trips: str) -> None:
    hoodie.register(spark, sql=False)
    try:
        with pytest.raises(StatementError, match=r"hoodie\.spark\.sql"):
            spark.sql(f"CREATE TABLE {trips}_no (id INT) USING hudi {KEY}")
        assert not spark.catalog.tableExists(f"{trips}_no")
        with pytest.raises(AnalysisException, match="does not support deletes"):
            spark.sql(f"DELETE FROM {trips}")
        assert ids(spark.sql(f"SELECT id FROM {trips}")) == [1, 2, 3]  # by its entry, as Spark reads it
        with pytest.raises(InvalidInput, match=r"register_table"):
            spark.range(1).write.format("hudi").saveAsTable(f"{trips}_no")
    finally:
        hoodie.register(spark)
    assert spark.sql(f"DELETE FROM {trips}").first()["num_deleted_rows"] == 3


def test_an_entry_without_a_table_is_named_as_that(spark: SparkSession, lake: Path) -> None:
    spark_sql(spark, f"CREATE TABLE debris (id INT) USING hudi {KEY}")  # as Spark carries it out itself
    for statement in (
        "SELECT * FROM debris",
        "DELETE FROM debris",
        f"CREATE TABLE IF NOT EXISTS debris (id INT) USING hudi {KEY}",
    ):
        with pytest.raises(StatementError, match="DROP TABLE debris removes it"):
            spark.sql(statement)
    with pytest.raises(StatementError, match="DROP TABLE debris removes it"):
        spark.table("debris")
    with pytest.raises(StatementError, match="DROP TABLE debris removes it"):
        spark.range(1).write.format("hudi").saveAsTable("debris")
    spark.sql("DROP TABLE debris")
    spark.sql(f"CREATE TABLE debris (id INT, ts INT) USING hudi {KEY}")
    assert spark.sql("SELECT * FROM debris").count() == 0


def test_a_view_that_stays_follows_its_tables(spark: SparkSession, lake: Path, trips: str) -> None:
    spark.sql(f"CREATE VIEW {trips}_seen AS SELECT id, upper(v) AS v FROM {trips} WHERE id > 1")
    spark.sql(f"INSERT INTO {trips} VALUES (4, 'd', 1, 'rome')")
    assert [tuple(row) for row in spark.sql(f"SELECT * FROM {trips}_seen ORDER BY id").collect()] == [
        (2, "B"),
        (3, "C"),
        (4, "D"),
    ]
    spark.sql(f"ALTER TABLE {trips} ADD COLUMNS (more INT)")
    spark.sql(f"DELETE FROM {trips} WHERE id = 3")
    assert ids(spark.table(f"{trips}_seen")) == [2, 4]
    with pytest.raises(StatementError, match="a view that stays needs tables that Spark's catalog has"):
        spark.sql(f"CREATE VIEW no_view AS SELECT * FROM hudi.`{lake / trips}`")
    assert not spark.catalog.tableExists("no_view")
    spark.sql(f"DROP VIEW {trips}_seen")


def test_a_statement_that_fails_leaves_no_entry(
    spark: SparkSession, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rest in ("", f"LOCATION '{tmp_path / 'failed'}'"):
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            spark.sql(
                f"CREATE TABLE failed USING hudi {rest} TBLPROPERTIES (primaryKey = 'id') "
                "AS SELECT CAST('x' AS INT) AS id FROM plain"
            )
        assert not spark.catalog.tableExists("failed")
        assert not (lake / "failed" / ".hoodie").exists()
    path = str(tmp_path / "shared")

    def meanwhile(table: object, rows: object, **options: object) -> None:
        hoodie.open_table(path).upsert(pa.table({"id": [7]}))
        raise OSError("the rows of the statement fail")

    monkeypatch.setattr(hoodie.HoodieTable, "bulk_insert", meanwhile)
    with pytest.raises(OSError, match="of the statement fail"):
        spark.sql(
            f"CREATE TABLE failed USING hudi LOCATION '{path}' TBLPROPERTIES (primaryKey = 'id') AS SELECT 1L AS id"
        )
    assert not spark.catalog.tableExists("failed")
    assert hoodie.open_table(path).count() == 1
