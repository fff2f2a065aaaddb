"""Tables of versions 8 and 9, by Hudi 1.0.2, 1.1.1 and 1.2.0: every view has the rows that the same Hudi read."""

from __future__ import annotations

from pathlib import Path

import pytest

import hoodie
from support.hudi_1_tables import Row, begin_of, noted, noting, noting_changes, table_names, unpack, views


def read(name: str, path: Path, view: str) -> list[Row]:
    """What this library reads of a noted view, as it is noted."""
    kind, *points = view.split()
    if kind == "snapshot":
        return noting(hoodie.open_table(path).snapshot().to_arrow())
    if kind == "read_optimized":
        return noting(hoodie.open_table(str(path)).snapshot(optimized=True).to_arrow())
    if kind == "as_of":
        return noting(hoodie.open_table(path).snapshot(as_of=points[0]).to_arrow())
    begin, end = begin_of(name, view), None if points[1] == "latest" else points[1]
    changes = hoodie.open_table(path).changes(begin, end, cdc=kind == "cdc").to_arrow()
    return noting_changes(changes) if kind == "cdc" else noting(changes)


@pytest.mark.parametrize("name", table_names())
def test_every_view_has_the_rows_that_hudi_read(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    for view in views(name):
        assert read(name, path, view) == noted(name, view), view
