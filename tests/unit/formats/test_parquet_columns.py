"""Columns of which few rows are wanted, read as they are stored."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.formats.parquet.columns import open_encoded, read_columns, rows_at_once

COUNT = 1000
ROWS = pa.table(
    {
        "word": pa.array([f"word {n % 5}" if n % 7 else None for n in range(COUNT)]),
        "key": pa.array([f"key {n}" for n in range(COUNT)]),
        "number": pa.array([n % 5 for n in range(COUNT)]),
        "bytes": pa.array([b"abc"] * COUNT),
        "nested": pa.array([{"word": f"word {n % 5}"} for n in range(COUNT)]),
    }
)


def stored(rows: pa.Table = ROWS, **settings: object) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(rows, file, **settings)
    return file


def kinds(file: io.BytesIO) -> set[str]:
    """The columns that come as dictionaries."""
    parquet = open_encoded(file, "f")
    schema = read_columns(parquet, 0, ROWS.column_names, "f").schema
    return {field.name for field in schema if pa.types.is_dictionary(field.type)}


def test_text_of_few_values_comes_as_a_dictionary() -> None:
    assert kinds(stored()) == {"word"}


def test_text_that_is_written_out_comes_as_text() -> None:
    assert kinds(stored(use_dictionary=False)) == set()


def test_text_is_a_dictionary_in_no_row_group_unless_in_all() -> None:
    words = pa.table({"word": pa.array([f"word {n % 5 if n < COUNT else n}" for n in range(2 * COUNT)])})
    file = stored(words, row_group_size=COUNT)
    assert not pa.types.is_dictionary(read_columns(open_encoded(file, "f"), 0, ["word"], "f").schema.field(0).type)


def test_values_are_the_same_in_every_row_group() -> None:
    parquet = open_encoded(stored(row_group_size=300), "f")
    groups = [read_columns(parquet, group, ROWS.column_names, "f") for group in range(parquet.num_row_groups)]
    assert len(groups) == 4
    assert [row for group in groups for row in group.to_pylist()] == ROWS.to_pylist()


def test_so_many_rows_are_encoded_at_a_time_as_a_page_has_room_for() -> None:
    assert rows_at_once(ROWS.select(["number"])) == 65_536
    assert rows_at_once(pa.table({"number": [1], "text": ["x" * 100]})) in range(8_000, 11_000)
    assert (
        rows_at_once(pa.table({"text": ["x" * 1_000_000]})) == rows_at_once(pa.table({"text": ["x" * 9_000]})) == 1024
    )
    assert rows_at_once(ROWS.slice(0, 0)) == 65_536
