"""Statements of Hudi's SQL pages by `spark.sql`, one session, beside what the real Hudi answered.

The answers are in tests/vectors/sql_statements.json; tests/engines/record_sql.py made them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from types import EllipsisType
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hoodie
from engines.hudi_session import plain
from hoodie.errors import HoodieError, InvalidOption, StatementError
from hoodie.spark.entries import set_properties
from hoodie.table.state import load_state
from support.nightly import nightly
from support.sql_statements import DIFFERS, comparable, filled, recorded, statements


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder of the session, whose default database is one of its own."""
    hoodie.register(spark)
    spark.sql(f"CREATE DATABASE of_statements LOCATION '{tmp_path / 'warehouse'}'")
    spark.sql("USE of_statements")
    yield tmp_path
    for name in ("hoodie.schema.on.read.enable", "hoodie.spark.sql.merge.into.partial.updates"):
        spark.conf.unset(name)
    spark.sql("USE default")
    spark.sql("DROP DATABASE of_statements CASCADE")
    hoodie.spark.unregister(spark)


@pytest.mark.parametrize("every", [pytest.param(False, id="day"), nightly(True, id="night")])
def test_statements_answer_as_the_real_hudi_does(spark: SparkSession, root: Path, every: bool) -> None:
    real = {text: iter(answers) for text, answers in recorded().items()}
    problems, passed, ran, left_out = [], set[str](), set[str](), set[str]()
    for text, asks, by_day in statements():
        theirs = next(real[text])
        if not by_day and not every:
            left_out.add(text)
            continue
        ran.add(text)
        ours = _answer(spark, filled(text, root), asks=asks)
        alike = _alike(text, ours, theirs)
        if text in DIFFERS and not alike:
            passed.add(text)
            if not _as_said(ours, DIFFERS[text].here):
                problems.append(f"{text}\n    here  {ours}\n    not   {DIFFERS[text].here}")
        elif not alike:
            problems.append(f"{text}\n    here  {ours}\n    Hudi  {theirs}")
    assert not problems, "\n".join(problems)
    assert passed >= DIFFERS.keys() & ran - left_out  # what differs no longer is no difference


def _answer(spark: SparkSession, text: str, *, asks: bool) -> list[dict[str, Any]] | None:
    """The rows, where they are asked for; None: the statement is refused."""
    try:
        rows = spark.sql(text.replace(" IN default", " IN of_statements")).collect()
    except (HoodieError, PySparkException):
        return None
    if not asks:
        return []
    kept = [plain(row) for row in rows if not row.asDict().get("isTemporary")]
    of_default: list[dict[str, Any]] = json.loads(json.dumps(kept).replace("of_statements", "default"))
    return of_default


def _alike(text: str, ours: list[dict[str, Any]] | None, theirs: list[dict[str, Any]] | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return comparable(text, ours) == comparable(text, theirs)


def _as_said(ours: list[dict[str, Any]] | None, here: list[tuple[Any, ...]] | EllipsisType | None) -> bool:
    if ours is None or here is None or isinstance(here, EllipsisType):
        return ours is here or (ours is not None and here is ...)
    return [tuple(row.values()) for row in ours] == here


def _rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


def test_a_table_is_put_in_place_of_another(spark: SparkSession, root: Path) -> None:
    spark.sql(
        "CREATE TABLE swapped (id INT, v STRING) USING hudi COMMENT 'first' "
        "TBLPROPERTIES (primaryKey='id', type='mor', note='x')"
    )
    spark.sql("INSERT INTO swapped VALUES (1, 'a')")
    spark.sql(
        "CREATE OR REPLACE TABLE swapped (k STRING COMMENT 'key', n INT) USING hudi TBLPROPERTIES (primaryKey='k')"
    )
    assert _rows(spark, "SELECT * FROM swapped") == []
    assert _rows(spark, "SHOW TBLPROPERTIES swapped") == [("primaryKey", "k"), ("type", "cow")]
    assert _rows(spark, "DESCRIBE swapped")[5:] == [("k", "string", "key"), ("n", "int", None)]
    spark.sql("CREATE OR REPLACE TABLE swapped USING hudi TBLPROPERTIES (primaryKey='m') AS SELECT 5 AS m")
    assert _rows(spark, "SELECT m FROM swapped") == [(5,)]
    spark.sql("CREATE OR REPLACE TABLE new_one USING hudi TBLPROPERTIES (primaryKey='m') AS SELECT 6 AS m")
    assert _rows(spark, "SELECT m FROM new_one") == [(6,)]
    spark.sql("REPLACE TABLE new_one USING hudi TBLPROPERTIES (primaryKey='m') AS SELECT 7 AS m")
    assert _rows(spark, "SELECT m FROM new_one") == [(7,)]
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("REPLACE TABLE nowhere USING hudi AS SELECT 7 AS m")
    with pytest.raises(StatementError, match="stays there"):
        spark.sql(f"CREATE OR REPLACE TABLE swapped (a INT) USING hudi LOCATION '{root / 'elsewhere'}'")
    spark.sql("CREATE TABLE of_parquet (id INT COMMENT 'c', v STRING) USING parquet")
    with pytest.raises(StatementError, match="parquet already"):
        spark.sql("CREATE OR REPLACE TABLE of_parquet (a INT) USING hudi")
    spark.sql("CREATE TABLE like_parquet LIKE of_parquet USING hudi TBLPROPERTIES (primaryKey='id')")
    assert _rows(spark, "DESCRIBE like_parquet")[5:] == [("id", "int", "c"), ("v", "string", None)]
    with pytest.raises(StatementError, match="LIKE one of Hudi"):
        spark.sql("CREATE TABLE like_ours LIKE swapped USING parquet")


def test_a_table_that_replaces_itself_keeps_its_partition_columns_behind_the_others(
    spark: SparkSession, root: Path
) -> None:
    for _ in range(2):
        spark.sql(
            "CREATE OR REPLACE TABLE by_p USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey='id') "
            "AS SELECT 1 AS id, 'a' AS p, 'v' AS v"
        )
        assert spark.table("by_p").columns[5:] == ["id", "v", "p"]


def test_a_table_like_another_merges_logs_and_partitions_as_that_one(spark: SparkSession, root: Path) -> None:
    times = (
        "'hoodie.keygen.timebased.timestamp.type'='UNIX_TIMESTAMP','hoodie.keygen.timebased.output.dateformat'='yyyy'"
    )
    spark.sql(
        "CREATE TABLE first_one (id INT, v STRING, ts BIGINT, at BIGINT) USING hudi PARTITIONED BY (at) TBLPROPERTIES ("
        "primaryKey='id', preCombineField='ts', type='mor', payloadClass='DefaultHoodieRecordPayload', "
        "'hoodie.table.cdc.enabled'='true', "
        f"'hoodie.datasource.write.keygenerator.class'='org.apache.hudi.keygen.TimestampBasedKeyGenerator', {times})"
    )
    spark.sql("CREATE TABLE second_one LIKE first_one")
    first, second = (
        load_state(hoodie.open_table(name, spark=spark).storage).config for name in ("first_one", "second_one")
    )
    own = {"hoodie.table.name", "hoodie.table.create.schema", "hoodie.table.checksum"}
    assert {key: value for key, value in second.properties.items() if key not in own} == {
        key: value for key, value in first.properties.items() if key not in own
    }
    for name in ("first_one", "second_one"):
        spark.sql(f"INSERT INTO {name} VALUES (1, 'late', 2, 0)")
        spark.sql(f"INSERT INTO {name} VALUES (1, 'early', 1, 5)")
        assert _rows(spark, f"SELECT v, _hoodie_partition_path FROM {name}") == [("late", "at=1970")]


def test_what_is_said_of_an_entry_is_an_option_of_its_statements(spark: SparkSession, root: Path) -> None:
    spark.sql(
        "CREATE TABLE said (id INT, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', preCombineField='ts', "
        "'hoodie.spark.sql.insert.into.operation'='insert')"
    )
    spark.sql("INSERT INTO said VALUES (1, 1)")
    spark.sql("INSERT INTO said VALUES (1, 2)")
    assert _rows(spark, "SELECT ts FROM said ORDER BY ts") == [(1,), (2,)]
    spark.sql("ALTER TABLE said SET TBLPROPERTIES ('hoodie.spark.sql.insert.into.operation'='upsert')")
    spark.sql("INSERT INTO said VALUES (1, 3)")
    assert _rows(spark, "SELECT ts FROM said ORDER BY ts") == [(3,), (3,)]
    spark.sql("ALTER TABLE said SET TBLPROPERTIES ('hoodie.partition.ttl.strategy.days.retain'='30')")
    assert _rows(spark, "CALL run_ttl(table => 'said')") == []  # without days it is refused
    for wrong in ("primaryKey", "hoodie.table.name"):
        with pytest.raises(StatementError, match="stays so"):
            spark.sql(f"ALTER TABLE said SET TBLPROPERTIES ('{wrong}'='x')")
    for wrong in ("'hoodie.cleaner.commits.retaimed'='5'", "'hoodie.keep.max.commits'='many'"):
        with pytest.raises(InvalidOption):
            spark.sql(f"ALTER TABLE said SET TBLPROPERTIES ({wrong})")
    set_properties(spark, ["of_statements", "said"], {"hoodie.keep.max.commits": "many"})  # as another program may
    with pytest.raises(InvalidOption, match=r"'many'.* UNSET TBLPROPERTIES removes it"):
        spark.sql("SELECT * FROM said")
    spark.sql("ALTER TABLE said UNSET TBLPROPERTIES ('hoodie.keep.max.commits')")
    spark.sql("ALTER TABLE said UNSET TBLPROPERTIES ('hoodie.spark.sql.insert.into.operation')")
    spark.sql("COMMENT ON TABLE said IS 'as it is'")
    assert "COMMENT 'as it is'" in _rows(spark, "SHOW CREATE TABLE said")[0][0]
    spark.sql("COMMENT ON COLUMN of_statements.said.ts IS 'when'")
    assert _rows(spark, "DESCRIBE said ts")[2] == ("comment", "when")
    assert "ts BIGINT COMMENT 'when'" in _rows(spark, "SHOW CREATE TABLE said")[0][0]
    spark.sql("COMMENT ON COLUMN said.ts IS NULL")
    assert _rows(spark, "DESCRIBE said ts")[2] == ("comment", "NULL")
    with pytest.raises(StatementError, match="expected COMMENT ON COLUMN"):
        spark.sql("COMMENT ON COLUMN said.ts 'when'")
    with pytest.raises(StatementError, match="PARTITIONED BY takes columns"):
        spark.sql("CREATE TABLE by_days (id INT, at DATE) USING hudi PARTITIONED BY (days(at))")


def test_an_external_table_has_a_location(spark: SparkSession, root: Path) -> None:
    spark.sql(
        "CREATE EXTERNAL TABLE IF NOT EXISTS outside (id INT, v STRING) USING hudi "
        f"LOCATION '{root / 'outside'}' TBLPROPERTIES (primaryKey='id')"
    )
    spark.sql("INSERT INTO outside VALUES (1, 'a')")
    assert _rows(spark, f"SELECT id, v FROM hudi.`{root / 'outside'}`") == [(1, "a")]
    with pytest.raises(StatementError, match="accompanied by LOCATION"):
        spark.sql("CREATE EXTERNAL TABLE nowhere (id INT) USING hudi TBLPROPERTIES (primaryKey='id')")


def test_a_text_that_is_no_time_is_refused_with_its_place(spark: SparkSession, root: Path) -> None:
    spark.sql("CREATE TABLE travelled (id INT) USING hudi TBLPROPERTIES (primaryKey='id')")
    with pytest.raises(StatementError, match=r"line 1, column 41 near .*'last year'.*: expected an instant"):
        spark.sql("SELECT * FROM travelled TIMESTAMP AS OF 'last year'")


def test_what_show_create_table_says_makes_the_table(spark: SparkSession, root: Path) -> None:
    spark.sql(
        "CREATE TABLE shown (id INT COMMENT 'no. 1', ab STRUCT<x: INT, y: ARRAY<STRING>>, p STRING) USING hudi "
        f"PARTITIONED BY (p) COMMENT 'c' LOCATION '{root / 'shown'}' "
        "TBLPROPERTIES (primaryKey='id', type='mor', n='1')"
    )
    text = _rows(spark, "SHOW CREATE TABLE shown")[0][0]
    spark.sql("DROP TABLE shown PURGE")
    spark.sql(text)
    assert _rows(spark, "SHOW CREATE TABLE shown")[0][0] == text


def test_functions_tell_of_commits_and_of_files(spark: SparkSession, root: Path) -> None:
    spark.sql("CREATE TABLE told (id INT, p STRING) USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey='id')")
    spark.sql("INSERT INTO told VALUES (1, 'a'), (2, 'b')")
    columns = "Action, State, Total_Partitions_Written, Total_Records_Written, Total_Files_Updated"
    assert _rows(spark, f"SELECT {columns} FROM hudi_query_timeline('told')") == [("commit", "COMPLETED", 2, 2, 0)]
    slices = "SELECT Partition_Path, Log_File_Count, Base_File_Size > 0 FROM hudi_filesystem_view"
    assert _rows(spark, f"{slices}('told') ORDER BY 1") == [("p=a", 0, True), ("p=b", 0, True)]
    assert _rows(spark, f"{slices}('{root / 'warehouse/told'}', 'p=b*')") == [("p=b", 0, True)]
    spark.sql("CALL create_metadata_table(table => 'told')")
    columns = "type, key, map_keys(filesystemMetadata), ColumnStatsMetadata.columnName"
    lists = _rows(spark, f"SELECT {columns} FROM hudi_metadata('told') WHERE type = 1")
    assert lists == [(1, "__all_partitions__", ["p=a", "p=b"], None)]


def test_describe_tells_of_one_partition(spark: SparkSession, root: Path) -> None:
    """The real one refuses it; these are the lines that Spark has for a partition of its own tables."""
    spark.sql("CREATE TABLE one (id INT, p STRING) USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey='id')")
    spark.sql("INSERT INTO one VALUES (1, 'a'), (2, 'b')")
    assert _rows(spark, "DESCRIBE one PARTITION (p='a')") == _rows(spark, "DESCRIBE one")
    said = {row[0]: row[1] for row in _rows(spark, "DESCRIBE FORMATTED one PARTITION (p = 'b')")}
    assert (said["Table"], said["Partition Values"]) == ("one", "[p=b]")
    assert said["Location"].endswith("warehouse/one/p=b")
    assert said["Partition Statistics"].endswith("bytes, 1 file groups")
    for wrong, problem in (("p='c'", "has no such partition"), ("id=1", "is partitioned by p")):
        with pytest.raises(StatementError, match=problem):
            spark.sql(f"DESC EXTENDED one PARTITION ({wrong})")
