"""A table's columns grow with the batches that are written to it; whatever would lose values is refused."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import SchemaMismatch
from hoodie.spark.types import all_nullable, to_arrow
from support.nightly import nightly
from support.oracles import META, assert_same_rows, read_hudi_rs
from support.routes import ROUTES, SPREAD

VECTORISED = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")

NARROW = (
    "id string, city string, ts bigint, i int, f float, n int, s struct<x: int>, items array<int>, m map<string, int>"
)
WIDE = (
    "id string, city string, ts bigint, i bigint, f double, n double, s struct<x: bigint, y: string>, "
    "items array<bigint>, m map<string, double>, extra string, more struct<a: array<int>>"
)
OLD = [
    ("a", "oslo", 1, 2**31 - 1, 0.25, 7, {"x": 1}, [1, None], [("k", 1)]),
    ("b", "oslo", 1, None, None, None, None, None, None),
    ("c", "rome", 1, -(2**31), float("inf"), -7, {"x": None}, [], []),
]
NEW = [
    ("a", "oslo", 2, 2**40, 0.1, 7.5, {"x": 2**40, "y": "y"}, [2**40], [("k", 1.5)], "e", {"a": [1]}),
    ("d", "oslo", 2, None, 1e300, None, {"x": 1, "y": None}, None, None, None, None),
    ("e", "bern", 2, 1, -0.5, 1e300, None, [None, 3], [("k", None)], "e", {"a": None}),
]


def rows(columns: str, values: Sequence[tuple[Any, ...]]) -> pa.Table:
    schema = to_arrow(StructType.fromDDL(columns))
    arrays = [pa.array([value[i] for value in values], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


def frame(spark: SparkSession, columns: str, values: Sequence[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows(columns, values))


def new_table(
    spark: SparkSession, path: Path, columns: str, values: Sequence[tuple[Any, ...]], options: Mapping[str, Any]
) -> HoodieTable:
    table = hoodie.create_table(
        str(path), spark=spark, name="t", record_key="id", partition_by="city", ordering="ts", options=options
    )
    table.insert(frame(spark, columns, values))
    return table


@contextmanager
def reader(spark: SparkSession, vectorised: str) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in VECTORISED}
    for key in VECTORISED:
        spark.conf.set(key, vectorised)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))


def holds(spark: SparkSession, table: HoodieTable, expected: pa.Table) -> None:
    """The table has these rows and types, for Spark's two Parquet readers, Arrow and hudi-rs."""
    for vectorised in ("true", "false"):
        with reader(spark, vectorised):
            read = table.snapshot()
            wanted = all_nullable(StructType.fromJson(spark.createDataFrame(expected).schema.jsonValue()))
            assert StructType(read.schema.fields[len(META) :]) == wanted
            assert_same_rows(read.toArrow(), expected, ignore=META, sort_by=["id"])
    read = hoodie.open_table(table.path).snapshot(meta=True).to_arrow()
    assert [field.type for field in read.schema][len(META) :] == [field.type for field in expected.schema]
    assert_same_rows(read, expected, ignore=META, sort_by=["id"])
    assert_same_rows(read_hudi_rs(table.path), expected, ignore=META, sort_by=["id"])


def files(path: str | Path) -> dict[str, str]:
    root = Path(path)
    found = sorted(file for file in root.rglob("*") if file.is_file())
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest() for file in found}


@ROUTES
def test_columns_are_added_and_widened_beside_files_that_stay_as_they_are(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t", NARROW, OLD, route)
    result = table.upsert(frame(spark, WIDE, NEW))
    assert (result.inserted, result.updated, result.route) == (2, 1, "executors" if route else "driver")
    widened = rows(
        WIDE,
        [
            NEW[0],
            (*OLD[1], None, None),
            (*OLD[2][:6], {"x": None, "y": None}, [], [], None, None),
            *NEW[1:],
        ],
    )
    holds(spark, table, widened)
    assert {s.group.partition for s in table.file_slices() if s.base_instant == result.instant} == {"oslo", "bern"}
    # A narrower batch that lacks most columns: types stay, the rest is null where the call says so.
    narrower = frame(spark, "city string, i int, ts bigint, id string", [("rome", 5, 3, "c")])
    before = files(table.path)
    with pytest.raises(SchemaMismatch, match=r"columns 'f', 'n', .* are missing"):
        table.upsert(narrower)
    assert files(table.path) == before
    result = table.upsert(narrower, missing="null")
    assert (result.inserted, result.updated, result.new_columns) == (0, 1, ())
    assert "columns 'f', 'n', " in str(result)
    kept = [row for row in widened.to_pylist() if row["id"] != "c"]
    changed = {"id": "c", "city": "rome", "ts": 3, "i": 5}
    holds(spark, table, pa.Table.from_pylist([*kept, changed], schema=widened.schema))


COLUMNS = (
    "id string, city string, ts bigint, note string, long bigint, double double, money decimal(5,2), s struct<x: int>"
)
ROW = ("a", "oslo", 1, "n", 1, 1.0, None, {"x": 1})


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (COLUMNS.replace("note string", "note binary"), ["note", "string", "binary"]),
        (COLUMNS.replace("long bigint", "long timestamp"), ["long", "bigint", "timestamp"]),
        (COLUMNS.replace("double double", "double boolean"), ["double", "boolean"]),
        (COLUMNS.replace("decimal(5,2)", "decimal(10,2)"), ["money", "decimal(5,2)", "decimal(10,2)"]),
        (COLUMNS.replace("decimal(5,2)", "decimal(5,3)"), ["money", "decimal(5,2)", "decimal(5,3)"]),
        (COLUMNS.replace("struct<x: int>", "struct<x: string>"), ["s.x", "int", "string"]),
        (COLUMNS.replace("struct<x: int>", "array<int>"), ["s is struct<x:int>", "array<int>"]),
        (COLUMNS.replace("id string", "id int"), ["id", "string", "int"]),
        (COLUMNS.replace("ts bigint", "ts double"), ["ts", "bigint", "double"]),
        # All of them in one message.
        (COLUMNS.replace("note string", "note binary").replace("long bigint", "long date"), ["note", "long"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_readers_would_get_wrong_is_refused_before_a_byte_is_written(spark, shared, columns, named):
    before = files(shared.path)
    nothing = spark.createDataFrame([], StructType.fromDDL(columns))
    for operation in (shared.upsert, shared.bulk_insert, shared.insert_overwrite_table, shared.explain_upsert):
        with pytest.raises(SchemaMismatch) as raised:
            operation(nothing)
        assert all(name in str(raised.value) for name in named), raised.value
    assert files(shared.path) == before


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HoodieTable:
    """A table for batches that are refused."""
    return new_table(spark, tmp_path_factory.mktemp("evolution") / "t", COLUMNS, [ROW], {})


@pytest.mark.nightly  # beside test_columns_that_no_clause_sets_keep_their_values_without_a_join
@pytest.mark.parametrize(
    ("table_type", "index"),
    [("COPY_ON_WRITE", "SIMPLE"), ("MERGE_ON_READ", "GLOBAL_SIMPLE"), ("MERGE_ON_READ", "BUCKET")],
)
def test_executors_update_some_columns_whether_rows_are_staged_or_shuffled(spark, tmp_path, table_type, index):
    columns = "id string, city string, ts bigint, i int, s struct<x: int, y: int>"
    options = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2", **SPREAD}
    table = hoodie.create_table(
        str(tmp_path / "t"),
        spark=spark,
        name="t",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
        options=options,
    )
    table.upsert(frame(spark, columns, [(key, "oslo", 2, 1, {"x": 1, "y": 2}) for key in "abc"]))
    b_moves = "rome" if index.startswith("GLOBAL") else "oslo"
    rows_of_some = [
        ("a", "oslo", 3, {"x": 9}),
        ("b", b_moves, 3, None),
        ("c", "oslo", 1, {"x": 9}),
        ("n", "rome", 1, None),
    ]
    some = frame(spark, "id string, city string, ts bigint, s struct<x: int>", rows_of_some)
    with pytest.raises(SchemaMismatch, match=r"columns 'i', 's\.y' are missing"):
        table.upsert(some)
    result = table.upsert(some, missing="keep")
    assert (result.route, result.missing_columns) == ("executors", ("i", "s.y"))
    held = [
        ("a", "oslo", 3, 1, {"x": 9, "y": 2}),
        ("b", b_moves, 3, 1, None),
        ("c", "oslo", 2, 1, {"x": 1, "y": 2}),
        ("n", "rome", 1, None, None),
    ]
    holds(spark, table, rows(columns, held))
    assert table.explain_upsert(some, missing="null").missing_columns == ("i", "s.y")
    writer = table.stream_upsert("s", missing="keep")
    writer(frame(spark, "id string, city string, ts bigint, i int", [("a", "oslo", 4, 7)]), 0)
    holds(spark, table, rows(columns, [("a", "oslo", 4, 7, {"x": 9, "y": 2}), *held[1:]]))


@pytest.mark.nightly
@pytest.mark.parametrize("table_type", [nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_columns_grow_as_in_hudi_and_spark_reads_the_files_of_before(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    options = {"hoodie.compact.inline": "false"}
    table = hoodie.create_table(
        tmp_path, spark=spark, name="t", record_key="id", partition_by="p", table_type=table_type, options=options
    )
    first = spark.sql("SELECT * FROM VALUES (1L, 'a', 7L, 1), (2L, 'a', 8L, 2), (3L, 'b', 9L, 3) AS t(id, p, n, t)")
    table.insert(first)
    begin = table.history()[0][0].requested
    for spread in ("104857600", "0"):
        grown = spark.sql("SELECT 1L AS id, 'a' AS p, double(0.5) AS n, 'text' AS t")
        table.upsert(grown, options={"hoodie.spark.driver.max.batch.bytes": spread})
        rows = table.snapshot().select("id", "n", "t").orderBy("id").collect()
        assert [tuple(row) for row in rows] == [(1, 0.5, "text"), (2, 8.0, "2"), (3, 9.0, "3")]
    assert table.snapshot().where("t = '3' and n = 9.0").count() == 1
    assert table.snapshot().where("t > '2'").count() == 2
    assert [row.id for row in table.changes(begin).collect()] == [1]
    table.update({"t": "'updated'"}, "id = 3")
    assert table.snapshot().where("id = 3").select("t").collect()[0].t == "updated"
