"""The library and the real Hudi write one table in turns."""

from __future__ import annotations

from pathlib import Path

import pytest

import hoodie
from hoodie.errors import UnsupportedTable
from support.engine_cases import CASES, COLUMNS, Row, Step, comparable, write
from support.hudi_engine import HudiEngine
from support.lake import files_of

_TURNS = [f"{kind}_{name}" for kind in ("cow", "mor") for name in ("plain", "cleaned", "bucket", "complex_keys")]
_AS_6 = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}


def _step(name: str, key: str, ts: int) -> Step:
    row: Row = (key, "rome", 20, ts, 0.5)
    return Step("upsert", (row, (f"{key}-{ts}", "rome", 20, ts, 1.5)), columns=COLUMNS)


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("name", _TURNS)
def test_hudi_writes_into_a_table_of_the_library_and_the_library_goes_on(
    hudi: HudiEngine, name: str, metadata: str, tmp_path: Path
) -> None:
    case, path = CASES[name], tmp_path / name
    write(case, path)
    options = {**case.options, **_AS_6, "hoodie.metadata.enable": metadata}
    for ts in (20, 22):
        step = _step(name, "k4", ts)
        hudi.write(path, step.sql(), {**options, "hoodie.datasource.write.operation": "upsert"})
        table = hoodie.open_table(str(path))
        rows = comparable(table.snapshot().to_arrow())
        assert rows == comparable(hudi.snapshot(path))
        assert sum(f'"ts": {ts}' in row for row in rows) == 2

        batch = _step(name, "k4", ts + 1).arrow()
        if metadata == "true":
            with pytest.raises(UnsupportedTable, match="metadata table"):
                hoodie.hudi.write(batch, str(path), case.options)
        hoodie.hudi.write(batch, str(path), {**case.options, "hoodie.metadata.enable": "false"})
        rows = comparable(table.snapshot().to_arrow())
        assert rows == comparable(hudi.snapshot(path))
        assert sum(f'"ts": {ts + 1}' in row for row in rows) == 2


@pytest.mark.parametrize("name", _TURNS)
def test_a_table_that_hudi_upgraded_is_read_and_not_written(hudi: HudiEngine, name: str, tmp_path: Path) -> None:
    if hudi.version < "1":
        pytest.skip("Hudi 0.15 writes version 6")
    case, path = CASES[name], tmp_path / name
    write(case, path)
    step = _step(name, "k4", 20)
    hudi.write(path, step.sql(), {**case.options, "hoodie.datasource.write.operation": "upsert"})
    table = hoodie.open_table(str(path))
    rows = comparable(table.snapshot().to_arrow())
    assert rows == comparable(hudi.snapshot(path))
    assert sum('"ts": 20' in row for row in rows) == 2

    before = files_of(path)
    with pytest.raises(UnsupportedTable, match="version"):
        hoodie.hudi.write(_step(name, "k4", 21).arrow(), str(path), case.options)
    assert files_of(path) == before
