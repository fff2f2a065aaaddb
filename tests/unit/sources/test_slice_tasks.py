"""Rows of a task meet the types that Spark was told of when its query began."""

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition

from hoodie.errors import SchemaMismatch
from hoodie.sources import slice_tasks


def test_values_of_a_type_that_has_grown_say_to_start_the_stream_again(monkeypatch: pytest.MonkeyPatch) -> None:
    target, grown = pa.schema([("v", pa.int32())]), [pa.table({"v": [7]}), pa.table({"v": [3_000_000_000]})]
    monkeypatch.setattr(slice_tasks, "_tables", lambda task: iter(grown))
    rows = slice_tasks.task_rows(InputPartition(0), target)
    assert next(rows).to_pylist() == [{"v": 7}]
    with pytest.raises(SchemaMismatch, match=r"column v do not fit int.*start the stream again, with its checkpoint"):
        next(rows)
    monkeypatch.setattr(slice_tasks, "_tables", lambda task: iter([pa.table({"v": ["x"]})]))
    with pytest.raises(SchemaMismatch, match=r"[^.]\. A stream or view keeps"):
        next(slice_tasks.task_rows(InputPartition(0), target))
