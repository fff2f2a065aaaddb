"""Merges, updates and deletes by condition: what they make of a table, what they refuse, what they open."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from bench.jvm_calls import counted_calls
from hoodie.api.table import HoodieTable
from hoodie.errors import FileGone, InvalidInput, KeyMatchedTwice, SchemaMismatch, WriteConflict
from support import spark_tables
from support.nightly import nightly
from support.routes import ROUTES

#: What Spark does of a merge, update or delete does not depend on the type of the table, and tests without Spark have
#: both: by day each test has the one whose tasks do more with its rows.
ON_FILES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", nightly("MERGE_ON_READ")])
ON_LOGS = pytest.mark.parametrize("table_type", [nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
FIRST = [("a", "oslo", 1, 1.0), ("b", "oslo", 1, 2.0), ("c", "rome", 1, 3.0)]
CHANGES = [
    ("a", "oslo", 2, 10.0, "U"),
    ("b", "oslo", 2, 0.0, "D"),
    ("x", "bern", 2, 5.0, "U"),
    ("y", "bern", 2, 6.0, "D"),
]
BY_KEY = "target.id = source.id AND target.city = source.city"


def new_table(spark: SparkSession, path: Path, table_type: str = "COPY_ON_WRITE", **options: object) -> HoodieTable:
    table = spark_tables.table(spark, path, table_type, partition_by="city", **options)
    table.upsert(spark.createDataFrame(FIRST, "id string, city string, ts long, price double"))
    return table


def changes(spark: SparkSession, rows: list[tuple[object, ...]] = CHANGES) -> DataFrame:
    return spark.createDataFrame(rows, "id string, city string, ts long, price double, op string")


def rows(table: HoodieTable) -> list[tuple[object, ...]]:
    found = hoodie.open_table(table.path).snapshot(columns=["id", "city", "ts", "price"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def counts(result: hoodie.WriteResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


def unchanged(table: HoodieTable, before: int) -> None:
    assert len(table.history()) == before
    assert rows(table) == FIRST


@ON_LOGS
@ROUTES
def test_a_merge_applies_changes_in_one_commit(spark, tmp_path, table_type, route):
    table = new_table(spark, tmp_path / "t", table_type)
    result = (
        table.merge(changes(spark), BY_KEY, options=route)
        .when_matched_delete(condition="source.op = 'D'")
        .when_matched_update_all()
        .when_not_matched_insert_all(condition="source.op <> 'D'")
        .execute()
    )
    assert rows(table) == [("a", "oslo", 2, 10.0), ("c", "rome", 1, 3.0), ("x", "bern", 2, 5.0)]
    assert counts(result) == (1, 1, 1)
    assert len(table.history()) == 2
    assert table.snapshot().columns[5:] == ["id", "city", "ts", "price"]


@ON_FILES
@ROUTES
def test_a_merge_computes_with_the_rows_of_the_table(spark, tmp_path, table_type, route):
    table = new_table(spark, tmp_path / "t", table_type)
    result = (
        table.merge(changes(spark), BY_KEY, options=route)
        .when_matched_delete(condition="source.op = 'D'")
        .when_matched_update({"price": "target.price + source.price", "target.ts": "source.ts"})
        .when_not_matched_insert({"id": "source.id", "city": "source.city", "ts": 7}, condition="source.price = 5")
        .when_not_matched_by_source_update({"price": -1})
        .execute()
    )
    assert rows(table) == [("a", "oslo", 2, 11.0), ("c", "rome", 1, -1.0), ("x", "bern", 7, None)]
    assert counts(result) == (1, 2, 1)


def test_rows_that_no_source_row_matches_are_deleted(spark, tmp_path):
    table = new_table(spark, tmp_path / "t")
    result = (
        table.merge(changes(spark))
        .when_matched_update_all()
        .when_not_matched_by_source_delete(condition="target.price > 2.5")
        .execute()
    )
    assert rows(table) == [("a", "oslo", 2, 10.0), ("b", "oslo", 2, 0.0)]
    assert counts(result) == (0, 2, 1)


@ROUTES
def test_what_a_clause_does_not_cover_stays_as_it_is(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    table.merge(changes(spark), options=route).when_not_matched_insert_all(condition="op = 'U'").execute()
    assert rows(table) == sorted([*FIRST, ("x", "bern", 2, 5.0)])
    table.merge(changes(spark), options=route).when_matched_update_all(condition="source.id <> 'x'").execute()
    assert rows(table) == [
        ("a", "oslo", 2, 10.0),
        ("b", "oslo", 2, 0.0),
        ("c", "rome", 1, 3.0),
        ("x", "bern", 2, 5.0),
    ]
    replaced = table.merge(changes(spark), options=route).when_matched_delete(condition="op = 'D'")
    replaced.when_not_matched_insert_all().execute()
    assert [row[0] for row in rows(table)] == ["a", "c", "x", "y"]


def test_a_merge_of_whole_rows_asks_no_more_of_spark_than_an_upsert(spark, tmp_path):
    """Each call on Spark's side takes a round trip; expressions that nobody needs made it four times as many."""
    table = new_table(spark, tmp_path / "t")
    source = changes(spark).drop("op")

    def calls_of(act: Callable[[], object]) -> int:
        with counted_calls() as calls:
            act()
        return calls.total()

    def merge() -> object:
        return table.merge(source).when_matched_update_all().when_not_matched_insert_all().execute()

    merge()
    assert calls_of(merge) <= 1.1 * calls_of(lambda: table.upsert(source))


def test_a_merge_of_whole_rows_goes_by_the_tables_names_and_types(spark, tmp_path):
    table = new_table(spark, tmp_path / "t")
    source = spark.createDataFrame(
        [("U", "a", 2, "oslo", 7), ("U", "n", 2, "oslo", 8)], "op string, ID string, ts int, City string, price int"
    )
    table.merge(source, BY_KEY).when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table) == [("a", "oslo", 2, 7.0), *FIRST[1:], ("n", "oslo", 2, 8.0)]
    assert table.snapshot().columns[5:] == ["id", "city", "ts", "price"]


@ON_LOGS
def test_a_merge_that_deletes_takes_nothing_but_the_keys(spark, tmp_path, table_type):
    """Least of all those that take no nulls, which the source does not have."""
    strict = hoodie.create_table(
        str(tmp_path / "s"), spark=spark, name="s", record_key="id", partition_by="city", table_type=table_type
    )
    strict.upsert(spark.range(3).selectExpr("concat('k', id) as id", "'oslo' as city", "id as ts", "2.0D as price"))
    gone = spark.createDataFrame([("k1", "oslo"), ("k2", "rome"), (None, "oslo")], "id string, city string")
    result = strict.merge(gone).when_matched_delete(condition="source.city = 'oslo'").execute()
    assert counts(result) == (0, 0, 1)
    assert [row[0] for row in rows(strict)] == ["k0", "k2"]


@ON_FILES
def test_keys_of_another_type_match_where_they_are_equal(spark, tmp_path, table_type):
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id", table_type=table_type)
    first = [(1, 1), (2, 2), (3, 3)]
    table.upsert(spark.createDataFrame(first, "id int, n int"))
    source = spark.createDataFrame([(1.5, "02", 8), (3.0, "x", 9)], "id double, text string, n int")
    table.merge(source, "target.id = source.id").when_matched_update_all().execute()
    assert values(table) == [(1, 1), (2, 2), (3, 9)]
    table.merge(source.where("id < 2"), "target.id = source.id").when_matched_delete().execute()
    table.merge(source.where("id < 2"), "target.id = source.text").when_matched_delete().execute()
    assert values(table) == [(1, 1), (3, 9)]


def values(table: HoodieTable) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in table.snapshot().select("id", "n").collect())


@pytest.mark.nightly
def test_values_of_clauses_keep_their_digits_beside_others_of_a_wider_type(spark, tmp_path):
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id")
    large = 2**53 + 1
    table.upsert(spark.createDataFrame([(1, large), (2, large), (3, large)], "id int, n long"))
    source = spark.createDataFrame([(1, 5.0), (2, 6.0)], "id int, x double")
    merge = table.merge(source, "target.id = source.id")
    merge = merge.when_matched_update({"n": "source.x"}, condition="source.id = 1").when_matched_update(
        {"n": "target.n"}
    )
    merge.when_not_matched_by_source_update({"n": "target.n"}).execute()
    assert values(table) == [(1, 5), (2, large), (3, large)]


@ON_LOGS
def test_fields_of_structs_are_assigned_by_name_and_in_their_types(spark, tmp_path, table_type):
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="k.id", table_type=table_type)
    made = "named_struct('id', id) k, 1L n, named_struct('x', 1, 'y', 2) s, array(named_struct('q', 1, 'r', 2)) l"
    table.upsert(spark.sql(f"SELECT {made} FROM range(2)"))  # fields and elements that take no nulls
    table.update({"n": "5"}, "k.id = 0")
    table.update({"s": "named_struct('y', 7L, 'x', s.y)", "l": "array(named_struct('r', 8, 'q', 9))"}, "k.id = 1")
    assert nested(table) == [(0, 5, (1, 2), [(1, 2)]), (1, 1, (2, 7), [(9, 8)])]
    source = spark.sql("SELECT 6 n, named_struct('id', 0) k, array() l, named_struct('Y', 3, 'X', 4L) s")
    table.merge(source, "target.k.id = source.k.id").when_matched_update_all().execute()
    assert nested(table) == [(0, 6, (4, 3), []), (1, 1, (2, 7), [(9, 8)])]
    table.update({"target.S.x": "s.y + 3L", "n": 6}, "k.id = 1")
    merge = table.merge(source).when_matched_update({"s.y": "source.s.x"})
    merge.when_not_matched_by_source_update({"s.y": F.col("target.s.y") + 1, "s.x": 10}).execute()
    assert nested(table) == [(0, 6, (4, 4), []), (1, 6, (10, 8), [(9, 8)])]
    with pytest.raises(SchemaMismatch, match="column 's' is"):
        table.update({"s.x": "'one'"})
    for value, error in (
        ("named_struct('y', 7, 'z', 1)", SchemaMismatch),
        ("named_struct('y', 7)", SchemaMismatch),
        ("named_struct('y', 7, 'x', 'one')", SchemaMismatch),
        ("named_struct('y', 7, 'x', 3000000000)", InvalidInput),
        ("named_struct('y', 7, 'x', CAST(NULL AS INT))", SchemaMismatch),
    ):
        with pytest.raises(error, match=r"column '?s"):
            table.update({"s": value})


def nested(table: HoodieTable) -> list[tuple[object, ...]]:
    found = table.snapshot().select("k.id", "n", "s", "l").collect()
    return sorted((row.id, row.n, tuple(row.s), [tuple(item) for item in row.l]) for row in found)


@pytest.mark.parametrize("condition", [nightly(BY_KEY), "target.id = source.id"])
def test_names_without_a_table_are_those_of_the_side_that_a_clause_is_about(spark, tmp_path, condition):
    """As in Spark's MERGE, and in one without Spark."""
    columns = {"id": "id", "city": "upper(city)", "ts": "ts", "price": "price + source.ts"}
    found = []
    for name, session in (("with", spark), ("without", None)):
        new_table(spark, tmp_path / name)
        table = hoodie.open_table(str(tmp_path / name), spark=session)
        source = changes(spark) if session else changes(spark).toArrow()
        merge = (
            table.merge(source, condition)
            .when_matched_update({"price": "source.price"})
            .when_not_matched_insert(columns, condition="id <> 'y' and city is not null")
            .when_not_matched_by_source_update({"price": "price * 10"}, condition="ts = 1")
        )
        assert counts(merge.execute()) == (1, 3, 0)
        found.append(rows(table))
    assert found[0] == found[1]
    assert found[0] == [("a", "oslo", 1, 10.0), ("b", "oslo", 1, 0.0), ("c", "rome", 1, 30.0), ("x", "BERN", 2, 7.0)]


def test_a_merge_by_another_column_joins(spark, tmp_path):
    table = new_table(spark, tmp_path / "t")
    prices = spark.createDataFrame([(1.0, 100.0), (3.0, 300.0)], "old double, new double")
    result = table.merge(prices, "target.price = source.old").when_matched_update({"price": "source.new"}).execute()
    assert rows(table) == [("a", "oslo", 1, 100.0), ("b", "oslo", 1, 2.0), ("c", "rome", 1, 300.0)]
    assert counts(result) == (0, 2, 0)
    assert result.copied == 1  # b, which shares a's file


def test_a_global_index_finds_and_moves_rows(spark, tmp_path):
    glob = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    table = new_table(spark, tmp_path / "t", **glob)
    moved = changes(spark, [("a", "rome", 2, 10.0, "U"), ("n", "rome", 2, 1.0, "U")])
    table.merge(moved, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table)[0] == ("a", "rome", 2, 10.0)
    table.update({"city": "'bern'"}, "id = 'b'")
    assert rows(table)[1] == ("b", "bern", 1, 2.0)
    table.merge(moved, "target.id = source.id").when_matched_delete().execute()
    assert [row[0] for row in rows(table)] == ["b", "c"]


@ON_FILES
def test_update_sets_columns_where_a_condition_holds(spark, tmp_path, table_type):
    table = new_table(spark, tmp_path / "t", table_type)
    result = table.update({"price": "price * 2", "ts": F.col("ts") + 1}, "city = 'oslo' AND price > 1")
    assert rows(table) == [FIRST[0], ("b", "oslo", 2, 4.0), FIRST[2]]
    assert counts(result) == (0, 1, 0)
    assert counts(table.update({"price": None}, F.col("id") == "c")) == (0, 1, 0)
    assert rows(table)[2] == ("c", "rome", 1, None)
    assert counts(table.delete(where="price IS NULL OR id = 'a'")) == (0, 0, 2)
    assert [row[0] for row in rows(table)] == ["b"]


@ON_LOGS
def test_a_condition_is_not_evaluated_behind_a_null_as_in_a_query(spark, tmp_path, table_type):
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id", table_type=table_type)
    texts = [("a", "number", "7"), ("b", None, "no number"), ("c", "text", "x"), ("d", "number", "3")]
    rows = spark.createDataFrame(texts, "id string, kind string, raw string")
    table.upsert(rows)
    condition = "kind = 'number' and cast(raw as int) > 5"
    assert [row.id for row in rows.where(condition).collect()] == ["a"]
    assert counts(table.update({"raw": "'8'"}, condition)) == (0, 1, 0)
    assert counts(table.delete(where=condition)) == (0, 0, 1)


@ROUTES
def test_a_delete_from_a_table_that_nothing_was_written_to_deletes_nothing(spark, tmp_path, route):
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id")
    for condition in ("id = 'a' and price > 1", F.col("id") == "a", "true"):
        assert counts(table.delete(where=condition, options=route)) == (0, 0, 0)
    with pytest.raises(InvalidInput, match="It has none yet"):
        table.update({"price": 1}, "id = 'a'")
    table.upsert(changes(spark))
    assert counts(table.delete(where="id = 'a'", options=route)) == (0, 0, 1)


def test_only_partitions_that_can_fit_are_opened(spark, tmp_path):
    table = new_table(spark, tmp_path / "t")
    for file in (tmp_path / "t" / "rome").glob("*.parquet"):
        file.write_bytes(b"PAR1 no parquet PAR1")
    table.update({"price": 9}, "city in ('oslo', 'bern') and price < 2")
    table.delete(where="city = 'oslo' and id = 'b'")
    oslo = changes(spark, CHANGES[:1])
    merge = table.merge(oslo, "target.city = 'oslo' and target.id = source.id")
    merge.when_matched_update({"price": "target.price + 1"}).execute()
    assert hoodie.open_table(table.path).snapshot(
        partitions=["oslo"], columns=["id", "price"]
    ).to_arrow().to_pylist() == [{"id": "a", "price": 10.0}]


@ROUTES
def test_two_source_rows_for_one_row_are_an_error(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    twice = changes(spark, [*CHANGES, CHANGES[0]])
    by_key = table.merge(twice, BY_KEY, options=route).when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(KeyMatchedTwice, match="'a'") as raised:
        by_key.execute()
    assert raised.value.keys == 1
    joined = table.merge(twice, BY_KEY, options=route).when_matched_update({"price": "target.price + 1"})
    with pytest.raises(KeyMatchedTwice):
        joined.execute()
    unchanged(table, 1)
    # Two rows of which the clauses take one are none.
    joined = table.merge(twice.withColumn("n", F.monotonically_increasing_id()), BY_KEY)
    joined.when_matched_update({"price": 5}, condition="source.n = 0").execute()
    assert rows(table)[0] == ("a", "oslo", 1, 5.0)


@pytest.mark.parametrize("cleaned", [False, True])
def test_rows_read_before_anothers_commit_are_read_again_or_refused(spark, tmp_path, monkeypatch, cleaned):
    table = new_table(spark, tmp_path / "t")
    from hoodie.spark.merge import run

    others = [("c", "rome", 2, 7.0)]
    read = run.scan_rows

    def meddling(*arguments):
        frame = read(*arguments)
        if others:
            table.upsert(spark.createDataFrame([others.pop()], "id string, city string, ts long, price double"))
            if cleaned:
                raise FileGone(errno.ENOENT, "No such file or directory")
        return frame

    monkeypatch.setattr(run, "scan_rows", meddling)
    once = {"hoodie.write.num.retries.on.conflict.failures": 0}
    with pytest.raises(WriteConflict):
        table.update({"price": "price + 1"}, "id = 'c'", options=once)
    assert rows(table)[2] == ("c", "rome", 2, 7.0)
    others.append(("c", "rome", 3, 8.0))
    retry = {"hoodie.write.num.retries.on.conflict.failures": 1}
    table.update({"price": "price + 1"}, "id = 'c'", options=retry)
    assert rows(table)[2] == ("c", "rome", 3, 9.0)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", nightly("MERGE_ON_READ")])
@pytest.mark.parametrize("limit", [pytest.param(0, id="executors"), nightly(1 << 30, id="driver")])
def test_columns_that_no_clause_sets_keep_their_values_without_a_join(spark, tmp_path, monkeypatch, limit, table_type):
    from hoodie.spark.merge import run as merges

    monkeypatch.setattr(merges, "join_rows", None)  # a join would call it
    options = {"hoodie.spark.driver.max.batch.bytes": limit}
    one = hoodie.create_table(
        str(tmp_path / "t"), spark=spark, name="t", record_key="id", ordering="ts", table_type=table_type
    )
    one.upsert(spark.createDataFrame([(1, 1, 10, "x"), (2, 5, 20, "y")], "id long, ts long, a long, b string"))
    source = spark.createDataFrame([(1, 2, 11), (2, 2, 21), (3, 2, 31)], "id long, ts long, a long")
    merge = one.merge(source, "target.id = source.id", options=options)
    values = {"ts": "source.ts", "a": "source.a"}
    merge = merge.when_matched_update(values).when_not_matched_insert({"id": "source.id", **values, "b": "'new'"})
    merge.execute()
    stored = one.snapshot().select("id", "ts", "a", "b").orderBy("id").collect()
    assert [tuple(row) for row in stored] == [(1, 2, 11, "x"), (2, 5, 20, "y"), (3, 2, 31, "new")]
    if table_type == "COPY_ON_WRITE":
        more = spark.createDataFrame([(1, 12), (9, 12)], "id long, a long")
        one.merge(more, "target.id = source.id", options=options).when_matched_update({"a": "source.a"}).execute()
        stored = one.snapshot().select("id", "ts", "a", "b").orderBy("id").collect()
        assert [tuple(row) for row in stored] == [(1, 2, 12, "x"), (2, 5, 20, "y"), (3, 2, 31, "new")]
