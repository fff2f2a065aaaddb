"""The real Hudi reads tables that the library wrote: each view has the library's rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.engine_cases import CASES, comparable, read, write
from support.hudi_engine import HudiEngine, HudiFailed


@pytest.mark.parametrize("name", CASES)
def test_hudi_reads_what_the_library_wrote(hudi: HudiEngine, name: str, tmp_path: Path) -> None:
    case, path = CASES[name], tmp_path / name
    instants = write(case, path)
    for view in case.views:
        ours = comparable(read(path, view, instants[-2]), instants)
        if case.differs(hudi.version, view):
            try:
                theirs = comparable(hudi.view(path, view, instants[-2]), instants)
            except HudiFailed:
                continue
            assert theirs != ours, "the difference is gone: take it out of the case"
        else:
            assert comparable(hudi.view(path, view, instants[-2]), instants) == ours, view
