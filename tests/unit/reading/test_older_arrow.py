"""What older releases of Arrow refuse, and is not asked of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.keygen.arrow_keys import parts_of


def test_a_file_whose_statistics_rule_all_rows_out_is_not_asked_for_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow 18 and 19.0.0 fail to read no row groups."""
    table = hoodie.create_table(str(tmp_path / "t"), record_key="id")
    table.upsert(pa.table({"id": ["a", "b"], "n": [1, 2]}))
    read = pq.ParquetFile.read_row_groups

    def of_some(file: pq.ParquetFile, groups: list[int], *given: Any, **named: Any) -> pa.Table:
        if not groups:
            raise OSError("The file only has 1 row groups, requested metadata for row group: -1")
        return read(file, groups, *given, **named)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", of_some)
    rows = table.snapshot(filters="n > 5").to_arrow()
    assert (rows.num_rows, rows.column_names[-2:]) == (0, ["id", "n"])


class OfViews:
    """Rows with texts as views, in Arrow before 24."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows, self.num_rows = rows, rows.num_rows

    @property
    def nbytes(self) -> int:
        raise pa.ArrowTypeError("Extracting byte ranges not supported for type string_view")

    def get_total_buffer_size(self) -> int:
        return int(self.rows.get_total_buffer_size())

    def slice(self, start: int, count: int) -> pa.Table:
        return self.rows.slice(start, count)


def test_the_size_of_texts_as_views_is_that_of_their_buffers() -> None:
    rows = pa.table({"id": pa.array(["a", "b"], pa.string_view())})
    (part,) = parts_of(OfViews(rows))  # type: ignore[arg-type]
    assert part.num_rows == 2
