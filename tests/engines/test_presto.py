"""Presto reads synced tables by name: its `hive` connector with columns by name, and what the others do wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.engine_cases import CASES
from support.query_cases import DATABASE, differing, synced
from support.query_servers import QueryServer


@pytest.mark.parametrize("name", CASES)
def test_presto_merges_logs_by_its_hive_connector(
    presto: QueryServer, metastore: str, name: str, tmp_path: Path
) -> None:
    table = synced(CASES[name], tmp_path, metastore)
    assert differing(table, lambda sql: presto.query(sql, "hive", DATABASE), lambda entry: table.entries()[entry]) == []
