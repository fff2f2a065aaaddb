"""The same history of writes by a Spark session and without one: the same table, by the same counts."""

import itertools
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import hoodie
from hoodie.config.write import WriteOperation
from hoodie.doctor.findings import Fault
from hoodie.errors import HudiCannotRead
from hoodie.spark.types import local_frame, to_spark
from support.history_model import OVERWRITE, TableModel, as_brought, text_of
from support.spark_histories import drawn_table
from support.strategies import Shape, Step, histories, shapes

pytestmark = pytest.mark.nightly


#: Told by the clock or drawn at random.
NOT_COMPARED = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
SEEDS = {"COPY_ON_WRITE": 11, "MERGE_ON_READ": 12}


def take(table: hoodie.HoodieTable[Any], step: Step, rows: Any, paths: list[str]) -> tuple[int, int, int]:
    if step.operation is WriteOperation.DELETE_PARTITION:
        done = table.delete_partitions(paths, options=step.options)
    else:
        done = getattr(table, step.operation.value)(rows, options=step.options)
    return done.inserted, done.updated, done.deleted


@pytest.mark.parametrize("table_type", SEEDS)
def test_the_same_history_gives_the_same_table(spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    numbers = itertools.count()

    @seed(SEEDS[table_type])
    @settings(max_examples=3, database=None, phases=[Phase.generate])
    @given(st.data())
    def the_same_table(data: st.DataObject) -> None:
        shape = data.draw(shapes(), label="shape")
        steps = data.draw(histories(shape, least=3, most=4, faults=False), label="history")
        path = tmp_path / str(next(numbers))
        compare(spark, path, shape, table_type, steps)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HudiCannotRead)
        the_same_table()


def compare(spark: SparkSession, path: Path, shape: Shape, table_type: str, steps: tuple[Step, ...]) -> None:
    by_spark = drawn_table(spark, str(path / "spark"), shape, table_type)
    alone = drawn_table(None, str(path / "alone"), shape, table_type)
    model = TableModel(shape, OVERWRITE)  # only for the paths of its partitions
    for step in steps:
        paths = [model.path_of(value) for value in step.partitions]
        if not set(paths) <= {slice_.group.partition for slice_ in alone.file_slices()}:
            continue
        if alone.history() and as_brought(alone.schema, step) != step.schema:
            continue  # a frame of Spark's means its types
        frame = local_frame(spark, step.table, to_spark(step.table.schema)) if step.table.num_columns else None
        assert take(alone, step, step.table, paths) == take(by_spark, step, frame, paths)
        spark_rows = by_spark.snapshot().toArrow()
        rows = alone.snapshot(meta=True).to_arrow()
        assert rows.schema.names == spark_rows.schema.names
        assert text(rows) == text(spark_rows.cast(rows.schema))
        assert alone.schema == by_spark.schema
    # Each reads what the other wrote.
    read = hoodie.open_table(by_spark.path).snapshot(meta=True).to_arrow()
    assert text(read) == text(alone.snapshot(meta=True).to_arrow())
    found = [sorted({(found.severity, found.fault) for found in table.check()}) for table in (alone, by_spark)]
    assert found[0] == found[1]
    assert {fault for _, fault in found[0]} <= {Fault.DUPLICATE}  # batches that are not combined may have keys twice


def text(rows: pa.Table) -> list[str]:
    return text_of(rows.drop_columns(NOT_COMPARED))
