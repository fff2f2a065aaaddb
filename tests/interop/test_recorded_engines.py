"""The cases that real Hudi ran, replayed without it: the same options and writes give the rows that it recorded."""

import json
from pathlib import Path

import pytest

from support.engine_cases import CASES, VECTORS, comparable, read, write
from support.nightly import by_day

_RECORDED = json.loads(VECTORS.read_text())


@pytest.mark.parametrize("name", by_day(_RECORDED, sorted(_RECORDED)[::2].__contains__))
def test_the_library_has_the_rows_that_hudi_has(name: str, tmp_path: Path) -> None:
    instants = write(CASES[name], tmp_path / name)
    for view, rows in _RECORDED[name].items():
        ours = comparable(read(tmp_path / name, view, instants[-2]), instants)
        assert [json.loads(row) for row in ours] == rows, view
