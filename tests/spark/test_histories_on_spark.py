"""Random histories through the table that people hold, by driver threads and executors in turn: every reader sees what
the model says."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.config.write import WriteOperation
from hoodie.schema.types import TIMESTAMP_NTZ
from hoodie.testing.strategies import LEAVES, Row, Shape, Step, histories, shapes
from support.history_model import BY_ORDERING, OVERWRITE, Counts, Identity, TableModel, placement, text_of
from support.oracles import assert_same_rows, read_hudi_rs

ROUTES: tuple[dict[str, str], ...] = ({}, {"hoodie.spark.driver.max.batch.bytes": "0"})
#: By position without what the session keeps, and by key.
OTHER_READS: tuple[dict[str, str], ...] = (
    {"hoodie.spark.read.cache.max.log.bytes": "0"},
    {"hoodie.merge.use.record.positions": "false"},
)
NOT_COMPARED = ("_hoodie_commit_seqno", "_hoodie_file_name")
SEEDS = {"COPY_ON_WRITE": 1, "MERGE_ON_READ": 2}
#: hudi-rs reads a timestamp_ntz as a bigint, which only a column of its own can be told from.
TYPES = st.sampled_from(LEAVES) | st.sampled_from(
    [
        pa.decimal128(38, 18),
        pa.list_(pa.field("element", pa.string())),
        pa.map_(pa.string(), pa.field("value", pa.int64())),
        pa.struct([pa.field("f0", pa.float64()), pa.field("f1", pa.list_(pa.field("element", pa.int32())))]),
    ]
)


def without_ties(model: TableModel, step: Step) -> tuple[Row, ...]:
    """The rows but those that only the order of the batch could tell from an earlier one: executors have none."""
    seen: set[tuple[Identity, Any]] = set()
    kept = []
    last = "false" in step.options.values()  # duplicates are not combined: the last one is taken
    for identity, row in model.batch(step):
        ordering = 0 if last or step.operation is WriteOperation.DELETE else model.ordering(row)
        if (identity, ordering) not in seen:
            seen.add((identity, ordering))
            kept.append(row)
    return tuple(kept)


def write(session: SparkSession, table: HoodieTable, step: Step, paths: list[str], options: dict[str, str]) -> Any:
    if step.operation is WriteOperation.DELETE_PARTITION:
        return table.delete_partitions(paths, options=options)
    method = getattr(table, step.operation.value)
    return method(session.createDataFrame(step.table), options={**step.options, **options})


def take(session: SparkSession, table: HoodieTable, model: TableModel, step: Step, route: dict[str, str]) -> TableModel:
    paths = [model.path_of(value) for value in step.partitions]
    if not set(paths) <= {slice_.group.partition for slice_ in table.file_slices()}:
        return model
    result = write(session, table, step, paths, route)
    model, counts = model.after(step, result.instant, placement(table.storage, result.metadata, result.instant))
    assert Counts(result.inserted, result.updated, result.deleted) == counts
    return model


def check(table: HoodieTable, model: TableModel) -> None:
    if model.schema is None:
        return
    expected = model.snapshot()
    assert_rows(table.snapshot().toArrow(), expected)
    for options in OTHER_READS:
        assert_rows(hoodie.open_table(table.session, table.path, options=options).snapshot().toArrow(), expected)
    assert_rows(hoodie.read_arrow(table.path), expected)
    assert_rows(table.read_optimized().toArrow(), model.read_optimized())
    if any(copy.log for copies in model.rows.values() for copy in copies) and model.duplicates:
        return  # of several base rows of one key, hudi-rs (as Hudi's reader) merges a log with the first only
    assert_same_rows(as_declared(read_hudi_rs(table.path), expected.schema), expected, NOT_COMPARED)


def assert_rows(rows: pa.Table, expected: pa.Table) -> None:
    assert text_of(rows.drop_columns(list(NOT_COMPARED)).cast(expected.schema)) == text_of(expected)


def as_declared(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """hudi-rs' rows with timestamp_ntz columns as such."""
    for found in schema:
        if found.type == TIMESTAMP_NTZ:
            at = rows.schema.get_field_index(found.name)
            rows = rows.set_column(at, found, rows.column(at).cast(TIMESTAMP_NTZ))
    return rows


@pytest.mark.parametrize("table_type", SEEDS)
def test_all_readers_see_what_a_dict_of_rows_holds_after_a_history(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    numbers = itertools.count()

    # Not shrunk: an example takes seconds. The first one is empty batches.
    @seed(SEEDS[table_type])
    @settings(max_examples=4, database=None, phases=[Phase.generate])
    @given(st.data())
    def histories_of_tables(data: st.DataObject) -> None:
        shape = data.draw(shapes(TYPES), label="shape")
        payload = data.draw(st.sampled_from([OVERWRITE, BY_ORDERING]), label="payload")
        steps = data.draw(histories(shape, least=4, most=6, faults=False), label="history")
        run(spark, tmp_path / str(next(numbers)), shape, payload, table_type, steps)

    histories_of_tables()


def run(spark: SparkSession, path: Path, shape: Shape, payload: str, table_type: str, steps: Iterable[Step]) -> None:
    table = hoodie.create_table(
        spark,
        str(path),
        name="drawn",
        record_key=shape.keys,
        partition_by=shape.partition,
        ordering=shape.ordering,
        table_type=table_type,
        options={
            "hoodie.datasource.write.hive_style_partitioning": shape.hive_style,
            "hoodie.datasource.write.partitionpath.urlencode": shape.url_encode,
            "hoodie.datasource.write.payload.class": payload,
            "hoodie.parquet.small.file.limit": 20_000,
        },
    )
    model = TableModel(shape, payload)
    for number, step in enumerate(steps):
        model = take(spark, table, model, step, ROUTES[number % 2])
    check(table, model)
