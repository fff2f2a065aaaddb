"""What cannot be written is refused with an error that says why, and the table stays as it was."""

import os
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import (
    CorruptFile,
    InvalidInput,
    SchemaMismatch,
    TableNotFound,
    WorkerEnvironment,
)
from hoodie.spark import tasks
from hoodie.spark.types import to_arrow
from hoodie.spark.worker_errors import mark_worker_errors, raise_worker_errors
from support import spark_tables
from support.nightly import nightly
from support.routes import ROUTES, SPREAD
from support.untouched import files, untouched

COLUMNS = "id string, city string, ts bigint, note string"
ROWS = [("a", "oslo", 1, "x"), ("b", "rome", 1, "y")]


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], columns: str = COLUMNS) -> DataFrame:
    """Rows that Spark knows the size of, so that small batches of all operations go near."""
    schema = to_arrow(StructType.fromDDL(columns))
    values = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return spark.createDataFrame(pa.Table.from_arrays(values, schema=schema))


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HoodieTable:
    """A table with two rows in two partitions."""
    made = spark_tables.table(spark, tmp_path / "t", partition_by="city")
    made.insert(frame(spark, ROWS))
    return made


def data_files(path: str | Path) -> list[str]:
    return [name for name in files(path) if name.endswith(".parquet")]


# --- keys and columns ---


@ROUTES
def test_a_null_or_empty_record_key_is_refused_with_the_number_of_rows(spark, table, route):
    for operation in (table.upsert, table.insert, table.delete, table.insert_overwrite):
        with untouched(table, "2 rows have a record key that is null or empty"):
            operation(
                frame(spark, [(None, "oslo", 2, "x"), ("", "oslo", 2, "x"), ("a", "oslo", 2, "x")]), options=route
            )


def test_a_near_bulk_insert_refuses_null_keys_before_it_begins(spark, table):
    with untouched(table, "1 rows have a record key that is null or empty"):
        table.bulk_insert(frame(spark, [(None, "oslo", 2, "x")]))
    assert table.bulk_insert(frame(spark, [("c", "oslo", 2, "x")])).route == "driver"


def test_a_spread_bulk_insert_that_meets_a_null_key_leaves_no_data_behind(spark, table):
    before, rows = data_files(table.path), hoodie.open_table(table.path).snapshot(meta=True).to_arrow().to_pylist()
    bad = frame(spark, [("c", "oslo", 2, "x"), (None, "oslo", 2, "x"), ("d", "bern", 2, "x")])
    with pytest.raises(InvalidInput, match=r"1 rows have no record key \(null or empty\)"):
        table.bulk_insert(bad, options=SPREAD)
    assert data_files(table.path) == before
    assert hoodie.open_table(table.path).snapshot(meta=True).to_arrow().to_pylist() == rows
    assert not list(Path(table.path, ".hoodie/.temp").rglob("*.marker.*"))


@ROUTES
def test_a_null_ordering_value_is_refused(spark, table, route):
    with untouched(table, "ts"):
        table.upsert(frame(spark, [("a", "oslo", None, "x"), ("b", "rome", 3, "x")]), options=route)


def test_an_ordering_column_without_an_order_is_refused(spark, tmp_path):
    table = hoodie.create_table(str(tmp_path / "t"), spark=spark, name="t", record_key="id", ordering="ts")
    with untouched(table, "'ts' is array<bigint>: expected a number, text or time"):
        table.upsert(frame(spark, [("a", [1])], "id string, ts array<bigint>"))


@ROUTES
def test_all_missing_columns_are_named_in_one_message(spark, table, route):
    lacking = frame(spark, [("x", "y")], "note string, ID string")
    with untouched(table, "record key column 'id'", "'ID'", "partition column 'city'", "ordering column 'ts'"):
        table.upsert(lacking, options=route)
    with untouched(table, "record key column 'id'", "partition column 'city'"):
        table.delete(lacking, options=route)


def test_all_missing_columns_are_named_when_some_of_them_take_no_nulls(spark, tmp_path):
    table = hoodie.create_table(
        str(tmp_path / "t"), spark=spark, name="t", record_key="id", partition_by="city", ordering="ts"
    )
    table.insert(frame(spark, ROWS, "id string not null, city string, ts bigint not null, note string"))
    with untouched(table, "'id'", "'city'", "'ts'"):
        table.upsert(frame(spark, [("x",)], "note string"))


def test_column_names_that_differ_in_case_only_are_refused(spark, table):
    twice = frame(spark, [("a", "oslo", 2, "x", "y")], f"{COLUMNS}, NOTE string")
    with untouched(table, "note", "NOTE", error=SchemaMismatch):
        table.upsert(twice)
    with untouched(table, "Note", "note", error=SchemaMismatch):
        table.upsert(frame(spark, ROWS, COLUMNS.replace("note", "Note")))
    same = frame(spark, ROWS).withColumnRenamed("note", "ts")
    with untouched(table, "column 'ts' occurs more than once", error=SchemaMismatch):
        table.upsert(same)
    keys = frame(spark, [("a", "b", "oslo")], "id string, ID string, city string")
    with untouched(table, "id", "more than once"):
        table.delete(keys)


def test_duplicate_columns_beside_meta_columns_are_refused(spark, table):
    read = table.snapshot()
    with untouched(table, "note", "more than once", error=SchemaMismatch):
        table.upsert(read.withColumn("x", F.lit("1")).withColumnRenamed("x", "note"))


def test_something_else_than_a_dataframe_is_refused(table):
    with untouched(table, "DataFrame", "list"):
        table.upsert([("a", "oslo", 2, "x")])
    with untouched(table, "list"):
        table.delete_partitions("oslo")
    with untouched(table, "bern", error=InvalidInput):
        table.delete_partitions(["oslo", "bern"])


# --- types ---


def test_all_columns_of_types_that_no_table_holds_are_named(spark, table):
    bad = frame(spark, ROWS).select(
        "*",
        F.expr("interval 1 day").alias("day"),
        F.lit(None).alias("nothing"),
        F.create_map(F.lit(1), F.lit("x")).alias("numbers"),
        F.expr("named_struct('deep', interval 1 month)").alias("outer"),
        F.expr("parse_json('1')").alias("any"),
    )
    with untouched(table, "day is", "nothing is void", "numbers is", "outer.deep is", "any is", error=SchemaMismatch):
        table.upsert(bad)
    with untouched(table, "day is", "numbers is", error=SchemaMismatch):
        table.explain_upsert(bad)


def test_names_that_readers_cannot_have_are_refused(spark, table):
    bad = frame(spark, ROWS).select("*", F.lit(1).alias("größe"), F.lit(1).alias("a b"), F.lit(1).alias("_hoodie_x"))
    with untouched(table, "größe", "a b", "_hoodie_x", error=SchemaMismatch):
        table.upsert(bad)


# --- corrupt files ---


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("index", "route"),
    [
        nightly("SIMPLE", {}, id="SIMPLE-driver"),
        pytest.param("SIMPLE", SPREAD, id="SIMPLE-executors"),
        nightly("BLOOM", {}, id="BLOOM-driver"),
        nightly("BLOOM", SPREAD, id="BLOOM-executors"),
    ],
)
def test_a_corrupt_parquet_footer_is_named(spark, table, index, route):
    (broken,) = Path(table.path, "oslo").glob("*.parquet")
    damage(broken, lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1")
    before = data_files(table.path)
    with pytest.raises(CorruptFile, match=broken.name):
        table.upsert(frame(spark, ROWS), options={"hoodie.index.type": index, **route})
    assert data_files(table.path) == before
    with pytest.raises(CorruptFile, match=broken.name):
        hoodie.open_table(table.path).snapshot(meta=True).to_arrow()
    with pytest.raises((PySparkException, Py4JJavaError), match=broken.name):  # Spark's own reader
        table.snapshot().collect()
    # The other partition is as good as before.
    assert table.snapshot(partitions=["rome"]).select("id").collect() == [("b",)]
    assert table.upsert(frame(spark, [("b", "rome", 9, "z")]), options=route).updated == 1


# --- nothing ---


@ROUTES
def test_nothing_can_be_written_to_an_empty_table(spark, tmp_path, route):
    for name in ("upsert", "delete"):  # the others without Spark: unit/api/test_rows_left_out.py
        table = hoodie.create_table(
            str(tmp_path / name),
            spark=spark,
            name="t",
            record_key="id",
            partition_by="city",
            ordering="ts",
            options=route,
        )
        result = getattr(table, name)(frame(spark, []))
        assert (result.inserted, result.updated, result.deleted, result.files) == (0, 0, 0, ())
        assert len(table.history()) == 1
        # What comes first decides on the columns; keys alone do not.
        table.upsert(frame(spark, ROWS, COLUMNS.replace("bigint", "bigint not null")))
        assert sorted(table.snapshot().select("id").toArrow().column(0).to_pylist()) == ["a", "b"]
        read = hoodie.open_table(table.path).snapshot(meta=True).to_arrow()
        assert read.num_rows == 2
        if name == "delete":
            assert not read.schema.field("ts").nullable


# --- workers ---


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("3 rows have no key"),
        SchemaMismatch("column 'ü' is int"),
        CorruptFile("a/b.parquet", "no footer", 12, "Restore it"),
        TableNotFound("/nowhere"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_task_arrives_as_what_it_was(error):
    with pytest.raises(type(error)) as raised, mark_worker_errors():
        raise error
    text = "".join(traceback.format_exception(raised.value))
    with pytest.raises(type(error)) as arrived, raise_worker_errors():
        raise PySparkException(f"Job aborted:\n{text}\nDriver stacktrace")
    assert (arrived.value.args, str(arrived.value)) == (error.args, str(error))


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("ModuleNotFoundError: No module named 'hoodie.table'", WorkerEnvironment, "'hoodie'"),
        ("PyArrow >= 18.0.0 must be installed; however, it was not found.", WorkerEnvironment, "'pyarrow'"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", WorkerEnvironment, "version of Python"),
        ("No module named 'hoodies'", PySparkException, "hoodies"),
        ('hoodie-error ["os.system", "x"]', PySparkException, "os.system"),
        ('hoodie-error ["CorruptFile"]', PySparkException, "CorruptFile"),
        ('hoodie-error ["InvalidInput", "cut o', PySparkException, "cut o"),
    ],
)
def test_other_errors_of_tasks_pass_unless_they_are_about_the_workers(text, kind, named):
    with pytest.raises(kind, match=named) as raised, raise_worker_errors():
        raise PySparkException(text)
    assert (type(raised.value) is PySparkException) == (kind is PySparkException)


@pytest.mark.parametrize("module", ["hoodie", nightly("pyarrow")])
def test_workers_that_lack_a_module_are_told_by_the_probe(spark, table, monkeypatch, module):
    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    monkeypatch.setattr(tasks, "_probe", probe)
    monkeypatch.setattr(tasks, "_checked", type(tasks._checked)())
    for operation in (table.upsert, table.bulk_insert):
        with untouched(table, "PYSPARK_PYTHON", repr(module), error=WorkerEnvironment):
            operation(frame(spark, [("c", "oslo", 2, "x")]), options=SPREAD)
    assert table.upsert(frame(spark, [("c", "oslo", 2, "x")])).inserted == 1  # near needs no workers


SCRIPT = """
    import sys
    import hoodie
    from hoodie.errors import WorkerEnvironment

    fast = {"spark.sql.shuffle.partitions": 1, "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = hoodie.spark.local_session("bare", cores=1, **fast)
    table = hoodie.create_table(sys.argv[1], spark=spark, name="t", record_key="id",
                                options={"hoodie.spark.driver.max.batch.bytes": "0"})
    try:
        table.upsert(spark.range(3).selectExpr("cast(id as string) id"))
    except WorkerEnvironment as error:
        print("REFUSED", error)
    print("COMMITS", len(table.history()))
"""


@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_a_session_whose_workers_run_a_bare_python_is_told_about_pyspark_python(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python3" -S "$@"\n')
    bare.chmod(0o755)
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "table")],
        env={**os.environ, "PYSPARK_PYTHON": str(bare), "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert "REFUSED" in run.stdout, run.stdout + run.stderr[-3000:]
    assert "PYSPARK_PYTHON" in run.stdout
    assert "COMMITS 0" in run.stdout
    assert set(files(tmp_path / "table")) == {".hoodie/hoodie.properties"}
