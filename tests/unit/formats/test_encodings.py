"""Columns get a dictionary where it makes the file smaller."""

import io
import math
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.formats.parquet.columns import dictionary_columns, statistics_columns

N = 60_000
NUMBERS = np.random.default_rng(1)


def size(values: pa.Array, dictionary: bool) -> int:
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": values}), sink, use_dictionary=dictionary, compression="zstd")
    return len(sink.getvalue())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([str(uuid.UUID(int=i * 2**90)) for i in range(N)]), False),
        (pa.array(NUMBERS.random(N)), False),
        (pa.array(np.arange(N)), False),
        (pa.array(NUMBERS.choice(["red", "green", "blue"], N)), True),
        (pa.array([f"customer {i:08d}" for i in NUMBERS.integers(0, 9_000, N)]), True),
        (pa.repeat("20240101000000000", N), True),
    ],
    ids=["keys", "doubles", "numbers", "words", "customers", "one"],
)
def test_a_column_has_a_dictionary_when_that_is_smaller(values: pa.Array, expected: bool) -> None:
    assert (dictionary_columns(pa.table({"c": values})) == ["c"]) is expected
    assert (size(values, True) < size(values, False)) is expected


def test_nested_columns_are_named_as_parquet_names_their_leaves() -> None:
    rows = pa.table(
        {
            "s": pa.array([{"a": 1, "b": [1]}]),
            "l": pa.array([[{"x": "y"}]]),
            "m": pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int64()))),
        }
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink, use_dictionary=dictionary_columns(rows))
    columns = pq.ParquetFile(sink).metadata.row_group(0)
    leaves = [columns.column(i) for i in range(columns.num_columns)]
    assert dictionary_columns(rows) == [leaf.path_in_schema for leaf in leaves]
    assert all("RLE_DICTIONARY" in leaf.encodings for leaf in leaves)


def test_columns_keep_their_dictionary_when_there_are_no_rows() -> None:
    assert dictionary_columns(pa.table({"c": pa.array([], pa.string())})) == ["c"]


def test_columns_with_nan_have_no_statistics_wherever_it_is() -> None:
    rows = pa.table(
        {
            "id": ["a", "b"],
            "plain": [1.0, None],
            "nan": pa.array([1.0, math.nan], pa.float32()),
            "s": [{"x": 1.0, "y": math.nan, "n": 1}, None],
            "l": [[0.5, math.nan], []],
            "m": pa.array([[("k", math.nan)], []], pa.map_(pa.string(), pa.float64())),
            "structs": [[{"v": 0.5, "w": math.nan}], None],
        }
    )
    names = ["id", "plain", "s.x", "s.n", "m.key_value.key", "structs.list.element.v"]
    assert statistics_columns(rows) == names
    sink = io.BytesIO()
    pq.write_table(rows, sink, write_statistics=names, use_compliant_nested_type=True)
    group = pq.read_metadata(sink).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert [column.path_in_schema for column in columns if column.statistics is not None] == names
