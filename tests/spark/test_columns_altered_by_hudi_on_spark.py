"""On Spark, too, altered columns have Hudi's rows: base files of now by Spark's reader, others by Arrow."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from support.altered_tables import Rows, comparable, reads, snapshot, unpack
from support.nightly import nightly


@pytest.mark.parametrize("name", [nightly("cow_types"), "mor_columns"])
def test_reads_of_altered_columns_have_hudis_rows_on_spark(spark: SparkSession, name: str, tmp_path: Path) -> None:
    table = hoodie.open_table(unpack(name, tmp_path), spark=spark)
    every = list(reads(name))
    changes, moment = ([part for part in every if part[0] == kind] for kind in ("changes", "as_of"))
    assert rows_of(table.snapshot()) == snapshot(name)
    assert rows_of(table.as_of(moment[0][1]["as_of"])) == moment[0][2]
    assert rows_of(table.changes(changes[1][1]["begin"])) == changes[1][2]
    hoodie.register(spark)
    read = spark.read.format("hudi").load(table.path)
    assert rows_of(read) == snapshot(name)
    if name == "cow_types":
        assert [row.id for row in read.where("amount = '13' and d = '2024-01-03'").select("id").collect()] == ["k3"]
    else:
        optimized = next(rows for kind, _, rows in every if kind == "read_optimized")
        assert rows_of(table.snapshot(optimized=True)) == optimized


def rows_of(frame: DataFrame) -> Rows:
    return comparable([row.asDict(recursive=False) | nested(row) for row in frame.collect()])


def nested(row: Any) -> dict[str, Any]:
    """The values that are no plain ones: structs as dicts, maps as pairs."""
    return {name: _plain(row[name]) for name in row.asDict() if isinstance(row[name], (tuple, list, dict))}


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return {name: _plain(item) for name, item in value.asDict().items()}
    if isinstance(value, dict):
        return [(key, _plain(item)) for key, item in value.items()]
    return [_plain(item) for item in value] if isinstance(value, list) else value
