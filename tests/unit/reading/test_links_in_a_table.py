"""Symbolic links in a table's folder that lead back: rows show once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie


@pytest.mark.parametrize("target", [".", "t", "t/oslo"])
def test_a_link_back_adds_no_rows(target: str, tmp_path: Path) -> None:
    options = {"hoodie.metadata.enable": "false"}  # folders are listed
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city", options=options)
    rows = pa.table({"id": ["a", "b"], "city": ["oslo", "bern"]})
    table.upsert(rows)
    (tmp_path / "t" / "link").symlink_to(tmp_path / target)
    assert table.snapshot().count() == 2
    assert not table.check(grace=0)
    table.upsert(rows)
    assert table.snapshot().count() == 2
