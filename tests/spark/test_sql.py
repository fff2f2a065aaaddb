"""SQL on tables of ours: what statements make of them, what goes on to Spark, what is refused and where."""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import (
    InvalidInput,
    InvalidOption,
    KeyMatchedTwice,
    PartitionsNotThere,
    SchemaMismatch,
    StatementError,
    TableMismatch,
    TableNotFound,
    UnsupportedTable,
)
from support.nightly import nightly

_names = itertools.count()


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> str:
    """The name of a table of three rows."""
    name = f"orders_{next(_names)}"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE {name} (id INT, city STRING, price DOUBLE, ts BIGINT) USING hudi
            PARTITIONED BY (city) LOCATION '{tmp_path / "orders"}'
            TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'cow')""",
    )
    counts = hoodie.spark.sql(
        spark, f"INSERT INTO {name} VALUES (1, 10.5, 1, 'oslo'), (2, 20, 1, 'oslo'), (3, 30, 1, 'rome')"
    )
    assert counts.first()["num_inserted_rows"] == 3
    return name


def rows(spark: SparkSession, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in hoodie.spark.sql(spark, f"SELECT id, city, price, ts FROM {name}").collect())


def test_merge_with_all_clauses(spark, orders, tmp_path):
    merged = hoodie.spark.sql(
        spark,
        f"""WITH q AS (SELECT * FROM VALUES (1, 'oslo', 1D), (2, 'oslo', 0D), (9, 'bern', 9D) AS v(id, city, price))
        -- what came today
        MERGE INTO {orders} AS t USING (SELECT * FROM q) s ON t.id = s.id AND t.city = s.city
        WHEN MATCHED AND s.price = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.price = CASE WHEN s.price > 0 THEN t.price + s.price END, ts = 2
        WHEN NOT MATCHED BY TARGET THEN INSERT (id, city, price, ts) VALUES (s.id, s.city, s.price, 2)
        WHEN NOT MATCHED BY SOURCE AND t.price > (SELECT min(price) FROM {orders}) THEN UPDATE SET price = -1;""",
    ).first()
    assert tuple(merged)[1:4] == (2, 1, 1)
    assert rows(spark, orders) == [(1, "oslo", 11.5, 2), (3, "rome", -1.0, 1), (9, "bern", 9.0, 2)]
    source = f"hudi.`{tmp_path / 'orders'}`"
    hoodie.spark.sql(
        spark,
        f"MERGE INTO {source} x USING {orders} o ON x.id = o.id AND x.city = o.city "
        "WHEN MATCHED AND o.id = 9 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )
    assert [row[0] for row in rows(spark, orders)] == [1, 3]


def test_updates_and_deletes_behind_a_with(spark, orders):
    q = f"WITH q AS (SELECT id FROM {orders} WHERE city = 'rome'), r AS (SELECT max(id) AS id FROM q)"
    updated = f"{q} UPDATE {orders} SET ts = (SELECT id FROM r) WHERE id NOT IN (SELECT id FROM q)"
    assert hoodie.spark.sql(spark, updated).first()["num_updated_rows"] == 2
    assert rows(spark, orders) == [(1, "oslo", 10.5, 3), (2, "oslo", 20.0, 3), (3, "rome", 30.0, 1)]
    hoodie.spark.sql(spark, f"{q} DELETE FROM {orders} WHERE EXISTS (SELECT 1 FROM r WHERE r.id = {orders}.id)")
    assert [row[0] for row in rows(spark, orders)] == [1, 2]


def test_names_in_not_matched_by_source_are_the_tables(spark, orders):
    hoodie.spark.sql(
        spark,
        f"""MERGE INTO {orders} t USING (SELECT 1 AS id, 'oslo' AS city, 5D AS price, 2L AS ts) s
        ON t.id = s.id AND t.city = s.city
        WHEN NOT MATCHED BY SOURCE AND city = 'rome' THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND id = 2 THEN UPDATE SET price = price + id, ts = ts + 1""",
    )
    assert rows(spark, orders) == [(1, "oslo", 10.5, 1), (2, "oslo", 22.0, 2)]


def test_queries_see_tables_by_path_by_name_and_as_of_an_instant(spark, orders, tmp_path):
    instant = hoodie.open_table(orders, spark=spark).history()[0][0].requested
    hoodie.spark.sql(spark, f"DELETE FROM {orders} WHERE id < 3")
    path = f"hudi.`{tmp_path / 'orders'}`"
    query = f"""SELECT {orders}.id, count(p.id) AS n, '{{x}}' AS x FROM {orders} TIMESTAMP AS OF '{instant}' AS {orders}
                LEFT JOIN {path} p ON p.id = {orders}.id GROUP BY ALL ORDER BY 1"""
    assert [tuple(row) for row in hoodie.spark.sql(spark, query).collect()] == [
        (1, 0, "{x}"),
        (2, 0, "{x}"),
        (3, 1, "{x}"),
    ]
    hoodie.spark.sql(spark, f"CREATE OR REPLACE TEMP VIEW left_orders AS SELECT * FROM {orders}")
    assert spark.table("left_orders").count() == 1
    shadowed = f"WITH {orders} AS (SELECT 5 AS id) SELECT * FROM {orders}"
    assert hoodie.spark.sql(spark, shadowed).first()[0] == 5


def test_a_with_may_take_the_name_of_a_table_that_it_reads(spark, orders):
    for query, expected in (
        (f"WITH {orders} AS (SELECT id FROM {orders} WHERE id > 2) SELECT * FROM {orders}", [(3,)]),
        (f"WITH a AS (SELECT id FROM {orders}), {orders} AS (SELECT 9) SELECT max(id) FROM a", [(3,)]),
        (f"SELECT id FROM {orders} WHERE id IN (WITH {orders} AS (SELECT 2 AS id) SELECT id FROM {orders})", [(2,)]),
        (
            f"WITH RECURSIVE r AS (SELECT 2 AS id UNION ALL SELECT id + 1 FROM r WHERE id < 3) "
            f"SELECT id FROM r JOIN {orders} USING (id) ORDER BY id",
            [(2,), (3,)],
        ),
        (f"SELECT max({orders}.id) FROM {orders} TABLESAMPLE (100 PERCENT) REPEATABLE (1)", [(3,)]),
        (f"SELECT max(id) FROM {orders} WHERE city <> ';'", [(3,)]),
    ):
        assert [tuple(row) for row in hoodie.spark.sql(spark, query).collect()] == expected, query


def test_a_view_has_the_columns_and_the_reach_that_it_is_given(spark, orders):
    hoodie.spark.sql(spark, f"CREATE TEMP VIEW `of {orders}` (a, b) COMMENT 'AS' AS SELECT id, city FROM {orders}")
    assert spark.table(f"`of {orders}`").columns == ["a", "b"]
    hoodie.spark.sql(spark, f"CREATE GLOBAL TEMPORARY VIEW g_{orders} AS SELECT id FROM {orders}")
    assert spark.table(f"global_temp.g_{orders}").count() == 3
    for refused in (f"v_{orders} (a) AS SELECT id, city", f"IF NOT EXISTS v_{orders} AS SELECT id"):
        with pytest.raises(StatementError, match="line 1, column"):
            hoodie.spark.sql(spark, f"CREATE TEMPORARY VIEW {refused} FROM {orders}")


@pytest.mark.nightly
def test_the_columns_of_an_inserted_query_may_have_any_names(spark, orders, tmp_path):
    hoodie.spark.sql(spark, f"INSERT INTO {orders} SELECT 4, 4, 4, 'bern'")
    hoodie.spark.sql(
        spark,
        f"INSERT INTO {orders} SELECT a.id + 1, b.id, b.id, b.city FROM {orders} a JOIN {orders} b USING (id) "
        "WHERE b.id = 4",
    )
    assert rows(spark, orders)[3:] == [(4, "bern", 4.0, 4), (5, "bern", 4.0, 4)]
    for columns in ("(id, ID)", "PARTITION (city = 'x') (id, city)", "BY NAME"):
        with pytest.raises(InvalidInput, match="twice"):
            hoodie.spark.sql(spark, f"INSERT INTO {orders} {columns} SELECT 6 AS id, 7 AS id")
    plain = hoodie.create_table(tmp_path / "plain", spark=spark, name="plain", record_key="id", partition_by="city")
    hoodie.spark.sql(spark, f"INSERT INTO hudi.`{plain.path}` PARTITION (city = 'bern') (id, price) VALUES (1, 2.5D)")
    assert plain.snapshot().select("id", "price", "city").first() == (1, 2.5, "bern")


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Callable[[str, object], None]]:
    """Sets a setting of the session, until the test is over."""
    names: list[str] = []

    def set_to(name: str, value: object) -> None:
        names.append(name)
        hoodie.spark.sql(spark, f"SET {name}={value}")

    yield set_to
    for name in names:
        spark.conf.unset(name)


INSERT_OPERATION, INSERT_MODE = "hoodie.spark.sql.insert.into.operation", "hoodie.sql.insert.mode"
OLDER_AND_TWICE = "VALUES (1, 0.5, 0, 'oslo'), (5, 1.0, 2, 'rome'), (5, 2.0, 1, 'rome')"
UPSERTED = [(1, "oslo", 0.5, 0), (2, "oslo", 20.0, 1), (3, "rome", 30.0, 1), (5, "rome", 1.0, 2)]
APPENDED = [(1, "oslo", 0.5, 0), (1, "oslo", 10.5, 1), *UPSERTED[1:]]


@pytest.mark.parametrize(
    ("settings_", "expected"),
    [
        nightly({}, UPSERTED),
        nightly({INSERT_MODE: "upsert"}, UPSERTED),
        nightly({INSERT_MODE: "non-strict"}, APPENDED),
        nightly({INSERT_MODE: "non-strict", "hoodie.sql.bulk.insert.enable": "true"}, APPENDED),
        ({INSERT_OPERATION: "insert", INSERT_MODE: "strict"}, APPENDED),
        nightly({INSERT_OPERATION: "bulk_insert"}, APPENDED),
        ({INSERT_MODE: "non-strict", "hoodie.datasource.write.operation": "upsert"}, UPSERTED),
    ],
)
def test_an_insert_into_a_table_with_an_ordering_column_upserts_unless_a_setting_says_otherwise(
    spark, orders, setting, settings_, expected
):
    for name, value in settings_.items():
        setting(name, value)
    hoodie.spark.sql(spark, f"INSERT INTO {orders} {OLDER_AND_TWICE}")
    assert rows(spark, orders) == expected


def test_a_strict_insert_takes_new_keys_alone(spark, orders, setting):
    setting(INSERT_MODE, "strict")
    before = rows(spark, orders)
    with pytest.raises(InvalidInput, match="1 rows of the insert have keys"):
        hoodie.spark.sql(spark, f"INSERT INTO {orders} {OLDER_AND_TWICE}")
    assert rows(spark, orders) == before
    hoodie.spark.sql(spark, f"INSERT INTO {orders} VALUES (4, 4, 4, 'oslo')")
    assert rows(spark, orders) == [*before, (4, "oslo", 4.0, 4)]
    setting("hoodie.sql.bulk.insert.enable", "true")
    with pytest.raises(InvalidOption, match="non-strict"):
        hoodie.spark.sql(spark, f"INSERT INTO {orders} VALUES (5, 5, 5, 'oslo')")


def test_an_insert_into_a_merge_on_read_table_upserts(spark, tmp_path, setting):
    name = f"hudi.`{tmp_path / 'mor'}`"
    hoodie.create_table(
        tmp_path / "mor", spark=spark, name="mor", record_key="id", ordering="ts", table_type="MERGE_ON_READ"
    )
    hoodie.spark.sql(spark, f"INSERT INTO {name} SELECT 1 AS id, 1 AS ts")
    setting(INSERT_MODE, "strict")  # which Merge-on-Read takes as upsert
    hoodie.spark.sql(spark, f"INSERT INTO {name} VALUES (1, 2), (2, 1), (2, 5)")
    assert sorted(hoodie.spark.sql(spark, f"SELECT id, ts FROM {name}").collect()) == [(1, 2), (2, 5)]


def test_settings_of_the_session_are_options_of_statements(spark, orders, setting):
    setting("hoodie.datasource.write.commitmeta.key.prefix", "of_")
    setting("hoodie.cleaner.commits.retained", "none")
    for statement in (f"DELETE FROM {orders} WHERE id = 1", f"TRUNCATE TABLE {orders}", f"SELECT * FROM {orders}"):
        with pytest.raises(InvalidOption, match=r"hoodie.cleaner.commits.retained='none'"):
            hoodie.spark.sql(spark, statement)
    setting("hoodie.cleaner.commits.retained", "3")
    setting("hoodie.cleaner.comits.retained", "3")
    with pytest.raises(InvalidOption, match=r"Did you mean 'hoodie.cleaner.commits.retained'\?.*RESET"):
        hoodie.spark.sql(spark, f"DELETE FROM {orders} WHERE id = 1")


@pytest.mark.parametrize("ansi", [nightly("true"), "false"])
def test_a_number_that_its_column_cannot_hold_is_refused(spark, orders, ansi):
    hoodie.spark.sql(spark, f"ALTER TABLE {orders} ADD COLUMNS (cents DECIMAL(5, 2))")
    before = rows(spark, orders)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for statement in (
            f"INSERT INTO {orders} (id, city) VALUES (3000000000, 'oslo')",
            f"INSERT INTO {orders} (id, city, ts) VALUES (9, 'oslo', 1e30D)",
            f"UPDATE {orders} SET cents = 12345.678",
        ):
            with pytest.raises(InvalidInput, match="cannot hold the value"):
                hoodie.spark.sql(spark, statement)
        hoodie.spark.sql(  # equals no id
            spark,
            f"MERGE INTO {orders} t USING (SELECT 4294967297L AS id, 'oslo' AS city) s "
            "ON t.id = s.id AND t.city = s.city WHEN MATCHED THEN DELETE",
        )
        assert rows(spark, orders) == before
        done = hoodie.spark.sql(spark, f"UPDATE {orders} SET ts = 7.9, cents = 1.005 WHERE id = 1").first()
        assert (done["num_updated_rows"], done["num_copied_rows"]) == (1, 1)
        assert [
            str(value) for value in hoodie.spark.sql(spark, f"SELECT ts, cents FROM {orders} WHERE id = 1").first()
        ] == [
            "7",
            "1.01",
        ]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_the_changes_of_a_table_are_rows_of_a_query(spark, orders, tmp_path):
    with pytest.raises(UnsupportedTable, match="logged"):
        hoodie.spark.sql(spark, f"SELECT * FROM hudi_table_changes('{orders}', 'cdc', 'earliest')")
    first = hoodie.open_table(orders, spark=spark).history()[-1][0].requested
    hoodie.spark.sql(spark, f"ALTER TABLE {orders} SET TBLPROPERTIES ('hoodie.table.cdc.enabled' = 'true')")
    hoodie.spark.sql(spark, f"UPDATE {orders} SET price = 11 WHERE id = 1")
    last = hoodie.spark.sql(spark, f"DELETE FROM {orders} WHERE id = 3").first()["instant"]
    told = f"""SELECT c.op, get_json_object(c.before, '$.price'), get_json_object(c.after, '$.price'), o.price
               FROM hudi_table_changes('{orders}', 'cdc', '{first}') AS c
               LEFT JOIN {orders} o ON o.id = get_json_object(c.after, '$.id') ORDER BY 1"""
    assert [tuple(row) for row in hoodie.spark.sql(spark, told).collect()] == [
        ("d", "30.0", None, None),
        ("u", "10.5", "11.0", 11.0),
    ]
    path = tmp_path / "orders"
    state = f"SELECT id, price FROM hudi_table_changes('{path}', 'latest_state', {first}, '{last}')"
    assert [tuple(row) for row in hoodie.spark.sql(spark, state).collect()] == [(1, 11.0)]
    for refused in ("('hoodie.table.cdc.enabled' = 'false')", "('hoodie.table.name' = 'x')", "('a')"):
        with pytest.raises(StatementError, match="line 1"):
            hoodie.spark.sql(spark, f"ALTER TABLE {orders} SET TBLPROPERTIES {refused}")
    with pytest.raises(StatementError, match="nobody"):
        hoodie.spark.sql(spark, "SELECT * FROM hudi_table_changes('nobody', 'cdc', 'earliest')")
    hoodie.spark.sql(spark, "SET hoodie.datasource.read.incr.path.glob = nowhere/*")
    assert hoodie.spark.sql(spark, state).count() == 0  # a setting of the session counts
    hoodie.spark.sql(spark, "RESET hoodie.datasource.read.incr.path.glob")


@pytest.mark.parametrize(("version", "stays"), [("6", "late"), ("9", "first")])
def test_late_rows_lose_in_tables_of_later_versions_as_in_hudis_sql(spark, tmp_path, version, stays):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE late_{version} (id INT, v STRING, ts INT) USING hudi LOCATION '{tmp_path / "t"}' TBLPROPERTIES
            (primaryKey = 'id', preCombineField = 'ts', 'hoodie.write.table.version' = '{version}')""",
    )
    hoodie.spark.sql(spark, f"INSERT INTO {path} VALUES (1, 'first', 10)")
    hoodie.spark.sql(spark, f"UPDATE {path} SET v = 'late', ts = 3")
    assert [row["v"] for row in hoodie.spark.sql(spark, f"SELECT v FROM {path}").collect()] == [stays]


def test_a_table_is_made_as_the_statement_says_or_not_at_all(spark, tmp_path):
    def create(name, rest, columns=""):
        return hoodie.spark.sql(
            spark, f"CREATE TABLE {name} {columns} USING hudi LOCATION '{tmp_path / 'made'}' {rest}"
        )

    key = "TBLPROPERTIES (primaryKey = 'id')"
    for error, columns, rest in (
        (SchemaMismatch, "(id INT, `a b` INT)", key),
        (StatementError, "(id INT, n INT DEFAULT 5)", key),
        (StatementError, "(id INT, s STRING COLLATE UTF8_LCASE)", key),
        (StatementError, "(id INT, s STRUCT<a: ARRAY<STRING COLLATE UNICODE>>)", key),
        (Exception, "", f"{key} AS SELECT raise_error('no') AS id"),
    ):
        with pytest.raises(error):
            create("made", rest, columns)
        assert not (tmp_path / "made" / ".hoodie").exists()
    create(
        "made",
        "TBLPROPERTIES (primaryKey = 'id', type = 'mor', hoodie.index.type = 'BLOOM', "
        "hoodie.datasource.write.hive_style_partitioning = false) PARTITIONED BY (end) "
        "SELECT 1 AS id, 2 AS end",
    )
    config = hoodie.open_table("made", spark=spark).info()
    assert (config.table_type, rows_of(spark, "made")) == ("MERGE_ON_READ", [(1, 2)])
    assert (tmp_path / "made" / "2").is_dir()
    for error, rest in (
        (TableMismatch, "PARTITIONED BY (end) TBLPROPERTIES (primaryKey = 'end')"),
        (TableMismatch, key),
        (TableMismatch, "PARTITIONED BY (end) TBLPROPERTIES (primaryKey = 'id', type = 'cow')"),
        (StatementError, f"PARTITIONED BY (end) {key} AS SELECT 5 AS id, 6 AS end"),
    ):
        with pytest.raises(error):
            create("again", rest)
    with pytest.raises(TableMismatch, match="other"):
        create("again", f"PARTITIONED BY (end) {key}", "(id INT, end INT, other INT)")
    create("again", f"PARTITIONED BY (end) {key}")
    assert rows_of(spark, "again") == [(1, 2)]
    hoodie.spark.sql(spark, f"CREATE TABLE copy_of_made USING hudi {key} AS SELECT * FROM made")
    assert rows_of(spark, "copy_of_made") == [(1, 2)]
    with pytest.raises(StatementError, match="PURGE"):
        hoodie.spark.sql(spark, f"DROP TABLE hudi.`{tmp_path / 'made'}`")
    hoodie.spark.sql(spark, "DROP TABLE copy_of_made")


def rows_of(spark: SparkSession, name: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in hoodie.spark.sql(spark, f"SELECT id, end FROM {name}").collect()]


def test_partitions_are_named_by_literals(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE by_literals USING hudi PARTITIONED BY (d, n, s) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id', hoodie.datasource.write.partitionpath.urlencode = true)
            AS SELECT id, DATE '2024-01-31' AS d, CAST(-id AS INT) AS n, 'a/b c' AS s FROM range(1, 4)""",
    )
    assert [row[0] for row in hoodie.spark.sql(spark, f"SHOW PARTITIONS {path}").collect()][
        2
    ] == "d=2024-01-31/n=-3/s=a/b c"
    hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION (d = DATE '2024-01-31', n = -1, s = 'a/b c')")
    hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP IF EXISTS PARTITION (d = '2024-01-31', n = 5, s = 'a/b c')")
    hoodie.spark.sql(spark, f"TRUNCATE TABLE {path} PARTITION (d = '2024-01-31', n = -2, s = 'a/b c')")
    assert [row[0] for row in hoodie.spark.sql(spark, f"SELECT id FROM {path}").collect()] == [3]
    for refused in ("(n = 1 + 1)", "(n)", ""):
        with pytest.raises(StatementError, match="line 1"):
            hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION {refused}")


def test_two_quotes_within_a_text_of_a_statement_are_one(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"
    for text in (
        f"""CREATE TABLE doubled (id INT COMMENT 'it''s', p STRING) USING hudi PARTITIONED BY (p)
            LOCATION '{tmp_path / "t"}' TBLPROPERTIES (primaryKey = 'id', note = 'v''y')""",
        f"INSERT INTO {path} PARTITION (p = 'it''s') VALUES (1)",
        f"""INSERT INTO {path} PARTITION (p = "i""t") VALUES (2)""",
        f"INSERT INTO {path} PARTITION (p = 'b') VALUES (3)",
        f"ALTER TABLE {path} ALTER COLUMN p COMMENT 'q''r'",
    ):
        hoodie.spark.sql(spark, text)
    fields = [
        tuple(row)
        for row in hoodie.spark.sql(spark, f"DESCRIBE {path}").collect()
        if row["col_name"] in ("id", "p") and row["comment"]
    ]
    assert set(fields) == {("id", "int", "it's"), ("p", "string", "q'r")}
    assert {row[0] for row in hoodie.spark.sql(spark, f"SHOW PARTITIONS {path}").collect()} == {
        "p=it's",
        'p=i"t',
        "p=b",
    }
    hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION (p = 'it''s')")
    hoodie.spark.sql(spark, f"""TRUNCATE TABLE {path} PARTITION (p = "i""t")""")
    assert [row[0] for row in hoodie.spark.sql(spark, f"SELECT id FROM {path}").collect()] == [3]
    call = f"CALL create_savepoint(path => '{tmp_path / 't'}', comments => 'it''s')"
    assert hoodie.spark.sql(spark, call).first()[0] is True


def test_a_partition_clause_takes_literals_as_values_of_the_column(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE typed_literals USING hudi PARTITIONED BY (b, d, n) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id') AS SELECT * FROM VALUES (1, true, DATE '2024-01-05', 1),
            (2, false, DATE '2024-01-06', 2), (3, false, DATE '2024-01-07', 3), (4, true, DATE '2024-01-08', -4)
            AS rows (id, b, d, n)""",
    )
    shown = hoodie.spark.sql(spark, f"SHOW PARTITIONS {path} PARTITION (b = TRUE, d = '2024-1-5')").collect()
    assert [row[0] for row in shown] == ["b=true/d=2024-01-05/n=1"]
    hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP IF EXISTS PARTITION (b = FALSE, n = 02S), PARTITION (n = -04L)")
    hoodie.spark.sql(spark, f"TRUNCATE TABLE {path} PARTITION (d = DATE '2024-1-7')")
    assert hoodie.open_table(tmp_path / "t").snapshot(columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]


@pytest.mark.parametrize(
    ("kind", "first", "second", "text"),
    [
        ("TIMESTAMP", "'2024-01-31 12:30:00'", "'1969-02-28 00:00:00.123456'", "1706704200000000"),
        nightly("TIMESTAMP_NTZ", "'2024-01-31 12:30:00'", "'1969-02-28'", "1706704200000000"),
        ("DECIMAL(8, 2)", "1.5", "-2", "1.50"),
        nightly("DOUBLE", "1.50", "'-2e0'", "1.5"),
    ],
)
def test_a_partition_clause_takes_times_and_numbers_as_values_of_the_column(spark, tmp_path, kind, first, second, text):
    typed = [f"{kind} {value}" if "TIME" in kind else value for value in (first, second)]
    values = [f"CAST({value} AS {kind})" for value in (first, second)]
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE of_{kind.split("(")[0]} USING hudi PARTITIONED BY (p) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id')
            AS SELECT * FROM VALUES (1, {values[0]}), (2, {values[1]}), (3, NULL) AS rows (id, p)""",
    )
    shown = hoodie.spark.sql(spark, f"SHOW PARTITIONS {path} PARTITION (p = {typed[0]})").collect()
    assert [row[0] for row in shown] == [f"p={text}"]
    assert hoodie.spark.sql(spark, f"SHOW PARTITIONS {path} PARTITION (p = '{text}')").collect() == shown
    hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION (p = {typed[1]})")
    hoodie.spark.sql(spark, f"TRUNCATE TABLE {path} PARTITION (p = NULL)")
    assert [row[0] for row in hoodie.spark.sql(spark, f"SELECT id FROM {path}").collect()] == [1]


def test_partitions_are_shown_by_the_columns_names(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE capitals USING hudi PARTITIONED BY (City) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'oslo' AS City""",
    )
    shown = hoodie.spark.sql(spark, f"SHOW PARTITIONS {path} PARTITION (CITY = 'oslo')").collect()
    assert [row[0] for row in shown] == ["City=oslo"]
    insert = f"FROM range(2, 3) INSERT INTO {path} SELECT id, 'bern'"
    with pytest.raises(StatementError, match=r"line 1, column 18 .*INSERT INTO table SELECT … FROM …"):
        hoodie.spark.sql(spark, insert)
    assert hoodie.spark.sql(spark, f"FROM {path} SELECT id").count() == 1


def test_the_partition_of_nulls_is_dropped_and_only_live_ones_are_shown(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"

    def shown(clause: str = "") -> list[str]:
        return [row[0] for row in hoodie.spark.sql(spark, f"SHOW PARTITIONS {path} {clause}").collect()]

    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE null_paths USING hudi PARTITIONED BY (p) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id') AS SELECT * FROM VALUES
            (1, 'null'), (2, NULL), (3, 'a+b'), (4, '') AS rows (id, p)""",
    )
    assert shown() == ["p=__HIVE_DEFAULT_PARTITION__", "p=a+b", "p=null"]
    assert shown("PARTITION (p = 'a+b')") == ["p=a+b"]
    hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION (p = NULL)")
    assert shown() == ["p=a+b", "p=null"]
    hoodie.spark.sql(spark, f"TRUNCATE TABLE {path} PARTITION (p = 'null')")
    assert shown() == ["p=a+b"]
    assert hoodie.open_table(tmp_path / "t").snapshot(columns=["id"]).to_arrow().to_pylist() == [{"id": 3}]


@pytest.mark.parametrize(
    ("hive_style", "columns"), [(True, "p, q"), nightly(False, "p, q"), nightly(True, "p"), nightly(False, "p")]
)
def test_a_value_with_a_slash_is_no_other_partition(spark, tmp_path, hive_style, columns):
    place = tmp_path / "t"
    path, name = f"hudi.`{place}`", f"slashed_{hive_style}_{len(columns)}"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE {name} USING hudi PARTITIONED BY ({columns}) LOCATION '{place}'
            TBLPROPERTIES (primaryKey = 'id',
            'hoodie.datasource.write.hive_style_partitioning' = '{str(hive_style).lower()}') AS
            SELECT * FROM VALUES (1, 'a', 'x'), (2, 'b/c', 'x'), (3, 'd/e=f', 'x') AS r (id, p, q)""",
    )

    def left() -> list[int]:
        return [row.id for row in hoodie.spark.sql(spark, f"SELECT id FROM {path} ORDER BY id").collect()]

    shown = {row[0] for row in hoodie.spark.sql(spark, f"SHOW PARTITIONS {path}").collect()}
    told = hive_style or columns == "p"  # else the slashes say nothing
    rest = "/q=x" if "q" in columns else ""
    assert shown == ({f"p={p}{rest}" for p in ("a", "b/c", "d/e=f")} if told else {"p=a/q=x", "b/c/x", "d/e=f/x"})
    for value in ("b", "d"):  # each passes, as in Hudi
        with pytest.warns(PartitionsNotThere, match=f"no rows in partitions .*p = '{value}'"):
            hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION (p = '{value}')")
        for statement in (f"ALTER TABLE {path} DROP IF EXISTS", f"TRUNCATE TABLE {path}"):
            hoodie.spark.sql(spark, f"{statement} PARTITION (p = '{value}')")
    assert left() == [1, 2, 3]
    hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION (p = 'a')")
    assert left() == [2, 3]
    if told:
        hoodie.spark.sql(spark, f"TRUNCATE TABLE {path} PARTITION (p = 'd/e=f')")
        assert left() == [2]


def test_an_overwrite_without_rows_empties_the_partition_that_it_names(spark, tmp_path, setting):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE overwritten USING hudi PARTITIONED BY (d, p) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id') AS SELECT * FROM VALUES
            (1, DATE '2024-01-31', 'a'), (2, DATE '2024-01-31', 'b'), (3, DATE '2024-02-01', NULL) AS r (id, d, p)""",
    )

    def ids() -> list[int]:
        return sorted(
            row["id"] for row in hoodie.open_table(tmp_path / "t").snapshot(columns=["id"]).to_arrow().to_pylist()
        )

    none = "SELECT 9 AS id WHERE 1 = 0"
    for mode, named, left in (
        ("static", "d = '2024-03-01', p = 'a'", [1, 2, 3]),
        ("dynamic", "d = '2024-01-31', p", [1, 2, 3]),
        ("static", "d = '2024-01-31', p = 'a'", [2, 3]),
        ("dynamic", "d = DATE '2024-02-01', p = NULL", [2]),
    ):
        setting("spark.sql.sources.partitionOverwriteMode", mode)
        query = none if "p =" in named else f"{none}".replace("AS id", "AS id, 'a' AS p")
        hoodie.spark.sql(spark, f"INSERT OVERWRITE {path} PARTITION ({named}) {query}")
        assert ids() == left, named
    whole = "SELECT 9 AS id, DATE '2024-01-31' AS d, 'b' AS p WHERE 1 = 0"
    setting("spark.sql.sources.partitionOverwriteMode", "dynamic")
    hoodie.spark.sql(spark, f"INSERT OVERWRITE {path} {whole}")
    assert ids() == [2]
    setting("spark.sql.sources.partitionOverwriteMode", "static")
    hoodie.spark.sql(spark, f"INSERT OVERWRITE {path} {whole}")
    assert ids() == []


@pytest.mark.nightly
@pytest.mark.parametrize("hive_style", [True, nightly(False)])
def test_an_overwrite_replaces_the_partitions_that_have_the_values_of_its_clause(spark, tmp_path, setting, hive_style):
    path = f"hudi.`{tmp_path / 't'}`"
    first = f"""SELECT * FROM VALUES (1, 'a', 1), (2, 'a', 2), (3, 'ab', 1), (4, 'b', 1),
                (5, '{"a/x" if hive_style else "ax"}', 1), (6, NULL, 1) AS r (id, p, q)"""
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE parted_{hive_style} USING hudi PARTITIONED BY (p, q) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id',
            'hoodie.datasource.write.hive_style_partitioning' = '{str(hive_style).lower()}') AS {first}""",
    )

    def overwritten(rest: str) -> list[int]:
        hoodie.spark.sql(spark, f"INSERT OVERWRITE {path} {first}")
        commits = len(hoodie.open_table(tmp_path / "t").history())
        setting("spark.sql.sources.partitionOverwriteMode", rest.partition(":")[0])
        hoodie.spark.sql(spark, f"INSERT OVERWRITE {path} {rest.partition(':')[2]}")
        setting("spark.sql.sources.partitionOverwriteMode", "static")
        table = hoodie.open_table(tmp_path / "t")
        assert len(table.history()) == commits + 1
        return sorted(row["id"] for row in table.snapshot(columns=["id"]).to_arrow().to_pylist())

    assert overwritten("static:PARTITION (p = 'a', q) SELECT 9, 1") == [3, 4, 5, 6, 9]
    assert overwritten("static:PARTITION (p = 'a', q) SELECT 9, 1 WHERE false") == [3, 4, 5, 6]
    assert overwritten("static:PARTITION (q = 1, p) SELECT 9, 'c'") == [2, 9]
    assert overwritten("static:PARTITION (p = NULL, q) SELECT 9, 4") == [1, 2, 3, 4, 5, 9]
    assert overwritten("static:PARTITION (p, q) SELECT 9, 'a', 1") == [9]
    assert overwritten("static:SELECT 9, 'a', 1") == [9]
    assert overwritten("dynamic:PARTITION (p = 'a', q) SELECT 9, 1") == [2, 3, 4, 5, 6, 9]
    assert overwritten("dynamic:PARTITION (p = 'a', q = 1) SELECT 9") == [2, 3, 4, 5, 6, 9]
    assert overwritten("dynamic:PARTITION (p, q) SELECT 9, 'a', 1") == [2, 3, 4, 5, 6, 9]


def test_an_overwrite_of_a_table_without_partitions_replaces_it_in_either_mode(spark, tmp_path, setting):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(spark, f"CREATE TABLE u USING hudi LOCATION '{tmp_path / 't'}' AS SELECT 1 AS id")
    setting("spark.sql.sources.partitionOverwriteMode", "dynamic")
    hoodie.spark.sql(spark, f"INSERT OVERWRITE {path} SELECT 2")
    assert [row.id for row in hoodie.spark.sql(spark, f"SELECT id FROM {path}").collect()] == [2]
    hoodie.spark.sql(spark, f"INSERT OVERWRITE {path} SELECT 3 WHERE false")
    assert hoodie.spark.sql(spark, f"SELECT id FROM {path}").count() == 0


def test_default_is_null(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"CREATE TABLE defaults (id INT, v STRING, l ARRAY<STRING>) USING hudi LOCATION '{tmp_path / 't'}' "
        "TBLPROPERTIES (primaryKey = 'id')",
    )
    hoodie.spark.sql(spark, f"INSERT INTO {path} VALUES (1, 'DEFAULT', DEFAULT), (2, 'b', array('default'))")
    hoodie.spark.sql(spark, f"UPDATE {path} SET v = concat(v, '!'), l = default WHERE id = 2")
    hoodie.spark.sql(
        spark,
        f"""MERGE INTO {path} t USING (SELECT explode(array(2, 3)) AS id) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET v = DEFAULT
            WHEN NOT MATCHED THEN INSERT (id, v, l) VALUES (s.id, DEFAULT, array('c'))""",
    )
    rows = hoodie.spark.sql(spark, f"SELECT id, v, l FROM {path} ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, "DEFAULT", None), (2, None, None), (3, None, ["c"])]
    hoodie.spark.sql(spark, f"INSERT INTO {path} (id, v) SELECT id, DEFAULT FROM (SELECT 4 AS id)")
    hoodie.spark.sql(spark, f"INSERT INTO {path} (id, v) SELECT id, default FROM (SELECT 5 AS id, 'c' AS default)")
    rows = hoodie.spark.sql(spark, f"SELECT id, v FROM {path} WHERE id > 3 ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(4, None), (5, "c")]


def test_a_filter_chooses_among_the_rows_of_a_procedure(spark, orders):
    call = "CALL show_timeline(table => '{}', limit => 1, filter => \"{}\")"
    (row,) = hoodie.spark.sql(spark, call.format(orders, "action like '%commit' and state = 'COMPLETED'")).collect()
    assert row["instant_time"] == hoodie.spark.sql(spark, f"CALL system.show_commits('{orders}')").first()[0]
    assert hoodie.spark.sql(spark, call.format(orders, "action = 'restore'")).count() == 0
    with pytest.raises(AnalysisException, match="nope"):
        hoodie.spark.sql(spark, call.format(orders, "nope = 1")).collect()
    assert hoodie.spark.sql(spark, "CALL help(cmd => 'show_commits')").first()[0].startswith("show_commits(table str")


@pytest.mark.nightly
def test_procedures_bring_rows_elsewhere(spark, orders, tmp_path):
    commit = hoodie.spark.sql(spark, f"CALL show_commits('{orders}')").first()[0]
    expected = rows(spark, orders)
    assert hoodie.spark.sql(spark, f"CALL copy_to_temp_view('{orders}', 'snapshot', 'orders_now')").first()[0] == 0
    hoodie.spark.sql(spark, f"DELETE FROM {orders} WHERE id = 1")
    call = f"CALL copy_to_temp_view(table => '{orders}', view_name => 'orders_then', as_of_instant => '{commit}')"
    hoodie.spark.sql(spark, call)
    assert spark.table("orders_then").count() == len(expected) == spark.table("orders_now").count()
    with pytest.raises(StatementError, match="needs begin_instance_time"):
        hoodie.spark.sql(spark, f"CALL copy_to_temp_view('{orders}', 'incremental', 'orders_since')")
    spark.table("orders_then").drop("_hoodie_commit_time").write.parquet(str(tmp_path / "files"))
    target = tmp_path / "imported"
    imported = (
        f"CALL hdfs_parquet_import(table => 'imported', table_type => 'COPY_ON_WRITE', src_path => '{tmp_path}/files', "
        f"target_path => '{target}', row_key => 'id', partition_key => 'city', schema_file_path => '')"
    )
    assert hoodie.spark.sql(spark, imported).first()[0] == 0
    assert hoodie.open_table(str(target)).count() == len(expected)
    with pytest.raises(StatementError, match="command => 'upsert' adds to it"):
        hoodie.spark.sql(spark, imported)


def test_keys_that_came_twice_are_left_once(spark, tmp_path):
    path = str(tmp_path / "stock")
    table = hoodie.create_table(path, spark=spark, name="stock", record_key="id", partition_by="city")
    for name in ("a", "b"):
        table.bulk_insert(
            spark.createDataFrame([(1, name, "oslo"), (2, name, "rome")], "id int, name string, city string")
        )
    call = f"CALL repair_deduplicate(path => '{path}', duplicated_partition_path => 'oslo', repaired_output_path => "
    hoodie.spark.sql(spark, f"{call} '{tmp_path}/once')")
    assert [row.name for row in spark.read.parquet(f"{tmp_path}/once").collect()] == ["b"]
    assert table.count() == 4
    hoodie.spark.sql(spark, f"{call} '{tmp_path}/once', dry_run => false)")
    assert sorted((row.city, row.name) for row in table.snapshot().collect()) == [
        ("oslo", "b"), ("rome", "a"), ("rome", "b"),
    ]  # fmt: skip


def test_words_behind_the_end_of_a_statement_change_nothing(spark, orders):
    before = rows(spark, orders)
    for statement in (
        f"DROP TABLE {orders} IF EXISTS",
        f"TRUNCATE TABLE {orders} city = 'oslo'",
        f"TRUNCATE TABLE {orders} PARTITION (city = 'oslo') AND id = 1",
        f"ALTER TABLE {orders}\nDROP PARTITION (city = 'oslo') WHERE id = 1",
        f"ALTER TABLE {orders} DROP PARTITION (city = 'oslo'), (city = 'rome')",
        f"ALTER TABLE {orders} ADD PARTITION (city = 'bern') LOCATION '/elsewhere'",
        f"ALTER TABLE {orders} ADD COLUMN tip INT COMMENT 'a' more",
        f"ALTER TABLE {orders} RENAME TO other more",
        f"SHOW PARTITIONS {orders} city",
    ):
        with pytest.raises(StatementError, match=r"line [12], column \d+ near") as raised:
            hoodie.spark.sql(spark, statement)
        (line, column, near), lines = (
            re.findall(r"line (\d), column (\d+) near (.*?):", str(raised.value))[0],
            statement.split("\n"),
        )
        assert lines[int(line) - 1][int(column) - 1 :].startswith(near[1:-1]), raised.value
    assert rows(spark, orders) == before


def test_a_place_is_that_in_the_whole_statement(spark, orders):
    for statement in (f"DESCRIBE\n{orders} size", f"DESCRIBE\n{orders} AS JSON", f"SHOW\nPARTITIONS {orders} x"):
        column = statement.split("\n")[1].index(" ", 12 if statement.startswith("S") else 1) + 2
        with pytest.raises(StatementError, match=f"line 2, column {column} near"):
            hoodie.spark.sql(spark, statement)


def test_what_a_statement_has_too_much_is_refused_at_its_place(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"
    hoodie.spark.sql(
        spark,
        f"""CREATE TABLE places USING hudi PARTITIONED BY (city) LOCATION '{tmp_path / "t"}'
            TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 2 AS n, 'oslo' AS city""",
    )
    for text, place in (
        (f"UPDATE {path} SET n = 5 WHERE id = 1 WHERE id = 2", "line 1, column .* near 'WHERE id = 2'"),
        (f"UPDATE {path} SET n = u.n FROM u WHERE id = u.id", "line 1, column .* near 'FROM u WHERE id = u.id'"),
        (f"DELETE FROM {path} WHERE id = 1 id = 2", r"line 1, column \d+: Invalid expression"),
        (f"DELETE FROM {path} WHERE id = 1 AND", r"line 1, column \d+: Required keyword: 'expression' missing$"),
        (f"SHOW PARTITIONS {path} PARTITION (nope = 'x')", "the table is partitioned by city"),
        (f"SHOW PARTITIONS {path} AS JSON", "near 'AS JSON'"),
        (f"SHOW CREATE TABLE {path} AS SERDE", "near 'AS SERDE'"),
    ):
        with pytest.raises(StatementError, match=place):
            hoodie.spark.sql(spark, text)


def test_a_table_without_partitions_has_none_to_show_or_drop(spark, tmp_path):
    path = f"hudi.`{tmp_path / 't'}`"
    hive_style = {"hoodie.datasource.write.hive_style_partitioning": True}
    hoodie.create_table(tmp_path / "t", record_key="id", options=hive_style).upsert(pa.table({"id": [1]}))
    assert hoodie.spark.sql(spark, f"SHOW PARTITIONS {path}").collect() == []
    with pytest.raises(StatementError, match="partitioned by nothing"):
        hoodie.spark.sql(spark, f"ALTER TABLE {path} DROP PARTITION (id = 1)")


def test_a_table_of_no_columns_is_not_made(spark, tmp_path):
    """As in Hudi: a misspelt location would be a second table."""
    with pytest.raises(StatementError, match="names no columns, and there is no table at"):
        hoodie.spark.sql(spark, f"CREATE TABLE nothing_there USING hudi LOCATION '{tmp_path / 'misspelt'}'")
    assert not (tmp_path / "misspelt").exists()


@pytest.mark.parametrize("properties", ["primaryKey = 'k'", "primaryKey = 'id', preCombineField = 'k'"])
@pytest.mark.parametrize("columns", ["(id INT, v STRING) USING hudi", "USING hudi"])
def test_a_table_whose_key_or_ordering_column_is_missing_is_not_made(spark, tmp_path, columns, properties):
    """As in Hudi 0.15 and 1.2: no row could be written to it."""
    query = "" if columns.startswith("(") else " AS SELECT 1 AS id, 'a' AS v"
    with pytest.raises(StatementError, match="columns k are named and not there"):
        hoodie.spark.sql(
            spark, f"CREATE TABLE lacking {columns} LOCATION '{tmp_path / 't'}' TBLPROPERTIES ({properties}){query}"
        )
    assert not (tmp_path / "t").exists()


def test_key_and_ordering_may_be_fields_of_a_struct(spark, tmp_path):
    """The key is what Hudi 1.2 makes."""
    hoodie.spark.sql(
        spark,
        f"CREATE TABLE of_fields (id INT, s STRUCT<a: INT, o: BIGINT>) USING hudi LOCATION '{tmp_path / 't'}' "
        "TBLPROPERTIES (primaryKey = 's.a', preCombineField = 's.o')",
    )
    for values in ("(1, struct(7, 2L))", "(2, struct(7, 3L))", "(3, struct(8, 1L))"):
        hoodie.spark.sql(spark, f"INSERT INTO of_fields VALUES {values}")
    keys = hoodie.spark.sql(spark, "SELECT _hoodie_record_key AS k, id FROM of_fields ORDER BY id").collect()
    assert [tuple(row) for row in keys] == [("7", 2), ("8", 3)]
    hoodie.spark.sql(spark, "UPDATE of_fields SET id = 20 WHERE s.a = 7")
    merged = "(SELECT 80 AS id, named_struct('a', 8, 'o', 5L) AS s)"
    hoodie.spark.sql(spark, f"MERGE INTO of_fields t USING {merged} m ON t.s.a = m.s.a WHEN MATCHED THEN UPDATE SET *")
    assert [row.id for row in hoodie.spark.sql(spark, "SELECT id FROM of_fields ORDER BY id").collect()] == [20, 80]


def test_bad_statements_say_where_and_change_nothing(spark, orders):
    before = rows(spark, orders)
    twice = "(SELECT * FROM VALUES (1, 'oslo'), (1, 'oslo') AS v(id, city))"
    for error, statement in (
        (StatementError, f"UPDATE {orders} SET price 1"),
        (StatementError, f"UPDATE {orders} SET price = 1; DELETE FROM {orders}"),
        (StatementError, f"MERGE INTO {orders} t USING x ON t.id = x.id WHEN MATCHED DELETE"),
        (StatementError, f"MERGE INTO {orders} t USING x ON t.id = x.id WHEN MATCHED THEN INSERT *"),
        (SchemaMismatch, f"ALTER TABLE {orders} ADD COLUMNS (id INT)"),
        (UnsupportedTable, f"ALTER TABLE {orders} DROP COLUMN price"),
        (StatementError, f"ALTER TABLE {orders} ALTER COLUMN price SET NOT NULL"),
        (StatementError, f"ALTER TABLE {orders} REPLACE COLUMNS (id INT)"),
        (StatementError, f"ALTER TABLE {orders} SET TBLPROPERTIES (note = 'x')"),
        (StatementError, f"ALTER TABLE {orders} RENAME TO {orders}"),
        (AnalysisException, f"UPDATE {orders} SET ts = explode(array(1, 2))"),
        (StatementError, "CALL show_commitz(table => 'x')"),
        (StatementError, f"CALL show_commits(table => '{orders}', lim => 1)"),
        (StatementError, f"CALL show_commits(table => '{orders}', limit => 'many')"),
        (StatementError, f"CALL show_commits(table => '{orders}', limit => -1)"),
        (StatementError, f"CALL show_commits(table => '{orders}';"),
        (StatementError, "CALL show_commits(table => 'nowhere')"),
        (InvalidInput, f"UPDATE {orders} SET id = 5 WHERE id = 1"),
        (InvalidInput, f"UPDATE {orders} SET cost = 5 WHERE id = 1"),
        (SchemaMismatch, f"UPDATE {orders} SET price = 'dear' WHERE id = 1"),
        (SchemaMismatch, f"INSERT INTO {orders} VALUES (1, 2)"),
        (InvalidInput, f"INSERT OVERWRITE {orders} PARTITION (price = 5) SELECT 1, 1, 'oslo'"),
        (
            KeyMatchedTwice,
            f"MERGE INTO {orders} t USING {twice} s ON t.id = s.id AND t.city = s.city "
            "WHEN MATCHED THEN UPDATE SET ts = 3",
        ),
        (TableNotFound, "DELETE FROM hudi.`/nowhere/at/all`"),
    ):
        with pytest.raises(error) as raised:
            hoodie.spark.sql(spark, statement)
        if error is StatementError and "line" in str(raised.value):
            assert "column" in str(raised.value)
    assert rows(spark, orders) == before
