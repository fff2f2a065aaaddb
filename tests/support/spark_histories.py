"""Random histories through the table that people hold, by driver threads and executors in turn, beside a model: every
reader sees what the model says."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.config.write import WriteOperation
from hoodie.schema.types import TIMESTAMP_NTZ
from hoodie.storage import LocalStorage, Storage
from hoodie.storage.protocol import join
from support.history_model import BY_ORDERING, OVERWRITE, Counts, TableModel, placement, text_of
from support.oracles import assert_same_rows, read_hudi_rs
from support.strategies import LEAVES, Shape, Step, histories, shapes

ROUTES: tuple[dict[str, str], ...] = ({}, {"hoodie.spark.driver.max.batch.bytes": "0"})
#: By position on executors, with and without what the session keeps, and by key.
OTHER_READS: tuple[dict[str, str], ...] = (
    {"hoodie.spark.driver.max.batch.bytes": "0"},
    {"hoodie.spark.read.cache.max.log.bytes": "0"},
    {"hoodie.merge.use.record.positions": "false"},
)
NOT_COMPARED = ("_hoodie_commit_seqno", "_hoodie_file_name")
#: hudi-rs reads a timestamp_ntz as a bigint, which only a column of its own can be told from.
TYPES = st.sampled_from(LEAVES) | st.sampled_from(
    [
        pa.decimal128(38, 18),
        pa.list_(pa.field("element", pa.string())),
        pa.map_(pa.string(), pa.field("value", pa.int64())),
        pa.struct([pa.field("f0", pa.float64()), pa.field("f1", pa.list_(pa.field("element", pa.int32())))]),
    ]
)


def drawn_table(
    spark: SparkSession | None,
    path: str,
    shape: Shape,
    table_type: str,
    options: Mapping[str, object] = MappingProxyType({}),
    **more: Any,
) -> HoodieTable[Any]:
    """A new table of a shape that a history was drawn for, with a session or without."""
    return hoodie.create_table(
        path,
        spark=spark,
        name="drawn",
        record_key=shape.keys,
        partition_by=shape.partition,
        ordering=shape.ordering,
        table_type=table_type,
        options={
            "hoodie.compact.inline": False,  # the model knows no compaction
            "hoodie.write.set.null.for.missing.columns": True,  # and has nulls where a batch lacks columns
            "hoodie.datasource.write.hive_style_partitioning": shape.hive_style,
            "hoodie.datasource.write.partitionpath.urlencode": shape.url_encode,
            **options,
        },
        **more,
    )


class SparkHistory:
    """One table, written by Spark, and its model.

    path             of a table that does not exist yet
    storage_options  of the storage's driver
    copy             where a table that is not on local disk is copied to, for the reader that knows no other
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        shape: Shape,
        payload: str,
        table_type: str,
        storage_options: Mapping[str, Any] | None = None,
        copy: Path | None = None,
    ) -> None:
        self.storage_options, self.copy = storage_options, copy
        self.model = TableModel(shape, payload, by_arrow=False)
        self.routes: set[str] = set()  # that writes took
        options = {"hoodie.datasource.write.payload.class": payload, "hoodie.parquet.small.file.limit": 20_000}
        self.table: HoodieTable = drawn_table(spark, path, shape, table_type, options, storage_options=storage_options)

    def take(self, step: Step, route: Mapping[str, str]) -> None:
        paths = [self.model.path_of(value) for value in step.partitions]
        if not set(paths) <= {slice_.group.partition for slice_ in self.table.file_slices()}:
            return
        result = self._write(step, paths, route)
        self.routes.add(result.route)
        placed = placement(self.table.storage, result.metadata, result.instant)
        self.model, counts = self.model.after(step, result.instant, placed)
        assert Counts(result.inserted, result.updated, result.deleted) == counts

    def _write(self, step: Step, paths: list[str], route: Mapping[str, str]) -> Any:
        if step.operation is WriteOperation.DELETE_PARTITION:
            return self.table.delete_partitions(paths, options=route)
        method = getattr(self.table, step.operation.value)
        return method(self.table.session.createDataFrame(step.table), options={**step.options, **route})

    def check(self) -> None:
        """Every reader has the model's rows."""
        table, model = self.table, self.model
        if model.schema is None:
            return
        expected = model.snapshot()
        assert_rows(table.snapshot().toArrow(), expected)
        for options in OTHER_READS:
            again = hoodie.open_table(
                table.path, spark=table.session, options=options, storage_options=self.storage_options
            )
            assert_rows(again.snapshot().toArrow(), expected)
        alone = hoodie.open_table(table.path, storage_options=self.storage_options)
        assert_rows(alone.snapshot(meta=True).to_arrow(), expected)
        assert_rows(table.snapshot(optimized=True).toArrow(), model.read_optimized())
        if any(copy.log for copies in model.rows.values() for copy in copies) and model.duplicates:
            return  # of several base rows of one key, hudi-rs (as Hudi's reader) merges a log with the first only
        path = table.path if self.copy is None else copied(table.storage, self.copy)
        assert_same_rows(as_declared(read_hudi_rs(path), expected.schema), expected, NOT_COMPARED)


def run_histories(new: Callable[..., SparkHistory], *, number: int, examples: int, least: int, most: int) -> set[str]:
    """Carry out histories, each checked at its end; returns the routes that writes took.

    new          the history of a fresh table, of a shape and a payload
    number       the seed: the same histories in each run
    least, most  steps of a history
    """
    routes: set[str] = set()

    # Not shrunk: an example takes seconds. The first one is empty batches.
    @seed(number)
    @settings(max_examples=examples, database=None, phases=[Phase.generate], deadline=None)
    @given(st.data())
    def histories_of_tables(data: st.DataObject) -> None:
        shape = data.draw(shapes(TYPES), label="shape")
        payload = data.draw(st.sampled_from([OVERWRITE, BY_ORDERING]), label="payload")
        steps = data.draw(histories(shape, least=least, most=most, faults=False), label="history")
        history = new(shape, payload)
        take_all(history, steps)
        history.check()
        routes.update(history.routes)

    histories_of_tables()
    return routes


def take_all(history: SparkHistory, steps: Iterable[Step]) -> None:
    for number, step in enumerate(steps):
        history.take(step, ROUTES[number % 2])


def assert_rows(rows: pa.Table, expected: pa.Table) -> None:
    assert text_of(rows.drop_columns(list(NOT_COMPARED)).cast(expected.schema)) == text_of(expected)


def as_declared(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """hudi-rs' rows with timestamp_ntz columns as such."""
    for found in schema:
        if found.type == TIMESTAMP_NTZ:
            at = rows.schema.get_field_index(found.name)
            rows = rows.set_column(at, found, rows.column(at).cast(TIMESTAMP_NTZ))
    return rows


def copied(storage: Storage, to: Path) -> str:
    """The path of a copy of a table on local disk."""
    local = LocalStorage(to)
    for folder, entries in storage.list_tree().items():
        for entry in entries:
            local.write(join(folder, entry.name), storage.read(join(folder, entry.name)))
    return str(to)
